"""How the confusion of volunteers, and with it their skill, changes over time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, value_tuple
from crowdgraph.core._parameters import check_integer
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import quote
from crowdgraph.plot._panels import CORNERS, SMALL_TEXT, name_corners, side_in_points
from crowdgraph.plot._style import (
    GREY,
    INK,
    check_kind,
    colours,
    draw_band,
    ensure_axes,
    format_step_axis,
    line_legend,
    short_times,
    thin_history,
    thin_steps,
    volunteer_list,
)

if TYPE_CHECKING:
    from crowdgraph.core.confusion import ConfusionHistory, ConfusionTrack, Correct

__all__ = ["confusion_history", "skill_over_time"]

# The line style of each class; further classes start again.
LINE_STYLES = ("-", "--", ":", "-.")
# Histories with more responses than this are drawn with thinner lines.
MAX_BOLD_STEPS = 300
# The width and height of a letter of the times in a triangle, with some space around it, in points.
LETTER_SIZE = np.array([0.63, 1.4]) * SMALL_TEXT
# Candidate positions of a time: fractions of the way from one class's point to the next, and directions from a point.
FRACTIONS_BETWEEN = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86)
DIRECTIONS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
# How many volunteers `skill_over_time` draws if none are named.
N_BUSIEST = 5


def confusion_history(
    history: ConfusionHistory,
    *,
    ax: Axes | None = None,
    markers: int = 5,
    level: float = 0.9,
    labels: Iterable[Hashable] | None = None,
    against: Literal["time", "responses"] = "time",
) -> Axes:
    """Plot how one volunteer's confusion changed.

    With three labels this is a triangle whose corners are the labels, with one line per true class: the closer the line
    is to a corner, the more often the volunteer gives that label. A line begins at the open marker and ends at the
    filled one. Moments in between are marked with a star on each line; the stars of a moment are joined and labelled
    with its time.

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
        What the lines are drawn against: ``"time"``, or ``"responses"`` for the number of own responses so far.

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
    check_choice("against", against, ("time", "responses"))
    if len(history.labels) == 3 and labels is None:
        ax = _draw_triangle(history, ax=ax, markers=int(markers))
    else:
        ax = _draw_lines(history, ax=ax, level=level, labels=labels, against=against)
    ax.set_title(f"Volunteer {history.volunteer}, {quantity(len(history), 'response')}", loc="left")
    return ax


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
    x = thin.times if against == "time" else thin_steps(len(history)) + 1
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


def _draw_triangle(history: ConfusionHistory, *, ax: Axes | None, markers: int) -> Axes:
    """Draw one line per class in a triangle of three labels."""
    ternary = _ternary_axes(ax)
    thin, exact = thin_history(history).mean, history.mean
    inner = np.unique(np.linspace(0, len(history) - 1, markers + 2).round().astype(np.int64))[1:-1]
    first, *times, last = short_times(history.clock, history.times[[0, *inner, -1]])
    join: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "zorder": 2, "clip_on": False}
    for step in inner:
        ternary.plot(*exact[step].T, **join)
    width = 1.8 if len(history) <= MAX_BOLD_STEPS else 0.9
    for row, colour in enumerate(colours(history.classes)):
        line = {"color": colour, "linewidth": width, "alpha": 0.7, "zorder": 3, "clip_on": False}
        ternary.plot(*thin[:, row].T, label=f"when it is {history.classes[row]}", **line)
        point = {"color": colour, "linestyle": "none", "zorder": 4, "clip_on": False}
        ternary.plot(*exact[inner, row].T, marker="*", markersize=11, markeredgecolor=INK, markeredgewidth=0.6, **point)
        ternary.plot(*exact[:1, row].T, marker="o", markersize=8, markerfacecolor="white", markeredgewidth=2, **point)
        ternary.plot(*exact[-1:, row].T, marker="o", markersize=9, markeredgecolor="white", **point)
    letter = LETTER_SIZE / side_in_points(ternary)
    positions = _position_texts(
        exact[inner] @ CORNERS, thin.reshape(-1, 3) @ CORNERS, [letter * [len(text), 1] for text in times]
    )
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
    for step, text, position in zip(inner, times, positions, strict=True):
        # A line ties a text beside the join to the nearest star; on the join it adds nothing.
        star = min(exact[step], key=lambda point: np.linalg.norm(point @ CORNERS - position))
        shares = _shares_at(position)
        ternary.plot(*np.stack([star, shares]).T, **join)
        ternary.text(*shares, text, fontsize=SMALL_TEXT, color=INK, ha="center", va="center", bbox=box, zorder=5)
    name_corners(ternary, history.labels)
    end = {"marker": "o", "linestyle": "none", "color": INK}
    ternary.plot([], [], [], markerfacecolor="white", markeredgewidth=2, label=f"first response, {first}", **end)
    ternary.plot([], [], [], label=f"last response, {last}", **end)
    ternary.legend(loc="upper left", bbox_to_anchor=(0.72, 1.0), frameon=False, fontsize="small")
    return cast(Axes, ternary)


