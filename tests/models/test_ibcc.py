"""VB-IBCC: enumeration of all labellings as oracle, and what users ask of priors, starts and fits."""

import warnings

import numpy as np
import pytest
from builders import crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln
from strategies import answered_graphs

import crowdgraph as cg
from crowdgraph.kernels import sweep
from crowdgraph.testing import exact_posterior


def quietly(model, graph, **options):
    """Fit without warnings of tiny graphs that collapse or do not settle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.errors.CrowdGraphWarning)
        return model.fit(graph, **options)


def random_prior(graph, seed):
    rng = np.random.default_rng(seed)
    return rng.gamma(2, 1, (len(graph.classes), len(graph.labels))) + 0.1, rng.gamma(2, 1, len(graph.classes)) + 0.1


@pytest.mark.slow
@given(answered_graphs(soft=False), st.integers(0, 1000), st.booleans())
def test_bound_stays_below_the_evidence_and_never_falls(graph, seed, accelerate):
    confusion_prior, class_prior = random_prior(graph, seed)
    model = cg.IBCC(
        confusion_prior=confusion_prior, class_prior=class_prior, max_iter=200, tol=1e-300, accelerate=accelerate
    )
    fit = quietly(model, graph)
    exact = exact_posterior(graph, confusion_prior=confusion_prior, class_prior=class_prior)
    assert fit.bound[-1] <= exact.log_evidence + 1e-9
    assert (np.diff(fit.bound) >= -1e-9 * (1 + np.abs(fit.bound[1:]))).all()


def test_the_bound_is_the_seven_terms_of_the_paper():
    """E[ln p(t, c, pi, kappa)] - E[ln q], each term written out, at the end of a fit."""
    graph = crowd(n_volunteers=5, n_items=12, n_responses=40, gold=0.3, seed=3).graph
    prior, class_prior = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([2.0, 1.0])
    fit = cg.IBCC(confusion_prior=prior, class_prior=class_prior, tol=1e-13).fit(graph)
    q, alpha, nu = fit.item_probs, fit.confusion.latest().concentration, fit.class_concentration
    logs, class_logs = digamma(alpha) - digamma(alpha.sum(2, keepdims=True)), digamma(nu) - digamma(nu.sum())
    responses = graph.responses
    said = logs[responses.volunteer, :, responses.label]

    def log_density(concentration, expected):
        norm = gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)
        return (norm + ((concentration - 1) * expected).sum(-1)).sum()

    terms = {
        "E ln p(t | kappa)": (q @ class_logs).sum(),
        "E ln p(c | t, pi)": (q[responses.item] * said).sum(),
        "E ln p(pi)": log_density(np.broadcast_to(prior, alpha.shape), logs),
        "E ln p(kappa)": log_density(class_prior, class_logs),
        "- E ln q(t)": -np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0).sum(),
        "- E ln q(pi)": -log_density(alpha, logs),
        "- E ln q(kappa)": -log_density(nu, class_logs),
    }
    assert np.isclose(sum(terms.values()), fit.bound[-1], rtol=1e-12)


def test_all_gold_is_exact():
    """With all classes known the bound is the evidence: the probability of the answers and the classes."""
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"], "item": ["x"], "label": ["yes"]}, labels=["no", "yes"], gold={"x": "yes"}
    )
    fit = cg.IBCC(confusion_prior=[[3, 1], [1, 3]], class_prior=[2, 5]).fit(graph)
    exact = exact_posterior(graph, confusion_prior=[[3, 1], [1, 3]], class_prior=[2, 5])
    assert np.isclose(fit.bound[-1], exact.log_evidence, rtol=1e-12)
    assert np.isclose(exact.log_evidence, np.log(5 / 7 * 3 / 4))


@settings(max_examples=30)
@given(answered_graphs(), st.integers(0, 1000))
def test_soft_gold_and_odd_shapes(graph, seed):
    confusion_prior, class_prior = random_prior(graph, seed)
    fit = quietly(cg.IBCC(confusion_prior=confusion_prior, class_prior=class_prior), graph)
    known = graph.gold.known
    assert np.array_equal(fit.item_probs[known], graph.gold.probs[known])
    assert np.allclose(fit.item_probs.sum(axis=1), 1)
    counts = fit.confusion.latest().concentration - confusion_prior
    assert np.allclose(counts.sum(axis=(1, 2)), graph.volunteers.n_responses)
    assert np.isclose((fit.class_concentration - class_prior).sum(), len(graph.items))
    silent = graph.volunteers.n_responses == 0
    assert np.allclose(counts[silent], 0)


def test_items_without_answers_stay_at_the_prior():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["yes", "yes"]},
        labels=["no", "yes"],
        items={"item": ["x", "lonely"]},
    )
    fit = cg.IBCC(class_prior=[30, 10], tol=1e-12).fit(graph)
    nu = fit.class_concentration
    expected = np.exp(digamma(nu))
    assert np.allclose(fit.item_probs[1], expected / expected.sum())


def test_a_fit_is_a_fixed_point():
    graph = crowd(gold=0).graph
    fit = cg.IBCC(confusion_prior=(4, 1), tol=1e-10).fit(graph)
    further = cg.IBCC(confusion_prior=(4, 1), tol=1e-10, max_iter=3, compare_starts=False).fit(graph, start=fit)
    assert np.abs(further.item_probs - fit.item_probs).max() < 1e-8


@pytest.mark.parametrize("seed", range(5))
def test_acceleration_finds_the_same_fixed_point(seed):
    graph = crowd(gold=0, seed=seed, n_volunteers=60, n_items=300, n_responses=2_000).graph
    fast, plain = (cg.IBCC(accelerate=accelerate, tol=1e-9, max_iter=20_000).fit(graph) for accelerate in (True, False))
    assert fast.n_iter < plain.n_iter
    assert np.allclose(fast.item_probs, plain.item_probs, atol=1e-6)
    assert fast.bound[-1] >= plain.bound[-1] - 1e-9 * abs(plain.bound[-1])


# Priors


def test_a_pair_is_a_matrix_by_name():
    """The diagonal belongs to the label of the class's name, wherever it stands."""
    table = {"volunteer": ["anna", "bert"], "item": ["x", "y"], "label": ["no", "yes"]}
    graph = cg.CrowdGraph.from_responses(table, labels=["yes", "no"], classes=["no", "yes"])
    pair = cg.IBCC(confusion_prior=(5, 2)).fit(graph)
    matrix = cg.IBCC(confusion_prior=[[2, 5], [5, 2]]).fit(graph)
    assert np.array_equal(pair.prior.shared, [[2, 5], [5, 2]])
    assert np.array_equal(pair.item_probs, matrix.item_probs)


