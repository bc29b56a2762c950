"""The command ``crowdgraph allocate``: who should do what next."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.cli._options import ResponseOptions, Votes, parse_votes, with_response_options
from crowdgraph.cli._output import check_file, check_overwrite, is_interactive, note, say, say_json, write_table
from crowdgraph.errors import InfeasibleError, ParameterError, TimeError

if TYPE_CHECKING:
    from crowdgraph.allocation import Policy
    from crowdgraph.allocation.availability import Availability
    from crowdgraph.allocation.policy import Assignment
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["ActiveSince", "LikelyWithin", "absence_notes", "active_since", "allocate", "likely_within"]

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
    from crowdgraph.core.clock import ticks_per_second

    if graph.responses.clock.kind != "datetime":
        return f"{length:,.4g} units of time"
    seconds = length / ticks_per_second(graph.responses.time)
    return f"{seconds / DAY:,.0f} days" if seconds >= 2 * DAY else f"{seconds / HOUR:,.1f} hours"


# The columns of the table on a terminal, and what they are; files and JSON have all.
SHOWN = ("volunteer", "item", "gain", "chance", "others", "why")
COLUMNS = (
    "gain: nats (1 nat is 1.44 bits, in which the report counts) that the answer is expected to tell about the item; "
    "chance: that it is answered; others: who else is asked about the item; why: how certain its class is now, and "
    "what led to the question."
)
# How long the list of others may be on a terminal.
MOST_SIGNS = 40
# Why a policy asks a question.
REASONS = {
    "greedy": "worth most of the questions left",
    "matching": "part of the round that is worth most",
    "uncertain": "among the least certain items; the volunteer is drawn",
    "oldest": "among the oldest items; the volunteer is drawn",
    "random": "drawn",
}


@with_response_options
def allocate(
    source: ResponseOptions,
    *,
    budget: Annotated[int, typer.Option(help="How many questions to ask.", min=1)] = 100,
    capacity: Annotated[int, typer.Option(help="How many questions each volunteer may get.", min=1)] = 1,
    policy: Annotated[str, typer.Option(help="greedy, matching, uncertain, oldest or random.")] = "greedy",
    model: Annotated[str, typer.Option(help="What tells skill and classes: ibcc, dynibcc, ...")] = "ibcc",
    vote: Votes = None,
    since: ActiveSince = None,
    within: LikelyWithin = None,
    out: Annotated[Path | None, typer.Option(help="Write the audit log here: .csv or .parquet.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same questions.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the questions for machines.")] = False,
) -> None:
    """Who should be asked about what next? A row for each question: what it is expected to tell, in nats, and why.

    For example:

    [bold]crowdgraph allocate responses.csv --gold gold.csv --budget 200 --capacity 5 --out next.csv[/bold]
    [bold]crowdgraph allocate results/graph.crowd --active-since 2026-03-01 --likely-within 30[/bold]
    [bold]crowdgraph allocate results/graph.crowd --budget 50 --json[/bold]
    """
    import pyarrow as pa

    from crowdgraph.allocation import GreedyValue, MostUncertain, OldestFirst, OptimalMatching, RandomPolicy
    from crowdgraph.errors import check_choice

    policies: dict[str, type[Policy]] = {
        "greedy": GreedyValue,
        "matching": OptimalMatching,
        "uncertain": MostUncertain,
        "oldest": OldestFirst,
        "random": RandomPolicy,
    }
    check_choice("policy", policy, tuple(policies))
    if out is not None:
        check_file(out, (".csv", ".csv.gz", ".parquet"))
        check_overwrite(out, force=force)
    read = source.read().graph
    may = capacity if since is None else dict.fromkeys(active_since(read, since), capacity)
    available = None if within is None else likely_within(read, within)
    graph = _fitted(read, model, vote, seed)
    chosen = policies[policy]().assign(graph, budget=budget, capacity=may, available=available, seed=seed)
    if since is None and within is None:
        note(absence_notes(graph, chosen))
    log = chosen.to_frame(kind="arrow")
    log = log.append_column("why", pa.array(_reasons(graph, chosen, REASONS[policy]), pa.string()))
    if out is not None:
        write_table(log, out)
    if as_json:
        say_json({"policy": chosen.policy, "questions": log.to_pylist()})
    elif out is None:
        say(COLUMNS)
        say(_table(log))
    else:
        say(chosen)
        say(f"Written: {out}", style="bold green")


def _table(log: Any) -> str:
    """The main columns of the log, for reading."""
    from crowdgraph.core._arrays import object_array
    from crowdgraph.io._columns import native_frame

    columns = {name: log[name].to_numpy() for name in SHOWN}
    columns["others"] = object_array(map(_cut, columns["others"]))
    return str(native_frame(columns, kind="text"))


def _cut(names: str) -> str:
    """A list of names that is not too long for a line."""
    return names if len(names) <= MOST_SIGNS else f"{names[: MOST_SIGNS - 5].rpartition(', ')[0]}, ..."


def _reasons(graph: CrowdGraph, chosen: Assignment, reason: str) -> list[str]:
    """Why each question is asked, in words."""
    certain = graph.item_probs().max(axis=1)[graph.items.codes(chosen.items.tolist())]
    return [f"class {share:.0%} certain; {reason}" for share in certain.tolist()]


def _fitted(graph: CrowdGraph, model: str, vote: list[str] | None, seed: int) -> CrowdGraph:
    """The graph with the fit that it carries, or a new one."""
    from crowdgraph.analysis.defaults import named_model
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.errors import collect_warnings

    if any(isinstance(result, ModelFit) for result in graph.annotations.values()):
        note(["The fit that the saved graph carries is used."])
        return graph
    votes: Any = parse_votes(vote, graph.labels, graph.classes)
    notes: list[str] = []
    with collect_warnings(notes):
        fit = named_model(model, graph=graph, votes=votes).fit(graph, seed=seed, progress=is_interactive())
    note(notes)
    return graph.annotate(fit)
