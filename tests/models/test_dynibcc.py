"""DynIBCC: against static IBCC, against the model written out, and what time does to it."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pytest
from builders import crowd
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles.dglm import Sequence, joint_weighted
from oracles.dynamic_bound import Volunteer, printed_bound
from scipy.special import digamma, gammaln, softmax
from strategies import answered_graphs

import crowdgraph as cg
from crowdgraph.errors import ConvergenceWarning, ForgettingWarning, UnknownIdError

pytestmark = pytest.mark.filterwarnings("ignore::crowdgraph.errors.CollapsedFitWarning")


def timed(graph):
    """The same graph with times, one for each response."""
    table = graph.to_arrow().to_pydict()
    table["time"] = list(range(len(table["label"])))
    gold = {item: graph.gold[item] for item in graph.gold}
    nodes = {"volunteers": {"volunteer": graph.volunteers.ids}, "items": {"item": graph.items.ids}}
    return cg.CrowdGraph.from_responses(table, gold=gold, classes=graph.classes, labels=graph.labels, **nodes)


def twelve(**options):
    """A graph of twelve volunteers with fifty answers each."""
    return crowd(**{"n_volunteers": 12, "n_items": 80, "n_responses": [50] * 12, "gold": 0.4, **options}).graph


@pytest.fixture(scope="module")
def graph():
    return twelve()


@pytest.fixture(scope="module")
def fit(graph):
    return cg.DynIBCC(confusion_prior=(4, 1)).fit(graph)


@pytest.fixture(scope="module")
def all_gold():
    return twelve(gold=1.0)


@pytest.fixture(scope="module")
def filtered(all_gold):
    """The confusion of answers to gold, each after it and no later one."""
    return cg.DynIBCC(confusion_prior=(4, 1), inference="filtered").fit(all_gold).confusion


def random_counts(shape, rng):
    return rng.uniform(0.5, 6, shape)


@pytest.mark.slow
@given(answered_graphs(), st.integers(0, 100))
def test_without_noise_every_step_is_static_ibcc(graph, seed):
    """Hard and soft gold, and items whose class is not known."""
    assume(len(graph.labels) > 1)
    prior = random_counts((len(graph.classes), len(graph.labels)), np.random.default_rng(seed))
    static = cg.IBCC(confusion_prior=prior, tol=1e-13, accelerate=False, max_iter=5_000).fit(graph)
    still = cg.DynIBCC(confusion_prior=prior, noise_scale=0, tol=1e-13).fit(timed(graph), start=static)
    assert_allclose(still.item_probs, static.item_probs, atol=1e-10)
    posterior = static.confusion.latest().concentration
    steps = np.repeat(np.arange(len(graph.volunteers)), np.diff(still.confusion.starts))
    assert_allclose(still.confusion.concentration, posterior[steps], rtol=1e-9)


def test_without_noise_and_all_gold_steps_are_counts(all_gold):
    fit = cg.DynIBCC(confusion_prior=(4, 1), noise_scale=0).fit(all_gold)
    static = cg.IBCC(confusion_prior=(4, 1)).fit(all_gold).confusion.latest().concentration
    assert_allclose(fit.confusion.concentration, np.repeat(static, 50, axis=0), rtol=1e-10)


def written_out(graph, prior, class_prior, *, noise_scale, stage, n_passes, drift):
    """The model in plain Python, with the joint Gaussian of each volunteer, class and label.

    Returns the class probabilities after these passes, and the confusion that belongs to them: that of one more pass.
    """
    n_classes, n_labels = prior.shape
    known = graph.gold.known
    probs = np.where(known[:, None], np.nan_to_num(graph.gold.probs), 1 / n_classes)
    order = np.argsort(graph.responses.volunteer, kind="stable")
    volunteer, item, label = (getattr(graph.responses, name)[order] for name in ("volunteer", "item", "label"))
    time = graph.responses.time[order].astype(float)
    for one_pass in range(n_passes + 1):
        confusion = np.empty((len(order), n_classes, n_labels))
        for k in np.unique(volunteer):
            own = np.flatnonzero(volunteer == k)
            waited = np.diff(time[own], prepend=time[own[0]])
            hits, misses = np.empty((2, len(own), n_classes, n_labels))
            for target in range(n_labels):
                sequence = Sequence(
                    truth=probs[item[own]],
                    hit=[None if code < 0 else bool(code == target) for code in label[own]],
                    weight=np.ones(len(own)),
                    drift=drift * waited,
                    hits=prior[:, target],
                    misses=prior.sum(axis=1) - prior[:, target],
                    noise_scale=noise_scale,
                )
                means, covariances = joint_weighted(sequence)[stage]
                spread = np.diagonal(covariances, axis1=1, axis2=2)
                hits[:, :, target] = (1 + np.exp(means)) / spread
                misses[:, :, target] = (1 + np.exp(-means)) / spread
            total = hits + misses
            mean = (hits / total) / (hits / total).sum(axis=2, keepdims=True)
            variance = hits * misses / total**2
            weight = variance.sum(axis=2, keepdims=True) / (variance / total).sum(axis=2, keepdims=True)
            confusion[own] = weight * mean
        if one_pass == n_passes:
            return probs, confusion
        given_label = np.take_along_axis(confusion, np.maximum(label, 0)[:, None, None], axis=2)[..., 0]
        logs = np.where(label[:, None] >= 0, digamma(given_label) - digamma(confusion.sum(axis=2)), 0)
        nu = class_prior + probs.sum(axis=0)
        weights = np.tile(digamma(nu) - digamma(nu.sum()), (len(probs), 1))
        np.add.at(weights, item, logs)
        probs = np.where(known[:, None], probs, softmax(weights, axis=1))
    raise AssertionError


@pytest.mark.parametrize("stage", ["filtered", "smoothed"])
@pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 2), (2, 3), (3, 3), (3, 2)])
def test_the_model_written_out(stage, n_classes, n_labels):
    rng = np.random.default_rng(n_classes * 10 + n_labels)
    n = 40
    table = {
        "volunteer": rng.integers(0, 4, n).tolist(),
        "item": rng.integers(0, 9, n).tolist(),
        "label": [None if rng.random() < 0.1 else int(code) for code in rng.integers(0, n_labels, n)],
        "time": np.sort(rng.integers(0, 40, n)).tolist(),
    }
    classes = [f"c{code}" for code in range(n_classes)]
    soft = dict(zip(classes, rng.dirichlet(np.ones(n_classes)).tolist(), strict=True))
    graph = cg.CrowdGraph.from_responses(
        table, gold={0: "c0", 1: soft}, classes=classes, labels=range(n_labels), missing="keep"
    )
    prior, class_prior = random_counts((n_classes, n_labels), rng), random_counts(n_classes, rng)
    model = cg.DynIBCC(
        confusion_prior=prior,
        class_prior=class_prior,
        noise_scale=0.8,
        drift_per_time=0.02,
        inference=stage,
        max_iter=3,
    )
    guess = cg.ModelFit(
        model="flat",
        items=graph.items.ids,
        classes=classes,
        item_probs=np.full((len(graph.items), n_classes), 1 / n_classes),
        class_probs=np.full(n_classes, 1 / n_classes),
    )
    with pytest.warns(ConvergenceWarning):
        fit = model.fit(graph, start=guess)
    probs, confusion = written_out(graph, prior, class_prior, noise_scale=0.8, stage=stage, n_passes=3, drift=0.02)
    assert_allclose(fit.item_probs, probs, atol=1e-10)
    assert_allclose(fit.confusion.concentration, confusion, rtol=1e-9)


def test_filtered_is_what_a_fit_of_the_past_says_where_all_is_gold():
    graph = twelve(gold=1.0, drift="step")
    track = cg.DynIBCC(confusion_prior=(4, 1), inference="filtered").fit(graph).confusion
    for n in (1, 37, 250):
        past = graph.first(n)
        moment = past.responses.time[-1]
        if graph.responses.time[n] == moment:
            continue
        known = cg.DynIBCC(confusion_prior=(4, 1)).fit(past).confusion.latest()
        assert_allclose(track.at(moment).concentration, known.concentration, rtol=1e-10)


def test_filtered_and_smoothed_agree_at_the_end_where_all_is_gold(all_gold, filtered):
    smoothed = cg.DynIBCC(confusion_prior=(4, 1), inference="smoothed").fit(all_gold).confusion
    assert_allclose(filtered.latest().concentration, smoothed.latest().concentration, rtol=1e-12)


def test_there_is_a_confusion_matrix_for_every_response(graph, fit):
    track = fit.confusion
    assert track.inference == "smoothed"
    assert len(track.times) == len(graph.responses)
    annotated = graph.annotate(fit)
    history = annotated.volunteers["volunteer-00"].confusion
    rows = graph.responses.volunteer == 0
    assert_array_equal(history.times, graph.responses.time[rows])
    early = "2025-12-31"
    assert_allclose(history.at(early).concentration, fit.prior.shared)
    assert_allclose(history.at("2030-01-01").concentration, history.latest().concentration)
    before = fit.predict_response("volunteer-00", "item-00", at=early)
    assert_allclose(list(before.values()), fit.item_probs[0] @ [[0.8, 0.2], [0.2, 0.8]])
    with pytest.raises(UnknownIdError, match="nobody"):
        track.of("nobody")
    assert len(fit.confusion.to_frame()) == len(graph.responses) * 4


def test_a_saved_fit_is_the_same_when_loaded(graph, tmp_path):
    fit = cg.DynIBCC(noise_scale="auto").fit(graph)
    graph.annotate(fit).save(tmp_path / "crowd.zip")
    loaded = cg.load(tmp_path / "crowd.zip").fit("dynibcc")
    assert_array_equal(loaded.confusion.concentration, fit.confusion.concentration)
    assert loaded.diagnostics["noise_scale"] == fit.diagnostics["noise_scale"]


def test_it_follows_volunteers_who_change():
    simulated = crowd(n_volunteers=30, n_items=400, n_responses=[200] * 30, drift="step", gold=0, seed=1)
    graph = simulated.graph
    order = np.argsort(graph.responses.volunteer, kind="stable")
    truth = simulated.truth.confusion[order][:, [0, 1], [0, 1]]
    fit = cg.DynIBCC(noise_scale="auto").fit(graph)
    static = cg.IBCC().fit(graph)
    constant = static.confusion.latest().mean[graph.responses.volunteer[order]][:, [0, 1], [0, 1]]
    moving = fit.confusion.mean[:, [0, 1], [0, 1]]
    assert ((moving - truth) ** 2).mean() < 0.6 * ((constant - truth) ** 2).mean()
    assert fit.diagnostics["noise_scale"] > 0.3


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_that_stays_is_treated_as_one(seed):
    graph = crowd(n_volunteers=30, n_items=300, n_responses=[100] * 30, gold=0.2, seed=seed).graph
    fit = cg.DynIBCC(noise_scale="auto").fit(graph)
    assert fit.diagnostics["noise_scale"] == 0
    assert_allclose(fit.item_probs, cg.IBCC(confusion_prior=fit.prior).fit(graph).item_probs, atol=1e-4)


def test_a_prior_that_does_not_fit_is_no_change():
    """Pessimists and optimists, whom the usual prior does not expect."""
    graph = cg.simulate.galaxy_zoo_supernovae_auc_table(seed=0).graph
    no, yes = graph.classes
    fit = cg.DynIBCC(noise_scale="auto", votes={-1: no, 1: yes, 3: yes}).fit(graph)
    assert fit.diagnostics["noise_scale"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_of_two_kinds_is_no_change(seed):
    """No single prior fits both kinds, and noise helps to leave it; but it does so in any order of the answers."""
    graph = crowd(0.9, 0.1, n_volunteers=60, n_items=300, n_responses=6_000, gold=1, seed=seed + 5).graph
    assert cg.DynIBCC(noise_scale="auto").fit(graph).diagnostics["noise_scale"] == 0


def test_a_prior_of_ones_own_does_not_keep_others_from_being_learned():
    graph = crowd(n_volunteers=60, n_items=300, n_responses=[200] * 60, gold=0.5).graph
    prior = {None: (20, 1), "volunteer-00": (4, 1)}
    assert cg.DynIBCC(noise_scale="auto", confusion_prior=prior).fit(graph).diagnostics["noise_scale"] == 0


def test_a_warm_start_is_quick_and_ends_in_the_same_place():
    graph = twelve(gold=0.1, n_responses=[60] * 12)
    model = cg.DynIBCC(confusion_prior=(4, 1), tol=1e-9)
    cold = model.fit(graph)
    warm = model.fit(graph, start=cold)
    assert warm.n_iter <= 2 < cold.n_iter
    assert_allclose(warm.item_probs, cold.item_probs, atol=1e-8)
    later = model.fit(graph, start=model.fit(graph.first(500)))
    assert_allclose(later.item_probs, cold.item_probs, atol=1e-6)


def test_scores(all_gold, filtered):
    """The score and the log predictive probability, written out for gold alone."""
    graph, fit = all_gold, cg.DynIBCC(confusion_prior=(4, 1)).fit(all_gold)
    before = np.concatenate([filtered.mean[:1], filtered.mean[:-1]])
    before[filtered.starts[:-1]] = [[0.8, 0.2], [0.2, 0.8]]
    order = np.argsort(graph.responses.volunteer, kind="stable")
    truth = graph.gold.codes[graph.responses.item[order]]
    logs = np.log(before[np.arange(len(order)), truth, graph.responses.label[order]])
    assert_allclose(fit.diagnostics["log_predictive"], logs.sum(), rtol=1e-10)
    n = np.bincount(graph.gold.codes, minlength=2)
    evidence = gammaln(2) - gammaln(2 + n.sum()) + gammaln(1 + n).sum()
    assert_allclose(fit.diagnostics["score"], logs.sum() + evidence, rtol=1e-10)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("published", [True, False])
def test_the_printed_bound_is_that_of_the_fit(backend, published):
    graph = twelve(n_volunteers=3, n_items=12, n_responses=[9, 8, 7])
    model = cg.DynIBCC(confusion_prior=(4, 1), class_prior=2, published=published, backend=backend)
    fit = replace(model, published_bound=0.01).fit(graph)
    volunteers = []
    for k in range(3):
        rows = np.flatnonzero(graph.responses.volunteer == k)
        item, label = graph.responses.item[rows], graph.responses.label[rows]
        volunteers.append(Volunteer(fit.prior.shared, item, label, np.ones(len(rows)), np.zeros(len(rows))))
    class_prior = fit.prior.class_concentration
    expected = printed_bound(fit.item_probs, class_prior, volunteers, noise_scale=1, floor=0.01, published=published)
    assert fit.diagnostics["published_bound"] == pytest.approx(expected, rel=1e-9)
    assert fit.diagnostics["published_bound_floor"] == 0.01
    assert fit.bound.size == 0


def test_the_printed_bound_changes_nothing_else(graph, fit, tmp_path):
    asked = cg.DynIBCC(confusion_prior=(4, 1), published_bound=1e-3).fit(graph)
    names = {"published_bound", "published_bound_floor"}
    assert {name: asked.diagnostics[name] for name in set(asked.diagnostics) - names} == fit.diagnostics
    assert_array_equal(asked.item_probs, fit.item_probs)
    assert_array_equal(asked.confusion.concentration, fit.confusion.concentration)
    graph.annotate(asked).save(tmp_path / "crowd.zip")
    loaded = cg.load(tmp_path / "crowd.zip").fit("dynibcc")
    assert {name: loaded.diagnostics[name] for name in names} == {name: asked.diagnostics[name] for name in names}


# Time


def single(times, labels=None, *, gold=0, **options):
    """One volunteer's answers to one item after another, which all have the same gold."""
    items = list(range(len(times)))
    labels = labels or [item % 2 for item in items]
    responses = {"volunteer": ["anna"] * len(times), "item": items, "label": labels, "time": times}
    gold = None if gold is None else dict.fromkeys(items, gold)
    return cg.CrowdGraph.from_responses(responses, gold=gold, classes=[0, 1], labels=[0, 1], **options)


