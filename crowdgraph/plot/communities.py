"""How the members of communities answer, who belongs to which, and which communities are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, Bbox, ScaledTranslation

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool
from crowdgraph.core._text import quantity
from crowdgraph.core.behaviour import behaviour
from crowdgraph.errors import ParameterError
from crowdgraph.plot._panels import (
    LETTER_WIDTH,
    MAX_LISTED,
    SMALL_TEXT,
    as_axes_list,
    check_communities,
    community_name,
    community_numbers,
    confusion_bars,
    confusion_of,
    name_bars,
    panel_grid,
)
from crowdgraph.plot._style import GREY, PALE, SHARES, colours, ensure_axes, plain_text, width_in_inches

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
    from crowdgraph.core.fit import ModelFit

__all__ = ["participation_matrix", "prototypes", "relevance"]

# Prototypes, in inches: the width of a bar with its share of the gaps, of a panel's margins, of the narrowest panel and
# of a whole row, and the height of a panel.
BAR_WIDTH, MARGIN_WIDTH, MIN_PANEL_WIDTH, MAX_ROW_WIDTH, PANEL_HEIGHT = 0.24, 0.5, 2.7, 13.5, 2.6
# The smallest distances between the names of groups of rows and between those of columns of the matrix, in points.
MIN_ROW_DISTANCE, MIN_COLUMN_DISTANCE = 9.0, 15.0


@plain_text
def prototypes(
    communities: Communities,
    fit: ModelFit | ConfusionTrack | ConfusionSnapshot | None = None,
    *,
    mean: bool = False,
    numbers: Iterable[int] | None = None,
    level: float = 0.9,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Plot how the members of each community answer: bars for the probability of each label, for each true class.

    Each panel shows the confusion matrix of a community's most central volunteer, as in the paper, with lines for its
    uncertainty; or the mean of all members. Its title gives the community's number and size and describes in words how
    such a volunteer answers.

    Parameters
    ----------
    communities
        The communities.
    fit
        The confusion matrices: a fit, its confusion, or its confusion at a time. If left out, those from which the
        communities were detected.
    mean
        Plot the mean confusion of each community, weighted by participation, instead of the most central volunteer's.
    numbers
        The communities to plot. If left out, all, but at most twelve, or as many as there are `axes`.
    level
        The probability that the most central volunteer's probability of a label lies on its line.
    axes
        The axes to draw on, one per plotted community; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One per plotted community.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> groups = cg.Leiden().detect(cg.networks.task_cooccurrence(graph), seed=0)
    >>> axes = cg.plot.prototypes(groups, cg.IBCC().fit(graph))
    >>> axes[0].get_title(loc="left").splitlines()
    ['0: 20 volunteers', 'mostly right']
    """
    check_communities(communities)
    check_bool("mean", mean)
    snapshot = confusion_of(communities, fit)
    panels = None if axes is None else as_axes_list(axes)
    numbers = _prototype_numbers(communities, numbers, None if panels is None else len(panels))
    matrices, intervals = (
        (communities.mean_confusion(snapshot), None) if mean else _central_confusion(communities, snapshot, level)
    )
    if panels is None:
        panels = _prototype_panels(snapshot, len(numbers))
        what = "Means of the communities" if mean else "Most central volunteers of the communities"
        some = "" if len(numbers) == len(communities) else f", {len(numbers)} of {len(communities)} communities drawn"
        panels[0].figure.suptitle(f"{what}{some}", x=0.01, horizontalalignment="left")
    hues = colours(range(len(communities)))
    for ax, k in zip(panels, numbers, strict=True):
        ensure_axes(ax)
        confusion_bars(ax, matrices[k], colour=hues[k], interval=None if intervals is None else intervals[:, k])
        name_bars(ax, snapshot)
        title = [community_name(k, communities.sizes[k])]
        if np.isfinite(matrices[k]).all():
            words = behaviour(matrices[k], classes=snapshot.classes, labels=snapshot.labels)
            title.append(fill(words, max(16, int(width_in_inches(ax) * 72 / LETTER_WIDTH))))
        ax.set_title("\n".join(title), loc="left", fontsize=SMALL_TEXT + 1)
    return tuple(panels)


