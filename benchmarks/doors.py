"""Take the crowd of Galaxy Zoo Supernovae out to networkx, igraph and GraphML, and read it back."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import crowdgraph as cg


def main() -> None:
    graph = cg.simulate.galaxy_zoo_supernovae_full().graph
    votes = {-1: graph.classes[0], 1: graph.classes[1], 3: graph.classes[1]}
    annotated = graph.annotate(cg.IBCC(votes=votes).fit(graph))
    print(f"{len(graph.responses):,} responses; a fit of IBCC as annotation; processor time.\n")
    print("| | bare | with a fit | with a fit, full history |")
    print("|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd.graphml"
        tasks: dict[str, Callable[..., Any]] = {
            "to_networkx": lambda graph, **options: graph.to_networkx(**options),
            "to_igraph": lambda graph, **options: graph.to_igraph(**options),
            "to_graphml": lambda graph, **options: graph.to_graphml(path, **options),
        }
        for name, task in tasks.items():
            cells = [seconds(task, graph), seconds(task, annotated), seconds(task, annotated, history="full")]
            print(f"| {name} | {' | '.join(f'{cell:.1f} s' for cell in cells)} |", flush=True)
        annotated.to_graphml(path)
        print(f"| read_graphml | | {seconds(cg.read_graphml, path):.1f} s | |")
    network = annotated.to_networkx()
    print(f"| from_networkx | | {seconds(cg.CrowdGraph.from_networkx, network):.1f} s | |")


def seconds(task: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Return the processor time of a task, the less of two runs; nothing here runs in parallel."""
    times = []
    for _ in range(2):
        gc.collect()
        start = process_time()
        task(*arguments, **options)
        times.append(process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