def weight_of(fit):
    """How much is known of the row of class 0 after each response."""
    return fit.confusion.concentration[:, 0].sum(axis=1)


def test_long_breaks_forget_more():
    model = cg.DynIBCC(confusion_prior=(4, 1), noise_scale=0, drift_per_time=0.01, inference="filtered")
    steady, broken = (weight_of(model.fit(single(times))) for times in ([0, 1, 2, 3], [0, 1, 2, 300]))
    assert_allclose(steady[:3], broken[:3])
    assert broken[3] < steady[3] < 5 + 4
    constant = weight_of(
        cg.DynIBCC(confusion_prior=(4, 1), noise_scale=0, inference="filtered").fit(single([0, 1, 2, 300]))
    )
    assert_allclose(constant, [6, 7, 8, 9])


def test_drift_is_the_same_in_any_unit_of_time():
    days = [dt.datetime(2026, 3, 1) + dt.timedelta(days=day) for day in (0, 1, 4, 9)]
    settings = {"noise_scale": 0.5, "inference": "filtered"}
    numbers = cg.DynIBCC(drift_per_time=0.24, **settings).fit(single([0, 1, 4, 9])).confusion.concentration
    for drift, unit in ((0.24, "day"), (0.01, "hour"), (1.68, "week"), (0.24 / 86_400, "second")):
        fit = cg.DynIBCC(drift_per_time=drift, time_unit=unit, **settings).fit(single(days))
        assert_allclose(fit.confusion.concentration, numbers, rtol=1e-9)


