"""How communities change between snapshots: who moves, how modular they are, who belongs, how members answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import quantity
from crowdgraph.core.behaviour import behaviour
from crowdgraph.errors import NotAnnotatedError, ParameterError, UnknownIdError, check_choice
from crowdgraph.messages import quote, suggestion
from crowdgraph.plot._panels import (
    DIGIT_SIZE,
    LETTER_WIDTH,
    LINE_HEIGHT,
    MAX_LISTED,
    SMALL_TEXT,
    annotate,
    as_axes_list,
    check_track,
    community_numbers,
    confusion_bars,
    confusion_over_time,
    longest_line,
    name_bars,
    name_snapshots,
    non_overlapping,
    panel_grid,
    snapshot_names,
)
from crowdgraph.plot._style import (
    GREY,
    HUES,
    INK,
    colours,
    drawable_times,
    ensure_axes,
    format_time_axis,
    ink_on,
    new_figure,
    plain_text,
    volunteer_list,
    width_in_inches,
)

if TYPE_CHECKING:
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionSnapshot

__all__ = ["community_means_over_time", "flow", "modularity", "participation"]


# Flow.

# The width of a column, relative to the distance between columns.
COLUMN_WIDTH = 0.16
# The distance between columns, and the narrowest and the widest figure, in inches.
COLUMN_DISTANCE, MIN_FLOW_WIDTH, MAX_FLOW_WIDTH = 1.5, 5.2, 16.0
# The height for each community, and the lowest and the highest figure, in inches.
COMMUNITY_HEIGHT, MIN_FLOW_HEIGHT, MAX_FLOW_HEIGHT = 0.28, 5.5, 10.0
# The opacity of ribbons, and of the white that makes newcomers paler.
RIBBON_OPACITY, NEWCOMER_PALENESS = 0.55, 0.6


class _Ribbon(NamedTuple):
    """Volunteers who go from the community `source` to `target`: how many, and the ribbon's lower end on each side."""

    source: int
    target: int
    n_volunteers: int
    left: float
    right: float


