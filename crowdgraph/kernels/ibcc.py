"""Models with one confusion matrix for each volunteer: a step of variational Bayes (IBCC) or of EM (Dawid-Skene).

Both are maps for `crowdgraph.kernels.fixed_point.squarem`; they differ in that IBCC has distributions where Dawid and
Skene have point estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.dirichlet import update_shared_prior
from crowdgraph.kernels.fixed_point import Step, min_state
from crowdgraph.kernels.sweep import Expectations, Sweeper, expected_counts
from crowdgraph.tensors.devices import most_precise, total
from crowdgraph.tensors.dirichlet import dirichlet_divergence, expected_log, log_normaliser

__all__ = ["DawidSkeneEM", "Posterior", "VariationalBayes", "overwrite_probs"]

# How many items are copied at once: more would take as much memory again.
ROWS_TOGETHER = 2**20


class Posterior(NamedTuple):
    """Dirichlet concentrations: of confusion, (K, L, J), of the classes, (J,), and of the prior, (1 or K, L, J)."""

    confusion: Tensor
    classes: Tensor
    prior: Tensor


class VariationalBayes:
    r"""The map whose fixed points are the modes of the lower bound of IBCC.

    A state holds the concentrations of :math:`q(\pi)` and :math:`q(\kappa)` and, where it is learned, the shared
    prior. A step computes :math:`q(t)` (the E-step) and the bound there, and returns the next state (the M-step). The
    bound has several modes (erratum 4).

    Parameters
    ----------
    sweeper, expectations
        The two kernels: both compiled, or both made of tensor operations.
    prior
        Concentration of the confusion, of shape (K, L, J), or (1, L, J) if all volunteers share it.
    class_prior
        Concentration of the classes, of shape (J,).
    probs
        Class probabilities of the items, of shape (N, J): gold where `fixed`, overwritten at each step elsewhere.
    fixed
        Whether an item has gold, of shape (N,).
    n_volunteers
        K.
    learn_prior
        Whether to learn the shared prior: it becomes the Dirichlet that maximises the probability of the volunteers and
        of one pseudo-volunteer distributed according to `prior`.
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
        self._prior_logs = expected_log(prior, axis=1)

    def state(self, posterior: Posterior) -> Tensor:
        """Return a posterior as a state."""
        learned = [posterior.prior.ravel()] if self._learn_prior else []
        return torch.cat([posterior.confusion.ravel(), posterior.classes, *learned])

    def posterior(self, state: Tensor) -> Posterior:
        """Return the posterior that a state holds."""
        n_cells, n_classes = torch.Size(self._shape).numel(), self._shape[-1]
        confusion = state[:n_cells].reshape(self._shape)
        classes = state[n_cells : n_cells + n_classes]
        prior = state[n_cells + n_classes :].reshape(1, *self._shape[1:]) if self._learn_prior else self._prior
        return Posterior(confusion, classes, prior)

    def from_counts(self, counts: Tensor, class_counts: Tensor) -> Tensor:
        """Return the state that follows from adding counts, (K, L, J) and (J,), to the prior.

        The first class probabilities are computed from expected probabilities, not from expected logarithms: for small
        pseudo-counts the latter are so low that they rule labels out, and the iteration ends in a lower mode.
        """
        confusion, classes = self._prior + counts, self._class_prior + class_counts
        means, class_means = confusion / confusion.sum(1, keepdim=True), classes / classes.sum()
        self._sweeper(means.log(), class_means.log(), self.probs, self.fixed)
        return self.from_probs(self.probs)

    def from_probs(self, probs: Tensor) -> Tensor:
        """Return the state that follows from class probabilities of the items; items with gold keep theirs."""
        overwrite_probs(self.probs, probs, self.fixed)
        swept = expected_counts(self._sweeper, self.probs, self._shape)
        return self.state(Posterior(self._prior + swept.counts, self._class_prior + swept.class_counts, self._prior))

    def __call__(self, state: Tensor) -> Step:
        """Take one step."""
        confusion, classes, prior = self.posterior(state)
        logs, confusion_divergence = self._expectations(confusion, prior)  # eq:expectation_lnPi
        class_logs = expected_log(classes, axis=0)  # eq:eLnPj
        swept = self._sweeper(logs, class_logs, self.probs, self.fixed)  # E-step, eq:VB_lnqstar_ti
        # The seven terms of sec:staticLowerBound, as in `crowdgraph.tensors.lower_bound`.
        class_divergence = dirichlet_divergence(most_precise(classes), self._class_prior, axis=0)
        bound = swept.evidence - confusion_divergence - class_divergence
        change = swept.change
        if self._learn_prior:
            bound = bound - self._pseudo_volunteer_divergence(prior)
            previous, prior = prior, self._learned_prior(logs, prior)
            # Classes may have converged, for example because all have gold, while the prior still changes.
            change = max(float(change), float(((prior - previous) / previous).abs().max()))
        # M-step: eq:VB_static_alpha_updates, and nu_j = nu_0j + N_j (below eq:qStar_P).
        following = Posterior(prior + swept.counts, self._class_prior + swept.class_counts, prior)
        return Step(self.state(following), bound, change)

    def _learned_prior(self, logs: Tensor, prior: Tensor) -> Tensor:
        """Return the shared prior that best fits the expected logarithms of the volunteers and the pseudo-volunteer."""
        return update_shared_prior(logs.transpose(1, 2), self._prior_logs[0].T, prior[0].T).T[None]

    def _pseudo_volunteer_divergence(self, prior: Tensor) -> Tensor:
        """Return how much less probable the pseudo-volunteer is under a learned prior than under the initial one."""
        return (
            log_normaliser(prior, axis=1).sum()
            - log_normaliser(self._prior, axis=1).sum()
            + ((self._prior - prior) * self._prior_logs).sum()
        )