def test_votes_make_a_prior():
    table = {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [-1, 3]}
    graph = cg.CrowdGraph.from_responses(table, labels=[-1, 1, 3], classes=["no", "yes"])
    fit = cg.IBCC(confusion_prior=(4, 1), votes={-1: "no", 1: None, 3: "yes"}).fit(graph)
    assert np.array_equal(fit.prior.shared, [[4, 1, 1], [1, 1, 4]])


def test_priors_of_single_volunteers():
    """Bert is known to be contrary, so what he says counts the other way."""
    table = {"volunteer": ["anna", "bert"], "item": ["x", "y"], "label": ["yes", "yes"]}
    graph = cg.CrowdGraph.from_responses(table, labels=["no", "yes"])
    fit = cg.IBCC(confusion_prior={"bert": [[1, 50], [50, 1]]}).fit(graph)
    assert fit.predict() == {"x": "yes", "y": "no"}
    assert np.array_equal(fit.prior.of("bert"), [[1, 50], [50, 1]])
    assert np.array_equal(fit.prior.of("anna"), [[4, 1], [1, 4]])


def test_yesterdays_posterior_is_todays_prior():
    """With gold for every item, two halves in turn give what all responses give at once."""
    graph = crowd(gold=1.0, seed=4).graph
    half = len(graph.responses) // 2
    first, second = graph.first(half), graph.replace(responses=graph.responses.table.slice(half, len(graph.responses)))
    combined = cg.IBCC(confusion_prior=(4, 1)).fit(graph)
    earlier = cg.IBCC(confusion_prior=(4, 1)).fit(first)
    for prior in (earlier, earlier.as_prior(), earlier.as_prior(1.0)):
        later = cg.IBCC(confusion_prior=prior, class_prior=1.0).fit(second)
        assert np.allclose(later.confusion.latest().concentration, combined.confusion.latest().concentration)
    assert np.allclose(earlier.as_prior(0).confusion, earlier.prior.shared)
    middle = earlier.as_prior(0.5)
    assert np.allclose(middle.confusion, (earlier.as_prior(0).confusion + earlier.as_prior().confusion) / 2)
    assert np.allclose(middle.class_concentration, (1 + earlier.class_concentration) / 2)
    assert np.allclose(
        cg.IBCC(confusion_prior=middle).fit(second).prior.class_concentration, middle.class_concentration
    )


