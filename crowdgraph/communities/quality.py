"""Quality measures of communities: modularity, coverage and conductance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._modularity import hard_modularity_of, modularity_of, one_hot
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError

__all__ = ["conductance", "coverage", "modularity", "soft_modularity"]


def __dir__() -> list[str]:
    return __all__


def modularity(network: VolunteerNetwork, communities: Communities | ArrayLike) -> float:
    r"""Return Newman's weighted modularity of the hard assignment.

    .. math:: Q = \sum_k \left( \frac{w_{kk}}{2m} - \Big(\frac{s_k}{2m}\Big)^2 \right),

    where :math:`w_{kk}` sums the weights inside community `k` from both ends, :math:`s_k` is the strength of its
    members, and :math:`2m` sums all weights. Volunteers of no community count as communities of one. Modularity is 0
    in a network without weights.

    Parameters
    ----------
    network
        The network.
    communities
        The communities, or the number of each volunteer's community, of shape (V,); -1 for none.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> pair = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    >>> network = cg.VolunteerNetwork(ids="abcd", weights=pair, method="by hand")
    >>> cg.communities.quality.modularity(network, [0, 0, 1, 1])
    0.5
    """
    return hard_modularity_of(network.weights, network.strength, _assignment(network, communities))


def soft_modularity(network: VolunteerNetwork, communities: Communities | ArrayLike) -> float:
    r"""Return modularity for volunteers who may belong to several communities.

    .. math:: Q = \sum_k \left( \frac{u_k^\top W u_k}{2m} - \Big(\frac{u_k^\top s}{2m}\Big)^2 \right)

    where :math:`u_k` are participations; it equals `modularity` where each volunteer belongs to one community.

    Parameters
    ----------
    network
        The network.
    communities
        The communities, or participations of shape (V, K).
    """
    return modularity_of(network.weights, network.strength, _participation(network, communities))


def coverage(network: VolunteerNetwork, communities: Communities | ArrayLike) -> float:
    """Return the share of all weights that lies inside communities, by hard assignment; 1 without weights.

    `communities` is as for `modularity`.
    """
    total = float(network.strength.sum())
    shares = one_hot(_assignment(network, communities))
    return float((shares * (network.weights @ shares)).sum()) / total if total else 1.0


def conductance(network: VolunteerNetwork, communities: Communities | ArrayLike) -> Array:
    """Return the conductance of each community, of shape (K,).

    It is the sum of the weights that leave the community, divided by its strength or that of all others, whichever is
    smaller: 0 for a community without outside links, 1 for one without inside links, NaN where either strength is
    zero. `communities` is as for `modularity`.
    """
    shares = one_hot(_assignment(network, communities))
    # Summed over the others, not subtracted from the total, so that no rounding error is left of an empty sum.
    leaving = (shares * (network.weights @ (1 - shares))).sum(axis=0)
    smaller = np.minimum(network.strength @ shares, network.strength @ (1 - shares))
    return np.asarray(leaving / np.where(smaller > 0, smaller, np.nan))


def _assignment(network: VolunteerNetwork, communities: Communities | ArrayLike) -> Array:
    """Return the community of each of the network's volunteers."""
    if isinstance(communities, Communities):
        return communities.on(network).assignment
    codes = np.asarray(communities)
    if codes.shape != (len(network),) or codes.dtype.kind not in "iu" or (codes < -1).any():
        raise ParameterError(
            f"An assignment of {len(network):,} volunteers must be as many whole numbers from 0 up, -1 for none; got "
            f"an array of {codes.dtype} of shape {codes.shape}."
        )
    return codes


def _participation(network: VolunteerNetwork, communities: Communities | ArrayLike) -> Array:
    """Return the participation of each of the network's volunteers, of shape (V, K)."""
    if isinstance(communities, Communities):
        return communities.on(network).participation
    shares = np.asarray(communities, dtype=np.float64)
    if shares.ndim != 2 or len(shares) != len(network) or (shares < 0).any():
        raise ParameterError(
            f"Participations of {len(network):,} volunteers must be an array of as many rows without negative values; "
            f"got shape {shares.shape}."
        )
    return shares
