"""Networks of volunteers whose behaviour is known, without the answers that would tell it."""

import numpy as np

import crowdgraph as cg
from crowdgraph.networks.behaviour import Behaviour

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
    origin = Behaviour(confusion=confusion, prior=np.zeros(drawn.shape), distance="bhattacharyya", neighbours=None)
    network = cg.VolunteerNetwork(
        ids=np.arange(n), weights=origin.weights(), method="pi_similarity", origin=origin, support=np.full(n, 1e6)
    )
    return network, group


def separation(behaviours):
    """The smallest Hellinger distance between two behaviours: the largest over classes counts for a pair."""
    roots = np.sqrt(np.array(behaviours))
    n = len(roots)
    apart = [np.sqrt(np.maximum(1 - (roots[a] * roots[b]).sum(axis=1), 0)).max() for a in range(n) for b in range(a)]
    return min(apart)
