"""What becomes of communities: small stories whose events are known, and sums that must come out."""

import numpy as np
import pytest
from builders import communities_of, track_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.core.community_events import GROWTH_FACTOR, find_events, find_moves, stable_participation
from crowdgraph.core.evidence import Evidence
from crowdgraph.errors import ResultError


def events_of(*snapshots):
    """The events of assignments, one string for each snapshot with a digit for each volunteer, "." for none."""
    assignment = np.array([[-1 if one == "." else int(one) for one in row] for row in snapshots])
    return [
        (event.snapshot, event.event, event.community, event.other, event.volunteers)
        for event in find_events(assignment, int(assignment.max()) + 1)
    ]


def test_nothing_happens_to_those_who_stay():
    assert events_of("000111", "000111") == [(0, "born", 0, -1, 3), (0, "born", 1, -1, 3)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # Newcomers make a community of their own, others join one.
        ("0000....", "00001111", [(1, "born", 1, -1, 4)]),
        ("0000....", "00000000", [(1, "grew", 0, -1, 4)]),
        # Half of a community goes its own way; a third of the newcomers does not make that a split.
        ("00000000", "00001111", [(1, "shrank", 0, -1, 4), (1, "split", 1, 0, 4)]),
        ("000000....", "0000111111", [(1, "shrank", 0, -1, 2), (1, "born", 1, -1, 6)]),
        # One joins another, or is scattered.
        ("00001111", "00000000", [(1, "grew", 0, -1, 4), (1, "merged", 1, 0, 4)]),
        ("000011112222", "000000012222", [(1, "grew", 0, -1, 3), (1, "shrank", 1, -1, 3), (1, "moved", 1, 0, 3)]),
        ("00000001122", "0000000.0..", [(1, "ended", 1, -1, 2), (1, "ended", 2, -1, 2)]),
        # One volunteer moves.
        ("00000001111111", "00000000111111", [(1, "moved", 1, 0, 1)]),
    ],
)
def test_what_happens_has_a_name(before, after, expected):
    result = [event for event in events_of(before, after) if event[0] == 1]
    assert result == expected


def test_a_community_that_was_lost_returns():
    events = events_of("000111", "000...", "000111")
    assert events[2:] == [(1, "ended", 1, -1, 3), (2, "returned", 1, -1, 3)]


def test_empty_snapshots_are_passed_over():
    assert events_of("......", "000111", "......", "000111") == [(1, "born", 0, -1, 3), (1, "born", 1, -1, 3)]


assignments = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(-1, k - 1), min_size=7, max_size=7), min_size=1, max_size=5).map(
        lambda rows: (np.array(rows), k)
    )
)


@given(assignments)
def test_events_agree_with_sizes(case):
    assignment, k = case
    for event in find_events(assignment, k):
        now = assignment[event.snapshot]
        assert event.after == np.count_nonzero(now == event.community)
        if event.event in ("born", "split", "returned"):
            assert event.before == 0 < event.after
        elif event.event in ("ended", "merged"):
            assert event.after == 0 < event.before
        elif event.event == "grew":
            assert event.after >= GROWTH_FACTOR * event.before > 0
        elif event.event == "shrank":
            assert event.before >= GROWTH_FACTOR * event.after > 0
        else:
            assert event.event == "moved"
            assert min(event.before, event.after, event.volunteers) > 0
            assert event.other != event.community
        assert (event.other >= 0) == (event.event in ("split", "merged", "moved"))


@given(assignments)
def test_sure_moves_are_those_of_assignments(case):
    assignment, k = case
    participation = np.eye(k + 1)[assignment][:, :, :k]
    for move in find_moves(participation, assignment):
        assert assignment[move.snapshot, move.volunteer] == move.target != move.source
        assert move.change == 1
        # Some time before the volunteer was there, and the community still has members.
        assert (assignment[: move.snapshot, move.volunteer] == move.source).any()
        assert (assignment[move.snapshot] == move.source).any()


def test_a_move_that_takes_its_time_goes_from_end_to_end():
    main = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1, 1]])
    bert = [[1.0, 0.0], [0.6, 0.4], [0.4, 0.6], [0.1, 0.9]]
    participation = np.array([[[1, 0], share, [0, 1]] for share in bert])
    (move,) = find_moves(participation, main)
    assert move[:4] == (2, 1, 0, 1)
    assert_allclose(move.change, 0.9)


def test_who_passes_through_a_community_of_those_on_the_way_moved_from_end_to_end():
    main = np.array([[0, 0, 1, 1], [0, 2, 2, 1], [0, 1, 0, 1]])
    result = find_moves(np.eye(3)[main], main)
    assert [move[:4] for move in result] == [(2, 1, 0, 1), (2, 2, 1, 0)]


def test_it_does_not_matter_who_leaves_a_passing_community_first():
    main = np.array([[0, 0, 0, 0, 1], [0, 0, 2, 2, 1], [0, 0, 1, 2, 1], [0, 0, 1, 1, 1]])
    assert [move[1:4] for move in find_moves(np.eye(3)[main], main)] == [(2, 0, 1), (3, 0, 1)]


def test_who_joins_a_new_community_is_not_merged_into_it():
    events = events_of("0000001111111111", "2222222222211111")
    assert (1, "ended", 0, -1, 6) in events
    assert (1, "split", 2, 0, 6) in events


