"""Read columns from any table, and build tables from columns: the one module that knows the frame libraries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from copy import deepcopy
from os import PathLike, fspath
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError as NarwhalsDuplicateError

from crowdgraph.core._arrays import Array, cell_text, is_null, lock, object_array, plain, to_list
from crowdgraph.core.clock import UNITS, Clock, zone_info
from crowdgraph.core.result import CodedColumn, Columns, TimeColumn
from crowdgraph.errors import ColumnError, IdError, InputError, MissingPackageError, check_choice
from crowdgraph.messages import printable, quote, with_article

# The kinds of tables that results and graphs can be converted to.
FRAME_KINDS = ("pandas", "polars", "arrow", "text")
# Columns that hold ids: even where they are numbers, a table for reading shows them as names.
ID_COLUMNS = ("volunteer", "neighbour", "item", "class", "label", "centroid")

# What other tools call our columns, the most reliable names first; those of crowd-kit lead.
SYNONYMS = {
    "volunteer": (
        "worker", "user_name", "user", "annotator", "rater", "user_id", "worker_id", "volunteer_id", "annotator_id",
        "username", "participant", "performer", "_worker_id", "agent",
    ),
    "item": (
        "task", "subject", "subject_id", "subject_ids", "item_id", "task_id", "image", "image_id", "object",
        "object_id", "question", "question_id", "unit", "_unit_id", "example",
    ),
    "label": ("answer", "response", "annotation", "value", "vote", "score", "judgment", "judgement", "choice"),
    "time": (
        "created_at", "timestamp", "datetime", "date", "submitted_at", "finished_at", "answered_at", "_created_at",
    ),
}  # fmt: skip
# How messages say that the rows they name are numbered as in Python, and how they name rows.
COUNTED = " (counted from 0)"
ROW_NUMBERS = re.compile(r"\brow(s?) (\d+(?:, \d+)*)")
OWN_IDS = ("volunteer", "item")
CROWD_KIT_IDS = (SYNONYMS["volunteer"][0], SYNONYMS["item"][0])

# A column that was read: Arrow data, or a list of Python objects that Arrow might change.
Column: TypeAlias = "pa.ChunkedArray | list[Any]"
# A column to be written.
FrameColumn: TypeAlias = "Array | CodedColumn | TimeColumn"


class LazyColumns(Mapping[str, Column]):
    """Columns of a file that are read on access and not cached, so that only one at a time is in memory."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Column]) -> None:
        self._names = tuple(names)
        self._read = read

    def __getitem__(self, name: str) -> Column:
        return self._read(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def frame_columns(frame: Any) -> Mapping[str, Column]:
    """Return the columns of a dict of columns, or of any table that narwhals reads."""
    if isinstance(frame, LazyColumns):
        return frame
    if isinstance(frame, pa.Table):
        check_column_names(frame.column_names)
        return dict(zip(frame.column_names, frame.columns, strict=True))
    if not isinstance(frame, Mapping):
        return _narwhals_columns(frame)
    check_column_names(list(frame))
    columns = {name: _column(values, name) for name, values in frame.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ColumnError(f"Columns differ in length: {lengths}. Every row needs a value in each column.")
    return columns


def _column(values: Any, name: object) -> Column:
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _numpy_column(values, name)
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series_column(series)
    ordered = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    if ordered and not isinstance(values, str | bytes | Mapping):
        return list(values)
    raise ColumnError(
        f"Column {name!r} must be a list, an array or a series; got {with_article(type(values))}: {values!r:.60}."
    )


def _numpy_column(values: Array, name: object) -> Column:
    if values.ndim != 1:
        raise ColumnError(f"Column {name!r} has shape {values.shape}; expected one value for each row.")
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in UNITS:
        values = values.astype("datetime64[s]")
    try:
        return pa.chunked_array([pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))])
    except (pa.ArrowException, TypeError, UnicodeError) as error:
        raise ColumnError(f"Column {name!r} of {values.dtype} cannot be read: {error}. Convert it first.") from error


