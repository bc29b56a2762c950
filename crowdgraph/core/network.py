"""VolunteerNetwork: a weighted undirected network of volunteers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, lock, read_only
from crowdgraph.core._parameters import check_seed
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

__all__ = ["NetworkModel", "VolunteerNetwork", "rewire_bipartite", "rewire_pairs"]

# How often each link is to be swapped on average, and how many swaps there are to be where links are few.
SWAPS = 3
FEW_SWAPS = 50
# Rounds of swaps, where there is little room.
ROUNDS = 100


def rewire_bipartite(left: Array, right: Array, n_right: int, rng: np.random.Generator) -> Array:
    """New right ends of links from left to right nodes, each link being once in the result as before.

    All nodes keep their number of links, and so does each link its left end. Two links at a time exchange their right
    ends, unless that makes a link that is there already; where everything is linked, all stays as it is.

    Parameters
    ----------
    left, right
        The ends of each link, of shape (E,); no link is there twice.
    n_right
        How many right nodes there are.
    rng
        What draws.
    """
    return _swapped(left, right, rng, key=lambda one, other: one * n_right + other)[1]


def rewire_pairs(left: Array, right: Array, n_nodes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """As `rewire_bipartite` for links between nodes of one kind: both ends of each link, which are two nodes."""
    turned = rng.random(len(left)) < 0.5
    left, right = np.where(turned, right, left), np.where(turned, left, right)

    def key(one: Array, other: Array) -> Array:
        low, high = np.minimum(one, other), np.maximum(one, other)
        # Loops all get the one key, which counts as taken.
        return np.where(one == other, -1, low * n_nodes + high)

    return _swapped(left, right, rng, key=key, mirrored=True)


def _swapped(
    left: Array,
    right: Array,
    rng: np.random.Generator,
    *,
    key: Callable[[Array, Array], Array],
    mirrored: bool = False,
) -> tuple[Array, Array]:
    """Both ends after random swaps of right ends; `mirrored` links are turned between rounds."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    n_rounds, done = ROUNDS, 0
    while done < n_rounds:
        order = rng.permutation(len(left))
        # Some links sit out, lest all be swapped to and fro.
        half = rng.binomial(len(left) // 2, 0.8)
        one, other = order[:half], order[half : 2 * half]
        made = np.column_stack([key(left[one], right[other]), key(left[other], right[one])])
        free = _free(made, key(left, right))
        one, other = one[free], other[free]
        right[one], right[other] = right[other], right[one]
        if mirrored:
            turned = rng.random(len(left)) < 0.5
            left, right = np.where(turned, right, left), np.where(turned, left, right)
        done += 1
        if done == 1:
            # The first round tells how many are needed. To stop at a number of swaps would favour what an even (or
            # odd) number of them makes.
            n_rounds = min(ROUNDS, 1 + max(SWAPS * len(left), FEW_SWAPS) // max(2 * len(one), 1))
    return left, right


def _free(made: Array, taken: Array) -> Array:
    """Which rows of two links each can be made: they are neither loops, nor taken, nor made by two rows at once."""
    _, place, times = np.unique(np.concatenate([made.ravel(), taken]), return_inverse=True, return_counts=True)
    alone = times[place[: made.size]].reshape(made.shape) == 1
    return np.flatnonzero((alone & (made >= 0)).all(axis=1))


# What is added to the name of the method that made a network, for one drawn from a crowd without communities.
WITHOUT = " without communities"
# Where a larger share of pairs is linked, rewiring has no room.
MOST_REWIRED = 0.5


class NetworkModel(ABC):
    """What a network was made from, and how.

    Both draws tell of the volunteers named, which are all of the network's or some of them, and know no others.
    """

    #: The confusion matrices that were compared, if any were.
    confusion: ConfusionSnapshot | None = None

    @abstractmethod
    def weights(self) -> csr_array | Array:
        """The weights between the volunteers."""

    @abstractmethod
    def null(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel:
        """What the same number of answers would tell of a crowd like these volunteers, but without communities."""

    @abstractmethod
    def resampled(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel:
        """What could as well be, given what is known of the volunteers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VolunteerNetwork(VolunteerIndexed, Result):
    """A weighted undirected network of volunteers without self-loops.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,); they may be some of a graph's.
    weights
        Symmetric non-negative weights of shape (V, V): a SciPy CSR array or a dense array, zero on the diagonal.
    method, params
        How the network was made.
    support
        How many answers each volunteer's links rest on, of shape (V,); None if that is not known.
    origin
        What the network was made from, to draw networks without communities and to redraw it; None if made by hand.
        It is not saved with a graph.

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
        self._set(ids=ids, weights=_checked(self.weights, len(ids)), params=frozen_copy(self.params))
        if self.support is not None:
            self._set(support=real_array("support", self.support, shape=(len(ids),)))

    @property
    def name(self) -> str:
        """The method that made the network."""
        return self.method

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def degree(self) -> Array:
        """How many neighbours each volunteer has, of shape (V,)."""
        return lock(np.asarray((self.weights > 0).sum(axis=1)).ravel())

    @cached_property
    def strength(self) -> Array:
        """The sum of each volunteer's weights, of shape (V,)."""
        return lock(np.asarray(self.weights.sum(axis=1)).ravel())

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
        return lock(rank[found])

    def subnetwork(self, volunteers: Iterable[Hashable]) -> VolunteerNetwork:
        """The network of some of the volunteers, in the order named, with the weights between them."""
        codes = self.table.codes(volunteers)
        support = None if self.support is None else self.support[codes]
        return replace(self, ids=self.ids[codes], weights=self.weights[codes][:, codes], support=support)

    @property
    def has_null(self) -> bool:
        """Whether `null` knows a network without communities: where nothing tells how this one was made, it rewires."""
        return self.model is not None or self.density <= MOST_REWIRED

    def null(self, *, seed: int | None = None) -> VolunteerNetwork:
        """A network of the same volunteers, made the same way from a crowd without communities.

        What that is depends on how the network was made; see `networks.pi_similarity` and `networks.task_cooccurrence`.
        The origin of the network returned is that crowd, and in a part of a network the crowd is like the part. A
        network that does not know its origin, such as one made by hand or read from a file, is rewired: every volunteer
        keeps the number of neighbours, and how much heavier links are than usual for both ends is shuffled over them.

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
        method = self.method.removesuffix(WITHOUT) + WITHOUT
        if self.model is None:
            return replace(self, weights=_rewired_weights(self, rng), method=method)
        model = self.model.null(self.ids, rng)
        return replace(self, weights=model.weights(), method=method, model=model)

    def resampled(self, *, seed: int | None = None) -> VolunteerNetwork:
        """The network as it could as well be, given what is known of its volunteers.

        Confusion matrices are drawn from their posterior; for common items, the items are drawn anew with replacement.
        The origin of the network returned is what was drawn.

        Parameters
        ----------
        seed
            The same seed draws the same network.
        """
        check_seed(seed)
        if self.model is None:
            raise ParameterError(
                f"The network {self.method!r} does not know what it was made from, so it cannot be drawn anew. Make it "
                "with networks.pi_similarity or networks.task_cooccurrence; files do not keep it."
            )
        model = self.model.resampled(self.ids, np.random.default_rng(seed))
        return replace(self, weights=model.weights(), model=model)

    def to_networkx(self, *, communities: Communities | None = None) -> Any:
        """A `networkx.Graph` with volunteer ids as nodes and `weight` on the edges.

        Nodes have `strength`, `support` where it is known, and with `communities` the community of assignment (-1 for
        none) as `community` and the share in each as `participation_0`, `participation_1` and so on.
        """
        from crowdgraph.io.networkx import network_to_networkx

        return network_to_networkx(self, communities=communities)

    def to_igraph(self, *, communities: Communities | None = None) -> Any:
        """An undirected `igraph.Graph` with vertex attribute `id` and edge attribute `weight`.

        Vertices have the other attributes of `to_networkx`, too.
        """
        from crowdgraph.io.networkx import network_to_igraph

        return network_to_igraph(self, communities=communities)

    def save(self, path: str | PathLike[str], *, communities: Communities | None = None) -> None:
        """Write a file for Gephi and other tools: GraphML or GEXF, as the name ends in ``.graphml`` or ``.gexf``.

        Nodes are named by their ids as text, which is their label, too; they have the attributes of `to_networkx`.

        Parameters
        ----------
        path
            The file. One that is there is replaced once the new one is written whole.
        communities
            Communities of the network's volunteers to put on the nodes.
        """
        from crowdgraph.io.networkx import save_network

        save_network(self, path, communities=communities)

    def _columns(self) -> Columns:
        """One row for each linked pair: volunteer, neighbour, weight."""
        left, right, weights = self.edges()
        return {"volunteer": CodedColumn(left, self.ids), "neighbour": CodedColumn(right, self.ids), "weight": weights}

    def edges(self) -> tuple[Array, Array, Array]:
        """Each linked pair once: codes of both ends (the smaller first) and the weight."""
        from scipy.sparse import coo_array, triu

        upper = coo_array(triu(coo_array(self.weights), k=1))
        upper.eliminate_zeros()
        return upper.coords[0], upper.coords[1], upper.data

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless all volunteers of the network are the graph's."""
        check_ids_known(f"The network {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        return (
            f"VolunteerNetwork({self.method}: {len(self):,} volunteers, {self.n_edges:,} edges, "
            f"density {self.density:.3g}, {len(self.isolated):,} isolated)"
        )


def _rewired_weights(network: VolunteerNetwork, rng: np.random.Generator) -> Any:
    """Weights between as many neighbours for everybody, drawn at random."""
    from scipy.sparse import csr_array, issparse

    if not network.has_null:
        raise ParameterError(
            f"The network {network.method!r} links {network.density:.0%} of all pairs, so that rewiring leaves it much "
            "as it is and cannot show what chance gives. Make it with networks.pi_similarity, which knows how to draw "
            "a crowd without communities; files do not keep that."
        )
    left, right, values = network.edges()
    # How heavy a link is depends on its ends; what is shuffled is how much heavier it is than that.
    usual = network.strength / np.maximum(network.degree, 1)
    relative = rng.permutation(values / (usual[left] * usual[right]))
    left, right = rewire_pairs(left, right, len(network), rng)
    drawn = relative * usual[left] * usual[right]
    drawn *= values.sum() / max(float(drawn.sum()), np.finfo(float).tiny)
    upper = csr_array((drawn, (left, right)), shape=network.weights.shape)
    weights = upper + upper.T
    return weights if issparse(network.weights) else weights.toarray()


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
        csr_array(weights, dtype=np.float64, copy=True) if issparse(weights) else read_only(weights, dtype=np.float64)
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
    if values.size and gap > 1e-12 * values.max():
        raise ResultError(f"Weights must be symmetric; they differ from their transpose by up to {gap:g}.")
    if issparse(matrix):
        matrix.sum_duplicates()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            lock(part)
    return matrix
