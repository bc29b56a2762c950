"""Hard communities of high modularity by local moving (Blondel et al. 2008), in compiled code, to start a search from.

Volunteers move, one by one, to the community of their neighbours where modularity rises most; communities then move as
volunteers did, until none does; at last volunteers move once more. A queue holds those whose neighbours have moved, as
in Leiden's algorithm (Traag et al. 2019), so that few are looked at in vain. One thread does it all.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from crowdgraph.kernels._runtime import compile_notice
from crowdgraph.kernels.nmf_search import BACKGROUND_SHARE

__all__ = ["community_start", "local_moving"]

# Communities are smaller than those of the highest modularity, since a search merges them but does not split any.
RESOLUTION = 2.0
# Nobody is looked at more often than this on average, so that rounding cannot keep volunteers moving to and fro.
MAX_VISITS = 30
# A move must gain more than this share of the volunteer's strength.
MIN_GAIN = 1e-9


def local_moving(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    *,
    resolution: float = 1.0,
) -> NDArray[np.int64]:
    """Return the community of each volunteer, (N,), from symmetric weights without a diagonal, row by row.

    Parameters
    ----------
    starts, columns, values
        Where the weights of each row start, (N + 1,), the other end of each weight, and the weights.
    order
        The volunteers in the order in which they first move.
    resolution
        How often the weight that chance explains is subtracted; more gives smaller communities.
    """
    _compile()
    rows = np.repeat(np.arange(len(order)), np.diff(starts))
    level = starts, columns, values, np.bincount(rows, weights=values, minlength=len(order))
    volunteers, queue, label = level, order, np.arange(len(order))
    while True:
        moved = np.arange(len(queue))
        _move(*level, queue, resolution, moved)
        moved = _renumbered(moved)
        label, n_left = moved[label], int(moved.max()) + 1
        if n_left == len(moved):
            break
        level, queue = _aggregate(*level, moved, n_left), np.arange(n_left)
    _move(*volunteers, order, resolution, label)
    return _renumbered(label)


def _renumbered(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return labels 0, 1, ... without gaps, in the same order."""
    return np.asarray(np.unique(label, return_inverse=True)[1])


