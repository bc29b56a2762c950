"""How communities differ in what they say, in triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.settings import check_bool
from crowdgraph.plot.of_communities import (
    MOST_IN_ROW,
    check_communities,
    check_three_labels,
    confusion_of,
    dot_areas,
    given_triangles,
    legend_of_dots,
    magnify,
    name_corners,
    number_dots,
    triangles,
)
from crowdgraph.plot.palette import colours

__all__ = ["community_ternary"]


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
