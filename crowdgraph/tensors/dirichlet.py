"""Dirichlet distributions: expected logarithms, normalising constants, divergences."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.tensors.devices import most_precise

__all__ = ["dirichlet_divergence", "expected_log", "log_normaliser"]


def expected_log(concentration: Tensor, *, axis: int = -1) -> Tensor:
    r"""Return the expected logarithms under Dirichlets along `axis`: :math:`\psi(\alpha_l) - \psi(\sum_m \alpha_m)`.

    Examples
    --------
    >>> import torch
    >>> expected_log(torch.tensor([4.0, 1.0]))
    tensor([-0.2500, -2.0833])
    """
    # eq:eLnPj for classes, eq:expectation_lnPi for rows of confusion.
    return torch.digamma(concentration) - torch.digamma(concentration.sum(axis, keepdim=True))


def log_normaliser(concentration: Tensor, *, axis: int = -1) -> Tensor:
    r"""Return :math:`\ln B(\alpha) = \sum_l \ln \Gamma(\alpha_l) - \ln \Gamma(\sum_l \alpha_l)`."""
    # B of sec:staticLowerBound.
    return torch.lgamma(concentration).sum(axis) - torch.lgamma(concentration.sum(axis))


def dirichlet_divergence(concentration: Tensor, prior: Tensor, *, axis: int = -1) -> Tensor:
    r"""Return the divergence of Dirichlets from their priors along `axis`, in nats.

    A prior with a single entry along `axis` has the same for all. The divergence is

    .. math:: \mathrm{KL}(q \| p) = \ln B(\alpha_0) - \ln B(\alpha) + \sum_l (\alpha_l - \alpha_{0,l}) E[\ln \pi_l].
    """
    n = concentration.shape[axis]
    prior = prior.expand(n) if prior.ndim == 0 else prior
    if prior.shape[axis] not in (1, n):
        raise ParameterError(
            f"The prior has {prior.shape[axis]} entries along axis {axis}, and the Dirichlets have {n}; expected as "
            "many, or one."
        )
    if prior.shape[axis] != n:
        prior = prior.expand([n if dim == axis % prior.ndim else size for dim, size in enumerate(prior.shape)])
    # E[ln q(kappa)] - E[ln p(kappa)] and E[ln q(Pi)] - E[ln p(Pi)] of sec:staticLowerBound. Normalisers of thousands of
    # counts are so large that single precision loses their difference.
    dtype = torch.result_type(concentration, prior)
    concentration, prior = most_precise(concentration), most_precise(prior)
    difference = ((concentration - prior) * expected_log(concentration, axis=axis)).sum(axis)
    divergence = log_normaliser(prior, axis=axis) - log_normaliser(concentration, axis=axis) + difference
    return divergence.to(dtype)
