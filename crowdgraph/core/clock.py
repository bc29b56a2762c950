"""Clock, which says what a graph's times are and compares moments with them."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from crowdgraph.core._arrays import Array, to_list
from crowdgraph.core._parameters import is_number
from crowdgraph.errors import ParameterError, TimeError, check_choice

__all__ = [
    "Clock",
    "ClockKind",
    "Length",
    "Moment",
    "is_finite",
    "is_sorted",
    "iso_datetime",
    "length_in_ticks",
    "snapshot_counts",
    "ticks",
    "ticks_per_second",
    "zone_info",
]

ClockKind = Literal["order", "number", "datetime"]
EPOCH = dt.datetime(1970, 1, 1)
# How many ticks of each unit a second has.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# How many seconds the units have in which text gives a length of time.
LENGTHS = {"W": 7 * 86_400, "D": 86_400, "h": 3_600, "min": 60, "s": 1}
# More snapshots than this are a mistake in the unit.
MAX_SNAPSHOTS = 100_000

Moment: TypeAlias = "int | float | str | dt.date | dt.datetime | np.generic"
Length: TypeAlias = "int | float | str | dt.timedelta | np.timedelta64"


@dataclass(frozen=True)
class Clock:
    """What the times of a graph are.

    Parameters
    ----------
    kind
        ``"order"`` (no times were given: the input order counts up from 0), ``"number"`` (integers or floats)
        or ``"datetime"``.
    zone
        For datetimes with a zone, its name. The columns then hold UTC and `zone` says how to show them.

    Examples
    --------
    >>> import numpy as np
    >>> clock = Clock("datetime", "Europe/Amsterdam")
    >>> times = np.array(["2026-03-01T00:00", "2026-03-01T10:00"], dtype="datetime64[us]")
    >>> clock.count_until(times, "2026-03-01T11:00")
    1
    """

    kind: ClockKind
    zone: str | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("order", "number", "datetime"))
        if self.zone is not None:
            if self.kind != "datetime":
                raise TimeError(f"A zone ({self.zone!r}) belongs to datetimes; these times are of kind {self.kind!r}.")
            zone_info(self.zone)

    def check(self, times: Array) -> None:
        """Raise unless the column is of this clock's kind, finite and sorted."""
        self.check_kind(times)
        if not is_sorted(times):
            raise TimeError("Times must be finite and sorted; CrowdGraph.from_responses sorts them.")

    def check_kind(self, times: Array) -> None:
        """Raise unless the column is one-dimensional and of this clock's kind."""
        kinds = {"order": "i", "number": "if", "datetime": "M"}[self.kind]
        unit, count = np.datetime_data(times.dtype) if times.dtype.kind == "M" else (None, 1)
        if times.dtype.kind not in kinds or times.ndim != 1 or unit not in (None, *UNITS) or count != 1:
            raise TimeError(
                f"Times of kind {self.kind!r} cannot be an array of {times.dtype} of shape {times.shape}; "
                "read them with CrowdGraph.from_responses."
            )

    def count_until(self, times: Array, moment: Moment, *, inclusive: bool = False) -> int:
        """Return how many of the sorted times are before a moment (or at it, if inclusive)."""
        floor, exact = self._floor(moment, times.dtype)
        side: Literal["left", "right"] = "right" if inclusive or not exact else "left"
        return int(np.searchsorted(ticks(times), floor, side=side))

    def reached(self, times: Array, moment: Moment, *, inclusive: bool = True) -> Array:
        """Return whether each time is before a moment (or at it, if inclusive)."""
        floor, exact = self._floor(moment, times.dtype)
        return np.asarray(ticks(times) <= floor if inclusive or not exact else ticks(times) < floor)

    def tick(self, moment: Moment, times: Array) -> int | float:
        """Return the latest tick of a column of times that is not after a moment."""
        return self._floor(moment, times.dtype)[0]

    def to_python(self, times: Array) -> list[Any]:
        """Return times as Python values: ints, floats, or datetimes in the graph's zone (NumPy's if they are finer)."""
        values = to_list(times)
        if self.zone is None or not all(isinstance(value, dt.datetime) for value in values):
            return values
        zone = zone_info(self.zone)
        return [value.replace(tzinfo=dt.UTC).astimezone(zone) for value in values]

    def _floor(self, moment: Moment, dtype: np.dtype[Any]) -> tuple[int | float, bool]:
        """Return the latest tick of a column that is not after a moment, and whether it is the moment itself."""
        if self.kind == "datetime":
            nanoseconds = self._nanoseconds(moment)
            tick = 10**9 // UNITS[np.datetime_data(dtype)[0]]
            floor, exact = nanoseconds // tick, nanoseconds % tick == 0
        else:
            number = _number(moment, self.kind)
            if dtype.kind == "f" or number in (math.inf, -math.inf):
                return number, True
            floor, exact = math.floor(number), math.floor(number) == number
        bounds = np.iinfo(np.int64)
        if not bounds.min <= floor <= bounds.max:
            return (bounds.max, False) if floor > 0 else (bounds.min, True)
        return floor, exact

    def _nanoseconds(self, moment: Moment) -> int:
        """Return a moment as nanoseconds since 1970, in UTC (or in local time where the graph has no zone)."""
        if isinstance(moment, np.datetime64):
            return _numpy_nanoseconds(moment)
        value, nanoseconds = _python_datetime(moment)
        if value.tzinfo is not None and self.zone is None:
            raise TimeError(
                f"The moment {moment!r} has a time zone, the graph's times have none; "
                "drop the zone, or give the graph times with a zone."
            )
        if self.zone is not None and value.tzinfo is None:
            value = value.replace(tzinfo=zone_info(self.zone))
        elapsed = value - (EPOCH if value.tzinfo is None else EPOCH.replace(tzinfo=dt.UTC))
        return (elapsed // dt.timedelta(microseconds=1)) * 1000 + nanoseconds


def zone_info(zone: str) -> dt.tzinfo:
    """Return the time zone of a name, or of an offset such as ``+02:00``."""
    try:
        if zone[:1] in "+-":
            return dt.datetime.strptime(zone, "%z").tzinfo or dt.UTC
        return ZoneInfo(zone)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise TimeError(
            f"{zone!r} is not a known time zone; use a name such as 'Europe/Amsterdam' or an offset such as '+02:00'."
        ) from error


def is_finite(times: Array) -> bool:
    """Return whether no time is infinite, NaN or NaT."""
    if times.dtype.kind == "f":
        return bool(np.isfinite(times).all())
    return times.dtype.kind != "M" or not np.isnat(times).any()


def is_sorted(times: Array) -> bool:
    """Return whether the times are finite and never fall."""
    return is_finite(times) and not (times[1:] < times[:-1]).any()


def iso_datetime(text: str) -> tuple[dt.datetime, int]:
    """Return an ISO time, which may end in " UTC", as a datetime and the nanoseconds beyond its microseconds."""
    stripped = text.strip()
    if stripped.endswith(" UTC"):
        stripped = stripped.removesuffix(" UTC") + "+00:00"
    fraction = re.search(r"[.,]\d{6}(\d{1,3})\d*", stripped)
    return dt.datetime.fromisoformat(stripped), int(fraction[1].ljust(3, "0")) if fraction else 0


def ticks(times: Array) -> Array:
    """Return times as numbers; datetimes as the number of their units since 1970."""
    return times.view(np.int64) if times.dtype.kind == "M" else times


def length_in_ticks(name: str, length: object, clock: Clock, times: Array) -> float:
    """Return a duration, which is the argument `name` of a user, in ticks of a clock.

    It is a timedelta or text such as ``"30D"`` where times are datetimes, and a number otherwise.
    """
    if clock.kind == "datetime":
        if isinstance(length, str):
            length = _timedelta(name, length)
        if not isinstance(length, dt.timedelta | np.timedelta64):
            raise TimeError(
                f"{name}={length!r} has no unit, and the graph's times are datetimes; give a timedelta, such as "
                "datetime.timedelta(days=30), or text such as '30D'."
            )
        n_ticks = float(np.timedelta64(length) / np.timedelta64(1, "s")) * ticks_per_second(times)
    elif not is_number(length):
        unit = "row numbers" if clock.kind == "order" else "numbers"
        raise TimeError(f"{name}={length!r} must be a number, since the graph's times are {unit}.")
    else:
        n_ticks = float(length)  # type: ignore[arg-type]
    if not 0 < n_ticks < np.inf:
        raise ParameterError(f"{name}={length!r} must be longer than zero, and finite.")
    return n_ticks


def _timedelta(name: str, text: str) -> dt.timedelta:
    """Return the length of time that the text of an argument means, such as ``"30D"``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    units = {**LENGTHS, "H": LENGTHS["h"], "d": LENGTHS["D"], "w": LENGTHS["W"]}
    try:
        if match is not None and match[2] in units:
            return dt.timedelta(seconds=float(match[1]) * units[match[2]])
    except OverflowError:
        pass
    raise TimeError(
        f"{name}={text!r} is not a length of time; give a number with the unit {', '.join(LENGTHS)}, such as '30D', or "
        "a timedelta."
    )


def snapshot_counts(name: str, every: object, clock: Clock, times: Array) -> list[int]:
    """Return how many of the sorted times lie before each multiple of a length of time after the first, up to all.

    Parameters
    ----------
    name, every
        The argument of a user, as for `length_in_ticks`.
    clock, times
        The times, and what they are.
    """
    length = length_in_ticks(name, every, clock, times)
    if not len(times):
        return []
    values = ticks(times)
    with np.errstate(over="ignore"):
        since = values - values[0]
    # The difference of two integers can exceed the largest signed one, but not the largest unsigned one.
    elapsed = since.view(np.uint64) if since.dtype == np.int64 else since
    part = np.floor(elapsed / length)
    if part[-1] >= MAX_SNAPSHOTS:
        raise ParameterError(
            f"{name}={every!r} makes {part[-1] + 1:,.0f} snapshots; choose a longer time (at most {MAX_SNAPSHOTS:,})."
        )
    return [int(count) for count in np.searchsorted(part, np.arange(part[-1] + 1), side="right")]


def ticks_per_second(times: Array) -> int:
    """Return how many ticks a second has, for datetimes; 1 for other times."""
    return UNITS[np.datetime_data(times.dtype)[0]] if times.dtype.kind == "M" else 1


def _number(moment: Moment, kind: ClockKind) -> float | int:
    if isinstance(moment, np.generic):
        moment = moment.item()
    if isinstance(moment, bool) or not isinstance(moment, int | float) or moment != moment:
        times = "The graph's times are numbers"
        if kind == "order":
            times = "The graph was built without times, so they are row numbers (was time='...' forgotten?)"
        raise TimeError(f"{times}; got the moment {moment!r} ({type(moment).__name__}). Give a number.")
    return moment


def _numpy_nanoseconds(moment: np.datetime64) -> int:
    if np.isnat(moment):
        raise TimeError("The moment is NaT; expected a time.")
    unit = np.datetime_data(moment.dtype)[0]
    if unit not in UNITS:
        moment, unit = moment.astype("datetime64[s]"), "s"
    return int(moment.astype(np.int64)) * (10**9 // UNITS[unit])


def _python_datetime(moment: Moment) -> tuple[dt.datetime, int]:
    """Return a datetime and the nanoseconds beyond it, which pandas' timestamps and long ISO strings have."""
    if isinstance(moment, dt.datetime) and moment == moment:
        return moment, getattr(moment, "nanosecond", 0)
    if isinstance(moment, dt.date) and not isinstance(moment, dt.datetime):
        return dt.datetime(moment.year, moment.month, moment.day), 0
    if isinstance(moment, str):
        try:
            return iso_datetime(moment)
        except ValueError:
            pass
    raise TimeError(
        f"The graph's times are datetimes; got the moment {moment!r} ({type(moment).__name__}). "
        "Give a datetime or an ISO string such as '2026-03-01T12:00'."
    )
