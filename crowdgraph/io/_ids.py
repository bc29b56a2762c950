"""Encode ids and labels of any hashable kind as integer codes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import WHY_BROKEN, Array, first_broken, is_null, object_array, plain
from crowdgraph.core._text import quantity
from crowdgraph.core.result import CodedColumn
from crowdgraph.errors import IdError, InputError, LabelError
from crowdgraph.io._columns import Column, python_values, text_array
from crowdgraph.messages import Hint, quote


def encode(column: Column, *, what: str) -> CodedColumn:
    """Return a code for each row and the distinct values, some of which may not occur; -1 is null."""
    coded = _encode(column, what)
    is_text = not isinstance(column, list) and pa.types.is_string(column.type)
    broken = None if is_text or coded.values.dtype != object else first_broken(coded.values.tolist())
    if broken is not None:
        row = int(np.argmax(coded.codes == broken))
        raise IdError(f"The {what} in row {row} is {quote(coded.values[[broken]])}{WHY_BROKEN}")
    return coded


def _encode(column: Column, what: str) -> CodedColumn:
    """Encode a column of any kind."""
    if isinstance(column, list):
        return _encode_objects(column, what)
    if pa.types.is_dictionary(column.type):
        return _encode_dictionary(column, what)
    if pa.types.is_nested(column.type):
        raise IdError(f"The {what} column holds {column.type} values, which cannot be ids; use strings or integers.")
    if pa.types.is_integer(column.type) and column.null_count == 0 and len(column):
        dense = _encode_range(column.to_numpy())
        if dense is not None:
            return dense
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        encoded = column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return _encode_objects(python_values(column), what)
    if encoded.num_chunks == 0:
        return CodedColumn(np.zeros(0, dtype=np.int32), object_array([]))
    codes = np.concatenate([_indices(chunk) for chunk in encoded.chunks])
    return CodedColumn(codes, _values(encoded.chunk(0).dictionary))


def _encode_range(numbers: Array) -> CodedColumn | None:
    """Encode integers by a lookup table of their range, without hashing; return None if they are too far apart."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 2 * len(numbers) + 1000 or not -(2**63) <= low <= high < 2**63:
        return None
    offsets = np.empty(len(numbers), dtype=np.int32)
    np.subtract(numbers.astype(np.int64, copy=False), low, out=offsets, casting="unsafe")
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[offsets] = True
    if occurs.all():
        return CodedColumn(offsets, np.arange(low, high + 1, dtype=np.int64))
    code_of = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return CodedColumn(code_of.take(offsets), np.flatnonzero(occurs) + low)


def _encode_dictionary(column: pa.ChunkedArray, what: str) -> CodedColumn:
    """Encode the dictionaries, of which each chunk may have its own, and look the rows up in them."""
    chunks = column.chunks
    is_new = [index == 0 or not _same_memory(chunks[index - 1], chunk) for index, chunk in enumerate(chunks)]
    dictionaries = [chunk.dictionary for chunk, new in zip(chunks, is_new, strict=True) if new]
    merged = _encode(pa.chunked_array(dictionaries, column.type.value_type), what)
    # The last entry of each table serves index -1, so that nulls stay -1.
    tables = np.split(merged.codes, np.cumsum([len(dictionary) for dictionary in dictionaries])[:-1])
    tables = [np.append(table, np.int32(-1)) for table in tables]
    parts = [tables[table][_indices(chunk)] for table, chunk in zip(np.cumsum(is_new) - 1, chunks, strict=True)]
    return CodedColumn(np.concatenate(parts or [np.zeros(0, dtype=np.int32)]), merged.values)


def _same_memory(left: pa.DictionaryArray, right: pa.DictionaryArray) -> bool:
    """Return whether two chunks share one dictionary, as chunks of one Parquet row group do."""
    first, second = left.dictionary, right.dictionary
    addresses = [[buffer and buffer.address for buffer in part.buffers()] for part in (first, second)]
    return (len(first), first.offset, addresses[0]) == (len(second), second.offset, addresses[1])


def _indices(chunk: pa.DictionaryArray) -> Array:
    indices = chunk.indices.cast(pa.int32())
    return np.asarray((indices.fill_null(-1) if indices.null_count else indices).to_numpy())


def _values(dictionary: pa.Array) -> Array:
    """Return the distinct values as ids; floats that are integers become integers again (pandas makes them floats)."""
    if pa.types.is_integer(dictionary.type) and dictionary.type != pa.uint64():
        return np.asarray(dictionary.to_numpy(), dtype=np.int64)
    if pa.types.is_string(dictionary.type) or pa.types.is_large_string(dictionary.type):
        return text_array(dictionary)
    return exact_integers(object_array(python_values(dictionary)))


