"""What the networks share: the period that counts, which volunteers they link, by which answers, and a bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.clock import Moment
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError, TooFewError
from crowdgraph.messages import Hint, with_article

# The start and the stop of a period; None leaves an end open.
Window: TypeAlias = "tuple[Moment | None, Moment | None]"


class Period(NamedTuple):
    """The responses that count: the graph with these only, and the row of its first response in the whole graph."""

    view: CrowdGraph
    first_row: int


def select_period(graph: CrowdGraph, at: Moment | None, window: Window | None) -> Period:
    """Return the responses up to and including `at`, or those of a window, or all of them.

    The window has the responses from its start up to, but not including, its stop.
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"A network is built from a CrowdGraph; got {with_article(type(graph))}.")
    if window is None:
        if at is None:
            return Period(graph, 0)
        clock, times = graph.responses.clock, graph.responses.time
        return Period(graph.first(clock.count_until(times, at, inclusive=True)), 0)
    if at is not None:
        raise ParameterError(f"at={at!r} and window={window!r} contradict each other; give one of them.")
    start, stop = check_window(window)
    return Period(graph.window(start, stop), 0 if start is None else len(graph.before(start).responses))


def check_window(window: object) -> Window:
    """Return a window as its start and stop; raise unless it is a pair."""
    if isinstance(window, str) or not isinstance(window, Sequence) or len(window) != 2:
        raise ParameterError(
            f"window={window!r} must be a pair (start, stop) of moments, of which None leaves an end open."
        )
    return window[0], window[1]


def experienced_volunteers(graph: CrowdGraph, min_responses: int) -> tuple[Array, Array]:
    """Return the codes of volunteers with enough answers, and how many answers each of them gave."""
    check_integer("min_responses", min_responses, minimum=0)
    n_answers = graph.answers.n_by_volunteer
    codes = np.flatnonzero(n_answers >= min_responses)
    if not len(codes):
        most = int(n_answers.max(initial=0))
        raise TooFewError(
            f"No volunteer has {min_responses:,} answers or more (the most is {most:,}), so there is nobody to link.",
            hint=Hint("Lower min_responses.", cli="Lower --min-responses."),
        )
    return codes, n_answers[codes]


class LastAnswers(NamedTuple):
    """The last answer of each volunteer to each item: the volunteer's position, the item's code, the response's row."""

    volunteer: Array
    item: Array
    row: Array


def last_answers(graph: CrowdGraph, volunteers: Array) -> LastAnswers:
    """Return the last answers of some volunteers (codes), in order of volunteer and item."""
    positions = np.full(len(graph.volunteers), -1)
    positions[volunteers] = np.arange(len(volunteers))
    answers = graph.answers.last
    answers = answers.where(positions[answers.volunteer] >= 0)
    volunteer = positions[answers.volunteer]
    order = np.lexsort((answers.item, volunteer))
    return LastAnswers(volunteer[order], answers.item[order], answers.rows[order])


def bootstrap_counts(items: Array, n_items: int, rng: np.random.Generator) -> Array:
    """Return how often each of all items, (N,), is drawn if the answered items are drawn with replacement."""
    answered = np.unique(items)
    counts = np.zeros(n_items)
    counts[answered] = rng.multinomial(len(answered), np.full(len(answered), 1 / max(len(answered), 1)))
    return counts
