"""Forecasts of when items settle, beside what happens when simulated crowds really go on.

``python -m science.continuation`` (in ``tests``) prints both for small crowds of mixed skill and for the demo's crowd.
"""

from functools import partial

import numpy as np

import crowdgraph as cg
from crowdgraph.allocation import forecast_settled
from crowdgraph.allocation.campaign import SimulatedAnswers
from crowdgraph.allocation.settling import activity, settled_items
from crowdgraph.core._arrays import lock
from crowdgraph.core.clock import Clock
from crowdgraph.core.tables import ResponseTable

# How many answers there may be in all.
MAX_ANSWERS = 12_000
TARGETS = (0.9, 0.95, 0.99)


def simulated(seed):
    """Simulate sixty volunteers of several skills, 300 items of several difficulties, and gold for a fifth of them."""
    groups = [
        cg.simulate.Group(name=f"right in {right}", confusion=[[right, 1 - right], [1 - right, right]])
        for right in (0.9, 0.8, 0.7)
    ]
    return cg.simulate.crowd(
        n_volunteers=60, n_items=300, n_responses=3_000, groups=groups, difficulty=0.15, gold=0.2, seed=seed
    )


def demo(seed, n_responses):
    """Return the demo's crowd, its graph after some responses, with gold for a third of the items, and its model."""
    crowd = cg.simulate.galaxy_zoo_supernovae(seed=seed)
    graph = crowd.graph.with_gold(
        {item: crowd.graph.gold[item] for item in list(crowd.graph.gold)[::3]}, classes=crowd.graph.classes
    )
    no, yes = graph.classes
    return crowd, graph.first(n_responses), cg.Calibrated(model=cg.IBCC(votes={-1: no, 1: yes, 3: yes}))


def go_on(crowd, graph, model, *, targets, batch, seed):
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
    source._n_asked += graph.volunteers.n_responses
    fit, n_before, queue = model.fit(graph), len(rows), []
    needed = dict.fromkeys(targets, np.inf)
    while True:
        settled = settled_items(graph, fit.item_probs)
        n_given, share = len(rows) - n_before, settled.sum() / (~graph.gold.known).sum()
        needed = {target: min(n, n_given) if share >= target - 1e-9 else n for target, n in needed.items()}
        may = ~settled & ~graph.gold.known & ((weights > 0) & ~asked).any(axis=1)
        if not may.any() or n_given > MAX_ANSWERS or max(needed.values()) < np.inf:
            return list(needed.values())
        for _ in range(batch):
            queue = [item for item in queue if may[item]] or rng.permutation(np.flatnonzero(may)).tolist()
            item = queue.pop()
            chances = weights * ~asked[item]
            if chances.any():
                volunteer = int(rng.choice(len(chances), p=chances / chances.sum()))
                asked[item, volunteer] = True
                rows.append((volunteer, item, source.answer(volunteer, item)))
        graph = with_answers(graph, rows)
        fit = model.fit(graph, start=fit)


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


def compare(name, seeds, start, *, batch, targets=TARGETS):
    """Print forecasts beside what really happens; return for each share how often the interval holds it.

    `start` gives the crowd, the graph from which it goes on, and the model.
    """
    print(f"\n{name}\n\n| seed | share | settled now | forecast | 90 % from | to | it took |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    within = dict.fromkeys(targets, 0)
    for seed in seeds:
        crowd, graph, model = start(seed)
        forecast = forecast_settled(graph, fit=model.fit(graph), targets=targets, seed=seed)
        truth = go_on(crowd, graph, model, targets=targets, batch=batch, seed=seed)
        bounds = zip(targets, forecast.median, forecast.low, forecast.high, truth, strict=True)
        for target, median, low, high, needed in bounds:
            within[target] += bool(low <= needed <= high)
            now = f"{forecast.n_settled} of {forecast.n_items}"
            print(f"| {seed} | {target} | {now} | {median:.0f} | {low:.0f} | {high:.0f} | {needed:.0f} |", flush=True)
    print(f"within the interval, of {len(seeds)}: {within}")
    return within


def mixed_skill(seed):
    """Return sixty volunteers of several skills after 1,200 of their answers."""
    crowd = simulated(seed)
    return crowd, crowd.graph.first(1_200), cg.Calibrated()


# The method was developed on crowds 0 to 9 and 100 to 109 of mixed skill, and on the demo's 0 to 9.
COMPARISONS = {
    "sixty volunteers of mixed skill after 1,200 answers": (range(200, 210), mixed_skill, 40),
    "the demo's crowd after 3,000 responses": (range(20, 30), partial(demo, n_responses=3_000), 40),
    "the demo's crowd after 12,000 responses": (range(20, 30), partial(demo, n_responses=12_000), 40),
    "the demo's crowd as its page shows it, after 26,558": (range(10), partial(demo, n_responses=26_558), 1),
}


def compare_all():
    """Print all comparisons; return for each how often each share lay within its interval."""
    return {name: compare(name, seeds, start, batch=batch) for name, (seeds, start, batch) in COMPARISONS.items()}


if __name__ == "__main__":
    compare_all()
