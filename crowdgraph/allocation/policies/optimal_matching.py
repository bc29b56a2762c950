"""Optimal matching: the best that one round can do with at most one question about each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._arrays import Array
from crowdgraph.errors import ParameterError
from crowdgraph.messages import Hint

__all__ = ["OptimalMatching"]

# The largest cost matrix that is built, in numbers.
MAX_MATRIX_SIZE = 60_000_000
# Added to the value of questions that are allowed, so that worthless ones are still preferred to none.
ALLOWED_BONUS = 1e-12


@dataclass(frozen=True, kw_only=True)
class OptimalMatching(Policy):
    r"""Choose the most valuable round with at most one question about each item.

    Values of questions about different items add up, so this is an assignment of items to the slots of volunteers,

    .. math:: \max \sum_{ik} v_{ik} x_{ik}, \quad \sum_k x_{ik} \le 1, \quad \sum_i x_{ik} \le c_k, \quad
              \sum_{ik} x_{ik} \le B, \quad x_{ik} \in \{0, 1\},

    solved exactly by scipy. Where the budget is smaller than what could be assigned, dummies take the items and slots
    that are left over. Questions that cost more than they bring are not asked.
    """

    name: ClassVar[str] = "optimal matching"

    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        values = problem.first_values()
        # Nobody needs more slots than there are questions for them.
        n_slots = np.minimum(problem.capacity, np.minimum(problem.allowed.sum(axis=0), problem.budget))
        volunteers = np.repeat(np.arange(len(problem.volunteers)), n_slots)
        n_pairs = min(problem.budget, len(values), len(volunteers))
        if np.prod(_padded_shape(len(values), len(volunteers), n_pairs)) > MAX_MATRIX_SIZE:
            raise ParameterError(
                f"{len(volunteers):,} questions to volunteers and {len(values):,} items are too many to match at once.",
                hint=Hint(
                    "Lower capacity=, name fewer items=, or use GreedyValue().",
                    cli="Lower --capacity, or use --policy greedy.",
                ),
            )
        # Questions that are not allowed have no value, and allowed ones a little more than their own.
        slot_values = np.where(values >= 0, values + ALLOWED_BONUS, 0.0)[:, volunteers]
        items, slots = _best_matching(slot_values, n_pairs)
        allowed = slot_values[items, slots] > 0
        items, slots = items[allowed], slots[allowed]
        order = np.argsort(-slot_values[items, slots], kind="stable")
        return [(int(items[index]), int(volunteers[slots[index]])) for index in order]


def _padded_shape(n_rows: int, n_columns: int, n_pairs: int) -> tuple[int, int]:
    """Return the shape with just so many dummies that exactly this many pairs are real."""
    full = min(n_rows, n_columns)
    return (n_rows, n_columns) if n_pairs == full else (n_rows + n_columns - n_pairs,) * 2


def _best_matching(values: Array, n_pairs: int) -> tuple[Array, Array]:
    """Return the rows and columns of the best matching with this many pairs, for values of at least 0."""
    n_rows, n_columns = values.shape
    padded = np.zeros(_padded_shape(n_rows, n_columns, n_pairs))
    padded[:n_rows, :n_columns] = values
    # A dummy matched with a dummy would leave more pairs than there may be.
    padded[n_rows:, n_columns:] = -1.0 - 2 * len(padded) * values.max(initial=0.0)
    rows, columns = linear_sum_assignment(padded, maximize=True)
    real = (rows < n_rows) & (columns < n_columns)
    return rows[real], columns[real]
