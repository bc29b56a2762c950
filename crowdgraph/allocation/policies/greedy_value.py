"""Greedy value: ask the most valuable question, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._information_gain import PosteriorTree
from crowdgraph.allocation.policies._lazy_greedy import LazyGreedy
from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer

__all__ = ["GreedyValue"]


@dataclass(frozen=True, kw_only=True)
class GreedyValue(Policy):
    r"""Ask the question of highest expected value, one after another, until the next costs more than it brings.

    Where labels are independent given the class, the information that a volunteer adds about an item only falls as
    others are asked about it (submodularity). Without costs, greedy therefore reaches at least :math:`1 - 1/e` of the
    optimum for one item and a limit on the number of volunteers. With capacities it reaches at least half of the
    optimum if there may be one question about an item or any number, and at least a third with a limit in between,
    which is one more constraint. There is no guarantee for value less cost, or where errors are shared.

    One question about an item at a time, the default, lets its answer decide whether there is another, and prevents a
    model that is wrongly confident about one item from spending an entire round on it.

    Parameters
    ----------
    per_item
        How many questions there may be about one item in a round; None for no limit.
    """

    per_item: int | None = 1
    name: ClassVar[str] = "greedy value"

    def _check_settings(self) -> None:
        if self.per_item is not None:
            check_integer("per_item", self.per_item)

    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        return _GreedyByVolunteer(problem, problem.first_values(), per_item=self.per_item).pairs()


class _GreedyByVolunteer(LazyGreedy):
    """Lazy greedy choice in which every volunteer is a column."""

    @property
    def able(self) -> Array:
        return np.asarray(self.left > 0)

    def _volunteer(self, item: int, column: int) -> int:  # noqa: ARG002 - the same for every item
        return column

    def _values_after(self, item: int, tree: PosteriorTree, volunteer: int) -> Array:
        question_values = self.problem.question_values
        gains = question_values.marginal_gain(tree, item)
        values = question_values.net_values(gains, item) * self.problem.chances(item)
        values[volunteer] = -np.inf
        return values
