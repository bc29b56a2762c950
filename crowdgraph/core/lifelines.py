"""What becomes of communities from one snapshot to the next, by rules that a person can check."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crowdgraph.core.columns import Array

__all__ = ["CommunityEvent", "Move", "lifelines", "moves", "stability"]

# A community grew, or shrank, if it became larger or smaller by this factor.
FACTOR = 1.2


class CommunityEvent(NamedTuple):
    """Something that happened to a community between two snapshots.

    Attributes
    ----------
    snapshot
        The snapshot at which it is seen first.
    event
        ``"born"``: the community has members for the first time. ``"split"``: the same, but at least half of them had a
        community before, more than half of these `other`. ``"returned"``: it has members again. ``"ended"``: it has
        none any more. ``"merged"``: the same, and more than half of them are in `other` now, which was there before.
        ``"grew"`` and ``"shrank"``: it became larger or smaller by a factor of 1.2 or more. ``"moved"``: `volunteers`
        went from it to `other`, both of which stay.
    community, other
        The community, and the one from or to which its members went; -1 for none.
    before, after
        How many volunteers were and are assigned to the community.
    volunteers
        How many were in the other community before, or are in it now; by how many it grew or shrank; else all members.
    """

    snapshot: int
    event: str
    community: int
    other: int
    before: int
    after: int
    volunteers: int


class Move(NamedTuple):
    """A volunteer who went from one community to another, and the share of participation that went along."""

    snapshot: int
    volunteer: int
    source: int
    target: int
    change: float


def lifelines(assignment: Array, n_communities: int) -> list[CommunityEvent]:
    """All events, in order of snapshots.

    Parameters
    ----------
    assignment
        The community of each volunteer at each snapshot, of shape (T, V); -1 for none. Snapshots at which nobody has
        one are passed over.
    n_communities
        How many communities there are in all.
    """
    events: list[CommunityEvent] = []
    seen = np.zeros(n_communities, dtype=bool)
    before = np.full(assignment.shape[1], -1)
    for snapshot in np.flatnonzero((assignment >= 0).any(axis=1)):
        after = assignment[snapshot]
        events += _events(int(snapshot), before, after, seen)
        seen |= np.bincount(after[after >= 0], minlength=n_communities) > 0
        before = after
    return events


def moves(participation: Array, assignment: Array) -> list[Move]:
    """Volunteers who went from one community to another, both of which have members before and after, in order of time.

    Those of a community that splits, ends or is merged did not move: their community did. How much moved is told by
    the two snapshots, before and after, at which the volunteer's community was clearest: a move may take several.

    Parameters
    ----------
    participation
        Of each volunteer in each community at each snapshot, of shape (T, V, K).
    assignment
        The community of each volunteer at each snapshot, of shape (T, V); -1 for none.
    """
    known = np.flatnonzero((assignment >= 0).any(axis=1))
    shares, main = participation[known], assignment[known]
    alive = np.array([np.bincount(row[row >= 0], minlength=shares.shape[2]) > 0 for row in main])
    found = []
    for volunteer in np.flatnonzero((main[1:] != main[:-1]).any(axis=0)):
        for before, after in pairwise(_stays(main[:, volunteer], alive)):
            source, target = int(main[before[0], volunteer]), int(main[after[0], volunteer])
            if source != target and alive[after[0], source] and alive[before[-1], target]:
                left, entered = (
                    shares[stay[shares[stay, volunteer, k].argmax()], volunteer]
                    for stay, k in ((before, source), (after, target))
                )
                change = float(np.abs(entered - left).sum() / 2)
                found.append(Move(int(known[after[0]]), int(volunteer), source, target, change))
    return sorted(found)


def _stays(main: Array, alive: Array) -> list[Array]:
    """The snapshots at which a volunteer stays in one community, one stretch after another.

    Stretches without a community are left out, and those on the way in one that has no members yet when the stretch
    before ends, and none any more when the one after ends: volunteers who are between two communities may look like one
    of their own.
    """
    stretches = np.split(np.arange(len(main)), np.flatnonzero(np.diff(main)) + 1)
    stays = [stretch for stretch in stretches if main[stretch[0]] >= 0]
    passing = [
        not alive[before[-1], main[stay[0]]] and not alive[after[-1], main[stay[0]]]
        for before, stay, after in zip(stays, stays[1:], stays[2:], strict=False)
    ]
    return [stay for place, stay in enumerate(stays) if not (0 < place < len(stays) - 1 and passing[place - 1])]


def stability(participation: Array, assignment: Array) -> Array:
    r"""The share of participation that stayed where it was since the last snapshot, of shape (T,); NaN where unknown.

    It is the mean of :math:`\sum_k \min(p_k, p'_k)` over the volunteers who have communities at both.
    """
    shares = np.full(len(assignment), np.nan)
    for last, following in _successive(assignment):
        both = (assignment[last] >= 0) & (assignment[following] >= 0)
        if both.any():
            kept = np.minimum(participation[last, both], participation[following, both])
            shares[following] = kept.sum(axis=1).mean()
    return shares


def _successive(assignment: Array) -> Iterator[tuple[int, int]]:
    """Snapshots and those before them, where somebody has a community."""
    known = np.flatnonzero((assignment >= 0).any(axis=1)).tolist()
    yield from pairwise(known)


def _events(snapshot: int, before: Array, after: Array, seen: Array) -> Iterator[CommunityEvent]:
    n = len(seen)
    old, new = (np.bincount(side[side >= 0], minlength=n) for side in (before, after))
    both = (before >= 0) & (after >= 0)
    # How many went from each community to each.
    went = np.bincount(before[both] * n + after[both], minlength=n * n).reshape(n, n)
    for k in range(n):
        sizes = int(old[k]), int(new[k])
        if new[k] and not old[k]:
            known, source = went[:, k].sum(), int(went[:, k].argmax())
            if seen[k]:
                yield CommunityEvent(snapshot, "returned", k, -1, *sizes, int(new[k]))
            elif 2 * known >= new[k] and 2 * went[source, k] > known:
                yield CommunityEvent(snapshot, "split", k, source, *sizes, int(went[source, k]))
            else:
                yield CommunityEvent(snapshot, "born", k, -1, *sizes, int(new[k]))
        elif old[k] and not new[k]:
            target = int(went[k].argmax())
            if 2 * went[k, target] > old[k] and old[target]:
                yield CommunityEvent(snapshot, "merged", k, target, *sizes, int(went[k, target]))
            else:
                yield CommunityEvent(snapshot, "ended", k, -1, *sizes, int(old[k]))
        elif new[k] >= FACTOR * old[k] > 0:
            yield CommunityEvent(snapshot, "grew", k, -1, *sizes, int(new[k] - old[k]))
        elif old[k] >= FACTOR * new[k] > 0:
            yield CommunityEvent(snapshot, "shrank", k, -1, *sizes, int(old[k] - new[k]))
    lasting = np.flatnonzero((old > 0) & (new > 0))
    for left, entered in np.argwhere(went):
        if left != entered and left in lasting and entered in lasting:
            sizes = int(old[left]), int(new[left])
            yield CommunityEvent(snapshot, "moved", int(left), int(entered), *sizes, int(went[left, entered]))
