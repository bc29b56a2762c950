"""Changes of a volunteer's confusion: moves beyond the uncertainty, and nothing else."""

import datetime as dt
from itertools import pairwise
from statistics import NormalDist
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from builders import history_of
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.core.confusion_changes import ConfusionChange

N = 200


def two(second):
    """A row of two labels."""
    return np.column_stack([1 - second, second])


def flat(length=N, width=2):
    return np.full((length, width), 1 / width)


def spans(changes):
    return [(change.true_class, change.label, change.start, change.stop) for change in changes]


RAMP = np.interp(np.arange(N), [60, 160], [0.2, 0.8])
JUMP = np.where(np.arange(N) < 120, 0.8, 0.3)
THERE_AND_BACK = np.interp(np.arange(N), [20, 60, 100, 140], [0.2, 0.8, 0.8, 0.2])


def test_a_ramp_is_one_change():
    (change,) = history_of(two(RAMP), flat()).changes()
    assert isinstance(change, ConfusionChange)
    assert (change.true_class, change.label) == ("A", "b")
    assert (change.start, change.stop, change.time) == (65, 155, 110)
    np.testing.assert_allclose(change.before, [0.77, 0.23])
    np.testing.assert_allclose(change.after, [0.23, 0.77])
    assert change.size == pytest.approx(0.54)
    assert type(change.size) is float
    assert not change.before.flags.writeable


def test_a_jump_is_one_change_between_neighbours():
    (change,) = history_of(flat(), two(JUMP)).changes()
    assert (change.true_class, change.start, change.stop, change.time) == ("B", 119, 120, 120)
    assert change.size == pytest.approx(-0.5)


def test_there_and_back_are_two_changes():
    there, back = history_of(two(THERE_AND_BACK)).changes()
    assert (there.start, there.stop, there.time) == (22, 58, 40)
    assert (back.start, back.stop, back.time) == (102, 138, 120)
    assert there.size == pytest.approx(-back.size)
    assert there.size > 0.5
    # A peak of one step belongs to both.
    peak = np.full(N, 0.2)
    peak[100] = 0.8
    there, back = history_of(two(peak)).changes()
    assert (there.start, there.stop, back.start, back.stop) == (99, 100, 100, 101)


def test_noise_within_the_uncertainty_is_no_change():
    rng = np.random.default_rng(0)
    noise = 0.5 + rng.uniform(-0.06, 0.06, N)
    # At a total of 100 the standard deviation is 0.05, and 0.12 lies within 1.96 * sqrt(2) of it.
    assert history_of(two(noise)).changes() == ()
    assert history_of(two(noise), total=1000.0).changes() != ()
    # Noise upon a ramp is still one ramp, with the half of it at the same time.
    (change,) = history_of(two(RAMP + (noise - 0.5) / 2)).changes()
    assert abs(change.time - 110) < 20
    assert change.start < 100 < 120 < change.stop


def test_of_three_labels_the_one_that_moved_most_is_named():
    share = np.interp(np.arange(N), [50, 150], [0, 1])[:, None]
    row = (1 - share) * [0.6, 0.3, 0.1] + share * [0.2, 0.2, 0.6]
    (change,) = history_of(row, labels=(-1, 1, 3)).changes()
    assert change.label == 3
    assert change.size == pytest.approx(change.after[2] - change.before[2])
    assert change.before.sum() == pytest.approx(1)
    # Labels that moved one after the other are named one after the other.
    early, late = (np.arange(N) >= 50)[:, None], (np.arange(N) >= 150)[:, None]
    row = np.array([0.4, 0.4, 0.2]) + early * [-0.3, 0.3, 0.0] + late * [0.0, -0.3, 0.3]
    first, second = history_of(row).changes()
    assert (first.stop, second.stop) == (50, 150)
    assert (first.label, second.label) == ("a", "c")
    assert (first.size, second.size) == pytest.approx((-0.3, 0.3))


def test_rows_change_on_their_own_and_are_sorted_by_time():
    changes = history_of(two(JUMP), flat(), two(RAMP)).changes()
    assert [(change.true_class, change.time) for change in changes] == [("C", 110), ("A", 120)]
    changes = history_of(two(JUMP), flat(), two(1 - JUMP)).changes()
    assert [change.true_class for change in changes] == ["A", "C"]


