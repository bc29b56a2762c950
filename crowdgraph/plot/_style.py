"""What all plots share: the check of their subject, axes, colours, time axes, and lines with bands.

The eight hues are those of Okabe and Ito, which people with any kind of colour vision can distinguish.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from math import floor, log10
from os import environ
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from crowdgraph.core._arrays import Array
from crowdgraph.core.clock import Clock, zone_info
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article

if TYPE_CHECKING:
    from crowdgraph.core.confusion import ConfusionHistory

INK = "#333333"
GREY = "#888888"
# Fills volunteers and communities that belong to none; they are outlined in grey, because grey is also one of the hues.
PALE = "#F2F2F2"
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
# The colour map of shares from 0 to 1.
SHARES = LinearSegmentedColormap.from_list("shares", ["#FFFFFF", "#B5D3E7", HUES[0], "#00263B"])

# A line with more points than this looks the same, so it is thinned.
MAX_POINTS = 2000
# The legend of more lines than this goes beside the axes.
MAX_LINES_INSIDE = 8
# More lines than this cannot be identified by colour, so they get no legend.
MAX_LINES_NAMED = 16
# The marker that stands for a line style where there is only one point.
SINGLE_POINT_MARKERS = {"-": "o", "--": "s", ":": "^", "-.": "D"}
# What the numbers of a volunteer's steps count.
STEP_NUMBERS = {"observations": "responses of the whole crowd so far", "responses": "own responses so far"}
# Numbers further from zero than this leave no room for the margins and ticks of an axis.
MAX_NUMBER = 1e300
# The dates of Python's calendar.
FIRST_DATE, LAST_DATE = np.datetime64("0001-01-01T00:00:00"), np.datetime64("9999-12-31T23:59:59")
# Times within this span are written with hours and minutes.
MAX_SPAN_WITH_HOURS = np.timedelta64(2, "D")


def is_kind(subject: object, kind: str) -> bool:
    """Return whether the subject is an instance of a class of this name.

    Plots go by the name because they must not import the packages that compute results.
    """
    return any(cls.__name__ == kind for cls in type(subject).__mro__)


def check_kind(subject: object, kind: str, maker: str) -> None:
    """Raise unless the subject of a plot is of the class that the plot shows."""
    if not is_kind(subject, kind):
        raise ParameterError(f"This picture shows a {kind}; got {with_article(type(subject))}. Make one with {maker}.")


def volunteer_list(volunteers: Iterable[Hashable], *, if_empty: str) -> list[Hashable]:
    """Return the ids in `volunteers` as a list; raise if there are none, or if it is a single id."""
    if isinstance(volunteers, str | bytes) or not isinstance(volunteers, Iterable):
        raise ParameterError(f"volunteers={volunteers!r} must be several ids, such as volunteers=[{volunteers!r}].")
    ids = list(volunteers)
    if not ids:
        raise ParameterError(f"volunteers= names nobody; name some, {if_empty}.")
    return ids


Params = ParamSpec("Params")
Drawing = TypeVar("Drawing")


def plain_text(draw: Callable[Params, Drawing]) -> Callable[Params, Drawing]:
    """Let a plot write names as they are: matplotlib would read what stands between two ``$`` as a formula.

    A plot that fails leaves no figure behind.
    """

    @wraps(draw)
    def draw_plainly(*args: Params.args, **options: Params.kwargs) -> Drawing:
        with _no_formulas(), _all_or_no_figure():
            return draw(*args, **options)

    return draw_plainly


@contextmanager
def _no_formulas() -> Iterator[None]:
    """Set how text is read, and restore it.

    ``rc_context`` would restore all settings, also those with which a notebook's backend, loaded here with the first
    figure, shows all later ones.
    """
    before = mpl.rcParams["text.parse_math"]
    mpl.rcParams["text.parse_math"] = False
    try:
        yield
    finally:
        mpl.rcParams["text.parse_math"] = before


# Figures and axes.

# Where this is False, figures are nobody's but the caller's, and end with the last reference to them.
_MAY_BE_PYPLOT: ContextVar[bool] = ContextVar("may_be_pyplot", default=True)


def new_figure(**options: Any) -> Figure:
    """Return a new figure: pyplot's where pyplot is in use, so that ``plt.savefig`` and notebooks know it."""
    if not (_MAY_BE_PYPLOT.get() and _pyplot_is_in_use()):
        return Figure(**options)
    import matplotlib.pyplot as plt

    return plt.figure(**options)


@contextmanager
def figures_apart_from_pyplot() -> Iterator[None]:
    """Keep the figures that are drawn here out of pyplot, which would hold them until they are closed."""
    token = _MAY_BE_PYPLOT.set(False)
    try:
        yield
    finally:
        _MAY_BE_PYPLOT.reset(token)