def test_ties_keep_the_order_of_the_rows():
    tied = cg.DynIBCC(inference="filtered").fit(single([5, 5, 5, 5], [0, 0, 1, 1])).confusion.concentration
    spread = cg.DynIBCC(inference="filtered").fit(single([1, 2, 3, 4], [0, 0, 1, 1])).confusion.concentration
    assert_array_equal(tied, spread)
    other = cg.DynIBCC(inference="filtered").fit(single([5, 5, 5, 5], [1, 1, 0, 0])).confusion.concentration
    assert not np.allclose(tied, other)


def test_items_shown_and_not_answered_unsettle():
    """The step has no answer of its own, and the next one gains noise p (1 - p)."""
    shown = single([0, 1, 2], [0, None, 0], missing="keep")
    fit = cg.DynIBCC(confusion_prior=(4, 1), inference="filtered").fit(shown)
    history = fit.confusion.of("anna")
    assert len(history) == 3
    assert_allclose(history.concentration[1, 0], [5, 1])
    p, variance = 5 / 6, 1 / 5 + 1
    shrinkage = variance / (variance + p * (1 - p))
    assert_allclose(history.concentration[2, 0], [5 * shrinkage + 1, shrinkage])
    shown.annotate(fit)


def test_meeting_an_item_again_soon_counts_less():
    times = list(range(6))
    responses = {"volunteer": ["anna"] * 6, "item": ["x", "y", "x", "z", "x", "x"], "label": [0] * 6, "time": times}
    graph = cg.CrowdGraph.from_responses(responses, gold={"x": 0, "y": 0, "z": 0}, classes=[0, 1], labels=[0, 1])
    settings = {"noise_scale": 0, "inference": "filtered"}
    fit = cg.DynIBCC(confusion_prior=(4, 1), repeat_span=4, **settings).fit(graph)
    again = 1 - np.exp(-np.array([2, 2, 1]) / 4)
    expected = 4 + np.cumsum([1, 1, again[0], 1, again[1], again[2]])
    assert_allclose(fit.confusion.concentration[:, 0, 0], expected)
    assert_allclose(
        cg.DynIBCC(confusion_prior=(4, 1), **settings).fit(graph).confusion.concentration[:, 0, 0], 4 + np.arange(1, 7)
    )


