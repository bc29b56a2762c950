"""Ids and labels of any hashable kind as codes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array, is_null, object_array, plain
from crowdgraph.core.result import CodedColumn
from crowdgraph.errors import IdError, InputError, LabelError, quote
from crowdgraph.io._columns import Column


def encode(column: Column, *, what: str) -> CodedColumn:
    """The distinct values of a column and a code for each row; -1 is null. Some values may not occur."""
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
        coded = column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return _encode_objects(column.to_pylist(), what)
    if coded.num_chunks == 0:
        return CodedColumn(np.zeros(0, dtype=np.int32), object_array([]))
    codes = np.concatenate([_indices(chunk) for chunk in coded.chunks])
    return CodedColumn(codes, _values(coded.chunk(0).dictionary))


def _encode_range(numbers: Array) -> CodedColumn | None:
    """Integers that lie close together need no hashing: a table of their range tells which occur."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 2 * len(numbers) + 1000 or not -(2**63) <= low <= high < 2**63:
        return None
    codes = np.empty(len(numbers), dtype=np.int32)
    np.subtract(numbers.astype(np.int64, copy=False), low, out=codes, casting="unsafe")
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[codes] = True
    if occurs.all():
        return CodedColumn(codes, np.arange(low, high + 1, dtype=np.int64))
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return CodedColumn(place.take(codes), np.flatnonzero(occurs) + low)


def _encode_dictionary(column: pa.ChunkedArray, what: str) -> CodedColumn:
    """Chunks may each have a dictionary of their own: the dictionaries are encoded, the rows only looked up."""
    chunks = column.chunks
    fresh = [place == 0 or not _same_memory(chunks[place - 1], chunk) for place, chunk in enumerate(chunks)]
    dictionaries = [chunk.dictionary for chunk, new in zip(chunks, fresh, strict=True) if new]
    merged = encode(pa.chunked_array(dictionaries, column.type.value_type), what=what)
    # The last place of each table serves index -1, so nulls stay -1.
    tables = np.split(merged.codes, np.cumsum([len(dictionary) for dictionary in dictionaries])[:-1])
    tables = [np.append(table, np.int32(-1)) for table in tables]
    parts = [tables[table][_indices(chunk)] for table, chunk in zip(np.cumsum(fresh) - 1, chunks, strict=True)]
    return CodedColumn(np.concatenate(parts or [np.zeros(0, dtype=np.int32)]), merged.values)


def _same_memory(left: pa.DictionaryArray, right: pa.DictionaryArray) -> bool:
    """Whether two chunks use one dictionary, as chunks of one Parquet row group do."""
    ours, theirs = left.dictionary, right.dictionary
    places = [[buffer and buffer.address for buffer in part.buffers()] for part in (ours, theirs)]
    return (len(ours), ours.offset, places[0]) == (len(theirs), theirs.offset, places[1])


def _indices(chunk: pa.DictionaryArray) -> Array:
    indices = chunk.indices.cast(pa.int32())
    return np.asarray((indices.fill_null(-1) if indices.null_count else indices).to_numpy())


def _values(dictionary: pa.Array) -> Array:
    """The distinct values as ids; floats that are whole numbers become integers again (pandas makes them floats)."""
    if pa.types.is_integer(dictionary.type) and dictionary.type != pa.uint64():
        return np.asarray(dictionary.to_numpy(), dtype=np.int64)
    if pa.types.is_string(dictionary.type) or pa.types.is_large_string(dictionary.type):
        return np.asarray(dictionary.to_numpy(zero_copy_only=False), dtype=object)
    return exact_integers(object_array(dictionary.to_pylist()))


