"""Weights prepared for factorisation, so that communities stand out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._modularity import modularity_of
from crowdgraph.core._random import igraph_seed
from crowdgraph.core.network import NULL_SUFFIX, VolunteerNetwork

# Sharpened weights below this share of the largest do not count for modularity.
NEGLIGIBLE_WEIGHT = 1e-6
LEIDEN_ITERATIONS = 2
# The methods of networks that know what they were computed from, unless they come from a file of a network: those whose
# weights are no similarities, since they count what volunteers share, and those whose weights are.
COUNTING_METHODS, SIMILARITY_METHODS = ("task_cooccurrence", "error_correlation"), ("pi_similarity",)


class PreparedWeights(NamedTuple):
    """Weights to factorise (`search`) and weights in which modularity is measured (`score`), both (V, V), symmetric."""

    search: Any
    score: Any

    def modularity(self, assignment: Array) -> float:
        """Return the modularity of an assignment of all volunteers."""
        return self.soft_modularity(np.eye(int(assignment.max()) + 1)[assignment])

    def highest_modularity(self, seed: int) -> float:
        """Return the modularity of the best partition that Leiden finds, 0 without links.

        Every network has one, so that it compares networks also where the factorisation sees a single community.
        """
        graph, weights = _as_igraph(self.score)
        if not graph.ecount():
            return 0.0
        with igraph_seed(seed):
            best = graph.community_leiden(
                objective_function="modularity", weights=weights.tolist(), n_iterations=LEIDEN_ITERATIONS
            )
        return float(best.quality)

    def soft_modularity(self, participation: Array) -> float:
        """Return the modularity of participations, of shape (V, K)."""
        return modularity_of(self.score, np.asarray(self.score.sum(axis=1)).ravel(), participation)


def _as_igraph(weights: Any) -> tuple[Any, Array]:
    """Return a graph of all pairs, or of those that are linked, with the weights of its edges.

    Weights that do not count are left out; in a graph of all pairs, which igraph makes far more quickly, they are zero.
    """
    import igraph
    from scipy.sparse import coo_array, triu

    n_volunteers = weights.shape[0]
    if isinstance(weights, np.ndarray):
        values = weights[np.triu_indices(n_volunteers, 1)]
        heavy = values > NEGLIGIBLE_WEIGHT * values.max(initial=0.0)
        return (igraph.Graph.Full(n_volunteers) if heavy.any() else igraph.Graph(n_volunteers)), values * heavy
    upper = coo_array(triu(coo_array(weights), k=1))
    heavy = upper.data > NEGLIGIBLE_WEIGHT * upper.data.max(initial=0.0)
    # igraph reads a list of pairs several times as fast as an array.
    pairs = list(zip(*(ends[heavy].tolist() for ends in upper.coords), strict=True))
    return igraph.Graph(n=n_volunteers, edges=pairs, directed=False), upper.data[heavy]


def is_similarity(network: VolunteerNetwork) -> bool:
    """Whether the weights are similarities: they link everybody, and do not count what volunteers share."""
    if network.model is None:
        # Files of networks keep the method, and lose the model.
        return network.density == 1 and _builder(network) not in COUNTING_METHODS
    return network.density == 1 and network.model.confusion is not None


def has_lost_model(network: VolunteerNetwork) -> bool:
    """Return whether a network was built with a model that is not there any more."""
    return network.model is None and _builder(network) in (*COUNTING_METHODS, *SIMILARITY_METHODS)


def _builder(network: VolunteerNetwork) -> str:
    return network.method.removesuffix(NULL_SUFFIX)


def prepare_weights(network: VolunteerNetwork, *, sharpness: float, strength: float) -> PreparedWeights:
    r"""Sharpen the weights, or subtract what chance explains, and scale them to `strength` for the average volunteer.

    Similarities are sharpened and normalised, :math:`D^{-1/2} V^\gamma D^{-1/2}`, so that neither many weak links nor
    volunteers who are like many others hide the communities. In a sparse network, :math:`s_m s_n / \sum s`, the weight
    expected by chance between volunteers of these strengths, is subtracted from each link; negative weights become
    zero.
    """
    if is_similarity(network):
        similarities = network.weights if isinstance(network.weights, np.ndarray) else network.weights.toarray()
        weights = _sharpen(similarities, sharpness)
        weights *= strength / weights.sum(axis=1).mean()
        return PreparedWeights(weights, weights)
    excess = _excess_over_chance(network, sharpness)
    return PreparedWeights(excess * (strength * len(network) / excess.sum()), network.weights)


def _sharpen(similarities: Array, sharpness: float) -> Array:
    weights: Array = (similarities / similarities.max()) ** sharpness
    roots = np.sqrt(weights.sum(axis=1))
    # Powers of small similarities may underflow; volunteers who are like nobody else keep weights of zero.
    roots[roots == 0] = 1
    weights /= roots
    weights /= roots[:, None]
    return weights


def _excess_over_chance(network: VolunteerNetwork, sharpness: float) -> Any:
    from scipy.sparse import csr_array

    weights = csr_array(network.weights, copy=True)
    values = (weights.data / weights.data.max()) ** sharpness
    sums = np.bincount(weights.indices, weights=values, minlength=len(network))
    rows = np.repeat(np.arange(len(network)), np.diff(weights.indptr))
    values = np.maximum(values - sums[rows] * sums[weights.indices] / sums.sum(), 0.0)
    excess = csr_array((values, weights.indices, weights.indptr), weights.shape)
    excess.eliminate_zeros()
    return excess
