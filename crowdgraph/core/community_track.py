"""CommunityTrack: the same communities over time, what happens to them, and who moves between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, lock, object_array, read_only
from crowdgraph.core._parameters import is_integer, is_number
from crowdgraph.core.clock import Clock
from crowdgraph.core.communities import Communities, check_community
from crowdgraph.core.community_events import CommunityEvent, Move, find_events, find_moves, stable_participation
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

__all__ = ["CommunityTrack"]


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
    apparent
        Splits and mergers that are only apparent, as (snapshot, community, other): the volunteers of both communities
        were apart in the network before the split, or still are after the merger.

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
    apparent: tuple[tuple[int, int, int], ...] = field(default=(), metadata={"saved": "unless default"})

    def __post_init__(self) -> None:
        self._set(
            ids=unique_ids(self.ids, kind="volunteer"),
            times=read_only(self.times),
            counts=read_only(self.counts, dtype=np.int64),
            snapshots=tuple(self.snapshots),
            params=frozen_copy(self.params),
            apparent=tuple(tuple(event) for event in self.apparent),
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
        self._check_apparent()
        if self.confidence is not None:
            shares = np.array(self.confidence, dtype=np.float64)
            real_array("confidence", np.nan_to_num(shares), shape=(len(self), self.n_communities_ever))
            if (shares < 0).any() or (shares > 1).any():
                raise ResultError("confidence must lie between 0 and 1, or be NaN where it is not known.")
            self._set(confidence=lock(shares))

    def _check_apparent(self) -> None:
        sizes = (len(self), self.n_communities_ever, self.n_communities_ever)
        for event in self.apparent:
            fits = len(event) == 3 and all(is_integer(part) for part in event)
            if not fits or not all(0 <= part < size for part, size in zip(event, sizes, strict=True)):
                raise ResultError(
                    f"apparent has {event!r}; expected (snapshot, community, other), numbered below {sizes}."
                )

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
        check_community(k, self.n_communities_ever)
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
    def unclear(self) -> tuple[bool, ...]:
        """Whether there was no clear evidence for communities, by snapshot; one where nobody has any repeats the last.

        What is seen first after such a snapshot need not be new.
        """
        unclear: list[bool] = []
        for snapshot in self.snapshots:
            if len(snapshot.ids) or not unclear:
                unclear.append(snapshot.evidence is not None and not snapshot.evidence.structured)
            else:
                unclear.append(unclear[-1])
        return tuple(unclear)

    @cached_property
    def events(self) -> tuple[CommunityEvent, ...]:
        """The events in the life of the communities, in order of time; see `CommunityEvent`.

        A split or a merger needs evidence at both snapshots: clear evidence for communities, and volunteers who were
        not apart before the split, or are not after the merger. Otherwise a community is only first seen, or no longer.
        """
        return tuple(
            find_events(self.assignment, self.n_communities_ever, unclear=self.unclear, apparent=self.apparent)
        )

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
        from crowdgraph.core._html import track_html

        return track_html(self)
