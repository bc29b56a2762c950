"""Files of subjects that Zooniverse's own tools take: ids one per line for Panoptes, extracts for Caesar."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from crowdgraph.errors import ParameterError
from crowdgraph.io._files import atomic_file

__all__ = ["SUBJECT_ENDINGS", "write_subjects"]

SUBJECT_ENDINGS = (".txt", ".csv")
# By which key the rules of Caesar know our extracts.
EXTRACTOR_KEY = "crowdgraph"


def write_subjects(
    subjects: Mapping[Hashable, Mapping[str, Any]], path: str | PathLike[str], *, version: str | None = None
) -> None:
    r"""Write subjects to a file that Panoptes or Caesar takes, by how its name ends.

    Parameters
    ----------
    subjects
        The subjects, in their order, and what is known of each.
    path
        A file that ends in ``.txt``: one id a line, for ``panoptes subject-set add-subjects -f`` or, by xargs,
        ``panoptes workflow retire-subjects``; or in ``.csv``: extracts that Caesar imports, with what is known as JSON,
        on which its rules decide.
    version
        The version of the workflow, for Caesar.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "retire.txt"
    >>> write_subjects({"401": {"retire": 1}, "402": {"retire": 1}}, path)
    >>> path.read_text()
    '401\n402\n'
    """
    ids = [str(subject) for subject in subjects]
    wrong = next((name for name in ids if name != name.strip() or not name or "\n" in name or "\r" in name), None)
    if wrong is not None:
        raise ParameterError(f"The item {wrong!r} cannot stand on a line of its own, as the id of a subject does.")
    if Path(path).suffix.lower() not in SUBJECT_ENDINGS:
        raise ParameterError(f"{str(path)!r} must end in {' or '.join(SUBJECT_ENDINGS)}, which says what to write.")
    with atomic_file(path) as part:
        if Path(path).suffix.lower() == ".txt":
            part.write_text("".join(f"{name}\n" for name in ids), encoding="utf-8")
        else:
            pa_csv.write_csv(_extracts(ids, list(subjects.values()), version), part)


def _extracts(ids: Sequence[str], facts: Sequence[Mapping[str, Any]], version: str | None) -> pa.Table:
    data = [json.dumps(dict(one), ensure_ascii=False, allow_nan=False) for one in facts]
    columns = {
        "extractor_key": [EXTRACTOR_KEY] * len(ids),
        "subject_id": ids,
        "workflow_version": [version] * len(ids),
        "data": data,
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