def _pyplot_is_in_use() -> bool:
    """Return whether this is a notebook that shows figures inline, or one of the callers has imported pyplot.

    That it is loaded says nothing: igraph loads it, too.
    """
    if "inline" in environ.get("MPLBACKEND", ""):
        return True
    if "matplotlib.pyplot" not in sys.modules:
        return False
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if any(map(_is_of_pyplot, (*frame.f_globals.values(), *frame.f_locals.values()))):
            return True
        frame = frame.f_back
    return False


def _is_of_pyplot(value: object) -> bool:
    """Return whether a value is pyplot, or one of its functions."""
    is_function = isinstance(value, FunctionType) and value.__module__ == "matplotlib.pyplot"
    return is_function or value is sys.modules["matplotlib.pyplot"]


@contextmanager
def _all_or_no_figure() -> Iterator[None]:
    """Close the figures of pyplot that were opened here if there is an error, since notebooks would show them."""
    before = _open_figures()
    try:
        yield
    except BaseException:
        for number in _open_figures() - before:
            sys.modules["matplotlib.pyplot"].close(number)
        raise


def _open_figures() -> set[int]:
    """Return the numbers of the figures that pyplot holds."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set() if pyplot is None else set(pyplot.get_fignums())


def ensure_axes(ax: Axes | None, *, width: float = 7.0, height: float = 4.0) -> Axes:
    """Return `ax`, or the axes of a new figure, without the top and right spines."""
    if ax is None:
        figure = new_figure(figsize=(width, height), layout="constrained")
        ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def width_in_inches(ax: Axes) -> float:
    """Return the width of the axes, before the layout engine runs."""
    return float(ax.bbox.width / ax.figure.dpi)


def legend_location(*, beside: bool) -> dict[str, Any]:
    """Return the options that put a legend beside the axes, or inside them where there is room."""
    return {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside else {"loc": "best"}


# Colours.


def colours(names: Sequence[object]) -> list[str]:
    """Return one colour per name: the eight hues, then alternately paler and darker versions of them."""
    return [_shade(HUES[index % len(HUES)], index // len(HUES)) for index in range(len(names))]


def mix_colours(hues: Sequence[str], shares: Array) -> Array:
    """Mix colours additively, as light; returns RGB from 0 to 1, of shape (V, 3), for shares of shape (V, K)."""
    light = _to_light(np.array([to_rgb(hue) for hue in hues]).reshape(-1, 3))
    sum_of_light = np.clip(shares @ light, 0, 1)
    curve = 1.055 * sum_of_light ** (1 / 2.4) - 0.055
    return np.asarray(np.where(sum_of_light <= 0.0031308, 12.92 * sum_of_light, curve))


def ink_on(colour: str) -> str:
    """Return the text colour, dark or white, that is legible on this background."""
    brightness = float(_to_light(np.array(to_rgb(colour))) @ [0.2126, 0.7152, 0.0722])
    return INK if brightness > 0.3 else "#FFFFFF"


def _to_light(channels: Array) -> Array:
    """Convert sRGB channels to linear light (the transfer function of the sRGB standard)."""
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _shade(hue: str, turn: int) -> str:
    """Return the hue itself at turn 0, then alternately closer to white and closer to black."""
    strength, end = 0.6 ** ((turn + 1) // 2), 255 if turn % 2 else 0
    channels = [int(hue[start : start + 2], 16) for start in (1, 3, 5)]
    return "#" + "".join(f"{round(end + strength * (channel - end)):02X}" for channel in channels)


# Time.


def thin_steps(n_steps: int) -> Array:
    """Return the steps to draw: all, or `MAX_POINTS` evenly spaced ones that include the first and the last."""
    return np.unique(np.linspace(0, n_steps - 1, min(n_steps, MAX_POINTS)).round().astype(np.int64))


def thin_history(history: ConfusionHistory) -> ConfusionHistory:
    """Return the history with at most `MAX_POINTS` steps."""
    steps = thin_steps(len(history))
    observations = None if history.observations is None else history.observations[steps]
    return replace(
        history, times=history.times[steps], concentration=history.concentration[steps], observations=observations
    )


def drawable_times(clock: Clock, times: Array) -> Array:
    """Return times for an axis; raise if they are too far away for one."""
    if clock.kind == "datetime":
        seconds = times.astype("datetime64[s]")
        if len(seconds) and not FIRST_DATE <= seconds.min() <= seconds.max() <= LAST_DATE:
            raise ParameterError(
                f"Times from {seconds.min()} to {seconds.max()} cannot be drawn: an axis of dates lies within the "
                f"years 1 and 9999. Correct them, or give the times as numbers."
            )
    elif times.dtype.kind == "f" and len(times) and np.abs(times).max() > MAX_NUMBER:
        raise ParameterError(
            f"Times from {times.min():g} to {times.max():g} cannot be drawn: an axis has numbers up to {MAX_NUMBER:g}. "
            "Correct them, or give them in a larger unit."
        )
    return times


def format_time_axis(ax: Axes, clock: Clock) -> None:
    """Name the horizontal axis after the clock, and show datetimes in the clock's zone.

    Call it when all is drawn. Where the clocks change within a short time, and some hour comes twice, it is in UTC.
    """
    ax.set_xlabel({"order": "responses so far", "number": "time", "datetime": clock.zone or ""}[clock.kind])
    if clock.kind == "datetime":
        from matplotlib.dates import ConciseDateFormatter

        from crowdgraph.plot._dates import BoundedDateLocator, is_short_change

        zone = None if clock.zone is None else zone_info(clock.zone)
        if zone is not None and is_short_change(zone, *ax.get_xlim()):
            zone = dt.UTC
            ax.set_xlabel(f"UTC, since the clocks of {clock.zone} change")
        locator = BoundedDateLocator(zone)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]


def format_step_axis(ax: Axes, clock: Clock, against: str) -> None:
    """Name the horizontal axis of a volunteer's steps, drawn against ``"time"`` or one of `STEP_NUMBERS`."""
    if against == "time":
        format_time_axis(ax, clock)
    else:
        ax.set_xlabel(STEP_NUMBERS[against])


