"""Exports of Label Studio: JSON, JSON-MIN and CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.io._annotations import (
    AnnotationLog,
    Malformed,
    MalformedError,
    member,
    read_text,
    time_of,
)
from crowdgraph.io.csv import csv_rows, csv_table
from crowdgraph.io.frames import check_options

__all__ = ["read_label_studio"]

# The types of results that are answers, and where their values are.
ANSWER_TYPES = ("choices", "rating", "taxonomy", "number", "datetime", "textarea")
TEXT_KEYS = {"textarea": "text"}
# The columns of CSV and JSON-MIN that are no answers.
OWN_COLUMNS = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "source"}


def read_label_studio(
    path: str | PathLike[str],
    *,
    question: str | None = None,
    malformed: Malformed = "error",
    gold: Any = None,
    **options: Any,
) -> CrowdGraph:
    r"""Read a graph from an export of Label Studio: JSON, JSON-MIN or CSV.

    Items are tasks, volunteers are those who completed an annotation (their e-mail address where the export has it),
    and times are when annotations were created. The labels are choices, ratings, numbers, texts or paths of a
    taxonomy; several choices are joined with ``" + "``. Annotations that were skipped, or do not answer the question,
    are left out with a warning that counts them. What models predicted is not read.

    Parameters
    ----------
    path
        The export, plain or compressed.
    question
        The name of the question to read (``from_name`` in JSON, the column in CSV); the only one if left out.
    malformed
        What to do with annotations that are not as Label Studio writes them: raise an ``"error"`` that names the line,
        or ``"skip"`` them with a warning that counts them.
    gold
        As in `CrowdGraph.from_responses`. If left out, annotations that are marked as ground truth are also gold.
    **options
        As in `CrowdGraph.from_responses`: `classes`, `labels`, `duplicates`.

    Examples
    --------
    >>> import crowdgraph as cg, json, pathlib, tempfile
    >>> answer = {"from_name": "animal", "to_name": "image", "type": "choices", "value": {"choices": ["cat"]}}
    >>> task = {"id": 7, "data": {"image": "7.jpg"}, "annotations": [{"completed_by": 1, "result": [answer]}]}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "export.json"
    >>> _ = path.write_text(json.dumps([task]))
    >>> cg.read_label_studio(path).responses[0].label
    'cat'
    """
    check_options(read_label_studio, options)
    log = _Log(path, "label_studio", malformed=malformed)
    if _is_table(path):
        log.each(_table_rows(path, log), log.take_row)
    else:
        for record in log.records(read_text(path)):
            log.each([record], log.take_row if "annotator" in record and "annotations" not in record else log.take_task)
    truth = log.ground_truth(question) if gold is None else gold
    return log.graph(question=question, gold=truth, options=options)


class _Log(AnnotationLog):
    """The annotations of an export, and those that are marked as ground truth."""

    def __init__(self, path: str | PathLike[str], kind: str, *, malformed: str) -> None:
        super().__init__(path, kind, malformed=malformed)
        self._truths: list[tuple[str, dict[str, Any]]] = []

    def take_task(self, task: dict[str, Any]) -> None:
        """Take the annotations of a task."""
        key = "annotations" if "annotations" in task else "completions"
        annotations = member(task, key, list)
        self.each(annotations, lambda annotation: self._take_annotation(task.get("id"), annotation))

    def _take_annotation(self, item: Any, annotation: Any) -> None:
        result = member(annotation, "result", list)
        if annotation.get("was_cancelled"):
            self.leave_out("were skipped by the volunteer")
            return
        answers: dict[str, Any] = {}
        for part in result:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in ANSWER_TYPES:
                value = member(part, "value", dict).get(TEXT_KEYS.get(kind, kind))
                answers[member(part, "from_name", str)] = _paths(value) if kind == "taxonomy" else value
        self.add(_volunteer(annotation.get("completed_by")), item, answers, time=time_of(annotation))
        if annotation.get("ground_truth"):
            self._truths.append((str(item), answers))

    def take_row(self, row: dict[str, Any]) -> None:
        """Take a row of a table: an annotation with a column for each question."""
        answers = {name: _cell(value) for name, value in row.items() if name not in OWN_COLUMNS and value is not None}
        self.add(_volunteer(row.get("annotator")), row.get("id"), answers, time=time_of(row))

    def ground_truth(self, question: str | None) -> dict[str, list[Any]] | None:
        """Return a table of the labels of annotations marked as ground truth; None if there are none."""
        rows = [
            (item, value[0] if isinstance(value, list) and len(value) == 1 else value)
            for item, answers in self._truths
            for name, value in answers.items()
            if question in (None, name)
        ]
        plain = [(item, value) for item, value in rows if isinstance(value, str | int | float)]
        return {"item": [item for item, _ in plain], "label": [value for _, value in plain]} if plain else None


def _volunteer(value: Any) -> Any:
    """Return who completed an annotation: an id, or the e-mail address or id in an object."""
    return value.get("email") or value.get("id") if isinstance(value, dict) else value


def _paths(value: Any) -> Any:
    """Return the paths of a taxonomy as text."""
    if isinstance(value, list):
        return [" > ".join(map(str, path)) if isinstance(path, list) else path for path in value]
    return value


def _cell(value: Any) -> Any:
    """Return the value of a cell; several choices are written as JSON."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"looks like JSON, but is not: {value!r:.40}") from error
    return value.get("choices", value) if isinstance(value, dict) else value


def _is_table(path: Any) -> bool:
    names = [suffix.lower() for suffix in Path(path).suffixes] if isinstance(path, str | PathLike) else []
    return ".csv" in names or ".tsv" in names


def _table_rows(path: str | PathLike[str], log: _Log) -> Iterator[dict[str, Any]]:
    """Yield the rows of a CSV export, whose header must be one."""
    mark = "\t" if ".tsv" in Path(path).suffixes else ","
    table = csv_table(path, text=None, delimiter=mark)
    log.check_own(dict.fromkeys(table.column_names))
    lines = [line for line, _ in csv_rows(path, delimiter=mark, encoding="utf-8")][1:]
    for number, row in enumerate(table.to_pylist()):
        log.position = f"line {lines[number]}" if len(lines) == table.num_rows else f"row {number + 1}"
        yield row
