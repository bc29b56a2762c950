"""How good volunteers were when."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise, product
from math import sqrt
from typing import Any, Literal, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, value_tuple
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.confusion import ConfusionHistory, ConfusionTrack, Correct
from crowdgraph.errors import ParameterError, check_choice, quote
from crowdgraph.plot._style import (
    INK,
    band,
    check_kind,
    colours,
    counted,
    horizontal_axis,
    legend,
    new_or_given_axes,
    short_times,
    thin_history,
    thin_steps,
)

__all__ = ["confusion_history", "skill_over_time"]

GREY = "#888888"
# One for each class; further classes begin anew.
STYLES = ("-", "--", ":", "-.")
# Longer histories are drawn as thinner lines.
LONG = 300
# Where the three corners of the triangle lie: top, left and right, in units of its sides.
CORNERS = np.array([[0.5, sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])
# The size of the texts in the triangle, in points, and how wide and high a letter of it is with some air around it.
POINTS = 8
LETTER = np.array([0.63, 1.4]) * POINTS
# Where a text may go: parts of the way from one point to the next, and directions from a point.
BETWEEN = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86)
AROUND = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])


def confusion_history(
    history: ConfusionHistory,
    *,
    ax: Axes | None = None,
    markers: int = 5,
    level: float = 0.9,
    labels: Iterable[Hashable] | None = None,
    against: Literal["time", "responses"] = "time",
) -> Axes:
    """Draw how one volunteer's confusion changed.

    With three labels this is a triangle whose corners are the labels, and one line for each true class: close to a
    corner the volunteer says that label. Lines begin at the open marker and end at the filled one. Moments in between
    are marked with a star on each line, joined and labelled with their time.

    With any other number of labels, or where `labels` chooses some, these are lines over time with bands: the
    probability of labels for items of each class, each class in a style.

    Parameters
    ----------
    history
        The history, such as ``fit.confusion.of("anna")`` of a model that changes.
    ax
        Where to draw; a new figure if left out. A triangle needs axes made with ``projection="ternary"``.
    markers
        How many moments to mark in the triangle, evenly spread over the volunteer's responses.
    level
        How probable it is that a label's probability lies in its band.
    labels
        Draw these labels over time. If left out: of two labels the second; otherwise each class's own label, or all
        labels where classes are not labels.
    against
        What lines are drawn over: ``"time"``, or ``"responses"`` for the number of own responses so far.

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
    check_kind(history, ConfusionHistory, 'fit.confusion.of("anna"), of a fit of DynIBCC')
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
        ax = _triangle(history, ax=ax, markers=int(markers))
    else:
        ax = _lines(history, ax=ax, level=level, labels=labels, against=against)
    ax.set_title(f"Volunteer {history.volunteer}, {counted(len(history), 'response')}", loc="left")
    return ax


def _lines(
    history: ConfusionHistory, *, ax: Axes | None, level: float, labels: Iterable[Hashable] | None, against: str
) -> Axes:
    """The probability of labels over time."""
    if getattr(ax, "name", None) == "ternary":
        raise ParameterError(
            "This picture has lines over time, which ternary axes cannot show; draw it on axes of plt.subplots(), "
            "or leave ax= out."
        )
    pairs = _pairs(history, labels)
    drawn = thin_history(history)
    low, high = drawn.interval(level)
    beside = ax is None
    ax = new_or_given_axes(ax, width=8.0)
    x = drawn.times if against == "time" else thin_steps(len(history)) + 1
    for (row, column), colour in zip(pairs, colours(pairs), strict=True):
        band(
            ax,
            x,
            drawn.mean[:, row, column],
            (low[:, row, column], high[:, row, column]),
            colour=colour,
            style=STYLES[row % len(STYLES)],
            name=f"says {history.labels[column]} when it is {history.classes[row]}",
        )
    horizontal_axis(ax, history.clock, against)
    ax.set(ylabel="probability of the label", ylim=(-0.02, 1.02))
    ax.margins(x=0.02)
    legend(ax, beside=beside)
    return ax


def _pairs(history: ConfusionHistory, labels: Iterable[Hashable] | None) -> list[tuple[int, int]]:
    """The rows and columns that are drawn over time."""
    rows, names = range(len(history.classes)), history.labels
    if labels is not None:
        chosen = value_tuple(labels, what="labels")
        unknown = [label for label in chosen if label not in names]
        if unknown:
            raise ParameterError(f"labels= names {quote(unknown)}; choose from the labels {quote(names, most=20)}.")
        return list(product(rows, [names.index(label) for label in chosen]))
    if len(names) == 2:
        return [(row, 1) for row in rows]
    if set(history.classes) <= set(names):
        return [(row, names.index(name)) for row, name in enumerate(history.classes)]
    return list(product(rows, range(len(names))))


