"""What pictures over time share: axes of time, times as text, and lines with bands."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from math import floor, log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from crowdgraph.core._arrays import Array
from crowdgraph.core.clock import Clock, zone_info
from crowdgraph.core.confusion import ConfusionHistory
from crowdgraph.errors import ParameterError

INK = "#333333"
GREY = "#888888"
# The inside of what belongs to nobody; its outline is grey, since grey is a hue, too.
PALE = "#F2F2F2"
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
# From nothing to all.
SHARES = LinearSegmentedColormap.from_list("shares", ["#FFFFFF", "#B5D3E7", HUES[0], "#00263B"])


def colours(names: Sequence[object]) -> list[str]:
    """A colour for each name: the eight hues, then the same ones paler, darker, paler still and so on."""
    return [_shade(HUES[place % len(HUES)], place // len(HUES)) for place in range(len(names))]


def mix_colours(hues: Sequence[str], shares: Array) -> Array:
    """Mix colours as lights are mixed: red, green and blue from 0 to 1, of shape (V, 3), for shares of shape (V, K)."""
    light = _to_light(np.array([to_rgb(hue) for hue in hues]).reshape(-1, 3))
    sum_of_light = np.clip(shares @ light, 0, 1)
    curve = 1.055 * sum_of_light ** (1 / 2.4) - 0.055
    return np.asarray(np.where(sum_of_light <= 0.0031308, 12.92 * sum_of_light, curve))


def ink_on(colour: str) -> str:
    """The colour of a text that can be read on this one: dark or white."""
    brightness = float(_to_light(np.array(to_rgb(colour))) @ [0.2126, 0.7152, 0.0722])
    return INK if brightness > 0.3 else "#FFFFFF"


def _to_light(parts: Array) -> Array:
    """The amount of light that the parts of a colour stand for (the sRGB standard)."""
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _shade(hue: str, turn: int) -> str:
    """The hue itself at turn 0, then by turns closer to white and closer to black."""
    strength, end = 0.6 ** ((turn + 1) // 2), 255 if turn % 2 else 0
    parts = [int(hue[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(end + strength * (part - end)):02X}" for part in parts)


def check_kind(subject: object, kind: type, made_by: str) -> None:
    """Raise unless what is to be drawn is of the kind that the picture shows."""
    if not isinstance(subject, kind):
        raise ParameterError(
            f"This picture shows a {kind.__name__}; got a {type(subject).__name__}. Make one with {made_by}."
        )


def new_or_given_axes(ax: Axes | None, *, width: float = 7.0, height: float = 4.0) -> Axes:
    """The given axes, or those of a new figure, without the frame lines that carry no data."""
    if ax is None:
        figure = Figure(figsize=(width, height), layout="constrained")
        ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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


def thin_steps(n_steps: int) -> Array:
    """The steps that are drawn: all if they are few, else some of them evenly, always with the first and the last."""
    return np.unique(np.linspace(0, n_steps - 1, min(n_steps, MOST_POINTS)).round().astype(np.int64))


def thin_history(history: ConfusionHistory) -> ConfusionHistory:
    """The same history with no more steps than can be seen."""
    steps = thin_steps(len(history))
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