def _narwhals_columns(frame: Any) -> dict[str, Column]:
    if isinstance(frame, str | PathLike):
        raise InputError(f"{fspath(frame)!r} is a path; read it with crowdgraph.read_csv or crowdgraph.read_parquet.")
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        # pandas allows any column names; narwhals would fail on some without naming them.
        check_column_names(frame.columns.tolist())
    try:
        table = nw.from_native(frame)
    except NarwhalsDuplicateError as error:
        raise ColumnError(f"The table has columns of the same name: {error}. Rename or drop them.") from error
    except TypeError as error:
        raise InputError(
            f"Cannot read a table from {with_article(type(frame))}; give a pandas, polars or pyarrow table, a DuckDB "
            "relation or a dict of columns."
        ) from error
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    check_column_names(table.columns)
    return {name: _series_column(table[name]) for name in table.columns}


def _series_column(series: nw.Series[Any]) -> Column:
    if series.dtype == nw.Object:
        return list(series.to_list())
    try:
        column = series.to_arrow()
    except (pa.ArrowException, TypeError, UnicodeError):
        return list(series.to_list())
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def check_column_names(names: Sequence[object], *, owner: str = "The table") -> None:
    """Raise unless the names of a table's columns are text, and all different."""
    not_text = [name for name in names if not isinstance(name, str)]
    if not_text:
        raise ColumnError(f"Column names must be text; got {quote(not_text)}. Rename the columns.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ColumnError(f"{owner} has columns of the same name: {quote(repeated)}. Rename or drop them.")


def id_columns(names: Collection[str], *, volunteer: str, item: str) -> tuple[str, str]:
    """Return the columns of volunteers and items: the named ones or, if a table has these instead of ours, crowd-kit's.

    A table needs both of crowd-kit's names: ``task`` alone may be anything, such as a question of a Zooniverse project.

    Examples
    --------
    >>> id_columns(["worker", "task", "label"], volunteer="volunteer", item="item")
    ('worker', 'task')
    """
    requested = (volunteer, item)
    default = requested == OWN_IDS and not any(name in names for name in OWN_IDS)
    return CROWD_KIT_IDS if default and all(name in names for name in CROWD_KIT_IDS) else requested


def find_column(header: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of the names that occurs, whatever its case."""
    by_lower_name = {name.lower().strip(): name for name in reversed(header)}
    return next((by_lower_name[name.lower()] for name in names if name.lower() in by_lower_name), None)


def plain_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionary encoding and string views, which Arrow cannot cast to every type."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return values as those of Python; raise if it has none for them: dates far from ours, zones that nobody knows."""
    try:
        values: list[Any] = column.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, KeyError) as error:
        # Of an unknown zone, Arrow passes on a KeyError where pytz is installed.
        raise InputError(
            f"A column of {column.type} has values that Python cannot hold ({error}). Expected dates in the years 1 to "
            "9999 and known time zones; correct them, or convert the column to text."
        ) from error
    return values


def text_array(column: pa.Array | pa.ChunkedArray) -> Array:
    """Return text as an array of objects; raise if what Arrow was told to be text is none."""
    try:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=object)
    except pa.ArrowException as error:
        raise InputError(
            f"A column of {column.type} holds bytes that are not UTF-8 ({error}); make it one of bytes, or correct it."
        ) from error


def attribute_array(column: Column) -> Array:
    """Return an attribute as a NumPy column with None for null, except in floats (NaN) and datetimes (NaT)."""
    if isinstance(column, list):
        return lock(_object_attribute(column))
    column = plain_type(column)
    kind = column.type
    timestamp = pa.types.is_timestamp(kind) and kind.tz is None
    integer = column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_boolean(kind))
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if text:
        return lock(np.array(text_array(column)))
    if timestamp or integer or pa.types.is_floating(kind):
        return lock(np.array(column.to_numpy()))
    return lock(object_array(python_values(column)))


def _object_attribute(objects: list[Any]) -> Array:
    """Convert to numbers or booleans where nothing changes; keep other objects (copies, if they are mutable)."""
    values = [plain(value) for value in objects]
    types = {type(value) for value in values if not is_null(value)}
    complete = not any(is_null(value) for value in values)
    if types in ({bool}, {int}) and complete and all(-(2**63) <= value < 2**63 for value in values):
        return np.array(values)
    # Integers beside floats become floats where that is exact.
    exact = all(
        type(value) is float or value is None or (type(value) is int and abs(value) < 2**53) for value in values
    )
    if float in types and exact:
        return np.array(values, dtype=np.float64)
    return object_array(value if isinstance(value, Hashable) else deepcopy(value) for value in values)


