"""Who is linked with whom, and the communities they form."""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Affine2D, IdentityTransform
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer, check_seed, igraph_seed
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import AlignmentError, ParameterError, check_choice
from crowdgraph.plot._panels import MOST_LISTED, check_communities, community_name, counted_communities, non_overlapping
from crowdgraph.plot._style import GREY, HUES, INK, PALE, check_kind, colours, counted, mix_colours, new_or_given_axes

__all__ = ["Links", "network", "strongest_links", "volunteer_positions"]

# A network with more of all possible links than this has a shape, not clusters.
DENSE = 0.5
# How often the start of a spectral layout is improved.
SWEEPS = 30
# More unconnected parts than these stay where they are.
MOST_PARTS = 2000
# How many weights of a dense network are sorted at a time.
BLOCK = 2**24


class Links(NamedTuple):
    """Pairs of volunteers, each once: the codes of both ends and the weight."""

    left: Array
    right: Array
    weight: Array


def strongest_links(network: VolunteerNetwork, neighbours: int) -> Links:
    """The links that are among the strongest of one of their ends, the strongest first."""
    dense = isinstance(network.weights, np.ndarray)
    rows, columns, weights = (_strongest_dense if dense else _strongest_sparse)(network.weights, neighbours)
    left, right = np.minimum(rows, columns), np.maximum(rows, columns)
    _, once = np.unique(left * len(network) + right, return_index=True)
    once = once[np.argsort(-weights[once], kind="stable")]
    return Links(left[once], right[once], weights[once])


