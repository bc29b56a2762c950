"""Who is still there to be asked: options of ``crowdgraph allocate``, and a note where none of them is given."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.errors import InfeasibleError, ParameterError, TimeError

if TYPE_CHECKING:
    from crowdgraph.core.assignment import Assignment
    from crowdgraph.core.availability import Availability
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["ActiveSince", "LikelyWithin", "absence_notes", "active_since", "likely_within"]

ActiveSince = Annotated[
    str | None,
    typer.Option(
        "--active-since",
        metavar="DATE",
        help="Ask only volunteers with a response at or after this time, such as 2026-03-01.",
    ),
]
LikelyWithin = Annotated[
    float | None,
    typer.Option(
        "--likely-within",
        metavar="DAYS",
        help="Count questions by the chance that they are answered within so many days after the last response (in "
        "the unit of the times, where these are numbers).",
    ),
]
# Who was not seen for this share of the time on record may be gone.
LONG = 0.1
DAY, HOUR = 86_400, 3_600


def active_since(graph: CrowdGraph, moment: str) -> list[Hashable]:
    """The volunteers with a response at or after a moment, which is given as text."""
    import numpy as np

    _check_times(graph, "--active-since")
    there = np.unique(graph.window(_moment(graph, moment), None).responses.volunteer)
    if not len(there):
        last = graph.responses.clock.to_python(graph.responses.time[-1:])[0]
        raise InfeasibleError(
            f"Nobody has answered since {moment}; the last response is of {last}. Give an earlier --active-since."
        )
    return list(graph.volunteers.ids[there].tolist())


def likely_within(graph: CrowdGraph, length: float) -> Availability:
    """Who is likely to answer within so many days (or units of the times) after the last response."""
    import datetime as dt

    from crowdgraph.allocation import availability

    _check_times(graph, "--likely-within")
    if not 0 < length < dt.timedelta.max.days:
        raise ParameterError(f"--likely-within {length:g} must be a length of time above 0, such as 30.")
    dated = graph.responses.clock.kind == "datetime"
    return availability(graph, horizon=dt.timedelta(days=length) if dated else length)


def absence_notes(graph: CrowdGraph, chosen: Assignment) -> list[str]:
    """A sentence on how long those who are asked were not seen, if some of them may be gone."""
    import numpy as np

    from crowdgraph.core.clock import ticks

    responses = graph.responses
    if responses.clock.kind == "order" or not len(responses):
        return []
    times = ticks(responses.time)
    # Who never answered was not seen since the first response at least.
    last = np.full(len(graph.volunteers), times[0])
    np.maximum.at(last, responses.volunteer, times)
    away = (times[-1] - last[np.unique(graph.volunteers.codes(chosen.volunteers.tolist()))]).astype(float)
    long = LONG * float(times[-1] - times[0])
    gone = away[away > long]
    if not len(gone):
        return []
    half = f", half of them {_length(graph, float(np.median(gone)))} or more" if len(gone) > 1 else ""
    told = (
        f"Of the {len(away):,} volunteers asked, {len(gone):,} were not seen in the last {_length(graph, long)} before "
        f"the last response{half}. Use --active-since DATE to ask only those who still answer, or --likely-within DAYS "
        "to count questions by the chance that they are answered."
    )
    return [told]


def _check_times(graph: CrowdGraph, option: str) -> None:
    if graph.responses.clock.kind == "order":
        raise TimeError(
            f"{option} needs times, and there are none; name the column that has them with --time, or leave it out."
        )


def _moment(graph: CrowdGraph, text: str) -> Any:
    """A moment as the times of a graph are: text for datetimes, else a number."""
    if graph.responses.clock.kind == "datetime":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise TimeError(f"--active-since {text} is not a number, as the times of the responses are.") from error


def _length(graph: CrowdGraph, length: float) -> str:
    """A length in ticks, in words."""
    from crowdgraph.core.clock import ticks_a_second

    if graph.responses.clock.kind != "datetime":
        return f"{length:,.4g} units of time"
    seconds = length / ticks_a_second(graph.responses.time)
    return f"{seconds / DAY:,.0f} days" if seconds >= 2 * DAY else f"{seconds / HOUR:,.1f} hours"