def _encode_objects(column: list[Any], what: str) -> CodedColumn:
    codes = np.full(len(column), -1, dtype=np.int32)
    code_of: dict[Hashable, int] = {}
    kept: list[Any] = []
    for row, raw in enumerate(column):
        value = plain(raw)
        if is_null(value):
            continue
        try:
            code = code_of.setdefault(value, len(kept))
        except TypeError:
            raise IdError(
                f"The {what} in row {row} is {value!r}, a {type(value).__name__}, which cannot be an id: it is not "
                "hashable. Use strings, numbers or tuples."
            ) from None
        if code == len(kept):
            kept.append(value)
        elif type(kept[code]) is not type(value):
            raise IdError(
                f"Two different {what}s would become one: row {row} has {value!r} ({type(value).__name__}), an earlier "
                f"row has {kept[code]!r} ({type(kept[code]).__name__}). Convert the column to one type."
            )
        codes[row] = code
    return CodedColumn(codes, exact_integers(object_array(kept)))


def exact_integers(values: Array) -> Array:
    """Integers where a table turned them into floats (as pandas does beside nulls); other values as they are."""
    floats = len(values) > 0 and all(type(value) is float for value in values)
    if floats and all(value.is_integer() and abs(value) < 2**53 for value in values):
        return np.array(values.tolist(), dtype=np.int64)
    return values


def encode_labels(
    column: Column, *, labels: tuple[Hashable, ...] | None, error: type[InputError] = LabelError, what: str = "label"
) -> tuple[Array, tuple[Hashable, ...]]:
    """Codes into the given labels, or into the labels that occur, sorted; -1 is null."""
    coded = encode(column, what=what)
    occurs = first_appearance(coded)
    found = coded.values[occurs].tolist()
    check_one_type(found, what=what, error=error, row_of=lambda place: int(np.argmax(coded.codes == occurs[place])))
    names = natural_order(found) if labels is None else labels
    place = {name: code for code, name in enumerate(names)}
    strangers = [code for code, value in enumerate(found) if value not in place]
    if strangers:
        rows = [int(np.argmax(coded.codes == occurs[code])) for code in strangers[:5]]
        mixed = {type(found[code]).__name__ for code in strangers} - {type(name).__name__ for name in names}
        hint = f" They are of type {mixed.pop()}, those given are {type(names[0]).__name__}." if mixed and names else ""
        raise error(
            f"{len(strangers)} {what}s are not among {quote(names)}: {quote(found[code] for code in strangers)} "
            f"(first in rows {quote(rows)}).{hint} Add them to {what}s=[...], or mend the table."
        )
    # The last place of the table serves code -1, so nulls stay -1.
    table = np.full(len(coded.values) + 1, -1, dtype=np.int16 if len(names) < 2**15 else np.int32)
    table[occurs] = [place[value] for value in found]
    return table.take(coded.codes), names


def first_appearance(coded: CodedColumn) -> Array:
    """The codes that occur, in order of their first row."""
    n_rows = len(coded.codes)
    first: Array = np.full(len(coded.values) + 1, n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64)
    # Of several rows with one code the last written stays: going backwards, that is the first row.
    first[coded.codes[::-1]] = np.arange(n_rows - 1, -1, -1, dtype=first.dtype)
    first = first[:-1]
    order = np.argsort(first, kind="stable")
    return order[: np.count_nonzero(first < n_rows)]


def check_one_type(
    values: Sequence[Hashable], *, what: str, error: type[InputError], row_of: Callable[[int], int]
) -> None:
    """Raise where values mix types, such as the number 1 and the string '1'."""
    first_of: dict[str, int] = {}
    for code, value in enumerate(values):
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        first_of.setdefault(kind, code)
    if len(first_of) > 1:
        examples = ", ".join(f"{values[code]!r} in row {row_of(code)} ({kind})" for kind, code in first_of.items())
        raise error(f"The {what} column mixes types: {examples}. Convert it to one type.")


def natural_order(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Values sorted: numbers and strings of digits by size, other strings by the alphabet, the rest as they came."""
    listed: list[Any] = list(values)
    if all(isinstance(value, str) and value.removeprefix("-").isdecimal() for value in listed):
        return tuple(sorted(listed, key=lambda text: (int(text), text)))
    try:
        return tuple(sorted(listed))
    except TypeError:
        return tuple(listed)
