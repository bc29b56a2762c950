"""Who is linked with whom, and the communities they form."""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Affine2D, IdentityTransform
from numpy.typing import ArrayLike

from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.settings import check_integer, check_seed
from crowdgraph.errors import AlignmentError, ParameterError
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.layout import Links, strongest_links, volunteer_places
from crowdgraph.plot.of_communities import MOST_LISTED, check_communities, counted_communities, name_of, uncovered
from crowdgraph.plot.over_time import counted
from crowdgraph.plot.palette import GREY, HUES, INK, PALE, colours, mixed

__all__ = ["network"]

# More volunteers than these are too small for pies.
MOST_PIES = 150
# Smaller participations than this get no piece of a pie.
SMALLEST_PIECE = 0.02
# More lines than these are a grey cloud.
MOST_LINKS = 20_000
# The size of the numbers among the members, in points.
POINTS = 10


class Membership(NamedTuple):
    """The participation of a network's volunteers, of shape (V, K), and the community each is assigned to or -1."""

    shares: Array
    assignment: Array


def network(
    network: VolunteerNetwork,
    communities: Communities | None = None,
    *,
    layout: Literal["auto", "force", "spectral"] | ArrayLike = "auto",
    neighbours: int = 10,
    seed: int | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw a network: volunteers as dots in the colours of their communities, and their strongest links.

    Somebody who belongs to several communities is a pie or, among more than 150 volunteers, has a colour mixed from
    theirs in proportion to participation. Who belongs to none is a grey ring. The area of a dot grows with the square
    root of the volunteer's support (the answers that the links rest on), or of the strength where no support is known.
    Up to twelve communities are listed; of more, the numbers stand in the middle of their members, unless they would
    cover that of a larger one.

    Only each volunteer's strongest links are used to find places and are drawn, at most 20,000 of them; a line below
    the picture says how many. Volunteers without links stand in rows at the bottom.

    Parameters
    ----------
    network
        The network.
    communities
        Its communities; they may hold further volunteers.
    layout
        Where the volunteers stand. ``"force"``: linked ones attract and all others repel each other (Fruchterman and
        Reingold, in igraph), starting from places drawn at random, which pulls clusters apart. ``"spectral"``: the
        same, starting from the second and third eigenvector of the normalised weights, which keeps the overall shape.
        ``"auto"`` is spectral for networks with more than half of all possible links, and force for others. Or the
        places themselves, of shape (V, 2).
    neighbours
        How many of each volunteer's strongest links are used. A link that one of its two volunteers wants is drawn.
    seed
        The same seed gives the same places.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> together = cg.networks.task_cooccurrence(graph)
    >>> ax = cg.plot.network(together, cg.Leiden().detect(together, seed=0))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0: 20 volunteers', '1: 20 volunteers', '2: 20 volunteers']
    """
    check_kind(network, VolunteerNetwork, "crowdgraph.networks.pi_similarity(graph)")
    check_integer("neighbours", neighbours)
    check_seed(seed)
    if not len(network):
        raise ParameterError(f"The network {network.method!r} has no volunteers, so there is nothing to draw.")
    membership = _membership(network, communities)
    links = strongest_links(network, int(neighbours))
    places = volunteer_places(network, links, layout, seed)
    beside = ax is None
    ax = own_axes(ax, width=8.0, height=6.5)
    _draw_links(ax, places, links, membership)
    _draw_volunteers(ax, network, places, membership)
    _name(ax, network, places, membership, beside=beside)
    ax.set_xlabel(_about_links(network, len(links.left), int(neighbours)), fontsize="small", color=GREY)
    return ax


def _membership(network: VolunteerNetwork, communities: Communities | None) -> Membership | None:
    """What the network's volunteers belong to; None without communities."""
    if communities is None:
        return None
    check_communities(communities, least=0)
    strangers = [volunteer for volunteer in network.ids.tolist() if volunteer not in communities.table]
    if strangers:
        raise AlignmentError(
            f"The communities lack {len(strangers):,} of the network's volunteers, such as {strangers[0]!r}. Detect "
            "them in this network, or draw network.subnetwork(communities.ids)."
        )
    codes = communities.table.codes(network.ids)
    return Membership(communities.participation[codes], communities.assignment[codes])


def _draw_links(ax: Axes, places: Array, links: Links, membership: Membership | None) -> None:
    """A line for each of the strongest links, in the colour of a community that both ends are assigned to."""
    drawn = slice(min(len(links.left), MOST_LINKS))
    left, right, weights = (part[drawn][::-1] for part in links)
    hues = np.full(len(left), GREY, dtype=object)
    if membership is not None:
        shares, assigned = membership
        inside = (assigned[left] == assigned[right]) & (assigned[left] >= 0)
        hues[inside] = np.array([*colours(range(shares.shape[1])), GREY], dtype=object)[assigned[left[inside]]]
    lines = LineCollection(
        list(np.stack([places[left], places[right]], axis=1)),
        colors=hues.tolist(),
        linewidths=0.3 + 0.9 * weights / weights.max(initial=1e-300),
        alpha=float(np.clip(25 / sqrt(len(left) + 1), 0.15, 0.6)),
        zorder=1,
        rasterized=len(left) > 2000,
    )
    ax.add_collection(lines)


def _draw_volunteers(ax: Axes, network: VolunteerNetwork, places: Array, membership: Membership | None) -> None:
    """A dot for each volunteer: a pie, a mixed colour, or a grey ring."""
    areas = _areas(network)
    if membership is None:
        ax.scatter(places[:, 0], places[:, 1], s=areas, color=HUES[0], edgecolors="white", linewidths=0.4, zorder=2)
        return
    shares, assigned = membership
    nobodys = (assigned < 0)[:, None]
    faces = mixed([*colours(range(shares.shape[1])), PALE], np.hstack([shares, nobodys]))
    # Pale dots need an outline to be seen.
    edges = np.where(nobodys, to_rgb(GREY), 0.8 * faces)
    ax.scatter(
        places[:, 0], places[:, 1], s=areas, c=faces, edgecolors=list(map(tuple, edges)), linewidths=0.5, zorder=2
    )
    if len(network) <= MOST_PIES:
        _draw_pies(ax, places, areas, shares)


def _areas(network: VolunteerNetwork) -> Array:
    """The area of each dot, in square points; fewer volunteers have larger ones."""
    amount = network.strength if network.support is None else network.support
    usual = float(np.clip(35_000 / len(network), 6, 220))
    return np.asarray(usual * (0.4 + 1.2 * np.sqrt(amount / max(amount.max(), 1e-300))))


def _draw_pies(ax: Axes, places: Array, areas: Array, shares: Array) -> None:
    """Pieces of a pie for each volunteer of several communities, clockwise from the top."""
    hues = colours(range(shares.shape[1]))
    pieces = np.where(shares >= SMALLEST_PIECE, shares, 0)
    several = np.flatnonzero((pieces > 0).sum(axis=1) > 1)
    if not len(several):
        return
    paths, codes, faces = [], [], []
    for code in several.tolist():
        ends = 90 - 360 * np.concatenate([[0], pieces[code].cumsum() / pieces[code].sum()])
        for k in np.flatnonzero(pieces[code]).tolist():
            wedge = Path.wedge(ends[k + 1], ends[k])
            paths.append(wedge.transformed(Affine2D().scale(0.5)))
            codes.append(code)
            faces.append(hues[k])
    pies = PathCollection(
        paths, sizes=areas[codes], offsets=places[codes], offset_transform=ax.transData, facecolors=faces, zorder=3
    )
    pies.set_transform(IdentityTransform())
    ax.add_collection(pies)


def _name(ax: Axes, network: VolunteerNetwork, places: Array, membership: Membership | None, *, beside: bool) -> None:
    """Title, and the communities in a legend or as numbers among their members."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)
    title = counted(len(network), "volunteer")
    if membership is None:
        ax.set_title(title, loc="left")
        return
    shares, assigned = membership
    sizes = np.bincount(assigned[assigned >= 0], minlength=shares.shape[1])
    ax.set_title(f"{title}, {counted_communities(len(sizes))}", loc="left")
    many = len(sizes) > MOST_LISTED
    if many:
        _number(ax, places, assigned, sizes)
    dots = [] if many else [(hue, hue, name_of(k, sizes[k])) for k, hue in enumerate(colours(range(len(sizes))))]
    if (assigned < 0).any():
        dots.append((PALE, GREY, f"none: {counted(int(np.count_nonzero(assigned < 0)), 'volunteer')}"))
    handles = [
        Line2D([], [], color=face, markeredgecolor=edge, label=text, marker="o", linestyle="none", markersize=8)
        for face, edge, text in dots
    ]
    if handles:
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside else {"loc": "best"}
        ax.legend(handles=handles, frameon=False, fontsize="small", title="community", alignment="left", **place)


def _number(ax: Axes, places: Array, assigned: Array, sizes: Array) -> None:
    """The numbers of the communities in the middle of their members, unless they cover that of a larger one."""
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    middles = np.array([np.median(places[assigned == k], axis=0) for k in order.tolist()]).reshape(-1, 2)
    room = np.array([ax.bbox.width, ax.bbox.height]) / ax.figure.dpi * 72
    scale = float((room / np.maximum(np.ptp(places, axis=0), 1e-12)).min())
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for place in uncovered(middles * scale, [str(k) for k in order], points=POINTS):
        ax.text(
            middles[place, 0],
            middles[place, 1],
            str(order[place]),
            ha="center",
            va="center",
            color=INK,
            fontsize=POINTS,
            weight="bold",
            path_effects=halo,
            zorder=5,
        )


def _about_links(network: VolunteerNetwork, n_used: int, neighbours: int) -> str:
    """Which links are drawn."""
    n_drawn = min(n_used, MOST_LINKS)
    if n_drawn == network.n_edges:
        return counted(n_drawn, "link")
    what = f"everybody's {neighbours} strongest links" if n_drawn == n_used else "the strongest links"
    return f"{what}: {n_drawn:,} of {network.n_edges:,}"
