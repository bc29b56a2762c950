"""CSV files, plain or compressed: read them, and detect their delimiter and header."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, ParameterError
from crowdgraph.io._cells import original_cells
from crowdgraph.io._columns import check_column_names, id_columns
from crowdgraph.io._files import is_file, is_saved_graph, not_a_file, quoted
from crowdgraph.io._gold_files import GoldFile
from crowdgraph.io._unpacked import text_source
from crowdgraph.io.frames import check_options, graph_from_frame
from crowdgraph.messages import Hint, argument

__all__ = [
    "check_delimiter",
    "check_encoding",
    "csv_header",
    "csv_rows",
    "csv_table",
    "failure",
    "parse_options",
    "read_csv",
    "read_start",
    "row_lines",
    "sniff_csv",
]

DELIMITERS = ",;\t|"
# How much of a file is read to detect its delimiter and header.
PEEK_BYTES = 2**16
# The first bytes of gzip files.
GZIP_MAGIC = b"\x1f\x8b"
# The line with which spreadsheets declare a delimiter to each other.
SEPARATOR_LINE = re.compile(r'"?sep=.?"?', re.IGNORECASE)


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

    Ids and labels are read as text: volunteer ``007`` is not volunteer ``7``. Labels that are all whole numbers are
    ordered by size. The types of times and further columns are inferred. An empty field is null. The apostrophe that
    crowdgraph writes before what a spreadsheet would run as a formula (``'=1+1``) is not part of a text.

    Parameters
    ----------
    path
        The file; ``.gz`` and other compressed files are decompressed according to their ending. One that unpacks to
        more than 64 MB and 100 times its size is refused, unless the environment variable ``CROWDGRAPH_MAX_UNPACKED``
        says how much is allowed, such as ``8GB``.
    gold
        A CSV or Parquet file with the items whose class is known and that class (or a column of probabilities for each
        class), or gold in any other form that `CrowdGraph.from_responses` takes.
    volunteer, item, label
        Names of the columns that say who answered which item with what. Without them, crowd-kit's ``worker`` and
        ``task`` are recognised.
    delimiter, encoding
        The character between fields, and the encoding of the text.
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
    check_options(read_csv, options)

    def text_columns(names: Sequence[str]) -> tuple[str, ...]:
        return (*id_columns(names, volunteer=volunteer, item=item), label)

    table = csv_table(path, text=text_columns, delimiter=delimiter, encoding=encoding)
    volunteer, item, _ = text_columns(table.column_names)
    if isinstance(gold, str | PathLike):
        gold = GoldFile(gold, delimiter, encoding)
    return graph_from_frame(table, gold=gold, volunteer=volunteer, item=item, label=label, **options)


def csv_table(
    path: str | PathLike[str],
    *,
    text: Iterable[str] | Callable[[Sequence[str]], Iterable[str]] | None,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> pa.Table:
    """Read a CSV file as an Arrow table; the columns of `text` stay text, the types of the others are inferred.

    `text` is a list of names, a function that chooses them among those of the file, or None for all.
    """
    if not is_file(path):
        raise InputError(f"{not_a_file(path)}; give the path of a CSV file.")
    if is_saved_graph(path):
        raise InputError(
            f"{quoted(path)} is a saved graph, not a CSV file.",
            hint=Hint("Open it with cg.load(path).", cli="Leave out --format, or use --format crowd."),
        )
    check_delimiter(delimiter)
    check_encoding(encoding)
    try:
        names = csv_header(path, delimiter=delimiter, encoding=encoding)
        text_names = names if text is None else text(names) if callable(text) else text
        table = _read(path, [name for name in text_names if name in names], delimiter, encoding)
    except (OSError, UnicodeError, LookupError, pa.ArrowException) as error:
        raise InputError(f"{quoted(path)} " + failure(error, path, delimiter, encoding)) from error
    # Exports of other programs, all of whose columns are read as text, have none of our apostrophes.
    return table if text is None else pa.table(list(map(original_cells, table.columns)), table.column_names)


def csv_header(path: str | PathLike[str], *, delimiter: str, encoding: str) -> list[str]:
    """Return the names of the columns as Arrow reads them."""
    options = pa_csv.ReadOptions(encoding=encoding)
    with (
        text_source(path) as source,
        pa_csv.open_csv(source, read_options=options, parse_options=parse_options(delimiter)) as reader,
    ):
        names = list(reader.schema.names)
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0] and mark != delimiter), None)
    if other:
        raise ColumnError(
            f"{fspath(path)!r} has the single column {names[0]!r}; use " + argument("delimiter", other) + "."
        )
    check_column_names(names, owner=repr(fspath(path)))
    return names


def _read(path: str | PathLike[str], text: Iterable[str], delimiter: str, encoding: str) -> pa.Table:
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in text}, null_values=[""], strings_can_be_null=True
    )
    with text_source(path) as source:
        return pa_csv.read_csv(
            source,
            read_options=pa_csv.ReadOptions(encoding=encoding),
            parse_options=parse_options(delimiter),
            convert_options=convert,
        )


def parse_options(delimiter: str) -> pa_csv.ParseOptions:
    """Return how Arrow parses our CSV files."""
    return pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def check_delimiter(delimiter: str) -> None:
    """Raise unless a delimiter is a single ASCII character that can stand between fields."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ParameterError(
            argument("delimiter", delimiter) + " must be a single ASCII character, such as ',' or ';'."
        )


