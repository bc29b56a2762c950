"""Times of any form as one sorted-comparable column and a clock."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

from crowdgraph.core.clock import Clock
from crowdgraph.core.columns import Array, plain
from crowdgraph.errors import TimeError, shown
from crowdgraph.io.columns import Column, Timed, plain_type
from crowdgraph.io.ids import is_null

__all__ = ["read_times"]


def read_times(column: Column, *, clock: Clock | None = None) -> tuple[Timed, Array]:
    """The times of a column and, for each row, whether its time is null; `clock` says what they are, where known."""
    if isinstance(column, list):
        timed, null = _object_times(column)
    else:
        timed, null = _arrow_times(plain_type(column))
    times = timed.times
    if times.dtype.kind == "f":
        infinite = np.flatnonzero(np.isinf(times))
        if len(infinite):
            raise TimeError(
                f"{len(infinite):,} times are infinite (rows {shown(infinite.tolist())}); give finite times."
            )
    if times.dtype == "datetime64[ns]" and not (times.view(np.int64) % 1000).any():
        times = times.astype("datetime64[us]")
    if clock is not None and clock.kind == "datetime" and len(times) == 0:
        times = times.astype("datetime64[us]")
    return Timed(times, clock or timed.clock), null


def _arrow_times(column: pa.ChunkedArray) -> tuple[Timed, Array]:
    kind = column.type
    null = np.asarray(column.is_null().to_numpy())
    if pa.types.is_integer(kind):
        return Timed(np.array(_filled(column).cast(pa.int64()).to_numpy()), Clock("number")), null
    if pa.types.is_floating(kind):
        times = np.array(column.cast(pa.float64()).to_numpy())
        return Timed(times, Clock("number")), null | np.isnan(times)
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    if pa.types.is_timestamp(kind):
        ticks = _filled(column.cast(pa.int64())).to_numpy()
        return Timed(np.array(ticks).view(f"datetime64[{kind.unit}]"), Clock("datetime", kind.tz)), null
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _string_times(column.cast(pa.string()), null)
    if pa.types.is_null(kind):
        return Timed(np.zeros(len(column), dtype=np.int64), Clock("number")), null
    raise TimeError(f"The times are of type {kind}; expected numbers, datetimes or ISO strings.")


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Null rows need a value on their way through NumPy; they are dropped or refused afterwards."""
    return column.fill_null(0) if column.null_count else column


def _string_times(column: pa.ChunkedArray, null: Array) -> tuple[Timed, Array]:
    """ISO strings: Arrow reads the common forms fast; the rest is read one by one, so that errors name their row."""
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            try:
                return _arrow_times(column.cast(pa.timestamp(unit, zone)))
            except pa.ArrowInvalid:
                continue
    parsed: list[Any] = [None] * len(column)
    for row, text in enumerate(column.to_pylist()):
        if text is not None:
            parsed[row] = _iso(text, row)
    timed, _ = _object_times(parsed)
    return timed, null


def _iso(text: str, row: int) -> dt.datetime:
    stripped = text.strip()
    try:
        return dt.datetime.fromisoformat(stripped.removesuffix(" UTC") + "+00:00" * stripped.endswith(" UTC"))
    except ValueError:
        raise TimeError(
            f"The time in row {row} is {text!r}, which is not an ISO time; expected the form '2026-03-01T12:00:00' or "
            "'2026-03-01T12:00:00+01:00', or numbers."
        ) from None


def _object_times(column: list[Any]) -> tuple[Timed, Array]:
    values = [plain(value) for value in column]
    null = np.array([is_null(value) for value in values], dtype=bool)
    kinds = {_kind(value, row): row for row, value in reversed(list(enumerate(values))) if not null[row]}
    if len(kinds) > 1:
        examples = ", ".join(f"{values[row]!r} in row {row} ({kind})" for kind, row in kinds.items())
        raise TimeError(f"The times mix kinds: {examples}. Give all of them one form, with a zone or without.")
    kind = next(iter(kinds), "number")
    if kind == "number":
        return _numbers(values, null), null
    if kind == "string":
        return _string_times(pa.chunked_array([pa.array(values, pa.string(), from_pandas=True)]), null)
    if kind == "NumPy datetime":
        times = np.array([np.datetime64("1970") if gone else value for value, gone in zip(values, null, strict=True)])
        unit = np.datetime_data(times)[0]
        return Timed(times.astype("datetime64[s]") if unit in "YMWDhm" else times, Clock("datetime")), null
    return _datetimes(values, null, aware=kind == "datetime with zone"), null


def _kind(value: object, row: int) -> str:
    if isinstance(value, dt.datetime):
        return "datetime with zone" if value.tzinfo is not None else "datetime without zone"
    if isinstance(value, dt.date):
        return "datetime without zone"
    if isinstance(value, np.datetime64):
        return "NumPy datetime"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    raise TimeError(
        f"The time in row {row} is {value!r}, a {type(value).__name__}; expected a number, datetime or ISO string."
    )


def _numbers(values: list[Any], null: Array) -> Timed:
    filled = [0 if gone else value for value, gone in zip(values, null, strict=True)]
    whole = all(isinstance(value, int) for value in filled)
    try:
        return Timed(np.array(filled, dtype=np.int64 if whole else np.float64), Clock("number"))
    except OverflowError as error:
        raise TimeError("A time is too large for a 64-bit integer; give it as a float or a datetime.") from error


def _datetimes(values: list[Any], null: Array, *, aware: bool) -> Timed:
    """Datetimes as microseconds; those with a zone in UTC, under the zone they share (UTC if they differ)."""
    zones = {str(value.tzinfo) for value, gone in zip(values, null, strict=True) if aware and not gone}
    instants = [
        None if gone else value.astimezone(dt.UTC).replace(tzinfo=None) if aware else value
        for value, gone in zip(values, null, strict=True)
    ]
    times = np.array(instants, dtype="datetime64[us]")
    return Timed(times, _clock_of(zones))


def _clock_of(zones: set[str]) -> Clock:
    """The clock of the zones that datetimes had: their own where they share one that has a name, else UTC."""
    name = zones.copy().pop() if len(zones) == 1 else "UTC"
    try:
        return Clock("datetime", (name.removeprefix("UTC") or "UTC") if zones else None)
    except TimeError:
        return Clock("datetime", "UTC")
