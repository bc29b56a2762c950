"""Sparse arrays whose indices are known to lie within their shape, as SciPy's compiled code takes for granted."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.errors import ResultError

# Formats whose indices are positions within rows (or columns), and where each of these begins.
COMPRESSED = ("csr", "csc")


def sparse_array(name: str, data: Array, indices: Array, indptr: Array, *, shape: tuple[int, int]) -> Any:
    """Return a CSR array of its parts, once they are known to fit together.

    Parameters
    ----------
    name
        What it is, to begin an error with.
    data, indices, indptr
        The values, their columns, and where each row begins.
    shape
        The number of rows and of columns.
    """
    from scipy.sparse import csr_array

    _check_compressed(name, data, indices, indptr, n_major=shape[0], n_minor=shape[1])
    return csr_array((data, indices, indptr), shape=shape)


def locked_csr(name: str, matrix: Any, *, shape: tuple[int, int]) -> Any:
    """Return a copy of a sparse array as a read-only CSR array of float64, without repeated entries.

    Raise before any compiled code sees it if it is of another shape or not of real numbers, or if its indices lie
    beyond the shape.
    """
    from scipy.sparse import csr_array

    if tuple(matrix.shape) != shape:
        raise ResultError(f"{name} has shape {tuple(matrix.shape)}; expected {shape}.")
    check_indices(name, matrix)
    if matrix.dtype.kind not in "biuf":
        raise ResultError(f"{name} is of {matrix.dtype}; expected real numbers.")
    copy = csr_array(matrix, dtype=np.float64, copy=True)
    copy.sum_duplicates()
    lock_csr(copy)
    return copy


def lock_csr(matrix: Any) -> None:
    """Make the parts of a CSR array read-only."""
    for part in (matrix.data, matrix.indices, matrix.indptr):
        lock(part)


def check_indices(name: str, matrix: Any) -> None:
    """Raise unless the indices of a sparse array of any format lie within its shape."""
    if matrix.format in COMPRESSED:
        n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
        _check_compressed(name, matrix.data, matrix.indices, matrix.indptr, n_major=n_major, n_minor=n_minor)
        return
    # The other formats are converted by NumPy, which checks their indices.
    coo = matrix if matrix.format == "coo" else matrix.tocoo()
    for axis, (codes, size) in enumerate(zip((coo.row, coo.col), coo.shape, strict=True)):
        _check_bounds(f"{name}: the indices of axis {axis}", codes, size)
        if codes.shape != coo.data.shape:
            raise ResultError(f"{name} has {len(coo.data):,} values and {len(codes):,} indices; expected as many.")


def _check_compressed(name: str, data: Array, indices: Array, indptr: Array, *, n_major: int, n_minor: int) -> None:
    for part, array in (("data", data), ("indices", indices), ("indptr", indptr)):
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise ResultError(f"{name}: {part} must be a one-dimensional array.")
    if indptr.shape != (n_major + 1,) or indptr.dtype.kind != "i":
        raise ResultError(
            f"{name}: indptr has {indptr.size:,} values of {indptr.dtype}; expected {n_major + 1:,} integers."
        )
    n_values = min(len(data), len(indices))
    # Compared pair by pair: differences could overflow.
    rises = indptr[0] == 0 and bool((indptr[1:] >= indptr[:-1]).all())
    if not rises or int(indptr[-1]) > n_values:
        raise ResultError(f"{name}: indptr must rise from 0 to at most the number of values, {n_values:,}.")
    _check_bounds(f"{name}: indices", indices, n_minor)


def _check_bounds(name: str, codes: Array, size: int) -> None:
    if codes.dtype.kind != "i":
        raise ResultError(f"{name} are of {codes.dtype}; expected integers.")
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise ResultError(f"{name} run from {codes.min()} to {codes.max()}; expected 0 to {size - 1}.")
