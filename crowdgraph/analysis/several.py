"""Several analyses in one directory: a folder for each, and a page that leads to their reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from crowdgraph.analysis.analyse import Analysis
from crowdgraph.analysis.output import RECORD, atomic_directory, write_record, write_results
from crowdgraph.errors import ParameterError
from crowdgraph.io.accounts import RowAccount
from crowdgraph.io.store import SAVED_GRAPH
from crowdgraph.messages import Interface
from crowdgraph.report.contents import Chapter, write_contents
from crowdgraph.report.provenance import versions

__all__ = ["INDEX", "Part", "analysis_folders", "folder_names", "write_several"]

INDEX = "index.html"
TABLES = ("tables.xlsx", "items.csv", "volunteers.csv", "next_questions.csv")
MAX_NAME = 40


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of several analyses.

    Attributes
    ----------
    analysis
        The analysis.
    folder
        The folder for its results, in the directory of all.
    title, about
        What it is about, and of which kind that is.
    account
        What became of every row of the file.
    source, settings
        As for `write_results`.
    """

    analysis: Analysis
    folder: str
    title: str
    about: str
    account: RowAccount | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def write_several(
    parts: Iterable[Part],
    directory: str | PathLike[str],
    *,
    title: str,
    left_out: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    command: str | Sequence[str] = (),
    source: Mapping[str, Any] | None = None,
    interface: Interface = "python",
    force: bool = False,
    raw_cells: bool = False,
    excel: bool = False,
) -> Path:
    """Write several analyses into a new directory, with ``index.html``: all of them, or none if something goes wrong.

    Parameters
    ----------
    parts
        The analyses; they may be made one by one while they are written.
    directory
        The directory to write to, which must be new or empty.
    title
        The title of the page.
    left_out
        Why something has no analysis, by what it is.
    notes
        What was decided about all of them, in sentences.
    command
        The command that repeats the run, or several in their order.
    source, interface, force, raw_cells, excel
        As for `write_results`.

    Returns
    -------
    pathlib.Path
        The directory.
    """
    commands = [command] if isinstance(command, str) else list(command)
    chapters: list[Chapter] = []
    with atomic_directory(directory, force=force) as folder:
        for part in parts:
            write_results(
                part.analysis,
                folder / part.folder,
                title=part.title,
                command=commands,
                source=part.source,
                settings=part.settings,
                interface=interface,
                raw_cells=raw_cells,
                excel=excel,
            )
            chapters.append(
                Chapter(
                    title=part.title,
                    about=part.about,
                    folder=part.folder,
                    graph=part.analysis.graph,
                    account=part.account,
                    files=[name for name in TABLES if (folder / part.folder / name).is_file()],
                )
            )
        if not chapters:
            raise ParameterError("There is no analysis to write.")
        write_contents(
            chapters,
            folder / INDEX,
            title=title,
            left_out=left_out,
            notes=notes,
            commands=commands,
            interface=interface,
        )
        record = {
            "commands": commands,
            "source": dict(source or {}),
            "analyses": {chapter.folder: chapter.title for chapter in chapters},
            "left_out": dict(left_out or {}),
            "notes": list(notes),
            "versions": versions(),
        }
        write_record(folder, record)
    return Path(directory)


def folder_names(names: Iterable[Sequence[object]]) -> list[str]:
    """Return a name for the folder of each analysis, of letters and digits that every file system takes.

    Examples
    --------
    >>> folder_names([("T0",), ("T1", "Eating!"), ("T1", "eating")])
    ['T0', 'T1-Eating', 'T1-eating-2']
    """
    folders: list[str] = []
    taken: set[str] = set()
    for parts in names:
        words = [re.sub(r"[^A-Za-z0-9]+", "-", str(part)).strip("-") for part in parts]
        stem = "-".join(filter(None, words))[:MAX_NAME].strip("-") or "analysis"
        name, number = stem, 2
        while name.lower() in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name.lower())
        folders.append(name)
    return folders


def analysis_folders(directory: str | PathLike[str]) -> list[Path]:
    """Return the folders of the analyses that a directory of several holds; none if it is no such directory."""
    try:
        names = json.loads((Path(directory) / RECORD).read_text(encoding="utf-8"))["analyses"]
        folders = [Path(directory) / name for name in names if Path(name).name == name]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [folder for folder in folders if (folder / SAVED_GRAPH).is_file()]
