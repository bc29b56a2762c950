"""Dawid and Skene's model: one step of expectation maximisation."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.kernels.iterate import Step
from crowdgraph.kernels.sweep import Sweeper, counted

__all__ = ["ExpectationMaximisation"]

# Logarithms of probabilities that were estimated as zero.
LEAST = 1e-300


class ExpectationMaximisation:
    """The map whose fixed points are modes of the likelihood, for `crowdgraph.kernels.iterate.climb`.

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
        swept = counted(self._sweeper, guess, self._shape)
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
        return (torch.cat([counts.ravel(), class_counts]) + self._smoothing).clamp_min(LEAST)


def proportions(counts: Tensor, axis: int) -> Tensor:
    """Counts as shares along an axis; equal ones where nothing was counted."""
    totals = counts.sum(axis, keepdim=True)
    return (counts / totals).clamp_min(LEAST)
