"""Lazy greedy choice: the best question first, revalued only where something was asked (Minoux 1978)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from crowdgraph.allocation._information_gain import PosteriorTree
from crowdgraph.allocation.policy import Pair, Problem
from crowdgraph.core._arrays import Array


class LazyGreedy(ABC):
    """Choose the most valuable question again and again, each put to one of C columns: volunteers, or communities.

    For each item an upper bound is kept: the value of its best question when that was last computed. A question changes
    the value of other questions about the same item only, so a bound that still holds at the top is the best of all.

    Parameters
    ----------
    problem
        The allocation problem.
    values
        The value of each question, of shape (N, C); minus infinity where it is not allowed.
    per_item
        How many questions there may be about one item.
    """

    def __init__(self, problem: Problem, values: Array, *, per_item: int | None = None) -> None:
        self.problem, self.left = problem, problem.capacity.copy()
        self._values = values
        self._max_per_item = problem.budget if per_item is None else per_item
        self._n_asked = np.zeros(len(problem.items), dtype=np.int64)
        self._trees: dict[int, PosteriorTree] = {}

    def pairs(self) -> list[Pair]:
        """Return the pairs in the order in which they are chosen; none has a negative value."""
        from crowdgraph.kernels.information_gain import ITEMS_PER_BLOCK, best_question

        bounds = self._best_values()
        block_bounds = np.maximum.reduceat(bounds, np.arange(0, len(bounds), ITEMS_PER_BLOCK))
        pairs: list[Pair] = []
        while len(pairs) < self.problem.budget:
            item, column = best_question(bounds, block_bounds, self._values, self.able)
            if item < 0:
                break
            volunteer = self._volunteer(item, column)
            if volunteer < 0:
                self._values[item, column] = -np.inf
            else:
                pairs.append((item, volunteer))
                self._take(item, volunteer)
            # To be computed again, also if its value has risen, as it may where errors are shared.
            bounds[item] = block_bounds[item // ITEMS_PER_BLOCK] = np.inf
        return pairs

    @property
    @abstractmethod
    def able(self) -> Array:
        """Which columns have capacity left, of shape (C,)."""

    @abstractmethod
    def _volunteer(self, item: int, column: int) -> int:
        """Return the volunteer who is asked; -1 if there is none."""

    @abstractmethod
    def _values_after(self, item: int, tree: PosteriorTree, volunteer: int) -> Array:
        """Return the value of questions about an item after a volunteer was asked, of shape (C,)."""

    def _best_values(self) -> Array:
        able = self.able
        return self._values[:, able].max(axis=1) if able.any() else np.full(len(self._values), -np.inf)

    def _take(self, item: int, volunteer: int) -> None:
        self.left[volunteer] -= 1
        self._n_asked[item] += 1
        if self._n_asked[item] >= self._max_per_item:
            self._values[item] = -np.inf
            return
        question_values = self.problem.question_values
        tree = self._trees.setdefault(item, question_values.posterior_tree(item))
        question_values.add_label(tree, item, volunteer)
        values = self._values_after(item, tree, volunteer)
        self._values[item] = np.where(np.isneginf(self._values[item]), -np.inf, values)
