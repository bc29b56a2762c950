"""Columns in NumPy files that are read and written block by block, and sorted without ever being in memory as a whole.

A sort has two passes. The first distributes the rows among ranges of keys, so that each range is small enough to be
sorted in memory: every range has its own region of the target files, in which its rows arrive in their old order. The
second sorts one region after another. Both read and write consecutive bytes only, and equal keys keep their order.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._maps import reserve
from crowdgraph.io.frames import stable_order

Argument = TypeVar("Argument")
Value = TypeVar("Value")
Block = dict[str, Array]

# How many rows are read at once.
BLOCK_ROWS = 2**20
# How many threads prepare blocks; as many blocks again wait for their turn.
N_THREADS = 2


class ColumnFile:
    """A column in a NumPy file.

    Parameters
    ----------
    path
        The file.
    dtype
        The type of its values.
    n_rows
        Their number; of a file that is appended to, the number so far.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], n_rows: int) -> None:
        self.path = path
        self.dtype = dtype
        self.n_rows = n_rows
        self._n_header = len(_header(dtype, n_rows))

    @classmethod
    def create(cls, path: Path, dtype: Any, *, n_rows: int = 0) -> ColumnFile:
        """Make a file with room for some rows."""
        column = cls(path, np.dtype(dtype), n_rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(_header(column.dtype, n_rows))
            file.flush()
            if n_rows:
                reserve(file.fileno(), column._n_header + n_rows * column.dtype.itemsize)
        return column

    @classmethod
    def open(cls, path: Path) -> ColumnFile:
        """Open a file that is there."""
        column = np.load(path, mmap_mode="r", allow_pickle=False)
        return cls(path, column.dtype, len(column))

    def append(self, values: Array) -> None:
        """Write values behind those that are there; the header says how many there are once `finish` was called."""
        with self.path.open("ab", buffering=0) as file:
            _write_all(file, values.astype(self.dtype, copy=False))
        self.n_rows += len(values)

    def finish(self, *, dtype: Any = None) -> None:
        """Write the number of rows into the header, whose length is the same for any number.

        Values may be of another type of the same size from now on: ticks become datetimes.
        """
        self.dtype = self.dtype if dtype is None else np.dtype(dtype)
        with self.path.open("r+b") as file:
            file.write(_header(self.dtype, self.n_rows))

    def read(self, start: int, stop: int) -> Array:
        """Return a copy of some values."""
        values = np.empty(stop - start, self.dtype)
        with self.path.open("rb", buffering=0) as file:
            file.seek(self._n_header + start * self.dtype.itemsize)
            view, n_read = values.view(np.uint8).data, 0
            while n_read < values.nbytes:
                n_more = file.readinto(view[n_read:])
                if not n_more:
                    raise OSError(f"{self.path.name} ends before row {stop:,}")
                n_read += n_more
        return values

    def write(self, start: int, values: Array) -> None:
        """Replace values from a row on."""
        with self.path.open("r+b", buffering=0) as file:
            self.write_to(file, start, values)

    def write_to(self, file: io.FileIO, start: int, values: Array) -> None:
        """Replace values, in a file that is open."""
        file.seek(self._n_header + start * self.dtype.itemsize)
        _write_all(file, values.astype(self.dtype, copy=False))


def _header(dtype: np.dtype[Any], n_rows: int) -> bytes:
    file = io.BytesIO()
    facts = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n_rows,)}
    np.lib.format.write_array_header_1_0(file, facts)
    return file.getvalue()


def _write_all(file: io.FileIO, values: Array) -> None:
    view, n_written = np.ascontiguousarray(values).view(np.uint8).data, 0
    while n_written < len(view):
        n_written += file.write(view[n_written:])


class Buckets(NamedTuple):
    """Rows that were distributed among ranges of keys.

    Attributes
    ----------
    columns
        The files, in which the rows of a range follow each other.
    key
        The name of the column with the keys.
    bounds
        Where each range begins, of shape (B + 1,).
    is_constant
        Whether all keys of a range are equal, so that its rows are sorted already, of shape (B,).
    """

    columns: Mapping[str, ColumnFile]
    key: str
    bounds: Array
    is_constant: Array

    def sorted_blocks(self, *, max_rows: int | None = None) -> Iterator[SortedBlock]:
        """Yield the rows in the order of their keys, block by block; one range of keys is one block.

        Those of equal keys come in several blocks if there are more than `max_rows`.
        """

        def pieces() -> Iterator[tuple[int, int, bool]]:
            for (start, stop), is_constant in zip(
                pairwise(self.bounds.tolist()), self.is_constant.tolist(), strict=True
            ):
                step = max_rows if is_constant and max_rows is not None else max(stop - start, 1)
                for first in range(start, stop, step):
                    yield first, min(first + step, stop), is_constant

        def sort(piece: tuple[int, int, bool]) -> SortedBlock:
            start, stop, is_constant = piece
            block = {name: column.read(start, stop) for name, column in self.columns.items()}
            if not is_constant:
                order = _order(block[self.key])
                block = {name: values.take(order) for name, values in block.items()}
            return SortedBlock(start, block, is_constant)

        return in_order(sort, pieces())


class SortedBlock(NamedTuple):
    """Rows in the order of their keys, the row at which they begin, and whether they were in order before."""

    start: int
    columns: Block
    was_sorted: bool


