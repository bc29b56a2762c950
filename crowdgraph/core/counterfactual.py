"""What would have come out: a fit beside the one of a world in which some responses were never given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdgraph.core.columns import Array, Sealed, read_only, sealed
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.influence import compared_columns
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import ResultError

__all__ = ["Counterfactual"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Counterfactual(Sealed, Tabular):
    """What a model concludes, and what it would have concluded had some responses never been given.

    Attributes
    ----------
    reason
        What would have been otherwise, in words.
    fit, other
        What the model concludes as it was, and as it would have been. Items that retired keep, in `other`, what was
        believed when they did.
    n_responses, n_left_out
        How many responses there are, and how many would not have been given.
    truth
        The class of each item whose gold was hidden from the model, as a code, of shape (N,); -1 for all others.
    retired_at
        The update after which each item would have retired, counted from 1, of shape (N,); 0 for those never retired.
    """

    reason: str
    fit: ModelFit
    other: ModelFit
    n_responses: int
    n_left_out: int
    truth: Array
    retired_at: Array

    def __post_init__(self) -> None:
        for name in ("truth", "retired_at"):
            column = read_only(getattr(self, name))
            if column.shape != (len(self.fit.items),):
                raise ResultError(f"{name} has shape {column.shape}; expected one value for each item of the fit.")
            object.__setattr__(self, name, column)

    @cached_property
    def item_change(self) -> Array:
        """What would be added to each item's class probabilities, of shape (N, J)."""
        return sealed(self.other.item_probs - self.fit.item_probs)

    @property
    def changed(self) -> Array:
        """Ids of the items whose most probable class would have been another."""
        was, would_be = (fit.item_probs.argmax(axis=1) for fit in (self.fit, self.other))
        return np.asarray(self.fit.items[was != would_be])

    @property
    def retired(self) -> Array:
        """Ids of the items that would have retired."""
        return np.asarray(self.fit.items[self.retired_at > 0])

    @property
    def accuracy(self) -> tuple[float, float]:
        """The share of items with hidden gold that are right, as it was and as it would have been; NaN without any."""
        scored = self.truth >= 0
        if not scored.any():
            return float("nan"), float("nan")
        right = [fit.item_probs[scored].argmax(axis=1) == self.truth[scored] for fit in (self.fit, self.other)]
        return float(right[0].mean()), float(right[1].mean())

    def _columns(self) -> Columns:
        """One row for each item, those that change most first."""
        return compared_columns(self.fit, self.item_change, instead=self.other, retired_at=self.retired_at)

    def __repr__(self) -> str:
        n_retired, n_scored = len(self.retired), np.count_nonzero(self.truth >= 0)
        before, after = self.accuracy
        parts = [
            f"{self.n_left_out:,} of {self.n_responses:,} responses left out",
            f"{n_retired:,} of {len(self.retired_at):,} items retired" if n_retired else "",
            f"{len(self.changed):,} items have another class",
            f"accuracy {after:.3f} instead of {before:.3f} among {n_scored:,} with hidden gold" if n_scored else "",
        ]
        return f"Counterfactual {self.reason}: {', '.join(part for part in parts if part)}"
