"""Most uncertain item first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._information_gain import entropy
from crowdgraph.allocation.policies.round_robin import round_robin
from crowdgraph.allocation.policy import Pair, Policy, Problem

__all__ = ["MostUncertain"]


@dataclass(frozen=True, kw_only=True)
class MostUncertain(Policy):
    """Ask random volunteers about the items whose class is least certain first (uncertainty sampling).

    The volunteers are chosen as by `RandomPolicy`.
    """

    name: ClassVar[str] = "most uncertain"

    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:
        # Among equally uncertain items, as all are at the beginning, the order is random.
        ties = rng.random(len(problem.items))
        order = np.lexsort((ties, -entropy(problem.question_values.probs).round(9)))
        return round_robin(problem, order.tolist(), rng.permutation(len(problem.volunteers)))