@plain_text
def flow(track: CommunityTrack, *, ax: Axes | None = None) -> Axes:
    """Plot who goes from which community to which: a column of communities per snapshot, with ribbons between them.

    The height of a community in a column is the number of volunteers assigned to it; its number stands there if there
    is room. A ribbon has the colour of the community that its volunteers come from and leads to the one they go to.
    Volunteers who had no community at the snapshot before have no ribbon: they are the paler stretch at the bottom of
    their community. Snapshots without communities have no column, and ribbons pass over them.

    Parameters
    ----------
    track
        The communities over time.
    ax
        The axes to draw on; a new figure if left out.

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
    width = float(np.clip(1 + COLUMN_DISTANCE * len(track), MIN_FLOW_WIDTH, MAX_FLOW_WIDTH))
    height = float(np.clip(COMMUNITY_HEIGHT * track.n_communities_ever, MIN_FLOW_HEIGHT, MAX_FLOW_HEIGHT))
    ax = ensure_axes(ax, width=width, height=height)
    name_snapshots(ax, track)
    ax.set(ylim=(0, 1.02 * sizes.sum(axis=1).max()), ylabel="volunteers")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    snapshots = np.flatnonzero(track.n_communities).tolist()
    _draw_column(ax, snapshots[0], sizes[snapshots[0]], n_new=0 * sizes[snapshots[0]])
    for before, after in pairwise(snapshots):
        ribbons = _ribbons(assignment[before], assignment[after], track.n_communities_ever)
        _draw_ribbons(ax, ribbons, before + COLUMN_WIDTH / 2, after - COLUMN_WIDTH / 2)
        is_new = (assignment[before] < 0) & (assignment[after] >= 0)
        n_new = np.bincount(assignment[after, is_new], minlength=track.n_communities_ever)
        _draw_column(ax, after, sizes[after], n_new=n_new)
    n_volunteers = int(np.count_nonzero((assignment >= 0).any(axis=0)))
    title = f"Flow of {quantity(n_volunteers, 'volunteer')} between {quantity(track.n_communities_ever, 'community')}"
    ax.set_title(title, loc="left")
    return ax


def _ribbons(before: Array, after: Array, n_communities: int) -> list[_Ribbon]:
    """Return all ribbons between two columns: those of a community in the order of the communities on the other side.

    They lie at the top of their communities, above the newcomers on the right and above those who leave on the left.
    """
    in_both = (before >= 0) & (after >= 0)
    went = np.bincount(before[in_both] * n_communities + after[in_both], minlength=n_communities**2)
    went = went.reshape(n_communities, n_communities)
    tops = [np.bincount(side[side >= 0], minlength=n_communities).cumsum() for side in (before, after)]
    left = tops[0][:, None] - went.sum(axis=1, keepdims=True) + went.cumsum(axis=1) - went
    right = tops[1] - went.sum(axis=0) + went.cumsum(axis=0) - went
    return [
        _Ribbon(source, target, int(went[source, target]), float(left[source, target]), float(right[source, target]))
        for source, target in np.argwhere(went).tolist()
    ]


def _draw_ribbons(ax: Axes, ribbons: list[_Ribbon], start: float, end: float) -> None:
    """Draw ribbons with smooth edges, narrow ones on top of wide ones."""
    hues = colours(range(1 + max((ribbon.source for ribbon in ribbons), default=0)))
    widest_first = sorted(ribbons, key=lambda ribbon: -ribbon.n_volunteers)
    collection = PathCollection(
        [_ribbon_outline(ribbon, start, end) for ribbon in widest_first],
        facecolors=[hues[ribbon.source] for ribbon in widest_first],
        linewidths=0,
        alpha=RIBBON_OPACITY,
        zorder=1,
    )
    ax.add_collection(collection, autolim=False)


def _ribbon_outline(ribbon: _Ribbon, start: float, end: float) -> Path:
    """Return the outline of a ribbon: along its lower edge to the right, and back along the upper one."""
    middle, height = (start + end) / 2, ribbon.n_volunteers
    lower = [(start, ribbon.left), (middle, ribbon.left), (middle, ribbon.right), (end, ribbon.right)]
    upper = [(x, y + height) for x, y in reversed(lower)]
    curve = [Path.CURVE4] * 3
    return Path([*lower, *upper, lower[0]], [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY])


def _draw_column(ax: Axes, snapshot: int, sizes: Array, *, n_new: Array) -> None:
    """Draw the communities of a snapshot, each on top of the one before it, with paler stretches for newcomers."""
    hues, bottoms = colours(range(len(sizes))), sizes.cumsum() - sizes
    inhabited, joined = np.flatnonzero(sizes), np.flatnonzero(n_new)
    own: dict[str, Any] = {"color": [hues[k] for k in inhabited], "edgecolor": "white", "linewidth": 0.6, "zorder": 2}
    ax.bar(np.full(len(inhabited), snapshot), sizes[inhabited], COLUMN_WIDTH, bottoms[inhabited], **own)
    pale: dict[str, Any] = {"color": "white", "alpha": NEWCOMER_PALENESS, "zorder": 3}
    ax.bar(np.full(len(joined), snapshot), n_new[joined], COLUMN_WIDTH, bottoms[joined], **pale)
    for k in inhabited.tolist():
        _number_community(ax, snapshot, k, bottoms[k], sizes[k], n_new=n_new[k])
        _count_newcomers(ax, snapshot, bottoms[k], n_new=n_new[k])
    if len(joined):
        ax.set_xlabel("paler: new since the snapshot before", fontsize="small", color=GREY)


def _number_community(ax: Axes, snapshot: int, number: int, bottom: int, size: int, *, n_new: int) -> None:
    """Write the number of a community above its newcomers or, if there is no room, on them."""
    volunteer_height, distance = _flow_scale(ax)
    on_newcomers = (size - n_new) * volunteer_height < SMALL_TEXT
    low, high = (bottom, bottom + n_new) if on_newcomers else (bottom + n_new, bottom + size)
    fits_in_width = COLUMN_WIDTH * distance >= SMALL_TEXT * DIGIT_SIZE[0] * len(str(number))
    if (high - low) * volunteer_height >= SMALL_TEXT and fits_in_width:
        ax.text(
            snapshot,
            (low + high) / 2,
            str(number),
            ha="center",
            va="center_baseline",
            fontsize=SMALL_TEXT,
            color=INK if on_newcomers else ink_on(colours(range(number + 1))[number]),
            zorder=4,
        )


def _count_newcomers(ax: Axes, snapshot: int, bottom: int, *, n_new: int) -> None:
    """Write how many newcomers a community has beside them, if there is room."""
    volunteer_height, distance = _flow_scale(ax)
    text = f"{n_new:,} new"
    if n_new * volunteer_height >= LINE_HEIGHT and (1 - COLUMN_WIDTH) / 2 * distance >= LETTER_WIDTH * len(text):
        point = snapshot - COLUMN_WIDTH / 2, bottom + n_new / 2
        annotate(ax, text, point, offset=(-2, 0), ha="right", fontsize=SMALL_TEXT - 1, zorder=4)


def _flow_scale(ax: Axes) -> tuple[float, float]:
    """Return the height of a volunteer and the distance between columns, in points."""
    low, high = ax.get_ylim()
    left, right = ax.get_xlim()
    return ax.bbox.height / ax.figure.dpi * 72 / (high - low), width_in_inches(ax) * 72 / (right - left)


# Modularity.

# The size of the numbers, and the distance of their centres from the points, in points.
NUMBER_SIZE, NUMBER_DISTANCE = SMALL_TEXT + 1, 10.0
# The smallest range of modularity that the vertical axis shows.
MIN_MODULARITY_RANGE = 0.1


@plain_text
def modularity(
    track: CommunityTrack, *, against: Literal["responses", "time"] = "responses", ax: Axes | None = None
) -> Axes:
    """Plot the modularity of each snapshot as a line, with the number of communities at every point.

    Where points are too close to each other, some of the numbers are left out. The line is broken where there are no
    communities.

    Parameters
    ----------
    track
        The communities over time.
    against
        ``"responses"`` for the number of responses so far, or ``"time"``.
    ax
        The axes to draw on; a new figure if left out.

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
    if (np.isnan(track.modularity) & (track.n_communities > 0)).any():
        raise NotAnnotatedError(
            "The modularity of some communities is not known, since they were brought in without a network; pass "
            "network= to Communities.from_labels."
        )
    ax = ensure_axes(ax)
    x = track.counts if against == "responses" else drawable_times(track.clock, track.times)
    ax.plot(x, track.modularity, color=HUES[0], linewidth=1.6, marker="o", markersize=5)
    if against == "time":
        format_time_axis(ax, track.clock)
    else:
        ax.set_xlabel("responses so far")
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylabel("modularity")
    ax.margins(x=0.04, y=0.15)
    _widen_range(ax, track.modularity)
    _write_counts(ax, track, x)
    ax.set_title("Modularity, and the number of communities", loc="left")
    return ax


