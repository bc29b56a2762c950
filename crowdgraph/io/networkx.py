"""networkx graphs in and out, and the files that networkx writes for Gephi and others."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from os import PathLike, fspath
from typing import Any, TypeVar
from xml.sax.saxutils import escape, quoteattr

import igraph
import networkx as nx
import numpy as np

from crowdgraph.core._arrays import is_null, to_list
from crowdgraph.core.clock import Clock, Moment
from crowdgraph.core.communities import Communities
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import AlignmentError, ColumnError, IdError, InputError, NotAnnotatedError, ParameterError, quote
from crowdgraph.io._columns import Column
from crowdgraph.io._files import atomic_file
from crowdgraph.io.frames import graph_from_frame

__all__ = [
    "check_distinct",
    "check_xml",
    "graph_from_networkx",
    "graph_to_igraph",
    "graph_to_networkx",
    "network_to_igraph",
    "network_to_networkx",
    "node_annotations",
    "save_network",
    "volunteer_attributes",
    "write_gexf",
    "write_graphml",
]

Carried = TypeVar("Carried")
KINDS = ("volunteer", "item")
# Names to which GEXF gives meanings of its own; attributes of these names get an underscore.
GEXF_NAMES = ("id", "viz", "parents", "pid", "slices", "start", "end", "weight", "type", "thickness")
# Node attributes that to_networkx makes from annotations and gold; from_networkx does not take them for attributes.
COMPUTED = ("confusion", "participation", "class_probs", "gold")


def graph_to_networkx(graph: CrowdGraph, *, at: Moment | None = None) -> nx.MultiGraph:
    """Volunteers and items as nodes, responses as edges; see `CrowdGraph.to_networkx`."""
    clock = graph.responses.clock
    about = {"clock": clock.kind, "zone": clock.zone, "attributes": tuple(graph.responses.attributes)}
    network: nx.MultiGraph = nx.MultiGraph(crowdgraph={"classes": graph.classes, "labels": graph.labels, **about})
    annotations = node_annotations(graph, at=at)
    for kind, nodes in (("volunteer", graph.volunteers), ("item", graph.items)):
        attributes = {name: to_list(column) for name, column in nodes.attributes.items()}
        for code, node_id in enumerate(nodes.ids.tolist()):
            own = {name: values[code] for name, values in attributes.items()}
            extra = {name: values[code] for name, values in annotations[kind].items() if values[code] is not None}
            about_node = {"kind": kind, "id": node_id, "bipartite": KINDS.index(kind)}
            network.add_nodes_from([((kind, node_id), {**about_node, **own, **extra})])
    network.add_edges_from(
        (
            ("volunteer", response.volunteer),
            ("item", response.item),
            position,
            {"label": response.label, "time": response.time, "position": position, **response.attributes},
        )
        for position, response in enumerate(graph_until(graph, at).responses)
    )
    return network


def graph_until(graph: CrowdGraph, at: Moment | None) -> CrowdGraph:
    """The graph with the responses until a moment, the moment included."""
    if at is None:
        return graph
    return graph.first(graph.responses.clock.count_until(graph.responses.time, at, inclusive=True))


def node_annotations(graph: CrowdGraph, *, at: Moment | None) -> dict[str, dict[str, list[Any]]]:
    """What annotations and gold say of each node, by kind of node and name; None where they say nothing."""
    found: dict[str, dict[str, list[Any]]] = {"volunteer": {}, "item": {}}
    if len(graph.gold):
        found["item"]["gold"] = [graph.gold.get(item) for item in graph.items]
    if (track := _carried(graph.confusion)) is not None:
        found["volunteer"]["confusion"] = list((track.latest() if at is None else track.at(at)).mean)
    if (groups := _carried(graph.communities)) is not None:
        rows = dict(zip(groups.ids.tolist(), groups.participation, strict=True))
        found["volunteer"]["participation"] = [rows.get(volunteer) for volunteer in graph.volunteers]
    if (probs := _carried(graph.item_probs)) is not None:
        found["item"]["class_probs"] = list(probs)
    return found


def _carried(read: Callable[[], Carried]) -> Carried | None:
    """What a read-out of the graph gives, or None where the graph is not annotated with it."""
    try:
        return read()
    except NotAnnotatedError:
        return None


def graph_from_networkx(network: nx.Graph, *, gold: Any = None, duplicates: str = "all") -> CrowdGraph:
    """A graph from a networkx graph whose edges are responses; see `CrowdGraph.from_networkx`."""
    if not isinstance(network, nx.Graph):
        raise InputError(f"Expected a networkx graph; got a {type(network).__name__}.")
    about = _about(network)
    tables, id_of, known = _node_tables(network, computed=COMPUTED if about else ())
    edges = [_volunteer_first(network, left, right, data) for left, right, data in network.edges(data=True)]
    if all(isinstance(data.get("position"), int) for _, _, data in edges):
        edges.sort(key=lambda edge: edge[2]["position"])
    columns: dict[str, Column] = {
        "volunteer": [id_of[volunteer] for volunteer, _, _ in edges],
        "item": [id_of[item] for _, item, _ in edges],
        "label": [data.get("label") for _, _, data in edges],
    }
    if about or any("time" in data for _, _, data in edges):
        columns["time"] = [data.get("time") for _, _, data in edges]
    found = (name for _, _, data in edges for name in data if name not in ("label", "time", "position"))
    extra = dict.fromkeys((*about.get("attributes", ()), *found))
    _check_free(extra, columns, "edge")
    columns |= {name: [data.get(name) for _, _, data in edges] for name in extra}
    return graph_from_frame(
        columns,
        gold=known if gold is None else gold,
        classes=about.get("classes"),
        labels=about.get("labels"),
        duplicates=duplicates,
        missing="keep" if about else "error",
        volunteers=tables["volunteer"],
        items=tables["item"],
        clock=Clock(about["clock"], about["zone"]) if about else None,
    )


def _about(network: nx.Graph) -> dict[str, Any]:
    """What `to_networkx` noted about the graph, if it made this one."""
    about = network.graph.get("crowdgraph", {})
    if not isinstance(about, dict) or (about and about.keys() != {"classes", "labels", "clock", "zone", "attributes"}):
        raise InputError("The graph attribute 'crowdgraph' is not what to_networkx() wrote; delete it.")
    return about


def _check_free(names: Iterable[str], taken: Iterable[str], owner: str) -> None:
    clash = [name for name in names if name in (*taken, "volunteer", "item")]
    if clash:
        raise ColumnError(f"The {owner} attribute {clash[0]!r} has the name of a part of the graph; rename it.")


def _node_tables(
    network: nx.Graph, *, computed: tuple[str, ...]
) -> tuple[dict[str, dict[str, Any]], dict[Hashable, Hashable], dict[Hashable, Any]]:
    """The two tables of nodes, the id of each node, and gold where items carry it; `computed` are no attributes."""
    rows: dict[str, list[tuple[Hashable, dict[str, Any]]]] = {kind: [] for kind in KINDS}
    id_of: dict[Hashable, Hashable] = {}
    gold: dict[Hashable, Any] = {}
    for node, data in network.nodes(data=True):
        kind = data.get("kind")
        if kind not in KINDS:
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
        read = {"kind", "id", "bipartite", *computed, *(("gold",) if kind == "item" else ())}
        names = dict.fromkeys(name for _, data in nodes for name in data if name not in read)
        _check_free(names, (), "node")
        table: dict[str, Any] = {kind: [node_id for node_id, _ in nodes]}
        tables[kind] = table | {name: [data.get(name) for _, data in nodes] for name in names}
    return tables, id_of, gold


def _volunteer_first(
    network: nx.Graph, left: Hashable, right: Hashable, data: dict[str, Any]
) -> tuple[Hashable, Hashable, dict[str, Any]]:
    kinds = network.nodes[left]["kind"], network.nodes[right]["kind"]
    if kinds == ("item", "volunteer"):
        left, right = right, left
    elif kinds != KINDS:
        raise InputError(
            f"The edge {left!r} - {right!r} joins two {kinds[0]}s; a response joins a volunteer and an item."
        )
    if "label" not in data:
        raise InputError(f"The edge {left!r} - {right!r} has no label; every response needs the attribute 'label'.")
    return left, right, data


def network_to_networkx(network: VolunteerNetwork, *, communities: Communities | None = None) -> nx.Graph:
    """Volunteer ids as nodes, weights on the edges; see `VolunteerNetwork.to_networkx`."""
    made: nx.Graph = nx.Graph(method=network.method)
    ids = network.ids.tolist()
    made.add_nodes_from(ids)
    for name, values in volunteer_attributes(network, communities).items():
        nx.set_node_attributes(made, dict(zip(ids, values, strict=True)), name)
    made.add_weighted_edges_from(
        (ids[left], ids[right], weight)
        for left, right, weight in zip(*map(np.ndarray.tolist, network.edges()), strict=True)
    )
    return made


def write_graphml(graph: CrowdGraph, path: str | PathLike[str], *, at: Moment | None = None) -> None:
    """Write a GraphML file."""
    _write_file(graph, path, at, nx.write_graphml)


def write_gexf(graph: CrowdGraph, path: str | PathLike[str], *, at: Moment | None = None) -> None:
    """Write a GEXF file."""
    _write_file(graph, path, at, nx.write_gexf)


def _write_file(graph: CrowdGraph, path: str | PathLike[str], at: Moment | None, writer: Callable[..., None]) -> None:
    with atomic_file(path) as part:
        writer(flat_network(graph, at=at), fspath(part))


def flat_network(graph: CrowdGraph, *, at: Moment | None = None) -> nx.MultiGraph:
    """The networkx graph with text as nodes and plain numbers or text as attributes, as files need it."""
    rich = graph_to_networkx(graph, at=at)
    names = {node: f"{node[0]}:{node[1]}" for node in rich}
    check_distinct(list(names.values()))
    nodes = _one_type_each([_flat_node(data, graph) for _, data in rich.nodes(data=True)])
    edges = _one_type_each([_flat(data) for _, _, data in rich.edges(data=True)])
    for text in (*names.values(), *(value for data in (*nodes, *edges) for value in (*data, *data.values()))):
        check_xml(text)
    flat: nx.MultiGraph = nx.MultiGraph()
    flat.add_nodes_from(zip(names.values(), nodes, strict=True))
    flat.add_edges_from(
        (names[left], names[right], key, data)
        for (left, right, key), data in zip(rich.edges(keys=True), edges, strict=True)
    )
    return flat


def _flat_node(data: dict[str, Any], graph: CrowdGraph) -> dict[str, Any]:
    """A node's attributes; confusion and probabilities entry by entry, the id as its label."""
    flat: dict[str, Any] = {"label": str(data["id"])}
    if "confusion" in data:
        cells = np.ndenumerate(data["confusion"])
        flat |= {f"confusion[{graph.classes[j]},{graph.labels[k]}]": float(p) for (j, k), p in cells}
    if "class_probs" in data:
        flat |= {f"p({name})": float(p) for name, p in zip(graph.classes, data["class_probs"], strict=True)}
    if "participation" in data:
        flat |= {f"participation[{k}]": float(p) for k, p in enumerate(data["participation"])}
    if isinstance(data.get("gold"), dict):
        flat |= {f"gold({name})": float(p) for name, p in data["gold"].items()}
    elif "gold" in data:
        flat["gold"] = _scalar(data["gold"])
    return _flat({name: value for name, value in data.items() if name not in ("id", "bipartite", *COMPUTED)}) | flat


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """Attributes as numbers, booleans and text; nulls are left out."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        free = name
        while free in GEXF_NAMES or (free != name and free in data):
            free += "_"
        if not is_null(value):
            flat[free] = _scalar(value)
    return flat


def _scalar(value: Any) -> bool | int | float | str:
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str) else str(value)


def _one_type_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attributes that mix types become text throughout, since files declare one type for each."""
    types: dict[str, set[type]] = {}
    for data in rows:
        for name, value in data.items():
            types.setdefault(name, set()).add(type(value))
    mixed = {name for name, kinds in types.items() if len(kinds) > 1}
    return [{name: str(value) if name in mixed else value for name, value in data.items()} for data in rows]


