"""Accelerated iteration to fixed points."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.errors import FitError
from crowdgraph.kernels.fixed_point import Progress, Step, squarem


def em_of_a_mixture(data, weights):
    """EM for the shares of two known normal distributions: slow, and its likelihood never falls."""

    def step(state):
        shares = state / state.sum()
        joint = shares * weights
        objective = float(torch.log(joint.sum(1)).sum())
        following = (joint / joint.sum(1, keepdim=True)).mean(0)
        return Step(following, objective, float((following - shares).abs().max()))

    return step


@pytest.fixture
def mixture():
    data = torch.from_numpy(np.random.default_rng(0).normal(0.3, 1, 400))
    weights = torch.exp(-0.5 * (data[:, None] - torch.tensor([0.0, 0.7], dtype=torch.float64)) ** 2)
    return em_of_a_mixture(data, weights)


def test_acceleration_ends_in_the_same_point_sooner(mixture):
    start = torch.tensor([0.99, 0.01], dtype=torch.float64)
    plain = squarem(mixture, start, max_iter=5_000, tol=1e-10, accelerate=False)
    fast = squarem(mixture, start, max_iter=5_000, tol=1e-10, accelerate=True)
    assert plain.converged
    assert fast.converged
    assert fast.n_steps < plain.n_steps / 3
    assert torch.allclose(fast.state, plain.state, atol=1e-7)
    for trace in (plain, fast):
        assert (np.diff(trace.objectives) >= -1e-9).all()


def test_end_is_a_fixed_point(mixture):
    trace = squarem(mixture, torch.tensor([0.5, 0.5], dtype=torch.float64), max_iter=5_000, tol=1e-9, accelerate=True)
    assert mixture(trace.state).change < 1e-8


@given(st.integers(2, 40))
def test_never_more_steps_than_allowed(max_iter):
    calls = []

    def step(state):
        calls.append(1)
        return Step(state * 1.01, float(len(calls)), 1.0)

    trace = squarem(step, torch.ones(2, dtype=torch.float64), max_iter=max_iter, tol=1e-3, accelerate=True)
    assert not trace.converged
    assert len(calls) == trace.n_steps <= max_iter


def test_an_extrapolation_that_lowers_the_objective_is_rejected():
    """The objective forbids everything off the plain path, so that every extrapolation must be rejected."""
    plain = [1 + 0.9**power for power in range(200)]
    extrapolations = []

    def step(state):
        value = float(state)
        on_path = min(abs(value - other) for other in plain) < 1e-12
        extrapolations.append(not on_path)
        return Step(1 + 0.9 * (state - 1), -value if on_path else -1e6, abs(value - 1) * 0.1)

    trace = squarem(step, torch.tensor([2.0], dtype=torch.float64), max_iter=400, tol=1e-4, accelerate=True)
    assert any(extrapolations)
    assert trace.converged
    assert min(trace.objectives) > -3
    assert (np.diff(trace.objectives) >= 0).all()


def test_overflow_raises():
    with pytest.raises(FitError, match="overflowed: its objective became nan"):
        squarem(lambda state: Step(state, float("nan"), 1.0), torch.ones(1), max_iter=5, tol=1e-3, accelerate=False)


def test_an_iteration_is_given_up(mixture):
    start = torch.tensor([0.99, 0.01], dtype=torch.float64)
    full = squarem(mixture, start, max_iter=50, tol=0.0, accelerate=True)
    part = squarem(mixture, start, max_iter=50, tol=0.0, accelerate=True, give_up=lambda so_far: len(so_far) == 4)
    assert not part.converged
    assert part.objectives == full.objectives[:4]


class Diary:
    """Keeps every entry, and says one of them to an iteration that goes on."""

    def __init__(self, entry=None):
        self.entry, self.entries = entry, []

    def last(self):
        return self.entry

    def record(self, progress):
        assert isinstance(progress, Progress)
        self.entries.append(progress._replace(objectives=list(progress.objectives)))


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("max_iter", [5_000, 30])
def test_an_interrupted_iteration_ends_with_the_same_bits(mixture, accelerate, max_iter):
    options = {"max_iter": max_iter, "tol": 1e-8, "accelerate": accelerate}
    start, diary = torch.tensor([0.99, 0.01], dtype=torch.float64), Diary()
    expected = squarem(mixture, start, recorder=diary, **options)
    assert diary.entries[-1].ended
    for entry in diary.entries[:: 1 + len(diary.entries) // 20] + diary.entries[-1:]:
        resumed = squarem(mixture, start, recorder=Diary(entry), **options)
        assert torch.equal(resumed.state, expected.state)
        assert resumed[1:] == expected[1:]
