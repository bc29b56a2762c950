"""Build graphs from bipartite graphs of other libraries and files: nodes and edges with attributes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Result
from crowdgraph.errors import ColumnError, CrowdGraphWarning, IdError, InputError, warn
from crowdgraph.io._payload import (
    JSON,
    GraphSettings,
    annotate_matching,
    column_values,
    graph_settings,
    read_settings,
    typed_column,
    unpack_annotations,
)
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.messages import quote, with_article

NODE_KINDS = ("volunteer", "item")
# What other libraries call the two kinds of nodes, in the order of NODE_KINDS; XML files may hold them as text.
SIDES = {0: "volunteer", 1: "item", "0": "volunteer", "1": "item"}
# Attributes that say what a node or an edge is.
IDENTITY = ("kind", "id", "bipartite", "label")
# Where files hold ids that are neither text nor integers, as JSON.
ID_KEY = "crowdgraph_id"
RESPONSE_PARTS = ("label", "time", "position")
DELETE_IT = "The graph attribute 'crowdgraph' is not what crowdgraph wrote"


@dataclass(frozen=True, eq=False)
class BipartiteGraph:
    """Nodes and edges with attributes, as other libraries and files hold them.

    Attributes
    ----------
    names
        What each node is called in messages; its id if it has no other.
    nodes
        The attributes of each node.
    ends
        The two nodes of each edge, as indices of `nodes`.
    edges
        The attributes of each edge.
    directed
        Whether the first end of an edge is where it starts.
    side
        The attribute that other libraries say the kind of a node with: ``"bipartite"``, or igraph's ``"type"``.
    """

    names: Sequence[Hashable]
    nodes: Sequence[Mapping[str, Any]]
    ends: Sequence[tuple[int, int]]
    edges: Sequence[Mapping[str, Any]]
    directed: bool
    side: str = "bipartite"


@dataclass(frozen=True, eq=False)
class Record:
    """What crowdgraph knows about a graph that it has written.

    Attributes
    ----------
    settings
        The types of ids, times, attributes, and so on.
    computed
        The attributes of nodes and of edges that come from annotations and gold.
    annotations
        The annotations themselves, or the text that holds them.
    is_text
        Whether ids, labels, times and attributes went through a file.
    """

    settings: GraphSettings
    computed: Mapping[str, frozenset[str]]
    annotations: Mapping[str, Result] | str
    is_text: bool


def graph_record(
    graph: CrowdGraph, *, nodes: Iterable[str], edges: Iterable[str], left_out: Sequence[str]
) -> dict[str, Any]:
    """Return the graph attribute ``crowdgraph`` as values that JSON holds.

    Parameters
    ----------
    graph
        The graph that is written.
    nodes, edges
        The attributes of nodes and edges that come from annotations and gold.
    left_out
        The names of the annotations that are not written, because they know what came later.
    """
    computed = {"node": sorted(set(nodes)), "edge": sorted(set(edges))}
    return {"settings": graph_settings(graph), "computed": computed, "left_out": list(left_out)}


def read_record(value: Any, packed: Any = None) -> Record | None:
    """Return the graph attribute ``crowdgraph`` as it was written; None if there is none.

    Parameters
    ----------
    value
        The attribute: a mapping or, from a file, its JSON text.
    packed
        The text of the annotations, from a file.
    """
    if value is None or value == {}:
        return None
    is_text = isinstance(value, str)
    try:
        content = json.loads(value) if is_text else value
        computed = {part: frozenset(content["computed"][part]) for part in ("node", "edge")}
        settings = content["settings"]
        annotations = (packed or "") if is_text else dict(content.get("annotations", {}))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{DELETE_IT}; delete it.") from error
    return Record(read_settings(settings), computed, annotations, is_text)


def graph_from_bipartite(source: BipartiteGraph, record: Record | None, *, gold: Any, duplicates: str) -> CrowdGraph:
    """Build a graph from nodes and edges; see `CrowdGraph.from_networkx`."""
    kinds = [_kind(name, data, source.side) for name, data in zip(source.names, source.nodes, strict=True)]
    ids = _ids(source, kinds, record)
    # A file has nothing where a response has no label; elsewhere its label is None.
    ends = _volunteers_first(source, kinds, needs_label=record is None or not record.is_text)
    edges, ends = _in_order(source.edges, ends)
    node_gold = _gold(source, kinds, ids, record)
    columns = {
        "volunteer": [ids[volunteer] for volunteer, _ in ends],
        "item": [ids[item] for _, item in ends],
        "label": _labels([data.get("label") for data in edges], record),
    }
    if record is not None or any("time" in data for data in edges):
        columns["time"] = _times([data.get("time") for data in edges], record)
    attributes = _attributes("response", edges, (), RESPONSE_PARTS, record)
    _check_attribute_names(attributes, "edge")
    settings = None if record is None else record.settings
    graph = graph_from_frame(
        columns | attributes,
        gold=node_gold if gold is None else gold,
        classes=None if settings is None else settings.classes,
        labels=None if settings is None else settings.labels,
        duplicates=duplicates,
        missing="error" if settings is None else "keep",
        volunteers=_node_table("volunteer", source, kinds, ids, record),
        items=_node_table("item", source, kinds, ids, record),
        clock=None if settings is None else settings.clock,
    )
    return graph if record is None else _with_annotations(graph, record, own_gold=gold is None)


def _with_annotations(graph: CrowdGraph, record: Record, *, own_gold: bool) -> CrowdGraph:
    annotations = record.annotations
    if not own_gold:
        if annotations:
            warn(
                "The annotations of the graph are left out, since they may have seen other gold than gold=.",
                CrowdGraphWarning,
            )
        return graph
    graph = graph.replace(gold=replace(graph.gold, n_unmatched=record.settings.n_unmatched))
    if isinstance(annotations, str):
        return unpack_annotations(annotations, graph)
    return annotate_matching(graph, annotations)


def _kind(name: Hashable, data: Mapping[str, Any], side: str) -> str:
    kind = data.get("kind")
    if kind is None and isinstance(data.get(side), Hashable):
        kind = SIDES.get(data.get(side))
    if kind not in NODE_KINDS:
        raise InputError(
            f"Node {name!r:.80} has kind={data.get('kind')!r:.80} and {side}={data.get(side)!r:.80}; every node needs "
            f"the attribute kind='volunteer' or kind='item', or {side}=0 for volunteers and {side}=1 for items."
        )
    return str(kind)


def _ids(source: BipartiteGraph, kinds: Sequence[str], record: Record | None) -> list[Hashable]:
    """Return the id of each node."""
    if record is not None and record.is_text:
        return _ids_from_text(source, kinds, record.settings)
    ids = [data.get("id", name) for name, data in zip(source.names, source.nodes, strict=True)]
    for name, node_id in zip(source.names, ids, strict=True):
        if not isinstance(node_id, Hashable):
            raise IdError(f"Node {name!r} has id={node_id!r}, which cannot be an id; use text, numbers or tuples.")
    return ids


def _ids_from_text(source: BipartiteGraph, kinds: Sequence[str], settings: GraphSettings) -> list[Hashable]:
    """Return the ids of nodes that were written as ``volunteer:anna``; those of other types stand beside them."""
    ids: list[Hashable] = [None] * len(kinds)
    for kind in NODE_KINDS:
        codes = [code for code, node_kind in enumerate(kinds) if node_kind == kind]
        id_type = settings.id_types[kind]
        texts = [
            source.nodes[code].get(ID_KEY) if id_type == JSON else str(source.names[code]).removeprefix(f"{kind}:")
            for code in codes
        ]
        values = column_values(texts, id_type, owner=f"The ids of the {kind}s")
        for code, value in zip(codes, values.tolist() if isinstance(values, np.ndarray) else values, strict=True):
            ids[code] = value
    return ids


def _volunteers_first(source: BipartiteGraph, kinds: Sequence[str], *, needs_label: bool) -> list[tuple[int, int]]:
    """Return the volunteer and the item of each edge."""
    ends = []
    for (left, right), data in zip(source.ends, source.edges, strict=True):
        between = kinds[left], kinds[right]
        if between == NODE_KINDS:
            ends.append((left, right))
        elif between[0] == between[1]:
            raise InputError(
                f"The edge {source.names[left]!r} - {source.names[right]!r} joins two {between[0]}s; a response joins "
                "a volunteer and an item."
            )
        elif source.directed:
            raise InputError(
                f"The edge {source.names[left]!r} -> {source.names[right]!r} leads from an item to a volunteer; in a "
                "directed graph responses lead from volunteers to items. Turn the edges, or make the graph undirected."
            )
        else:
            ends.append((right, left))
        if needs_label and "label" not in data:
            raise InputError(
                f"The edge {source.names[left]!r} - {source.names[right]!r} has no label; every response needs the "
                "attribute 'label'."
            )
    return ends


def _in_order(
    edges: Sequence[Mapping[str, Any]], ends: list[tuple[int, int]]
) -> tuple[Sequence[Mapping[str, Any]], list[tuple[int, int]]]:
    """Return edges in the order of their positions, if all have one."""
    positions: list[Any] = [data.get("position") for data in edges]
    if not positions or not all(isinstance(position, int) for position in positions):
        return edges, ends
    order = sorted(range(len(edges)), key=lambda row: positions[row])
    return [edges[row] for row in order], [ends[row] for row in order]


def _labels(labels: list[Any], record: Record | None) -> Any:
    if record is None or not record.is_text:
        return labels
    by_text = {str(label): label for label in record.settings.labels}
    return [None if label is None else by_text.get(str(label), label) for label in labels]


def _times(times: list[Any], record: Record | None) -> Any:
    """Return times that a file holds as text as they were; others as they are."""
    if record is None or not record.is_text:
        return times
    settings = record.settings
    texts = [None if time is None else str(time).removesuffix("Z") for time in times]
    return column_values(texts, settings.time_type, owner="The times of the responses")


def _gold(
    source: BipartiteGraph, kinds: Sequence[str], ids: Sequence[Hashable], record: Record | None
) -> dict[Hashable, Any]:
    """Return the gold of items."""
    items = [code for code, kind in enumerate(kinds) if kind == "item"]
    if record is None or not record.is_text:
        return {ids[code]: source.nodes[code]["gold"] for code in items if source.nodes[code].get("gold") is not None}
    classes = record.settings.classes
    by_text = {str(name): name for name in classes}
    gold: dict[Hashable, Any] = {}
    for code in items:
        data = source.nodes[code]
        if data.get("gold") is not None:
            gold[ids[code]] = by_text.get(str(data["gold"]), data["gold"])
        elif f"gold({classes[0]})" in data and f"gold({classes[0]})" in record.computed["node"]:
            gold[ids[code]] = {name: float(data.get(f"gold({name})", 0.0)) for name in classes}
    return gold


def _node_table(
    kind: str, source: BipartiteGraph, kinds: Sequence[str], ids: Sequence[Hashable], record: Record | None
) -> dict[str, Any]:
    codes = [code for code, node_kind in enumerate(kinds) if node_kind == kind]
    rows = [source.nodes[code] for code in codes]
    computed = frozenset({"gold"} if kind == "item" else ()) if record is None else record.computed["node"]
    # Other libraries may call anything label; only files of ours repeat the id under this name.
    identity = ("kind", "id", source.side) if record is None or not record.is_text else (*IDENTITY, source.side)
    attributes = _attributes(kind, rows, computed, identity, record)
    _check_attribute_names(attributes, "node")
    return {kind: [ids[code] for code in codes], **attributes}


def _attributes(
    part: str,
    rows: Sequence[Mapping[str, Any]],
    computed: Iterable[str],
    identity: Sequence[str],
    record: Record | None,
) -> dict[str, Any]:
    """Return the attributes of volunteers, items or responses: those that the graph had, then those that were added."""
    own = {} if record is None else record.settings.attributes[part]
    if record is not None and part == "response":
        computed = record.computed["edge"]
    ignored = {*identity, *computed} - own.keys()
    names = dict.fromkeys((*own, *(name for row in rows for name in row if name not in ignored)))
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    for name, kind in own.items():
        columns[name] = _own_column(columns[name], kind, f"The attribute {name!r} of the {part}s", record)
    return columns


def _own_column(values: list[Any], kind: str, owner: str, record: Record | None) -> Any:
    if record is not None and record.is_text:
        return column_values(
            [None if value is None else value if isinstance(value, str) else str(value) for value in values],
            kind,
            owner=owner,
        )
    try:
        return typed_column(values, kind)
    except (TypeError, ValueError, OverflowError):  # edited values of another type are read as they are
        return values


def _check_attribute_names(names: Iterable[str], owner: str) -> None:
    not_text = [name for name in names if not isinstance(name, str)]
    if not_text:
        raise ColumnError(f"The names of {owner} attributes must be text; got {quote(not_text)}. Rename them.")
    clash = [name for name in names if name in (*NODE_KINDS, *(("label", "time") if owner == "edge" else ()))]
    if clash:
        raise ColumnError(f"The {owner} attribute {clash[0]!r} has the name of a part of the graph; rename it.")


def check_type(graph: Any, expected: type, name: str) -> None:
    """Raise unless a graph is of the library that is read."""
    if not isinstance(graph, expected):
        raise InputError(f"Expected {name}; got {with_article(type(graph))}.")
