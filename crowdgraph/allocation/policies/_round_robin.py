"""Going through items and volunteers in some order: what all simple policies share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crowdgraph.allocation.policy import Pair, Problem
from crowdgraph.core._arrays import Array


def in_turn(task: Problem, items: Iterable[int], volunteers: Array, *, wanted: Array | None = None) -> list[Pair]:
    """Ask about one item after another, each time the first volunteer who may, until budget or capacities are used up.

    After the last item it begins again with the first, so that each item is asked about once before any is twice. Where
    `wanted` says how many questions each item is to get, of shape (N,), there are others only when all have these.
    """
    left, free = task.capacity.copy(), task.open.copy()
    items, pairs = list(items), list[Pair]()
    for stage in (None,) if wanted is None else (wanted, None):
        to_go = np.full(len(task.items), task.budget) if stage is None else stage.copy()
        order = items
        while order and len(pairs) < task.budget:
            order = [item for item in order if to_go[item] > 0 and _asked(task, item, volunteers, left, free, pairs)]
            to_go[order] -= 1
    return pairs


def _asked(task: Problem, item: int, volunteers: Array, left: Array, free: Array, pairs: list[Pair]) -> bool:
    """Whether somebody could be asked about an item; if so they are."""
    able = volunteers[free[item, volunteers] & (left[volunteers] > 0)]
    if not len(able) or len(pairs) == task.budget:
        return False
    # Those who have most left and are likely to answer come first, so that questions are spread evenly.
    chosen = int(able[np.argmax(left[able] * task.chances(item)[able])])
    pairs.append((item, chosen))
    left[chosen] -= 1
    free[item, chosen] = False
    return True