def _widen_range(ax: Axes, values: Array) -> None:
    """Show a range of at least `MIN_MODULARITY_RANGE`, so that differences look no larger than they are."""
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    if np.nanmax(values) - np.nanmin(values) < MIN_MODULARITY_RANGE:
        ax.set_ylim(middle - 0.6 * MIN_MODULARITY_RANGE, middle + 0.6 * MIN_MODULARITY_RANGE)


def _write_counts(ax: Axes, track: CommunityTrack, x: Array) -> None:
    """Write the number of communities at each point, where it covers no other, and "none" where there are none."""
    ax.autoscale_view()
    x = ax.convert_xunits(x)  # type: ignore[no-untyped-call]
    points, counts = np.column_stack([x, track.modularity]), track.n_communities
    snapshots = np.flatnonzero(counts)
    shifts = NUMBER_DISTANCE * np.where(_is_valley(points[snapshots, 1]), -1, 1)
    centres = ax.transData.transform(points[snapshots]) / ax.figure.dpi * 72 + np.column_stack([0 * shifts, shifts])
    for k in non_overlapping(centres, [str(count) for count in counts[snapshots]], size=NUMBER_SIZE):
        snapshot = snapshots[k]
        annotate(ax, str(counts[snapshot]), points[snapshot], offset=(0, shifts[k]), fontsize=NUMBER_SIZE)
    for snapshot in np.flatnonzero(counts == 0):
        at_bottom: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "offset": (0, NUMBER_DISTANCE)}
        annotate(ax, "none", (points[snapshot, 0], 0), color=GREY, fontsize=NUMBER_SIZE, **at_bottom)


