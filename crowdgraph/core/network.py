"""VolunteerNetwork: a weighted undirected network of volunteers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, lock, read_only
from crowdgraph.core._parameters import check_seed
from crowdgraph.core._rewiring import rewire_pairs
from crowdgraph.core.result import (
    CodedColumn,
    Columns,
    Result,
    VolunteerIndexed,
    check_ids_known,
    frozen_copy,
    real_array,
    unique_ids,
)
from crowdgraph.errors import ParameterError, ResultError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from crowdgraph.core.communities import Communities
    from crowdgraph.core.confusion import ConfusionSnapshot
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["NetworkModel", "VolunteerNetwork"]

# Appended to the method of a network that was drawn from the null model.
NULL_SUFFIX = " without communities"
# In denser networks there is no room to rewire links.
MAX_REWIRABLE_DENSITY = 0.5


class NetworkModel(ABC):
    """The data that the weights of a network are computed from, and how to draw such data anew.

    `null` and `resampled` return a model of the volunteers named, who are all of the network's volunteers or some.
    """

    #: The confusion matrices that the weights compare; None for networks of other data.
    confusion: ConfusionSnapshot | None = None

    @abstractmethod
    def weights(self) -> csr_array | Array:
        """Return the weights between the volunteers."""

    @abstractmethod
    def null(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel:
        """Draw a crowd with the same numbers of answers as these volunteers, but without communities."""

    @abstractmethod
    def resampled(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel:
        """Draw the data anew, given what is known of these volunteers."""

    def of_kinds(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel | None:  # noqa: ARG002 - by default
        """Draw a crowd of a few kinds, in which volunteers differ as much as these; None if that cannot be drawn."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class VolunteerNetwork(VolunteerIndexed, Result):
    """A weighted undirected network of volunteers without self-loops.

    `to_frame` has a row for each linked pair: volunteer, neighbour and weight.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,); they may be some of a graph's.
    weights
        Symmetric non-negative weights of shape (V, V): a SciPy CSR array or a dense array, zero on the diagonal.
    method, params
        How the network was built.
    support
        How many answers each volunteer's links rest on, of shape (V,); None if that is not known.
    model
        The data that the weights were computed from, to draw null networks and to resample; None if made by hand. It
        is not saved with a graph.

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
    support: Array | None = None
    model: NetworkModel | None = field(default=None, metadata={"saved": False})

    def __post_init__(self) -> None:
        ids = unique_ids(self.ids, kind="volunteer")
        self._set(ids=ids, weights=_checked_weights(self.weights, len(ids)), params=frozen_copy(self.params))
        if self.support is not None:
            self._set(support=real_array("support", self.support, shape=(len(ids),)))

    @property
    def name(self) -> str:
        """The method that built the network."""
        return self.method

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def degree(self) -> Array:
        """The number of neighbours of each volunteer, of shape (V,)."""
        return lock(np.asarray((self.weights > 0).sum(axis=1)).ravel())

    @cached_property
    def strength(self) -> Array:
        """The sum of each volunteer's weights, of shape (V,)."""
        return lock(np.asarray(self.weights.sum(axis=1)).ravel())

    @property
    def n_edges(self) -> int:
        """The number of linked pairs of volunteers."""
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
        """The number of each volunteer's connected component, of shape (V,); the largest component is 0."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        _, component = connected_components(csr_array(self.weights), directed=False)
        sizes = np.bincount(component, minlength=1)
        rank = np.empty_like(sizes)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        return lock(rank[component])

    def subnetwork(self, volunteers: Iterable[Hashable]) -> VolunteerNetwork:
        """Return the network of some of the volunteers, in the order named, with the weights between them."""
        codes = self.table.codes(volunteers)
        support = None if self.support is None else self.support[codes]
        return replace(self, ids=self.ids[codes], weights=self.weights[codes][:, codes], support=support)

    @property
    def has_null(self) -> bool:
        """Whether `null` can draw a network: it needs a model of the network, or room to rewire its links."""
        return self.model is not None or self.density <= MAX_REWIRABLE_DENSITY

    def null(self, *, seed: int | None = None) -> VolunteerNetwork:
        """Draw a network of the same volunteers from the null model: a crowd without communities.

        The null model depends on how the network was built; see `networks.pi_similarity` and
        `networks.task_cooccurrence`. The `model` of the network returned is the crowd that was drawn; for a subnetwork
        the crowd resembles its volunteers only. A network without a model, such as one made by hand or read from a
        file, is rewired: every volunteer keeps the number of neighbours, and the weights of links, relative to what is
        usual for both ends, are shuffled.

        Parameters
        ----------
        seed
            The same seed draws the same network.

        Examples
        --------
        >>> ring = np.roll(np.eye(8), 1, axis=0)
        >>> network = VolunteerNetwork(ids=range(8), weights=ring + ring.T, method="ring")
        >>> network.null(seed=0)
        VolunteerNetwork(ring without communities: 8 volunteers, 8 edges, density 0.286, 0 isolated)
        """
        check_seed(seed)
        rng = np.random.default_rng(seed)
        method = self.method.removesuffix(NULL_SUFFIX) + NULL_SUFFIX
        if self.model is None:
            return replace(self, weights=_rewired_weights(self, rng), method=method)
        model = self.model.null(self.ids, rng)
        return replace(self, weights=model.weights(), method=method, model=model)

    @property
    def mean_weight(self) -> float:
        """The mean weight of all pairs, linked or not; 0 for a single volunteer."""
        return float(self.strength.sum() / max(len(self) * (len(self) - 1), 1))

    def of_kinds(self, *, seed: int | None = None) -> VolunteerNetwork | None:
        """Draw a network of the same volunteers, who are of a few kinds but differ as much as before.

        It shows whether communities would be seen if there were any. None if the network's model cannot draw such a
        crowd; `networks.pi_similarity` can.

        Parameters
        ----------
        seed
            The same seed draws the same network.
        """
        check_seed(seed)
        model = None if self.model is None else self.model.of_kinds(self.ids, np.random.default_rng(seed))
        return None if model is None else replace(self, weights=model.weights(), model=model)

    def resampled(self, *, seed: int | None = None) -> VolunteerNetwork:
        """Draw the network anew, given what is known of its volunteers.

        Confusion matrices are drawn from their posterior; where volunteers are linked by common items, the items are
        drawn with replacement. The `model` of the network returned holds what was drawn.

        Parameters
        ----------
        seed
            The same seed draws the same network.
        """
        check_seed(seed)
        if self.model is None:
            raise ParameterError(
                f"The network {self.method!r} has no model of how it was built, so it cannot be resampled. Build it "
                "with networks.pi_similarity or networks.task_cooccurrence; files do not keep the model."
            )
        model = self.model.resampled(self.ids, np.random.default_rng(seed))
        return replace(self, weights=model.weights(), model=model)

    def to_networkx(self, *, communities: Communities | None = None) -> Any:
        """Return a `networkx.Graph` with volunteer ids as nodes and `weight` on the edges.

        Nodes have `strength`, `support` where it is known, and with `communities` the community of assignment (-1 for
        none) as `community` and the participation in each as `participation_0`, `participation_1` and so on.
        """
        from crowdgraph.io.networkx import network_to_networkx

        return network_to_networkx(self, communities=communities)

    def to_igraph(self, *, communities: Communities | None = None) -> Any:
        """Return an undirected `igraph.Graph` with vertex attribute `id` and edge attribute `weight`.

        Vertices also have the other attributes of `to_networkx`.
        """
        from crowdgraph.io.networkx import network_to_igraph

        return network_to_igraph(self, communities=communities)

    def save(self, path: str | PathLike[str], *, communities: Communities | None = None) -> None:
        """Write a file for Gephi and other tools: GraphML or GEXF, if the name ends in ``.graphml`` or ``.gexf``.

        Ids become text, as names and labels of nodes, which have the attributes of `to_networkx`.

        Parameters
        ----------
        path
            The file. An existing file is replaced once the new one is complete.
        communities
            Communities of the network's volunteers, as attributes of the nodes.
        """
        from crowdgraph.io.networkx import save_network

        save_network(self, path, communities=communities)

    def _columns(self) -> Columns:
        left, right, weights = self.pairs()
        return {"volunteer": CodedColumn(left, self.ids), "neighbour": CodedColumn(right, self.ids), "weight": weights}

    def pairs(self) -> tuple[Array, Array, Array]:
        """Return each linked pair once: the codes of both ends (the smaller first) and the weight."""
        from scipy.sparse import coo_array, triu

        upper = coo_array(triu(coo_array(self.weights), k=1))
        upper.eliminate_zeros()
        return upper.coords[0], upper.coords[1], upper.data

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless all volunteers of the network are in the graph."""
        check_ids_known(f"The network {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        return (
            f"VolunteerNetwork({self.method}: {len(self):,} volunteers, {self.n_edges:,} edges, "
            f"density {self.density:.3g}, {len(self.isolated):,} isolated)"
        )


