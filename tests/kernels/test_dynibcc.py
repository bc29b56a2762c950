"""Variational Bayes for DynIBCC: other orders of the same steps, and damping."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from kernels.random_steps import random_crowd

from crowdgraph.kernels.dglm import TensorScan
from crowdgraph.kernels.dglm_compiled import CompiledScan
from crowdgraph.kernels.dynibcc import (
    CLEAR_LEVEL,
    LOG_NOISE_RANGE,
    MIN_SHUFFLES,
    CompiledLikelihood,
    DynamicVB,
    ItemSteps,
    TensorLikelihood,
    _surpassed_by_chance,
    first_steps_of_some,
    shuffle_steps,
)


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
        likelihood = TensorLikelihood(steps)
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


@given(st.lists(st.integers(0, 40), min_size=2, max_size=12), st.integers(20, 60))
def test_a_sample_has_the_first_steps_of_some_volunteers(counts, n_steps):
    assume(sum(counts) > 0)
    steps, _, _ = random_crowd(np.random.default_rng(0), counts, 2, 2)
    volunteers, index, sample = first_steps_of_some(steps, n_steps=n_steps)
    for row, volunteer in enumerate(volunteers.tolist()):
        own = index[sample.starts[row] : sample.starts[row + 1]]
        first = int(steps.starts[volunteer])
        assert own.tolist() == list(range(first, first + min(counts[volunteer], n_steps // 20)))
    assert torch.equal(sample.label, steps.label[index])


def drifting_crowd(rng, *, n_volunteers, n_steps):
    """Volunteers who are mostly right at first and mostly wrong later, about items that are known but for a few."""
    steps, prior, _ = random_crowd(
        rng, [n_steps] * n_volunteers, 2, 2, n_items=400, unanswered=0.0, drift=0.0, shared=True
    )
    truth = rng.integers(0, 2, 400)
    late = np.tile(np.arange(n_steps) > n_steps / 2, n_volunteers)
    is_right = rng.random(len(late)) < np.where(late, 0.35, 0.9)
    label = np.where(is_right, truth[steps.item], 1 - truth[steps.item]).astype(np.int16)
    probs = torch.from_numpy(np.where(np.arange(400)[:, None] % 10 == 1, 0.5, np.eye(2)[truth] * 0.98 + 0.01))
    ones = torch.ones(len(label), dtype=torch.float64)
    return steps._replace(label=torch.from_numpy(label), weight=ones), prior, probs


@pytest.mark.parametrize("limit", [10_000, 700])
def test_the_best_noise_scale_is_that_of_a_fine_grid(monkeypatch, limit):
    monkeypatch.setattr("crowdgraph.kernels.dynibcc.MAX_CHOICE_STEPS", limit)
    steps, _, probs = drifting_crowd(np.random.default_rng(0), n_volunteers=40, n_steps=40)
    prior = torch.tensor([[[4.0, 1.0], [1.0, 4.0]]], dtype=torch.float64)
    vb = variational_bayes(steps, prior, probs)
    choice = vb.choose_noise(1.0, prior=prior)
    chosen = vb.confirm_noise(choice.scale, prior=prior)
    # A scale chosen on a sample is refined on all steps, given the items with that scale.
    logs = vb._likelihood.logs(vb.confusion(1.0 if limit > len(steps.item) else choice.scale)).clone()
    grid = np.exp(np.linspace(*LOG_NOISE_RANGE, 200))
    scores = [vb._predictive_scores(vb._scan, vb._likelihood, scale, logs)[0] for scale in grid]
    assert abs(np.log(chosen / grid[int(np.argmax(scores))])) < 0.05
    assert vb.order_is_informative(chosen, prior=prior)


def test_random_orders_are_left_out_only_if_the_verdict_is_clear():
    """Under the null all twenty scores are alike: the level stays one in twenty."""
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(5_000):
        score, *others = rng.normal(size=20)
        for n in range(1, 20):
            if others[n - 1] >= score:
                break
            if n >= MIN_SHUFFLES and _surpassed_by_chance(score, others[:n]) < CLEAR_LEVEL:
                accepted += 1
                break
        else:
            accepted += 1
    assert 0.04 < accepted / 5_000 < 0.06