def _is_valley(heights: Array) -> Array:
    """Return whether each point lies below the middle of its neighbours, so that there is more room below it."""
    before, after = (np.concatenate(parts) for parts in ((heights[:1], heights[:-1]), (heights[1:], heights[-1:])))
    return np.asarray(before + after > 2 * heights)


# Participation.

# The width of the bars of a snapshot together, relative to the distance between snapshots.
SNAPSHOT_WIDTH = 0.8
# The width of a bar, of the narrowest and the widest panel and of a row, and the height of a panel, in inches.
PARTICIPATION_BAR_WIDTH, MIN_PARTICIPATION_WIDTH, MAX_PARTICIPATION_WIDTH = 0.08, 3.2, 12.0
MAX_ROW_WIDTH, PARTICIPATION_HEIGHT = 13.5, 1.9
# Bars lower than this are not numbered.
MIN_NUMBERED_SHARE = 0.1


@plain_text
def participation(
    track: CommunityTrack, volunteers: Iterable[Hashable], *, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Plot how much volunteers participate in each community at each snapshot: a panel of bars per volunteer.

    Bars have the colours of their communities and stand in the order of their numbers. Up to twelve communities are
    listed in a legend; if there are more, the numbers stand on the bars. Where a volunteer has no community the panel
    says so: "not yet" before the first one, "none" later.

    Parameters
    ----------
    track
        The communities over time.
    volunteers
        The volunteers to plot.
    axes
        The axes to draw on, one per volunteer; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One per volunteer.

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
    ids = _check_volunteers(track, volunteers)
    panels = _participation_panels(track, len(ids)) if axes is None else as_axes_list(axes)
    if len(panels) != len(ids):
        raise ParameterError(f"axes= has {len(panels)} axes; {quantity(len(ids), 'volunteer')} need one each.")
    for ax, volunteer in zip(panels, ids, strict=True):
        ensure_axes(ax)
        ax.set(ylim=(0, 1), yticks=[0, 0.5, 1])
        name_snapshots(ax, track)
        _draw_participation(ax, track.of(volunteer))
        # Leave room for the numbers on the highest bars.
        pad = SMALL_TEXT + 4 if track.n_communities_ever > MAX_LISTED else None
        ax.set_title(str(volunteer), loc="left", fontsize=SMALL_TEXT + 2, pad=pad)
    _community_legend(panels[-1], track, beside=axes is None)
    return tuple(panels)


def _check_volunteers(track: CommunityTrack, volunteers: Iterable[Hashable]) -> list[Hashable]:
    """Return the volunteers as a list; raise unless all of them have a community at some snapshot."""
    ids = volunteer_list(volunteers, if_empty="such as track.ids[:4]")
    unknown = [volunteer for volunteer in ids if volunteer not in track.table]
    if unknown:
        raise UnknownIdError(
            f"There is no volunteer {quote(unknown)} in this track of {quantity(len(track.ids), 'volunteer')}; see "
            f"track.ids.{suggestion(unknown[0], track.ids.tolist())}"
        )
    homeless = [volunteer for volunteer in ids if not track.of(volunteer).any()]
    if homeless:
        raise ParameterError(
            f"{quantity(len(homeless), 'volunteer')} named in volunteers= had no community at any snapshot: "
            f"{quote(homeless)}. Leave them out of volunteers=."
        )
    return ids


def _participation_panels(track: CommunityTrack, n_panels: int) -> list[Any]:
    """Return the panels of a new figure, as wide as their bars and the names of the snapshots need."""
    bars_width = PARTICIPATION_BAR_WIDTH * track.n_communities_ever / SNAPSHOT_WIDTH
    name_width = (longest_line(snapshot_names(track)) + 2) * SMALL_TEXT * DIGIT_SIZE[0] / 72
    panel_width = 0.5 + max(bars_width, name_width) * len(track)
    width = float(np.clip(panel_width, MIN_PARTICIPATION_WIDTH, MAX_PARTICIPATION_WIDTH))
    panels = panel_grid(
        n_panels,
        min(n_panels, max(1, int(MAX_ROW_WIDTH / width))),
        size=(width, PARTICIPATION_HEIGHT),
        extra=(0.8, 0.4),
        ylabel="participation",
        sharex=True,
        layout=ConstrainedLayoutEngine(wspace=0.05),
    )
    for ax in panels:
        ax.tick_params(axis="x", labelbottom=True)
    title = f"Participation of {quantity(n_panels, 'volunteer')}"
    panels[0].figure.suptitle(title, x=0.01, horizontalalignment="left")
    return panels


def _draw_participation(ax: Axes, shares: Array) -> None:
    """Draw the bars of each snapshot, for shares of shape (T, K), and write words where there are none."""
    n_snapshots, n_communities = shares.shape
    width = SNAPSHOT_WIDTH / n_communities
    x = np.arange(n_snapshots)[:, None] + (np.arange(n_communities) - (n_communities - 1) / 2) * width
    has_community = np.asarray(shares.any(axis=1))
    ax.vlines(np.arange(1, n_snapshots) - 0.5, 0, 1, color=GREY, alpha=0.3, linewidth=0.6)
    for k, hue in enumerate(colours(range(n_communities))):
        ax.bar(x[has_community, k], shares[has_community, k], width=0.94 * width, color=hue)
    upright = width_in_inches(ax) * 72 / n_snapshots < len("not yet") * LETTER_WIDTH
    style = {"ha": "center", "va": "bottom", "fontsize": SMALL_TEXT - 1, "color": GREY, "rotation": 90 * upright}
    for snapshot in np.flatnonzero(~has_community).tolist():
        ax.text(snapshot, 0.03, "none" if has_community[:snapshot].any() else "not yet", style)
    if n_communities > MAX_LISTED:
        _number_bars(ax, x, shares)


def _number_bars(ax: Axes, x: Array, shares: Array) -> None:
    """Write the numbers of communities on their bars, highest first, where there is room."""
    order = np.argsort(-shares, axis=None, kind="stable")
    order = order[shares.ravel()[order] >= MIN_NUMBERED_SHARE]
    points, numbers = np.column_stack([x.ravel()[order], shares.ravel()[order]]), order % shares.shape[1]
    scale = np.array([width_in_inches(ax) * 72 / len(shares), ax.bbox.height / ax.figure.dpi * 72])
    for bar in non_overlapping(points * scale, [str(k) for k in numbers], size=SMALL_TEXT):
        annotate(ax, str(numbers[bar]), points[bar], offset=(0, 1), va="bottom", annotation_clip=False)


def _community_legend(ax: Axes, track: CommunityTrack, *, beside: bool) -> None:
    """Add a legend of the communities' colours, unless they are many."""
    if track.n_communities_ever > MAX_LISTED:
        return
    handles = [Patch(color=hue, label=str(k)) for k, hue in enumerate(colours(range(track.n_communities_ever)))]
    options = {"handles": handles, "frameon": False, "fontsize": "small", "title": "community", "alignment": "left"}
    if beside:
        ax.figure.legend(loc="outside right upper", **options)
    else:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), **options)


