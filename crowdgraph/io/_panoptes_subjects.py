"""What a Zooniverse export says about subjects and visitors beside their answers."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from crowdgraph.core._arrays import Array, object_array
from crowdgraph.core.tables import NODE_NAMES
from crowdgraph.io._panoptes_rows import ANONYMOUS_NAME, ExportRows

# The attribute of items that are retired, and of volunteers who were not logged in.
RETIRED, ANONYMOUS = "retired", "anonymous"


def subject_attributes(export: ExportRows, rows: Iterable[int], items: Sequence[Hashable]) -> dict[str, Array]:
    """Return what the last of some rows says about each item: whether it is retired, and its metadata as text.

    Items about which nothing is readable have nothing. What cannot be the name of an attribute begins with `subject_`.
    """
    texts, subjects = export.column("subject_data"), export.column("subject_ids")
    if texts is None or subjects is None:
        return {}
    latest: dict[Hashable, str | None] = {subjects[row]: texts[row] for row in rows}
    records = [_metadata(latest.get(item), item) for item in items]
    if not any(records):
        return {}
    columns: dict[str, Array] = {
        RETIRED: object_array([bool(data.pop(RETIRED, None)) for data in records]).astype(bool)
    }
    for name in dict.fromkeys(name for data in records for name in data):
        attribute = f"subject_{name}" if name in NODE_NAMES or name in columns else name
        columns[attribute] = object_array([_text(data.get(name)) for data in records])
    return columns


def _metadata(text: str | None, item: Hashable) -> dict[str, Any]:
    """Return the data of a subject; nothing where it is not readable."""
    try:
        data = json.loads(text or "null")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    own = data.get(str(item), next(iter(data.values()), None))
    return {str(name): value for name, value in own.items()} if isinstance(own, dict) else {}


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Visitors who were not logged in


def visitor_names(export: ExportRows, rows: Array, anonymous: str) -> tuple[list[str | None], int]:
    """Return the volunteer of each row of the export, and how many sessions are not known.

    Pooled visitors share a name, but never about the same item, where each is a witness of their own: the first of them
    is one volunteer, the second another, and so on.
    """
    names: list[str | None] = export.table["user_name"].to_pylist()
    chosen = [row for row in rows.tolist() if export.is_anonymous[row]]
    if anonymous == "session":
        sessions = export.column("metadata") or [None] * len(export)
        ids = {row: _session(sessions[row]) for row in chosen}
        for row, session in ids.items():
            names[row] = names[row] if session is None else f"{ANONYMOUS_NAME}-session-{session}"
        return names, sum(session is None for session in ids.values())
    if anonymous == "pool":
        subjects = export.table["subject_ids"].to_pylist()
        visitors: dict[str | None, dict[str | None, int]] = {}
        for row in chosen:
            seen = visitors.setdefault(subjects[row], {})
            number = seen.setdefault(names[row], len(seen))
            names[row] = ANONYMOUS_NAME if number == 0 else f"{ANONYMOUS_NAME} {number + 1}"
    return names, 0


def _session(text: str | None) -> str | None:
    """Return the session of a row from its metadata."""
    try:
        metadata = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    session = metadata.get("session") if isinstance(metadata, Mapping) else None
    return str(session) if session else None
