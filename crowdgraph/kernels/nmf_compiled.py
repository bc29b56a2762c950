"""Steps of symmetric factors in one compiled pass over all weights, in parallel; see `crowdgraph.kernels.nmf`.

Each volunteer's row is worked out from the rows of those that it is linked with, and from nothing that is written
meanwhile: the same numbers whatever the number of threads. Nothing is held for pairs. Rows are multiplied and added up
in single precision, which is far finer than the change at which a search is over and takes half of the time; what
follows from them is in double precision.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from crowdgraph.kernels.iterate import Step
from crowdgraph.kernels.nmf import LEAST, NOTHING, Prior, highest_factor
from crowdgraph.kernels.threads import announced, edges, in_parallel

__all__ = ["CompiledWeights"]

# Fewer weights than this are not worth a second thread.
LEAST_WEIGHTS = 40_000
# Products of the least and of the highest factors are within the numbers of single precision for weights in between.
SINGLE = (1e-10, 1e10)
# Rows are filled up to a multiple of this, so that processors take several entries at once.
LANE = 8


class CompiledWeights:
    """A symmetric matrix with zeros on the diagonal, on CPUs, dense or sparse, row by row.

    Parameters
    ----------
    starts
        Where the weights of each row start, of shape (N + 1,).
    columns
        The other end of each weight; None if rows hold all of them.
    values
        The weights.
    precision
        That of rows; None for single where the largest weight allows.
    """

    def __init__(
        self,
        starts: NDArray[np.int64],
        columns: NDArray[np.int32] | None,
        values: NDArray[np.float64],
        *,
        precision: DTypeLike | None = None,
    ) -> None:
        self.n, largest = len(starts) - 1, float(values.max())
        self.highest = highest_factor(largest)
        if precision is None:
            precision = np.float32 if SINGLE[0] < largest < SINGLE[1] else np.float64
        self._starts, self._values = starts, values.astype(precision, copy=False)
        self._columns = np.zeros(0, np.int32) if columns is None else columns
        self._longest = int(np.diff(starts).max())
        _ready(self._values.dtype)
        cuts = edges(len(values), at_most=max(1, len(values) // LEAST_WEIGHTS))
        self._cuts = np.searchsorted(starts, cuts)
        self._cuts[-1] = self.n

    def symmetric(self, state: Tensor, prior: Prior) -> Step:
        """As `crowdgraph.kernels.nmf.symmetric`."""
        held = state.numpy()
        factors = np.clip(held, LEAST, self.highest)
        sums, squares = factors.sum(0), (factors**2).sum(0)
        above, below = self.n / 2 + prior.shape - 1, squares / 2 + prior.rate
        rows = np.zeros((self.n, -(-held.shape[1] // LANE) * LANE), self._values.dtype)
        rows[:, : held.shape[1]] = factors
        following, logs, moved = np.empty_like(held), np.empty(self.n), np.empty(self.n)
        weights, precision = (self._starts, self._columns, self._values), above / below

        def part(place: int) -> None:
            stretch = self._cuts[place], self._cuts[place + 1]
            means = np.empty(self._longest, rows.dtype)
            _products(*stretch, *weights, rows, means, following, logs)
            _follow(*stretch, held, factors, following, sums, precision, NOTHING, self.highest, moved)

        in_parallel(part, len(self._cuts) - 1)
        objective = float(logs.sum()) - float((sums**2 - squares).sum()) / 2 - above * float(np.log(below).sum())
        return Step(torch.from_numpy(following), objective, float(moved.mean()))


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _products(
    first: int, last: int, starts: Any, columns: Any, values: Any, rows: Any, means: Any, products: Any, logs: Any
) -> None:
    """What weights over means add up to in each row; logs has each pair once, in the row of its first end."""
    k = products.shape[1]
    row, own = np.empty_like(rows[0]), np.empty_like(rows[0])
    for i in range(first, last):
        row[:] = rows[i]
        own[:] = 0
        start, n = starts[i], starts[i + 1] - starts[i]
        # All means first: reading rows far away, processors need not wait for one before they ask for the next.
        for place in range(n):
            j = columns[start + place] if len(columns) else place
            mean = rows.dtype.type(0)
            for c in range(len(row)):
                mean += row[c] * rows[j, c]
            means[place] = mean
        for place in range(n):
            j = columns[start + place] if len(columns) else place
            ratio = values[start + place] / means[place]
            for c in range(len(row)):
                own[c] += ratio * rows[j, c]
        total = 0.0
        for place in range(n):
            j = columns[start + place] if len(columns) else place
            if j > i:
                total += values[start + place] * math.log(means[place])
        logs[i] = total
        for c in range(k):
            products[i, c] = own[c]


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _follow(
    first: int,
    last: int,
    state: Any,
    factors: Any,
    products: Any,
    sums: Any,
    precision: Any,
    lowest: float,
    highest: float,
    moved: Any,
) -> None:
    """Put the next factors in the place of the products, and how much the shares of each row changed into `moved`."""
    k = factors.shape[1]
    for i in range(first, last):
        before = after = 0.0
        for c in range(k):
            old = factors[i, c]
            new = math.sqrt(old * products[i, c] / ((sums[c] - old) / old + precision[c]))
            new = min(max(new, lowest), highest)
            products[i, c] = new
            before += state[i, c]
            after += new
        change = 0.0
        for c in range(k):
            change += abs(state[i, c] / before - products[i, c] / after)
        moved[i] = change / 2


@cache
def _ready(precision: np.dtype[Any]) -> None:
    """Compile for the types that are passed, before threads do."""
    one, double = np.ones(1), np.ones((1, 1))
    with announced("the detector"):
        _products(
            0,
            1,
            np.array([0, 1]),
            np.zeros(1, np.int32),
            one.astype(precision),
            double.astype(precision),
            one.astype(precision),
            double,
            one,
        )
        _follow(0, 1, double, double, double, one, one, 1.0, 1.0, one)
