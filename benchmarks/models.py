"""Compare a sweep of IBCC with other implementations and with crowd-kit, and measure complete fits."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from crowds import SIZES, SKILLS, Size, crowd
from scipy.sparse import csr_array
from scipy.special import digamma
from side_by_side import measure

import crowdgraph as cg
from crowdgraph.kernels._runtime import single_threaded_torch
from crowdgraph.kernels.backends import choose_backend
from crowdgraph.kernels.ibcc import VariationalBayes
from crowdgraph.models._tensors import AnswerTensors

FIT = """
import sys; sys.path.insert(0, {folder!r})
import warnings; warnings.simplefilter("ignore")
import crowdgraph as cg
from crowds import SIZES, crowd
graph = crowd(SIZES[{size!r}])
cg.IBCC().warm_up(graph)
"""


def main() -> None:
    sweeps()
    flatness()
    complete_fits()
    sweeps_of_several_crowds()


def sweeps() -> None:
    """Print the seconds of one sweep or iteration; the contenders take turns in one process."""
    print("Seconds of one sweep (crowd-kit: one Dawid-Skene iteration), medians of turns taken in one process.\n")
    print("| size | ours | scipy CSR | torch CSR | crowd-kit | scipy / ours | crowd-kit / ours | ours / memory floor |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, size in SIZES.items():
        graph = crowd(size)
        ours = our_step(graph)
        contenders = {"ours": ours, "scipy": scipy_sweep(graph), "torch": torch_step(graph)}
        seconds = time_in_turn(contenders, repeats=9)
        kit = crowd_kit_iteration(graph)
        floor = memory_floor(size)
        print(
            f"| {name} | {seconds['ours']:.4f} | {seconds['scipy']:.4f} | {seconds['torch']:.4f} | {kit:.3f} "
            f"| {seconds['scipy'] / seconds['ours']:.1f} | {kit / seconds['ours']:.0f} "
            f"| {seconds['ours'] / floor:.1f} |",
            flush=True,
        )


def flatness() -> None:
    """Print the nanoseconds per response as volunteers, items and responses grow together."""
    steps = {}
    for millions in (1, 3, 10):
        n_responses = millions * 1_000_000
        size = Size(n_responses // 10, n_responses // 200, n_responses, 3, 3)
        steps[f"{millions} million"] = our_step(crowd(size))
    seconds = time_in_turn(steps, repeats=9)
    print("\n| responses (items a tenth, volunteers a 200th, J = L = 3) | ns per response in a sweep |\n|---|--:|")
    for name, value in seconds.items():
        print(f"| {name} | {value / int(name.split()[0]) * 1e3:.1f} |", flush=True)


def complete_fits() -> None:
    """Print the sweeps, seconds and memory of fits to a tolerance of 1e-5, with and without SQUAREM."""
    print("\n| size | crowd | sweeps | without SQUAREM | same bound | seconds | seconds without |")
    print("|---|---|--:|--:|---|--:|--:|")
    for name in ("b", "c"):
        for skill in ("good", "poor") if name == "b" else ("good",):
            graph = crowd(SIZES[name], skill=skill)
            fits = {}
            for accelerate in (True, False):
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit = cg.IBCC(accelerate=accelerate).fit(graph)
                fits[accelerate] = fit, time.perf_counter() - start
            fast, plain = fits[True][0], fits[False][0]
            same = abs(fast.bound[-1] - plain.bound[-1]) < 1e-9 * abs(plain.bound[-1])
            print(
                f"| {name} | {skill} | {fast.n_iter} | {plain.n_iter}{'' if plain.converged else '+'} "
                f"| {'yes' if same else f'{fast.bound[-1] - plain.bound[-1]:+.3g}'} "
                f"| {fits[True][1]:.1f} | {fits[False][1]:.1f} |",
                flush=True,
            )
    folder = str(Path(__file__).parent)
    pieces = {name: (FIT.format(folder=folder, size=name), "fit = cg.IBCC().fit(graph)") for name in ("b", "c")}
    print("\n| size | complete fit | peak memory beside the graph |\n|---|--:|--:|")
    for name, result in measure(pieces, repeats=3).items():
        print(f"| {name} | {result.seconds:.1f} s | {result.peak_bytes / 2**30:.2f} GiB |", flush=True)


def sweeps_of_several_crowds() -> None:
    """Print how many sweeps fits take, which differs a lot between crowds of one kind: a few slow items decide."""
    print("\n| size b, six crowds of each kind | sweeps to a change of 1e-5 | at most 80 |\n|---|---|--:|")
    for skill in SKILLS:
        fits = [cg.IBCC().fit(crowd(SIZES["b"], skill=skill, seed=seed)) for seed in range(6)]
        counts = sorted(fit.n_iter for fit in fits)
        print(f"| {skill} | {', '.join(map(str, counts))} | {sum(n <= 80 for n in counts)} of 6 |", flush=True)


def time_in_turn(contenders: dict[str, Callable[[], Any]], *, repeats: int) -> dict[str, float]:
    """Return the median seconds of each contender, after one unmeasured turn."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    with single_threaded_torch():
        for turn in range(repeats + 1):
            for name, run in contenders.items():
                time.sleep(0.1)  # until the threads of the previous contender are idle
                start = time.perf_counter()
                run()
                if turn:
                    times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def prior_of(size: tuple[int, int]) -> np.ndarray:
    n_labels, n_classes = size
    return np.where(np.eye(n_labels, n_classes) > 0, 4.0, 1.0)


