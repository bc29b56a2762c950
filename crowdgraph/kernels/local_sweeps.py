"""Sweeps for an update: they visit only items whose class probabilities can still change noticeably.

After few new responses most of a fit is as it was. A `LocalSweep` is a `crowdgraph.kernels.sweep.Sweeper`, so the maps
of IBCC and of Dawid and Skene run on it unchanged, but it remembers the expected counts and corrects them by what the
items that it visits add. An item that is not visited keeps its probabilities, which is a step of coordinate ascent with
fewer coordinates: the lower bound still never falls.

How much an unvisited item would change is estimated. Its log odds are a sum over its responses of expected logarithms;
these have moved by known amounts since the item was visited. Where some volunteers moved much more than all others,
theirs are added response by response; the others count by their root mean square. Log odds that move by `d` change a
probability `q` by about `q (1 - q) d`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels._runtime import compile_notice
from crowdgraph.kernels.sweep import CompiledSweep, ItemResponses, Sweep, Sweeper, pair_variance

__all__ = ["CountedSweep", "LocalSweep", "ResponsesByCode"]

Numbers = NDArray[Any]

# Visits of the items that matter most go first: those that may change by more than this share of the largest change.
RELATIVE_THRESHOLD = 0.05
# An item that may change by less than this share of the tolerance is left as it is.
TOLERATED_SHARE = 0.3
# Sums of signed movements rarely exceed this many standard deviations.
DEVIATIONS = 3.0
# Movements of single volunteers are added response by response for at most this share of the responses.
PUSHED_SHARE = 0.005
# The first sweep also visits the least certain items with this share of the responses, to see how far they have moved.
PROBED_SHARE = 0.02
# The least sensitive item from which a movement of log odds is measured.
MIN_SENSITIVITY = 1e-3
# Rows of a table that are added up together.
ROWS_PER_SUM = 128
# With more classes there are so many pairs of them that another visit costs less than their sums.
MAX_PAIRED_CLASSES = 6


class CountedSweep:
    """A sweep over all responses that counts how many it has visited; see `Sweeper`."""

    def __init__(self, sweeper: Sweeper, n_responses: int) -> None:
        self._sweeper, self._n_responses = sweeper, n_responses
        self.n_visited = 0

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        self.n_visited += self._n_responses
        return self._sweeper(logs, class_logs, probs, fixed)

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """See `Sweeper`."""
        self.n_visited += self._n_responses
        return self._sweeper.class_variance(probs, effect)

    def with_pair_sums(
        self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor
    ) -> tuple[Sweep, Numbers | None]:
        """Sweep once, with pair sums where they are few; see `CompiledSweep.with_pair_sums`."""
        if not isinstance(self._sweeper, CompiledSweep) or len(class_logs) > MAX_PAIRED_CLASSES:
            return self(logs, class_logs, probs, fixed), None
        self.n_visited += self._n_responses
        return self._sweeper.with_pair_sums(logs, class_logs, probs, fixed)


class ResponsesByCode(NamedTuple):
    """The items of the responses of each code: code `c` has ``items[starts[c]:starts[c + 1]]``."""

    starts: Numbers
    items: Numbers

    @classmethod
    def of(cls, responses: ItemResponses) -> ResponsesByCode:
        """Gather the items of responses that are grouped by item: a counting sort."""
        starts = np.zeros(responses.n_volunteers * responses.n_labels + 1, dtype=np.int64)
        items = np.empty(len(responses.codes), dtype=np.int32)
        _gather_by_code(responses.starts.numpy(), responses.codes.numpy(), starts, items)
        return cls(starts, items)


class LocalSweep:
    """A sweep over the items that matter, in double precision on CPUs; see `Sweeper`.

    Parameters
    ----------
    responses, by_code
        The responses, grouped by item and by their codes.
    sweeper
        A sweep over all responses, for `visit_all`.
    counts, class_counts
        The expected counts, of shape (K, L, J) and (J,), that the class probabilities of the first call imply.
    is_new
        Which items the first sweep must visit, of shape (N,): those with new responses.
    tol
        The change of a class probability that is tolerated.

    Attributes
    ----------
    n_visited
        The number of responses that were visited so far, but for those of full sweeps.
    visit_all
        Whether the next sweep visits every item.
    """

    def __init__(
        self,
        responses: ItemResponses,
        by_code: ResponsesByCode,
        sweeper: CountedSweep,
        *,
        counts: Numbers,
        class_counts: Numbers,
        is_new: Numbers,
        tol: float,
    ) -> None:
        self.visit_all = False
        self.n_visited = 0
        self._sweeper, self._tol, self._by_code = sweeper, tol, by_code
        self._starts, self._codes = responses.starts.numpy(), responses.codes.numpy()
        self._n_by_item = np.diff(self._starts)
        self._n_by_code = np.diff(by_code.starts)
        self._counts = np.ascontiguousarray(counts.reshape(-1, counts.shape[-1]), dtype=np.float64)
        self._class_counts = np.array(class_counts, dtype=np.float64)
        self._is_new = is_new
        self._logs: Numbers | None = None
        self._class_logs = np.zeros(len(self._class_counts))
        # The items that the last sweep visited, and those that the next one must visit.
        self._visited = self._due = np.zeros(0, dtype=np.int64)
        # By how much the log odds of each item may have moved since it was visited, and how much that matters.
        self._drift = np.zeros(len(self._n_by_item))
        self._root_n = np.sqrt(self._n_by_item)
        self._sensitivity = np.zeros(len(self._n_by_item))
        # The entropy of each item's probabilities, or None after a full sweep, until it is needed.
        self._entropies: Numbers | None = None
        self._pair_sums: Numbers | None = None
        with compile_notice("local sweeps"):
            self._compile()

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """See `Sweeper`; after a full sweep, for its class probabilities, this visits nothing."""
        if self._pair_sums is None:
            return self._sweeper.class_variance(probs, effect)
        return pair_variance(self._pair_sums, effect, len(self._counts) // effect.shape[1])

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        if self.visit_all:
            return self._full_sweep(logs, class_logs, probs, fixed)
        self._pair_sums = None
        table, first_logs, values = logs.reshape(self._counts.shape).numpy(), class_logs.numpy(), probs.numpy()
        if self._entropies is None:
            self._entropies = np.empty(len(values))
            _note_probs(values, fixed.numpy(), self._sensitivity, self._entropies)
        if self._logs is None:
            threshold, active = math.inf, np.flatnonzero((self._is_new | self._probe()) & ~fixed.numpy())
        else:
            threshold, active = self._moved_items(table, first_logs)
        active = np.union1d(active, self._due)
        self._visited, self._due = active, self._due[:0]
        change, n_visited, moved = visit_for(values.shape[1])(
            active,
            self._starts,
            self._codes,
            table,
            first_logs,
            values,
            self._counts,
            self._class_counts,
            self._sensitivity,
            self._entropies,
            self._is_new,
        )
        if self._logs is None:
            # Nothing is known of how far the others have moved but how far the visited ones have.
            self._drift += DEVIATIONS * moved * self._root_n
        self._drift[active] = 0.0
        self._logs, self._class_logs = table, first_logs
        self.n_visited += n_visited
        evidence = _evidence(self._counts, table) + float((self._class_counts * first_logs).sum())
        # Items that were not visited may change by as much as the threshold.
        return Sweep(
            torch.from_numpy(self._counts.copy()).reshape(logs.shape),
            torch.from_numpy(self._class_counts.copy()),
            evidence + float(self._entropies.sum()),
            max(change, threshold),
        )

    def visit_again(self) -> None:
        """Let the next sweep visit the items of the last one, whose state is rejected, so that nothing of it stays."""
        self._due = self._visited

    def _full_sweep(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Visit all items, which also removes the rounding errors of corrected counts."""
        swept, self._pair_sums = self._sweeper.with_pair_sums(logs, class_logs, probs, fixed)
        self._counts[:] = swept.counts.reshape(self._counts.shape).numpy()
        self._class_counts[:] = swept.class_counts.numpy()
        self._drift[:] = 0.0
        self._logs, self._class_logs = logs.reshape(self._counts.shape).numpy(), class_logs.numpy()
        self._entropies = None
        return swept

    def _probe(self) -> Numbers:
        """Return a mask of the least certain items that have a small share of the responses together."""
        uncertain = np.flatnonzero(self._sensitivity > MIN_SENSITIVITY)
        order = uncertain[np.argsort(-(self._sensitivity * self._root_n)[uncertain], kind="stable")]
        n_probed = np.searchsorted(np.cumsum(self._n_by_item[order]), PROBED_SHARE * len(self._codes))
        mask = np.zeros(len(self._n_by_item), dtype=bool)
        mask[order[: n_probed + 1]] = True
        return mask

    def _moved_items(self, table: Numbers, class_logs: Numbers) -> tuple[float, Numbers]:
        """Return by how much other items may change, and the items that may change by more."""
        moves, outlier, spread = _code_moves(table, self._logs, self._n_by_code, PUSHED_SHARE * len(self._codes))
        class_moves = class_logs - self._class_logs
        pushed = np.flatnonzero(moves > outlier)
        self.n_visited += _push_moves(pushed, self._by_code.starts, self._by_code.items, moves, self._drift)
        class_move = float(np.abs(class_moves - class_moves[0]).max())
        largest = _raise_drift(self._drift, class_move, DEVIATIONS * spread, self._root_n, self._sensitivity)
        threshold = max(RELATIVE_THRESHOLD * largest, TOLERATED_SHARE * self._tol)
        return threshold, _items_above(threshold, self._drift, self._sensitivity)

    def _compile(self) -> None:
        """Compile the kernels, or load them from disk, by calling them with no items and codes."""
        none, nobody = np.zeros(0, dtype=np.int64), np.zeros((0, len(self._class_counts)))
        counts = nobody.copy(), np.zeros(len(self._class_counts))
        items = np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool)
        visit_for(len(self._class_counts))(none, self._starts, self._codes, nobody, counts[1], nobody, *counts, *items)
        _note_probs(nobody, items[2], *items[:2])
        moves, *_ = _code_moves(nobody, nobody, self._n_by_code[:0], 0.0)
        _push_moves(none, self._by_code.starts, self._by_code.items, moves, items[0])
        _raise_drift(items[0], 0.0, 0.0, items[0], items[1])
        _items_above(0.0, items[0], items[1])
        _evidence(nobody, nobody)


