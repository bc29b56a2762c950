"""How every picture begins."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["own_axes"]


def own_axes(ax: Axes | None, *, width: float = 7.0, height: float = 4.0) -> Axes:
    """The given axes, or those of a new figure, without the frame lines that carry no data."""
    if ax is None:
        figure = Figure(figsize=(width, height), layout="constrained")
        ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    return ax
