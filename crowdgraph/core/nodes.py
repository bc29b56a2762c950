"""Views of a graph's volunteers, items and responses.

A view refers to the graph and holds no data of its own, so it is cheap to make and always agrees with the graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from crowdgraph.core._arrays import Array, Grouping, ReadOnlyArrays, counts_by, grouped, id_array, lock, plain, to_list
from crowdgraph.core._html import node_html, nodes_html, participation_html
from crowdgraph.core.answers import Answers
from crowdgraph.core.clock import Clock
from crowdgraph.core.confusion import ConfusionHistory
from crowdgraph.core.node_annotations import distinct_names, item_columns, volunteer_columns
from crowdgraph.core.result import CodedColumn, Columns, Tabular, TimeColumn, to_frame
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.core.volunteer_values import VolunteerValues
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["Item", "Items", "ParticipationHistory", "Response", "Responses", "Volunteer", "Volunteers"]


# How many responses are decoded at a time.
DECODE_BLOCK = 100_000


class Response(NamedTuple):
    """One response: who said what about which item and when."""

    volunteer: Hashable
    item: Hashable
    label: Hashable | None
    time: Any
    attributes: dict[str, Any]


class Responses(Tabular):
    """Responses in order of time: all of a graph's, or those of one node.

    ``responses[3]`` is a `Response`; slices and masks select responses. The columns hold codes, which index
    ``graph.volunteers.ids``, ``graph.items.ids`` and ``graph.labels``.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> graph.responses[1]
    Response(volunteer='bert', item='x', label=3, time=1, attributes={})
    >>> graph.responses.label
    array([0, 1], dtype=int16)
    """

    def __init__(self, graph: CrowdGraph, table: ResponseTable) -> None:
        self._graph = graph
        self.table = table

    @property
    def volunteer(self) -> Array:
        """Codes of the volunteers, of shape (R,)."""
        return self.table.volunteer

    @property
    def item(self) -> Array:
        """Codes of the items, of shape (R,)."""
        return self.table.item

    @property
    def label(self) -> Array:
        """Codes of the labels, of shape (R,); -1 where an item was shown but not answered."""
        return self.table.label

    @property
    def time(self) -> Array:
        """Sorted times, of shape (R,); datetimes with a zone are in UTC."""
        return self.table.time

    @property
    def clock(self) -> Clock:
        """What the times are."""
        return self.table.clock

    @property
    def attributes(self) -> Mapping[str, Array]:
        """Further columns, with one value for each response."""
        return self.table.attributes

    @property
    def is_repeat(self) -> Array:
        """For each response, whether the volunteer had answered the item before, of shape (R,)."""
        answers = self._answers
        is_repeat = np.zeros(len(self), dtype=bool)
        is_repeat[answers.rows] = answers.is_repeat
        return lock(is_repeat)

    @property
    def _answers(self) -> Answers:
        if self.table is self._graph._responses:
            return self._graph.answers
        return Answers(self.table, n_volunteers=len(self._graph.volunteers), n_items=len(self._graph.items))

    @property
    def by_volunteer(self) -> Grouping:
        """The responses gathered by volunteer: ``by_volunteer.rows(code)`` are the rows of one, in order of time."""
        if self.table is self._graph._responses:
            return self._graph._rows_by_volunteer
        return grouped(self.volunteer, len(self._graph.volunteers))

    @property
    def by_item(self) -> Grouping:
        """The responses gathered by item, as `by_volunteer`."""
        if self.table is self._graph._responses:
            return self._graph._rows_by_item
        return grouped(self.item, len(self._graph.items))

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Response]:
        for start in range(0, len(self), DECODE_BLOCK):
            yield from self._decode(self.table.slice(start, start + DECODE_BLOCK))

    @overload
    def __getitem__(self, row: int) -> Response: ...

    @overload
    def __getitem__(self, row: slice | Array) -> Responses: ...

    def __getitem__(self, row: int | slice | Array) -> Response | Responses:
        if isinstance(row, slice) and row.step in (None, 1):
            return Responses(self._graph, self.table.slice(*row.indices(len(self))[:2]))
        if isinstance(row, np.ndarray) and row.dtype == bool and row.shape == (len(self),):
            return Responses(self._graph, self.table.take(np.flatnonzero(row)))
        if isinstance(row, bool) or not isinstance(row, int | np.integer):
            raise ParameterError(f"Responses are selected by an integer, a slice of step 1 or a mask; got {row!r}.")
        if not -len(self) <= row < len(self):
            raise IndexError(f"There is no response {row}; there are {len(self):,}.")
        start = int(row) % len(self)
        return next(self._decode(self.table.slice(start, start + 1)))

    def _columns(self) -> Columns:
        """Return a row for each response; without a time if that is the number of the row."""
        graph, table = self._graph, self.table
        columns: dict[str, Array | CodedColumn | TimeColumn] = {
            "volunteer": CodedColumn(table.volunteer, graph.volunteers.ids),
            "item": CodedColumn(table.item, graph.items.ids),
            "label": CodedColumn(table.label, id_array(graph.labels)),
        }
        if table.clock.kind != "order" or not np.array_equal(table.time, np.arange(len(table))):
            columns["time"] = TimeColumn(table.time, table.clock)
        return {**columns, **table.attributes}

    def _decode(self, table: ResponseTable) -> Iterator[Response]:
        """Yield the rows of a table as responses; columns are decoded at once, which is much faster than row by row."""
        graph, names = self._graph, tuple(table.attributes)
        labels = (*graph.labels, None)  # code -1, no answer, is the last
        extra = zip(*map(to_list, table.attributes.values()), strict=True) if names else repeat(())
        columns = zip(
            to_list(graph.volunteers.ids[table.volunteer]),
            to_list(graph.items.ids[table.item]),
            (labels[code] for code in table.label.tolist()),
            table.clock.to_python(table.time),
            extra,
            strict=False,
        )
        return (
            Response(volunteer, item, label, time, dict(zip(names, values, strict=True)))
            for volunteer, item, label, time, values in columns
        )

    def __repr__(self) -> str:
        if len(self) == 0:
            return "Responses: none"
        first, last = self.clock.to_python(self.time[[0, -1]])
        extra = f"; with {', '.join(self.attributes)}" if self.attributes else ""
        return f"Responses: {len(self):,} from {first} to {last}{extra}"


class Node:
    """One volunteer or item of a graph."""

    kind: str

    def __init__(self, graph: CrowdGraph, table: NodeTable, grouping: Grouping, code: int) -> None:
        self._graph = graph
        self._table = table
        self._rows = grouping.rows(code)
        self.code = code
        self.id: Hashable = plain(table.ids[code])

    @property
    def n_responses(self) -> int:
        """The number of responses of this node."""
        return len(self._rows)

    @property
    def degree(self) -> int:
        """The number of responses of this node, which are its edges."""
        return len(self._rows)

    @property
    def neighbors(self) -> list[Any]:
        """The ids of the nodes at the other end of the responses, each once, in order of the first response."""
        other = self._graph.items if self.kind == "volunteer" else self._graph.volunteers
        return to_list(other.ids[self._neighbor_codes()])

    def _neighbor_codes(self) -> Array:
        """Return the codes of `neighbors`."""
        responses = self._graph.responses
        return _distinct((responses.item if self.kind == "volunteer" else responses.volunteer)[self._rows])

    @property
    def responses(self) -> Responses:
        """The node's responses, in order of time."""
        return Responses(self._graph, self._graph.responses.table.take(self._rows))

    @property
    def attributes(self) -> dict[str, Any]:
        """The node's attributes."""
        row = slice(self.code, self.code + 1)
        return {name: to_list(column[row])[0] for name, column in self._table.attributes.items()}

    def __repr__(self) -> str:
        extra = "".join(f", {name}={value!r}" for name, value in self.attributes.items())
        return f"{type(self).__name__}({self.id!r}, {self.n_responses:,} responses{extra})"

    def _repr_html_(self) -> str:
        return node_html(self)


