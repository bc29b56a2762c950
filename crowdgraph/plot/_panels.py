"""What plots of communities share: checks, names, label placement, grids of panels, confusion bars and triangles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import ceil, sqrt
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from crowdgraph.core._arrays import Array, value_tuple
from crowdgraph.core._text import quantity
from crowdgraph.core.result import check_ids
from crowdgraph.errors import NotAnnotatedError, ParameterError
from crowdgraph.messages import quote
from crowdgraph.plot._style import GREY, INK, check_kind, is_kind, new_figure, short_times, width_in_inches

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.network_track import NetworkTrack

# More communities than this are not listed one by one.
MAX_LISTED = 12
# The width and height of a digit, relative to the size of the text.
DIGIT_SIZE = np.array([0.65, 1.0])
# The size of small text, the width of one of its letters and the height of one of its lines, in points.
SMALL_TEXT, LETTER_WIDTH, LINE_HEIGHT = 8, 4.8, 10.0
# The corners of a triangle with sides of length one: top, left and right.
CORNERS = np.array([[0.5, sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])
# The side of the smallest part to which a triangle is magnified; in smaller ones noise would look like news.
MIN_VISIBLE_SIDE = 0.1


# Checks of what is drawn.


def check_communities(communities: object, *, min_communities: int = 1) -> None:
    """Raise unless the subject is a `Communities` with at least `min_communities` communities."""
    check_kind(communities, "Communities", "BayesianNMF().detect(network)")
    if len(communities) < min_communities:  # type: ignore[arg-type]
        raise ParameterError(
            f"There are no communities to draw: {communities.method!r} found none, as happens where nobody has a "  # type: ignore[attr-defined]
            "neighbour in the network."
        )


def check_track(track: CommunityTrack) -> None:
    """Raise unless the subject is a `CommunityTrack` that has communities at one snapshot at least."""
    check_kind(track, "CommunityTrack", "dynamics.over_time(graph, counts=[...])")
    if not track.n_communities.any():
        why = "; ".join(dict.fromkeys(reason for reason in track.reasons or () if reason))
        n_snapshots = quantity(len(track), "snapshot")
        raise ParameterError(
            f"There are no communities to draw: {track.method!r} found none at any of {n_snapshots}"
            f"{f' ({why})' if why else ''}. Follow them at larger counts of responses."
        )


def community_numbers(n_communities: int, numbers: Iterable[int] | None, *, most: int = MAX_LISTED) -> list[int]:
    """Return the numbers of the communities to draw: `numbers`, or the first `most`."""
    if numbers is None:
        return list(range(min(n_communities, most)))
    values = list(value_tuple(numbers, what="numbers"))
    wrong = [k for k in values if not isinstance(k, int | np.integer) or not 0 <= k < n_communities]
    if wrong:
        raise ParameterError(f"numbers= names {quote(wrong)}; the communities are numbered 0 to {n_communities - 1}.")
    return values  # type: ignore[return-value]


def confusion_of(
    communities: Communities, fit: ModelFit | ConfusionTrack | ConfusionSnapshot | None
) -> ConfusionSnapshot:
    """Return the confusion matrices of the communities' volunteers: those of `fit`, or those that come with them."""
    confusion: Any = communities.confusion if fit is None else fit
    if confusion is None:
        raise ParameterError(
            f"The communities {communities.method!r} were not found by comparing confusion matrices. Say which to "
            "draw: give a fit, such as IBCC().fit(graph), as second argument."
        )
    if is_kind(confusion, "ModelFit"):
        if confusion.confusion is None:
            raise NotAnnotatedError(f"The model {confusion.model!r} has no confusion matrices to draw; use IBCC.")
        confusion = confusion.confusion
    if is_kind(confusion, "ConfusionTrack"):
        confusion = confusion.latest()
    if not is_kind(confusion, "ConfusionSnapshot"):
        raise ParameterError(
            f"Confusion matrices are taken from a fit, its confusion, or its confusion at a time; got a "
            f"{type(confusion).__name__}."
        )
    check_ids(
        communities.ids,
        confusion.table,
        lacking="The confusion matrices lack {} of the communities' volunteers",
        hint="Take a fit of the graph in which the communities were found.",
    )
    return confusion  # type: ignore[no-any-return]


def confusion_over_time(track: CommunityTrack) -> tuple[Array, ConfusionSnapshot]:
    """Return the mean confusion of all communities, of shape (T, K, J, L), and a snapshot that names its axes."""
    means = np.stack([track.mean_confusion(k) for k in range(track.n_communities_ever)], axis=1)
    return means, next(one.confusion for one in track.snapshots if one.confusion is not None)


def as_axes_list(axes: Sequence[Axes] | Any) -> list[Any]:
    """Return a sequence or array of axes, such as ``plt.subplots`` returns, as a flat list."""
    panels = list(np.ravel(np.asarray(axes, dtype=object)))
    wrong = [panel for panel in panels if not isinstance(panel, Axes)]
    if wrong or not panels:
        got = type(wrong[0]).__name__ if wrong else "none"
        raise ParameterError(f"axes= takes matplotlib axes, one for each panel; got {got}.")
    return panels