def _strongest_dense(weights: Array, neighbours: int) -> Links:
    n_volunteers, height = len(weights), max(1, BLOCK // len(weights))
    most = min(neighbours, n_volunteers)
    columns = np.concatenate(
        [
            np.argpartition(-weights[start : start + height], most - 1, axis=1)[:, :most]
            for start in range(0, n_volunteers, height)
        ]
    ).ravel()
    rows = np.repeat(np.arange(n_volunteers), most)
    values = weights[rows, columns]
    return Links(rows[values > 0], columns[values > 0], values[values > 0])


def _strongest_sparse(weights: Any, neighbours: int) -> Links:
    entries = weights.tocoo()
    rows, columns = (ends.astype(np.int64) for ends in entries.coords)
    order = np.lexsort((-entries.data, rows))
    starts = np.searchsorted(rows[order], np.arange(weights.shape[0]))
    rank = np.arange(len(order)) - starts[rows[order]]
    chosen = order[(rank < neighbours) & (entries.data[order] > 0)]
    return Links(rows[chosen], columns[chosen], entries.data[chosen])


def volunteer_positions(network: VolunteerNetwork, links: Links, layout: Any, seed: int | None) -> Array:
    """Where the volunteers stand, of shape (V, 2); `layout` is as for `crowdgraph.plot.network`."""
    if not isinstance(layout, str):
        return _given(layout, len(network))
    check_choice("layout", layout, ("auto", "force", "spectral"))
    linked = np.flatnonzero(network.degree > 0)
    if layout == "auto":
        layout = "spectral" if network.density > DENSE else "force"
    rng = np.random.default_rng(seed)
    size = sqrt(len(linked)) / 2
    start = size * (_spectral(network, rng)[linked] if layout == "spectral" else rng.uniform(-1, 1, (len(linked), 2)))
    places = np.zeros((len(network), 2))
    places[linked] = _relaxed(np.searchsorted(linked, [links.left, links.right]), links.weight, start, seed)
    alone = np.flatnonzero(network.degree == 0)
    places[alone] = _rows_below(places[linked], len(alone))
    return places


def _given(layout: ArrayLike, n_volunteers: int) -> Array:
    places = np.asarray(layout)
    if places.shape != (n_volunteers, 2) or places.dtype.kind not in "iuf" or not np.isfinite(places).all():
        raise ParameterError(
            f"The places of {n_volunteers:,} volunteers are finite numbers of shape ({n_volunteers}, 2); got an array "
            f"of {places.dtype} of shape {places.shape}."
        )
    return places.astype(float)


def _spectral(network: VolunteerNetwork, rng: np.random.Generator) -> Array:
    """The ranks of the volunteers on two eigenvectors, from -1 to 1: nothing is so far out that the rest is a clump.

    The eigenvectors are found roughly, by subspace iteration, which cannot fail; they are but a start.
    """
    n_volunteers = len(network)
    if n_volunteers < 3:
        return rng.uniform(-1, 1, (n_volunteers, 2))
    scale = np.where(network.strength > 0, network.strength, np.inf)[:, None] ** -0.5
    basis = rng.uniform(-1, 1, (n_volunteers, 8))
    for _ in range(SWEEPS):
        basis = np.linalg.qr(scale * (network.weights @ (scale * basis)))[0]
    _, turns = np.linalg.eigh(basis.T @ (scale * (network.weights @ (scale * basis))))
    vectors = scale * (basis @ turns[:, [-2, -3]])
    ranks = np.argsort(np.argsort(vectors, axis=0, kind="stable"), axis=0)
    return np.asarray(2 * ranks / (n_volunteers - 1) - 1)


def _relaxed(ends: Array, weights: Array, start: Array, seed: int | None) -> Array:
    """The places after linked volunteers attracted and all repelled each other."""
    import igraph

    if not len(start):
        return start
    graph = igraph.Graph(n=len(start), edges=ends.T)
    # Weights of any size, none so small that it vanishes.
    relative = np.maximum(weights / weights.max(), 1e-9)
    with igraph_seed(seed):
        found = graph.layout_fruchterman_reingold(weights=relative / relative.mean(), seed=start.tolist())
    return _gathered(np.array(found.coords), np.array(graph.connected_components().membership))


def _gathered(places: Array, part: Array) -> Array:
    """The same with unconnected parts, which repel each other without end, as close as their circles allow."""
    n_members = np.bincount(part)[:, None]
    if len(n_members) > MOST_PARTS:
        return places
    middles = np.stack([np.bincount(part, axis) for axis in places.T], axis=1) / n_members
    reach = np.zeros(len(middles))
    np.maximum.at(reach, part, np.linalg.norm(places - middles[part], axis=1))
    # Somebody alone would have no extent; a step is about the distance of neighbours.
    step = places.std() / sqrt(len(places)) + 1e-12
    apart = np.linalg.norm(middles[:, None] - middles, axis=2)
    needed = (reach[:, None] + reach + 2 * step) / np.maximum(apart, 1e-12)
    shrunk = float(np.where(np.eye(len(middles), dtype=bool), 0, needed).max(initial=0))
    return places - middles[part] * (1 - shrunk) if 0 < shrunk < 1 else places


def _rows_below(places: Array, n_alone: int) -> Array:
    """Places for those without links, in rows below the others."""
    low, high = (places.min(axis=0), places.max(axis=0)) if len(places) else (np.zeros(2), np.ones(2))
    in_row = max(40, ceil(sqrt(n_alone))) if len(places) else ceil(sqrt(n_alone))
    # Two who are linked may stand one above the other, or side by side.
    extent = float((high - low).max())
    step = max(high[0] - low[0], 0.2 * extent) / max(in_row - 1, 1)
    row, column = np.divmod(np.arange(n_alone), max(in_row, 1))
    return np.column_stack([low[0] + step * column, low[1] - 0.06 * extent - step * row])


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
    places = volunteer_positions(network, links, layout, seed)
    beside = ax is None
    ax = new_or_given_axes(ax, width=8.0, height=6.5)
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
    faces = mix_colours([*colours(range(shares.shape[1])), PALE], np.hstack([shares, nobodys]))
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
    dots = [] if many else [(hue, hue, community_name(k, sizes[k])) for k, hue in enumerate(colours(range(len(sizes))))]
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
    for place in non_overlapping(middles * scale, [str(k) for k in order], points=POINTS):
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
