"""A queue of items: they arrive over time, and whoever comes next gets the oldest one that still lacks answers.

Nothing is planted here. Volunteers who are there at the same time answer the same items, so that communities of
volunteers who share items arise from who was there when, as the paper suggests for Galaxy Zoo Supernovae.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer, check_number
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import argument

__all__ = ["Queue", "QueueName", "check_queue", "draw_visits", "serve"]

QueueName = Literal["oldest"]

# How much volunteers differ in how soon they return: the standard deviation of the logarithm of their median gap.
SPREAD_OF_GAPS = 0.7
# The mean number of seconds from one answer to the next within a session.
SECONDS_PER_ANSWER = 30.0
# How far, in days, sessions start from the volunteer's usual time of day, as a standard deviation.
SPREAD_OF_HOURS = 0.08
# The usual time of day of most volunteers, in days since midnight, and how much volunteers differ in it.
USUAL_HOUR, SPREAD_OF_USUAL_HOURS = 0.8, 0.15


@dataclass(frozen=True, kw_only=True, eq=False)
class Queue:
    """How items are handed out: the oldest that still lacks answers goes to whoever comes next.

    Parameters
    ----------
    answers
        How many answers an item needs before it is finished; if left out, the least number with which the queue holds
        all answers. Items get more where somebody has seen all that lack answers: they are given the newest of the
        others that they have not seen.
    arrivals
        When each item arrives, as shares of the project's duration in rising order; if left out, the next one arrives
        whenever somebody has seen all that lack answers. Who has seen all that have arrived waits for the next.
    rejection
        The probability that a volunteer rejects an item: a response without a label, which the item does not count as
        an answer.
    session
        How many responses a volunteer gives in a session, on average.
    gap
        After how many days a volunteer returns for another session, as a median; some return sooner than others.
    gap_tail
        The exponent of the Pareto distributed gaps between sessions: the smaller, the more often somebody returns after
        a long time.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> queue = cg.simulate.Queue(answers=12, rejection=0.1)
    >>> graph, truth = cg.simulate.crowd(n_volunteers=50, n_items=200, n_responses=2000, queue=queue, seed=1)
    >>> len(graph.responses), len(graph.answers), int(graph.items.n_responses.max())
    (2000, 1804, 17)
    """

    answers: int | None = None
    arrivals: ArrayLike | None = None
    rejection: float = 0.0
    session: float = 12.0
    gap: float = 1.0
    gap_tail: float = 1.5

    def __post_init__(self) -> None:
        if self.answers is not None:
            check_integer("answers", self.answers)
        check_number(
            "rejection",
            self.rejection,
            valid=lambda value: 0 <= value < 1,
            expected="be a share from 0 to below 1; where everything is rejected nobody answers",
        )
        check_number("session", self.session, valid=lambda value: 1 <= value < np.inf, expected="be at least 1")
        check_number("gap", self.gap, valid=lambda value: 0 < value < np.inf, expected="be a positive number of days")
        check_number(
            "gap_tail", self.gap_tail, valid=lambda value: 0 < value < np.inf, expected="be positive and finite"
        )
        if self.arrivals is not None:
            object.__setattr__(self, "arrivals", _check_arrivals(self.arrivals))


def _check_arrivals(arrivals: ArrayLike) -> Array:
    try:
        times = np.array(arrivals, dtype=float)
    except (TypeError, ValueError):
        times = np.array(np.nan)
    if times.ndim != 1 or not len(times):
        raise ParameterError("arrivals must be a list of numbers, one for each item.")
    outside = ~((times >= 0) & (times < 1))
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise ParameterError(
            f"arrivals must be shares of the project's duration from 0 to below 1; that of item {first:,} is "
            f"{times[first]:g}, outside the time span."
        )
    if (np.diff(times) < 0).any():
        raise ParameterError("arrivals must be in rising order, since items are numbered as they arrive; sort them.")
    times.flags.writeable = False
    return times


def check_queue(queue: QueueName | Queue | None, n_items: int, others: dict[str, bool]) -> Queue | None:
    """Return the queue, which must suit the number of items; `others` says which options it contradicts are in use."""
    if queue is None:
        return None
    if isinstance(queue, str):
        check_choice("queue", queue, ("oldest",))
        queue = Queue()
    if not isinstance(queue, Queue):
        raise ParameterError(f"queue={queue!r} must be 'oldest' or a crowdgraph.simulate.Queue.")
    for name, is_used in others.items():
        if is_used:
            raise ParameterError(
                f"{name} does not go with queue=, which decides by itself who answers which item; leave one out."
            )
    if queue.arrivals is not None and len(np.asarray(queue.arrivals)) != n_items:
        raise ParameterError(
            f"arrivals has {len(np.asarray(queue.arrivals)):,} times for {n_items:,} items; give one for each."
        )
    return queue


def draw_visits(
    queue: Queue, counts: Array, arrives: Array, *, days: float, stays_long: bool, rng: np.random.Generator
) -> Array:
    """Draw when each response is given, as a share of the project's duration, volunteer by volunteer in rising order.

    Volunteers come in sessions, at their own time of day, and return after gaps that differ from one to the next. Those
    with many sessions stay longer, and arrive early enough for that if the project lasts that long.
    """
    volunteer = np.repeat(np.arange(len(counts)), counts)
    is_first = np.diff(volunteer, prepend=-1) != 0
    returns = (rng.random(len(volunteer)) < 1 / queue.session) & ~is_first
    session = np.cumsum(is_first | returns) - 1
    since_arrival = _running_sums(np.where(returns, _draw_gaps(queue, volunteer, days, rng), 0.0), volunteer)
    span = np.zeros(len(counts))
    np.maximum.at(span, volunteer, since_arrival)
    left = days * (1 - arrives)
    stretch = left / np.maximum(span, 1e-12)
    stretch = stretch if stays_long else np.minimum(stretch, 1)
    arrival = days * arrives + rng.random(len(counts)) * np.maximum(left - span * stretch, 0)
    start = arrival[volunteer] + since_arrival * stretch[volunteer]
    if days > 2:
        start = _at_usual_hours(start, volunteer, session, rng)
    seconds = _running_sums(rng.exponential(SECONDS_PER_ANSWER, len(volunteer)), session)
    moment = _within(start + seconds / 86_400, (days * arrives)[volunteer], days)
    return np.asarray(moment[np.lexsort((moment, volunteer))]) / days


def _draw_gaps(queue: Queue, volunteer: Array, days: float, rng: np.random.Generator) -> Array:
    """Draw a gap between sessions for each response, in days, at most half of the project."""
    n_volunteers = int(volunteer.max(initial=-1)) + 1
    median = queue.gap * np.exp(SPREAD_OF_GAPS * rng.standard_normal(n_volunteers))
    pareto = rng.random(len(volunteer)) ** (-1 / queue.gap_tail) - 1
    gaps: Array = median[volunteer] * pareto / (2 ** (1 / queue.gap_tail) - 1)
    return np.minimum(gaps, days / 2)


def _running_sums(values: Array, block: Array) -> Array:
    """Return the sums of the values of each block, up to and with each of them; blocks follow each other."""
    total = np.cumsum(values)
    is_first = np.diff(block, prepend=-1) != 0
    before = (total - values)[is_first]
    return np.asarray(total - before[np.cumsum(is_first) - 1])


def _at_usual_hours(start: Array, volunteer: Array, session: Array, rng: np.random.Generator) -> Array:
    """Return when sessions start if each moves, within its day, to near the volunteer's usual time of day."""
    n_volunteers, n_sessions = int(volunteer.max(initial=-1)) + 1, int(session.max(initial=-1)) + 1
    usual = (USUAL_HOUR + SPREAD_OF_USUAL_HOURS * rng.standard_normal(n_volunteers)) % 1
    hour = usual[volunteer] + (SPREAD_OF_HOURS * rng.standard_normal(n_sessions))[session]
    return np.asarray(np.floor(start) + hour)


