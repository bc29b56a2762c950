"""The search for factors finds planted blocks, merges columns, and starts from shares of everybody."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.weights import USUAL, stepping, symmetric_weights
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from crowdgraph.kernels import nmf_search
from crowdgraph.kernels.fixed_point import squarem
from crowdgraph.kernels.nmf import Prior, paired_step
from crowdgraph.kernels.nmf_search import search, seeded_start
from crowdgraph.tensors.nmf import DenseWeights

BLOCKS = np.arange(60) % 4


def blocks(seed, *, inside=0.8, between=0.02, group=BLOCKS):
    rng = np.random.default_rng(seed)
    linked = rng.random((len(group), len(group))) < np.where(group[:, None] == group, inside, between)
    upper = np.triu(linked * rng.uniform(2, 6, linked.shape), 1)
    return upper + upper.T


def start_from(weights, k, seed):
    matrix = torch.from_numpy(weights)
    draw = torch.Generator().manual_seed(seed)
    start = seeded_start(lambda index: matrix[index], lambda vector: matrix @ vector, matrix.sum(1), k, draw)
    return start * (matrix.sum() / (start.sum(0) ** 2).sum()).sqrt()


@pytest.mark.parametrize("seed", range(6))
def test_planted_blocks_are_found_and_no_worse_than_by_plain_iteration(seed):
    weights = blocks(seed)
    step, start = stepping(weights), start_from(weights, 10, seed)
    seen = []
    actual = search(step, start, tol=1e-4, max_iter=1_000, on_step=seen.append)
    assert actual.converged
    assert actual.change <= 1e-4
    assert actual.n_steps == len(seen)
    assert actual.factors.shape == (60, 4)
    assert adjusted_rand_score(actual.factors.argmax(1), BLOCKS) == 1
    plain = squarem(step, start, tol=1e-4, max_iter=1_000, accelerate=True)
    assert actual.objective >= plain.objectives[-1] - 1e-6 * abs(actual.objective)
    # The objective is that of the factors one step before, which are no better.
    assert 0 <= step(actual.factors).objective - actual.objective < 0.5


def test_paired_factors_find_blocks_too():
    weights = blocks(0)
    matrix = DenseWeights(torch.from_numpy(weights))
    start = start_from(weights, 8, 0).repeat(2, 1)
    actual = search(lambda state: paired_step(matrix, state, USUAL), start, tol=1e-3, max_iter=1_000)
    assert actual.factors.shape == (120, 4)
    for factor in actual.factors.tensor_split(2):
        assert adjusted_rand_score(factor.argmax(1), BLOCKS) == 1


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_plain_iteration_leaves_apart_are_merged(seed):
    upper = np.triu(0.5 + 0.1 * np.random.default_rng(seed).random((60, 60)), 1)
    weights = upper + upper.T
    step, start = stepping(weights), start_from(weights, 6, seed)
    plain = squarem(step, start, tol=1e-3, max_iter=1_000, accelerate=True)
    actual = search(step, start, tol=1e-3, max_iter=1_000)
    assert ((plain.state**2).sum(0) > 0.1).sum() > actual.factors.shape[1] == 1
    assert actual.objective > plain.objectives[-1]


def test_the_order_of_volunteers_does_not_matter():
    weights = blocks(3)
    order = np.random.default_rng(0).permutation(60)
    start = start_from(weights, 8, 0)
    actual = search(stepping(weights), start, tol=1e-4, max_iter=1_000)
    moved = search(stepping(weights[order][:, order]), start[order], tol=1e-4, max_iter=1_000)
    assert_allclose(moved.factors, actual.factors[order], rtol=1e-6, atol=1e-9)
    assert_allclose(moved.objective, actual.objective)


@pytest.mark.parametrize(
    ("objectives", "given_up"),
    [
        ([-100.0, -50.0], False),
        # Nine steps are left, which may rise by 20 each.
        ([-300.0, -200.0, -190.0], True),
        ([-300.0, -189.0, -179.0], False),
    ],
)
def test_merging_is_given_up_where_its_goal_is_out_of_reach(objectives, given_up):
    assert nmf_search._is_out_of_reach(0.0, objectives) is given_up


def test_pairs_are_merged_at_once_if_there_are_two():
    """A single pair is left to the merges of one pair at a time."""
    columns = torch.eye(4, dtype=torch.float64)
    pairs = torch.stack([columns[0], columns[0] + 0.1 * columns[1], columns[2], columns[2] + 0.1 * columns[3]], dim=1)
    assert nmf_search._mutual_pairs(pairs) == [[(0, 1), (2, 3)]]
    assert nmf_search._mutual_pairs(pairs[:, :3]) == []
    assert nmf_search._mutual_pairs(pairs[:, :1]) == []


def test_one_column_stays_even_if_none_is_needed():
    weights = blocks(0)
    actual = search(stepping(weights, Prior(1e7, 2.0)), start_from(weights, 5, 0), tol=1e-4, max_iter=300)
    assert actual.factors.shape == (60, 1)
    assert (actual.factors**2).sum() < nmf_search.MIN_COLUMN_SQUARES


def test_a_search_of_too_few_steps_says_so():
    weights = blocks(0, between=0.2)
    actual = search(stepping(weights), start_from(weights, 10, 0), tol=1e-9, max_iter=20)
    assert not actual.converged
    assert 20 <= actual.n_steps < 100
    assert actual.change > 1e-9


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 6))
@settings(max_examples=30)
def test_starts_are_shares_of_everybody(seed, n, k):
    rng = np.random.default_rng(seed)
    weights = symmetric_weights(rng, n, 0.4) * 10 ** rng.uniform(-5, 5)
    start = start_from(weights, k, seed)
    assert start.shape == (n, k)
    assert (start > 0).all()
    matrix = torch.from_numpy(weights)
    draw = torch.Generator().manual_seed(seed)
    shares = seeded_start(lambda index: matrix[index], lambda vector: matrix @ vector, matrix.sum(1), k, draw)
    near = shares - nmf_search.BACKGROUND_SHARE / k
    sums = near.sum(1)
    assert ((sums - 1).abs().lt(1e-9) | sums.abs().lt(1e-9)).all()
    assert_allclose(start / start.sum(1, keepdim=True), shares / shares.sum(1, keepdim=True))
    # Those whose weights lead nowhere near a seed's, and those without any, are as near to all.
    assert (sums[weights.sum(1) == 0].abs() < 1e-9).all()
    assert (sums > 0.5).any()


@pytest.mark.parametrize("seed", range(8))
def test_seeds_are_spread_over_blocks_that_nothing_links(seed):
    sizes = [3, 5, 8, 13]
    group = np.repeat(np.arange(4), sizes)
    weights = np.where(group[:, None] == group, 1.0, 0.0)
    np.fill_diagonal(weights, 0)
    # Two volunteers without weights are never seeds.
    weights = np.pad(weights, (0, 2))
    start = start_from(weights, 4, seed)
    shares = start / start.sum(1, keepdim=True)
    assert len(set(zip(group.tolist(), shares[:-2].argmax(1).tolist(), strict=True))) == 4
    assert (shares[:-2].max(1).values > 0.95).all()
    assert_allclose(shares[-2:], 0.25)
