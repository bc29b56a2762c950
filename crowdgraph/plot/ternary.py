"""How communities differ, and move, between three labels: one triangle per true class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError
from crowdgraph.messages import quote
from crowdgraph.plot._panels import (
    CORNERS,
    DIGIT_SIZE,
    MAX_LISTED,
    SMALL_TEXT,
    annotate,
    as_axes_list,
    check_communities,
    check_track,
    community_name,
    confusion_of,
    confusion_over_time,
    corner_name,
    name_corners,
    non_overlapping,
    side_in_points,
    snapshot_names,
    white_halo,
)
from crowdgraph.plot._style import GREY, INK, colours, ink_on

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
    from crowdgraph.core.fit import ModelFit

__all__ = ["community_ternary", "community_ternary_over_time"]

# The side of a triangle, and of one in which many communities move, in inches.
SIDE, SIDE_OF_MANY = 4.2, 6.0
# The space below and above a triangle, for a letter at its corners and for the legend, in inches.
SPACE_BELOW, SPACE_ABOVE, CORNER_LETTER_WIDTH, LEGEND_WIDTH = 0.5, 0.75, 0.085, 1.3
# How many triangles stand side by side.
TRIANGLES_PER_ROW = 3
# The area of the dot of the largest community, in square points; it shrinks if there are more than this many.
MAX_DOT_AREA, MAX_FULL_SIZE_DOTS = 500.0, 8
# The opacity of dots, and of those of the first and of the last snapshot.
OPACITY, FIRST_OPACITY, LAST_OPACITY = 0.9, 0.25, 0.95


def community_ternary(
    communities: Communities,
    snapshot: ModelFit | ConfusionTrack | ConfusionSnapshot | None = None,
    *,
    zoom: bool = False,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Plot the mean confusion of all communities: one triangle per true class, whose corners are the three labels.

    A dot close to a corner is a community whose members give that label to items of that class. The area of a dot is
    proportional to the number of members; its number stands on it if there is room.

    Parameters
    ----------
    communities
        The communities.
    snapshot
        The confusion matrices, of three labels: a fit, its confusion, or its confusion at a time. If left out, those
        from which the communities were detected.
    zoom
        Show only the part of each triangle in which the communities lie; the ticks on its sides show which part it is.
    axes
        The axes to draw on, one per class, made with ``projection="ternary"``; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One per class.

    Examples
    --------
    >>> import numpy as np
    >>> import crowdgraph as cg
    >>> groups = cg.Communities(ids=["anna", "bert"], participation=[[1.0, 0.0], [0.3, 0.7]], modularity=0.1,
    ...                         method="by hand")
    >>> track = cg.ConfusionTrack.static(ids=["anna", "bert"], concentration=np.ones((2, 2, 3)),
    ...                                  classes=("no", "yes"), labels=(-1, 1, 3))
    >>> [ax.get_title(loc="left") for ax in cg.plot.community_ternary(groups, track)]
    ['when it is no', 'when it is yes']
    """
    check_communities(communities)
    check_bool("zoom", zoom)
    confusion = confusion_of(communities, snapshot)
    _check_three_labels(confusion, instead="plot.prototypes(communities, fit, mean=True)")
    panels = _new_triangles(confusion) if axes is None else _as_triangles(axes, confusion.classes)
    # A single snapshot: means of shape (1, K, J, 3) and sizes of shape (1, K).
    means, sizes = communities.mean_confusion(confusion)[None], communities.sizes[None]
    for row, ternary in enumerate(panels):
        _draw_class(ternary, row, confusion, means, sizes, zoom=zoom, opacities=[OPACITY], outline=0.8)
    _add_legend(panels, sizes, beside=axes is None)
    return tuple(panels)


