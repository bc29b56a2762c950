"""One pass over all responses: class probabilities of the items and, from them, expected counts of the volunteers.

Both sweeps take expected (or plain) logarithms of confusion and class probabilities and do the same: for each item

    ln rho_ij = ln kappa_j + sum over its responses of ln pi^(k)_{j, label}     (eq:VB_lnqstar_ti)
    q_ij = rho_ij / sum over m of rho_im                                         ("Variational Equations for IBCC")

then add q_i to the counts of (volunteer, label) of each of its responses (eq:classCount, eq:decisionCount).
`TensorSweep` is made of the functions of `crowdgraph.tensors` and runs on any device; `CompiledSweep` fuses everything
into one pass over the responses, in parallel over items, and runs on CPUs.

Tables have the shape (K, L, J), volunteers by labels by classes, so that what a response needs lies together.

Of J classes the compiled sweep gathers and counts only J - 1: softmax needs differences of logarithms, and the counts
of the first class are what the others leave of the number of responses, unless tiny counts matter. Logarithms and
counts of a (volunteer, label) lie side by side, so that both cost one memory access, and small blocks of items pass
through the three stages of gathering, softmax and counting, so that their rows are still in cache when they are
counted. Every thread has its own table and its own range of items, and the tables are added in a fixed order: the same
number of threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.special import digamma_and_log_gamma
from crowdgraph.tensors.devices import total
from crowdgraph.tensors.dirichlet import dirichlet_divergence, expected_log, log_normaliser
from crowdgraph.tensors.ibcc import AnswerMatrix, item_log_weights, item_posteriors, log_evidence, sufficient_counts

__all__ = [
    "CompiledExpectations",
    "CompiledSweep",
    "Expectations",
    "ItemResponses",
    "LocalExpectations",
    "Streaming",
    "Sweep",
    "Sweeper",
    "TensorSweep",
    "compile_sweep",
    "expected_counts",
    "pair_variance",
    "tensor_expectations",
]

# Items that pass through the three stages together.
ITEMS_PER_BLOCK = 16
# The bytes that the threads' own tables may take together.
MAX_TABLE_BYTES = 2**29
# How many answers are looked up together where tensors hold something for each of them.
ANSWERS_TOGETHER = 2**20
# Fewer responses than this are not worth a second thread.
MIN_RESPONSES_PER_THREAD = 20_000
# Concentrations that differ by no more than this share are the same but for rounding.
RELATIVE_ROUNDING = 1e-14

# From concentrations and their prior, both of shape (K or 1, L, J), to expected logarithms and the divergence.
Expectations = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | float]]


class Streaming(NamedTuple):
    """How responses on disk pass through memory.

    Attributes
    ----------
    responses_per_block
        About how many responses each thread has in memory.
    release
        Called with the first and one beyond the last item of a block that has been swept, so that it can leave.
    """

    responses_per_block: int
    release: Callable[[int, int], None]


class ItemResponses(NamedTuple):
    """Responses grouped by item: item `i` has ``codes[starts[i]:starts[i + 1]]``, each volunteer * L + label.

    With `streaming` they are maps of files that are larger than memory. A soft answer is a response for each of its
    labels, and `shares` says how much each counts, of the shape of `codes`; None if all count one.
    """

    starts: Tensor
    codes: Tensor
    n_volunteers: int
    n_labels: int
    streaming: Streaming | None = None
    shares: Tensor | None = None


class Sweep(NamedTuple):
    """The result of a sweep.

    Attributes
    ----------
    counts
        Expected number of responses by volunteer, label and class, of shape (K, L, J).
    class_counts
        Expected number of items by class, of shape (J,).
    evidence
        The sum over items of the log normalising constant of q_i; for gold items of their expected log weight and the
        entropy of their gold.
    change
        The largest change of a class probability.
    """

    counts: Tensor
    class_counts: Tensor
    evidence: Tensor | float
    change: Tensor | float


class Sweeper(Protocol):
    """A sweep over a fixed set of responses."""

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; `probs`, of shape (N, J), is overwritten except where `fixed`, of shape (N,), is true.

        Fixed probabilities must sum to one for each item, too.
        """
        ...

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """Return by how much volunteers' sums of effects vary since classes are unknown, (K,).

        `effect` is what an answer adds if its item has a class, (1 or K, L, J); see
        `crowdgraph.kernels.crowd_prior.class_variance`.
        """
        ...


