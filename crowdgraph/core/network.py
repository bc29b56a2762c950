"""VolunteerNetwork: a weighted undirected network of volunteers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._backbone import BackboneMethod, backbone, checked_p_values
from crowdgraph.core._html import network_html
from crowdgraph.core._parameters import check_non_negative, check_number, check_seed
from crowdgraph.core._rewiring import rewire_pairs
from crowdgraph.core._sparse import locked_csr
from crowdgraph.core.assortativity import assortativity
from crowdgraph.core.centrality import CentralityKind, centrality
from crowdgraph.core.network_views import NetworkEdges, NetworkNodes
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
from crowdgraph.core.volunteer_values import VolunteerValues
from crowdgraph.errors import ParameterError, ResultError

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from torch import Tensor

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
    #: The methods of `VolunteerNetwork.backbone` that test links against this model.
    link_tests: tuple[str, ...] = ()

    @abstractmethod
    def weights(self) -> csr_array | Array:
        """Return the weights between the volunteers."""

    @abstractmethod
    def null(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel:
        """Draw a crowd with the same numbers of answers as these volunteers, but without communities."""

    @abstractmethod
    def resampled(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel:
        """Draw the data anew, given what is known of these volunteers."""

    def p_values(self) -> csr_array | None:
        """Return the adjusted p-values of the links of a model that validates them; None of one that does not."""
        return None

    def validated(self, volunteers: Array, *, level: float, method: str) -> NetworkModel:
        """Return a model of these volunteers that has only validated links, as have the models drawn from it.

        `method` is one of `link_tests`, which are none unless a model has this method.
        """
        raise NotImplementedError

    def of_kinds(self, volunteers: Array, rng: np.random.Generator) -> NetworkModel | None:  # noqa: ARG002 - by default
        """Draw a crowd of a few kinds whose volunteers differ no more than these; None if that cannot be drawn."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class VolunteerNetwork(VolunteerIndexed, Result):
    """A weighted undirected network of volunteers without self-loops.

    `to_frame` has a row for each linked pair: volunteer, neighbour and weight, and p_value where links were tested.

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
    p_values
        How likely chance gives a link, where links were tested (see `backbone`): a SciPy CSR array of shape (V, V) with
        a value above 0 up to 1 for each link, adjusted for the number of tests. None if they were not tested.
    model
        The data that the weights were computed from, to draw null networks and to resample; None if made by hand. A
        saved graph has those of `networks.pi_similarity`, `task_cooccurrence` and `error_correlation`; files of
        networks have none.

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
    p_values: csr_array | None = field(default=None, metadata={"saved": "unless default"})
    model: NetworkModel | None = field(default=None, metadata={"saved": "if possible"})

    def __post_init__(self) -> None:
        ids = unique_ids(self.ids, kind="volunteer")
        self._set(ids=ids, weights=_checked_weights(self.weights, len(ids)), params=frozen_copy(self.params))
        if self.support is not None:
            self._set(support=real_array("support", self.support, shape=(len(ids),)))
        if self.p_values is not None:
            self._set(p_values=checked_p_values(self.p_values, self.weights))

    @classmethod
    def from_networkx(cls, graph: Any, *, weight: str | None = "weight", method: str | None = None) -> VolunteerNetwork:
        """Build a network from a networkx graph whose nodes are volunteers.

        What `to_networkx` returned comes back as it was, but for the `model`, so that null networks are drawn by
        rewiring. Nodes may have `support`, and links a `p_value`; a warning names other attributes, which a network
        cannot hold. Several links between two volunteers add up, without p-values, and links of weight 0 are none. A
        directed graph must have the same weights in both directions. Self-loops, and weights that are negative or not
        finite, raise.

        Parameters
        ----------
        graph
            A graph of any class of networkx.
        weight
            The edge attribute with the weights; edges without it weigh 1, as all do with None.
        method
            How the network was built. By default, what the graph's attribute ``method`` says, or ``"by hand"``.

        Examples
        --------
        >>> import networkx as nx
        >>> VolunteerNetwork.from_networkx(nx.les_miserables_graph(), method="same chapter")
        VolunteerNetwork(same chapter: 77 volunteers, 254 edges, density 0.0868, 0 isolated)
        """
        from crowdgraph.io.networks import network_from_networkx

        return network_from_networkx(graph, weight=weight, method=method)

    @classmethod
    def from_igraph(
        cls, graph: Any, *, volunteer: str | None = None, weight: str | None = "weight", method: str | None = None
    ) -> VolunteerNetwork:
        """Build a network from an igraph graph whose vertices are volunteers.

        All is as for `from_networkx`.

        Parameters
        ----------
        graph
            The graph.
        volunteer
            The vertex attribute with the ids; by default ``name`` or ``id``, or the vertices' numbers if they have
            neither.
        weight, method
            As for `from_networkx`.

        Examples
        --------
        >>> import igraph
        >>> graph = igraph.Graph.TupleList([("anna", "bert", 2.0), ("bert", "cleo", 1.0)], weights=True)
        >>> VolunteerNetwork.from_igraph(graph).strength
        array([2., 3., 1.])
        """
        from crowdgraph.io.networks import network_from_igraph

        return network_from_igraph(graph, volunteer=volunteer, weight=weight, method=method)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        volunteer: str = "volunteer",
        neighbour: str = "neighbour",
        weight: str = "weight",
        volunteers: Iterable[Hashable] | None = None,
        duplicates: str = "error",
        method: str = "by hand",
    ) -> VolunteerNetwork:
        """Build a network from a table with a row for each linked pair, such as that of `to_frame`.

        If there is a column ``p_value``, it has the p-values of the links; other columns are not read. Self-loops, and
        weights that are negative, missing or not finite, raise.

        Parameters
        ----------
        frame
            A pandas, polars or pyarrow table, or a dict of columns.
        volunteer, neighbour
            Names of the columns of both ends. Without them, ``source`` and ``target``, ``from`` and ``to``, ``node1``
            and ``node2``, and ``u`` and ``v`` are recognised, in lower or upper case.
        weight
            The name of the column of weights; without such a column, all links weigh 1.
        volunteers
            All volunteers in their order, those without a link too; by default those in the table, in the order in
            which it names them.
        duplicates
            What to do if several rows link the same two volunteers, in either order: ``"error"``, or ``"sum"`` to add
            the weights up.
        method
            How the network was built.

        Examples
        --------
        >>> links = {"source": ["anna", "bert"], "target": ["bert", "cleo"], "weight": [2.0, 1.0]}
        >>> VolunteerNetwork.from_frame(links, volunteers=["anna", "bert", "cleo", "dora"])
        VolunteerNetwork(by hand: 4 volunteers, 2 edges, density 0.333, 1 isolated)
        """
        from crowdgraph.io.networks import network_from_frame

        return network_from_frame(
            frame,
            volunteer=volunteer,
            neighbour=neighbour,
            weight=weight,
            volunteers=volunteers,
            duplicates=duplicates,
            method=method,
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> VolunteerNetwork:
        """Read a network from a GraphML or GEXF file that `save` wrote.

        Ids, weights, p-values, support, method and settings come back as they were, where `save` did not warn; the
        `model` does not, so that null networks are drawn by rewiring. Files of other programs are refused: read them
        with networkx, then use `from_networkx`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "network.graphml"
        >>> VolunteerNetwork.from_frame({"source": [1], "target": [2]}, method="met").save(path)
        >>> VolunteerNetwork.load(path)
        VolunteerNetwork(met: 2 volunteers, 1 edges, density 1, 0 isolated)
        """
        from crowdgraph.io._network_files import read_network

        return read_network(path)

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
        weights, p_values = (
            None if matrix is None else matrix[codes][:, codes] for matrix in (self.weights, self.p_values)
        )
        return replace(self, ids=self.ids[codes], weights=weights, support=support, p_values=p_values)

    def backbone(self, *, level: float = 0.01, method: BackboneMethod = "configuration") -> VolunteerNetwork:
        r"""Return the network of those links that are more than chance explains.

        Each link gets a p-value, adjusted by the method of Benjamini and Hochberg, and stays if it is at most `level`,
        with its weight: on average at most a share `level` of the links that stay is there by chance. `p_values` and
        `to_frame` of the network returned have the adjusted p-values: the smallest level at which a link stays.

        Parameters
        ----------
        level
            The false-discovery rate, above 0 and below 1.
        method
            What chance is. ``"configuration"``: volunteers and items meet at random, everybody answers as many items
            and every item has as many answers as they have, on average (the bipartite configuration model).
            ``"hypergeometric"``: everybody draws as many items as they answered, each item as likely; where some items
            have more answers than others this validates links that the popular items explain. Both count the items that
            two volunteers have in common, so they need a network of `networks.task_cooccurrence` whose model was not
            lost in a file; all pairs of volunteers count as tested. ``"disparity"``, for any weighted network: a
            volunteer's strength is split over their links at random; a link stays if either end finds it too heavy,
            and as many tests are made as there are links.

        Notes
        -----
        With the first two methods, resampled networks are validated in the same way, and null networks are rewired: a
        crowd without task structure has hardly any validated link to compare with. With ``"disparity"`` the network
        returned has no model, so that its null networks are rewired, too.

        References
        ----------
        .. [1] M. Tumminello, S. Miccichè, F. Lillo, J. Piilo and R. N. Mantegna, "Statistically validated networks in
           bipartite complex systems", PLoS ONE 6, e17994 (2011).
        .. [2] F. Saracco, M. J. Straka, R. Di Clemente, A. Gabrielli, G. Caldarelli and T. Squartini, "Inferring
           monopartite projections of bipartite networks: an entropy-based approach", New J. Phys. 19, 053022 (2017).
        .. [3] M. Á. Serrano, M. Boguñá and A. Vespignani, "Extracting the multiscale backbone of complex weighted
           networks", PNAS 106, 6483 (2009).

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(n_communities=4, seed=0).graph
        >>> network = cg.networks.task_cooccurrence(graph)
        >>> network
        VolunteerNetwork(task_cooccurrence: 100 volunteers, 3,332 edges, density 0.673, 0 isolated)
        >>> network.backbone(level=0.01)
        VolunteerNetwork(task_cooccurrence: 100 volunteers, 775 edges, density 0.157, 0 isolated)
        """
        return backbone(self, level=level, method=method)

    def largest_component(self) -> VolunteerNetwork:
        """Return the network of the largest connected component, with its volunteers in their order."""
        return self.subnetwork(self.ids[self.components == 0])

    def threshold(self, min_weight: float | None = None, *, strongest: float | None = None) -> VolunteerNetwork:
        """Return the network of the same volunteers with only its heavier links; give one of the two arguments.

        `params` records the smallest weight as `min_weight`. The network returned has no `model`, since its weights are
        no longer what the model computes; so its null networks are rewired.

        Parameters
        ----------
        min_weight
            Links of at least this weight stay.
        strongest
            The share of links that stay, above 0 and up to 1: the heaviest ones, rounded up, and all that are as heavy
            as the lightest of them.

        Examples
        --------
        >>> network = VolunteerNetwork(ids=["anna", "bert", "cleo"], method="by hand",
        ...                            weights=[[0, 2, 1], [2, 0, 3], [1, 3, 0]])
        >>> list(network.threshold(2).edges)
        [('anna', 'bert'), ('bert', 'cleo')]
        >>> network.threshold(strongest=0.3).n_edges
        1
        """
        if (min_weight is None) == (strongest is None):
            raise ParameterError("threshold() needs either a smallest weight or strongest=..., a share of links.")
        if min_weight is None:
            min_weight = self._weight_of_strongest(strongest)
        check_non_negative("min_weight", min_weight)
        least = max(float(min_weight), self.params.get("min_weight", 0.0))
        weights = self.weights * (self.weights >= min_weight) if min_weight else self.weights
        return replace(self, weights=weights, model=None, params={**self.params, "min_weight": least})

    def _weight_of_strongest(self, share: float | None) -> float:
        """Return the weight of the lightest among a share of the heaviest links."""
        check_number(
            "strongest", share, valid=lambda value: 0 < value <= 1, expected="be a share of links above 0 and up to 1"
        )
        weights = np.sort(self.pairs()[2])[::-1]
        return float(weights[math.ceil(float(share or 0) * len(weights)) - 1]) if len(weights) else 0.0

    # As a network

    def __contains__(self, volunteer: object) -> bool:
        return volunteer in self.table

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())

    def __getitem__(self, volunteer: Hashable) -> VolunteerValues:
        codes, weights = self._links(volunteer)
        return VolunteerValues("weight", self.ids[codes], weights)

    @property
    def nodes(self) -> NetworkNodes:
        """The volunteers; ``network.nodes(data=True)`` gives degree and strength, too."""
        return NetworkNodes(self)

    @property
    def edges(self) -> NetworkEdges:
        """The linked pairs; ``network.edges(data=True)`` gives the weight, too."""
        return NetworkEdges(self)

    def neighbors(self, volunteer: Hashable) -> list[Any]:
        """Return the ids of those to whom a volunteer is linked, by the heaviest link first.

        ``network[volunteer]`` gives their weights, too.

        Examples
        --------
        >>> network = VolunteerNetwork(ids=["anna", "bert", "cleo"], method="by hand",
        ...                            weights=[[0, 2, 1], [2, 0, 3], [1, 3, 0]])
        >>> network.neighbors("bert")
        ['cleo', 'anna']
        >>> dict(network["bert"])
        {'cleo': 3.0, 'anna': 2.0}
        """
        codes, _ = self._links(volunteer)
        neighbours: list[Any] = self.ids[codes].tolist()
        return neighbours

    def _links(self, volunteer: Hashable) -> tuple[Array, Array]:
        """Return the codes of a volunteer's neighbours and the weights of the links, the heaviest first."""
        code = self.table.code(volunteer)
        if isinstance(self.weights, np.ndarray):
            codes, weights = np.arange(len(self)), self.weights[code]
        else:
            row = slice(self.weights.indptr[code], self.weights.indptr[code + 1])
            codes, weights = self.weights.indices[row], self.weights.data[row]
        linked = np.flatnonzero(weights > 0)
        # Equal weights in order of codes.
        order = linked[np.lexsort((codes[linked], -weights[linked]))]
        return codes[order], weights[order]

    def weight(self, volunteer: Hashable, neighbour: Hashable) -> float:
        """Return the weight of the link between two volunteers; zero if they are not linked."""
        return float(self.weights[self.table.code(volunteer), self.table.code(neighbour)])

    def has_edge(self, volunteer: Hashable, neighbour: Hashable) -> bool:
        """Return whether two volunteers are linked; False, too, if one of them is not in the network."""
        return volunteer in self and neighbour in self and self.weight(volunteer, neighbour) > 0

    def centrality(self, kind: CentralityKind, *, weighted: bool = True) -> VolunteerValues:
        """Return the centrality of each volunteer, with the conventions of networkx.

        Weights are similarities, so the length of a link is one over its weight where paths are measured. Betweenness
        and closeness need the shortest paths between all pairs, which takes long in dense networks; `threshold` them.

        Parameters
        ----------
        kind
            ``"degree"``
                The share of others to whom the volunteer is linked, whatever the weights.
            ``"strength"``
                The sum of weights, which is not normalised.
            ``"betweenness"``
                The share of shortest paths between others that pass through the volunteer. Paths whose lengths differ
                by rounding only count as equally short, while networkx takes one of them for the shortest.
            ``"closeness"``
                One over the mean distance to others, times the share of others who can be reached.
            ``"eigenvector"``
                The leading eigenvector of the weights, of Euclidean norm one; the network must be connected.
            ``"pagerank"``
                PageRank with damping 0.85; it sums to one.
        weighted
            Whether weights count; otherwise all links are equal.

        Examples
        --------
        >>> network = VolunteerNetwork(ids=["anna", "bert", "cleo"], method="by hand",
        ...                            weights=[[0, 2, 0], [2, 0, 1], [0, 1, 0]])
        >>> network.centrality("betweenness").top(1)
        betweenness of 1 volunteers: 'bert' 1
        """
        return VolunteerValues(kind, self.ids, centrality(self, kind, weighted=weighted))

    def assortativity(self, attribute: Any, *, nominal: bool | None = None, weighted: bool = False) -> float:
        """Return whether linked volunteers are alike, from -1 to 1: 0 is what chance gives, 1 only equals are linked.

        It is NaN where there are no links, or all of them join volunteers of one value.

        Parameters
        ----------
        attribute
            A value for each volunteer: a mapping (or pandas Series) by id, values in order of `ids`, `Communities`
            (links of volunteers who belong to none are left out), or ``"degree"`` or ``"strength"``.
        nominal
            Whether values are categories, of which equal ones are alike (Newman 2003), or numbers, whose correlation
            over links is returned. If left out, numbers are numbers, anything else and `Communities` are categories.
        weighted
            Whether links count by their weights; networkx counts them equally.

        Examples
        --------
        >>> network = VolunteerNetwork(ids=["anna", "bert", "cleo", "dora"], method="by hand",
        ...                            weights=[[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
        >>> network.assortativity({"anna": "new", "bert": "new", "cleo": "old", "dora": "old"})
        1.0
        """
        return assortativity(self, attribute, nominal=nominal, weighted=weighted)

    @property
    def has_null(self) -> bool:
        """Whether `null` can draw a network: it needs a model of the network, or room to rewire its links."""
        return self._draws_crowds or self.density <= MAX_REWIRABLE_DENSITY

    @property
    def _draws_crowds(self) -> bool:
        """Whether null networks are those of crowds that the model draws.

        Such crowds have no validated links; what chance gives is then seen by rewiring the links that there are.
        """
        return self.model is not None and self.p_values is None

    def null(self, *, seed: int | None = None) -> VolunteerNetwork:
        """Draw a network of the same volunteers from the null model: a crowd without communities.

        The null model depends on how the network was built; see `networks.pi_similarity` and
        `networks.task_cooccurrence`. The `model` of the network returned is the crowd that was drawn; for a subnetwork
        the crowd resembles its volunteers only. A network without a model, such as one made by hand or read from a
        file, and one of validated links (`backbone`) are rewired: every volunteer keeps the number of neighbours, and
        the weights of links, relative to what is usual for both ends, are shuffled.

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
        if self.model is None or not self._draws_crowds:
            return replace(self, weights=_rewired_weights(self, rng), method=method, p_values=None, model=None)
        model = self.model.null(self.ids, rng)
        return replace(self, weights=model.weights(), method=method, model=model)

    @property
    def mean_weight(self) -> float:
        """The mean weight of all pairs, linked or not; 0 for a single volunteer."""
        return float(self.strength.sum() / max(len(self) * (len(self) - 1), 1))

    def of_kinds(self, *, seed: int | None = None) -> VolunteerNetwork | None:
        """Draw a network of the same volunteers, who are now of a few kinds but differ no more than before.

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
                "with networks.pi_similarity or networks.task_cooccurrence; files of networks do not keep the model."
            )
        model = self.model.resampled(self.ids, np.random.default_rng(seed))
        return replace(self, weights=model.weights(), p_values=model.p_values(), model=model)

    def to_networkx(self, *, communities: Communities | None = None) -> Any:
        """Return a `networkx.Graph` with volunteer ids as nodes and `weight`, where known `p_value`, on the edges.

        Nodes have `strength`, `support` where it is known, and with `communities` the community of assignment (-1 for
        none) as `community` and the participation in each as `participation_0`, `participation_1` and so on. The graph
        has the `method` and, as JSON text, the `params`, so that `from_networkx` returns the same network.
        """
        from crowdgraph.io.networkx import network_to_networkx

        return network_to_networkx(self, communities=communities)

    def to_igraph(self, *, communities: Communities | None = None) -> Any:
        """Return an undirected `igraph.Graph` with vertex attribute `id` and edge attribute `weight`.

        Vertices and edges also have the other attributes of `to_networkx`.
        """
        from crowdgraph.io.networkx import network_to_igraph

        return network_to_igraph(self, communities=communities)

    def to_torch(self, *, dense: bool | None = None, device: Any = None, dtype: Any = "float64") -> Tensor:
        """Return a copy of the weights as a tensor of shape (V, V).

        Parameters
        ----------
        dense
            Whether the tensor is dense; otherwise it is a sparse CSR tensor. As the weights are if left out.
        device, dtype
            As in `CrowdGraph.to_torch`.

        Examples
        --------
        >>> ring = np.roll(np.eye(4), 1, axis=0)
        >>> network = VolunteerNetwork(ids=range(4), weights=ring + ring.T, method="ring")
        >>> network.to_torch(dtype="float32").sum(dim=1)
        tensor([2., 2., 2., 2.])
        >>> network.to_torch(dense=False).layout
        torch.sparse_csr
        """
        from crowdgraph.io.tensors import network_to_torch

        return network_to_torch(self, dense=dense, device=device, dtype=dtype)

    def to_pyg(self, *, dtype: Any = "float32") -> Any:
        """Return a `torch_geometric.data.Data` with `edge_index`, `edge_weight`, `num_nodes` and the list `ids`.

        Every link is there in both directions, sorted by rows and columns, and has its `p_value` where links were
        tested. It needs the package torch-geometric.

        Parameters
        ----------
        dtype
            The precision of weights and p-values; layers of PyTorch expect ``"float32"``.

        Examples
        --------
        >>> ring = np.roll(np.eye(4), 1, axis=0)
        >>> VolunteerNetwork(ids=range(4), weights=ring + ring.T, method="ring").to_pyg()
        Data(edge_index=[2, 8], num_nodes=4, ids=[4], edge_weight=[8])
        """
        from crowdgraph.io.pyg import network_to_pyg

        return network_to_pyg(self, dtype=dtype)

    def save(self, path: str | PathLike[str], *, communities: Communities | None = None) -> None:
        """Write a file for Gephi and other tools: GraphML or GEXF, if the name ends in ``.graphml`` or ``.gexf``.

        Ids become text, as names and labels of nodes; nodes and edges have the attributes of `to_networkx`. `load`
        reads the network back.

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
        ends = {"volunteer": CodedColumn(left, self.ids), "neighbour": CodedColumn(right, self.ids)}
        return {**ends, "weight": weights, **self.pair_attributes()}

    def pairs(self) -> tuple[Array, Array, Array]:
        """Return each linked pair once: the codes of both ends (the smaller first) and the weight."""
        upper = _upper_triangle(self.weights)
        return upper.coords[0], upper.coords[1], upper.data

    def pair_attributes(self) -> dict[str, Array]:
        """Return what is known of each linked pair besides its weight, by name, in the order of `pairs`."""
        return {} if self.p_values is None else {"p_value": _upper_triangle(self.p_values).data}

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless all volunteers of the network are in the graph."""
        check_ids_known(f"The network {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        return (
            f"VolunteerNetwork({self.method}: {len(self):,} volunteers, {self.n_edges:,} edges, "
            f"density {self.density:.3g}, {len(self.isolated):,} isolated)"
        )

    def _repr_html_(self) -> str:
        return network_html(self)


