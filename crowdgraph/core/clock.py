"""What a graph's times are, and how a moment that a user names is compared with them."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.errors import ParameterError, TimeError, one_of

__all__ = ["Clock", "ClockKind", "Moment"]

ClockKind = Literal["order", "number", "datetime"]
Moment: TypeAlias = "int | float | str | dt.date | dt.datetime | np.generic"


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
        one_of("kind", self.kind, ("order", "number", "datetime"))
        if self.zone is not None:
            if self.kind != "datetime":
                raise TimeError(f"A zone ({self.zone!r}) belongs to datetimes; these times are of kind {self.kind!r}.")
            zone_info(self.zone)

    def check(self, times: Array) -> None:
        """Raise unless the column is of this clock's kind, finite and sorted."""
        kinds = {"order": "i", "number": "if", "datetime": "M"}[self.kind]
        if times.dtype.kind not in kinds:
            raise TimeError(
                f"Times of kind {self.kind!r} cannot be a column of {times.dtype}; read them at a door first."
            )
        if not is_sorted(times):
            raise TimeError("Times must be finite and sorted; CrowdGraph.from_responses sorts them.")

    def count_until(self, times: Array, moment: Moment, *, inclusive: bool = False) -> int:
        """How many of the sorted times lie before the moment (or at it, if inclusive)."""
        floor, exact = self._floor(moment, times.dtype)
        side: Literal["left", "right"] = "right" if inclusive or not exact else "left"
        return int(np.searchsorted(times, floor, side=side))

    def reached(self, times: Array, moment: Moment) -> Array:
        """For each time, whether it is at or before the moment."""
        floor, _ = self._floor(moment, times.dtype)
        reached: Array = times <= floor
        return reached

    def shown(self, time: np.generic) -> Any:
        """One time as a Python value: an int, a float, or a datetime in the graph's zone."""
        value = time.item() if time.dtype.kind != "M" else _as_datetime(time)
        if self.zone is not None and isinstance(value, dt.datetime):
            return value.replace(tzinfo=dt.UTC).astimezone(zone_info(self.zone))
        return value

    def _floor(self, moment: Moment, dtype: np.dtype[Any]) -> tuple[Any, bool]:
        """The latest value of the column's type that is not after the moment, and whether it equals it."""
        if self.kind == "datetime":
            instant = self._instant(moment)
            floor = instant.astype(dtype)
            return floor, bool(floor == instant)
        number = _number(moment)
        if dtype.kind == "f":
            return number, True
        bounds = np.iinfo(np.int64)
        if not bounds.min <= number <= bounds.max:
            return (bounds.max, False) if number > 0 else (bounds.min, True)
        return math.floor(number), math.floor(number) == number

    def _instant(self, moment: Moment) -> np.datetime64:
        """A moment as UTC (or as local time where the graph has no zone)."""
        if isinstance(moment, np.datetime64):
            if np.isnat(moment):
                raise TimeError("The moment is NaT; expected a real time.")
            return moment
        value = _python_datetime(moment)
        if value.tzinfo is not None and self.zone is None:
            raise TimeError(
                f"The moment {moment!r} has a time zone, the graph's times have none; "
                "drop the zone, or give the graph times with a zone."
            )
        if self.zone is not None:
            local = value if value.tzinfo is not None else value.replace(tzinfo=zone_info(self.zone))
            value = local.astimezone(dt.UTC).replace(tzinfo=None)
        # pandas timestamps carry nanoseconds beyond what a datetime holds.
        return np.datetime64(value, "us") + np.timedelta64(getattr(moment, "nanosecond", 0), "ns")


def zone_info(zone: str) -> dt.tzinfo:
    """A time zone by its name or by an offset such as ``+02:00``."""
    try:
        if zone[:1] in "+-":
            return dt.datetime.strptime(zone, "%z").tzinfo or dt.UTC
        return ZoneInfo(zone)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise TimeError(
            f"{zone!r} is not a known time zone; use a name such as 'Europe/Amsterdam' or an offset such as '+02:00'."
        ) from error


def is_sorted(times: Array) -> bool:
    """Whether the times are finite and never fall."""
    if times.dtype.kind == "f" and not np.isfinite(times).all():
        return False
    if times.dtype.kind == "M" and np.isnat(times).any():
        return False
    return not (times[1:] < times[:-1]).any()


def _number(moment: Moment) -> float | int:
    if isinstance(moment, np.generic):
        moment = moment.item()
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise TimeError(
            f"The graph's times are numbers; got the moment {moment!r} ({type(moment).__name__}). Give a number."
        )
    if math.isnan(moment):
        raise ParameterError("The moment is NaN; expected a number.")
    return moment


def _python_datetime(moment: Moment) -> dt.datetime:
    if isinstance(moment, dt.datetime):
        return moment
    if isinstance(moment, dt.date):
        return dt.datetime(moment.year, moment.month, moment.day)
    if isinstance(moment, str):
        try:
            return dt.datetime.fromisoformat(moment)
        except ValueError:
            pass
    raise TimeError(
        f"The graph's times are datetimes; got the moment {moment!r} ({type(moment).__name__}). "
        "Give a datetime or an ISO string such as '2026-03-01T12:00'."
    )


def _as_datetime(time: np.generic) -> Any:
    """A datetime where one can hold the column's values exactly, the NumPy scalar otherwise."""
    value = time.item()
    return value if isinstance(value, dt.datetime) else time
