"""Random steps of volunteers, for the tests of Dynamic IBCC's kernels."""

import math

import numpy as np
import torch

from crowdgraph.tensors.dynibcc import Steps

HARD, SOFT, EITHER = "hard", "soft", "either"


def random_truth(rng, n_items, n_classes, kind):
    """Class probabilities of items: known, uncertain, or some of each."""
    soft = rng.dirichlet(np.ones(n_classes), n_items)
    known = np.full(n_items, kind == HARD) if kind != EITHER else rng.random(n_items) < 0.5
    return np.where(known[:, None], np.eye(n_classes)[rng.integers(0, n_classes, n_items)], soft)


def random_shares(rng, label, n_labels):
    """Shares of the labels in answers, of which about half are soft; their labels are the most probable ones."""
    certain = label[:, None] == np.arange(n_labels)
    soft = np.sort(rng.dirichlet(np.ones(n_labels), len(label)), axis=1)[:, ::-1]
    order = np.argsort(~certain, axis=1, kind="stable")
    shares = np.empty(soft.shape)
    np.put_along_axis(shares, order, soft, axis=1)
    return torch.from_numpy(np.where((rng.random(len(label)) < 0.5)[:, None] | (label < 0)[:, None], certain, shares))


def random_crowd(
    rng,
    counts,
    n_classes,
    n_labels,
    *,
    kind=EITHER,
    shared=False,
    n_items=None,
    drift=0.3,
    unanswered=0.2,
    soft_answers=False,
):
    """Steps of volunteers, their priors, and the truth of the items they met."""
    n_steps = sum(counts)
    n_items = n_items or n_steps + 1
    steps = Steps(
        starts=torch.tensor([0, *np.cumsum(counts)]),
        item=torch.from_numpy(rng.integers(0, n_items, n_steps).astype(np.int32)),
        label=torch.from_numpy(
            np.where(rng.random(n_steps) < unanswered, -1, rng.integers(0, n_labels, n_steps)).astype(np.int16)
        ),
        weight=torch.from_numpy(rng.uniform(0.05, 1, n_steps) if rng.random() < 0.5 else np.ones(n_steps)),
        drift=torch.from_numpy(rng.uniform(0, drift, n_steps) * (rng.random(n_steps) < 0.7)),
    )
    if soft_answers:
        steps = steps._replace(shares=random_shares(rng, steps.label.numpy(), n_labels))
    prior = np.exp(rng.uniform(math.log(0.3), math.log(20), (1 if shared else len(counts), n_classes, n_labels)))
    return steps, torch.from_numpy(prior), torch.from_numpy(random_truth(rng, n_items, n_classes, kind))
