"""Who belongs to what, and how much."""

from __future__ import annotations

from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Affine2D, Bbox, ScaledTranslation

from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.errors import ParameterError
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import check_communities, counted_communities
from crowdgraph.plot.over_time import counted
from crowdgraph.plot.palette import GREY, SHARES, colours

__all__ = ["participation_matrix"]

# How high and wide a small text is with some air around it, in points.
LINE, DIGITS = 9.0, 15.0


def participation_matrix(communities: Communities, *, ax: Axes | None = None) -> Axes:
    """Draw how much every volunteer participates in every community: a row each, darker for more.

    Volunteers stand in the order of the communities they are assigned to, those who participate most first, with lines
    between communities; those who belong to none stand last. Where rows are more than pixels, some of them are seen.

    Parameters
    ----------
    communities
        The communities.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = cg.Communities(ids=["anna", "bert", "cleo"], method="by hand", modularity=0.1,
    ...                         participation=[[0.3, 0.7], [1.0, 0.0], [0.0, 0.0]])
    >>> ax = cg.plot.participation_matrix(groups)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0: 1', '1: 1', 'none: 1']
    """
    check_communities(communities)
    if not len(communities.ids):
        raise ParameterError(f"The communities {communities.method!r} have no volunteers, so there is nothing to draw.")
    ax = own_axes(ax, width=7.0, height=float(np.clip(1.5 + 0.17 * len(communities), 6, 12)))
    order, groups = _sorted(communities)
    image = ax.imshow(
        communities.participation[order], cmap=SHARES, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label="participation", ticks=[0, 0.5, 1], shrink=0.6)
    _name_groups(ax, groups, len(communities))
    _name_columns(ax, len(communities))
    ax.spines[:].set_visible(False)
    ax.set(xlabel="community", ylabel="volunteers assigned to each community")
    who = counted(len(order), "volunteer")
    ax.set_title(f"Participation of {who} in {counted_communities(len(communities))}", loc="left")
    return ax


def _sorted(communities: Communities) -> tuple[Array, Array]:
    """Volunteers by assignment, nobody's last, then by participation in it; and how many each group has, (K + 1,)."""
    group = np.where(communities.assignment < 0, len(communities), communities.assignment)
    order = np.lexsort((-communities.participation.max(axis=1), group))
    return order, np.bincount(group, minlength=len(communities) + 1)


def _name_groups(ax: Axes, sizes: Array, n_communities: int) -> None:
    """Lines between the groups, and their numbers and sizes where there is room."""
    ends = sizes.cumsum()
    ax.hlines(ends[:-1][(ends[:-1] > 0) & (ends[:-1] < ends[-1])] - 0.5, -0.5, n_communities - 0.5, GREY, linewidth=0.6)
    least = ends[-1] * LINE / _points(ax).height
    names = [*map(str, range(n_communities)), "none"]
    ticks: list[tuple[float, str]] = []
    for name, size, end in zip(names, sizes.tolist(), ends.tolist(), strict=True):
        middle = end - size / 2 - 0.5
        if size and (not ticks or middle - ticks[-1][0] >= least):
            ticks.append((middle, f"{name}: {size:,}"))
    ax.set_yticks([middle for middle, _ in ticks], [text for _, text in ticks], fontsize="small")
    ax.tick_params(axis="y", length=0)


def _name_columns(ax: Axes, n_communities: int) -> None:
    """A square in each community's colour below its column, and its number."""
    places = np.arange(n_communities)
    room = _points(ax).width / n_communities
    side = min(8.0, 0.8 * room)
    below = ax.get_xaxis_transform() + ScaledTranslation(0, -(side / 2 + 2) / 72, ax.figure.dpi_scale_trans)
    ax.scatter(
        places, 0 * places, marker="s", s=side**2, c=colours(range(n_communities)), transform=below, clip_on=False
    )
    step = ceil(DIGITS / room)
    ax.set_xticks(places[::step], [str(place) for place in places[::step]], fontsize="small")
    ax.tick_params(axis="x", length=0, pad=side + 4)


def _points(ax: Axes) -> Bbox:
    """The size of the axes in points, before the layout."""
    return ax.bbox.transformed(Affine2D().scale(72 / ax.figure.dpi))
