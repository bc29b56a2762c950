r"""Non-negative factors of a symmetric matrix with shrinkage priors, as in Psorakis et al. (2011).

Weights are Poisson with means :math:`R = W H`, entries of column `k` of `W` and of row `k` of `H` are half-normal with
precision :math:`\beta_k`, which is Gamma distributed; the diagonal is not observed. The precisions take their optimal
value in every step, so that a state is the factors alone. Columns that explain nothing shrink to zero.

A step takes the exact minimum of a bound that touches the negative log posterior, which therefore never rises; the
published step divides where it should take a root, and may raise it (erratum 5).

The steps on tensors run on any device; their objective is that of `crowdgraph.tensors.nmf_objective`.

`CompiledWeights` takes the steps of symmetric factors in one compiled pass over all weights, in parallel. Each
volunteer's row is computed from the rows of its neighbours, and from nothing that is written meanwhile: the same
numbers whatever the number of threads. Nothing is held for pairs. Rows may be multiplied and added up in single
precision, which is far finer than the change at which a search has converged and takes half the time; everything
computed from them is in double precision.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any, NamedTuple

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
    column_sums,
    paired_objective,
    shrinkage,
    symmetric_objective,
)

__all__ = [
    "CompiledWeights",
    "Prior",
    "RowStep",
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
# How many binary digits follow the exponent in a floating-point number, and the bits of the root of 1/2.
SINGLE_DIGITS, DOUBLE_DIGITS = 23, 52
SINGLE_ROOT_HALF = int(np.float32(0.5**0.5).view(np.int32))
DOUBLE_ROOT_HALF = int(np.float64(0.5**0.5).view(np.int64))
LOG_TWO = math.log(2.0)
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
    """Take one step with `H` the transpose of `W`; the state is `W`, of shape (N, K)."""
    factors = _clip(state, weights)
    means = weights.means(factors, factors)
    sums, squares = column_sums(factors), column_sums(factors**2)
    objective = symmetric_objective(weights.logs(means), sums, squares, weights.n, prior)
    precision = shrinkage(squares, weights.n / 2, prior)[0].to(factors.dtype)
    # w = sqrt(n / (S / w + beta)), the minimum of the bound (erratum 5), as w sqrt((n / w) / (S + beta w)).
    others = sums.to(factors.dtype) - factors
    following = factors * torch.sqrt(weights.products(means, factors) / (others + precision * factors))
    following = _keep_positive(following, weights)
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


class RowStep(NamedTuple):
    """Some rows of a step.

    Attributes
    ----------
    following
        The rows of the next factors.
    logs, changes
        What each row adds to the objective, half of each of its pairs, and how much its participations changed.
    expected, penalty
        What all rows together and the prior take from the objective.
    """

    following: NDArray[np.float64]
    logs: NDArray[np.float64]
    changes: NDArray[np.float64]
    expected: float
    penalty: float

    def step(self) -> Step:
        """Return the step, if these are all rows."""
        objective = float(self.logs.sum()) - self.expected - self.penalty
        return Step(torch.from_numpy(self.following), objective, float(self.changes.mean()))


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
    rows, largest
        Where another process has the other rows, which are empty here: those of this one, and the largest weight of
        all.
    """

    def __init__(
        self,
        starts: NDArray[np.int64],
        columns: NDArray[np.int32] | None,
        values: NDArray[np.float64],
        *,
        precision: DTypeLike,
        rows: range | None = None,
        largest: float | None = None,
    ) -> None:
        self.n, self.max_factor = len(starts) - 1, max_factor_for(float(values.max()) if largest is None else largest)
        self.rows = range(self.n) if rows is None else rows
        self._starts, self._values = starts, values.astype(precision, copy=False)
        # Where rows hold all weights, they share one list of the other ends, unsigned: negative ones count backwards.
        shared = np.arange(self.n, dtype=np.uint32), np.zeros(self.n, np.int64)
        self._columns, self._column_starts = shared if columns is None else (columns.view(np.uint32), starts[:-1])
        self._longest = int(np.diff(starts).max())
        _compile_nmf(self._values.dtype)
        bounds = chunk_bounds(len(values), at_most=max(1, len(values) // MIN_WEIGHTS_PER_THREAD))
        self._row_bounds = np.searchsorted(starts, bounds)
        self._row_bounds[0], self._row_bounds[-1] = self.rows.start, self.rows.stop

    @classmethod
    def of(cls, weights: Any, *, precision: DTypeLike) -> CompiledWeights:
        """Return the weights of an array or a SciPy CSR array."""
        if isinstance(weights, np.ndarray):
            return cls(np.arange(len(weights) + 1) * len(weights), None, weights.ravel(), precision=precision)
        columns = weights.indices.astype(np.int32, copy=False)
        return cls(weights.indptr.astype(np.int64), columns, weights.data, precision=precision)

    def symmetric_step(self, state: Tensor, prior: Prior) -> Step:
        """Take one step; see `symmetric_step`."""
        return self.row_step(state, prior).step()

    def row_step(self, state: Tensor, prior: Prior) -> RowStep:
        """Return the own rows of a step."""
        previous = state.numpy()
        factors = np.clip(previous, MIN_FACTOR, self.max_factor)
        sums, squares = factors.sum(0), (factors**2).sum(0)
        numerator, denominator = self.n / 2 + prior.shape - 1, squares / 2 + prior.rate
        rows = np.zeros((self.n, -(-previous.shape[1] // VECTOR_WIDTH) * VECTOR_WIDTH), self._values.dtype)
        rows[:, : previous.shape[1]] = factors
        following, logs, changes = np.empty_like(previous), np.empty(self.n), np.empty(self.n)
        weights = self._starts, self._column_starts, self._columns, self._values
        precision = numerator / denominator

        def step_chunk(chunk: int) -> None:
            bounds = self._row_bounds[chunk], self._row_bounds[chunk + 1]
            means = FloatParts.empty(self._longest, rows.dtype)
            _products(*bounds, *weights, rows, means, following, logs)
            _update_rows(*bounds, previous, factors, following, sums, precision, TINY, self.max_factor, changes)

        in_parallel(step_chunk, len(self._row_bounds) - 1)
        own = slice(self.rows.start, self.rows.stop)
        expected, penalty = float((sums**2 - squares).sum()) / 2, numerator * float(np.log(denominator).sum())
        return RowStep(following[own], logs[own], changes[own], expected, float(penalty))


class FloatParts(NamedTuple):
    """Room for floating-point numbers and for what they are composed of, so that compiled code takes several at once.

    Attributes
    ----------
    values, bits
        The numbers, and their bits in the same memory.
    fractions, fraction_bits
        The numbers divided by powers of two, so that they are near one, and their bits in the same memory.
    exponents
        These powers of two.
    """

    values: NDArray[Any]
    bits: NDArray[Any]
    fractions: NDArray[Any]
    fraction_bits: NDArray[Any]
    exponents: NDArray[Any]

    @classmethod
    def empty(cls, n: int, precision: DTypeLike) -> FloatParts:
        """Return room for so many numbers."""
        values, fractions = np.empty(n, precision), np.empty(n, precision)
        integers = np.dtype(f"i{values.itemsize}")
        exponents = np.empty(n, integers)
        return cls(values, values.view(integers), fractions, fractions.view(integers), exponents)


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _products(
    first: int,
    last: int,
    starts: Any,
    column_starts: Any,
    columns: Any,
    values: Any,
    rows: Any,
    means: Any,
    products: Any,
    logs: Any,
) -> None:
    """Fill in the products and logs of `Weights` row by row; logs has half of each pair in the row of either end."""
    k = products.shape[1]
    row, own = np.empty_like(rows[0]), np.empty_like(rows[0])
    for i in range(first, last):
        row[:] = rows[i]
        own[:] = 0
        start, n = starts[i], starts[i + 1] - starts[i]
        near, weights = columns[column_starts[i] : column_starts[i] + n], values[start : start + n]
        # All means first: when rows far away are read, processors need not wait for one before they request the next.
        _fill_means(row, rows, near, means.values)
        logs[i] = _weighted_log_sum(weights, means) / 2
        for index in range(n):
            means.values[index] = weights[index] / means.values[index]
        _add_rows(means.values, rows, near, own)
        for c in range(k):
            products[i, c] = own[c]


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _fill_means(row: Any, rows: Any, near: Any, means: Any) -> None:
    """Fill in the product of a row with each of some rows, four at a time, so that they share what a loop costs."""
    zero = rows.dtype.type(0)
    n_in_fours = len(near) - len(near) % 4
    for index in range(0, n_in_fours, 4):
        j0, j1, j2, j3 = near[index], near[index + 1], near[index + 2], near[index + 3]
        m0 = m1 = m2 = m3 = zero
        for c in range(len(row)):
            m0 += row[c] * rows[j0, c]
            m1 += row[c] * rows[j1, c]
            m2 += row[c] * rows[j2, c]
            m3 += row[c] * rows[j3, c]
        means[index], means[index + 1], means[index + 2], means[index + 3] = m0, m1, m2, m3
    for index in range(n_in_fours, len(near)):
        mean = zero
        for c in range(len(row)):
            mean += row[c] * rows[near[index], c]
        means[index] = mean


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _add_rows(factors: Any, rows: Any, near: Any, sums: Any) -> None:
    """Add some rows to the sums, each times a factor, four at a time."""
    n_in_fours = len(near) - len(near) % 4
    for index in range(0, n_in_fours, 4):
        j0, j1, j2, j3 = near[index], near[index + 1], near[index + 2], near[index + 3]
        f0, f1, f2, f3 = factors[index], factors[index + 1], factors[index + 2], factors[index + 3]
        for c in range(len(sums)):
            sums[c] += f0 * rows[j0, c] + f1 * rows[j1, c] + f2 * rows[j2, c] + f3 * rows[j3, c]
    for index in range(n_in_fours, len(near)):
        factor = factors[index]
        for c in range(len(sums)):
            sums[c] += factor * rows[near[index], c]


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _weighted_log_sum(weights: Any, numbers: Any) -> float:
    """Return the sum of weights times the logs of positive normal numbers, of which several are taken at once.

    A number is a power of two times a fraction `f` between the roots of 1/2 and 2, whose log is twice the area
    hyperbolic tangent of (f - 1) / (f + 1): an odd series, of which twelve terms are as precise as double precision.
    """
    n = len(weights)
    bits, single = numbers.bits, numbers.bits.itemsize == 4
    digits, root_half = (SINGLE_DIGITS, SINGLE_ROOT_HALF) if single else (DOUBLE_DIGITS, DOUBLE_ROOT_HALF)
    for index in range(n):
        exponent = (bits[index] - root_half) >> digits
        numbers.exponents[index] = exponent
        numbers.fraction_bits[index] = bits[index] - (exponent << digits)
    total = 0.0
    for index in range(n):
        fraction = float(numbers.fractions[index])
        tangent = (fraction - 1.0) / (fraction + 1.0)
        square, series = tangent * tangent, 0.0
        for odd in range(23, 0, -2):
            series = series * square + 1.0 / odd
        total += weights[index] * (numbers.exponents[index] * LOG_TWO + 2.0 * tangent * series)
    return total


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
        number, rows = one.astype(precision), double.astype(precision)
        ends, first = np.array([0, 1]), np.zeros(1, np.int64)
        # Of no rows: the types count, and numbers of no network would be none, or infinite.
        _products(0, 0, ends, first, np.zeros(1, np.uint32), number, rows, FloatParts.empty(1, precision), double, one)
        _update_rows(0, 0, double, double, double, one, one, 1.0, 1.0, one)
