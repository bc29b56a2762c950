"""How good communities are: sums of the weights inside them and between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import AlignmentError, ParameterError

__all__ = ["conductance", "coverage", "modularity", "soft_modularity"]


def modularity(network: VolunteerNetwork, communities: Communities | ArrayLike) -> float:
    r"""Newman's weighted modularity of the hard assignment.

    .. math:: Q = \sum_k \left( \frac{w_{kk}}{2m} - \Big(\frac{s_k}{2m}\Big)^2 \right),

    with the weights inside community `k` counted from both ends, the strength :math:`s_k` of its members, and all
    weights :math:`2m`. Volunteers of no community count as communities of one. It is 0 without any weights.

    Parameters
    ----------
    network
        The network.
    communities
        The communities, or the number of each volunteer's, of shape (V,); -1 for none.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> pair = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    >>> network = cg.VolunteerNetwork(ids="abcd", weights=pair, method="by hand")
    >>> cg.communities.quality.modularity(network, [0, 0, 1, 1])
    0.5
    """
    assignment = _assignment(network, communities)
    total = float(network.strength.sum())
    loners = network.strength[assignment < 0]
    return soft_modularity(network, _one_hot(assignment)) - (float(((loners / total) ** 2).sum()) if total else 0.0)


def soft_modularity(network: VolunteerNetwork, communities: Communities | ArrayLike) -> float:
    r"""Modularity with volunteers who belong to several communities.

    .. math:: Q = \sum_k \left( \frac{u_k^\top W u_k}{2m} - \Big(\frac{u_k^\top s}{2m}\Big)^2 \right)

    for participations :math:`u_k`; it is `modularity` where each volunteer belongs to one.

    Parameters
    ----------
    network
        The network.
    communities
        The communities, or participations of shape (V, K).
    """
    return modularity_of(network.weights, network.strength, _participation(network, communities))


def modularity_of(weights: Any, strength: Array, shares: Array) -> float:
    """Soft modularity of participations, (V, K), in weights, (V, V); 0 without any."""
    total = float(strength.sum())
    if total == 0:
        return 0.0
    inside = float((shares * (weights @ shares)).sum()) / total
    return inside - float(((strength @ shares / total) ** 2).sum())


def coverage(network: VolunteerNetwork, communities: Communities | ArrayLike) -> float:
    """The share of all weights that lies inside communities, by hard assignment; 1 without any weights.

    `communities` is as for `modularity`.
    """
    total = float(network.strength.sum())
    shares = _one_hot(_assignment(network, communities))
    return float((shares * (network.weights @ shares)).sum()) / total if total else 1.0


def conductance(network: VolunteerNetwork, communities: Communities | ArrayLike) -> Array:
    """For each community the weights that leave it, as a share of its strength or the others', the smaller one; (K,).

    0 is a community on its own, 1 one without inner links; NaN where it or the rest has no strength. `communities` is
    as for `modularity`.
    """
    shares = _one_hot(_assignment(network, communities))
    # Summed over the others, not subtracted from the total, so that nothing is left of nobody.
    leaving = (shares * (network.weights @ (1 - shares))).sum(axis=0)
    smaller = np.minimum(network.strength @ shares, network.strength @ (1 - shares))
    return np.asarray(leaving / np.where(smaller > 0, smaller, np.nan))


def _assignment(network: VolunteerNetwork, communities: Communities | ArrayLike) -> Array:
    """The community of each of the network's volunteers."""
    if isinstance(communities, Communities):
        return communities.assignment[_places(network, communities)]
    codes = np.asarray(communities)
    if codes.shape != (len(network),) or codes.dtype.kind not in "iu" or (codes < -1).any():
        raise ParameterError(
            f"An assignment of {len(network):,} volunteers must be as many whole numbers from 0 up, -1 for none; got "
            f"an array of {codes.dtype} of shape {codes.shape}."
        )
    return codes


def _participation(network: VolunteerNetwork, communities: Communities | ArrayLike) -> Array:
    """The participation of each of the network's volunteers, of shape (V, K)."""
    if isinstance(communities, Communities):
        return communities.participation[_places(network, communities)]
    shares = np.asarray(communities, dtype=np.float64)
    if shares.ndim != 2 or len(shares) != len(network) or (shares < 0).any():
        raise ParameterError(
            f"Participations of {len(network):,} volunteers must be an array of as many rows without negative values; "
            f"got shape {shares.shape}."
        )
    return shares


def _places(network: VolunteerNetwork, communities: Communities) -> Array:
    strangers = [name for name in network.ids.tolist() if name not in communities.table]
    if strangers:
        raise AlignmentError(
            f"The communities lack {len(strangers):,} of the network's volunteers, such as {strangers[0]!r}. Detect "
            "them in this network."
        )
    return communities.table.codes(network.ids)


def _one_hot(assignment: Array) -> Array:
    shares = np.zeros((len(assignment), int(assignment.max(initial=-1)) + 1))
    member = np.flatnonzero(assignment >= 0)
    shares[member, assignment[member]] = 1
    return shares