# Names.


def community_name(number: int, size: int) -> str:
    """Return the name of a community in a legend, such as ``3: 120 volunteers``."""
    return f"{number}: {quantity(int(size), 'volunteer')}"


def snapshot_names(track: CommunityTrack) -> list[str]:
    """Name each snapshot: ``3,000 responses``, then the time, then whether it has no communities, line by line."""
    names = moment_names(track)
    is_empty = track.n_communities == 0
    return [f"{name}\nno communities" if none else name for name, none in zip(names, is_empty, strict=True)]


def moment_names(track: CommunityTrack | NetworkTrack) -> list[str]:
    """Name the moments of a track: ``3,000 responses``, then the time on a second line, if there are times."""
    names = [quantity(count, "response") for count in track.counts.tolist()]
    if track.clock.kind == "order":
        return names
    word = "time " if track.clock.kind == "number" else ""
    times = short_times(track.clock, track.times)
    return [f"{name}\n{word}{time}" for name, time in zip(names, times, strict=True)]


def longest_line(texts: Sequence[str]) -> int:
    """Return the number of letters in the longest line of the texts."""
    return max(len(line) for text in texts for line in text.splitlines())


def name_snapshots(ax: Axes, track: CommunityTrack) -> None:
    """Write names below the snapshots, which stand at 0, 1, 2 and so on; every second, third, ... if room is short."""
    names = snapshot_names(track)
    ax.set_xlim(-0.5, len(names) - 0.5)
    step = ceil((longest_line(names) + 1) * LETTER_WIDTH / (width_in_inches(ax) * 72 / len(names)))
    ax.set_xticks(range(0, len(names), step), names[::step], fontsize=SMALL_TEXT)
    ax.tick_params(axis="x", length=0)


# Label placement.


def non_overlapping(centres: Array, texts: Sequence[str], *, size: float) -> list[int]:
    """Return the indices of the texts that cover none of those kept before them.

    Centres are in points, of shape (N, 2), and `size` is that of the text.
    """
    extents = [DIGIT_SIZE * [len(text), 1] * size for text in texts]
    indices: list[int] = []
    for index, (centre, extent) in enumerate(zip(centres, extents, strict=True)):
        if not any((np.abs(centre - centres[k]) < (extent + extents[k]) / 2).all() for k in indices):
            indices.append(index)
    return indices


def white_halo(width: float = 2) -> list[withStroke]:
    """Return the path effect that keeps a text legible on top of lines and dots."""
    return [withStroke(linewidth=width, foreground="white")]


def annotate(ax: Axes, text: str, point: Any, *, offset: tuple[float, float], **options: Any) -> None:
    """Write a small text at an offset in points from a point, centred and with a halo unless the options differ."""
    defaults: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": SMALL_TEXT, "color": INK}
    defaults |= {"path_effects": white_halo(), "textcoords": "offset points"}
    ax.annotate(text, point, xytext=offset, **{**defaults, **options})


# Panels.


def panel_grid(
    n_panels: int, n_columns: int, *, size: tuple[float, float], extra: tuple[float, float], ylabel: str, **options: Any
) -> list[Any]:
    """Return the panels of a new figure, row by row.

    `size` is the width and height of a panel and `extra` what the figure has beyond its panels, in inches. The first
    panel of each row is labelled `ylabel`. Options go to ``Figure.subplots``, except for `layout`.
    """
    n_rows = ceil(n_panels / n_columns)
    figsize = size[0] * n_columns + extra[0], size[1] * n_rows + extra[1]
    figure = new_figure(figsize=figsize, layout=options.pop("layout", "constrained"))
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True, **options).ravel()
    for spare in panels[n_panels:]:
        spare.remove()
    for first in panels[:n_panels:n_columns]:
        first.set_ylabel(ylabel)
    return list(panels[:n_panels])


# Confusion matrices as bars.


def confusion_bars(ax: Axes, matrix: Array, *, colour: str, interval: Array | None = None) -> None:
    """Draw one bar per class and label, with lines from the lower to the upper end of the interval if there is one."""
    x = _bar_positions(*matrix.shape)
    ax.bar(x.ravel(), matrix.ravel(), width=0.86, color=colour)
    if interval is not None:
        ax.vlines(x.ravel(), interval[0].ravel(), interval[1].ravel(), color=INK, linewidth=1)


