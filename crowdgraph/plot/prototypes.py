"""How the members of each community answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.settings import check_bool
from crowdgraph.errors import ParameterError
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import (
    BAR,
    LETTER,
    MOST_LISTED,
    SMALL,
    check_communities,
    chosen_communities,
    confusion_bars,
    confusion_of,
    given_axes,
    inches,
    name_bars,
    name_of,
)
from crowdgraph.plot.palette import colours

__all__ = ["prototypes"]

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
    given = None if axes is None else given_axes(axes)
    drawn = _drawn(communities, numbers, None if given is None else len(given))
    matrices, ends = _means(communities, snapshot) if mean else _central(communities, snapshot, level)
    panels = _grid(snapshot, len(drawn)) if given is None else given
    hues = colours(range(len(communities)))
    for ax, k in zip(panels, drawn, strict=True):
        own_axes(ax)
        confusion_bars(ax, matrices[k], colour=hues[k], ends=None if ends is None else ends[:, k])
        name_bars(ax, snapshot)
        title = [name_of(k, communities.sizes[k])]
        if np.isfinite(matrices[k]).all():
            words = behaviour(matrices[k], classes=snapshot.classes, labels=snapshot.labels)
            title.append(fill(words, max(16, int(inches(ax) * 72 / LETTER))))
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
