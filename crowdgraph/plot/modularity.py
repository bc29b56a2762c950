"""How far apart communities are, from snapshot to snapshot."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from crowdgraph.core.columns import Array
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.errors import check_choice
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import SMALL, check_track, uncovered
from crowdgraph.plot.over_time import time_axis
from crowdgraph.plot.palette import GREY, HUES, INK

__all__ = ["modularity"]

# The size of the numbers, and how far their middle is from the points, in points.
POINTS, SHIFT = SMALL + 1, 10.0
# Less than this is not spread over the whole height.
LEAST_SPAN = 0.1


def modularity(
    track: CommunityTrack, *, against: Literal["responses", "time"] = "responses", ax: Axes | None = None
) -> Axes:
    """Draw the modularity of each snapshot as a line, with the number of communities at every point.

    Where points are too close to each other, some of the numbers are left out. The line is broken where there are no
    communities.

    Parameters
    ----------
    track
        The communities over time.
    against
        ``"responses"`` for the number of responses so far, or ``"time"``.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> early = cg.Communities(ids=["anna", "bert"], method="by hand", modularity=0.0, participation=[[1, 0], [1, 0]])
    >>> late = cg.Communities(ids=["anna", "bert"], method="by hand", modularity=0.1, participation=[[1, 0], [0, 1]])
    >>> track = cg.CommunityTrack(ids=["anna", "bert"], times=[1, 2], counts=[10, 20], snapshots=[early, late],
    ...                           clock=cg.Clock("number"), method="by hand")
    >>> ax = cg.plot.modularity(track)
    >>> [text.get_text() for text in ax.texts]
    ['1', '2']
    """
    check_track(track)
    check_choice("against", against, ("responses", "time"))
    ax = own_axes(ax)
    x = track.counts if against == "responses" else track.times
    ax.plot(x, track.modularity, color=HUES[0], linewidth=1.6, marker="o", markersize=5)
    if against == "time":
        time_axis(ax, track.clock)
    else:
        ax.set_xlabel("responses so far")
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylabel("modularity")
    ax.margins(x=0.04, y=0.15)
    _widen(ax, track.modularity)
    _number(ax, track, x)
    ax.set_title("Modularity, and the number of communities", loc="left")
    return ax


def _widen(ax: Axes, values: Array) -> None:
    """Show at least a tenth of modularity, so that differences look no larger than they are."""
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if np.nanmax(values) - np.nanmin(values) < LEAST_SPAN:
        ax.set_ylim(middle - 0.6 * LEAST_SPAN, middle + 0.6 * LEAST_SPAN)


def _number(ax: Axes, track: CommunityTrack, x: Array) -> None:
    """The number of communities at each point, where it covers no other, and words where there are none."""
    ax.autoscale_view()
    x = ax.convert_xunits(x)  # type: ignore[no-untyped-call]
    points, numbers = np.column_stack([x, track.modularity]), track.n_communities
    known = np.flatnonzero(numbers)
    shifts = SHIFT * np.where(_is_valley(points[known, 1]), -1, 1)
    middles = ax.transData.transform(points[known]) / ax.figure.dpi * 72 + np.column_stack([0 * shifts, shifts])
    text: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center_baseline", "fontsize": POINTS}
    text["path_effects"] = [withStroke(linewidth=2, foreground="white")]
    for place in uncovered(middles, [str(number) for number in numbers[known]], points=POINTS):
        snapshot = known[place]
        ax.annotate(str(numbers[snapshot]), points[snapshot], xytext=(0, shifts[place]), color=INK, **text)
    for snapshot in np.flatnonzero(numbers == 0):
        spot, bottom = (points[snapshot, 0], 0), ax.get_xaxis_transform()
        ax.annotate("none", spot, xycoords=bottom, xytext=(0, SHIFT), color=GREY, **text)


def _is_valley(heights: Array) -> Array:
    """Whether the line comes from above and goes up again, so that there is more room below a point."""
    before, after = (np.concatenate(parts) for parts in ((heights[:1], heights[:-1]), (heights[1:], heights[-1:])))
    return np.asarray(before + after > 2 * heights)
