"""The command ``crowdgraph convert``: between kinds of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdgraph.cli.saying import note, say
from crowdgraph.cli.source import Source, reads_responses
from crowdgraph.cli.tables import check_file, check_new, write_table

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["convert"]

ENDINGS = (".csv", ".csv.gz", ".parquet", ".crowd", ".graphml", ".gexf")


@reads_responses
def convert(
    source: Source,
    *,
    target: Annotated[
        Path, typer.Argument(help="The file to write: .csv, .csv.gz, .parquet, .crowd, .graphml or .gexf.")
    ],
    gold_out: Annotated[
        Path | None, typer.Option(help="Where to write the gold, which CSV and Parquet have no place for.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Turn responses into another kind of file, by how its name ends.

    For example:

    [bold]crowdgraph convert responses.csv responses.parquet[/bold]
    [bold]crowdgraph convert responses.csv whales.crowd --gold gold.csv[/bold]
    [bold]crowdgraph convert results/graph.crowd whales.graphml[/bold]
    """
    ending = check_file(target, ENDINGS)
    if gold_out is not None:
        check_file(gold_out, (".csv", ".csv.gz", ".parquet"))
    check_new(target, gold_out, force=force)
    graph = source.read().graph
    gold = None if gold_out is None else graph.to_arrow(table="gold")
    if ending == ".crowd":
        graph.save(target)
    elif ending == ".graphml":
        graph.to_graphml(target)
    elif ending == ".gexf":
        graph.to_gexf(target)
    else:
        write_table(graph.to_arrow(), target)
        note(_left_out(graph, target, gold_out))
    if gold_out is not None:
        write_table(gold, gold_out)
    say(f"Written: {', '.join(str(path) for path in (target, gold_out) if path is not None)}", style="bold green")


def _left_out(graph: CrowdGraph, target: Path, gold_out: Path | None) -> list[str]:
    """A sentence on what a table of responses has no place for, if there is any."""
    parts = []
    if len(graph.gold) and gold_out is None:
        parts.append(f"the gold of {len(graph.gold):,} items (write it with --gold-out FILE)")
    if graph.annotations:
        parts.append(f"the results {', '.join(graph.annotations)} (keep them with a target that ends in .crowd)")
    return [f"{target.name} holds responses only, without {' and '.join(parts)}."] if parts else []
