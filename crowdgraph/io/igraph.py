"""Convert graphs to igraph and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import igraph
import numpy as np

from crowdgraph.core._arrays import Array, to_list
from crowdgraph.core.clock import Moment
from crowdgraph.core.graph import CrowdGraph, History
from crowdgraph.errors import InputError
from crowdgraph.io._annotated import annotated_columns
from crowdgraph.io._bipartite import (
    BipartiteGraph,
    check_type,
    graph_from_bipartite,
    graph_record,
    read_record,
)
from crowdgraph.io._known import known_at

__all__ = ["graph_from_igraph", "graph_to_igraph"]


def graph_to_igraph(graph: CrowdGraph, *, at: Moment | None = None, history: History = "latest") -> igraph.Graph:
    """Return volunteers, then items as vertices, responses as edges; see `CrowdGraph.to_igraph`."""
    view, left_out = known_at(graph, at)
    columns = annotated_columns(view, history)
    n_volunteers, n_items = len(view.volunteers), len(view.items)
    responses = view.responses
    ends = np.column_stack([responses.volunteer, responses.item + n_volunteers])
    result = igraph.Graph(n=n_volunteers + n_items, edges=ends, directed=False)
    result.vs["kind"] = ["volunteer"] * n_volunteers + ["item"] * n_items
    result.vs["type"] = [False] * n_volunteers + [True] * n_items
    result.vs["id"] = [*view.volunteers, *view.items]
    result.es["label"] = [view.labels[code] if code >= 0 else None for code in responses.label.tolist()]
    result.es["time"] = responses.clock.to_python(responses.time)
    result.es["position"] = list(range(len(responses)))
    for name, values in (_lists(responses.attributes) | dict(columns.response)).items():
        result.es[name] = values
    volunteers = {name: to_list(column) for name, column in view.volunteers.attributes.items()} | dict(
        columns.volunteer
    )
    items = {name: to_list(column) for name, column in view.items.attributes.items()} | dict(columns.item)
    for name in {**volunteers, **items}:
        result.vs[name] = [*volunteers.get(name, [None] * n_volunteers), *items.get(name, [None] * n_items)]
    result["classes"], result["labels"] = view.classes, view.labels
    record = graph_record(view, nodes=(*columns.volunteer, *columns.item), edges=columns.response, left_out=left_out)
    result["crowdgraph"] = {**record, "annotations": dict(view.annotations)}
    return result


def _lists(attributes: Mapping[str, Array]) -> dict[str, list[Any]]:
    return {name: to_list(column) for name, column in attributes.items()}


def graph_from_igraph(graph: Any, *, gold: Any = None, duplicates: str = "all") -> CrowdGraph:
    """Build a graph from an igraph graph whose edges are responses; see `CrowdGraph.from_igraph`."""
    check_type(graph, igraph.Graph, "an igraph graph")
    value = graph["crowdgraph"] if "crowdgraph" in graph.attributes() else None
    if isinstance(value, str):
        raise InputError(
            "This graph was read from a file of crowdgraph by igraph, which turns integers into floats and leaves gaps "
            "open; read the file with crowdgraph.read_graphml."
        )
    record = read_record(value)
    # A vertex of another program has its id as its name; in a graph of ours the name is an attribute like others.
    named = record is None and "name" in graph.vs.attributes()
    source = BipartiteGraph(
        names=graph.vs["name"] if named else range(graph.vcount()),
        nodes=[_attributes(vertex, named=named) for vertex in graph.vs],
        ends=graph.get_edgelist(),
        edges=[edge.attributes() for edge in graph.es],
        directed=graph.is_directed(),
        side="type",
    )
    return graph_from_bipartite(source, record, gold=gold, duplicates=duplicates)


def _attributes(vertex: igraph.Vertex, *, named: bool) -> dict[str, Any]:
    """Return the attributes of a vertex without gaps, which igraph fills with None, and without the name of a node."""
    names = ("name",) if named else ()
    return {key: value for key, value in vertex.attributes().items() if value is not None and key not in names}
