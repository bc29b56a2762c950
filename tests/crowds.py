"""Networks of volunteers whose behaviour is known, without the answers that would tell it."""

import numpy as np

import crowdgraph as cg
from crowdgraph.networks.pi_similarity import ConfusionModel

CLASSES, LABELS = ("not supernova", "supernova"), (-1, 1, 3)
# Rows: the two classes; columns: the three labels.
FIVE = [group.confusion for group in cg.simulate.galaxy_zoo.GROUPS]
THREE = [
    [[0.85, 0.1, 0.05], [0.1, 0.3, 0.6]],
    [[0.3, 0.6, 0.1], [0.2, 0.6, 0.2]],
    [[0.05, 0.15, 0.8], [0.05, 0.15, 0.8]],
]
SEVEN = [
    [[0.9, 0.07, 0.03], [0.05, 0.15, 0.8]],
    [[0.9, 0.07, 0.03], [0.85, 0.1, 0.05]],
    [[0.05, 0.15, 0.8], [0.05, 0.15, 0.8]],
    [[0.15, 0.7, 0.15], [0.15, 0.7, 0.15]],
    [[0.1, 0.2, 0.7], [0.8, 0.15, 0.05]],
    [[0.45, 0.1, 0.45], [0.1, 0.8, 0.1]],
    [[0.5, 0.45, 0.05], [0.05, 0.45, 0.5]],
]
ONE = [[[0.6, 0.25, 0.15], [0.3, 0.4, 0.3]]]
SKEWED = [0.55, 0.2, 0.12, 0.08, 0.05]


def behaving(behaviours, *, n, concentration, seed, shares=None):
    """The pi-similarity network of volunteers with known confusion, and the group of each.

    Every row of a volunteer's confusion is drawn from a Dirichlet around that of the group.
    """
    rng = np.random.default_rng(seed)
    means = np.array(behaviours)
    group = rng.choice(len(means), n, p=shares)
    drawn = rng.standard_gamma(np.maximum(means[group] * concentration, 1e-3)) + 1e-12
    confusion = cg.ConfusionSnapshot(
        ids=np.arange(n), concentration=1e6 * drawn / drawn.sum(axis=2, keepdims=True), classes=CLASSES, labels=LABELS
    )
    model = ConfusionModel(confusion=confusion, prior=np.zeros(drawn.shape), distance="bhattacharyya", neighbours=None)
    network = cg.VolunteerNetwork(
        ids=np.arange(n), weights=model.weights(), method="pi_similarity", model=model, support=np.full(n, 1e6)
    )
    return network, group


def separation(behaviours):
    """The smallest Hellinger distance between two behaviours: the largest over classes counts for a pair."""
    roots = np.sqrt(np.array(behaviours))
    n = len(roots)
    apart = [np.sqrt(np.maximum(1 - (roots[a] * roots[b]).sum(axis=1), 0)).max() for a in range(n) for b in range(a)]
    return min(apart)


# Extremists, pessimists and non-committal volunteers are there from the start; optimists and reasonable ones arrive.
ARRIVING = [FIVE[1], FIVE[2], FIVE[4], FIVE[3], FIVE[0]]
ARRIVALS = [0.0, 0.0, 0.0, 1 / 3, 2 / 3]


def moving(seed, *, n=300, n_answers=360, n_items=1_200, movers=0.1, moment=0.5):
    """A crowd of five groups, of which two arrive late, and volunteers of the first three who move among these.

    Times go from 0 to 1. Returns the graph and, for each of its volunteers, the group before and after the moment.
    """
    rng = np.random.default_rng(seed)
    before = rng.permutation(np.arange(n) % len(ARRIVING))
    arrival = np.array(ARRIVALS)[before]
    after = before.copy()
    chosen = rng.choice(np.flatnonzero(arrival == 0), round(movers * n), replace=False)
    after[chosen] = (before[chosen] + rng.integers(1, 3, len(chosen))) % 3
    # Everybody has a confusion matrix of their own, and those who move a second one.
    first, second = (rng.standard_gamma(30 * np.array(ARRIVING)[group]) for group in (before, after))
    second[before == after] = first[before == after]
    confusion = np.stack([first, second]) / np.stack([first, second]).sum(axis=3, keepdims=True)
    true_class = (rng.random(n_items) < 0.4).astype(int)
    rows = []
    for volunteer in range(n):
        start = arrival[volunteer] + 0.03 * rng.random()
        times = rng.uniform(start, 1, int(n_answers * (1 - start)))
        items = rng.choice(n_items, len(times), replace=False)
        chances = confusion[(times >= moment).astype(int), volunteer, true_class[items]]
        labels = (rng.random((len(times), 1)) >= chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
        rows.append(np.column_stack([np.full(len(times), volunteer), items, np.array(LABELS)[labels], times]))
    columns = dict(zip(("volunteer", "item", "label", "time"), np.concatenate(rows).T, strict=True))
    whole = {name: values if name == "time" else values.astype(int) for name, values in columns.items()}
    known = np.flatnonzero(rng.random(n_items) < 0.3)
    gold = {int(item): CLASSES[true_class[item]] for item in known}
    graph = cg.CrowdGraph.from_responses(whole, gold=gold, classes=CLASSES, labels=LABELS)
    codes = graph.volunteers.ids.astype(int)
    return graph, before[codes], after[codes]
