"""Random networks in which everybody keeps the number of links: ends of links are swapped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crowdgraph.core.columns import Array

__all__ = ["rewired", "rewired_pairs"]

# How often each link is to be swapped on average, and how many swaps there are to be where links are few.
SWAPS = 3
FEW_SWAPS = 50
# Rounds of swaps, where there is little room.
ROUNDS = 100


def rewired(left: Array, right: Array, n_right: int, rng: np.random.Generator) -> Array:
    """New right ends of links from left to right nodes, each link being once in the result as before.

    All nodes keep their number of links, and so does each link its left end. Two links at a time exchange their right
    ends, unless that makes a link that is there already; where everything is linked, all stays as it is.

    Parameters
    ----------
    left, right
        The ends of each link, of shape (E,); no link is there twice.
    n_right
        How many right nodes there are.
    rng
        What draws.
    """
    return _swapped(left, right, rng, key=lambda one, other: one * n_right + other)[1]


def rewired_pairs(left: Array, right: Array, n_nodes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """As `rewired` for links between nodes of one kind: both ends of each link, which are two nodes."""
    turned = rng.random(len(left)) < 0.5
    left, right = np.where(turned, right, left), np.where(turned, left, right)

    def key(one: Array, other: Array) -> Array:
        low, high = np.minimum(one, other), np.maximum(one, other)
        # Loops all get the one key, which counts as taken.
        return np.where(one == other, -1, low * n_nodes + high)

    return _swapped(left, right, rng, key=key, mirrored=True)


def _swapped(
    left: Array,
    right: Array,
    rng: np.random.Generator,
    *,
    key: Callable[[Array, Array], Array],
    mirrored: bool = False,
) -> tuple[Array, Array]:
    """Both ends after random swaps of right ends; `mirrored` links are turned between rounds."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    n_rounds, done = ROUNDS, 0
    while done < n_rounds:
        order = rng.permutation(len(left))
        # Some links sit out, lest all be swapped to and fro.
        half = rng.binomial(len(left) // 2, 0.8)
        one, other = order[:half], order[half : 2 * half]
        made = np.column_stack([key(left[one], right[other]), key(left[other], right[one])])
        free = _free(made, key(left, right))
        one, other = one[free], other[free]
        right[one], right[other] = right[other], right[one]
        if mirrored:
            turned = rng.random(len(left)) < 0.5
            left, right = np.where(turned, right, left), np.where(turned, left, right)
        done += 1
        if done == 1:
            # The first round tells how many are needed. To stop at a number of swaps would favour what an even (or
            # odd) number of them makes.
            n_rounds = min(ROUNDS, 1 + max(SWAPS * len(left), FEW_SWAPS) // max(2 * len(one), 1))
    return left, right


def _free(made: Array, taken: Array) -> Array:
    """Which rows of two links each can be made: they are neither loops, nor taken, nor made by two rows at once."""
    _, place, times = np.unique(np.concatenate([made.ravel(), taken]), return_inverse=True, return_counts=True)
    alone = times[place[: made.size]].reshape(made.shape) == 1
    return np.flatnonzero((alone & (made >= 0)).all(axis=1))
