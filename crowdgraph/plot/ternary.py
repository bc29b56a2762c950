"""How communities differ, and move, between three labels: one triangle per true class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
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
    magnify,
    moment_names,
    name_corners,
    non_overlapping,
    positions_of,
    side_in_points,
    smallest_parts,
    snapshot_names,
    white_halo,
)
from crowdgraph.plot._style import GREY, INK, colours, ink_on, new_figure, plain_text

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
    from crowdgraph.core.fit import ModelFit

__all__ = ["community_ternary", "community_ternary_over_time"]

# The side of a triangle: of one snapshot, with the paths of many communities, and in few and in many rows, in inches.
SIDE, SIDE_OF_MANY, SIDE_IN_ROWS, SIDE_IN_MANY_ROWS = 4.2, 6.0, 3.8, 3.0
# More snapshots than this are many rows.
MAX_FEW_ROWS = 4
# The space below and above a triangle, for a letter at its corners and for the legend, in inches.
SPACE_BELOW, SPACE_ABOVE, CORNER_LETTER_WIDTH, LEGEND_WIDTH = 0.5, 0.75, 0.085, 1.3
# The space above triangles that have no title, in inches.
SPACE_WITHOUT_TITLE = 0.45
# How many triangles stand side by side.
TRIANGLES_PER_ROW = 3
# The area of the dot of the largest community in a triangle of side `SIDE`, in square points; it shrinks if there are
# more than this many at once.
MAX_DOT_AREA, MAX_FULL_SIZE_DOTS = 500.0, 8
# The opacity of dots, and of those of the first and of the last snapshot.
OPACITY, FIRST_OPACITY, LAST_OPACITY = 0.9, 0.25, 0.95
# The width of the outline of a dot, and of a ring.
OUTLINE, RING = 0.8, 1.8

# An entry of a legend: "filled" or "ring", the colour and the diameter of the dot in points, and the text.
Entry = tuple[str, str, float, str]


@plain_text
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
        All triangles are magnified by the same factor, which their titles name, so that distances can be compared.
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
    panels = _triangles(axes, confusion)
    means, sizes = communities.mean_confusion(confusion), communities.sizes
    titles = _class_titles(panels, confusion, means[sizes > 0], zoom=zoom)
    areas = _dot_areas(sizes, panels)
    for row, ternary in enumerate(panels):
        _draw_dots(ternary, means[:, row], areas, opacity=OPACITY)
        _number_dots(ternary, means[:, row], areas)
        ternary.set_title(titles[row], loc="left")
    _add_legend(panels, _community_entries(sizes, areas), title=_legend_title(sizes), beside=axes is None)
    return tuple(panels)


@plain_text
def community_ternary_over_time(
    track: CommunityTrack, *, zoom: bool = False, paths: bool = False, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Plot the mean confusion of all communities over time: a row of triangles for each snapshot, one per true class.

    A dot close to a corner is a community whose members give that label to items of that class, in the colour of the
    community. Areas are proportional to the number of members, on one scale for all triangles; numbers stand on the
    dots if there is room. Communities that have been there since the first snapshot are filled; rings came later.

    Parameters
    ----------
    track
        The communities over time, followed with their confusion matrices, which must have three labels.
    zoom
        Show only the part of the triangles in which the communities lie; the ticks on their sides show which part it
        is. All triangles are magnified by the same factor, and those of a class show the same part at all snapshots.
    paths
        Draw one row for all snapshots: each community is a path of dots, from the first snapshot at which it has
        members to the last, paler for earlier snapshots. Legible for a few communities.
    axes
        The axes to draw on, made with ``projection="ternary"``: one for each snapshot and class, row by row, or one per
        class with `paths`. A new figure if left out.

    Returns
    -------
    tuple of Axes
        One for each snapshot and class, row by row; one per class with `paths`.

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
    >>> axes = cg.plot.community_ternary_over_time(track)
    >>> [ax.texts[0].get_text().splitlines() for ax in axes[::2]]
    [['10 responses', 'time 1', '1 community'], ['20 responses', 'time 2', '1 community']]
    >>> [ax.get_title() for ax in axes[:2]]
    ['when it is no', 'when it is yes']
    """
    check_track(track)
    check_bool("zoom", zoom)
    check_bool("paths", paths)
    means, confusion = confusion_over_time(track)
    _check_three_labels(confusion, instead="plot.community_means_over_time(track)")
    sizes = np.where(np.isfinite(means).all(axis=(2, 3)), track.sizes, 0)
    draw = _draw_paths if paths else _draw_rows
    return tuple(draw(track, means, sizes, confusion, zoom=zoom, axes=axes))


