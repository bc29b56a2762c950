r"""Non-negative factors of a symmetric matrix with shrinkage priors, as in Psorakis et al. (2011).

Weights are Poisson with means :math:`R = W H`, entries of column `k` of `W` and of row `k` of `H` are half-normal with
precision :math:`\beta_k`, which is Gamma distributed; the diagonal is not observed. The precisions take their optimal
value in every step, so that a state is the factors alone. Columns that explain nothing shrink to zero.

A step takes the exact minimum of a bound that touches the negative log posterior, which therefore never rises; the
published step divides where it should take a root, and may raise it (erratum 5). A symmetric step goes through the
volunteers block by block, and each block sees what became of those before: no bound has to separate volunteers of
different blocks, so that steps are longer than those of all volunteers at once, and end at the same points.

The steps on tensors run on any device; their objective is that of `crowdgraph.tensors.nmf_objective`.

`CompiledWeights` takes the steps of symmetric factors in one compiled pass over all weights, in parallel within blocks.
Each volunteer's row is computed from the rows of its neighbours, and from nothing that is written meanwhile: the same
numbers whatever the number of threads. Nothing is held for pairs. Rows may be multiplied and added up in single
precision, which is far finer than the change at which a search has converged and takes half the time; everything
computed from them is in double precision.
"""

from __future__ import annotations

import math
import warnings
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.fixed_point import Step
from crowdgraph.tensors.devices import limits_of
from crowdgraph.tensors.nmf import (
    DenseWeights,
    IndexedWeights,
    Prior,
    SparseWeights,
    Weights,
    block_rows,
    column_sums,
    paired_objective,
    shrinkage,
    symmetric_objective,
)

__all__ = [
    "CompiledWeights",
    "Prior",
    "fits_single_precision",
    "paired_step",
    "published_step",
    "relevance",
    "symmetric_step",
    "tensor_weights",
]

# Factors are clipped to [MIN_FACTOR, `max_factor_for`], so that their products neither vanish nor overflow.
MIN_FACTOR = 1e-12
# The smallest factor that a step returns (in single precision its smallest number), so that volunteers without weights
# have shares, too.
TINY = 1e-300
# Fewer weights than this are not worth a second thread.
MIN_WEIGHTS_PER_THREAD = 40_000
# For largest weights in this range, products of the smallest and of the largest factors fit into single precision.
SINGLE_PRECISION_RANGE = (1e-10, 1e10)
# Rows are padded to a multiple of this, so that processors take several entries at once.
VECTOR_WIDTH = 8


def fits_single_precision(largest: float) -> bool:
    """Return whether factors of weights, of which this is the largest, can be multiplied in single precision."""
    return SINGLE_PRECISION_RANGE[0] < largest < SINGLE_PRECISION_RANGE[1]


def max_factor_for(largest: float) -> float:
    """Return a limit for factors, so far above what the weights ask for that only extrapolation could reach it.

    Even the hub of a star has only the root of its strength times the root of its weights.
    """
    return float(1e4 * largest**0.5)


def tensor_weights(weights: Any, *, device: torch.device, dtype: torch.dtype) -> Weights:
    """Return an array or a SciPy CSR array as tensors."""
    if isinstance(weights, np.ndarray):
        return DenseWeights(torch.tensor(weights, device=device, dtype=dtype))
    starts, columns = (torch.tensor(part, device=device) for part in (weights.indptr, weights.indices))
    values = torch.tensor(weights.data, device=device, dtype=dtype)
    if not limits_of(device).sparse:
        n = len(starts) - 1
        row = torch.repeat_interleave(torch.arange(n, device=device), starts.diff())
        return IndexedWeights(row, columns, values, n)
    with warnings.catch_warnings():
        # torch warns once that sparse tensors may change; our tests cover what is used of them.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        matrix = torch.sparse_csr_tensor(starts, columns, values, size=weights.shape, check_invariants=False)
    return SparseWeights(matrix)