def name_bars(ax: Axes, snapshot: ConfusionSnapshot) -> None:
    """Write labels below the bars, and classes above them."""
    n_classes, n_labels = len(snapshot.classes), len(snapshot.labels)
    x = _bar_positions(n_classes, n_labels)
    room = width_in_inches(ax) * 72 / (n_classes * (n_labels + 1))
    names = [str(label) for label in snapshot.labels] * n_classes
    upright = max(map(len, names)) * LETTER_WIDTH > room
    ax.set_xticks(x.ravel(), names, rotation=90 if upright else 0, fontsize=min(SMALL_TEXT, room))
    ax.tick_params(axis="x", length=0)
    texts = [fill(str(name), max(8, int(room * (n_labels + 1) / LETTER_WIDTH))) for name in snapshot.classes]
    for row, text in zip(x, texts, strict=True):
        ax.text(row.mean(), 1.04, text, ha="center", va="bottom", fontsize=SMALL_TEXT, color=INK)
        ax.plot([row[0] - 0.43, row[-1] + 0.43], [1.02, 1.02], color=GREY, linewidth=1)
    # Leave as much room above the bars as the lines of text need, but at most as much as the bars have.
    lines = max(text.count("\n") + 1 for text in texts) * LINE_HEIGHT / (ax.bbox.height / ax.figure.dpi * 72)
    ax.set(ylim=(0, max(1.2, 1.04 / (1 - min(lines, 0.5)))), yticks=[0, 0.5, 1], xlim=(-0.9, x[-1, -1] + 0.9))


def _bar_positions(n_classes: int, n_labels: int) -> Array:
    """Return where the bars stand, of shape (J, L): those of a class side by side, with a gap between classes."""
    return np.arange(n_classes)[:, None] * (n_labels + 1) + np.arange(n_labels)


# Confusion matrices in triangles.


def corner_name(label: Hashable) -> str:
    """Return the name of the corner of a triangle at which a label is always given."""
    return f"says {label}"


class TicksOfSides(MaxNLocator):
    """Ticks on a side of a triangle, with none so close to a corner that its text would reach the corner's name."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks between two ends, without those close to them."""
        space = 0.09 * (vmax - vmin)
        return [tick for tick in super().tick_values(vmin, vmax) if vmin + space < tick < vmax - space]


def name_corners(ternary: Any, labels: Sequence[Hashable]) -> None:
    """Name the corners of a triangle, and draw an unobtrusive grid."""
    for axis, label in zip((ternary.taxis, ternary.laxis, ternary.raxis), labels, strict=True):
        axis.set_label_text(corner_name(label))
        axis.set_label_rotation_mode("horizontal")
        axis.set_major_locator(TicksOfSides(5))
    ternary.grid(color=GREY, alpha=0.25, linewidth=0.5)
    ternary.tick_params(colors=GREY, labelsize=7, length=2)


def side_in_points(ternary: Any) -> float:
    """Return the length of the sides of a triangle, before the layout engine runs."""
    return float(min(ternary.bbox.width, ternary.bbox.height / CORNERS[0, 1]) / ternary.figure.dpi * 72)


def smallest_parts(points: Sequence[Array]) -> Array:
    """Return the least shares of the smallest parts of triangles that hold the points, with some space around them.

    There is one triangle for each array of points, of shape (..., 3). All parts are as large as the largest of them
    must be, so that distances in one can be compared with those in another; the result has shape (triangles, 3).
    """
    lows = np.stack([each.reshape(-1, 3).min(axis=0) if each.size else np.zeros(3) for each in points])
    sides = 1 - lows.sum(axis=1, keepdims=True)
    lows = np.maximum(lows - np.maximum(0.1 * sides, (MIN_VISIBLE_SIDE - sides) / 3), 0)
    smallest_sum = lows.sum(axis=1).min()
    # Lower the shares of a triangle by the same amount, but not below zero, until they have the smallest sum.
    highest_first = -np.sort(-lows, axis=1)
    shifts = (np.cumsum(highest_first, axis=1) - smallest_sum) / [1, 2, 3]
    return np.asarray(np.maximum(lows - shifts.max(axis=1, keepdims=True), 0))


def magnify(ternary: Any, lows: Array) -> str:
    """Show the part of a triangle above the least shares, and return what its title says of that, if it is a part."""
    ternary.set_ternary_min(*lows)
    factor = f"{1 / (1 - lows.sum()):.2g}"
    return "" if factor == "1" else f", magnified {factor} times"


def visible_part(ternary: Any) -> tuple[Array, float]:
    """Return the least shares in the visible part of a triangle, and its side, of which that of the whole is 1."""
    lows = np.array([ternary.get_tlim()[0], ternary.get_llim()[0], ternary.get_rlim()[0]])
    return lows, float(1 - lows.sum())


def positions_of(ternary: Any, shares: Array) -> Array:
    """Return where shares of three labels, (..., 3), stand in the visible part of a triangle, whose side is 1."""
    lows, side = visible_part(ternary)
    return np.asarray((shares - lows) / side @ CORNERS)


def shares_at(positions: Array) -> Array:
    """Return the shares of the corners at positions in a triangle, (..., 2); some are negative outside it."""
    weights = np.linalg.inv(np.vstack([CORNERS.T, np.ones(3)]))
    return np.asarray(np.concatenate([positions, np.ones((*positions.shape[:-1], 1))], axis=-1) @ weights.T)
