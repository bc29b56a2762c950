"""The rows of a Zooniverse export, read once: answers by workflow, task and form, and which rows are not readable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.errors import ColumnError, InputError
from crowdgraph.io._panoptes_values import CHOSEN, NOTHING, PLAIN, TICKED, form_of
from crowdgraph.io.csv import csv_table, row_lines
from crowdgraph.messages import Hint, quote

REQUIRED_COLUMNS = ("user_name", "created_at", "annotations", "subject_ids")
ANONYMOUS_NAME = "not-logged-in"
# Columns of other files that one can request beside the classification export, and what these files are called.
OTHER_EXPORTS = {
    "workflow export": ("workflow_id", "tasks"),
    "subject export": ("subject_id", "locations"),
    "reductions": ("subject_id", "reducer_key"),
    "extracts": ("classification_id", "extractor_key"),
}
TRUE_WORDS = ("true", "t", "1", "yes")


class TaskKey(NamedTuple):
    """Answers of one form to one task of one workflow."""

    workflow: str
    task: str
    form: str


@dataclass
class TaskAnswers:
    """The answers to a task: the row and the value of each, what was asked, and what the export calls the task."""

    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    texts: Counter[str] = field(default_factory=Counter)
    task_types: Counter[str] = field(default_factory=Counter)


@dataclass
class ExportRows:
    """All rows of an export.

    Attributes
    ----------
    path
        The file.
    table
        Its columns, all of them text.
    answers
        The answers by workflow, task and form.
    unanswered
        The rows in which a task was asked and not answered, by workflow and task.
    malformed
        Why the annotations of a row are not readable, by row.
    """

    path: str | PathLike[str]
    table: pa.Table
    answers: dict[TaskKey, TaskAnswers] = field(default_factory=dict)
    unanswered: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    malformed: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> list[str | None] | None:
        """Return a column as a list; None if the export does not have it."""
        return self.table[name].to_pylist() if name in self.table.column_names else None

    @cached_property
    def workflows(self) -> list[str]:
        """The workflow of each row; empty where it is not known."""
        return [name or "" for name in self.column("workflow_id") or [""] * len(self)]

    @cached_property
    def workflow_names(self) -> dict[str, str]:
        """The last name of each workflow, by its id, in the order of the file."""
        names = self.column("workflow_name") or [None] * len(self)
        return {workflow: name or "" for workflow, name in zip(self.workflows, names, strict=True)}

    @cached_property
    def versions(self) -> list[str]:
        """The version of the workflow of each row; empty where it is not known."""
        return [name or "" for name in self.column("workflow_version") or [""] * len(self)]

    @cached_property
    def is_anonymous(self) -> Array:
        """Which rows are of visitors who were not logged in."""
        names = pc.starts_with(self.table["user_name"], ANONYMOUS_NAME)
        return np.asarray(names.fill_null(pa.scalar(value=False)).to_numpy(), dtype=bool)

    @cached_property
    def is_gold_standard(self) -> Array:
        """Which rows are of experts who classified as a gold standard."""
        marks = self.column("gold_standard") or [None] * len(self)
        return np.array([(mark or "").strip().lower() in TRUE_WORDS for mark in marks], dtype=bool)

    def lines(self, rows: list[int]) -> tuple[int, ...]:
        """Return the lines of the file on which some rows begin; the header is line 1."""
        return tuple(row_lines(self.path, rows, delimiter=",", encoding="utf-8")) if rows else ()


def read_rows(path: str | PathLike[str]) -> ExportRows:
    """Read an export once; annotations that are not readable are noted, and raise nothing."""
    _check_not_json(path)
    table = csv_table(path, text=None)
    _check_columns(table.column_names)
    export = ExportRows(path, table)
    pending: list[tuple[int, str, dict[str, Any]]] = []
    for row, (text, workflow) in enumerate(zip(table["annotations"].to_pylist(), export.workflows, strict=True)):
        try:
            entries: dict[str, dict[str, Any]] = {}
            for entry in _entries(json.loads(text or "null")):
                entries.setdefault(str(entry["task"]), entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            export.malformed[row] = _why(error)
            continue
        for task, entry in entries.items():
            value = entry.get("value")
            if is_null(value):
                export.unanswered.setdefault((workflow, task), []).append(row)
            elif (form := form_of(value)) == NOTHING:
                pending.append((row, workflow, entry))
            else:
                _add(export, TaskKey(workflow, task, form), row, entry)
    for row, workflow, entry in pending:
        task = str(entry["task"])
        forms = [key.form for key in export.answers if key[:2] == (workflow, task) and key.form != NOTHING]
        # Nothing ticked is an answer to whatever this task lets people tick, but not to what has one answer.
        lists = [form for form in (TICKED, CHOSEN, *forms) if form in forms and form != PLAIN]
        if forms and not lists:
            export.unanswered.setdefault((workflow, task), []).append(row)
        else:
            _add(export, TaskKey(workflow, task, lists[0] if lists else NOTHING), row, entry)
    return export


def _add(export: ExportRows, key: TaskKey, row: int, entry: dict[str, Any]) -> None:
    answers = export.answers.setdefault(key, TaskAnswers())
    answers.rows.append(row)
    answers.values.append(entry["value"])
    if isinstance(entry.get("task_label"), str):
        answers.texts[entry["task_label"].strip()] += 1
    for name in ("taskType", "task_type"):
        if isinstance(entry.get(name), str):
            answers.task_types[entry[name]] += 1


def _entries(annotations: Any) -> Iterator[dict[str, Any]]:
    """Yield the tasks of the annotations of one row; those inside of combo tasks instead of these."""
    if not isinstance(annotations, list):
        raise ValueError(f"expected a list of tasks, got {type(annotations).__name__}")
    for entry in annotations:
        value = entry.get("value")
        if isinstance(value, list) and value and all(isinstance(part, dict) and "task" in part for part in value):
            yield from _entries(value)
        else:
            yield entry


def _why(error: Exception) -> str:
    """Return why annotations are not readable."""
    if isinstance(error, KeyError):
        return "an entry names no task"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "an entry is no task" if isinstance(error, TypeError | AttributeError) else str(error)


def _check_not_json(path: Any) -> None:
    """Raise if a file is JSON, as parts of an export are."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(1000).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, TypeError, ValueError):
        return
    if start[:1] in (b"[", b"{") and Path(path).suffix.lower() not in (".gz", ".bz2"):
        raise InputError(
            f"{fspath(path)!r} is JSON, and a Zooniverse classification export is a CSV file; request it under Data "
            "Exports in the project builder."
        )


def check_no_other_export(names: Collection[str]) -> None:
    """Raise if a file has the columns of another file that can be requested beside the classification export."""
    other = next((kind for kind, columns in OTHER_EXPORTS.items() if set(columns) <= set(names)), None)
    if other is not None:
        raise ColumnError(
            f"This looks like the {other} of a Zooniverse project, in which nobody answers anything. Request the "
            "classification export under Data Exports in the project builder."
        )


def _check_columns(names: list[str]) -> None:
    """Raise unless a file has the columns of a classification export; say which other export it may be."""
    absent = [name for name in REQUIRED_COLUMNS if name not in names]
    if not absent:
        return
    check_no_other_export(names)
    raise ColumnError(
        f"This is not a Zooniverse classification export: it lacks {quote(absent)}; it has {quote(names, most=12)}.",
        hint=Hint("For other tables use crowdgraph.read_csv.", cli="For other tables use --format csv."),
    )
