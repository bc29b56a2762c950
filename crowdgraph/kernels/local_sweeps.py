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
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels._runtime import compile_notice
from crowdgraph.kernels.sweep import ItemResponses, Sweep, Sweeper

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


class ResponsesByCode(NamedTuple):
    """The items of the responses of each code: code `c` has ``items[starts[c]:starts[c + 1]]``."""

    starts: Numbers
    items: Numbers


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
        sweeper: Sweeper,
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
        # By how much the log odds of each item may have moved since it was visited, and how much that matters.
        self._drift = np.zeros(len(self._n_by_item))
        self._root_n = np.sqrt(self._n_by_item)
        self._sensitivity = np.zeros(len(self._n_by_item))
        self._entropy = 0.0
        with compile_notice("local sweeps"):
            self._compile()

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """See `Sweeper`; this visits everything."""
        return self._sweeper.class_variance(probs, effect)

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        if self.visit_all:
            return self._full_sweep(logs, class_logs, probs, fixed)
        table, first_logs, values = logs.reshape(self._counts.shape).numpy(), class_logs.numpy(), probs.numpy()
        if self._logs is None:
            self._note_probs(values, fixed.numpy())
            threshold, active = math.inf, np.flatnonzero((self._is_new | self._probe()) & ~fixed.numpy())
        else:
            threshold, active = self._moved_items(table, first_logs)
        change, n_visited, entropy, moved = _visit_items(
            active,
            self._starts,
            self._codes,
            table,
            first_logs,
            values,
            self._counts,
            self._class_counts,
            self._sensitivity,
            self._is_new,
        )
        if self._logs is None:
            # Nothing is known of how far the others have moved but how far the visited ones have.
            self._drift += DEVIATIONS * moved * self._root_n
        self._drift[active] = 0.0
        self._logs, self._class_logs = table, first_logs
        self._entropy += entropy
        self.n_visited += n_visited
        evidence = float((self._counts * table).sum() + (self._class_counts * first_logs).sum()) + self._entropy
        # Items that were not visited may change by as much as the threshold.
        return Sweep(
            torch.from_numpy(self._counts.copy()).reshape(logs.shape),
            torch.from_numpy(self._class_counts.copy()),
            evidence,
            max(change, threshold),
        )

    def _full_sweep(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Visit all items, which also removes the rounding errors of corrected counts."""
        swept = self._sweeper(logs, class_logs, probs, fixed)
        self._counts[:] = swept.counts.reshape(self._counts.shape).numpy()
        self._class_counts[:] = swept.class_counts.numpy()
        self._drift[:] = 0.0
        self._logs, self._class_logs = logs.reshape(self._counts.shape).numpy(), class_logs.numpy()
        self._note_probs(probs.numpy(), fixed.numpy())
        return swept

    def _note_probs(self, probs: Numbers, fixed: Numbers) -> None:
        """Remember how much each item's probabilities can change, and their entropy."""
        self._sensitivity[:] = np.where(fixed, 0.0, (probs * (1 - probs)).max(axis=1))
        self._entropy = -float((probs * np.log(np.where(probs > 0, probs, 1.0))).sum())

    def _probe(self) -> Numbers:
        """Return a mask of the least certain items that have a small share of the responses together."""
        order = np.argsort(-self._sensitivity * self._root_n, kind="stable")
        n_probed = np.searchsorted(np.cumsum(self._n_by_item[order]), PROBED_SHARE * len(self._codes))
        mask = np.zeros(len(order), dtype=bool)
        mask[order[: n_probed + 1]] = True
        return mask

    def _moved_items(self, table: Numbers, class_logs: Numbers) -> tuple[float, Numbers]:
        """Return by how much other items may change, and the items that may change by more."""
        moves, outlier, spread = _code_moves(table, self._logs, self._n_by_code, PUSHED_SHARE * len(self._codes))
        class_moves = class_logs - self._class_logs
        self._drift += np.abs(class_moves - class_moves[0]).max() + DEVIATIONS * spread * self._root_n
        pushed = np.flatnonzero(moves > outlier)
        self.n_visited += _push_moves(pushed, self._by_code.starts, self._by_code.items, moves, self._drift)
        score = self._sensitivity * self._drift
        threshold = max(RELATIVE_THRESHOLD * float(score.max(initial=0.0)), TOLERATED_SHARE * self._tol)
        return threshold, np.flatnonzero(score > threshold)

    def _compile(self) -> None:
        """Compile the kernels, or load them from disk, by calling them with no items and codes."""
        none, nobody = np.zeros(0, dtype=np.int64), np.zeros((0, len(self._class_counts)))
        counts = nobody.copy(), np.zeros(len(self._class_counts))
        items = np.zeros(0), np.zeros(0, dtype=bool)
        _visit_items(none, self._starts, self._codes, nobody, counts[1], nobody, *counts, *items)
        moves, *_ = _code_moves(nobody, nobody, self._n_by_code[:0], 0.0)
        _push_moves(none, self._by_code.starts, self._by_code.items, moves, items[0])


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
def _visit_items(
    active: Any,
    starts: Any,
    codes: Any,
    logs: Any,
    class_logs: Any,
    probs: Any,
    counts: Any,
    class_counts: Any,
    sensitivities: Any,
    is_new: Any,
) -> tuple[float, int, float, float]:
    """Compute the class probabilities of some items, and correct the counts by how they changed.

    Return the largest change, the number of responses visited, the change of the entropy, and the root mean square by
    which log odds of old items moved for each response.
    """
    n_classes = probs.shape[1]
    weights = np.empty(n_classes)
    change, n_visited, entropy, squares, n_measured = 0.0, 0, 0.0, 0.0, 0
    for item in active:
        n_responses = starts[item + 1] - starts[item]
        n_visited += n_responses
        for j in range(n_classes):
            weights[j] = class_logs[j]
        for response in range(starts[item], starts[item + 1]):
            for j in range(n_classes):
                weights[j] += logs[codes[response], j]  # eq:VB_lnqstar_ti
        peak = weights.max()
        norm = 0.0
        for j in range(n_classes):
            weights[j] = math.exp(weights[j] - peak)
            norm += weights[j]
        largest, previously, sensitivity = 0.0, sensitivities[item], 0.0
        for j in range(n_classes):
            prob, previous = weights[j] / norm, probs[item, j]
            sensitivity = max(sensitivity, prob * (1.0 - prob))
            if previous > 0.0:
                entropy += previous * math.log(previous)
            if prob > 0.0:
                entropy -= prob * math.log(prob)
            weights[j] = prob - previous
            largest = max(largest, abs(weights[j]))
            probs[item, j] = prob
            class_counts[j] += weights[j]  # eq:classCount
        sensitivities[item] = sensitivity
        change = max(change, largest)
        if previously > MIN_SENSITIVITY and n_responses > 0 and not is_new[item]:
            squares += (largest / previously) ** 2 / n_responses
            n_measured += 1
        for response in range(starts[item], starts[item + 1]):
            for j in range(n_classes):
                counts[codes[response], j] += weights[j]  # eq:decisionCount
    return change, n_visited, entropy, math.sqrt(squares / max(n_measured, 1))
