"""Who is linked with whom, and the communities they form: the plot, its layout, and the links that it shows."""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, IdentityTransform
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer, check_seed
from crowdgraph.core._random import igraph_seed
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.plot._panels import (
    MAX_LISTED,
    check_communities,
    community_name,
    non_overlapping,
    white_halo,
)
from crowdgraph.plot._style import (
    GREY,
    HUES,
    INK,
    PALE,
    check_kind,
    colours,
    ensure_axes,
    legend_location,
    mix_colours,
    plain_text,
)

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities, Membership
    from crowdgraph.core.network import VolunteerNetwork

__all__ = ["Links", "network", "strongest_links", "volunteer_positions"]

# Dots of more volunteers than this are too small for pies.
MAX_PIES = 150
# Participations smaller than this get no slice of a pie.
MIN_SLICE = 0.02
# More lines than this would merge into a grey cloud.
MAX_LINKS = 20_000
# The size of the numbers among the members, in points.
NUMBER_SIZE = 10
# A network with a larger share of all possible links than this has an overall shape rather than clusters.
DENSE = 0.5
# The number of subspace iterations that start a spectral layout.
SPECTRAL_ITERATIONS = 30
# More unconnected parts than this are not moved closer together.
MAX_PARTS = 2000
# How many weights of a dense network are sorted at a time.
WEIGHTS_PER_BLOCK = 2**24


class Links(NamedTuple):
    """Pairs of volunteers, each once: the codes of both ends and the weight."""

    left: Array
    right: Array
    weight: Array


