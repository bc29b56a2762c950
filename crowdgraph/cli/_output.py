"""The end of an analysis: write everything, and say what was found."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from crowdgraph.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from crowdgraph.analysis.analyse import Analysis


def say(text: object, *, style: str | None = None) -> None:
    """Print a line; with colours only on a terminal, and not if NO_COLOR is set."""
    from rich.console import Console

    Console(highlight=False).print(str(text), style=style, soft_wrap=True, markup=False, emoji=False)


def note(sentences: Iterable[str]) -> None:
    """Print what was decided or warned of, on the error stream, so that what is piped on stays clean."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    for sentence in sentences:
        console.print(f"note: {as_options(sentence)}", style="dim", soft_wrap=True, markup=False, emoji=False)


def say_json(value: Any) -> None:
    """Print values as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False))


def fail(sentence: str, *, code: int = 1) -> NoReturn:
    """Say what is wrong and end with an exit code."""
    from rich.console import Console

    Console(stderr=True, highlight=False).print(
        f"Error: {' '.join(sentence.split())}", style="red", soft_wrap=True, markup=False, emoji=False
    )
    raise typer.Exit(code)


def is_interactive() -> bool:
    """Whether somebody is watching."""
    return sys.stderr.isatty()


# What messages say, as a regular expression, and what it is on the command line; they apply one after another.
WORDS: tuple[tuple[str, str], ...] = (
    (r"graph\.with_gold\(graph\.gold, classes=\[\.\.\.\]\)", "--class NAME"),
    (r"graph\.with_gold\(\{[^}]*\}\)", "--gold FILE"),
    (r"(?:CrowdGraph\.)?from_responses\(\.\.\., ([^()]*)\)", r"\1"),
    (r"duplicates='first' or 'last' when building the graph", "--duplicates first or --duplicates last"),
    (r"\bkind='([^']*)'", r"--format \1"),
    (
        r"\b(volunteer|item|label|time|delimiter|encoding|missing|duplicates|task|workflow|model|policy)='([^']*)'",
        r"--\1 \2",
    ),
    (r"columns=\{'time': ''\}", "--no-time"),
    (r"\bmin_responses\b(?:=\.\.\.)?", "--min-responses"),
    (r"\bn_(volunteers|items|responses|communities)=", r"--\1 "),
    (r"\b(capacity|budget|snapshots|folds)(?==)", r"--\1"),
    (r"\bvotes=\{[^}]*\}", "--vote LABEL=CLASS"),
    (r"\bvotes=", "--vote"),
    (r"classes=\[\.\.\.\]", "--class NAME"),
    (r"\buse force\b", "use --force"),
    (r"\buse MajorityVote or MeanScore\b", "use --model majority_vote or --model mean_score"),
    (r"\buse DynIBCC\b", "use --model dynibcc"),
    (r"\bGive a time column\b", "Name a column with --time"),
    (r"(?:\bcg|\bcrowdgraph)\.evaluation\.cross_validate\b(?:\([^()]*\))?", "crowdgraph evaluate"),
    (r"\bcg\.allocation\b", "crowdgraph allocate"),
    (r"\bgraph = graph\.annotate\(cg\.DynIBCC\(\)\.fit\(graph\)\)", "--model dynibcc"),
    (r"\bgraph = graph\.annotate\(cg\.IBCC\(\)\.fit\(graph\)\)", "--model ibcc"),
    (r"\bgraph = graph\.annotate\(cg\.dynamics\.over_time\([^()]*\)\)", "--snapshots 4"),
    # What no option does.
    (r"leave them out(?: with|:) graph\.(?:subgraph|window)\([^()]*\)", "leave their rows out of the file"),
    (r"graph\.subgraph\([^()]*\)\.diagnose\(\)", "each as a file of its own"),
    (r"on their own: graph\.before\(\.\.\.\), graph\.window\(\.\.\.\)", "on their own, as two files"),
    (r": fit\.influence\([^()]*\)", ""),
    (r"\bor learn it with (IBCC\()", r"or, in Python, learn it with \1"),
    (r"\buse (malformed='skip') to leave such rows out", r"leave such rows out, in Python with \1"),
    (r"\bRaise (max_iter|max_draws)\b", r"In Python, raise \1"),
)


def as_options(message: str) -> str:
    """Calls of Python in a message as options of the command.

    Examples
    --------
    >>> as_options("Use missing='drop', or add gold with graph.with_gold({item: class, ...}).")
    'Use --missing drop, or add gold with --gold FILE.'
    """
    for said, meant in WORDS:
        message = re.sub(said, meant, message)
    return message


def check_file(path: Path, endings: tuple[str, ...]) -> str:
    """The ending of a file's name, of those that can be written; raise for others, before any work is done."""
    if path.parent.is_file():
        raise StoreError(f"{str(path.parent)!r} is a file, so nothing can be written into it; name a directory.")
    ending = next((ending for ending in endings if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise ParameterError(f"{str(path)!r} must end in {', '.join(endings)}, which says what to write.")
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a directory; give the path of a file.")
    if not path.parent.is_dir():
        raise StoreError(f"There is no directory {str(path.parent)!r}; make it first.")
    return ending


def check_overwrite(*paths: Path | None, force: bool) -> None:
    """Raise if one of the files to write is there already, unless it may be replaced; None is no file."""
    there = [path for path in paths if path is not None and path.exists()]
    if there and not force:
        raise StoreError(f"{str(there[0])!r} is there already; name another file, or use force to replace it.")


def write_table(table: Any, path: Path) -> None:
    """Write an Arrow table as CSV, compressed CSV or Parquet, by the file's name."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    from crowdgraph.io._files import atomic_file

    with atomic_file(path) as part:
        if path.name.lower().endswith(".parquet"):
            pq.write_table(table, fspath(part))
        else:
            packed = "gzip" if path.name.lower().endswith(".gz") else None
            with pa.output_stream(fspath(part), compression=packed) as stream:
                pa_csv.write_csv(table, stream)


def write_and_report(
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
    from crowdgraph.analysis.analyse import by_reason
    from crowdgraph.analysis.output import write_results

    whole = replace(analysis, notes=(*said, *analysis.notes))
    write_results(whole, out, title=title, command=command_line(), source=source, words=as_options, force=force)
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


def command_line() -> str:
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
