"""Time dynamic GEXF of the full look-alike of Galaxy Zoo Supernovae: at most a minute to write 493,048 responses."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import crowdgraph as cg

VOTES = {-1: "not supernova", 1: "supernova", 3: "supernova"}


def seconds(work: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    graph = cg.simulate.galaxy_zoo_supernovae_full(seed=0).graph
    annotated = graph.annotate(cg.DynIBCC(votes=VOTES, update_classes=False).fit(graph))
    print("| graph | file in MB | written in s | read in s |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "crowd.gexf"
        for name, one in (("responses", graph), ("with skill over time", annotated)):
            written = seconds(lambda one=one: one.to_gexf(path))
            read = seconds(lambda: cg.read_gexf(path))
            print(f"| {name} | {path.stat().st_size / 1e6:.0f} | {written:.1f} | {read:.1f} |")


if __name__ == "__main__":
    main()
