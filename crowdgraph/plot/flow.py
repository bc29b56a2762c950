"""Who goes from which community to which."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from crowdgraph.core.columns import Array
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import (
    DIGIT,
    LETTER,
    LINE,
    SMALL,
    check_track,
    counted_communities,
    inches,
    name_snapshots,
)
from crowdgraph.plot.over_time import counted
from crowdgraph.plot.palette import GREY, INK, colours, ink_on

__all__ = ["flow"]

# How wide a column is, relative to the way from one to the next.
COLUMN = 0.16
# The way from a column to the next, the width of the narrowest and of the widest picture, in inches.
STEP, NARROWEST, WIDEST = 1.5, 5.2, 16.0
# The height of a community in a column, of the lowest and of the highest picture, in inches.
EACH, LOWEST, HIGHEST = 0.28, 5.5, 10.0
# How opaque ribbons are, and how much of a stretch of newcomers is white.
OPACITY, PALENESS = 0.55, 0.6


class Ribbon(NamedTuple):
    """Volunteers who go from the community `source` to `target`: how many, and where the ribbon begins and ends."""

    source: int
    target: int
    volunteers: int
    left: float
    right: float


def flow(track: CommunityTrack, *, ax: Axes | None = None) -> Axes:
    """Draw who goes from which community to which: a column of communities for each snapshot, and ribbons between them.

    The height of a community in a column is the number of volunteers assigned to it; its number stands there if there
    is room. A ribbon in the colour of the community that volunteers come from leads to the one they go to. Volunteers
    who had no community at the snapshot before have no ribbon: they are the paler stretch at the bottom of their
    community. Snapshots without communities have no column, and ribbons pass over them.

    Parameters
    ----------
    track
        The communities over time.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> early = cg.Communities(ids=["anna"], method="by hand", modularity=0.0, participation=[[1, 0]])
    >>> late = cg.Communities(ids=["anna", "bert"], method="by hand", modularity=0.1, participation=[[0, 1], [0, 1]])
    >>> track = cg.CommunityTrack(ids=["anna", "bert"], times=[1, 2], counts=[10, 20], snapshots=[early, late],
    ...                           clock=cg.Clock("number"), method="by hand")
    >>> ax = cg.plot.flow(track)
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '1 new']
    """
    check_track(track)
    sizes, assignment = track.sizes, track.assignment
    width = float(np.clip(1 + STEP * len(track), NARROWEST, WIDEST))
    ax = own_axes(ax, width=width, height=float(np.clip(EACH * track.width, LOWEST, HIGHEST)))
    name_snapshots(ax, track)
    ax.set(ylim=(0, 1.02 * sizes.sum(axis=1).max()), ylabel="volunteers")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    known = np.flatnonzero(track.n_communities).tolist()
    _draw_column(ax, known[0], sizes[known[0]], new=0 * sizes[known[0]])
    for before, after in pairwise(known):
        ribbons = _ribbons(assignment[before], assignment[after], track.width)
        _draw_ribbons(ax, ribbons, before + COLUMN / 2, after - COLUMN / 2)
        joined = (assignment[before] < 0) & (assignment[after] >= 0)
        new = np.bincount(assignment[after, joined], minlength=track.width)
        _draw_column(ax, after, sizes[after], new=new)
    n_volunteers = int(np.count_nonzero((assignment >= 0).any(axis=0)))
    title = f"Flow of {counted(n_volunteers, 'volunteer')} between {counted_communities(track.width)}"
    ax.set_title(title, loc="left")
    return ax


def _ribbons(before: Array, after: Array, n_communities: int) -> list[Ribbon]:
    """All ribbons between two columns: those of a community in the order of the communities on the other side.

    They lie at the top of their communities, above the newcomers on the right and above those who leave on the left.
    """
    both = (before >= 0) & (after >= 0)
    went = np.bincount(before[both] * n_communities + after[both], minlength=n_communities**2)
    went = went.reshape(n_communities, n_communities)
    tops = [np.bincount(side[side >= 0], minlength=n_communities).cumsum() for side in (before, after)]
    left = tops[0][:, None] - went.sum(axis=1, keepdims=True) + went.cumsum(axis=1) - went
    right = tops[1] - went.sum(axis=0) + went.cumsum(axis=0) - went
    return [
        Ribbon(source, target, int(went[source, target]), float(left[source, target]), float(right[source, target]))
        for source, target in np.argwhere(went).tolist()
    ]


def _draw_ribbons(ax: Axes, ribbons: list[Ribbon], start: float, end: float) -> None:
    """Bands with smooth edges, narrow ones upon wide ones."""
    hues = colours(range(1 + max((ribbon.source for ribbon in ribbons), default=0)))
    ordered = sorted(ribbons, key=lambda ribbon: -ribbon.volunteers)
    bands = PathCollection(
        [_band(ribbon, start, end) for ribbon in ordered],
        facecolors=[hues[ribbon.source] for ribbon in ordered],
        linewidths=0,
        alpha=OPACITY,
        zorder=1,
    )
    ax.add_collection(bands, autolim=False)


def _band(ribbon: Ribbon, start: float, end: float) -> Path:
    """The outline of a ribbon: along its lower edge to the right, and back along the upper one."""
    middle, height = (start + end) / 2, ribbon.volunteers
    there = [(start, ribbon.left), (middle, ribbon.left), (middle, ribbon.right), (end, ribbon.right)]
    back = [(x, y + height) for x, y in reversed(there)]
    curve = [Path.CURVE4] * 3
    return Path([*there, *back, there[0]], [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY])


def _draw_column(ax: Axes, snapshot: int, sizes: Array, *, new: Array) -> None:
    """The communities of a snapshot, each upon the one before it, with paler stretches for newcomers."""
    hues, bottoms = colours(range(len(sizes))), sizes.cumsum() - sizes
    lived, joined = np.flatnonzero(sizes), np.flatnonzero(new)
    own: dict[str, Any] = {"width": COLUMN, "color": [hues[k] for k in lived], "edgecolor": "white", "zorder": 2}
    ax.bar(np.full(len(lived), snapshot), sizes[lived], bottom=bottoms[lived], linewidth=0.6, **own)
    pale: dict[str, Any] = {"width": COLUMN, "color": "white", "alpha": PALENESS, "zorder": 3}
    ax.bar(np.full(len(joined), snapshot), new[joined], bottom=bottoms[joined], **pale)
    for k in lived.tolist():
        _number(ax, snapshot, k, bottoms[k], sizes[k], new=new[k])
        _count(ax, snapshot, bottoms[k], new=new[k])
    if len(joined):
        ax.set_xlabel("paler: new since the snapshot before", fontsize="small", color=GREY)


def _number(ax: Axes, snapshot: int, number: int, bottom: int, size: int, *, new: int) -> None:
    """The number of a community, above its newcomers or, if there is no room, on them."""
    volunteer, step = _points(ax)
    on_new = (size - new) * volunteer < SMALL
    low, high = (bottom, bottom + new) if on_new else (bottom + new, bottom + size)
    if (high - low) * volunteer >= SMALL and COLUMN * step >= SMALL * DIGIT[0] * len(str(number)):
        colour = INK if on_new else ink_on(colours(range(number + 1))[number])
        ax.text(
            snapshot,
            (low + high) / 2,
            str(number),
            ha="center",
            va="center_baseline",
            fontsize=SMALL,
            color=colour,
            zorder=4,
        )


def _count(ax: Axes, snapshot: int, bottom: int, *, new: int) -> None:
    """How many newcomers a community has, if there is room for it."""
    volunteer, step = _points(ax)
    text = f"{new:,} new"
    if new * volunteer >= LINE and (1 - COLUMN) / 2 * step >= LETTER * len(text):
        ax.annotate(
            text,
            (snapshot - COLUMN / 2, bottom + new / 2),
            xytext=(-2, 0),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            fontsize=SMALL - 1,
            color=INK,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            zorder=4,
        )


def _points(ax: Axes) -> tuple[float, float]:
    """How high a volunteer is, and how wide the way from a column to the next, in points."""
    low, high = ax.get_ylim()
    left, right = ax.get_xlim()
    return ax.bbox.height / ax.figure.dpi * 72 / (high - low), inches(ax) * 72 / (right - left)
