"""Variational Bayes for DynIBCC: other orders of the same steps, and damping."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernels.random_steps import random_crowd

from crowdgraph.kernels.dglm import TensorScan
from crowdgraph.kernels.dglm_compiled import CompiledScan
from crowdgraph.kernels.dynibcc import CompiledLikelihood, DynamicVB, ItemSteps, TensorLikelihood, shuffle_steps


def item_steps(steps, n_items):
    order = torch.argsort(steps.item.long(), stable=True)
    counts = torch.bincount(steps.item.long(), minlength=n_items)
    return ItemSteps(torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]), order)


def variational_bayes(steps, prior, probs, *, compiled=True, stage="smoothed", published=False):
    """Return variational Bayes over steps, with gold for every third item."""
    if compiled:
        likelihood = CompiledLikelihood(steps, item_steps(steps, len(probs)), n_classes=prior.shape[1])
        scan = CompiledScan(steps, prior, published=published)
    else:
        scan = TensorScan(steps, prior, published=published)
        likelihood = TensorLikelihood(steps, item_steps(steps, len(probs)))
    return DynamicVB(
        steps,
        scan,
        likelihood,
        class_prior=torch.ones(prior.shape[1], dtype=torch.float64),
        probs=probs.clone(),
        fixed=torch.arange(len(probs)) % 3 == 0,
        stage=stage,
    )


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 1000))
def test_shuffling_keeps_every_step_with_its_volunteer(counts, seed):
    starts = torch.tensor(np.concatenate([[0], np.cumsum(counts)]))
    order = shuffle_steps(starts, seed=seed)
    for first, last in pairwise(starts.tolist()):
        assert sorted(order[first:last].tolist()) == list(range(first, last))
    assert torch.equal(order, shuffle_steps(starts, seed=seed))


def test_shuffling_is_fair():
    """All six orders of three steps are equally frequent."""
    starts = torch.tensor([0, 3])
    orders, counts = np.unique(
        [tuple(shuffle_steps(starts, seed=seed).tolist()) for seed in range(3_000)], axis=0, return_counts=True
    )
    assert len(orders) == 6
    assert abs(counts - 500).max() < 5 * np.sqrt(500)


@pytest.mark.parametrize("compiled", [True, False])
def test_order_is_informative_as_written_out(monkeypatch, compiled):
    """Compare with scans and likelihoods that are constructed anew for every order."""
    monkeypatch.setattr("crowdgraph.kernels.dynibcc.N_SHUFFLES", 4)
    verdicts = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        steps, prior, probs = random_crowd(rng, [8, 0, 9, 5], 2, 3)
        vb = variational_bayes(steps, prior, probs, compiled=compiled)
        logs = vb._likelihood.logs(vb.confusion(0.7)).clone()
        scores = []
        for order in [torch.arange(len(steps.item)), *(shuffle_steps(steps.starts, seed=draw) for draw in range(4))]:
            shuffled = variational_bayes(steps.reordered(order), prior, probs, compiled=compiled)
            predicted = shuffled._scan(probs, noise_scale=0.7, stage="predicted")
            scores.append(shuffled._likelihood.predictive(predicted, logs[order], probs, shuffled._fixed)[0])
        verdicts.append(vb.order_is_informative(0.7, prior=prior))
        assert verdicts[-1] == (scores[0] > max(scores[1:]))
    assert len(set(verdicts)) == 2


def test_a_damped_pass_goes_half_the_way():
    steps, prior, probs = random_crowd(np.random.default_rng(1), [12, 25, 7], 2, 3)
    full, half = (variational_bayes(steps, prior, probs) for _ in range(2))
    assert full(1.0) == half(1.0, damping=0.5)
    assert torch.allclose(half.probs, (full.probs + probs) / 2, atol=1e-14)
