"""Sweeps for an update: they visit only items whose class probabilities can still change noticeably.

After few new responses most of a fit is as it was. A `LocalSweep` is a `crowdgraph.kernels.sweep.Sweeper`, so the maps
of IBCC and of Dawid and Skene run on it unchanged, but it remembers the expected counts and corrects them by what the
items that it visits add. An item that is not visited keeps its probabilities, which is a step of coordinate ascent with
fewer coordinates: the lower bound still never falls.

How much an unvisited item would change is estimated. Its log odds are a sum over its responses of expected logarithms;
these have moved by known amounts since the item was visited. Where some volunteers moved much more than all others,
theirs are added response by response; the others count by their root mean square. A log odds that moves by `d` changes a
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

__all__ = ["LocalSweep", "ResponsesByCode", "CountedSweep"]

Numbers = NDArray[Any]

# Visits of the items that matter most go first: those that may change by more than this share of the largest change.
RELATIVE_THRESHOLD = 0.03
# An item that may change by less than this share of the tolerance is left as it is.
TOLERATED_SHARE = 0.3
# Sums of signed movements rarely exceed this many standard deviations.
DEVIATIONS = 3.0
# Movements of single volunteers are added response by response for at most this share of the responses.
PUSHED_SHARE = 0.02
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
        # By how much the log odds of each item may have moved since it was visited.
        self._drift = np.zeros(len(self._n_by_item))
        with compile_notice("local sweeps"):
            _visit_items(
                np.zeros(0, dtype=np.int64),
                self._starts,
                self._codes,
                self._counts,
                self._class_counts,
                np.zeros((0, len(self._class_counts))),
                self._counts,
                self._class_counts,
                np.zeros(0, dtype=bool),
            )

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        if self.visit_all:
            return self._full_sweep(logs, class_logs, probs, fixed)
        shape = logs.shape
        table, first_logs, is_fixed = logs.reshape(-1, shape[-1]).numpy(), class_logs.numpy(), fixed.numpy()
        values = probs.numpy()
        sensitivity = np.where(is_fixed, 0.0, (values * (1 - values)).max(axis=1))
        threshold = 0.0
        is_first = self._logs is None
        if is_first:
            active = np.flatnonzero((self._is_new | self._probe(sensitivity)) & ~is_fixed)
        else:
            self._add_drift(table, first_logs)
            score = sensitivity * self._drift
            threshold = max(RELATIVE_THRESHOLD * float(score.max(initial=0.0)), TOLERATED_SHARE * self._tol)
            active = np.flatnonzero(score > threshold)
        change, n_visited, moved = _visit_items(
            active,
            self._starts,
            self._codes,
            table,
            first_logs,
            values,
            self._counts,
            self._class_counts,
            self._is_new,
        )
        if is_first:
            # Nothing is known of how far the others have moved but how far the visited ones have.
            self._drift += DEVIATIONS * np.sqrt(self._n_by_item) * moved
            self._is_new = np.zeros_like(self._is_new)
            threshold = math.inf
        self._drift[active] = 0.0
        self._logs, self._class_logs = table.copy(), first_logs.copy()
        self.n_visited += n_visited
        entropy = -_sum_of_logs(values)
        evidence = float((self._counts * table).sum() + (self._class_counts * first_logs).sum()) + entropy
        # Items that were not visited may change by as much as the threshold.
        return Sweep(
            torch.from_numpy(self._counts.copy()).reshape(shape),
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
        self._logs, self._class_logs = logs.reshape(self._counts.shape).numpy().copy(), class_logs.numpy().copy()
        return swept

    def _probe(self, sensitivity: Numbers) -> Numbers:
        """Return a mask of the least certain items that have a small share of the responses together."""
        order = np.argsort(-sensitivity * np.sqrt(self._n_by_item), kind="stable")
        n_probed = np.searchsorted(np.cumsum(self._n_by_item[order]), PROBED_SHARE * len(self._codes))
        mask = np.zeros(len(order), dtype=bool)
        mask[order[: n_probed + 1]] = True
        return mask

    def _add_drift(self, table: Numbers, class_logs: Numbers) -> None:
        """Add to the items' drift by how much the logarithms have moved since the last sweep."""
        moves = table - self._logs
        moves = np.abs(moves - moves[:, :1]).max(axis=1)
        class_moves = class_logs - self._class_logs
        order = np.argsort(-moves, kind="stable")
        n_pushed = np.searchsorted(np.cumsum(self._n_by_code[order]), PUSHED_SHARE * len(self._codes), side="right")
        pushed, others = order[:n_pushed], order[n_pushed:]
        pushed = pushed[moves[pushed] > 0]
        spread = math.sqrt(float((self._n_by_code[others] * moves[others] ** 2).sum()) / max(len(self._codes), 1))
        self._drift += DEVIATIONS * spread * np.sqrt(self._n_by_item) + np.abs(class_moves - class_moves[0]).max()
        self.n_visited += _push_moves(pushed, self._by_code.starts, self._by_code.items, moves, self._drift)


def _sum_of_logs(probs: Numbers) -> float:
    """Return the sum of q ln q."""
    return float((probs * np.log(np.where(probs > 0, probs, 1.0))).sum())


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
    is_new: Any,
) -> tuple[float, int, float]:
    """Compute the class probabilities of some items, and correct the counts by how they changed.

    Return the largest change, the number of responses visited, and the root mean square by which log odds of old items
    moved for each response.
    """
    n_classes = probs.shape[1]
    weights = np.empty(n_classes)
    change, n_visited, squares, n_measured = 0.0, 0, 0.0, 0
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
        largest, sensitivity = 0.0, 0.0
        for j in range(n_classes):
            prob, previous = weights[j] / norm, probs[item, j]
            sensitivity = max(sensitivity, previous * (1.0 - previous))
            weights[j] = prob - previous
            largest = max(largest, abs(weights[j]))
            probs[item, j] = prob
            class_counts[j] += weights[j]  # eq:classCount
        change = max(change, largest)
        if sensitivity > MIN_SENSITIVITY and n_responses > 0 and not is_new[item]:
            squares += (largest / sensitivity) ** 2 / n_responses
            n_measured += 1
        for response in range(starts[item], starts[item + 1]):
            for j in range(n_classes):
                counts[codes[response], j] += weights[j]  # eq:decisionCount
    return change, n_visited, math.sqrt(squares / max(n_measured, 1))