@njit(cache=True, nogil=True, error_model="numpy")
def _gather_by_code(starts: Any, codes: Any, code_starts: Any, items: Any) -> None:
    for response in range(len(codes)):
        code_starts[codes[response] + 1] += 1
    for code in range(1, len(code_starts)):
        code_starts[code] += code_starts[code - 1]
    following = code_starts[:-1].copy()
    for item in range(len(starts) - 1):
        for response in range(starts[item], starts[item + 1]):
            code = codes[response]
            items[following[code]] = item
            following[code] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _note_probs(probs: Any, fixed: Any, sensitivities: Any, entropies: Any) -> None:
    """Note how much each item's probabilities can change, and their entropy."""
    for item in range(len(probs)):
        sensitivity, entropy = 0.0, 0.0
        for j in range(probs.shape[1]):
            prob = probs[item, j]
            sensitivity = max(sensitivity, prob * (1.0 - prob))
            if prob > 0.0:
                entropy -= prob * math.log(prob)
        sensitivities[item] = 0.0 if fixed[item] else sensitivity
        entropies[item] = entropy


@njit(cache=True, nogil=True, error_model="numpy")
def _code_moves(logs: Any, previous: Any, n_by_code: Any, most: float) -> tuple[Any, float, float]:
    """Return by how much log odds have moved for each code, which moves are outliers, and the spread of all others.

    Outliers, the moves above a multiple of the spread, have at most so many responses.
    """
    moves = np.empty(len(logs))
    squares, n_responses = 0.0, 0.0
    for code in range(len(logs)):
        largest, first = 0.0, logs[code, 0] - previous[code, 0]
        for j in range(1, logs.shape[1]):
            largest = max(largest, abs(logs[code, j] - previous[code, j] - first))
        moves[code] = largest
        squares += n_by_code[code] * largest**2
        n_responses += n_by_code[code]
    spread = math.sqrt(squares / max(n_responses, 1.0))
    outlier, fits = spread / 8, False
    while not fits and outlier < np.inf:
        n_outliers, squares = 0.0, 0.0
        for code in range(len(moves)):
            if moves[code] > outlier:
                n_outliers += n_by_code[code]
            else:
                squares += n_by_code[code] * moves[code] ** 2
        fits = n_outliers <= most
        if not fits:
            outlier *= 2.0
    return moves, outlier, math.sqrt(squares / max(n_responses, 1.0))


