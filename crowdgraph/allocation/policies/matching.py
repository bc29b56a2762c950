"""Optimal matching: the best that one round can do, with at most one question about each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from crowdgraph.allocation.base import Pair, Policy, Round
from crowdgraph.core.columns import Array
from crowdgraph.errors import ParameterError

__all__ = ["OptimalMatching"]

# Pairs of places of volunteers and items that fit into memory, and the share of a value by which ties are broken.
MOST_PAIRS, TIE = 50_000_000, 1e-10


@dataclass(frozen=True, kw_only=True)
class OptimalMatching(Policy):
    r"""The round that is worth most of all with at most one question about each item.

    Values of questions about different items add up, so this is an assignment of items to the places that volunteers
    have,

    .. math:: \max \sum_{ik} v_{ik} x_{ik}, \quad \sum_k x_{ik} \le 1, \quad \sum_i x_{ik} \le c_k, \quad
              \sum_{ik} x_{ik} \le B, \quad x_{ik} \in \{0, 1\},

    solved exactly by scipy. Where the budget is smaller than what could be assigned, questions are charged a price at
    which just so many are worth it: the best value is a concave function of the number of questions, so such a price
    exists and is found by intersecting lines. Ties are broken by at most 1e-10 of the largest value.
    """

    name: ClassVar[str] = "optimal matching"

    def _choose(self, task: Round, rng: np.random.Generator) -> list[Pair]:
        values = task.first_values()
        volunteers = np.repeat(np.arange(len(task.volunteers)), np.minimum(task.capacity, task.budget))
        if len(volunteers) * len(values) > MOST_PAIRS:
            raise ParameterError(
                f"{len(volunteers):,} places of volunteers and {len(values):,} items are too many to match at once "
                f"(at most {MOST_PAIRS:,} pairs); lower capacity=, name fewer items=, or use GreedyValue(per_item=1)."
            )
        places = np.maximum(values[:, volunteers], 0.0)
        # Which of equally good rounds is taken must not stand between the search and its budget.
        places += TIE * places.max(initial=0.0) * rng.random(places.shape) * (places > 0)
        items, chosen = _matched(places, task.budget)
        order = np.argsort(-places[items, chosen], kind="stable")
        return [(int(items[place]), int(volunteers[chosen[place]])) for place in order]


def _matched(values: Array, budget: int) -> tuple[Array, Array]:
    """The rows and columns of the best matching of at most so many pairs, of values from 0 up."""
    many = _at_price(values, 0.0)
    few = (many[0][:0], many[1][:0])
    while len(many[0]) > budget:
        # The price at which both are equally good; if a matching between them is better, it is one of the two next.
        gap = len(many[0]) - len(few[0])
        price = float(values[many].sum() - values[few].sum()) / gap
        between = _at_price(values, price)
        if len(between[0]) in {len(many[0]), len(few[0])}:
            break
        if len(between[0]) > budget:
            many = between
        else:
            few = between
    if len(many[0]) <= budget:
        return many
    return few


def _at_price(values: Array, price: float) -> tuple[Array, Array]:
    """The best matching where each pair costs a price; pairs that are not worth it are left out."""
    worth = np.maximum(values - price, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    kept = worth[rows, columns] > 0
    return rows[kept], columns[kept]
