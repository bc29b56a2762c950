"""The task co-occurrence network against sets of items, pair by pair."""

import datetime as dt

import numpy as np
import pytest
from builders import crowd, network_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg


def build_graph(rows, **options):
    columns = {name: [row[index] for row in rows] for index, name in enumerate(("volunteer", "item", "label", "time"))}
    return cg.CrowdGraph.from_responses(columns, labels=[0, 1], missing="keep", **options)


def written_out(graph, ids, *, half_life=None, prior=(0, 0)):
    """The last time each volunteer answered each item, and sums over common items."""
    times = graph.responses.time.astype(float)
    met = {name: {} for name in ids}
    for row in np.flatnonzero(graph.responses.label >= 0):
        name = graph.volunteers.ids[graph.responses.volunteer[row]]
        if name in met:
            met[name][graph.responses.item[row]] = times[row]
    weight_of = {
        name: {item: 1 if half_life is None else 0.5 ** ((times[-1] - then) / half_life) for item, then in own.items()}
        for name, own in met.items()
    }
    weights = np.zeros((len(ids), len(ids)))
    for m, first in enumerate(ids):
        for n, second in enumerate(ids):
            common = sum(
                np.sqrt(weight_of[first][item] * weight_of[second][item])
                for item in weight_of[first]
                if item in weight_of[second]
            )
            if m != n and common > 0:
                total = (sum(weight_of[first].values()) + sum(weight_of[second].values())) / 2
                weights[m, n] = (common + prior[0]) / (total + sum(prior))
    return weights


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 6), st.sampled_from([0, 1, None]), st.integers(0, 50)),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(label is not None for _, _, label, _ in rows))


@given(rows, st.sampled_from([None, 3.0, 40.0]), st.sampled_from([None, (1.0, 9.0), (0.5, 0.5)]))
def test_weights_are_as_defined(rows, half_life, prior):
    graph = build_graph(rows)
    network = cg.networks.task_cooccurrence(graph, min_responses=1, half_life=half_life, prior=prior)
    expected = written_out(graph, network.ids.tolist(), half_life=half_life, prior=prior or (0, 0))
    assert_allclose(network.weights.toarray(), expected, rtol=1e-10, atol=1e-300)
    assert (network.weights.data <= 1 + 1e-12).all()


def test_the_same_items_weigh_one_and_others_nothing():
    table = [(name, item, 0, 0) for name, items in {"a": "xyz", "b": "xyz", "c": "uv"}.items() for item in items]
    network = cg.networks.task_cooccurrence(build_graph(table), min_responses=1)
    assert_array_equal(network.weights.toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert network.isolated.tolist() == ["c"]
    assert_array_equal(network.components, [0, 0, 1])


def test_newcomers_are_left_out():
    graph = crowd(n_responses=250).graph
    network = cg.networks.task_cooccurrence(graph)
    assert 0 < len(network) < len(graph.volunteers)
    assert_array_equal(network.ids, graph.volunteers.ids[graph.volunteers.n_responses >= 10])
    assert network.params["min_responses"] == 10


def test_older_items_count_less_in_units_of_datetimes():
    days = [dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 31), dt.datetime(2026, 3, 31)]
    table = [("a", "x", 0, days[0]), ("b", "x", 0, days[1]), ("a", "y", 0, days[2]), ("b", "z", 0, days[3])]
    for half_life in (dt.timedelta(days=30), np.timedelta64(30, "D"), "30D"):
        weight = cg.networks.task_cooccurrence(build_graph(table), min_responses=1, half_life=half_life).weights[0, 1]
        assert_allclose(weight, 0.5 / 1.5)


def test_views_have_the_network_that_was_known_then():
    graph = crowd().graph
    before = graph.before(graph.responses.time[400])
    network = cg.networks.task_cooccurrence(before, min_responses=1)
    assert_allclose(network.weights.toarray(), written_out(before, network.ids.tolist()), rtol=1e-12)


