"""Panels of judges whose dependence is planted: hard prompts, and pairs who sometimes decide by one draw."""

import numpy as np

import crowdgraph as cg

PAIRS = ((0, 1), (2, 3))


def judged(labels, classes, *, gold=(), n_classes=2, answered=None):
    """Build a graph from labels, (V, N), with the classes of some items known; judges are j0, j1, ..."""
    volunteer, item = np.nonzero(np.ones_like(labels, dtype=bool) if answered is None else answered)
    names = [f"p{code:05d}" for code in range(labels.shape[1])]
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": [f"j{code}" for code in volunteer],
            "item": [names[code] for code in item],
            "label": labels[volunteer, item].tolist(),
        },
        gold={names[code]: int(classes[code]) for code in gold} or None,
        classes=list(range(n_classes)),
    )


def draw_judges(seed, *, n=2_000, n_judges=9, pairs=PAIRS, shared=0.35, hard=0.12, harder=0.35, n_classes=2):
    """Draw true classes, (N,), and the labels of judges, (V, N), who err in 8 to 25 % of easy prompts.

    A share `hard` of the prompts adds `harder` to everybody's probability of an error. The two of a pair decide by one
    draw about a share `shared` of the prompts.
    """
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n)
    is_hard = rng.random(n) < hard
    # Who errs how often depends on the seed alone, not on the number of prompts.
    easy = np.random.default_rng([seed, 1]).permutation(np.linspace(0.08, 0.25, n_judges))
    rate = easy[:, None] + harder * is_hard
    draw = rng.random((n_judges, n))
    for one, other in pairs:
        alike = rng.random(n) < shared
        draw[other] = np.where(alike, draw[one], draw[other])
    shift = 1 + rng.integers(0, n_classes - 1, draw.shape) if n_classes > 2 else 1
    return classes, np.where(draw < rate, (classes + shift) % n_classes, classes)


def true_votes(labels, classes):
    """The effective number of votes where all classes are known: the mean error against independent ones, by class."""
    error = (labels != classes).astype(float)
    for code in np.unique(classes):
        error[:, classes == code] -= error[:, classes == code].mean(axis=1, keepdims=True)
    error /= error.std(axis=1, keepdims=True)
    return 1 / error.mean(axis=0).var()


def names(pairs):
    """Pairs of judges as a set of sets of ids."""
    return {frozenset((f"j{one}", f"j{other}")) for one, other in pairs}