@njit(cache=True, nogil=True, error_model="numpy")
def _push_moves(pushed: Any, starts: Any, items: Any, moves: Any, drift: Any) -> int:
    """Add the moves of some codes to the drift of the items of their responses; return how many these are."""
    n_visited = 0
    for code in pushed:
        for response in range(starts[code], starts[code + 1]):
            drift[items[response]] += moves[code]
        n_visited += starts[code + 1] - starts[code]
    return n_visited


@njit(cache=True, nogil=True, error_model="numpy")
def _raise_drift(drift: Any, class_move: float, deviation: float, root_n: Any, sensitivity: Any) -> float:
    """Add what all items may have moved to their drift; return by how much the one that matters most may change."""
    largest = 0.0
    for item in range(len(drift)):
        drift[item] += class_move + deviation * root_n[item]
        largest = max(largest, sensitivity[item] * drift[item])
    return largest


@njit(cache=True, nogil=True, error_model="numpy")
def _evidence(counts: Any, logs: Any) -> float:
    """Return the sum of products, in blocks of rows, so that rounding errors stay small."""
    total = 0.0
    for first in range(0, len(counts), ROWS_PER_SUM):
        block = 0.0
        for row in range(first, min(first + ROWS_PER_SUM, len(counts))):
            for j in range(counts.shape[1]):
                block += counts[row, j] * logs[row, j]
        total += block
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _items_above(threshold: float, drift: Any, sensitivity: Any) -> Any:
    """Return the items that may change by more than a threshold."""
    items, n_items = np.empty(len(drift), dtype=np.int64), 0
    for item in range(len(drift)):
        if sensitivity[item] * drift[item] > threshold:
            items[n_items] = item
            n_items += 1
    return items[:n_items].copy()


