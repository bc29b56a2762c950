"""Networks over time: against networks of views, their frames, and bad input."""

import datetime as dt
from functools import partial

import numpy as np
import pytest
from builders import crowd, graph_of, network_of

import crowdgraph as cg
from crowdgraph.dynamics import networks_over_time
from crowdgraph.errors import NotAnnotatedError, ParameterError, ResultError, TimeError
from crowdgraph.networks import pi_similarity, task_cooccurrence


@pytest.fixture(scope="module")
def graph():
    return crowd(0.9, 0.6, n_volunteers=15, n_items=60, n_responses=500).graph


def weights(network):
    return network.weights if isinstance(network.weights, np.ndarray) else network.weights.toarray()


def same(left, right):
    assert left.ids.tolist() == right.ids.tolist()
    np.testing.assert_array_equal(weights(left), weights(right))


def test_snapshots_are_the_networks_of_views(graph):
    track = networks_over_time(graph, counts=[200, 350, 500])
    assert len(track) == 3
    for network, count in zip(track, [200, 350, 500], strict=True):
        same(network, task_cooccurrence(graph.first(count)))
    assert track.counts.tolist() == [200, 350, 500]
    assert (track.times == graph.responses.time[[199, 349, 499]]).all()
    assert track.reasons == ("", "", "")


def test_later_responses_change_nothing(graph):
    other = graph.replace(responses=graph.first(350).responses.table)
    track, early = networks_over_time(graph, counts=[200, 350, 500]), networks_over_time(other, counts=[200, 350])
    for left, right in zip(early, track, strict=False):
        same(left, right)


def test_windows_look_back_from_the_moment(graph):
    times = graph.responses.time
    moments = [times[200], times[499] + np.timedelta64(1, "D")]
    length = np.timedelta64(10, "D")
    track = networks_over_time(graph, times=moments, window=length, network=partial(task_cooccurrence, min_responses=1))
    for network, moment in zip(track, moments, strict=True):
        same(network, task_cooccurrence(graph, window=(moment - length, moment), min_responses=1))
    counted = networks_over_time(
        graph, counts=[300], window=length, network=partial(task_cooccurrence, min_responses=1)
    )
    view = graph.first(300)
    same(counted[0], task_cooccurrence(view, window=(times[299] - length, None), min_responses=1))


@pytest.mark.parametrize("times", [[0, 1, 5, 9, 10, 21], [0.0, 0.5, 9.9, 10.0, 20.0]])
def test_regular_snapshots_end_with_all_responses(times):
    graph = graph_of(["a"] * len(times), range(len(times)), [0] * len(times))
    columns = {"volunteer": ["a"] * len(times), "item": range(len(times)), "label": [0] * len(times), "time": times}
    graph = cg.CrowdGraph.from_responses(columns)
    track = networks_over_time(graph, every=10, network=partial(task_cooccurrence, min_responses=0))
    ends = [times[0] + 10, times[0] + 20]
    expected = [sum(time < end for time in times) for end in ends] + [len(times)]
    assert track.counts.tolist() == expected[: len(track)]
    assert track.counts[-1] == len(times)


def test_lengths_of_time_may_be_text(graph):
    month, week = dt.timedelta(days=30), dt.timedelta(days=7)
    track = networks_over_time(graph, every="30D", window="1W")
    for left, right in zip(track, networks_over_time(graph, every=month, window=week), strict=True):
        same(left, right)
    with pytest.raises(TimeError, match="every='a while' is not a length of time"):
        networks_over_time(graph, every="a while")


def test_regular_snapshots_of_datetimes(graph):
    track = networks_over_time(graph, every=dt.timedelta(days=20))
    assert track.counts[-1] == len(graph.responses)
    assert (np.diff(track.counts) > 0).all()
    start = graph.responses.time[0]
    assert track.counts[0] == len(graph.before(start + np.timedelta64(20, "D")).responses)


def test_a_model_is_fitted_at_each_snapshot(graph):
    track = networks_over_time(graph, counts=[250, 500], network=pi_similarity, model=cg.IBCC(confusion_prior=(4, 1)))
    view = graph.first(250)
    expected = pi_similarity(view.annotate(cg.IBCC(confusion_prior=(4, 1)).fit(view)))
    assert track[0].ids.tolist() == expected.ids.tolist()
    np.testing.assert_allclose(weights(track[0]), weights(expected), atol=1e-6)


