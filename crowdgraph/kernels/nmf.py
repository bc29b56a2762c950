r"""Non-negative factors of a symmetric matrix with shrinkage priors, as in Psorakis et al. (2011).

Weights are Poisson with means :math:`R = W H`, entries of column `k` of `W` and of row `k` of `H` are half-normal with
precision :math:`\beta_k`, which is Gamma distributed; the diagonal is not observed. The precisions take their optimal
value in every step, so that a state is the factors alone. Columns that explain nothing shrink to zero.

A step takes the exact minimum of a bound that touches the negative log posterior, which therefore never rises; the
published step divides where it should take a root, and may raise it (erratum 5).

`CompiledWeights` takes the steps of symmetric factors in one compiled pass over all weights, in parallel. Each
volunteer's row is computed from the rows of its neighbours, and from nothing that is written meanwhile: the same
numbers whatever the number of threads. Nothing is held for pairs. Rows are multiplied and added up in single precision,
which is far finer than the change at which a search has converged and takes half the time; everything computed from
them is in double precision.
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
    "paired_step",
    "published_step",
    "relevance",
    "symmetric_step",
]

# Factors are clipped to [MIN_FACTOR, `Weights.max_factor`], so that their products neither vanish nor overflow.
MIN_FACTOR = 1e-12
# The smallest factor that a step returns, so that volunteers without weights have shares, too.
TINY = 1e-300
# Fewer weights than this are not worth a second thread.
MIN_WEIGHTS_PER_THREAD = 40_000
# For largest weights in this range, products of the smallest and of the largest factors fit into single precision.
SINGLE_PRECISION_RANGE = (1e-10, 1e10)
# Rows are padded to a multiple of this, so that processors take several entries at once.
VECTOR_WIDTH = 8


class Prior(NamedTuple):
    """The Gamma distribution of the precisions, by its shape and its rate."""

    shape: float
    rate: float


class Quotients(NamedTuple):
    r"""Sums over all pairs, for weights `X` and their means :math:`R`, without the diagonal.

    `products` is :math:`\sum_j (X_{ij} / R_{ij}) H_{kj}`, of shape (N, K); `logs` is
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
        """Return the sums for means ``left @ right.T``; both factors have shape (N, K) and may be the same tensor."""

    @property
    def max_factor(self) -> float:
        """See `max_factor_for`."""
        return max_factor_for(self.largest)