def test_items_that_were_only_shown_are_not_remembered_answers():
    responses = {"volunteer": ["anna"] * 2, "item": ["x", "x"], "label": [None, 0], "time": [0, 1]}
    graph = cg.CrowdGraph.from_responses(responses, gold={"x": 0}, classes=[0, 1], labels=[0, 1], missing="keep")
    fit = cg.DynIBCC(confusion_prior=(4, 1), noise_scale=0, repeat_span=4, inference="filtered").fit(graph)
    assert_allclose(fit.confusion.concentration[:, 0], [[4, 1], [5, 1]])


def test_one_response_and_one_volunteer():
    fit = cg.DynIBCC(noise_scale="auto").fit(single([3], [1], gold=None))
    assert len(fit.confusion.of("anna")) == 1
    assert np.isfinite(fit.item_probs).all()


def test_times_as_far_apart_as_can_be():
    extreme = single([-9 * 10**18, 0, 9 * 10**18])
    with pytest.warns(ForgettingWarning):
        fit = cg.DynIBCC(drift_per_time=1.0).fit(extreme)
    assert np.isfinite(fit.confusion.concentration).all()


# Acceleration, and updates.


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {"drift": "step"}),
        ({"inference": "filtered"}, {"drift": "ramp", "gold": 0}),
        ({"published": True}, {"drift": "step", "gold": 0.1}),
        ({"repeat_span": 20}, {"classes": ("a", "b", "c"), "duplicates": 0.3}),
    ],
)
def test_acceleration_ends_where_plain_passes_end(settings, options):
    graph = twelve(**{"n_responses": [60] * 12, **options})
    model = cg.DynIBCC(confusion_prior=(4, 1), tol=1e-9, max_iter=2_000, **settings)
    fast, plain = model.fit(graph), replace(model, accelerate=False).fit(graph)
    assert fast.converged
    assert plain.converged
    assert fast.n_iter < plain.n_iter
    assert_allclose(fast.item_probs, plain.item_probs, atol=1e-6)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("published", [True, False])
