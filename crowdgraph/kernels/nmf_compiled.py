"""The sums of `crowdgraph.kernels.nmf` for symmetric factors in one compiled pass over pairs, in parallel.

Each pair is visited once and serves both of its ends: the mean, the quotient and what it adds to both products are
worked out while both rows are at hand. Nothing is held for pairs. Every thread has products of its own, which are added
in a fixed order: the same number of threads gives the same bits.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels.iterate import Step
from crowdgraph.kernels.nmf import LEAST, NOTHING, Prior, Quotients, Weights
from crowdgraph.kernels.threads import announced, edges, in_parallel

__all__ = ["CompiledWeights", "compiled_symmetric"]

# Fewer pairs than this are not worth a second thread.
LEAST_PAIRS = 20_000


class CompiledWeights(Weights):
    """Weights on CPUs, dense or sparse: the values of all pairs above the diagonal, row by row.

    Parameters
    ----------
    starts
        Where the pairs of each row start, of shape (N + 1,).
    columns
        The other end of each pair; None if all pairs are there.
    values
        The weight of each pair.
    """

    def __init__(
        self, starts: NDArray[np.int64], columns: NDArray[np.int32] | None, values: NDArray[np.float64]
    ) -> None:
        self.n, self.largest = len(starts) - 1, float(values.max())
        self._starts, self._values = starts, values
        self._columns = np.zeros(0, np.int32) if columns is None else columns
        _ready()
        cuts = edges(len(values), at_most=max(1, len(values) // LEAST_PAIRS))
        self._cuts = np.searchsorted(starts, cuts)

    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """See `Weights`; only for factors that are the same."""
        if left is not right:
            raise ValueError("compiled weights are for symmetric factors")
        products, logs = self.sums(left.numpy())
        return Quotients(torch.from_numpy(products), 2 * logs)

    def sums(self, factors: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """The products, and the sum of logarithms over pairs."""
        products = [np.zeros_like(factors) for _ in self._cuts[1:]]

        def part(place: int) -> float:
            first, last = self._cuts[place], self._cuts[place + 1]
            return float(_pass(first, last, self._starts, self._columns, self._values, factors, products[place]))

        logs = in_parallel(part, len(products))
        for other in products[1:]:
            products[0] += other
        return products[0], math.fsum(logs)


def compiled_symmetric(weights: CompiledWeights, state: Tensor, prior: Prior) -> Step:
    """As `crowdgraph.kernels.nmf.symmetric`."""
    factors = state.clamp(LEAST, weights.highest).numpy()
    products, logs = weights.sums(factors)
    sums, squares = factors.sum(0), (factors**2).sum(0)
    above, below = weights.n / 2 + prior.shape - 1, squares / 2 + prior.rate
    objective = logs - float((sums**2 - squares).sum()) / 2 - above * float(np.log(below).sum())
    moved = float(_follow(state.numpy(), factors, products, sums, above / below, NOTHING, weights.highest))
    return Step(torch.from_numpy(products), objective, moved)


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _follow(state: Any, factors: Any, products: Any, sums: Any, precision: Any, lowest: float, highest: float) -> float:
    """Put the next factors in the place of the products; returns how much participations changed."""
    n, k = factors.shape
    moved = 0.0
    for i in range(n):
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
        moved += change
    return float(moved / (2 * n))


@cache
def _ready() -> None:
    """Compile for the types that are passed, before threads do."""
    factors = np.ones((2, 1))
    with announced("the detector"):
        _pass(0, 2, np.array([0, 1, 1]), np.ones(1, np.int32), np.ones(1), factors, np.zeros_like(factors))
        _follow(factors, factors, np.ones_like(factors), np.ones(1), np.ones(1), 1.0, 1.0)


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _pass(first: int, last: int, starts: Any, columns: Any, values: Any, factors: Any, products: Any) -> float:
    k = factors.shape[1]
    own = np.empty(k)
    logs = 0.0
    for i in range(first, last):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = columns[pair] if len(columns) else i + 1 + pair - starts[i]
            mean = 0.0
            for c in range(k):
                mean += factors[i, c] * factors[j, c]
            value = values[pair]
            logs += value * math.log(mean)
            ratio = value / mean
            for c in range(k):
                own[c] += ratio * factors[j, c]
                products[j, c] += ratio * factors[i, c]
        for c in range(k):
            products[i, c] += own[c]
    return logs
