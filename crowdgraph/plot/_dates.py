"""Ticks of axes of dates that are never too many, and never outside the calendar."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
from matplotlib.dates import AutoDateLocator, date2num, num2date

# Python's calendar, with a day at both ends for time zones.
FIRST, LAST = map(float, date2num([dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)]))  # type: ignore[no-untyped-call]
# Within fewer days than these, an hour that comes twice is wide enough to be seen.
SHORT_DAYS = 2.0


class BoundedDateLocator(AutoDateLocator):
    """Matplotlib's ticks of dates, for limits outside the calendar, and for hours that come twice.

    The base class takes the difference of two times of the local clock for the time that lies between them. It may be
    zero where the clock was put back, and ticks then be microseconds apart.

    Parameters
    ----------
    zone
        The time zone of the ticks.
    """

    def __init__(self, zone: dt.tzinfo | None) -> None:
        super().__init__(tz=zone)  # type: ignore[no-untyped-call]

    def __call__(self) -> Any:
        """Return the ticks within the limits of the axis."""
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        # The formatter needs a tick, even if it is none that can be seen.
        low, high = min(low, LAST - 1), max(high, FIRST + 1)
        return self.tick_values(*_dates(low, high, self.tz))  # type: ignore[no-untyped-call]

    def get_locator(self, dmin: Any, dmax: Any) -> Any:
        """Return the locator for a period, chosen by how long it is in truth."""
        return super().get_locator(dmin.astimezone(dt.UTC), dmax.astimezone(dt.UTC))  # type: ignore[no-untyped-call]


def is_short_change(zone: dt.tzinfo, low: float, high: float) -> bool:
    """Return whether the clocks of a zone change within limits of an axis that show single hours."""
    if not high - low < SHORT_DAYS:
        return False
    first, last = _dates(low, high, zone)
    return bool(first.utcoffset() != last.utcoffset())


def _dates(low: float, high: float, zone: Any) -> list[dt.datetime]:
    """Return limits of an axis as dates within the calendar."""
    return list(num2date(np.clip([low, high], FIRST, LAST), zone))  # type: ignore[no-untyped-call]