def test_a_fit_of_later_responses_goes_on_from_an_earlier_one(backend, published):
    """Where all is gold, both together are the fit of all responses, with breaks that count."""
    graph = twelve(n_volunteers=6, n_responses=[25] * 6, gold=1.0, drift="step")
    gold = {item: graph.gold[item] for item in graph.gold}
    later = cg.CrowdGraph.from_responses(
        {name: column[100:] for name, column in graph.to_arrow().to_pydict().items()},
        gold=gold,
        classes=graph.classes,
        labels=graph.labels,
        items={"item": graph.items.ids},
    )
    settings = {"inference": "filtered", "drift_per_time": 0.01, "time_unit": "day"}
    model = cg.DynIBCC(confusion_prior=(4, 1), backend=backend, published=published, **settings)
    whole, first = model.fit(graph), model.fit(graph.first(100))
    second = replace(model, confusion_prior=first.as_prior()).fit(later)
    for volunteer in later.volunteers.ids.tolist():
        history = second.confusion.of(volunteer).concentration
        assert_allclose(history, whole.confusion.of(volunteer).concentration[-len(history) :], rtol=1e-12)
    state = second.as_prior().forward
    rows = state.table.codes(whole.forward.ids.tolist())
    for name in ("mean", "covariance", "noise"):
        assert_allclose(getattr(state, name)[rows], getattr(whole.forward, name), rtol=1e-11, atol=1e-14)
    assert_array_equal(state.times[rows], whole.forward.times)


