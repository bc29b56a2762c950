"""Centrality of volunteers in a network, with the conventions of networkx and computed by igraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool
from crowdgraph.errors import ParameterError, check_choice

if TYPE_CHECKING:
    from crowdgraph.core.network import VolunteerNetwork

__all__ = ["CentralityKind", "centrality"]

CentralityKind = Literal["degree", "strength", "betweenness", "closeness", "eigenvector", "pagerank"]
# The chance with which the walker of PageRank follows a link.
DAMPING = 0.85


def centrality(network: VolunteerNetwork, kind: CentralityKind, *, weighted: bool) -> Array:
    """Return the centrality of each volunteer, of shape (V,); see `VolunteerNetwork.centrality`."""
    check_choice("kind", kind, get_args(CentralityKind))
    check_bool("weighted", weighted)
    if kind == "degree":
        return network.degree / (len(network) - 1) if len(network) > 1 else np.ones(len(network))
    if kind == "strength":
        if not weighted:
            raise ParameterError("strength is the sum of weights, so it cannot be unweighted; use kind='degree'.")
        return network.strength
    if len(network) == 0:
        return np.zeros(0)
    return np.asarray(METHODS[kind](network, *_igraph(network, weighted=weighted)))


def _igraph(network: VolunteerNetwork, *, weighted: bool) -> tuple[Any, Array]:
    """Return the network as an igraph graph without attributes, and the weights of its edges, which may all be one."""
    import igraph

    left, right, weights = network.pairs()
    graph = igraph.Graph(n=len(network), edges=np.column_stack([left, right]), directed=False)
    return graph, weights if weighted else np.ones(len(weights))


def _betweenness(network: VolunteerNetwork, graph: Any, weights: Array) -> Array:
    pairs_of_others = (len(network) - 1) * (len(network) - 2) / 2
    return np.array(graph.betweenness(directed=False, weights=_lengths(weights))) / max(pairs_of_others, 1)


def _lengths(weights: Array) -> list[float]:
    """Return the lengths of links: weights are similarities, so the heavier a link, the shorter it is."""
    lengths: list[float] = (1 / weights).tolist()
    return lengths


def _closeness(network: VolunteerNetwork, graph: Any, weights: Array) -> Array:
    closeness = np.array(graph.closeness(weights=_lengths(weights), normalized=True))
    reached = np.bincount(network.components)[network.components] - 1
    # In a network of several components, closeness is that within one's own, times the share of others who are there.
    return np.where(reached > 0, closeness * reached / max(len(network) - 1, 1), 0.0)


def _eigenvector(network: VolunteerNetwork, graph: Any, weights: Array) -> Array:
    n_components = int(network.components.max()) + 1
    if n_components > 1:
        raise ParameterError(
            f"Eigenvector centrality is ambiguous in a network of {n_components:,} components.",
            hint="Use network.largest_component().centrality('eigenvector'), or kind='pagerank'.",
        )
    vector = np.array(graph.eigenvector_centrality(weights=weights.tolist()))
    return np.asarray(vector / np.linalg.norm(vector))


def _pagerank(network: VolunteerNetwork, graph: Any, weights: Array) -> Array:  # noqa: ARG001 - as the others
    return np.array(graph.pagerank(directed=False, damping=DAMPING, weights=weights.tolist()))


METHODS = {"betweenness": _betweenness, "closeness": _closeness, "eigenvector": _eigenvector, "pagerank": _pagerank}
