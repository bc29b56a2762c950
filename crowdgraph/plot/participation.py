"""How volunteers belong to communities, from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from crowdgraph.core.columns import Array
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.errors import ParameterError, UnknownIdError, quote, suggestion
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import (
    DIGIT,
    LETTER,
    MOST_LISTED,
    SMALL,
    check_track,
    given_axes,
    inches,
    longest_line,
    name_snapshots,
    snapshot_names,
    uncovered,
)
from crowdgraph.plot.over_time import counted
from crowdgraph.plot.palette import GREY, INK, colours

__all__ = ["participation"]

# How wide the bars of a snapshot are together, relative to the way from one snapshot to the next.
GROUP = 0.8
# The width of a bar, of the narrowest and the widest panel and of a row, and the height of a panel, in inches.
BAR, NARROWEST, WIDEST, ROW, HEIGHT = 0.08, 3.2, 12.0, 13.5, 1.9
# Lower bars than this are not numbered.
LEAST = 0.1


def participation(
    track: CommunityTrack, volunteers: Iterable[Hashable], *, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Draw how much volunteers participate in each community at each snapshot: a panel of bars for each volunteer.

    Bars have the colours of their communities and stand in the order of their numbers. Up to twelve communities are
    listed; of more, the numbers stand on the bars. Where a volunteer has no community the panel says so: "not yet"
    before the first one, "none" later.

    Parameters
    ----------
    track
        The communities over time.
    volunteers
        Whom to draw.
    axes
        Where to draw, one for each volunteer; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One for each volunteer.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> early = cg.Communities(ids=["anna"], method="by hand", modularity=0.0, participation=[[1, 0]])
    >>> late = cg.Communities(ids=["anna", "bert"], method="by hand", modularity=0.1,
    ...                       participation=[[1, 0], [0.2, 0.8]])
    >>> track = cg.CommunityTrack(ids=["anna", "bert"], times=[1, 2], counts=[10, 20], snapshots=[early, late],
    ...                           clock=cg.Clock("number"), method="by hand")
    >>> anna, bert = cg.plot.participation(track, ["anna", "bert"])
    >>> bert.get_title(loc="left"), [text.get_text() for text in bert.texts]
    ('bert', ['not yet'])
    """
    check_track(track)
    chosen = _chosen(track, volunteers)
    panels = _grid(track, len(chosen)) if axes is None else given_axes(axes)
    if len(panels) != len(chosen):
        raise ParameterError(f"axes= has {len(panels)} axes; {counted(len(chosen), 'volunteer')} need one each.")
    for ax, volunteer in zip(panels, chosen, strict=True):
        own_axes(ax)
        ax.set(ylim=(0, 1), yticks=[0, 0.5, 1])
        name_snapshots(ax, track)
        _draw(ax, track.participation(volunteer))
        # Above the numbers on the highest bars.
        pad = SMALL + 4 if track.width > MOST_LISTED else None
        ax.set_title(str(volunteer), loc="left", fontsize=SMALL + 2, pad=pad)
    _legend(panels[-1], track, beside=axes is None)
    return tuple(panels)


def _chosen(track: CommunityTrack, volunteers: Iterable[Hashable]) -> list[Hashable]:
    """The volunteers who were named, if all of them have a community at some time."""
    if isinstance(volunteers, str | bytes) or not isinstance(volunteers, Iterable):
        raise ParameterError(f"volunteers={volunteers!r} must be several ids, such as volunteers=[{volunteers!r}].")
    chosen = list(volunteers)
    if not chosen:
        raise ParameterError("volunteers= names nobody; name some, such as track.ids[:4].")
    unknown = [volunteer for volunteer in chosen if volunteer not in track.table]
    if unknown:
        raise UnknownIdError(
            f"There is no volunteer {quote(unknown)} in this track of {counted(len(track.ids), 'volunteer')}; see "
            f"track.ids.{suggestion(unknown[0], track.ids.tolist())}"
        )
    never = [one for one in chosen if not track.participation(one).any()]
    if never:
        raise ParameterError(
            f"{counted(len(never), 'volunteer')} of those named without a community at any snapshot: {quote(never)}. "
            "Leave them out of volunteers=."
        )
    return chosen


