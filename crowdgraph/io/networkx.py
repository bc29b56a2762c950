"""Convert graphs and networks to networkx and igraph and back, and write GraphML and GEXF for Gephi and others."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
import numpy as np

from crowdgraph.core._arrays import is_null, to_list
from crowdgraph.core.clock import Clock, Moment
from crowdgraph.core.communities import Communities
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphWarning,
    IdError,
    InputError,
    NotAnnotatedError,
    ParameterError,
    warn,
)
from crowdgraph.io._columns import Column
from crowdgraph.io._files import atomic_file
from crowdgraph.io._network_files import MARK
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.io.networks import params_text
from crowdgraph.messages import quote, with_article

if TYPE_CHECKING:
    import igraph

__all__ = [
    "graph_from_networkx",
    "graph_to_igraph",
    "graph_to_networkx",
    "network_to_igraph",
    "network_to_networkx",
    "save_network",
    "write_gexf",
    "write_graphml",
]

Annotation = TypeVar("Annotation")
NODE_KINDS = ("volunteer", "item")
# Names that GEXF reserves; attributes of these names get an underscore.
GEXF_NAMES = ("id", "viz", "parents", "pid", "slices", "start", "end", "weight", "type", "thickness")
# Node attributes that to_networkx makes from annotations and gold; from_networkx does not read them as attributes.
COMPUTED_ATTRIBUTES = ("confusion", "participation", "class_probs", "gold")
# Characters that XML cannot represent.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# How GraphML and GEXF call the types of values.
XML_TYPES = {str: "string", int: "long", float: "double"}


# Graphs of volunteers, items and responses


def graph_to_networkx(graph: CrowdGraph, *, at: Moment | None = None) -> nx.MultiGraph:
    """Return volunteers and items as nodes, responses as edges; see `CrowdGraph.to_networkx`."""
    clock = graph.responses.clock
    settings = {"clock": clock.kind, "zone": clock.zone, "attributes": tuple(graph.responses.attributes)}
    network: nx.MultiGraph = nx.MultiGraph(crowdgraph={"classes": graph.classes, "labels": graph.labels, **settings})
    annotations = _node_annotations(graph, at=at)
    for kind, nodes in (("volunteer", graph.volunteers), ("item", graph.items)):
        attributes = {name: to_list(column) for name, column in nodes.attributes.items()}
        for code, node_id in enumerate(nodes.ids.tolist()):
            own = {name: values[code] for name, values in attributes.items()}
            computed = {name: values[code] for name, values in annotations[kind].items() if values[code] is not None}
            identity = {"kind": kind, "id": node_id, "bipartite": NODE_KINDS.index(kind)}
            network.add_nodes_from([((kind, node_id), {**identity, **own, **computed})])
    network.add_edges_from(
        (
            ("volunteer", response.volunteer),
            ("item", response.item),
            position,
            {"label": response.label, "time": response.time, "position": position, **response.attributes},
        )
        for position, response in enumerate(_graph_until(graph, at).responses)
    )
    return network


def graph_to_igraph(graph: CrowdGraph, *, at: Moment | None = None) -> igraph.Graph:
    """Return volunteers, then items as vertices, responses as edges; see `CrowdGraph.to_igraph`."""
    import igraph

    n_volunteers, n_items = len(graph.volunteers), len(graph.items)
    responses = _graph_until(graph, at).responses
    ends = np.column_stack([responses.volunteer, responses.item + n_volunteers])
    result = igraph.Graph(n=n_volunteers + n_items, edges=ends, directed=False)
    result.vs["kind"] = ["volunteer"] * n_volunteers + ["item"] * n_items
    result.vs["id"] = [*graph.volunteers, *graph.items]
    result.es["label"] = [graph.labels[code] if code >= 0 else None for code in responses.label.tolist()]
    result.es["time"] = responses.clock.to_python(responses.time)
    for name, column in responses.attributes.items():
        result.es[name] = to_list(column)
    annotations = _node_annotations(graph, at=at)
    volunteers: dict[str, list[Any]] = {name: to_list(column) for name, column in graph.volunteers.attributes.items()}
    items: dict[str, list[Any]] = {name: to_list(column) for name, column in graph.items.attributes.items()}
    volunteers |= annotations["volunteer"]
    items |= annotations["item"]
    for name in {**volunteers, **items}:
        result.vs[name] = [*volunteers.get(name, [None] * n_volunteers), *items.get(name, [None] * n_items)]
    result["classes"], result["labels"] = graph.classes, graph.labels
    return result


def _graph_until(graph: CrowdGraph, at: Moment | None) -> CrowdGraph:
    """Return the graph with the responses up to and including a moment."""
    if at is None:
        return graph
    return graph.first(graph.responses.clock.count_until(graph.responses.time, at, inclusive=True))


def _node_annotations(graph: CrowdGraph, *, at: Moment | None) -> dict[str, dict[str, list[Any]]]:
    """Return what annotations and gold say about each node, by kind of node and name; None where they say nothing."""
    values: dict[str, dict[str, list[Any]]] = {"volunteer": {}, "item": {}}
    if len(graph.gold):
        values["item"]["gold"] = [graph.gold.get(item) for item in graph.items]
    if (track := _annotation_or_none(graph.confusion)) is not None:
        values["volunteer"]["confusion"] = list((track.latest() if at is None else track.at(at)).mean)
    if (communities := _annotation_or_none(graph.communities)) is not None:
        participation = dict(zip(communities.ids.tolist(), communities.participation, strict=True))
        values["volunteer"]["participation"] = [participation.get(volunteer) for volunteer in graph.volunteers]
    if (probs := _annotation_or_none(graph.item_probs)) is not None:
        values["item"]["class_probs"] = list(probs)
    return values


def _annotation_or_none(read: Callable[[], Annotation]) -> Annotation | None:
    try:
        return read()
    except NotAnnotatedError:
        return None


def graph_from_networkx(network: nx.Graph, *, gold: Any = None, duplicates: str = "all") -> CrowdGraph:
    """Build a graph from a networkx graph whose edges are responses; see `CrowdGraph.from_networkx`."""
    if not isinstance(network, nx.Graph):
        raise InputError(f"Expected a networkx graph; got {with_article(type(network))}.")
    settings = _graph_settings(network)
    tables, id_of, node_gold = _node_tables(network, computed=COMPUTED_ATTRIBUTES if settings else ())
    edges = [_volunteer_first(network, left, right, data) for left, right, data in network.edges(data=True)]
    if all(isinstance(data.get("position"), int) for _, _, data in edges):
        edges.sort(key=lambda edge: edge[2]["position"])
    columns: dict[str, Column] = {
        "volunteer": [id_of[volunteer] for volunteer, _, _ in edges],
        "item": [id_of[item] for _, item, _ in edges],
        "label": [data.get("label") for _, _, data in edges],
    }
    if settings or any("time" in data for _, _, data in edges):
        columns["time"] = [data.get("time") for _, _, data in edges]
    edge_names = (name for _, _, data in edges for name in data if name not in ("label", "time", "position"))
    attributes = dict.fromkeys((*settings.get("attributes", ()), *edge_names))
    _check_attribute_names(attributes, columns, "edge")
    columns |= {name: [data.get(name) for _, _, data in edges] for name in attributes}
    return graph_from_frame(
        columns,
        gold=node_gold if gold is None else gold,
        classes=settings.get("classes"),
        labels=settings.get("labels"),
        duplicates=duplicates,
        missing="keep" if settings else "error",
        volunteers=tables["volunteer"],
        items=tables["item"],
        clock=Clock(settings["clock"], settings["zone"]) if settings else None,
    )


def _graph_settings(network: nx.Graph) -> dict[str, Any]:
    """Return what `to_networkx` stored about the graph; nothing if it did not make this one."""
    settings = network.graph.get("crowdgraph", {})
    expected = {"classes", "labels", "clock", "zone", "attributes"}
    if not isinstance(settings, dict) or (settings and settings.keys() != expected):
        raise InputError("The graph attribute 'crowdgraph' is not what to_networkx() wrote; delete it.")
    return settings


def _check_attribute_names(names: Iterable[str], taken: Iterable[str], owner: str) -> None:
    clash = [name for name in names if name in (*taken, "volunteer", "item")]
    if clash:
        raise ColumnError(f"The {owner} attribute {clash[0]!r} has the name of a part of the graph; rename it.")


def _node_tables(
    network: nx.Graph, *, computed: tuple[str, ...]
) -> tuple[dict[str, dict[str, Any]], dict[Hashable, Hashable], dict[Hashable, Any]]:
    """Return the two tables of nodes without `computed` attributes, the id of each node, and the gold of items."""
    rows: dict[str, list[tuple[Hashable, dict[str, Any]]]] = {kind: [] for kind in NODE_KINDS}
    id_of: dict[Hashable, Hashable] = {}
    gold: dict[Hashable, Any] = {}
    for node, data in network.nodes(data=True):
        kind = data.get("kind")
        if kind not in NODE_KINDS:
            raise InputError(
                f"Node {node!r} has kind={kind!r}; every node needs the attribute kind='volunteer' or kind='item'."
            )
        id_of[node] = data.get("id", node)
        if not isinstance(id_of[node], Hashable):
            raise IdError(f"Node {node!r} has id={id_of[node]!r}, which cannot be an id; use text, numbers or tuples.")
        rows[kind].append((id_of[node], data))
        if kind == "item" and data.get("gold") is not None:
            gold[id_of[node]] = data["gold"]
    tables = {}
    for kind, nodes in rows.items():
        other_names = {"kind", "id", "bipartite", *computed, *(("gold",) if kind == "item" else ())}
        names = dict.fromkeys(name for _, data in nodes for name in data if name not in other_names)
        _check_attribute_names(names, (), "node")
        table: dict[str, Any] = {kind: [node_id for node_id, _ in nodes]}
        tables[kind] = table | {name: [data.get(name) for _, data in nodes] for name in names}
    return tables, id_of, gold


def _volunteer_first(
    network: nx.Graph, left: Hashable, right: Hashable, data: dict[str, Any]
) -> tuple[Hashable, Hashable, dict[str, Any]]:
    kinds = network.nodes[left]["kind"], network.nodes[right]["kind"]
    if kinds == ("item", "volunteer"):
        left, right = right, left
    elif kinds != NODE_KINDS:
        raise InputError(
            f"The edge {left!r} - {right!r} joins two {kinds[0]}s; a response joins a volunteer and an item."
        )
    if "label" not in data:
        raise InputError(f"The edge {left!r} - {right!r} has no label; every response needs the attribute 'label'.")
    return left, right, data


def write_graphml(graph: CrowdGraph, path: str | PathLike[str], *, at: Moment | None = None) -> None:
    """Write a graph as GraphML; see `CrowdGraph.to_graphml`."""
    with atomic_file(path) as file:
        nx.write_graphml(_flat_network(graph, at=at), fspath(file))


def write_gexf(graph: CrowdGraph, path: str | PathLike[str], *, at: Moment | None = None) -> None:
    """Write a graph as GEXF; see `CrowdGraph.to_gexf`."""
    with atomic_file(path) as file:
        nx.write_gexf(_flat_network(graph, at=at), fspath(file))


def _flat_network(graph: CrowdGraph, *, at: Moment | None = None) -> nx.MultiGraph:
    """Return the networkx graph as files need it: nodes are text, attributes are plain numbers or text."""
    network = graph_to_networkx(graph, at=at)
    names = {node: f"{node[0]}:{node[1]}" for node in network}
    _check_distinct_names(list(names.values()))
    nodes = _unify_types([_flat_node(data, graph) for _, data in network.nodes(data=True)])
    edges = _unify_types([_flat_attributes(data) for _, _, data in network.edges(data=True)])
    for text in (*names.values(), *(value for data in (*nodes, *edges) for value in (*data, *data.values()))):
        _check_xml(text)
    flat: nx.MultiGraph = nx.MultiGraph()
    flat.add_nodes_from(zip(names.values(), nodes, strict=True))
    flat.add_edges_from(
        (names[left], names[right], key, data)
        for (left, right, key), data in zip(network.edges(keys=True), edges, strict=True)
    )
    return flat


def _flat_node(data: dict[str, Any], graph: CrowdGraph) -> dict[str, Any]:
    """Return a node's attributes, with one for each entry of confusion and probabilities, and the id as label."""
    flat: dict[str, Any] = {"label": str(data["id"])}
    if "confusion" in data:
        entries = np.ndenumerate(data["confusion"])
        flat |= {f"confusion[{graph.classes[j]},{graph.labels[k]}]": float(p) for (j, k), p in entries}
    if "class_probs" in data:
        flat |= {f"p({name})": float(p) for name, p in zip(graph.classes, data["class_probs"], strict=True)}
    if "participation" in data:
        flat |= {f"participation[{k}]": float(p) for k, p in enumerate(data["participation"])}
    if isinstance(data.get("gold"), dict):
        flat |= {f"gold({name})": float(p) for name, p in data["gold"].items()}
    elif "gold" in data:
        flat["gold"] = _scalar(data["gold"])
    others = {name: value for name, value in data.items() if name not in ("id", "bipartite", *COMPUTED_ATTRIBUTES)}
    return _flat_attributes(others) | flat