def community_ternary_over_time(
    track: CommunityTrack, *, zoom: bool = False, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Plot the mean confusion of all communities over time: one triangle per true class, whose corners are labels.

    Each community is a path of dots in its colour, from the first snapshot at which it has members to the last, paler
    for earlier snapshots. The area of a dot is proportional to the number of members at that time. The number of the
    community stands at the last dot if there is room.

    Parameters
    ----------
    track
        The communities over time, followed with their confusion matrices, which must have three labels.
    zoom
        Show only the part of each triangle in which the communities lie; the ticks on its sides show which part it is.
    axes
        The axes to draw on, one per class, made with ``projection="ternary"``; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One per class.

    Examples
    --------
    >>> import numpy as np
    >>> import crowdgraph as cg
    >>> confusion = cg.ConfusionSnapshot(ids=["anna"], concentration=np.ones((1, 2, 3)), classes=("no", "yes"),
    ...                                  labels=(-1, 1, 3))
    >>> groups = cg.Communities(ids=["anna"], participation=[[1.0]], modularity=0.0, method="by hand",
    ...                         confusion=confusion)
    >>> track = cg.CommunityTrack(ids=["anna"], times=[1, 2], counts=[10, 20], snapshots=[groups, groups],
    ...                           clock=cg.Clock("number"), method="by hand")
    >>> [ax.get_title(loc="left") for ax in cg.plot.community_ternary_over_time(track)]
    ['when it is no', 'when it is yes']
    """
    check_track(track)
    check_bool("zoom", zoom)
    means, confusion = confusion_over_time(track)
    _check_three_labels(confusion, instead="plot.community_means_over_time(track)")
    side = SIDE_OF_MANY if track.n_communities_ever > MAX_LISTED else SIDE
    panels = _new_triangles(confusion, side=side) if axes is None else _as_triangles(axes, confusion.classes)
    sizes = np.where(np.isfinite(means).all(axis=(2, 3)), track.sizes, 0)
    opacities = np.linspace(LAST_OPACITY, FIRST_OPACITY, len(track))[::-1]
    for row, ternary in enumerate(panels):
        _draw_paths(ternary, means[:, :, row], sizes)
        _draw_class(ternary, row, confusion, means, sizes, zoom=zoom, opacities=opacities, outline=0.6)
    names = snapshot_names(track)
    ends = {0: ("first", FIRST_OPACITY), len(track) - 1: ("last", LAST_OPACITY)}
    snapshots = [
        (to_hex((*to_rgb(GREY), opacity), keep_alpha=True), f"{word} snapshot:\n{names[index]}")
        for index, (word, opacity) in ends.items()
    ]
    _add_legend(panels, sizes, beside=axes is None, more=snapshots)
    return tuple(panels)


def _check_three_labels(confusion: ConfusionSnapshot, *, instead: str) -> None:
    """Raise unless the confusion matrices can be drawn in triangles."""
    if len(confusion.labels) != 3:
        raise ParameterError(
            f"A triangle shows three labels; these confusion matrices have {len(confusion.labels)} "
            f"({quote(confusion.labels)}). Draw them with {instead}."
        )


def _new_triangles(confusion: ConfusionSnapshot, *, side: float = SIDE) -> list[Any]:
    """Return the triangles of a new figure, with room for the names at the corners, which no layout engine sees."""
    import mpltern  # noqa: F401  registers the projection

    n_columns = min(len(confusion.classes), TRIANGLES_PER_ROW)
    n_rows = ceil(len(confusion.classes) / n_columns)
    beside = 0.2 + CORNER_LETTER_WIDTH * max(len(corner_name(label)) for label in confusion.labels)
    tall = side * CORNERS[0, 1]
    panel_width, panel_height = side + 2 * beside, tall + SPACE_BELOW + SPACE_ABOVE
    width, height = panel_width * n_columns + LEGEND_WIDTH, panel_height * n_rows
    figure = Figure(figsize=(width, height))
    panels = []
    for index in range(len(confusion.classes)):
        row, column = divmod(index, n_columns)
        x, y = column * panel_width + beside, (n_rows - 1 - row) * panel_height + SPACE_BELOW
        panels.append(figure.add_axes((x / width, y / height, side / width, tall / height), projection="ternary"))
    return panels


def _as_triangles(axes: Sequence[Axes], classes: Sequence[Hashable]) -> list[Any]:
    """Return `axes` as a list if they are one triangle per class."""
    from mpltern.ternary import TernaryAxes

    panels = as_axes_list(axes)
    if len(panels) != len(classes):
        raise ParameterError(f"axes= has {len(panels)} axes; {len(classes)} are needed, one for each class.")
    wrong = [panel for panel in panels if not isinstance(panel, TernaryAxes)]
    if wrong:
        raise ParameterError(
            f"Communities of three labels are drawn in triangles; got {type(wrong[0]).__name__}. Make axes with "
            'plt.subplots(1, 2, subplot_kw={"projection": "ternary"}) after `import mpltern`, or leave axes= out.'
        )
    return panels


def _draw_class(
    ternary: Any,
    row: int,
    confusion: ConfusionSnapshot,
    means: Array,
    sizes: Array,
    *,
    zoom: bool,
    opacities: Sequence[float] | Array,
    outline: float,
) -> None:
    """Draw the dots of one true class, for means of shape (T, K, J, 3) and sizes of shape (T, K).

    Later snapshots lie on top of earlier ones, and small dots on top of large ones.
    """
    if zoom:
        _magnify(ternary, means[sizes > 0, row])
    areas, hues = _dot_areas(sizes), np.array(colours(range(sizes.shape[1])))
    for snapshot, opacity in enumerate(opacities):
        order = np.argsort(-sizes[snapshot], kind="stable")
        order = order[sizes[snapshot, order] > 0]
        ternary.scatter(
            *means[snapshot, order, row].T,
            s=areas[snapshot, order],
            c=hues[order],
            edgecolors="white",
            linewidths=outline,
            alpha=opacity,
            zorder=3,
            clip_on=False,
        )
    last = _last_snapshot(sizes)
    order = np.lexsort((-sizes[last, np.arange(len(last))], last))
    order = order[sizes[last[order], order] > 0]
    _number_dots(ternary, order, means[last[order], order, row], areas[last[order], order])
    name_corners(ternary, confusion.labels)
    ternary.set_title(f"when it is {confusion.classes[row]}{', magnified' if zoom else ''}", loc="left")


def _draw_paths(ternary: Any, means: Array, sizes: Array) -> None:
    """Join the dots of each community by a line."""
    for k, hue in enumerate(colours(range(sizes.shape[1]))):
        ternary.plot(*means[sizes[:, k] > 0, k].T, color=hue, linewidth=1, alpha=0.7, zorder=2, clip_on=False)


def _magnify(ternary: Any, means: Array) -> None:
    """Show the smallest part of a triangle that holds all dots, with some space around them."""
    low = means.min(axis=0, initial=1)
    space = max(0.15 * (1 - low.sum()), 0.01)
    ternary.set_ternary_min(*np.maximum(low - space, 0))


def _dot_areas(sizes: Array) -> Array:
    """Return the areas of the dots of communities of these sizes, of shape (T, K)."""
    return np.asarray(MAX_DOT_AREA * min(1, MAX_FULL_SIZE_DOTS / sizes.shape[-1]) * sizes / sizes.max(initial=1))


def _last_snapshot(sizes: Array) -> Array:
    """Return the last snapshot at which each community has members, of shape (K,)."""
    return np.asarray(len(sizes) - 1 - (sizes[::-1] > 0).argmax(axis=0))


def _number_dots(ternary: Any, numbers: Array, means: Array, areas: Array) -> None:
    """Write numbers on large dots and above small ones, where there is room; dots come in the order they are drawn in.

    Numbers cover neither each other nor later dots, to which they would seem to belong.
    """
    hues = np.array(colours(range(int(numbers.max(initial=-1)) + 1)))[numbers]
    visible_part = 1 - sum(low for low, _ in (ternary.get_tlim(), ternary.get_llim(), ternary.get_rlim()))
    side = side_in_points(ternary) / visible_part
    texts = [str(number) for number in numbers]
    centres, diameters = means @ CORNERS * side, np.sqrt(areas)
    inside = diameters > 2 + SMALL_TEXT * DIGIT_SIZE[0] * np.array([len(text) for text in texts])
    shifts = np.where(inside, 0, diameters / 2 + 1 + SMALL_TEXT / 2)
    text_centres = centres + np.column_stack([0 * shifts, shifts])
    corners = np.stack([ternary.transProjection.transform(corner) for corner in np.eye(3)])
    for dot in non_overlapping(text_centres, texts, size=SMALL_TEXT):
        later = slice(dot + 1, None)
        distances = np.linalg.norm(centres[later] - text_centres[dot], axis=1)
        if (distances >= diameters[later] / 2 + SMALL_TEXT * DIGIT_SIZE[0] / 2).all():
            annotate(
                ternary,
                texts[dot],
                means[dot] @ corners,
                offset=(0, shifts[dot]),
                color=ink_on(hues[dot]) if inside[dot] else INK,
                path_effects=[] if inside[dot] else white_halo(),
                zorder=4,
                annotation_clip=False,
            )


def _add_legend(panels: Sequence[Any], sizes: Array, *, beside: bool, more: Sequence[tuple[str, str]] = ()) -> None:
    """List the communities with their last sizes; if they are many, show how large the largest and smallest dots are.

    The legend goes to the last triangle of the first row. `more` has the colour and the text of further dots.
    """
    last = _last_snapshot(sizes), np.arange(sizes.shape[1])
    sizes, diameters = sizes[last], np.sqrt(_dot_areas(sizes)[last])
    if len(sizes) <= MAX_LISTED:
        title = "community"
        entries = [(hue, 8.0, community_name(k, sizes[k])) for k, hue in enumerate(colours(range(len(sizes))))]
    else:
        title = "size of communities"
        extremes = sorted({int(sizes.argmax()), int(sizes.argmin())}, key=lambda k: -sizes[k])
        entries = [(GREY, diameters[k], quantity(int(sizes[k]), "volunteer")) for k in extremes]
    entries += [(colour, 8.0, text) for colour, text in more]
    dot: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": "white"}
    handles = [Line2D([], [], color=colour, markersize=size, label=text, **dot) for colour, size, text in entries]
    panels[min(len(panels), TRIANGLES_PER_ROW) - 1].legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.05) if beside else (0.78, 1.0),
        frameon=False,
        fontsize="small",
        title=title,
        alignment="left",
    )
