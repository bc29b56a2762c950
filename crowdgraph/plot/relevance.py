"""Which of the communities that were tried are needed."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from crowdgraph.core.communities import Communities
from crowdgraph.errors import ParameterError
from crowdgraph.plot.axes import own_axes
from crowdgraph.plot.of_communities import check_communities, counted_communities
from crowdgraph.plot.palette import GREY, PALE, colours

__all__ = ["relevance"]


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
    ax = own_axes(ax)
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
