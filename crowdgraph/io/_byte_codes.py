"""A compiled hash table of byte strings: the code of each is its rank by first appearance."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdgraph._compiled_cache import ensure_cache

ensure_cache()

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Codes = NDArray[np.int32]
Tags = NDArray[np.uint32]


@njit(cache=True, nogil=True)
def _tag(data: Bytes, begin: int, end: int) -> np.uint32:
    """Return a hash: FNV-1a, and its bits mixed so that the lowest depend on all."""
    value = np.uint64(0xCBF29CE484222325)
    for position in range(begin, end):
        value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    value ^= value >> np.uint64(33)
    return np.uint32(value & np.uint64(0xFFFFFFFF))


@njit(cache=True, nogil=True)
def code_rows(
    data: Bytes,
    offsets: Integers,
    first: int,
    tags: Tags,
    slots: Codes,
    heap: Bytes,
    starts: Integers,
    n_ids: int,
    codes: Codes,
) -> tuple[int, int]:
    """Code rows from `first` on, and return the row at which a table is full, or the number of rows; and that of ids.

    Parameters
    ----------
    data, offsets
        The rows: row r is ``data[offsets[r]:offsets[r + 1]]``.
    tags, slots
        The table: the hash and the code in each slot, whose number is a power of two; the code of an empty slot is -1.
    heap, starts
        The ids, one after another, and where each begins.
    n_ids
        The number of ids so far.
    codes
        The codes to fill in.
    """
    mask = np.uint32(len(slots) - 1)
    most_ids = min(len(starts) - 1, len(slots) * 5 // 8)
    for row in range(first, len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        tag = _tag(data, begin, end)
        slot = tag & mask
        while True:
            code = slots[slot]
            if code < 0:
                if n_ids >= most_ids or starts[n_ids] + end - begin > len(heap):
                    return row, n_ids
                code = n_ids
                tags[slot], slots[slot] = tag, code
                heap[starts[code] : starts[code] + end - begin] = data[begin:end]
                starts[code + 1] = starts[code] + end - begin
                n_ids += 1
                break
            if tags[slot] == tag and starts[code + 1] - starts[code] == end - begin:
                known = starts[code]
                is_same = True
                for position in range(end - begin):
                    if heap[known + position] != data[begin + position]:
                        is_same = False
                        break
                if is_same:
                    break
            slot = (slot + np.uint32(1)) & mask
        codes[row] = code
    return len(offsets) - 1, n_ids


@njit(cache=True, nogil=True)
def rehash(old_tags: Tags, old_slots: Codes, tags: Tags, slots: Codes) -> None:
    """Fill a larger table with the entries of a smaller one."""
    mask = np.uint32(len(slots) - 1)
    for old in range(len(old_slots)):
        if old_slots[old] >= 0:
            slot = old_tags[old] & mask
            while slots[slot] >= 0:
                slot = (slot + np.uint32(1)) & mask
            tags[slot], slots[slot] = old_tags[old], old_slots[old]
