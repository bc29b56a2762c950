"""Which of the communities that were tried are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, Bbox, ScaledTranslation

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool
from crowdgraph.core._text import behaviour
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.errors import ParameterError
from crowdgraph.plot._panels import (
    BAR,
    LETTER,
    MOST_LISTED,
    SMALL,
    as_axes_list,
    check_communities,
    chosen_communities,
    community_name,
    confusion_bars,
    confusion_of,
    counted_communities,
    name_bars,
    width_in_inches,
)
from crowdgraph.plot._style import GREY, PALE, SHARES, colours, counted, new_or_given_axes

__all__ = ["participation_matrix", "prototypes", "relevance"]

# The width of a panel's margins, of the smallest panel and of a row, in inches.
MARGIN, NARROWEST, ROW = 0.5, 2.7, 13.5
# The height of a panel, in inches.
HEIGHT = 2.6


def prototypes(
    communities: Communities,
    fit: ModelFit | ConfusionTrack | ConfusionSnapshot | None = None,
    *,
    mean: bool = False,
    numbers: Iterable[int] | None = None,
    level: float = 0.9,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Draw how the members of each community answer: bars for the probability of each label, for each true class.

    Each panel is the confusion matrix of a community's most central volunteer, as in the paper, with lines for its
    uncertainty; or the mean of all members. Above it stand the community's number and size and, in words, how such a
    volunteer answers.

    Parameters
    ----------
    communities
        The communities.
    fit
        The confusion matrices: a fit, its confusion, or its confusion at a time. Those by which the communities were
        found if left out.
    mean
        Draw the mean confusion of each community, weighted by participation, instead of the most central volunteer's.
    numbers
        Which communities to draw. If left out, all, but not more than twelve, or than there are `axes`.
    level
        How probable it is that the most central volunteer's probability of a label lies on its line.
    axes
        Where to draw, one for each community that is drawn; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One for each community that is drawn.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> found = cg.Leiden().detect(cg.networks.task_cooccurrence(graph), seed=0)
    >>> axes = cg.plot.prototypes(found, cg.IBCC().fit(graph))
    >>> axes[0].get_title(loc="left").splitlines()
    ['0: 20 volunteers', 'mostly right']
    """
    check_communities(communities)
    check_bool("mean", mean)
    snapshot = confusion_of(communities, fit)
    given = None if axes is None else as_axes_list(axes)
    drawn = _drawn(communities, numbers, None if given is None else len(given))
    matrices, ends = _means(communities, snapshot) if mean else _central(communities, snapshot, level)
    panels = _grid(snapshot, len(drawn)) if given is None else given
    hues = colours(range(len(communities)))
    for ax, k in zip(panels, drawn, strict=True):
        new_or_given_axes(ax)
        confusion_bars(ax, matrices[k], colour=hues[k], ends=None if ends is None else ends[:, k])
        name_bars(ax, snapshot)
        title = [community_name(k, communities.sizes[k])]
        if np.isfinite(matrices[k]).all():
            words = behaviour(matrices[k], classes=snapshot.classes, labels=snapshot.labels)
            title.append(fill(words, max(16, int(width_in_inches(ax) * 72 / LETTER))))
        ax.set_title("\n".join(title), loc="left", fontsize=SMALL + 1)
    if given is None:
        what = "Means of the communities" if mean else "Most central volunteers of the communities"
        some = "" if len(drawn) == len(communities) else f", {len(drawn)} of {len(communities)} communities drawn"
        panels[0].figure.suptitle(f"{what}{some}", x=0.01, horizontalalignment="left")
    return tuple(panels)


def _drawn(communities: Communities, numbers: Iterable[int] | None, n_axes: int | None) -> list[int]:
    """The numbers of the communities that are drawn, as many as there are axes."""
    drawn = chosen_communities(len(communities), numbers, most=n_axes or MOST_LISTED)
    if n_axes not in (None, len(drawn)):
        raise ParameterError(f"axes= has {n_axes} axes; {len(drawn)} communities are drawn, each on its own.")
    return drawn


def _means(communities: Communities, snapshot: ConfusionSnapshot) -> tuple[Array, None]:
    """The mean confusion of each community, NaN for nobody's."""
    return communities.mean_confusion(snapshot), None


def _central(communities: Communities, snapshot: ConfusionSnapshot, level: float) -> tuple[Array, Array]:
    """The confusion of each community's most central volunteer, NaN for nobody's, and the ends of its interval."""
    shape = (len(communities), len(snapshot.classes), len(snapshot.labels))
    matrices, ends = np.full(shape, np.nan), np.full((2, *shape), np.nan)
    for k, volunteer in enumerate(communities.centroids):
        if volunteer is not None:
            matrix = snapshot.of(volunteer)
            matrices[k], ends[:, k] = matrix.mean, matrix.interval(level)
    return matrices, ends


def _grid(snapshot: ConfusionSnapshot, n_panels: int) -> list[Any]:
    """Panels of a new figure, as wide as their bars need."""
    n_classes, names = len(snapshot.classes), [str(label) for label in snapshot.labels]
    width = min(ROW, max(NARROWEST, MARGIN + BAR * n_classes * (len(names) + 1)))
    n_rows = ceil(n_panels / int(ROW / width))
    # Rows of equal length, as far as that goes.
    n_columns = ceil(n_panels / n_rows)
    # Long labels stand upright below the bars.
    height = HEIGHT + max(map(len, names)) * LETTER / 72 / 2
    figure = Figure(figsize=(width * n_columns, height * n_rows + 0.4), layout="constrained")
    # About as wide as the layout will make them, so that texts can be broken into lines before it.
    about = {"left": 0.5 / (width * n_columns), "right": 1.0, "wspace": 0.1}
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True, gridspec_kw=about).ravel()
    for spare in panels[n_panels:]:
        spare.remove()
    for first in panels[:n_panels:n_columns]:
        first.set_ylabel("probability of the label")
    return list(panels[:n_panels])


