"""What all results have in common: checks of their arrays and ids, and a table of their columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import (
    Array,
    FrozenMapping,
    ReadOnlyArrays,
    has_repeats,
    id_array,
    read_only,
    row_blocks,
    same_values,
)
from crowdgraph.core._maps import release
from crowdgraph.core.clock import Clock
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import AlignmentError, CrowdGraphError, IdError, ResultError
from crowdgraph.messages import quote

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["CodedColumn", "Columns", "Result", "Tabular", "TimeColumn", "VolunteerIndexed", "to_frame"]


class CodedColumn(NamedTuple):
    """A column as codes into its distinct values; -1 is null."""

    codes: Array
    values: Array

    def decode(self) -> Array:
        """Return the values themselves, None for null."""
        if (self.codes >= 0).all():
            return self.values[self.codes]
        values = self.values.astype(object)
        return np.append(values, [None])[self.codes]


class TimeColumn(NamedTuple):
    """A column of times, and the clock that says what they are."""

    times: Array
    clock: Clock


# The columns of a table by name, all of one length.
Columns: TypeAlias = Mapping[str, Array | CodedColumn | TimeColumn]


class Tabular(ABC):
    """Base of what has a table: subclasses return their columns, and `to_frame` makes a table of them."""

    @abstractmethod
    def _columns(self) -> Columns:
        """Return the columns of the table by name."""

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """Return a table.

        Parameters
        ----------
        kind
            ``"pandas"``, ``"polars"``, ``"arrow"``, or ``"text"`` for reading.
        """
        return to_frame(self._columns(), kind=kind)


def to_frame(columns: Columns, *, kind: str) -> Any:
    """Return columns as a pandas, polars or pyarrow table, or as text for reading."""
    from crowdgraph.io._columns import native_frame

    return native_frame(columns, kind=kind)


class Result(ReadOnlyArrays, Tabular):
    """A result of a model, network or detector, ready to annotate a graph.

    Results are frozen dataclasses that check their arrays on construction.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name under which a graph carries this result by default."""

    @abstractmethod
    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise `AlignmentError` unless this result was made for the graph's ids."""


class VolunteerIndexed:
    """Mixin for results with one row for each volunteer of `ids`."""

    ids: Array

    @cached_property
    def table(self) -> NodeTable:
        """The volunteers as a table, which looks up their codes."""
        return NodeTable("volunteer", self.ids)


