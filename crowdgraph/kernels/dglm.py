r"""Confusion that changes: a dynamic generalised linear model for every volunteer and label, filtered and smoothed.

The log odds :math:`w_j` that a volunteer gives label `l` to items of class `j` walk at random from one of their steps
to the next. An answer is counted by a Beta distribution with the mean and variance of the log odds, and what it told
goes back to them by linear Bayes (West, Harrison and Migon 1985). Going backwards, every step then learns from later
ones (Rauch, Tung and Striebel 1965).

There are two ways to treat an item whose class is uncertain, with probabilities `h`. Both are the same where it is
known.

- *weighted*: the answer counts :math:`h_j` for class `j`, as in variational Bayes. Without noise this is static IBCC.
- *mixed*, as published: the answer counts once, for the linear predictor :math:`h \cdot w`.

Here is the scan in tensors; `crowdgraph.kernels.dglm_compiled` has it for CPUs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

__all__ = ["Scan", "Stage", "States", "Steps", "TensorScan", "filter_and_smooth", "prior_counts", "rows"]

Stage = Literal["predicted", "filtered", "smoothed"]
# The largest exponent of odds: beyond, a probability is 0 or 1 to the last bit.
MAX_LOG_ODDS = 300.0


class Steps(NamedTuple):
    """What volunteers met and said, one volunteer after another; those of `k` are ``starts[k]:starts[k + 1]``.

    Attributes
    ----------
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    item, label
        The codes of the item met and of the label given, of shape (S,); the label is -1 where the item was not
        answered.
    weight
        How much the answer counts, of shape (S,): 1 for an ordinary one.
    drift
        The variance that the walk gains before each step whatever was answered, of shape (S,).
    """

    starts: Tensor
    item: Tensor
    label: Tensor
    weight: Tensor
    drift: Tensor

    def reordered(self, order: Tensor) -> Steps:
        """The same steps, what was met and said in another order; the times between them stay."""
        return self._replace(item=self.item[order], label=self.label[order], weight=self.weight[order])


class States(NamedTuple):
    """Gaussian states by step and label: means, of shape (S, L, J), and covariances, of shape (S, L, J, J)."""

    mean: Tensor
    covariance: Tensor


class Scan(Protocol):
    """A scan over certain steps, from certain priors."""

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """The Dirichlet of the confusion at every step, of shape (S, J, L).

        Parameters
        ----------
        probs
            The class probabilities of the items, of shape (N, J).
        noise_scale
            What multiplies the noise that answers cause.
        stage
            ``"predicted"`` is what was known before the answer, ``"filtered"`` after it, ``"smoothed"`` from all
            answers of the volunteer.
        """
        ...

    def with_steps(self, steps: Steps, prior: Tensor) -> Scan:
        """The same scan of other steps, as many for each volunteer, or from another prior, (1 or K, J, L).

        It may write to the same memory.
        """
        ...


def prior_counts(prior: Tensor) -> tuple[Tensor, Tensor]:
    r"""The counts `a` for and `b` against every label under Dirichlet rows (..., J, L), each of shape (..., L, J).

    The log odds have the mean :math:`\ln (a / b)` and the variance :math:`1 / a + 1 / b`.
    """
    hits = prior.transpose(-1, -2)
    # Summed over the other labels, not subtracted from the total: a tiny rest must not be lost.
    others = 1 - torch.eye(hits.shape[-2], dtype=hits.dtype, device=hits.device)
    return hits, others @ hits


def rows(hits: Tensor, misses: Tensor, *, published: bool) -> Tensor:
    r"""The Dirichlet rows of counts for and against the labels, each of shape (..., J, L).

    As published, :math:`\alpha_l = a_l`. With noise, however, the counts :math:`n_l = a_l + b_l` of the labels differ:
    the frequent ones forget more, and the mean of such a row leans towards rare labels. Unless `published`, the mean is
    therefore proportional to :math:`p_l = a_l / n_l`, and the row's total is the harmonic mean of the :math:`n_l`
    weighted by :math:`p_l (1 - p_l)`, which keeps the sum of the labels' variances to first order. Where all
    :math:`n_l` are equal nothing changes.
    """
    if published:
        return hits
    total = hits + misses
    share, spread = hits / total, hits / total * (misses / total)
    weight = spread.sum(-1, keepdim=True) / (spread / total).sum(-1, keepdim=True)
    return weight * share / share.sum(-1, keepdim=True)


class TensorScan:
    """The scan as tensor operations, all volunteers and labels at once, on the device of its arguments.

    It takes one round of operations for each step of the busiest volunteer and keeps the states of all steps.
    """

    def __init__(self, steps: Steps, prior: Tensor, *, published: bool = False) -> None:
        self._steps = steps
        self._prior = prior
        self._mixed = published

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Scan once; see `Scan`."""
        states = filter_and_smooth(
            self._steps, self._prior, probs, noise_scale=noise_scale, stage=stage, published=self._mixed
        )
        variance = states.covariance.diagonal(dim1=-2, dim2=-1)
        odds = states.mean.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS).exp()
        hits, misses = (1 + odds) / variance, (1 + 1 / odds) / variance
        return rows(hits.transpose(-1, -2), misses.transpose(-1, -2), published=self._mixed)

    def with_steps(self, steps: Steps, prior: Tensor) -> TensorScan:
        """See `Scan`."""
        return TensorScan(steps, prior, published=self._mixed)


