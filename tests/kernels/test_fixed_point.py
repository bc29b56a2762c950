"""Accelerated iteration to fixed points."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.errors import FitError
from crowdgraph.kernels.fixed_point import Progress, Step, squarem, squarem_by_change


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


# Without an objective.


def pull_of(rates, targets):
    """A map that pulls the log odds of each item towards its target at its own rate, and from their mean."""

    def start_from(probs):
        def step():
            before = probs.clone()
            logs = probs.log()
            logs = targets + rates * (logs - targets) + 0.02 * (logs - logs.mean(0))
            probs[1:] = torch.softmax(logs, 1)[1:]
            return float((probs - before).abs().max())

        return step

    return start_from


@given(st.integers(0, 1_000), st.integers(2, 4))
def test_without_an_objective_the_end_is_that_of_plain_steps(seed, n_classes):
    rng = np.random.default_rng(seed)
    rates = torch.from_numpy(rng.uniform(-0.5, 0.93, (12, 1)))
    targets = torch.from_numpy(np.log(rng.dirichlet(np.ones(n_classes), 12)))
    start = torch.from_numpy(rng.dirichlet(np.ones(n_classes), 12))
    ends = {}
    for accelerate in (False, True):
        probs = start.clone()
        step = pull_of(rates, targets)(probs)
        passes = squarem_by_change(step, probs, max_iter=3_000, tol=1e-10, accelerate=accelerate)
        assert passes.change <= 1e-10
        assert torch.equal(probs[0], start[0])
        ends[accelerate] = probs, passes.n_steps
    assert torch.allclose(ends[True][0], ends[False][0], atol=1e-7)
    assert ends[True][1] <= 2 * ends[False][1]


def test_without_an_objective_slow_items_take_fewer_steps():
    counts = []
    for accelerate in (False, True):
        probs = torch.full((6, 2), 0.5, dtype=torch.float64)
        targets = torch.tensor([[0.1, 0.9]], dtype=torch.float64).log().expand(6, 2)
        step = pull_of(torch.full((6, 1), 0.93, dtype=torch.float64), targets)(probs)
        counts.append(squarem_by_change(step, probs, max_iter=1_000, tol=1e-8, accelerate=accelerate).n_steps)
    assert counts[1] < counts[0] / 5


def test_a_fixed_point_that_plain_steps_leave_is_left():
    """At equal odds the map stays where it is, but the slightest difference grows."""
    ends = []
    for accelerate in (False, True):
        probs = torch.tensor([[0.5 + 1e-4, 0.5 - 1e-4], [0.3, 0.7]], dtype=torch.float64)

        def step(probs=probs):
            before = probs.clone()
            odds = torch.log(probs[:, 0] / probs[:, 1])
            probs[:, 0] = torch.sigmoid(2 * torch.tanh(0.6 * odds))
            probs[:, 1] = 1 - probs[:, 0]
            return float((probs - before).abs().max())

        assert squarem_by_change(step, probs, max_iter=500, tol=1e-9, accelerate=accelerate).change <= 1e-9
        ends.append(probs)
    assert ends[0][0, 0] > 0.6
    assert torch.allclose(*ends, atol=1e-7)


def test_rows_may_be_shared_by_processes():
    """Two processes with the same rows each are like one with all of them."""
    rng = np.random.default_rng(0)
    start = torch.from_numpy(rng.dirichlet(np.ones(3), 8))
    rates, targets = torch.full((8, 1), 0.9, dtype=torch.float64), torch.from_numpy(np.log(rng.dirichlet([1, 1, 1], 8)))
    half, both = start.clone(), torch.cat([start, start])

    def step_of(probs, n):
        def step():
            before = probs.clone()
            logs = targets.repeat(n, 1) + rates.repeat(n, 1) * (probs.log() - targets.repeat(n, 1))
            probs.copy_(torch.softmax(logs, 1))
            return float((probs - before).abs().max())

        return step

    options = {"max_iter": 100, "tol": 1e-9, "accelerate": True}
    first = squarem_by_change(step_of(half, 1), half, all_reduce=lambda sums: 2 * sums, **options)
    assert squarem_by_change(step_of(both, 2), both, **options) == first
    assert torch.allclose(both, torch.cat([half, half]), atol=1e-14)


@given(st.integers(1, 30))
def test_without_an_objective_never_more_steps_than_allowed(max_iter):
    calls, probs = [], torch.full((2, 2), 0.5, dtype=torch.float64)

    def step():
        calls.append(1)
        probs.copy_(torch.softmax(probs.log() + torch.tensor([0.01 * len(calls), 0.0]), 1))
        return 1.0

    passes = squarem_by_change(step, probs, max_iter=max_iter, tol=1e-3, accelerate=True)
    assert len(calls) == passes.n_steps == max_iter


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


def test_entries_that_vanish_do_not_set_the_length_of_weighted_extrapolations():
    """Two entries vanish at a steady rate, while the first nears 1 slowly; each counts for as much as it is worth."""

    def step(state):
        following = torch.stack([1 + 0.9 * (state[0] - 1), 0.4 * state[1], 0.3 * state[2]])
        return Step(following, -float((state[0] - 1) ** 2), float((following - state).abs().max()))

    start = torch.tensor([0.2, 1.0, 1.0], dtype=torch.float64)
    weighted, plain = (
        squarem(step, start, max_iter=500, tol=1e-9, accelerate=True, weighted=weighted) for weighted in (True, False)
    )
    for trace in (weighted, plain):
        assert trace.converged
        assert abs(float(trace.state[0]) - 1) < 1e-7
        assert trace.objectives == sorted(trace.objectives)
    assert weighted.n_steps < 0.7 * plain.n_steps
