"""What pictures over time share: axes of time, times as text, and lines with bands."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from math import floor, log10

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.clock import Clock, zone_info
from crowdgraph.core.columns import Array
from crowdgraph.core.confusion import ConfusionHistory

__all__ = ["band", "counted", "horizontal_axis", "legend", "short_times", "thinned", "thinned_steps", "time_axis"]

# More points than these on a line cannot be told apart.
MOST_POINTS = 2000
# More lines than these are told outside the axes.
MOST_INSIDE = 8
# More lines than these cannot be told apart by their colours.
MOST_NAMED = 16
# What stands for a style of line where there is but one point.
POINTS = {"-": "o", "--": "s", ":": "^", "-.": "D"}
# Times within two days differ in their hours.
TWO_DAYS = np.timedelta64(2, "D")


def thinned_steps(n_steps: int) -> Array:
    """The steps that are drawn: all if they are few, else some of them evenly, always with the first and the last."""
    return np.unique(np.linspace(0, n_steps - 1, min(n_steps, MOST_POINTS)).round().astype(np.int64))


def thinned(history: ConfusionHistory) -> ConfusionHistory:
    """The same history with no more steps than can be seen."""
    steps = thinned_steps(len(history))
    return replace(history, times=history.times[steps], concentration=history.concentration[steps])


def time_axis(ax: Axes, clock: Clock) -> None:
    """Say on the horizontal axis what the times are; datetimes in their zone."""
    ax.set_xlabel({"order": "responses so far", "number": "time", "datetime": clock.zone or ""}[clock.kind])
    if clock.kind == "datetime":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        local = None if clock.zone is None else zone_info(clock.zone)
        locator = AutoDateLocator(tz=local)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=local))  # type: ignore[no-untyped-call]


def horizontal_axis(ax: Axes, clock: Clock, against: str) -> None:
    """Say what lines are drawn against: ``"time"`` or ``"responses"``."""
    if against == "time":
        time_axis(ax, clock)
    else:
        ax.set_xlabel("own responses so far")


def short_times(clock: Clock, times: Array) -> list[str]:
    """Times as short texts that differ where the times do: dates, dates and hours within two days, or numbers."""
    if clock.kind == "datetime":
        values = clock.to_python(times.astype("datetime64[us]"))
        texts = [value.isoformat() if isinstance(value, dt.datetime) else str(value) for value in values]
        within = len(times) > 0 and times[0] < times[-1] <= times[0] + TWO_DAYS
        return [f"{text[5:10]} {text[11:16]}" if within else text[:10] for text in texts]
    if clock.kind == "order":
        return [f"{time:,}" for time in times.tolist()]
    span = float(times[-1] - times[0]) if len(times) else 0.0
    if times.dtype.kind == "i" or span == 0:
        return [str(time) for time in times.tolist()]
    digits = max(0, 2 - floor(log10(span)))
    return [f"{time:.{digits}f}" for time in times.tolist()]


def band(
    ax: Axes, x: Array, middle: Array, ends: tuple[Array, Array], *, colour: str, style: str = "-", name: str
) -> None:
    """Draw what holds from each moment to the next, with a band from its lower to its upper end."""
    low, high = ends
    if x[0] == x[-1]:
        # One moment has no width: a point and a bar for what held after it.
        ax.plot(x[-1:], middle[-1:], POINTS[style], color=colour, label=name)
        ax.vlines(x[-1:], low[-1:], high[-1:], color=colour, alpha=0.3, linewidth=4)
        return
    ax.fill_between(x, low, high, step="post", color=colour, alpha=0.15, linewidth=0)
    ax.plot(x, middle, drawstyle="steps-post", color=colour, linestyle=style, linewidth=1.6, label=name)


def legend(ax: Axes, *, beside: bool) -> None:
    """Name the lines, beside the axes where there is room for it or where they are many; too many are not named."""
    n_lines = len(ax.get_legend_handles_labels()[1])
    if n_lines > MOST_NAMED:
        return
    many = n_lines > MOST_INSIDE
    place = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside or many else {"loc": "best"}
    ax.legend(frameon=False, fontsize="small" if many else None, **place)


def counted(number: int, noun: str) -> str:
    """A number and what it counts: ``1 response``, ``1,200 responses``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