def test_histories_of_no_and_one_step_do_not_change():
    assert history_of(two(RAMP[:1])).changes() == ()
    track = cg.ConfusionTrack.static(
        ids=["anna"], concentration=np.ones((1, 2, 2)), classes=("A", "B"), labels=("a", "b")
    )
    assert track.of("anna").changes() == ()
    assert history_of(np.ones((N, 1))).changes() == ()


def test_times_are_shown_as_the_clock_shows_them():
    days = np.datetime64("2026-03-01T12:00", "us") + np.arange(N) * np.timedelta64(1, "D")
    (change,) = history_of(two(JUMP), times=days, clock=cg.Clock("datetime", "Europe/Amsterdam")).changes()
    # Summer time has begun.
    assert change.start == dt.datetime(2026, 6, 28, 14, tzinfo=ZoneInfo("Europe/Amsterdam"))
    assert change.time.utcoffset() == dt.timedelta(hours=2)
    (change,) = history_of(two(JUMP), times=days, clock="datetime").changes()
    assert change.stop == dt.datetime(2026, 6, 29, 12)
    (change,) = history_of(two(JUMP), times=np.arange(N) / 4).changes()
    assert (change.start, change.stop) == (29.75, 30.0)
    (change,) = history_of(two(JUMP), times=np.arange(N) * 3, clock="order").changes()
    assert (change.start, change.stop) == (357, 360)
    assert type(change.start) is int


def test_a_doubtful_first_step_hides_no_change():
    """The first step of a filtered history is the lowest and says least; the rise is that from the second."""
    second = np.where(np.arange(N) < 100, 0.3, 0.5)
    second[0] = 0.1
    total = np.full(N, 1000.0)
    total[0] = 1.0
    (change,) = history_of(two(second), total=total).changes()
    assert (change.start, change.stop) == (99, 100)
    second[-1], total[-1] = 0.7, 1.0
    (change,) = history_of(two(second), total=total).changes()
    assert change.time == 100


def test_a_move_that_wavers_is_one_change():
    # The fall to 0.214 is not beyond the uncertainty, though it leaves less than a twentieth of the move.
    (change,) = history_of(two(np.array([0.2, 0.49, 0.214, 0.5])), total=12.2).changes(0.9)
    assert (change.start, change.stop, change.time) == (0, 3, 1)


def test_small_moves_can_be_left_out():
    second = np.where(np.arange(N) < 50, 0.2, np.where(np.arange(N) < 120, 0.3, 0.8))
    history = history_of(flat(), two(second), two(1 - JUMP), total=5000.0)
    assert spans(history.changes()) == [("B", "b", 49, 120), ("C", "b", 119, 120)]
    assert [change.true_class for change in history.changes(min_size=0.55)] == ["B"]
    assert history.changes(min_size=0.61) == ()
    ripple = RAMP + 0.05 * np.sin(np.arange(N))
    assert len(history_of(two(ripple), total=1e6).changes()) > 10
    assert len(history_of(two(ripple), total=1e6).changes(min_size=0.15)) == 1
    # The size that is reported counts, not that with the flat ends.
    assert history_of(two(RAMP)).changes(min_size=0.55) == ()


def test_extreme_concentrations_are_read_like_others():
    sure = np.where(np.arange(N) < 100, 0.0, 1.0)
    (change,) = history_of(two(sure), total=1e300).changes()
    assert change.size == pytest.approx(1)
    assert history_of(two(JUMP), total=1e-3).changes() == ()
    assert len(history_of(two(sure)).changes(1 - 2**-53)) == 1


seeds = st.integers(0, 2**32 - 1)


def walk(seed, length=60, width=3, step=0.25):
    """A row that wanders."""
    steps = np.random.default_rng(seed).normal(0, step, (length, width))
    row = np.exp(steps.cumsum(axis=0))
    return row / row.sum(axis=1, keepdims=True)


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=4),
    st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=20),
    st.floats(0.01, 0.999),
)
def test_a_constant_mean_never_changes(row, total, level):
    row = np.tile(np.array(row) / sum(row), (len(total), 1))
    assert history_of(row, total=np.array(total)).changes(level) == ()


