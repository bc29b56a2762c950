"""How unevenly volunteers share the work."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.plot._style import HUES, INK, check_kind, colours, new_or_given_axes, time_axis

__all__ = ["activity", "responses_over_time"]


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
    ax = new_or_given_axes(ax)
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


def responses_over_time(graph: CrowdGraph, *, n_bins: int = 40, ax: Axes | None = None) -> Axes:
    """Draw how many responses of each label were given over time, as stacked bars.

    Parameters
    ----------
    graph
        The graph.
    n_bins
        Into how many stretches of equal length the time is cut.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> ax = cg.plot.responses_over_time(cg.simulate.galaxy_zoo_supernovae().graph)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['3', '1', '-1']
    """
    check_kind(graph, CrowdGraph, "CrowdGraph.from_responses(table)")
    if n_bins < 1:
        raise ParameterError(f"n_bins={n_bins!r} must be at least 1.")
    beside = ax is None
    ax = new_or_given_axes(ax)
    responses = graph.responses[graph.responses.label >= 0]
    times = responses.time
    start = times[0] if len(times) else np.zeros(1, dtype=times.dtype)[0]
    # Counted from the first, since ticks since 1970 are too large to be told apart as floats.
    ticks = (times - start).astype(float)
    edges = np.linspace(0, max(ticks[-1], 1.0) if len(ticks) else 1.0, n_bins + 1)
    places = start + edges.astype(np.int64) if times.dtype.kind == "M" else start + edges
    lower = np.zeros(n_bins)
    for code, (label, colour) in enumerate(zip(graph.labels, colours(graph.labels), strict=True)):
        counts, _ = np.histogram(ticks[responses.label == code], bins=edges)
        ax.bar(places[:-1], counts, width=np.diff(places), bottom=lower, align="edge", color=colour, label=str(label))
        lower = lower + counts
    handles, names = ax.get_legend_handles_labels()
    # The legend reads from top to bottom as the bars do.
    place = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside else {"loc": "best"}
    ax.legend(handles[::-1], names[::-1], title="label", frameon=False, **place)
    time_axis(ax, responses.clock)
    ax.set_ylabel("responses")
    ax.margins(x=0)
    ax.set_title(f"{len(responses):,} responses over time", loc="left")
    return ax
