"""Exports of Argilla."""

from __future__ import annotations

from os import PathLike
from typing import Any

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.io._annotations import AnnotationLog, Malformed, MalformedError, member, read_text
from crowdgraph.io.frames import check_options

__all__ = ["read_argilla"]


def read_argilla(
    path: str | PathLike[str],
    *,
    question: str | None = None,
    malformed: Malformed = "error",
    gold: Any = None,
    **options: Any,
) -> CrowdGraph:
    r"""Read a graph from records of Argilla, as ``dataset.records.to_json(path)`` writes them.

    Items are records, volunteers are user ids, labels are the values of one question; several are joined with
    ``" + "``. The order of the file is the time. Records as Argilla 1 wrote them, a list of responses with ``values``
    and a ``status``, are read as well: drafts and discarded responses are left out with a warning that counts them.
    Suggestions of models are not read.

    Parameters
    ----------
    path
        The file, JSON or JSON lines, plain or compressed.
    question
        The question to read; the only one whose values can be labels if left out.
    malformed, gold, **options
        As in `crowdgraph.read_label_studio`; gold is only what you give.

    Examples
    --------
    >>> import crowdgraph as cg, json, pathlib, tempfile
    >>> record = {"id": "r1", "fields": {"text": "Hello"}, "responses": {"tone": [{"value": "kind", "user_id": "u1"}]}}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "records.json"
    >>> _ = path.write_text(json.dumps([record]))
    >>> cg.read_argilla(path).volunteers.ids.tolist()
    ['u1']
    """
    check_options(read_argilla, options)
    log = AnnotationLog(path, "argilla", malformed=malformed)

    def take_old(item: Any, response: Any) -> None:
        """Take a response as Argilla 1 wrote it."""
        values = member(response, "values", dict)
        if response.get("status", "submitted") != "submitted":
            log.leave_out("are drafts or were discarded")
            return
        answers = {name: entry.get("value") if isinstance(entry, dict) else entry for name, entry in values.items()}
        log.add(response.get("user_id"), item, answers)

    def take(record: dict[str, Any]) -> None:
        item = record.get("id") or record.get("external_id")
        responses = record.get("responses")
        if isinstance(responses, list):
            log.each(responses, lambda response: take_old(item, response))
            return
        by_user: dict[Any, list[dict[str, Any]]] = {}
        for name, entries in member(record, "responses", dict).items():
            for entry in _entries(entries):
                user = entry.get("user_id")
                sheets = by_user.setdefault(user if isinstance(user, str | int) else None, [{}])
                # A second answer to a question is another annotation.
                sheet = next((one for one in sheets if name not in one), None)
                if sheet is None:
                    sheets.append(sheet := {})
                sheet[name] = entry.get("value")
        log.each(
            [(user, sheet) for user, sheets in by_user.items() for sheet in sheets],
            lambda one: log.add(one[0], item, one[1]),
        )

    for record in log.records(read_text(path)):
        log.each([record], take)
    return log.graph(question=question, gold=gold, options=options)


def _entries(entries: Any) -> list[dict[str, Any]]:
    """Return the responses to a question; raise unless they are a list of objects."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise MalformedError(
            f"needs a list of objects with value and user_id for each question, and has {entries!r:.40}"
        )
    return entries