@given(seeds, st.floats(5, 500))
def test_time_reversed_moves_go_the_other_way(seed, total):
    row = walk(seed)
    there = history_of(row, total=total).changes()
    back = history_of(row[::-1], total=total).changes()
    last = len(row) - 1
    mirrored = [(c.label, last - c.stop, last - c.start, -c.size) for c in reversed(back)]
    assert mirrored == [(c.label, c.start, c.stop, c.size) for c in there]


@given(seeds, st.permutations(range(3)), st.floats(5, 500))
def test_permuted_labels_are_permuted_changes(seed, order, total):
    row = walk(seed)
    plain = history_of(row, total=total).changes()
    permuted = history_of(row[:, order], total=total, labels=[("a", "b", "c")[code] for code in order]).changes()
    assert spans(plain) == spans(permuted)
    for left, right in zip(plain, permuted, strict=True):
        np.testing.assert_allclose(left.before[list(order)], right.before)


def quantile(level, n_steps, total):
    """That of a history of states that rest on `total` answers each."""
    return NormalDist().inv_cdf(1 - (1 - level) / 2 / max(1, n_steps / total) ** 2)


def test_long_histories_of_nothing_are_quiet():
    """A steady volunteer, seen through a window of fifty answers."""
    rng = np.random.default_rng(0)
    answers = (rng.random(20_000) < 0.7).astype(float)
    seen = np.convolve(answers, np.full(50, 1 / 50), mode="valid")
    # At the quantile of a single comparison there are more than a hundred.
    assert len(history_of(two(seen), total=50.0).changes()) <= 10


@given(seeds, st.floats(1, 1000), st.floats(0.5, 0.999))
def test_a_monotone_series_changes_as_its_ends_say(seed, total, level):
    second = np.sort(np.random.default_rng(seed).beta(2, 2, 30))
    variance = second * (1 - second) / (total + 1)
    moved = second[-1] - second[0] > quantile(level, len(second), total) * np.sqrt(variance[0] + variance[-1])
    changes = history_of(two(second), total=total).changes(level)
    assert len(changes) == moved
    for change in changes:
        assert change.size >= 0.9 * (second[-1] - second[0]) - 1e-12


@given(seeds, st.floats(5, 500))
def test_legs_are_those_of_a_search_over_all_pairs(seed, total):
    """Of two labels: whether anything moved, against every pair of steps; and moves alternate and do not overlap."""
    second = walk(seed, width=2)[:, 1]
    variance = second * (1 - second) / (total + 1)
    beyond = np.abs(second[:, None] - second) > quantile(0.95, len(second), total) * np.sqrt(
        variance[:, None] + variance
    )
    changes = history_of(two(second), total=total).changes()
    assert bool(changes) == beyond.any()
    for first, then in pairwise(changes):
        assert first.stop <= then.start
        assert first.size * then.size < 0
    for change in changes:
        assert beyond[: change.start + 1, change.stop :].any()


def test_long_histories_are_searched_without_all_pairs():
    rows = [walk(seed, length=30_000, step=0.02) for seed in (0, 1)]
    # All pairs of 30,000 steps would not fit into memory.
    assert len(history_of(*rows).changes(0.999, min_size=0.1)) > 1


def test_changes_of_all_volunteers_are_sorted_by_size():
    steps = np.arange(N)
    small, large = np.where(steps < 80, 0.5, 0.2), np.where(steps < 120, 0.1, 0.9)
    means = np.concatenate([two(small), two(large), flat()])[:, None]
    track = cg.ConfusionTrack(
        ids=["anna", "bert", "cleo"],
        starts=[0, N, 2 * N, 3 * N],
        times=np.tile(steps, 3),
        concentration=100 * means,
        initial=np.ones((1, 2)),
        classes=("A",),
        labels=("a", "b"),
        clock=cg.Clock("number"),
    )
    frame = track.changes_to_frame()
    expected = [(name, change) for name in ("bert", "anna") for change in track.of(name).changes()]
    assert [change.size for _, change in expected] == pytest.approx([0.8, -0.3])
    assert frame[["volunteer", "class", "label", "start", "time", "size"]].values.tolist() == [
        [name, change.true_class, change.label, change.start, change.time, change.size] for name, change in expected
    ]
    assert len(track.changes_to_frame(min_size=0.99, kind="polars")) == 0
