"""What happens to communities over time: they appear, split, merge, grow, shrink and end, and volunteers move."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array

__all__ = ["CommunityEvent", "Move"]

# A community grew or shrank if its size changed by at least this factor.
GROWTH_FACTOR = 1.2
# What remains of an event that may be due to the detector alone.
SIGHTINGS = dict.fromkeys(("born", "split", "returned"), "first seen") | dict.fromkeys(
    ("ended", "merged"), "no longer seen"
)


class CommunityEvent(NamedTuple):
    """An event in the life of a community between two snapshots.

    Attributes
    ----------
    snapshot
        The snapshot at which it is first seen.
    event
        ``"born"``: the community has members for the first time. ``"split"``: the same, but at least half of them had a
        community before, and more than half of these had `other`. ``"returned"``: it has members again. ``"ended"``:
        it has no members any more. ``"merged"``: the same, and more than half of them are now in `other`, which existed
        before. ``"grew"`` and ``"shrank"``: its size changed by a factor of 1.2 or more. ``"moved"``: `volunteers`
        went from it to `other`, and both communities last. ``"first seen"`` and ``"no longer seen"`` stand for all of
        these where the detector may merely have had more, or less, to go by: there was no clear evidence for
        communities at one of the two snapshots, or the members of the community and of `other` were apart before it is
        seen, or still are after it is not.
    community, other
        The community, and the one from or to which its members went; -1 for none.
    before, after
        How many volunteers were and are assigned to the community.
    volunteers
        How many came from the other community, or went to it; by how many it grew or shrank; else all members.
    """

    snapshot: int
    event: str
    community: int
    other: int
    before: int
    after: int
    volunteers: int


class Move(NamedTuple):
    """A move of a volunteer from one community to another, and the share of participation that moved."""

    snapshot: int
    volunteer: int
    source: int
    target: int
    change: float


def find_events(
    assignment: Array,
    n_communities: int,
    *,
    unclear: Sequence[bool] | None = None,
    apparent: Collection[tuple[int, int, int]] = (),
) -> list[CommunityEvent]:
    """Return all events, in order of snapshots.

    Parameters
    ----------
    assignment
        The community of each volunteer at each snapshot, of shape (T, V); -1 for none. Snapshots at which nobody has
        a community are skipped.
    n_communities
        The number of communities.
    unclear
        For each snapshot whether there was no clear evidence for communities; there was at all if left out.
    apparent
        Splits and mergers that are only apparent, as (snapshot, community, other).
    """
    events: list[CommunityEvent] = []
    seen = np.zeros(n_communities, dtype=bool)
    before, last = np.full(assignment.shape[1], -1), -1
    for snapshot in np.flatnonzero((assignment >= 0).any(axis=1)).tolist():
        after = assignment[snapshot]
        changes = _events(snapshot, before, after, seen)
        if unclear is not None and last >= 0 and unclear[last] != unclear[snapshot]:
            events += _sightings(changes)
        else:
            events += (_without_apparent(event, apparent) for event in changes)
        seen |= np.bincount(after[after >= 0], minlength=n_communities) > 0
        before, last = after, snapshot
    return events


def _sightings(events: Iterable[CommunityEvent]) -> Iterator[CommunityEvent]:
    """Return what can be said of events between two snapshots of which one has no clear evidence: who is seen."""
    for event in events:
        if event.event in SIGHTINGS:
            volunteers = max(event.before, event.after)
            yield event._replace(event=SIGHTINGS[event.event], other=-1, volunteers=volunteers)


def _without_apparent(event: CommunityEvent, apparent: Collection[tuple[int, int, int]]) -> CommunityEvent:
    if (event.snapshot, event.community, event.other) in apparent and event.event in ("split", "merged"):
        return event._replace(event=SIGHTINGS[event.event])
    return event


def find_moves(participation: Array, assignment: Array) -> list[Move]:
    """Return the moves of volunteers between communities that have members before and after, in order of time.

    Members of a community that splits, ends or merges do not move: their community does. A move may take several
    snapshots, so its size is measured between the snapshots, before and after, at which the volunteer's community was
    clearest.

    Parameters
    ----------
    participation
        The participation of each volunteer in each community at each snapshot, of shape (T, V, K).
    assignment
        The community of each volunteer at each snapshot, of shape (T, V); -1 for none.
    """
    occupied = np.flatnonzero((assignment >= 0).any(axis=1))
    shares, main = participation[occupied], assignment[occupied]
    has_members = np.array([np.bincount(row[row >= 0], minlength=shares.shape[2]) > 0 for row in main])
    moves = []
    for volunteer in np.flatnonzero((main[1:] != main[:-1]).any(axis=0)):
        for before, after in pairwise(_stays(main[:, volunteer], has_members)):
            source, target = int(main[before[0], volunteer]), int(main[after[0], volunteer])
            if source != target and has_members[after[0], source] and has_members[before[-1], target]:
                left, entered = (
                    shares[stay[shares[stay, volunteer, k].argmax()], volunteer]
                    for stay, k in ((before, source), (after, target))
                )
                change = float(np.abs(entered - left).sum() / 2)
                moves.append(Move(int(occupied[after[0]]), int(volunteer), source, target, change))
    return sorted(moves)


def _stays(main: Array, has_members: Array) -> list[Array]:
    """Return the stretches of snapshots during which a volunteer stays in one community, in order of time.

    Stretches without a community are left out. So are stretches in a transient community, which has no members yet when
    the stretch before ends and none any more when the one after ends: volunteers on their way between two communities
    may look like one of their own.
    """
    stretches = np.split(np.arange(len(main)), np.flatnonzero(np.diff(main)) + 1)
    stays = [stretch for stretch in stretches if main[stretch[0]] >= 0]
    transient = [
        not has_members[before[-1], main[stay[0]]] and not has_members[after[-1], main[stay[0]]]
        for before, stay, after in zip(stays, stays[1:], stays[2:], strict=False)
    ]
    return [stay for index, stay in enumerate(stays) if not (0 < index < len(stays) - 1 and transient[index - 1])]


def stable_participation(participation: Array, assignment: Array) -> Array:
    r"""Return the share of participation that stayed in its community since the last snapshot, (T,); NaN if unknown.

    It is the mean of :math:`\sum_k \min(p_k, p'_k)` over the volunteers who have communities at both snapshots.
    """
    shares = np.full(len(assignment), np.nan)
    for last, following in _successive(assignment):
        both = (assignment[last] >= 0) & (assignment[following] >= 0)
        if both.any():
            common = np.minimum(participation[last, both], participation[following, both])
            shares[following] = common.sum(axis=1).mean()
    return shares


def _successive(assignment: Array) -> Iterator[tuple[int, int]]:
    """Yield each snapshot with the next one at which somebody has a community."""
    yield from pairwise(np.flatnonzero((assignment >= 0).any(axis=1)).tolist())


def _events(snapshot: int, before: Array, after: Array, seen: Array) -> Iterator[CommunityEvent]:
    n = len(seen)
    old, new = (np.bincount(side[side >= 0], minlength=n) for side in (before, after))
    both = (before >= 0) & (after >= 0)
    # The number of volunteers who went from each community to each.
    went = np.bincount(before[both] * n + after[both], minlength=n * n).reshape(n, n)
    for k in range(n):
        sizes = int(old[k]), int(new[k])
        if new[k] and not old[k]:
            n_former, source = went[:, k].sum(), int(went[:, k].argmax())
            if seen[k]:
                yield CommunityEvent(snapshot, "returned", k, -1, *sizes, int(new[k]))
            elif 2 * n_former >= new[k] and 2 * went[source, k] > n_former:
                yield CommunityEvent(snapshot, "split", k, source, *sizes, int(went[source, k]))
            else:
                yield CommunityEvent(snapshot, "born", k, -1, *sizes, int(new[k]))
        elif old[k] and not new[k]:
            target = int(went[k].argmax())
            if 2 * went[k, target] > old[k] and old[target]:
                yield CommunityEvent(snapshot, "merged", k, target, *sizes, int(went[k, target]))
            else:
                yield CommunityEvent(snapshot, "ended", k, -1, *sizes, int(old[k]))
        elif new[k] >= GROWTH_FACTOR * old[k] > 0:
            yield CommunityEvent(snapshot, "grew", k, -1, *sizes, int(new[k] - old[k]))
        elif old[k] >= GROWTH_FACTOR * new[k] > 0:
            yield CommunityEvent(snapshot, "shrank", k, -1, *sizes, int(old[k] - new[k]))
    lasting = np.flatnonzero((old > 0) & (new > 0))
    for left, entered in np.argwhere(went):
        if left != entered and left in lasting and entered in lasting:
            sizes = int(old[left]), int(new[left])
            yield CommunityEvent(snapshot, "moved", int(left), int(entered), *sizes, int(went[left, entered]))
