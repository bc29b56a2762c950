"""Calibrated fits: evidence that leaves out an item's own answers, where rho comes from, and what they compose with."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from builders import crowd, graph_of
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.core.answers import expected_counts
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError
from crowdgraph.models._crowd_prior import weights_of
from crowdgraph.models.calibrated import calibrated_if_possible
from crowdgraph.testing import check_model


def quietly(model, graph, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.errors.CrowdGraphWarning)
        return model.fit(graph, **options)


@cache
def simulated(gold=0.3):
    return crowd(0.9, 0.65, n_volunteers=20, n_items=120, n_responses=800, difficulty=0.4, gold=gold, seed=2)


@cache
def small():
    """Six items, four volunteers, two classes, gold for one item and soft gold for another."""
    rng = np.random.default_rng(0)
    pairs = [(k, i) for k in range(4) for i in range(6) if rng.random() < 0.8]
    labels = rng.integers(0, 2, len(pairs)).tolist()
    return graph_of(
        [k for k, _ in pairs],
        [i for _, i in pairs],
        labels,
        labels=[0, 1],
        classes=[0, 1],
        gold={0: 1, 1: {0: 0.25, 1: 0.75}},
    )


@cache
def repeating():
    """A crowd in which volunteers answer items again, the same or not."""
    return crowd(0.9, 0.65, n_volunteers=12, n_items=40, n_responses=300, duplicates=0.3, gold=0.2, seed=5).graph


# The evidence


def counts_without(graph, probs, volunteer, item):
    """The expected counts of a volunteer, of shape (J, L), from all of their answers but those to an item."""
    counts = np.zeros((len(graph.classes), len(graph.labels)))
    for k, i, c in zip(graph.answers.volunteer, graph.answers.item, graph.answers.label, strict=True):
        if k == volunteer and i != item:
            counts[:, c] += probs[i]
    return counts


def calibrated_by_loops(fit, graph, rho, confusion_without):
    """The definition: each answer's log probability by confusion that never saw the item, added and discounted."""
    n_classes = len(graph.classes)
    shares = 2 / 3 * fit.class_probs + 1 / 3 / n_classes
    probs = np.zeros((len(graph.items), n_classes))
    for item in range(len(graph.items)):
        if graph.gold.known[item]:
            probs[item] = graph.gold.probs[item]
            continue
        logs, n = np.log(shares), 0
        for k, i, c in zip(graph.answers.volunteer, graph.answers.item, graph.answers.label, strict=True):
            if i == item:
                n += 1
                logs = logs + np.log(confusion_without(k, item)[:, c])
        logs = logs / (1 + rho * (max(n, 1) - 1))
        odds = np.exp(logs - logs.max())
        probs[item] = odds / odds.sum()
    return probs


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("build", [small, lambda: simulated().graph, repeating], ids=["tiny", "simulated", "repeating"])
def test_an_items_own_answers_do_not_judge_it_with_a_given_prior(build, rho):
    graph, prior = build(), np.array([[3.0, 1.0], [0.5, 2.0]])
    fit = quietly(cg.IBCC(confusion_prior=prior, tol=1e-14, max_iter=20_000, accelerate=False), graph)

    def without(volunteer, item):
        concentration = prior + counts_without(graph, fit.item_probs, volunteer, item)
        return concentration / concentration.sum(axis=1, keepdims=True)

    expected = calibrated_by_loops(fit, graph, rho, without)
    assert_allclose(fit.calibrated(rho=rho).item_probs, expected, atol=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("build", [small, lambda: simulated().graph, repeating], ids=["tiny", "simulated", "repeating"])
def test_an_items_own_answers_do_not_judge_it_with_the_crowds_prior(build, rho):
    """Neither in the counts nor in the accuracy around which the volunteer's own prior lies."""
    graph = build()
    fit = quietly(cg.IBCC(), graph)
    weights = weights_of(fit)

    def without(volunteer, item):
        counts = counts_without(graph, fit.item_probs, volunteer, item)
        each = (weights.row_weight + 1) / (weights.row_weight + counts.sum(axis=1))
        right = (each * counts.diagonal()).sum() + weights.accuracy_weight * weights.accuracy
        accuracy = right / ((each * counts.sum(axis=1)).sum() + weights.accuracy_weight)
        row = np.maximum([accuracy, 1 - accuracy], 1e-3)
        row /= row.sum()
        concentration = weights.row_weight * np.array([row, row[::-1]]) + counts
        return concentration / concentration.sum(axis=1, keepdims=True)

    expected = calibrated_by_loops(fit, graph, rho, without)
    assert_allclose(fit.calibrated(rho=rho).item_probs, expected, atol=1e-10)


def test_a_chunk_of_answers_more_or_less_changes_nothing(monkeypatch):
    graph = simulated().graph
    fits = [cg.IBCC().fit(graph), cg.IBCC(confusion_prior=(4, 1)).fit(graph), quietly(cg.DynIBCC(), graph)]
    before = [fit.calibrated() for fit in fits]
    monkeypatch.setattr("crowdgraph.models.calibrated.ANSWERS_PER_CHUNK", 7)
    for fit, expected in zip(fits, before, strict=True):
        assert_allclose(fit.calibrated().item_probs, expected.item_probs, rtol=1e-12)


# What a calibrated fit has


@pytest.mark.parametrize(
    "model",
    [
        cg.IBCC(),
        cg.IBCC(confusion_prior=(4, 1)),
        cg.IBCC(confusion_prior="gold"),
        cg.IBCC(learn_prior=True),
        cg.DawidSkene(),
        cg.DynIBCC(),
        cg.DynIBCC(noise_scale=0.0, inference="filtered"),
        cg.Cautious(),
        cg.Cautious(model=cg.DynIBCC()),
        cg.GibbsIBCC(chains=2, burn_in=20, max_draws=60),
    ],
    ids=lambda model: model.name,
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
def test_models_with_confusion_can_be_calibrated(model):
    graph = simulated().graph
    fit = quietly(model, graph, seed=0)
    calibrated = fit.calibrated()
    known = graph.gold.known
    assert_array_equal(calibrated.item_probs[known], graph.gold.probs[known])
    assert_allclose(calibrated.item_probs.sum(axis=1), 1)
    assert np.isfinite(calibrated.item_probs).all()
    assert (calibrated.confusion.latest().concentration > 0).all()
    assert calibrated.model == f"calibrated {fit.model}"
    # It is the model around the model.
    around = quietly(cg.Calibrated(model=model), graph, seed=0)
    assert_array_equal(around.item_probs, calibrated.item_probs)
    assert_array_equal(around.confusion.latest().concentration, calibrated.confusion.latest().concentration)
    assert calibrated.source.model == cg.Calibrated(model=model)
    # Hard labels hardly change.
    assert (calibrated.item_probs.argmax(axis=1) != fit.item_probs.argmax(axis=1)).mean() < 0.1
    # The class proportions are those of the new probabilities.
    answered = graph.answers.n_by_item > 0
    prior = np.ones(2) if fit.prior is None else fit.prior.class_concentration
    assert_allclose(calibrated.class_concentration, prior + calibrated.item_probs[answered].sum(axis=0))
    assert_allclose(calibrated.class_probs, calibrated.class_concentration / calibrated.class_concentration.sum())
    # And it can be asked for influence and changes.
    influence = calibrated.influence(volunteer=graph.volunteers.ids[0])
    assert influence.without.model == calibrated.model
    assert influence.without.dependence is not None
    with pytest.raises(ParameterError, match=r"calibrated already \(rho .*Calibrate the fit that it was made from"):
        calibrated.calibrated()


@pytest.mark.slow
def test_the_contract_of_all_models():
    check_model(cg.Calibrated())
    check_model(cg.Calibrated(rho=0.2, model=cg.IBCC(confusion_prior=(4, 1), tol=1e-8)))


def test_with_a_given_prior_the_confusion_has_the_mean_of_prior_and_counts():
    graph = simulated().graph
    calibrated = cg.IBCC(confusion_prior=(4, 1)).fit(graph).calibrated()
    expected = np.array([[4.0, 1], [1, 4]]) + expected_counts(graph, calibrated.item_probs)
    confusion = calibrated.confusion.latest()
    assert_allclose(confusion.mean, expected / expected.sum(axis=2, keepdims=True))
    assert (confusion.concentration.sum(axis=2) <= expected.sum(axis=2) * (1 + 1e-12)).all()


def test_with_all_classes_known_and_a_given_prior_nothing_changes():
    graph = simulated(1.0).graph
    fit = cg.IBCC(confusion_prior=(4, 1)).fit(graph)
    calibrated = fit.calibrated()
    assert_array_equal(calibrated.item_probs, fit.item_probs)
    assert_allclose(calibrated.confusion.latest().concentration, fit.confusion.latest().concentration, rtol=1e-9)


# Where the correlation comes from


def with_gold_items(n, *, of=None):
    """The simulated crowd with gold for the first answered items, n of them, perhaps of one class only."""
    truth, graph = simulated(1.0).graph.gold, simulated(0.0).graph
    answered = np.flatnonzero(graph.answers.n_by_item > 0)
    chosen = [code for code in answered.tolist() if of is None or truth.codes[code] == of][:n]
    return graph.with_gold({graph.items.ids[code]: graph.classes[truth.codes[code]] for code in chosen})


@pytest.mark.parametrize(
    ("graph", "source", "n_gold"),
    [
        (lambda: simulated(0.0).graph, "assumed", 0),
        (lambda: with_gold_items(9), "assumed", 0),
        (lambda: with_gold_items(10), "gold", 10),
        (lambda: with_gold_items(15, of=0), "gold", 15),
    ],
    ids=["none", "nine", "ten", "one class"],
)
def test_gold_decides_from_ten_items(graph, source, n_gold):
    fit = cg.IBCC().fit(graph())
    dependence = fit.calibrated().dependence
    assert (dependence.source, dependence.n_gold) == (source, n_gold)
    assert 0 <= dependence.rho <= 1
    if source == "assumed":
        assert dependence.rho == 0.5
    assert dependence == cg.Calibrated().fit(graph()).dependence
    assert fit.dependence is None


def test_gold_of_items_that_nobody_answered_does_not_count():
    table = {"volunteer": list("ab") * 9, "item": sorted([*range(9)] * 2), "label": [0, 1] * 9}
    graph = cg.CrowdGraph.from_responses(
        table, items={"item": list(range(20))}, gold={item: item % 2 for item in range(20)}, labels=[0, 1]
    )
    assert quietly(cg.IBCC(), graph).calibrated().dependence.source == "assumed"


def test_soft_gold_does_not_count():
    graph = with_gold_items(30)
    soft = {item: {name: 0.9 if name == graph.gold[item] else 0.1 for name in graph.classes} for item in graph.gold}
    assert cg.IBCC().fit(graph.with_gold(soft)).calibrated().dependence.source == "assumed"


def test_a_given_correlation_is_used():
    graph = simulated().graph
    fit = cg.IBCC().fit(graph)
    for rho in (0, 1, 0.25, np.float32(0.5), np.int64(1)):
        calibrated = fit.calibrated(rho=rho)
        assert calibrated.dependence == (float(rho), "given", 0)
        assert calibrated.source.model == cg.Calibrated(rho=float(rho))
        n = graph.answers.n_by_item
        assert_allclose(calibrated.effective_answers(), n / (1 + float(rho) * (np.maximum(n, 1) - 1)))
    assert_array_equal(fit.effective_answers(), graph.answers.n_by_item)


@pytest.mark.parametrize("rho", [-0.1, 1.1, float("nan"), float("inf"), "0.5", True, [0.5]])
def test_correlations_that_are_none(rho):
    fit = cg.IBCC().fit(simulated().graph)
    for call in (lambda: fit.calibrated(rho=rho), lambda: cg.Calibrated(rho=rho)):
        with pytest.raises(ParameterError, match=r"rho=.* must be a number from 0 .* to 1 .*Leave it out"):
            call()


def test_discounts_blur_and_keep_the_order_of_classes():
    fit = cg.IBCC().fit(simulated(0.0).graph)
    certainty = [fit.calibrated(rho=rho).item_probs.max(axis=1).mean() for rho in (0.0, 0.3, 1.0)]
    assert certainty == sorted(certainty, reverse=True)
    first, last = (fit.calibrated(rho=rho).item_probs.argmax(axis=1) for rho in (0.0, 1.0))
    assert_array_equal(first, last)


# What cannot be calibrated


@pytest.mark.parametrize("model", [3, cg.Calibrated(), "ibcc", None])
def test_what_a_model_can_be_around(model):
    with pytest.raises(ParameterError, match="model= takes a model with confusion matrices"):
        cg.Calibrated(model=model)


def test_models_without_confusion():
    graph = simulated().graph
    for call in (cg.MajorityVote().fit(graph).calibrated, lambda: cg.Calibrated(model=cg.MajorityVote()).fit(graph)):
        with pytest.raises(NotAnnotatedError, match=r"'majority_vote' has no confusion matrices.*Fit IBCC"):
            call()


def test_fits_without_their_graph(tmp_path):
    graph = simulated().graph
    fit = cg.IBCC().fit(graph)
    graph.annotate(fit).save(tmp_path / "graph.crowd")
    loaded = cg.load(tmp_path / "graph.crowd")
    with pytest.raises(NotAnnotatedError, match="does not know the graph"):
        loaded.fit().calibrated()
    calibrated = loaded.fit().calibrated(loaded)
    assert_array_equal(calibrated.item_probs, fit.calibrated().item_probs)
    assert_array_equal(calibrated.confusion.latest().concentration, fit.calibrated().confusion.latest().concentration)
    assert calibrated.source is None
    other = crowd(n_volunteers=20, n_items=121, n_responses=800).graph
    with pytest.raises(AlignmentError):
        fit.calibrated(other)
    for call in (fit.calibrated, fit.effective_answers):
        with pytest.raises(ParameterError, match="graph="):
            call("graph")


# Volunteers over time


def test_following_keeps_the_classes_and_their_dependence():
    graph = simulated().graph
    for start in (cg.IBCC().fit(graph).calibrated(), cg.IBCC().fit(graph), cg.MajorityVote().fit(graph)):
        for scale in (0.0, 1.0, "auto"):
            fit = quietly(cg.DynIBCC(noise_scale=scale, update_classes=False), graph, start=start)
            # A vote knows no gold, which stays.
            expected = np.where(graph.gold.known[:, None], graph.gold.probs, start.item_probs)
            assert fit.item_probs.tobytes() == expected.tobytes()
            assert fit.dependence == start.dependence
            assert fit.converged
    assert quietly(cg.DynIBCC(), graph, start=cg.IBCC().fit(graph).calibrated()).dependence is None


def test_without_noise_the_last_step_is_the_prior_and_the_counts():
    graph = simulated(1.0).graph
    fit = cg.DynIBCC(noise_scale=0.0, update_classes=False, confusion_prior=(3, 2)).fit(graph)
    expected = np.array([[3.0, 2], [2, 3]]) + expected_counts(graph, graph.gold.probs)
    assert_allclose(fit.confusion.latest().concentration, expected, rtol=1e-6)


def test_a_fit_that_follows_classes_is_fitted_again_with_new_ones():
    """As communities over time do it: the classes of an early snapshot are not those of a later one."""
    graph = simulated().graph
    early = quietly(cg.DynIBCC(noise_scale=1.0, update_classes=False), graph.first(400))
    later = early.source.model._refit(graph, start=early)
    expected = quietly(cg.DynIBCC(noise_scale=1.0, update_classes=False), graph)
    assert_allclose(later.item_probs, expected.item_probs, atol=1e-3)


def test_the_influence_on_a_fit_that_follows_classes_is_not_zero():
    """Without an item's answers and gold its class is not known, though the fit with them kept it."""
    graph = simulated().graph
    fit = quietly(cg.DynIBCC(noise_scale=1.0, update_classes=False), graph, start=cg.IBCC().fit(graph).calibrated())
    item = graph.items.ids[np.flatnonzero(graph.gold.known & (graph.answers.n_by_item > 0))[0]]
    without = fit.influence(item=item).without
    assert without.item_probs[graph.items.table.code(item)].max() < 0.99
    assert without.dependence.source == fit.dependence.source
    assert np.abs(fit.influence(volunteer=graph.volunteers.ids[0]).item_change).max() > 1e-3


def test_confusion_over_time_is_widened_by_what_the_classes_leave_open():
    """Without gold the correlation is assumed: the intervals of those who are followed reach what independence says."""
    crowd = cg.simulate.crowd(n_volunteers=40, n_items=300, n_responses=4_000, gold=0.0, seed=4)
    start = cg.IBCC().fit(crowd.graph).calibrated()
    follow = cg.DynIBCC(noise_scale=0.0, update_classes=False)
    plain = follow.fit(crowd.graph, start=replace(start, diagnostics={}))
    widened = follow.fit(crowd.graph, start=start)
    np.testing.assert_allclose(widened.confusion.mean, plain.confusion.mean, rtol=1e-10)
    totals, narrower = (fit.confusion.concentration.sum(axis=2) for fit in (widened, plain))
    assert (totals <= narrower + 1e-9).all()
    volunteers = widened.volunteers_to_frame().set_index("volunteer").loc[crowd.graph.volunteers.ids.tolist()]
    first = np.unique(crowd.graph.responses.volunteer, return_index=True)[1]
    truth = crowd.truth.confusion[first][:, [0, 1], [0, 1]] @ widened.class_probs
    assert ((volunteers["low"] <= truth) & (truth <= volunteers["high"])).mean() > 0.8


def test_gold_that_says_nothing_about_dependence_is_not_said_to():
    """An item with one answer has nothing to discount."""
    rng = np.random.default_rng(0)
    table = {"volunteer": np.arange(60) % 6, "item": np.arange(60), "label": rng.integers(0, 2, 60)}
    graph = cg.CrowdGraph.from_responses(table, gold={item: int(rng.integers(0, 2)) for item in range(30)})
    assert cg.IBCC().fit(graph).calibrated().dependence == cg.Dependence(0.5, "assumed", 0)


def test_classes_that_gold_never_has_are_not_lifted():
    """A label such as "can't tell" becomes a class if nobody says otherwise; gold shows that it is none."""
    crowd = cg.simulate.crowd(n_volunteers=30, n_items=200, n_responses=2_000, gold=0.3, seed=1)
    table = crowd.graph.to_arrow().to_pydict()
    table["label"] = ["can't tell" if row % 12 == 0 else label for row, label in enumerate(table["label"])]
    gold = {item: crowd.graph.gold[item] for item in crowd.graph.gold}
    graph = cg.CrowdGraph.from_responses(table, gold=gold, classes=["can't tell", "no", "yes"])
    plain = cg.IBCC().fit(graph)
    said = set(plain.calibrated().predict().values())
    assert said <= set(plain.predict().values()) | {"no", "yes"}


def test_the_better_of_two_starts_is_calibrated():
    graph = simulated().graph
    model = cg.Calibrated(model=cg.IBCC(), rho=0.3)
    start = model.fit(graph.first(400))
    better, n_sweeps = model._fit_better(graph, start=start)
    plain, n_plain = cg.IBCC()._fit_better(graph, start=start)
    assert n_sweeps == n_plain
    assert better.dependence.rho == 0.3
    assert_array_equal(better.item_probs, plain.calibrated(graph, rho=0.3).item_probs)


def test_what_cannot_be_calibrated_stays():
    graph = simulated().graph
    fit, votes = cg.IBCC().fit(graph), cg.MajorityVote().fit(graph)
    assert calibrated_if_possible(fit, graph).dependence is not None
    assert calibrated_if_possible(votes, graph) is votes
    assert calibrated_if_possible(fit, small()) is fit
