"""The commands ``crowdgraph analyse``, ``update`` and ``demo``: from responses to a report."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.cli._options import (
    EXPORT,
    Prior,
    ResponseOptions,
    Votes,
    options_of,
    parse_prior,
    parse_votes,
    with_response_options,
)
from crowdgraph.cli._output import Quiet, RawCells, note, say, write_and_report
from crowdgraph.cli._questions import analyse_questions, count_questions
from crowdgraph.errors import InputError, ParameterError

if TYPE_CHECKING:
    from crowdgraph.analysis import Analysis
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["analyse", "analysis_of", "demo", "update"]

# The numbers of responses after which the paper looked for communities, beside the end.
PAPER_COUNTS = (3_000, 12_000)


@with_response_options
def analyse(
    source: ResponseOptions,
    *,
    out: Annotated[Path | None, typer.Option(help="Where to write the results; NAME-results here if left out.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="calibrated (the default: IBCC, with skill over time where volunteers change), ibcc, dynibcc, "
            "cautious, gibbs_ibcc, dawid_skene, majority_vote, weighted_majority, ... A fit that comes with the "
            "responses, such as several processes wrote it, is used if it is of this model."
        ),
    ] = None,
    prior: Prior = None,
    vote: Votes = None,
    snapshots: Annotated[int, typer.Option(help="At how many times to detect communities.", min=0)] = 4,
    min_responses: Annotated[
        int, typer.Option(help="Volunteers with fewer answers take no part in communities.", min=1)
    ] = 10,
    max_volunteers: Annotated[
        int, typer.Option(help="How many volunteers, the most active, communities may have.", min=3)
    ] = 2_000,
    validate: Annotated[
        float | None,
        typer.Option(help="Keep only links by shared items that chance does not explain, at this rate, such as 0.01."),
    ] = None,
    survey: Annotated[
        str,
        typer.Option(
            help="Of a survey in a Zooniverse export: the label is the species (or whatever was chosen), or there is "
            "an analysis for each, with yes or no.",
            metavar="species|each",
            rich_help_panel=EXPORT,
        ),
    ] = "species",
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.", min=0)] = 0,
    title: Annotated[str | None, typer.Option(help="The title of the report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results.")] = False,
    raw_cells: RawCells = False,
    excel: Annotated[bool, typer.Option("--excel", help="Write the tables as sheets of tables.xlsx, too.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary for machines.")] = False,
) -> None:
    """From a file of answers to a report: classes, who is good at what, communities, and how it all changes.

    For example:

    [bold]crowdgraph analyse responses.csv[/bold]
    [bold]crowdgraph analyse responses.csv.gz --gold gold.csv --out results[/bold]
    [bold]crowdgraph analyse answers.tsv --volunteer user --item picture --label choice[/bold]
    [bold]crowdgraph analyse classifications.csv --malformed skip[/bold]
    [bold]crowdgraph analyse classifications.csv --workflow "Which species?" --task T0[/bold]

    Of a Zooniverse export every question is analysed, and index.html leads to the reports.
    """
    from crowdgraph import analysis
    from crowdgraph.analysis.finished import choose_fit
    from crowdgraph.analysis.output import check_directory
    from crowdgraph.errors import check_choice

    if model is not None:
        check_choice("model", model, tuple(analysis.MODELS))
    confusion_prior = parse_prior(prior)
    name = source.responses.name.split(".")[0]
    out = Path(f"{name or 'crowd'}-results") if out is None else out
    check_directory(out, force=force)
    source.check_key(out)
    if excel:
        from crowdgraph.io.excel import openpyxl_package

        # Before the work is done, not after.
        openpyxl_package()
    settings: dict[str, Any] = {
        "model": model,
        "prior": prior,
        "vote": vote,
        "snapshots": snapshots,
        "min_responses": min_responses,
        "max_volunteers": max_volunteers,
        "validate": validate,
        "seed": seed,
        "title": title or f"The crowd of {source.responses.name}",
        "raw_cells": raw_cells,
        "excel": excel,
        "pseudonyms": source.pseudonyms is not None,
    }
    export = source.export()
    if export is not None and count_questions(source, export, survey) > 1:
        settings["model"] = model or analysis.DEFAULT_MODEL
        analyse_questions(
            source, export, out, settings, survey=survey, force=force, as_json=as_json, progress=not quiet
        )
        return
    if survey != "species" and export is None:
        raise ParameterError("--survey each is for a Zooniverse export with a survey; leave it out.")
    reading = source.read()
    votes = parse_votes(vote, reading.graph.labels, reading.graph.classes)
    chosen = choose_fit(reading.graph, model=model, votes=votes, confusion_prior=confusion_prior)
    notes = () if chosen.note is None else (chosen.note,)
    note(notes)
    settings["model"] = chosen.model
    if chosen.fit is not None:
        # So that an update of the results asks for what the fit is.
        settings |= options_of(chosen.fit)
    write_and_report(
        analysis_of(reading.graph, settings, progress=not quiet, fit=chosen.fit),
        out,
        title=settings["title"],
        source=source.record(reading),
        settings=settings,
        reading_notes=(*reading.notes, *notes),
        force=force,
        raw_cells=raw_cells,
        excel=excel,
        as_json=as_json,
    )


def analysis_of(
    graph: CrowdGraph,
    settings: Mapping[str, Any],
    *,
    progress: bool,
    fit: ModelFit | None = None,
    earlier: ModelFit | None = None,
) -> Analysis:
    """Return the analysis of a graph with the options of a command; a finished fit has its own settings."""
    from crowdgraph import analysis

    model_options: dict[str, Any] = {"fit": fit}
    if fit is None:
        model_options = {
            "votes": parse_votes(settings["vote"], graph.labels, graph.classes),
            "confusion_prior": parse_prior(settings["prior"]),
            "earlier": earlier,
        }

    options = {name: settings[name] for name in ("snapshots", "min_responses", "max_volunteers", "validate", "seed")}
    return analysis.analyse(
        graph,
        model=settings["model"],
        progress=progress,
        **model_options,
        **options,
    )


@partial(with_response_options, before=("results",))
def update(
    source: ResponseOptions,
    *,
    results: Annotated[Path, typer.Argument(help="The directory of results, which is renewed.", show_default=False)],
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary for machines.")] = False,
) -> None:
    """Renew results with new responses: the same analysis of old and new ones, and what changed.

    For example, every night:

    [bold]crowdgraph update results new.csv[/bold]
    [bold]crowdgraph update results new.csv --gold gold.csv --json[/bold]
    """
    from crowdgraph.analysis.output import check_directory, recover_directory
    from crowdgraph.analysis.several import analysis_folders
    from crowdgraph.analysis.update import read_results

    if source.classes:
        raise ParameterError("--class names the classes, and those of results stay; analyse all responses again.")
    recover_directory(results)
    parts = analysis_folders(results)
    if parts:
        raise ParameterError(
            f"{str(results)!r} holds several analyses; update one of them, such as {str(parts[0])!r}, or analyse the "
            "whole export again."
        )
    earlier = read_results(results)
    if earlier.settings.get("pseudonyms") and source.pseudonyms is None:
        raise ParameterError(
            "These results have pseudonyms; give the key with --pseudonyms KEY --reuse-pseudonyms, so that the new "
            "responses have them, too."
        )
    source = source.again(earlier.source.get("choice", {}))
    check_directory(results, force=True)
    reading = source.read(extend=earlier.graph)
    before, record = earlier.source.get("updates", ()), source.record(reading)
    digest = _digest(record)
    if digest is not None and digest in map(_digest, (earlier.source, *before)):
        raise InputError(
            f"{source.responses.name!r} is part of these results already: a file with the same content was read "
            "before. Name the file with the responses that are new."
        )
    updates = [*before, record]
    write_and_report(
        analysis_of(reading.graph, earlier.settings, progress=not quiet, earlier=earlier.fit),
        results,
        title=earlier.settings["title"],
        source={**earlier.source, "updates": updates},
        settings=earlier.settings,
        earlier=earlier,
        reading_notes=reading.notes,
        force=True,
        raw_cells=bool(earlier.settings.get("raw_cells")),
        excel=bool(earlier.settings.get("excel")),
        as_json=as_json,
    )


def _digest(record: Mapping[str, Any]) -> str | None:
    """Return the checksum of the responses that were read, as `ResponseOptions.record` notes it."""
    digest = record.get("files", {}).get("responses", {}).get("sha256")
    return None if digest is None else str(digest)


def demo(
    *,
    out: Annotated[Path, typer.Option(help="Where to write the results.")] = Path("crowdgraph-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results.")] = False,
    raw_cells: RawCells = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary for machines.")] = False,
) -> None:
    """Analyse an embedded crowd, a look-alike of Galaxy Zoo Supernovae, and write the report.

    For example: [bold]crowdgraph demo --out demo[/bold]
    """
    from crowdgraph import analysis
    from crowdgraph.analysis.output import check_directory
    from crowdgraph.simulate import galaxy_zoo_supernovae

    check_directory(out, force=force)
    if not as_json:
        say("Analysing a look-alike of Galaxy Zoo Supernovae: 1,705 volunteers, 963 items, 26,558 responses ...")
    graph = galaxy_zoo_supernovae().graph
    no, yes = graph.classes
    # The simulator knows all classes; with gold for a third of them there is something left to find out.
    graph = graph.with_gold({item: graph.gold[item] for item in list(graph.gold)[::3]}, classes=graph.classes)
    votes: dict[Hashable, Hashable | None] = {-1: no, 1: yes, 3: yes}
    snapshots = [count for count in PAPER_COUNTS if count < len(graph.responses)]
    result = analysis.analyse(graph, votes=votes, snapshots=snapshots, seed=seed, progress=not quiet)
    source = {"crowd": "crowdgraph.simulate.galaxy_zoo_supernovae(), with gold for every third item"}
    title = "Galaxy Zoo Supernovae, a look-alike"
    write_and_report(result, out, title=title, source=source, force=force, raw_cells=raw_cells, as_json=as_json)