def distribute(
    blocks: Iterable[Block],
    targets: Mapping[str, ColumnFile],
    *,
    key: str,
    bucket_of: Callable[[Array], Array],
    bounds: Array,
    is_constant: Array,
) -> Buckets:
    """Write rows into the regions of their ranges, each in the old order.

    Parameters
    ----------
    blocks
        The rows.
    targets
        The files to fill in, by the names of the columns.
    key
        The name of the column with the keys.
    bucket_of
        From keys to the numbers of their ranges, of an unsigned type.
    bounds, is_constant
        Of the ranges, as in `Buckets`.
    """
    n_written = bounds[:-1].copy()
    n_buckets = len(n_written)

    def split(block: Block) -> tuple[Array, Block]:
        buckets = bucket_of(block[key])
        order = np.argsort(buckets, kind="stable")
        counts = np.bincount(buckets, minlength=n_buckets)
        return counts, {name: block[name].take(order) for name in targets}

    files = {name: column.path.open("r+b", buffering=0) for name, column in targets.items()}
    try:
        for counts, block in in_order(split, blocks):
            ends = np.cumsum(counts)
            for bucket in np.flatnonzero(counts).tolist():
                rows = slice(int(ends[bucket] - counts[bucket]), int(ends[bucket]))
                for name, values in block.items():
                    targets[name].write_to(files[name], int(n_written[bucket]), values[rows])
            n_written += counts
    finally:
        for file in files.values():
            file.close()
    return Buckets(targets, key, bounds, is_constant)


def blocks_of(columns: Mapping[str, ColumnFile], n_rows: int, *, number: str | None = None) -> Iterator[Block]:
    """Yield the rows of columns block by block, perhaps with a column of their numbers."""

    def read(start: int) -> Block:
        stop = min(start + BLOCK_ROWS, n_rows)
        block = {name: column.read(start, stop) for name, column in columns.items()}
        if number is not None:
            block[number] = np.arange(start, stop, dtype=row_type(n_rows))
        return block

    return in_order(read, range(0, n_rows, BLOCK_ROWS))


def row_type(n_rows: int) -> type[np.signedinteger[Any]]:
    """Return the type of row numbers."""
    return np.int32 if n_rows < 2**31 else np.int64


def in_order(function: Callable[[Argument], Value], arguments: Iterable[Argument]) -> Iterator[Value]:
    """Yield the values of a function in the order of its arguments; threads compute the next ones meanwhile."""
    waiting: list[Future[Value]] = []
    with ThreadPoolExecutor(N_THREADS) as pool:
        try:
            for argument in arguments:
                waiting.append(pool.submit(function, argument))
                if len(waiting) > N_THREADS:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()


def key_ranges(sample: Array, n_ranges: int) -> tuple[Array, Array]:
    """Return the first keys of ranges with about equally many rows, all but the lowest, and which are constant.

    A key that is so frequent that it fills a range by itself gets one of its own.

    Parameters
    ----------
    sample
        Some of the keys, drawn at random.
    n_ranges
        The number of ranges, apart from those of frequent keys.
    """
    ordered = np.sort(sample)
    candidates = np.unique(ordered[np.arange(1, n_ranges) * len(ordered) // n_ranges])
    repeats = np.searchsorted(ordered, candidates, "right") - np.searchsorted(ordered, candidates, "left")
    frequent = candidates[repeats * n_ranges * 2 > len(ordered)]
    after = _next(frequent)
    first_keys = np.unique(np.concatenate([candidates, after[after > frequent]]))
    is_constant = np.zeros(len(first_keys) + 1, dtype=bool)
    is_constant[1:-1] = _next(first_keys[:-1]) == first_keys[1:]
    return first_keys, is_constant


def _next(keys: Array) -> Array:
    """Return the lowest key above each; nothing above it where there is none."""
    return np.asarray(keys + 1 if keys.dtype.kind == "i" else np.nextafter(keys, np.finfo(keys.dtype).max))


def code_ranges(starts: Array, max_rows: int) -> Array:
    """Return the first codes of ranges with at most about `max_rows` rows each; a longer group is one by itself.

    Parameters
    ----------
    starts
        Where the rows of each group begin, of shape (n_groups + 1,).
    max_rows
        How many rows are sorted at once.
    """
    n_groups = len(starts) - 1
    at_steps = np.searchsorted(starts, np.arange(0, starts[-1], max_rows), "right") - 1
    long = np.flatnonzero(np.diff(starts) > max_rows)
    first_codes = np.unique(np.concatenate([[0], at_steps, long, long + 1]))
    return np.asarray(first_codes[first_codes < max(n_groups, 1)])


def _order(keys: Array) -> Array:
    """Return ``np.argsort(keys, kind="stable")``: NumPy sorts short integers in linear time, so two halves are fast."""
    if keys.dtype.kind == "f":
        return np.argsort(keys, kind="stable")
    numbers = keys.astype(np.int64, copy=False) if keys.dtype.kind == "i" else keys.view(np.int64)
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest - lowest >= 2**32:
        return stable_order(numbers)
    short = (numbers - lowest).astype(np.uint32)
    order = np.argsort(short.astype(np.uint16), kind="stable")
    if highest - lowest >= 2**16:
        order = order.take(np.argsort((short >> 16).astype(np.uint16).take(order), kind="stable"))
    return order
