"""How communities differ in what they say, in triangles."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.settings import check_bool
from crowdgraph.errors import ParameterError, shown
from crowdgraph.plot.confusion_history import CORNERS
from crowdgraph.plot.of_communities import (
    DIGIT,
    MOST_LISTED,
    check_communities,
    confusion_of,
    given_axes,
    name_of,
    uncovered,
)
from crowdgraph.plot.over_time import counted
from crowdgraph.plot.palette import GREY, INK, colours, ink_on

__all__ = ["community_ternary"]

# The area of the dot of the largest community, in square points; from so many communities on it is smaller.
LARGEST, MANY = 500.0, 8
# The size of the numbers, in points.
POINTS = 8
# The side of a triangle, the room below and above it, that for a letter at its corners, and for the legend, in inches.
SIDE, BELOW, ABOVE, LETTER, LEGEND = 4.2, 0.5, 0.75, 0.085, 1.3
MOST_IN_ROW = 3


def community_ternary(
    communities: Communities,
    snapshot: ModelFit | ConfusionTrack | ConfusionSnapshot | None = None,
    *,
    zoom: bool = False,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Draw the mean confusion of all communities: for each true class a triangle whose corners are the three labels.

    A dot close to a corner is a community whose members say that label to items of that class. The area of a dot is
    proportional to the number of members; its number stands on it if there is room.

    Parameters
    ----------
    communities
        The communities.
    snapshot
        The confusion matrices, of three labels: a fit, its confusion, or its confusion at a time. Those by which the
        communities were found if left out.
    zoom
        Show only that part of each triangle in which the communities lie; its sides tell which part it is.
    axes
        Where to draw, one for each class, made with ``projection="ternary"``; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One for each class.

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
    if len(confusion.labels) != 3:
        raise ParameterError(
            f"A triangle shows three labels; these confusion matrices have {len(confusion.labels)} "
            f"({shown(confusion.labels)}). Draw them with plot.prototypes(communities, fit, mean=True)."
        )
    panels = _panels(confusion) if axes is None else _checked(axes, confusion.classes)
    means, sizes = communities.mean_confusion(confusion), communities.sizes
    for row, (ternary, name) in enumerate(zip(panels, confusion.classes, strict=True)):
        if zoom:
            _zoom(ternary, means[sizes > 0, row])
        _dots(ternary, means[:, row], sizes)
        _name_corners(ternary, confusion.labels)
        ternary.set_title(f"when it is {name}{', magnified' if zoom else ''}", loc="left")
    _legend(panels[min(len(panels), MOST_IN_ROW) - 1], sizes, beside=axes is None)
    return tuple(panels)


def _zoom(ternary: Any, means: Array) -> None:
    """Show the smallest part that holds all dots, with some room around them."""
    low = means.min(axis=0, initial=1)
    room = max(0.15 * (1 - low.sum()), 0.01)
    ternary.set_ternary_min(*np.maximum(low - room, 0))


def _dots(ternary: Any, means: Array, sizes: Array) -> None:
    """A dot for each community that has members, small ones upon large ones, and numbers where there is room."""
    hues = np.array(colours(range(len(sizes))))
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    areas = _areas(sizes)[order]
    ternary.scatter(
        *means[order].T, s=areas, c=hues[order], edgecolors="white", linewidths=0.8, alpha=0.9, zorder=3, clip_on=False
    )
    seen = 1 - sum(low for low, _ in (ternary.get_tlim(), ternary.get_llim(), ternary.get_rlim()))
    side = min(ternary.bbox.width, ternary.bbox.height / CORNERS[0, 1]) / ternary.figure.dpi * 72 / seen
    spots, diameters = means[order] @ CORNERS * side, np.sqrt(areas)
    for place in uncovered(spots, [str(k) for k in order], points=POINTS):
        # On a smaller dot the number would be taken for that one's.
        later = slice(place + 1, None)
        if (np.linalg.norm(spots[later] - spots[place], axis=1) >= diameters[later] / 2).all():
            _number(ternary, order[place], means[order[place]], hues[order[place]], diameter=diameters[place])


def _number(ternary: Any, number: int, mean: Array, hue: str, *, diameter: float) -> None:
    """The number of a community, on its dot or above a dot that is too small for it."""
    inside = diameter > 2 + POINTS * DIGIT[0] * len(str(number))
    corners = np.stack([ternary.transProjection.transform(corner) for corner in np.eye(3)])
    ternary.annotate(
        str(number),
        mean @ corners,
        xytext=(0, 0 if inside else diameter / 2 + 1),
        textcoords="offset points",
        ha="center",
        va="center_baseline" if inside else "bottom",
        fontsize=POINTS,
        color=ink_on(hue) if inside else INK,
        zorder=4,
        annotation_clip=False,
    )


def _areas(sizes: Array) -> Array:
    """The area of each community's dot."""
    return np.asarray(LARGEST * min(1, MANY / len(sizes)) * sizes / sizes.max(initial=1))


