"""Random allocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.base import Pair, Policy, Round
from crowdgraph.allocation.policies.in_turn import in_turn

__all__ = ["RandomPolicy"]


@dataclass(frozen=True, kw_only=True)
class RandomPolicy(Policy):
    """Items in random order, each to a random volunteer: what others are compared with."""

    name: ClassVar[str] = "random"

    def _choose(self, task: Round, rng: np.random.Generator) -> list[Pair]:
        return in_turn(task, rng.permutation(len(task.items)).tolist(), rng.permutation(len(task.volunteers)))
