"""Independent Bayesian classifier combination: one step of variational Bayes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.dirichlet import expected_log, log_normaliser, update_shared_prior
from crowdgraph.kernels.fixed_point import Step
from crowdgraph.kernels.sweep import Sweeper, expected_counts

__all__ = ["DawidSkeneEM", "Posterior", "VariationalBayes", "tensor_expectations"]

Expectations = Callable[[Tensor, Tensor], tuple[Tensor, float]]


class Posterior(NamedTuple):
    """Dirichlet concentrations: of confusion, (K, L, J), of the classes, (J,), and of the prior, (1 or K, L, J)."""

    confusion: Tensor
    classes: Tensor
    prior: Tensor


class VariationalBayes:
    r"""The map whose fixed points are the modes of the lower bound, for `crowdgraph.kernels.iterate.squarem`.

    A state holds the concentrations of :math:`q(\pi)` and :math:`q(\kappa)` and, where it is learned, the shared
    prior. A step works out :math:`q(t)` (the E-step), tells the bound there and returns the next state (the M-step).

    Parameters
    ----------
    sweeper, expectations
        The two kernels: both compiled, or both of tensors.
    prior
        Concentration of the confusion, of shape (K, L, J), or (1, L, J) for all alike.
    class_prior
        Concentration of the classes, of shape (J,).
    probs
        Class probabilities of the items, of shape (N, J): known where `fixed`, overwritten at each step elsewhere.
    fixed
        Whether an item's class probabilities are known, of shape (N,).
    n_volunteers
        K.
    learn_prior
        Whether the shared prior is learned: it becomes the Dirichlet under which the volunteers, and an imagined one
        who is distributed as `prior` says, are most probable.
    """

    def __init__(
        self,
        sweeper: Sweeper,
        expectations: Expectations,
        *,
        prior: Tensor,
        class_prior: Tensor,
        probs: Tensor,
        fixed: Tensor,
        n_volunteers: int,
        learn_prior: bool = False,
    ) -> None:
        self.probs = probs
        self.fixed = fixed
        self._sweeper = sweeper
        self._expectations = expectations
        self._prior = prior
        self._class_prior = class_prior
        self._shape = (n_volunteers, *prior.shape[1:])
        self._learn_prior = learn_prior
        self._imagined_logs = expected_log(prior, axis=1)
        known = probs[fixed]
        self._constant = float(torch.special.entr(known).sum() - log_normaliser(class_prior, axis=0))
        self._prior_norm = self._norm(prior)

    def state(self, posterior: Posterior) -> Tensor:
        """The state that a posterior stands for."""
        learned = [posterior.prior.ravel()] if self._learn_prior else []
        return torch.cat([posterior.confusion.ravel(), posterior.classes, *learned])

    def posterior(self, state: Tensor) -> Posterior:
        """The posterior that a state stands for."""
        n_cells, n_classes = torch.Size(self._shape).numel(), self._shape[-1]
        confusion = state[:n_cells].reshape(self._shape)
        classes = state[n_cells : n_cells + n_classes]
        prior = state[n_cells + n_classes :].reshape(1, *self._shape[1:]) if self._learn_prior else self._prior
        return Posterior(confusion, classes, prior)

    def from_counts(self, counts: Tensor, class_counts: Tensor) -> Tensor:
        """The state that follows from what counts, (K, L, J) and (J,), add to the prior.

        The first class probabilities are worked out from expected probabilities, not from expected logarithms: for
        small pseudo-counts these are so low that they rule labels out, and the climb ends in a lower mode.
        """
        confusion, classes = self._prior + counts, self._class_prior + class_counts
        means, class_means = confusion / confusion.sum(1, keepdim=True), classes / classes.sum()
        guess = self.probs.clone()
        self._sweeper(means.log(), class_means.log(), guess, self.fixed)
        return self.from_probs(guess)

    def from_probs(self, probs: Tensor) -> Tensor:
        """The state that follows from class probabilities of the items (gold is kept)."""
        guess = torch.where(self.fixed[:, None], self.probs, probs)
        swept = expected_counts(self._sweeper, guess, self._shape)
        return self.state(Posterior(self._prior + swept.counts, self._class_prior + swept.class_counts, self._prior))

    def __call__(self, state: Tensor) -> Step:
        """One step."""
        confusion, classes, prior = self.posterior(state)
        logs, spread = self._expectations(confusion, prior)
        class_logs = expected_log(classes, axis=0)
        swept = self._sweeper(logs, class_logs, self.probs, self.fixed)
        class_spread = log_normaliser(classes, axis=0) - ((classes - self._class_prior) * class_logs).sum()
        bound = swept.evidence + self._constant + spread + float(class_spread)
        change = swept.change
        if self._learn_prior:
            bound += self._imagined_fit(prior) - self._norm(prior)
            before, prior = prior, self._learned(logs, prior)
            # Classes may be settled, by gold for one, while the prior is still on its way.
            change = max(change, float(((prior - before) / before).abs().max()))
        else:
            bound -= self._prior_norm
        following = Posterior(prior + swept.counts, self._class_prior + swept.class_counts, prior)
        return Step(self.state(following), bound, change)

    def _norm(self, prior: Tensor) -> float:
        """The log normalising constants of all volunteers' priors."""
        return float(log_normaliser(prior, axis=1).sum() * (self._shape[0] / len(prior)))

    def _learned(self, logs: Tensor, prior: Tensor) -> Tensor:
        """The shared prior that fits the expected logarithms of the volunteers and the imagined one best."""
        return update_shared_prior(logs.transpose(1, 2), self._imagined_logs[0].T, prior[0].T).T[None]

    def _imagined_fit(self, prior: Tensor) -> float:
        """How much less probable the imagined volunteer is under a learned prior than under the given one."""
        divergence = (
            log_normaliser(prior, axis=1).sum()
            - log_normaliser(self._prior, axis=1).sum()
            + ((self._prior - prior) * self._imagined_logs).sum()
        )
        return -float(divergence)


