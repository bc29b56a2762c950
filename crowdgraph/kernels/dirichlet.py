"""Dirichlet distributions: expectations, normalising constants, and the one that fits expected logarithms best."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.kernels.iterate import Step, climb

__all__ = ["best_concentration", "expected_log", "log_normaliser", "shared_by", "shared_concentration"]


def expected_log(concentration: Tensor, *, axis: int) -> Tensor:
    r"""The expected logarithms under Dirichlets along `axis`: :math:`\psi(\alpha_l) - \psi(\sum_m \alpha_m)`."""
    return torch.digamma(concentration) - torch.digamma(concentration.sum(axis, keepdim=True))


def log_normaliser(concentration: Tensor, *, axis: int) -> Tensor:
    r"""The logarithm of the normalising constant, :math:`\sum_l \ln \Gamma(\alpha_l) - \ln \Gamma(\sum_l \alpha_l)`."""
    return torch.lgamma(concentration).sum(axis) - torch.lgamma(concentration.sum(axis))


def best_concentration(mean_logs: Tensor, start: Tensor, *, n_steps: int = 100) -> Tensor:
    r"""For each row the Dirichlet whose expected logarithms equal `mean_logs`, of shape (..., L).

    It maximises :math:`\sum_l (\alpha_l - 1) m_l - \ln B(\alpha)`, which is concave; Newton's steps are taken in
    :math:`\ln \alpha` as Minka (2000) does, halved until they climb.
    """
    alpha = start.clone()

    def height(value: Tensor) -> Tensor:
        return ((value - 1) * mean_logs).sum(-1) - log_normaliser(value, axis=-1)

    now = height(alpha)
    for _ in range(n_steps):
        total = alpha.sum(-1, keepdim=True)
        slope = mean_logs - expected_log(alpha, axis=-1)
        # The Hessian is diagonal plus a constant, so that Newton's step has a closed form.
        curve = -torch.polygamma(1, alpha)
        shared = torch.polygamma(1, total)
        common = (slope / curve).sum(-1, keepdim=True) / (1 / shared + (1 / curve).sum(-1, keepdim=True))
        step = -(slope - common) / curve
        if not (step.abs() > 1e-11 * alpha).any():
            break
        # Heights are differences of numbers as large as these, and no more exact.
        slack = 1e-14 * (1 + torch.lgamma(total[..., 0]).abs())
        size = torch.ones_like(now)
        for _ in range(40):
            # A step in the logarithm keeps every entry positive.
            trial = alpha * torch.exp((size[..., None] * step / alpha).clamp(-5, 5))
            reached = height(trial)
            worse = ~(reached >= now - slack)
            if not worse.any():
                break
            size = torch.where(worse, size / 2, size)
        climbed = ~worse & (reached > now + slack)
        alpha = torch.where(worse[..., None], alpha, trial)
        now = torch.where(worse, now, reached)
        if not climbed.any():
            break
    return alpha


def shared_by(logs: Tensor, imagined: Tensor, start: Tensor) -> Tensor:
    """The Dirichlet rows, (J, L), that fit the expected logarithms of people, (K, J, L), and of an imagined one best.

    The imagined one, (J, L), keeps the rows finite where all people are alike.
    """
    return best_concentration((logs.sum(0) + imagined) / (len(logs) + 1), start)


def shared_concentration(counts: Tensor, given: Tensor) -> Tensor:
    r"""The Dirichlet rows, (J, L), under which counts by person, (K, J, L), are most probable (empirical Bayes).

    One more, imagined person, who is distributed as the rows `given` say, keeps them finite. By expectation
    maximisation: the E-step works out everybody's expected logarithms, the M-step the Dirichlet that fits their mean.
    """
    imagined = expected_log(given, axis=1)

    def step(state: Tensor) -> Step:
        alpha = state.reshape(given.shape)
        posterior = alpha + counts
        evidence = (log_normaliser(posterior, axis=2) - log_normaliser(alpha, axis=1)).sum()
        height = evidence + ((alpha - 1) * imagined).sum() - log_normaliser(alpha, axis=1).sum()
        following = shared_by(expected_log(posterior, axis=2), imagined, alpha)
        return Step(following.ravel(), float(height), float(((following - alpha) / alpha).abs().max()))

    return climb(step, given.ravel(), max_iter=1_000, tol=1e-6, accelerate=True).state.reshape(given.shape)
