"""Read times of any form as one column of numbers or datetimes, with a clock that says which."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array, cast_exactly, check_text, is_null, plain
from crowdgraph.core.clock import UNITS, Clock, iso_datetime
from crowdgraph.core.result import TimeColumn
from crowdgraph.errors import TimeError
from crowdgraph.io._columns import Column, plain_type
from crowdgraph.messages import quote


def read_times(column: Column, *, clock: Clock | None = None) -> tuple[TimeColumn, Array]:
    """Return the times of a column and a mask of the null ones; `clock` says what they are, where that is known."""
    if isinstance(column, list):
        (times, own_clock), null = _object_times(column)
    else:
        (times, own_clock), null = _arrow_times(plain_type(column))
    if times.dtype.kind == "f":
        infinite = np.flatnonzero(np.isinf(times))
        if len(infinite):
            raise TimeError(
                f"{len(infinite):,} times are infinite (rows {quote(infinite.tolist())}); give finite times."
            )
    if times.dtype == "datetime64[ns]" and not (times.view(np.int64) % 1000).any():
        times = times.astype("datetime64[us]")
    if clock is not None and clock.kind == "datetime" and len(times) == 0:
        times = times.astype("datetime64[us]")
    return TimeColumn(times, clock or own_clock), null


def _arrow_times(column: pa.ChunkedArray) -> tuple[TimeColumn, Array]:
    kind = column.type
    null = np.asarray(column.is_null().to_numpy()) if column.null_count else np.zeros(len(column), dtype=bool)
    if pa.types.is_integer(kind):
        return TimeColumn(_ticks(column), Clock("number")), null
    if pa.types.is_floating(kind):
        times = np.array(column.cast(pa.float64()).to_numpy())
        return TimeColumn(times, Clock("number")), null | np.isnan(times)
    if pa.types.is_date(kind):
        kind = pa.timestamp("s" if pa.types.is_date32(kind) else "ms")
        column = column.cast(kind)
    if pa.types.is_timestamp(kind):
        return TimeColumn(_ticks(column).view(f"datetime64[{kind.unit}]"), Clock("datetime", kind.tz)), null
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _string_times(column.cast(pa.string()), null)
    if pa.types.is_null(kind):
        return TimeColumn(np.zeros(len(column), dtype=np.int64), Clock("number")), null
    raise TimeError(f"The times are of type {kind}; expected numbers, datetimes or ISO strings.")


def _ticks(column: pa.ChunkedArray) -> Array:
    """Return a copy as integers with 0 for null, since null rows are dropped or refused afterwards."""
    try:
        integers = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise TimeError(f"A time does not fit into a 64-bit integer: {error}. Give floats or datetimes.") from error
    filled = integers.fill_null(0) if integers.null_count else integers
    return np.array(filled.to_numpy()) if filled.num_chunks == 1 else np.asarray(filled.to_numpy())


def _string_times(column: pa.ChunkedArray, null: Array) -> tuple[TimeColumn, Array]:
    """Parse ISO strings: common forms by Arrow, which is fast, others one by one, so that errors can name the row."""
    for unit in ("us", "ns"):
        if unit == "ns" and not _are_years_of_nanoseconds(column):
            break
        for zone in (None, "UTC"):
            try:
                return _arrow_times(column.cast(pa.timestamp(unit, zone)))
            except pa.ArrowInvalid:
                continue
    texts = column.to_pylist()
    parsed = [None if text is None else _parse_iso(text) for text in texts]
    bad = [
        row for row, (text, value) in enumerate(zip(texts, parsed, strict=True)) if text is not None and value is None
    ]
    if bad:
        # Where most times are numbers, the one that is not is the culprit.
        row = next((row for row in bad if not _is_number(texts[row])), bad[0])
        raise TimeError(
            f"{len(bad):,} times cannot be read, such as {texts[row]!r} in row {row}; expected ISO times of the form "
            "'2026-03-01T12:00:00' or '2026-03-01T12:00:00+01:00', or numbers (as numbers, not as text)."
        )
    (times, clock), _ = _object_times([pair and pair[0] for pair in parsed])
    return TimeColumn(_add_nanoseconds(times, [pair[1] if pair else 0 for pair in parsed]), clock), null


def _are_years_of_nanoseconds(column: pa.ChunkedArray) -> bool:
    """Return whether all times are of years that nanoseconds reach: others overflow in Arrow, some of it in silence."""
    years = pc.min_max(pc.utf8_slice_codeunits(column, 0, 4))
    first, last = years["min"].as_py(), years["max"].as_py()
    return first is None or "1678" <= first <= last <= "2261"


def _parse_iso(text: str) -> tuple[dt.datetime, int] | None:
    """Return a time and its nanoseconds, in UTC where it has an offset (text does not name zones), or None."""
    try:
        moment, nanoseconds = iso_datetime(text)
        return moment if moment.tzinfo is None else moment.astimezone(dt.UTC), nanoseconds
    except (ValueError, OverflowError):
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _add_nanoseconds(times: Array, nanoseconds: list[int]) -> Array:
    """Add nanoseconds to times in microseconds."""
    if not any(nanoseconds):
        return times
    finer = cast_exactly(times, "datetime64[ns]")
    if finer is None:
        raise _out_of_reach()
    return np.asarray(finer + np.array(nanoseconds, dtype="timedelta64[ns]"))


def _out_of_reach() -> TimeError:
    return TimeError("Times with nanoseconds must lie between the years 1678 and 2262.")


def _object_times(column: list[Any]) -> tuple[TimeColumn, Array]:
    values = [plain(value) for value in column]
    null = np.array([is_null(value) for value in values], dtype=bool)
    kinds: dict[str, int] = {}
    for row, value in enumerate(values):
        if not null[row]:
            kinds.setdefault(_kind(value, row), row)
    if len(kinds) > 1:
        examples = ", ".join(f"{values[row]!r} in row {row} ({kind})" for kind, row in kinds.items())
        raise TimeError(f"The times mix kinds: {examples}. Give all of them one form, with a zone or without.")
    kind = next(iter(kinds), "number")
    if kind == "number":
        return _numbers(values, null), null
    if kind == "string":
        check_text(values, what="A time", error=TimeError)
        return _string_times(pa.chunked_array([pa.array(values, pa.string(), from_pandas=True)]), null)
    if kind == "NumPy datetime":
        epoch = np.datetime64("1970")
        times = np.array([epoch if is_missing else value for value, is_missing in zip(values, null, strict=True)])
        unit = np.datetime_data(times.dtype)[0]
        others = [
            value
            for value, is_missing in zip(values, null, strict=True)
            if not is_missing and value.dtype != times.dtype
        ]
        if any(cast_exactly(value, times.dtype) is None for value in others):
            raise _out_of_reach()
        return TimeColumn(times if unit in UNITS else times.astype("datetime64[s]"), Clock("datetime")), null
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


def _numbers(values: list[Any], null: Array) -> TimeColumn:
    filled = [0 if is_missing else value for value, is_missing in zip(values, null, strict=True)]
    dtype = np.int64 if all(isinstance(value, int) for value in filled) else np.float64
    try:
        return TimeColumn(np.array(filled, dtype=dtype), Clock("number"))
    except OverflowError as error:
        raise TimeError("A time is too large for a 64-bit integer; give it as a float or a datetime.") from error


def _datetimes(values: list[Any], null: Array, *, aware: bool) -> TimeColumn:
    """Convert datetimes; those with a zone to UTC, with a clock in the zone they share (UTC if they differ)."""
    pairs = list(zip(values, null, strict=True))
    zones = {_zone_name(value.tzinfo) for value, is_missing in pairs if aware and not is_missing}
    try:
        instants = [
            None if is_missing else value.astimezone(dt.UTC).replace(tzinfo=None) if aware else value
            for value, is_missing in pairs
        ]
    except OverflowError as error:
        raise TimeError(f"A time lies outside the years 1 to 9999 in UTC: {error}.") from error
    nanoseconds = [0 if is_missing else getattr(value, "nanosecond", 0) for value, is_missing in pairs]
    times = _add_nanoseconds(np.array(instants, dtype="datetime64[us]"), nanoseconds)
    return TimeColumn(times, Clock("datetime", (zones.pop() if len(zones) == 1 else "UTC") if aware else None))


def _zone_name(zone: dt.tzinfo) -> str:
    """Return the name by which a zone can be looked up: the offset of fixed ones, UTC for zones without a name."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(zone, dt.timezone) and zone.utcoffset(None):
        name = dt.datetime(2000, 1, 1, tzinfo=zone).isoformat()[19:25]
    try:
        return Clock("datetime", name or "UTC").zone or "UTC"
    except TimeError:
        return "UTC"