# Means.

# The width of a bar with its share of the gaps, of the narrowest panel and of the gap between panels, in inches.
MEAN_BAR_WIDTH, MIN_MEAN_WIDTH, MEAN_GAP = 0.17, 1.4, 0.25
# All panels together are at most this wide, unless they are the narrowest; and at least, for the figure's title.
MAX_MEANS_WIDTH, MIN_MEANS_WIDTH = 20.0, 3.0
# The height of a panel, of one for a snapshot without communities, and of a line of text, in inches.
MEAN_HEIGHT, EMPTY_HEIGHT, TEXT_HEIGHT = 1.0, 0.35, 0.16
# The space between the names of the snapshots and the panels, for the figure's title, and below labels, in inches.
SPACE_BESIDE, SPACE_ABOVE, SPACE_BELOW = 0.75, 0.45, 0.35


@plain_text
def community_means_over_time(
    track: CommunityTrack, *, numbers: Iterable[int] | None = None, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Plot how the members of each community answer at each snapshot: one row per snapshot, one column per community.

    Each panel has bars for the probability of each label, for each true class: the mean confusion of the members, as in
    the paper. The panel of a community without members at that time is left blank. Above a column stands the
    community's number, with words for how its members answer at the last snapshot that has any.

    Parameters
    ----------
    track
        The communities over time, followed with their confusion matrices.
    numbers
        The communities to plot. If left out, all, but at most twelve, or as many as there are `axes` for.
    axes
        The axes to draw on, row by row, one per snapshot and plotted community; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One per snapshot and plotted community, row by row.

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
    '0: mostly right'
    """
    check_track(track)
    means, confusion = confusion_over_time(track)
    panels = None if axes is None else as_axes_list(axes)
    numbers = _mean_numbers(track, numbers, None if panels is None else len(panels))
    width = _mean_width(confusion, len(numbers)) if panels is None else width_in_inches(panels[0])
    titles = [_mean_title(k, means[:, k], confusion, width=width) for k in numbers]
    if panels is None:
        panels = _mean_panels(track, confusion, titles, width=width)
        n_drawn, n_ever = len(numbers), track.n_communities_ever
        some = "" if n_drawn == n_ever else f", {n_drawn} of {n_ever} communities drawn"
        figure = panels[0].figure
        top = 1 - 0.1 / figure.get_figheight()
        figure.suptitle(f"Means of the communities over time{some}", x=0.01, y=top, ha="left")
    grid = np.array(panels).reshape(len(track), len(numbers))
    hues = colours(range(track.n_communities_ever))
    for column, k, title in zip(grid.T, numbers, titles, strict=True):
        column[0].set_title(title, loc="left", fontsize=SMALL_TEXT + 1)
        for ax, matrix, size in zip(column, means[:, k], track.sizes[:, k], strict=True):
            _draw_mean(ax, matrix, confusion, colour=hues[k], size=int(size))
    for row, text in zip(grid, snapshot_names(track), strict=True):
        _name_row(row, text)
    return tuple(grid.ravel())


def _mean_numbers(track: CommunityTrack, numbers: Iterable[int] | None, n_axes: int | None) -> list[int]:
    """Return the numbers of the communities to plot, as many as there are axes for."""
    numbers = community_numbers(track.n_communities_ever, numbers, most=n_axes // len(track) if n_axes else MAX_LISTED)
    if n_axes not in (None, len(numbers) * len(track)) or not numbers:
        raise ParameterError(
            f"axes= has {n_axes} axes; each of {quantity(len(track), 'snapshot')} needs a row of them, one for each "
            "community that is drawn."
        )
    return numbers


def _mean_width(confusion: ConfusionSnapshot, n_columns: int) -> float:
    """Return the width of a panel of a new figure, as its bars and the names of the classes need, in inches."""
    n_letters = max(len(str(name)) for name in confusion.classes) + 2
    bars_width, name_width = MEAN_BAR_WIDTH * (len(confusion.labels) + 1), n_letters * LETTER_WIDTH / 72
    width = len(confusion.classes) * max(bars_width, name_width)
    return max(MIN_MEAN_WIDTH, MIN_MEANS_WIDTH / n_columns, min(width, MAX_MEANS_WIDTH / n_columns - MEAN_GAP))


def _mean_title(number: int, means: Array, confusion: ConfusionSnapshot, *, width: float) -> str:
    """Return the number of a community, and how its members answer at the last snapshot that has any."""
    snapshots = np.flatnonzero(np.isfinite(means).all(axis=(1, 2)))
    if not len(snapshots):
        return str(number)
    words = behaviour(means[snapshots[-1]], classes=confusion.classes, labels=confusion.labels)
    return fill(f"{number}: {words}", max(16, int(width * 72 / LETTER_WIDTH)))


def _mean_panels(
    track: CommunityTrack, confusion: ConfusionSnapshot, titles: Sequence[str], *, width: float
) -> list[Any]:
    """Return the panels of a new figure, below the titles of their columns; low ones where there are no communities."""
    label_width = max(len(str(label)) for label in confusion.labels) * LETTER_WIDTH / 72
    upright = label_width > width / (len(confusion.classes) * (len(confusion.labels) + 1))
    is_empty = track.n_communities == 0
    heights = np.where(is_empty, EMPTY_HEIGHT, MEAN_HEIGHT)
    below = np.where(is_empty, TEXT_HEIGHT, SPACE_BELOW + (label_width if upright else TEXT_HEIGHT))
    rows = heights + below
    above = SPACE_ABOVE + TEXT_HEIGHT * max(title.count("\n") + 1 for title in titles)
    beside = SPACE_BESIDE + longest_line(snapshot_names(track)) * LETTER_WIDTH * 1.1 / 72
    figure_width, figure_height = beside + (width + MEAN_GAP) * len(titles), above + rows.sum()
    figure = new_figure(figsize=(figure_width, figure_height))
    panels = []
    for height, bottom in zip(heights, rows[::-1].cumsum()[::-1] - heights, strict=True):
        for column in range(len(titles)):
            left = beside + (width + MEAN_GAP) * column
            panels.append(
                figure.add_axes(
                    (left / figure_width, bottom / figure_height, width / figure_width, height / figure_height)
                )
            )
    return panels


def _draw_mean(ax: Axes, matrix: Array, confusion: ConfusionSnapshot, *, colour: str, size: int) -> None:
    """Draw the bars of a community at a snapshot, and write how many members it has; nothing if it has none."""
    if not np.isfinite(matrix).all():
        ax.set_axis_off()
        return
    ensure_axes(ax)
    confusion_bars(ax, matrix, colour=colour)
    name_bars(ax, confusion)
    ax.spines["left"].set_bounds(0, 1)
    ax.tick_params(axis="y", labelleft=False)
    ax.set_xlabel(quantity(size, "volunteer"), fontsize=SMALL_TEXT - 1, color=GREY)


def _name_row(row: Array, text: str) -> None:
    """Write the name of the snapshot left of its panels, and the scale at the first panel that is not blank."""
    row[0].annotate(
        text,
        (0, 0.5),
        xytext=(-45, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=SMALL_TEXT + 1,
        color=INK,
    )
    for ax in [ax for ax in row if ax.axison][:1]:
        ax.tick_params(axis="y", labelleft=True, labelsize=SMALL_TEXT)
        ax.set_ylabel("probability", fontsize=SMALL_TEXT)
