"""Dirichlet distributions: expectations, normalising constants, and those that fit logarithms or counts best."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.kernels.fixed_point import Step, squarem

__all__ = [
    "concentration_from_mean_logs",
    "empirical_bayes_concentration",
    "expected_log",
    "log_normaliser",
    "max_likelihood_concentration",
    "update_shared_prior",
]

# Stands for nothing where logarithms are taken.
NOTHING = 1e-300


def expected_log(concentration: Tensor, *, axis: int) -> Tensor:
    r"""The expected logarithms under Dirichlets along `axis`: :math:`\psi(\alpha_l) - \psi(\sum_m \alpha_m)`."""
    return torch.digamma(concentration) - torch.digamma(concentration.sum(axis, keepdim=True))


def log_normaliser(concentration: Tensor, *, axis: int) -> Tensor:
    r"""The logarithm of the normalising constant, :math:`\sum_l \ln \Gamma(\alpha_l) - \ln \Gamma(\sum_l \alpha_l)`."""
    return torch.lgamma(concentration).sum(axis) - torch.lgamma(concentration.sum(axis))


def concentration_from_mean_logs(mean_logs: Tensor, start: Tensor, *, n_steps: int = 100) -> Tensor:
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


def update_shared_prior(logs: Tensor, imagined: Tensor, start: Tensor) -> Tensor:
    """The Dirichlet rows, (J, L), that fit the expected logarithms of people, (K, J, L), and of an imagined one best.

    The imagined one, (J, L), keeps the rows finite where all people are alike.
    """
    return concentration_from_mean_logs((logs.sum(0) + imagined) / (len(logs) + 1), start)


def empirical_bayes_concentration(counts: Tensor, given: Tensor) -> Tensor:
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
        following = update_shared_prior(expected_log(posterior, axis=2), imagined, alpha)
        return Step(following.ravel(), float(height), float(((following - alpha) / alpha).abs().max()))

    return squarem(step, given.ravel(), max_iter=1_000, tol=1e-6, accelerate=True).state.reshape(given.shape)


def max_likelihood_concentration(counts: Tensor, *, n_steps: int = 100) -> Tensor:
    r"""The Dirichlet rows, (J, L), under which whole counts by person, (K, J, L), are most probable.

    Unlike `empirical_bayes_concentration` it knows nothing but the counts: a label that nobody used gets 0, and a class
    of which
    nothing is known ones. Where people differ no more than chance makes them, rows grow until it does not matter.
    By Newton's steps in :math:`\ln \alpha`, uphill also where the likelihood is not concave.
    """
    totals, used = counts.sum(2), counts.sum(0) > 0
    known = used.any(1, keepdim=True)
    shares = counts.sum(0) / totals.sum(0)[:, None].clamp(min=NOTHING)
    # Labels that nobody used take no part.
    alpha = torch.where(used, shares * shares.shape[1], NOTHING)

    def height(value: Tensor) -> Tensor:
        return (log_normaliser(counts + value, axis=2) - log_normaliser(value, axis=1)).sum(0)

    now = height(alpha)
    for _ in range(n_steps):
        step, gain = _step_to_likeliest(alpha, counts, totals, used)
        for _ in range(40):
            trial = alpha * torch.exp(step)
            reached = height(trial)
            # Heights are sums of many large numbers, and no more exact.
            worse = ~(reached >= now - 1e-12 * now.abs())
            if not worse.any():
                break
            step = torch.where(worse[:, None], step / 2, step)
        alpha = torch.where(worse[:, None], alpha, trial)
        now = torch.where(worse, now, reached)
        # The step after which nothing is to be gained was a last one, and exact.
        if not (gain > 1e-7).any():
            break
    return torch.where(known, torch.where(used, alpha, 0.0), 1.0)


def _step_to_likeliest(alpha: Tensor, counts: Tensor, totals: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """The step in logarithms, (J, L), and twice what it should gain, (J,)."""
    whole = alpha.sum(1)
    rise = (torch.digamma(counts + alpha) - torch.digamma(alpha)).sum(0)
    fall = (torch.digamma(totals + whole) - torch.digamma(whole)).sum(0)[:, None]
    slope = torch.where(used, alpha * (rise - fall), 0.0)
    curve = (torch.polygamma(1, counts + alpha) - torch.polygamma(1, alpha)).sum(0)
    shared = (torch.polygamma(1, whole) - torch.polygamma(1, totals + whole)).sum(0)[:, None, None]
    own = torch.where(used, alpha**2 * curve + slope, -1.0)
    common = shared * alpha[:, :, None] * alpha[:, None, :]
    hessian = torch.diag_embed(own) + torch.where(used[:, :, None] & used[:, None, :], common, 0.0)
    bends, ways = torch.linalg.eigh(hessian)
    # Where the height bends upwards, a step as long as if it bent downwards climbs; where it hardly bends, slopes are
    # rounding.
    bends = bends.abs()
    bends = bends.clamp(min=1e-9 * bends.amax(1, keepdim=True))
    step = (ways @ ((slope[:, None, :] @ ways)[:, 0] / bends)[:, :, None])[:, :, 0]
    # People who differ a hundred times less than chance makes their answers are alike, and rows need not grow further.
    alike = whole > 1e4 * totals.amax(0)
    growth = (alpha * step).sum(1) / whole
    step = torch.where(used, step - torch.where(alike, growth, 0.0)[:, None], 0.0)
    step = step * (5 / step.abs().amax(1, keepdim=True).clamp(min=5))
    return step, (slope * step).sum(1)
