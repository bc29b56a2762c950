"""Count the passes of DynIBCC with and without extrapolation, and what the automatic noise scale and updates cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from crowds import Size, crowd

import crowdgraph as cg

# Items, volunteers, responses, classes and labels; in the latter two a few items take very long to settle.
MILLION = {
    "J = L = 2": Size(100_000, 10_000, 1_000_000, 2, 2),
    "J = L = 3": Size(100_000, 5_000, 1_000_000, 3, 3),
    "J = L = 4": Size(100_000, 10_000, 1_000_000, 4, 4),
}


# How many small crowds of each kind.
N_SMALL = 10


class Run(NamedTuple):
    fit: cg.ModelFit
    seconds: float


def main() -> None:
    warnings.simplefilter("ignore")
    passes()
    same_classes()
    automatic_noise()
    updates()


def timed(run: Callable[[], cg.ModelFit]) -> Run:
    """Return a fit and the processor's seconds that it took, in all threads."""
    start = time.process_time()
    fit = run()
    return Run(fit, time.process_time() - start)


def simulated(**options: object) -> cg.CrowdGraph:
    usual = {"n_volunteers": 60, "n_items": 1_500, "n_responses": [400] * 60, "gold": 0, "seed": 0}
    return cg.simulate.crowd(**{**usual, **options}).graph


def passes() -> None:
    """Print the passes to a change of 1e-5 and the time, from the same start, which is not counted."""
    print("Passes of DynIBCC to a change of 1e-5, from the same static start; CPU seconds include the final scans.\n")
    print("| crowd | passes, plain / extrapolated | seconds, plain / extrapolated | plain | extrapolated | apart |")
    print("|---|--:|--:|--:|--:|--:|")
    crowds = {f"1 million, {name}": crowd(size) for name, size in MILLION.items()}
    crowds |= {f"24,000, {drift}": simulated(drift=drift) for drift in ("none", "step", "ramp", "learning", "visit")}
    for name, graph in crowds.items():
        start = cg.IBCC().fit(graph)
        model = cg.DynIBCC()
        model.warm_up(graph)
        fast = timed(lambda model=model, graph=graph, start=start: model.fit(graph, start=start))
        slow = replace(model, accelerate=False)
        plain = timed(lambda slow=slow, graph=graph, start=start: slow.fit(graph, start=start))
        apart = np.abs(fast.fit.item_probs - plain.fit.item_probs).max()
        print(
            f"| {name} | {plain.fit.n_iter / fast.fit.n_iter:.1f} | {plain.seconds / fast.seconds:.1f} "
            f"| {plain.fit.n_iter}{'' if plain.fit.converged else '+'} | {fast.fit.n_iter} | {apart:.0e} |",
            flush=True,
        )


def same_classes() -> None:
    """Print the passes on small crowds, and whether they end where plain passes to a change of 1e-9 do."""
    print(
        "\nSmall crowds: mean passes to a change of 1e-5; items of another class than plain passes end with, and items"
    )
    print("that are more than 1e-6 away from there, both to a change of 1e-9.\n")
    print("| crowds | plain | extrapolated | other class | apart |")
    print("|---|--:|--:|--:|--:|")
    for n_items, n_volunteers, n_responses, skill in (
        (1_000, 200, 10_000, "good"),
        (1_000, 200, 10_000, "poor"),
        (2_000, 150, 8_000, "good"),
    ):
        for n in (2, 3, 4):
            passes, n_other, n_apart = np.zeros(2), 0, 0
            for seed in range(N_SMALL):
                graph = crowd(Size(n_items, n_volunteers, n_responses, n, n), skill=skill, seed=seed)
                start, ends = cg.IBCC().fit(graph), []
                for accelerate in (False, True):
                    model = cg.DynIBCC(accelerate=accelerate, max_iter=5_000)
                    passes[int(accelerate)] += model.fit(graph, start=start).n_iter / N_SMALL
                    ends.append(replace(model, tol=1e-9).fit(graph, start=start).item_probs)
                n_other += np.count_nonzero(ends[0].argmax(axis=1) != ends[1].argmax(axis=1))
                n_apart += np.count_nonzero(np.abs(ends[0] - ends[1]).max(axis=1) > 1e-6)
            name = f"{N_SMALL} of {n_responses:,} about {n_items:,}, {skill}, J = L = {n}"
            print(f"| {name} | {passes[0]:.1f} | {passes[1]:.1f} | {n_other} | {n_apart} |", flush=True)


def automatic_noise() -> None:
    """Print what choosing the noise scale costs beside a complete fit with the scale 1."""
    print('\nnoise_scale="auto" against noise_scale=1, complete fits, CPU seconds.\n')
    print("| crowd | auto / fixed | scale | responses visited, auto / fixed | auto | fixed |")
    print("|---|--:|--:|--:|--:|--:|")
    large = {"n_volunteers": 500, "n_items": 30_000, "n_responses": [600] * 500, "drifting": 0.5}
    crowds = {f"24,000, {drift}": simulated(drift=drift) for drift in ("none", "step", "ramp", "learning", "visit")}
    crowds |= {f"300,000, {drift}": simulated(drift=drift, **large) for drift in ("none", "step")}
    crowds["1 million, J = L = 2"] = crowd(MILLION["J = L = 2"])
    for name, graph in crowds.items():
        fixed = cg.DynIBCC()
        fixed.warm_up(graph)
        fixed.fit(graph.first(200))
        one = timed(lambda fixed=fixed, graph=graph: fixed.fit(graph))
        automatic = replace(fixed, noise_scale="auto")
        auto = timed(lambda automatic=automatic, graph=graph: automatic.fit(graph))
        visited = auto.fit.diagnostics["visited"] / one.fit.diagnostics["visited"]
        print(
            f"| {name} | {auto.seconds / one.seconds:.2f} | {auto.fit.diagnostics['noise_scale']:.3f} | {visited:.2f} "
            f"| {auto.seconds:.2f} | {one.seconds:.2f} |",
            flush=True,
        )


def updates() -> None:
    """Print the work of an update after 1 % new responses, as responses visited, against that of a cold fit."""
    print("\nAn update after 1 % new responses against a cold fit.\n")
    print("| crowd | prior | visited, update / cold | passes | passes, cold | items apart by 0.01 |")
    print("|---|---|--:|--:|--:|--:|")
    graphs = {"24,000, step": simulated(drift="step")}
    graphs |= {f"1 million, {name}": crowd(size) for name, size in MILLION.items()}
    for name, graph in graphs.items():
        for prior in ((4, 1), "crowd"):
            model = cg.DynIBCC(confusion_prior=prior)
            earlier = model.fit(graph.first(int(0.99 * len(graph.responses))))
            update, cold = model._update(earlier, graph, progress=False), model.fit(graph)
            apart = np.abs(update.item_probs - cold.item_probs).max(axis=1)
            visited = update.diagnostics["visited"] / cold.diagnostics["visited"]
            print(
                f"| {name} | {prior} | {visited:.2f} | {update.n_iter} | {cold.n_iter} "
                f"| {np.count_nonzero(apart > 0.01)} of {len(apart):,} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