def max_factor_for(largest: float) -> float:
    """Return a limit for factors, so far above what the weights ask for that only extrapolation could reach it.

    Even the hub of a star has only the root of its strength times the root of its weights.
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


def symmetric_step(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """Take one step with `H` the transpose of `W`; the state is `W`, of shape (N, K)."""
    factors = _clip(state, weights)
    quotients = weights.quotients(factors, factors)
    sums, squares = factors.sum(0), (factors**2).sum(0)
    precision, penalty = _shrinkage(squares, weights.n / 2, prior)
    # Every pair occurs twice in the sums.
    objective = -float((sums**2 - squares).sum()) / 2 + quotients.logs / 2 - penalty
    # w = sqrt(n / (S / w + beta)), the minimum of the bound (erratum 5).
    following = torch.sqrt(factors * quotients.products / ((sums - factors) / factors + precision))
    following = following.clamp(TINY, weights.max_factor)
    return Step(following, objective, _participation_change(state, following))


def paired_step(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """Take one step with separate `W` and `H`; the state is `W` above the transpose of `H`, of shape (2 N, K)."""
    left, right = _clip(state, weights).tensor_split(2)
    objective = _paired_objective(weights, left, right, prior, diagonal=False)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_right = _positive_root(right * weights.quotients(right, left).products, left.sum(0) - left, precision)
    right = _clip(new_right, weights)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_left = _positive_root(left * weights.quotients(left, right).products, right.sum(0) - right, precision)
    following = torch.cat([new_left, new_right]).clamp(TINY, weights.max_factor)
    return Step(following, objective, _participation_change(_sum_of_ends(state), _sum_of_ends(following)))


def published_step(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """Take one step as printed in Psorakis et al. (2011): `H`, then `W`, then the precisions (erratum 5).

    The diagonal counts as zeros. The objective is the log posterior, which may fall.
    """
    left, right = _clip(state, weights).tensor_split(2)
    objective = _paired_objective(weights, left, right, prior, diagonal=True)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_right = right / (left.sum(0) + precision * right) * weights.quotients(right, left).products
    right = _clip(new_right, weights)
    new_left = left / (right.sum(0) + precision * left) * weights.quotients(left, right).products
    following = torch.cat([new_left, new_right]).clamp(TINY, weights.max_factor)
    return Step(following, objective, _participation_change(_sum_of_ends(state), _sum_of_ends(following)))


def relevance(squares: Tensor, half_count: float, prior: Prior) -> Tensor:
    """Return the variance that the optimal precision leaves to each column, of shape (K,), from its sum of squares."""
    return 1 / _shrinkage(squares, half_count, prior)[0]


def _clip(factors: Tensor, weights: Weights) -> Tensor:
    return factors.clamp(MIN_FACTOR, weights.max_factor)


def _sum_of_ends(state: Tensor) -> Tensor:
    """Return how much volunteers participate as the first and as the second end of pairs, together."""
    left, right = state.tensor_split(2)
    return left + right


def _paired_objective(weights: Weights, left: Tensor, right: Tensor, prior: Prior, *, diagonal: bool) -> float:
    means = left.sum(0) * right.sum(0) - (0 if diagonal else (left * right).sum(0))
    _, penalty = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    return -float(means.sum()) + weights.quotients(left, right).logs - penalty


def _shrinkage(squares: Tensor, half_count: float, prior: Prior) -> tuple[Tensor, float]:
    """Return the optimal precision of each column, and what the prior takes from the log posterior with it.

    A column has twice `half_count` entries.
    """
    numerator = half_count + prior.shape - 1
    denominator = squares / 2 + prior.rate
    return numerator / denominator, float(numerator * denominator.log().sum())


def _positive_root(numerator: Tensor, sums: Tensor, precision: Tensor) -> Tensor:
    """Return the minimum of the bound: the positive root of precision x^2 + sums x = numerator (erratum 5)."""
    return 2 * numerator / (sums + torch.sqrt(sums**2 + 4 * precision * numerator))


def _participation_change(previous: Tensor, following: Tensor) -> float:
    """Return the average over volunteers of the total variation distance between old and new participations."""
    change = previous / previous.sum(1, keepdim=True) - following / following.sum(1, keepdim=True)
    return float(change.abs().sum(1).mean() / 2)


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
        The precision of rows; None for single precision if the largest weight allows it.
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
            fits = SINGLE_PRECISION_RANGE[0] < largest < SINGLE_PRECISION_RANGE[1]
            precision = np.float32 if fits else np.float64
        self._starts, self._values = starts, values.astype(precision, copy=False)
        self._columns = np.zeros(0, np.int32) if columns is None else columns
        self._longest = int(np.diff(starts).max())
        _compile_nmf(self._values.dtype)
        bounds = chunk_bounds(len(values), at_most=max(1, len(values) // MIN_WEIGHTS_PER_THREAD))
        self._row_bounds = np.searchsorted(starts, bounds)
        self._row_bounds[-1] = self.n

    def symmetric_step(self, state: Tensor, prior: Prior) -> Step:
        """Take one step; see `symmetric_step`."""
        previous = state.numpy()
        factors = np.clip(previous, MIN_FACTOR, self.max_factor)
        sums, squares = factors.sum(0), (factors**2).sum(0)
        numerator, denominator = self.n / 2 + prior.shape - 1, squares / 2 + prior.rate
        rows = np.zeros((self.n, -(-previous.shape[1] // VECTOR_WIDTH) * VECTOR_WIDTH), self._values.dtype)
        rows[:, : previous.shape[1]] = factors
        following, logs, changes = np.empty_like(previous), np.empty(self.n), np.empty(self.n)
        weights, precision = (self._starts, self._columns, self._values), numerator / denominator

        def step_chunk(chunk: int) -> None:
            bounds = self._row_bounds[chunk], self._row_bounds[chunk + 1]
            means = np.empty(self._longest, rows.dtype)
            _products(*bounds, *weights, rows, means, following, logs)
            _update_rows(*bounds, previous, factors, following, sums, precision, TINY, self.max_factor, changes)

        in_parallel(step_chunk, len(self._row_bounds) - 1)
        penalty = numerator * float(np.log(denominator).sum())
        objective = float(logs.sum()) - float((sums**2 - squares).sum()) / 2 - penalty
        return Step(torch.from_numpy(following), objective, float(changes.mean()))


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _products(
    first: int, last: int, starts: Any, columns: Any, values: Any, rows: Any, means: Any, products: Any, logs: Any
) -> None:
    """Fill in `Quotients` row by row; logs has each pair once, in the row of its first end."""
    k = products.shape[1]
    row, own = np.empty_like(rows[0]), np.empty_like(rows[0])
    for i in range(first, last):
        row[:] = rows[i]
        own[:] = 0
        start, n = starts[i], starts[i + 1] - starts[i]
        # All means first: when rows far away are read, processors need not wait for one before they request the next.
        for index in range(n):
            j = columns[start + index] if len(columns) else index
            mean = rows.dtype.type(0)
            for c in range(len(row)):
                mean += row[c] * rows[j, c]
            means[index] = mean
        for index in range(n):
            j = columns[start + index] if len(columns) else index
            ratio = values[start + index] / means[index]
            for c in range(len(row)):
                own[c] += ratio * rows[j, c]
        total = 0.0
        for index in range(n):
            j = columns[start + index] if len(columns) else index
            if j > i:
                total += values[start + index] * math.log(means[index])
        logs[i] = total
        for c in range(k):
            products[i, c] = own[c]


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _update_rows(
    first: int,
    last: int,
    state: Any,
    factors: Any,
    products: Any,
    sums: Any,
    precision: Any,
    lowest: float,
    highest: float,
    changes: Any,
) -> None:
    """Replace the products by the next factors, and fill in how much the participations of each row changed."""
    k = factors.shape[1]
    for i in range(first, last):
        old_sum = new_sum = 0.0
        for c in range(k):
            old = factors[i, c]
            # The minimum of the bound, as in `symmetric_step` (erratum 5).
            new = math.sqrt(old * products[i, c] / ((sums[c] - old) / old + precision[c]))
            new = min(max(new, lowest), highest)
            products[i, c] = new
            old_sum += state[i, c]
            new_sum += new
        change = 0.0
        for c in range(k):
            change += abs(state[i, c] / old_sum - products[i, c] / new_sum)
        changes[i] = change / 2


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
        _update_rows(0, 1, double, double, double, one, one, 1.0, 1.0, one)
