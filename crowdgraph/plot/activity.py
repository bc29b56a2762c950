"""How much each volunteer does, and which labels are given when."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError
from crowdgraph.plot._style import (
    HUES,
    INK,
    PALE,
    check_kind,
    colours,
    drawable_times,
    ensure_axes,
    format_time_axis,
    legend_location,
    plain_text,
)

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["activity", "responses_over_time"]

# The legend of more labels than this would not fit beside the axes.
MAX_LABELS_NAMED = 12
# The shares of all responses that `activity` marks: share, words, offset of the text in points, its alignment.
MARKED_SHARES = ((0.5, "half", (8, 8), "left"), (0.9, "nine tenths", (-8, -14), "right"))


@plain_text
def activity(graph: CrowdGraph, *, ax: Axes | None = None) -> Axes:
    """Plot the number of responses of each volunteer, busiest first, on logarithmic axes.

    Two markers show how many of the busiest volunteers gave half and nine tenths of all responses.

    Parameters
    ----------
    graph
        The graph.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> ax = cg.plot.activity(cg.simulate.galaxy_zoo_supernovae().graph)
    >>> ax.get_xlabel()
    'volunteers, busiest first'
    """
    check_kind(graph, "CrowdGraph", "CrowdGraph.from_responses(table)")
    ax = ensure_axes(ax)
    counts = np.sort(graph.volunteers.n_responses)[::-1]
    counts = counts[counts > 0]
    ranks = np.arange(1, len(counts) + 1)
    ax.plot(ranks, counts, drawstyle="steps-mid", color=HUES[0], linewidth=2)
    ax.fill_between(ranks, counts, step="mid", color=HUES[0], alpha=0.15)
    cumulative = counts.cumsum() / max(counts.sum(), 1)
    for share, words, offset, side in MARKED_SHARES if len(counts) else ():
        rank = int(np.searchsorted(cumulative, share))
        ax.plot(ranks[rank], counts[rank], "o", color=HUES[5])
        ax.annotate(
            f"{quantity(ranks[rank], 'volunteer')} gave {words}",
            (ranks[rank], counts[rank]),
            xytext=offset,
            textcoords="offset points",
            horizontalalignment=side,
            color=INK,
        )
    if len(counts):
        ax.set(xscale="log", yscale="log")
    ax.set(xlabel="volunteers, busiest first", ylabel="responses")
    ax.set_title(f"{quantity(counts.sum(), 'response')} by {quantity(len(counts), 'volunteer')}", loc="left")
    return ax


@plain_text
def responses_over_time(graph: CrowdGraph, *, n_bins: int = 40, ax: Axes | None = None) -> Axes:
    """Plot how many responses of each label were given over time, as stacked bars.

    Of more than 12 labels those with fewer answers are one grey bar, since a legend of all would leave no room.

    Parameters
    ----------
    graph
        The graph.
    n_bins
        The number of bins of equal length into which the time is divided.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> ax = cg.plot.responses_over_time(cg.simulate.galaxy_zoo_supernovae().graph)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['3', '1', '-1']
    """
    check_kind(graph, "CrowdGraph", "CrowdGraph.from_responses(table)")
    if n_bins < 1:
        raise ParameterError(f"n_bins={n_bins!r} must be at least 1.")
    beside = ax is None
    ax = ensure_axes(ax)
    answers, times = graph.answers, drawable_times(graph.responses.clock, graph.answers.time)
    start = times[0] if len(times) else np.zeros(1, dtype=times.dtype)[0]
    # Count from the first response, because ticks since 1970 are too large to differ as floats.
    ticks = (times - start).astype(float)
    edges = np.linspace(0, max(ticks[-1], 1.0) if len(ticks) else 1.0, n_bins + 1)
    x = start + edges.astype(np.int64) if times.dtype.kind == "M" else start + edges
    bottom = np.zeros(n_bins)
    for codes, name, colour in _named_labels(graph.labels, answers.label):
        counts, _ = np.histogram(ticks[np.isin(answers.label, codes)], bins=edges)
        ax.bar(x[:-1], counts, width=np.diff(x), bottom=bottom, align="edge", color=colour, label=name)
        bottom = bottom + counts
    handles, names = ax.get_legend_handles_labels()
    # The legend reads from top to bottom, as the bars do.
    ax.legend(handles[::-1], names[::-1], title="label", frameon=False, **legend_location(beside=beside))
    format_time_axis(ax, graph.responses.clock)
    ax.set_ylabel("responses")
    ax.margins(x=0)
    ax.set_title(f"{quantity(len(answers), 'response')} over time", loc="left")
    return ax


def _named_labels(labels: Sequence[Hashable], label: Array) -> list[tuple[list[int], str, str]]:
    """Return codes of labels with their name and colour: each label by itself, or those given least together."""
    names = [str(label) for label in labels]
    parts = list(zip(([code] for code in range(len(names))), names, colours(labels), strict=True))
    if len(parts) <= MAX_LABELS_NAMED:
        return parts
    order = np.argsort(-np.bincount(label[label >= 0], minlength=len(parts)), kind="stable")
    most, rest = np.sort(order[: MAX_LABELS_NAMED - 1]), np.sort(order[MAX_LABELS_NAMED - 1 :])
    return [(rest.tolist(), f"{len(rest)} others", PALE), *(parts[code] for code in most)]