def _name_corners(ternary: Any, labels: Sequence[Hashable]) -> None:
    """Corners, and a quiet grid."""
    for axis, label in zip((ternary.taxis, ternary.laxis, ternary.raxis), labels, strict=True):
        axis.set_label_text(_corner(label))
        axis.set_label_rotation_mode("horizontal")
        axis.set_major_locator(MaxNLocator(5, prune="both"))
    ternary.grid(color=GREY, alpha=0.25, linewidth=0.5)
    ternary.tick_params(colors=GREY, labelsize=7, length=2)


def _legend(ternary: Any, sizes: Array, *, beside: bool) -> None:
    """The communities by name; of many, how large the largest and the smallest dots are."""
    dot = {"marker": "o", "linestyle": "none", "markeredgecolor": "white"}
    listed = len(sizes) <= MOST_LISTED
    diameters = np.sqrt(_areas(sizes))
    chosen = (
        range(len(sizes)) if listed else sorted({int(sizes.argmax()), int(sizes.argmin())}, key=lambda k: -sizes[k])
    )
    entries = [
        (hue, 8.0, name_of(k, sizes[k])) if listed else (GREY, diameters[k], counted(int(sizes[k]), "volunteer"))
        for k, hue in zip(chosen, colours(chosen), strict=True)
    ]
    handles = [Line2D([], [], color=hue, markersize=size, label=text, **dot) for hue, size, text in entries]  # type: ignore[arg-type]
    place = (1.0, 1.05) if beside else (0.78, 1.0)
    ternary.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=place,
        frameon=False,
        fontsize="small",
        title="community" if listed else "size of communities",
        alignment="left",
    )


def _panels(confusion: ConfusionSnapshot) -> list[Any]:
    """Triangles of a new figure, with room for the names at the corners, which a layout does not see."""
    import mpltern  # noqa: F401  registers the projection

    n_columns = min(len(confusion.classes), MOST_IN_ROW)
    n_rows = ceil(len(confusion.classes) / n_columns)
    beside = 0.2 + LETTER * max(len(_corner(label)) for label in confusion.labels)
    tall = SIDE * CORNERS[0, 1]
    panel_width, panel_height = SIDE + 2 * beside, tall + BELOW + ABOVE
    width, height = panel_width * n_columns + LEGEND, panel_height * n_rows
    figure = Figure(figsize=(width, height))
    panels = []
    for place in range(len(confusion.classes)):
        row, column = divmod(place, n_columns)
        x, y = column * panel_width + beside, (n_rows - 1 - row) * panel_height + BELOW
        panels.append(figure.add_axes((x / width, y / height, SIDE / width, tall / height), projection="ternary"))
    return panels


def _corner(label: Hashable) -> str:
    return f"says {label}"


def _checked(axes: Sequence[Axes], classes: Sequence[Hashable]) -> list[Any]:
    """The given axes if they are a triangle for each class."""
    from mpltern.ternary import TernaryAxes

    panels = given_axes(axes)
    if len(panels) != len(classes):
        raise ParameterError(f"axes= has {len(panels)} axes; {len(classes)} are needed, one for each class.")
    strange = [panel for panel in panels if not isinstance(panel, TernaryAxes)]
    if strange:
        raise ParameterError(
            f"Communities of three labels are drawn in triangles; got {type(strange[0]).__name__}. Make axes with "
            'plt.subplots(1, 2, subplot_kw={"projection": "ternary"}) after `import mpltern`, or leave axes= out.'
        )
    return panels
