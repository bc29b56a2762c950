"""Readers of well-known public sets in the layout in which they are published."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError
from crowdgraph.io._files import is_directory
from crowdgraph.io.csv import csv_rows, csv_table
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.messages import quote

__all__ = ["read_get_another_label", "read_snow_2008", "read_truth_inference"]


def read_snow_2008(path: str | PathLike[str]) -> CrowdGraph:
    """Read a table of Snow et al. (2008), such as ``rte.standardized.tsv``: who said what, and the expert's label."""
    table = _table(path, ("!amt_worker_ids", "orig_id", "response", "gold"), delimiter="\t")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    gold = dict(zip(columns["orig_id"], columns["gold"], strict=True))
    return graph_from_frame(
        {"volunteer": columns["!amt_worker_ids"], "item": columns["orig_id"], "label": columns["response"]}, gold=gold
    )


def read_truth_inference(path: str | PathLike[str]) -> CrowdGraph:
    """Read a folder of Zheng et al. (2017): ``answer.csv`` and, if it is there, ``truth.csv``."""
    folder = _folder(path, "answer.csv")
    answers = _table(folder / "answer.csv", ("question", "worker", "answer"))
    gold = None
    if (folder / "truth.csv").is_file():
        truth = _table(folder / "truth.csv", ("question", "truth"))
        gold = {"item": truth["question"], "label": truth["truth"]}
    frame = {"volunteer": answers["worker"], "item": answers["question"], "label": answers["answer"]}
    return graph_from_frame(frame, gold=gold)


def read_get_another_label(path: str | PathLike[str]) -> CrowdGraph:
    """Read a folder of Get-Another-Label: ``labels.txt`` and, if it is there, ``gold.txt``, with tabs and no header."""
    folder = _folder(path, "labels.txt")
    workers, items, labels = zip(*_rows(folder / "labels.txt", 3), strict=True)
    gold = None
    if (folder / "gold.txt").is_file():
        names, classes = zip(*_rows(folder / "gold.txt", 2), strict=True)
        gold = {"item": [*names], "label": [*classes]}
    return graph_from_frame({"volunteer": [*workers], "item": [*items], "label": [*labels]}, gold=gold)


def _folder(path: Any, name: str) -> Path:
    """Return a folder; raise unless it has a file of a name."""
    if not is_directory(path) or not (Path(path) / name).is_file():
        raise InputError(f"path={path!r} is not a folder with a file {name!r}; give the folder that you downloaded.")
    return Path(path)


def _table(path: str | PathLike[str], columns: tuple[str, ...], *, delimiter: str = ",") -> Any:
    """Read a table with a header as text; raise unless it has these columns."""
    table = csv_table(path, text=None, delimiter=delimiter)
    lacking = [name for name in columns if name not in table.column_names]
    if lacking:
        raise ColumnError(
            f"{fspath(path)!r} is not the file that was expected: it has no column {quote(lacking)}; it has "
            f"{quote(table.column_names, most=12)}."
        )
    return table


def _rows(path: Path, width: int) -> list[list[str]]:
    """Read the rows of a table without header; raise unless all have the same width."""
    rows = []
    for line, row in csv_rows(path, delimiter="\t", encoding="utf-8"):
        if len(row) != width:
            raise InputError(
                f"{fspath(path)!r} has {len(row)} fields in line {line}; expected {width}, separated by tabs."
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{fspath(path)!r} is empty; expected {width} fields in each line, separated by tabs.")
    return rows