def test_prior_from_gold_is_of_greatest_likelihood():
    """Rows of the learned prior make the labels given to gold items more probable than nearby rows do."""
    graph = crowd(gold=0.5, n_volunteers=200, n_items=400, n_responses=6_000, seed=5).graph
    estimate = cg.IBCC(confusion_prior="gold").fit(graph).prior.shared
    known = graph.gold.known[graph.responses.item]
    counts = np.zeros((len(graph.volunteers), 2, 2))
    rows = graph.responses
    np.add.at(counts, (rows.volunteer[known], graph.gold.codes[rows.item[known]], rows.label[known]), 1)

    def height(alpha):
        usual = np.array([[4.0, 1.0], [1.0, 4.0]])
        logs = digamma(usual) - digamma(usual.sum(1, keepdims=True))
        posterior = alpha + counts
        each = gammaln(posterior).sum(2) - gammaln(posterior.sum(2)) - gammaln(alpha).sum(1) + gammaln(alpha.sum(1))
        return each.sum() + (((alpha - 1) * logs).sum(1) - gammaln(alpha).sum(1) + gammaln(alpha.sum(1))).sum()

    for nudge in np.random.default_rng(0).normal(0, 0.05, (50, 2, 2)):
        assert height(estimate * np.exp(nudge)) < height(estimate)


def test_learned_prior_raises_the_bound_and_is_shared_by_strangers():
    simulated = crowd(gold=0.1, n_volunteers=150, n_items=300, n_responses=6_000, seed=6)
    graph = simulated.graph
    usual, learned = (
        cg.IBCC(confusion_prior=(4, 1), learn_prior=learn, tol=1e-9).fit(graph) for learn in (False, True)
    )
    assert learned.bound[-1] > usual.bound[-1]
    assert (np.diff(learned.bound) >= -1e-9 * np.abs(learned.bound[1:])).all()
    shared = learned.prior.shared / learned.prior.shared.sum(axis=1, keepdims=True)
    rows = simulated.truth.confusion[np.unique(graph.responses.volunteer, return_index=True)[1]]
    assert np.abs(shared - rows.mean(axis=0)).max() < 0.05
    stranger = learned.predict_response("a newcomer", graph.items.ids[0])
    assert np.allclose(list(stranger.values()), learned.item_probs[0] @ shared)


def test_a_learned_prior_is_a_fixed_point_of_its_own_equation():
    """At the end the prior's expected logarithms are the mean of the volunteers' and of the imagined one's."""
    graph = crowd(gold=0.3, seed=7).graph
    fit = cg.IBCC(learn_prior=True, confusion_prior=(3, 1), tol=1e-12, max_iter=10_000).fit(graph)

    def logs(alpha):
        return digamma(alpha) - digamma(alpha.sum(-1, keepdims=True))

    active = graph.volunteers.n_responses > 0
    total = logs(fit.confusion.latest().concentration[active]).sum(axis=0) + logs(np.array([[3.0, 1], [1, 3]]))
    assert np.allclose(logs(fit.prior.shared), total / (active.sum() + 1), atol=1e-6)


def test_the_prior_is_learned_where_all_classes_are_known():
    """With gold for everything the classes never change, and the learned prior is the one that gold gives."""
    graph = crowd(gold=1.0, n_volunteers=100, n_items=300, n_responses=5_000).graph
    learned = cg.IBCC(learn_prior=True, tol=1e-8).fit(graph)
    assert np.allclose(learned.prior.shared, cg.IBCC(confusion_prior="gold").fit(graph).prior.shared, rtol=1e-4)


def test_own_priors_beside_a_shared_one():
    """Where labels are no classes, the key None says what holds for everybody else."""
    table = {"volunteer": ["anna", "bert"], "item": ["x", "y"], "label": [1, 2]}
    graph = cg.CrowdGraph.from_responses(table, labels=[1, 2, 3], classes=["no", "yes"])
    prior = {"anna": [[3, 1, 1], [1, 3, 1]], None: [[2, 1, 1], [1, 1, 5]]}
    fit = cg.IBCC(confusion_prior=prior).fit(graph)
    assert np.array_equal(fit.prior.of("bert"), prior[None])
    assert np.array_equal(fit.prior.of("anna"), prior["anna"])
    pairs = cg.IBCC(confusion_prior={"anna": (9, 1), None: (2, 1)}, votes={1: "no", 2: "yes", 3: None}).fit(graph)
    assert np.array_equal(pairs.prior.of("anna"), [[9, 1, 1], [1, 9, 1]])
    assert np.array_equal(pairs.prior.of("bert"), [[2, 1, 1], [1, 2, 1]])
    with pytest.raises(cg.errors.ParameterError, match="under the key None"):
        cg.IBCC(confusion_prior={"anna": prior["anna"]}).fit(graph)


