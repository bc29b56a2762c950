"""Oldest item first, as Galaxy Zoo Supernovae gave out its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.base import Pair, Policy, Round
from crowdgraph.allocation.policies.in_turn import in_turn

__all__ = ["OldestFirst"]


@dataclass(frozen=True, kw_only=True)
class OldestFirst(Policy):
    """The items that have been there longest first, to random volunteers.

    An item is there from its first response on; those that nobody has answered come last, in the graph's order.
    """

    name: ClassVar[str] = "oldest first"

    def _choose(self, task: Round, rng: np.random.Generator) -> list[Pair]:
        responses = task.graph.responses
        first = np.full(len(task.graph.items), len(responses))
        # In reverse, so that the first response is what remains.
        first[responses.item[::-1]] = np.arange(len(responses))[::-1]
        order = np.argsort(first[task.items], kind="stable")
        return in_turn(task, order.tolist(), rng.permutation(len(task.volunteers)))