def _triangle(history: ConfusionHistory, *, ax: Axes | None, markers: int) -> Axes:
    """The lines of the classes between three labels."""
    ternary = _ternary_axes(ax)
    drawn, exact = thin_history(history).mean, history.mean
    inner = np.unique(np.linspace(0, len(history) - 1, markers + 2).round().astype(np.int64))[1:-1]
    first, *times, last = short_times(history.clock, history.times[[0, *inner, -1]])
    for step in inner:
        ternary.plot(*exact[step].T, color=GREY, linewidth=0.7, zorder=2, clip_on=False)
    width = 1.8 if len(history) <= LONG else 0.9
    for row, colour in enumerate(colours(history.classes)):
        line = {"color": colour, "linewidth": width, "alpha": 0.7, "zorder": 3, "clip_on": False}
        ternary.plot(*drawn[:, row].T, label=f"when it is {history.classes[row]}", **line)
        point = {"color": colour, "linestyle": "none", "zorder": 4, "clip_on": False}
        ternary.plot(*exact[inner, row].T, marker="*", markersize=11, markeredgecolor=INK, markeredgewidth=0.6, **point)
        ternary.plot(*exact[:1, row].T, marker="o", markersize=8, markerfacecolor="white", markeredgewidth=2, **point)
        ternary.plot(*exact[-1:, row].T, marker="o", markersize=9, markeredgecolor="white", **point)
    letter = LETTER / 72 * ternary.figure.dpi / _side(ternary)
    spots = _spots(exact[inner] @ CORNERS, drawn.reshape(-1, 3) @ CORNERS, [letter * [len(text), 1] for text in times])
    halo = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
    for step, text, spot in zip(inner, times, spots, strict=True):
        # A text beside the join is tied to the nearest star; on the join this adds nothing.
        star = min(exact[step], key=lambda point: np.linalg.norm(point @ CORNERS - spot))
        ternary.plot(*np.stack([star, _shares(spot)]).T, color=GREY, linewidth=0.7, zorder=2, clip_on=False)
        ternary.text(*_shares(spot), text, fontsize=POINTS, color=INK, ha="center", va="center", bbox=halo, zorder=5)
    _name(ternary, history, first, last)
    return cast(Axes, ternary)


def _name(ternary: Any, history: ConfusionHistory, first: str, last: str) -> None:
    """Corners, legend and a quiet grid."""
    for axis, label in zip((ternary.taxis, ternary.laxis, ternary.raxis), history.labels, strict=True):
        axis.set_label_text(f"says {label}")
        axis.set_label_rotation_mode("horizontal")
        axis.set_ticks([0.2, 0.4, 0.6, 0.8])
    ternary.grid(color=GREY, alpha=0.25, linewidth=0.5)
    ternary.tick_params(colors=GREY, labelsize=7, length=2)
    end = {"marker": "o", "linestyle": "none", "color": INK}
    ternary.plot([], [], [], markerfacecolor="white", markeredgewidth=2, label=f"first response, {first}", **end)
    ternary.plot([], [], [], label=f"last response, {last}", **end)
    ternary.legend(loc="upper left", bbox_to_anchor=(0.72, 1.0), frameon=False, fontsize="small")


def _ternary_axes(ax: Axes | None) -> Any:
    """The given axes if they are a triangle, or those of a new figure."""
    from mpltern.ternary import TernaryAxes

    if ax is None:
        # With room for the names at the corners, which a layout does not see.
        return Figure(figsize=(7.5, 5.5)).add_axes((0.16, 0.1, 0.66, 0.76), projection="ternary")
    if not isinstance(ax, TernaryAxes):
        raise ParameterError(
            f"A history of three labels is drawn in a triangle; got {type(ax).__name__}. Make axes for it with "
            'plt.subplot(projection="ternary") after `import mpltern`, leave ax= out, or choose labels=[...] for lines '
            "over time."
        )
    return ax


def _side(ternary: Any) -> float:
    """How long the triangle's sides are, in pixels, before the layout makes room for the legend."""
    return float(min(ternary.bbox.width, ternary.bbox.height / CORNERS[0, 1]))