class DawidSkeneEM:
    """The map whose fixed points are modes of Dawid and Skene's likelihood.

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

    def from_probs(self, probs: Tensor) -> Tensor:
        """Return the state that follows from class probabilities of the items; items with gold keep theirs."""
        overwrite_probs(self.probs, probs, self.fixed)
        swept = expected_counts(self._sweeper, self.probs, self._shape)
        return self._state(swept.counts, swept.class_counts)

    def counts(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smoothed counts that a state holds."""
        n_classes = self._shape[-1]
        return state[:-n_classes].reshape(self._shape), state[-n_classes:]

    def __call__(self, state: Tensor) -> Step:
        """Take one step."""
        counts, class_counts = self.counts(state)
        logs, class_logs = torch.log(_proportions(counts, 1)), torch.log(_proportions(class_counts, 0))
        swept = self._sweeper(logs, class_logs, self.probs, self.fixed)
        objective = swept.evidence
        if self._smoothing:
            objective = objective + self._smoothing * (total(logs) + class_logs.sum())
        return Step(self._state(swept.counts, swept.class_counts), objective, swept.change)

    def _state(self, counts: Tensor, class_counts: Tensor) -> Tensor:
        return (torch.cat([counts.ravel(), class_counts]) + self._smoothing).clamp_min(min_state(counts.dtype))


def overwrite_probs(target: Tensor, probs: Tensor, fixed: Tensor) -> None:
    """Overwrite class probabilities, (N, J), where they are not fixed, (N,), some rows at a time."""
    if target is probs:
        return
    for first in range(0, len(target), ROWS_TOGETHER):
        rows = slice(first, first + ROWS_TOGETHER)
        target[rows] = torch.where(fixed[rows, None], target[rows], probs[rows])


def _proportions(counts: Tensor, axis: int) -> Tensor:
    """Return counts as shares along an axis; equal shares where nothing was counted."""
    totals = counts.sum(axis, keepdim=True)
    return (counts / totals).clamp_min(min_state(counts.dtype))
