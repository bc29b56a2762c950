"""Measure `crowdgraph analyse` step by step against its budget, and what it takes to fit snapshots from two starts.

``python benchmarks/analyse.py`` measures 0.1 and one million responses, ``python benchmarks/analyse.py 10000000`` ten.
``python benchmarks/analyse.py before FOLDER`` measures the steps only, by turns with those of another version of the
package, whose sources are in the folder; numbers of responses may follow.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import crowdgraph as cg
from crowdgraph.analysis import analyse
from crowdgraph.models.base import Model


class Budget(NamedTuple):
    """The seconds that an analysis may take, and the peak of its memory in GB; None where there is no limit."""

    seconds: float | None
    memory: float | None = None


BUDGETS = {100_000: Budget(30), 1_000_000: Budget(60, 1.5), 10_000_000: Budget(480)}
VOTES = {-1: "not supernova", 1: "supernova", 3: "supernova"}
KINDS = ("five groups", "no groups")
SIZES = (100_000, 1_000_000)
# How often an analysis of fewer responses than the number is repeated beside another version; of more it is not.
REPEATS, MOST_REPEATED = 3, 200_000


def main(sizes: tuple[int, ...] = SIZES) -> None:
    two_starts()
    steps(sizes)


def crowd(kind: str, n_responses: int) -> cg.CrowdGraph:
    """Simulate a crowd that answers in five task communities; its volunteers are of five groups, or of one."""
    groups: dict[str, Any] = {}
    if kind == "five groups":
        equal = [replace(one, share=1.0, activity=1.0, concentration=20.0) for one in cg.simulate.galaxy_zoo.GROUPS]
        groups = {"groups": equal, "classes": ("not supernova", "supernova"), "labels": tuple(VOTES)}
    return cg.simulate.crowd(
        n_volunteers=n_responses // 50,
        n_items=n_responses // 20,
        n_responses=n_responses,
        n_communities=5,
        gold=0.1,
        seed=0,
        **groups,
    ).graph


def two_starts() -> None:
    """Print what fits of snapshots take if both starts are followed to the end, and if only the better one is."""
    print("Fits of three snapshots, each from the one before and from the model's own start, of 50,000 responses.")
    print("Bounds, or scores, beside those of both starts fitted to the end: the worst and the best difference.\n")
    print(
        "| crowd | model | sweeps, both to the end | the better | ratio | CPU s, both | the better | ratio | bounds |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|---|")
    for kind in KINDS:
        graph = crowd(kind, 50_000)
        votes: dict[str, Any] = {"votes": VOTES} if kind == "five groups" else {}
        for model in (cg.IBCC(**votes), cg.Calibrated(model=cg.IBCC(**votes)), cg.DynIBCC(**votes)):
            ways = {"both": Model._fit_better, "better": type(model)._fit_better}
            facts = {name: snapshots(graph, model, way) for name, way in ways.items()}
            both, better = facts["both"], facts["better"]
            sweeps = f"{both.n_sweeps:,} | {better.n_sweeps:,} | {better.n_sweeps / both.n_sweeps:.2f}"
            seconds = f"{both.seconds:.2f} | {better.seconds:.2f} | {better.seconds / both.seconds:.2f}"
            gap = better.scores - both.scores
            print(
                f"| {kind} | {model.name} | {sweeps} | {seconds} | {gap.min():+.3f} to {gap.max():+.3f} |", flush=True
            )


class Fits(NamedTuple):
    n_sweeps: int
    seconds: float
    scores: np.ndarray


def snapshots(graph: cg.CrowdGraph, model: Model, fit_better: Any) -> Fits:
    """Fit three quarters of a crowd, one after the other, after the first one."""
    n_sweeps, scores = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        latest = model.fit(graph.first(len(graph.responses) // 4), seed=0)
        start = time.process_time()
        for quarter in (2, 3, 4):
            view = graph.first(len(graph.responses) * quarter // 4)
            latest, n = fit_better(model, view, start=latest, seed=0)
            n_sweeps += n
            scores.append(latest.bound[-1] if len(latest.bound) else latest.diagnostics["score"])
        seconds = time.process_time() - start
    return Fits(n_sweeps, seconds, np.array(scores))


def steps(sizes: tuple[int, ...]) -> None:
    """Print the seconds of each step, and the peak of the memory, of analyses in processes of their own."""
    for size in sizes:
        facts = {kind: run(kind, size) for kind in KINDS}
        print(f"\n| {size:,} responses: step | {' | '.join(f'{kind}, s' for kind in KINDS)} |")
        print(f"|---|{'--:|' * len(KINDS)}")
        for step in facts[KINDS[0]]["steps"]:
            cells = [f"{fact['steps'].get(step, 0.0):.1f}" for fact in facts.values()]
            print(f"| {step} | {' | '.join(cells)} |")
        rows = {
            "all steps": [f"{fact['seconds']:.1f}" for fact in facts.values()],
            "all steps, CPU": [f"{fact['cpu']:.1f}" for fact in facts.values()],
            "peak memory, GB": [f"{fact['peak']:.2f}" for fact in facts.values()],
        }
        seconds, limit = BUDGETS.get(size, Budget(None))
        if seconds is not None:
            rows[f"of {seconds:.0f} s"] = [f"{fact['seconds'] / seconds:.2f}" for fact in facts.values()]
        if limit is not None:
            rows[f"of {limit} GB"] = [f"{fact['peak'] / limit:.2f}" for fact in facts.values()]
        for name, cells in rows.items():
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def beside(folder: str, sizes: tuple[int, ...]) -> None:
    """Print what the steps take in another version and in this one, by turns; medians where they are repeated."""
    for size in sizes:
        repeats = REPEATS if size < MOST_REPEATED else 1
        for kind in KINDS:
            turns = [(run(kind, size, sources=folder), run(kind, size)) for _ in range(repeats)]
            before, now = ([measured(fact) for fact in facts] for facts in zip(*turns, strict=True))
            print(f"\n| {size:,} responses, {kind} | before | now | ratio |\n|---|--:|--:|--:|")
            for name in dict.fromkeys([*before[0], *now[0]]):
                sides = [[fact[name] for fact in facts if name in fact] for facts in (before, now)]
                # A step may be missing in one of the versions.
                middle = [statistics.median(side) if side else None for side in sides]
                cells = ["" if value is None else f"{value:.2f}" for value in middle]
                ratio = f"{middle[1] / middle[0]:.2f}" if middle[0] and middle[1] is not None else ""
                print(f"| {name} | {' | '.join(cells)} | {ratio} |", flush=True)


def measured(facts: dict[str, Any]) -> dict[str, float]:
    """Return all that was measured of an analysis, by name."""
    totals = {"all steps, s": "seconds", "all steps, CPU s": "cpu", "peak memory, GB": "peak"}
    return {f"{step}, s": seconds for step, seconds in facts["steps"].items()} | {
        name: facts[key] for name, key in totals.items()
    }


def run(kind: str, size: int, *, sources: str | None = None) -> dict[str, Any]:
    """Run an analysis in a process of its own, perhaps with the package whose sources are in a folder."""
    command = [sys.executable, __file__, "one", kind, str(size)]
    elsewhere = {} if sources is None else {"PYTHONPATH": sources}
    process = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **elsewhere})
    return dict(json.loads(process.stdout.splitlines()[-1]))


def one(kind: str, size: str) -> dict[str, Any]:
    """Analyse one crowd in this process; what is compiled on a machine once is compiled before."""
    warnings.simplefilter("ignore")
    analyse(crowd(kind, 20_000), seed=0)
    graph = crowd(kind, int(size))
    start, cpu = time.perf_counter(), time.process_time()
    analysis = analyse(graph, seed=0)
    return {
        "steps": dict(analysis.timings),
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(one(*sys.argv[2:])))
    elif sys.argv[1:2] == ["before"]:
        beside(sys.argv[2], tuple(map(int, sys.argv[3:])) or SIZES)
    else:
        main(*([tuple(map(int, sys.argv[1:]))] if len(sys.argv) > 1 else []))
