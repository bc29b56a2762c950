"""Zooniverse classification exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from os import PathLike
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array
from crowdgraph.core.graph import CrowdGraph, Duplicates, Missing
from crowdgraph.errors import ColumnError, DroppedRowsWarning, InputError, check_choice, warn
from crowdgraph.io.csv import csv_table
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.messages import Hint, Message, quote

__all__ = ["REQUIRED_COLUMNS", "read_panoptes"]

REQUIRED_COLUMNS = ("user_name", "created_at", "annotations", "subject_ids")
# Further columns that become attributes of the responses; IP addresses and free metadata do not.
ATTRIBUTE_COLUMNS = ("classification_id", "workflow_id", "workflow_version", "user_id")
ANONYMOUS_NAME = "not-logged-in"


def read_panoptes(
    path: str | PathLike[str],
    *,
    task: str,
    label: Callable[[Any], Hashable | None] | None = None,
    workflow: int | str | None = None,
    anonymous: Literal["keep", "drop", "pool"] = "keep",
    malformed: Literal["error", "skip"] = "error",
    gold: Any = None,
    classes: Iterable[Hashable] | None = None,
    labels: Iterable[Hashable] | None = None,
    duplicates: Duplicates = "all",
    missing: Missing = "error",
) -> CrowdGraph:
    """Read a graph from a Zooniverse classification export.

    Volunteers are user names, items are subject ids (as text), times are `created_at` in UTC. Rows in which the task
    was not asked or not answered are skipped. IP addresses are not read.

    Parameters
    ----------
    path
        The export, a CSV file, plain or compressed.
    task
        The task to read, such as ``"T0"``; it may be part of a combo task.
    label
        A function that turns the value of the task into a label, or into None to skip a row. By default a single
        answer is its own label, and several answers (a list of plain values) are joined with ``" + "``.
    workflow
        Read only the rows of this workflow id.
    anonymous
        What to do with volunteers who were not logged in (``not-logged-in-<hash>``): ``"keep"`` each as a volunteer,
        ``"drop"`` their rows, or ``"pool"`` them as one volunteer ``"not-logged-in"``.
    malformed
        What to do with rows whose annotations are not valid JSON of the expected form: raise an ``"error"`` that names
        the row, or ``"skip"`` them with a warning that counts them.
    gold, classes, labels, duplicates, missing
        As in `CrowdGraph.from_responses`; `gold` may also be the path of a CSV or Parquet file.
    """
    check_choice("anonymous", anonymous, ("keep", "drop", "pool"))
    check_choice("malformed", malformed, ("error", "skip"))
    table = csv_table(path, text=None)
    absent = [name for name in REQUIRED_COLUMNS if name not in table.column_names]
    if absent:
        raise ColumnError(
            f"This is not a Zooniverse classification export: it lacks {quote(absent)}; it has "
            f"{quote(table.column_names, most=12)}.",
            hint=Hint("For other tables use crowdgraph.read_csv.", cli="For other tables use --format csv."),
        )
    rows = _select_rows(table, workflow, anonymous)
    answers = _answers(table["annotations"], rows, task, label, malformed)
    answered = np.array([answer is not None for answer in answers], dtype=bool)
    times = pc.replace_substring_regex(table["created_at"], r" UTC$", "Z")
    frame = {
        "volunteer": _volunteers(table["user_name"], anonymous),
        "item": table["subject_ids"],
        "label": answers,
        "time": pc.if_else(pa.array(answered), times, None),
        **{name: table[name] for name in ATTRIBUTE_COLUMNS if name in table.column_names},
    }
    return graph_from_frame(
        frame, gold=gold, classes=classes, labels=labels, duplicates=duplicates, missing=missing, row_mask=answered
    )


def _select_rows(table: pa.Table, workflow: int | str | None, anonymous: str) -> Array:
    """Return the rows of the requested workflow and volunteers."""
    selected = np.ones(table.num_rows, dtype=bool)
    if workflow is not None:
        if "workflow_id" not in table.column_names:
            raise ColumnError(
                "The export has no column 'workflow_id'; leave out " + Message("workflow=", cli="--workflow") + "."
            )
        workflows = pc.unique(table["workflow_id"]).to_pylist()
        if str(workflow) not in workflows:
            raise InputError(f"No row belongs to workflow {str(workflow)!r}; the export has {quote(workflows)}.")
        selected &= pc.equal(table["workflow_id"], str(workflow)).fill_null(pa.scalar(value=False)).to_numpy()
    if anonymous == "drop":
        selected &= ~_is_anonymous(table["user_name"]).to_numpy()
    return np.flatnonzero(selected)


def _is_anonymous(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.starts_with(names, ANONYMOUS_NAME).fill_null(pa.scalar(value=False))


def _volunteers(names: pa.ChunkedArray, anonymous: str) -> pa.ChunkedArray:
    return pc.if_else(_is_anonymous(names), ANONYMOUS_NAME, names) if anonymous == "pool" else names


def _answers(
    annotations: pa.ChunkedArray,
    rows: Array,
    task: str,
    label: Callable[[Any], Hashable | None] | None,
    malformed: str,
) -> list[Hashable | None]:
    """Return the label of every row of the export; None for rows that are not selected or do not answer the task."""
    answers: list[Hashable | None] = [None] * len(annotations)
    malformed_rows: list[int] = []
    for row, text in zip(rows.tolist(), annotations.take(rows).to_pylist(), strict=True):
        try:
            value = _task_value(text, task)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if malformed == "error":
                raise InputError(
                    f"The annotations in row {row} are not readable ({error}): {str(text)[:80]!r}.",
                    hint=Hint(
                        "Correct the export, or use malformed='skip' to leave such rows out.",
                        cli="Correct the export, or leave such rows out, in Python with malformed='skip'.",
                    ),
                ) from error
            malformed_rows.append(row)
            continue
        answers[row] = None if value is None else _answer(value, label, row)
    if malformed_rows:
        warn(
            f"{len(malformed_rows):,} rows have unreadable annotations and are left out (rows "
            f"{quote(malformed_rows)}).",
            DroppedRowsWarning,
        )
    if all(answer is None for answer in answers):
        tasks = quote(_tasks(annotations)) or "no tasks"
        raise InputError(f"No row answers the task {task!r}; the export asks {tasks}.")
    return answers


def _task_value(text: str | None, task: str) -> Any:
    """Return the value of a task in the annotations of one row, or None."""
    for entry in _entries(json.loads(text or "null")):
        if entry["task"] == task:
            return entry.get("value")
    return None


def _entries(annotations: Any) -> Iterator[dict[str, Any]]:
    """Yield every task of the annotations of one row, including those inside combo tasks."""
    if not isinstance(annotations, list):
        raise ValueError(f"expected a list of tasks, got {type(annotations).__name__}")
    for entry in annotations:
        yield entry
        value = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(value, list) and value and all(isinstance(part, dict) and "task" in part for part in value):
            yield from _entries(value)


def _answer(value: Any, label: Callable[[Any], Hashable | None] | None, row: int) -> Any:
    """Return the label that a value stands for, or None."""
    if label is not None:
        return label(value)
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
        return " + ".join(sorted(map(str, value))) or None
    if isinstance(value, dict | list):
        raise InputError(
            f"The answer in row {row} is not a plain value: {str(value)[:80]}.",
            hint=Hint(
                "Say with label=... how to turn it into a label, for instance label=len for the number of marks.",
                cli="Read the export in Python, where label=... says how to turn the value into a label.",
            ),
        )
    return value


def _tasks(annotations: pa.ChunkedArray) -> list[str]:
    """Return the tasks of the first rows, for messages."""
    tasks: dict[str, None] = {}
    for text in annotations.slice(0, 1000).to_pylist():
        try:
            tasks.update((str(entry["task"]), None) for entry in _entries(json.loads(text or "null")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return list(tasks)
