"""An order of volunteers that depends on their weights, and neither on the order nor on the names they come with.

What draws random numbers in this order, or adds up in it, gives the same in every other. Volunteers are sorted by
strength, and equals by their neighbours, as in colour refinement: a fingerprint of a volunteer is a sum over neighbours
of mixed integers, so that the order of summation does not matter. Where nothing tells two apart, usually because they
could change places, one is singled out, which tells others apart in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["canonical_order"]

# Strengths and weights that differ by less than this share of the largest may differ by rounding only.
STRENGTH_ROUNDING, WEIGHT_STEPS = 1e-9, 2.0**30
# Fingerprints look at each weight so many times on average, and at so many in all; then the order given decides.
MAX_LOOKS, MIN_LOOKS = 10, 1_000_000
# How many weights are fingerprinted at a time.
WEIGHTS_PER_BLOCK = 2**22
# Odd numbers with bits in no pattern.
MIXERS = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

Codes = NDArray[np.int64]
Fingerprints = NDArray[np.uint64]


def canonical_order(weights: Any, marks: NDArray[Any] | None = None) -> Codes:
    """Return the volunteers who have links, the weakest first, in an order that their weights decide.

    Parameters
    ----------
    weights
        An array or a SciPy CSR array of symmetric weights, (V, V).
    marks
        What else tells volunteers apart, of shape (V,).
    """
    strength = np.asarray(weights.sum(axis=1)).ravel()
    order = np.flatnonzero(strength > 0)
    if not len(order):
        return order
    cell = np.full(len(strength), -1)
    order = order[np.argsort(strength[order], kind="stable")]
    is_new = np.diff(strength[order], prepend=-np.inf) > STRENGTH_ROUNDING * strength[order[-1]]
    cell[order] = _starts(is_new, np.arange(len(order)))
    if marks is not None:
        cell[order] = _split(cell[order], np.unique(marks, return_inverse=True)[1][order])
    _refine(cell, _Fingerprints(weights))
    return order[np.argsort(cell[order], kind="stable")]


def _refine(cell: Codes, fingerprints: _Fingerprints) -> None:
    """Split cells of volunteers who are alike until each has one member, or there were too many looks.

    The cell of a volunteer is the number of those in cells before; -1 for those without links.
    """
    looks = max(MAX_LOOKS * fingerprints.n_weights, MIN_LOOKS)
    while looks > 0:
        sizes = np.bincount(cell[cell >= 0])
        tied = np.flatnonzero((cell >= 0) & (sizes[cell] > 1))
        if not len(tied):
            return
        looks -= fingerprints.cost(tied)
        refined = _split(cell[tied], fingerprints.of(tied, cell))
        if (refined == cell[tied]).all():
            first = tied[refined == refined.min()]
            cell[first[1:]] += 1
        else:
            cell[tied] = refined


def _split(cell: Codes, values: NDArray[Any]) -> Codes:
    """Split the cells of some volunteers, (M,), which these are all members of, where their values differ."""
    order = np.lexsort((values, cell))
    cells, values = cell[order], values[order]
    is_first = np.diff(cells, prepend=-1) != 0
    is_new = is_first | np.append(True, values[1:] != values[:-1])
    index = np.arange(len(cells))
    refined = np.empty_like(cell)
    refined[order] = _starts(is_new, cells + index - _starts(is_first, index))
    return refined


def _starts(is_new: NDArray[np.bool_], position: Codes) -> Codes:
    """Return for each of a sorted list the position at which its group begins."""
    return np.asarray(np.maximum.accumulate(np.where(is_new, position, 0)))


class _Fingerprints:
    """Fingerprints of volunteers: of their weights and of the cells that these lead to."""

    def __init__(self, weights: Any) -> None:
        self._weights, self._is_dense = weights, isinstance(weights, np.ndarray)
        n_rows = weights.shape[0]
        self._n_by_row = np.full(n_rows, n_rows) if self._is_dense else np.diff(weights.indptr).astype(np.int64)
        self._unit = float(weights.max()) / WEIGHT_STEPS
        self.n_weights = int(self._n_by_row.sum())

    def cost(self, volunteers: Codes) -> int:
        """Return how many weights are looked at."""
        return int(self._n_by_row[volunteers].sum())

    def of(self, volunteers: Codes, cell: Codes) -> Fingerprints:
        """Return the fingerprints of some volunteers with links, of shape (M,)."""
        ends = cell.astype(np.uint64) * MIXERS[0]
        blocks = []
        for block in self._blocks(volunteers):
            values, columns = self._rows(block)
            mixed = np.rint(values / self._unit).astype(np.uint64)
            mixed = (mixed + ends[columns]) * MIXERS[1]
            mixed = (mixed ^ (mixed >> np.uint64(31))) * MIXERS[2]
            mixed = (mixed ^ (mixed >> np.uint64(29))) * (values > 0)
            starts = np.cumsum(self._n_by_row[block]) - self._n_by_row[block]
            blocks.append(np.add.reduceat(mixed, starts))
        return np.concatenate(blocks)

    def _blocks(self, volunteers: Codes) -> Iterator[Codes]:
        """Yield the volunteers, some at a time."""
        number = np.cumsum(self._n_by_row[volunteers]) // WEIGHTS_PER_BLOCK
        yield from np.split(volunteers, np.flatnonzero(np.diff(number)) + 1)

    def _rows(self, volunteers: Codes) -> tuple[NDArray[np.float64], Codes]:
        """Return the weights of some volunteers and their other ends, row after row."""
        if self._is_dense:
            return self._weights[volunteers].ravel(), np.tile(np.arange(len(self._weights)), len(volunteers))
        lengths = self._n_by_row[volunteers]
        index = np.repeat(self._weights.indptr[volunteers] - (np.cumsum(lengths) - lengths), lengths)
        index += np.arange(len(index))
        return self._weights.data[index], self._weights.indices[index]
