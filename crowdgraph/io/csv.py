"""CSV files, plain or compressed."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, ParameterError
from crowdgraph.io._columns import check_column_names, id_columns
from crowdgraph.io._files import is_file

__all__ = ["csv_lines", "csv_table", "read_csv"]

# How compressed files begin.
GZIP = b"\x1f\x8b"


def read_csv(
    path: str | PathLike[str],
    *,
    gold: Any = None,
    volunteer: str = "volunteer",
    item: str = "item",
    label: str = "label",
    delimiter: str = ",",
    encoding: str = "utf-8",
    **options: Any,
) -> CrowdGraph:
    r"""Read a graph from a CSV file with one row for each response.

    Ids and labels are text and stay so: volunteer ``007`` is not volunteer ``7``. Labels that are all whole numbers
    are ordered by size. Times and further columns are read as what they look like. An empty field is null.

    Parameters
    ----------
    path
        The file; ``.gz`` and other compressed files are unpacked by their ending.
    gold
        Another CSV file with the columns `item` and `label` (or a column of probabilities for each class), or gold in
        any form that `CrowdGraph.from_responses` takes.
    volunteer, item, label
        Names of the columns that say who answered which item with what. crowd-kit's ``worker`` and ``task`` are known.
    delimiter, encoding
        What stands between fields, and how text is encoded.
    **options
        As in `CrowdGraph.from_responses`: `time`, `classes`, `labels`, `duplicates`, `missing`, ...

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "responses.csv"
    >>> _ = path.write_text("volunteer,item,label\nanna,x,yes\nbert,x,no\n")
    >>> len(cg.read_csv(path).responses)
    2
    """

    def text(names: Sequence[str]) -> tuple[str, ...]:
        return (*id_columns(names, volunteer=volunteer, item=item), label)

    frame = csv_table(path, text=text, delimiter=delimiter, encoding=encoding)
    volunteer, item = id_columns(frame.column_names, volunteer=volunteer, item=item)
    if isinstance(gold, str | PathLike):
        gold = csv_table(gold, text=(item, label), delimiter=delimiter, encoding=encoding)
    return CrowdGraph.from_responses(frame, gold=gold, volunteer=volunteer, item=item, label=label, **options)


def csv_table(
    path: str | PathLike[str],
    *,
    text: Iterable[str] | Callable[[Sequence[str]], Iterable[str]] | None,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> pa.Table:
    """A CSV file as a table; columns of `text` stay text, the others are read as what they look like.

    `text` is names, a function that chooses them among those of the file, or None for all.
    """
    if not is_file(path):
        raise InputError(f"{_shown(path)} {_not_a_file(path)}; give the path of a CSV file.")
    if len(delimiter) != 1 or not delimiter.isascii():
        raise ParameterError(f"delimiter={delimiter!r} must be a single ASCII character, such as ',' or ';'.")
    _check_encoding(encoding)
    try:
        names = _header(path, delimiter, encoding)
        chosen = names if text is None else text(names) if callable(text) else text
        return _read(path, [name for name in chosen if name in names], delimiter, encoding)
    except (OSError, UnicodeDecodeError, LookupError, pa.ArrowException) as error:
        raise InputError(f"{_shown(path)} {_why(error, path, delimiter, encoding)}") from error


def csv_lines(path: str | PathLike[str], *, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file as they stand there, the header among them, each with the line on which it begins."""
    with pa.input_stream(fspath(path), compression="detect") as stream:
        reader = csv.reader(TextIOWrapper(stream, encoding=encoding, errors="replace", newline=""), delimiter=delimiter)
        before = 0
        for row in reader:
            if row:
                yield before + 1, row
            before = reader.line_num


def _check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise InputError(
            f"encoding={encoding!r} is not a known encoding; use one such as 'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
        ) from error


def _shown(path: Any) -> str:
    return repr(fspath(path)) if isinstance(path, str | PathLike) else repr(path)


def _not_a_file(path: Any) -> str:
    try:
        return "is a directory, not a file" if Path(path).is_dir() else "does not exist or is not a file"
    except (OSError, TypeError, ValueError):
        return "is not a file"


def _why(error: Exception, path: str | PathLike[str], delimiter: str, encoding: str) -> str:
    """What is wrong with a file that cannot be read, and what to do."""
    told = str(error)
    if isinstance(error, PermissionError):
        return "may not be read by you; ask its owner, or copy it to a place of your own."
    if "Empty CSV" in told:
        return "is empty; give a CSV file with a header and a row for each response."
    if "inflate failed" in told and not _is_packed(path):
        return "is not compressed, though its name says so; rename it without .gz."
    if "columns, got" in told and (odd := _odd_line(path, delimiter, encoding)):
        return odd
    if "Truncated" in told or "Unexpected end" in told:
        return "is cut short; copy or download it again."
    # Files that are no text at all would fill the message with signs that terminals obey.
    clean = "".join(sign if sign.isprintable() and sign != "\ufffd" else "?" for sign in told[:200])
    return (
        f"cannot be read as a CSV file in {encoding}; it may be of another kind, cut short, or need "
        f"encoding='latin-1': {clean}."
    )


def _is_packed(path: str | PathLike[str]) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def _odd_line(path: str | PathLike[str], delimiter: str, encoding: str) -> str:
    """Where a file has a row of another length than its header, and what to do; nothing where it is not found."""
    rows = csv_lines(path, delimiter=delimiter, encoding=encoding)
    try:
        expected = len(next(rows)[1])
        line, got = next((line, len(row)) for line, row in rows if len(row) != expected)
    except (StopIteration, csv.Error):
        return ""
    return (
        f"has a row that does not fit its header. Expected {expected} columns, got {got} in line {line}; mend that "
        f"line, or quote fields that hold the delimiter {delimiter!r}."
    )


def _header(path: str | PathLike[str], delimiter: str, encoding: str) -> list[str]:
    reading = pa_csv.ReadOptions(encoding=encoding)
    with pa_csv.open_csv(fspath(path), read_options=reading, parse_options=_parsing(delimiter)) as reader:
        names = list(reader.schema.names)
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0] and mark != delimiter), None)
    if other:
        raise ColumnError(f"{fspath(path)!r} has the single column {names[0]!r}; use delimiter={other!r}.")
    check_column_names(names, owner=repr(fspath(path)))
    return names


def _read(path: str | PathLike[str], text: Iterable[str], delimiter: str, encoding: str) -> pa.Table:
    return pa_csv.read_csv(
        fspath(path),
        read_options=pa_csv.ReadOptions(encoding=encoding),
        parse_options=_parsing(delimiter),
        convert_options=pa_csv.ConvertOptions(
            column_types={name: pa.string() for name in text}, null_values=[""], strings_can_be_null=True
        ),
    )


def _parsing(delimiter: str) -> pa_csv.ParseOptions:
    return pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
