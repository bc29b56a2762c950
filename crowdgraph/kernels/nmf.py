r"""Non-negative factors of a symmetric matrix with shrinkage priors, as in Psorakis et al. (2011).

Weights are Poisson with means :math:`R = W H`, entries of column `k` of `W` and of row `k` of `H` are half-normal with
precision :math:`\beta_k`, which is Gamma distributed; what is on the diagonal is not observed. Precisions are worked
out (they have their best value in every step), so that a state is the factors alone. Columns that explain nothing
shrink to zero.

Steps take the exact minimum of a bound that touches the negative log posterior, which therefore never rises; the
published one divides where it should take a root, and may.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.fixed_point import Step

__all__ = [
    "CompiledWeights",
    "DenseWeights",
    "Prior",
    "Quotients",
    "SparseWeights",
    "Weights",
    "max_factor_for",
    "paired",
    "published",
    "relevance",
    "symmetric",
]

# Factors below this, and above `Weights.max_factor`, are taken for it, so that products of them neither vanish nor
# overflow.
MIN_FACTOR = 1e-12
# Steps make this of nothing, so that volunteers without weights have shares, too.
NOTHING = 1e-300


class Prior(NamedTuple):
    """The Gamma distribution of the precisions, by its shape and its rate."""

    shape: float
    rate: float


class Quotients(NamedTuple):
    r"""Sums over all pairs, for weights `X` and their means :math:`R`, the diagonal left out.

    Products are :math:`\sum_j (X_{ij} / R_{ij}) H_{kj}`, of shape (N, K); logs is
    :math:`\sum_{ij} X_{ij} \ln R_{ij}`.
    """

    products: Tensor
    logs: float


class Weights(ABC):
    """A symmetric matrix with zeros on the diagonal, as factorisations see it."""

    n: int
    largest: float

    @abstractmethod
    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """The sums for means ``left @ right.T``; both factors are of shape (N, K), and may be the same tensor."""

    @property
    def max_factor(self) -> float:
        """See `max_factor_for`."""
        return max_factor_for(self.largest)


def max_factor_for(largest: float) -> float:
    """No factor is above this: so far above what the weights ask for that only a leap could get there.

    Even the hub of a star has but the root of its strength times the root of its weights.
    """
    return float(1e4 * largest**0.5)


class DenseWeights(Weights):
    """All entries, of shape (N, N)."""

    def __init__(self, values: Tensor) -> None:
        self.n, self.largest = len(values), float(values.max())
        self._values = values

    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """See `Weights`."""
        means = left @ right.T
        return Quotients((self._values / means) @ right, float(torch.xlogy(self._values, means).sum()))


class SparseWeights(Weights):
    """The entries that are not zero, as a sparse CSR tensor."""

    def __init__(self, values: Tensor) -> None:
        self.n, self.largest = len(values), float(values.values().max())
        self._values = values

    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """See `Weights`."""
        values = self._values
        means = torch.sparse.sampled_addmm(values, left, right.T.contiguous(), beta=0.0).values()
        ratios = torch.sparse_csr_tensor(
            values.crow_indices(), values.col_indices(), values.values() / means, values.shape, check_invariants=False
        )
        return Quotients(ratios @ right, float(torch.xlogy(values.values(), means).sum()))


def symmetric(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """One step with `H` the transpose of `W`; the state is `W`, of shape (N, K)."""
    factors = _bounded(state, weights)
    found = weights.quotients(factors, factors)
    sums, squares = factors.sum(0), (factors**2).sum(0)
    precision, penalty = _shrinkage(squares, weights.n / 2, prior)
    # Every pair stands twice in the sums.
    objective = -float((sums**2 - squares).sum()) / 2 + found.logs / 2 - penalty
    following = torch.sqrt(factors * found.products / ((sums - factors) / factors + precision))
    following = following.clamp(NOTHING, weights.max_factor)
    return Step(following, objective, _moved(state, following))


def paired(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """One step with `H` of its own; the state is `W` above the transpose of `H`, of shape (2 N, K)."""
    left, right = _bounded(state, weights).tensor_split(2)
    objective = _paired_objective(weights, left, right, prior, diagonal=False)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_right = _rooted(right * weights.quotients(right, left).products, left.sum(0) - left, precision)
    right = _bounded(new_right, weights)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_left = _rooted(left * weights.quotients(left, right).products, right.sum(0) - right, precision)
    following = torch.cat([new_left, new_right]).clamp(NOTHING, weights.max_factor)
    return Step(following, objective, _moved(_both(state), _both(following)))


def published(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """One step as printed: `H`, then `W`, then the precisions, each divided by its gradient; zeros on the diagonal.

    The objective is the log posterior, which may fall.
    """
    left, right = _bounded(state, weights).tensor_split(2)
    objective = _paired_objective(weights, left, right, prior, diagonal=True)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_right = right / (left.sum(0) + precision * right) * weights.quotients(right, left).products
    right = _bounded(new_right, weights)
    new_left = left / (right.sum(0) + precision * left) * weights.quotients(left, right).products
    following = torch.cat([new_left, new_right]).clamp(NOTHING, weights.max_factor)
    return Step(following, objective, _moved(_both(state), _both(following)))


def relevance(squares: Tensor, half_count: float, prior: Prior) -> Tensor:
    """The variance that the best precision leaves to each column, of shape (K,), by the sums of squares in them."""
    return 1 / _shrinkage(squares, half_count, prior)[0]


def _bounded(factors: Tensor, weights: Weights) -> Tensor:
    return factors.clamp(MIN_FACTOR, weights.max_factor)


def _both(state: Tensor) -> Tensor:
    """How much volunteers take part as the one and as the other end of pairs."""
    left, right = state.tensor_split(2)
    return left + right


def _paired_objective(weights: Weights, left: Tensor, right: Tensor, prior: Prior, *, diagonal: bool) -> float:
    means = left.sum(0) * right.sum(0) - (0 if diagonal else (left * right).sum(0))
    _, penalty = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    return -float(means.sum()) + weights.quotients(left, right).logs - penalty


def _shrinkage(squares: Tensor, half_count: float, prior: Prior) -> tuple[Tensor, float]:
    """The best precision of each column, and what the prior takes from the log posterior with it.

    There are twice `half_count` entries in a column.
    """
    above = half_count + prior.shape - 1
    below = squares / 2 + prior.rate
    return above / below, float(above * below.log().sum())


def _rooted(numerator: Tensor, sums: Tensor, precision: Tensor) -> Tensor:
    """Where the bound is least: the positive root of precision x^2 + sums x = numerator."""
    return 2 * numerator / (sums + torch.sqrt(sums**2 + 4 * precision * numerator))


def _moved(before: Tensor, after: Tensor) -> float:
    """How much participations changed: half the sum of the changes of a row, on average."""
    change = before / before.sum(1, keepdim=True) - after / after.sum(1, keepdim=True)
    return float(change.abs().sum(1).mean() / 2)


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
        self.max_factor = max_factor_for(largest)
        if precision is None:
            precision = np.float32 if SINGLE[0] < largest < SINGLE[1] else np.float64
        self._starts, self._values = starts, values.astype(precision, copy=False)
        self._columns = np.zeros(0, np.int32) if columns is None else columns
        self._longest = int(np.diff(starts).max())
        _compile_nmf(self._values.dtype)
        cuts = chunk_bounds(len(values), at_most=max(1, len(values) // LEAST_WEIGHTS))
        self._cuts = np.searchsorted(starts, cuts)
        self._cuts[-1] = self.n

    def symmetric(self, state: Tensor, prior: Prior) -> Step:
        """As `crowdgraph.kernels.nmf.symmetric`."""
        held = state.numpy()
        factors = np.clip(held, MIN_FACTOR, self.max_factor)
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
            _follow(*stretch, held, factors, following, sums, precision, NOTHING, self.max_factor, moved)

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
    max_factor: float,
    moved: Any,
) -> None:
    """Put the next factors in the place of the products, and how much the shares of each row changed into `moved`."""
    k = factors.shape[1]
    for i in range(first, last):
        before = after = 0.0
        for c in range(k):
            old = factors[i, c]
            new = math.sqrt(old * products[i, c] / ((sums[c] - old) / old + precision[c]))
            new = min(max(new, lowest), max_factor)
            products[i, c] = new
            before += state[i, c]
            after += new
        change = 0.0
        for c in range(k):
            change += abs(state[i, c] / before - products[i, c] / after)
        moved[i] = change / 2


@cache
def _compile_nmf(precision: np.dtype[Any]) -> None:
    """Compile for the types that are passed, before threads do."""
    one, double = np.ones(1), np.ones((1, 1))
    with compile_notice("the detector"):
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
