"""The end of an analysis: write everything, and say what was found."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdgraph.cli.options import as_options
from crowdgraph.cli.saying import note, say, say_json

if TYPE_CHECKING:
    from crowdgraph.analysis.result import Analysis

__all__ = ["typed_command", "written"]


def written(
    analysis: Analysis,
    out: Path,
    *,
    title: str,
    source: Mapping[str, Any],
    said: tuple[str, ...] = (),
    force: bool,
    as_json: bool,
) -> None:
    """Write the results, and say what was found and where it is; notes that were said already are written, too."""
    from crowdgraph.analysis.result import by_reason
    from crowdgraph.analysis.writing import write_results

    whole = replace(analysis, notes=(*said, *analysis.notes))
    write_results(whole, out, title=title, command=typed_command(), source=source, words=as_options, force=force)
    if as_json:
        say_json(_summary(whole, out))
        return
    note(analysis.notes)
    say(analysis.graph)
    for sentence in _sentences(analysis):
        say(sentence)
    for reason, steps in by_reason(analysis.skipped).items():
        say(f"Skipped {steps}: {as_options(reason)}", style="yellow")
    say(f"Open {out / 'report.html'}", style="bold green")


def typed_command() -> str:
    """The command as it was typed; results are passed on, so absolute paths are cut to the names of files."""
    return shlex.join(["crowdgraph", *map(_without_folders, sys.argv[1:])])


def _without_folders(word: str) -> str:
    option, mark, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return option + mark + (Path(value).name if Path(value).is_absolute() else value)


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
