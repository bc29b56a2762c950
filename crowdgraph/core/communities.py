"""Communities of volunteers with soft participation, at one time and over time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core.clock import Clock
from crowdgraph.core.columns import Array, frozen, plain, sealed
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.result import (
    ByVolunteer,
    Result,
    check_known_ids,
    check_same_ids,
    parameters,
    real_array,
    unique_ids,
)
from crowdgraph.errors import ParameterError, ResultError, UnknownIdError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["Communities", "CommunityTrack"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Communities(ByVolunteer, Result):
    """Overlapping communities of volunteers.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,); they may be some of a graph's.
    participation
        How much each volunteer belongs to each community, of shape (V, K). Rows sum to one; a volunteer who belongs
        to none (isolated in the network) has a row of zeros.
    modularity
        Newman's weighted modularity of the hard assignment in the network that was searched.
    method, params
        How the communities were found.

    Examples
    --------
    >>> groups = Communities(ids=["anna", "bert", "cleo"], method="by hand", modularity=0.1,
    ...                      participation=[[1.0, 0.0], [0.3, 0.7], [0.0, 0.0]])
    >>> groups.assignment
    array([ 0,  1, -1])
    >>> groups.members(1)
    ['bert']
    """

    ids: Array
    participation: Array
    modularity: float
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = unique_ids(self.ids, kind="volunteer")
        participation = real_array("participation", self.participation, shape=(len(ids), None))
        if (participation < 0).any():
            raise ResultError(f"participation must not be negative; its smallest value is {participation.min():g}.")
        sums = participation.sum(axis=1)
        if not (np.isclose(sums, 1.0, rtol=0, atol=1e-6) | (sums == 0)).all():
            worst = sums[(np.abs(sums - 1) * (sums > 0)).argmax()]
            raise ResultError(f"Rows of participation must sum to one (or zero, for nobody's); one sum is {worst:g}.")
        if not -1.0 <= self.modularity <= 1.0:
            raise ResultError(f"modularity={self.modularity!r} must lie between -1 and 1.")
        self._set(ids=ids, participation=participation, params=parameters(self.params))

    @property
    def name(self) -> str:
        """The method that found the communities."""
        return self.method

    def __len__(self) -> int:
        return int(self.participation.shape[1])

    def __iter__(self) -> Iterator[list[Hashable]]:
        return (self.members(k) for k in range(len(self)))

    @cached_property
    def assignment(self) -> Array:
        """The community in which each volunteer participates most, of shape (V,); -1 for nobody's."""
        if len(self) == 0:
            return sealed(np.full(len(self.ids), -1))
        best = self.participation.argmax(axis=1)
        return sealed(np.where(self.participation.sum(axis=1) > 0, best, -1))

    @property
    def sizes(self) -> Array:
        """How many volunteers are assigned to each community, of shape (K,)."""
        return np.bincount(self.assignment[self.assignment >= 0], minlength=len(self))

    @property
    def centroids(self) -> list[Hashable | None]:
        """The volunteer who participates most in each community; None for one that nobody belongs to."""
        best = self.participation.argmax(axis=0) if len(self.ids) else np.zeros(len(self), dtype=int)
        lived = self.participation.sum(axis=0) > 0
        return [plain(self.ids[code]) if alive else None for code, alive in zip(best, lived, strict=True)]

    def members(self, k: int, *, threshold: float | None = None) -> list[Hashable]:
        """The volunteers of community `k`: those assigned to it, or all who participate by at least `threshold`."""
        if not 0 <= k < len(self):
            raise ParameterError(f"There is no community {k!r}; communities are numbered 0 to {len(self) - 1}.")
        chosen = self.assignment == k if threshold is None else self.participation[:, k] >= threshold
        return list(self.ids[chosen].tolist())

    def of(self, volunteer: Hashable) -> Array:
        """How much one volunteer participates in each community, of shape (K,)."""
        return np.asarray(self.participation[self.table.code(volunteer)])

    def mean_confusion(self, snapshot: ConfusionSnapshot) -> Array:
        """The participation-weighted mean confusion of each community, of shape (K, J, L); NaN where nobody belongs."""
        codes = snapshot.table.codes(self.ids)
        sums = np.einsum("vk,vjl->kjl", self.participation, snapshot.mean[codes])
        totals = self.participation.sum(axis=0)
        return np.asarray(sums / np.where(totals > 0, totals, np.nan)[:, None, None])

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each volunteer: the community of assignment (-1 for none), and the participation in each.

        `kind` is ``"pandas"``, ``"polars"`` or ``"arrow"``.
        """
        from crowdgraph.io.results import communities_frame

        return communities_frame(self, kind=kind)

    def check_fits(self, graph: CrowdGraph) -> None:
        """Raise unless all volunteers of the communities are the graph's."""
        check_known_ids(f"The communities {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{size:,}" for size in self.sizes[:8])
        more = ", ..." if len(self) > 8 else ""
        return f"Communities({self.method}: {len(self)} of sizes {sizes}{more}; modularity {self.modularity:.3f})"


