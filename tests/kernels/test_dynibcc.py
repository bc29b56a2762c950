"""Variational Bayes for DynIBCC: other orders of the same steps, and damping."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from kernels.random_steps import random_crowd
from numpy.testing import assert_allclose

from crowdgraph.kernels.dglm import TensorScan
from crowdgraph.kernels.dglm_compiled import CompiledScan
from crowdgraph.kernels.dynibcc import (
    CLEAR_LEVEL,
    LOG_NOISE_RANGE,
    MAX_MOVE,
    MIN_SHUFFLES,
    CompiledLikelihood,
    DynamicVB,
    ItemSteps,
    TensorLikelihood,
    _surpassed_by_chance,
    first_steps_of_some,
    follow_feedback,
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


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 2), (3, 3), (2, 3)])
def test_feedback_is_the_derivative_by_an_items_own_probability(compiled, n_classes, n_labels):
    """Without noise, and with items that nobody answers twice, it is that of the logarithms of a whole pass."""
    rng = np.random.default_rng(n_classes + n_labels)
    steps, prior, probs = random_crowd(rng, [6, 0, 5, 3], n_classes, n_labels, drift=0.0)
    # The items of a volunteer are all different.
    within = torch.arange(len(steps.item)) - steps.starts[:-1].repeat_interleave(steps.starts.diff())
    probs = torch.from_numpy(rng.dirichlet(np.ones(n_classes), 8))
    steps = steps._replace(item=within.to(steps.item.dtype))
    vb = variational_bayes(steps, prior, probs, compiled=compiled)
    # The rows of the items, of which one is left out.
    position = torch.tensor([2, 1, 0, -1, 3, 4, 6, 5], dtype=torch.int32)
    effects = torch.zeros(7, n_classes, dtype=torch.float64)
    vb._likelihood.add_feedback(vb.confusion(0.0), position, effects)

    def logs_of(item):
        return vb._likelihood.logs(vb.confusion(0.0))[steps.item == item].sum(0)

    for item, row in enumerate(position.tolist()):
        for j in range(n_classes if row >= 0 else 0):
            ends = []
            for step in (-1e-5, 1e-5):
                vb.probs.copy_(probs)
                vb.probs[item, j] += step
                ends.append(logs_of(item)[j])
            assert_allclose((ends[1] - ends[0]) / 2e-5, effects[row, j], rtol=1e-5, atol=1e-7)
        vb.probs.copy_(probs)


@given(st.integers(0, 1_000), st.integers(1, 40))
def test_items_go_where_passes_of_their_own_lead(seed, n_passes):
    """Each item alone, passed so often with linear feedback, unless it has settled or moved too far."""
    rng = np.random.default_rng(seed)
    previous, logs = (torch.from_numpy(rng.dirichlet(np.ones(3), 5)) for _ in range(2))
    probs = torch.softmax(previous.log() + 0.1 * logs, 1)
    feedback = torch.from_numpy(rng.uniform(0, 6, (5, 3)))
    result = follow_feedback(probs, previous, feedback, n_passes)
    for item in range(5):
        current = probs[item]
        for _ in range(n_passes):
            current = torch.softmax(probs[item].log() + feedback[item] * (current - previous[item]), 0)
            if (current - previous[item]).abs().max() >= MAX_MOVE:
                break
        assert_allclose(result[item], current, atol=1e-9)


def test_looking_ahead_leaves_fixed_points_and_gold_as_they_are():
    rng = np.random.default_rng(3)
    steps, prior, probs = random_crowd(rng, [30, 20, 25, 9], 3, 3)
    vb = variational_bayes(steps, prior, probs)
    gold = vb.probs[vb._fixed].clone()
    for _ in range(3_000):
        if vb(1.0) < 1e-13:
            break
    end = vb.probs.clone()
    vb(1.0, n_ahead=1_000)
    assert_allclose(vb.probs, end, atol=1e-10)
    vb.probs[~vb._fixed] = torch.lerp(end, torch.full_like(end, 1 / 3), 0.05)[~vb._fixed]
    for _ in range(100):
        vb(1.0, n_ahead=50)
    assert_allclose(vb.probs, end, atol=1e-9)
    assert torch.equal(vb.probs[vb._fixed], gold)
