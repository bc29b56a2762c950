"""Compiled: what every volunteer would tell of every item, and the best question that is still to be asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from crowdgraph.kernels._runtime import chunk_bounds, in_parallel

__all__ = ["ITEMS_PER_BLOCK", "best_question", "single_gains"]

# Items whose largest bound is kept together.
ITEMS_PER_BLOCK = 128
# Fewer pairs than this are not worth a second thread.
LEAST_PAIRS = 100_000


def single_gains(item_probs: Any, confusion: Any, doubt: Any) -> Any:
    """The information between class and label, of shape (N, V).

    Parameters
    ----------
    item_probs
        The class probabilities, of shape (N, J).
    confusion, doubt
        The probability of each label given the class, of shape (V, J, L), and its entropy, (V, J).
    """
    gains = np.empty((len(item_probs), len(confusion)))
    ends = chunk_bounds(len(gains), at_most=gains.size // LEAST_PAIRS)
    in_parallel(
        lambda part: _fill_label_information(item_probs, confusion, doubt, gains, ends[part], ends[part + 1]),
        len(ends) - 1,
    )
    return gains


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_label_information(item_probs: Any, confusion: Any, doubt: Any, gains: Any, start: int, stop: int) -> None:
    for item in range(start, stop):
        for volunteer in range(len(confusion)):
            gain = 0.0
            for label in range(confusion.shape[2]):
                chance = 0.0
                for j in range(item_probs.shape[1]):
                    chance += item_probs[item, j] * confusion[volunteer, j, label]
                if chance > 0:
                    gain -= chance * np.log(chance)
            for j in range(item_probs.shape[1]):
                gain -= item_probs[item, j] * doubt[volunteer, j]
            gains[item, volunteer] = max(gain, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def best_question(bounds: Any, tops: Any, values: Any, able: Any) -> Any:
    """The item and the column of the best question; -1 and -1 if none is worth anything.

    Parameters
    ----------
    bounds
        At least the value of each item's best question, of shape (N,); those that are met on the way are made exact.
    tops
        The largest bound of each `ITEMS_PER_BLOCK` of items.
    values
        What questions are worth, of shape (N, C).
    able
        Which columns may still be asked, of shape (C,).
    """
    while True:
        block = tops.argmax()
        if tops[block] < 0:
            return -1, -1
        here = bounds[block * ITEMS_PER_BLOCK : (block + 1) * ITEMS_PER_BLOCK]
        item = block * ITEMS_PER_BLOCK + here.argmax()
        column, best = -1, -np.inf
        for place in range(values.shape[1]):
            if able[place] and values[item, place] > best:
                column, best = place, values[item, place]
        if best == bounds[item]:
            return item, column
        # Who was better has no capacity left, or tells less than before; others may be ahead now.
        bounds[item] = best
        tops[block] = here.max()