def filter_and_smooth(
    steps: Steps, prior: Tensor, probs: Tensor, *, noise_scale: float, stage: Stage, published: bool
) -> States:
    """The states of all volunteers at all their steps.

    Parameters
    ----------
    steps
        What volunteers met and said.
    prior
        Dirichlet rows, of shape (K, J, L), or (1, J, L) for all alike.
    probs, noise_scale, stage
        As in `Scan`.
    mixed
        Whether an answer about an uncertain item counts once, for the mixture of its classes, or by their shares.
    """
    counts = steps.starts.diff()
    # The busiest first, so that those who still have steps always stand in front.
    order = torch.argsort(counts, descending=True, stable=True)
    counts = counts[order]
    hits, misses = (part[order] if len(part) > 1 else part.expand(len(order), -1, -1) for part in prior_counts(prior))
    mean, covariance = torch.log(hits / misses), torch.diag_embed(1 / hits + 1 / misses)
    noise = torch.zeros_like(mean[..., 0])
    states = States(
        mean.new_empty(len(steps.item), *mean.shape[1:]), mean.new_empty(len(steps.item), *covariance.shape[1:])
    )
    gained = mean.new_empty(len(steps.item), mean.shape[1])
    observed = _update_published if published else _update_weighted
    rounds = [steps.starts[order[: int((counts > step).sum())]] + step for step in range(int(counts.max()))]
    for places in rounds:
        mean, covariance, noise = (part[: len(places)] for part in (mean, covariance, noise))
        gained[places] = noise + steps.drift[places, None]
        covariance = covariance + torch.diag_embed(gained[places, :, None].expand_as(mean))
        if stage == "predicted":
            states.mean[places], states.covariance[places] = mean, covariance
        truth = probs[steps.item[places].long()][:, None, :]
        label = steps.label[places, None]
        hit = label == torch.arange(mean.shape[1], device=mean.device)
        weight = torch.where(label >= 0, steps.weight[places, None], 0.0)
        unanswered = _process_noise(mean, truth, published=published)
        mean, covariance, noise = observed(mean, covariance, truth, hit, weight)
        noise = noise_scale * torch.where(label >= 0, noise, unanswered)
        if stage != "predicted":
            states.mean[places], states.covariance[places] = mean, covariance
    if stage == "smoothed":
        for places in reversed(rounds[1:]):
            _smooth(states, gained, places - 1, places)
    return states


def _process_noise(mean: Tensor, truth: Tensor, *, published: bool) -> Tensor:
    """The noise that an item causes which was met and not answered."""
    predictor = (truth * mean).sum(-1, keepdim=True) if published else mean
    share = torch.sigmoid(predictor)
    return (share * (1 - share) * (1 if published else truth)).sum(-1)


def _counted(mean: Tensor, variance: Tensor, hit: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What an answer does to log odds: how far they move, the variance that is left, and the noise it causes."""
    odds = mean.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS).exp()
    hits, misses = (1 + odds) / variance, (1 + 1 / odds) / variance
    more_hits, more_misses = hits + weight * hit, misses + weight * ~hit
    moved = torch.where(hit, torch.log1p(weight / hits), -torch.log1p(weight / misses))
    before = odds / (1 + odds) ** 2
    total = more_hits + more_misses
    after = more_hits / total * (more_misses / total)
    return moved, 1 / more_hits + 1 / more_misses, (after - before).clamp(min=0)


def _update_published(
    mean: Tensor, covariance: Tensor, truth: Tensor, hit: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The state after an answer that counts once, and the noise it causes."""
    direction = (covariance @ truth[..., None])[..., 0]
    variance = (truth * direction).sum(-1)
    moved, left, noise = _counted((truth * mean).sum(-1), variance, hit, weight)
    learned = ((1 - left / variance) / variance)[..., None, None]
    return (
        mean + direction * (moved / variance)[..., None],
        covariance - learned * direction[..., None] * direction[..., None, :],
        noise,
    )


def _update_weighted(
    mean: Tensor, covariance: Tensor, truth: Tensor, hit: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The state after an answer that counts by the shares of the classes, and the noise it causes."""
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    moved, left, noise = _counted(mean, variance, hit[..., None], weight[..., None] * truth)
    return mean + moved, torch.diag_embed(left), noise.sum(-1)


def _smooth(states: States, gained: Tensor, places: Tensor, following: Tensor) -> None:
    """Let steps learn from the ones that follow them, which have learned from theirs."""
    noise = gained[following][..., None, None]
    own = states.covariance[places]
    identity = torch.eye(own.shape[-1], dtype=own.dtype, device=own.device)
    # Without noise between them both steps are one; the matrix to be solved need not be regular then.
    still = noise == 0
    share = torch.linalg.solve(torch.where(still, identity, own + noise * identity), torch.where(still, identity, own))
    moved = (share @ (states.mean[following] - states.mean[places])[..., None])[..., 0]
    states.mean[places] = states.mean[places] + moved
    states.covariance[places] = noise * share + share @ states.covariance[following] @ share.transpose(-1, -2)
