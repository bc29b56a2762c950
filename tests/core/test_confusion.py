"""Confusion over time, at one time and of one volunteer."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import crowdgraph as cg
from crowdgraph.errors import IdError, ResultError, TimeError, UnknownIdError

NAMES = {"classes": ("no", "yes"), "labels": ("no", "yes", "skip")}


@st.composite
def tracks(draw):
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    n_steps = sum(counts)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return cg.ConfusionTrack(
        ids=[f"v{k}" for k in range(len(counts))],
        starts=np.concatenate([[0], np.cumsum(counts)]),
        times=np.concatenate([np.sort(rng.integers(0, 5, count)) for count in counts]),
        concentration=rng.gamma(2.0, size=(n_steps, 2, 3)) + 0.01,
        initial=rng.gamma(2.0, size=(len(counts), 2, 3)) + 0.01,
        clock=cg.Clock("number"),
        **NAMES,
    )


@given(tracks(), st.integers(-1, 6))
def test_a_track_is_right_continuous_and_starts_at_the_prior(track, moment):
    snapshot = track.at(moment)
    for code, volunteer in enumerate(track.ids):
        history = track.of(volunteer)
        reached = [step for step, time in enumerate(history.times) if time <= moment]
        expected = history.concentration[reached[-1]] if reached else track.initial[code]
        assert np.array_equal(snapshot.concentration[code], expected)
        assert np.array_equal(history.at(moment).concentration, expected)
        assert np.array_equal(snapshot.of(volunteer).mean, expected / expected.sum(axis=1, keepdims=True))
    assert np.array_equal(track.latest().concentration, track.at(10**6).concentration)


@given(tracks())
def test_observations_are_the_responses_of_the_whole_crowd_so_far(track):
    for volunteer in track.ids:
        history = track.of(volunteer)
        expected = [sum(bool(other <= time) for other in track.times) for time in history.times]
        assert history.observations.tolist() == expected
        assert not history.observations.flags.writeable
        assert not deepcopy(history).observations.flags.writeable
    assert track.observations.max(initial=0) == len(track.times)


def test_observations_count_rows_of_the_graph_with_and_without_labels(tmp_path):
    """Without ties, the number of observations at a response is its row, counted from one."""
    graph = cg.simulate.crowd(n_volunteers=6, n_items=20, n_responses=60, seed=0).graph
    frame = graph.responses.to_frame()
    frame["time"] = np.arange(len(frame))
    frame["label"] = frame["label"].where(frame.index % 4 > 0, None)
    graph = cg.CrowdGraph.from_responses(frame, classes=graph.classes, labels=graph.labels, missing="keep")
    assert len(graph.answers) < len(graph.responses)
    fit = cg.DynIBCC().fit(graph)
    graph.annotate(fit).save(tmp_path / "x.crowd")
    for track in (fit.confusion, cg.load(tmp_path / "x.crowd").confusion()):
        for volunteer in graph.volunteers.ids:
            rows = graph.responses.by_volunteer.rows(graph.volunteers.table.code(volunteer))
            assert track.of(volunteer).observations.tolist() == (rows + 1).tolist()


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([1, 2], r"observations has shape \(2,\) of int64; expected \(3,\) integers"),
        ([1.0, 2.0, 3.0], r"observations has shape \(3,\) of float64; expected \(3,\) integers"),
        ([5, 4, 6], r"must not fall.*Take the history from a track"),
        ([1, 1, 3], r"count the volunteer's own responses"),
    ],
)
def test_observations_are_checked(observations, message):
    with pytest.raises(ResultError, match=message):
        replace(history_of_three(), observations=observations)


def test_times_of_a_history_are_of_its_clock():
    with pytest.raises(TimeError):
        replace(history_of_three(), times=np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[ns]"))


def test_volunteers_of_a_snapshot_are_all_different():
    with pytest.raises(IdError, match="repeat"):
        cg.ConfusionSnapshot(ids=["a", "b", "a"], concentration=np.ones((3, 2, 3)), **NAMES)


def history_of_three():
    track = cg.ConfusionTrack(
        ids=["a"], starts=[0, 3], times=[1, 2, 3], concentration=np.ones((3, 2, 3)), initial=np.ones((2, 3)),
        clock=cg.Clock("number"), **NAMES,
    )  # fmt: skip
    return track.of("a")


@given(tracks(), st.floats(0.05, 0.95))
def test_intervals_are_beta_quantiles(track, level):
    alpha = track.latest().concentration
    low, high = track.latest().interval(level)
    rest = alpha.sum(axis=-1, keepdims=True) - alpha
    np.testing.assert_allclose(low, beta.ppf((1 - level) / 2, alpha, rest), rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(high, beta.ppf((1 + level) / 2, alpha, rest), rtol=1e-7, atol=1e-300)


def test_accuracy_weighs_classes_and_knows_what_is_correct():
    matrix = cg.ConfusionMatrix(concentration=[[6.0, 3.0, 1.0], [2.0, 4.0, 4.0]], **NAMES)
    assert matrix.accuracy() == pytest.approx((0.6 + 0.4) / 2)
    assert round(matrix.accuracy(), 1) == 0.5, "a number, not an array without dimensions"
    assert matrix.accuracy([0.9, 0.1]) == pytest.approx(0.58)
    assert matrix.accuracy(correct={"no": "no", "yes": ["yes", "skip"]}) == pytest.approx((0.6 + 0.8) / 2)
    assert "no: 0.60" in repr(matrix)


def test_a_static_track_holds_at_all_times():
    track = cg.ConfusionTrack.static(ids=["a", "b"], concentration=np.full((2, 2, 3), 2.0), **NAMES)
    assert track.inference == "static"
    assert np.array_equal(track.at("2026-01-01").concentration, track.latest().concentration)
    assert len(track.of("a")) == 0
    assert np.array_equal(track.of("a").at("2026-01-01").concentration, np.full((2, 3), 2.0))
    assert track.of("a").latest().mean[0].tolist() == [1 / 3] * 3
    frame = track.to_frame()
    assert list(frame.columns) == ["volunteer", "class", "label", "mean", "concentration"]
    assert len(frame) == 12


def test_a_track_as_a_frame(fit):
    frame = fit.confusion.to_frame()
    assert len(frame) == 6 * 4
    row = frame[
        (frame["volunteer"] == "bert") & (frame["time"] == 3) & (frame["class"] == "yes") & (frame["label"] == "no")
    ]
    assert row["concentration"].tolist() == [fit.confusion.of("bert").concentration[1, 1, 0]]
    assert row["observations"].tolist() == [(fit.confusion.times <= 3).sum()]
    own = fit.confusion.of("bert")
    columns = ["time", "observations", "class", "label", "mean", "concentration"]
    assert own.to_frame().equals(frame.loc[frame["volunteer"] == "bert", columns].reset_index(drop=True))
    assert "observations" not in replace(own, observations=None).to_frame()
    assert fit.confusion.to_frame(kind="polars").shape == frame.shape
    assert fit.confusion.to_frame(kind="arrow").num_rows == len(frame)


def test_the_repr_tells_what_a_track_holds(fit):
    assert repr(fit.confusion) == "ConfusionTrack(3 volunteers, 6 steps, smoothed, 2 classes x 2 labels)"
    assert repr(fit.confusion.latest()) == "ConfusionSnapshot(3 volunteers, 2 classes x 2 labels)"
    assert repr(fit.confusion.of("anna")).startswith("ConfusionHistory of 'anna': 3 steps")
    with pytest.raises(UnknownIdError, match="Did you mean 'anna'"):
        fit.confusion.of("ana")


def test_accuracy_interval_holds_draws_of_the_accuracy():
    """Ends of the interval against quantiles of sampled confusion matrices."""
    concentration = np.array([[[8.0, 2.0, 1.0], [1.0, 3.0, 9.0]]])
    snapshot = cg.ConfusionSnapshot(ids=["anna"], concentration=concentration, classes=("no", "yes"), labels=(-1, 1, 3))
    correct = {"no": -1, "yes": [1, 3]}
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(row, 200_000) for row in concentration[0]]
    draws = 0.7 * rows[0][:, 0] + 0.3 * rows[1][:, 1:].sum(axis=1)
    low, high = snapshot.accuracy_interval(0.9, class_probs=[0.7, 0.3], correct=correct)
    assert np.allclose([low[0], high[0]], np.quantile(draws, [0.05, 0.95]), atol=0.01)
    mean = snapshot.accuracy([0.7, 0.3], correct=correct)
    assert low[0] < mean[0] < high[0]


def test_before_a_moment_is_without_its_own_responses():
    track = cg.ConfusionTrack(
        ids=["a", "b"],
        starts=[0, 2, 3],
        times=[1, 3, 3],
        concentration=np.arange(2.0, 5.0)[:, None, None] * np.ones((3, 2, 2)),
        initial=np.ones((2, 2)),
        classes=["no", "yes"],
        labels=["no", "yes"],
        clock=cg.Clock("number"),
    )
    for moment, before, at in ((0, [1, 1], [1, 1]), (1, [1, 1], [2, 1]), (3, [2, 1], [3, 4]), (4, [3, 4], [3, 4])):
        assert track.before(moment).concentration[:, 0, 0].tolist() == before
        assert track.at(moment).concentration[:, 0, 0].tolist() == at
    static = cg.ConfusionTrack.static(
        ids=["a"], concentration=np.ones((1, 2, 2)), classes=["no", "yes"], labels=["no", "yes"]
    )
    assert static.before(0).concentration.tolist() == static.latest().concentration.tolist()
