"""Tables of the Galaxy Zoo Supernovae project."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from os import PathLike, fspath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from crowdgraph.core._arrays import Array
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, LabelError, MissingValueError, TimeError
from crowdgraph.io._columns import COUNTED
from crowdgraph.io._files import is_file
from crowdgraph.io.csv import check_delimiter, read_start
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.messages import quote

__all__ = ["read_galaxy_zoo_supernovae"]

CLASSES = ("not supernova", "supernova")
SCORES = (-1, 1, 3)
# The columns in their order, and the names that a header may give them (in lower case, letters and digits only).
COLUMNS = {
    "classification": ("classification", "classificationid"),
    "agent id": ("agentid", "agent"),
    "asset id": ("assetid", "asset"),
    "PTF type": ("ptftype", "type"),
    "PTF class": ("ptfclass", "class"),
    "score": ("score",),
}
DELIMITERS = (",", "\t", ";")
# Fields that stand for null, in lower case.
NULL_TEXTS = ("", "null", "none", r"\n")

INTEGER = re.compile("-?[0-9]+")
SUPERNOVA = re.compile(r"sn|supernova", re.IGNORECASE)
# A negation before it, as a word of its own or joined to it: "not SN", "no supernova", "non-SN", "notSN".
NEGATED = re.compile(r"(?<![a-z])(no|not|non)((?![a-z]).*)?(sn|supernova)", re.IGNORECASE | re.DOTALL)


def read_galaxy_zoo_supernovae(path: str | PathLike[str], *, delimiter: str | None = None) -> CrowdGraph:
    r"""Read a graph from a table of the Galaxy Zoo Supernovae project.

    The data are not public. The layout follows the description by the authors of the paper; no such file was at hand
    for testing.

    The table has the columns classification, agent id, asset id, PTF type, PTF class and score. If it has a header, the
    names may be written in any case, with or without spaces and underscores (``agent_id``, ``Agent ID``), in any order,
    and further columns are ignored. If its first row begins with a whole number, there is no header, and the six
    columns come in this order. Spaces around a field are ignored; an empty field, ``NULL``, ``None`` and ``\N`` (in any
    case) are null.

    Volunteers are agent ids and items are asset ids, both as text; labels are the scores -1, 1 and 3; the time is the
    number of the classification, which rises with time.

    Gold follows from the PTF type and the PTF class of an asset. A text means a supernova if it contains ``SN`` or
    ``supernova``, in any case (``SN Ia``, ``SLSN``), unless ``not``, ``no`` or ``non`` precedes it (``not SN``,
    ``non-SN``). An asset is a supernova if its type or its class means so, not a supernova if they say anything else,
    and unknown if both are null. Rows of one asset that contradict each other are an error; rows with nulls contradict
    nothing.

    Parameters
    ----------
    path
        The file, plain or compressed, in UTF-8.
    delimiter
        The character between fields; by default the one of comma, tab and semicolon that splits the first row into
        the most fields.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "supernovae.csv"
    >>> _ = path.write_text("1,anna,x,SN Ia,,3\n2,bert,x,SN Ia,,-1\n3,anna,y,AGN,,-1\n")
    >>> dict(cg.read_galaxy_zoo_supernovae(path).gold)
    {'x': 'supernova', 'y': 'not supernova'}
    """
    table = _table(path, delimiter)
    _check_complete(table)
    frame = {
        "volunteer": table["agent id"],
        "item": table["asset id"],
        "label": _scores(table["score"]),
        "time": _integers(table["classification"]),
    }
    return graph_from_frame(frame, gold=_gold(table), classes=CLASSES, labels=SCORES)


def _table(path: str | PathLike[str], delimiter: str | None) -> pa.Table:
    """Return the six columns as text, without spaces around it and with nulls."""
    if not is_file(path):
        raise InputError(f"{path!r} is not a file; give the path of a table of Galaxy Zoo Supernovae.")
    if delimiter is not None:
        check_delimiter(delimiter)
    try:
        first, delimiter = _first_row(path, DELIMITERS if delimiter is None else (delimiter,))
        table = _read(path, _names(first, path), delimiter)
    except (OSError, csv.Error, pa.ArrowException) as error:
        raise InputError(
            f"{fspath(path)!r} cannot be read as a table in UTF-8; it may be of another kind, cut short, or need "
            f"another delimiter=...: {error}."
        ) from error
    columns = [_text(column) for column in table.columns]
    return pa.table(columns, names=table.column_names).slice(1 if _is_header(first) else 0)


def _first_row(path: str | PathLike[str], delimiters: Sequence[str]) -> tuple[list[str], str]:
    """Return the fields of the first row, and the delimiter that makes the most of them."""
    text = read_start(path).decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise InputError(f"{fspath(path)!r} is empty; expected a row for each classification.")
    readers = {mark: csv.reader(io.StringIO(text, newline=""), delimiter=mark) for mark in delimiters}
    rows = {mark: next((row for row in reader if row), [""]) for mark, reader in readers.items()}
    best = max(rows, key=lambda mark: len(rows[mark]))
    return rows[best], best


def _is_header(first: list[str]) -> bool:
    return INTEGER.fullmatch(first[0].strip()) is None


def _names(first: list[str], path: str | PathLike[str]) -> list[str]:
    """Return our names for the columns of the file, in its order."""
    expected = f"the columns {quote(COLUMNS, most=6)}"
    if not _is_header(first):
        if len(first) != len(COLUMNS):
            raise ColumnError(
                f"{fspath(path)!r} has no header and {len(first)} columns; expected {expected} in this order. Add a "
                "header that names the columns, or say delimiter=... if fields are separated otherwise."
            )
        return list(COLUMNS)
    names = [f"further {index}" for index in range(len(first))]
    for index, field in enumerate(first):
        simplified = re.sub("[^a-z0-9]", "", field.lower())
        name = next((column for column, spellings in COLUMNS.items() if simplified in spellings), names[index])
        if name in names[:index]:
            raise ColumnError(
                f"{fspath(path)!r} has two columns for {name!r}: {first[names.index(name)]!r} and {field!r}. Rename or "
                "drop one of them."
            )
        names[index] = name
    absent = [column for column in COLUMNS if column not in names]
    if absent:
        raise ColumnError(
            f"{fspath(path)!r} is not a table of Galaxy Zoo Supernovae: it lacks {quote(absent, most=6)}; its first "
            f"row is {quote(first, most=12)}. Expected {expected}, in a header or, without one, in this order. For "
            "other tables use crowdgraph.read_csv."
        )
    return names


def _read(path: str | PathLike[str], names: list[str], delimiter: str) -> pa.Table:
    """Read our columns as text, in our order; a header becomes their first row."""
    return pa_csv.read_csv(
        fspath(path),
        read_options=pa_csv.ReadOptions(column_names=names),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(COLUMNS, pa.string()), include_columns=list(COLUMNS)
        ),
    )


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(column)
    is_null = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(NULL_TEXTS))
    return pc.if_else(is_null, pa.scalar(None, pa.string()), trimmed)


def _check_complete(table: pa.Table) -> None:
    """Raise unless every row has an agent, an asset, a score and a classification."""
    required = [column for column in COLUMNS if not column.startswith("PTF")]
    null_rows = {column: _rows(table[column].is_null()) for column in required}
    listing = "; ".join(f"{column} in rows {quote(rows.tolist())}" for column, rows in null_rows.items() if len(rows))
    if listing:
        raise MissingValueError(f"Null {listing}{COUNTED}. Correct the file, or drop these rows from it.")


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    bad = _rows(pc.invert(pc.match_substring_regex(column, f"^{INTEGER.pattern}$")))
    if len(bad):
        raise TimeError(
            f"{len(bad):,} classifications are not whole numbers, such as {column[int(bad[0])].as_py()!r} in row "
            f"{bad[0]}; expected numbers that rise with time. Correct the file."
        )
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise TimeError(f"A classification does not fit into a 64-bit integer: {error}. Correct the file.") from error


def _scores(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the scores as integers; a plus sign and zeros after the point are ignored."""
    plain = pc.replace_substring_regex(column, r"^\+|\.0*$", "")
    codes = pc.index_in(plain, value_set=pa.array([str(score) for score in SCORES]))
    bad = _rows(codes.is_null())
    if len(bad):
        raise LabelError(
            f"{len(bad):,} scores are not among {quote(SCORES)}, such as {column[int(bad[0])].as_py()!r} in row "
            f"{bad[0]}. Correct the file, or read it with crowdgraph.read_csv if it has other labels."
        )
    return pa.chunked_array([pa.array(SCORES)]).take(codes)


def _rows(mask: pa.ChunkedArray) -> Array:
    return np.flatnonzero(mask.to_numpy())


def _gold(table: pa.Table) -> dict[str, pa.ChunkedArray | list[str | None]]:
    """Return the class that each distinct pair of PTF type and PTF class gives to an asset."""
    distinct = table.group_by(["asset id", "PTF type", "PTF class"], use_threads=False).aggregate([])
    pairs = zip(distinct["PTF type"].to_pylist(), distinct["PTF class"].to_pylist(), strict=True)
    return {"item": distinct["asset id"], "label": [_class(*pair) for pair in pairs]}


def _class(*texts: str | None) -> str | None:
    """Return the class that a PTF type and a PTF class mean, if any."""
    statements = [text for text in texts if text is not None]
    is_supernova = any(SUPERNOVA.search(text) and not NEGATED.search(text) for text in statements)
    return CLASSES[is_supernova] if statements else None