def test_models_are_equal_by_their_settings():
    assert cg.IBCC(confusion_prior=np.ones((2, 2))) == cg.IBCC(confusion_prior=[[1, 1], [1, 1]])
    assert cg.IBCC(confusion_prior={"anna": np.ones((2, 2))}) != cg.IBCC(confusion_prior={"anna": [[1, 1], [1, 2]]})
    with pytest.raises(TypeError):
        cg.IBCC(confusion_prior=np.ones((2, 2))).confusion_prior[0][0] = 5


def test_volunteers_who_stay_away_are_not_forgotten():
    """A prior handed from batch to batch keeps what was learned of those who were absent from one."""

    def batch(volunteers, first):
        n = 20 * len(volunteers)
        return cg.CrowdGraph.from_responses(
            {
                "volunteer": volunteers * 20,
                "item": [first + row // len(volunteers) for row in range(n)],
                "label": ["yes"] * n,
            },
            labels=["no", "yes"],
            gold={first + number: "yes" for number in range(20)},
        )

    monday = cg.IBCC(confusion_prior=(4, 1)).fit(batch(["anna", "bert"], 0))
    tuesday = cg.IBCC(confusion_prior=monday).fit(batch(["bert", "cleo"], 100))
    prior = tuesday.as_prior()
    assert np.array_equal(prior.of("anna"), [[4, 1], [1, 24]])
    assert np.allclose(prior.of("bert"), [[4, 1], [1, 44]])
    assert np.allclose(prior.of("cleo"), [[4, 1], [1, 24]])
    assert tuesday.predict_response("anna", 100)["yes"] == pytest.approx(24 / 25, abs=1e-6)


# Starts


def test_a_warm_start_never_loses_against_a_cold_one():
    """From a fit with the classes turned round, the warm one ends in a low mode; the cold one is returned."""
    graph = crowd(gold=0, seed=2).graph
    cold = cg.IBCC().fit(graph)
    turned = cg.ModelFit(
        model="turned",
        items=cold.items,
        classes=cold.classes,
        item_probs=cold.item_probs[:, ::-1],
        class_probs=cold.class_probs[::-1],
    )
    warm = cg.IBCC(compare_starts=False).fit(graph, start=turned)
    assert warm.diagnostics["start"] == "warm"
    assert warm.bound[-1] < cold.bound[-1]
    best = cg.IBCC().fit(graph, start=turned)
    assert best.diagnostics["start"] == "prior"
    assert best.bound[-1] == cold.bound[-1]
    assert set(best.diagnostics["bounds"]) == {"warm", "prior"}


def test_a_warm_start_is_quick():
    graph = crowd(gold=0, seed=8, n_volunteers=200, n_items=400, n_responses=3_000).graph
    before = cg.IBCC(tol=1e-8).fit(graph.first(2_990))
    warm = cg.IBCC(tol=1e-8, compare_starts=False).fit(graph, start=before)
    cold = cg.IBCC(tol=1e-8).fit(graph)
    assert warm.n_iter < cold.n_iter
    assert np.allclose(warm.item_probs, cold.item_probs, atol=1e-5)


def test_restarts_keep_the_highest_bound():
    graph = crowd(gold=0, seed=2, n_volunteers=20, n_items=60, n_responses=150).graph
    model = cg.IBCC(restarts=5, confusion_prior=(1.2, 1))
    fit = quietly(model, graph, seed=1)
    bounds = fit.diagnostics["bounds"]
    assert set(bounds) == {"prior", *(f"random {number}" for number in range(5))}
    assert fit.bound[-1] == pytest.approx(max(bounds.values()), rel=1e-9)
    assert max(bounds.values()) - min(bounds.values()) > 0.1
    again, other = (quietly(model, graph, seed=seed) for seed in (1, 2))
    assert again.diagnostics["bounds"] == bounds
    assert other.diagnostics["bounds"] != bounds


# What can be asked of a fit


def test_volunteers_are_ranked_with_intervals():
    graph = cg.simulate.galaxy_zoo_supernovae_auc_table(seed=0).graph
    no, yes = graph.classes
    fit = cg.IBCC(votes={-1: no, 1: yes, 3: yes}).fit(graph)
    frame = fit.volunteers_to_frame()
    assert frame["accuracy"].is_monotonic_decreasing
    assert (frame["low"] < frame["accuracy"]).all()
    assert (frame["accuracy"] < frame["high"]).all()
    best = frame.iloc[0]
    expected = fit.confusion.of(best["volunteer"]).latest().accuracy(fit.class_probs, correct={no: -1, yes: [1, 3]})
    assert best["accuracy"] == pytest.approx(float(expected))
    busy = graph.volunteers.n_responses >= 100
    wide, narrow = (frame.set_index("volunteer").loc[graph.volunteers.ids[mask]] for mask in (~busy, busy))
    assert (narrow["high"] - narrow["low"]).mean() < (wide["high"] - wide["low"]).mean() / 2


def test_predicted_responses_are_probabilities_of_the_model():
    graph = crowd(gold=0.5, seed=9, n_volunteers=8, n_items=30, n_responses=100).graph
    fit = cg.IBCC().fit(graph)
    anna, item = graph.volunteers.ids[0], graph.items.ids[3]
    predicted = fit.predict_response(anna, item)
    expected = fit.item_probs[3] @ fit.confusion.of(anna).latest().mean
    assert list(predicted) == list(graph.labels)
    assert np.allclose(list(predicted.values()), expected)
    frame = fit.predict_responses(graph, volunteers=[anna])
    seen = {response.item for response in graph.volunteers[anna].responses}
    assert set(frame["item"]) == set(graph.items.ids) - seen
    row = frame[frame["item"] == item] if item not in seen else frame.iloc[:1]
    both = fit.predict_response(anna, row["item"].iloc[0])
    assert np.allclose(row[[f"p({label})" for label in graph.labels]].iloc[0], list(both.values()))
    assert len(fit.predict_responses()) == 8 * 30 - 100
    assert fit.predict_response(anna, item, at="2026-02-01") == predicted
    with pytest.raises(cg.errors.UnknownIdError):
        fit.predict_response(anna, "no such item")


def test_predictions_come_true():
    """Held-out answers are as frequent as predicted, within sampling error."""
    graph = crowd(gold=1.0, seed=10, n_volunteers=30, n_items=400, n_responses=8_000).graph
    rng = np.random.default_rng(0)
    held = rng.random(len(graph.responses)) < 0.3
    seen = graph.replace(responses=graph.responses.table.take(np.flatnonzero(~held)))
    fit = cg.IBCC().fit(seen)
    table = graph.responses.table.take(np.flatnonzero(held))
    probs = np.einsum("rj,rj->r", fit.item_probs[table.item], fit.confusion.latest().mean[table.volunteer][:, :, 1])
    said = table.label == 1
    error = np.sqrt((probs * (1 - probs)).sum())
    assert abs(said.sum() - probs.sum()) < 4 * error


def test_influence_is_the_difference_of_two_fits():
    graph = crowd(gold=0.2, seed=11, n_volunteers=15, n_items=50, n_responses=300).graph
    fit = cg.IBCC(confusion_prior=(4, 1), tol=1e-10).fit(graph)
    anna = graph.volunteers.ids[2]
    influence = fit.influence(volunteer=anna)
    rest = graph.replace(responses=graph.responses.table.take(np.flatnonzero(graph.responses.volunteer != 2)))
    without = cg.IBCC(confusion_prior=(4, 1), tol=1e-10).fit(rest)
    assert influence.n_responses == graph.volunteers[anna].n_responses
    assert np.allclose(influence.item_change, fit.item_probs - without.item_probs, atol=1e-6)
    assert np.allclose(influence.without.confusion.of(anna).latest().mean, [[0.8, 0.2], [0.2, 0.8]])
    item = next(iter(graph.volunteers[anna].responses)).item
    one = fit.influence(volunteer=anna, item=item)
    assert one.n_responses == 1
    assert f"responses of volunteer {anna!r} about item {item!r}" in repr(one)
    frame = one.to_frame()
    largest = np.abs(one.item_change).max(axis=1)
    assert frame["item"].iloc[0] == graph.items.ids[largest.argmax()]
    gold_item = next(iter(graph.gold))
    about = fit.influence(item=gold_item)
    assert not about.without.source.graph.gold.known[graph.items.table.code(gold_item)]
    assert about.without.source.graph.items[gold_item].n_responses == 0


def test_influence_of_a_gold_answer_by_hand():
    """Taking one of two answers away gives the volunteer's row its prior count back."""
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "anna"], "item": ["x", "y"], "label": ["yes", "yes"]},
        labels=["no", "yes"],
        gold={"x": "yes", "y": "yes"},
    )
    change = cg.IBCC(confusion_prior=(3, 1)).fit(graph).influence(volunteer="anna", item="x").confusion_change
    assert np.allclose(change[0, 1, 1], 5 / 6 - 4 / 5)