def test_the_forward_state_is_saved(graph, fit, tmp_path):
    graph.annotate(fit).save(tmp_path / "crowd.zip")
    loaded = cg.load(tmp_path / "crowd.zip").fit("dynibcc")
    for name in ("ids", "mean", "covariance", "noise", "times"):
        assert_array_equal(getattr(loaded.forward, name), getattr(fit.forward, name))
    assert fit.as_prior(0.5).forward is None


@pytest.mark.parametrize("prior", [(4, 1), "crowd"])
def test_an_update_ends_where_a_fit_ends(prior):
    graph = twelve(gold=0.1, n_responses=[60] * 12)
    model = cg.DynIBCC(confusion_prior=prior, tol=1e-10)
    updated = model._update(model.fit(graph.first(700)), graph, progress=False)
    cold = model.fit(graph)
    assert updated.converged
    assert_allclose(updated.item_probs, cold.item_probs, atol=1e-6)
    assert_allclose(updated.confusion.concentration, cold.confusion.concentration, rtol=1e-5)
    assert_allclose(updated.forward.mean, cold.forward.mean, atol=1e-5)


def grown(table, n, **options):
    """A graph of the first rows of a table."""
    rows = {name: column[:n] for name, column in table.items()}
    return cg.CrowdGraph.from_responses(rows, classes=["no", "yes"], labels=["no", "yes"], **options)


