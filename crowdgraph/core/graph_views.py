"""The graph as network analysts know it: views of all its nodes, its edges (the responses) and its degrees.

A view refers to the graph and holds no data of its own. A node's name is its id, except where a volunteer and an item
share an id: then the names are the pairs ``("volunteer", id)`` and ``("item", id)``, which are always understood.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from crowdgraph.core._arrays import Array, id_array, lock, object_array, to_list
from crowdgraph.core.nodes import DECODE_BLOCK, Item, Volunteer
from crowdgraph.core.response_annotations import fit_with_confusion, response_confusion, response_surprise
from crowdgraph.core.result import CodedColumn, Columns, Tabular, TimeColumn
from crowdgraph.core.tables import NodeKind, NodeTable
from crowdgraph.errors import IdError, NotAnnotatedError, ParameterError, UnknownIdError
from crowdgraph.messages import quote, suggestion

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["GraphDegrees", "GraphEdges", "GraphNodes", "NodeNames"]

KINDS: tuple[NodeKind, ...] = get_args(NodeKind)


class NodeNames:
    """The names of a graph's nodes: what each node is called, and which node a name means.

    Parameters
    ----------
    volunteers, items
        The nodes.
    """

    def __init__(self, volunteers: NodeTable, items: NodeTable) -> None:
        self._tables: dict[NodeKind, NodeTable] = {"volunteer": volunteers, "item": items}
        self._shared = volunteers.shared_ids(items)
        # An id that looks like a pair could be taken for the name of another node.
        self._as_pairs = {kind: self._shared.union(filter(_is_pair, _objects(self._tables[kind]))) for kind in KINDS}

    def __contains__(self, name: object) -> bool:
        try:
            return self._find_pair(name) is not None or any(name in self._tables[kind] for kind in KINDS)
        except TypeError:  # a tuple that holds something unhashable
            return False

    def of(self, kind: NodeKind, codes: Array | slice) -> list[Any]:
        """Return the names of some nodes of one kind."""
        ids = to_list(self._tables[kind].ids[codes])
        as_pairs = self._as_pairs[kind]
        return [(kind, node_id) if node_id in as_pairs else node_id for node_id in ids] if as_pairs else ids

    def find(self, name: Hashable) -> tuple[NodeKind, int]:
        """Return the kind and the code of the node of a name."""
        if (pair := self._find_pair(name)) is not None:
            return pair
        kinds = [kind for kind in KINDS if name in self._tables[kind]]
        if len(kinds) == 1:
            return kinds[0], self._tables[kinds[0]].code(name)
        if kinds:
            raise IdError(
                f"{name!r} is the id of a volunteer and of an item.",
                hint=f"Write ('volunteer', {name!r}) or ('item', {name!r}).",
            )
        raise UnknownIdError(self._unknown(name))

    def find_as(self, kind: NodeKind, name: Hashable) -> int | None:
        """Return the code of a node whose kind is known, or None if there is no such node."""
        pair = self._find_pair(name)
        if pair is not None:
            return pair[1] if pair[0] == kind else None
        table = self._tables[kind]
        return table.code(name) if name in table else None

    def _find_pair(self, name: object) -> tuple[NodeKind, int] | None:
        if not isinstance(name, tuple) or not _is_pair(name) or name[1] not in self._tables[name[0]]:
            return None
        return name[0], self._tables[name[0]].code(name[1])

    def _unknown(self, name: object) -> str:
        if isinstance(name, tuple) and _is_pair(name):
            return f"There is no {name[0]} {name[1]!r} among {len(self._tables[name[0]]):,}."
        ids = [table.ids[:10_000].tolist() for table in self._tables.values()]
        n_nodes = sum(map(len, self._tables.values()))
        return f"There is no volunteer or item {name!r} among {n_nodes:,}.{suggestion(name, list(chain(*ids)))}"


def _objects(table: NodeTable) -> list[Any]:
    """Return the ids of a table that are not stored as integers."""
    return [] if table.ids.dtype == np.int64 else table.ids.tolist()


def _is_pair(name: object) -> bool:
    return isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], str) and name[0] in KINDS


class GraphView:
    """Base of the views of a graph."""

    def __init__(self, graph: CrowdGraph) -> None:
        self._graph = graph

    def _names(self) -> list[Any]:
        names = self._graph._names
        return [*names.of("volunteer", slice(None)), *names.of("item", slice(None))]


class GraphNodes(GraphView, Tabular):
    """All nodes of a graph by name: the volunteers, then the items, in order of their codes.

    A node's name is its id, or ``("volunteer", id)`` and ``("item", id)`` where a volunteer and an item share an id.
    Besides ``graph.nodes[name]`` there are `len`, ``in`` and iteration; ``graph.nodes(data=True)`` gives pairs of a
    name and a dict of attributes, ``graph.nodes(data="team")`` one attribute instead (None for nodes without it).
    `to_frame` has the kind, the volunteer or the item, and the degree of each node.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> list(graph.nodes)
    ['anna', 'bert', 'x']
    >>> graph.nodes["x"]
    Item('x', 2 responses)
    >>> dict(graph.nodes(data=True))["x"]
    {'kind': 'item'}
    """

    def __len__(self) -> int:
        return len(self._graph)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._graph._names

    def __getitem__(self, name: Hashable) -> Volunteer | Item:
        kind, code = self._graph._names.find(name)
        return self._graph.volunteers._at_code(code) if kind == "volunteer" else self._graph.items._at_code(code)

    @overload
    def __call__(self, *, data: Literal[False] = False) -> GraphNodes: ...

    @overload
    def __call__(self, *, data: Literal[True] | str) -> Iterator[tuple[Any, Any]]: ...

    def __call__(self, *, data: bool | str = False) -> GraphNodes | Iterator[tuple[Any, Any]]:
        """Return the nodes themselves or, with data, an iterator over pairs of name and data."""
        if not isinstance(data, str):
            return self._with_attributes() if data else self
        choices = ("kind", *dict.fromkeys((*self._graph.volunteers.attributes, *self._graph.items.attributes)))
        if data not in choices:
            raise ParameterError(
                f"data={data!r}: the nodes of this graph have {quote(choices, most=10)}.{suggestion(data, choices)}"
            )
        return ((name, values.get(data)) for name, values in self._with_attributes())

    def _with_attributes(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        graph = self._graph
        for kind, table in (("volunteer", graph.volunteers.table), ("item", graph.items.table)):
            columns = {name: to_list(column) for name, column in table.attributes.items()}
            for code, name in enumerate(graph._names.of(table.kind, slice(None))):
                yield name, {"kind": kind, **{attribute: column[code] for attribute, column in columns.items()}}

    def _columns(self) -> Columns:
        graph = self._graph
        sizes = [graph.n_volunteers, graph.n_items]
        of_volunteers, of_items = (np.full(size, -1) for size in sizes)
        return {
            "kind": CodedColumn(np.repeat(np.arange(2), sizes), object_array(KINDS)),
            "volunteer": CodedColumn(np.concatenate([np.arange(sizes[0]), of_items]), graph.volunteers.ids),
            "item": CodedColumn(np.concatenate([of_volunteers, np.arange(sizes[1])]), graph.items.ids),
            "degree": graph.degree.array,
        }

    def __repr__(self) -> str:
        return f"Nodes: {self._graph.n_volunteers:,} volunteers, {self._graph.n_items:,} items"


class GraphEdges(GraphView, Tabular):
    """The responses of a graph as edges between a volunteer and an item, in order of time.

    Besides iteration over pairs of names there are `len` and ``in``. ``graph.edges(data=True)`` gives a volunteer, an
    item and a dict with the label, the time and the attributes of the response and, where the graph carries them, the
    expected `confusion` (J, L) of the volunteer at that moment, of ``graph.confusion()``, and the `surprise` of the
    response in nats, if that confusion is of a fit; ``graph.edges(data="label")`` gives one of these instead of the
    dict. Both are what the fit knows in the end, as in `crowdgraph.core.response_annotations`. An attribute of yours
    called `confusion` or `surprise` goes before what annotations say, here and in `CrowdGraph.to_networkx`, `to_igraph`
    and files.

    `to_frame` has the volunteer, the item, the label, the time, the attributes and the surprise.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> list(graph.edges)
    [('anna', 'x'), ('bert', 'x')]
    >>> ("anna", "x") in graph.edges
    True
    >>> list(graph.edges(data=True))[1]
    ('bert', 'x', {'label': 3, 'time': 1})
    """

    def __len__(self) -> int:
        return self._graph.n_responses

    def __contains__(self, edge: object) -> bool:
        return isinstance(edge, tuple) and len(edge) == 2 and self._graph.has_edge(*edge)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        names, responses = self._graph._names, self._graph.responses
        for start in range(0, len(self), DECODE_BLOCK):
            rows = slice(start, start + DECODE_BLOCK)
            yield from zip(
                names.of("volunteer", responses.volunteer[rows]), names.of("item", responses.item[rows]), strict=True
            )

    @overload
    def __call__(self, *, data: Literal[False] = False) -> GraphEdges: ...

    @overload
    def __call__(self, *, data: Literal[True] | str) -> Iterator[tuple[Any, Any, Any]]: ...

    def __call__(self, *, data: bool | str = False) -> GraphEdges | Iterator[tuple[Any, Any, Any]]:
        """Return the edges themselves or, with data, an iterator over triples of volunteer, item and data."""
        if not data:
            return self
        computed = self._computed()
        if data is True:
            return self._with_data(computed)
        choices = ("label", "time", *self._graph.responses.attributes, *computed)
        if data not in choices:
            raise ParameterError(
                f"data={data!r}: the edges of this graph have {quote(choices, most=10)}.{suggestion(data, choices)}"
            )
        return ((volunteer, item, values[data]) for volunteer, item, values in self._with_data(computed))

    def _computed(self) -> dict[str, Array]:
        """Return what annotations say about each response."""
        try:
            track = self._graph.confusion()
        except NotAnnotatedError:
            return {}
        return {"confusion": response_confusion(self._graph, track), **self._surprise()}

    def _surprise(self) -> dict[str, Array]:
        fit = fit_with_confusion(self._graph)
        return {} if fit is None else {"surprise": response_surprise(self._graph, fit)}

    def _with_data(self, computed: dict[str, Array]) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        names = tuple(computed)
        rows = zip(*map(_values, computed.values()), strict=True) if names else repeat(())
        for pair, response, values in zip(self, self._graph.responses, rows, strict=False):
            own = {"label": response.label, "time": response.time, **response.attributes}
            yield *pair, {**own, **{name: value for name, value in zip(names, values, strict=True) if name not in own}}

    def _columns(self) -> Columns:
        graph, responses = self._graph, self._graph.responses
        return {
            "volunteer": CodedColumn(responses.volunteer, graph.volunteers.ids),
            "item": CodedColumn(responses.item, graph.items.ids),
            "label": CodedColumn(responses.label, id_array(graph.labels)),
            "time": TimeColumn(responses.time, responses.clock),
            **responses.attributes,
            **{name: column for name, column in self._surprise().items() if name not in responses.attributes},
        }

    def __repr__(self) -> str:
        return f"Edges: {len(self):,} responses"


def _values(column: Array) -> Iterator[Any]:
    """Yield numbers as Python's, and matrices as read-only arrays."""
    return iter(column.tolist()) if column.ndim == 1 else iter(column)


class GraphDegrees(GraphView):
    """The number of responses of each node: ``graph.degree["anna"]``, and iteration over pairs of name and degree.

    A volunteer who answered an item twice has two responses, as in a multigraph.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> graph.degree["x"]
    2
    >>> dict(graph.degree)
    {'anna': 1, 'bert': 1, 'x': 2}
    """

    @property
    def array(self) -> Array:
        """The degrees of the volunteers, then of the items, in order of their codes."""
        responses = self._graph.responses
        return lock(np.concatenate([np.diff(responses.by_volunteer.starts), np.diff(responses.by_item.starts)]))

    def __len__(self) -> int:
        return len(self._graph)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return zip(self._names(), self.array.tolist(), strict=True)

    def __getitem__(self, name: Hashable) -> int:
        return self._graph.nodes[name].degree

    def __call__(self, name: Hashable | None = None) -> Any:
        """Return the degree of a node, or the degrees themselves."""
        return self if name is None else self[name]

    def __repr__(self) -> str:
        return f"Degrees of {len(self):,} nodes"