@plain_text
def network(
    network: VolunteerNetwork,
    communities: Communities | None = None,
    *,
    layout: Literal["auto", "force", "spectral"] | ArrayLike = "auto",
    neighbours: int = 10,
    seed: int | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Plot a network: volunteers as dots in the colours of their communities, with their strongest links.

    A volunteer who belongs to several communities is a pie or, among more than 150 volunteers, has a colour mixed from
    theirs in proportion to participation. One who belongs to none is a grey ring. The area of a dot grows with the
    square root of the volunteer's support (the answers that the links rest on), or of the strength where the support is
    not known. Up to twelve communities are listed in a legend; if there are more, their numbers stand in the middle of
    their members, unless they would cover the number of a larger one.

    Only each volunteer's strongest links are used for the layout and drawn, at most 20,000 of them; a line below the
    plot says how many. Volunteers without links stand in rows at the bottom.

    Parameters
    ----------
    network
        The network.
    communities
        Its communities; they may contain further volunteers.
    layout
        Where the volunteers stand. ``"force"``: linked volunteers attract and all others repel each other (Fruchterman
        and Reingold, in igraph), starting from random positions, which pulls clusters apart. ``"spectral"``: the same,
        starting from the second and third eigenvector of the normalised weights, which preserves the overall shape.
        ``"auto"`` is spectral for networks with more than half of all possible links, and force for others. Or the
        positions themselves, of shape (V, 2).
    neighbours
        How many of each volunteer's strongest links to use. A link is drawn if it is among those of one of its ends.
    seed
        The same seed gives the same positions.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> together = cg.networks.task_cooccurrence(graph)
    >>> ax = cg.plot.network(together, cg.Leiden().detect(together, seed=0))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0: 20 volunteers', '1: 20 volunteers', '2: 20 volunteers']
    """
    check_kind(network, "VolunteerNetwork", "crowdgraph.networks.pi_similarity(graph)")
    check_integer("neighbours", neighbours)
    check_seed(seed)
    if not len(network):
        raise ParameterError(f"The network {network.method!r} has no volunteers, so there is nothing to draw.")
    membership = None
    if communities is not None:
        check_communities(communities, min_communities=0)
        membership = communities.on(network)
    links = strongest_links(network, int(neighbours))
    positions = volunteer_positions(network, links, layout, seed)
    beside = ax is None
    ax = ensure_axes(ax, width=8.0, height=6.5)
    _draw_links(ax, positions, links, membership)
    _draw_volunteers(ax, network, positions, membership)
    _add_title_and_legend(ax, network, positions, membership, beside=beside)
    ax.set_xlabel(_links_caption(network, len(links.left), int(neighbours)), fontsize="small", color=GREY)
    return ax


def _draw_links(ax: Axes, positions: Array, links: Links, membership: Membership | None) -> None:
    """Draw a line per link, strong ones on top, in the colour of the community that both ends are assigned to."""
    strongest = slice(min(len(links.left), MAX_LINKS))
    left, right, weights = (column[strongest][::-1] for column in links)
    hues = np.full(len(left), GREY, dtype=object)
    if membership is not None:
        assignment, shares = membership
        inside = (assignment[left] == assignment[right]) & (assignment[left] >= 0)
        hues[inside] = np.array([*colours(range(shares.shape[1])), GREY], dtype=object)[assignment[left[inside]]]
    lines = LineCollection(
        list(np.stack([positions[left], positions[right]], axis=1)),
        colors=hues.tolist(),
        linewidths=0.3 + 0.9 * weights / weights.max(initial=1e-300),
        alpha=float(np.clip(25 / sqrt(len(left) + 1), 0.15, 0.6)),
        zorder=1,
        rasterized=len(left) > 2000,
    )
    ax.add_collection(lines)


def _draw_volunteers(
    ax: Axes, network: VolunteerNetwork, positions: Array, membership: Membership | None, *, scale: float = 1.0
) -> None:
    """Draw a dot per volunteer: a pie, a mixed colour, or a grey ring; `scale` is that of its area."""
    areas = scale * _dot_areas(network)
    x, y = positions[:, 0], positions[:, 1]
    if membership is None:
        ax.scatter(x, y, s=areas, color=HUES[0], edgecolors="white", linewidths=0.4, zorder=2)
        return
    assignment, shares = membership
    is_unassigned = (assignment < 0)[:, None]
    faces = mix_colours([*colours(range(shares.shape[1])), PALE], np.hstack([shares, is_unassigned]))
    # Pale dots are visible only with an outline.
    edges = np.where(is_unassigned, to_rgb(GREY), 0.8 * faces)
    ax.scatter(x, y, s=areas, c=faces, edgecolors=list(map(tuple, edges)), linewidths=0.5, zorder=2)
    if len(network) <= MAX_PIES:
        _draw_pies(ax, positions, areas, shares)


def _dot_areas(network: VolunteerNetwork) -> Array:
    """Return the area of each dot, in square points; the fewer the volunteers, the larger the dots."""
    amount = network.strength if network.support is None else network.support
    typical = float(np.clip(35_000 / len(network), 6, 220))
    return np.asarray(typical * (0.4 + 1.2 * np.sqrt(amount / max(amount.max(), 1e-300))))


def _draw_pies(ax: Axes, positions: Array, areas: Array, shares: Array) -> None:
    """Draw the slices of each volunteer with several communities, clockwise from the top."""
    hues = colours(range(shares.shape[1]))
    slices = np.where(shares >= MIN_SLICE, shares, 0)
    several = np.flatnonzero((slices > 0).sum(axis=1) > 1)
    if not len(several):
        return
    paths, codes, faces = [], [], []
    for code in several.tolist():
        angles = 90 - 360 * np.concatenate([[0], slices[code].cumsum() / slices[code].sum()])
        for k in np.flatnonzero(slices[code]).tolist():
            wedge = Path.wedge(angles[k + 1], angles[k])
            paths.append(wedge.transformed(Affine2D().scale(0.5)))
            codes.append(code)
            faces.append(hues[k])
    pies = PathCollection(
        paths, sizes=areas[codes], offsets=positions[codes], offset_transform=ax.transData, facecolors=faces, zorder=3
    )
    pies.set_transform(IdentityTransform())
    ax.add_collection(pies)


def _add_title_and_legend(
    ax: Axes, network: VolunteerNetwork, positions: Array, membership: Membership | None, *, beside: bool
) -> None:
    """Add the title, and the communities in a legend or as numbers among their members."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)
    title = quantity(len(network), "volunteer")
    if membership is None:
        ax.set_title(title, loc="left")
        return
    assignment, shares = membership
    sizes = np.bincount(assignment[assignment >= 0], minlength=shares.shape[1])
    ax.set_title(f"{title}, {quantity(len(sizes), 'community')}", loc="left")
    entries = []
    if len(sizes) > MAX_LISTED:
        _number_communities(ax, positions, assignment, sizes)
    else:
        entries = [(hue, hue, community_name(k, sizes[k])) for k, hue in enumerate(colours(range(len(sizes))))]
    if (assignment < 0).any():
        entries.append((PALE, GREY, f"none: {quantity(int(np.count_nonzero(assignment < 0)), 'volunteer')}"))
    handles = [
        Line2D([], [], color=face, markeredgecolor=edge, label=text, marker="o", linestyle="none", markersize=8)
        for face, edge, text in entries
    ]
    if handles:
        location = legend_location(beside=beside)
        ax.legend(handles=handles, frameon=False, fontsize="small", title="community", alignment="left", **location)


def _number_communities(ax: Axes, positions: Array, assignment: Array, sizes: Array) -> None:
    """Write the number of each community in the middle of its members, unless it covers that of a larger one."""
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    middles = np.array([np.median(positions[assignment == k], axis=0) for k in order.tolist()]).reshape(-1, 2)
    room = np.array([ax.bbox.width, ax.bbox.height]) / ax.figure.dpi * 72
    scale = float((room / np.maximum(np.ptp(positions, axis=0), 1e-12)).min())
    for index in non_overlapping(middles * scale, [str(k) for k in order], size=NUMBER_SIZE):
        ax.text(
            middles[index, 0],
            middles[index, 1],
            str(order[index]),
            ha="center",
            va="center",
            color=INK,
            fontsize=NUMBER_SIZE,
            weight="bold",
            path_effects=white_halo(2.5),
            zorder=5,
        )


def _links_caption(network: VolunteerNetwork, n_used: int, neighbours: int) -> str:
    """Say which links are drawn."""
    n_drawn = min(n_used, MAX_LINKS)
    if n_drawn == network.n_edges:
        return quantity(n_drawn, "link")
    what = f"everybody's {neighbours} strongest links" if n_drawn == n_used else "the strongest links"
    return f"{what}: {n_drawn:,} of {network.n_edges:,}"


# Links.


def strongest_links(network: VolunteerNetwork, neighbours: int) -> Links:
    """Return the links that are among the strongest of one of their ends, the strongest first."""
    is_dense = isinstance(network.weights, np.ndarray)
    rows, columns, weights = (_strongest_dense if is_dense else _strongest_sparse)(network.weights, neighbours)
    left, right = np.minimum(rows, columns), np.maximum(rows, columns)
    _, once = np.unique(left * len(network) + right, return_index=True)
    once = once[np.argsort(-weights[once], kind="stable")]
    return Links(left[once], right[once], weights[once])


def _strongest_dense(weights: Array, neighbours: int) -> Links:
    n_volunteers, height = len(weights), max(1, WEIGHTS_PER_BLOCK // len(weights))
    n_links = min(neighbours, n_volunteers)
    columns = np.concatenate(
        [
            np.argpartition(-weights[start : start + height], n_links - 1, axis=1)[:, :n_links]
            for start in range(0, n_volunteers, height)
        ]
    ).ravel()
    rows = np.repeat(np.arange(n_volunteers), n_links)
    values = weights[rows, columns]
    return Links(rows[values > 0], columns[values > 0], values[values > 0])


def _strongest_sparse(weights: Any, neighbours: int) -> Links:
    entries = weights.tocoo()
    rows, columns = (ends.astype(np.int64) for ends in entries.coords)
    order = np.lexsort((-entries.data, rows))
    starts = np.searchsorted(rows[order], np.arange(weights.shape[0]))
    rank = np.arange(len(order)) - starts[rows[order]]
    strongest = order[(rank < neighbours) & (entries.data[order] > 0)]
    return Links(rows[strongest], columns[strongest], entries.data[strongest])


# Layout.


def volunteer_positions(network: VolunteerNetwork, links: Links, layout: Any, seed: int | None) -> Array:
    """Return where the volunteers stand, of shape (V, 2); `layout` is as for `crowdgraph.plot.network`."""
    if not isinstance(layout, str):
        return _check_positions(layout, len(network))
    check_choice("layout", layout, ("auto", "force", "spectral"))
    linked = np.flatnonzero(network.degree > 0)
    if layout == "auto":
        layout = "spectral" if network.density > DENSE else "force"
    rng = np.random.default_rng(seed)
    size = sqrt(len(linked)) / 2
    start = size * (
        _spectral_ranks(network, rng)[linked] if layout == "spectral" else rng.uniform(-1, 1, (len(linked), 2))
    )
    positions = np.zeros((len(network), 2))
    positions[linked] = _force_layout(np.searchsorted(linked, [links.left, links.right]), links.weight, start, seed)
    unlinked = np.flatnonzero(network.degree == 0)
    positions[unlinked] = _rows_below(positions[linked], len(unlinked))
    return positions


def _check_positions(layout: ArrayLike, n_volunteers: int) -> Array:
    positions = np.asarray(layout)
    is_numeric = positions.dtype.kind in "iuf"
    if positions.shape != (n_volunteers, 2) or not is_numeric or not np.isfinite(positions).all():
        raise ParameterError(
            f"The positions of {n_volunteers:,} volunteers must be finite numbers of shape ({n_volunteers}, 2); got an "
            f"array of {positions.dtype} of shape {positions.shape}. Give such an array as layout=, or leave it out."
        )
    return positions.astype(float)


def _spectral_ranks(network: VolunteerNetwork, rng: np.random.Generator) -> Array:
    """Return the ranks of the volunteers on two eigenvectors, scaled from -1 to 1, of shape (V, 2).

    Ranks, because a single outlier on an eigenvector would squeeze all others together. The eigenvectors are only
    a start, so a rough subspace iteration, which cannot fail, is good enough.
    """
    n_volunteers = len(network)
    if n_volunteers < 3:
        return rng.uniform(-1, 1, (n_volunteers, 2))
    scale = np.where(network.strength > 0, network.strength, np.inf)[:, None] ** -0.5
    basis = rng.uniform(-1, 1, (n_volunteers, 8))
    for _ in range(SPECTRAL_ITERATIONS):
        basis = np.linalg.qr(scale * (network.weights @ (scale * basis)))[0]
    _, rotation = np.linalg.eigh(basis.T @ (scale * (network.weights @ (scale * basis))))
    vectors = scale * (basis @ rotation[:, [-2, -3]])
    ranks = np.argsort(np.argsort(vectors, axis=0, kind="stable"), axis=0)
    return np.asarray(2 * ranks / (n_volunteers - 1) - 1)


def _force_layout(ends: Array, weights: Array, start: Array, seed: int | None) -> Array:
    """Return the positions after linked volunteers have attracted, and all have repelled, each other."""
    import igraph

    if not len(start):
        return start
    graph = igraph.Graph(n=len(start), edges=ends.T)
    # Weights may have any scale; none may be so small that it vanishes.
    relative = np.maximum(weights / weights.max(), 1e-9)
    with igraph_seed(seed):
        layout = graph.layout_fruchterman_reingold(weights=relative / relative.mean(), seed=start.tolist())
    return _gather_parts(np.array(layout.coords), np.array(graph.connected_components().membership))


def _gather_parts(positions: Array, part: Array) -> Array:
    """Move unconnected parts, which repel each other without limit, as close together as their circles allow."""
    n_members = np.bincount(part)[:, None]
    if len(n_members) > MAX_PARTS:
        return positions
    middles = np.stack([np.bincount(part, axis) for axis in positions.T], axis=1) / n_members
    reach = np.zeros(len(middles))
    np.maximum.at(reach, part, np.linalg.norm(positions - middles[part], axis=1))
    # A part of one volunteer has no extent, so leave about the distance of neighbours around each.
    step = positions.std() / sqrt(len(positions)) + 1e-12
    distances = np.linalg.norm(middles[:, None] - middles, axis=2)
    needed = (reach[:, None] + reach + 2 * step) / np.maximum(distances, 1e-12)
    factor = float(np.where(np.eye(len(middles), dtype=bool), 0, needed).max(initial=0))
    return positions - middles[part] * (1 - factor) if 0 < factor < 1 else positions


def _rows_below(positions: Array, n_unlinked: int) -> Array:
    """Return positions for volunteers without links, in rows below the others."""
    low, high = (positions.min(axis=0), positions.max(axis=0)) if len(positions) else (np.zeros(2), np.ones(2))
    per_row = max(40, ceil(sqrt(n_unlinked))) if len(positions) else ceil(sqrt(n_unlinked))
    # Two linked volunteers may stand one above the other, or side by side.
    extent = float((high - low).max())
    step = max(high[0] - low[0], 0.2 * extent) / max(per_row - 1, 1)
    row, column = np.divmod(np.arange(n_unlinked), max(per_row, 1))
    return np.column_stack([low[0] + step * column, low[1] - 0.06 * extent - step * row])
