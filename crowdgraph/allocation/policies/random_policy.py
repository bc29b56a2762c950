"""Random allocation, the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.policies.round_robin import round_robin
from crowdgraph.allocation.policy import Pair, Policy, Problem

__all__ = ["RandomPolicy"]


@dataclass(frozen=True, kw_only=True)
class RandomPolicy(Policy):
    """Ask random volunteers about items in random order: the baseline for other policies.

    Questions are spread evenly: among the volunteers who may be asked, those with most capacity left come first. Where
    `available` gives chances to answer, capacities are multiplied by these, so that likely volunteers come first.
    """

    name: ClassVar[str] = "random"

    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:
        order = rng.permutation(len(problem.items)).tolist()
        return round_robin(problem, order, rng.permutation(len(problem.volunteers)))
