"""Read-only NumPy arrays, which hold the data of every table and every result."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from mmap import mmap
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crowdgraph.errors import ColumnError, CrowdGraphError, IdError, ParameterError
from crowdgraph.messages import quote

Array = NDArray[Any]
Value = TypeVar("Value")
# How many rows are looked at together, so that what is computed from them takes little memory.
ROWS_PER_BLOCK = 2**20
# What is wrong with broken text.
WHY_BROKEN = (
    ", which is no text that a file can hold: half a character ('\\ud83d'), or bytes that are not UTF-8. Read it with "
    "the encoding in which it was written; write other bytes as text, such as value.hex()."
)


class FrozenMapping(Mapping[str, Value]):
    """A mapping that cannot be changed and, unlike a mapping proxy, can be copied and pickled."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        lock_all(self._values.values())


class ReadOnlyArrays:
    """Base of frozen dataclasses with read-only arrays, which stay read-only when copied and unpickled."""

    def _set(self, **fields: Any) -> None:
        """Set normalised fields while the frozen dataclass is under construction."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        lock_all(state.values())


class Grouping(NamedTuple):
    """Rows gathered by group: group `g` has the rows ``order[starts[g]:starts[g + 1]]``, in their old order."""

    order: Array
    starts: Array

    def rows(self, group: int) -> Array:
        """Return the rows of one group."""
        return self.order[self.starts[group] : self.starts[group + 1]]

    def rows_of(self, groups: Array) -> Array:
        """Return the rows of several groups, one group after the other."""
        starts, lengths = self.starts[groups], self.starts[np.asarray(groups) + 1] - self.starts[groups]
        ends = np.cumsum(lengths)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        return np.asarray(self.order[np.repeat(starts, lengths) + within])


def cast_exactly(values: Array, dtype: DTypeLike) -> Array | None:
    """Return numbers or times in another type, or None where it cannot hold them all exactly.

    Times beyond the years of a unit overflow in silence in NumPy before 2.5, and raise since.
    """
    try:
        cast = values.astype(dtype)
        unchanged = (cast.astype(values.dtype) == values) | (values != values)
    except OverflowError:
        return None
    return cast if unchanged.all() else None


def lock(array: Array) -> Array:
    """Make an array read-only, with all that it is a view of, and return it; for arrays that nobody else holds."""
    part: Any = array
    while isinstance(part, np.ndarray):
        part.setflags(write=False)
        part = part.base
    return array


def lock_all(values: Iterable[Any]) -> None:
    """Make the arrays among some values read-only."""
    for value in values:
        if isinstance(value, np.ndarray):
            lock(value)


def read_only(values: ArrayLike, *, dtype: DTypeLike | None = None) -> Array:
    """Return a read-only array that nobody else can write to: a copy, unless the array is locked or a map already."""
    array = np.asarray(values, dtype=dtype)
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    source: object = owner.base
    # Nobody can write to a file that is mapped for reading, either.
    if not owner.flags.writeable and (source is None or isinstance(source, mmap)):
        return array
    return lock(array.copy())


def plain(value: Any) -> Any:
    """Return the Python value of a NumPy scalar other than a datetime; anything else as it is."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def to_list(column: Array) -> list[Any]:
    """Return a column as a list of Python values that share nothing with it.

    Datetimes beyond the resolution or the range of Python's remain NumPy's.
    """
    values: list[Any] = column.tolist()
    if column.dtype.kind == "M" and not all(isinstance(value, dt.datetime | None) for value in values):
        return list(column)
    if all(issubclass(kind, Hashable) for kind in set(map(type, values))):
        return values
    return [value if isinstance(value, Hashable) else deepcopy(value) for value in values]


def is_null(value: object) -> bool:
    """Return whether a Python object stands for a missing value: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and value != value


def cell_text(value: object) -> str:
    """Return a value as text for a table: three decimals, commas between thousands, nothing for a missing value.

    Examples
    --------
    >>> [cell_text(value) for value in (12345, 0.12345, 2.0, None, True, "x")]
    ['12,345', '0.123', '2', '', 'True', 'x']
    """
    value = plain(value)
    if is_null(value):
        return ""
    if isinstance(value, float):
        return f"{round(value, 3):,.10g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def object_array(values: Iterable[Any]) -> Array:
    """Return a one-dimensional array of Python objects; tuples are objects, not further dimensions."""
    return np.fromiter(values, dtype=object)


def id_array(values: Iterable[Hashable]) -> Array:
    """Return ids as a read-only column: int64 where all are integers, Python objects otherwise."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise IdError(f"Ids have shape {values.shape}; expected one id for each row.")
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return read_only(values)
    ids: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    types = set(map(type, ids))
    check_text(ids, what="An id", error=IdError)
    if any(issubclass(kind, np.generic) for kind in types - {np.datetime64}):
        return id_array([plain(value) for value in ids])
    if types == {int} and all(-(2**63) <= value < 2**63 for value in ids):
        return lock(np.array(ids, dtype=np.int64))
    if isinstance(values, np.ndarray) and values.dtype == object:
        return read_only(values)
    return lock(object_array(ids))


def check_text(values: Sequence[object], *, what: str, error: type[CrowdGraphError]) -> None:
    """Raise if a value is text or bytes that no file can hold, at any depth of tuples."""
    broken = first_broken(values)
    if broken is not None:
        raise error(f"{what} is {quote([values[broken]])}{WHY_BROKEN}")


