"""The command ``crowdgraph inspect``: the data doctor."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from crowdgraph.cli.options import as_options
from crowdgraph.cli.saying import note, say, say_json, shows_progress
from crowdgraph.cli.source import Source, reads_responses

__all__ = ["inspect"]

STYLES = {"warning": "bold red", "note": "yellow", "info": None}


@reads_responses
def inspect(
    source: Source,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings for machines.")] = False,
) -> None:
    """The data doctor: what may be wrong with the answers, why it matters and what to do.

    For example:

    [bold]crowdgraph inspect responses.csv[/bold]
    [bold]crowdgraph inspect responses.csv --gold gold.csv --json[/bold]
    """
    from crowdgraph.analysis.choices import guessed_votes, told_votes
    from crowdgraph.core.findings import Findings

    graph = source.read().graph
    if not set(graph.labels) <= set(graph.classes):
        note([told_votes(graph, guessed_votes(graph))])
    found = graph.diagnose(progress=shows_progress())
    told = tuple(replace(finding, advice=as_options(finding.advice)) for finding in found)
    findings = Findings(told, examined=found.examined)
    if as_json:
        sizes = {"volunteers": len(graph.volunteers), "items": len(graph.items), "responses": len(graph.responses)}
        say_json({**sizes, **findings.to_dict()})
        return
    say(graph)
    for finding in findings:
        say("")
        say(repr(finding), style=STYLES[finding.severity])