def check_encoding(encoding: str) -> None:
    """Raise unless Python knows an encoding."""
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise InputError(
            argument("encoding", encoding)
            + " is not a known encoding; use one such as 'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
        ) from error


def sniff_csv(path: str | PathLike[str], *, delimiter: str | None, encoding: str) -> tuple[str, list[str]]:
    """Return the delimiter and the header of a CSV file; the header is empty where the file cannot be read.

    Without a `delimiter`, it is the one that splits the first line into the most fields.
    """
    if delimiter:
        check_delimiter(delimiter)
    line = _first_line(path, encoding)
    headers = {mark: next(csv.reader([line], delimiter=mark), []) for mark in delimiter or DELIMITERS}
    best = max(headers, key=lambda mark: len(headers[mark]))
    return best, headers[best]


def _first_line(path: str | PathLike[str], encoding: str) -> str:
    """Return the first line that is not blank; nothing where the file cannot be read, which `csv_table` explains."""
    try:
        start = read_start(path)
        text = start.decode(encoding, errors="replace")
    except (OSError, LookupError, UnicodeError, pa.ArrowException):
        return ""
    if "\0" in text and _is_utf16(start):
        raise InputError(
            f"{fspath(path)!r} is text in UTF-16, as spreadsheets save it; use " + argument("encoding", "utf-16") + "."
        )
    if "\0" in text:
        raise InputError(
            f"{fspath(path)!r} is not a text file; give a CSV file, Parquet (.parquet) or a saved graph (.crowd)."
        )
    first = next((line for line in text.lstrip("\ufeff").splitlines() if line.strip()), "")
    if SEPARATOR_LINE.fullmatch(first.strip()):
        raise InputError(
            f"{fspath(path)!r} begins with the line {first.strip()!r}, which only spreadsheets know; delete that line."
        )
    return first


def read_start(path: str | PathLike[str]) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with pa.input_stream(fspath(path), compression="detect") as stream:
        start: bytes = stream.read(PEEK_BYTES)
    return start


def _is_utf16(start: bytes) -> bool:
    """Return whether a file begins with a UTF-16 byte order mark, or every other byte is null, as in plain words."""
    first = start[:100]
    return first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or not (any(first[1::2]) and any(first[::2]))


def csv_rows(path: str | PathLike[str], *, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file as text, the header first, each with the line on which it begins."""
    with pa.input_stream(fspath(path), compression="detect") as stream:
        reader = csv.reader(TextIOWrapper(stream, encoding=encoding, errors="replace", newline=""), delimiter=delimiter)
        lines_before = 0
        for row in reader:
            if row:
                yield lines_before + 1, row
            lines_before = reader.line_num


def row_lines(path: str | PathLike[str], rows: Sequence[int], *, delimiter: str, encoding: str) -> list[int]:
    """Return the lines of a CSV file on which some of its rows begin; rows count from 0 after the header."""
    lines = [line for line, _ in islice(csv_rows(path, delimiter=delimiter, encoding=encoding), max(rows) + 2)]
    return [lines[row + 1] for row in rows]


def failure(error: Exception, path: str | PathLike[str], delimiter: str, encoding: str) -> str:
    """Explain why a file cannot be read, and what to do."""
    message = str(error)
    if isinstance(error, PermissionError):
        return "may not be read by you; ask its owner, or copy it to a directory of your own."
    if "Empty CSV" in message:
        return "is empty; give a CSV file with a header and a row for each response."
    if "inflate failed" in message and not _is_gzipped(path):
        return "is not compressed, though its name says so; rename it without .gz."
    if "columns, got" in message and (mismatch := _row_of_other_length(path, delimiter, encoding)):
        return mismatch
    if "Truncated" in message or "Unexpected end" in message:
        return "is cut short; copy or download it again."
    # A file that is not text would fill the message with characters that terminals interpret.
    printable = "".join(sign if sign.isprintable() and sign != "\ufffd" else "?" for sign in message[:200])
    return (
        f"cannot be read as a CSV file in {encoding}; it may be of another kind, cut short, or need "
        + argument("encoding", "latin-1")
        + f": {printable}."
    )


def _is_gzipped(path: str | PathLike[str]) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def _row_of_other_length(path: str | PathLike[str], delimiter: str, encoding: str) -> str:
    """Name the first row that is not as long as the header, and what to do; return nothing where there is none."""
    rows = csv_rows(path, delimiter=delimiter, encoding=encoding)
    try:
        expected = len(next(rows)[1])
        line, length = next((line, len(row)) for line, row in rows if len(row) != expected)
    except (StopIteration, csv.Error, UnicodeError):
        return ""
    return (
        f"has a row that does not fit its header. Expected {expected} columns, got {length} in line {line}; correct "
        f"that line, or quote fields that hold the delimiter {delimiter!r}."
    )
