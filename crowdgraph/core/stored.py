"""Columns on disk: what a graph knows about the store that its columns are maps of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._maps import release

if TYPE_CHECKING:
    from crowdgraph.core.tables import ResponseTable

__all__ = ["CodedValues", "ColumnStore", "ItemBlock", "ItemMajor", "StoredAttributes", "StoredRows", "VolunteerMajor"]


class ItemMajor(NamedTuple):
    """The responses one item after another, each item's in order of time.

    Attributes
    ----------
    starts
        Where each item's responses begin, of shape (N + 1,).
    volunteer, label
        Codes, of shape (R,); the label is -1 where an item was shown but not answered.
    row
        The position of each response in order of time, of shape (R,).
    """

    starts: Array
    volunteer: Array
    label: Array
    row: Array


class VolunteerMajor(NamedTuple):
    """The responses one volunteer after another, each volunteer's in order of time; otherwise as `ItemMajor`."""

    starts: Array
    item: Array
    label: Array
    time: Array
    row: Array


class ItemBlock(NamedTuple):
    """The answers to consecutive items.

    Attributes
    ----------
    first, last
        The first item, and one beyond the last.
    starts
        Where each item's answers begin, of shape (last - first + 1,).
    volunteer, label
        Codes of the answers.
    """

    first: int
    last: int
    starts: Array
    volunteer: Array
    label: Array


class ColumnStore(Protocol):
    """A directory of columns, mapped into memory; see `crowdgraph.open_store`."""

    @property
    def by_item(self) -> ItemMajor:
        """The responses, item by item."""
        ...

    @property
    def by_volunteer(self) -> VolunteerMajor:
        """The responses, volunteer by volunteer."""
        ...

    @property
    def n_responses(self) -> int:
        """The number of responses."""
        ...

    @property
    def n_answers(self) -> int:
        """The number of responses with a label."""
        ...

    @property
    def n_repeats(self) -> int:
        """The number of answers by a volunteer who had answered the item before."""
        ...

    def responses(self) -> ResponseTable:
        """Return the responses, in order of time."""
        ...

    def check_rows(self, kind: Literal["volunteer", "item"], rows: slice) -> None:
        """Raise if codes in some rows of `by_item` or `by_volunteer` point at what does not exist."""
        ...

    def check_permutation(self, kind: Literal["volunteer", "item"]) -> None:
        """Raise unless `by_item` or `by_volunteer` has every response once."""
        ...

    def check_unchanged(self) -> None:
        """Raise if a file has changed since the store was opened."""
        ...


@dataclass(frozen=True)
class StoredRows:
    """The rows of a store that a table of responses shows.

    Attributes
    ----------
    store
        The store.
    start, stop
        The first row, in order of time, and one beyond the last.
    items, volunteers
        The codes of the consecutive items, or volunteers, whose responses these are; None for all. The codes in the
        table begin with zero at the first of them, and the table is in their order.
    """

    store: ColumnStore
    start: int
    stop: int
    items: range | None = None
    volunteers: range | None = None

    @property
    def are_all(self) -> bool:
        """Whether these are all responses of the store."""
        return self.items is None and self.volunteers is None and self.has_all_times

    @property
    def has_all_times(self) -> bool:
        """Whether no response was left out because of its time."""
        return (self.start, self.stop) == (0, self.store.n_responses)

    def table(self) -> ResponseTable:
        """Return these rows as a table of maps."""
        return self.store.responses().slice(self.start, self.stop)

    def answers_by_item(self, max_responses: int) -> Iterator[ItemBlock]:
        """Yield the answers among these rows item by item, in blocks of at most `max_responses`, or of one item.

        A block leaves memory when the next one is asked for.
        """
        columns = self.store.by_item
        if not self.has_all_times:
            self.store.check_permutation("item")
        items = range(len(columns.starts) - 1) if self.items is None else self.items
        all_answered = self.has_all_times and self.store.n_answers == self.store.n_responses
        first = items.start
        while first < items.stop:
            begin = int(columns.starts[first])
            last = int(np.searchsorted(columns.starts, begin + max_responses, side="right")) - 1
            last = min(max(last, first + 1), first + max_responses, items.stop)
            rows = slice(begin, int(columns.starts[last]))
            self.store.check_rows("item", rows)
            starts = np.asarray(columns.starts[first : last + 1]) - begin
            volunteer, label = columns.volunteer[rows], columns.label[rows]
            if not all_answered:
                row = columns.row[rows]
                is_answer = (row >= self.start) & (row < self.stop) & (label >= 0)
                starts = np.concatenate([[0], np.cumsum(is_answer)])[starts]
                volunteer, label = volunteer[is_answer], label[is_answer]
            yield ItemBlock(first - items.start, last - items.start, starts, volunteer, label)
            for column in columns[1:]:
                release(column, rows.start, rows.stop)
            release(columns.starts, first, last)
            first = last

    def slice(self, start: int, stop: int) -> StoredRows | None:
        """Return some of these rows, by their positions among them, as Python slices count; None if unordered."""
        if self.items is not None or self.volunteers is not None:
            return None
        first, last, _ = slice(start, stop).indices(self.stop - self.start)
        return replace(self, start=self.start + first, stop=self.start + max(first, last))


class CodedValues(NamedTuple):
    """A column as codes into its distinct values, the last of which is None and serves code -1."""

    codes: Array
    values: Array


class StoredAttributes(Mapping[str, Array]):
    """Attributes of stored responses; those that are not numbers are decoded when they are asked for.

    Parameters
    ----------
    columns
        Maps of numbers, or codes with their values.
    """

    def __init__(self, columns: Mapping[str, Array | CodedValues]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> Array:
        column = self._columns[name]
        return lock(column.values[column.codes]) if isinstance(column, CodedValues) else column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def take(self, rows: Any) -> StoredAttributes:
        """Return the attributes of some rows."""
        return StoredAttributes(
            {
                name: CodedValues(lock(column.codes[rows]), column.values)
                if isinstance(column, CodedValues)
                else lock(column[rows])
                for name, column in self._columns.items()
            }
        )