def native_frame(columns: Columns, *, kind: str) -> Any:
    """Return a pandas, polars or pyarrow table of the columns, or a text for reading."""
    check_choice("kind", kind, FRAME_KINDS)
    if kind == "text":
        return _text_table(columns)
    if kind == "pandas":
        return _pandas_frame(columns)
    if kind == "polars":
        columns = {name: _in_named_zone(column) for name, column in columns.items()}
    table = pa.table({name: _arrow_column(name, column) for name, column in columns.items()})
    return table if kind == "arrow" else import_optional("polars").from_arrow(table)


def _in_named_zone(column: FrameColumn) -> FrameColumn:
    """Convert times with a fixed offset, which polars does not have, to UTC."""
    if isinstance(column, TimeColumn) and column.clock.zone is not None and column.clock.zone[0] in "+-":
        return column._replace(clock=Clock("datetime", "UTC"))
    return column


def _pandas_frame(columns: Columns) -> Any:
    try:
        pandas = import_optional("pandas")
    except MissingPackageError as error:
        raise MissingPackageError(
            "to_frame() makes a pandas table by default, and pandas is not installed: pip install pandas, or ask for "
            "kind='arrow' or kind='text' (of a graph, to_arrow())."
        ) from error
    series = {}
    for name, column in columns.items():
        if isinstance(column, TimeColumn):
            series[name] = pandas.Series(column.times)
            if column.clock.zone is not None:
                zone = zone_info(column.clock.zone)
                series[name] = series[name].dt.tz_localize("UTC").dt.tz_convert(zone)
        else:
            series[name] = pandas.Series(column.decode() if isinstance(column, CodedColumn) else column)
    return pandas.DataFrame(series)


def _text_table(columns: Columns) -> str:
    """Lay columns out side by side: numbers to the right, text to the left, empty cells for null."""
    padded_columns = []
    for name, column in columns.items():
        values, align_left = _readable(name, column)
        # A name that has several lines, or that a terminal obeys, would break the table.
        cells = [printable(cell).replace("\n", "\\n").replace("\t", "\\t") for cell in (name, *map(cell_text, values))]
        width = max(map(len, cells))
        padded_columns.append([cell.ljust(width) if align_left else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded_columns, strict=True))


def _readable(name: str, column: FrameColumn) -> tuple[list[Any], bool]:
    """Return the values of a column for reading, and whether they are words; ids are, even where they are numbers."""
    if isinstance(column, TimeColumn):
        return [str(time) for time in column.clock.to_python(column.times)], True
    array = column.decode() if isinstance(column, CodedColumn) else column
    values = to_list(array)
    if isinstance(column, CodedColumn) or name in ID_COLUMNS:
        return [None if is_null(value) else str(value) for value in values], True
    return values, array.dtype.kind not in "iuf"


def _arrow_column(name: str, column: FrameColumn) -> pa.Array:
    if isinstance(column, TimeColumn):
        zone = column.clock.zone
        return pa.array(column.times, pa.timestamp(np.datetime_data(column.times.dtype)[0], zone) if zone else None)
    if isinstance(column, CodedColumn):
        codes = pa.array(column.codes, mask=column.codes < 0)
        return pa.DictionaryArray.from_arrays(codes, _arrow_array(name, column.values)).dictionary_decode()
    return _arrow_array(name, column)


def _arrow_array(name: str, values: Array) -> pa.Array:
    """Convert a NumPy column to Arrow; raise if Arrow has no type for its objects."""
    try:
        if values.dtype != object:
            return pa.array(values)
        types = {type(value) for value in values.tolist() if not is_null(value)}
        if not types & {list, tuple, dict, set, frozenset} and len(types) <= 1:
            return pa.array([None if is_null(value) else value for value in values.tolist()])
        reason = f"it holds values of type {' and '.join(sorted(kind.__name__ for kind in types))}"
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error)
    raise IdError(
        f"Column {name!r} cannot become an Arrow column: {reason}. "
        "Use values of one plain type, or take the graph out with to_pandas() or to_networkx()."
    )


def import_optional(package: str) -> Any:
    """Import an optional package; raise with the command that installs it if it is absent."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        name = package.replace("_", "-")
        raise MissingPackageError(f"This needs {name}; install it with: pip install {name}") from error
