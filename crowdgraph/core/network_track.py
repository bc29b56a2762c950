"""NetworkTrack: the network of volunteers at several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core.clock import Clock
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import (
    CodedColumn,
    Columns,
    Tabular,
    TimeColumn,
    VolunteerIndexed,
    check_ids,
    frozen_copy,
    to_frame,
    unique_ids,
)
from crowdgraph.errors import ResultError

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionTrack
    from crowdgraph.core.fit import ModelFit

__all__ = ["NetworkTrack"]


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkTrack(VolunteerIndexed, ReadOnlyArrays, Tabular):
    """The network of volunteers at several times: a sequence of `VolunteerNetwork`.

    `to_frame` has a row for each snapshot and linked pair: time, count, volunteer, neighbour and weight.

    Attributes
    ----------
    ids
        All volunteers, of shape (V,); a snapshot may hold some of them.
    times, counts
        The time of the last response of each snapshot and the number of responses until then, both of shape (T,).
    snapshots
        The network at each time; a network without volunteers where there were too few answers.
    clock
        The kind of times.
    method, params
        How the networks were built.
    reasons
        For each snapshot the reason why it has no volunteers; empty text for those that have some. None if not known.

    Examples
    --------
    >>> early = VolunteerNetwork(ids=["anna", "bert"], weights=[[0, 1], [1, 0]], method="by hand")
    >>> late = VolunteerNetwork(ids=["anna", "bert", "cleo"], weights=[[0, 1, 2], [1, 0, 0], [2, 0, 0]],
    ...                         method="by hand")
    >>> track = NetworkTrack(ids=["anna", "bert", "cleo"], times=[1, 2], counts=[10, 20], snapshots=[early, late],
    ...                      clock=Clock("number"), method="by hand")
    >>> track
    NetworkTrack(by hand: 2 snapshots with 2, 3 volunteers)
    >>> track.measures()["mean strength"].tolist()
    [1.0, 2.0]
    """

    ids: Array
    times: Array
    counts: Array
    snapshots: tuple[VolunteerNetwork, ...]
    clock: Clock
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self._set(
            ids=unique_ids(self.ids, kind="volunteer"),
            times=read_only(self.times),
            counts=read_only(self.counts, dtype=np.int64),
            snapshots=tuple(self.snapshots),
            params=frozen_copy(self.params),
            reasons=None if self.reasons is None else tuple(self.reasons),
        )
        self.clock.check(self.times)
        lengths = {"times": len(self.times), "counts": len(self.counts), "snapshots": len(self.snapshots)}
        if self.reasons is not None:
            lengths["reasons"] = len(self.reasons)
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A track needs as many times and counts as snapshots; got {lengths}.")
        if (np.diff(self.counts) < 0).any() or (self.counts < 0).any():
            raise ResultError("counts must not be negative or fall from one snapshot to the next.")
        for snapshot in self.snapshots:
            check_ids(
                snapshot.ids,
                self.table,
                lacking="A snapshot holds {} volunteers who are not in the track",
                hint="Name all volunteers in ids=.",
                error=ResultError,
            )

    def __len__(self) -> int:
        return len(self.snapshots)

    def __getitem__(self, index: int) -> VolunteerNetwork:
        return self.snapshots[index]

    def __iter__(self) -> Iterator[VolunteerNetwork]:
        return iter(self.snapshots)

    def union(self) -> VolunteerNetwork:
        """Return the network of all volunteers, linked as strongly as on average over the snapshots."""
        from scipy.sparse import coo_array, csr_array

        shape = (len(self.ids), len(self.ids))
        total = csr_array(shape, dtype=np.float64)
        for snapshot in self.snapshots:
            codes = self.table.codes(snapshot.ids)
            links = coo_array(snapshot.weights)
            total = total + csr_array((links.data, (codes[links.coords[0]], codes[links.coords[1]])), shape=shape)
        return VolunteerNetwork(ids=self.ids, weights=total / max(len(self), 1), method=self.method, params=self.params)

    def measures(self, *, kind: str = "pandas") -> Any:
        """Return a table of the networks over time, a row for each snapshot.

        The columns are ``time`` and ``count``, the number of ``volunteers``, of ``links`` and of ``components`` (of
        volunteers who are linked, however indirectly; one alone is one), the ``density``, and the ``mean degree`` and
        ``mean strength`` of a volunteer.

        Parameters
        ----------
        kind
            As for `to_frame`.
        """
        columns: dict[str, Any] = {
            **self._when(np.arange(len(self))),
            "volunteers": np.array([len(one) for one in self], dtype=np.int64),
            "links": np.array([one.n_edges for one in self], dtype=np.int64),
            "components": np.array([len(np.unique(one.components)) if len(one) else 0 for one in self], dtype=np.int64),
            "density": np.array([one.density for one in self], dtype=np.float64),
            "mean degree": _means([one.degree for one in self]),
            "mean strength": _means([one.strength for one in self]),
        }
        return to_frame(columns, kind=kind)

    def save(
        self,
        path: str | PathLike[str],
        *,
        communities: CommunityTrack | Communities | None = None,
        confusion: ConfusionTrack | ModelFit | None = None,
    ) -> None:
        """Write a dynamic GEXF file, which Gephi's timeline plays.

        Volunteers and links are there in the snapshots that have them, from the time of a snapshot to that of the next;
        the last snapshot lasts as long as the usual one. Weights, communities and skill change over time.

        Parameters
        ----------
        path
            The file, whose name ends in ``.gexf``. An existing file is replaced once the new one is complete.
        communities
            The volunteers' communities: a track, which may have other snapshots, or communities that do not change.
        confusion
            A fit, or the volunteers' confusion over time: the expected accuracy is written as their skill, with at most
            50 changes for each volunteer. It is what we now believe about then, though the networks are those of then.
        """
        from crowdgraph.io.gexf import write_network_track

        write_network_track(self, path, communities=communities, confusion=confusion)

    def _columns(self) -> Columns:
        pairs = [one.pairs() for one in self]
        snapshot = np.repeat(np.arange(len(self)), [len(weights) for _, _, weights in pairs])
        codes = [self.table.codes(one.ids) for one in self]
        left, right = (
            np.concatenate([np.zeros(0, np.int64), *(own[ends[side]] for own, ends in zip(codes, pairs, strict=True))])
            for side in (0, 1)
        )
        return {
            **self._when(snapshot),
            "volunteer": CodedColumn(left, self.ids),
            "neighbour": CodedColumn(right, self.ids),
            "weight": np.concatenate([np.zeros(0), *(weights for _, _, weights in pairs)]),
        }

    def _when(self, snapshot: Array) -> dict[str, Array | TimeColumn]:
        """Return the columns that say when snapshots were taken."""
        return {"time": TimeColumn(self.times[snapshot], self.clock), "count": self.counts[snapshot]}

    def __repr__(self) -> str:
        numbers = ", ".join(str(len(one)) for one in self)
        return f"NetworkTrack({self.method}: {len(self)} snapshots with {numbers} volunteers)"

    def _repr_html_(self) -> str:
        from crowdgraph.core._html import network_track_html

        return network_track_html(self)


def _means(values: list[Array]) -> Array:
    """Return the mean of each array; zero for those without values."""
    return np.array([one.mean() if len(one) else 0.0 for one in values], dtype=np.float64)