def test_a_fit_survives_saving(tmp_path):
    graph = crowd(gold=0.2, seed=12).graph
    fit = cg.IBCC(confusion_prior=cg.IBCC().fit(graph), learn_prior=False).fit(graph)
    graph.annotate(fit).save(tmp_path / "graph")
    loaded = cg.load(tmp_path / "graph").fit()
    assert np.array_equal(loaded.item_probs, fit.item_probs)
    assert np.array_equal(loaded.as_prior().confusion, fit.as_prior().confusion)
    assert loaded.diagnostics["start"] == "prior"
    with pytest.raises(cg.errors.NotAnnotatedError, match="does not know the graph it comes from"):
        loaded.influence(volunteer=graph.volunteers.ids[0])


def test_fits_do_not_hold_the_graphs_before_them():
    graph = crowd(n_responses=200).graph
    for number in range(3):
        graph = graph.annotate(cg.MajorityVote().fit(graph), name=str(number))
    assert all(not graph.fit(str(number)).source.graph.annotations for number in range(3))


def test_many_classes_and_labels_can_be_fitted():
    """Their tables would be larger than two gigabytes in all, were they made for every thread."""
    rng = np.random.default_rng(0)
    n = 1_000
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": rng.integers(0, 30, n).tolist(),
            "item": list(range(n)),
            "label": rng.integers(0, 300, n).tolist(),
        },
        labels=range(300),
        classes=range(300),
    )
    fit = cg.IBCC(confusion_prior=(4, 1), max_iter=50, tol=1e-3).fit(graph)
    assert np.allclose(fit.item_probs.sum(axis=1), 1)


