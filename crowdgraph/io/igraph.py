"""igraph graphs out."""

from __future__ import annotations

from typing import Any

import igraph
import numpy as np

from crowdgraph.core.clock import Moment
from crowdgraph.core.columns import to_list
from crowdgraph.core.communities import Communities
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.io.network_files import volunteer_attributes
from crowdgraph.io.networkx import graph_until, node_annotations

__all__ = ["graph_to_igraph", "network_to_igraph"]


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