def _within(moment: Array, earliest: Array, latest: float) -> Array:
    """Return the moments, mirrored at the ends of the time in which they may lie."""
    mirrored = np.where(moment < earliest, 2 * earliest - moment, moment)
    mirrored = np.where(mirrored >= latest, 2 * latest - mirrored, mirrored)
    return np.clip(mirrored, earliest, np.nextafter(latest, 0))


def serve(
    queue: Queue, volunteer: Array, moments: Array, n_items: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return the item of each response, whether it was rejected, and when it is given: later if somebody must wait."""
    rejected = rng.random(len(volunteer)) < queue.rejection
    n_answers = int(np.count_nonzero(~rejected))
    answers = max(-(-n_answers // n_items), 1) if queue.answers is None else queue.answers
    if n_answers > n_items * answers:
        raise ParameterError(
            argument("n_responses", len(volunteer))
            + f" is more than the queue can hold: {n_items:,} items that need {answers:,} answers each take "
            f"{n_items * answers:,}; ask for fewer responses, or raise answers."
        )
    arrivals = np.zeros(n_items) if queue.arrivals is None else np.asarray(queue.arrivals)
    items, times = _serve_in_turn(
        volunteer.tolist(), rejected.tolist(), moments.tolist(), arrivals.tolist(), [answers] * n_items
    )
    return np.array(items, dtype=np.int64), rejected, np.array(times, dtype=float)


def _serve_in_turn(
    volunteers: list[int], rejected: list[bool], moments: list[float], arrivals: list[float], lacking: list[int]
) -> tuple[list[int], list[float]]:
    """Return the item and the time of each response; `lacking` counts the answers that each item still lacks.

    Volunteers meet items in the order of arrival: whoever was given an item has seen all before it that still lack
    answers. So the next item for a volunteer is the first one behind the last that lacks answers. Who has seen all of
    these gets the newest finished item, and who has seen everything waits for the next that arrives.
    """
    unfinished = list(range(len(lacking) + 1))  # chains of pointers that end at the first unfinished item from here on
    last = [-1] * (max(volunteers, default=-1) + 1)
    seen: list[set[int]] = [set() for _ in last]
    # Volunteers have seen all items of a stretch, so that the search for a finished one passes over it.
    stretch = [(0, 0)] * len(last)
    items, times = [-1] * len(volunteers), list(moments)
    n_served = arrived = 0
    # Those who wait come back at the moment of an arrival, in the order of their responses.
    waiting = sorted((moment, response) for response, moment in enumerate(moments))
    while waiting:
        moment, response = heappop(waiting)
        who = volunteers[response]
        while arrived < len(arrivals) and arrivals[arrived] <= moment:
            arrived += 1
        item = _first_unfinished(unfinished, last[who] + 1)
        if item < arrived:
            last[who] = item
        else:
            first, end = stretch[who]
            newest_first = chain(range(arrived - 1, end - 1, -1), range(first - 1, -1, -1))
            item = next((number for number in newest_first if number not in seen[who]), -1)
            stretch[who] = (item, arrived)
        if item < 0 and arrived < len(arrivals):
            heappush(waiting, (arrivals[arrived], response))
            continue
        if item < 0:
            raise ParameterError(
                f"The queue runs dry: after {n_served:,} of {len(volunteers):,} responses, somebody comes who has seen "
                f"all {arrived:,} items; ask for fewer responses of each volunteer, or for more items."
            )
        seen[who].add(item)
        items[response], times[response] = item, moment
        n_served += 1
        lacking[item] -= not rejected[response]
        if lacking[item] == 0:
            unfinished[item] = item + 1
    return items, times


def _first_unfinished(unfinished: list[int], item: int) -> int:
    """Return the first unfinished item from one on, and shorten the way to it for those who come later."""
    while unfinished[item] != item:
        unfinished[item] = unfinished[unfinished[item]]
        item = unfinished[item]
    return item
