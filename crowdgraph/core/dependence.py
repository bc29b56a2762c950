"""Dependence: how much the answers about one item depend on each other, and the effective number of answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array

__all__ = ["Dependence"]


class Dependence(NamedTuple):
    """How much answers about one item depend on each other, as a calibrated fit allows for it.

    Attributes
    ----------
    rho
        The correlation of two answers about an item given its class: 0 if they are independent, 1 if any number of
        answers counts as one.
    source
        Where it comes from: ``"gold"``, ``"assumed"`` (that of a typical crowd) or ``"given"`` (by the user).
    n_gold
        How many gold items it was learned from.
    """

    rho: float
    source: str
    n_gold: int

    @property
    def words(self) -> str:
        """The correlation and its source, such as ``"rho 0.50, assumed"``."""
        source = f"from {self.n_gold:,} gold items" if self.source == "gold" else self.source
        return f"rho {self.rho:.2f}, {source}"

    def effective_answers(self, n_answers: ArrayLike) -> Array:
        """Return how many independent answers carry as much information as so many dependent ones."""
        counts = np.asarray(n_answers, dtype=np.float64)
        return np.asarray(counts / (1 + self.rho * (np.maximum(counts, 1) - 1)))

    def next_answer(self, n_answers: ArrayLike) -> Array:
        """Return how much one more answer adds to the effective number of answers: 1 at first, then ever less."""
        counts = np.asarray(n_answers, dtype=np.float64)
        return self.effective_answers(counts + 1) - self.effective_answers(counts)

    def to_facts(self) -> dict[str, Any]:
        """Return the values as a fit's diagnostics hold them."""
        return self._asdict()
