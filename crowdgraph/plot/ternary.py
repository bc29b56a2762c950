"""How communities moved between the labels, in triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.plot._panels import (
    MOST_IN_ROW,
    MOST_LISTED,
    check_communities,
    check_three_labels,
    check_track,
    confusion_of,
    confusion_over_time,
    dot_areas,
    given_triangles,
    legend_of_dots,
    magnify,
    name_corners,
    number_dots,
    snapshot_names,
    triangles,
)
from crowdgraph.plot._style import GREY, colours

__all__ = ["community_ternary", "community_ternary_over_time"]


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
    check_three_labels(confusion, instead="plot.prototypes(communities, fit, mean=True)")
    panels = triangles(confusion) if axes is None else given_triangles(axes, confusion.classes)
    means, sizes = communities.mean_confusion(confusion), communities.sizes
    for row, (ternary, name) in enumerate(zip(panels, confusion.classes, strict=True)):
        if zoom:
            magnify(ternary, means[sizes > 0, row])
        _dots(ternary, means[:, row], sizes)
        name_corners(ternary, confusion.labels)
        ternary.set_title(f"when it is {name}{', magnified' if zoom else ''}", loc="left")
    legend_of_dots(panels[min(len(panels), MOST_IN_ROW) - 1], sizes, dot_areas(sizes), beside=axes is None)
    return tuple(panels)


def _dots(ternary: Any, means: Array, sizes: Array) -> None:
    """A dot for each community that has members, small ones upon large ones, and numbers where there is room."""
    hues = np.array(colours(range(len(sizes))))
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    areas = dot_areas(sizes)[order]
    ternary.scatter(
        *means[order].T, s=areas, c=hues[order], edgecolors="white", linewidths=0.8, alpha=0.9, zorder=3, clip_on=False
    )
    number_dots(ternary, order, means[order], areas)


# How opaque the dots of the first and of the last snapshot are.
PALEST, DARKEST = 0.25, 0.95
# The side of a triangle of many communities, in inches.
SIDE = 6.0


def community_ternary_over_time(
    track: CommunityTrack, *, zoom: bool = False, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Draw the mean confusion of all communities over time: for each true class a triangle whose corners are labels.

    Each community is a path of dots from the first snapshot at which it has members to the last, in its colour, paler
    for earlier snapshots. The area of a dot is proportional to the number of members at that time. The number of the
    community stands at the last dot if there is room.

    Parameters
    ----------
    track
        The communities over time, followed with their confusion matrices, which must have three labels.
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
    check_three_labels(confusion, instead="plot.community_means_over_time(track)")
    size = {"side": SIDE} if track.n_communities_ever > MOST_LISTED else {}
    panels = triangles(confusion, **size) if axes is None else given_triangles(axes, confusion.classes)
    sizes = np.where(np.isfinite(means).all(axis=(2, 3)), track.sizes, 0)
    for row, (ternary, name) in enumerate(zip(panels, confusion.classes, strict=True)):
        if zoom:
            magnify(ternary, means[sizes > 0, row])
        _paths(ternary, means[:, :, row], sizes)
        name_corners(ternary, confusion.labels)
        ternary.set_title(f"when it is {name}{', magnified' if zoom else ''}", loc="left")
    _legend(panels[min(len(panels), MOST_IN_ROW) - 1], track, sizes, beside=axes is None)
    return tuple(panels)


def _paths(ternary: Any, means: Array, sizes: Array) -> None:
    """A line and dots for each community, later snapshots upon earlier ones, and the numbers of the last dots."""
    areas, last = dot_areas(sizes), _last(sizes)
    hues = np.array(colours(range(sizes.shape[1])))
    for k, hue in enumerate(hues):
        ternary.plot(*means[sizes[:, k] > 0, k].T, color=hue, linewidth=1, alpha=0.7, zorder=2, clip_on=False)
    for snapshot, strength in enumerate(_strengths(len(sizes))):
        order = np.argsort(-sizes[snapshot], kind="stable")
        order = order[sizes[snapshot, order] > 0]
        ternary.scatter(
            *means[snapshot, order].T,
            s=areas[snapshot, order],
            c=hues[order],
            edgecolors="white",
            linewidths=0.6,
            alpha=strength,
            zorder=3,
            clip_on=False,
        )
    order = np.lexsort((-sizes[last, np.arange(len(last))], last))
    order = order[sizes[last[order], order] > 0]
    number_dots(ternary, order, means[last[order], order], areas[last[order], order])


def _last(sizes: Array) -> Array:
    """The last snapshot at which each community has members, of shape (K,)."""
    return np.asarray(len(sizes) - 1 - (sizes[::-1] > 0).argmax(axis=0))


def _strengths(n_snapshots: int) -> Array:
    """How opaque the dots of each snapshot are."""
    return np.linspace(DARKEST, PALEST, n_snapshots)[::-1]


def _legend(ternary: Any, track: CommunityTrack, sizes: Array, *, beside: bool) -> None:
    """The communities by name and size when they were seen last, and the first and the last snapshot."""
    chosen = _last(sizes), np.arange(sizes.shape[1])
    names = snapshot_names(track)
    ends = {0: ("first", PALEST), len(track) - 1: ("last", DARKEST)}
    further = [
        (to_hex((*to_rgb(GREY), strength), keep_alpha=True), f"{word} snapshot:\n{names[place]}")
        for place, (word, strength) in ends.items()
    ]
    legend_of_dots(ternary, sizes[chosen], dot_areas(sizes)[chosen], beside=beside, further=further)
