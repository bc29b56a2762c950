"""How alike confusion matrices are: all pairs of them, or each one's nearest."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

__all__ = ["Distance", "nearest_neighbours", "similarities"]

Distance = Literal["bhattacharyya", "hellinger"]
# Entries of a block of pairs that is worked out at a time.
BLOCK = 2**24
# Trees are faster than comparing all pairs where points have at most so many coordinates.
FEW = 12


def similarities(confusion: Tensor, *, distance: Distance) -> Tensor:
    r"""The similarity :math:`\exp(-\sum_j d_j)` of all pairs of confusion matrices, (V, J, L), of shape (V, V).

    With :math:`b_j = \sum_l \sqrt{\pi_{jl} \pi'_{jl}}`, the Bhattacharyya coefficient of two rows, :math:`d_j` is
    :math:`1 - b_j`, or :math:`\sqrt{1 - b_j}` for the Hellinger distance. The diagonal is zero: nobody is their own
    neighbour.
    """
    roots = confusion.sqrt()
    found = torch.empty(len(roots), len(roots), dtype=roots.dtype, device=roots.device)
    for first in range(0, len(roots), _height(roots)):
        rows = roots[first : first + _height(roots)]
        last = first + len(rows)
        block = torch.exp(-_apart(rows, roots[first:], distance))
        # Each pair is worked out once, so that both of its entries are the same bits.
        own = block[:, : len(rows)].triu(1)
        found[first:last, first:last] = own + own.T
        found[first:last, last:] = block[:, len(rows) :]
        found[last:, first:last] = block[:, len(rows) :].T
    return found


def nearest_neighbours(confusion: Tensor, *, n_neighbours: int, distance: Distance) -> tuple[Tensor, Tensor]:
    """The places of the most similar others of each confusion matrix, and how similar they are, each (V, K).

    Exactly: by a tree where there are few numbers in a matrix, otherwise by comparing all pairs block by block. Nothing
    of size (V, V) is held.
    """
    roots = confusion.sqrt()
    if distance == "bhattacharyya" and roots.device.type == "cpu" and roots[0].numel() <= FEW:
        return _nearest_in_tree(roots.flatten(1), n_neighbours)
    places, values = [], []
    for first in range(0, len(roots), _height(roots)):
        rows = roots[first : first + _height(roots)]
        apart = _apart(rows, roots, distance)
        own = torch.arange(len(rows), device=roots.device)
        apart[own, first + own] = torch.inf
        found = torch.topk(apart, n_neighbours, dim=1, largest=False)
        places.append(found.indices)
        values.append(torch.exp(-found.values))
    return torch.cat(places), torch.cat(values)


def _nearest_in_tree(points: Tensor, n_neighbours: int) -> tuple[Tensor, Tensor]:
    """As `nearest_neighbours`: the roots of all matrices are equally long, so their distances decide."""
    apart, places = cKDTree(points.numpy()).query(points.numpy(), n_neighbours + 1, workers=-1)
    # Without themselves; where many are the same, they may not be among their nearest, and the last goes.
    own = places == np.arange(len(points))[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (len(points), n_neighbours)
    return torch.from_numpy(places[~own].reshape(shape)), torch.from_numpy(
        np.exp(-(apart[~own] ** 2) / 2).reshape(shape)
    )


def _height(roots: Tensor) -> int:
    return max(1, BLOCK // len(roots))


def _apart(rows: Tensor, roots: Tensor, distance: Distance) -> Tensor:
    """The distances of some matrices from all, given their square roots."""
    if distance == "bhattacharyya":
        # One product for all classes; rounding may take it above their number.
        return (roots.shape[1] - rows.flatten(1) @ roots.flatten(1).T).clamp(min=0)
    overlaps = torch.einsum("ajl,bjl->jab", rows, roots)
    return (1 - overlaps).clamp(min=0).sqrt().sum(0)