@njit(nogil=True, cache=True)
def _move(starts: Any, columns: Any, values: Any, strength: Any, order: Any, resolution: float, label: Any) -> None:
    """Move volunteers, or communities as if they were some, until none gains by joining a neighbour."""
    n = len(label)
    size = np.zeros(n)
    for i in range(n):
        size[label[i]] += strength[i]
    scale = resolution / max(strength.sum(), 1e-300)
    to, near = np.zeros(n), np.empty(n, np.int64)
    queue, queued = order.copy(), np.ones(n, np.bool_)
    head, waiting, visits, n_moves = 0, n, 0, 0
    while visits < MAX_VISITS * n:
        if waiting == 0:
            # Communities have other sizes now, also for those whose neighbours have not moved: all are asked again.
            if n_moves == 0:
                break
            queue[:], queued[:] = order, True
            head, waiting, n_moves = 0, n, 0
        i = queue[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        visits += 1
        queued[i] = False
        own = label[i]
        n_near = 0
        for index in range(starts[i], starts[i + 1]):
            c = label[columns[index]]
            if to[c] == 0.0:
                near[n_near] = c
                n_near += 1
            to[c] += values[index]
        size[own] -= strength[i]
        factor = scale * strength[i]
        best, gain = own, to[own] - factor * size[own] + MIN_GAIN * strength[i]
        for position in range(n_near):
            c = near[position]
            other = to[c] - factor * size[c]
            if other > gain:
                best, gain = c, other
            to[c] = 0.0
        size[best] += strength[i]
        if best != own:
            label[i] = best
            n_moves += 1
            for index in range(starts[i], starts[i + 1]):
                j = columns[index]
                if not queued[j] and label[j] != best:
                    queued[j] = True
                    tail = head + waiting
                    queue[tail if tail < n else tail - n] = j
                    waiting += 1


@njit(nogil=True, cache=True)
def _aggregate(starts: Any, columns: Any, values: Any, strength: Any, label: Any, n: int) -> Any:
    """Return the weights and strengths of communities, as those of volunteers, without the weights inside them."""
    ends = np.zeros(n + 1, np.int64)
    for c in label:
        ends[c + 1] += 1
    ends = np.cumsum(ends)
    free, members = ends[:-1].copy(), np.empty(len(label), np.int64)
    sums = np.zeros(n)
    for i in range(len(label)):
        members[free[label[i]]] = i
        free[label[i]] += 1
        sums[label[i]] += strength[i]
    new_starts = np.zeros(n + 1, np.int64)
    new_columns, new_values = np.empty(len(columns), np.int32), np.empty(len(columns))
    to, near, filled = np.zeros(n), np.empty(n, np.int32), 0
    for c in range(n):
        n_near = 0
        for position in range(ends[c], ends[c + 1]):
            i = members[position]
            for index in range(starts[i], starts[i + 1]):
                other = label[columns[index]]
                if other != c:
                    if to[other] == 0.0:
                        near[n_near] = other
                        n_near += 1
                    to[other] += values[index]
        for position in range(n_near):
            new_columns[filled] = near[position]
            new_values[filled] = to[near[position]]
            to[near[position]] = 0.0
            filled += 1
        new_starts[c + 1] = filled
    return new_starts, new_columns[:filled].copy(), new_values[:filled].copy(), sums


def community_start(weights: Any, k: int, generator: torch.Generator) -> torch.Tensor:
    """Return factors, (N, K), that begin with at most `k` hard communities of a SciPy CSR array of symmetric weights.

    They are the factors that would explain the weights if each link within a community were its own, and each link
    between two were half of either, with `BACKGROUND_SHARE` added so that all are positive.

    Parameters
    ----------
    weights
        The weights, not all zero.
    k
        The maximum number of communities; if there are more, the weakest join others, see `_joined`.
    generator
        The source of the order in which volunteers move.
    """
    links = weights.indptr.astype(np.int64), weights.indices.astype(np.int32, copy=False), weights.data
    order = torch.randperm(weights.shape[0], generator=generator).numpy()
    label = local_moving(*links, order, resolution=RESOLUTION)
    strength = np.asarray(weights.sum(axis=1)).ravel()
    label = _joined(*links, strength, label, k)
    counts = np.zeros((len(label), int(label.max()) + 1))
    _share_links(*links, label, counts)
    factors = counts / np.sqrt(counts.sum(axis=0))
    background = BACKGROUND_SHARE * factors.sum(axis=1).mean() / factors.shape[1]
    return torch.from_numpy(factors + background)


def _joined(starts: Any, columns: Any, values: Any, strength: Any, label: Any, k: int) -> NDArray[np.int64]:
    """Return labels of at most `k` communities: the strongest, which the others join one by one.

    The next to join is one that has links to these, where modularity rises most or falls least; of those that have no
    links the strongest joins the lightest. Those without weights join the strongest community.
    """
    n = int(label.max()) + 1
    starts, columns, values, strength = _aggregate(starts, columns, values, strength, label, n)
    order = np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]
    group, sizes, share = np.zeros(n, np.int64), strength[order[:k]], strength / strength.sum()
    group[order[:k]] = np.arange(len(sizes))
    links, waiting = np.zeros((n, len(sizes))), np.zeros(n, np.bool_)
    waiting[order[k:]] = True

    def join(community: int, best: int) -> None:
        group[community] = best
        row = slice(starts[community], starts[community + 1])
        links[columns[row], best] += values[row]

    for rank, community in enumerate(order[:k]):
        join(community, rank)
    for _ in order[k:]:
        linked = np.flatnonzero(waiting & links.any(axis=1))
        if len(linked):
            gains = links[linked] - np.outer(share[linked], sizes)
            row, best = np.unravel_index(gains.argmax(), gains.shape)
            community = linked[row]
        else:
            community, best = order[k:][waiting[order[k:]]][0], sizes.argmin()
        waiting[community] = False
        sizes[best] += strength[community]
        join(community, int(best))
    return np.asarray(group[label])


@njit(nogil=True, cache=True)
def _share_links(starts: Any, columns: Any, values: Any, label: Any, shares: Any) -> None:
    """Fill in the links that each community explains: half of those between two."""
    for i in range(len(label)):
        for index in range(starts[i], starts[i + 1]):
            half = values[index] / 2
            shares[i, label[i]] += half
            shares[i, label[columns[index]]] += half


@cache
def _compile() -> None:
    starts, columns, values = np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2)
    with compile_notice("the detector"):
        label = np.arange(2)
        _move(starts, columns, values, values, np.arange(2), 1.0, label)
        _aggregate(starts, columns, values, values, np.arange(2), 2)
        _share_links(starts, columns, values, label, np.zeros((2, 2)))