def short_times(clock: Clock, times: Array) -> list[str]:
    """Format sorted times briefly: as dates, as dates with hours within two days, or as numbers."""
    return _time_texts(clock, times)[0]


def distinct_times(clock: Clock, times: Array) -> list[str]:
    """Format sorted times as briefly as `short_times`, but so that different times have different texts."""
    n_distinct = len(np.unique(times))
    return next(texts for texts in _time_texts(clock, times) if len(set(texts)) >= n_distinct)


def _time_texts(clock: Clock, times: Array) -> list[list[str]]:
    """Return the texts of sorted times, first briefly, then with more and more detail, and at last in full."""
    if clock.kind == "datetime":
        values = clock.to_python(times.astype("datetime64[us]"))
        full = [value.isoformat(" ") if isinstance(value, dt.datetime) else str(value) for value in values]
        with_hours = len(times) > 0 and times[0] < times[-1] <= times[0] + MAX_SPAN_WITH_HOURS
        without_year = with_hours or len({text[:4] for text in full}) == 1
        parts = [slice(5, 16), slice(5, 19)] if without_year else [slice(16), slice(19)]
        parts = parts if with_hours else [slice(10), *parts]
        return [*([text[part] for text in full] for part in parts), full, [str(time) for time in times]]
    if clock.kind == "order":
        return [[f"{time:,}" for time in times.tolist()]]
    full = [str(time) for time in times.tolist()]
    if times.dtype.kind == "i" or len(times) == 0 or times[0] == times[-1]:
        return [full]
    digits = max(0, 2 - floor(log10(float(times[-1] - times[0]))))
    return [*([f"{time:.{digits + more}f}" for time in times.tolist()] for more in (0, 1, 2, 3)), full]


# Lines.


def draw_band(
    ax: Axes, x: Array, middle: Array, ends: tuple[Array, Array], *, colour: str, style: str = "-", name: str
) -> None:
    """Draw a step line, whose values hold until the next step, with a band from its lower to its upper end."""
    low, high = ends
    if x[0] == x[-1]:
        # A single moment has no width: draw a point, with a bar for the band.
        ax.plot(x[-1:], middle[-1:], SINGLE_POINT_MARKERS[style], color=colour, label=name)
        ax.vlines(x[-1:], low[-1:], high[-1:], color=colour, alpha=0.3, linewidth=4)
        return
    ax.fill_between(x, low, high, step="post", color=colour, alpha=0.15, linewidth=0)
    ax.plot(x, middle, drawstyle="steps-post", color=colour, linestyle=style, linewidth=1.6, label=name)


def line_legend(ax: Axes, *, beside: bool) -> None:
    """Add a legend of the lines: beside the axes if asked or if there are many, none if there are too many."""
    n_lines = len(ax.get_legend_handles_labels()[1])
    if n_lines > MAX_LINES_NAMED:
        return
    many = n_lines > MAX_LINES_INSIDE
    ax.legend(frameon=False, fontsize="small" if many else None, **legend_location(beside=beside or many))
