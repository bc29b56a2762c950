"""Crowds whose groups arrive and whose volunteers move at known times: are they followed?"""

import numpy as np
import pytest
from builders import ARRIVALS, moving

import crowdgraph as cg

pytestmark = pytest.mark.science

SEEDS = range(10)
TIMES = np.arange(1, 7) / 6
# The snapshot at which each group, and those who move at the moment 0.5, can be seen first.
FIRST_SEEN = [int(np.searchsorted(TIMES, arrival, side="right")) for arrival in ARRIVALS]
MOVED = 3
# Behaviour changes at once, so what came before is to be forgotten fast.
MODEL = cg.DynIBCC(confusion_prior=[[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], class_prior=[100, 100], noise_scale=3.0)


@pytest.fixture(scope="module")
def tracks():
    found = []
    for seed in SEEDS:
        graph, before, after = moving(seed)
        track = cg.dynamics.over_time(graph, times=TIMES.tolist(), model=MODEL, seed=seed)
        found.append((track, graph, before, after))
    return found


def numbers(track, before, after):
    """The number of the community to which most of each planted group are assigned, (T, G); -1 before it arrives."""
    found = np.full((len(TIMES), len(ARRIVALS)), -1)
    for place in range(len(TIMES)):
        group = before if place < MOVED else after
        for code, first in enumerate(FIRST_SEEN):
            members = track.assignment[place, (group == code)]
            if place >= first:
                found[place, code] = np.bincount(members[members >= 0]).argmax()
    return found


def test_groups_that_arrive_and_volunteers_who_move_are_followed(tracks):
    expected = [sum(first <= place for first in FIRST_SEEN) for place in range(len(TIMES))]
    right = kept = pairs = true_moves = found_moves = both = dated = births = 0
    print(
        "\n| seed | communities | identity kept | movers found, of, right | dated | confidence |"
        "\n|--:|---|---|---|---|--:|"
    )
    for seed, (track, graph, before, after) in zip(SEEDS, tracks, strict=True):
        right += track.n_communities.tolist() == expected
        who = numbers(track, before, after)
        usual = [np.bincount(column[column >= 0]).argmax() for column in who.T]
        same = [(who[place, code] == usual[code], place, code) for place, code in np.argwhere(who >= 0)]
        # Two groups that are told as one have one number; only one of them can be said to have kept it.
        taken = [[int(number) for number in row if number >= 0] for row in who]
        own = sum(ok and taken[place].count(who[place, code]) == 1 for ok, place, code in same)
        kept, pairs = kept + own, pairs + len(same)
        moves = track.moves_to_frame()
        planted = set(graph.volunteers.ids[before != after].tolist())
        found = set(moves["volunteer"].tolist())
        on_time = set(moves.loc[moves["count"] == track.counts[MOVED], "volunteer"].tolist()) & planted
        true_moves, found_moves = true_moves + len(planted), found_moves + len(found)
        both, dated = both + len(planted & found), dated + len(on_time)
        born = {event.community: event.snapshot for event in track.events if event.event in ("born", "split")}
        births += sum(born.get(int(usual[code])) == first for code, first in enumerate(FIRST_SEEN))
        shares = f"{own} of {len(same)} | {len(found)}, {len(planted)}, {len(planted & found)} | {len(on_time)}"
        counts = ", ".join(map(str, track.n_communities))
        print(f"| {seed} | {counts} | {shares} | {np.nanmean(track.confidence):.2f} |", flush=True)
    precision, recall = both / found_moves, both / true_moves
    print(
        f"\nright numbers in {right} of {len(SEEDS)}; identity kept {kept / pairs:.1%}; movers: precision "
        f"{precision:.2f}, recall {recall:.2f}, dated right {dated / both:.2f}; births dated right {births} of "
        f"{len(SEEDS) * len(ARRIVALS)}"
    )
    assert right >= 8
    assert kept >= 0.95 * pairs
    assert precision >= 0.8
    assert recall >= 0.8
    assert dated >= 0.8 * both
    assert births >= 0.9 * len(SEEDS) * len(ARRIVALS)