def test_too_few_answers_leave_nobody_and_a_reason(graph):
    track = networks_over_time(graph, counts=[0, 5, 500])
    assert [len(network) for network in track[0:2]] == [0, 0]
    assert "No volunteer has 10 answers" in track.reasons[1]
    assert track.method == "task_cooccurrence"
    assert track.measures()["volunteers"].tolist() == [0, 0, len(track[2])]


def test_the_frame_has_a_row_for_each_link_and_snapshot(graph):
    track = networks_over_time(graph, counts=[5, 250, 500])
    frame = track.to_frame()
    assert list(frame) == ["time", "count", "volunteer", "neighbour", "weight"]
    for network, count in zip(track, track.counts, strict=True):
        rows = frame[frame["count"] == count]
        own = network.to_frame()
        assert rows[["volunteer", "neighbour", "weight"]].values.tolist() == own.values.tolist()
    measures = track.measures()
    assert measures["links"].tolist() == [network.n_edges for network in track]
    assert measures["density"].tolist() == [network.density for network in track]
    assert measures["mean strength"].iloc[-1] == pytest.approx(track[-1].strength.mean())
    assert "<table>" in track._repr_html_()


@pytest.mark.parametrize(("n", "caption"), [(20, False), (21, True)])
def test_a_table_of_some_snapshots_says_so(n, caption):
    network = network_of([[0, 1], [1, 0]], ids=["a", "b"])
    numbers = np.arange(1, n + 1)
    track = cg.NetworkTrack(
        ids=["a", "b"],
        times=numbers,
        counts=numbers,
        snapshots=[network] * n,
        clock=cg.Clock("number"),
        method="by hand",
    )
    html = track._repr_html_()
    assert html.count("<tr>") == 21
    assert (f"the last 20 of {n} snapshots" in html) is caption


def test_the_union_is_the_mean_over_snapshots():
    early = network_of([[0, 1], [1, 0]], ids=["a", "b"])
    late = network_of([[0, 2], [2, 0]], ids=["b", "c"])
    track = cg.NetworkTrack(
        ids=["a", "b", "c"], times=[1, 2], counts=[1, 2], snapshots=[early, late], clock=cg.Clock("number"), method="m"
    )
    assert weights(track.union()).tolist() == [[0, 0.5, 0], [0.5, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ParameterError, "one of counts=[...], times=[...] and every="),
        ({"counts": [3], "every": 2}, ParameterError, "one of counts=[...], times=[...] and every="),
        ({"counts": []}, ParameterError, "no snapshot to take"),
        ({"counts": [10**9]}, ParameterError, "expected a whole number from 0"),
        ({"counts": [100, 50]}, ParameterError, "must increase"),
        ({"every": 3}, TimeError, "every=3 has no unit"),
        ({"every": dt.timedelta(0)}, ParameterError, "longer than zero"),
        ({"every": dt.timedelta(milliseconds=1)}, ParameterError, "choose a longer time"),
        ({"counts": [100], "window": 3}, TimeError, "window=3 has no unit"),
        ({"counts": [100], "network": 3}, ParameterError, "network= takes a function"),
        ({"counts": [100], "network": lambda view: 3}, ParameterError, "got an int from it"),
        ({"counts": [100], "model": "ibcc"}, ParameterError, "model= takes a model"),
        (
            {"counts": [100], "network": lambda view: 3, "window": dt.timedelta(1)},
            ParameterError,
            "window= needs a network function that takes window=",
        ),
        ({"counts": [100], "seed": "x"}, ParameterError, "seed="),
    ],
)
def test_bad_input(graph, options, error, words):
    with pytest.raises(error) as caught:
        networks_over_time(graph, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": [1]}, "as many times and counts as snapshots"),
        ({"counts": [2, 1]}, "must not be negative or fall"),
        ({"ids": ["a", "b"]}, "who are not in the track ('c')"),
    ],
)
def test_bad_tracks(change, words):
    parts = {
        "ids": ["a", "b", "c"],
        "times": [1, 2],
        "counts": [1, 2],
        "snapshots": [network_of([[0]], ids=["a"]), network_of([[0]], ids=["c"])],
        "clock": cg.Clock("number"),
        "method": "m",
    }
    with pytest.raises(ResultError) as caught:
        cg.NetworkTrack(**{**parts, **change})
    assert words in str(caught.value)


def test_networks_of_confusion_need_a_model(graph):
    with pytest.raises(NotAnnotatedError, match=r"Snapshots leave out annotations.* model=cg\.IBCC"):
        networks_over_time(graph, counts=[200], network=pi_similarity)
