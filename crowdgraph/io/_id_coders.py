"""Code ids that arrive batch by batch by the order of their first appearance, and remember them compactly."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array
from crowdgraph.core.result import CodedColumn
from crowdgraph.errors import IdError
from crowdgraph.io._ids import first_appearance

# Floats hold integers exactly up to here.
EXACT_FLOATS = 2**53


class IdCoder(Protocol):
    """Codes ids of one type, among which are no nulls."""

    @property
    def n_bytes(self) -> int:
        """The memory that the tables take."""
        ...

    def code(self, column: pa.Array) -> Array:
        """Return the code of each row."""
        ...

    def ids(self) -> pa.Array:
        """Return the ids, in the order of their codes; nothing can be coded afterwards."""
        ...


def id_coder(kind: pa.DataType, *, what: str, max_range: int) -> IdCoder:
    """Return a coder for the ids of an Arrow column.

    Parameters
    ----------
    kind
        The type of the column.
    what
        What the ids are, for messages.
    max_range
        How far apart integers may be to be looked up by their value; others are hashed.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return IntegerCoder(what, max_range)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TextCoder()
    raise IdError(
        f"The {what} column holds {kind} values, and a store of columns holds ids that are text or whole numbers; "
        "convert the column to one of them."
    )


class ByteCoder:
    """Codes byte strings with a compiled hash table, which compares the bytes themselves."""

    def __init__(self) -> None:
        self.n_ids = 0
        self._tags, self._slots = _empty_table(2**10)
        self._heap = np.empty(2**12, np.uint8)
        self._starts = np.zeros(2**9 + 1, np.int64)

    @property
    def n_bytes(self) -> int:
        """The memory that the tables take."""
        return self._tags.nbytes + self._slots.nbytes + self._heap.nbytes + self._starts.nbytes

    def code(self, data: Array, offsets: Array) -> Array:
        """Return the code of each row: row r is ``data[offsets[r]:offsets[r + 1]]``."""
        from crowdgraph.io._byte_codes import code_rows

        n_rows = len(offsets) - 1
        codes = np.empty(n_rows, np.int32)
        # Arrow's are read-only already: code for one kind of array is compiled, not for two.
        data.flags.writeable = offsets.flags.writeable = False
        row = 0
        while True:
            row, self.n_ids = code_rows(
                data, offsets, row, self._tags, self._slots, self._heap, self._starts, self.n_ids, codes
            )
            if row == n_rows:
                return codes
            self._grow(int(offsets[row + 1] - offsets[row]))

    def ids(self) -> tuple[Array, Array]:
        """Return the bytes of all ids, and where each begins."""
        starts = self._starts[: self.n_ids + 1]
        self._tags, self._slots = _empty_table(2)
        return self._heap[: starts[-1]], starts

    def _grow(self, n_more_bytes: int) -> None:
        """Make room for more ids, in whatever table is full; the system moves large arrays without copying them."""
        from crowdgraph.io._byte_codes import rehash

        if self._starts[self.n_ids] + n_more_bytes > len(self._heap):
            self._heap.resize(max(len(self._heap) * 3 // 2, len(self._heap) + n_more_bytes), refcheck=False)
        if self.n_ids + 1 >= len(self._starts):
            self._starts.resize(len(self._starts) * 3 // 2, refcheck=False)
        if self.n_ids >= len(self._slots) * 5 // 8:
            tags, slots = _empty_table(2 * len(self._slots))
            rehash(self._tags, self._slots, tags, slots)
            self._tags, self._slots = tags, slots


def _empty_table(size: int) -> tuple[Array, Array]:
    return np.zeros(size, np.uint32), np.full(size, -1, np.int32)


class TextCoder:
    """Codes text; the code of null is -1."""

    def __init__(self) -> None:
        self._bytes = ByteCoder()

    @property
    def n_bytes(self) -> int:
        """The memory that the tables take."""
        return self._bytes.n_bytes

    def code(self, column: pa.Array) -> Array:
        """Return the code of each row; of a column of codes, only the distinct values are hashed."""
        if pa.types.is_dictionary(column.type):
            indices = column.indices.cast(pa.int32())
            rows = np.asarray((indices.fill_null(-1) if indices.null_count else indices).to_numpy())
            order = first_appearance(CodedColumn(rows, np.empty(len(column.dictionary))))
            # The last entry serves index -1, so that nulls stay -1.
            table = np.full(len(column.dictionary) + 1, -1, np.int32)
            table[order] = self.code(column.dictionary.take(pa.array(order)))
            return np.asarray(table[rows])
        if column.null_count:
            codes = np.full(len(column), -1, np.int32)
            codes[np.asarray(column.is_valid())] = self.code(column.drop_null())
            return codes
        text = column.cast(pa.large_string())
        _, offsets, data = text.buffers()
        if not len(text):
            return np.zeros(0, np.int32)
        bounds = np.frombuffer(offsets, np.int64, len(text) + 1, text.offset * 8)
        letters = np.zeros(1, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
        return self._bytes.code(letters, bounds)

    def ids(self) -> pa.Array:
        """Return the ids, in the order of their codes."""
        heap, starts = self._bytes.ids()
        return pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(heap))


class IntegerCoder:
    """Codes whole numbers: by a table of their range where they lie close together, by hashing elsewhere.

    Floats are taken for the integers that they were before a table converted them, as pandas does beside nulls.
    """

    def __init__(self, what: str, max_range: int) -> None:
        self._what = what
        self._max_range = max_range
        self._low = 0
        self._table: Array | None = np.zeros(0, np.int32)
        self._ids: list[Array] = []
        self._n_dense = 0
        self._bytes = ByteCoder()

    @property
    def n_bytes(self) -> int:
        """The memory that the tables take."""
        return self._bytes.n_bytes if self._table is None else self._table.nbytes + 8 * self._n_dense

    def code(self, column: pa.Array) -> Array:
        """Return the code of each row."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return self.code_numbers(self._numbers(column))

    def ids(self) -> pa.Array:
        """Return the ids, in the order of their codes."""
        if self._table is None:
            return pa.array(self._bytes.ids()[0].view(np.int64))
        self._table = np.zeros(0, np.int32)
        return pa.array(np.concatenate(self._ids) if self._ids else np.zeros(0, np.int64))

    def _numbers(self, column: pa.Array) -> Array:
        """Return the values as integers."""
        try:
            integers = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise self._no_integer(column) from error
        if pa.types.is_floating(column.type) and (pc.max(pc.abs(integers)).as_py() or 0) >= EXACT_FLOATS:
            raise self._no_integer(column)
        return np.asarray(integers.to_numpy())

    def _no_integer(self, column: pa.Array) -> IdError:
        limit = EXACT_FLOATS if pa.types.is_floating(column.type) else 2**63
        values = column.to_pylist()
        row = next(row for row, value in enumerate(values) if not (abs(value) < limit and float(value).is_integer()))
        return IdError(
            f"The {self._what} in row {row} is {values[row]!r}, which is neither text nor a whole number of at most 64 "
            "bits; a store of columns holds no other ids."
        )

    def code_numbers(self, numbers: Array) -> Array:
        """Return the code of each integer; that of -1 is not special here."""
        if not len(numbers):
            return np.zeros(0, np.int32)
        self._cover(int(numbers.min()), int(numbers.max()))
        if self._table is None:
            return self._bytes.code(np.ascontiguousarray(numbers).view(np.uint8), np.arange(len(numbers) + 1) * 8)
        offsets = numbers - self._low
        codes = self._table.take(offsets)
        is_new = np.flatnonzero(codes < 0)
        if len(is_new):
            codes[is_new] = self._add(offsets[is_new], self._table)
        return codes

    def _add(self, offsets: Array, table: Array) -> Array:
        """Code integers that are new, some of them perhaps several times."""
        rows = np.arange(len(offsets), dtype=np.int32)
        # Of several rows with one number the last assignment wins: going backwards, that is the first row.
        table[offsets[::-1]] = rows[::-1]
        distinct = offsets[table[offsets] == rows]
        table[distinct] = np.arange(self._n_dense, self._n_dense + len(distinct))
        self._n_dense += len(distinct)
        self._ids.append(distinct + self._low)
        return np.asarray(table[offsets])

    def _cover(self, low: int, high: int) -> None:
        """Let the table reach over a range; give it up if it would become too long."""
        if self._table is None:
            return
        if len(self._table):
            old_low, old_high = self._low, self._low + len(self._table) - 1
            if old_low <= low and high <= old_high:
                return
            low, high = min(low, old_low), max(high, old_high)
        if high - low >= self._max_range:
            known, self._table, self._ids = self._ids, None, []
            for ids in known:
                self.code_numbers(ids)
            return
        # Some more than needed, so that a range that rises does not grow the table with each batch.
        spare = min((high - low) // 2, self._max_range - (high - low + 1))
        first = max(low - spare, -(2**63)) if len(self._table) and low < self._low else low
        table = np.full(high - low + 1 + spare, -1, np.int32)
        table[self._low - first : self._low - first + len(self._table)] = self._table
        self._low, self._table = first, table


class ValueCoder:
    """Codes values of any kind, such as dates, of which there are few."""

    # The bytes that a value takes, with its entry in a dict.
    BYTES = 200

    def __init__(self) -> None:
        self._code_of: dict[object, int] = {}

    @property
    def n_bytes(self) -> int:
        """The memory that the values take."""
        return self.BYTES * len(self._code_of)

    def code(self, column: pa.Array) -> Array:
        """Return the code of each row."""
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        rows = np.asarray(encoded.indices.cast(pa.int32()).fill_null(-1).to_numpy())
        order = first_appearance(CodedColumn(rows, np.empty(len(encoded.dictionary))))
        table = np.full(len(encoded.dictionary) + 1, -1, np.int32)
        for index, value in zip(order, encoded.dictionary.take(pa.array(order)).to_pylist(), strict=True):
            table[index] = self._code_of.setdefault(value, len(self._code_of))
        return np.asarray(table[rows])

    def ids(self) -> pa.Array:
        """Return the values, in the order of their codes."""
        return pa.array(list(self._code_of))
