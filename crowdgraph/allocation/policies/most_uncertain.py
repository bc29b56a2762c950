"""Most uncertain item first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._information_gain import entropy
from crowdgraph.allocation.policies._round_robin import in_turn
from crowdgraph.allocation.policy import Pair, Policy, Problem

__all__ = ["MostUncertain"]


@dataclass(frozen=True, kw_only=True)
class MostUncertain(Policy):
    """The items of whose class least is known first, to random volunteers (uncertainty sampling).

    Who is asked is as for `RandomPolicy`.
    """

    name: ClassVar[str] = "most uncertain"

    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:
        # Of equally uncertain ones, as all are at the beginning, a random one.
        ties = rng.random(len(task.items))
        order = np.lexsort((ties, -entropy(task.question_values.probs).round(9)))
        return in_turn(task, order.tolist(), rng.permutation(len(task.volunteers)))
