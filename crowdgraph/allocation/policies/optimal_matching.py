"""Optimal matching: the best that one round can do, with at most one question about each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._arrays import Array
from crowdgraph.errors import ParameterError

__all__ = ["OptimalMatching"]

# Numbers that fit into memory, and what an open question is worth at least.
MOST_NUMBERS, OPEN = 60_000_000, 1e-12


@dataclass(frozen=True, kw_only=True)
class OptimalMatching(Policy):
    r"""The round that is worth most of all with at most one question about each item.

    Values of questions about different items add up, so this is an assignment of items to the places that volunteers
    have,

    .. math:: \max \sum_{ik} v_{ik} x_{ik}, \quad \sum_k x_{ik} \le 1, \quad \sum_i x_{ik} \le c_k, \quad
              \sum_{ik} x_{ik} \le B, \quad x_{ik} \in \{0, 1\},

    solved exactly by scipy. Where the budget is smaller than what could be assigned, dummies take the items and places
    that are left over. Questions that cost more than they bring are not asked.
    """

    name: ClassVar[str] = "optimal matching"

    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        values = task.first_values()
        # Nobody has more places than there are questions for them.
        most = np.minimum(task.open.sum(axis=0), task.budget)
        volunteers = np.repeat(np.arange(len(task.volunteers)), np.minimum(task.capacity, most))
        n_pairs = min(task.budget, len(values), len(volunteers))
        if np.prod(_shape(len(values), len(volunteers), n_pairs)) > MOST_NUMBERS:
            raise ParameterError(
                f"{len(volunteers):,} places of volunteers and {len(values):,} items are too many to match at once; "
                "lower capacity=, name fewer items=, or use GreedyValue()."
            )
        # What may not be asked is worth nothing, and what may be a little more than that.
        places = np.where(values >= 0, values + OPEN, 0.0)[:, volunteers]
        items, chosen = _matched(places, n_pairs)
        kept = places[items, chosen] > 0
        items, chosen = items[kept], chosen[kept]
        order = np.argsort(-places[items, chosen], kind="stable")
        return [(int(items[place]), int(volunteers[chosen[place]])) for place in order]


def _shape(n_rows: int, n_columns: int, n_pairs: int) -> tuple[int, int]:
    """Rows and columns with so many dummies that just so many pairs are real."""
    most = min(n_rows, n_columns)
    return (n_rows, n_columns) if n_pairs == most else (n_rows + n_columns - n_pairs,) * 2


def _matched(values: Array, n_pairs: int) -> tuple[Array, Array]:
    """The rows and columns of the best matching of so many pairs, of values from 0 up."""
    n_rows, n_columns = values.shape
    padded = np.zeros(_shape(n_rows, n_columns, n_pairs))
    padded[:n_rows, :n_columns] = values
    # A dummy with a dummy would leave more pairs than there may be.
    padded[n_rows:, n_columns:] = -1.0 - 2 * len(padded) * values.max(initial=0.0)
    rows, columns = linear_sum_assignment(padded, maximize=True)
    real = (rows < n_rows) & (columns < n_columns)
    return rows[real], columns[real]
