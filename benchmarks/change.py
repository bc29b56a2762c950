"""Compare a pass of DynIBCC with a sweep of IBCC and with its own loop of tensors, and measure complete fits."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from crowds import SIZES, Size, crowd
from models import our_step, time_in_turn
from side_by_side import measure

import crowdgraph as cg
from crowdgraph.kernels.backends import choose_backend
from crowdgraph.models._priors import crowd_prior
from crowdgraph.models._tensors import StepTensors

FIT = """
import sys; sys.path.insert(0, {folder!r})
import warnings; warnings.simplefilter("ignore")
import crowdgraph as cg
from crowds import SIZES, crowd
graph = crowd(SIZES[{size!r}])
model = cg.DynIBCC(confusion_prior={prior!r}, max_iter=5)
model.warm_up(graph)
"""


def main() -> None:
    beside_a_sweep()
    beside_tensors()
    flatness()
    one_busy_volunteer()
    complete_fits()


def prior_for(n_classes: int, n_labels: int) -> list[list[float]]:
    return np.where(np.eye(n_classes, n_labels) > 0, 4.0, 1.0).tolist()


def our_pass(graph: cg.CrowdGraph) -> Callable[[], Any]:
    """Return one pass: forward, backward, expectations and class probabilities."""
    prior = crowd_prior(graph, prior_for(len(graph.classes), len(graph.labels)), None, None)
    steps = StepTensors(graph, choose_backend(), drift=0.0, repeat_span=None)
    guess = np.random.default_rng(0).dirichlet(np.full(len(graph.classes), 0.2), len(graph.items))
    vb = steps.variational_bayes(prior, guess, stage="smoothed", published=False)
    return lambda: vb(1.0)


def tensor_pass(graph: cg.CrowdGraph) -> Callable[[], Any]:
    """Return the same pass in tensors, on the CPU, with torch's own threads."""
    prior = crowd_prior(graph, prior_for(len(graph.classes), len(graph.labels)), None, None)
    steps = StepTensors(graph, choose_backend("torch"), drift=0.0, repeat_span=None)
    guess = np.random.default_rng(0).dirichlet(np.full(len(graph.classes), 0.2), len(graph.items))
    vb = steps.variational_bayes(prior, guess, stage="smoothed", published=False)

    def run() -> None:
        torch.set_num_threads(2)
        vb(1.0)
        torch.set_num_threads(1)

    return run


def beside_a_sweep() -> None:
    print("Seconds of one pass and of one sweep over the same 1 million responses, J = 2, L = 3.\n")
    graph = crowd(Size(100_000, 5_000, 1_000_000, 2, 3))
    seconds = time_in_turn({"pass": our_pass(graph), "sweep": our_step(graph)}, repeats=9)
    print("| DynIBCC, a pass | IBCC, a sweep | ratio |\n|--:|--:|--:|")
    print(f"| {seconds['pass']:.3f} | {seconds['sweep']:.4f} | {seconds['pass'] / seconds['sweep']:.1f} |", flush=True)


def beside_tensors() -> None:
    graph = crowd(SIZES["a"])
    seconds = time_in_turn({"compiled": our_pass(graph), "tensors": tensor_pass(graph)}, repeats=3)
    ratio = seconds["tensors"] / seconds["compiled"]
    print("\n| a pass at size a, compiled | as a loop of tensors | ratio |\n|--:|--:|--:|")
    print(f"| {seconds['compiled']:.4f} | {seconds['tensors']:.2f} | {ratio:.0f} |", flush=True)


def flatness() -> None:
    """Print the nanoseconds per response as volunteers, items and responses grow together."""
    passes = {}
    for n_responses in (100_000, 1_000_000, 10_000_000):
        graph = crowd(Size(n_responses // 10, n_responses // 200, n_responses, 2, 3))
        passes[f"{n_responses:,}"] = our_pass(graph)
    seconds = time_in_turn(passes, repeats=5)
    print("\n| responses (items a tenth, volunteers a 200th, J = 2, L = 3) | ns per response in a pass |\n|---|--:|")
    for name, value in seconds.items():
        print(f"| {name} | {value / int(name.replace(',', '')) * 1e9:.0f} |", flush=True)


def one_busy_volunteer() -> None:
    """Print how much slower a pass is if one volunteer gave half of a million responses."""
    n = 1_000_000
    even = crowd(Size(n // 10, n // 200, n, 2, 3))
    volunteer = even.responses.volunteer.copy()
    volunteer[np.random.default_rng(0).permutation(n)[: n // 2]] = 0
    busy = even.replace(responses=replace(even.responses.table, volunteer=volunteer))
    seconds = time_in_turn({"even": our_pass(even), "busy": our_pass(busy)}, repeats=5)
    print(f"\nThreads: {os.cpu_count()}. One pass over a million responses, half of them by one volunteer, takes")
    print(f"{seconds['busy'] / seconds['even']:.2f} of the time that it takes where they are spread.", flush=True)


def complete_fits() -> None:
    folder = str(Path(__file__).parent)
    pieces = {}
    for name in ("b", "c"):
        prior = prior_for(SIZES[name].n_classes, SIZES[name].n_labels)
        setup = FIT.format(folder=folder, size=name, prior=prior)
        pieces[name] = (setup, "fit = model.fit(graph)")
    print("\n| size | fit: IBCC, then five passes | peak memory beside the graph, outputs included |\n|---|--:|--:|")
    for name, result in measure(pieces, repeats=2).items():
        print(f"| {name} | {result.seconds:.1f} s | {result.peak_bytes / 2**30:.2f} GiB |", flush=True)


if __name__ == "__main__":
    main()
