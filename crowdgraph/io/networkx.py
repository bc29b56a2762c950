"""Convert graphs to networkx and back, networks of volunteers to networkx and igraph, and write networks for Gephi."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
import numpy as np

from crowdgraph.core._arrays import to_list
from crowdgraph.core.clock import Moment
from crowdgraph.core.communities import Communities
from crowdgraph.core.graph import CrowdGraph, History
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.tables import NodeKind, NodeTable
from crowdgraph.errors import CrowdGraphWarning, IdError, ParameterError, warn
from crowdgraph.io._annotated import annotated_columns
from crowdgraph.io._bipartite import (
    NODE_KINDS,
    BipartiteGraph,
    check_type,
    graph_from_bipartite,
    graph_record,
    read_record,
)
from crowdgraph.io._files import atomic_file
from crowdgraph.io._gexf_parser import NETWORK
from crowdgraph.io._known import known_at
from crowdgraph.io._network_files import MARK
from crowdgraph.io._payload import NOT_XML
from crowdgraph.io.networks import TESTED, params_text
from crowdgraph.messages import quote, with_article

if TYPE_CHECKING:
    import igraph

__all__ = [
    "graph_from_networkx",
    "graph_to_networkx",
    "network_to_igraph",
    "network_to_networkx",
    "save_network",
]

# How GraphML and GEXF call the types of values.
XML_TYPES = {str: "string", int: "long", float: "double"}


# Graphs of volunteers, items and responses


def graph_to_networkx(graph: CrowdGraph, *, at: Moment | None = None, history: History = "latest") -> nx.MultiGraph:
    """Return volunteers and items as nodes, responses as edges; see `CrowdGraph.to_networkx`."""
    view, left_out = known_at(graph, at)
    columns = annotated_columns(view, history)
    record = graph_record(view, nodes=(*columns.volunteer, *columns.item), edges=columns.response, left_out=left_out)
    network: nx.MultiGraph = nx.MultiGraph(crowdgraph={**record, "annotations": dict(view.annotations)})
    responses = view.responses
    with paused_garbage_collection():
        volunteers = _add_nodes(network, "volunteer", view.volunteers.table, columns.volunteer)
        items = _add_nodes(network, "item", view.items.table, columns.item)
        labels = (*view.labels, None)  # code -1, no answer, is the last
        edges: dict[str, Iterable[Any]] = {
            "label": [labels[code] for code in responses.label.tolist()],
            "time": responses.clock.to_python(responses.time),
            "position": range(len(responses)),
            **{name: to_list(column) for name, column in responses.attributes.items()},
            **columns.response,
        }
        network.add_edges_from(
            zip(
                map(volunteers.__getitem__, responses.volunteer.tolist()),
                map(items.__getitem__, responses.item.tolist()),
                range(len(responses)),
                _rows(edges),
                strict=True,
            )
        )
    return network


def _add_nodes(
    network: nx.MultiGraph, kind: NodeKind, table: NodeTable, annotations: Mapping[str, list[Any]]
) -> list[tuple[str, Hashable]]:
    """Add the volunteers or the items, and return what the nodes are called."""
    ids = table.ids.tolist()
    names: list[tuple[str, Hashable]] = [(kind, node_id) for node_id in ids]
    own = {name: to_list(column) for name, column in table.attributes.items()}
    columns = {"kind": repeat(kind, len(ids)), "id": ids, "bipartite": repeat(NODE_KINDS.index(kind), len(ids)), **own}
    network.add_nodes_from(zip(names, _rows(columns), strict=True))
    for name, values in annotations.items():
        known = {node: value for node, value in zip(names, values, strict=True) if value is not None}
        nx.set_node_attributes(network, known, name)
    return names


def _rows(columns: Mapping[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """Return the rows of a table as dicts."""
    names = tuple(columns)
    return (dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True))


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Pause the collector, which would look through millions of new dicts again and again, and find no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def graph_from_networkx(network: nx.Graph, *, gold: Any = None, duplicates: str = "all") -> CrowdGraph:
    """Build a graph from a networkx graph whose edges are responses; see `CrowdGraph.from_networkx`."""
    check_type(network, nx.Graph, "a networkx graph")
    record = read_record(network.graph.get("crowdgraph"), network.graph.get("crowdgraph_annotations"))
    code_of = {node: code for code, node in enumerate(network)}
    edges = list(network.edges(data=True))
    source = BipartiteGraph(
        names=list(network),
        nodes=[data for _, data in network.nodes(data=True)],
        ends=[(code_of[left], code_of[right]) for left, right, _ in edges],
        edges=[data for _, _, data in edges],
        directed=network.is_directed(),
    )
    return graph_from_bipartite(source, record, gold=gold, duplicates=duplicates)


# Networks of volunteers


def network_to_networkx(network: VolunteerNetwork, *, communities: Communities | None = None) -> nx.Graph:
    """Return volunteer ids as nodes, weights on the edges; see `VolunteerNetwork.to_networkx`."""
    # Settings are text, since networkx cannot write dictionaries to files.
    settings: dict[str, Any] = {"params": params_text(network.params)} if network.params else {}
    if network.p_values is not None:
        settings[TESTED] = True  # which a graph without links could not say otherwise
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
    # By which read_gexf, which reads graphs of responses, recognises a network.
    yield f"</edges>\n</graph>\n<?{NETWORK}?>\n</gexf>\n"


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
