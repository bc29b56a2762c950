"""The weights in which a detector searches: what a network's weights are turned into, so that groups stand out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.network import VolunteerNetwork


class PreparedWeights(NamedTuple):
    """Weights to search in, and those in which modularity is judged, both (V, V) and symmetric."""

    weights: Any
    judged: Any


def is_similarity(network: VolunteerNetwork) -> bool:
    """Whether a network is one of similarities: it links everybody, and was not made from what people share."""
    return network.density == 1 and (network.model is None or network.model.confusion is not None)


def prepare_weights(network: VolunteerNetwork, *, sharpness: float, strength: float) -> PreparedWeights:
    r"""Weights in which groups stand out, scaled so that volunteers' weights sum to `strength` on average.

    Similarities are sharpened and normalised, :math:`D^{-1/2} V^\gamma D^{-1/2}`, so that neither many weak links nor
    volunteers who are like many others drown the groups. From the weights of a sparse network those that chance gives
    to volunteers of such strengths are subtracted, :math:`s_m s_n / \sum s`, where there are links at all; what is
    below zero becomes zero.
    """
    if is_similarity(network):
        similarities = network.weights if isinstance(network.weights, np.ndarray) else network.weights.toarray()
        weights = _sharpened(similarities, sharpness)
        weights *= strength / weights.sum(axis=1).mean()
        return PreparedWeights(weights, weights)
    excess = _excess(network, sharpness)
    return PreparedWeights(excess * (strength * len(network) / excess.sum()), network.weights)


def _sharpened(similarities: Array, sharpness: float) -> Array:
    weights: Array = (similarities / similarities.max()) ** sharpness
    roots = np.sqrt(weights.sum(axis=1))
    # Powers of small similarities may vanish; those of somebody who is like nobody else stay zero.
    roots[roots == 0] = 1
    weights /= roots
    weights /= roots[:, None]
    return weights


def _excess(network: VolunteerNetwork, sharpness: float) -> Any:
    from scipy.sparse import csr_array

    weights = csr_array(network.weights, copy=True)
    values = (weights.data / weights.data.max()) ** sharpness
    sums = np.bincount(weights.indices, weights=values, minlength=len(network))
    rows = np.repeat(np.arange(len(network)), np.diff(weights.indptr))
    values = np.maximum(values - sums[rows] * sums[weights.indices] / sums.sum(), 0.0)
    excess = csr_array((values, weights.indices, weights.indptr), weights.shape)
    excess.eliminate_zeros()
    return excess