def test_an_update_knows_new_volunteers_and_items_and_late_responses():
    table = twelve(gold=0, n_responses=[60] * 12).to_arrow().to_pydict()
    table["volunteer"][-6:] = ["zoe"] * 6
    table["item"][-3:] = ["last", "last", "new"]
    n = len(table["item"])
    old = grown(table, n - 20)
    late = {name: list(column) for name, column in table.items()}
    late["time"][n - 10] = late["time"][n // 2]
    model = cg.DynIBCC(confusion_prior=(4, 1), tol=1e-10)
    fit = model.fit(old)
    names = {
        "volunteers": {"volunteer": [*old.volunteers.ids.tolist(), "zoe"]},
        "items": {"item": [*old.items.ids.tolist(), *dict.fromkeys(i for i in table["item"] if i not in old.items)]},
    }
    for responses in (table, late):
        graph = grown(responses, n, **names)
        updated = model._update(fit, graph, progress=False)
        assert_allclose(updated.item_probs, model.fit(graph).item_probs, atol=1e-6)
        assert "zoe" in updated.forward.table


def test_updates_visit_fewer_responses_and_keep_the_noise_scale():
    graph = crowd(n_volunteers=30, n_items=400, n_responses=[200] * 30, drift="step", gold=0.2, seed=1).graph
    model = cg.DynIBCC(noise_scale="auto")
    fit = model.fit(graph.first(5_900))
    updated = model._update(fit, graph, progress=False)
    cold = model.fit(graph)
    assert updated.diagnostics["noise_scale"] == fit.diagnostics["noise_scale"]
    assert updated.diagnostics["noise_chosen_from"] == 5_900
    assert updated.diagnostics["visited"] < cold.diagnostics["visited"]
    # The static fit is updated from its own state, which an update passes on.
    assert_allclose(updated.state.stages[1].item_probs, cold.state.stages[1].item_probs, atol=1e-3)
    young = model.fit(graph.first(3_000))
    assert model._update(young, graph, progress=False).diagnostics["noise_chosen_from"] == 6_000
