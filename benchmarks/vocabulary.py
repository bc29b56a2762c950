"""Time the words of network analysts on a graph of one million responses and on a network of its volunteers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import crowdgraph as cg

N_RESPONSES, N_VOLUNTEERS, N_ITEMS, N_LINKED = 1_000_000, 5_000, 100_000, 1_000


def main() -> None:
    print(f"{N_RESPONSES:,} responses, {N_VOLUNTEERS:,} volunteers with heavy-tailed activity, {N_ITEMS:,} items.")
    print("Volunteer v0 is the busiest, v2000 an ordinary one. A first call may gather the responses by node.\n")
    graph = crowd()
    show(graph_calls(graph))
    network = cg.networks.task_cooccurrence(graph.subgraph(volunteers=[f"v{code}" for code in range(N_LINKED)]))
    print(f"\n{network}\n")
    show(network_calls(network))


def crowd() -> cg.CrowdGraph:
    """Build the graph with a fit that has confusion matrices."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, N_VOLUNTEERS + 1)
    volunteer = rng.choice(N_VOLUNTEERS, N_RESPONSES, p=weights / weights.sum())
    columns = {
        "volunteer": np.array([f"v{code}" for code in range(N_VOLUNTEERS)], dtype=object)[volunteer],
        "item": rng.integers(0, N_ITEMS, N_RESPONSES),
        "label": rng.integers(0, 3, N_RESPONSES),
        "time": np.sort(rng.integers(0, 10**9, N_RESPONSES)),
    }
    graph = cg.CrowdGraph.from_responses(columns)
    track = cg.ConfusionTrack.static(
        ids=graph.volunteers.ids,
        concentration=rng.random((graph.n_volunteers, 3, 3)) + 0.1,
        classes=graph.classes,
        labels=graph.labels,
    )
    fit = cg.ModelFit(
        model="random",
        items=graph.items.ids,
        classes=graph.classes,
        item_probs=rng.dirichlet(np.ones(3), graph.n_items),
        class_probs=np.full(3, 1 / 3),
        confusion=track,
    )
    # A new graph, so that nothing is gathered yet.
    return graph.replace().annotate(fit)


def graph_calls(graph: cg.CrowdGraph) -> dict[str, Callable[[], Any]]:
    item = next(iter(graph.items))
    return {
        "len(graph)": lambda: len(graph),
        "'v2000' in graph": lambda: "v2000" in graph,
        "graph.nodes['v2000']": lambda: graph.nodes["v2000"],
        "graph.degree['v2000']": lambda: graph.degree["v2000"],
        "dict(graph.degree)": lambda: dict(graph.degree),
        "graph.neighbors('v2000')": lambda: graph.neighbors("v2000"),
        "graph.neighbors('v0')": lambda: graph.neighbors("v0"),
        "graph.neighbors(item)": lambda: graph.neighbors(item),
        "graph.has_edge('v2000', item)": lambda: graph.has_edge("v2000", item),
        "volunteers['v2000'].items": lambda: graph.volunteers["v2000"].items,
        "volunteers['v2000'].coworkers()": lambda: coworkers(graph, "v2000"),
        "volunteers['v0'].coworkers()": lambda: coworkers(graph, "v0"),
        "items[item].volunteers": lambda: graph.items[item].volunteers,
        "next(iter(graph.edges))": lambda: next(iter(graph.edges)),
        "graph.edges.to_frame()": graph.edges.to_frame,
        "list(graph.snapshots(12))": lambda: list(graph.snapshots(12)),
        "list(graph.snapshots(every=10**8))": lambda: list(graph.snapshots(every=10**8)),
        "all edges": lambda: sum(1 for _ in graph.edges),
        "all edges(data=True)": lambda: sum(1 for _ in graph.edges(data=True)),
    }


def coworkers(graph: cg.CrowdGraph, volunteer: str) -> Any:
    return graph.volunteers[volunteer].coworkers()


def network_calls(network: cg.VolunteerNetwork) -> dict[str, Callable[[], Any]]:
    return {
        "'v20' in network": lambda: "v20" in network,
        "network.neighbors('v20')": lambda: network.neighbors("v20"),
        "network['v20']": lambda: network["v20"],
        "network.weight('v20', 'v30')": lambda: network.weight("v20", "v30"),
        "network.edges.to_frame()": network.edges.to_frame,
        "network.threshold(strongest=0.05)": lambda: network.threshold(strongest=0.05),
        "network.largest_component()": network.largest_component,
        "assortativity('degree')": lambda: network.assortativity("degree"),
        "centrality('degree')": lambda: network.centrality("degree"),
        "centrality('pagerank')": lambda: network.centrality("pagerank"),
        "centrality('eigenvector')": lambda: network.largest_component().centrality("eigenvector"),
        "threshold(...).centrality('betweenness')": lambda: network.threshold(strongest=0.05).centrality("betweenness"),
    }


def show(calls: dict[str, Callable[[], Any]]) -> None:
    """Print the time of the first call and the best of later ones."""
    print("| call | first | later |\n|---|--:|--:|")
    for name, call in calls.items():
        first = seconds(call)
        later = min(seconds(call) for _ in range(3 if first > 0.1 else 20))
        print(f"| `{name}` | {readable(first)} | {readable(later)} |", flush=True)


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def readable(duration: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if duration >= size:
            return f"{duration / size:.3g} {unit}"
    return f"{duration / 1e-6:.3g} µs"