@given(rows, st.integers(0, 2**32), st.sampled_from([None, 3.0]), st.sampled_from([None, (1.0, 9.0)]))
def test_rewired_meetings_keep_what_everybody_and_every_item_has(rows, seed, half_life, prior):
    network = cg.networks.task_cooccurrence(build_graph(rows), min_responses=1, half_life=half_life, prior=prior)
    null = network.null(seed=seed)
    met, sample = network.model.incidence, null.model.incidence
    for axis in (0, 1):
        assert_array_equal((sample > 0).sum(axis=axis), (met > 0).sum(axis=axis))
    assert_array_equal(sample.sum(axis=1).round(12), met.sum(axis=1).round(12))
    assert sample.nnz == met.nnz
    # The weights are those of the meetings: common items over the mean number of items.
    entries = sample.toarray()
    common = entries @ entries.T
    above, below = prior or (0, 0)
    mean = (common.diagonal()[:, None] + common.diagonal()) / 2
    expected = np.where(common > 0, (common + above) / (mean + above + below), 0)
    np.fill_diagonal(expected, 0)
    assert_allclose(null.weights.toarray(), expected, rtol=1e-10)


@given(rows, st.integers(0, 2**32))
def test_redrawn_items_count_as_often_as_they_are_drawn(rows, seed):
    graph = build_graph(rows)
    network = cg.networks.task_cooccurrence(graph, min_responses=1)
    resampled = network.resampled(seed=seed)
    met, sample = network.model.incidence.toarray(), resampled.model.incidence.toarray() ** 2
    times = sample.max(axis=0)
    assert_allclose(sample, met * times, atol=1e-12)
    assert_allclose(times, times.round(), atol=1e-9)
    known = met.any(axis=0)
    assert_allclose(times.sum(), known.sum())
    assert not times[~known].any()
    for m in range(len(network)):
        for n in range(m):
            total = ((met[m] + met[n]) * times).sum() / 2
            expected = (met[m] * met[n] * times).sum() / total if total else 0
            assert_allclose(resampled.weights[m, n], expected, atol=1e-12)


def test_drawn_networks_have_the_same_volunteers_and_support():
    graph = crowd(n_volunteers=60, n_items=500, n_responses=2_000, n_communities=3, mixing=0.05).graph
    network = cg.networks.task_cooccurrence(graph)
    codes = graph.volunteers.codes(network.ids)
    assert_array_equal(network.support, graph.volunteers.n_responses[codes])
    part = network.subnetwork(network.ids[5:30])
    for original in (network, part):
        null, resampled = original.null(seed=0), original.resampled(seed=0)
        assert (null.method, resampled.method) == ("task_cooccurrence without communities", "task_cooccurrence")
        for sample in (null, resampled):
            assert_array_equal(sample.ids, original.ids)
            assert_array_equal(sample.support, original.support)
            assert_array_equal(sample.model.ids, original.ids)
            assert sample.params == original.params
        assert abs(null.weights - original.null(seed=0).weights).max() == 0
        assert abs(null.weights - original.null(seed=1).weights).max() > 0
        assert abs(resampled.weights - original.resampled(seed=1).weights).max() > 0


@pytest.mark.slow
def test_communities_are_more_than_the_null_and_chance_is_not():
    """Items link all who answered them in any crowd; rewiring links would not know, and find communities everywhere."""
    sizes = {"n_volunteers": 200, "n_items": 2_000, "n_responses": 10_000, "seed": 1}

    def modularity(network):
        return cg.Leiden().detect(network, seed=0).modularity

    without = cg.networks.task_cooccurrence(cg.simulate.crowd(**sizes).graph)
    chance = [modularity(without.null(seed=seed)) for seed in range(8)]
    assert min(chance) - 0.005 < modularity(without) < max(chance) + 0.005
    by_hand = network_of(without.weights)
    assert modularity(without) > max(modularity(by_hand.null(seed=seed)) for seed in range(8)) + 0.005
    planted = cg.networks.task_cooccurrence(cg.simulate.crowd(**sizes, n_communities=5, mixing=0.5).graph)
    assert modularity(planted) > max(modularity(planted.null(seed=seed)) for seed in range(8)) + 0.05