def _shares(spot: Array) -> Array:
    """The shares of the three labels at a place in the triangle; negative outside."""
    return np.linalg.solve(np.vstack([CORNERS.T, np.ones(3)]), [*spot, 1.0])


def _spots(points: Array, taken: Array, sizes: Sequence[Array]) -> list[Array]:
    """Where texts of these sizes go, one for each moment.

    The first choice is between the moment's points, then around them; best is what lies inside the triangle and covers
    neither another text nor a line.
    """
    spots: list[Array] = []
    for corners, size in zip(points, sizes, strict=True):
        between = [left + share * (right - left) for left, right in pairwise(corners) for share in BETWEEN]
        around = [corner + size * reach * turn for reach in (0.9, 1.5, 2.2) for corner in corners for turn in AROUND]
        choices = [*between, *around]
        costs = []
        for order, spot in enumerate(choices):
            texts = sum((np.abs(spot - other) < (size + sizes[k]) / 2).all() for k, other in enumerate(spots))
            lines = (np.abs(taken - spot) < size / 2).all(axis=1)
            outside = min(_shares(spot + size / 2 * turn).min() for turn in AROUND) < 0
            costs.append(order + 1000 * texts + 300 * outside + 20 * lines.any() + 1000 * lines.mean())
        spots.append(choices[int(np.argmin(costs))])
    return spots


# How many volunteers are drawn if none are named.
BUSIEST = 5


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
    """Draw the share of right labels that is expected of volunteers after each of their responses, with bands.

    Parameters
    ----------
    track
        The confusion of all volunteers over time, ``fit.confusion`` of a model that changes.
    volunteers
        Whom to draw; the five with the most responses if left out.
    against
        ``"time"``, or ``"responses"`` for the number of own responses so far, which shows how volunteers learn.
    class_probs
        How often each class occurs, of shape (J,); equally often if left out.
    correct
        For each class, the label (or labels) that count as right; needed only where a class is not itself a label.
    level
        How probable it is that the share lies in the band.
    ax
        Where to draw; a new figure if left out.

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
    check_kind(track, ConfusionTrack, "fit.confusion, of a fit of DynIBCC")
    check_choice("against", against, ("time", "responses"))
    histories = _chosen(track, volunteers)
    drawn = [thin_history(history) for history in histories]
    shares = [history.accuracy(class_probs, correct=correct) for history in drawn]
    ends = [history.accuracy_interval(level, class_probs=class_probs, correct=correct) for history in drawn]
    beside = ax is None
    ax = new_or_given_axes(ax, width=8.0)
    for place, colour in enumerate(colours(histories)):
        n_steps = len(histories[place])
        x = drawn[place].times if against == "time" else thin_steps(n_steps) + 1
        name = f"{histories[place].volunteer}, {counted(n_steps, 'response')}"
        band(ax, x, shares[place], ends[place], colour=colour, name=name)
    horizontal_axis(ax, track.clock, against)
    ax.set(ylabel="expected share of right labels", ylim=(-0.02, 1.02))
    ax.margins(x=0.02)
    legend(ax, beside=beside)
    ax.set_title(f"Skill of {counted(len(histories), 'volunteer')}", loc="left")
    return ax


def _chosen(track: ConfusionTrack, volunteers: Iterable[Hashable] | None) -> list[ConfusionHistory]:
    """The histories of the volunteers that were named, or of the busiest."""
    if not len(track.times):
        raise ParameterError(
            f"This {track.inference} track of {counted(len(track), 'volunteer')} has no steps, so there is no history "
            "to draw; fit a model that changes, such as DynIBCC, and take fit.confusion."
        )
    if volunteers is None:
        n_steps = np.diff(track.starts)
        busiest = np.argsort(-n_steps, kind="stable")[:BUSIEST]
        return [track.of(track.ids[code]) for code in busiest[n_steps[busiest] > 0]]
    if isinstance(volunteers, str | bytes) or not isinstance(volunteers, Iterable):
        raise ParameterError(f"volunteers={volunteers!r} must be several ids, such as volunteers=[{volunteers!r}].")
    histories = [track.of(volunteer) for volunteer in volunteers]
    if not histories:
        raise ParameterError("volunteers= names nobody; name some, or leave it out for the busiest.")
    silent = [history.volunteer for history in histories if not len(history)]
    if silent:
        raise ParameterError(
            f"{counted(len(silent), 'volunteer')} of those named without responses, and so without a history: "
            f"{quote(silent)}. Leave them out of volunteers=."
        )
    return histories