def graph_to_igraph(graph: CrowdGraph, *, at: Moment | None = None) -> igraph.Graph:
    """Volunteers, then items as vertices, responses as edges; see `CrowdGraph.to_igraph`."""
    n_volunteers, n_items = len(graph.volunteers), len(graph.items)
    until = graph_until(graph, at).responses
    ends = np.column_stack([until.volunteer, until.item + n_volunteers])
    made = igraph.Graph(n=n_volunteers + n_items, edges=ends, directed=False)
    made.vs["kind"] = ["volunteer"] * n_volunteers + ["item"] * n_items
    made.vs["id"] = [*graph.volunteers, *graph.items]
    made.es["label"] = [graph.labels[code] if code >= 0 else None for code in until.label.tolist()]
    made.es["time"] = until.clock.to_python(until.time)
    for name, column in until.attributes.items():
        made.es[name] = to_list(column)
    annotations = node_annotations(graph, at=at)
    volunteers: dict[str, list[Any]] = {name: to_list(column) for name, column in graph.volunteers.attributes.items()}
    items: dict[str, list[Any]] = {name: to_list(column) for name, column in graph.items.attributes.items()}
    volunteers |= annotations["volunteer"]
    items |= annotations["item"]
    for name in {**volunteers, **items}:
        made.vs[name] = [*volunteers.get(name, [None] * n_volunteers), *items.get(name, [None] * n_items)]
    made["classes"], made["labels"] = graph.classes, graph.labels
    return made


