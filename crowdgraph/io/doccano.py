"""Exports of doccano."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import InputError
from crowdgraph.io._annotations import (
    AnnotationLog,
    Malformed,
    MalformedError,
    archive_texts,
    member,
    read_text,
    time_of,
)
from crowdgraph.io._files import is_directory, is_file
from crowdgraph.io.frames import check_options
from crowdgraph.messages import Hint

__all__ = ["read_doccano"]

ENDINGS = (".jsonl", ".json")
# What doccano calls the labels of an example, in its several kinds of projects and versions.
LABEL_KEYS = ("label", "labels", "cats")


def read_doccano(
    path: str | PathLike[str],
    *,
    volunteer: str | None = None,
    malformed: Malformed = "error",
    gold: Any = None,
    **options: Any,
) -> CrowdGraph:
    r"""Read a graph from an export of doccano.

    doccano exports a zip archive with a file for each member of a project, such as ``anna.jsonl``: give the archive, or
    a directory with these files. Volunteers are the names of the files, items are the examples' ids, and labels are
    their categories; several are joined with ``" + "``. Examples that a member did not label are left out with a
    warning that counts them. The JSON of doccano 1.0, which has ``annotations`` with users, is read as well.

    Parameters
    ----------
    path
        The archive, a directory, or a file.
    volunteer
        Who labelled, for a single file that does not say it.
    malformed, gold, **options
        As in `crowdgraph.read_label_studio`; gold is only what you give.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "anna.jsonl").write_text('{"id": 1, "text": "Great", "label": ["good"], "Comments": []}\n')
    >>> _ = (folder / "bert.jsonl").write_text('{"id": 1, "text": "Great", "label": ["bad"], "Comments": []}\n')
    >>> graph = cg.read_doccano(folder)
    >>> [(response.volunteer, response.label) for response in graph.responses]
    [('anna', 'good'), ('bert', 'bad')]
    """
    check_options(read_doccano, options)
    log = AnnotationLog(path, "doccano", malformed=malformed)

    def take(record: dict[str, Any], who: str | None) -> None:
        if "annotations" in record:
            _take_annotations(log, record)
            return
        key = next((key for key in LABEL_KEYS if key in record), None)
        if key is None:
            raise MalformedError(f"has none of {', '.join(LABEL_KEYS)}")
        if who is None:
            raise InputError(
                f"{str(path)!r} does not say who labelled.",
                hint=Hint(
                    "Give the archive that doccano exports, with a file for each member, or say volunteer='NAME'.",
                    cli="Give the archive that doccano exports, with a file for each member.",
                ),
            )
        log.add(who, record.get("id"), {"label": record[key]})

    for name, text in _texts(path).items():
        who = volunteer if name == "" else PurePosixPath(name).stem
        for record in log.records(text, of=name):
            log.each([record], lambda one, who=who: take(one, who))  # type: ignore[misc]
    return log.graph(question=None, gold=gold, options=options)


def _take_annotations(log: AnnotationLog, record: dict[str, Any]) -> None:
    """Take the annotations of an example as doccano 1.0 wrote them: one of a user is an answer, several are joined."""
    by_user: dict[Any, list[dict[str, Any]]] = {}

    def collect(annotation: Any) -> None:
        if not isinstance(annotation, dict) or not isinstance(annotation.get("user"), str | int):
            raise MalformedError(f"needs an object with label and user, and has {annotation!r:.40}")
        by_user.setdefault(annotation["user"], []).append(annotation)

    log.each(member(record, "annotations", list), collect)

    def add(entry: tuple[Any, list[dict[str, Any]]]) -> None:
        user, parts = entry
        time = max(filter(None, map(time_of, parts)), default=None)
        log.add(user, record.get("id"), {"label": [one.get("label") for one in parts]}, time=time)

    log.each(by_user.items(), add)


def _texts(path: Any) -> dict[str, str]:
    """Return the texts of the members' files by their names; of a single file, with no name."""
    if is_directory(path):
        return {file.name: read_text(file) for file in sorted(Path(path).iterdir()) if file.name.endswith(ENDINGS)}
    if is_file(path) and zipfile.is_zipfile(path):
        return archive_texts(path, ENDINGS)
    return {"": read_text(path)}