def real_array(name: str, values: ArrayLike, *, shape: tuple[int | None, ...]) -> Array:
    """Return a read-only, finite float64 array of the expected shape, in which None is any length."""
    try:
        kind = np.asarray(values).dtype.kind
        if kind not in "biufO":
            raise TypeError(f"got values of kind {kind!r}")
        array = read_only(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ResultError(f"{name} must be an array of numbers: {error}.") from error
    same_ndim = array.ndim == len(shape)
    if not same_ndim or any(size not in (None, got) for got, size in zip(array.shape, shape, strict=True)):
        expected = tuple("any" if size is None else size for size in shape)
        raise ResultError(f"{name} has shape {array.shape}; expected {expected}.")
    for block in row_blocks(len(array)):
        if not np.isfinite(array[block]).all():
            raise ResultError(f"{name} holds {np.count_nonzero(~np.isfinite(array)):,} values that are not finite.")
        release(array, block.start, block.stop)
    return array


def finite_array(
    name: str, values: ArrayLike, *, shape: tuple[int | None, ...], below: int | None = None, kinds: str = "biuf"
) -> Array:
    """Return a read-only array of the expected shape in its own precision, finite and without negative values.

    Parameters
    ----------
    name, values, shape
        As for `real_array`.
    below
        What all values must be below, if that is known: for codes, how many there are.
    kinds
        The kinds of types that it may be of, as NumPy calls them: ``"iu"`` for codes.
    """
    array = read_only(values)
    fits = array.ndim == len(shape) and all(size in (None, got) for got, size in zip(array.shape, shape, strict=False))
    if not fits or array.dtype.kind not in kinds:
        expected = tuple("any" if size is None else size for size in shape)
        raise ResultError(f"{name} has shape {array.shape} of {array.dtype}; expected {expected} of numbers.")
    for block in row_blocks(len(array)):
        part = array[block]
        # NaN is neither above nor below anything.
        if part.size and not 0 <= part.min() <= part.max() < (np.inf if below is None else below):
            limit = "" if below is None else f" below {below:,}"
            raise ResultError(f"{name} must be finite, not negative{limit}; it runs from {part.min()} to {part.max()}.")
        release(array, block.start, block.stop)
    return array


def positive_array(name: str, values: ArrayLike, *, shape: tuple[int | None, ...]) -> Array:
    """Return an array as `real_array` does, with every value above zero."""
    array = real_array(name, values, shape=shape)
    for block in row_blocks(len(array)):
        if not (array[block] > 0).all():
            raise ResultError(f"{name} must be positive; its smallest value is {array.min():g}.")
        release(array, block.start, block.stop)
    return array


def probability_array(name: str, values: ArrayLike, *, shape: tuple[int | None, ...]) -> Array:
    """Return an array as `real_array` does, with values in [0, 1] that sum to one over the last axis."""
    array = real_array(name, values, shape=shape)
    for block in row_blocks(len(array)):
        if (array[block] < 0).any():
            raise ResultError(f"{name} must not be negative; its smallest value is {array.min():g}.")
        sums = array[block].sum(axis=-1)
        if not np.allclose(sums, 1.0, rtol=0, atol=1e-6):
            worst = np.ravel(sums)[np.abs(np.ravel(sums) - 1).argmax()]
            raise ResultError(f"{name} must sum to one over its last axis; one sum is {worst:g}.")
        release(array, block.start, block.stop)
    return array


def unique_ids(values: Iterable[Hashable], *, kind: str) -> Array:
    """Return ids as a column without repetitions."""
    ids = id_array(values)
    if has_repeats(ids):
        raise IdError(f"Some {kind} ids repeat; name each {kind} once.")
    return ids


def frozen_copy(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a read-only copy of a mapping, such as the settings with which a result was computed."""
    return FrozenMapping(deepcopy(dict(values)))


def check_ids_match(result: str, ids: Array, table: NodeTable) -> None:
    """Raise unless a result's ids are the graph's, in the graph's order."""
    if same_values(ids, table.ids):
        return
    unknown = missing_ids(ids, table)
    if unknown:
        why = f"the graph lacks {len(unknown):,} of its {table.kind}s ({quote(unknown, most=3)})"
    elif len(ids) < len(table):
        why = f"it covers {len(ids):,} of the graph's {len(table):,} {table.kind}s"
    else:
        why = f"its {table.kind}s are in another order"
    raise AlignmentError(f"{result} was made for another graph: {why}. Fit it on this graph, then annotate.")


def check_ids(
    ids: Iterable[Hashable], table: NodeTable, *, lacking: str, hint: str, error: type[CrowdGraphError] = AlignmentError
) -> None:
    """Raise unless all ids are in a table.

    Parameters
    ----------
    ids
        The ids that are needed.
    table
        The table that should have them.
    lacking
        The beginning of the sentence with ``{}`` for how many are lacking, such as ``"The communities lack {} of the
        network's volunteers"``.
    hint
        What to do about it.
    error
        The error to raise.
    """
    if ids is table.ids:
        return
    unknown = missing_ids(ids, table)
    if unknown:
        before, _, after = lacking.rpartition("{}")
        raise error(f"{before}{len(unknown):,}{after} ({quote(unknown, most=3)}).", hint=hint)


def missing_ids(ids: Iterable[Hashable], table: NodeTable) -> list[Hashable]:
    """Return the ids that a table does not have."""
    return [node_id for node_id in (ids.tolist() if isinstance(ids, np.ndarray) else ids) if node_id not in table]


def check_ids_known(result: str, ids: Array, table: NodeTable) -> None:
    """Raise unless a result's ids are among the graph's."""
    check_ids(
        ids,
        table,
        lacking=f"{result} was made for another graph: this one lacks {{}} of its {table.kind}s",
        hint="Make it from this graph, then annotate.",
    )


def check_values_match(result: str, what: str, got: Sequence[Hashable], expected: Sequence[Hashable]) -> None:
    """Raise unless a result's classes or labels are the graph's, in the graph's order."""
    if not same_values(got, expected):
        raise AlignmentError(
            f"{result} was made for the {what} {quote(got)}; the graph has {quote(expected)}. Fit it on this graph."
        )
