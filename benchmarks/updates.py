"""Compare updates of IBCC after new responses with fits from scratch, by the number of responses visited."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from crowds import Size, crowd

import crowdgraph as cg

TIGHT = 1e-9
# Two fits lie in one mode if their bounds agree to this.
SAME_BOUND = 1e-9


class Case(NamedTuple):
    """A crowd and how many of its responses are old."""

    name: str
    graph: cg.CrowdGraph


def main() -> None:
    warnings.simplefilter("ignore", cg.errors.CrowdGraphWarning)
    one_update()
    nights()


def cases() -> Iterator[Case]:
    """Yield crowds of several kinds, most of a million responses; 'heavy-tailed' is the volunteers' activity."""
    n = 1_000_000
    yield Case("J = L = 4, heavy-tailed, 10 an item", crowd(Size(n // 10, n // 100, n, 4, 4)))
    yield Case("J = L = 3, heavy-tailed, 10 an item", crowd(Size(n // 10, n // 200, n, 3, 3)))
    yield Case("J = L = 3, heavy-tailed, 30 an item", crowd(Size(n // 30, n // 200, n, 3, 3)))
    yield Case("J = L = 2, heavy-tailed, 10 an item", crowd(Size(n // 10, n // 100, n, 2, 2)))
    settings: dict[str, Any] = {"n_volunteers": 1_000, "n_items": 10_000, "classes": (0, 1), "gold": 0}
    yield Case("J = L = 2, accuracy 75 %", cg.simulate.crowd(n_responses=100_000, seed=0, **settings).graph)


def one_update() -> None:
    """Print the work of an update after 1 % new responses, and how far its answers are from those of a fit."""
    print(
        "Update of IBCC after 1 % new responses, with the default prior; R is the number of responses. The last column"
    )
    print("is the largest difference of a class probability to a fit from scratch; 'other mode' says that both end in")
    print("different modes, and how much higher the bound of the update is.\n")
    print("| crowd | responses | visited: update / fit | update | fit | CPU: update / fit | difference |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, graph in cases():
        n = graph.n_responses
        model = cg.IBCC()
        earlier = model.fit(graph.first(n - n // 100))
        # Compiled code is loaded before anything is measured.
        model.update(earlier, graph.first(n - n // 200))
        # Neither side finds responses that were grouped for the other.
        update, update_seconds = timed(partial(model.update, earlier, graph.first(n)))
        cold, cold_seconds = timed(partial(model.fit, graph.first(n)))
        visited, all_visited = update.diagnostics["visited"], cold.diagnostics["visited"]
        print(
            f"| {name} | {n:,} | {visited / all_visited:.3f} | {visited / n:.1f} R | {all_visited / n:.1f} R "
            f"| {update_seconds / cold_seconds:.2f} | {difference(update, cold)} |",
            flush=True,
        )


def nights() -> None:
    """Print where ten updates in a row end, each after 1 % more responses."""
    print(
        "\nTen nights with 1 % new responses each, one update after the other, beside one fit from scratch at the end;"
    )
    print(f"tol={TIGHT:g}.\n")
    print("| crowd | responses | visited in a night: update / fit | difference at the end |")
    print("|---|--:|--:|--:|")
    model = cg.IBCC(tol=TIGHT)
    # Fits to such a tolerance take minutes on the first crowd.
    for name, graph in islice(cases(), 1, None):
        n = graph.n_responses
        fit = model.fit(graph.first(n - n // 10))
        visited = []
        for night in range(9, -1, -1):
            fit = model.update(fit, graph.first(n - night * (n // 100)))
            visited.append(fit.diagnostics["visited"])
        cold = model.fit(graph)
        ratio = np.mean(visited) / cold.diagnostics["visited"]
        print(f"| {name} | {n:,} | {ratio:.3f} | {difference(fit, cold)} |", flush=True)


def difference(update: cg.ModelFit, cold: cg.ModelFit) -> str:
    """Return the largest difference of a class probability, or by how much the bounds of two modes differ."""
    largest = float(np.abs(update.item_probs - cold.item_probs).max())
    gain = float(update.bound[-1] - cold.bound[-1])
    if abs(gain) > SAME_BOUND * abs(float(cold.bound[-1])) and largest > 1e-3:
        n_items = int(np.count_nonzero(np.abs(update.item_probs - cold.item_probs).max(axis=1) > 1e-3))
        return f"other mode ({n_items:,} items, bound {gain:+.3f})"
    return f"{largest:.1e}"


def timed(run: Callable[[], cg.ModelFit]) -> tuple[cg.ModelFit, float]:
    """Return what a function returns, and the processor's seconds that it took."""
    start = time.process_time()
    return run(), time.process_time() - start


if __name__ == "__main__":
    main()
