"""Builders of small crowds, networks, communities and tracks that tests share."""

import numpy as np
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.networks.pi_similarity import ConfusionModel

# Crowds


def skills(*accuracies):
    """Groups of volunteers, each right about both of two classes with one probability."""
    return [
        cg.simulate.Group(name=f"right in {right}", confusion=[[right, 1 - right], [1 - right, right]])
        for right in accuracies
    ]


def crowd(*accuracies, seed=0, **options):
    """Simulate a small crowd with groups of the given accuracies; options are those of `simulate.crowd`."""
    sizes = {"n_volunteers": 25, "n_items": 100, "n_responses": 800}
    groups = {"groups": skills(*accuracies)} if accuracies else {}
    return cg.simulate.crowd(seed=seed, **{**sizes, **groups, **options})


def fitted(*accuracies, seed=0, **options):
    """Simulate a small crowd and annotate its graph with a fit of IBCC."""
    graph = crowd(*accuracies, seed=seed, **options).graph
    return graph.annotate(cg.IBCC().fit(graph))


def graph_of(volunteers, items, answers, **options):
    """Build a graph from columns of one length; options are those of `CrowdGraph.from_responses`."""
    return cg.CrowdGraph.from_responses({"volunteer": volunteers, "item": items, "label": answers}, **options)


# Results, written by hand


def mirrored(weights):
    """Make weights symmetric: those above the diagonal count, on both sides of it."""
    upper = np.triu(weights, 1)
    return upper + upper.T


def network_of(weights, *, ids=None, sparse=False, **options):
    """Build a network from symmetric weights; volunteers are v0, v1, ... unless named."""
    weights = weights if isinstance(weights, csr_array) else np.asarray(weights, dtype=float)
    ids = [f"v{code}" for code in range(weights.shape[0])] if ids is None else ids
    return cg.VolunteerNetwork(
        ids=ids, weights=csr_array(weights) if sparse else weights, **{"method": "by hand", **options}
    )


def communities_of(participation, *, ids=None, **options):
    """Build communities from participations, (V, K), or from one community for each volunteer, (V,), -1 for none."""
    participation = np.asarray(participation)
    if participation.ndim == 1:
        participation = np.eye(participation.max(initial=-1) + 2)[participation][:, :-1]
    ids = [f"v{code}" for code in range(len(participation))] if ids is None else ids
    return cg.Communities(ids=ids, participation=participation, **{"modularity": 0.0, "method": "by hand", **options})


def planted(crowd, **options):
    """Build communities that are the groups of a simulated crowd."""
    return communities_of(crowd.truth.group, ids=crowd.graph.volunteers.ids, **options)


def track_of(assignment, *, kind="number", **options):
    """Build a track in which each volunteer is in one community at each snapshot, (T, V); -1 for none."""
    assignment = np.asarray(assignment)
    ids = [f"v{code}" for code in range(assignment.shape[1])]
    hard = np.eye(assignment.max() + 2)[:, :-1]
    snapshots = [communities_of(hard[row], ids=ids, method="m") for row in assignment]
    counts = 1_000 * np.arange(1, len(assignment) + 1)
    return cg.CommunityTrack(
        ids=ids, times=counts, counts=counts, snapshots=snapshots, clock=cg.Clock(kind), **{"method": "m", **options}
    )


def history_of(*rows, total=100.0, times=None, clock="number", labels=None):
    """Build a confusion history whose rows have the given means, each (T, L), and one total or one for each step."""
    mean = np.stack(rows, axis=1)
    return cg.ConfusionHistory(
        volunteer="anna",
        times=np.arange(len(mean)) if times is None else times,
        concentration=np.maximum(mean, 1e-12) * np.broadcast_to(total, len(mean))[:, None, None],
        initial=np.ones(mean.shape[1:]),
        classes=tuple("ABCD"[: mean.shape[1]]),
        labels=tuple(labels or "abcd"[: mean.shape[2]]),
        clock=cg.Clock(clock) if isinstance(clock, str) else clock,
    )


# Volunteers whose behaviour is known

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


def ratings(seed=0, *, n_volunteers=40, n_items=200, each=5):
    """A crowd of graders with biases and noises of their own, who rate items from 1 to 5; and the true scores."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(5, n_items, p=[0.1, 0.25, 0.35, 0.2, 0.1]) + 1
    bias, noise = rng.normal(0, 0.3, n_volunteers), rng.gamma(4, 0.2, n_volunteers) + 0.1
    volunteer = np.concatenate([rng.choice(n_volunteers, each, replace=False) for _ in range(n_items)])
    item = np.repeat(np.arange(n_items), each)
    seen = truth[item] + bias[volunteer] + noise[volunteer] * rng.normal(size=len(item))
    label = np.clip(np.round(seen), 1, 5).astype(int)
    return cg.CrowdGraph.from_responses(
        {"volunteer": volunteer, "item": item, "label": label}, labels=range(1, 6)
    ), truth