def _distinct(codes: Array) -> Array:
    """Return each code once, in order of its first occurrence."""
    _, first = np.unique(codes, return_index=True)
    return np.asarray(codes[np.sort(first)])


class Volunteer(Node):
    """One volunteer: their responses and, once the graph is annotated, their confusion and participation."""

    kind = "volunteer"

    @property
    def items(self) -> list[Any]:
        """The ids of the items that the volunteer met, each once, in order of the first response."""
        return self.neighbors

    def coworkers(self) -> VolunteerValues:
        """Return who met the same items, and how many of them: a mapping from id to number, the most first.

        An item counts once for a pair, however often they answered it; items that were only shown count, too.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses({
        ...     "volunteer": ["anna", "bert", "cleo", "anna", "bert"], "item": ["x", "x", "x", "y", "y"],
        ...     "label": [1, 1, 0, 0, 0]})
        >>> dict(graph.volunteers["anna"].coworkers())
        {'bert': 2, 'cleo': 1}
        """
        responses, n_volunteers = self._graph.responses, len(self._table)
        rows = responses.by_item.rows_of(self._neighbor_codes())
        pairs = np.sort(responses.item[rows].astype(np.int64) * n_volunteers + responses.volunteer[rows])
        is_first = np.diff(pairs, prepend=-1) > 0
        counts = np.bincount(pairs[is_first] % n_volunteers, minlength=n_volunteers)
        counts[self.code] = 0
        others = np.flatnonzero(counts)
        order = others[np.argsort(-counts[others], kind="stable")]
        return VolunteerValues("common_items", self._table.ids[order], counts[order])

    @property
    def confusion(self) -> ConfusionHistory:
        """The volunteer's confusion over time, from the latest annotation that has one."""
        return self._graph.confusion().of(self.id)

    @property
    def participation(self) -> Array:
        """How much the volunteer belongs to each community, of shape (K,), from the latest annotated communities.

        It is zero for a volunteer who was not in the network in which the communities were detected.
        """
        groups = self._graph.communities()
        return groups.of(self.id) if self.id in groups.table else np.zeros(len(groups))

    def participation_over_time(self) -> ParticipationHistory:
        """Return how much the volunteer belonged to each community at each snapshot of the latest community track."""
        track = self._graph.community_track()
        code = track.table.code(self.id)
        return ParticipationHistory(
            volunteer=self.id,
            times=track.times,
            counts=track.counts,
            participation=track.participation[:, code],
            community=track.assignment[:, code],
            clock=track.clock,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ParticipationHistory(ReadOnlyArrays, Tabular):
    """How much one volunteer belonged to each community at several times.

    `to_frame` has a row for each snapshot: the time, the number of responses until then, the community, and the
    participation in each as `participation_0`, `participation_1` and so on.

    Attributes
    ----------
    volunteer
        The volunteer.
    times, counts
        The time of each snapshot and the number of responses until then, both of shape (T,).
    participation
        The participation in each community, of shape (T, K); zeros while the volunteer belongs to none.
    community
        The community of assignment, of shape (T,); -1 for none.
    clock
        The kind of times.
    """

    volunteer: Hashable
    times: Array
    counts: Array
    participation: Array
    community: Array
    clock: Clock

    def __len__(self) -> int:
        return len(self.times)

    def _columns(self) -> Columns:
        numbered = {f"participation_{k}": column for k, column in enumerate(self.participation.T)}
        times = TimeColumn(self.times, self.clock)
        return {"time": times, "count": self.counts, "community": self.community, **numbered}

    def __repr__(self) -> str:
        communities = ", ".join("none" if k < 0 else str(k) for k in self.community.tolist())
        return f"ParticipationHistory of {self.volunteer!r}: {len(self):,} snapshots, communities {communities}"

    def _repr_html_(self) -> str:
        return participation_html(self)


class Item(Node):
    """One item: its responses, its gold and, once the graph is annotated, its class probabilities."""

    kind = "item"

    @property
    def volunteers(self) -> list[Any]:
        """The ids of the volunteers who met the item, each once, in order of the first response."""
        return self.neighbors

    @property
    def gold(self) -> Hashable | dict[Hashable, float] | None:
        """The known class, or a probability for each class, or None where nothing is known."""
        return self._graph.gold[self.id] if self._graph.gold.known[self.code] else None

    @property
    def class_probs(self) -> dict[Hashable, float]:
        """The probability of each class, from the latest annotation that has them."""
        row = self._graph.item_probs()[self.code]
        return dict(zip(self._graph.classes, row.tolist(), strict=True))


NodeType = TypeVar("NodeType", bound=Node)


class Nodes(Tabular, Generic[NodeType]):
    """All nodes of one kind, with `len`, iteration over ids, ``in``, and single nodes by id."""

    _node: type[NodeType]

    def __init__(self, graph: CrowdGraph, table: NodeTable) -> None:
        self._graph = graph
        self.table = table

    @property
    def ids(self) -> Array:
        """The ids in order of their codes."""
        return self.table.ids

    @property
    def attributes(self) -> Mapping[str, Array]:
        """Columns with one value for each node."""
        return self.table.attributes

    @property
    def n_responses(self) -> Array:
        """The number of responses of each node."""
        answers, kind = self._graph.answers, self.table.kind
        if answers.are_all_responses:
            return answers.n_by_volunteer if kind == "volunteer" else answers.n_by_item
        return counts_by(getattr(self._graph.responses, kind), len(self.table))

    @property
    def _grouping(self) -> Grouping:
        responses = self._graph.responses
        return responses.by_volunteer if self.table.kind == "volunteer" else responses.by_item

    def codes(self, ids: Any) -> Array:
        """Return the codes of several ids."""
        return self.table.codes(ids)

    def _columns(self) -> Columns:
        """Return a row for each node: its id and its attributes."""
        return {self.table.kind: self.ids, **self.attributes}

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """Return a row for each node: its id, its attributes, and what the latest annotations say of it.

        Volunteers have the number of responses, ``accuracy`` with the ends ``low`` and ``high`` of its 90 % interval
        and the ``weight`` of what is known, ``community`` (-1 for none) and the participation in each; items the number
        of responses, the most probable ``class`` and the probability of every class. Where an attribute has such a
        name, an underscore follows it. `CrowdGraph.to_pandas` and its like have the attributes alone.

        Parameters
        ----------
        kind
            ``"pandas"``, ``"polars"``, ``"arrow"``, or ``"text"`` for reading.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(seed=0).graph
        >>> graph.annotate(cg.IBCC().fit(graph)).volunteers.to_frame(kind="arrow").column_names
        ['volunteer', 'responses', 'accuracy', 'low', 'high', 'weight']
        """
        own = self._columns()
        known = volunteer_columns(self._graph) if self.table.kind == "volunteer" else item_columns(self._graph)
        return to_frame({**own, **distinct_names(known, own)}, kind=kind)

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.table.ids.tolist())

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.table

    def __getitem__(self, node_id: Hashable) -> NodeType:
        return self._at_code(self.table.code(node_id))

    def _at_code(self, code: int) -> NodeType:
        """Return the node of a code."""
        return self._node(self._graph, self.table, self._grouping, code)

    def __repr__(self) -> str:
        first = ", ".join(repr(node_id) for node_id in self.ids[:3].tolist())
        more = ", ..." if len(self) > 3 else ""
        extra = f"; with {', '.join(self.attributes)}" if self.attributes else ""
        return f"{type(self).__name__}: {len(self):,} ({first}{more}){extra}"

    def _repr_html_(self) -> str:
        return nodes_html(self)


class Volunteers(Nodes[Volunteer]):
    """The volunteers of a graph.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> graph.volunteers["anna"].n_responses
    1
    """

    _node = Volunteer


class Items(Nodes[Item]):
    """The items of a graph.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> [response.label for response in graph.items["x"].responses]
    [1, 3]
    """

    _node = Item
