"""The command ``crowdgraph inspect``: the data doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from crowdgraph.cli.saying import say, say_json, shows_progress
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
    graph = source.read().graph
    findings = graph.diagnose(progress=shows_progress())
    if as_json:
        sizes = {"volunteers": len(graph.volunteers), "items": len(graph.items), "responses": len(graph.responses)}
        say_json({**sizes, **findings.to_dict()})
        return
    say(graph)
    for finding in findings:
        say("")
        say(repr(finding), style=STYLES[finding.severity])
