"""The end of an analysis: write everything, and say what was found."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdgraph.cli.saying import note, say, say_json

if TYPE_CHECKING:
    from crowdgraph.analysis.result import Analysis

__all__ = ["written"]


def written(
    analysis: Analysis, out: Path, *, title: str, source: Mapping[str, Any], force: bool, as_json: bool
) -> None:
    """Write the results, and say what was found and where it is."""
    from crowdgraph.analysis.writing import write_results

    command = shlex.join(["crowdgraph", *sys.argv[1:]])
    write_results(analysis, out, title=title, command=command, source=source, force=force)
    if as_json:
        say_json(_summary(analysis, out))
        return
    note(analysis.notes)
    say(analysis.graph)
    for sentence in _sentences(analysis):
        say(sentence)
    for step, reason in analysis.skipped.items():
        say(f"Skipped {step}: {reason}", style="yellow")
    say(f"Open {out / 'report.html'}", style="bold green")


def _sentences(analysis: Analysis) -> list[str]:
    """What was found, in a few lines."""
    results = [f"  {name:<24} {result!r}" for name, result in analysis.graph.annotations.items()]
    worst = analysis.findings.at_least("warning")
    told = [f"  data doctor: {finding.what}" for finding in worst]
    return [f"Analysed in {sum(analysis.timings.values()):.0f} s:", *results, *told]


def _summary(analysis: Analysis, out: Path) -> dict[str, Any]:
    graph = analysis.graph
    return {
        "out": str(out),
        "volunteers": len(graph.volunteers),
        "items": len(graph.items),
        "responses": len(graph.responses),
        "results": {name: repr(result) for name, result in graph.annotations.items()},
        "worst_finding": analysis.findings.worst,
        "notes": list(analysis.notes),
        "skipped": dict(analysis.skipped),
        "timings": dict(analysis.timings),
        "parameters": dict(analysis.parameters),
    }