def _upper_triangle(matrix: Any) -> Any:
    """Return the values of each pair once, in order of rows and columns."""
    from scipy.sparse import coo_array, triu

    upper = coo_array(triu(coo_array(matrix), k=1))
    upper.eliminate_zeros()
    return upper


def _rewired_weights(network: VolunteerNetwork, rng: np.random.Generator) -> Any:
    """Rewire the links at random; everybody keeps the number of neighbours."""
    from scipy.sparse import csr_array, issparse

    if not network.has_null:
        raise ParameterError(
            f"The network {network.method!r} links {network.density:.0%} of all pairs, so rewiring hardly changes it "
            "and cannot show what chance gives. Build it with networks.pi_similarity, which can draw a crowd without "
            "communities; files of networks do not keep that."
        )
    left, right, values = network.pairs()
    # The weight of a link depends on its ends; what is shuffled is its weight relative to that.
    usual = network.strength / np.maximum(network.degree, 1)
    # Products of two neither overflow nor vanish, whatever the unit; powers of two do not change how they are rounded.
    usual = np.ldexp(usual, -np.frexp(usual.max(initial=0.0))[1])
    relative = rng.permutation(values / (usual[left] * usual[right]))
    left, right = rewire_pairs(left, right, len(network), rng)
    new_values = relative * usual[left] * usual[right]
    new_values *= values.sum() / max(float(new_values.sum()), np.finfo(float).tiny)
    upper = csr_array((new_values, (left, right)), shape=network.weights.shape)
    weights = upper + upper.T
    return weights if issparse(network.weights) else weights.toarray()


