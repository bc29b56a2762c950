"""Expectation maximisation for Cautious ends where nothing more probable is near."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdgraph.kernels.cautious import CellLikelihoods, CompiledEM, TensorEM, cell_likelihoods, item_likelihoods
from crowdgraph.models.cautious import PRIOR_STRENGTH


def codes(values):
    return torch.from_numpy(np.asarray(values, dtype=np.int64))


@pytest.mark.parametrize("kind", [TensorEM, CompiledEM])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_nothing_more_probable_lies_near_what_is_learned(kind, seed):
    rng = np.random.default_rng(seed)
    row = torch.from_numpy(rng.uniform(0.05, 0.6, (40, 2)))
    start = torch.from_numpy(rng.uniform(0, 0.4, (40, 2)))
    cell = rng.integers(15, size=40)
    likelihoods = cell_likelihoods(
        row, start, torch.tensor([0.3, 0.7]).double(), torch.tensor([0, 0.5]).double(), codes(cell), 15
    )
    community = codes(np.where(np.bincount(cell, minlength=15) > 1, rng.integers(-1, 2, 15), -1))
    by_item = item_likelihoods(
        likelihoods,
        item=codes(rng.integers(6, size=15)),
        community=community,
        log_prior=torch.from_numpy(rng.dirichlet([1.0, 1.0], 6)).log(),
    )
    step = kind(by_item, n_communities=2, strength=PRIOR_STRENGTH)
    state, heights = step.start(), []
    while len(heights) < 2 or heights[-1] > heights[-2] + 1e-13:
        taken = step(state)
        heights.append(taken.objective)
        state = taken.state
    assert (np.diff(heights) >= -1e-9).all()
    best = step(state).objective
    for nudge in rng.normal(0, 0.2, (10, len(state))):
        assert step(state * torch.from_numpy(np.exp(nudge))).objective <= best + 1e-9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_likelihoods_that_vanish_are_taken_by_their_logarithms(dtype):
    """One community all but never errs together, yet only that explains its answers about the first item."""
    independent, shared = np.zeros((2, 2, 3)), np.full((2, 2, 3), -1.0)
    independent[0], shared[0] = [[-500, -510, -520], [-505, -600, -700]], [[-1, -2, -3], [-1.5, -1, -2]]
    likelihoods = item_likelihoods(
        CellLikelihoods(torch.from_numpy(independent), torch.from_numpy(shared)),
        item=codes([0, 1]),
        community=codes([0, 0]),
        log_prior=torch.tensor([[0.4, 0.6], [0.5, 0.5]]).double().log(),
    )
    state = torch.tensor([1.0, 2.0, 3.0, 1e-30]).double()
    step = TensorEM(likelihoods, n_communities=1, strength=PRIOR_STRENGTH)
    compiled = CompiledEM(likelihoods.to(torch.device("cpu"), dtype), n_communities=1, strength=PRIOR_STRENGTH)
    expected, actual = step(state), compiled(state)
    rounding = 1e-12 if dtype == torch.float64 else 1e-6
    np.testing.assert_allclose(compiled.probs, step.probs, rtol=rounding)
    np.testing.assert_allclose(actual.state, expected.state, rtol=rounding)
    np.testing.assert_allclose(actual.objective, expected.objective, rtol=rounding)
    assert expected.objective < -60