def _prototype_numbers(communities: Communities, numbers: Iterable[int] | None, n_axes: int | None) -> list[int]:
    """Return the numbers of the communities to plot, as many as there are axes."""
    numbers = community_numbers(len(communities), numbers, most=n_axes or MAX_LISTED)
    if n_axes not in (None, len(numbers)):
        raise ParameterError(f"axes= has {n_axes} axes; {len(numbers)} communities are drawn, each on its own.")
    return numbers


def _central_confusion(communities: Communities, snapshot: ConfusionSnapshot, level: float) -> tuple[Array, Array]:
    """Return the confusion of each community's most central volunteer, and its interval; NaN where there is nobody."""
    shape = (len(communities), len(snapshot.classes), len(snapshot.labels))
    matrices, intervals = np.full(shape, np.nan), np.full((2, *shape), np.nan)
    for k, volunteer in enumerate(communities.centroids):
        if volunteer is not None:
            matrix = snapshot.of(volunteer)
            matrices[k], intervals[:, k] = matrix.mean, matrix.interval(level)
    return matrices, intervals


def _prototype_panels(snapshot: ConfusionSnapshot, n_panels: int) -> list[Any]:
    """Return the panels of a new figure, as wide as their bars need."""
    n_classes, names = len(snapshot.classes), [str(label) for label in snapshot.labels]
    width = min(MAX_ROW_WIDTH, max(MIN_PANEL_WIDTH, MARGIN_WIDTH + BAR_WIDTH * n_classes * (len(names) + 1)))
    n_rows = ceil(n_panels / int(MAX_ROW_WIDTH / width))
    # Make the rows equally long, as far as possible.
    n_columns = ceil(n_panels / n_rows)
    # Long labels stand upright below the bars.
    height = PANEL_HEIGHT + max(map(len, names)) * LETTER_WIDTH / 72 / 2
    # Panels are about as wide as the layout engine will make them, so that text can be wrapped before it runs.
    estimate = {"left": 0.5 / (width * n_columns), "right": 1.0, "wspace": 0.1}
    return panel_grid(
        n_panels,
        n_columns,
        size=(width, height),
        extra=(0.0, 0.4),
        ylabel="probability of the label",
        gridspec_kw=estimate,
    )


@plain_text
def participation_matrix(communities: Communities, *, ax: Axes | None = None) -> Axes:
    """Plot how much every volunteer participates in every community: one row per volunteer, darker for more.

    Volunteers are sorted by the community they are assigned to, then by participation, highest first, with lines
    between communities; those who belong to none come last. If there are more rows than pixels, some are not visible.

    Parameters
    ----------
    communities
        The communities.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = cg.Communities(ids=["anna", "bert", "cleo"], method="by hand", modularity=0.1,
    ...                         participation=[[0.3, 0.7], [1.0, 0.0], [0.0, 0.0]])
    >>> ax = cg.plot.participation_matrix(groups)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0: 1', '1: 1', 'none: 1']
    """
    check_communities(communities)
    if not len(communities.ids):
        raise ParameterError(f"The communities {communities.method!r} have no volunteers, so there is nothing to draw.")
    ax = ensure_axes(ax, width=7.0, height=float(np.clip(1.5 + 0.17 * len(communities), 6, 12)))
    order, sizes = _sort_by_community(communities)
    image = ax.imshow(
        communities.participation[order], cmap=SHARES, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label="participation", ticks=[0, 0.5, 1], shrink=0.6)
    _name_rows(ax, sizes, len(communities))
    _name_columns(ax, len(communities))
    ax.spines[:].set_visible(False)
    ax.set(xlabel="community", ylabel="volunteers assigned to each community")
    who = quantity(len(order), "volunteer")
    ax.set_title(f"Participation of {who} in {quantity(len(communities), 'community')}", loc="left")
    return ax


