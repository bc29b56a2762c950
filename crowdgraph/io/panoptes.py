"""Zooniverse classification exports."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from os import PathLike
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core.graph import CrowdGraph, Duplicates
from crowdgraph.errors import ColumnError, DroppedRowsWarning, InputError, one_of, shown
from crowdgraph.io.csv import csv_table
from crowdgraph.io.frames import graph_from_frame

__all__ = ["read_panoptes"]

NEEDED = ("user_name", "created_at", "annotations", "subject_ids")
# Further columns that are kept with each response; addresses and free metadata are not.
KEPT = ("classification_id", "workflow_id", "workflow_version", "user_id")
ANONYMOUS = "not-logged-in"
SKIP = object()


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
) -> CrowdGraph:
    """Read a graph from a Zooniverse classification export.

    Volunteers are user names, items are subject ids (as text), times are `created_at` in UTC. Rows in which the task
    was not asked or not answered are passed over. IP addresses are not kept.

    Parameters
    ----------
    path
        The export, a CSV file, plain or compressed.
    task
        The task to read, such as ``"T0"``; found also inside combo tasks.
    label
        Turns the value of the task into a label, or into None to pass a row over. If left out, a single answer is its
        own label, and several answers (a list of plain values) are joined with ``" + "``.
    workflow
        Read only the rows of this workflow id.
    anonymous
        What to do with volunteers who were not logged in (``not-logged-in-<hash>``): ``"keep"`` each as a volunteer,
        ``"drop"`` their rows, or ``"pool"`` them as one volunteer ``"not-logged-in"``.
    malformed
        What to do with rows whose annotations are not valid JSON of the expected form: raise an ``"error"`` that names
        the row, or ``"skip"`` them with a warning that counts them.
    gold, classes, labels, duplicates
        As in `CrowdGraph.from_responses`; `gold` may also be the path of a CSV file with columns `item` and `label`.
    """
    one_of("anonymous", anonymous, ("keep", "drop", "pool"))
    one_of("malformed", malformed, ("error", "skip"))
    table = csv_table(path, text=None)
    absent = [name for name in NEEDED if name not in table.column_names]
    if absent:
        raise ColumnError(
            f"This is not a Zooniverse classification export: it lacks {shown(absent)}; it has "
            f"{shown(table.column_names, most=12)}. For other tables use crowdgraph.read_csv."
        )
    frame = _responses(_chosen(table, workflow, anonymous), task, label, malformed)
    if isinstance(gold, str | PathLike):
        gold = csv_table(gold, text=("item", "label"))
    return graph_from_frame(frame, gold=gold, classes=classes, labels=labels, duplicates=duplicates)


def _chosen(table: pa.Table, workflow: int | str | None, anonymous: str) -> pa.Table:
    """The rows of the workflow and volunteers that were asked for, with their row number in the file."""
    table = table.append_column("row", pa.array(np.arange(table.num_rows)))
    if workflow is not None:
        if "workflow_id" not in table.column_names:
            raise ColumnError("The export has no column 'workflow_id'; leave out workflow=.")
        found = pc.unique(table["workflow_id"]).to_pylist()
        if str(workflow) not in found:
            raise InputError(f"No row belongs to workflow {str(workflow)!r}; the export has {shown(found)}.")
        table = table.filter(pc.equal(table["workflow_id"], str(workflow)))
    nameless = pc.starts_with(table["user_name"], ANONYMOUS).fill_null(pa.scalar(value=True))
    if anonymous == "drop":
        table = table.filter(pc.invert(nameless))
    if anonymous == "pool":
        pooled = pc.if_else(nameless, ANONYMOUS, table["user_name"])
        table = table.set_column(table.column_names.index("user_name"), "user_name", pooled)
    return table


def _responses(
    table: pa.Table, task: str, label: Callable[[Any], Hashable | None] | None, malformed: str
) -> dict[str, Any]:
    """The columns of the responses: one for each row that answers the task."""
    kept: list[int] = []
    labels: list[Hashable] = []
    bad: list[int] = []
    for place, (row, text) in enumerate(zip(table["row"].to_pylist(), table["annotations"].to_pylist(), strict=True)):
        try:
            value = _task_value(text, task)
        except (ValueError, TypeError, KeyError) as error:
            if malformed == "error":
                raise InputError(
                    f"The annotations in row {row} are not readable ({error}): {str(text)[:80]!r}. "
                    "Mend the export, or use malformed='skip' to leave such rows out."
                ) from error
            bad.append(row)
            continue
        answer = SKIP if value is SKIP else _answer(value, label, row)
        if answer is not SKIP:
            kept.append(place)
            labels.append(answer)
    if bad:
        warnings.warn(
            f"{len(bad):,} rows have unreadable annotations and are left out (rows {shown(bad)}).",
            DroppedRowsWarning,
            stacklevel=3,
        )
    if not kept:
        raise InputError(f"No row answers the task {task!r}; the export asks {shown(_tasks(table)) or 'no tasks'}.")
    rows = table.take(kept)
    return {
        "volunteer": rows["user_name"],
        "item": rows["subject_ids"],
        "label": labels,
        "time": pc.replace_substring_regex(rows["created_at"], r" UTC$", "Z"),
        **{name: rows[name] for name in KEPT if name in rows.column_names},
    }


def _task_value(text: str | None, task: str) -> Any:
    """The value that was given for a task, or SKIP."""
    for entry in _entries(json.loads(text or "null")):
        if entry["task"] == task:
            return SKIP if entry.get("value") is None else entry["value"]
    return SKIP


def _entries(annotations: Any) -> Iterator[dict[str, Any]]:
    """Every task of an annotation, those inside combo tasks too."""
    if not isinstance(annotations, list):
        raise ValueError(f"expected a list of tasks, got {type(annotations).__name__}")
    for entry in annotations:
        yield entry
        value = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(value, list) and value and all(isinstance(part, dict) and "task" in part for part in value):
            yield from _entries(value)


def _answer(value: Any, label: Callable[[Any], Hashable | None] | None, row: int) -> Any:
    """The label of a value, or SKIP."""
    if label is not None:
        answer = label(value)
        return SKIP if answer is None else answer
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
        return " + ".join(sorted(map(str, value))) or SKIP
    if isinstance(value, dict | list):
        raise InputError(
            f"The answer in row {row} is not a plain value: {str(value)[:80]}. Say with label=... how to turn "
            "the value into a label, for instance label=len for the number of marks."
        )
    return value


def _tasks(table: pa.Table) -> list[str]:
    """The tasks of the first rows, for messages."""
    found: dict[str, None] = {}
    for text in table["annotations"].slice(0, 1000).to_pylist():
        try:
            found.update((str(entry["task"]), None) for entry in _entries(json.loads(text or "null")))
        except (ValueError, TypeError, KeyError):
            continue
    return list(found)