def _ternary_axes(ax: Axes | None) -> Any:
    """Return `ax` if it is a triangle, or the triangle of a new figure."""
    from mpltern.ternary import TernaryAxes

    if ax is None:
        # Leave room for the names at the corners, which the layout engine does not see.
        return Figure(figsize=(7.5, 5.5)).add_axes((0.16, 0.1, 0.66, 0.76), projection="ternary")
    if not isinstance(ax, TernaryAxes):
        raise ParameterError(
            f"A history of three labels is drawn in a triangle; got {type(ax).__name__}. Make axes for it with "
            'plt.subplot(projection="ternary") after `import mpltern`, leave ax= out, or choose labels=[...] for lines '
            "over time."
        )
    return ax


def _shares_at(position: Array) -> Array:
    """Return the shares of the three labels at a position in the triangle; some are negative outside it."""
    return np.linalg.solve(np.vstack([CORNERS.T, np.ones(3)]), [*position, 1.0])


def _position_texts(points: Array, line_points: Array, sizes: Sequence[Array]) -> list[Array]:
    """Choose a position for each moment's text, of the given size.

    Candidates lie between the moment's points, then around them. The best one lies inside the triangle and covers
    neither another text nor a line.
    """
    positions: list[Array] = []
    for moment, size in zip(points, sizes, strict=True):
        between = [left + share * (right - left) for left, right in pairwise(moment) for share in FRACTIONS_BETWEEN]
        around = [point + size * reach * turn for reach in (0.9, 1.5, 2.2) for point in moment for turn in DIRECTIONS]
        candidates = [*between, *around]
        costs = []
        for order, candidate in enumerate(candidates):
            texts = sum((np.abs(candidate - other) < (size + sizes[k]) / 2).all() for k, other in enumerate(positions))
            lines = (np.abs(line_points - candidate) < size / 2).all(axis=1)
            outside = min(_shares_at(candidate + size / 2 * turn).min() for turn in DIRECTIONS) < 0
            costs.append(order + 1000 * texts + 300 * outside + 20 * lines.any() + 1000 * lines.mean())
        positions.append(candidates[int(np.argmin(costs))])
    return positions


def skill_over_time(
    track: ConfusionTrack,
    *,
    volunteers: Iterable[Hashable] | None = None,
    against: Literal["time", "responses"] = "time",
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
        ``"time"``, or ``"responses"`` for the number of own responses so far, which shows how volunteers learn.
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
    check_choice("against", against, ("time", "responses"))
    histories = _histories(track, volunteers)
    thin = [thin_history(history) for history in histories]
    accuracies = [history.accuracy(class_probs, correct=correct) for history in thin]
    ends = [history.accuracy_interval(level, class_probs=class_probs, correct=correct) for history in thin]
    beside = ax is None
    ax = ensure_axes(ax, width=8.0)
    for k, colour in enumerate(colours(histories)):
        n_steps = len(histories[k])
        x = thin[k].times if against == "time" else thin_steps(n_steps) + 1
        name = f"{histories[k].volunteer}, {quantity(n_steps, 'response')}"
        draw_band(ax, x, accuracies[k], ends[k], colour=colour, name=name)
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
