r"""Confusion that changes: a dynamic generalised linear model for every volunteer and label, filtered and smoothed.

The log odds :math:`w_j` that a volunteer gives label `l` to items of class `j` follow a random walk from one of the
volunteer's steps to the next (eq:randomwalkstate). At each step the filter *predicts* (the variance grows by the
process noise) and *updates* (a Beta distribution with the mean and variance of the log odds counts the answer, and
linear Bayes carries the result back to the log odds; West, Harrison and Migon 1985). The smoother then goes backwards,
so that every step also learns from later ones (Rauch, Tung and Striebel 1965).

There are two ways to treat an item whose class is uncertain, with probabilities `h`. They agree where it is certain.

- *weighted*: the answer counts :math:`h_j` for class `j`, as in variational Bayes. Without noise this is static IBCC.
- *published*: the answer counts once, for the linear predictor :math:`h \cdot w`, as in the paper.

This module has the filter and smoother as tensor operations; `crowdgraph.kernels.dglm_compiled` has them for CPUs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

__all__ = [
    "MAX_LOG_ODDS",
    "Scan",
    "Stage",
    "States",
    "Steps",
    "TensorScan",
    "dirichlet_rows",
    "filter_and_smooth",
    "prior_counts",
]

Stage = Literal["predicted", "filtered", "smoothed"]
# Beyond these log odds a probability is 0 or 1 to the last bit.
MAX_LOG_ODDS = 300.0


class Steps(NamedTuple):
    """The responses as steps, one volunteer after another; the steps of `k` are ``starts[k]:starts[k + 1]``.

    Attributes
    ----------
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    item, label
        The codes of the item shown and of the label given, of shape (S,); the label is -1 where the item was not
        answered.
    weight
        How much the answer counts, of shape (S,): 1 for an ordinary one.
    drift
        The variance that the random walk gains before each step regardless of the answers, of shape (S,).
    """

    starts: Tensor
    item: Tensor
    label: Tensor
    weight: Tensor
    drift: Tensor

    def reordered(self, order: Tensor) -> Steps:
        """Return the steps with items and answers in another order; the times between steps stay."""
        return self._replace(item=self.item[order], label=self.label[order], weight=self.weight[order])


class States(NamedTuple):
    """Gaussian states by step and label: means, of shape (S, L, J), and covariances, of shape (S, L, J, J)."""

    mean: Tensor
    covariance: Tensor


class Scan(Protocol):
    """A filter and smoother over fixed steps from fixed priors."""

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Return the Dirichlet of the confusion at every step, of shape (S, J, L).

        Parameters
        ----------
        probs
            The class probabilities of the items, of shape (N, J).
        noise_scale
            The factor of the process noise that answers cause.
        stage
            ``"predicted"`` uses the answers before the step, ``"filtered"`` also its own, ``"smoothed"`` all answers of
            the volunteer.
        """
        ...

    def with_steps(self, steps: Steps, prior: Tensor) -> Scan:
        """Return the same scan for other steps, as many for each volunteer, or another prior, (1 or K, J, L).

        It may write to the same memory.
        """
        ...


