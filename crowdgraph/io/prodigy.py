"""Exports of Prodigy."""

from __future__ import annotations

import datetime as dt
from os import PathLike
from typing import Any

from crowdgraph.core._parameters import is_number
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.io._annotations import AnnotationLog, Malformed, MalformedError, read_text
from crowdgraph.io.frames import check_options

__all__ = ["read_prodigy"]


def read_prodigy(
    path: str | PathLike[str], *, malformed: Malformed = "error", gold: Any = None, **options: Any
) -> CrowdGraph:
    r"""Read a graph from a dataset of Prodigy, as ``prodigy db-out`` writes it.

    Volunteers are annotator ids (or, in files of older versions, sessions), and times are `_timestamp` in UTC. Where a
    record has options to choose from, its item is the input (`_input_hash`) and its label what was chosen, several
    joined with ``" + "``. Elsewhere the question is whether a label fits, so that the item is the input with that label
    (`_task_hash`) and the answer is the label: ``"accept"`` or ``"reject"``. What was ignored, and choices that were
    rejected, are left out with a warning that counts them.

    Parameters
    ----------
    path
        The file, JSON lines or JSON, plain or compressed.
    malformed, gold, **options
        As in `crowdgraph.read_label_studio`; gold is only what you give.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dataset.jsonl"
    >>> _ = path.write_text('{"text": "Hi", "options": [{"id": "kind"}, {"id": "rude"}], "accept": ["kind"], '
    ...                     '"answer": "accept", "_input_hash": 5, "_task_hash": 6, "_annotator_id": "tone-anna", '
    ...                     '"_timestamp": 1700000000}')
    >>> [(response.item, response.label) for response in cg.read_prodigy(path).responses]
    [('5', 'kind')]
    """
    check_options(read_prodigy, options)
    log = AnnotationLog(path, "prodigy", malformed=malformed)

    def take(record: dict[str, Any]) -> None:
        answer = record.get("answer")
        if answer not in ("accept", "reject", "ignore"):
            raise MalformedError(f"has the answer {answer!r:.40}, not accept, reject or ignore")
        if answer == "ignore":
            log.leave_out("were ignored by the volunteer")
            return
        is_choice = "options" in record or "accept" in record
        if is_choice and answer == "reject":
            log.leave_out("are rejected choices")
            return
        item = record.get("_input_hash" if is_choice else "_task_hash")
        who = record.get("_annotator_id") or record.get("_session_id")
        log.add(who, item, {"answer": record.get("accept") if is_choice else answer}, time=_time(record))

    for record in log.records(read_text(path)):
        log.each([record], take)
    return log.graph(question=None, gold=gold, options=options)


def _time(record: dict[str, Any]) -> str | None:
    """Return the time of a record, which is in seconds since 1970."""
    seconds = record.get("_timestamp")
    if seconds is None:
        return None
    try:
        if not is_number(seconds):
            raise ValueError
        return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedError(f"needs seconds since 1970 under '_timestamp', and has {seconds!r:.40}") from error
