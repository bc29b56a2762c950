"""Rewire links at random so that everybody keeps the number of links."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crowdgraph.core._arrays import Array

# How often each link is swapped on average, and at least how many swaps there are.
SWAPS_PER_LINK = 3
MIN_SWAPS = 50
# At most so many rounds of swaps, where few swaps are possible.
MAX_ROUNDS = 100


def rewire_bipartite(left: Array, right: Array, n_right: int, rng: np.random.Generator) -> Array:
    """Rewire the links between left and right nodes at random, and return their new right ends.

    All nodes keep their number of links, and each link keeps its left end. Two links at a time exchange their right
    ends, unless that repeats an existing link; where everything is linked, nothing changes.

    Parameters
    ----------
    left, right
        The ends of each link, of shape (E,), without repeated links.
    n_right
        The number of right nodes.
    rng
        The random generator.
    """
    return _swap_ends(left, right, rng, key=lambda one, other: one * n_right + other)[1]


def rewire_pairs(left: Array, right: Array, n_nodes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rewire the links between nodes of one kind, as `rewire_bipartite` does, and return both ends of each link."""
    turned = rng.random(len(left)) < 0.5
    left, right = np.where(turned, right, left), np.where(turned, left, right)

    def key(one: Array, other: Array) -> Array:
        low, high = np.minimum(one, other), np.maximum(one, other)
        # All self-loops get one key, which counts as an existing link.
        return np.where(one == other, -1, low * n_nodes + high)

    return _swap_ends(left, right, rng, key=key, mirrored=True)


def _swap_ends(
    left: Array,
    right: Array,
    rng: np.random.Generator,
    *,
    key: Callable[[Array, Array], Array],
    mirrored: bool = False,
) -> tuple[Array, Array]:
    """Swap right ends at random and return both ends; `mirrored` links are turned round between rounds."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    n_rounds, done = MAX_ROUNDS, 0
    while done < n_rounds:
        order = rng.permutation(len(left))
        # Some links sit out each round, so that not all are swapped back and forth.
        half = rng.binomial(len(left) // 2, 0.8)
        one, other = order[:half], order[half : 2 * half]
        new = np.column_stack([key(left[one], right[other]), key(left[other], right[one])])
        possible = _possible_swaps(new, key(left, right))
        one, other = one[possible], other[possible]
        right[one], right[other] = right[other], right[one]
        if mirrored:
            turned = rng.random(len(left)) < 0.5
            left, right = np.where(turned, right, left), np.where(turned, left, right)
        done += 1
        if done == 1:
            # The first round shows how many rounds are needed. To stop at a number of swaps would favour networks that
            # an even (or odd) number of swaps makes.
            n_rounds = min(MAX_ROUNDS, 1 + max(SWAPS_PER_LINK * len(left), MIN_SWAPS) // max(2 * len(one), 1))
    return left, right


def _possible_swaps(new: Array, existing: Array) -> Array:
    """Return the rows of two new links each that are possible: no self-loops, no existing links, no repetitions."""
    _, index, counts = np.unique(np.concatenate([new.ravel(), existing]), return_inverse=True, return_counts=True)
    is_unique = counts[index[: new.size]].reshape(new.shape) == 1
    return np.flatnonzero((is_unique & (new >= 0)).all(axis=1))
