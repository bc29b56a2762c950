"""Fits of growing snapshots, each started from the one before, beside fits from the start: sweeps and modes."""

import numpy as np
import pytest
from builders import moving

import crowdgraph as cg

pytestmark = pytest.mark.science

AUTHORS = {"confusion_prior": [[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], "class_prior": [100, 100]}
TENTHS = np.arange(1, 11) / 10
LAST = 0.9 + TENTHS / 10


def worth(fit):
    return fit.bound[-1] if len(fit.bound) else fit.diagnostics["score"]


def some_gold(graph):
    """The graph with a fifth of its gold."""
    return graph.replace(gold=graph.gold.where(np.arange(len(graph.items)) % 5 == 0))


CROWDS = {
    "groups that arrive and move": lambda: moving(0, n_answers=180)[0],
    "look-alike, a fifth of the gold": lambda: some_gold(cg.simulate.galaxy_zoo_supernovae_auc_table().graph),
    "two classes, a tenth of the gold": lambda: (
        cg.simulate.crowd(n_volunteers=200, n_items=1_000, n_responses=20_000, gold=0.1, seed=0).graph
    ),
}


@pytest.mark.parametrize("name", CROWDS)
@pytest.mark.parametrize("steps", [TENTHS, LAST], ids=["tenths", "last hundredths"])
def test_sweeps_and_modes(name, steps):
    graph = CROWDS[name]()
    prior = {} if name.startswith("two") else AUTHORS
    print(
        f"\n{name}, {len(steps)} snapshots from {steps[0]:.0%} to {steps[-1]:.0%} of {len(graph.responses):,} responses"
    )
    print("| model | sweeps, warm | cold | ratio | warm worse | warm better | same, of which to 1e-6 |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for model in (cg.IBCC(**prior), cg.DynIBCC(**prior, max_iter=2_000)):
        alone = None
        sweeps, worse, better, same, exact = np.zeros(2, int), 0, 0, 0, 0
        for share in steps:
            view = graph.first(int(share * len(graph.responses)))
            cold = model.fit(view)
            warm = cold if alone is None else model._refit(view, start=alone)
            if alone is not None:
                difference, scale = worth(warm) - worth(cold), 1e-6 * abs(worth(cold))
                worse, better = worse + (difference < -scale), better + (difference > scale)
                if abs(difference) <= scale:
                    same += 1
                    exact += np.abs(warm.item_probs - cold.item_probs).max() < 1e-6
            assert warm.converged
            assert cold.converged
            alone = warm
            sweeps += [warm.n_iter, cold.n_iter]
        row = (
            f"{sweeps[0]} | {sweeps[1]} | {sweeps[0] / sweeps[1]:.2f} | {worse} of 9 | {better} of 9 | {same}, {exact}"
        )
        print(f"| {model.name} | {row} |", flush=True)
