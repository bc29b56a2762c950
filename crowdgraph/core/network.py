"""VolunteerNetwork: a weighted undirected network of volunteers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core.columns import Array, frozen, sealed
from crowdgraph.core.result import ByVolunteer, Result, check_known_ids, parameters, unique_ids
from crowdgraph.errors import ResultError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from crowdgraph.core.graph import CrowdGraph

__all__ = ["VolunteerNetwork"]


@dataclass(frozen=True, eq=False, kw_only=True)
class VolunteerNetwork(ByVolunteer, Result):
    """A weighted undirected network of volunteers without self-loops.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,); they may be some of a graph's.
    weights
        Symmetric non-negative weights of shape (V, V): a SciPy CSR array or a dense array, zero on the diagonal.
    method, params
        How the network was made.

    Examples
    --------
    >>> network = VolunteerNetwork(ids=["anna", "bert", "cleo"], method="by hand",
    ...                            weights=[[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    >>> network.strength
    array([2., 2., 0.])
    >>> network.isolated.tolist()
    ['cleo']
    """

    ids: Array
    weights: csr_array | Array
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = unique_ids(self.ids, kind="volunteer")
        self._set(ids=ids, weights=_checked(self.weights, len(ids)), params=parameters(self.params))

    @property
    def name(self) -> str:
        """The method that made the network."""
        return self.method

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def degree(self) -> Array:
        """How many neighbours each volunteer has, of shape (V,)."""
        return sealed(np.asarray((self.weights > 0).sum(axis=1)).ravel())

    @cached_property
    def strength(self) -> Array:
        """The sum of each volunteer's weights, of shape (V,)."""
        return sealed(np.asarray(self.weights.sum(axis=1)).ravel())

    @property
    def n_edges(self) -> int:
        """How many pairs of volunteers are linked."""
        return int(self.degree.sum()) // 2

    @property
    def density(self) -> float:
        """The share of pairs that are linked."""
        pairs = len(self) * (len(self) - 1) / 2
        return self.n_edges / pairs if pairs else 0.0

    @property
    def isolated(self) -> Array:
        """The ids of volunteers without a neighbour."""
        return np.asarray(self.ids[self.degree == 0])

    @cached_property
    def components(self) -> Array:
        """The number of the connected part that each volunteer is in, of shape (V,); the largest part is 0."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        _, found = connected_components(csr_array(self.weights), directed=False)
        sizes = np.bincount(found, minlength=1)
        rank = np.empty_like(sizes)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        return sealed(rank[found])

    def subnetwork(self, volunteers: Iterable[Hashable]) -> VolunteerNetwork:
        """The network of some of the volunteers, in the order named, with the weights between them."""
        codes = self.table.codes(volunteers)
        return replace(self, ids=self.ids[codes], weights=self.weights[codes][:, codes])

    def to_networkx(self) -> Any:
        """A `networkx.Graph` with volunteer ids as nodes and `weight` on the edges."""
        from crowdgraph.io.networkx import network_to_networkx

        return network_to_networkx(self)

    def to_igraph(self) -> Any:
        """An undirected `igraph.Graph` with vertex attribute `id` and edge attribute `weight`."""
        from crowdgraph.io.igraph import network_to_igraph

        return network_to_igraph(self)

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each linked pair: volunteer, neighbour, weight; `kind` is pandas, polars or arrow."""
        from crowdgraph.io.results import network_frame

        return network_frame(self, kind=kind)

    def edges(self) -> tuple[Array, Array, Array]:
        """Each linked pair once: codes of both ends (the smaller first) and the weight."""
        from scipy.sparse import coo_array, triu

        upper = coo_array(triu(coo_array(self.weights), k=1))
        upper.eliminate_zeros()
        return upper.coords[0], upper.coords[1], upper.data

    def check_fits(self, graph: CrowdGraph) -> None:
        """Raise unless all volunteers of the network are the graph's."""
        check_known_ids(f"The network {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        return (
            f"VolunteerNetwork({self.method}: {len(self):,} volunteers, {self.n_edges:,} edges, "
            f"density {self.density:.3g}, {len(self.isolated):,} isolated)"
        )


def _asymmetry(matrix: Array) -> float:
    """The largest difference of a dense matrix from its transpose, worked out in strips: it may fill the memory."""
    strips = range(0, len(matrix), max(1, 2**24 // max(len(matrix), 1)))
    height = strips.step
    gaps = (np.abs(matrix[row : row + height] - matrix[:, row : row + height].T).max() for row in strips)
    return float(max(gaps, default=0.0))


def _checked(weights: Any, n_volunteers: int) -> Any:
    """Read-only weights: square, finite, not negative, symmetric, without self-loops."""
    from scipy.sparse import csr_array, issparse

    matrix: Any = (
        csr_array(weights, dtype=np.float64, copy=True) if issparse(weights) else frozen(weights, dtype=np.float64)
    )
    if matrix.shape != (n_volunteers, n_volunteers):
        raise ResultError(
            f"weights have shape {matrix.shape}; expected ({n_volunteers}, {n_volunteers}), volunteers twice."
        )
    values = matrix.data if issparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise ResultError(f"{np.count_nonzero(~np.isfinite(values)):,} weights are not finite; remove or mend them.")
    if values.size and values.min() < 0:
        raise ResultError(f"Weights must not be negative; the smallest is {values.min():g}.")
    if matrix.diagonal().any():
        raise ResultError("The network has self-loops; set the diagonal of the weights to zero.")
    gap = abs(matrix - matrix.T).max() if issparse(matrix) else _asymmetry(matrix)
    if gap > 1e-12 * max(1.0, values.max() if values.size else 1.0):
        raise ResultError(f"Weights must be symmetric; they differ from their transpose by up to {gap:g}.")
    if issparse(matrix):
        matrix.sum_duplicates()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            sealed(part)
    return matrix
