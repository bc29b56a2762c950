"""Going through items and volunteers in some order: what all simple policies share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crowdgraph.allocation.base import Pair, Round
from crowdgraph.core.columns import Array

__all__ = ["in_turn"]


def in_turn(task: Round, items: Iterable[int], volunteers: Array) -> list[Pair]:
    """Ask about one item after another, each time the first volunteer who may, until budget or capacities are used up.

    After the last item it begins again with the first, so that each item is asked about once before any is twice.
    """
    left, free = task.capacity.copy(), task.open.copy()
    order, pairs = list(items), list[Pair]()
    while order and len(pairs) < task.budget:
        still = []
        for item in order:
            able = volunteers[free[item, volunteers] & (left[volunteers] > 0)]
            if not len(able) or len(pairs) == task.budget:
                continue
            # Those who have most left and are likely to answer come first, so that questions are spread evenly.
            chosen = int(able[np.argmax(left[able] * task.chances(item)[able])])
            pairs.append((item, chosen))
            left[chosen] -= 1
            free[item, chosen] = False
            still.append(item)
        order = still
    return pairs
