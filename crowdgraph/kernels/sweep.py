"""One pass over all responses: class probabilities of the items and, from them, expected counts of the volunteers.

Both sweeps take expected (or plain) logarithms of confusion and class probabilities and do the same: for each item

    ln rho_ij = ln kappa_j + sum over its responses of ln pi^(k)_{j, label},      q_i = softmax over j,

then add q_i to the counts of (volunteer, label) of each of its responses. `TensorSweep` is two products with a sparse
matrix and runs on any device; `CompiledSweep` fuses everything into one pass over the responses and runs on CPUs.

Tables have the shape (K, L, J), volunteers by labels by classes, so that what a response needs lies together.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numba import njit
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.special import digamma_and_log_gamma

__all__ = [
    "CompiledSweep",
    "ItemResponses",
    "Sweep",
    "Sweeper",
    "TensorSweep",
    "compiled_expectations",
    "expected_counts",
]


class ItemResponses(NamedTuple):
    """Responses gathered by item: item `i` has ``codes[starts[i]:starts[i + 1]]``, each volunteer * L + label."""

    starts: Tensor
    codes: Tensor
    n_volunteers: int
    n_labels: int


class Sweep(NamedTuple):
    """What a sweep found.

    Attributes
    ----------
    counts
        Expected number of responses by volunteer, label and class, of shape (K, L, J).
    class_counts
        Expected number of items by class, of shape (J,).
    evidence
        The sum over items of the log normalising constant of q_i; for gold items of their expected log weight.
    change
        The largest change of a class probability.
    """

    counts: Tensor
    class_counts: Tensor
    evidence: float
    change: float


class Sweeper(Protocol):
    """A sweep over certain responses."""

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; `probs`, of shape (N, J), is overwritten except where `fixed`, of shape (N,), is true.

        Known probabilities sum to one for each item, too.
        """
        ...


def expected_counts(sweeper: Sweeper, probs: Tensor, shape: tuple[int, ...]) -> Sweep:
    """The counts, tables of shape (K, L, J), that follow if these are the class probabilities: nothing is inferred."""
    nothing = torch.zeros(shape, dtype=probs.dtype, device=probs.device)
    known = torch.ones(len(probs), dtype=torch.bool, device=probs.device)
    return sweeper(nothing, nothing[0, 0], probs, known)


class TensorSweep:
    """The sweep as two sparse products, on the device and in the precision of its arguments."""

    def __init__(self, responses: ItemResponses, *, device: torch.device, dtype: torch.dtype) -> None:
        starts = responses.starts
        rows = torch.repeat_interleave(torch.arange(len(starts) - 1), starts.diff())
        places = torch.stack([rows, responses.codes.long()])
        self._shape = (responses.n_volunteers, responses.n_labels, -1)
        size = (len(starts) - 1, responses.n_volunteers * responses.n_labels)
        ones = torch.ones(places.shape[1], dtype=dtype)
        # A transposed view is several times slower than a matrix of its own.
        self._items = _csr(places, ones, size).to(device)
        self._volunteers = _csr(places.flip(0), ones, size[::-1]).to(device)

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        weights = self._items @ logs.reshape(-1, logs.shape[-1]) + class_logs
        peaks = torch.logsumexp(weights, 1)
        known = fixed[:, None]
        found = torch.where(known, probs, torch.exp(weights - peaks[:, None]))
        evidence = torch.where(fixed, (probs * weights).sum(1), peaks).sum()
        change = (found - probs).abs().max()
        probs.copy_(found)
        counts = (self._volunteers @ probs).reshape(self._shape)
        return Sweep(counts, probs.sum(0), float(evidence), float(change))


