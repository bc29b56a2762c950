"""The similarity of confusion matrices: of all pairs, or of each matrix and its nearest neighbours."""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from crowdgraph.tensors.similarity import Distance, pi_similarity, sum_of_distances

__all__ = ["Distance", "nearest_neighbours", "similarities"]

# The entries of a block of pairs that is computed at a time.
MAX_BLOCK_ENTRIES = 2**24
# Trees are faster than comparing all pairs where points have at most this many coordinates.
MAX_TREE_DIMENSIONS = 12


def similarities(confusion: Tensor, *, distance: Distance) -> Tensor:
    """Return the similarity of all pairs of confusion matrices, (V, J, L), of shape (V, V), as `pi_similarity` does.

    Where there are many volunteers, it is filled in block by block, so that nothing else of size (V, V) is held.
    """
    height = _block_height(confusion)
    if height >= len(confusion):
        return pi_similarity(confusion, distance=distance)
    roots = confusion.sqrt()
    values = torch.empty(len(roots), len(roots), dtype=roots.dtype, device=roots.device)
    for first in range(0, len(roots), height):
        rows = roots[first : first + height]
        last = first + len(rows)
        block = torch.exp(-sum_of_distances(rows, roots[first:], distance))  # eq:adjacencymatrix
        # Each pair is computed once, so that both of its entries are the same bits.
        diagonal = block[:, : len(rows)].triu(1)
        values[first:last, first:last] = diagonal + diagonal.T
        values[first:last, last:] = block[:, len(rows) :]
        values[last:, first:last] = block[:, len(rows) :].T
    return values


def nearest_neighbours(
    confusion: Tensor, *, n_neighbours: int, distance: Distance, of: range | None = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the most similar other matrices of each, and the similarities, both of shape (V, K).

    The result is exact: from a tree where matrices have few entries, otherwise from comparing all pairs block by block.
    Nothing of size (V, V) is held. With `of` there are rows for these matrices only.
    """
    roots = confusion.sqrt()
    of = range(len(roots)) if of is None else of
    if distance == "bhattacharyya" and roots.device.type == "cpu" and roots[0].numel() <= MAX_TREE_DIMENSIONS:
        return _nearest_in_tree(roots.flatten(1), n_neighbours, of)
    indices, values = [], []
    for first in range(of.start, of.stop, _block_height(roots)):
        rows = roots[first : min(first + _block_height(roots), of.stop)]
        distances = sum_of_distances(rows, roots, distance)
        own = torch.arange(len(rows), device=roots.device)
        distances[own, first + own] = torch.inf
        nearest = torch.topk(distances, n_neighbours, dim=1, largest=False)
        indices.append(nearest.indices)
        values.append(torch.exp(-nearest.values))  # eq:adjacencymatrix
    return torch.cat(indices), torch.cat(values)


def _nearest_in_tree(points: Tensor, n_neighbours: int, of: range) -> tuple[Tensor, Tensor]:
    """Do the same as `nearest_neighbours`: roots of all matrices have the same length, so their distances decide."""
    sought = points[of.start : of.stop].numpy()
    distances, indices = cKDTree(points.numpy()).query(sought, n_neighbours + 1, workers=-1)
    # Without the matrix itself; where many are equal, it may not be among its own nearest, and the last is dropped.
    own = indices == np.arange(of.start, of.stop)[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (len(sought), n_neighbours)
    return torch.from_numpy(indices[~own].reshape(shape)), torch.from_numpy(
        np.exp(-(distances[~own] ** 2) / 2).reshape(shape)
    )


def _block_height(matrices: Tensor) -> int:
    return max(1, MAX_BLOCK_ENTRIES // max(1, len(matrices)))
