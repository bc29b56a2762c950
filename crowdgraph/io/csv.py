"""CSV files, plain or compressed."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, ParameterError
from crowdgraph.io.columns import check_names
from crowdgraph.io.files import is_file

__all__ = ["read_csv"]


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
        Names of the columns that say who answered which item with what.
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
    frame = csv_table(path, text=(volunteer, item, label), delimiter=delimiter, encoding=encoding)
    if isinstance(gold, str | PathLike):
        gold = csv_table(gold, text=(item, label), delimiter=delimiter, encoding=encoding)
    return CrowdGraph.from_responses(frame, gold=gold, volunteer=volunteer, item=item, label=label, **options)


def csv_table(
    path: str | PathLike[str], *, text: Iterable[str] | None, delimiter: str = ",", encoding: str = "utf-8"
) -> pa.Table:
    """A CSV file as a table; the named columns (all, if None) stay text, the others are read as what they look like."""
    if not is_file(path):
        raise InputError(f"{path!r} is not a file; give the path of a CSV file.")
    if len(delimiter) != 1 or not delimiter.isascii():
        raise ParameterError(f"delimiter={delimiter!r} must be a single ASCII character, such as ',' or ';'.")
    try:
        names = _header(path, delimiter, encoding)
        return _read(path, names if text is None else [name for name in text if name in names], delimiter, encoding)
    except (OSError, UnicodeDecodeError, LookupError, pa.ArrowException) as error:
        raise InputError(
            f"{fspath(path)!r} cannot be read as a CSV file in {encoding}; it may be of another kind, cut short, or "
            f"need encoding='latin-1': {error}."
        ) from error


def _header(path: str | PathLike[str], delimiter: str, encoding: str) -> list[str]:
    reading = pa_csv.ReadOptions(encoding=encoding)
    with pa_csv.open_csv(fspath(path), read_options=reading, parse_options=_parsing(delimiter)) as reader:
        names = list(reader.schema.names)
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0] and mark != delimiter), None)
    if other:
        raise ColumnError(f"{fspath(path)!r} has the single column {names[0]!r}; use delimiter={other!r}.")
    check_names(names, owner=repr(fspath(path)))
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
