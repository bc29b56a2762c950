"""Questions by falling value, worked out again only where something was asked: what the greedy policies share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from crowdgraph.allocation._information_gain import PosteriorTree
from crowdgraph.allocation.policy import Pair, Problem
from crowdgraph.core._arrays import Array


class Queue(ABC):
    """The values of asking each of C (volunteers, or communities of them) about each item, as questions are chosen.

    The queue knows an upper bound for each item: the value of its best question when that was last worked out. A
    question changes what others tell about its own item only, so whatever comes out of the queue with a value that
    still holds is the best of all.

    Parameters
    ----------
    task
        The round.
    values
        What each question is worth, of shape (N, C); minus infinity if it may not be asked.
    per_item
        How many questions there may be about one item.
    """

    def __init__(self, task: Problem, values: Array, *, per_item: int | None = None) -> None:
        self.task, self.left = task, task.capacity.copy()
        self._values = values
        self._most = task.budget if per_item is None else per_item
        self._asked = np.zeros(len(task.items), dtype=np.int64)
        self._known: dict[int, PosteriorTree] = {}

    def pairs(self) -> list[Pair]:
        """The pairs in the order in which they were chosen; none is worth less than nothing."""
        from crowdgraph.kernels.information_gain import ITEMS_PER_BLOCK, best_question

        bounds = self._best_values()
        tops = np.maximum.reduceat(bounds, np.arange(0, len(bounds), ITEMS_PER_BLOCK))
        chosen: list[Pair] = []
        while len(chosen) < self.task.budget:
            item, column = best_question(bounds, tops, self._values, self.able)
            if item < 0:
                break
            volunteer = self._member(item, column)
            if volunteer < 0:
                self._values[item, column] = -np.inf
            else:
                chosen.append((item, volunteer))
                self._take(item, volunteer)
            # To be worked out again, also if it has become worth more, as it may where errors are shared.
            bounds[item] = tops[item // ITEMS_PER_BLOCK] = np.inf
        return chosen

    @property
    @abstractmethod
    def able(self) -> Array:
        """Who has capacity left, of shape (C,)."""

    @abstractmethod
    def _member(self, item: int, column: int) -> int:
        """The volunteer who is asked; -1 if there is none."""

    @abstractmethod
    def _again(self, item: int, known: PosteriorTree, volunteer: int) -> Array:
        """What questions about an item are worth after a volunteer was asked, of shape (C,)."""

    def _best_values(self) -> Array:
        able = self.able
        return self._values[:, able].max(axis=1) if able.any() else np.full(len(self._values), -np.inf)

    def _take(self, item: int, volunteer: int) -> None:
        self.left[volunteer] -= 1
        self._asked[item] += 1
        if self._asked[item] >= self._most:
            self._values[item] = -np.inf
            return
        known = self._known.setdefault(item, self.task.question_values.knowledge(item))
        self.task.question_values.ask(known, item, volunteer)
        self._values[item] = np.where(np.isneginf(self._values[item]), -np.inf, self._again(item, known, volunteer))