@dataclass(frozen=True, eq=False, kw_only=True)
class CommunityTrack(ByVolunteer, Result):
    """The same communities at several times: community `k` is column `k` of every snapshot.

    Attributes
    ----------
    ids
        All volunteers, of shape (V,); a snapshot may hold some of them.
    times, counts
        When each snapshot was taken and how many responses there were by then, both of shape (T,).
    snapshots
        The communities at each time, all with the same number of columns.
    clock
        What the times are.
    method
        What was followed.
    """

    ids: Array
    times: Array
    counts: Array
    snapshots: tuple[Communities, ...]
    clock: Clock
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._set(
            ids=unique_ids(self.ids, kind="volunteer"),
            times=frozen(self.times),
            counts=frozen(self.counts, dtype=np.int64),
            snapshots=tuple(self.snapshots),
            params=parameters(self.params),
        )
        self.clock.check(self.times)
        lengths = {"times": len(self.times), "counts": len(self.counts), "snapshots": len(self.snapshots)}
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A track needs as many times and counts as snapshots; got {lengths}.")
        if (np.diff(self.counts) < 0).any() or (self.counts < 0).any():
            raise ResultError("counts must not be negative or fall from one snapshot to the next.")
        widths = {len(snapshot) for snapshot in self.snapshots}
        if len(widths) > 1:
            raise ResultError(f"All snapshots must number the same communities; got {sorted(widths)} columns.")
        for snapshot in self.snapshots:
            strangers = [volunteer for volunteer in snapshot.ids.tolist() if volunteer not in self.table]
            if strangers:
                raise ResultError(f"A snapshot holds {strangers[0]!r}, who is not among the track's volunteers.")

    @property
    def name(self) -> str:
        """What was followed."""
        return self.method

    def __len__(self) -> int:
        return len(self.snapshots)

    def __getitem__(self, index: int) -> Communities:
        return self.snapshots[index]

    @property
    def modularity(self) -> Array:
        """The modularity of each snapshot, of shape (T,)."""
        return np.array([snapshot.modularity for snapshot in self.snapshots])

    @property
    def n_communities(self) -> Array:
        """How many communities have members at each time, of shape (T,)."""
        return np.array([np.count_nonzero(snapshot.sizes) for snapshot in self.snapshots])

    def participation(self, volunteer: Hashable) -> Array:
        """One volunteer's participation over time, of shape (T, K); zeros while the volunteer belongs to none."""
        if volunteer not in self.table:
            raise UnknownIdError(f"There is no volunteer {volunteer!r} in this track.")
        absent = np.zeros(len(self.snapshots[0]) if self.snapshots else 0)
        rows = [snapshot.of(volunteer) if volunteer in snapshot.table else absent for snapshot in self.snapshots]
        return np.array(rows).reshape(len(self), len(absent))

    def check_fits(self, graph: CrowdGraph) -> None:
        """Raise unless the track was made for the graph's volunteers."""
        check_same_ids(f"The community track {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        numbers = ", ".join(str(n) for n in self.n_communities)
        return f"CommunityTrack({self.method}: {len(self)} snapshots with {numbers} communities)"