def _sort_by_community(communities: Communities) -> tuple[Array, Array]:
    """Return the order of the rows, and how many rows each community and, last, no community has, of shape (K + 1,)."""
    group = np.where(communities.assignment < 0, len(communities), communities.assignment)
    order = np.lexsort((-communities.participation.max(axis=1), group))
    return order, np.bincount(group, minlength=len(communities) + 1)


def _name_rows(ax: Axes, sizes: Array, n_communities: int) -> None:
    """Draw lines between the communities, and write their numbers and sizes where there is room."""
    ends = sizes.cumsum()
    ax.hlines(ends[:-1][(ends[:-1] > 0) & (ends[:-1] < ends[-1])] - 0.5, -0.5, n_communities - 0.5, GREY, linewidth=0.6)
    min_distance = ends[-1] * MIN_ROW_DISTANCE / _size_in_points(ax).height
    names = [*map(str, range(n_communities)), "none"]
    ticks: list[tuple[float, str]] = []
    for name, size, end in zip(names, sizes.tolist(), ends.tolist(), strict=True):
        middle = end - size / 2 - 0.5
        if size and (not ticks or middle - ticks[-1][0] >= min_distance):
            ticks.append((middle, f"{name}: {size:,}"))
    ax.set_yticks([middle for middle, _ in ticks], [text for _, text in ticks], fontsize="small")
    ax.tick_params(axis="y", length=0)


def _name_columns(ax: Axes, n_communities: int) -> None:
    """Draw a square in each community's colour below its column, with its number."""
    x = np.arange(n_communities)
    room = _size_in_points(ax).width / n_communities
    side = min(8.0, 0.8 * room)
    below = ax.get_xaxis_transform() + ScaledTranslation(0, -(side / 2 + 2) / 72, ax.figure.dpi_scale_trans)
    ax.scatter(x, 0 * x, marker="s", s=side**2, c=colours(range(n_communities)), transform=below, clip_on=False)
    step = ceil(MIN_COLUMN_DISTANCE / room)
    ax.set_xticks(x[::step], [str(number) for number in x[::step]], fontsize="small")
    ax.tick_params(axis="x", length=0, pad=side + 4)


def _size_in_points(ax: Axes) -> Bbox:
    """Return the size of the axes, before the layout engine runs."""
    return ax.bbox.transformed(Affine2D().scale(72 / ax.figure.dpi))


@plain_text
def relevance(communities: Communities, *, ax: Axes | None = None) -> Axes:
    """Plot the relevance of each community as a bar: the communities in their colours, those not needed in grey.

    Parameters
    ----------
    communities
        Communities of a detector that estimates their relevance, such as BayesianNMF.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = cg.Communities(ids=["anna", "bert"], participation=[[1.0, 0.0], [0.3, 0.7]], modularity=0.1,
    ...                         method="by hand", relevance=[2.0, 1.5, 0.1])
    >>> cg.plot.relevance(groups).get_title(loc="left")
    '2 communities of 3 that were tried'
    """
    check_communities(communities, min_communities=0)
    if communities.relevance is None:
        raise ParameterError(
            f"The communities {communities.method!r} have no relevance: their detector has no prior that leaves out "
            "communities. Find them with BayesianNMF().detect(network)."
        )
    ax = ensure_axes(ax)
    n_tried, n_needed = len(communities.relevance), min(len(communities), len(communities.relevance))
    x = np.arange(n_tried)
    ax.bar(x[:n_needed], communities.relevance[:n_needed], color=colours(range(n_needed)))
    ax.bar(x[n_needed:], communities.relevance[n_needed:], color=PALE, edgecolor=GREY, label="not needed")
    if n_needed < n_tried:
        ax.legend(frameon=False, loc="upper right")
    ax.set(xlabel="community", ylabel="relevance")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(f"{quantity(n_needed, 'community')} of {n_tried} that were tried", loc="left")
    return ax