def test_a_split_is_no_move():
    main = np.array([[0, 0, 0, 0], [0, 0, 1, 1]])
    assert find_moves(np.eye(2)[main], main) == []


@given(st.integers(0, 10**6))
def test_stability_is_the_share_that_stays(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(3), (4, 6))
    shares[1] = 0
    shares[rng.random((4, 6)) < 0.2] = 0
    main = np.where(shares.any(axis=2), shares.argmax(axis=2), -1)
    result = stable_participation(shares, main)
    assert np.isnan(result[:2]).all()
    for last, following in ((0, 2), (2, 3)):
        common = [
            sum(min(shares[last, v, k], shares[following, v, k]) for k in range(3))
            for v in range(6)
            if main[last, v] >= 0 <= main[following, v]
        ]
        if common:
            assert_allclose(result[following], np.mean(common))


def test_a_track_reads_its_snapshots():
    early = communities_of([[1, 0], [1, 0]], ids=["a", "b"], modularity=0.1)
    late = communities_of([[1, 0], [0.3, 0.7], [0, 0]], ids=["a", "b", "c"], modularity=0.2)
    track = cg.CommunityTrack(
        ids=["a", "b", "c"],
        times=[1, 2],
        counts=[10, 20],
        snapshots=(early, late),
        clock=cg.Clock("number"),
        method="by hand",
    )
    assert track.n_communities.tolist() == [1, 2]
    assert track.modularity.tolist() == [0.1, 0.2]
    assert track.of("b").tolist() == [[1, 0], [0.3, 0.7]]
    assert track.of("c").tolist() == [[0, 0], [0, 0]]
    assert track[0] is early
    assert len(track) == 2


def test_reasons_and_confidence_are_of_every_snapshot():
    rows = [[0, 0, 1], [0, 1, 1]]
    track = track_of(rows, reasons=["few answers", ""], confidence=[[np.nan, np.nan], [0.5, 1]])
    assert track.reasons == ("few answers", "")
    assert track.confidence[1].tolist() == [0.5, 1]
    with pytest.raises(ResultError, match="as many times and counts as snapshots"):
        track_of(rows, reasons=[""])
    with pytest.raises(ResultError, match="confidence"):
        track_of(rows, confidence=[[0.5, 1]])
    with pytest.raises(ResultError, match="between 0 and 1"):
        track_of(rows, confidence=[[np.nan, np.nan], [0.5, 1.1]])


def sightings_of(*lines, unclear, apparent=()):
    assignment = np.array([[-1 if one == "." else int(one) for one in line] for line in lines])
    events = find_events(assignment, int(assignment.max()) + 1, unclear=unclear, apparent=apparent)
    return [(event.snapshot, event.event, event.community, event.other) for event in events]


def test_what_is_seen_after_or_before_an_unclear_snapshot_is_no_event():
    lines = "00000000", "00001111", "00000000"
    assert sightings_of(*lines, unclear=[True, False, True]) == [
        (0, "born", 0, -1),
        (1, "first seen", 1, -1),
        (2, "no longer seen", 1, -1),
    ]
    assert (1, "split", 1, 0) in sightings_of(*lines, unclear=[False] * 3)
    assert (1, "split", 1, 0) in sightings_of(*lines, unclear=[True] * 3)


def test_snapshots_without_communities_do_not_hide_the_last_clear_one():
    lines = "00001111", "........", "00000000"
    assert (2, "merged", 1, 0) in sightings_of(*lines, unclear=[False, False, False])
    assert (2, "no longer seen", 1, -1) in sightings_of(*lines, unclear=[False, True, True])


def test_apparent_splits_and_mergers_are_sightings():
    lines = "00000000", "00001111", "00000000"
    events = sightings_of(*lines, unclear=[False] * 3, apparent=[(1, 1, 0), (2, 1, 0)])
    assert (1, "first seen", 1, 0) in events
    assert (2, "no longer seen", 1, 0) in events
    assert not {"split", "merged"} & {event for _, event, _, _ in events}


def test_stability_is_unknown_where_nobody_has_communities_twice():
    together, apart = np.eye(2)[[0, 1]], np.eye(2)[[0, 0]]
    participation = np.stack([together * [[1], [0]], together * [[0], [1]], apart])
    assignment = np.array([[0, -1], [-1, 1], [0, 0]])
    result = stable_participation(participation, assignment)
    assert np.isnan(result[:2]).all()
    assert result[2] == 0


def test_a_track_knows_how_clear_its_snapshots_were():
    evidence = [
        Evidence(agreement=1, modularity=0.2, null_modularity=[0.1, 0.2], structured=structured)
        for structured in (False, True)
    ]
    unclear, clear = (communities_of([0, 0, 1], evidence=one) for one in evidence)
    nobody = communities_of(np.zeros((0, 2)))
    track = cg.CommunityTrack(
        ids=["v0", "v1", "v2"],
        times=[1, 2, 3, 4, 5],
        counts=[1, 2, 3, 4, 5],
        snapshots=(nobody, unclear, nobody, clear, nobody),
        clock=cg.Clock("number"),
        method="by hand",
    )
    assert track.unclear == (False, True, True, False, False)
    assert_allclose(track.stability, [np.nan] * 3 + [1.0, np.nan])
