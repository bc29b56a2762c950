"""Where a volunteer's confusion moved beyond what its uncertainty explains."""

from __future__ import annotations

from collections.abc import Hashable
from math import sqrt
from operator import attrgetter
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.core.confusion import ConfusionHistory

__all__ = ["ConfusionChange", "confusion_changes", "entry_changes"]

# The share of a move that is left to its flat ends on either side.
FLAT = 0.05
# Smaller moves are rounding.
ROUNDING = 1e-9


class ConfusionChange(NamedTuple):
    """One move of one row of a confusion matrix, as `ConfusionHistory.changes` finds them.

    Attributes
    ----------
    true_class
        The row: the class of the items that were answered differently.
    label
        The label whose probability moved most, relative to its uncertainty.
    start, stop
        The times between which it moved, less flat ends.
    time
        When half of the move was done.
    before, after
        The row's mean at `start` and at `stop`, each of shape (L,).
    size
        By how much the probability of `label` rose (or fell, if negative) from `start` to `stop`.
    """

    true_class: Hashable
    label: Hashable
    start: Any
    stop: Any
    time: Any
    before: Array
    after: Array
    size: float


class EntryChange(NamedTuple):
    """A move of one entry between two steps: when half of it was done, how far it went, also beyond its uncertainty."""

    row: int
    column: int
    start: int
    stop: int
    half: int
    size: float
    strength: float


def confusion_changes(history: ConfusionHistory, *, level: float, min_size: float) -> tuple[ConfusionChange, ...]:
    """The changes of a history, sorted by time; see `ConfusionHistory.changes`."""
    legs, mean = entry_changes(history, level=level, min_size=min_size), history.mean
    times = history.clock.to_python(history.times[[step for leg in legs for step in (leg.start, leg.stop, leg.half)]])
    return tuple(
        ConfusionChange(
            true_class=history.classes[leg.row],
            label=history.labels[leg.column],
            start=start,
            stop=stop,
            time=time,
            before=mean[leg.start, leg.row],
            after=mean[leg.stop, leg.row],
            size=leg.size,
        )
        for leg, start, stop, time in zip(legs, times[::3], times[1::3], times[2::3], strict=True)
    )


def entry_changes(history: ConfusionHistory, *, level: float, min_size: float) -> list[EntryChange]:
    """The moves of a history as codes and steps, sorted by time."""
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} must lie between 0 and 1, such as 0.95.")
    if not 0 <= min_size <= 1:
        raise ParameterError(f"min_size={min_size!r} must be a difference of probabilities, from 0 to 1, such as 0.1.")
    if history.inference == "filtered":
        raise ParameterError(
            f"The history of {history.volunteer!r} is filtered: what is learned of a volunteer looks like a change of "
            "theirs. Fit with inference='smoothed'."
        )
    mean = history.mean
    total = history.concentration.sum(axis=-1, keepdims=True)
    variance = mean * (1 - mean) / (total + 1)
    quantiles = [_quantile(level, row, len(history.classes)) for row in total[..., 0].T]
    doubt = variance * np.array(quantiles)[:, None] ** 2
    legs: list[EntryChange] = []
    for row in range(len(history.classes)):
        found = [
            leg
            for column in range(len(history.labels))
            for leg in _legs(
                mean[:, row, column], variance[:, row, column], doubt[:, row, column], row, column, min_size
            )
        ]
        legs += _apart(found, len(history))
    return sorted(legs, key=attrgetter("half"))


def _quantile(level: float, total: Array, n_classes: int) -> float:
    """The normal quantile of a level for the whole history of a row whose states rest on so many answers each.

    What rests on n answers is another state after n more of them. A row hears the answers to items of its class, one in
    so many as there are classes, so the sum of 1 / n over these counts the states, and any two of them may seem to
    differ.
    """
    n_pairs = max(1.0, float((1 / total).sum() / n_classes) ** 2)
    # The lower tail keeps its digits where it is tiny.
    return NormalDist().inv_cdf((1 - level) / (2 * n_pairs))


def _legs(mean: Array, variance: Array, doubt: Array, row: int, column: int, min_size: float) -> list[EntryChange]:
    """The moves of one entry, without their flat ends."""
    legs = []
    for start, stop in _turns(mean.tolist(), doubt.tolist(), least=max(min_size, ROUNDING)):
        move = mean[stop] - mean[start]
        done = (mean[start : stop + 1] - mean[start]) / move
        early, late = np.flatnonzero(done <= FLAT + ROUNDING), np.flatnonzero(done >= 1 - FLAT - ROUNDING)
        # An entry that wavers between its ends moved from before the first to after the last time it did.
        first, last = early[early < late[0]][-1], late[late > early[-1]][0]
        half = first + np.argmax(done[first:] >= 0.5 - ROUNDING)
        size = float(mean[start + last] - mean[start + first])
        if abs(size) >= min_size:
            strength = float(abs(move) / sqrt(max(variance[start] + variance[stop], np.finfo(float).tiny)))
            steps = (int(start + first), int(start + last), int(start + half))
            legs.append(EntryChange(row, column, *steps, size, strength))
    return legs


def _turns(mean: list[float], doubt: list[float], *, least: float) -> list[tuple[int, int]]:
    """The steps between which an entry rises or falls by more than its doubt; each leg begins where the last ended.

    A leg goes on to its extreme, and ends there once a move back from it is beyond doubt. Steps are in doubt to
    different degrees, and the most extreme one may be the most doubtful, such as the first of a filtered history; so a
    leg may also begin at the step that is extreme beyond doubt. Of steps equally in doubt the most extreme one decides.
    """

    def origin(candidates: tuple[int, int], step: int, sign: int) -> int | None:
        for candidate in candidates:
            move = sign * (mean[step] - mean[candidate])
            if move >= least and move * move > doubt[candidate] + doubt[step]:
                return candidate
        return None

    legs: list[tuple[int, int]] = []
    margin = [sqrt(value) for value in doubt]
    low = high = sure_low = sure_high = begin = heading = 0
    for step in range(1, len(mean)):
        if heading <= 0 and (turn := origin((low, sure_low), step, 1)) is not None:
            legs += [(begin, turn)] if heading else []
            begin, heading, high, sure_high = turn, 1, step, step
        elif heading >= 0 and (turn := origin((high, sure_high), step, -1)) is not None:
            legs += [(begin, turn)] if heading else []
            begin, heading, low, sure_low = turn, -1, step, step
        else:
            low = step if mean[step] < mean[low] else low
            high = step if mean[step] > mean[high] else high
            sure_low = step if mean[step] + margin[step] < mean[sure_low] + margin[sure_low] else sure_low
            sure_high = step if mean[step] - margin[step] > mean[sure_high] - margin[sure_high] else sure_high
    return [*legs, (begin, high if heading > 0 else low)] if heading else legs


def _apart(legs: list[EntryChange], n_steps: int) -> list[EntryChange]:
    """Of legs that overlap in time only the strongest: labels of one row move together.

    Two labels mirror each other and are equally strong but for rounding; the last of them is kept.
    """
    kept: list[EntryChange] = []
    # Marks where a kept leg goes from a step to the next; legs that meet in a step do not overlap.
    taken = np.zeros(n_steps, dtype=bool)
    for leg in sorted(legs, key=lambda leg: (round(leg.strength, 6), leg.column), reverse=True):
        if not taken[leg.start : leg.stop].any():
            taken[leg.start : leg.stop] = True
            kept.append(leg)
    return kept
