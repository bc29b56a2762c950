"""Compiled: the information that each volunteer's label would carry about each item, and the best question left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from crowdgraph.kernels._runtime import chunk_bounds, in_parallel

__all__ = ["ITEMS_PER_BLOCK", "best_question", "label_information"]

# Items whose largest bound is kept together.
ITEMS_PER_BLOCK = 128
# Fewer pairs than this are not worth a second thread.
MIN_PAIRS_PER_THREAD = 100_000


def label_information(item_probs: Any, confusion: Any, row_entropy: Any) -> Any:
    """Return the mutual information of an item's class and a volunteer's label, of shape (N, V).

    Parameters
    ----------
    item_probs
        The class probabilities, of shape (N, J).
    confusion, row_entropy
        The probability of each label given the class, of shape (V, J, L), and its entropy, (V, J).
    """
    gains = np.empty((len(item_probs), len(confusion)))
    bounds = chunk_bounds(len(gains), at_most=gains.size // MIN_PAIRS_PER_THREAD)
    in_parallel(
        lambda chunk: _fill_label_information(
            item_probs, confusion, row_entropy, gains, bounds[chunk], bounds[chunk + 1]
        ),
        len(bounds) - 1,
    )
    return gains


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_label_information(
    item_probs: Any, confusion: Any, row_entropy: Any, gains: Any, start: int, stop: int
) -> None:
    """Fill in H[label] - H[label | class], V_object of sec:discussion for a single volunteer."""
    for item in range(start, stop):
        for volunteer in range(len(confusion)):
            gain = 0.0
            for label in range(confusion.shape[2]):
                prob = 0.0
                for j in range(item_probs.shape[1]):
                    prob += item_probs[item, j] * confusion[volunteer, j, label]
                if prob > 0:
                    gain -= prob * np.log(prob)
            for j in range(item_probs.shape[1]):
                gain -= item_probs[item, j] * row_entropy[volunteer, j]
            gains[item, volunteer] = max(gain, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def best_question(bounds: Any, block_bounds: Any, values: Any, available: Any) -> Any:
    """Return the item and the column of the most valuable question; -1 and -1 if none is worth anything.

    Parameters
    ----------
    bounds
        Upper bounds on the value of each item's best question, of shape (N,); those met on the way are made exact.
    block_bounds
        The largest bound in each block of `ITEMS_PER_BLOCK` items.
    values
        The values of questions, of shape (N, C).
    available
        Which columns may still be asked, of shape (C,).
    """
    while True:
        block = block_bounds.argmax()
        if block_bounds[block] < 0:
            return -1, -1
        block_items = bounds[block * ITEMS_PER_BLOCK : (block + 1) * ITEMS_PER_BLOCK]
        item = block * ITEMS_PER_BLOCK + block_items.argmax()
        column, best = -1, -np.inf
        for candidate in range(values.shape[1]):
            if available[candidate] and values[item, candidate] > best:
                column, best = candidate, values[item, candidate]
        if best == bounds[item]:
            return item, column
        # The better volunteer has no capacity left, or would reveal less than before; other items may be ahead now.
        bounds[item] = best
        block_bounds[block] = block_items.max()
