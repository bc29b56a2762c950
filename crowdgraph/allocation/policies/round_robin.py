"""Round robin: go through the items in an order and ask one volunteer about each, as all simple policies do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crowdgraph.allocation.policy import Pair, Problem
from crowdgraph.core._arrays import Array

__all__ = ["round_robin"]


def round_robin(
    problem: Problem, items: Iterable[int], volunteers: Array, *, wanted: Array | None = None
) -> list[Pair]:
    """Ask about one item after another until the budget or the capacities are used up.

    After the last item it begins again with the first, so that each item is asked about once before any is asked about
    twice. Where `wanted` says how many questions each item is to get, of shape (N,), further questions are asked only
    when all items have these.
    """
    left, free = problem.capacity.copy(), problem.allowed.copy()
    items, pairs = list(items), list[Pair]()
    for stage in (None,) if wanted is None else (wanted, None):
        n_wanted = np.full(len(problem.items), problem.budget) if stage is None else stage.copy()
        order = items
        while order and len(pairs) < problem.budget:
            order = [
                item for item in order if n_wanted[item] > 0 and _ask(problem, item, volunteers, left, free, pairs)
            ]
            n_wanted[order] -= 1
    return pairs


def _ask(problem: Problem, item: int, volunteers: Array, left: Array, free: Array, pairs: list[Pair]) -> bool:
    """Ask somebody about an item, and return whether there was anybody to ask."""
    able = volunteers[free[item, volunteers] & (left[volunteers] > 0)]
    if not len(able) or len(pairs) == problem.budget:
        return False
    # Volunteers with most capacity left who are likely to answer come first, so that questions are spread evenly.
    volunteer = int(able[np.argmax(left[able] * problem.chances(item)[able])])
    pairs.append((item, volunteer))
    left[volunteer] -= 1
    free[item, volunteer] = False
    return True