def prior_counts(prior: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return the counts `a` for and `b` against every label under Dirichlet rows (..., J, L), each (..., L, J).

    The log odds have the mean :math:`\ln (a / b)` and the variance :math:`1 / a + 1 / b` ("Prior Distributions over the
    State Variables").
    """
    hits = prior.transpose(-1, -2)
    # Summed over the other labels, not subtracted from the total: a tiny rest must not be lost.
    others = 1 - torch.eye(hits.shape[-2], dtype=hits.dtype, device=hits.device)
    return hits, others @ hits


def dirichlet_rows(hits: Tensor, misses: Tensor, *, published: bool) -> Tensor:
    r"""Return the Dirichlet rows of counts for and against the labels, each of shape (..., J, L).

    As published, :math:`\alpha_l = a_l` (eq:DynVB_alpha). With noise, however, the counts :math:`n_l = a_l + b_l` of
    the labels differ: frequent labels forget more, and the mean of such a row is biased towards rare labels. Unless
    `published`, the mean is therefore proportional to :math:`p_l = a_l / n_l`, and the row's total is the harmonic mean
    of the :math:`n_l` weighted by :math:`p_l (1 - p_l)`, which preserves the sum of the labels' variances to first
    order. Where all :math:`n_l` are equal nothing changes.
    """
    if published:
        return hits
    total = hits + misses
    share, variance = hits / total, hits / total * (misses / total)
    row_total = variance.sum(-1, keepdim=True) / (variance / total).sum(-1, keepdim=True)
    return row_total * share / share.sum(-1, keepdim=True)


class TensorScan:
    """The scan as tensor operations, all volunteers and labels at once, on the device of its arguments.

    It takes one round of operations for each step of the busiest volunteer and holds the states of all steps.
    """

    def __init__(self, steps: Steps, prior: Tensor, *, published: bool = False) -> None:
        self._steps = steps
        self._prior = prior
        self._published = published

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Filter and smooth once; see `Scan`."""
        states = filter_and_smooth(
            self._steps, self._prior, probs, noise_scale=noise_scale, stage=stage, published=self._published
        )
        variance = states.covariance.diagonal(dim1=-2, dim2=-1)
        odds = states.mean.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS).exp()
        hits, misses = (1 + odds) / variance, (1 + 1 / odds) / variance  # eq:DynVB_alpha
        return dirichlet_rows(hits.transpose(-1, -2), misses.transpose(-1, -2), published=self._published)

    def with_steps(self, steps: Steps, prior: Tensor) -> TensorScan:
        """See `Scan`."""
        return TensorScan(steps, prior, published=self._published)


def filter_and_smooth(
    steps: Steps, prior: Tensor, probs: Tensor, *, noise_scale: float, stage: Stage, published: bool
) -> States:
    """Return the states of all volunteers at all their steps.

    Parameters
    ----------
    steps
        The volunteers' steps.
    prior
        Dirichlet rows, of shape (K, J, L), or (1, J, L) if all volunteers share them.
    probs, noise_scale, stage
        As in `Scan`.
    published
        Whether an answer about an uncertain item counts once, for the mixture of its classes, or by their shares.
    """
    counts = steps.starts.diff()
    # The busiest first, so that those who still have steps always stand in front.
    order = torch.argsort(counts, descending=True, stable=True)
    counts = counts[order]
    hits, misses = (part[order] if len(part) > 1 else part.expand(len(order), -1, -1) for part in prior_counts(prior))
    # "Prior Distributions over the State Variables".
    mean, covariance = torch.log(hits / misses), torch.diag_embed(1 / hits + 1 / misses)
    noise = torch.zeros_like(mean[..., 0])
    states = States(
        mean.new_empty(len(steps.item), *mean.shape[1:]), mean.new_empty(len(steps.item), *covariance.shape[1:])
    )
    process_noise = mean.new_empty(len(steps.item), mean.shape[1])
    update = _update_published if published else _update_weighted
    rounds = [steps.starts[order[: int((counts > step).sum())]] + step for step in range(int(counts.max()))]
    for rows in rounds:
        # Predict: eq:what_prior leaves the mean as it is, eq:P_prior adds q I.
        mean, covariance, noise = (part[: len(rows)] for part in (mean, covariance, noise))
        process_noise[rows] = noise + steps.drift[rows, None]
        covariance = covariance + torch.diag_embed(process_noise[rows, :, None].expand_as(mean))
        if stage == "predicted":
            states.mean[rows], states.covariance[rows] = mean, covariance
        truth = probs[steps.item[rows].long()][:, None, :]
        label = steps.label[rows, None]
        hit = label == torch.arange(mean.shape[1], device=mean.device)
        weight = torch.where(label >= 0, steps.weight[rows, None], 0.0)
        unanswered_noise = _unanswered_noise(mean, truth, published=published)
        # Update: "Forward Pass Filtering Steps".
        mean, covariance, noise = update(mean, covariance, truth, hit, weight)
        noise = noise_scale * torch.where(label >= 0, noise, unanswered_noise)  # eq:q_tau
        if stage != "predicted":
            states.mean[rows], states.covariance[rows] = mean, covariance
    if stage == "smoothed":
        for rows in reversed(rounds[1:]):
            _smooth(states, process_noise, rows - 1, rows)
    return states


def _unanswered_noise(mean: Tensor, truth: Tensor, *, published: bool) -> Tensor:
    """Return z of eq:q_tau, the process noise caused by an item that was shown and not answered."""
    predictor = (truth * mean).sum(-1, keepdim=True) if published else mean
    share = torch.sigmoid(predictor)  # eq:logistic
    return (share * (1 - share) * (1 if published else truth)).sum(-1)


def _update_beta(mean: Tensor, variance: Tensor, hit: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Condition log odds on an answer: return their shift, their posterior variance and the noise the answer causes."""
    odds = mean.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS).exp()
    hits, misses = (1 + odds) / variance, (1 + 1 / odds) / variance  # eq:Dyn_priorAlpha
    # alpha + delta and beta + 1 - delta, "Forward Pass Filtering Steps".
    new_hits, new_misses = hits + weight * hit, misses + weight * ~hit
    shift = torch.where(hit, torch.log1p(weight / hits), -torch.log1p(weight / misses))
    # u before and after the answer, below eq:q_tau.
    u_before = odds / (1 + odds) ** 2
    total = new_hits + new_misses
    u_after = new_hits / total * (new_misses / total)
    return shift, 1 / new_hits + 1 / new_misses, (u_after - u_before).clamp(min=0)


def _update_published(
    mean: Tensor, covariance: Tensor, truth: Tensor, hit: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Update by an answer that counts once, for h . w; return the state and the noise the answer causes."""
    direction = (covariance @ truth[..., None])[..., 0]
    variance = (truth * direction).sum(-1)  # r = h' P h
    shift, new_variance, noise = _update_beta((truth * mean).sum(-1), variance, hit, weight)
    gain = ((1 - new_variance / variance) / variance)[..., None, None]
    return (
        # w + K (eta' - eta), with K = P h / r.
        mean + direction * (shift / variance)[..., None],
        # P - (1 - r'/r) K h' P: erratum 1.
        covariance - gain * direction[..., None] * direction[..., None, :],
        noise,
    )


def _update_weighted(
    mean: Tensor, covariance: Tensor, truth: Tensor, hit: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Update by an answer that counts by shares of the classes; return the state and the noise the answer causes."""
    # Class j counts E[t_i = j] of the answer, its share of the expected log likelihood, where "Variational Update
    # Equations" puts E[t_i = j] into the linear predictor.
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    shift, new_variance, noise = _update_beta(mean, variance, hit[..., None], weight[..., None] * truth)
    return mean + shift, torch.diag_embed(new_variance), noise.sum(-1)


def _smooth(states: States, process_noise: Tensor, rows: Tensor, following: Tensor) -> None:
    """Smooth steps given the following ones, which have been smoothed already.

    This is the recursion of Rauch, Tung and Striebel, which gives the same states as the adjoint recursion of "Backward
    Pass Smoothing Steps" with erratum 2 corrected, and adds only positive terms.
    """
    noise = process_noise[following][..., None, None]
    filtered = states.covariance[rows]
    identity = torch.eye(filtered.shape[-1], dtype=filtered.dtype, device=filtered.device)
    # Without noise both steps are one, and the matrix to be solved need not be regular.
    no_noise = noise == 0
    gain = torch.linalg.solve(
        torch.where(no_noise, identity, filtered + noise * identity), torch.where(no_noise, identity, filtered)
    )
    shift = (gain @ (states.mean[following] - states.mean[rows])[..., None])[..., 0]
    states.mean[rows] = states.mean[rows] + shift
    states.covariance[rows] = noise * gain + gain @ states.covariance[following] @ gain.transpose(-1, -2)