def _encode_objects(column: list[Any], what: str) -> CodedColumn:
    codes = np.full(len(column), -1, dtype=np.int32)
    code_of: dict[Hashable, int] = {}
    distinct: list[Any] = []
    for row, raw in enumerate(column):
        value = plain(raw)
        if is_null(value):
            continue
        try:
            code = code_of.setdefault(value, len(distinct))
        except TypeError:
            raise IdError(
                f"The {what} in row {row} is {value!r}, a {type(value).__name__}, which cannot be an id: it is not "
                "hashable. Use strings, numbers or tuples."
            ) from None
        if code == len(distinct):
            if _holds_nan(value):
                raise IdError(
                    f"The {what} in row {row} is {value!r}, which holds NaN: NaN does not equal itself, so that nobody "
                    "could be found by this id. Use None instead, or leave that part out."
                )
            distinct.append(value)
        elif type(distinct[code]) is not type(value):
            raise IdError(
                f"Two different {what}s would become one: row {row} has {value!r} ({type(value).__name__}), an earlier "
                f"row has {distinct[code]!r} ({type(distinct[code]).__name__}). Convert the column to one type."
            )
        codes[row] = code
    return CodedColumn(codes, exact_integers(object_array(distinct)))


def _holds_nan(value: Any) -> bool:
    """Return whether a value that is hashable is NaN, or a tuple or frozenset that holds it at any depth."""
    if isinstance(value, tuple | frozenset):
        return any(map(_holds_nan, value))
    return value is not None and (value.is_nan() if isinstance(value, Decimal) else is_null(value))


def exact_integers(values: Array) -> Array:
    """Return floats as the integers they were before a table converted them (as pandas does beside nulls)."""
    floats = len(values) > 0 and all(type(value) is float for value in values)
    if floats and all(value.is_integer() and abs(value) < 2**53 for value in values):
        return np.array(values.tolist(), dtype=np.int64)
    return values


def encode_labels(
    column: Column, *, labels: tuple[Hashable, ...] | None, error: type[InputError] = LabelError, what: str = "label"
) -> tuple[Array, tuple[Hashable, ...]]:
    """Return codes into `labels`, or into the sorted labels that occur, and these labels; -1 is null."""
    coded = encode(column, what=what)
    occurring = first_appearance(coded)
    values = coded.values[occurring].tolist()

    def first_row(index: int) -> int:
        return int(np.argmax(coded.codes == occurring[index]))

    check_one_type(values, what=what, error=error, first_row=first_row)
    names = natural_order(values) if labels is None else labels
    code_of = {name: code for code, name in enumerate(names)}
    unknown = [index for index, value in enumerate(values) if value not in code_of]
    if unknown:
        rows = [first_row(index) for index in unknown[:5]]
        other_types = {type(values[index]).__name__ for index in unknown} - {type(name).__name__ for name in names}
        hint = ""
        if other_types and names:
            hint = f" They are of type {other_types.pop()}, those given are {type(names[0]).__name__}."
        raise error(
            f"{quantity(len(unknown), what)} {'is' if len(unknown) == 1 else 'are'} not among {quote(names)}: "
            f"{quote(values[index] for index in unknown)} (first in row{'s' * (len(rows) > 1)} {quote(rows)}).{hint}",
            hint=Hint(
                f"Add them to {what}s=[...], or correct the table.",
                cli=f"Add them by --{what}s, one option for each, or correct the table.",
            ),
        )
    # The last entry of the table serves code -1, so that nulls stay -1.
    table = np.full(len(coded.values) + 1, -1, dtype=np.int16 if len(names) < 2**15 else np.int32)
    table[occurring] = [code_of[value] for value in values]
    return table.take(coded.codes), names


def first_appearance(column: CodedColumn) -> Array:
    """Return the codes that occur, in the order of their first rows."""
    n_rows = len(column.codes)
    first: Array = np.full(len(column.values) + 1, n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64)
    # Of several rows with one code the last assignment wins: going backwards, that is the first row.
    first[column.codes[::-1]] = np.arange(n_rows - 1, -1, -1, dtype=first.dtype)
    first = first[:-1]
    order = np.argsort(first, kind="stable")
    return order[: np.count_nonzero(first < n_rows)]


def check_one_type(
    values: Sequence[Hashable], *, what: str, error: type[InputError], first_row: Callable[[int], int]
) -> None:
    """Raise if values mix types, such as the number 1 and the string '1'."""
    first_of: dict[str, int] = {}
    for index, value in enumerate(values):
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        first_of.setdefault(kind, index)
    if len(first_of) > 1:
        examples = ", ".join(f"{values[code]!r} in row {first_row(code)} ({kind})" for kind, code in first_of.items())
        raise error(f"The {what} column mixes types: {examples}. Convert it to one type.")


def natural_order(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Sort values: numbers and strings of digits by size, other strings alphabetically; keep the order of others."""
    unsorted: list[Any] = list(values)
    if all(isinstance(value, str) and value.removeprefix("-").isdecimal() for value in unsorted):
        return tuple(sorted(unsorted, key=lambda text: (int(text), text)))
    try:
        return tuple(sorted(unsorted))
    except TypeError:
        return tuple(unsorted)
