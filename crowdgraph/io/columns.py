"""From any table to named columns and back: the one place that knows about frame libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError as NarwhalsDuplicateError

from crowdgraph.core.clock import Clock, zone_info
from crowdgraph.core.columns import Array, object_array, sealed
from crowdgraph.errors import ColumnError, IdError, InputError, MissingPackageError, one_of, shown

__all__ = ["Coded", "Column", "attribute_array", "frame_columns", "native_frame"]

# A column at a door: Arrow data, or a list of Python objects that Arrow might change on the way.
Column: TypeAlias = "pa.ChunkedArray | list[Any]"


class Coded(NamedTuple):
    """A column as codes into its distinct values; -1 is null."""

    codes: Array
    values: Array

    def decoded(self) -> Array:
        """The values themselves, None for null."""
        if (self.codes >= 0).all():
            return self.values[self.codes]
        values = self.values.astype(object)
        return np.append(values, [None])[self.codes]


class Timed(NamedTuple):
    """A column of times and what they are."""

    times: Array
    clock: Clock


def frame_columns(frame: Any) -> dict[str, Column]:
    """The columns of any table that narwhals understands, or of a dict of columns."""
    if isinstance(frame, Mapping):
        columns = {name: _column(values, name) for name, values in frame.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ColumnError(f"Columns differ in length: {lengths}. Every row needs a value in each column.")
    else:
        columns = _narwhals_columns(frame)
    strange = [name for name in columns if not isinstance(name, str)]
    if strange:
        raise ColumnError(f"Column names must be strings; got {shown(strange)}.")
    return columns


def _column(values: Any, name: object) -> Column:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype != object:
        return pa.chunked_array([pa.array(values)])
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ColumnError(f"Column {name!r} must hold many values; got the single value {values!r}.")
    if hasattr(values, "__narwhals_series__") or not isinstance(values, Sequence | np.ndarray):
        series = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            return _series_column(series)
    return list(values)


def _narwhals_columns(frame: Any) -> dict[str, Column]:
    try:
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        names = table.columns
    except NarwhalsDuplicateError as error:
        raise ColumnError(f"The table has columns of the same name: {error}. Rename or drop them.") from error
    except TypeError as error:
        raise InputError(
            f"Cannot read a table from a {type(frame).__name__}; give a pandas, polars or pyarrow table, a DuckDB "
            "relation or a dict of columns. For files use crowdgraph.read_csv or crowdgraph.read_parquet."
        ) from error
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ColumnError(f"The table has columns of the same name: {shown(doubled)}. Rename or drop them.")
    return {name: _series_column(table[name]) for name in names}


def _series_column(series: nw.Series[Any]) -> Column:
    if series.dtype == nw.Object:
        return list(series.to_list())
    try:
        column = series.to_arrow()
    except (pa.ArrowException, TypeError):
        return list(series.to_list())
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def plain_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionary encoding."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def attribute_array(column: Column) -> Array:
    """An attribute as a NumPy column; None stands for null except in floats (NaN) and datetimes (NaT)."""
    if isinstance(column, list):
        try:
            column = pa.chunked_array([pa.array(column)])
        except (pa.ArrowException, TypeError, OverflowError):
            return sealed(object_array(column))
    column = plain_type(column)
    kind = column.type
    timestamp = pa.types.is_timestamp(kind) and kind.tz is None
    whole = column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_boolean(kind))
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if timestamp or whole or text or pa.types.is_floating(kind):
        return sealed(np.array(column.to_numpy()))
    return sealed(object_array(column.to_pylist()))


def native_frame(columns: Mapping[str, Array | Coded | Timed], *, kind: str) -> Any:
    """A pandas, polars or pyarrow table of the columns."""
    one_of("kind", kind, ("pandas", "polars", "arrow"))
    if kind == "pandas":
        return _pandas_frame(columns)
    table = pa.table({name: _arrow_column(name, column) for name, column in columns.items()})
    return table if kind == "arrow" else _required("polars").from_arrow(table)


def _pandas_frame(columns: Mapping[str, Array | Coded | Timed]) -> Any:
    pandas = _required("pandas")
    series = {}
    for name, column in columns.items():
        if isinstance(column, Timed):
            series[name] = pandas.Series(column.times)
            if column.clock.zone is not None:
                zone = zone_info(column.clock.zone)
                series[name] = series[name].dt.tz_localize("UTC").dt.tz_convert(zone)
        else:
            series[name] = pandas.Series(column.decoded() if isinstance(column, Coded) else column)
    return pandas.DataFrame(series)


def _arrow_column(name: str, column: Array | Coded | Timed) -> pa.Array:
    if isinstance(column, Timed):
        zone = column.clock.zone
        return pa.array(column.times, pa.timestamp(np.datetime_data(column.times)[0], zone) if zone else None)
    if isinstance(column, Coded):
        codes = pa.array(column.codes, mask=column.codes < 0)
        return pa.DictionaryArray.from_arrays(codes, arrow_array(name, column.values)).dictionary_decode()
    return arrow_array(name, column)


def arrow_array(name: str, values: Array) -> pa.Array:
    """A NumPy column as Arrow data; raises where Arrow cannot carry its objects."""
    try:
        if values.dtype != object:
            return pa.array(values)
        array = pa.array(values.tolist())
        if not (pa.types.is_list(array.type) or pa.types.is_binary(array.type)):
            return array
        reason = f"it holds {type(values[0]).__name__}s"
    except (pa.ArrowException, TypeError, OverflowError) as error:
        reason = str(error)
    raise IdError(
        f"Column {name!r} cannot become an Arrow column: {reason}. "
        "Use ids of one plain type (strings or integers), or take the graph out with to_pandas() or to_networkx()."
    )


def _required(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(f"This needs {package}; install it with: pip install {package}") from error
