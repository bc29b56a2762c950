"""Measure complete fits from a hundred thousand to a hundred million responses, beside what others have published."""

from __future__ import annotations

import os
from pathlib import Path

from side_by_side import measure

SETUP = """
import sys; sys.path.insert(0, {folder!r})
import warnings; warnings.simplefilter("ignore")
import crowdgraph as cg
from crowds import Size, crowd
graph = crowd(Size({n_items}, {n_volunteers}, {n_responses}, 3, 3))
model = cg.{model}
# What is imported, compiled or loaded once in a process does not count.
model.warm_up(graph)
model.fit(graph.first(1_000))
"""
# Millions of responses. The largest needs 12 GB: CROWDGRAPH_BENCH_MILLIONS=0.1,1,10 leaves it out.
MILLIONS = "0.1,1,10,100"
# DynIBCC has a matrix for every response, so that a hundred million of them take more memory than most machines have.
MODELS = {"IBCC()": 1_000.0, "DawidSkene()": 1_000.0, "DynIBCC()": 10.0}


def main() -> None:
    millions = [float(size) for size in os.environ.get("CROWDGRAPH_BENCH_MILLIONS", MILLIONS).split(",")]
    print(
        "Complete fits to a change of 1e-5 (items a tenth of the responses, volunteers a 200th, J = L = 3), and the "
        "time for a response relative to that at the smallest size.\n"
    )
    print("| model | million responses | time for a response, relative | passes | seconds | peak GB beside the graph |")
    print("|---|--:|--:|--:|--:|--:|")
    for model, largest in MODELS.items():
        smallest = 0.0
        for size in millions:
            if size > largest:
                continue
            seconds, passes, n_bytes = fit(model, round(size * 1_000_000))
            per_response = seconds / passes / size
            smallest = smallest or per_response
            print(
                f"| {model} | {size:g} | {per_response / smallest:.2f} | {passes:.0f} | {seconds:.1f} "
                f"| {n_bytes / 1e9:.2f} |",
                flush=True,
            )
    print(
        "\nPublished by others, on their machines and crowds, not measured here: spark-crowd's IBCC takes 129 s for 10 "
        "million and 823 s for 100 million responses on a cluster with 30 cores; Truth-Inference's IBCC takes 25,764 s "
        "for 10 million; crowd-kit's paper says that none of its methods could run either."
    )


def fit(model: str, n_responses: int) -> tuple[float, float, float]:
    """Return the seconds, the passes and the peak memory of one fit, in a process of its own."""
    setup = SETUP.format(
        folder=str(Path(__file__).parent),
        model=model,
        n_responses=n_responses,
        n_items=n_responses // 10,
        n_volunteers=n_responses // 200,
    )
    result = measure({"fit": (setup, "fit = model.fit(graph); facts['passes'] = fit.n_iter")}, repeats=1)["fit"]
    return result.seconds, result.facts["passes"], result.peak_bytes
