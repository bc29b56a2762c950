"""How the confusion of volunteers, and with it their skill, changes over time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise, product
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, value_tuple
from crowdgraph.core._parameters import check_bool, check_integer
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import quote
from crowdgraph.plot._panels import (
    SMALL_TEXT,
    magnify,
    name_corners,
    positions_of,
    shares_at,
    side_in_points,
    smallest_parts,
    visible_part,
)
from crowdgraph.plot._style import (
    GREY,
    INK,
    STEP_NUMBERS,
    check_kind,
    colours,
    distinct_times,
    draw_band,
    drawable_times,
    ensure_axes,
    format_step_axis,
    line_legend,
    new_figure,
    plain_text,
    thin_history,
    thin_steps,
    volunteer_list,
)

if TYPE_CHECKING:
    from crowdgraph.core.confusion import ConfusionHistory, ConfusionTrack, Correct

__all__ = ["confusion_history", "skill_over_time"]

# What a volunteer's steps can be drawn against.
Against = Literal["observations", "time", "responses"]

# The line style of each class; further classes start again.
LINE_STYLES = ("-", "--", ":", "-.")
# Histories with more responses than this are drawn with thinner lines.
MAX_BOLD_STEPS = 300
# A triangle is magnified if the history lies in a part of it whose side is at most this share of the whole side.
MAX_SIDE_MAGNIFIED = 0.6
# The width and height of a letter of the texts in a triangle, with some space around it, in points.
LETTER_SIZE = np.array([0.63, 1.4]) * SMALL_TEXT
# Candidate positions of a text: fractions of the way from one class's point to the next, and directions and distances
# (in widths and heights of the text) from a point.
FRACTIONS_BETWEEN = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86)
DIRECTIONS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
DISTANCES = (0.9, 1.5, 2.2, 3.0, 4.0, 5.2)
# The lines that join the stars of a moment with each other and with its text, and the stars.
JOIN: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "zorder": 2, "clip_on": False}
STAR: dict[str, Any] = {"marker": "*", "markersize": 11, "markeredgewidth": 0.6}
# How many volunteers `skill_over_time` draws if none are named.
N_BUSIEST = 5


@plain_text
def confusion_history(
    history: ConfusionHistory,
    *,
    ax: Axes | None = None,
    markers: int = 5,
    level: float = 0.9,
    labels: Iterable[Hashable] | None = None,
    against: Against | None = None,
    zoom: bool | None = None,
) -> Axes:
    """Plot how one volunteer's confusion changed.

    With three labels this is a triangle whose corners are the labels, with one line per true class: the closer the line
    is to a corner, the more often the volunteer gives that label. A line begins at the open marker and ends at the
    filled one. Moments in between are marked with a star on each line; the stars of a moment are joined and labelled
    with the number of responses that the whole crowd had given by then. A moment at which that number is the same as at
    an earlier star has no text of its own.

    With any other number of labels, or if `labels` selects some, the plot shows lines over time with bands: the
    probability of labels for items of each class, with one line style per class.

    Parameters
    ----------
    history
        The history, such as ``fit.confusion.of("anna")`` of a model that changes.
    ax
        The axes to draw on; a new figure if left out. A triangle needs axes made with ``projection="ternary"``.
    markers
        How many moments to mark in the triangle, evenly spaced over the volunteer's responses.
    level
        The probability that the probability of a label lies within its band.
    labels
        The labels to plot over time. If left out: of two labels the second; otherwise each class's own label, or all
        labels where classes are not labels.
    against
        What lines are drawn against, and what stars are labelled with: ``"observations"`` for the number of responses
        of the whole crowd so far, ``"time"``, or ``"responses"`` for the number of own responses so far. If left out:
        for lines the time, in a triangle the observations, or own responses if the history does not know them.
    zoom
        Whether to show only the part of the triangle in which the history lies; the ticks on its sides show which part
        it is, and the title how much larger it is. If left out, this is done for histories in a small part.

    Examples
    --------
    >>> import numpy as np
    >>> import crowdgraph as cg
    >>> yes = np.linspace(2, 8, 20)
    >>> row = np.column_stack([10 - yes, yes])
    >>> history = cg.ConfusionHistory(
    ...     volunteer="anna", times=np.arange(20), concentration=np.stack([row[::-1], row], axis=1),
    ...     initial=np.ones((2, 2)), classes=("no", "yes"), labels=("no", "yes"), clock=cg.Clock("number"))
    >>> ax = cg.plot.confusion_history(history)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['says yes when it is no', 'says yes when it is yes']
    """
    check_kind(history, "ConfusionHistory", 'fit.confusion.of("anna"), of a fit of DynIBCC')
    if not len(history):
        raise ParameterError(
            f"The confusion of {history.volunteer!r} has no steps, so it has no history to draw: "
            + (
                "its model is static. Fit one that changes, such as DynIBCC."
                if history.inference == "static"
                else "the volunteer gave no responses."
            )
        )
    check_integer("markers", markers, minimum=0)
    if zoom is not None:
        check_bool("zoom", zoom)
    in_triangle = len(history.labels) == 3 and labels is None
    if against is None and in_triangle:
        against = "responses" if history.observations is None else "observations"
    against = against or "time"
    _check_against(against, history)
    title = f"Volunteer {history.volunteer}, {quantity(len(history), 'response')}"
    if in_triangle:
        ax, magnified = _draw_triangle(history, ax=ax, markers=int(markers), against=against, zoom=zoom)
        title += magnified
    else:
        ax = _draw_lines(history, ax=ax, level=level, labels=labels, against=against)
    ax.set_title(title, loc="left")
    return ax


def _check_against(against: str, history: ConfusionHistory) -> None:
    """Raise unless the steps of the history can be drawn against this."""
    check_choice("against", against, get_args(Against))
    if against == "observations" and history.observations is None:
        raise ParameterError(
            f"against='observations' needs the number of responses of the whole crowd at each response of "
            f"{history.volunteer!r}, which this history does not know. Take the history from a track, such as "
            "fit.confusion.of(volunteer), give it observations=, or choose 'time' or 'responses'."
        )


def _steps_against(history: ConfusionHistory, against: str) -> Array:
    """Return what each step of a history, thinned to those that are drawn, is drawn against."""
    thin = thin_history(history)
    if against == "observations":
        return cast(Array, thin.observations)
    return drawable_times(history.clock, thin.times) if against == "time" else thin_steps(len(history)) + 1


def _draw_lines(
    history: ConfusionHistory, *, ax: Axes | None, level: float, labels: Iterable[Hashable] | None, against: str
) -> Axes:
    """Draw the probability of labels over time."""
    if getattr(ax, "name", None) == "ternary":
        raise ParameterError(
            "This picture has lines over time, which ternary axes cannot show; draw it on axes of plt.subplots(), "
            "or leave ax= out."
        )
    cells = _cells_to_draw(history, labels)
    thin = thin_history(history)
    low, high = thin.interval(level)
    beside = ax is None
    ax = ensure_axes(ax, width=8.0)
    x = _steps_against(history, against)
    for (row, column), colour in zip(cells, colours(cells), strict=True):
        draw_band(
            ax,
            x,
            thin.mean[:, row, column],
            (low[:, row, column], high[:, row, column]),
            colour=colour,
            style=LINE_STYLES[row % len(LINE_STYLES)],
            name=f"says {history.labels[column]} when it is {history.classes[row]}",
        )
    format_step_axis(ax, history.clock, against)
    ax.set(ylabel="probability of the label", ylim=(-0.02, 1.02))
    ax.margins(x=0.02)
    line_legend(ax, beside=beside)
    return ax


def _cells_to_draw(history: ConfusionHistory, labels: Iterable[Hashable] | None) -> list[tuple[int, int]]:
    """Return the rows and columns of the confusion matrix that are drawn over time."""
    rows, names = range(len(history.classes)), history.labels
    if labels is not None:
        labels = value_tuple(labels, what="labels")
        unknown = [label for label in labels if label not in names]
        if unknown:
            raise ParameterError(f"labels= names {quote(unknown)}; choose from the labels {quote(names, most=20)}.")
        return list(product(rows, [names.index(label) for label in labels]))
    if len(names) == 2:
        return [(row, 1) for row in rows]
    if set(history.classes) <= set(names):
        return [(row, names.index(name)) for row, name in enumerate(history.classes)]
    return list(product(rows, range(len(names))))


def _draw_triangle(
    history: ConfusionHistory, *, ax: Axes | None, markers: int, against: str, zoom: bool | None
) -> tuple[Axes, str]:
    """Draw one line per class in a triangle of three labels; also return what its title says of its size."""
    ternary = _ternary_axes(ax)
    thin, exact = thin_history(history).mean, history.mean
    (lows,) = smallest_parts([exact])
    is_small = 1 - lows.sum() <= MAX_SIDE_MAGNIFIED
    magnified = magnify(ternary, lows) if zoom or (zoom is None and is_small) else ""
    inner = np.unique(np.linspace(0, len(history) - 1, markers + 2).round().astype(np.int64))[1:-1]
    first, *texts, last = _moment_texts(history, np.array([0, *inner, len(history) - 1]), against)
    for step in inner:
        ternary.plot(*exact[step].T, **JOIN)
    width = 1.8 if len(history) <= MAX_BOLD_STEPS else 0.9
    for row, colour in enumerate(colours(history.classes)):
        line = {"color": colour, "linewidth": width, "alpha": 0.7, "zorder": 3, "clip_on": False}
        ternary.plot(*thin[:, row].T, label=f"when it is {history.classes[row]}", **line)
        point = {"color": colour, "linestyle": "none", "zorder": 4, "clip_on": False}
        ternary.plot(*exact[inner, row].T, markeredgecolor=INK, **STAR, **point)
        ternary.plot(*exact[:1, row].T, marker="o", markersize=8, markerfacecolor="white", markeredgewidth=2, **point)
        ternary.plot(*exact[-1:, row].T, marker="o", markersize=9, markeredgecolor="white", **point)
    # Of moments with the same text, the first one shows it.
    moments: dict[str, Array] = {}
    for step, text in zip(inner, texts, strict=True):
        moments.setdefault(text, exact[step])
    _write_moments(ternary, moments, thin)
    name_corners(ternary, history.labels)
    end = {"marker": "o", "linestyle": "none", "color": INK}
    ternary.plot([], [], [], markerfacecolor="white", markeredgewidth=2, label=f"first response: {first}", **end)
    ternary.plot([], [], [], label=f"last response: {last}", **end)
    if moments and against != "time":
        name = fill(f"numbers: {STEP_NUMBERS[against]}", 24)
        ternary.plot([], [], [], color=GREY, linestyle="none", label=name, **STAR)
    # The texts lie inside the triangle, and the legend beside its upper half.
    beside = 0.8 if ax is None else 0.72
    ternary.legend(loc="upper left", bbox_to_anchor=(beside, 1.0), frameon=False, fontsize="small")
    return cast(Axes, ternary), magnified


def _moment_texts(history: ConfusionHistory, steps: Array, against: str) -> list[str]:
    """Return the texts of steps of a history."""
    if against == "time":
        return distinct_times(history.clock, history.times[steps])
    numbers = cast(Array, history.observations)[steps] if against == "observations" else steps + 1
    return [f"{number:,}" for number in numbers.tolist()]


def _write_moments(ternary: Any, moments: dict[str, Array], line_points: Array) -> None:
    """Write the texts of moments, whose points have shape (J, 3), where they cover neither each other nor lines."""
    lows, side = visible_part(ternary)
    letter = LETTER_SIZE / side_in_points(ternary)
    positions = _position_texts(
        [positions_of(ternary, points) for points in moments.values()],
        positions_of(ternary, line_points.reshape(-1, 3)),
        [letter * [len(text), 1] for text in moments],
    )
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
    for (text, points), position in zip(moments.items(), positions, strict=True):
        # A line ties a text beside the join to the nearest star; on the join it adds nothing.
        star = points[np.linalg.norm(positions_of(ternary, points) - position, axis=1).argmin()]
        shares = lows + side * shares_at(position)
        ternary.plot(*np.stack([star, shares]).T, **JOIN)
        ternary.text(*shares, text, fontsize=SMALL_TEXT, color=INK, ha="center", va="center", bbox=box, zorder=5)


def _ternary_axes(ax: Axes | None) -> Any:
    """Return `ax` if it is a triangle, or the triangle of a new figure."""
    from mpltern.ternary import TernaryAxes

    if ax is None:
        # Leave room for the names at the corners, which the layout engine does not see, and for the legend.
        return new_figure(figsize=(8.4, 5.5)).add_axes((0.14, 0.1, 0.59, 0.74), projection="ternary")
    if not isinstance(ax, TernaryAxes):
        raise ParameterError(
            f"A history of three labels is drawn in a triangle; got {type(ax).__name__}. Make axes for it with "
            'plt.subplot(projection="ternary") after `import mpltern`, leave ax= out, or choose labels=[...] for lines '
            "over time."
        )
    return ax


def _position_texts(points: Sequence[Array], line_points: Array, sizes: Sequence[Array]) -> list[Array]:
    """Choose a position for each moment's text, of the given size, in a triangle whose side is 1.

    Candidates lie between the moment's points, then around them, closer ones first. The best one lies inside the
    triangle, where it cannot reach the legend or the names of the corners, and covers neither another text nor a line.
    """
    positions: list[Array] = []
    for moment, size in zip(points, sizes, strict=True):
        between = [left + share * (right - left) for left, right in pairwise(moment) for share in FRACTIONS_BETWEEN]
        around = [point + size * reach * turn for reach in DISTANCES for point in moment for turn in DIRECTIONS]
        candidates = np.array([*between, *around])
        texts = np.zeros(len(candidates))
        for other, other_size in zip(positions, sizes, strict=False):
            texts += (np.abs(candidates - other) < (size + other_size) / 2).all(axis=1)
        is_covered = (np.abs(line_points - candidates[:, None]) < size / 2).all(axis=2)
        outside = shares_at(candidates[:, None] + size / 2 * DIRECTIONS).min(axis=(1, 2)) < 0
        costs = np.arange(len(candidates)) + 20 * is_covered.any(axis=1) + 1000 * is_covered.mean(axis=1)
        positions.append(candidates[np.argmin(costs + 10_000 * (texts + outside))])
    return positions


@plain_text
def skill_over_time(
    track: ConfusionTrack,
    *,
    volunteers: Iterable[Hashable] | None = None,
    against: Against = "time",
    class_probs: ArrayLike | None = None,
    correct: Correct | None = None,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot the expected share of right labels of volunteers after each of their responses, with bands.

    Parameters
    ----------
    track
        The confusion of all volunteers over time, ``fit.confusion`` of a model that changes.
    volunteers
        The volunteers to plot; the five with the most responses if left out.
    against
        ``"time"``, ``"responses"`` for the number of own responses so far, which shows how volunteers learn, or
        ``"observations"`` for the number of responses of the whole crowd so far.
    class_probs
        How often each class occurs, of shape (J,); equally often if left out.
    correct
        For each class, the label (or labels) that count as right; needed only where a class is not itself a label.
    level
        The probability that the share lies within the band.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import numpy as np
    >>> import crowdgraph as cg
    >>> right = np.array([5.0, 6, 7, 8, 5, 4, 3])
    >>> row = np.column_stack([right, 10 - right])
    >>> track = cg.ConfusionTrack(
    ...     ids=["anna", "bert"], starts=[0, 4, 7], times=[1, 2, 3, 5, 2, 4, 6], initial=np.full((2, 2), 5.0),
    ...     concentration=np.stack([row, row[:, ::-1]], axis=1), classes=("no", "yes"), labels=("no", "yes"),
    ...     clock=cg.Clock("number"))
    >>> ax = cg.plot.skill_over_time(track, against="responses")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['anna, 4 responses', 'bert, 3 responses']
    """
    check_kind(track, "ConfusionTrack", "fit.confusion, of a fit of DynIBCC")
    check_choice("against", against, get_args(Against))
    histories = _histories(track, volunteers)
    thin = [thin_history(history) for history in histories]
    accuracies = [history.accuracy(class_probs, correct=correct) for history in thin]
    ends = [history.accuracy_interval(level, class_probs=class_probs, correct=correct) for history in thin]
    beside = ax is None
    ax = ensure_axes(ax, width=8.0)
    for k, colour in enumerate(colours(histories)):
        name = f"{histories[k].volunteer}, {quantity(len(histories[k]), 'response')}"
        draw_band(ax, _steps_against(histories[k], against), accuracies[k], ends[k], colour=colour, name=name)
    format_step_axis(ax, track.clock, against)
    ax.set(ylabel="expected share of right labels", ylim=(-0.02, 1.02))
    ax.margins(x=0.02)
    line_legend(ax, beside=beside)
    ax.set_title(f"Skill of {quantity(len(histories), 'volunteer')}", loc="left")
    return ax


def _histories(track: ConfusionTrack, volunteers: Iterable[Hashable] | None) -> list[ConfusionHistory]:
    """Return the histories of the named volunteers, or of the busiest."""
    if not len(track.times):
        raise ParameterError(
            f"This {track.inference} track of {quantity(len(track), 'volunteer')} has no steps, so there is no history "
            "to draw; fit a model that changes, such as DynIBCC, and take fit.confusion."
        )
    if volunteers is None:
        n_steps = np.diff(track.starts)
        busiest = np.argsort(-n_steps, kind="stable")[:N_BUSIEST]
        return [track.of(track.ids[code]) for code in busiest[n_steps[busiest] > 0]]
    ids = volunteer_list(volunteers, if_empty="or leave it out for the busiest")
    histories = [track.of(volunteer) for volunteer in ids]
    silent = [history.volunteer for history in histories if not len(history)]
    if silent:
        raise ParameterError(
            f"{quantity(len(silent), 'volunteer')} named in volunteers= gave no responses, so there is no history to "
            f"draw: {quote(silent)}. Leave them out of volunteers=."
        )
    return histories
