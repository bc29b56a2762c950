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
        none any more. ``"merged"``: the same, and more than half of them are in `other` now. ``"grew"`` and
        ``"shrank"``: it became larger or smaller by a factor of 1.2 or more. ``"moved"``: `volunteers` went from it to
        `other`, both of which stay.
    community, other
        The community, and the one from or to which its members went; -1 for none.
    before, after
        How many volunteers were and are assigned to the community.
    volunteers
        How many were in the other community before, or are in it now; for those who grew or shrank by how many.
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


def moves(participation: Array, assignment: Array) -> Iterator[Move]:
    """Volunteers whose community changed from one snapshot to the next, in order of snapshots.

    Parameters
    ----------
    participation
        Of each volunteer in each community at each snapshot, of shape (T, V, K).
    assignment
        The community of each volunteer at each snapshot, of shape (T, V); -1 for none.
    """
    for last, following in _successive(assignment):
        left, now = assignment[last], assignment[following]
        for volunteer in np.flatnonzero((left >= 0) & (now >= 0) & (left != now)):
            change = np.abs(participation[following, volunteer] - participation[last, volunteer]).sum() / 2
            yield Move(following, int(volunteer), int(left[volunteer]), int(now[volunteer]), float(change))


def stability(participation: Array, assignment: Array) -> Array:
    """The share of participation that stayed where it was since the last snapshot, of shape (T,); NaN where unknown.

    It is the mean of :math:`\\sum_k \\min(p_k, p'_k)` over the volunteers who have communities at both.
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
            if 2 * went[k, target] > old[k]:
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