@cache
def visit_for(n_classes: int) -> Callable[..., tuple[float, int, float]]:
    """Return the compiled visit of some items for a number of classes; see `crowdgraph.kernels.sweep.sweep_for`."""

    @njit(cache=True, nogil=True, error_model="numpy")
    def visit_items(
        active: Any,
        starts: Any,
        codes: Any,
        logs: Any,
        class_logs: Any,
        probs: Any,
        counts: Any,
        class_counts: Any,
        sensitivities: Any,
        entropies: Any,
        is_new: Any,
    ) -> tuple[float, int, float]:
        """Compute the class probabilities of some items, and correct the counts by how they changed.

        Return the largest change, the number of responses visited, and the root mean square by which log odds of old
        items moved for each response.
        """
        weights, differences = np.empty(n_classes), np.empty(n_classes)
        change, n_visited, squares, n_measured = 0.0, 0, 0.0, 0
        for item in active:
            n_responses = starts[item + 1] - starts[item]
            n_visited += n_responses
            for j in range(n_classes):
                weights[j] = class_logs[j]
            for response in range(starts[item], starts[item + 1]):
                row = codes[response]
                for j in range(n_classes):
                    weights[j] += logs[row, j]  # eq:VB_lnqstar_ti
            peak = weights[0]
            for j in range(1, n_classes):
                peak = max(peak, weights[j])
            norm = 0.0
            for j in range(n_classes):
                weights[j] -= peak
                differences[j] = math.exp(weights[j])
                norm += differences[j]
            largest, previously, sensitivity, entropy = 0.0, sensitivities[item], 0.0, math.log(norm)
            for j in range(n_classes):
                prob, previous = differences[j] / norm, probs[item, j]
                sensitivity = max(sensitivity, prob * (1.0 - prob))
                entropy -= prob * weights[j]
                differences[j] = prob - previous
                largest = max(largest, abs(differences[j]))
                probs[item, j] = prob
                class_counts[j] += differences[j]  # eq:classCount
            sensitivities[item], entropies[item] = sensitivity, entropy
            change = max(change, largest)
            if previously > MIN_SENSITIVITY and n_responses > 0 and not is_new[item]:
                squares += (largest / previously) ** 2 / n_responses
                n_measured += 1
            for response in range(starts[item], starts[item + 1]):
                row = codes[response]
                for j in range(n_classes):
                    counts[row, j] += differences[j]  # eq:decisionCount
        return change, n_visited, math.sqrt(squares / max(n_measured, 1))

    return visit_items