def first_broken(values: Sequence[object]) -> int | None:
    """Return the position of the first value that is or holds broken text; None if there is none."""
    # To ask for ASCII takes no time, and most text is.
    return next(
        (row for row, value in enumerate(values) if not (type(value) is str and value.isascii()) and is_broken(value)),
        None,
    )


def is_broken(value: object) -> bool:
    r"""Return whether a value is or holds text with half a character, or bytes that are no text in UTF-8.

    Examples
    --------
    >>> [is_broken(value) for value in ("Zoë", "\ud83d", b"Zo\xc3\xab", b"\xff", ("a", "\ud83d"), 7)]
    [False, True, False, True, True, False]
    """
    try:
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, bytes):
            value.decode()
    except UnicodeError:
        return True
    return isinstance(value, tuple | frozenset) and any(map(is_broken, value))


def has_repeats(ids: Array) -> bool:
    """Return whether an id occurs twice; integers are compared by sorting, which takes far less memory than a set."""
    if ids.dtype == np.int64:
        return not bool(np.diff(np.sort(ids)).all())
    return len(set(ids.tolist())) < len(ids)


def attribute_columns(
    attributes: Mapping[str, ArrayLike], *, length: int, owner: str, reserved: Sequence[str]
) -> Mapping[str, Array]:
    """Return a read-only mapping of read-only columns, each as long as the table that they belong to."""
    columns = {}
    for name, values in attributes.items():
        if not isinstance(name, str) or name in reserved:
            raise ColumnError(
                f"An attribute of {owner} cannot be called {name!r}; rename it (taken are {quote(reserved, most=10)})."
            )
        if is_broken(name):
            raise ColumnError(f"The name of an attribute of {owner} is {name!r}{WHY_BROKEN}")
        column = read_only(values)
        if column.shape[:1] != (length,):
            raise ColumnError(
                f"Attribute {name!r} of {owner} has shape {column.shape}; expected {length:,} values, one for each row."
            )
        if column.dtype == object:
            texts = [value for value in column.tolist() if isinstance(value, str)]
            check_text(texts, what=f"A value of the attribute {name!r} of {owner}", error=ColumnError)
        columns[name] = column
    return FrozenMapping(columns)


def grouped(codes: Array, n_groups: int) -> Grouping:
    """Gather rows by code and keep their order within a group: a counting sort, linear in the number of rows."""
    from scipy.sparse import coo_array

    rows = np.arange(len(codes), dtype=np.int32 if len(codes) < 2**31 else np.int64)
    table = coo_array((np.ones(len(codes), dtype=np.int8), (codes, rows)), shape=(n_groups, len(codes)))
    table.has_canonical_format = True  # each row is a column of its own, so there is nothing to sum
    by_group = table.tocsr()
    return Grouping(lock(by_group.indices), lock(by_group.indptr))


def counts_by(codes: Array, n_groups: int) -> Array:
    """Count the rows of each code, of shape (n_groups,), block by block, since NumPy casts all that it counts."""
    counts = np.zeros(n_groups, dtype=np.int64)
    for block in row_blocks(len(codes)):
        counts += np.bincount(codes[block], minlength=n_groups)
    return counts


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Yield consecutive slices that cover all rows; one empty slice if there are none."""
    for first in range(0, max(n_rows, 1), ROWS_PER_BLOCK):
        yield slice(first, min(first + ROWS_PER_BLOCK, n_rows))


def columns_equal(left: Array, right: Array) -> bool:
    """Return whether two columns hold the same values; nulls equal nulls."""
    if left is right:
        return True
    if left.shape != right.shape or left.size == 0:
        return left.shape == right.shape
    if object in (left.dtype, right.dtype):
        return all(map(_same, left.tolist(), right.tolist()))
    if left.dtype.kind != right.dtype.kind:
        return False
    try:
        return bool(np.array_equal(left, right, equal_nan=True))
    except TypeError:
        return bool(np.array_equal(left, right))


def _same(left: Any, right: Any) -> bool:
    """Return whether two objects are the same value of the same type: 1, 1.0 and True are different."""
    if is_null(left) or is_null(right):
        return is_null(left) and is_null(right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)


def attributes_equal(left: Mapping[str, Array], right: Mapping[str, Array]) -> bool:
    """Return whether two sets of attributes hold the same columns."""
    return left.keys() == right.keys() and all(columns_equal(left[name], right[name]) for name in left)


def value_tuple(values: Iterable[Hashable], *, what: str) -> tuple[Hashable, ...]:
    """Return classes or labels as a tuple of distinct plain values."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(f"{what}={values!r} must be several values, such as {what}=['no', 'yes'].")
    names = tuple(plain(value) for value in values)
    check_text(names, what=f"One of the {what}", error=ParameterError)
    # A type such as `str` is hashable, and stands there by mistake.
    strange = [value for value in names if not isinstance(value, Hashable) or isinstance(value, type)]
    if strange:
        raise ParameterError(f"{what} must be plain values such as text or numbers; got {quote(strange)}.")
    if not names:
        raise ParameterError(f"There are no {what}; a graph needs at least one. Name them with {what}=[...].")
    twice = [text for text, count in Counter(map(str, names)).items() if count > 1]
    if twice or len(set(names)) < len(names):
        raise ParameterError(
            f"The {what} {quote(names)} repeat {quote(twice) or 'one'}; name each once, all as text or as numbers."
        )
    return names


def same_values(left: Sequence[Hashable] | Array, right: Sequence[Hashable] | Array) -> bool:
    """Return whether two columns of ids, or tuples, hold the same values of the same types in the same order."""
    return left is right or columns_equal(id_array(left), id_array(right))
