"""The default prior of IBCC, learned from the crowd: what it equals, what it never does, and tiny crowds."""

import dataclasses
import warnings

import numpy as np
import pytest
from builders import crowd, graph_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import answered_graphs

import crowdgraph as cg
from crowdgraph.models._crowd_prior import learn_prior, weights_of
from crowdgraph.models._priors import crowd_prior
from crowdgraph.networks.pi_similarity import pi_similarity


def test_a_prior_says_how_much_its_rows_weigh():
    options = {"shared": [[3, 1], [1, 2]], "class_concentration": [1, 1], "classes": [0, 1], "labels": [0, 1]}
    own = cg.CrowdPrior(ids=["anna"], confusion=[[[3, 2], [2, 6]]], **options)
    assert repr(own) == "CrowdPrior(1 volunteers, median weight of a row 6.5)"
    nobody = cg.CrowdPrior(ids=[], confusion=np.ones((0, 2, 2)), **options)
    assert repr(nobody) == "CrowdPrior(0 volunteers, median weight of a row 3.5)"


def quietly(model, graph, **options):
    """Fit without warnings of tiny graphs that collapse or do not settle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.errors.CrowdGraphWarning)
        return model.fit(graph, **options)


def counts_by_loop(graph, item_probs):
    counts = np.zeros((len(graph.volunteers), len(graph.classes), len(graph.labels)))
    for volunteer, item, label in zip(graph.answers.volunteer, graph.answers.item, graph.answers.label, strict=True):
        for j in range(len(graph.classes)):
            counts[volunteer, j, label] += item_probs[item, j]
    return counts


def explicit_prior(graph, learned):
    return cg.CrowdPrior(
        ids=graph.volunteers.ids,
        confusion=learned.own,
        shared=learned.newcomers.shared,
        class_concentration=np.ones(len(graph.classes)),
        classes=graph.classes,
        labels=graph.labels,
    )


@pytest.mark.parametrize("options", [{}, {"gold": 0.0}, {"classes": (0, 1, 2), "seed": 4}])
def test_the_default_is_the_learned_prior_given_explicitly(options):
    graph = crowd(**{"gold": 0.2, **options}).graph
    # The first fit: the pair (4, 1), or gold's rows for classes with five gold items that were answered.
    answered = graph.gold.known & (graph.answers.n_by_item > 0)
    enough = graph.gold.probs[answered].sum(axis=0) >= 5
    start = np.where(np.eye(len(graph.classes), dtype=bool), 4.0, 1.0)
    if enough.any():
        start[enough] = cg.IBCC(confusion_prior="gold").fit(graph).prior.shared[enough]
    first = cg.IBCC(confusion_prior=start, tol=1e-10).fit(graph)
    learned = learn_prior(graph, first.item_probs, votes=None, class_concentration=np.ones(len(graph.classes)))
    given_prior = cg.IBCC(confusion_prior=explicit_prior(graph, learned), tol=1e-10).fit(graph, start=first)
    default = cg.IBCC(tol=1e-10).fit(graph)
    assert_allclose(default.item_probs, given_prior.item_probs, atol=1e-6)
    assert default.bound[-1] == pytest.approx(given_prior.bound[-1], rel=1e-8)
    assert (np.diff(default.bound) >= -1e-9 * np.abs(default.bound[1:])).all()
    assert_allclose(dataclasses.astuple(weights_of(default)), dataclasses.astuple(learned.weights), rtol=1e-6)
    # The mean of confusion is that of the learned rows and the expected counts; its concentration is never larger.
    posterior = learned.own + counts_by_loop(graph, default.item_probs)
    confusion = default.confusion.latest()
    active = graph.answers.n_by_volunteer > 0
    assert_allclose(confusion.mean[active], (posterior / posterior.sum(axis=2, keepdims=True))[active], atol=1e-6)
    assert (confusion.concentration.sum(axis=2) <= posterior.sum(axis=2) * (1 + 1e-6))[active].all()


def test_rows_of_gold_are_where_the_first_fit_starts_only_with_five_items_of_a_class():
    graph = crowd(0.9, 0.7, gold=0).graph
    truth = crowd(0.9, 0.7, gold=1.0).graph.gold
    codes = truth.codes
    no, yes = (np.flatnonzero((codes == code) & (graph.answers.n_by_item > 0))[:5] for code in (0, 1))

    def start(items):
        gold = {graph.items.ids[code]: graph.classes[codes[code]] for code in items.tolist()}
        return crowd_prior(graph.with_gold(gold), "crowd", None, None).shared

    assert_array_equal(crowd_prior(graph, "crowd", None, None).shared, [[4, 1], [1, 4]])
    assert_array_equal(start(np.concatenate([no[:4], yes[:4]])), [[4, 1], [1, 4]])
    one_class = start(no)
    assert_array_equal(one_class[1], [1, 4])
    assert (one_class[0] != [4, 1]).any()
    assert (start(np.concatenate([no, yes])) != [[4, 1], [1, 4]]).any(axis=1).all()


def test_volunteers_without_answers_are_at_the_prior():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": list("aabbcc"), "item": list("xyxyxy"), "label": ["n", "y", "n", "y", "y", "y"]},
        volunteers={"volunteer": [*"abc", "silent"]},
    )
    for model in (cg.IBCC(), cg.IBCC(learn_prior=True), cg.IBCC(confusion_prior=(3, 2)), cg.Calibrated(), cg.DynIBCC()):
        fit = quietly(model, graph)
        assert_allclose(
            fit.confusion.of("silent").latest().concentration, fit.prior.of("silent"), rtol=1e-9, err_msg=model.name
        )


@given(answered_graphs(), st.integers(0, 1000))
def test_explicit_priors_give_the_prior_and_expected_counts(graph, seed):
    prior = np.random.default_rng(seed).gamma(2, 1, (len(graph.classes), len(graph.labels))) + 0.1
    # The last update of the confusion comes before that of the class probabilities, so it lags by the tolerance.
    fit = quietly(cg.IBCC(confusion_prior=prior, tol=1e-12, max_iter=5_000), graph)
    if fit.converged:
        expected = prior + counts_by_loop(graph, fit.item_probs)
        assert_allclose(fit.confusion.latest().concentration, expected, atol=1e-8)
    assert weights_of(fit) is None


@given(answered_graphs(), st.integers(0, 10**6))
def test_tiny_crowds_with_votes_keep_all_promises(graph, seed):
    """Any number of classes and labels, votes for some or none of the classes, soft gold, silent volunteers."""
    rng = np.random.default_rng(seed)
    votes = {label: [None, *graph.classes][rng.integers(0, len(graph.classes) + 1)] for label in graph.labels}
    fit = quietly(cg.IBCC(votes=votes), graph)
    assert np.isfinite(fit.item_probs).all()
    assert_allclose(fit.item_probs.sum(axis=1), 1)
    assert (np.diff(fit.bound) >= -1e-9 * (1 + np.abs(fit.bound[1:]))).all()
    assert_array_equal(fit.item_probs[graph.gold.known], graph.gold.probs[graph.gold.known])
    assert (fit.confusion.latest().concentration > 0).all()
    silent = graph.answers.n_by_volunteer == 0
    assert_allclose(
        fit.confusion.latest().concentration[silent],
        np.broadcast_to(fit.prior.shared, (silent.sum(), *fit.prior.shared.shape)),
    )
    calibrated = fit.calibrated()
    assert np.isfinite(calibrated.item_probs).all()
    assert_array_equal(calibrated.item_probs[graph.gold.known], graph.gold.probs[graph.gold.known])
    assert (calibrated.confusion.latest().concentration > 0).all()


TINY = {
    "one volunteer": graph_of(["a"] * 3, list("xyz"), ["n", "y", "y"]),
    "one volunteer, one item": graph_of(["a"], ["x"], ["n"], labels=["n", "y"]),
    "two volunteers": graph_of(list("aabb"), list("xyxy"), ["n", "y", "n", "n"]),
    "one item": graph_of(list("abc"), ["x"] * 3, ["n", "y", "y"]),
    "all alike": graph_of([*"abcd"] * 3, [*"xxxxyyyyzzzz"], ["n"] * 4 + ["y"] * 8),
    "a class that nobody answers": graph_of(list("aabb"), list("xyxy"), ["n"] * 4, labels=["n", "y"]),
    "missing labels": graph_of(list("aabb"), list("xyxy"), ["n", None, "y", "y"], missing="keep"),
    "soft gold": graph_of(
        list("aabb"), list("xyxy"), ["n", "y", "n", "n"], gold={"x": {"n": 0.7, "y": 0.3}}, classes=["n", "y"]
    ),
    "gold of one class": graph_of(
        ["a"] * 6 + ["b"] * 6, [*range(6)] * 2, ["n", "y"] * 6, gold=dict.fromkeys(range(5), "n"), classes=["n", "y"]
    ),
}


@pytest.mark.parametrize("name", TINY)
def test_tiny_crowds(name):
    graph = TINY[name]
    fit = quietly(cg.IBCC(), graph)
    assert np.isfinite(fit.item_probs).all()
    assert (np.diff(fit.bound) >= -1e-9 * np.abs(fit.bound[1:])).all()
    low, high = fit.confusion.latest().accuracy_interval(0.9, class_probs=fit.class_probs)
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    weights = weights_of(fit)
    assert 1 <= weights.accuracy_weight <= 8
    assert 1 <= weights.row_weight <= 16.0001
    assert 0 < weights.accuracy < 1
    calibrated = fit.calibrated()
    assert np.isfinite(calibrated.item_probs).all()
    assert_array_equal(calibrated.item_probs[graph.gold.known], graph.gold.probs[graph.gold.known])


def test_what_everybody_says_is_believed():
    fit = cg.IBCC().fit(TINY["all alike"])
    assert fit.predict() == {"x": "n", "y": "y", "z": "y"}
    matrices = fit.confusion.latest().concentration
    assert_allclose(matrices, np.broadcast_to(matrices[:1], matrices.shape))


def test_labels_that_are_no_classes_need_votes():
    graph = graph_of(list("aabb"), list("xyxy"), [1, 2, 1, 3], labels=[1, 2, 3], classes=["no", "yes"])
    for model in (cg.IBCC(), cg.DynIBCC(), cg.GibbsIBCC(), cg.Calibrated()):
        with pytest.raises(cg.errors.ParameterError, match=r"votes=\{.*Or give confusion_prior= as a matrix"):
            quietly(model, graph)
    fit = quietly(cg.IBCC(votes={1: "no", 2: None, 3: "yes"}), graph)
    assert fit.prior.shared.shape == (2, 3)
    # A label that votes for none is a wrong one.
    rows = fit.prior.shared / fit.prior.shared.sum(axis=1, keepdims=True)
    assert rows[0, 0] == pytest.approx(weights_of(fit).accuracy)
    assert rows[1, 2] == pytest.approx(weights_of(fit).accuracy)


def test_the_same_call_gives_the_same_bits():
    graph = crowd(gold=0.2).graph
    for model in (cg.IBCC(), cg.Calibrated()):
        first, second = model.fit(graph), model.fit(graph)
        assert first.item_probs.tobytes() == second.item_probs.tobytes()
        assert first.confusion.latest().concentration.tobytes() == second.confusion.latest().concentration.tobytes()
        assert first.prior.shared.tobytes() == second.prior.shared.tobytes()


def test_names_and_order_do_not_matter():
    graph = crowd(gold=0.2, classes=(0, 1, 2)).graph
    table = {name: list(graph.to_arrow().to_pydict()[name]) for name in ("volunteer", "item", "label")}
    gold = {item: graph.gold[item] for item in graph.gold}
    order = np.random.default_rng(0).permutation(len(table["label"]))
    names = {0: "b", 1: "c", 2: "a"}
    renamed = cg.CrowdGraph.from_responses(
        {
            "volunteer": [f"{table['volunteer'][row][::-1]}" for row in order],
            "item": [f"{table['item'][row][::-1]}" for row in order],
            "label": [names[table["label"][row]] for row in order],
        },
        gold={item[::-1]: names[name] for item, name in gold.items()},
        classes=["a", "b", "c"],
        labels=["c", "a", "b"],
    )
    for model in (cg.IBCC(tol=1e-9), cg.Calibrated(model=cg.IBCC(tol=1e-9))):
        fit, other = model.fit(graph), model.fit(renamed)
        items = renamed.items.codes([item[::-1] for item in graph.items.ids.tolist()])
        classes = [renamed.classes.index(names[name]) for name in graph.classes]
        assert_allclose(other.item_probs[items][:, classes], fit.item_probs, atol=1e-6)
        volunteers = renamed.volunteers.codes([name[::-1] for name in graph.volunteers.ids.tolist()])
        labels = [renamed.labels.index(names[label]) for label in graph.labels]
        assert_allclose(
            other.confusion.latest().concentration[np.ix_(volunteers, classes, labels)],
            fit.confusion.latest().concentration,
            rtol=1e-4,
        )


def test_a_warm_start_ends_where_a_cold_one_does():
    graph = crowd(gold=0.2, seed=3).graph
    cold = cg.IBCC(tol=1e-9).fit(graph)
    for start in (cold, cold.calibrated(), cg.MajorityVote().fit(graph), cg.IBCC(confusion_prior=(4, 1)).fit(graph)):
        for compare in (False, True):
            warm = cg.IBCC(tol=1e-9, compare_starts=compare).fit(graph, start=start)
            assert_allclose(warm.item_probs, cold.item_probs, atol=1e-5)


def test_a_learned_shared_prior_is_as_before():
    graph = crowd(gold=0.2).graph
    word, pair = (cg.IBCC(learn_prior=True, confusion_prior=prior, tol=1e-9).fit(graph) for prior in ("crowd", (4, 1)))
    assert_array_equal(word.item_probs, pair.item_probs)
    assert_array_equal(word.prior.shared, pair.prior.shared)
    assert weights_of(word) is None
    assert_allclose(
        word.confusion.latest().concentration, word.prior.shared + counts_by_loop(graph, word.item_probs), atol=1e-5
    )


def test_a_posterior_becomes_a_prior():
    graph = crowd(gold=0.2).graph
    fit = cg.IBCC().fit(graph)
    for strength in (0.0, 0.5, 1.0):
        prior = fit.as_prior(strength)
        assert (prior.confusion > 0).all()
        assert np.isfinite(cg.IBCC(confusion_prior=prior).fit(graph).item_probs).all()


def test_the_network_compares_answers_around_one_prior():
    """A likeness of the volunteers' own prior matrices would be one that the model makes."""
    graph = crowd(0.9, 0.6, gold=0.2).graph
    fit = cg.IBCC().fit(graph)
    cautious = cg.Cautious().fit(graph)
    for one in (fit, fit.calibrated(), cautious, cautious.calibrated()):
        network = pi_similarity(graph, fit=one)
        expected = one.prior.shared + counts_by_loop(graph, one.item_probs)
        codes = graph.volunteers.codes(network.ids.tolist())
        assert_allclose(network.model.confusion.concentration, expected[codes])