def _draw_rows(
    track: CommunityTrack,
    means: Array,
    sizes: Array,
    confusion: ConfusionSnapshot,
    *,
    zoom: bool,
    axes: Sequence[Axes] | None,
) -> list[Any]:
    """Draw a row of triangles for each snapshot, for means of shape (T, K, J, 3) and sizes of shape (T, K)."""
    side = SIDE_IN_ROWS if len(track) <= MAX_FEW_ROWS else SIDE_IN_MANY_ROWS
    panels = _triangles(axes, confusion, n_snapshots=len(track), side=side)
    titles = _class_titles(panels, confusion, means[sizes > 0], zoom=zoom)
    areas, since_first = _dot_areas(sizes, panels), _since_first(sizes)
    moments = moment_names(track)
    for index, ternary in enumerate(panels):
        snapshot, row = divmod(index, len(titles))
        if row == 0:
            n_communities = quantity(int(track.n_communities[snapshot]), "community")
            # Beside the top of the triangle, where there is room.
            at_corner = {"xycoords": "axes fraction", "ha": "left", "va": "top", "fontsize": "medium"}
            annotate(ternary, f"{moments[snapshot]}\n{n_communities}", (0, 1), offset=(-30, 0), **at_corner)
        if snapshot == 0:
            ternary.set_title(titles[row])
        options = {"filled": since_first[snapshot]}
        _draw_dots(ternary, means[snapshot, :, row], areas[snapshot], opacity=OPACITY, **options)
        _number_dots(ternary, means[snapshot, :, row], areas[snapshot], **options)
    entries = [("filled", GREY, 8.0, "there since the\nfirst snapshot")]
    if (sizes[~since_first] > 0).any():
        entries.append(("ring", GREY, 8.0, "came later"))
    entries += _size_entries(sizes, areas)
    if sizes.shape[1] <= MAX_LISTED:
        hues = colours(range(sizes.shape[1]))
        entries += [("filled", hue, 8.0, f"community {k}") for k, hue in enumerate(hues)]
    _add_legend(panels[: len(titles)], entries, title="communities", beside=axes is None)
    return panels


def _draw_paths(
    track: CommunityTrack,
    means: Array,
    sizes: Array,
    confusion: ConfusionSnapshot,
    *,
    zoom: bool,
    axes: Sequence[Axes] | None,
) -> list[Any]:
    """Draw all snapshots on top of each other, for means of shape (T, K, J, 3) and sizes of shape (T, K)."""
    side = SIDE_OF_MANY if track.n_communities_ever > MAX_LISTED else SIDE
    panels = _triangles(axes, confusion, side=side)
    titles = _class_titles(panels, confusion, means[sizes > 0], zoom=zoom)
    areas = _dot_areas(sizes, panels)
    opacities = np.linspace(LAST_OPACITY, FIRST_OPACITY, len(track))[::-1]
    last = len(track) - 1 - (sizes[::-1] > 0).argmax(axis=0), np.arange(sizes.shape[1])
    for row, ternary in enumerate(panels):
        for k, hue in enumerate(colours(range(sizes.shape[1]))):
            path = means[sizes[:, k] > 0, k, row]
            ternary.plot(*path.T, color=hue, linewidth=1, alpha=0.7, zorder=2, clip_on=False)
        for snapshot, opacity in enumerate(opacities):
            _draw_dots(ternary, means[snapshot, :, row], areas[snapshot], opacity=opacity)
        _number_dots(ternary, means[..., row, :][last], areas[last])
        ternary.set_title(titles[row], loc="left")
    names = snapshot_names(track)
    entries = _community_entries(sizes[last], areas[last])
    for index, (word, opacity) in {0: ("first", FIRST_OPACITY), len(track) - 1: ("last", LAST_OPACITY)}.items():
        hue = to_hex((*to_rgb(GREY), opacity), keep_alpha=True)
        entries.append(("filled", hue, 8.0, f"{word} snapshot:\n{names[index]}"))
    _add_legend(panels, entries, title=_legend_title(sizes), beside=axes is None)
    return panels


def _since_first(sizes: Array) -> Array:
    """Return which communities have been there at all snapshots so far that have any, for sizes of shape (T, K)."""
    is_there = sizes > 0
    return np.logical_and.accumulate(is_there | ~is_there.any(axis=1, keepdims=True), axis=0)