def _asymmetry(matrix: Any) -> float:
    """Return the largest difference of a matrix from its transpose; of a dense one in strips, which fit the memory."""
    if not isinstance(matrix, np.ndarray):
        return float(abs(matrix - matrix.T).max())
    strips = range(0, len(matrix), max(1, 2**24 // max(len(matrix), 1)))
    height = strips.step
    gaps = (np.abs(matrix[row : row + height] - matrix[:, row : row + height].T).max() for row in strips)
    return float(max(gaps, default=0.0))


def _checked_weights(weights: Any, n_volunteers: int) -> Any:
    """Return read-only weights: square, finite, not negative, symmetric, without self-loops."""
    from scipy.sparse import issparse

    checked = locked_csr if issparse(weights) else real_array
    matrix: Any = checked("weights", weights, shape=(n_volunteers, n_volunteers))
    values = matrix.data if issparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise ResultError(f"weights holds {np.count_nonzero(~np.isfinite(values)):,} values that are not finite.")
    if values.size and values.min() < 0:
        raise ResultError(f"Weights must not be negative; the smallest is {values.min():g}.")
    if matrix.diagonal().any():
        raise ResultError("The network has self-loops; set the diagonal of the weights to zero.")
    if values.size and (gap := _asymmetry(matrix)) > 1e-12 * values.max():
        raise ResultError(f"Weights must be symmetric; they differ from their transpose by up to {gap:g}.")
    return matrix
