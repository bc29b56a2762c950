"""How every picture begins."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdgraph.errors import ParameterError

__all__ = ["check_kind", "own_axes"]


def check_kind(subject: object, kind: type, made_by: str) -> None:
    """Raise unless what is to be drawn is of the kind that the picture shows."""
    if not isinstance(subject, kind):
        raise ParameterError(
            f"This picture shows a {kind.__name__}; got a {type(subject).__name__}. Make one with {made_by}."
        )


def own_axes(ax: Axes | None, *, width: float = 7.0, height: float = 4.0) -> Axes:
    """The given axes, or those of a new figure, without the frame lines that carry no data."""
    if ax is None:
        figure = Figure(figsize=(width, height), layout="constrained")
        ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    return ax
