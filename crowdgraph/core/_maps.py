"""Arrays that are files, mapped into memory: made for a while, and taken out of memory again once read or written."""

from __future__ import annotations

import mmap
import os
from os import PathLike, fspath
from tempfile import TemporaryFile, gettempdir

import numpy as np
from numpy.typing import DTypeLike

from crowdgraph.core._arrays import Array, row_blocks
from crowdgraph.errors import StoreError
from crowdgraph.messages import Hint


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike, *, directory: str | PathLike[str] | None = None) -> Array:
    """Return an array of zeros that lies on disk, in a file without a name: nothing is left when the process ends.

    Parameters
    ----------
    shape, dtype
        As for ``numpy.zeros``.
    directory
        Where to make the file; where temporary files usually go if left out.
    """
    if 0 in shape:
        return np.zeros(shape, dtype)
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    where = fspath(directory or gettempdir())
    try:
        with TemporaryFile(prefix="crowdgraph-", dir=directory) as file:
            reserve(file.fileno(), n_bytes)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)
    except OSError as error:
        raise StoreError(
            f"{where!r} has no room for {n_bytes / 1e9:,.1f} GB of results: {error.strerror}.",
            hint=Hint(
                "Free some space, or set the environment variable TMPDIR to a directory with more.",
                cli="Free some space, or set TMPDIR to a directory with more.",
            ),
        ) from error


def scratch_copy(array: Array, dtype: DTypeLike) -> Array:
    """Return a copy that lies on disk; see `scratch_array`."""
    copy = scratch_array(array.shape, dtype)
    for rows in row_blocks(len(array)):
        copy[rows] = array[rows]
        release(copy, rows.start, rows.stop)
        release(array, rows.start, rows.stop)
    return copy


def reserve(descriptor: int, n_bytes: int) -> None:
    """Give an open file its size, and raise if the disk is too small: writing to a map would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
    else:
        os.truncate(descriptor, n_bytes)


def release(array: Array, first: int = 0, last: int | None = None) -> None:
    """Take rows of an array out of memory if a file holds them: they are read again, or stay written, when needed.

    This does nothing for arrays in memory, and where the system cannot do it.
    """
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED") or not array.flags.c_contiguous:
        return
    rows = array[first:last]
    begin = rows.__array_interface__["data"][0] - np.frombuffer(base, np.uint8).__array_interface__["data"][0]
    # Whole pages only: a page that other rows share stays.
    start = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (begin + rows.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if stop > start:
        base.madvise(mmap.MADV_DONTNEED, start, stop - start)
