"""Forecasts of when items settle, beside what happens when simulated crowds really go on."""

import numpy as np

import crowdgraph as cg
from crowdgraph.allocation.campaign import SimulatedAnswers
from crowdgraph.allocation.settling import activity, settled_items
from crowdgraph.core._arrays import lock
from crowdgraph.core.clock import Clock
from crowdgraph.core.tables import ResponseTable

# How many answers come between two fits, and how many there may be in all.
BATCH, MAX_ANSWERS = 40, 12_000


def simulated(seed):
    """Simulate sixty volunteers of several skills, 300 items of several difficulties, and gold for a fifth of them."""
    groups = [
        cg.simulate.Group(name=f"right in {right}", confusion=[[right, 1 - right], [1 - right, right]])
        for right in (0.9, 0.8, 0.7)
    ]
    return cg.simulate.crowd(
        n_volunteers=60, n_items=300, n_responses=3_000, groups=groups, difficulty=0.15, gold=0.2, seed=seed
    )


def go_on(crowd, graph, *, targets, seed):
    """Continue a crowd as the forecast says that it goes on; return how many answers each share of the items takes.

    Open items get one more answer each, round after round, from volunteers in proportion to their activity, who answer
    by their true confusion; the model is fitted after each batch. Infinity stands for shares that are not reached.
    """
    rng = np.random.default_rng(seed)
    source, answers = SimulatedAnswers(crowd, rng), graph.answers
    rows = list(zip(answers.volunteer.tolist(), answers.item.tolist(), answers.label.tolist(), strict=True))
    asked = np.zeros((len(graph.items), len(graph.volunteers)), dtype=bool)
    asked[answers.item, answers.volunteer] = True
    weights = activity(graph).astype(float)
    fit, n_before, queue = cg.Calibrated().fit(graph), len(rows), []
    needed = dict.fromkeys(targets, np.inf)
    while True:
        settled = settled_items(graph, fit.item_probs)
        n_given, share = len(rows) - n_before, settled.sum() / (~graph.gold.known).sum()
        needed = {target: min(n, n_given) if share >= target - 1e-9 else n for target, n in needed.items()}
        may = ~settled & ~graph.gold.known & ((weights > 0) & ~asked).any(axis=1)
        if not may.any() or n_given > MAX_ANSWERS or max(needed.values()) < np.inf:
            return list(needed.values())
        for _ in range(BATCH):
            queue = [item for item in queue if may[item]] or rng.permutation(np.flatnonzero(may)).tolist()
            item = queue.pop()
            chances = weights * ~asked[item]
            if chances.any():
                volunteer = int(rng.choice(len(chances), p=chances / chances.sum()))
                asked[item, volunteer] = True
                rows.append((volunteer, item, source.answer(volunteer, item)))
        graph = with_answers(graph, rows)
        fit = cg.Calibrated().fit(graph, start=fit)


def with_answers(graph, rows):
    """Return the graph with these answers, as codes, in this order."""
    volunteer, item, label = np.array(rows).T
    table = ResponseTable(
        volunteer=lock(volunteer.astype(np.int32)),
        item=lock(item.astype(np.int32)),
        label=lock(label.astype(np.int16)),
        time=lock(np.arange(len(volunteer))),
        clock=Clock("number"),
    )
    return graph.replace(responses=table)