def test_unanswered_responses_are_left_out():
    table = {"volunteer": ["anna", "bert", "cleo"], "item": ["x", "x", "y"], "label": ["yes", None, "no"]}
    graph = cg.CrowdGraph.from_responses(table, missing="keep")
    fit = cg.IBCC(confusion_prior=(4, 1)).fit(graph)
    assert np.allclose(fit.confusion.of("bert").latest().concentration, [[4, 1], [1, 4]])


def test_progress_is_shown_when_asked(capsys, every_line):
    graph = crowd().graph
    # The first fit on a machine may say that it compiles.
    cg.IBCC().warm_up(graph)
    capsys.readouterr()
    cg.IBCC().fit(graph)
    assert capsys.readouterr().err == ""
    cg.IBCC().fit(graph, progress=True)
    assert "IBCC from prior" in capsys.readouterr().err


def test_a_prior_of_classes_may_name_them():
    graph = cg.simulate.crowd(n_volunteers=8, n_items=30, n_responses=150, classes=("no", "yes"), seed=0).graph
    by_name = cg.IBCC(class_prior={"yes": 9.0, "no": 1.0}).fit(graph)
    np.testing.assert_array_equal(by_name.item_probs, cg.IBCC(class_prior=(1.0, 9.0)).fit(graph).item_probs)
    assert cg.IBCC(confusion_prior=None) == cg.IBCC()


@pytest.mark.parametrize("model", [cg.IBCC(), cg.DawidSkene()])
def test_warming_up_compiles_what_a_fit_needs(monkeypatch, model):
    warmed, needed = [], []
    compile_sweep = sweep.compile_sweep

    def compiling(*types, **options):
        needed.append(types)
        compile_sweep(*types, **options)

    graph = cg.simulate.crowd(n_volunteers=8, n_items=30, n_responses=150, seed=0).graph
    monkeypatch.setattr("crowdgraph.models._tensors.compile_sweep", lambda *types: warmed.append(types))
    monkeypatch.setattr(sweep, "compile_sweep", compiling)
    model.warm_up(graph)
    model.fit(graph, seed=0)
    assert len(warmed) == 1
    assert set(needed) == set(warmed)
    cg.ClassifierIBCC(features=np.eye(30)).warm_up(graph)
    assert warmed[1] == warmed[0]
