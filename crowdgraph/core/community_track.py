"""CommunityTrack: the same communities over time, what happens to them, and who moves between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, lock, object_array, read_only
from crowdgraph.core._parameters import is_integer, is_number
from crowdgraph.core.clock import Clock
from crowdgraph.core.communities import Communities
from crowdgraph.core.result import (
    CodedColumn,
    Columns,
    Result,
    TimeColumn,
    VolunteerIndexed,
    check_ids,
    check_ids_match,
    frozen_copy,
    real_array,
    to_frame,
    unique_ids,
)
from crowdgraph.errors import NotAnnotatedError, ParameterError, ResultError, UnknownIdError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["CommunityEvent", "CommunityTrack", "Move"]

# A community grew or shrank if its size changed by at least this factor.
GROWTH_FACTOR = 1.2


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
        went from it to `other`, and both communities last.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class CommunityTrack(VolunteerIndexed, Result):
    """The same communities at several times: community `k` is column `k` of every snapshot.

    `to_frame` has a row for each snapshot, volunteer with a community and community: the participation.

    Attributes
    ----------
    ids
        All volunteers, of shape (V,); a snapshot may hold some of them.
    times, counts
        The time of each snapshot and the number of responses until then, both of shape (T,).
    snapshots
        The communities at each time, all with the same number of columns.
    clock
        The kind of times.
    method
        The method of the networks whose communities were tracked.
    confidence
        The confidence that community `k` of a snapshot is community `k` of those before, from 0 to 1, of shape (T, K):
        the share of restarts in which it is (or is new, too, for a new community). NaN for communities that are absent,
        or the only one. None if it was not measured.
    reasons
        For each snapshot the reason why it is empty; empty text for those that are not. None if not known.

    Examples
    --------
    >>> names = ["anna", "bert", "cleo"]
    >>> common = {"ids": names, "method": "by hand", "modularity": 0.1}
    >>> early = Communities(participation=[[1, 0], [1, 0], [0, 1]], **common)
    >>> late = Communities(participation=[[1, 0], [0.2, 0.8], [0, 1]], **common)
    >>> track = CommunityTrack(ids=names, times=[1, 2], counts=[10, 20], snapshots=[early, late],
    ...                        clock=Clock("number"), method="by hand")
    >>> track.of("bert")
    array([[1. , 0. ],
           [0.2, 0.8]])
    >>> track.moves_to_frame()[["volunteer", "time", "from", "to"]].values.tolist()
    [['bert', 2, 0, 1]]
    """

    ids: Array
    times: Array
    counts: Array
    snapshots: tuple[Communities, ...]
    clock: Clock
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    confidence: Array | None = None
    reasons: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self._set(
            ids=unique_ids(self.ids, kind="volunteer"),
            times=read_only(self.times),
            counts=read_only(self.counts, dtype=np.int64),
            snapshots=tuple(self.snapshots),
            params=frozen_copy(self.params),
        )
        self.clock.check(self.times)
        lengths = {"times": len(self.times), "counts": len(self.counts), "snapshots": len(self.snapshots)}
        if self.reasons is not None:
            self._set(reasons=tuple(self.reasons))
            lengths["reasons"] = len(self.reasons)
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A track needs as many times and counts as snapshots; got {lengths}.")
        if (np.diff(self.counts) < 0).any() or (self.counts < 0).any():
            raise ResultError("counts must not be negative or fall from one snapshot to the next.")
        widths = {len(snapshot) for snapshot in self.snapshots}
        if len(widths) > 1:
            raise ResultError(f"All snapshots must number the same communities; got {sorted(widths)} columns.")
        for snapshot in self.snapshots:
            check_ids(
                snapshot.ids,
                self.table,
                lacking="A snapshot holds {} volunteers who are not in the track",
                hint="Name all volunteers in ids=.",
                error=ResultError,
            )
        if self.confidence is not None:
            shares = np.array(self.confidence, dtype=np.float64)
            real_array("confidence", np.nan_to_num(shares), shape=(len(self), self.n_communities_ever))
            if (shares < 0).any() or (shares > 1).any():
                raise ResultError("confidence must lie between 0 and 1, or be NaN where it is not known.")
            self._set(confidence=lock(shares))

    @property
    def name(self) -> str:
        """The method and "over time": the graph may carry the network itself under the method's name."""
        return f"{self.method} over time"

    def __len__(self) -> int:
        return len(self.snapshots)

    def __getitem__(self, index: int) -> Communities:
        return self.snapshots[index]

    def __iter__(self) -> Iterator[Communities]:
        return iter(self.snapshots)

    @property
    def n_communities_ever(self) -> int:
        """The number of communities that there ever were."""
        return len(self.snapshots[0]) if self.snapshots else 0

    @property
    def modularity(self) -> Array:
        """The modularity of each snapshot, of shape (T,); NaN for an empty one."""
        return np.array([one.modularity if (one.assignment >= 0).any() else np.nan for one in self.snapshots])

    @property
    def n_communities(self) -> Array:
        """The number of communities with members at each time, of shape (T,)."""
        return np.array([np.count_nonzero(snapshot.sizes) for snapshot in self.snapshots], dtype=np.int64)

    @property
    def sizes(self) -> Array:
        """The number of volunteers assigned to each community at each time, of shape (T, K)."""
        return np.array([snapshot.sizes for snapshot in self.snapshots]).reshape(len(self), self.n_communities_ever)

    @cached_property
    def participation(self) -> Array:
        """The participation of all volunteers over time, of shape (T, V, K); zeros for those who belong to none."""
        participation = np.zeros((len(self), len(self.ids), self.n_communities_ever))
        for index, snapshot in enumerate(self.snapshots):
            participation[index, self.table.codes(snapshot.ids)] = snapshot.participation
        return lock(participation)

    @cached_property
    def assignment(self) -> Array:
        """The community of each volunteer at each time, of shape (T, V); -1 for none."""
        assignment = np.full((len(self), len(self.ids)), -1)
        for index, snapshot in enumerate(self.snapshots):
            assignment[index, self.table.codes(snapshot.ids)] = snapshot.assignment
        return lock(assignment)

    def of(self, volunteer: Hashable) -> Array:
        """Return one volunteer's participation over time, of shape (T, K); zeros while they belong to none."""
        if volunteer not in self.table:
            raise UnknownIdError(f"There is no volunteer {volunteer!r} in this track.")
        return np.array(self.participation[:, self.table.code(volunteer)])

    def mean_confusion(self, k: int) -> Array:
        """Return the mean confusion of the members of community `k` over time, (T, J, L); NaN while it has none.

        Members are weighted by participation, and by their number of answers if it is known.
        """
        if not is_integer(k) or not 0 <= k < self.n_communities_ever:
            raise ParameterError(
                f"There is no community {k!r}; communities are numbered 0 to {self.n_communities_ever - 1}."
            )
        return np.array(self._means[:, k])

    @cached_property
    def _means(self) -> Array:
        """The mean confusion of all communities over time, of shape (T, K, J, L)."""
        confusions = [snapshot.confusion for snapshot in self.snapshots if snapshot.confusion is not None]
        if not confusions:
            raise NotAnnotatedError(
                f"The communities {self.method!r} were tracked without confusion matrices; track them with a model "
                "that has some, such as model=IBCC()."
            )
        means = np.full((len(self), self.n_communities_ever, *confusions[0].concentration.shape[1:]), np.nan)
        for index, snapshot in enumerate(self.snapshots):
            if snapshot.confusion is not None and (snapshot.assignment >= 0).any():
                has_members = snapshot.sizes > 0
                mean = snapshot.mean_confusion(by_responses=snapshot.support is not None)
                means[index, has_members] = mean[has_members]
        return means

    @cached_property
    def stability(self) -> Array:
        r"""The share of participation that stayed in its community since the last snapshot, of shape (T,).

        It is :math:`\sum_k \min(p_k, p'_k)`, on average over the volunteers who have communities at both snapshots; NaN
        for the first snapshot.
        """
        return lock(stable_participation(self.participation, self.assignment))

    @cached_property
    def events(self) -> tuple[CommunityEvent, ...]:
        """The events in the life of the communities, in order of time; see `CommunityEvent`."""
        return tuple(find_events(self.assignment, self.n_communities_ever))

    def events_to_frame(self, *, kind: str = "pandas") -> Any:
        """Return `events` as a table.

        The columns are ``time`` and ``count`` of the snapshot at which the event is first seen, ``event`` (in the words
        of `CommunityEvent`), ``community`` and ``other`` (-1 for none), the sizes ``before`` and ``after``, the number
        of ``volunteers`` who took part, and ``confidence`` in the identity of the community.

        Parameters
        ----------
        kind
            As for `to_frame`.
        """
        numbers = {
            name: np.array([getattr(event, name) for event in self.events], dtype=np.int64)
            for name in ("snapshot", "community", "other", "before", "after", "volunteers")
        }
        snapshot = numbers.pop("snapshot")
        confidence = (
            np.full((len(self), self.n_communities_ever), np.nan) if self.confidence is None else self.confidence
        )
        columns = {
            **self._when(snapshot),
            "event": object_array(event.event for event in self.events),
            **numbers,
            "confidence": confidence[snapshot, numbers["community"]],
        }
        return to_frame(columns, kind=kind)

    def moves(self, *, min_change: float = 0.5) -> tuple[Move, ...]:
        """Return the moves of volunteers who changed communities and at least `min_change` of their participation."""
        if not is_number(min_change) or not 0 <= min_change <= 1:
            raise ParameterError(f"min_change={min_change!r} must be a share of participation from 0 to 1.")
        return tuple(move for move in find_moves(self.participation, self.assignment) if move.change >= min_change)

    def moves_to_frame(self, *, min_change: float = 0.5, kind: str = "pandas") -> Any:
        """Return `moves` as a table.

        Both communities have members before and after; `events` has what happened to communities that split, ended or
        merged. The columns are ``volunteer``, ``time`` and ``count`` of the snapshot at which the move is first seen,
        the communities ``from`` and ``to``, and ``change``, the share of participation that moved.

        Parameters
        ----------
        min_change
            Smaller changes are left out.
        kind
            As for `to_frame`.
        """
        moves = self.moves(min_change=min_change)
        snapshot, volunteer, source, target = (
            np.array([move[part] for move in moves], dtype=np.int64) for part in range(4)
        )
        columns = {
            "volunteer": CodedColumn(volunteer, self.ids),
            **self._when(snapshot),
            "from": source,
            "to": target,
            "change": np.array([move.change for move in moves], dtype=np.float64),
        }
        return to_frame(columns, kind=kind)

    def _columns(self) -> Columns:
        snapshot, volunteer = np.nonzero(self.assignment >= 0)
        rows = np.repeat(np.arange(len(snapshot)), self.n_communities_ever)
        return {
            **self._when(snapshot[rows]),
            "volunteer": CodedColumn(volunteer[rows], self.ids),
            "community": np.tile(np.arange(self.n_communities_ever), len(snapshot)),
            "participation": self.participation[snapshot, volunteer].ravel(),
        }

    def _when(self, snapshot: Array) -> dict[str, Array | TimeColumn]:
        """Return the columns that say when snapshots were taken."""
        return {"time": TimeColumn(self.times[snapshot], self.clock), "count": self.counts[snapshot]}

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless the track belongs to the graph's volunteers."""
        check_ids_match(f"The community track {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        numbers = ", ".join(str(n) for n in self.n_communities)
        return f"CommunityTrack({self.method}: {len(self)} snapshots with {numbers} communities)"

    def _repr_html_(self) -> str:
        from crowdgraph.core._text import track_html

        return track_html(self)


def find_events(assignment: Array, n_communities: int) -> list[CommunityEvent]:
    """Return all events, in order of snapshots.

    Parameters
    ----------
    assignment
        The community of each volunteer at each snapshot, of shape (T, V); -1 for none. Snapshots at which nobody has
        a community are skipped.
    n_communities
        The number of communities.
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