def _check_three_labels(confusion: ConfusionSnapshot, *, instead: str) -> None:
    """Raise unless the confusion matrices can be drawn in triangles."""
    if len(confusion.labels) != 3:
        raise ParameterError(
            f"A triangle shows three labels; these confusion matrices have {len(confusion.labels)} "
            f"({quote(confusion.labels)}). Draw them with {instead}."
        )


# Triangles.


def _triangles(
    axes: Sequence[Axes] | None, confusion: ConfusionSnapshot, *, n_snapshots: int | None = None, side: float = SIDE
) -> list[Any]:
    """Return `axes`, or the triangles of a new figure: one per class, or a row of them for each snapshot."""
    if axes is not None:
        panels = _as_triangles(axes, len(confusion.classes), n_snapshots)
    elif n_snapshots is None:
        panels = _new_triangles(len(confusion.classes), TRIANGLES_PER_ROW, confusion.labels, side=side)
    else:
        panels = _new_triangles(
            len(confusion.classes) * n_snapshots,
            len(confusion.classes),
            confusion.labels,
            side=side,
            space_above=SPACE_WITHOUT_TITLE,
        )
    for ternary in panels:
        name_corners(ternary, confusion.labels)
    return panels


def _new_triangles(
    n_panels: int,
    n_columns: int,
    labels: Sequence[Hashable],
    *,
    side: float,
    space_above: float = SPACE_ABOVE,
) -> list[Any]:
    """Return the triangles of a new figure, with room for the names at the corners, which no layout engine sees."""
    import mpltern  # noqa: F401  registers the projection

    n_columns = min(n_panels, n_columns)
    n_rows = ceil(n_panels / n_columns)
    beside = 0.2 + CORNER_LETTER_WIDTH * max(len(corner_name(label)) for label in labels)
    tall = side * CORNERS[0, 1]
    panel_width, panel_height = side + 2 * beside, tall + SPACE_BELOW + space_above
    # The first row has titles.
    width, height = panel_width * n_columns + LEGEND_WIDTH, panel_height * n_rows + SPACE_ABOVE - space_above
    figure = new_figure(figsize=(width, height))
    panels = []
    for index in range(n_panels):
        row, column = divmod(index, n_columns)
        x, y = column * panel_width + beside, (n_rows - 1 - row) * panel_height + SPACE_BELOW
        panels.append(figure.add_axes((x / width, y / height, side / width, tall / height), projection="ternary"))
    return panels


def _as_triangles(axes: Sequence[Axes], n_classes: int, n_snapshots: int | None) -> list[Any]:
    """Return `axes` as a list if they are one triangle per class, or for each snapshot and class."""
    from mpltern.ternary import TernaryAxes

    panels = as_axes_list(axes)
    n_expected = n_classes * (n_snapshots or 1)
    if len(panels) != n_expected:
        each = "each class" if n_snapshots is None else "each snapshot and class"
        raise ParameterError(f"axes= has {len(panels)} axes; {n_expected} are needed, one for {each}.")
    wrong = [panel for panel in panels if not isinstance(panel, TernaryAxes)]
    if wrong:
        raise ParameterError(
            f"Communities of three labels are drawn in triangles; got {type(wrong[0]).__name__}. Make axes with "
            f'plt.subplots({n_snapshots or 1}, {n_classes}, subplot_kw={{"projection": "ternary"}}) after '
            "`import mpltern`, or leave axes= out."
        )
    return panels


def _class_titles(panels: Sequence[Any], confusion: ConfusionSnapshot, means: Array, *, zoom: bool) -> list[str]:
    """Return the title of each class; magnify its triangles to the part that holds the means, of shape (N, J, 3)."""
    titles = [f"when it is {name}" for name in confusion.classes]
    if zoom:
        parts = smallest_parts([means[:, row] for row in range(len(titles))])
        magnified = [magnify(ternary, parts[index % len(titles)]) for index, ternary in enumerate(panels)]
        titles = [title + text for title, text in zip(titles, magnified, strict=False)]
    return titles


# Dots.


def _dot_areas(sizes: Array, panels: Sequence[Any]) -> Array:
    """Return the areas of the dots of communities of these sizes, of shape (..., K), on one scale."""
    largest = MAX_DOT_AREA * (min(map(side_in_points, panels)) / (72 * SIDE)) ** 2
    most_at_once = (sizes > 0).sum(axis=-1).max()
    shrunk = min(1, MAX_FULL_SIZE_DOTS / max(most_at_once, 1)) ** 0.5
    return np.asarray(largest * shrunk * sizes / sizes.max(initial=1))