def our_step(graph: cg.CrowdGraph) -> Callable[[], Any]:
    tables = AnswerTensors(graph, choose_backend())
    sweeper, expectations = tables.kernels()
    probs, fixed = tables.items()
    n_volunteers, n_labels, n_classes = tables.shape
    step = VariationalBayes(
        sweeper,
        expectations,
        prior=torch.from_numpy(prior_of((n_labels, n_classes))[None]),
        class_prior=torch.ones(n_classes, dtype=torch.float64),
        probs=probs,
        fixed=fixed,
        n_volunteers=n_volunteers,
    )
    state = step(step.from_counts(torch.zeros(tables.shape, dtype=torch.float64), torch.zeros(n_classes))).state
    return lambda: step(state)


def scipy_sweep(graph: cg.CrowdGraph) -> Callable[[], Any]:
    """Return the sweep as one would write it with scipy: an item-major matrix and its transposed view."""
    n_items, n_volunteers, n_labels = len(graph.items), len(graph.volunteers), len(graph.labels)
    n_classes = len(graph.classes)
    code = graph.responses.volunteer.astype(np.int64) * n_labels + graph.responses.label
    cells = (graph.responses.item, code)
    matrix = csr_array((np.ones(len(code)), cells), shape=(n_items, n_volunteers * n_labels))
    matrix.sort_indices()
    transposed = matrix.T
    alpha = prior_of((n_labels, n_classes)) + np.random.default_rng(0).random((n_volunteers, n_labels, n_classes))

    def sweep() -> Any:
        logs = (digamma(alpha) - digamma(alpha.sum(1, keepdims=True))).reshape(-1, n_classes)
        weights = matrix @ logs
        probs = np.exp(weights - weights.max(1, keepdims=True))
        probs /= probs.sum(1, keepdims=True)
        return transposed @ probs

    return sweep


def torch_step(graph: cg.CrowdGraph) -> Callable[[], Any]:
    """Return our sweep in tensors, on the CPU, with torch's own threads."""
    tables = AnswerTensors(graph, choose_backend("torch"))
    sweeper, expectations = tables.kernels()
    probs, fixed = tables.items()
    _, n_labels, n_classes = tables.shape
    prior = torch.from_numpy(prior_of((n_labels, n_classes))[None])
    alpha = prior + torch.rand(tables.shape, dtype=torch.float64)

    def step() -> None:
        torch.set_num_threads(2)
        logs, _ = expectations(alpha, prior)
        sweeper(logs, torch.zeros(n_classes, dtype=torch.float64), probs, fixed)
        torch.set_num_threads(1)

    return step


def crowd_kit_iteration(graph: cg.CrowdGraph) -> float:
    """Return the seconds of one iteration of crowd-kit's Dawid-Skene, from the difference of five and one."""
    from crowdkit.aggregation import DawidSkene

    responses = graph.responses
    frame = pd.DataFrame({"task": responses.item, "worker": responses.volunteer, "label": responses.label})
    seconds = []
    for n_iter in (1, 5):
        start = time.perf_counter()
        DawidSkene(n_iter=n_iter, tol=-np.inf).fit(frame)
        seconds.append(time.perf_counter() - start)
    return (seconds[1] - seconds[0]) / 4


def memory_floor(size: Size) -> float:
    """Return the seconds to read and write what a sweep must, at the measured speed of a copy."""
    source = torch.zeros(2**25, dtype=torch.float64)
    target = torch.empty_like(source)
    torch.set_num_threads(2)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        target.copy_(source)
        times.append(time.perf_counter() - start)
    speed = 2 * source.nbytes / min(times)
    table = size.n_volunteers * size.n_labels * size.n_classes * 8
    n_bytes = 4 * size.n_responses + 8 * size.n_items + 2 * 8 * size.n_items * size.n_classes + 2 * table
    return n_bytes / speed
