"""What was said when."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.over_time import time_axis
from crowdgraph.plot.palette import colours

__all__ = ["responses_over_time"]


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
    ax = own_axes(ax)
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
