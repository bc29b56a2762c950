"""What commands print and write: sentences for people, JSON for machines, errors, tables and results."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from io import TextIOWrapper
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from crowdgraph.errors import ParameterError, StoreError, collect_warnings
from crowdgraph.messages import OBEYED, printable, wording

if TYPE_CHECKING:
    from crowdgraph.analysis import Analysis
    from crowdgraph.analysis.update import EarlierResults

# Printing


def say(text: object, *, style: str | None = None) -> None:
    """Print a line; with colours only on a terminal, and not if NO_COLOR is set."""
    _print(str(text), style=style, to_errors=False)


def say_json(value: Any) -> None:
    """Print values as JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    # Where the terminal lacks a character, or would obey it, JSON has a way to write it.
    if OBEYED.search(text) or not _can_encode(text):
        text = json.dumps(value, indent=2, ensure_ascii=True, default=str, allow_nan=False).replace("\x7f", "\\u007f")
    typer.echo(text)


def note(sentences: Iterable[str]) -> None:
    """Print decisions and warnings on the error stream, so that what is piped on stays clean."""
    for sentence in sentences:
        _print(f"note: {wording(sentence, 'cli')}", style="dim", to_errors=True)


def fail(sentence: str, *, code: int = 1) -> NoReturn:
    """Print what is wrong and end with an exit code."""
    print_error(sentence)
    raise typer.Exit(code)


def print_error(sentence: str) -> None:
    """Print what is wrong on the error stream."""
    _print(f"Error: {' '.join(wording(sentence, 'cli').split())}", style="red", to_errors=True)


def _print(text: str, *, style: str | None, to_errors: bool) -> None:
    """Print for people: nothing that volunteers chose is obeyed by the terminal."""
    from rich.console import Console

    class PipedConsole(Console):
        """A console that leaves it to the command what to do when nobody reads any more."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    console = PipedConsole(stderr=to_errors, highlight=False)
    console.print(printable(text), style=style, soft_wrap=True, markup=False, emoji=False)


def _can_encode(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def prepare_streams() -> None:
    """Let characters that the terminal lacks be printed as escapes, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress: no bars, and no lines where output is a log.")
]


# Tables as files


def check_file_name(path: Path, endings: tuple[str, ...]) -> str:
    """Return the ending of a file's name if it can be written; raise otherwise, before any work is done."""
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
    """Raise if one of the files to write exists already, unless it may be replaced; None is no file."""
    existing = [path for path in paths if path is not None and path.exists()]
    if existing and not force:
        raise StoreError(f"{str(existing[0])!r} is there already; name another file, or use --force to replace it.")


RawCells = Annotated[
    bool,
    typer.Option("--raw-cells", help="Write text to CSV as it is, also where a spreadsheet would run it as a formula."),
]


def write_table(table: Any, path: Path, *, raw_cells: bool = False) -> None:
    """Write an Arrow table as CSV, compressed CSV, Excel or Parquet, by the file's name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from crowdgraph.io._cells import write_csv
    from crowdgraph.io._files import atomic_file

    if path.name.lower().endswith(".xlsx"):
        from crowdgraph.io.excel import write_excel

        write_excel({path.stem: table}, path)
        return
    with atomic_file(path) as part:
        if path.name.lower().endswith(".parquet"):
            pq.write_table(table, fspath(part))
        else:
            compression = "gzip" if path.name.lower().endswith(".gz") else None
            with pa.output_stream(fspath(part), compression=compression) as stream:
                write_csv(table, stream, raw_cells=raw_cells)


# Results of an analysis


def write_and_report(
    analysis: Analysis,
    out: Path,
    *,
    title: str,
    source: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    earlier: EarlierResults | None = None,
    reading_notes: tuple[str, ...] = (),
    force: bool,
    raw_cells: bool,
    excel: bool = False,
    as_json: bool,
) -> None:
    """Write the results, and print what was found and where it is; notes printed while reading are only written.

    With `earlier` results, say how they differ from these.
    """
    from crowdgraph.analysis import renewal, write_results
    from crowdgraph.analysis.analyse import steps_by_reason

    changed = None if earlier is None else renewal(earlier, analysis.graph)
    commands = [command_line()]
    if earlier is not None:
        # Without the first one, the others repeat nothing.
        commands = [*earlier.commands, *commands] if earlier.commands else []

    with_all_notes = replace(analysis, notes=(*reading_notes, *analysis.notes))
    left_out: list[str] = []
    with collect_warnings(left_out):
        write_results(
            with_all_notes,
            out,
            title=title,
            command=commands,
            source=source,
            settings=settings,
            update=changed,
            interface="cli",
            force=force,
            raw_cells=raw_cells,
            excel=excel,
        )
    analysis, with_all_notes = (replace(part, notes=(*part.notes, *left_out)) for part in (analysis, with_all_notes))
    if as_json:
        say_json({**_summary(with_all_notes, out), **({} if changed is None else {"update": changed.to_dict()})})
        return
    note(analysis.notes)
    say(analysis.graph)
    say(f"Analysed in {sum(analysis.timings.values()):.0f} s:")
    for name, result in analysis.graph.annotations.items():
        say(f"  {name:<24} {result!r}")
    for finding in analysis.findings.at_least("warning"):
        say(f"  data doctor: {finding.what}")
    for part in (analysis.changes, analysis.plan):
        if part is not None:
            say(part)
    for sentence in () if changed is None else changed.sentences():
        say(sentence)
    for reason, steps in steps_by_reason(analysis.skipped).items():
        say(f"Skipped {steps}: {wording(reason, 'cli')}", style="yellow")
    say(f"Open {out / 'report.html'}", style="bold green")


def command_line() -> str:
    """Return the command as it was typed; results are passed on, so absolute paths are cut to the names of files."""
    return shlex.join(["crowdgraph", *map(_without_directories, sys.argv[1:])])


def _without_directories(word: str) -> str:
    from crowdgraph.report.provenance import without_directories

    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return option + equals + without_directories(value)


def _summary(analysis: Analysis, out: Path) -> dict[str, Any]:
    graph = analysis.graph
    return {
        "out": str(out),
        "volunteers": len(graph.volunteers),
        "items": len(graph.items),
        "responses": len(graph.responses),
        "results": {name: repr(result) for name, result in graph.annotations.items()},
        "changed": [] if analysis.changes is None else [change.volunteer for change in analysis.changes],
        "next_questions": 0 if analysis.plan is None else len(analysis.plan),
        "worst_finding": analysis.findings.worst,
        "notes": list(analysis.notes),
        "skipped": dict(analysis.skipped),
        "timings": dict(analysis.timings),
        "parameters": dict(analysis.parameters),
    }