def _rewired_weights(network: VolunteerNetwork, rng: np.random.Generator) -> Any:
    """Rewire the links at random; everybody keeps the number of neighbours."""
    from scipy.sparse import csr_array, issparse

    if not network.has_null:
        raise ParameterError(
            f"The network {network.method!r} links {network.density:.0%} of all pairs, so rewiring hardly changes it "
            "and cannot show what chance gives. Build it with networks.pi_similarity, which can draw a crowd without "
            "communities; files do not keep that."
        )
    left, right, values = network.pairs()
    # The weight of a link depends on its ends; what is shuffled is its weight relative to that.
    usual = network.strength / np.maximum(network.degree, 1)
    relative = rng.permutation(values / (usual[left] * usual[right]))
    left, right = rewire_pairs(left, right, len(network), rng)
    new_values = relative * usual[left] * usual[right]
    new_values *= values.sum() / max(float(new_values.sum()), np.finfo(float).tiny)
    upper = csr_array((new_values, (left, right)), shape=network.weights.shape)
    weights = upper + upper.T
    return weights if issparse(network.weights) else weights.toarray()


def _asymmetry(matrix: Array) -> float:
    """Return the largest difference of a dense matrix from its transpose, in strips, since it may fill the memory."""
    strips = range(0, len(matrix), max(1, 2**24 // max(len(matrix), 1)))
    height = strips.step
    gaps = (np.abs(matrix[row : row + height] - matrix[:, row : row + height].T).max() for row in strips)
    return float(max(gaps, default=0.0))


def _checked_weights(weights: Any, n_volunteers: int) -> Any:
    """Return read-only weights: square, finite, not negative, symmetric, without self-loops."""
    from scipy.sparse import csr_array, issparse

    matrix: Any = (
        csr_array(weights, dtype=np.float64, copy=True) if issparse(weights) else read_only(weights, dtype=np.float64)
    )
    if matrix.shape != (n_volunteers, n_volunteers):
        raise ResultError(
            f"weights have shape {matrix.shape}; expected ({n_volunteers}, {n_volunteers}), volunteers twice."
        )
    values = matrix.data if issparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise ResultError(f"{np.count_nonzero(~np.isfinite(values)):,} weights are not finite; remove or replace them.")
    if values.size and values.min() < 0:
        raise ResultError(f"Weights must not be negative; the smallest is {values.min():g}.")
    if matrix.diagonal().any():
        raise ResultError("The network has self-loops; set the diagonal of the weights to zero.")
    gap = abs(matrix - matrix.T).max() if issparse(matrix) else _asymmetry(matrix)
    if values.size and gap > 1e-12 * values.max():
        raise ResultError(f"Weights must be symmetric; they differ from their transpose by up to {gap:g}.")
    if issparse(matrix):
        matrix.sum_duplicates()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            lock(part)
    return matrix