def symmetric_step(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """Take one step with `H` the transpose of `W`, block by block; the state is `W`, of shape (N, K)."""
    factors, blocks = _clip(state, weights), weights.blocks
    sums = torch.stack([column_sums(factors[block.rows]) for block in blocks])
    squares = torch.stack([column_sums(factors[block.rows] ** 2) for block in blocks])
    total_sums, total_squares = sums.sum(0), squares.sum(0)
    logs, following = torch.zeros_like(total_sums[0]), torch.empty_like(state)
    for index, block in enumerate(blocks):
        old = factors[block.rows]
        means = block.weights.means(old, factors)
        logs = logs + block.logs(means)
        precision = shrinkage(squares.sum(0), weights.n / 2, prior)[0].to(old.dtype)
        outside = (sums[:index].sum(0) + sums[index + 1 :].sum(0)).to(old.dtype)
        inside = (sums[index].to(old.dtype) - old).clamp(min=0)
        # The minimum of the bound, the positive root of (beta + I / w) x^2 + O x = n (erratum 5), in units of w.
        products = block.weights.products(means, factors)
        root = torch.sqrt(outside**2 + 4 * (inside + precision * old) * products)
        new = _keep_positive(2 * old * products / (outside + root).clamp(min=torch.finfo(old.dtype).tiny), weights)
        following[block.rows] = new
        factors[block.rows] = _clip(new, weights)
        sums[index], squares[index] = column_sums(factors[block.rows]), column_sums(factors[block.rows] ** 2)
    objective = symmetric_objective(logs, total_sums, total_squares, weights.n, prior)
    return Step(following, objective, _participation_change(state, following))


def paired_step(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """Take one step with separate `W` and `H`; the state is `W` above the transpose of `H`, of shape (2 N, K)."""
    left, right = _clip(state, weights).tensor_split(2)
    means = weights.means(right, left)
    objective = paired_objective(weights.logs(means), left, right, prior, diagonal=False)
    precision = _paired_precision(left, right, prior)
    new_right = _positive_root(right * weights.products(means, left), _sums_of_others(left), precision)
    right = _clip(new_right, weights)
    precision = _paired_precision(left, right, prior)
    products = weights.products(weights.means(left, right), right)
    new_left = _positive_root(left * products, _sums_of_others(right), precision)
    following = _keep_positive(torch.cat([new_left, new_right]), weights)
    return Step(following, objective, _participation_change(_sum_of_ends(state), _sum_of_ends(following)))


def published_step(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """Take one step as printed in Psorakis et al. (2011): `H`, then `W`, then the precisions (erratum 5).

    The diagonal counts as zeros. The objective is the log posterior, which may fall.
    """
    left, right = _clip(state, weights).tensor_split(2)
    means = weights.means(right, left)
    objective = paired_objective(weights.logs(means), left, right, prior, diagonal=True)
    precision = _paired_precision(left, right, prior)
    new_right = right / (_sums(left) + precision * right) * weights.products(means, left)
    right = _clip(new_right, weights)
    products = weights.products(weights.means(left, right), right)
    new_left = left / (_sums(right) + precision * left) * products
    following = _keep_positive(torch.cat([new_left, new_right]), weights)
    return Step(following, objective, _participation_change(_sum_of_ends(state), _sum_of_ends(following)))


def relevance(squares: Tensor, half_count: float, prior: Prior) -> Tensor:
    """Return the variance that the optimal precision leaves to each column, of shape (K,), from its sum of squares."""
    return 1 / shrinkage(squares, half_count, prior)[0]


def _clip(factors: Tensor, weights: Weights) -> Tensor:
    return factors.clamp(MIN_FACTOR, max_factor_for(weights.largest))


def _keep_positive(factors: Tensor, weights: Weights) -> Tensor:
    return factors.clamp(max(TINY, torch.finfo(factors.dtype).tiny), max_factor_for(weights.largest))


def _sums(factors: Tensor) -> Tensor:
    return column_sums(factors).to(factors.dtype)


def _sums_of_others(factors: Tensor) -> Tensor:
    """Return for each volunteer the column sums without their own entries, of shape (N, K)."""
    return _sums(factors) - factors


def _sum_of_ends(state: Tensor) -> Tensor:
    """Return how much volunteers participate as the first and as the second end of pairs, together."""
    left, right = state.tensor_split(2)
    return left + right


def _paired_precision(left: Tensor, right: Tensor, prior: Prior) -> Tensor:
    return shrinkage(column_sums(left**2) + column_sums(right**2), len(left), prior)[0].to(left.dtype)


def _positive_root(numerator: Tensor, sums: Tensor, precision: Tensor) -> Tensor:
    """Return the minimum of the bound: the positive root of precision x^2 + sums x = numerator (erratum 5)."""
    return 2 * numerator / (sums + torch.sqrt(sums**2 + 4 * precision * numerator))


def _participation_change(previous: Tensor, following: Tensor) -> Tensor:
    """Return the average over volunteers of the total variation distance between old and new participations."""
    change = previous / previous.sum(1, keepdim=True) - following / following.sum(1, keepdim=True)
    return change.abs().sum(1).mean() / 2


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
        The precision of rows; single precision is for weights that `fits_single_precision` allows.
    """

    def __init__(
        self,
        starts: NDArray[np.int64],
        columns: NDArray[np.int32] | None,
        values: NDArray[np.float64],
        *,
        precision: DTypeLike,
    ) -> None:
        self.n, self.max_factor = len(starts) - 1, max_factor_for(float(values.max()))
        dtype = np.dtype(precision)
        _compile_nmf(dtype)
        strength = values.reshape(self.n, -1).sum(1) if columns is None else _row_sums(starts, values)
        blocks = block_rows(strength)
        self._order = np.concatenate(blocks)
        self._bounds = np.append(0, np.cumsum([len(rows) for rows in blocks]))
        if columns is None:
            square = values.reshape(self.n, self.n)
            self._starts, self._columns = starts, np.zeros(0, np.int32)
            self._values = square[np.ix_(self._order, self._order)].ravel().astype(dtype, copy=False)
            self._later = starts[:-1] + np.arange(self.n)
        else:
            lengths = np.diff(starts)[self._order]
            self._starts = np.append(0, np.cumsum(lengths))
            self._columns, self._values = np.empty_like(columns), np.empty(len(values), dtype)
            self._later = np.empty(self.n, np.int64)
            ordered = self._starts, self._columns, self._values, self._later
            _reorder(starts, columns, values, self._order, *ordered)
        self._longest = int(np.diff(self._starts).max())
        self._chunks = [self._chunks_of(first, last) for first, last in pairwise(self._bounds)]

    @classmethod
    def of(cls, weights: Any, *, precision: DTypeLike) -> CompiledWeights:
        """Return the weights of an array or a SciPy CSR array."""
        if isinstance(weights, np.ndarray):
            return cls(np.arange(len(weights) + 1) * len(weights), None, weights.ravel(), precision=precision)
        columns = weights.indices.astype(np.int32, copy=False)
        return cls(weights.indptr.astype(np.int64), columns, weights.data, precision=precision)

    def symmetric_step(self, state: Tensor, prior: Prior) -> Step:
        """Take one step; see `symmetric_step`."""
        previous, k = state.numpy(), state.shape[1]
        rows = np.zeros((self.n, -(-k // VECTOR_WIDTH) * VECTOR_WIDTH), self._values.dtype)
        sums, squares = np.empty((2, len(self._chunks), k))
        limits = MIN_FACTOR, self.max_factor
        loaded = *limits, rows, sums, squares
        for block in range(len(self._chunks)):
            _load_block(block, self._bounds, self._order, previous, *loaded)
        total_sums, total_squares = sums.sum(0), squares.sum(0)
        following, logs, changes = np.empty_like(previous), np.empty(self.n), np.empty(self.n)
        numerator = self.n / 2 + float(prior.shape) - 1
        weights = self._starts, self._columns, self._values, self._later
        shared = *weights, self._order, previous, *loaded, numerator, float(prior.rate), following, logs, changes
        if max(map(len, self._chunks)) == 2:
            _step_blocks(self._bounds, self._longest, *shared)
        else:
            for block, chunks in enumerate(self._chunks):
                in_parallel(partial(self._step_chunk, block, chunks, shared), len(chunks) - 1)
                _load_block(block, self._bounds, self._order, following, *loaded)
        penalty = numerator * float(np.log(total_squares / 2 + prior.rate).sum())
        objective = float(logs.sum()) - float((total_sums**2 - total_squares).sum()) / 2 - penalty
        return Step(torch.from_numpy(following), objective, float(changes.mean()))

    def _step_chunk(self, block: int, chunks: NDArray[np.int64], shared: tuple[Any, ...], chunk: int) -> None:
        _step_rows(block, chunks[chunk], chunks[chunk + 1], self._longest, *shared)

    def _chunks_of(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the bounds that cut the rows of a block into chunks of about as many weights, one for each thread."""
        start, n = self._starts[first], int(self._starts[last] - self._starts[first])
        bounds = start + chunk_bounds(n, at_most=max(1, n // MIN_WEIGHTS_PER_THREAD))
        rows = np.searchsorted(self._starts, bounds).clip(first, last)
        rows[0], rows[-1] = first, last
        return np.asarray(rows)


def _row_sums(starts: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.diff(np.append(0.0, np.cumsum(values))[starts])


@njit(nogil=True, cache=True)
def _reorder(
    starts: Any,
    columns: Any,
    values: Any,
    order: Any,
    new_starts: Any,
    new_columns: Any,
    new_values: Any,
    later: Any,
) -> None:
    """Sort rows and columns of a symmetric matrix, and fill in where entries at or after the diagonal begin."""
    position = np.empty(len(order), np.int64)
    for r in range(len(order)):
        position[order[r]] = r
    free = new_starts[:-1].copy()
    # Row by row, so that the entries of each column come in order; rows are columns.
    for r in range(len(order)):
        later[r] = free[r]
        for index in range(starts[order[r]], starts[order[r] + 1]):
            column = position[columns[index]]
            new_columns[free[column]] = r
            new_values[free[column]] = values[index]
            free[column] += 1


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _load_block(
    block: int,
    bounds: Any,
    order: Any,
    state: Any,
    lowest: float,
    highest: float,
    rows: Any,
    sums: Any,
    squares: Any,
) -> None:
    """Copy the clipped factors of a block to its rows, and fill in its column sums and sums of squares."""
    sums[block] = 0
    squares[block] = 0
    for r in range(bounds[block], bounds[block + 1]):
        i = order[r]
        for c in range(state.shape[1]):
            factor = min(max(state[i, c], lowest), highest)
            rows[r, c] = factor
            sums[block, c] += factor
            squares[block, c] += factor * factor


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _step_rows(
    block: int,
    first: int,
    last: int,
    longest: int,
    starts: Any,
    columns: Any,
    values: Any,
    later: Any,
    order: Any,
    state: Any,
    lowest: float,
    highest: float,
    rows: Any,
    sums: Any,
    squares: Any,
    numerator: float,
    rate: float,
    following: Any,
    logs: Any,
    changes: Any,
) -> None:
    """Fill in the next factors of rows of one block, what their pairs add to the objective, and their changes.

    A pair counts in the row that comes first: both rows are as they were before the step.
    """
    k = state.shape[1]
    inside, outside, denominator = sums[block], np.zeros(k), np.full(k, rate)
    for other in range(len(sums)):
        for c in range(k):
            denominator[c] += squares[other, c] / 2
            if other != block:
                outside[c] += sums[other, c]
    row, own, means = np.empty_like(rows[0]), np.empty_like(rows[0]), np.empty(longest, rows.dtype)
    for r in range(first, last):
        row[:] = rows[r]
        own[:] = 0
        start, n = starts[r], starts[r + 1] - starts[r]
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
        for index in range(later[r] - start, n):
            total += values[start + index] * math.log(means[index])
        logs[r] = total
        i = order[r]
        old_sum = new_sum = 0.0
        for c in range(k):
            old = min(max(state[i, c], lowest), highest)
            # The minimum of the bound, as in `symmetric_step` (erratum 5).
            curvature = max(inside[c] - old, 0.0) + numerator / denominator[c] * old
            divisor = outside[c] + math.sqrt(outside[c] * outside[c] + 4 * curvature * own[c])
            new = 2 * old * own[c] / max(divisor, TINY)
            new = min(max(new, TINY), highest)
            following[i, c] = new
            old_sum += state[i, c]
            new_sum += new
        change = 0.0
        for c in range(k):
            change += abs(state[i, c] / old_sum - following[i, c] / new_sum)
        changes[i] = change / 2


@njit(nogil=True, error_model="numpy", cache=True)
def _step_blocks(
    bounds: Any,
    longest: int,
    starts: Any,
    columns: Any,
    values: Any,
    later: Any,
    order: Any,
    state: Any,
    lowest: float,
    highest: float,
    rows: Any,
    sums: Any,
    squares: Any,
    numerator: float,
    rate: float,
    following: Any,
    logs: Any,
    changes: Any,
) -> None:
    """Take the steps of all blocks, one after the other, in one thread."""
    weights = (starts, columns, values, later)
    loaded = (lowest, highest, rows, sums, squares)
    results = (following, logs, changes)
    for block in range(len(bounds) - 1):
        first, last = bounds[block], bounds[block + 1]
        _step_rows(block, first, last, longest, *weights, order, state, *loaded, numerator, rate, *results)
        _load_block(block, bounds, order, following, *loaded)


@cache
def _compile_nmf(precision: np.dtype[Any]) -> None:
    """Compile for the types that are passed, before threads do."""
    one, double, index = np.ones(1), np.ones((1, 1)), np.zeros(1, np.int64)
    starts, columns, values = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, precision)
    loaded = 1.0, 1.0, double.astype(precision), double, double
    shared = starts, columns, values, index, index, double, *loaded, 1.0, 1.0, double, one, one
    with compile_notice("the detector"):
        _reorder(starts, columns, one, index, starts, columns, values, index.copy())
        _load_block(0, starts, index, double, *loaded)
        _step_rows(0, 0, 1, 1, *shared)
        _step_blocks(starts, 1, *shared)
