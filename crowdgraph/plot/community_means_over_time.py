"""How the members of each community answer, from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.columns import Array
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.errors import ParameterError
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import (
    LETTER,
    MOST_LISTED,
    SMALL,
    check_track,
    chosen_communities,
    confusion_bars,
    confusion_over_time,
    given_axes,
    inches,
    longest_line,
    name_bars,
    snapshot_names,
)
from crowdgraph.plot.over_time import counted
from crowdgraph.plot.palette import GREY, INK, colours

__all__ = ["community_means_over_time"]

# The width of a bar with its share of the gaps, of the smallest panel and between panels, in inches.
BAR, NARROWEST, GAP = 0.17, 1.4, 0.25
# All panels together are not wider than this, unless the smallest ones are; and not narrower, for the figure's title.
WIDEST, LEAST = 20.0, 3.0
# The height of a panel, of one for a snapshot without communities, and of a line of text, in inches.
HEIGHT, EMPTY, LINE = 1.0, 0.35, 0.16
# The room between panels and the names of the snapshots, for the figure's title, and below a panel's labels, in inches.
BESIDE, ABOVE, BELOW = 0.75, 0.45, 0.35


def community_means_over_time(
    track: CommunityTrack, *, numbers: Iterable[int] | None = None, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Draw how the members of each community answer at each snapshot: a row for each snapshot, a column for each.

    Each panel has bars for the probability of each label, for each true class: the mean confusion of the members, as in
    the paper. The panel of a community without members at that time is left blank. Above a column stand the community's
    number and, in words, how its members answer when it is seen last.

    Parameters
    ----------
    track
        The communities over time, followed with their confusion matrices.
    numbers
        Which communities to draw. If left out, all, but not more than twelve, or than there are `axes` for.
    axes
        Where to draw, row by row, one for each snapshot and community that is drawn; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One for each snapshot and community that is drawn, row by row.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> def groups(*concentration):
    ...     confusion = cg.ConfusionSnapshot(ids=["anna"], concentration=[concentration], classes=("no", "yes"),
    ...                                      labels=("no", "yes"))
    ...     return cg.Communities(ids=["anna"], participation=[[1.0]], modularity=0.0, method="by hand",
    ...                           confusion=confusion)
    >>> track = cg.CommunityTrack(ids=["anna"], times=[1, 2], counts=[10, 20], clock=cg.Clock("number"),
    ...                           snapshots=[groups([3, 3], [3, 3]), groups([9, 1], [1, 9])], method="by hand")
    >>> axes = cg.plot.community_means_over_time(track)
    >>> axes[0].get_title(loc="left")
    '0: nearly always right'
    """
    check_track(track)
    means, names = confusion_over_time(track)
    given = None if axes is None else given_axes(axes)
    drawn = _drawn(track, numbers, None if given is None else len(given))
    width = _width(names, len(drawn)) if given is None else inches(given[0])
    titles = [_title(k, means[:, k], names, width=width) for k in drawn]
    panels = np.array(_grid(track, names, titles, width=width) if given is None else given)
    panels = panels.reshape(len(track), len(drawn))
    hues = colours(range(track.width))
    for column, k, title in zip(panels.T, drawn, titles, strict=True):
        column[0].set_title(title, loc="left", fontsize=SMALL + 1)
        for ax, matrix, size in zip(column, means[:, k], track.sizes[:, k], strict=True):
            _draw(ax, matrix, names, colour=hues[k], size=int(size))
    for row, text in zip(panels, snapshot_names(track), strict=True):
        _name_row(row, text)
    if given is None:
        some = "" if len(drawn) == track.width else f", {len(drawn)} of {track.width} communities drawn"
        figure = panels[0, 0].figure
        top = 1 - 0.1 / figure.get_figheight()
        figure.suptitle(f"Means of the communities over time{some}", x=0.01, y=top, ha="left")
    return tuple(panels.ravel())


def _drawn(track: CommunityTrack, numbers: Iterable[int] | None, n_axes: int | None) -> list[int]:
    """The numbers of the communities that are drawn, as many as there are axes for."""
    drawn = chosen_communities(track.width, numbers, most=n_axes // len(track) if n_axes else MOST_LISTED)
    if n_axes not in (None, len(drawn) * len(track)) or not drawn:
        raise ParameterError(
            f"axes= has {n_axes} axes; each of {counted(len(track), 'snapshot')} needs a row of them, one for each "
            "community that is drawn."
        )
    return drawn


def _width(names: ConfusionSnapshot, n_columns: int) -> float:
    """The width of the panels of a new figure, as their bars and the names of the classes need, in inches."""
    letters = max(len(str(name)) for name in names.classes) + 2
    width = len(names.classes) * max(BAR * (len(names.labels) + 1), letters * LETTER / 72)
    return max(NARROWEST, LEAST / n_columns, min(width, WIDEST / n_columns - GAP))


def _title(number: int, means: Array, names: ConfusionSnapshot, *, width: float) -> str:
    """The number of a community and how its members answer when it is seen last."""
    known = np.flatnonzero(np.isfinite(means).all(axis=(1, 2)))
    if not len(known):
        return str(number)
    words = behaviour(means[known[-1]], classes=names.classes, labels=names.labels)
    return fill(f"{number}: {words}", max(16, int(width * 72 / LETTER)))


def _grid(track: CommunityTrack, names: ConfusionSnapshot, titles: Sequence[str], *, width: float) -> list[Axes]:
    """Panels of a new figure, below the titles of their columns; low ones for snapshots without communities."""
    letters = max(len(str(label)) for label in names.labels) * LETTER / 72
    upright = letters > width / (len(names.classes) * (len(names.labels) + 1))
    heights = np.where(track.n_communities > 0, HEIGHT, EMPTY)
    rows = heights + np.where(track.n_communities > 0, BELOW + (letters if upright else LINE), LINE)
    above = ABOVE + LINE * max(title.count("\n") + 1 for title in titles)
    beside = BESIDE + longest_line(snapshot_names(track)) * LETTER * 1.1 / 72
    whole = beside + (width + GAP) * len(titles), above + rows.sum()
    figure = Figure(figsize=whole)
    panels = []
    for height, bottom in zip(heights, rows[::-1].cumsum()[::-1] - heights, strict=True):
        for column in range(len(titles)):
            left = beside + (width + GAP) * column
            place = (left / whole[0], bottom / whole[1], width / whole[0], height / whole[1])
            panels.append(figure.add_axes(place))
    return panels


def _draw(ax: Axes, matrix: Array, names: ConfusionSnapshot, *, colour: str, size: int) -> None:
    """The bars of a community at a time, and how many members it has; nothing if it has none."""
    if not np.isfinite(matrix).all():
        ax.set_axis_off()
        return
    own_axes(ax)
    confusion_bars(ax, matrix, colour=colour)
    name_bars(ax, names)
    ax.spines["left"].set_bounds(0, 1)
    ax.tick_params(axis="y", labelleft=False)
    ax.set_xlabel(counted(size, "volunteer"), fontsize=SMALL - 1, color=GREY)


def _name_row(row: Array, text: str) -> None:
    """What the snapshot is called, left of its panels, and the scale at the first that is not blank."""
    row[0].annotate(
        text,
        (0, 0.5),
        xytext=(-45, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=SMALL + 1,
        color=INK,
    )
    for ax in [ax for ax in row if ax.axison][:1]:
        ax.tick_params(axis="y", labelleft=True, labelsize=SMALL)
        ax.set_ylabel("probability", fontsize=SMALL)
