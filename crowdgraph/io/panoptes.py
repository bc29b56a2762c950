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
from crowdgraph.errors import ColumnError, DroppedRowsWarning, InputError, check_choice, quote, warn
from crowdgraph.io.csv import csv_table
from crowdgraph.io.frames import graph_from_frame

__all__ = ["read_panoptes"]

NEEDED = ("user_name", "created_at", "annotations", "subject_ids")
# Further columns that are kept with each response; addresses and free metadata are not.
KEPT = ("classification_id", "workflow_id", "workflow_version", "user_id")
ANONYMOUS = "not-logged-in"


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
    gold, classes, labels, duplicates, missing
        As in `CrowdGraph.from_responses`; `gold` may also be the path of a CSV file with columns `item` and `label`.
    """
    check_choice("anonymous", anonymous, ("keep", "drop", "pool"))
    check_choice("malformed", malformed, ("error", "skip"))
    table = csv_table(path, text=None)
    absent = [name for name in NEEDED if name not in table.column_names]
    if absent:
        raise ColumnError(
            f"This is not a Zooniverse classification export: it lacks {quote(absent)}; it has "
            f"{quote(table.column_names, most=12)}. For other tables use crowdgraph.read_csv."
        )
    wanted = _wanted(table, workflow, anonymous)
    answers = _answers(table["annotations"], wanted, task, label, malformed)
    chosen = np.array([answer is not None for answer in answers], dtype=bool)
    times = pc.replace_substring_regex(table["created_at"], r" UTC$", "Z")
    frame = {
        "volunteer": _names(table["user_name"], anonymous),
        "item": table["subject_ids"],
        "label": answers,
        "time": pc.if_else(pa.array(chosen), times, None),
        **{name: table[name] for name in KEPT if name in table.column_names},
    }
    if isinstance(gold, str | PathLike):
        gold = csv_table(gold, text=("item", "label"))
    return graph_from_frame(
        frame, gold=gold, classes=classes, labels=labels, duplicates=duplicates, missing=missing, chosen=chosen
    )


def _wanted(table: pa.Table, workflow: int | str | None, anonymous: str) -> Array:
    """The rows of the workflow and volunteers that were asked for."""
    wanted = np.ones(table.num_rows, dtype=bool)
    if workflow is not None:
        if "workflow_id" not in table.column_names:
            raise ColumnError("The export has no column 'workflow_id'; leave out workflow=.")
        found = pc.unique(table["workflow_id"]).to_pylist()
        if str(workflow) not in found:
            raise InputError(f"No row belongs to workflow {str(workflow)!r}; the export has {quote(found)}.")
        wanted &= pc.equal(table["workflow_id"], str(workflow)).fill_null(pa.scalar(value=False)).to_numpy()
    if anonymous == "drop":
        wanted &= ~_nameless(table["user_name"]).to_numpy()
    return np.flatnonzero(wanted)


def _nameless(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.starts_with(names, ANONYMOUS).fill_null(pa.scalar(value=False))


def _names(names: pa.ChunkedArray, anonymous: str) -> pa.ChunkedArray:
    return pc.if_else(_nameless(names), ANONYMOUS, names) if anonymous == "pool" else names


def _answers(
    annotations: pa.ChunkedArray,
    wanted: Array,
    task: str,
    label: Callable[[Any], Hashable | None] | None,
    malformed: str,
) -> list[Hashable | None]:
    """The label of every row, None where it is not wanted or does not answer the task."""
    answers: list[Hashable | None] = [None] * len(annotations)
    bad: list[int] = []
    for row, text in zip(wanted.tolist(), annotations.take(wanted).to_pylist(), strict=True):
        try:
            value = _task_value(text, task)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if malformed == "error":
                raise InputError(
                    f"The annotations in row {row} are not readable ({error}): {str(text)[:80]!r}. "
                    "Mend the export, or use malformed='skip' to leave such rows out."
                ) from error
            bad.append(row)
            continue
        answers[row] = None if value is None else _answer(value, label, row)
    if bad:
        warn(f"{len(bad):,} rows have unreadable annotations and are left out (rows {quote(bad)}).", DroppedRowsWarning)
    if all(answer is None for answer in answers):
        asked = quote(_tasks(annotations)) or "no tasks"
        raise InputError(f"No row answers the task {task!r}; the export asks {asked}.")
    return answers


def _task_value(text: str | None, task: str) -> Any:
    """The value that was given for a task, or None."""
    for entry in _entries(json.loads(text or "null")):
        if entry["task"] == task:
            return entry.get("value")
    return None


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
    """The label of a value, or None."""
    if label is not None:
        return label(value)
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
        return " + ".join(sorted(map(str, value))) or None
    if isinstance(value, dict | list):
        raise InputError(
            f"The answer in row {row} is not a plain value: {str(value)[:80]}. Say with label=... how to turn "
            "the value into a label, for instance label=len for the number of marks."
        )
    return value


def _tasks(annotations: pa.ChunkedArray) -> list[str]:
    """The tasks of the first rows, for messages."""
    found: dict[str, None] = {}
    for text in annotations.slice(0, 1000).to_pylist():
        try:
            found.update((str(entry["task"]), None) for entry in _entries(json.loads(text or "null")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return list(found)
