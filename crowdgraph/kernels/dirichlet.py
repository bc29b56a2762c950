"""Dirichlet distributions: expectations, normalising constants, and estimation from logarithms or counts."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.kernels.fixed_point import Step, min_state, reachable_tolerance, squarem
from crowdgraph.tensors.dirichlet import expected_log, log_normaliser

__all__ = [
    "concentration_from_mean_logs",
    "empirical_bayes_concentration",
    "max_likelihood_concentration",
    "update_shared_prior",
]

# The error of an objective in multiples of the precision, and the relative size of a step at which Newton ends.
ROUNDING_OF_EPS, MIN_RELATIVE_STEP = 45.0, 1e-11


def concentration_from_mean_logs(mean_logs: Tensor, start: Tensor, *, n_steps: int = 100) -> Tensor:
    r"""Return for each row the Dirichlet whose expected logarithms equal `mean_logs`, of shape (..., L).

    It maximises :math:`\sum_l (\alpha_l - 1) m_l - \ln B(\alpha)`, which is concave, by Newton's method in
    :math:`\ln \alpha` (Minka 2000); steps are halved until they raise the objective.
    """
    alpha, eps = start.clone(), torch.finfo(start.dtype).eps

    def objective_of(value: Tensor) -> Tensor:
        return ((value - 1) * mean_logs).sum(-1) - log_normaliser(value, axis=-1)

    objective = objective_of(alpha)
    for _ in range(n_steps):
        total = alpha.sum(-1, keepdim=True)
        gradient = mean_logs - expected_log(alpha, axis=-1)
        # The Hessian is diagonal plus a constant, so Newton's step has a closed form.
        diagonal = -torch.polygamma(1, alpha)
        constant = torch.polygamma(1, total)
        shift = (gradient / diagonal).sum(-1, keepdim=True) / (1 / constant + (1 / diagonal).sum(-1, keepdim=True))
        step = -(gradient - shift) / diagonal
        if not (step.abs() > max(MIN_RELATIVE_STEP, 10 * eps) * alpha).any():
            break
        # Objectives are differences of numbers as large as these, and no more exact.
        slack = ROUNDING_OF_EPS * eps * (1 + torch.lgamma(total[..., 0]).abs())
        size = torch.ones_like(objective)
        for _ in range(40):
            # A step on the log scale keeps every entry positive.
            trial = alpha * torch.exp((size[..., None] * step / alpha).clamp(-5, 5))
            trial_objective = objective_of(trial)
            worse = ~(trial_objective >= objective - slack)
            if not worse.any():
                break
            size = torch.where(worse, size / 2, size)
        improved = ~worse & (trial_objective > objective + slack)
        alpha = torch.where(worse[..., None], alpha, trial)
        objective = torch.where(worse, objective, trial_objective)
        if not improved.any():
            break
    return alpha


def update_shared_prior(logs: Tensor, prior_logs: Tensor, start: Tensor) -> Tensor:
    """Return the Dirichlet rows, (J, L), that best fit the expected logarithms of volunteers, (K, J, L).

    One pseudo-volunteer with the expected logarithms `prior_logs`, (J, L), keeps the rows finite where all volunteers
    are alike.
    """
    return concentration_from_mean_logs((logs.sum(0) + prior_logs) / (len(logs) + 1), start)


def empirical_bayes_concentration(counts: Tensor, prior: Tensor) -> Tensor:
    r"""Estimate the Dirichlet rows, (J, L), that maximise the probability of volunteers' counts, (K, J, L).

    One pseudo-volunteer distributed according to the rows `prior` keeps them finite. Expectation maximisation: the
    E-step computes every volunteer's expected logarithms, the M-step the Dirichlet that fits their mean.
    """
    prior_logs = expected_log(prior, axis=1)

    def step(state: Tensor) -> Step:
        alpha = state.reshape(prior.shape)
        posterior = alpha + counts
        evidence = (log_normaliser(posterior, axis=2) - log_normaliser(alpha, axis=1)).sum()
        objective = evidence + ((alpha - 1) * prior_logs).sum() - log_normaliser(alpha, axis=1).sum()
        following = update_shared_prior(expected_log(posterior, axis=2), prior_logs, alpha)
        return Step(following.ravel(), objective, ((following - alpha) / alpha).abs().max())

    tol = reachable_tolerance(1e-6, prior.dtype)
    return squarem(step, prior.ravel(), max_iter=1_000, tol=tol, accelerate=True).state.reshape(prior.shape)


def max_likelihood_concentration(counts: Tensor, *, n_steps: int = 100) -> Tensor:
    r"""Estimate the Dirichlet rows, (J, L), under which volunteers' integer counts, (K, J, L), are most probable.

    Unlike `empirical_bayes_concentration` it uses nothing but the counts: a label that nobody used gets 0, and a class
    without any counts gets ones. Where volunteers differ no more than chance explains, rows grow until further growth
    makes no difference. Newton's method in :math:`\ln \alpha`, which ascends even where the likelihood is not concave.
    """
    totals, used, tiny = counts.sum(2), counts.sum(0) > 0, min_state(counts.dtype)
    has_counts = used.any(1, keepdim=True)
    shares = counts.sum(0) / totals.sum(0)[:, None].clamp(min=tiny)
    # Labels that nobody used take no part.
    alpha = torch.where(used, shares * shares.shape[1], tiny)

    def objective_of(value: Tensor) -> Tensor:
        return (log_normaliser(counts + value, axis=2) - log_normaliser(value, axis=1)).sum(0)

    objective = objective_of(alpha)
    for _ in range(n_steps):
        step, gain = _newton_step(alpha, counts, totals, used)
        for _ in range(40):
            trial = alpha * torch.exp(step)
            trial_objective = objective_of(trial)
            # Objectives are sums of many large numbers, and no more exact.
            worse = ~(trial_objective >= objective - 1e-12 * objective.abs())
            if not worse.any():
                break
            step = torch.where(worse[:, None], step / 2, step)
        alpha = torch.where(worse[:, None], alpha, trial)
        objective = torch.where(worse, objective, trial_objective)
        # A step that was expected to gain nothing was the last one, and exact.
        if not (gain > 1e-7).any():
            break
    return torch.where(has_counts, torch.where(used, alpha, 0.0), 1.0)


def _newton_step(alpha: Tensor, counts: Tensor, totals: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """Return the step in logarithms, (J, L), and twice its expected gain, (J,)."""
    row_sum = alpha.sum(1)
    label_part = (torch.digamma(counts + alpha) - torch.digamma(alpha)).sum(0)
    total_part = (torch.digamma(totals + row_sum) - torch.digamma(row_sum)).sum(0)[:, None]
    gradient = torch.where(used, alpha * (label_part - total_part), 0.0)
    label_curvature = (torch.polygamma(1, counts + alpha) - torch.polygamma(1, alpha)).sum(0)
    total_curvature = (torch.polygamma(1, row_sum) - torch.polygamma(1, totals + row_sum)).sum(0)[:, None, None]
    diagonal = torch.where(used, alpha**2 * label_curvature + gradient, -1.0)
    off_diagonal = total_curvature * alpha[:, :, None] * alpha[:, None, :]
    hessian = torch.diag_embed(diagonal) + torch.where(used[:, :, None] & used[:, None, :], off_diagonal, 0.0)
    eigenvalues, eigenvectors = torch.linalg.eigh(hessian)
    # In a direction of positive curvature, the step with the sign of the curvature flipped ascends; where the curvature
    # almost vanishes, the gradient is rounding error.
    eigenvalues = eigenvalues.abs()
    eigenvalues = eigenvalues.clamp(min=1e-9 * eigenvalues.amax(1, keepdim=True))
    step = (eigenvectors @ ((gradient[:, None, :] @ eigenvectors)[:, 0] / eigenvalues)[:, :, None])[:, :, 0]
    # Volunteers who differ a hundred times less than sampling does are alike; their rows need not grow further.
    alike = row_sum > 1e4 * totals.amax(0)
    growth = (alpha * step).sum(1) / row_sum
    step = torch.where(used, step - torch.where(alike, growth, 0.0)[:, None], 0.0)
    step = step * (5 / step.abs().amax(1, keepdim=True).clamp(min=5))
    return step, (gradient * step).sum(1)