def network_to_igraph(network: VolunteerNetwork, *, communities: Communities | None = None) -> igraph.Graph:
    """Volunteer ids as vertex attribute `id`, weights on the edges; see `VolunteerNetwork.to_igraph`."""
    left, right, weights = network.edges()
    made = igraph.Graph(n=len(network), edges=np.column_stack([left, right]), directed=False)
    made.vs["id"] = network.ids.tolist()
    for name, values in volunteer_attributes(network, communities).items():
        made.vs[name] = values
    made.es["weight"] = weights.tolist()
    made["method"] = network.method
    return made


# Characters that XML has no way to write.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What both formats call a value's type.
TYPES = {str: "string", int: "long", float: "double"}


def check_xml(value: object) -> None:
    """Raise if a value is text that XML files cannot carry."""
    if isinstance(value, str) and NOT_XML.search(value):
        raise IdError(f"{value!r} holds a character that XML files cannot carry; rename it, or use graph.save(path).")


def check_distinct(names: list[str]) -> None:
    """Raise if ids have become the same text."""
    if len(set(names)) < len(names):
        twice = sorted(text for text, count in Counter(names).items() if count > 1)
        raise IdError(f"Ids that differ become the same text in a file: {quote(twice)}. Rename them first.")


def volunteer_attributes(network: VolunteerNetwork, communities: Communities | None) -> dict[str, list[Any]]:
    """What is known of each volunteer, by name: plain numbers in the network's order."""
    found: dict[str, list[Any]] = {"strength": network.strength.tolist()}
    if network.support is not None:
        found["support"] = network.support.tolist()
    if communities is None:
        return found
    if not isinstance(communities, Communities):
        raise ParameterError(
            f"communities= takes Communities, found by a detector; got a {type(communities).__name__}."
        )
    strangers = [name for name in network.ids.tolist() if name not in communities.table]
    if strangers:
        raise AlignmentError(
            f"The communities lack {len(strangers):,} of the network's volunteers ({quote(strangers, most=3)}). Detect "
            "them in this network, or take network.subnetwork(communities.ids)."
        )
    codes = communities.table.codes(network.ids)
    found["community"] = communities.assignment[codes].tolist()
    shares = communities.participation[codes]
    return found | {f"participation_{k}": shares[:, k].tolist() for k in range(len(communities))}


