"""How far volunteers who answer the same item agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.diagnosis.answers import FirstAnswers

__all__ = ["Agreement", "agreement"]


class Agreement(NamedTuple):
    """How often two volunteers agree on an item, and would by chance.

    Attributes
    ----------
    share, chance
        How often two answers to an item are the same, and would be if all answered blindly at the crowd's rates.
    error
        The standard error of `share`, items being independent.
    n_items
        How many items have two answers or more.
    """

    share: float
    chance: float
    error: float
    n_items: int

    @property
    def kappa(self) -> float:
        """Agreement beyond chance (Fleiss 1971): 0 for none, 1 for complete; NaN where all answers are the same."""
        return (self.share - self.chance) / (1 - self.chance) if self.chance < 1 else np.nan

    @property
    def highest_kappa(self) -> float:
        """The kappa that the answers still allow, three standard errors up."""
        return self.kappa + 3 * self.error / (1 - self.chance) if self.chance < 1 else np.nan

    @property
    def lowest_kappa(self) -> float:
        """The kappa that the answers surely show, two standard errors down."""
        return self.kappa - 2 * self.error / (1 - self.chance) if self.chance < 1 else np.nan


def agreement(answers: FirstAnswers, *, n_items: int, n_labels: int) -> Agreement:
    """How far two volunteers who answer the same item agree; all pairs of answers count the same."""
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    counts = np.bincount(cells, minlength=n_items * n_labels).reshape(n_items, n_labels).astype(np.float64)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return Agreement(np.nan, 1.0, np.nan, 0)
    n = counts.sum(axis=1)
    alike, pairs = (counts * (counts - 1)).sum(axis=1), n * (n - 1)
    share = float(alike.sum() / pairs.sum())
    chance = float(((counts.sum(axis=0) / n.sum()) ** 2).sum())
    error = float(np.sqrt(((alike - share * pairs) ** 2).sum()) / pairs.sum())
    return Agreement(share, chance, error, len(counts))
