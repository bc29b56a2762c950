"""Oldest item first, as Galaxy Zoo Supernovae gave out its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.policies._round_robin import in_turn
from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._parameters import check_integer

__all__ = ["OldestFirst"]


@dataclass(frozen=True, kw_only=True)
class OldestFirst(Policy):
    """The items that have been there longest first, until they have enough answers, to random volunteers.

    An item is there from its first response on; those that nobody has answered come after those that have been, in the
    graph's order. Who is asked is as for `RandomPolicy`.

    Parameters
    ----------
    enough
        How many answers an item is to have, questions of the round included, before others get more than that.
    """

    enough: int = 10
    name: ClassVar[str] = "oldest first"

    def __post_init__(self) -> None:
        check_integer("enough", self.enough)

    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:
        responses = task.graph.responses
        first = np.full(len(task.graph.items), len(responses))
        # In reverse, so that the first response is what remains.
        first[responses.item[::-1]] = np.arange(len(responses))[::-1]
        answers = np.bincount(responses.item[responses.label >= 0], minlength=len(first))
        wanted = np.maximum(self.enough - answers[task.items], 0)
        order = np.argsort(first[task.items], kind="stable")
        return in_turn(task, order.tolist(), rng.permutation(len(task.volunteers)), wanted=wanted)