def expected_counts(sweeper: Sweeper, probs: Tensor, shape: tuple[int, ...]) -> Sweep:
    """Return the counts, tables of shape (K, L, J), that class probabilities imply, without inferring anything."""
    zeros = torch.zeros(shape, dtype=probs.dtype, device=probs.device)
    fixed = torch.ones(len(probs), dtype=torch.bool, device=probs.device)
    return sweeper(zeros, zeros[0, 0], probs, fixed)


class TensorSweep:
    """The sweep as tensor operations, on any device and in the precision of its arguments."""

    def __init__(self, responses: ItemResponses, *, device: torch.device) -> None:
        n_items = len(responses.starts) - 1
        rows = torch.repeat_interleave(torch.arange(n_items), responses.starts.diff())
        self._cells, self._items, self._shape = responses.codes.to(device), rows.to(device), responses[2:4]
        self._shares = None if responses.shares is None else responses.shares.to(device)
        self._answers = AnswerMatrix.from_cells(
            self._cells,
            self._items,
            n_volunteers=responses.n_volunteers,
            n_items=n_items,
            n_labels=responses.n_labels,
            weight=self._shares,
        )

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        gold = torch.where(fixed[:, None], probs, torch.nan)
        log_weights = item_log_weights(self._answers, logs.transpose(1, 2), class_logs=class_logs)
        updated = item_posteriors(log_weights, gold)
        change = (updated - probs).abs().max()
        probs.copy_(updated)
        counts = sufficient_counts(self._answers, probs).transpose(1, 2)
        return Sweep(counts, probs.sum(0), log_evidence(log_weights, gold), change)  # eq:classCount

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """See `Sweeper`."""
        n_volunteers, n_labels = self._shape
        effects = effect.expand(n_volunteers, -1, -1).reshape(-1, effect.shape[-1])
        variance = effects.new_zeros(n_volunteers)
        for first in range(0, len(self._cells), ANSWERS_TOGETHER):
            answers = slice(first, first + ANSWERS_TOGETHER)
            cells = self._cells[answers].long()
            values, weights = effects[cells], probs[self._items[answers]]
            part = (weights * values**2).sum(1) - (weights * values).sum(1) ** 2
            if self._shares is not None:
                part = self._shares[answers].to(part.dtype) * part
            variance.index_add_(0, cells // n_labels, part)
        return variance.clamp_min(0.0)


def tensor_expectations(alpha: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return the expected logarithms of Dirichlets of shape (K, L, J) over axis 1, and their divergence from the prior.

    The divergence is the sum over all volunteers and classes. This runs on any device.
    """
    return expected_log(alpha, axis=1), total(dirichlet_divergence(alpha, prior, axis=1))


class CompiledSweep:
    """The sweep on CPUs, compiled and fused; see `Sweeper`.

    Parameters
    ----------
    responses
        The responses.
    n_classes
        J.
    dtype
        The precision of tables: in single precision they are half as large. Everything computed from them is in double
        precision.
    tiny_counts
        Whether counts close to zero must be exact: then those of the first class are counted, too, which takes longer.
    """

    def __init__(
        self,
        responses: ItemResponses,
        *,
        n_classes: int,
        dtype: torch.dtype = torch.float64,
        tiny_counts: bool = False,
    ) -> None:
        codes = responses.codes.numpy()
        self._shape = (responses.n_volunteers, responses.n_labels, n_classes)
        self._starts = responses.starts.numpy()
        # Unsigned, so that compiled code need not check whether an index counts from the end.
        self._codes = codes.view(f"u{codes.itemsize}")
        self._streaming = responses.streaming
        # Empty if all responses count one.
        self._shares = np.zeros(0) if responses.shares is None else responses.shares.double().numpy()
        self._soft = responses.shares is not None
        n_rows = responses.n_volunteers * responses.n_labels
        self._totals = np.zeros(n_rows)
        for first, last in self._blocks(0, len(self._starts) - 1):
            rows = slice(self._starts[first], self._starts[last])
            _count_codes(self._codes[rows], self._shares[rows], self._totals)
            self._leave(first, last)
        self._tiny_counts = tiny_counts
        self._sweep = sweep_for(n_classes, tiny_counts=tiny_counts, soft=self._soft)
        width = 2 * (n_classes - 1) + tiny_counts
        max_chunks = min(
            MAX_TABLE_BYTES // max(dtype.itemsize * n_rows * width, 1), len(codes) // MIN_RESPONSES_PER_THREAD
        )
        bounds = chunk_bounds(len(codes), at_most=max_chunks)
        self._item_bounds = np.searchsorted(self._starts, bounds)
        self._item_bounds[-1] = len(self._starts) - 1
        self._tables = torch.empty((len(bounds) - 1, n_rows, width), dtype=dtype).numpy()
        types = self._codes.dtype, self._tables.dtype
        compile_sweep(n_classes, *types, tiny_counts=tiny_counts)
        if self._soft:
            _sweep_one_response(n_classes, *types, tiny_counts=tiny_counts, soft=True)

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        no_sums = np.zeros((len(self._tables), 0, 0))
        return self._run(self._sweep, logs, class_logs, probs, fixed, no_sums)

    def with_pair_sums(
        self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor
    ) -> tuple[Sweep, NDArray[np.float64]]:
        """Sweep once, and return the pair sums of the new class probabilities as well, (K * L, J (J - 1) / 2).

        They are the sums over responses of the products of two class probabilities, from which `pair_variance` computes
        what `class_variance` does, for any effects.
        """
        n_rows, n_classes = self._shape[0] * self._shape[1], self._shape[2]
        sums = np.zeros((len(self._tables), n_rows, n_classes * (n_classes - 1) // 2))
        variant = {"tiny_counts": self._tiny_counts, "sums_pairs": True, "soft": self._soft}
        _sweep_one_response(n_classes, self._codes.dtype, self._tables.dtype, **variant)
        sweep = sweep_for(n_classes, **variant)
        return self._run(sweep, logs, class_logs, probs, fixed, sums), sums.sum(0)

    def _run(
        self,
        sweep: Callable[..., tuple[float, float]],
        logs: Tensor,
        class_logs: Tensor,
        probs: Tensor,
        fixed: Tensor,
        pair_sums: NDArray[np.float64],
    ) -> Sweep:
        n_classes = self._shape[-1]
        table_logs, first_logs = logs.reshape(-1, n_classes).numpy(), class_logs.numpy()
        class_counts = np.zeros((len(self._tables), n_classes))

        def sweep_chunk(chunk: int) -> tuple[float, float]:
            table, evidence, change = self._tables[chunk], 0.0, 0.0
            _start_table(table, table_logs)
            for first, last in self._blocks(self._item_bounds[chunk], self._item_bounds[chunk + 1]):
                block_evidence, block_change = sweep(
                    first,
                    last,
                    self._starts,
                    self._codes,
                    self._shares,
                    first_logs,
                    fixed.numpy(),
                    probs.numpy(),
                    table,
                    class_counts[chunk],
                    pair_sums[chunk],
                )
                evidence, change = evidence + block_evidence, max(change, block_change)
                self._leave(first, last)
            return evidence, change

        evidence, changes = zip(*in_parallel(sweep_chunk, len(self._tables)), strict=True)
        counts = np.empty_like(table_logs)
        bounds = chunk_bounds(len(table_logs), at_most=len(self._tables))
        in_parallel(
            lambda chunk: _add_tables(bounds[chunk], bounds[chunk + 1], self._tables, self._totals, counts),
            len(bounds) - 1,
        )
        # What the differences to the first class left out of the evidence.
        base = float((self._totals * table_logs[:, 0]).sum()) + len(probs) * float(first_logs[0])
        return Sweep(
            torch.from_numpy(counts).reshape(self._shape),
            torch.from_numpy(class_counts.sum(0)).to(probs.dtype),
            base + math.fsum(evidence),
            max(changes),
        )

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """See `Sweeper`."""
        effects, weights = effect.contiguous().numpy(), probs.numpy()
        variances = np.zeros((len(self._tables), self._shape[0]))

        def add_chunk(chunk: int) -> None:
            for first, last in self._blocks(self._item_bounds[chunk], self._item_bounds[chunk + 1]):
                columns = self._starts, self._codes, self._shares
                _class_variance(first, last, *columns, weights, effects, variances[chunk])
                self._leave(first, last)

        in_parallel(add_chunk, len(self._tables))
        return torch.from_numpy(variances.sum(0)).clamp_min(0.0)

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the bounds of the blocks of items that are in memory together: all of them unless responses stream."""
        if self._streaming is None:
            yield first, last
            return
        while first < last:
            beyond = self._starts[first] + self._streaming.responses_per_block
            # At least one item, and never beyond the last; items without responses count as one.
            following = min(int(np.searchsorted(self._starts, beyond, side="right")) - 1, last)
            following = min(max(following, first + 1), first + self._streaming.responses_per_block)
            yield first, following
            first = following

    def _leave(self, first: int, last: int) -> None:
        if self._streaming is not None:
            self._streaming.release(first, last)


def pair_variance(pair_sums: NDArray[np.float64], effect: Tensor, n_volunteers: int) -> Tensor:
    """Return what `Sweeper.class_variance` does, from the pair sums of `CompiledSweep.with_pair_sums`.

    The variance of a value that depends on a class is the sum over pairs of classes of the products of their
    probabilities and their squared difference.
    """
    _, n_labels, n_classes = effect.shape
    sums = torch.from_numpy(pair_sums).reshape(n_volunteers, n_labels, -1)
    variance = torch.zeros(n_volunteers, dtype=torch.float64)
    for j in range(1, n_classes):
        for m in range(j):
            difference = effect[:, :, j] - effect[:, :, m]
            variance += (sums[:, :, j * (j - 1) // 2 + m] * difference**2).sum(1)
    return variance


class CompiledExpectations:
    """The same as `tensor_expectations`, compiled, on CPUs."""

    def __init__(self) -> None:
        self._prior: Tensor | None = None
        self._prior_norm = 0.0

    def __call__(self, alpha: Tensor, prior: Tensor) -> tuple[Tensor, float]:
        """Return expected logarithms and divergence."""
        logs = torch.empty_like(alpha)
        alpha_array, prior_array, log_array = alpha.numpy(), prior.numpy(), logs.numpy()
        bounds = chunk_bounds(len(alpha_array), at_most=alpha.numel() // MIN_RESPONSES_PER_THREAD)
        parts = in_parallel(
            lambda chunk: _expectations(bounds[chunk], bounds[chunk + 1], alpha_array, prior_array, log_array),
            len(bounds) - 1,
        )
        if prior is not self._prior:
            self._prior, norms = prior, log_normaliser(prior.double(), axis=1)
            self._prior_norm = float(norms.sum()) * (len(alpha) / len(prior))
        return logs, self._prior_norm - math.fsum(parts)


class LocalExpectations:
    """The same as `CompiledExpectations`, for iterations that change few volunteers at a time: it updates theirs."""

    def __init__(self) -> None:
        self._prior: Tensor | None = None
        self._prior_norm = 0.0
        self._alpha = self._logs = np.zeros((0, 0, 0))
        self._parts = np.zeros(0)

    def __call__(self, alpha: Tensor, prior: Tensor) -> tuple[Tensor, float]:
        """Return expected logarithms and divergence."""
        if prior is not self._prior:
            self._prior, norms = prior, log_normaliser(prior.double(), axis=1)
            self._prior_norm = float(norms.sum()) * (len(alpha) / len(prior))
            self._alpha, self._logs = np.zeros(alpha.shape), np.empty(alpha.shape)
            self._parts = np.zeros(len(alpha))
        alpha_array, prior_array = alpha.numpy(), prior.numpy()
        bounds = chunk_bounds(len(alpha_array), at_most=alpha.numel() // MIN_RESPONSES_PER_THREAD)
        in_parallel(
            lambda chunk: _update_expectations(
                bounds[chunk], bounds[chunk + 1], alpha_array, self._alpha, prior_array, self._logs, self._parts
            ),
            len(bounds) - 1,
        )
        return torch.from_numpy(self._logs.copy()), self._prior_norm - float(self._parts.sum())


@cache
def compile_sweep(
    n_classes: int, code_type: np.dtype[Any], precision: np.dtype[Any], *, tiny_counts: bool = False
) -> None:
    """Compile the kernels for a number of classes, or load them from disk, by sweeping over one response."""
    cube = np.ones((1, 1, 1), precision)
    codes = np.zeros(1, dtype=code_type)
    logs, probs, tables = _sweep_one_response(n_classes, code_type, precision, tiny_counts=tiny_counts)
    with compile_notice(f"the sweep over responses for {n_classes} classes"):
        _start_table(tables[0], logs)
        _count_codes(codes, np.zeros(0), np.zeros(1))
        _class_variance(0, 1, np.array([0, 1]), codes, np.zeros(0), probs, np.ones((1, 1, n_classes)), np.zeros(1))
        _add_tables(0, 1, tables, np.ones(1), probs)
        _expectations(0, 1, cube, cube, cube.copy())


@cache
def _sweep_one_response(
    n_classes: int,
    code_type: np.dtype[Any],
    precision: np.dtype[Any],
    *,
    tiny_counts: bool = False,
    sums_pairs: bool = False,
    soft: bool = False,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Compile a sweep, or load it from disk, by sweeping over one response; return its logarithms, q and tables."""
    starts, codes = np.array([0, 1]), np.zeros(1, dtype=code_type)
    tables = np.zeros((1, 1, 2 * (n_classes - 1) + tiny_counts), precision)
    logs, probs = np.zeros((1, n_classes), precision), np.full((1, n_classes), 1 / n_classes, precision)
    fixed, class_counts = np.zeros(1, dtype=bool), np.zeros(n_classes)
    pair_sums = np.zeros((1, n_classes * (n_classes - 1) // 2))
    with compile_notice(f"the sweep over responses for {n_classes} classes"):
        sweep = sweep_for(n_classes, tiny_counts=tiny_counts, sums_pairs=sums_pairs, soft=soft)
        sweep(0, 1, starts, codes, np.ones(int(soft)), logs[0], fixed, probs, tables[0], class_counts, pair_sums)
    return logs, probs, tables


@cache
def sweep_for(
    n_classes: int, *, tiny_counts: bool = False, sums_pairs: bool = False, soft: bool = False
) -> Callable[..., tuple[float, float]]:
    """Return the compiled sweep for a number of classes; known at compile time, it lets short loops be unrolled.

    With `sums_pairs` it also adds up the products of two class probabilities; see `CompiledSweep.with_pair_sums`. If
    `soft`, responses count by their shares.
    """
    rest, n_pairs = n_classes - 1, n_classes * (n_classes - 1) // 2
    first_counted = 0 if tiny_counts else 1

    @njit(cache=True, nogil=True, error_model="numpy")
    def sweep(
        first_item: int,
        last_item: int,
        starts: Any,
        codes: Any,
        shares: Any,
        class_logs: Any,
        fixed: Any,
        probs: Any,
        table: Any,
        class_counts: Any,
        pair_sums: Any,
    ) -> tuple[float, float]:
        weights = np.empty((ITEMS_PER_BLOCK, n_classes))
        pairs = np.empty(n_pairs)
        # Sums in a local array: threads that write to neighbouring memory slow each other down.
        own_counts = np.zeros(n_classes)
        evidence, change = 0.0, 0.0
        for first in range(first_item, last_item, ITEMS_PER_BLOCK):
            n_items = min(ITEMS_PER_BLOCK, last_item - first)
            # eq:VB_lnqstar_ti, as differences to the first class.
            for offset in range(n_items):
                item = first + offset
                weights[offset, 0] = 0.0
                for j in range(rest):
                    weights[offset, j + 1] = class_logs[j + 1] - class_logs[0]
                for response in range(starts[item], starts[item + 1]):
                    row = codes[response]
                    if soft:
                        for j in range(rest):
                            weights[offset, j + 1] += shares[response] * table[row, j]
                    else:
                        for j in range(rest):
                            weights[offset, j + 1] += table[row, j]
            # q(t_i = j) = rho_ij / sum_m rho_im, "Variational Equations for IBCC"; eq:classCount.
            for offset in range(n_items):
                item = first + offset
                if fixed[item]:
                    for j in range(n_classes):
                        prob = probs[item, j]
                        evidence += prob * weights[offset, j]
                        if prob > 0.0:
                            evidence -= prob * math.log(prob)
                        weights[offset, j] = prob
                        own_counts[j] += prob
                    continue
                peak = 0.0
                for j in range(rest):
                    peak = max(peak, weights[offset, j + 1])
                norm = 0.0
                for j in range(n_classes):
                    weights[offset, j] = math.exp(weights[offset, j] - peak)
                    norm += weights[offset, j]
                evidence += peak + math.log(norm)
                for j in range(n_classes):
                    prob = weights[offset, j] / norm
                    change = max(change, abs(prob - probs[item, j]))
                    probs[item, j] = prob
                    weights[offset, j] = prob
                    own_counts[j] += prob
            # eq:decisionCount.
            for offset in range(n_items):
                item = first + offset
                if sums_pairs:
                    for j in range(1, n_classes):
                        for m in range(j):
                            pairs[j * (j - 1) // 2 + m] = weights[offset, j] * weights[offset, m]
                for response in range(starts[item], starts[item + 1]):
                    row = codes[response]
                    if soft:
                        for j in range(first_counted, n_classes):
                            table[row, rest + j - first_counted] += shares[response] * weights[offset, j]
                    else:
                        for j in range(first_counted, n_classes):
                            table[row, rest + j - first_counted] += weights[offset, j]
                    if sums_pairs:
                        for pair in range(n_pairs):
                            pair_sums[row, pair] += shares[response] * pairs[pair] if soft else pairs[pair]
        class_counts += own_counts
        return evidence, change

    return sweep


@njit(cache=True, nogil=True, error_model="numpy")
def _start_table(table: Any, logs: Any) -> None:
    """Write differences of logarithms into a table, and zeros where it counts."""
    rest = logs.shape[1] - 1
    for row in range(len(table)):
        for j in range(rest):
            table[row, j] = logs[row, j + 1] - logs[row, 0]
        for j in range(rest, table.shape[1]):
            table[row, j] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _count_codes(codes: Any, shares: Any, totals: Any) -> None:
    for response in range(len(codes)):
        totals[codes[response]] += shares[response] if len(shares) > 0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _class_variance(
    first_item: int, last_item: int, starts: Any, codes: Any, shares: Any, probs: Any, effects: Any, variance: Any
) -> None:
    """Add the variance of each answer's effect, over the classes that its item may have, to that of its volunteer.

    That of a soft answer is the mean over its labels, which is at most too large.
    """
    shared = len(effects) == 1
    _, n_labels, n_classes = effects.shape
    for item in range(first_item, last_item):
        for response in range(starts[item], starts[item + 1]):
            volunteer, label = codes[response] // n_labels, codes[response] % n_labels
            row = 0 if shared else volunteer
            mean, square = 0.0, 0.0
            for j in range(n_classes):
                value = effects[row, label, j]
                mean += probs[item, j] * value
                square += probs[item, j] * value * value
            share = shares[response] if len(shares) > 0 else 1.0
            variance[volunteer] += share * (square - mean * mean)


@njit(cache=True, nogil=True, error_model="numpy")
def _add_tables(first: int, last: int, tables: Any, totals: Any, counts: Any) -> None:
    """Add the threads' counts; the counts of the first class may be what the others leave of the totals."""
    n_tables, _, width = tables.shape
    n_classes = counts.shape[1]
    n_counted = width - (n_classes - 1)
    for row in range(first, last):
        remaining = totals[row]
        for j in range(n_classes - n_counted, n_classes):
            count = 0.0
            for table in range(n_tables):
                count += tables[table, row, j + width - n_classes]
            counts[row, j] = count
            remaining -= count
        if n_counted < n_classes:
            counts[row, 0] = max(remaining, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _update_expectations(first: int, last: int, alpha: Any, previous: Any, prior: Any, logs: Any, parts: Any) -> None:
    """Update the expected logarithms, and the parts of the bound, of volunteers who changed by more than rounding."""
    _, n_labels, n_classes = alpha.shape
    shared = len(prior) == 1
    for k in range(first, last):
        changed = False
        for label in range(n_labels):
            for j in range(n_classes):
                value = alpha[k, label, j]
                changed |= abs(value - previous[k, label, j]) > RELATIVE_ROUNDING * value
        if changed:
            prior_row = k if not shared else 0
            previous[k] = alpha[k]
            parts[k] = _expectations(0, 1, alpha[k : k + 1], prior[prior_row : prior_row + 1], logs[k : k + 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _expectations(first: int, last: int, alpha: Any, prior: Any, logs: Any) -> float:
    """Fill in the expected logarithms of a range of volunteers, and return their part of the bound."""
    _, n_labels, n_classes = alpha.shape
    shared = len(prior) == 1
    bound = 0.0
    for k in range(first, last):
        prior_row = 0 if shared else k
        for j in range(n_classes):
            total = 0.0
            for label in range(n_labels):
                total += alpha[k, label, j]
            total_digamma, total_log_gamma = digamma_and_log_gamma(total)
            bound -= total_log_gamma
            for label in range(n_labels):
                digamma, log_gamma = digamma_and_log_gamma(alpha[k, label, j])
                log = digamma - total_digamma  # eq:expectation_lnPi
                logs[k, label, j] = log
                # E[ln p(Pi)] - E[ln q(Pi)], sec:staticLowerBound.
                bound += log_gamma - (alpha[k, label, j] - prior[prior_row, label, j]) * log
    return bound