def _draw_order(areas: Array) -> Array:
    """Return the communities that have a dot, large dots first, so that small ones lie on top."""
    order = np.argsort(-areas, kind="stable")
    return np.asarray(order[areas[order] > 0])


def _draw_dots(ternary: Any, means: Array, areas: Array, *, opacity: float, filled: Array | None = None) -> None:
    """Draw the dots of a snapshot: filled ones, and rings for the others."""
    order = _draw_order(areas)
    hues = np.array(colours(range(len(areas))))[order]
    is_filled = np.ones(len(order), dtype=bool) if filled is None else filled[order]
    ternary.scatter(
        *means[order].T,
        s=areas[order],
        c=np.where(is_filled, hues, "white"),
        edgecolors=np.where(is_filled, "white", hues),
        linewidths=np.where(is_filled, OUTLINE, RING),
        alpha=opacity,
        zorder=3,
        clip_on=False,
    )


def _number_dots(ternary: Any, means: Array, areas: Array, *, filled: Array | None = None) -> None:
    """Write numbers on large dots and above small ones, where there is room.

    Numbers cover neither each other nor dots that are drawn later, to which they would seem to belong.
    """
    numbers = _draw_order(areas)
    hues = np.array(colours(range(len(areas))))
    backgrounds = hues if filled is None else np.where(filled, hues, "white")
    texts = [str(number) for number in numbers]
    centres = positions_of(ternary, means[numbers]) * side_in_points(ternary)
    diameters = np.sqrt(areas[numbers])
    inside = diameters > 2 + SMALL_TEXT * DIGIT_SIZE[0] * np.array([len(text) for text in texts])
    shifts = np.where(inside, 0, diameters / 2 + 1 + SMALL_TEXT / 2)
    text_centres = centres + np.column_stack([0 * shifts, shifts])
    corners = np.stack([ternary.transProjection.transform(corner) for corner in np.eye(3)])
    distances = np.linalg.norm(text_centres[:, None] - centres, axis=2)
    is_on_dot = distances < diameters / 2 + SMALL_TEXT * DIGIT_SIZE[0] / 2
    free = np.flatnonzero(~np.triu(is_on_dot, k=1).any(axis=1))
    for dot in free[non_overlapping(text_centres[free], [texts[k] for k in free], size=SMALL_TEXT)]:
        annotate(
            ternary,
            texts[dot],
            means[numbers[dot]] @ corners,
            offset=(0, shifts[dot]),
            color=ink_on(backgrounds[numbers[dot]]) if inside[dot] else INK,
            path_effects=[] if inside[dot] else white_halo(),
            zorder=4,
            annotation_clip=False,
        )


# Legends.


def _community_entries(sizes: Array, areas: Array) -> list[Entry]:
    """List the communities with their sizes; if they are many, show how large the largest and smallest dots are."""
    if len(sizes) > MAX_LISTED:
        return _size_entries(sizes, areas)
    return [("filled", hue, 8.0, community_name(k, sizes[k])) for k, hue in enumerate(colours(range(len(sizes))))]


def _size_entries(sizes: Array, areas: Array) -> list[Entry]:
    """Show the largest and the smallest dot."""
    diameters = {int(size): float(np.sqrt(area)) for size, area in zip(sizes.flat, areas.flat, strict=True) if size}
    extremes = sorted({max(diameters), min(diameters)}, reverse=True) if diameters else []
    return [("filled", GREY, diameters[size], quantity(size, "volunteer")) for size in extremes]


def _legend_title(sizes: Array) -> str:
    """Return the title above what `_community_entries` lists."""
    return "community" if sizes.shape[-1] <= MAX_LISTED else "size of communities"


def _add_legend(panels: Sequence[Any], entries: Sequence[Entry], *, title: str, beside: bool) -> None:
    """Add a legend of dots to the last triangle of the first row."""
    dot: dict[str, Any] = {"marker": "o", "linestyle": "none"}
    kinds: dict[str, dict[str, Any]] = {
        "filled": {"markeredgecolor": "white", "markeredgewidth": OUTLINE},
        "ring": {"markerfacecolor": "white", "markeredgewidth": RING},
    }
    handles = [
        Line2D([], [], color=colour, markersize=size, label=text, **dot, **kinds[kind])
        for kind, colour, size, text in entries
    ]
    panels[min(len(panels), TRIANGLES_PER_ROW) - 1].legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.05) if beside else (0.78, 1.0),
        frameon=False,
        fontsize="small",
        labelspacing=0.8,
        title=title,
        alignment="left",
    )
