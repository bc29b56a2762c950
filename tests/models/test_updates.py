"""Updates: they end where a fit from scratch ends, never lower the bound, and visit fewer responses."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph import errors
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.fit import FitStage, FitState
from crowdgraph.kernels.sweep import CompiledSweep
from crowdgraph.models import _updates
from crowdgraph.models._updates import stage_start

MODELS = {
    "ibcc": cg.IBCC(tol=1e-9),
    "pair": cg.IBCC(confusion_prior=(4, 1), tol=1e-9),
    "learned": cg.IBCC(learn_prior=True, tol=1e-9),
    "dawid_skene": cg.DawidSkene(smoothing=0.5, tol=1e-9),
    "plain_dawid_skene": cg.DawidSkene(smoothing=1e-9, tol=1e-9, max_iter=5_000),
    "calibrated": cg.Calibrated(model=cg.IBCC(tol=1e-9)),
    "majority": cg.MajorityVote(),
    "mean_score": cg.MeanScore(),
}


@pytest.fixture(scope="module")
def table():
    """2,000 responses of 40 volunteers about 150 items, as columns, and gold for a fifth of the items."""
    graph = cg.simulate.crowd(n_volunteers=40, n_items=150, n_responses=2_000, classes=(0, 1), gold=0.2, seed=4).graph
    return graph.to_arrow().to_pydict(), dict(graph.gold)


def part(table, start, stop):
    return {name: column[start:stop] for name, column in table.items()}


@pytest.mark.parametrize("name", MODELS)
def test_an_update_ends_where_a_fit_ends(table, name):
    columns, gold = table
    model = MODELS[name]
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_900), gold=gold, labels=(0, 1))
    fit = model.fit(graph)
    longer = graph.extend(part(columns, 1_900, None), gold=gold)
    updated, cold = model.update(fit, longer), model.fit(longer)
    np.testing.assert_allclose(updated.item_probs, cold.item_probs, atol=1e-6)
    np.testing.assert_allclose(updated.class_probs, cold.class_probs, atol=1e-6)
    if cold.confusion is not None:
        np.testing.assert_allclose(updated.confusion.latest().mean, cold.confusion.latest().mean, atol=1e-6)
    assert updated.converged
    assert updated.source.graph.n_responses == 2_000
    updated.check_matches(longer)


@pytest.mark.parametrize("name", ["ibcc", "dawid_skene"])
def test_nightly_updates_end_where_one_fit_ends(table, name):
    columns, gold = table
    model = MODELS[name]
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_800), gold=gold, labels=(0, 1))
    fit = model.fit(graph)
    for night in range(1_800, 2_000, 20):
        graph = graph.extend(part(columns, night, night + 20), gold=gold)
        fit = model.update(fit, graph)
    cold = model.fit(graph)
    np.testing.assert_allclose(fit.item_probs, cold.item_probs, atol=1e-6)
    assert fit.diagnostics["visited"] < cold.diagnostics["visited"]


@pytest.mark.parametrize("name", ["pair", "dawid_skene"])
def test_the_bound_never_falls(table, name):
    columns, gold = table
    model = MODELS[name]
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_700), gold=gold, labels=(0, 1))
    longer = graph.extend(part(columns, 1_700, None), gold=gold)
    updated = model.update(model.fit(graph), longer)
    assert (np.diff(updated.bound) >= -1e-9 * np.abs(updated.bound[1:])).all()
    # The last bound is that of a full sweep, as a fit reports it.
    np.testing.assert_allclose(updated.bound[-1], model.fit(longer).bound[-1], rtol=1e-9)


@pytest.mark.parametrize("seed", [1, 5, 10])
def test_the_bound_does_not_fall_after_an_extrapolation_that_is_rejected(seed):
    """What a rejected step did to the items that it visited must not stay."""
    columns = cg.simulate.crowd(n_volunteers=60, n_items=200, n_responses=2_000, seed=seed).graph.to_arrow().to_pydict()
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_500), labels=("no", "yes"))
    model = cg.DawidSkene()
    updated = model.update(model.fit(graph), graph.extend(part(columns, 1_500, None)))
    assert (np.diff(updated.bound) >= -1e-9 * np.abs(updated.bound[1:])).all()


def test_the_local_bound_is_the_bound():
    """The bound of a local sweep, computed from counts, is that of all seven terms for the same probabilities."""
    crowd = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=400, gold=0.2, seed=0).graph
    model = cg.IBCC(confusion_prior=(4, 1), tol=1e-9)
    updated = model.update(model.fit(crowd.first(399)), crowd)
    responses, estimate = crowd.to_torch(), updated.to_torch()
    bound = cg.tensors.lower_bound(
        responses.answers,
        confusion=estimate.confusion,
        classes=estimate.classes,
        confusion_prior=estimate.confusion_prior,
        class_prior=estimate.class_prior,
        gold=responses.gold,
    )
    local, full = updated.bound[-2:]
    np.testing.assert_allclose(full, float(bound), rtol=1e-9)
    assert local <= full + 1e-9 * abs(full)
    np.testing.assert_allclose(local, full, rtol=1e-6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.booleans())
def test_counts_are_corrected_by_the_new_answers(seed, n_new, late):
    """Where an update starts, counts are those that the probabilities imply, whether answers come late or not."""
    rng = np.random.default_rng(seed)
    columns = {
        "volunteer": rng.integers(0, 6, 80).tolist(),
        "item": rng.integers(0, 15, 80).tolist(),
        "label": rng.integers(0, 2, 80).tolist(),
        "time": (rng.integers(0, 80, 80) if late else np.arange(80)).tolist(),
    }
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 80 - n_new), labels=(0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdgraph.io.extend.warn", lambda *_, **__: None)
        gold = {item: 0 for item in range(0, 15, 4) if item in columns["item"]}
        longer = graph.extend(part(columns, 80 - n_new, None), gold=gold)
    probs = rng.dirichlet(np.ones(2), len(graph.items))
    stage = FitStage(item_probs=probs, counts=expected_counts(graph, probs))
    state = FitState(n_answers=graph.answers.n_by_item, stages=(stage,))
    label_use = expected_counts(longer, np.full((len(longer.items), 2), 0.5)).sum(axis=1)
    start = stage_start(longer, state, stage, label_use)
    np.testing.assert_allclose(start.counts, expected_counts(longer, start.probs), atol=1e-9)
    known = longer.gold.known
    np.testing.assert_array_equal(start.probs[known], longer.gold.probs[known])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(
    st.sampled_from(["ibcc", "dawid_skene"]),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 150), min_size=1, max_size=3),
    st.booleans(),
)
def test_updates_in_any_order_end_where_one_fit_ends(table, name, seed, sizes, new_gold):
    """Parts of any size, with late responses, new volunteers and items, and gold that comes with the last one."""
    columns, gold = table
    order = np.random.default_rng(seed).permutation(2_000)
    shuffled = {key: [column[row] for row in order] for key, column in columns.items()}
    # The rarest volunteer and item are new in the last part.
    for key in ("volunteer", "item"):
        rarest = min(set(shuffled[key]), key=shuffled[key].count)
        late = sorted(range(2_000), key=lambda row, key=key, rarest=rarest: shuffled[key][row] == rarest)
        shuffled = {other: [column[row] for row in late] for other, column in shuffled.items()}
    ends = 2_000 - np.cumsum([0, *sizes])[::-1]
    graph = cg.CrowdGraph.from_responses(part(shuffled, 0, ends[0]), labels=(0, 1))
    model = MODELS[name]
    fit = model.fit(graph)
    for start, stop in pairwise(ends):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("crowdgraph.io.extend.warn", lambda *_, **__: None)
            graph = graph.extend(part(shuffled, start, stop), gold=gold if new_gold and stop == 2_000 else None)
        fit = model.update(fit, graph)
    cold = model.fit(graph)
    assert fit.bound[-1] == pytest.approx(cold.bound[-1], rel=1e-9)
    np.testing.assert_allclose(fit.item_probs, cold.item_probs, atol=1e-6)
    np.testing.assert_allclose(fit.confusion.latest().concentration, cold.confusion.latest().concentration, rtol=1e-4)


def test_every_response_that_is_visited_counts(table, monkeypatch):
    """Two stages end with a full sweep each; all that local sweeps, pushes and starts visit comes on top."""
    columns, gold = table
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_980), gold=gold, labels=(0, 1))
    longer = graph.extend(part(columns, 1_980, None), gold=gold)
    n_full = 0
    sweep = CompiledSweep._run

    def counted(self, *arguments):
        nonlocal n_full
        n_full += 1
        return sweep(self, *arguments)

    model = cg.IBCC()
    fit = model.fit(graph)
    monkeypatch.setattr(CompiledSweep, "_run", counted)
    monkeypatch.setattr(CompiledSweep, "class_variance", None)
    updated = model.update(fit, longer)
    is_new = np.isin(longer.answers.item, longer.answers.item[1_980:])
    assert n_full >= 2
    assert updated.diagnostics["visited"] >= 2_000 * n_full + 4 * np.count_nonzero(is_new)


def test_an_update_that_needs_more_cycles_ends_where_a_fit_ends(table, monkeypatch):
    columns, gold = table
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_000), gold=gold, labels=(0, 1))
    fit = MODELS["ibcc"].fit(graph)
    longer = graph.extend(part(columns, 1_000, None), gold=gold)
    monkeypatch.setattr(_updates, "MAX_CYCLES", 1)
    updated, cold = MODELS["ibcc"].update(fit, longer), MODELS["ibcc"].fit(longer)
    assert updated.converged
    np.testing.assert_allclose(updated.item_probs, cold.item_probs, atol=1e-6)


def test_a_loaded_fit_is_updated(table, tmp_path):
    columns, gold = table
    graph = cg.CrowdGraph.from_responses(part(columns, 0, 1_900), gold=gold, labels=(0, 1))
    for model in (MODELS["ibcc"], MODELS["calibrated"]):
        fit = model.fit(graph)
        graph.annotate(fit).save(tmp_path / "graph.crowd")
        loaded = cg.load(tmp_path / "graph.crowd")
        longer = loaded.extend(part(columns, 1_900, None), gold=gold)
        updated, expected = model.update(loaded.fit(), longer), model.update(fit, longer)
        np.testing.assert_array_equal(updated.item_probs, expected.item_probs)
        assert updated.diagnostics["visited"] == expected.diagnostics["visited"]


def test_what_cannot_be_updated():
    crowd = cg.simulate.crowd(n_volunteers=10, n_items=60, n_responses=200, seed=0).graph
    view = crowd.first(150)
    model, fit = cg.IBCC(), cg.IBCC().fit(view)
    with pytest.raises(errors.ParameterError, match="DawidSkene cannot update a fit of the model 'ibcc'"):
        cg.DawidSkene().update(fit, crowd)
    with pytest.raises(errors.ParameterError, match=r"got a CrowdGraph first.*model\.update\(fit, graph\)"):
        model.update(crowd, fit)
    with pytest.raises(errors.ParameterError, match="got a dict"):
        model.update(fit, {})
    with pytest.raises(errors.AlignmentError, match=r"fewer answers than the fit saw.*graph\.extend"):
        model.update(fit, crowd.first(100))
    other = cg.simulate.crowd(n_volunteers=10, n_items=50, n_responses=200, seed=0).graph
    with pytest.raises(errors.AlignmentError, match="its first 60 items are not those of the fit"):
        model.update(fit, other)
    renamed = cg.CrowdGraph.from_responses(
        {**crowd.to_arrow().to_pydict(), "volunteer": [f"new {row % 10}" for row in range(200)]},
        labels=crowd.labels,
        items={"item": crowd.items.ids},
    )
    with pytest.raises(errors.AlignmentError, match="its first 10 volunteers are not those of the fit"):
        model.update(fit, renamed)
    more = view.extend(
        {"volunteer": ["v"], "item": ["i"], "label": ["maybe"], "time": [crowd.responses[-1].time]}, new_labels=True
    )
    with pytest.raises(errors.AlignmentError, match="its classes are"):
        model.update(fit, more)
