"""How the members of each community answer, from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from math import ceil
from textwrap import fill
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import behaviour
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.errors import ParameterError, UnknownIdError, check_choice, quote, suggestion
from crowdgraph.plot._panels import (
    DIGIT,
    LETTER,
    LINE,
    MOST_LISTED,
    SMALL,
    as_axes_list,
    check_track,
    chosen_communities,
    confusion_bars,
    confusion_over_time,
    counted_communities,
    longest_line,
    name_bars,
    name_snapshots,
    non_overlapping,
    snapshot_names,
    width_in_inches,
)
from crowdgraph.plot._style import GREY, HUES, INK, colours, counted, ink_on, new_or_given_axes, time_axis

__all__ = ["community_means_over_time", "flow", "modularity", "participation"]

# How wide a column is, relative to the way from one to the next.
COLUMN = 0.16
# The way from a column to the next, the width of the narrowest and of the widest picture, in inches.
STEP, FLOW_MIN_WIDTH, FLOW_MAX_WIDTH = 1.5, 5.2, 16.0
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
    width = float(np.clip(1 + STEP * len(track), FLOW_MIN_WIDTH, FLOW_MAX_WIDTH))
    ax = new_or_given_axes(ax, width=width, height=float(np.clip(EACH * track.n_communities_ever, LOWEST, HIGHEST)))
    name_snapshots(ax, track)
    ax.set(ylim=(0, 1.02 * sizes.sum(axis=1).max()), ylabel="volunteers")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    known = np.flatnonzero(track.n_communities).tolist()
    _draw_column(ax, known[0], sizes[known[0]], new=0 * sizes[known[0]])
    for before, after in pairwise(known):
        ribbons = _ribbons(assignment[before], assignment[after], track.n_communities_ever)
        _draw_ribbons(ax, ribbons, before + COLUMN / 2, after - COLUMN / 2)
        joined = (assignment[before] < 0) & (assignment[after] >= 0)
        new = np.bincount(assignment[after, joined], minlength=track.n_communities_ever)
        _draw_column(ax, after, sizes[after], new=new)
    n_volunteers = int(np.count_nonzero((assignment >= 0).any(axis=0)))
    title = f"Flow of {counted(n_volunteers, 'volunteer')} between {counted_communities(track.n_communities_ever)}"
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
        _number_block(ax, snapshot, k, bottoms[k], sizes[k], new=new[k])
        _count(ax, snapshot, bottoms[k], new=new[k])
    if len(joined):
        ax.set_xlabel("paler: new since the snapshot before", fontsize="small", color=GREY)


def _number_block(ax: Axes, snapshot: int, number: int, bottom: int, size: int, *, new: int) -> None:
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
    return ax.bbox.height / ax.figure.dpi * 72 / (high - low), width_in_inches(ax) * 72 / (right - left)


# The size of the numbers, and how far their middle is from the points, in points.
COUNT_SIZE, SHIFT = SMALL + 1, 10.0
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
    ax = new_or_given_axes(ax)
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
    _number_points(ax, track, x)
    ax.set_title("Modularity, and the number of communities", loc="left")
    return ax


def _widen(ax: Axes, values: Array) -> None:
    """Show at least a tenth of modularity, so that differences look no larger than they are."""
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if np.nanmax(values) - np.nanmin(values) < LEAST_SPAN:
        ax.set_ylim(middle - 0.6 * LEAST_SPAN, middle + 0.6 * LEAST_SPAN)


def _number_points(ax: Axes, track: CommunityTrack, x: Array) -> None:
    """The number of communities at each point, where it covers no other, and words where there are none."""
    ax.autoscale_view()
    x = ax.convert_xunits(x)  # type: ignore[no-untyped-call]
    points, numbers = np.column_stack([x, track.modularity]), track.n_communities
    known = np.flatnonzero(numbers)
    shifts = SHIFT * np.where(_is_valley(points[known, 1]), -1, 1)
    middles = ax.transData.transform(points[known]) / ax.figure.dpi * 72 + np.column_stack([0 * shifts, shifts])
    text: dict[str, Any] = {
        "textcoords": "offset points",
        "ha": "center",
        "va": "center_baseline",
        "fontsize": COUNT_SIZE,
    }
    text["path_effects"] = [withStroke(linewidth=2, foreground="white")]
    for place in non_overlapping(middles, [str(number) for number in numbers[known]], points=COUNT_SIZE):
        snapshot = known[place]
        ax.annotate(str(numbers[snapshot]), points[snapshot], xytext=(0, shifts[place]), color=INK, **text)
    for snapshot in np.flatnonzero(numbers == 0):
        spot, bottom = (points[snapshot, 0], 0), ax.get_xaxis_transform()
        ax.annotate("none", spot, xycoords=bottom, xytext=(0, SHIFT), color=GREY, **text)


def _is_valley(heights: Array) -> Array:
    """Whether the line comes from above and goes up again, so that there is more room below a point."""
    before, after = (np.concatenate(parts) for parts in ((heights[:1], heights[:-1]), (heights[1:], heights[-1:])))
    return np.asarray(before + after > 2 * heights)


# How wide the bars of a snapshot are together, relative to the way from one snapshot to the next.
GROUP = 0.8
# The width of a bar, of the narrowest and the widest panel and of a row, and the height of a panel, in inches.
PARTICIPATION_BAR, PARTICIPATION_MIN_WIDTH, PARTICIPATION_MAX_WIDTH, PARTICIPATION_ROW, PARTICIPATION_HEIGHT = (
    0.08,
    3.2,
    12.0,
    13.5,
    1.9,
)
# Lower bars than this are not numbered.
MIN_NUMBERED_SHARE = 0.1


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
    chosen = _check_volunteers(track, volunteers)
    panels = _participation_panels(track, len(chosen)) if axes is None else as_axes_list(axes)
    if len(panels) != len(chosen):
        raise ParameterError(f"axes= has {len(panels)} axes; {counted(len(chosen), 'volunteer')} need one each.")
    for ax, volunteer in zip(panels, chosen, strict=True):
        new_or_given_axes(ax)
        ax.set(ylim=(0, 1), yticks=[0, 0.5, 1])
        name_snapshots(ax, track)
        _draw_participation(ax, track.of(volunteer))
        # Above the numbers on the highest bars.
        pad = SMALL + 4 if track.n_communities_ever > MOST_LISTED else None
        ax.set_title(str(volunteer), loc="left", fontsize=SMALL + 2, pad=pad)
    _community_legend(panels[-1], track, beside=axes is None)
    return tuple(panels)


def _check_volunteers(track: CommunityTrack, volunteers: Iterable[Hashable]) -> list[Hashable]:
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
    never = [one for one in chosen if not track.of(one).any()]
    if never:
        raise ParameterError(
            f"{counted(len(never), 'volunteer')} of those named without a community at any snapshot: {quote(never)}. "
            "Leave them out of volunteers=."
        )
    return chosen


def _participation_panels(track: CommunityTrack, n_panels: int) -> list[Axes]:
    """Panels of a new figure, as wide as their bars and the names of the snapshots need."""
    step = max(
        PARTICIPATION_BAR * track.n_communities_ever / GROUP,
        (longest_line(snapshot_names(track)) + 2) * SMALL * DIGIT[0] / 72,
    )
    width = float(np.clip(0.5 + step * len(track), PARTICIPATION_MIN_WIDTH, PARTICIPATION_MAX_WIDTH))
    n_columns = min(n_panels, max(1, int(PARTICIPATION_ROW / width)))
    n_rows = ceil(n_panels / n_columns)
    figure = Figure(
        figsize=(width * n_columns + 0.8, PARTICIPATION_HEIGHT * n_rows + 0.4),
        layout=ConstrainedLayoutEngine(wspace=0.05),
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


def _draw_participation(ax: Axes, shares: Array) -> None:
    """Bars for each snapshot, of shape (T, K), and words where there are none."""
    n_snapshots, n_communities = shares.shape
    width = GROUP / n_communities
    places = np.arange(n_snapshots)[:, None] + (np.arange(n_communities) - (n_communities - 1) / 2) * width
    known = np.asarray(shares.any(axis=1))
    ax.vlines(np.arange(1, n_snapshots) - 0.5, 0, 1, color=GREY, alpha=0.3, linewidth=0.6)
    for k, hue in enumerate(colours(range(n_communities))):
        ax.bar(places[known, k], shares[known, k], width=0.94 * width, color=hue)
    upright = width_in_inches(ax) * 72 / n_snapshots < len("not yet") * LETTER
    words = {"ha": "center", "va": "bottom", "fontsize": SMALL - 1, "color": GREY, "rotation": 90 if upright else 0}
    for snapshot in np.flatnonzero(~known).tolist():
        ax.text(snapshot, 0.03, "none" if known[:snapshot].any() else "not yet", words)
    if n_communities > MOST_LISTED:
        _number_bars(ax, places, shares)


def _number_bars(ax: Axes, places: Array, shares: Array) -> None:
    """The numbers of communities on their bars, where there is room; the highest first."""
    order = np.argsort(-shares, axis=None, kind="stable")
    order = order[shares.ravel()[order] >= MIN_NUMBERED_SHARE]
    x, y, numbers = places.ravel()[order], shares.ravel()[order], order % shares.shape[1]
    halo = [withStroke(linewidth=2, foreground="white")]
    room = np.array([width_in_inches(ax) * 72 / len(shares), ax.bbox.height / ax.figure.dpi * 72])
    for place in non_overlapping(np.column_stack([x, y]) * room, [str(k) for k in numbers], points=SMALL):
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


def _community_legend(ax: Axes, track: CommunityTrack, *, beside: bool) -> None:
    """The colours of the communities, if they are few."""
    if track.n_communities_ever > MOST_LISTED:
        return
    handles = [Patch(color=hue, label=str(k)) for k, hue in enumerate(colours(range(track.n_communities_ever)))]
    options = {"handles": handles, "frameon": False, "fontsize": "small", "title": "community", "alignment": "left"}
    if beside:
        ax.figure.legend(loc="outside right upper", **options)
    else:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), **options)


# The width of a bar with its share of the gaps, of the smallest panel and between panels, in inches.
MEANS_BAR, MEANS_MIN_WIDTH, GAP = 0.17, 1.4, 0.25
# All panels together are not wider than this, unless the smallest ones are; and not narrower, for the figure's title.
MEANS_MAX_TOTAL, MEANS_MIN_TOTAL = 20.0, 3.0
# The height of a panel, of one for a snapshot without communities, and of a line of text, in inches.
MEANS_HEIGHT, EMPTY, MEANS_LINE = 1.0, 0.35, 0.16
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
    given = None if axes is None else as_axes_list(axes)
    drawn = _drawn(track, numbers, None if given is None else len(given))
    width = _width(names, len(drawn)) if given is None else width_in_inches(given[0])
    titles = [_title(k, means[:, k], names, width=width) for k in drawn]
    panels = np.array(_means_panels(track, names, titles, width=width) if given is None else given)
    panels = panels.reshape(len(track), len(drawn))
    hues = colours(range(track.n_communities_ever))
    for column, k, title in zip(panels.T, drawn, titles, strict=True):
        column[0].set_title(title, loc="left", fontsize=SMALL + 1)
        for ax, matrix, size in zip(column, means[:, k], track.sizes[:, k], strict=True):
            _draw_mean(ax, matrix, names, colour=hues[k], size=int(size))
    for row, text in zip(panels, snapshot_names(track), strict=True):
        _name_row(row, text)
    if given is None:
        some = (
            ""
            if len(drawn) == track.n_communities_ever
            else f", {len(drawn)} of {track.n_communities_ever} communities drawn"
        )
        figure = panels[0, 0].figure
        top = 1 - 0.1 / figure.get_figheight()
        figure.suptitle(f"Means of the communities over time{some}", x=0.01, y=top, ha="left")
    return tuple(panels.ravel())


def _drawn(track: CommunityTrack, numbers: Iterable[int] | None, n_axes: int | None) -> list[int]:
    """The numbers of the communities that are drawn, as many as there are axes for."""
    drawn = chosen_communities(track.n_communities_ever, numbers, most=n_axes // len(track) if n_axes else MOST_LISTED)
    if n_axes not in (None, len(drawn) * len(track)) or not drawn:
        raise ParameterError(
            f"axes= has {n_axes} axes; each of {counted(len(track), 'snapshot')} needs a row of them, one for each "
            "community that is drawn."
        )
    return drawn


def _width(names: ConfusionSnapshot, n_columns: int) -> float:
    """The width of the panels of a new figure, as their bars and the names of the classes need, in inches."""
    letters = max(len(str(name)) for name in names.classes) + 2
    width = len(names.classes) * max(MEANS_BAR * (len(names.labels) + 1), letters * LETTER / 72)
    return max(MEANS_MIN_WIDTH, MEANS_MIN_TOTAL / n_columns, min(width, MEANS_MAX_TOTAL / n_columns - GAP))


def _title(number: int, means: Array, names: ConfusionSnapshot, *, width: float) -> str:
    """The number of a community and how its members answer when it is seen last."""
    known = np.flatnonzero(np.isfinite(means).all(axis=(1, 2)))
    if not len(known):
        return str(number)
    words = behaviour(means[known[-1]], classes=names.classes, labels=names.labels)
    return fill(f"{number}: {words}", max(16, int(width * 72 / LETTER)))


def _means_panels(
    track: CommunityTrack, names: ConfusionSnapshot, titles: Sequence[str], *, width: float
) -> list[Axes]:
    """Panels of a new figure, below the titles of their columns; low ones for snapshots without communities."""
    letters = max(len(str(label)) for label in names.labels) * LETTER / 72
    upright = letters > width / (len(names.classes) * (len(names.labels) + 1))
    heights = np.where(track.n_communities > 0, MEANS_HEIGHT, EMPTY)
    rows = heights + np.where(track.n_communities > 0, BELOW + (letters if upright else MEANS_LINE), MEANS_LINE)
    above = ABOVE + MEANS_LINE * max(title.count("\n") + 1 for title in titles)
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


def _draw_mean(ax: Axes, matrix: Array, names: ConfusionSnapshot, *, colour: str, size: int) -> None:
    """The bars of a community at a time, and how many members it has; nothing if it has none."""
    if not np.isfinite(matrix).all():
        ax.set_axis_off()
        return
    new_or_given_axes(ax)
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
