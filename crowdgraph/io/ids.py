"""Ids and labels of any hashable kind as codes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core.columns import Array, id_array, object_array, plain, sealed
from crowdgraph.errors import IdError, InputError, LabelError, shown
from crowdgraph.io.columns import Coded, Column, plain_type

__all__ = ["encode", "is_null", "label_codes", "natural_order", "one_type"]


def encode(column: Column, *, what: str) -> Coded:
    """The distinct values of a column in order of first appearance, and a code for each row; -1 is null."""
    coded = _encode_objects(column, what) if isinstance(column, list) else _encode_arrow(column, what)
    return Coded(coded.codes, _whole_numbers(coded.values))


def is_null(value: object) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and value != value


def _encode_arrow(column: pa.ChunkedArray, what: str) -> Coded:
    if pa.types.is_dictionary(column.type) and column.num_chunks == 1:
        coded = column
    else:
        column = plain_type(column)
        if pa.types.is_nested(column.type):
            raise IdError(
                f"The {what} column holds {column.type} values, which cannot be ids; use strings or integers."
            )
        if pa.types.is_floating(column.type):
            nan = pc.is_nan(column)
            column = pc.if_else(nan, pa.scalar(None, column.type), column)
        coded = column.dictionary_encode()
    if coded.num_chunks == 0:
        return Coded(np.zeros(0, dtype=np.int32), object_array([]))
    codes = [chunk.indices.fill_null(-1).to_numpy() for chunk in coded.chunks]
    values = coded.chunk(0).dictionary
    return Coded(np.concatenate(codes).astype(np.int32, copy=False), _values(values))


def _values(dictionary: pa.Array) -> Array:
    if pa.types.is_integer(dictionary.type) and dictionary.type != pa.uint64():
        return np.asarray(dictionary.to_numpy(), dtype=np.int64)
    if pa.types.is_string(dictionary.type) or pa.types.is_large_string(dictionary.type):
        values: Array = dictionary.to_numpy(zero_copy_only=False)
        return values
    return object_array(dictionary.to_pylist())


def _encode_objects(column: list[Any], what: str) -> Coded:
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
    return Coded(codes, object_array(kept))


def _whole_numbers(values: Array) -> Array:
    """Integers where a table turned them into floats (as pandas does beside nulls); other values as they are."""
    floats = values.dtype == object and len(values) and all(type(value) is float for value in values)
    if floats and all(value.is_integer() and abs(value) < 2**53 for value in values):
        return sealed(values.astype(np.int64))
    return id_array(values)


def label_codes(
    column: Column, *, labels: Iterable[Hashable] | None, error: type[InputError] = LabelError, what: str = "label"
) -> tuple[Array, tuple[Hashable, ...]]:
    """Codes into the given labels, or into the labels that occur, sorted; -1 is null."""
    coded = encode(column, what=what)
    found = coded.values.tolist()
    one_type(found, what=what, error=error, row_of=lambda code: int(np.argmax(coded.codes == code)))
    names = natural_order(found) if labels is None else tuple(labels)
    place = {name: code for code, name in enumerate(names)}
    strangers = [code for code, value in enumerate(found) if value not in place]
    if strangers:
        rows = [int(np.argmax(coded.codes == code)) for code in strangers]
        mixed = {type(found[code]).__name__ for code in strangers} - {type(name).__name__ for name in names}
        hint = f" They are of type {mixed.pop()}, those given are {type(names[0]).__name__}." if mixed and names else ""
        raise error(
            f"{len(strangers)} {what}s are not among {shown(names)}: {shown(found[code] for code in strangers)} "
            f"(first in rows {shown(rows)}).{hint} Add them to {what}s=[...], or mend the table."
        )
    # The last place of the table serves code -1, so nulls stay -1.
    table = np.array([*(place[value] for value in found), -1], dtype=np.int16 if len(names) < 2**15 else np.int32)
    return table[coded.codes], names


def one_type(values: Sequence[Hashable], *, what: str, error: type[InputError], row_of: Callable[[int], int]) -> None:
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
