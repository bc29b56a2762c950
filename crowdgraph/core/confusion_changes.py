"""Changes of a volunteer's confusion that exceed its uncertainty."""

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

__all__ = ["ConfusionChange"]

# The share of a change that is attributed to its flat ends, on either side.
FLAT_SHARE = 0.05
# Smaller differences are rounding errors.
ROUNDING = 1e-9


class ConfusionChange(NamedTuple):
    """One change of one row of a confusion matrix, as returned by `ConfusionHistory.changes`.

    Attributes
    ----------
    true_class
        The row: the class of the items that were answered differently.
    label
        The label whose probability changed most, relative to its uncertainty.
    start, stop
        The times between which it changed, without flat ends.
    time
        When half of the change was done.
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
    """A change of one entry between two steps.

    `half` is the step at which half of it was done, `strength` its size relative to its uncertainty.
    """

    row: int
    column: int
    start: int
    stop: int
    half: int
    size: float
    strength: float


def confusion_changes(history: ConfusionHistory, *, level: float, min_size: float) -> tuple[ConfusionChange, ...]:
    """Return the changes of a history in order of time; see `ConfusionHistory.changes`."""
    entries, mean = entry_changes(history, level=level, min_size=min_size), history.mean
    steps = [step for entry in entries for step in (entry.start, entry.stop, entry.half)]
    times = history.clock.to_python(history.times[steps])
    return tuple(
        ConfusionChange(
            true_class=history.classes[entry.row],
            label=history.labels[entry.column],
            start=start,
            stop=stop,
            time=time,
            before=mean[entry.start, entry.row],
            after=mean[entry.stop, entry.row],
            size=entry.size,
        )
        for entry, start, stop, time in zip(entries, times[::3], times[1::3], times[2::3], strict=True)
    )


def entry_changes(history: ConfusionHistory, *, level: float, min_size: float) -> list[EntryChange]:
    """Return the changes of a history as codes and steps, in order of time."""
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} must lie between 0 and 1, such as 0.95.")
    if not 0 <= min_size <= 1:
        raise ParameterError(f"min_size={min_size!r} must be a difference of probabilities, from 0 to 1, such as 0.1.")
    if history.inference == "filtered":
        raise ParameterError(
            f"The history of {history.volunteer!r} is filtered, so learning about a volunteer looks like a change of "
            "the volunteer. Fit with inference='smoothed'."
        )
    mean = history.mean
    total = history.concentration.sum(axis=-1, keepdims=True)
    variance = mean * (1 - mean) / (total + 1)
    quantiles = [_quantile(level, row, len(history.classes)) for row in total[..., 0].T]
    squared_margin = variance * np.array(quantiles)[:, None] ** 2
    changes: list[EntryChange] = []
    for row in range(len(history.classes)):
        candidates = [
            change
            for column in range(len(history.labels))
            for change in _changes_of_entry(
                mean[:, row, column], variance[:, row, column], squared_margin[:, row, column], row, column, min_size
            )
        ]
        changes += _strongest_without_overlap(candidates, len(history))
    return sorted(changes, key=attrgetter("half"))


def _quantile(level: float, total: Array, n_classes: int) -> float:
    """Return the normal quantile of a level, corrected for the number of comparisons in a row's history.

    A state that rests on n answers is replaced by an independent one after n more answers. A row receives the answers
    to items of its class, one in `n_classes`, so the sum of 1 / n over these counts the independent states. Any two of
    them may seem to differ, hence the square.
    """
    n_pairs = max(1.0, float((1 / total).sum() / n_classes) ** 2)
    # The lower tail keeps its digits where it is tiny.
    return NormalDist().inv_cdf((1 - level) / (2 * n_pairs))


def _changes_of_entry(
    mean: Array, variance: Array, squared_margin: Array, row: int, column: int, min_size: float
) -> list[EntryChange]:
    """Return the changes of one entry, without their flat ends."""
    changes = []
    for start, stop in _monotone_stretches(mean.tolist(), squared_margin.tolist(), least=max(min_size, ROUNDING)):
        difference = mean[stop] - mean[start]
        done = (mean[start : stop + 1] - mean[start]) / difference
        early = np.flatnonzero(done <= FLAT_SHARE + ROUNDING)
        late = np.flatnonzero(done >= 1 - FLAT_SHARE - ROUNDING)
        # An entry that wavers between its ends changed from before the first to after the last time it did.
        first, last = early[early < late[0]][-1], late[late > early[-1]][0]
        half = first + np.argmax(done[first:] >= 0.5 - ROUNDING)
        size = float(mean[start + last] - mean[start + first])
        if abs(size) >= min_size:
            strength = float(abs(difference) / sqrt(max(variance[start] + variance[stop], np.finfo(float).tiny)))
            steps = (int(start + first), int(start + last), int(start + half))
            changes.append(EntryChange(row, column, *steps, size, strength))
    return changes


def _monotone_stretches(mean: list[float], squared_margin: list[float], *, least: float) -> list[tuple[int, int]]:
    """Return the steps between which an entry rises or falls by more than its margin of error.

    A stretch begins where the one before ended, goes on to its extreme, and ends there once the entry moves back from
    it by more than the margin. Margins differ between steps, and the most extreme step may be the most uncertain one,
    such as the first of a filtered history; so a stretch may also begin at the step that is extreme beyond its margin.
    Of steps with equal margins the most extreme one decides.
    """

    def turning_point(candidates: tuple[int, int], step: int, sign: int) -> int | None:
        for candidate in candidates:
            difference = sign * (mean[step] - mean[candidate])
            if difference >= least and difference * difference > squared_margin[candidate] + squared_margin[step]:
                return candidate
        return None

    stretches: list[tuple[int, int]] = []
    margin = [sqrt(value) for value in squared_margin]
    low = high = sure_low = sure_high = begin = heading = 0
    for step in range(1, len(mean)):
        if heading <= 0 and (turn := turning_point((low, sure_low), step, 1)) is not None:
            stretches += [(begin, turn)] if heading else []
            begin, heading, high, sure_high = turn, 1, step, step
        elif heading >= 0 and (turn := turning_point((high, sure_high), step, -1)) is not None:
            stretches += [(begin, turn)] if heading else []
            begin, heading, low, sure_low = turn, -1, step, step
        else:
            low = step if mean[step] < mean[low] else low
            high = step if mean[step] > mean[high] else high
            sure_low = step if mean[step] + margin[step] < mean[sure_low] + margin[sure_low] else sure_low
            sure_high = step if mean[step] - margin[step] > mean[sure_high] - margin[sure_high] else sure_high
    return [*stretches, (begin, high if heading > 0 else low)] if heading else stretches


def _strongest_without_overlap(changes: list[EntryChange], n_steps: int) -> list[EntryChange]:
    """Return the strongest of changes that overlap in time, since the labels of one row change together.

    Two labels mirror each other and are equally strong but for rounding; the last of them is returned.
    """
    selected: list[EntryChange] = []
    # Marks the transitions from one step to the next that a selected change covers: changes may share an end.
    occupied = np.zeros(n_steps, dtype=bool)
    for change in sorted(changes, key=lambda change: (round(change.strength, 6), change.column), reverse=True):
        if not occupied[change.start : change.stop].any():
            occupied[change.start : change.stop] = True
            selected.append(change)
    return selected
