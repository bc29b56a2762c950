"""How unevenly volunteers share the work."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.palette import HUES, INK

__all__ = ["activity"]


def activity(graph: CrowdGraph, *, ax: Axes | None = None) -> Axes:
    """Draw the responses of every volunteer, from the busiest to the least busy, on logarithmic axes.

    Two markers tell how many of the busiest volunteers gave half and nine tenths of all responses.

    Parameters
    ----------
    graph
        The graph.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> ax = cg.plot.activity(cg.simulate.galaxy_zoo_supernovae().graph)
    >>> ax.get_xlabel()
    'volunteers, busiest first'
    """
    check_kind(graph, CrowdGraph, "CrowdGraph.from_responses(table)")
    ax = own_axes(ax)
    counts = np.sort(graph.volunteers.n_responses)[::-1]
    counts = counts[counts > 0]
    ranks = np.arange(1, len(counts) + 1)
    ax.plot(ranks, counts, drawstyle="steps-mid", color=HUES[0], linewidth=2)
    ax.fill_between(ranks, counts, step="mid", color=HUES[0], alpha=0.15)
    reached = counts.cumsum() / max(counts.sum(), 1)
    captions = ((0.5, "half", (8, 8), "left"), (0.9, "nine tenths", (-8, -14), "right"))
    for share, words, offset, side in captions if len(counts) else ():
        place = int(np.searchsorted(reached, share))
        ax.plot(ranks[place], counts[place], "o", color=HUES[5])
        ax.annotate(
            f"{ranks[place]:,} volunteers gave {words}",
            (ranks[place], counts[place]),
            xytext=offset,
            textcoords="offset points",
            horizontalalignment=side,
            color=INK,
        )
    if len(counts):
        ax.set(xscale="log", yscale="log")
    ax.set(xlabel="volunteers, busiest first", ylabel="responses")
    ax.set_title(f"{counts.sum():,} responses by {len(counts):,} volunteers", loc="left")
    return ax
