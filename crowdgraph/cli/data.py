"""The commands ``crowdgraph inspect``, ``convert`` and ``simulate``: look at data, convert data, simulate data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdgraph.cli._options import ResponseOptions, with_response_options
from crowdgraph.cli._output import (
    Quiet,
    RawCells,
    check_file_name,
    check_overwrite,
    command_line,
    note,
    say,
    say_json,
    write_table,
)
from crowdgraph.cli._questions import count_questions, say_export
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["convert", "inspect", "simulate"]

SEVERITY_STYLES = {"warning": "bold red", "note": "yellow", "info": None}
TABLE_ENDINGS = (".csv", ".csv.gz", ".xlsx", ".parquet")
GRAPH_ENDINGS = (".crowd", ".graphml", ".gexf")
STORE = "Stores"
# Options that do not go with the look-alike of Galaxy Zoo Supernovae, which has its own.
SIZE_OPTIONS = ("volunteers", "items", "responses", "gold", "drift", "communities", "queue")


@with_response_options
def inspect(
    source: ResponseOptions,
    *,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings for machines.")] = False,
) -> None:
    """The data doctor: what may be wrong with the answers, why it matters and what to do.

    For example:

    [bold]crowdgraph inspect responses.csv[/bold]
    [bold]crowdgraph inspect responses.csv --gold gold.csv --json[/bold]
    [bold]crowdgraph inspect classifications.csv[/bold]

    Of a Zooniverse export with several questions it lists these, and how each was answered.
    """
    from crowdgraph.analysis.defaults import votes_note
    from crowdgraph.models.label_votes import guess_votes

    export = source.export()
    if export is not None and count_questions(source, export, "species") > 1:
        if as_json:
            say_json(export.to_dict())
        else:
            say_export(export)
            say("Examine one of them: name it with --workflow, --task and --option; analyse reads all.")
        return
    graph = source.read().graph
    if not set(graph.labels) <= set(graph.classes):
        note([votes_note(graph, guess_votes(graph))])
    findings = graph.diagnose(progress=not quiet).wording("cli")
    if as_json:
        sizes = {"volunteers": len(graph.volunteers), "items": len(graph.items), "responses": len(graph.responses)}
        say_json({**sizes, **findings.to_dict()})
        return
    say(graph)
    for finding in findings:
        say("")
        say(repr(finding), style=SEVERITY_STYLES[finding.severity])


@with_response_options
def convert(
    source: ResponseOptions,
    *,
    targets: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TARGET",
            help="The file to write: .csv, .csv.gz, .xlsx, .parquet, .crowd, .graphml, .gexf; with --store, responses.",
        ),
    ] = None,
    gold_out: Annotated[
        Path | None, typer.Option(help="Where to write the gold, which CSV and Parquet cannot hold.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="A directory of columns to write, for crowds larger than memory.", rich_help_panel=STORE),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="What volunteers can say, one option for each; else what they said.", rich_help_panel=STORE),
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", help="A further column to keep; all if left out.", rich_help_panel=STORE),
    ] = None,
    memory: Annotated[
        str, typer.Option(help="How much memory the conversion to a store may take.", rich_help_panel=STORE)
    ] = "4GB",
    force: Annotated[bool, typer.Option("--force", help="Replace files, or a store, that are there.")] = False,
    raw_cells: RawCells = False,
    quiet: Quiet = False,
) -> None:
    """Turn responses into another kind of file, by how its name ends; or into a store, for crowds larger than memory.

    For example:

    [bold]crowdgraph convert responses.csv responses.parquet[/bold]
    [bold]crowdgraph convert responses.csv whales.crowd --gold gold.csv[/bold]
    [bold]crowdgraph convert results/graph.crowd whales.graphml[/bold]
    [bold]crowdgraph convert january.parquet february.parquet --store whales.store[/bold]
    """
    paths = targets or []
    if store is not None:
        if gold_out is not None:
            raise ParameterError("--gold-out does not go with --store, which holds the gold; leave one out.")
        built = source.convert(
            paths,
            store,
            labels=labels,
            attributes=attributes,
            memory=memory,
            force=force,
            progress=not quiet,
        )
        facts = built.manifest["source"]
        say(built)
        say(f"Read {facts['rows']:,} rows: {built.n_responses:,} responses, {facts['skipped']:,} left out.")
        say(f"Written: {store}", style="bold green")
        return
    if labels or attributes:
        raise ParameterError("--labels and --attribute go with --store; leave them out.")
    if len(paths) != 1:
        raise ParameterError(
            f"Expected one file to write, got {len(paths)}; to convert several files at once, use --store DIRECTORY."
        )
    _convert_file(source, paths[0], gold_out, force=force, raw_cells=raw_cells)


def _convert_file(
    source: ResponseOptions, target: Path, gold_out: Path | None, *, force: bool, raw_cells: bool
) -> None:
    ending = check_file_name(target, (*TABLE_ENDINGS, *GRAPH_ENDINGS))
    if gold_out is not None:
        check_file_name(gold_out, TABLE_ENDINGS)
    check_overwrite(target, gold_out, force=force)
    graph = source.read().graph
    gold = None if gold_out is None else graph.to_arrow(table="gold")
    if ending == ".crowd":
        graph.save(target)
    elif ending == ".graphml":
        graph.to_graphml(target)
    elif ending == ".gexf":
        graph.to_gexf(target)
    else:
        write_table(graph.to_arrow(), target, raw_cells=raw_cells)
        note(_left_out_note(graph, target, gold_out))
    if gold_out is not None:
        write_table(gold, gold_out, raw_cells=raw_cells)
    say(f"Written: {', '.join(str(path) for path in (target, gold_out) if path is not None)}", style="bold green")


def _left_out_note(graph: CrowdGraph, target: Path, gold_out: Path | None) -> list[str]:
    """Return a sentence on what a table of responses cannot hold, if there is anything."""
    from crowdgraph.core._text import quantity

    parts = []
    if len(graph.gold) and gold_out is None:
        parts.append(f"the gold of {quantity(len(graph.gold), 'item')} (write it with --gold-out FILE)")
    if graph.annotations:
        parts.append(f"the results {', '.join(graph.annotations)} (keep them with a target that ends in .crowd)")
    facts = [name for nodes in (graph.items, graph.volunteers) for name in nodes.attributes]
    if facts:
        parts.append(f"what is known of items and volunteers ({', '.join(facts)})")
    return [f"{target.name} holds responses only, without {' and '.join(parts)}."] if parts else []


def simulate(
    ctx: typer.Context,
    out: Annotated[Path, typer.Argument(help="The directory to write into.")],
    *,
    volunteers: Annotated[int, typer.Option(help="How many volunteers.", min=1)] = 100,
    items: Annotated[int, typer.Option(help="How many items.", min=1)] = 500,
    responses: Annotated[int, typer.Option(help="How many responses.", min=1)] = 5_000,
    gold: Annotated[float, typer.Option(help="The share of items with gold.", min=0, max=1)] = 0.2,
    drift: Annotated[str, typer.Option(help="How volunteers change: none, ramp, step, visit or learning.")] = "none",
    communities: Annotated[int, typer.Option(help="Into how many task communities they fall.", min=1)] = 1,
    queue: Annotated[
        bool, typer.Option("--queue", help="Hand out the oldest item that lacks answers to whoever comes next.")
    ] = False,
    galaxy_zoo: Annotated[
        bool, typer.Option("--galaxy-zoo", help="The look-alike of Galaxy Zoo Supernovae; sizes and gold are its own.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same crowd.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier crowd.")] = False,
) -> None:
    """Write a simulated crowd: responses.csv, gold.csv, and truth.csv with the class of every item.

    For example:

    [bold]crowdgraph simulate crowd --volunteers 200 --responses 20000 --drift step[/bold]
    [bold]crowdgraph simulate supernovae --galaxy-zoo[/bold]
    """
    from typing import Any, cast

    from crowdgraph.analysis.output import atomic_directory, write_record
    from crowdgraph.core._arrays import id_array
    from crowdgraph.core.result import CodedColumn, to_frame
    from crowdgraph.report.provenance import versions
    from crowdgraph.simulate import crowd, galaxy_zoo_supernovae

    kind = cast("Any", drift)
    if galaxy_zoo:
        _check_sizes(ctx)
        graph, truth = galaxy_zoo_supernovae(seed=seed)
    else:
        graph, truth = crowd(
            n_volunteers=volunteers,
            n_items=items,
            n_responses=responses,
            gold=gold,
            drift=kind,
            n_communities=communities,
            queue="oldest" if queue else None,
            seed=seed,
        )
    true_classes: dict[str, Any] = {
        "item": graph.items.ids,
        "label": CodedColumn(truth.classes, id_array(graph.classes)),
    }
    with atomic_directory(out, force=force) as folder:
        write_table(graph.to_arrow(), folder / "responses.csv")
        write_table(graph.to_arrow(table="gold"), folder / "gold.csv")
        write_table(to_frame(true_classes, kind="arrow"), folder / "truth.csv")
        write_record(folder, {"command": command_line(), "seed": seed, "versions": versions()})
    say(graph)
    say(f"Written: {out}", style="bold green")


def _check_sizes(ctx: typer.Context) -> None:
    """Raise if options set what the look-alike has of its own."""
    # Its text differs from version to version of click.
    sources = {name: ctx.get_parameter_source(name) for name in SIZE_OPTIONS}
    typed = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if typed:
        raise ParameterError(f"--{typed[0]} does not go with --galaxy-zoo, which has its own; leave one out.")
