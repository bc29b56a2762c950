"""The command ``crowdgraph allocate``: who should be asked about what next, and who is still there to be asked."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.cli._options import Prior, ResponseOptions, Votes, parse_prior, parse_votes, with_response_options
from crowdgraph.cli._output import (
    Quiet,
    RawCells,
    check_file_name,
    check_overwrite,
    note,
    say,
    say_json,
    write_table,
)
from crowdgraph.cli._subjects import SubjectFiles, open_parts
from crowdgraph.errors import InfeasibleError, ParameterError, TimeError, check_choice, collect_warnings

if TYPE_CHECKING:
    from crowdgraph.allocation import Assignment, Availability, Policy
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["allocate"]

SUBJECTS = "Files of subjects"
SUBJECT_ENDINGS = (".txt", ".csv")
# The columns of the table on a terminal, and what they mean; files and JSON have all columns.
TERMINAL_COLUMNS = ("volunteer", "item", "gain", "chance", "others", "why")
COLUMN_NOTE = (
    "gain: nats (1 nat is 1.44 bits, in which the report counts) that the answer is expected to add about the item; "
    "chance: that it is answered; others: who else is asked about the item; why: how certain its class is now, and "
    "what led to the question."
)
# How long the list of others may be on a terminal.
MAX_LETTERS = 40
# Why a policy asks a question.
REASONS = {
    "greedy": "highest value among the remaining questions",
    "matching": "part of the round that is worth most",
    "uncertain": "among the least certain items; the volunteer is drawn",
    "oldest": "among the oldest items; the volunteer is drawn",
    "random": "drawn",
}
# Volunteers who were not seen for this share of the period of the responses may have left.
LONG_ABSENCE = 0.1
DAY, HOUR = 86_400, 3_600

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


@with_response_options
def allocate(
    source: ResponseOptions,
    *,
    budget: Annotated[int, typer.Option(help="How many questions to ask.", min=1)] = 100,
    capacity: Annotated[int, typer.Option(help="How many questions each volunteer may get.", min=1)] = 1,
    policy: Annotated[str, typer.Option(help="greedy, matching, uncertain, oldest or random.")] = "greedy",
    model: Annotated[
        str, typer.Option(help="The model of skill and classes: calibrated, ibcc, dynibcc, ...")
    ] = "calibrated",
    prior: Prior = None,
    vote: Votes = None,
    since: ActiveSince = None,
    within: LikelyWithin = None,
    out: Annotated[Path | None, typer.Option(help="Write the audit log here: .csv, .xlsx or .parquet.")] = None,
    retire_to: Annotated[
        Path | None,
        typer.Option(
            help="Write the items that need no more answers: .txt with an id a line, for Panoptes, or .csv for Caesar.",
            rich_help_panel=SUBJECTS,
        ),
    ] = None,
    subject_set_to: Annotated[
        Path | None,
        typer.Option(
            help="Write the items that need more answers, the least certain first: .txt or .csv, likewise.",
            rich_help_panel=SUBJECTS,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same questions.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    raw_cells: RawCells = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the questions for machines.")] = False,
) -> None:
    """Who should be asked about what next? A row for each question: its expected information, in nats, and why.

    For example:

    [bold]crowdgraph allocate responses.csv --gold gold.csv --budget 200 --capacity 5 --out next.csv[/bold]
    [bold]crowdgraph allocate results/graph.crowd --active-since 2026-03-01 --likely-within 30[/bold]
    [bold]crowdgraph allocate results/graph.crowd --budget 50 --json[/bold]
    [bold]crowdgraph allocate results --retire-to retire.txt --subject-set-to again.txt[/bold]

    Visitors who were not logged in are not asked, nor is anybody about what is retired already. Of results with several
    questions about a workflow the files name what no question needs, or some question needs.
    """
    import pyarrow as pa

    from crowdgraph.allocation import GreedyValue, MostUncertain, OldestFirst, OptimalMatching, RandomPolicy
    from crowdgraph.allocation._eligibility import retired_items
    from crowdgraph.core._text import join_names

    policies: dict[str, type[Policy]] = {
        "greedy": GreedyValue,
        "matching": OptimalMatching,
        "uncertain": MostUncertain,
        "oldest": OldestFirst,
        "random": RandomPolicy,
    }
    check_choice("policy", policy, tuple(policies))
    if out is not None:
        check_file_name(out, (".csv", ".csv.gz", ".xlsx", ".parquet"))
        check_overwrite(out, force=force)
    files = SubjectFiles(retire_to=retire_to, subject_set_to=subject_set_to)
    for path in (retire_to, subject_set_to):
        if path is not None:
            check_file_name(path, SUBJECT_ENDINGS)
    check_overwrite(retire_to, subject_set_to, force=force)
    parts, workflow = open_parts(source.responses, source.workflow)
    if parts:
        if retire_to is None and subject_set_to is None:
            raise ParameterError(
                f"{str(source.responses)!r} holds several analyses; name the folder of one of them, or write files "
                "about all with --retire-to and --subject-set-to."
            )
        files.write(parts, workflow=workflow, seed=seed)
        return
    reading = source.read()
    graph, workflow = reading.graph, reading.choice.get("workflow")
    capacities, retired = who_is_there(graph, since, capacity), graph.items.ids[retired_items(graph)].tolist()
    available = None if within is None else likely_within(graph, within)
    graph = _with_fit(graph, model, prior, vote, seed, progress=not quiet)
    if retire_to is not None and reading.others:
        sentence = (
            f"The workflow asks more than this question: {join_names(reading.others)}. Retired subjects get no "
            "answers to these either. Analyse the whole export, and give the directory of all results instead."
        )
        note([sentence])
    if retire_to is not None or subject_set_to is not None:
        files.write({"": graph}, workflow=workflow, seed=seed)
    assignment = policies[policy]().assign(
        graph, budget=budget, capacity=capacities, retired=retired, available=available, seed=seed
    )
    if len(assignment.items) < budget:
        asked = f"{len(assignment.items):,} of {budget:,} questions are asked"
        note([f"{asked}; --capacity {capacity} limits each volunteer."])
    if since is None and within is None:
        note(absence_notes(graph, assignment))
    log = assignment.to_frame(kind="arrow")
    log = log.append_column("why", pa.array(_reasons(graph, assignment, REASONS[policy]), pa.string()))
    if out is not None:
        write_table(log, out, raw_cells=raw_cells)
    if as_json:
        say_json({"policy": assignment.policy, "questions": log.to_pylist()})
    elif out is None:
        say(COLUMN_NOTE)
        say(_table(log))
    else:
        say(assignment)
        say(f"Written: {out}", style="bold green")


def _table(log: Any) -> str:
    """Return the main columns of the log as text."""
    from crowdgraph.core._arrays import object_array
    from crowdgraph.core.result import to_frame

    columns = {name: log[name].to_numpy() for name in TERMINAL_COLUMNS}
    columns["others"] = object_array(map(_cut, columns["others"]))
    return str(to_frame(columns, kind="text"))


def _cut(names: str) -> str:
    """Return a list of names, cut to the length that a line has room for."""
    return names if len(names) <= MAX_LETTERS else f"{names[: MAX_LETTERS - 5].rpartition(', ')[0]}, ..."


def _reasons(graph: CrowdGraph, assignment: Assignment, reason: str) -> list[str]:
    """Return why each question is asked, in words."""
    certainty = graph.item_probs().max(axis=1)[graph.items.codes(assignment.items.tolist())]
    return [f"class {share:.0%} certain; {reason}" for share in certainty.tolist()]


def _with_fit(
    graph: CrowdGraph, model: str, prior: str | None, vote: list[str] | None, seed: int, *, progress: bool
) -> CrowdGraph:
    """Return the graph with the fit that it carries, or with a new one."""
    from crowdgraph.analysis import named_model
    from crowdgraph.core.fit import ModelFit

    if any(isinstance(result, ModelFit) for result in graph.annotations.values()):
        note(["The fit that the saved graph carries is used, and --model, --prior and --vote are not."])
        return graph
    votes = parse_votes(vote, graph.labels, graph.classes)
    notes: list[str] = []
    with collect_warnings(notes):
        named = named_model(model, graph=graph, votes=votes, confusion_prior=parse_prior(prior))
        fit = named.fit(graph, seed=seed, progress=progress)
    note(notes)
    return graph.annotate(fit)


# Who is still there


def who_is_there(graph: CrowdGraph, since: str | None, capacity: int) -> int | dict[Hashable, int]:
    """Return how many questions each volunteer may get: none who was not logged in, or not active since a moment."""
    from crowdgraph.allocation._eligibility import anonymous_volunteers

    is_anonymous = anonymous_volunteers(graph)
    if since is None and not is_anonymous.any():
        return capacity
    visitors = set(graph.volunteers.ids[is_anonymous].tolist())
    names = graph.volunteers.ids.tolist() if since is None else active_since(graph, since)
    if visitors:
        note([f"{len(visitors):,} visitors were not logged in and cannot be asked."])
    return {name: capacity for name in names if name not in visitors}


def active_since(graph: CrowdGraph, moment: str) -> list[Hashable]:
    """Return the volunteers with a response at or after a moment, which is given as text."""
    import numpy as np

    _check_times(graph, "--active-since")
    active = np.unique(graph.window(_moment(graph, moment), None).responses.volunteer)
    if not len(active):
        last = graph.responses.clock.to_python(graph.responses.time[-1:])[0]
        raise InfeasibleError(
            f"Nobody has answered since {moment}; the last response is of {last}. Give an earlier --active-since."
        )
    return list(graph.volunteers.ids[active].tolist())


def likely_within(graph: CrowdGraph, length: float) -> Availability:
    """Return who is likely to answer within some days (or units of time) after the last response."""
    import datetime as dt

    from crowdgraph.allocation import availability

    _check_times(graph, "--likely-within")
    if not 0 < length < dt.timedelta.max.days:
        raise ParameterError(f"--likely-within {length:g} must be a length of time above 0, such as 30.")
    has_dates = graph.responses.clock.kind == "datetime"
    return availability(graph, horizon=dt.timedelta(days=length) if has_dates else length)


def absence_notes(graph: CrowdGraph, assignment: Assignment) -> list[str]:
    """Return a sentence on how long those who are asked were not seen, if some of them may have left."""
    import numpy as np

    from crowdgraph.core.clock import ticks

    responses = graph.responses
    if responses.clock.kind == "order" or not len(responses):
        return []
    times = ticks(responses.time)
    # Volunteers who never answered were not seen since the first response at least.
    last = np.full(len(graph.volunteers), times[0])
    np.maximum.at(last, responses.volunteer, times)
    away = (times[-1] - last[np.unique(graph.volunteers.codes(assignment.volunteers.tolist()))]).astype(float)
    long = LONG_ABSENCE * float(times[-1] - times[0])
    absent = away[away > long]
    if not len(absent):
        return []
    half = f", half of them {_duration(graph, float(np.median(absent)))} or more" if len(absent) > 1 else ""
    sentence = (
        f"Of the {len(away):,} volunteers asked, {len(absent):,} were not seen in the last {_duration(graph, long)} "
        f"before the last response{half}. Use --active-since DATE to ask only those who still answer, or "
        "--likely-within DAYS to count questions by the chance that they are answered."
    )
    return [sentence]


def _check_times(graph: CrowdGraph, option: str) -> None:
    if graph.responses.clock.kind == "order":
        raise TimeError(
            f"{option} needs times, and there are none; name the column that has them with --time, or leave it out."
        )


def _moment(graph: CrowdGraph, text: str) -> Any:
    """Return a moment of the same kind as the times of a graph: text for datetimes, else a number."""
    from crowdgraph.core.clock import iso_datetime

    if graph.responses.clock.kind == "datetime":
        try:
            iso_datetime(text)
        except ValueError as error:
            raise TimeError(
                f"--active-since {text} is not a date; write it like 2026-03-01 or 2026-03-01T12:00."
            ) from error
        return text
    try:
        return float(text)
    except ValueError as error:
        raise TimeError(f"--active-since {text} is not a number, as the times of the responses are.") from error


def _duration(graph: CrowdGraph, length: float) -> str:
    """Return a number of ticks of the clock in words."""
    from crowdgraph.core.clock import ticks_per_second

    if graph.responses.clock.kind != "datetime":
        return f"{length:,.4g} units of time"
    seconds = length / ticks_per_second(graph.responses.time)
    return f"{seconds / DAY:,.0f} days" if seconds >= 2 * DAY else f"{seconds / HOUR:,.1f} hours"
