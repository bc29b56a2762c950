"""Greedy expected information: the question that tells most, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.base import Pair, Policy, Round
from crowdgraph.allocation.gain import ENOUGH_STATES, Knowledge, single_gains
from crowdgraph.core.columns import Array

__all__ = ["GreedyInformation"]


@dataclass(frozen=True, kw_only=True)
class GreedyInformation(Policy):
    r"""Ask the question whose label is expected to tell most about its item, one after another.

    A question changes what others would tell about its own item only, so that is all that is worked out again. Labels
    are independent given the class, so what a volunteer tells of an item only falls as others are asked about it
    (submodular). With a limit on the number of volunteers for one item, greedy therefore reaches at least
    :math:`1 - 1/e` of the best; with capacities at least half of it.
    """

    name: ClassVar[str] = "greedy information"

    def _choose(self, task: Round, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        if not len(task.items) or not len(task.volunteers):
            return []
        bounds = np.where(task.open, single_gains(task.probs, task.confusion), -1.0)
        return Greedy(task, bounds).pairs()


class Greedy:
    """The gains of all volunteers for all items, those of the best volunteers in a queue, as questions are chosen."""

    def __init__(self, task: Round, gains: Array) -> None:
        self._task, self._gains = task, gains
        self._left = task.capacity.copy()
        self._known: dict[int, Knowledge] = {}

    def pairs(self) -> list[Pair]:
        """The pairs in the order in which they were chosen."""
        queue = [(-bound, item) for item, bound in enumerate(self._best_gains())]
        heapify(queue)
        chosen: list[Pair] = []
        while queue and len(chosen) < self._task.budget:
            bound, item = heappop(queue)
            volunteer = self._best(item)
            gain = self._gains[item, volunteer] if volunteer >= 0 else -1.0
            if gain < 0:
                continue
            if gain < -bound:
                # Somebody who was better has no capacity left; others may be ahead now.
                heappush(queue, (-gain, item))
                continue
            chosen.append((item, volunteer))
            self._left[volunteer] -= 1
            self._ask(item, volunteer)
            following = self._best(item)
            if following >= 0:
                heappush(queue, (-self._gains[item, following], item))
        return chosen

    def _best_gains(self) -> Array:
        able = self._left > 0
        return self._gains[:, able].max(axis=1) if able.any() else np.full(len(self._gains), -1.0)

    def _best(self, item: int) -> int:
        """The volunteer with capacity who tells most about an item; -1 for none."""
        gains = np.where(self._left > 0, self._gains[item], -1.0)
        best = int(gains.argmax())
        return best if gains[best] >= 0 else -1

    def _ask(self, item: int, volunteer: int) -> None:
        """Work out what everybody would tell of an item after one more volunteer."""
        known = self._known.setdefault(item, Knowledge(self._task.probs[item], most_states=ENOUGH_STATES))
        known.ask(self._task.confusion[volunteer])
        may = self._gains[item] >= 0
        may[volunteer] = False
        self._gains[item] = np.where(may, known.further(self._task.confusion), -1.0)
