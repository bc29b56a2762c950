"""Answers: the responses of a graph in which somebody said something."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.core._arrays import Array, Grouping, ReadOnlyArrays, counts_by, grouped, lock, row_blocks
from crowdgraph.core.stored import ColumnStore
from crowdgraph.core.tables import ResponseTable

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["Answers", "expected_counts"]


class Answers(ReadOnlyArrays):
    """The responses that are answers, in order of time; items that were only shown are left out.

    ``graph.answers`` holds all of a graph's. `first`, `last` and `where` give fewer of them. Columns keep the compact
    types of the graph's codes, so cast them before arithmetic that could overflow.

    Parameters
    ----------
    responses
        The responses of a graph.
    n_volunteers, n_items
        How many nodes the graph has.
    rows
        Which of the responses are meant, as rising row numbers; all that are answers if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "anna"], "item": ["x", "x", "y"], "label": [1, None, 0]}, missing="keep")
    >>> len(graph.answers), graph.answers.rows, graph.answers.n_by_item
    (2, array([0, 2]), array([1, 1]))
    """

    def __init__(self, responses: ResponseTable, *, n_volunteers: int, n_items: int, rows: Array | None = None) -> None:
        self._responses = responses
        self._n_volunteers, self._n_items = n_volunteers, n_items
        if rows is None and not _all_answered(responses):
            rows = np.flatnonzero(responses.label >= 0)
        # None stays for all responses, whose columns are shared instead of copied.
        self._rows = None if rows is None else lock(rows)

    def __len__(self) -> int:
        return len(self._responses) if self._rows is None else len(self._rows)

    @property
    def are_all_responses(self) -> bool:
        """Whether every response of the graph is among them."""
        return self._rows is None

    @cached_property
    def rows(self) -> Array:
        """The row of each answer among the graph's responses, of shape (A,), rising."""
        return lock(np.arange(len(self))) if self._rows is None else self._rows

    @cached_property
    def volunteer(self) -> Array:
        """Codes of the volunteers, of shape (A,)."""
        return self.of_responses(self._responses.volunteer)

    @cached_property
    def item(self) -> Array:
        """Codes of the items, of shape (A,)."""
        return self.of_responses(self._responses.item)

    @cached_property
    def label(self) -> Array:
        """Codes of the labels, of shape (A,)."""
        return self.of_responses(self._responses.label)

    @cached_property
    def time(self) -> Array:
        """Sorted times, of shape (A,)."""
        return self.of_responses(self._responses.time)

    def of_responses(self, column: Array) -> Array:
        """Return the answers' part of a column that has a value, or row, for each response; shared if that is all."""
        return column if self._rows is None else lock(column[self._rows])

    @cached_property
    def by_volunteer(self) -> Grouping:
        """The answers gathered by volunteer: ``answers.by_volunteer.rows(v)`` are positions among the answers."""
        return grouped(self.volunteer, self._n_volunteers)

    @cached_property
    def by_item(self) -> Grouping:
        """The answers gathered by item, as `by_volunteer`."""
        return grouped(self.item, self._n_items)

    @cached_property
    def n_by_volunteer(self) -> Array:
        """How many answers each volunteer gave, of shape (V,)."""
        stored = self._complete_store
        if stored is not None:
            return lock(np.diff(stored.by_volunteer.starts))
        return lock(counts_by(self.volunteer, self._n_volunteers))

    @cached_property
    def n_by_item(self) -> Array:
        """How many answers each item has, of shape (N,)."""
        stored = self._complete_store
        if stored is not None:
            return lock(np.diff(stored.by_item.starts))
        return lock(counts_by(self.item, self._n_items))

    @cached_property
    def n_repeats(self) -> int:
        """The number of answers by a volunteer who had answered the item before."""
        stored = self._complete_store
        if stored is not None:
            return stored.n_repeats
        pairs = np.sort(self._pairs())
        return int(np.count_nonzero(pairs[1:] == pairs[:-1]))

    @cached_property
    def is_repeat(self) -> Array:
        """Whether the volunteer had answered the item before, of shape (A,)."""
        return lock(self._has_neighbour(earlier=True))

    @cached_property
    def first(self) -> Answers:
        """The first answer of each volunteer to each item."""
        return self.where(~self.is_repeat)

    @cached_property
    def last(self) -> Answers:
        """The last answer of each volunteer to each item."""
        return self.where(~self._has_neighbour(earlier=False))

    def where(self, mask: Array) -> Answers:
        """Return the answers for which a mask of shape (A,) holds."""
        if mask.all():
            return copy(self)  # not itself, which would hold a reference to itself as its own `first`
        rows = np.flatnonzero(mask) if self._rows is None else self._rows[mask]
        return Answers(self._responses, n_volunteers=self._n_volunteers, n_items=self._n_items, rows=rows)

    @property
    def _complete_store(self) -> ColumnStore | None:
        """The store whose responses these are, all of them and all answers, so that it has counted them already."""
        stored = self._responses.stored
        return stored.store if self._rows is None and stored is not None and stored.are_all else None

    def _pairs(self) -> Array:
        """Return the volunteer and the item of each answer as one number."""
        return np.asarray(self.volunteer.astype(np.int64) << 32 | self.item)

    def _has_neighbour(self, *, earlier: bool) -> Array:
        """Return which answers have an earlier, or else a later, one of the same volunteer to the same item."""
        pairs = self._pairs()
        order = np.argsort(pairs, kind="stable")
        has_neighbour = np.zeros(len(pairs), dtype=bool)
        has_neighbour[order[1:] if earlier else order[:-1]] = pairs[order[1:]] == pairs[order[:-1]]
        return has_neighbour

    def __repr__(self) -> str:
        return f"Answers: {len(self):,} of {len(self._responses):,} responses"


def _all_answered(responses: ResponseTable) -> bool:
    """Return whether every response has a label."""
    stored = responses.stored
    if stored is not None and stored.store.n_answers == stored.store.n_responses:
        return True
    return all(bool((responses.label[block] >= 0).all()) for block in row_blocks(len(responses)))


def expected_counts(graph: CrowdGraph, item_probs: Array, *, answers: Answers | None = None) -> Array:
    """Count how often volunteers are expected to have given each label to items of each class, of shape (K, J, L).

    Parameters
    ----------
    graph
        The graph.
    item_probs
        The class probabilities of its items, of shape (N, J).
    answers
        The answers that count; all if left out.
    """
    from crowdgraph.core.soft_answers import answer_parts

    parts = answer_parts(graph, answers)
    shape = (len(graph.volunteers), len(graph.classes), len(graph.labels))
    cells = parts.volunteer.astype(np.int64) * shape[2] + parts.label
    share = 1.0 if parts.share is None else parts.share
    by_class = [
        np.bincount(cells, share * item_probs[parts.item, j], minlength=shape[0] * shape[2]) for j in range(shape[1])
    ]
    return np.stack([column.reshape(shape[0], shape[2]) for column in by_class], axis=1)
