"""Contacts: who met whom on which item when, for tools that analyse temporal networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.answers import Answers
from crowdgraph.core.clock import Clock, Moment
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import CodedColumn, Columns, Tabular, TimeColumn
from crowdgraph.errors import ParameterError
from crowdgraph.networks._volunteers import Window, select_period

__all__ = ["Contacts", "contacts"]

# More contacts than this fill the memory of most machines once they are a table.
MAX_CONTACTS = 50_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Contacts(ReadOnlyArrays, Tabular):
    """Who met whom on which item when: a row for each pair of volunteers and item that both answered.

    `to_frame` has the columns ``volunteer`` (who answered first), ``other``, ``item``, ``time`` (when the second of the
    two answered, which is when they met) and ``first_time`` (when the first one had), in order of time.

    Attributes
    ----------
    volunteers, items
        The ids of all volunteers and items, to which the codes below belong.
    volunteer, other
        The codes of the two who met: the one who answered first and the one who answered second, of shape (C,).
    item
        The code of the item on which they met, of shape (C,).
    time, first_time
        When the second and when the first of the two answered, of shape (C,).
    clock
        The kind of times.
    """

    volunteers: Array
    items: Array
    volunteer: Array
    other: Array
    item: Array
    time: Array
    first_time: Array
    clock: Clock

    def __post_init__(self) -> None:
        for name in ("volunteers", "items", "volunteer", "other", "item", "time", "first_time"):
            lock(getattr(self, name))

    def __len__(self) -> int:
        return len(self.time)

    def _columns(self) -> Columns:
        return {
            "volunteer": CodedColumn(self.volunteer, self.volunteers),
            "other": CodedColumn(self.other, self.volunteers),
            "item": CodedColumn(self.item, self.items),
            "time": TimeColumn(self.time, self.clock),
            "first_time": TimeColumn(self.first_time, self.clock),
        }

    def __repr__(self) -> str:
        return f"Contacts({len(self):,} contacts of {len(self.volunteers):,} volunteers on {len(self.items):,} items)"


def contacts(
    graph: CrowdGraph,
    *,
    at: Moment | None = None,
    window: Window | None = None,
    max_contacts: int = MAX_CONTACTS,
) -> Contacts:
    """List who met whom on which item when: two volunteers meet when the second of them answers the item.

    Each pair and item is listed once, by the first answer of each. An item with `n` volunteers makes ``n (n - 1) / 2``
    contacts. The frame is the list of contacts, or link stream, that other tools for temporal networks read.

    Parameters
    ----------
    graph
        The graph.
    at
        Count the responses up to and including this moment; all if left out.
    window
        Count the responses of a period: a pair (start, stop), from `start` up to, but not including, `stop`. None
        leaves an end open. Give `at` or `window`, not both.
    max_contacts
        More contacts than this raise an error before any is computed.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({
    ...     "volunteer": ["anna", "bert", "cleo"], "item": ["x", "x", "x"], "label": [1, 0, 1], "time": [10, 20, 30]})
    >>> print(cg.networks.contacts(graph).to_frame(kind="text"))
    volunteer  other  item  time  first_time
    anna       bert   x     20    10
    anna       cleo   x     30    10
    bert       cleo   x     30    20
    """
    check_integer("max_contacts", max_contacts)
    view = select_period(graph, at, window).view
    answers = view.answers.first
    rank = _rank_in_item(answers)
    n_contacts = int(rank.sum(dtype=np.int64))
    if n_contacts > max_contacts:
        raise ParameterError(
            f"The items make {n_contacts:,} contacts, more than max_contacts={max_contacts:,}; the largest has "
            f"{int(answers.n_by_item.max()):,} volunteers. Take a part with window=(start, stop) or "
            "graph.subgraph(items=[...]), or raise max_contacts if there is enough memory."
        )
    # Answers are in order of time, so pairing each with all earlier ones gives the contacts in order of time.
    later = np.repeat(np.arange(len(answers), dtype=np.int32), rank)
    offset = np.arange(n_contacts) - np.repeat(np.cumsum(rank) - rank, rank)
    earlier = answers.by_item.order[answers.by_item.starts[answers.item[later]] + offset]
    return Contacts(
        volunteers=graph.volunteers.ids,
        items=graph.items.ids,
        volunteer=answers.volunteer[earlier],
        other=answers.volunteer[later],
        item=answers.item[later],
        time=answers.time[later],
        first_time=answers.time[earlier],
        clock=graph.responses.clock,
    )


def _rank_in_item(answers: Answers) -> Array:
    """Return how many answers to its item came before each answer, of shape (A,)."""
    by_item = answers.by_item
    rank = np.empty(len(answers), dtype=np.int64)
    rank[by_item.order] = np.arange(len(answers)) - np.repeat(by_item.starts[:-1], np.diff(by_item.starts))
    return rank
