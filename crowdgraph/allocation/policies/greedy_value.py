"""Greedy expected value: the question that is worth most, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._information_gain import PosteriorTree
from crowdgraph.allocation.policies._lazy_greedy import Queue
from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer

__all__ = ["GreedyValue"]


@dataclass(frozen=True, kw_only=True)
class GreedyValue(Policy):
    r"""Ask the question that is expected to be worth most, one after another, until the next costs more than it brings.

    Where labels are independent given the class, what a volunteer tells of an item only falls as others are asked about
    it (submodular). Without costs, greedy therefore reaches at least :math:`1 - 1/e` of the best for one item and a
    limit on the number of volunteers. With capacities it reaches at least half of the best if there may be one question
    about an item or any number, and at least a third with a limit in between, which is one more constraint. Nothing is
    promised for value less cost, or where errors are shared.

    One question about an item at a time, the default, lets its answer decide whether there is another, and keeps what a
    wrongly confident model believes of one item from taking a whole round.

    Parameters
    ----------
    per_item
        How many questions there may be about one item in a round; None for no limit.
    """

    per_item: int | None = 1
    name: ClassVar[str] = "greedy value"

    def __post_init__(self) -> None:
        if self.per_item is not None:
            check_integer("per_item", self.per_item)

    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        return Volunteers(task, task.first_values(), per_item=self.per_item).pairs()


class Volunteers(Queue):
    """A queue in which everybody stands for themselves."""

    @property
    def able(self) -> Array:
        """See `Queue`."""
        return np.asarray(self.left > 0)

    def _member(self, item: int, column: int) -> int:  # noqa: ARG002 - the same for every item
        return column

    def _again(self, item: int, known: PosteriorTree, volunteer: int) -> Array:
        view = self.task.question_values
        values = view.values(view.further(known, item), item) * self.task.chances(item)
        values[volunteer] = -np.inf
        return values
