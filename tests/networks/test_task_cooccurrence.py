"""The task co-occurrence network against sets of items, pair by pair."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.errors import ParameterError, TimeError


def made(rows, **options):
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("volunteer", "item", "label", "time"))}
    return cg.CrowdGraph.from_responses(columns, labels=[0, 1], missing="keep", **options)


def written_out(graph, ids, *, half_life=None, prior=(0, 0)):
    """The last time each volunteer answered each item, and sums over common items."""
    times = graph.responses.time.astype(float)
    met = {name: {} for name in ids}
    for row in np.flatnonzero(graph.responses.label >= 0):
        name = graph.volunteers.ids[graph.responses.volunteer[row]]
        if name in met:
            met[name][graph.responses.item[row]] = times[row]
    kept = {
        name: {item: 1 if half_life is None else 0.5 ** ((times[-1] - then) / half_life) for item, then in own.items()}
        for name, own in met.items()
    }
    weights = np.zeros((len(ids), len(ids)))
    for m, first in enumerate(ids):
        for n, second in enumerate(ids):
            common = sum(
                np.sqrt(kept[first][item] * kept[second][item]) for item in kept[first] if item in kept[second]
            )
            if m != n and common > 0:
                total = (sum(kept[first].values()) + sum(kept[second].values())) / 2
                weights[m, n] = (common + prior[0]) / (total + sum(prior))
    return weights


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 6), st.sampled_from([0, 1, None]), st.integers(0, 50)),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(label is not None for _, _, label, _ in rows))


@given(rows, st.sampled_from([None, 3.0, 40.0]), st.sampled_from([None, (1.0, 9.0), (0.5, 0.5)]))
@settings(max_examples=60, deadline=None)
def test_weights_are_as_defined(rows, half_life, prior):
    graph = made(rows)
    network = cg.networks.task_cooccurrence(graph, min_responses=1, half_life=half_life, prior=prior)
    expected = written_out(graph, network.ids.tolist(), half_life=half_life, prior=prior or (0, 0))
    assert_allclose(network.weights.toarray(), expected, rtol=1e-10, atol=1e-300)
    assert (network.weights.data <= 1 + 1e-12).all()


def test_the_same_items_weigh_one_and_others_nothing():
    table = [(name, item, 0, 0) for name, items in {"a": "xyz", "b": "xyz", "c": "uv"}.items() for item in items]
    network = cg.networks.task_cooccurrence(made(table), min_responses=1)
    assert_array_equal(network.weights.toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert network.isolated.tolist() == ["c"]
    assert_array_equal(network.components, [0, 0, 1])


def test_newcomers_are_left_out():
    graph = cg.simulate.galaxy_zoo_supernovae().graph
    network = cg.networks.task_cooccurrence(graph)
    assert_array_equal(network.ids, graph.volunteers.ids[graph.volunteers.n_responses >= 10])
    assert network.params["min_responses"] == 10


def test_older_items_count_less_in_units_of_datetimes():
    days = [dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 31), dt.datetime(2026, 3, 31)]
    table = [("a", "x", 0, days[0]), ("b", "x", 0, days[1]), ("a", "y", 0, days[2]), ("b", "z", 0, days[3])]
    for half_life in (dt.timedelta(days=30), np.timedelta64(30, "D")):
        weight = cg.networks.task_cooccurrence(made(table), min_responses=1, half_life=half_life).weights[0, 1]
        assert_allclose(weight, 0.5 / 1.5)


def test_what_could_be_known_before_a_moment():
    graph = cg.simulate.crowd(seed=0).graph
    moment = graph.responses.time[2000]
    before = cg.networks.task_cooccurrence(graph.before(moment), min_responses=1)
    expected = written_out(graph.before(moment), before.ids.tolist())
    assert_allclose(before.weights.toarray(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"half_life": dt.timedelta(days=3)}, TimeError, "must be a number, since the graph's times are numbers"),
        ({"half_life": "a week"}, TimeError, "half_life='a week' must be a number"),
        ({"half_life": 0}, ParameterError, "half_life=0 must be longer than nothing"),
        ({"half_life": float("nan")}, ParameterError, "must be longer than nothing"),
        ({"prior": 3}, ParameterError, r"prior=3 must be a pair \(a, b\) of numbers"),
        ({"prior": (0, 1)}, ParameterError, "must be a pair of numbers above zero"),
        ({"min_responses": 50}, ParameterError, "No volunteer has 50 answers or more .the most is 2."),
    ],
)
def test_bad_input(options, error, message):
    table = [("a", "x", 0, 1), ("a", "y", 0, 2), ("b", "x", 0, 3)]
    with pytest.raises(error, match=message):
        cg.networks.task_cooccurrence(made(table), **{"min_responses": 1, **options})


def test_a_half_life_without_a_unit():
    graph = cg.simulate.crowd(seed=0).graph
    with pytest.raises(TimeError, match=r"half_life=30 has no unit, .*give a timedelta"):
        cg.networks.task_cooccurrence(graph, half_life=30)
