"""Oldest item first, as Galaxy Zoo Supernovae handed out its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.policies.round_robin import round_robin
from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._parameters import integer

__all__ = ["OldestFirst"]


@dataclass(frozen=True, kw_only=True)
class OldestFirst(Policy):
    """Ask random volunteers about the oldest items first, until these have enough answers.

    The age of an item counts from its first response; items without a response come last, in the graph's order. The
    volunteers are chosen as by `RandomPolicy`.

    Parameters
    ----------
    answers_per_item
        How many answers an item is to have, questions of the round included, before any item gets more.
    """

    answers_per_item: int = integer(10)
    name: ClassVar[str] = "oldest first"

    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:
        responses = problem.graph.responses
        first = np.full(len(problem.graph.items), len(responses))
        # In reverse, so that the first response is what remains.
        first[responses.item[::-1]] = np.arange(len(responses))[::-1]
        n_answers = np.bincount(problem.graph.answers.item, minlength=len(first))
        wanted = np.maximum(self.answers_per_item - n_answers[problem.items], 0)
        order = np.argsort(first[problem.items], kind="stable")
        return round_robin(problem, order.tolist(), rng.permutation(len(problem.volunteers)), wanted=wanted)
