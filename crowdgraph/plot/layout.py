"""Where the volunteers of a network stand in a picture, and which of their links are drawn."""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core.columns import Array
from crowdgraph.core.draws import drawing
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError, check_choice

__all__ = ["Links", "strongest_links", "volunteer_places"]

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


def volunteer_places(network: VolunteerNetwork, links: Links, layout: Any, seed: int | None) -> Array:
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
    with drawing(seed):
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