# How high and wide a small text is with some air around it, in points.
LINE, DIGITS = 9.0, 15.0


def participation_matrix(communities: Communities, *, ax: Axes | None = None) -> Axes:
    """Draw how much every volunteer participates in every community: a row each, darker for more.

    Volunteers stand in the order of the communities they are assigned to, those who participate most first, with lines
    between communities; those who belong to none stand last. Where rows are more than pixels, some of them are seen.

    Parameters
    ----------
    communities
        The communities.
    ax
        Where to draw; a new figure if left out.

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
    ax = new_or_given_axes(ax, width=7.0, height=float(np.clip(1.5 + 0.17 * len(communities), 6, 12)))
    order, groups = _sorted(communities)
    image = ax.imshow(
        communities.participation[order], cmap=SHARES, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label="participation", ticks=[0, 0.5, 1], shrink=0.6)
    _name_groups(ax, groups, len(communities))
    _name_columns(ax, len(communities))
    ax.spines[:].set_visible(False)
    ax.set(xlabel="community", ylabel="volunteers assigned to each community")
    who = counted(len(order), "volunteer")
    ax.set_title(f"Participation of {who} in {counted_communities(len(communities))}", loc="left")
    return ax


def _sorted(communities: Communities) -> tuple[Array, Array]:
    """Volunteers by assignment, nobody's last, then by participation in it; and how many each group has, (K + 1,)."""
    group = np.where(communities.assignment < 0, len(communities), communities.assignment)
    order = np.lexsort((-communities.participation.max(axis=1), group))
    return order, np.bincount(group, minlength=len(communities) + 1)


def _name_groups(ax: Axes, sizes: Array, n_communities: int) -> None:
    """Lines between the groups, and their numbers and sizes where there is room."""
    ends = sizes.cumsum()
    ax.hlines(ends[:-1][(ends[:-1] > 0) & (ends[:-1] < ends[-1])] - 0.5, -0.5, n_communities - 0.5, GREY, linewidth=0.6)
    least = ends[-1] * LINE / _points(ax).height
    names = [*map(str, range(n_communities)), "none"]
    ticks: list[tuple[float, str]] = []
    for name, size, end in zip(names, sizes.tolist(), ends.tolist(), strict=True):
        middle = end - size / 2 - 0.5
        if size and (not ticks or middle - ticks[-1][0] >= least):
            ticks.append((middle, f"{name}: {size:,}"))
    ax.set_yticks([middle for middle, _ in ticks], [text for _, text in ticks], fontsize="small")
    ax.tick_params(axis="y", length=0)


def _name_columns(ax: Axes, n_communities: int) -> None:
    """A square in each community's colour below its column, and its number."""
    places = np.arange(n_communities)
    room = _points(ax).width / n_communities
    side = min(8.0, 0.8 * room)
    below = ax.get_xaxis_transform() + ScaledTranslation(0, -(side / 2 + 2) / 72, ax.figure.dpi_scale_trans)
    ax.scatter(
        places, 0 * places, marker="s", s=side**2, c=colours(range(n_communities)), transform=below, clip_on=False
    )
    step = ceil(DIGITS / room)
    ax.set_xticks(places[::step], [str(place) for place in places[::step]], fontsize="small")
    ax.tick_params(axis="x", length=0, pad=side + 4)


def _points(ax: Axes) -> Bbox:
    """The size of the axes in points, before the layout."""
    return ax.bbox.transformed(Affine2D().scale(72 / ax.figure.dpi))


def relevance(communities: Communities, *, ax: Axes | None = None) -> Axes:
    """Draw the relevance of each community as a bar: the communities in their colours, those not needed in grey.

    Parameters
    ----------
    communities
        Communities of a detector that tells their relevance, such as BayesianNMF.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = cg.Communities(ids=["anna", "bert"], participation=[[1.0, 0.0], [0.3, 0.7]], modularity=0.1,
    ...                         method="by hand", relevance=[2.0, 1.5, 0.1])
    >>> cg.plot.relevance(groups).get_title(loc="left")
    '2 communities of 3 that were tried'
    """
    check_communities(communities, least=0)
    if communities.relevance is None:
        raise ParameterError(
            f"The communities {communities.method!r} have no relevance: their detector has no prior that leaves out "
            "communities. Find them with BayesianNMF().detect(network)."
        )
    ax = new_or_given_axes(ax)
    n_tried, n_kept = len(communities.relevance), min(len(communities), len(communities.relevance))
    places = np.arange(n_tried)
    ax.bar(places[:n_kept], communities.relevance[:n_kept], color=colours(range(n_kept)))
    ax.bar(places[n_kept:], communities.relevance[n_kept:], color=PALE, edgecolor=GREY, label="not needed")
    if n_kept < n_tried:
        ax.legend(frameon=False, loc="upper right")
    ax.set(xlabel="community", ylabel="relevance")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(f"{counted_communities(n_kept)} of {n_tried} that were tried", loc="left")
    return ax
