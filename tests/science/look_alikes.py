"""The look-alikes of the paper's crowd, ten seeds of each: communities, how they come, and who is seen to change.

``python -m science.look_alikes`` (in ``tests``) prints what the documentation quotes.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg

COUNTS = (3_000, 12_000, 26_558)
FULL_COUNTS = (50_000, 200_000, 493_048)
STORIES = ("learning", "ramp", "step", "visit")


class Story(NamedTuple):
    """What one look-alike shows, with gold for a third of its items."""

    kinds: tuple[int, ...]
    agreement: tuple[float, ...]
    is_monotone: bool
    tasks: tuple[int, ...]
    modularity: tuple[float, ...]
    flagged: tuple[str, ...]
    false_flags: int
    n_steady: int


def story(seed):
    """Analyse one look-alike as the demo does."""
    graph, truth = cg.simulate.galaxy_zoo_supernovae(seed=seed)
    graph = graph.with_gold({item: graph.gold[item] for item in list(graph.gold)[::3]}, classes=graph.classes)
    no, yes = graph.classes
    model = cg.Calibrated(model=cg.IBCC(votes={-1: no, 1: yes, 3: yes}))
    track = cg.dynamics.over_time(
        graph, counts=COUNTS, network=partial(cg.networks.pi_similarity, min_responses=10), model=model, seed=seed
    )
    agreement = [
        adjusted_rand_score(truth.group[graph.volunteers.codes(one.ids)], one.assignment) for one in track.snapshots
    ]
    sizes = np.array([one.participation.any(axis=0) for one in track.snapshots])
    lost = (np.diff(sizes.astype(int), axis=0) < 0).any()
    tasks = [cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph.first(count)), seed=seed) for count in COUNTS]
    changed = graph.volunteers.codes([change.volunteer for change in model.fit(graph).changes(graph)])
    is_changed = np.isin(np.arange(len(graph.volunteers)), changed)
    n_responses = graph.volunteers.n_responses
    busiest = [max(np.flatnonzero(truth.drift == name), key=lambda code: n_responses[code]) for name in STORIES]
    steady = (truth.drift == "none") & (n_responses >= 10)
    return Story(
        tuple(track.n_communities),
        tuple(agreement),
        not lost,
        tuple(map(len, tasks)),
        tuple(float(one.modularity) for one in tasks),
        tuple(name for name, code in zip(STORIES, busiest, strict=True) if is_changed[code]),
        int(np.count_nonzero(is_changed & steady)),
        int(np.count_nonzero(steady)),
    )


def full_story(seed):
    """Return the numbers of task communities of the full look-alike, and their modularity, at the paper's counts."""
    graph = cg.simulate.galaxy_zoo_supernovae_full(seed=seed).graph
    found = [
        cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph.first(count)), seed=seed) for count in FULL_COUNTS
    ]
    return [len(one) for one in found], [float(one.modularity) for one in found]


def print_stories(seeds):
    """Print and return the stories."""
    print("\n| seed | kinds | ARI | task communities | modularity | changes flagged | false flags |")
    print("|--:|---|---|---|---|---|---|")
    stories = []
    for seed in seeds:
        one = story(seed)
        stories.append(one)
        print(
            f"| {seed} | {', '.join(map(str, one.kinds))} | {', '.join(f'{value:.2f}' for value in one.agreement)} | "
            f"{', '.join(map(str, one.tasks))} | {', '.join(f'{value:.2f}' for value in one.modularity)} | "
            f"{', '.join(one.flagged)} | {one.false_flags} of {one.n_steady} |",
            flush=True,
        )
    return stories


def print_full_stories(seeds):
    """Print and return the numbers of task communities and modularities of the full look-alikes."""
    print("\n| seed | task communities | modularity |\n|--:|---|---|")
    stories = []
    for seed in seeds:
        numbers, modularity = full_story(seed)
        stories.append((numbers, modularity))
        print(
            f"| {seed} | {', '.join(map(str, numbers))} | {', '.join(f'{value:.2f}' for value in modularity)} |",
            flush=True,
        )
    return stories


if __name__ == "__main__":
    print_stories(range(10))
    print_full_stories(range(10))