def _csr(places: Tensor, values: Tensor, size: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        return torch.sparse_coo_tensor(places, values, size, check_invariants=False).coalesce().to_sparse_csr()


# Items that pass through the three steps together.
ITEMS_PER_BLOCK = 16
# What the threads' own tables may take together, in bytes.
MOST_BYTES = 2**29
# Fewer responses than this are not worth a second thread.
LEAST_RESPONSES = 20_000


class CompiledSweep:
    """The sweep on CPUs, fused; see `crowdgraph.kernels.sweep.Sweeper`."""

    def __init__(self, responses: ItemResponses, *, n_classes: int) -> None:
        codes = responses.codes.numpy()
        self._shape = (responses.n_volunteers, responses.n_labels, n_classes)
        self._starts = responses.starts.numpy()
        # Unsigned, so that compiled code need not ask whether a place counts from the end.
        self._codes = codes.view(f"u{codes.itemsize}")
        n_rows = responses.n_volunteers * responses.n_labels
        self._totals = np.bincount(codes, minlength=n_rows).astype(np.float64)
        width = 2 * (n_classes - 1)
        most = min(MOST_BYTES // max(8 * n_rows * width, 1), len(codes) // LEAST_RESPONSES)
        shares = chunk_bounds(len(codes), at_most=most)
        self._edges = np.searchsorted(self._starts, shares)
        self._edges[-1] = len(self._starts) - 1
        self._tables = np.empty((len(shares) - 1, n_rows, width))
        compile_sweep(n_classes, self._codes.dtype)

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        n_classes = self._shape[-1]
        flat, first_logs = logs.reshape(-1, n_classes).numpy(), class_logs.numpy()
        sums = np.zeros((len(self._tables), n_classes))
        sweep = sweep_for(n_classes)

        def stretch(part: int) -> tuple[float, float]:
            return sweep(
                self._edges[part],
                self._edges[part + 1],
                self._starts,
                self._codes,
                flat,
                first_logs,
                fixed.numpy(),
                probs.numpy(),
                self._tables[part],
                sums[part],
            )

        evidence, changes = zip(*in_parallel(stretch, len(self._tables)), strict=True)
        counts = np.empty_like(flat)
        rows = chunk_bounds(len(flat), at_most=len(self._tables))
        in_parallel(
            lambda part: _collect(rows[part], rows[part + 1], self._tables, self._totals, counts), len(rows) - 1
        )
        base = float((self._totals * flat[:, 0]).sum()) + len(probs) * float(first_logs[0])
        return Sweep(
            torch.from_numpy(counts).reshape(self._shape),
            torch.from_numpy(sums.sum(0)),
            base + math.fsum(evidence),
            max(changes),
        )


def compiled_expectations(alpha: Tensor, prior: Tensor) -> tuple[Tensor, float]:
    r"""Expected logarithms of Dirichlets of shape (K, L, J) over axis 1, and their part of the bound.

    The second value is
    :math:`\sum_{kj} \ln B(\alpha_{kj}) - \sum_{kjl} (\alpha_{kjl} - \alpha_{0,kjl}) E[\ln \pi_{kjl}]`.
    """
    logs = torch.empty(alpha.shape, dtype=alpha.dtype)
    own, shared, out = alpha.numpy(), prior.numpy(), logs.numpy()
    rows = chunk_bounds(len(own), at_most=alpha.numel() // LEAST_RESPONSES)
    parts = in_parallel(lambda part: _expectations(rows[part], rows[part + 1], own, shared, out), len(rows) - 1)
    return logs, math.fsum(parts)


@cache
def compile_sweep(n_classes: int, code_type: np.dtype[Any]) -> None:
    """Compile the kernels for a number of classes, or load them from the disk, by a sweep over one response."""
    cube = np.ones((1, 1, 1))
    starts, codes = np.array([0, 1]), np.zeros(1, dtype=code_type)
    tables = np.zeros((1, 1, 2 * (n_classes - 1)))
    logs, probs = np.zeros((1, n_classes)), np.full((1, n_classes), 1 / n_classes)
    with compile_notice(f"the sweep over responses for {n_classes} classes"):
        sweep_for(n_classes)(
            0, 1, starts, codes, logs, logs[0], np.zeros(1, dtype=bool), probs, tables[0], logs[0].copy()
        )
        _collect(0, 1, tables, np.ones(1), probs)
        _expectations(0, 1, cube, cube, cube.copy())


@cache
def sweep_for(n_classes: int) -> Callable[..., tuple[float, float]]:
    """The compiled sweep for a number of classes; known when compiling, it lets short loops be unrolled."""
    rest = n_classes - 1

    @njit(cache=True, nogil=True, error_model="numpy")
    def sweep(
        first_item: int,
        last_item: int,
        starts: Any,
        codes: Any,
        logs: Any,
        class_logs: Any,
        fixed: Any,
        probs: Any,
        table: Any,
        sums: Any,
    ) -> tuple[float, float]:
        for row in range(len(table)):
            for j in range(rest):
                table[row, j] = logs[row, j + 1] - logs[row, 0]
                table[row, rest + j] = 0.0
        weights = np.empty((ITEMS_PER_BLOCK, n_classes))
        # Sums of its own: threads that write to neighbouring places hold each other up.
        own_sums = np.zeros(n_classes)
        evidence, change = 0.0, 0.0
        for first in range(first_item, last_item, ITEMS_PER_BLOCK):
            n_items = min(ITEMS_PER_BLOCK, last_item - first)
            for place in range(n_items):
                item = first + place
                weights[place, 0] = 0.0
                for j in range(rest):
                    weights[place, j + 1] = class_logs[j + 1] - class_logs[0]
                for response in range(starts[item], starts[item + 1]):
                    row = codes[response]
                    for j in range(rest):
                        weights[place, j + 1] += table[row, j]
            for place in range(n_items):
                item = first + place
                if fixed[item]:
                    for j in range(n_classes):
                        evidence += probs[item, j] * weights[place, j]
                        weights[place, j] = probs[item, j]
                        own_sums[j] += probs[item, j]
                    continue
                peak = 0.0
                for j in range(rest):
                    peak = max(peak, weights[place, j + 1])
                norm = 0.0
                for j in range(n_classes):
                    weights[place, j] = math.exp(weights[place, j] - peak)
                    norm += weights[place, j]
                evidence += peak + math.log(norm)
                for j in range(n_classes):
                    prob = weights[place, j] / norm
                    change = max(change, abs(prob - probs[item, j]))
                    probs[item, j] = prob
                    weights[place, j] = prob
                    own_sums[j] += prob
            for place in range(n_items):
                item = first + place
                for response in range(starts[item], starts[item + 1]):
                    row = codes[response]
                    for j in range(rest):
                        table[row, rest + j] += weights[place, j + 1]
        sums[:] = own_sums
        return evidence, change

    return sweep


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(first: int, last: int, tables: Any, totals: Any, counts: Any) -> None:
    """Add the threads' counts; those of the first class are what the others leave."""
    n_parts, _, width = tables.shape
    rest = width // 2
    for row in range(first, last):
        left = totals[row]
        for j in range(rest):
            count = 0.0
            for part in range(n_parts):
                count += tables[part, row, rest + j]
            counts[row, j + 1] = count
            left -= count
        counts[row, 0] = max(left, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _expectations(first: int, last: int, alpha: Any, prior: Any, logs: Any) -> float:
    """The expected logarithms of some volunteers' Dirichlets, and their part of the bound."""
    _, n_labels, n_classes = alpha.shape
    shared = len(prior) == 1
    bound = 0.0
    for k in range(first, last):
        own = 0 if shared else k
        for j in range(n_classes):
            total = 0.0
            for label in range(n_labels):
                total += alpha[k, label, j]
            total_digamma, total_log_gamma = digamma_and_log_gamma(total)
            bound -= total_log_gamma
            for label in range(n_labels):
                digamma, log_gamma = digamma_and_log_gamma(alpha[k, label, j])
                log = digamma - total_digamma
                logs[k, label, j] = log
                bound += log_gamma - (alpha[k, label, j] - prior[own, label, j]) * log
    return bound