def _flat_attributes(data: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as numbers, booleans and text, under names that GEXF allows and without nulls."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        allowed = name
        while allowed in GEXF_NAMES or (allowed != name and allowed in data):
            allowed += "_"
        if not is_null(value):
            flat[allowed] = _scalar(value)
    return flat


def _scalar(value: Any) -> bool | int | float | str:
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str) else str(value)


def _unify_types(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert attributes that mix types to text, since files declare one type for each."""
    types: dict[str, set[type]] = {}
    for data in rows:
        for name, value in data.items():
            types.setdefault(name, set()).add(type(value))
    mixed = {name for name, kinds in types.items() if len(kinds) > 1}
    return [{name: str(value) if name in mixed else value for name, value in data.items()} for data in rows]


# Networks of volunteers


def network_to_networkx(network: VolunteerNetwork, *, communities: Communities | None = None) -> nx.Graph:
    """Return volunteer ids as nodes, weights on the edges; see `VolunteerNetwork.to_networkx`."""
    # Settings are text, since networkx cannot write dictionaries to files.
    settings = {"params": params_text(network.params)} if network.params else {}
    result: nx.Graph = nx.Graph(method=network.method, **settings)
    ids = network.ids.tolist()
    result.add_nodes_from(ids)
    for name, values in _volunteer_attributes(network, communities).items():
        nx.set_node_attributes(result, dict(zip(ids, values, strict=True)), name)
    for left, right, attributes in _edges(network):
        result.add_edge(ids[left], ids[right], **attributes)
    return result


def network_to_igraph(network: VolunteerNetwork, *, communities: Communities | None = None) -> igraph.Graph:
    """Return volunteer ids as vertex attribute `id`, weights on the edges; see `VolunteerNetwork.to_igraph`."""
    import igraph

    left, right, _ = network.pairs()
    result = igraph.Graph(n=len(network), edges=np.column_stack([left, right]), directed=False)
    result.vs["id"] = network.ids.tolist()
    for name, values in _volunteer_attributes(network, communities).items():
        result.vs[name] = values
    for name, values in _link_attributes(network).items():
        result.es[name] = values
    result["method"], result["params"] = network.method, dict(network.params)
    return result


def _edges(network: VolunteerNetwork) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Yield the codes of both ends of each link, and its attributes."""
    left, right, _ = network.pairs()
    columns = _link_attributes(network)
    for one, other, *values in zip(left.tolist(), right.tolist(), *columns.values(), strict=True):
        yield one, other, dict(zip(columns, values, strict=True))


def _link_attributes(network: VolunteerNetwork) -> dict[str, list[float]]:
    """Return the weight of each link, and its p-value where links were tested, in the order of the pairs."""
    columns = {"weight": network.pairs()[2], **network.pair_attributes()}
    return {name: values.tolist() for name, values in columns.items()}


def _volunteer_attributes(network: VolunteerNetwork, communities: Communities | None) -> dict[str, list[Any]]:
    """Return strength, support and communities of each volunteer, by name, in the network's order."""
    attributes: dict[str, list[Any]] = {"strength": network.strength.tolist()}
    if network.support is not None:
        attributes["support"] = network.support.tolist()
    if communities is None:
        return attributes
    if not isinstance(communities, Communities):
        raise ParameterError(
            f"communities= takes Communities, found by a detector; got {with_article(type(communities))}."
        )
    assignment, participation = communities.on(network)
    attributes["community"] = assignment.tolist()
    return attributes | {f"participation_{k}": participation[:, k].tolist() for k in range(len(communities))}


def save_network(
    network: VolunteerNetwork, path: str | PathLike[str], *, communities: Communities | None = None
) -> None:
    """Write a network as GraphML or GEXF; see `VolunteerNetwork.save`.

    The lines are written one by one: networkx would first build a tree of all of them in memory, which takes too long
    for networks with many edges.
    """
    writers = {".graphml": _graphml_lines, ".gexf": _gexf_lines}
    suffix = next((suffix for suffix in writers if fspath(path).lower().endswith(suffix)), None)
    if suffix is None:
        raise ParameterError(f"{fspath(path)!r} must end in .graphml or .gexf, which says what to write.")
    names = [str(name) for name in network.ids.tolist()]
    _check_distinct_names(names)
    for text in (*names, network.method):
        _check_xml(text)
    settings = _file_settings(network)
    attributes = {"label": names, **_volunteer_attributes(network, communities)}
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.writelines(writers[suffix](network, names, attributes, settings))


def _file_settings(network: VolunteerNetwork) -> str:
    """Return what a file needs to say so that the network can be read back, as JSON."""
    ids = network.ids.tolist()
    kind = "integers" if network.ids.dtype == np.int64 else "text"
    others = [name for name in ids if kind == "text" and not isinstance(name, str)]
    if others:
        some = quote(others, most=3)
        warn(f"Ids that are neither all text nor all integers become text ({some}).", CrowdGraphWarning)
    return f'{{"ids": "{kind}", "params": {params_text(network.params)}}}'


def _graphml_lines(
    network: VolunteerNetwork, names: list[str], attributes: Mapping[str, list[Any]], settings: str
) -> Iterator[str]:
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, values in attributes.items():
        yield f'<key id="{name}" for="node" attr.name="{name}" attr.type="{_xml_type(values)}"/>\n'
    for name in ("weight", *network.pair_attributes()):
        yield f'<key id="{name}" for="edge" attr.name="{name}" attr.type="double"/>\n'
    for name in ("method", MARK):
        yield f'<key id="{name}" for="graph" attr.name="{name}" attr.type="string"/>\n'
    yield f'<graph edgedefault="undirected">\n<data key="method">{_xml_text(network.method)}</data>\n'
    yield f'<data key="{MARK}">{_xml_text(settings)}</data>\n'
    columns = [
        [f'<data key="{name}">{_xml_text(value)}</data>' for value in column] for name, column in attributes.items()
    ]
    quoted = [quoteattr(name) for name in names]
    for name, *data in zip(quoted, *columns, strict=True):
        yield f"<node id={name}>{''.join(data)}</node>\n"
    for left, right, link in _edges(network):
        inner = "".join(f'<data key="{key}">{number}</data>' for key, number in link.items())
        yield f"<edge source={quoted[left]} target={quoted[right]}>{inner}</edge>\n"
    yield "</graph>\n</graphml>\n"


def _gexf_lines(
    network: VolunteerNetwork, names: list[str], attributes: Mapping[str, list[Any]], settings: str
) -> Iterator[str]:
    # Version 1.2 is the one that both networkx and every Gephi read.
    yield '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
    yield f"<meta><creator>crowdgraph</creator><keywords>{_xml_text(settings)}</keywords>"
    yield f"<description>{_xml_text(network.method)}</description></meta>\n"
    yield '<graph defaultedgetype="undirected" mode="static">\n<attributes class="node" mode="static">\n'
    # GEXF stores a node's label outside its attributes.
    declared = {name: values for name, values in attributes.items() if name != "label"}
    for name, values in declared.items():
        yield f'<attribute id="{name}" title="{name}" type="{_xml_type(values)}"/>\n'
    yield "</attributes>\n"
    tested = tuple(network.pair_attributes())
    if tested:
        yield '<attributes class="edge" mode="static">\n'
        yield from (f'<attribute id="{name}" title="{name}" type="double"/>\n' for name in tested)
        yield "</attributes>\n"
    yield "<nodes>\n"
    columns = [[f'<attvalue for="{name}" value="{value}"/>' for value in column] for name, column in declared.items()]
    quoted = [quoteattr(name) for name in names]
    for name, *data in zip(quoted, *columns, strict=True):
        yield f"<node id={name} label={name}><attvalues>{''.join(data)}</attvalues></node>\n"
    yield "</nodes>\n<edges>\n"
    for number, (left, right, link) in enumerate(_edges(network)):
        inner = "".join(f'<attvalue for="{key}" value="{link[key]}"/>' for key in tested)
        rest = f"><attvalues>{inner}</attvalues></edge>" if tested else "/>"
        yield f'<edge id="{number}" source={quoted[left]} target={quoted[right]} weight="{link["weight"]}"{rest}\n'
    yield "</edges>\n</graph>\n</gexf>\n"


def _xml_type(values: list[Any]) -> str:
    return XML_TYPES[type(values[0])] if values else "string"


def _xml_text(value: object) -> str:
    # A bare carriage return would be read as a line feed.
    return escape(str(value), {"\r": "&#13;"})


def _check_xml(value: object) -> None:
    """Raise if a value is text that XML files cannot represent."""
    if isinstance(value, str) and NOT_XML.search(value):
        raise IdError(f"{value!r} holds a character that XML files cannot carry; rename it, or use graph.save(path).")


def _check_distinct_names(names: list[str]) -> None:
    """Raise if different ids have become the same text."""
    if len(set(names)) < len(names):
        repeated = sorted(text for text, count in Counter(names).items() if count > 1)
        raise IdError(f"Ids that differ become the same text in a file: {quote(repeated)}. Rename them first.")
