"""Random allocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.policies._round_robin import in_turn
from crowdgraph.allocation.policy import Pair, Policy, Problem

__all__ = ["RandomPolicy"]


@dataclass(frozen=True, kw_only=True)
class RandomPolicy(Policy):
    """Items in random order, each to a random volunteer: what others are compared with.

    Questions are spread evenly: of those who may be asked, one of those with most capacity left is. Where `available`
    tells chances to answer, capacity counts by these, so that the likely are asked first.
    """

    name: ClassVar[str] = "random"

    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:
        return in_turn(task, rng.permutation(len(task.items)).tolist(), rng.permutation(len(task.volunteers)))