def test_gibbs_and_dynibcc_start_from_what_the_crowd_is_like():
    graph = crowd(gold=0.2).graph
    static = cg.IBCC().fit(graph)
    expected = learn_prior(graph, static.item_probs, votes=None, class_concentration=np.ones(2)).newcomers.shared
    dynamic = quietly(cg.DynIBCC(noise_scale=0.0), graph)
    gibbs = quietly(cg.GibbsIBCC(stop_change=0.2), graph, seed=0)
    for fit in (dynamic, gibbs):
        assert_allclose(fit.prior.shared, expected, rtol=1e-9)
        assert not len(fit.prior.ids)


def test_a_model_around_another_knows_of_its_crowd():
    """Calibrated, its confusion lies around the volunteers' own matrices, as that of the inner model does."""
    graph = crowd(0.9, 0.6, gold=0.2).graph
    inner, around = cg.IBCC().fit(graph), cg.Cautious().fit(graph)
    assert weights_of(around) == weights_of(inner)
    calibrated = around.calibrated()
    learned = learn_prior(
        graph, calibrated.item_probs, votes=None, class_concentration=np.ones(2), weights=weights_of(inner)
    )
    posterior = learned.own + counts_by_loop(graph, calibrated.item_probs)
    active = graph.answers.n_by_volunteer > 0
    expected = posterior / posterior.sum(axis=2, keepdims=True)
    assert_allclose(calibrated.confusion.latest().mean[active], expected[active])
