"""What the networks share: which volunteers they link, by which answers, and how they bootstrap items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.clock import Moment
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError, TooFewError
from crowdgraph.messages import Hint, with_article


def experienced_volunteers(graph: CrowdGraph, min_responses: int, at: Moment | None = None) -> tuple[Array, Array]:
    """Return the codes of volunteers with enough answers until a moment, and how many answers each of them gave."""
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"A network is built from a CrowdGraph; got {with_article(type(graph))}.")
    check_integer("min_responses", min_responses, minimum=0)
    answers = graph.answers
    if at is not None:
        answers = answers.where(graph.responses.clock.reached(answers.time, at))
    n_answers = answers.n_by_volunteer
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