def tensor_expectations(alpha: Tensor, prior: Tensor) -> tuple[Tensor, float]:
    """As `crowdgraph.kernels.sweep_compiled.compiled_expectations`, on any device."""
    logs = expected_log(alpha, axis=1)
    return logs, float(log_normaliser(alpha, axis=1).sum() - ((alpha - prior) * logs).sum())


# Logarithms of probabilities that were estimated as zero.
MIN_PROBABILITY = 1e-300


class DawidSkeneEM:
    """The map whose fixed points are modes of the likelihood, for `crowdgraph.kernels.iterate.squarem`.

    A state holds the expected counts by volunteer, label and class, (K, L, J), and by class, (J,), each raised by
    `smoothing`; it stands for their proportions. With smoothing the objective is the likelihood times the density of
    Dirichlets with concentration 1 + smoothing.
    """

    def __init__(
        self, sweeper: Sweeper, *, shape: tuple[int, int, int], probs: Tensor, fixed: Tensor, smoothing: float
    ) -> None:
        self.probs = probs
        self.fixed = fixed
        self._sweeper = sweeper
        self._shape = shape
        self._smoothing = smoothing
        self._entropy = float(torch.special.entr(probs[fixed]).sum())

    def from_probs(self, probs: Tensor) -> Tensor:
        """The state that follows from class probabilities of the items (gold is kept)."""
        guess = torch.where(self.fixed[:, None], self.probs, probs)
        swept = expected_counts(self._sweeper, guess, self._shape)
        return self._state(swept.counts, swept.class_counts)

    def counts(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The smoothed counts of a state."""
        n_classes = self._shape[-1]
        return state[:-n_classes].reshape(self._shape), state[-n_classes:]

    def __call__(self, state: Tensor) -> Step:
        """One step."""
        counts, class_counts = self.counts(state)
        logs, class_logs = torch.log(proportions(counts, 1)), torch.log(proportions(class_counts, 0))
        swept = self._sweeper(logs, class_logs, self.probs, self.fixed)
        objective = swept.evidence + self._entropy
        if self._smoothing:
            objective += self._smoothing * float(logs.sum() + class_logs.sum())
        return Step(self._state(swept.counts, swept.class_counts), objective, swept.change)

    def _state(self, counts: Tensor, class_counts: Tensor) -> Tensor:
        return (torch.cat([counts.ravel(), class_counts]) + self._smoothing).clamp_min(MIN_PROBABILITY)


def proportions(counts: Tensor, axis: int) -> Tensor:
    """Counts as shares along an axis; equal ones where nothing was counted."""
    totals = counts.sum(axis, keepdim=True)
    return (counts / totals).clamp_min(MIN_PROBABILITY)
