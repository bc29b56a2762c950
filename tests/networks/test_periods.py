"""Networks of a period, and the list of contacts: against networks of views of the graph, and against brute force."""

from itertools import combinations

import numpy as np
import pytest
from builders import crowd, fitted, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import ParameterError, TimeError, TooFewError
from crowdgraph.networks import contacts, error_correlation, pi_similarity, task_cooccurrence


@pytest.fixture(scope="module")
def graph():
    plain = crowd(0.9, 0.6, n_volunteers=15, n_items=60, n_responses=500).graph
    return plain.annotate(cg.IBCC().fit(plain))


def same(left, right):
    assert left.ids.tolist() == right.ids.tolist()
    np.testing.assert_array_equal(left.support, right.support)
    dense = [one.weights if isinstance(one.weights, np.ndarray) else one.weights.toarray() for one in (left, right)]
    np.testing.assert_allclose(*dense, rtol=0, atol=1e-12)


def moment(graph, row):
    return graph.responses.time[row]


def test_at_counts_the_response_of_that_moment(graph):
    assert moment(graph, 249) < moment(graph, 250)
    same(task_cooccurrence(graph, at=moment(graph, 249)), task_cooccurrence(graph.first(250)))


def test_a_window_counts_its_start_and_not_its_stop(graph):
    start, stop = moment(graph, 100), moment(graph, 400)
    same(task_cooccurrence(graph, window=(start, stop)), task_cooccurrence(graph.window(start, stop)))
    same(task_cooccurrence(graph, window=(None, stop)), task_cooccurrence(graph.before(stop)))
    same(task_cooccurrence(graph, window=(None, None)), task_cooccurrence(graph))


def test_ages_are_measured_back_from_the_end_of_the_period(graph):
    half_life = np.timedelta64(7, "D")
    start, stop = moment(graph, 100), moment(graph, 400)
    expected = task_cooccurrence(graph.window(start, stop), half_life=half_life)
    same(task_cooccurrence(graph, window=(start, stop), half_life=half_life), expected)


def test_errors_in_a_window_are_those_of_its_answers(graph):
    start, stop = moment(graph, 100), moment(graph, 400)
    # The confusion of IBCC does not change, so the fit also belongs to the view.
    view = graph.window(start, stop)
    expected = error_correlation(view.annotate(graph.fit()), min_common=2)
    same(error_correlation(graph, window=(start, stop), min_common=2), expected)
    same(
        error_correlation(graph, at=moment(graph, 399), min_common=2),
        error_correlation(graph, window=(None, moment(graph, 400)), min_common=2),
    )


def test_similarity_in_a_window_is_that_just_before_its_stop():
    plain = crowd(0.9, 0.6, n_volunteers=10, n_items=40, n_responses=300).graph
    graph = plain.annotate(cg.DynIBCC(update_classes=False, confusion_prior=(4, 1)).fit(plain))
    stop = moment(graph, 200)
    assert moment(graph, 199) < stop
    same(pi_similarity(graph, window=(None, stop)), pi_similarity(graph, at=moment(graph, 199)))
    counted = pi_similarity(graph, window=(moment(graph, 150), stop))
    assert counted.support.sum() == 50
    full = pi_similarity(graph, window=(None, stop)).subnetwork(counted.ids.tolist())
    np.testing.assert_allclose(counted.weights, full.weights, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"at": 3, "window": (1, 2)}, ParameterError, "at=3 and window=(1, 2) contradict each other"),
        ({"window": 7}, ParameterError, "window=7 must be a pair (start, stop)"),
        ({"window": "2026-01-01"}, ParameterError, "must be a pair (start, stop)"),
        ({"window": (1, 2, 3)}, ParameterError, "must be a pair (start, stop)"),
        ({"window": (3, 0)}, ParameterError, "the start is later than the stop"),
        ({"window": ("monday", None)}, TimeError, "'monday'"),
        ({"at": "monday"}, TimeError, "'monday'"),
        ({"at": -5}, TooFewError, "the most is 0"),
        ({"window": (2, 2)}, TooFewError, "the most is 0"),
    ],
)
@pytest.mark.parametrize("build", [task_cooccurrence, pi_similarity, error_correlation])
def test_bad_periods(build, options, error, words):
    graph = graph_of(list("aabb"), list("xyxy"), [0, 1, 0, 1])
    graph = graph.annotate(cg.IBCC().fit(graph))
    with pytest.raises(error) as caught:
        build(graph, min_responses=1, **options)
    assert words in str(caught.value)


# Contacts


def contacts_by_hand(graph):
    """Every pair and item once, by the first answers."""
    first = {}
    for row, response in enumerate(graph.responses):
        if response.label is not None:
            first.setdefault((response.item, response.volunteer), (row, response.time))
    by_item = {}
    for (item, volunteer), when in first.items():
        by_item.setdefault(item, []).append((when, volunteer))
    rows = []
    for item, answers in by_item.items():
        for early, late in combinations(sorted(answers, key=lambda answer: answer[0][0]), 2):
            rows.append((late[0][0], early[0][0], early[1], late[1], item, late[0][1], early[0][1]))
    return [row[2:] for row in sorted(rows, key=lambda row: row[:2])]


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_contacts_equal_brute_force(graph):
    expected = contacts_by_hand(graph)
    result = contacts(graph)
    assert len(result) == len(expected)
    clock = graph.responses.clock
    volunteers, items = graph.volunteers.ids, graph.items.ids
    rows = zip(
        volunteers[result.volunteer].tolist(),
        volunteers[result.other].tolist(),
        items[result.item].tolist(),
        clock.to_python(result.time),
        clock.to_python(result.first_time),
        strict=True,
    )
    assert list(rows) == expected


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_contacts_of_a_period_are_those_of_its_view(one, other):
    graph = crowd(n_volunteers=8, n_items=12, n_responses=60).graph
    times = np.append(graph.responses.time, graph.responses.time[-1] + np.timedelta64(1, "D"))
    start, stop = times[min(one, other)], times[max(one, other)]
    part, expected = contacts(graph, window=(start, stop)), contacts(graph.window(start, stop))
    assert part.to_frame().equals(expected.to_frame())


def test_what_two_met_on_is_what_they_share():
    graph = fitted(n_items=40, n_responses=300)
    result = contacts(graph)
    frame = result.to_frame()
    network = task_cooccurrence(graph, min_responses=0)
    n_items = {name: len({r.item for r in graph.responses if r.volunteer == name}) for name in graph.volunteers}
    pairs = frame.groupby(["volunteer", "other"]).size()
    shared = {}
    for (one, other), n in pairs.items():
        shared[frozenset((one, other))] = shared.get(frozenset((one, other)), 0) + n
    links = network.to_frame()
    assert len(links) == len(shared)
    for row in links.itertuples():
        mean = (n_items[row.volunteer] + n_items[row.neighbour]) / 2
        assert row.weight == pytest.approx(shared[frozenset((row.volunteer, row.neighbour))] / mean)


def test_too_many_contacts_are_refused_before_they_are_made():
    n = 20_000
    graph = graph_of([f"v{k}" for k in range(n)], ["x"] * n, [0] * n)
    with pytest.raises(ParameterError, match="199,990,000 contacts, more than max_contacts=50,000,000"):
        contacts(graph)
    with pytest.raises(ParameterError, match="max_contacts=0 must be"):
        contacts(graph, max_contacts=0)
