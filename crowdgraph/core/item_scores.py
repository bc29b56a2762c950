"""Scores: the numbers that ordered classes and labels stand for, and what is expected of items."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays
from crowdgraph.core._parameters import is_number
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.errors import ParameterError, UnknownIdError
from crowdgraph.messages import quote

__all__ = ["ItemScores", "as_number", "expected_scores", "name_scores"]

# Rounding of sums of probabilities, so that a quantile is not missed by it.
ROUNDING = 1e-12


def as_number(name: Hashable) -> float:
    """Return the number that a name is or spells, as in a CSV file; NaN for others."""
    try:
        return float(name) if is_number(name) or isinstance(name, str) else np.nan  # type: ignore[arg-type]
    except ValueError:
        return np.nan


def name_scores(names: Iterable[Hashable], scores: Mapping[Hashable, float] | None, *, what: str) -> Array:
    """Return the numbers that names stand for: those of a mapping, or else themselves; raise where there is none.

    Examples
    --------
    >>> name_scores(["1", "2", "good"], {"good": 4}, what="classes")
    array([1., 2., 4.])
    """
    named = list(names)
    stated = {} if scores is None else scores
    values = np.array([stated[name] if name in stated else as_number(name) for name in named], dtype=float)
    if not np.isfinite(values).all():
        words = [name for name, value in zip(named, values, strict=True) if not np.isfinite(value)]
        raise ParameterError(
            f"The {what} {quote(words)} are not numbers.",
            hint=f"Say what they stand for: scores={{{words[0]!r}: 1, ...}}.",
        )
    return values


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemScores(ReadOnlyArrays, Tabular):
    """The scores that are expected of items; `ModelFit.expected_scores` returns them.

    Attributes
    ----------
    items
        The items, of shape (N,).
    expected
        The expected score of each, of shape (N,).
    deviation
        The standard deviation of the score, since the class is uncertain, of shape (N,).
    low, high
        The ends of an interval that has the score with a probability of at least `level`, of shape (N,).
    level
        The probability of the intervals.
    """

    items: Array
    expected: Array
    deviation: Array
    low: Array
    high: Array
    level: float

    def __post_init__(self) -> None:
        self._set(items=unique_ids(self.items, kind="item"))
        for name in ("expected", "deviation", "low", "high"):
            self._set(**{name: real_array(name, getattr(self, name), shape=(len(self.items),))})

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, item: Hashable) -> float:
        """Return the expected score of an item."""
        rows = np.flatnonzero([one == item for one in self.items.tolist()])
        if not len(rows):
            raise UnknownIdError(f"There is no item {item!r} among {len(self):,}.")
        return float(self.expected[rows[0]])

    def __repr__(self) -> str:
        return f"ItemScores({len(self):,} items, intervals of {self.level:.0%})"

    def _columns(self) -> Columns:
        return {
            "item": self.items,
            "expected": self.expected,
            "deviation": self.deviation,
            "low": self.low,
            "high": self.high,
        }


def expected_scores(items: Array, item_probs: Array, scores: Array, *, level: float) -> ItemScores:
    """Return what class probabilities, (N, J), say about the scores of items, if classes stand for numbers, (J,)."""
    expected = item_probs @ scores
    variance = item_probs @ scores**2 - expected**2
    order = np.argsort(scores)
    cumulative = item_probs[:, order].cumsum(axis=1)
    tail = (1 - level) / 2
    low, high = ((cumulative < quantile - ROUNDING).sum(axis=1) for quantile in (tail, 1 - tail))
    last = len(scores) - 1
    return ItemScores(
        items=items,
        expected=expected,
        deviation=np.sqrt(np.maximum(variance, 0.0)),
        low=scores[order][np.minimum(low, last)],
        high=scores[order][np.minimum(high, last)],
        level=level,
    )