def _grid(track: CommunityTrack, n_panels: int) -> list[Axes]:
    """Panels of a new figure, as wide as their bars and the names of the snapshots need."""
    step = max(BAR * track.width / GROUP, (longest_line(snapshot_names(track)) + 2) * SMALL * DIGIT[0] / 72)
    width = float(np.clip(0.5 + step * len(track), NARROWEST, WIDEST))
    n_columns = min(n_panels, max(1, int(ROW / width)))
    n_rows = ceil(n_panels / n_columns)
    figure = Figure(
        figsize=(width * n_columns + 0.8, HEIGHT * n_rows + 0.4), layout=ConstrainedLayoutEngine(wspace=0.05)
    )
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True).ravel()
    for spare in panels[n_panels:]:
        spare.remove()
    for first in panels[:n_panels:n_columns]:
        first.set_ylabel("participation")
    for ax in panels[:n_panels]:
        ax.tick_params(axis="x", labelbottom=True)
    figure.suptitle(f"Participation of {counted(n_panels, 'volunteer')}", x=0.01, horizontalalignment="left")
    return list(panels[:n_panels])


def _draw(ax: Axes, shares: Array) -> None:
    """Bars for each snapshot, of shape (T, K), and words where there are none."""
    n_snapshots, n_communities = shares.shape
    width = GROUP / n_communities
    places = np.arange(n_snapshots)[:, None] + (np.arange(n_communities) - (n_communities - 1) / 2) * width
    known = np.asarray(shares.any(axis=1))
    ax.vlines(np.arange(1, n_snapshots) - 0.5, 0, 1, color=GREY, alpha=0.3, linewidth=0.6)
    for k, hue in enumerate(colours(range(n_communities))):
        ax.bar(places[known, k], shares[known, k], width=0.94 * width, color=hue)
    upright = inches(ax) * 72 / n_snapshots < len("not yet") * LETTER
    words = {"ha": "center", "va": "bottom", "fontsize": SMALL - 1, "color": GREY, "rotation": 90 if upright else 0}
    for snapshot in np.flatnonzero(~known).tolist():
        ax.text(snapshot, 0.03, "none" if known[:snapshot].any() else "not yet", words)
    if n_communities > MOST_LISTED:
        _number(ax, places, shares)


def _number(ax: Axes, places: Array, shares: Array) -> None:
    """The numbers of communities on their bars, where there is room; the highest first."""
    order = np.argsort(-shares, axis=None, kind="stable")
    order = order[shares.ravel()[order] >= LEAST]
    x, y, numbers = places.ravel()[order], shares.ravel()[order], order % shares.shape[1]
    halo = [withStroke(linewidth=2, foreground="white")]
    room = np.array([inches(ax) * 72 / len(shares), ax.bbox.height / ax.figure.dpi * 72])
    for place in uncovered(np.column_stack([x, y]) * room, [str(k) for k in numbers], points=SMALL):
        ax.annotate(
            str(numbers[place]),
            (x[place], y[place]),
            xytext=(0, 1),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=INK,
            annotation_clip=False,
            path_effects=halo,
        )


def _legend(ax: Axes, track: CommunityTrack, *, beside: bool) -> None:
    """The colours of the communities, if they are few."""
    if track.width > MOST_LISTED:
        return
    handles = [Patch(color=hue, label=str(k)) for k, hue in enumerate(colours(range(track.width)))]
    options = {"handles": handles, "frameon": False, "fontsize": "small", "title": "community", "alignment": "left"}
    if beside:
        ax.figure.legend(loc="outside right upper", **options)
    else:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), **options)
