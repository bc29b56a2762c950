"""Which volunteers a network is of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.clock import Moment
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError, TooFewError


class Experienced(NamedTuple):
    """The codes of some volunteers and how many answers each gave."""

    codes: Array
    n_answers: Array


class LastAnswers(NamedTuple):
    """The last answer of each volunteer to each item: the volunteer's place, the item's code, and the response."""

    place: Array
    item: Array
    response: Array


def experienced(graph: CrowdGraph, min_responses: int, at: Moment | None = None) -> Experienced:
    """The volunteers with at least so many answers until a moment."""
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"A network is made from a CrowdGraph; got a {type(graph).__name__}.")
    check_integer("min_responses", min_responses, minimum=0)
    responses = graph.responses
    counted = responses.label >= 0
    if at is not None:
        counted &= responses.clock.reached(responses.time, at)
    n_answers = np.bincount(responses.volunteer[counted], minlength=len(graph.volunteers))
    chosen = np.flatnonzero(n_answers >= min_responses)
    if not len(chosen):
        most = int(n_answers.max(initial=0))
        raise TooFewError(
            f"No volunteer has {min_responses:,} answers or more (the most is {most:,}), so there is nobody to link; "
            "lower min_responses."
        )
    return Experienced(chosen, n_answers[chosen])


def last_answers(graph: CrowdGraph, volunteers: Array) -> LastAnswers:
    """The last answers of some volunteers, given as codes, by volunteer and item; responses are in order of time."""
    responses = graph.responses
    places = np.full(len(graph.volunteers), -1)
    places[volunteers] = np.arange(len(volunteers))
    counted = np.flatnonzero((responses.label >= 0) & (places[responses.volunteer] >= 0))
    place, item = places[responses.volunteer[counted]], responses.item[counted]
    _, last = np.unique((place * len(graph.items) + item)[::-1], return_index=True)
    last = len(counted) - 1 - last
    return LastAnswers(place[last], item[last], counted[last])