def save_network(
    network: VolunteerNetwork, path: str | PathLike[str], *, communities: Communities | None = None
) -> None:
    """Write GraphML or GEXF; see `VolunteerNetwork.save`."""
    kinds = {".graphml": _graphml, ".gexf": _gexf}
    suffix = next((suffix for suffix in kinds if fspath(path).lower().endswith(suffix)), None)
    if suffix is None:
        raise ParameterError(f"{fspath(path)!r} must end in .graphml or .gexf, which says what to write.")
    names = [str(name) for name in network.ids.tolist()]
    check_distinct(names)
    for text in (*names, network.method):
        check_xml(text)
    attributes = {"label": names, **volunteer_attributes(network, communities)}
    with atomic_file(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.writelines(kinds[suffix](network, names, attributes))


def _graphml(network: VolunteerNetwork, names: list[str], attributes: Mapping[str, list[Any]]) -> Iterator[str]:
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, values in attributes.items():
        yield f'<key id="{name}" for="node" attr.name="{name}" attr.type="{_type(values)}"/>\n'
    yield '<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n'
    yield '<key id="method" for="graph" attr.name="method" attr.type="string"/>\n'
    yield f'<graph edgedefault="undirected">\n<data key="method">{_text(network.method)}</data>\n'
    columns = [[f'<data key="{name}">{_text(value)}</data>' for value in column] for name, column in attributes.items()]
    quoted = [quoteattr(name) for name in names]
    for name, *about in zip(quoted, *columns, strict=True):
        yield f"<node id={name}>{''.join(about)}</node>\n"
    for left, right, weight in zip(*map(np.ndarray.tolist, network.edges()), strict=True):
        yield f'<edge source={quoted[left]} target={quoted[right]}><data key="weight">{weight}</data></edge>\n'
    yield "</graph>\n</graphml>\n"


def _gexf(network: VolunteerNetwork, names: list[str], attributes: Mapping[str, list[Any]]) -> Iterator[str]:
    # The version that both networkx and all Gephis read.
    yield '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
    yield f"<meta><description>{_text(network.method)}</description></meta>\n"
    yield '<graph defaultedgetype="undirected" mode="static">\n<attributes class="node" mode="static">\n'
    # A node's label is part of the format.
    own = {name: values for name, values in attributes.items() if name != "label"}
    for name, values in own.items():
        yield f'<attribute id="{name}" title="{name}" type="{_type(values)}"/>\n'
    yield "</attributes>\n<nodes>\n"
    columns = [[f'<attvalue for="{name}" value="{value}"/>' for value in column] for name, column in own.items()]
    quoted = [quoteattr(name) for name in names]
    for name, *about in zip(quoted, *columns, strict=True):
        yield f"<node id={name} label={name}><attvalues>{''.join(about)}</attvalues></node>\n"
    yield "</nodes>\n<edges>\n"
    edges = zip(*map(np.ndarray.tolist, network.edges()), strict=True)
    for number, (left, right, weight) in enumerate(edges):
        yield f'<edge id="{number}" source={quoted[left]} target={quoted[right]} weight="{weight}"/>\n'
    yield "</edges>\n</graph>\n</gexf>\n"


def _type(values: list[Any]) -> str:
    return TYPES[type(values[0])] if values else "string"


def _text(value: object) -> str:
    # A bare carriage return would be read as a line feed.
    return escape(str(value), {"\r": "&#13;"})
