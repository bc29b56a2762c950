"""Factors with shrinkage: a log posterior in loops, bounds minimised by SciPy, gradients by torch."""

import math
import warnings
from functools import partial
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.weights import USUAL, compiled, stepping, symmetric_weights
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.stats import gamma, halfnorm

from crowdgraph.kernels import _runtime, nmf
from crowdgraph.kernels.backends import choose_nmf_backend
from crowdgraph.kernels.fixed_point import squarem
from crowdgraph.kernels.nmf import Prior, paired_step, published_step, relevance, symmetric_step
from crowdgraph.tensors.nmf import DenseWeights, SparseWeights

STEPS = {"symmetric": symmetric_step, "paired": paired_step, "published": published_step}
# Which pairs are counts, out of N volunteers.
PAIRS = {
    "symmetric": lambda n: combinations(range(n), 2),
    "paired": lambda n: permutations(range(n), 2),
    "published": lambda n: product(range(n), repeat=2),
}


class Case(NamedTuple):
    """Weights, of shape (N, N), a prior, and how many factors there are and how large."""

    weights: np.ndarray
    prior: Prior
    k: int
    scale: float
    rng: np.random.Generator

    def state(self, kind):
        """Random factors, some of them far from the others."""
        rows = len(self.weights) * (1 if kind == "symmetric" else 2)
        return torch.from_numpy(self.scale * self.rng.lognormal(0, 1.5, (rows, self.k)))


@st.composite
def cases(draw, *, extreme=False):
    wide = 6 if extreme else 1
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, k = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    weights = symmetric_weights(rng, n, draw(st.sampled_from([0.2, 0.6, 1.0]))) * 10 ** draw(st.floats(-wide, wide))
    prior = Prior(1 + 10 ** draw(st.floats(-3, 2)), 10 ** draw(st.floats(-3, 3)))
    return Case(weights, prior, k, 10 ** draw(st.floats(-wide / 2, wide / 2)), rng)


def sparse_tensor(weights):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.from_numpy(weights).to_sparse_csr()


def log_posterior(kind, weights, state, prior):
    """The log density of weights, factors and precisions, each precision the best, which SciPy looks for."""
    left, right = (state, state) if kind == "symmetric" else np.split(state, 2)
    total = 0.0
    for i, j in PAIRS[kind](len(weights)):
        mean = sum(left[i, k] * right[j, k] for k in range(state.shape[1]))
        total += weights[i, j] * math.log(mean) - mean - math.lgamma(weights[i, j] + 1)
    for column in state.T:

        def density(log_precision, column=column):
            precision = math.exp(log_precision)
            own = gamma.logpdf(precision, prior.shape, scale=1 / prior.rate)
            return own + halfnorm.logpdf(column, scale=precision**-0.5).sum()

        middle = math.log(len(column) / (column**2).sum())
        best = minimize_scalar(lambda at: -density(at), bracket=(middle - 1, middle + 1), tol=1e-12)
        total += density(best.x)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("kind", STEPS)
@given(case=cases())
@settings(max_examples=8)
def test_the_objective_is_the_log_posterior(kind, case):
    weights = DenseWeights(torch.from_numpy(case.weights))
    states = [case.state(kind) for _ in range(3)]
    actual = [STEPS[kind](weights, state, case.prior).objective for state in states]
    expected = [log_posterior(kind, case.weights, state.numpy(), case.prior) for state in states]
    scale = np.abs(actual).max() + np.abs(expected).max()
    assert_allclose(np.diff(actual), np.diff(expected), rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("kind", ["symmetric", "paired"])
@pytest.mark.parametrize("extreme", [False, True])
def test_steps_never_lower_the_objective(kind, extreme):
    @given(cases(extreme=extreme), st.booleans())
    @settings(max_examples=25)
    def check(case, sparse):
        weights = SparseWeights(sparse_tensor(case.weights)) if sparse else DenseWeights(torch.from_numpy(case.weights))
        state, objectives = case.state(kind), []
        for _ in range(6):
            state, objective, _ = STEPS[kind](weights, state, case.prior)
            assert torch.isfinite(state).all()
            assert (state > 0).all()
            objectives.append(objective)
        assert np.diff(objectives).min() >= -1e-12 * (np.abs(objectives).max() + case.weights.sum())

    check()


def test_published_steps_lower_the_objective_at_times():
    rng = np.random.default_rng(0)
    weights = DenseWeights(torch.from_numpy(symmetric_weights(rng, 5, 1.0)))
    state, prior = torch.from_numpy(3 * rng.random((10, 2))), Prior(500.0, 1.0)
    first, objective, _ = published_step(weights, state, prior)
    assert published_step(weights, first, prior).objective > objective
    second = published_step(weights, first, prior).state
    assert published_step(weights, second, prior).objective < published_step(weights, first, prior).objective - 1


def test_published_steps_are_as_printed():
    rng = np.random.default_rng(1)
    x, (w, h), (a, b) = symmetric_weights(rng, 4, 1.0), (rng.random((4, 3)), rng.random((3, 4))), (5.0, 2.0)
    following = published_step(
        DenseWeights(torch.from_numpy(x)), torch.from_numpy(np.concatenate([w, h.T])), Prior(a, b)
    ).state.numpy()
    beta = np.diag((4 + a - 1) / (0.5 * ((w**2).sum(0) + (h**2).sum(1)) + b))
    ones = np.ones((4, 4))
    h = h / (w.T @ ones + beta @ h) * (w.T @ (x / (w @ h)))
    w = w / (ones @ h.T + w @ beta) * ((x / (w @ h)) @ h.T)
    assert_allclose(following, np.concatenate([w, h.T]))


def symmetric_bound(weights, new, old, prior):
    """At least the negative log posterior at `new`, up to a constant, and equal to it where `new` is `old`."""
    n, n_columns = old.shape
    total = 0.0
    for (i, j), k in product(combinations(range(n), 2), range(n_columns)):
        share = old[i, k] * old[j, k] / (old[i] @ old[j])
        total -= weights[i, j] * share * math.log(new[i, k] * new[j, k] / share)
        total += 0.5 * (old[j, k] / old[i, k] * new[i, k] ** 2 + old[i, k] / old[j, k] * new[j, k] ** 2)
    return total + prior_bound((new**2).sum(0), (old**2).sum(0), n / 2, prior)


def right_bound(weights, new, old, left, prior):
    """The same for one of two factors, the other being `left`."""
    n, n_columns = old.shape
    total = 0.0
    for (i, j), k in product(permutations(range(n), 2), range(n_columns)):
        share = left[i, k] * old[j, k] / (left[i] @ old[j])
        total += left[i, k] * new[j, k] - weights[i, j] * share * math.log(left[i, k] * new[j, k] / share)
    rest = (left**2).sum(0)
    return total + prior_bound(rest + (new**2).sum(0), rest + (old**2).sum(0), n, prior)


def prior_bound(new, old, half_count, prior):
    """A logarithm is below its tangent."""
    below = old / 2 + prior.rate
    return ((half_count + prior.shape - 1) * (np.log(below) + (new - old) / 2 / below)).sum()


def least(bound, at, index):
    """Where the bound is least in one entry, found by SciPy."""

    def value(log_entry):
        moved = at.copy()
        moved[index] = math.exp(log_entry)
        return bound(moved)

    middle = math.log(at[index])
    return math.exp(minimize_scalar(value, bracket=(middle - 0.5, middle + 0.5), tol=1e-12).x)


@given(cases())
@settings(max_examples=8)
def test_symmetric_steps_minimise_a_bound_that_touches(case):
    weights, old = DenseWeights(torch.from_numpy(case.weights)), case.state("symmetric")
    step = symmetric_step(weights, old, case.prior)

    def bound(new):
        return symmetric_bound(case.weights, new, old.numpy(), case.prior)

    assert_allclose(bound(old.numpy()), -step.objective, rtol=1e-9, atol=1e-9)
    for _ in range(3):
        new = case.state("symmetric")
        objective = symmetric_step(weights, new, case.prior).objective
        assert bound(new.numpy()) >= -objective - 1e-9 * (1 + abs(objective))
    for index in ((0, 0), (len(old) - 1, case.k - 1)):
        assert_allclose(step.state[index], least(bound, old.numpy(), index), rtol=1e-4, atol=1e-5 * case.scale)


@given(cases())
@settings(max_examples=8)
def test_paired_steps_minimise_two_bounds(case):
    weights, state = DenseWeights(torch.from_numpy(case.weights)), case.state("paired")
    left, right = np.split(state.numpy(), 2)
    step = paired_step(weights, state, case.prior)
    new_left, new_right = np.split(step.state.numpy(), 2)
    assert_allclose(right_bound(case.weights, right, right, left, case.prior), -step.objective, rtol=1e-9, atol=1e-9)
    for index in ((0, 0), (len(left) - 1, case.k - 1)):
        best = least(lambda new: right_bound(case.weights, new, right, left, case.prior), right, index)
        assert_allclose(new_right[index], best, rtol=1e-4, atol=1e-5 * case.scale)
        best = least(lambda new: right_bound(case.weights, new, left, new_right, case.prior), left, index)
        assert_allclose(new_left[index], best, rtol=1e-4, atol=1e-5 * case.scale)


def differentiable(kind, weights, state, prior):
    """The log posterior, up to a constant, for torch to differentiate."""
    left, right = (state, state) if kind == "symmetric" else state.tensor_split(2)
    means = left @ right.T
    counted = torch.ones_like(weights).triu(1) if kind == "symmetric" else 1 - torch.eye(len(weights))
    above = len(state) / 2 + prior.shape - 1
    return ((torch.xlogy(weights, means) - means) * counted).sum() - above * torch.log(
        (state**2).sum(0) / 2 + prior.rate
    ).sum()


@pytest.mark.parametrize("kind", ["symmetric", "paired"])
@pytest.mark.parametrize("seed", [0, 2])
def test_ends_are_stationary(kind, seed):
    rng = np.random.default_rng(seed)
    weights, prior = torch.from_numpy(symmetric_weights(rng, 8, 0.7) * 5), USUAL
    start = torch.from_numpy(rng.random((8 if kind == "symmetric" else 16, 3)))
    matrix, n_steps = DenseWeights(weights), 2_000 if kind == "symmetric" else 800
    end = squarem(
        lambda state: STEPS[kind](matrix, state, prior), start, max_iter=n_steps, tol=-1.0, accelerate=True
    ).state.requires_grad_()
    differentiable(kind, weights, end, prior).backward()
    nonzero = end > 1e-6
    assert nonzero.sum() >= 8
    assert end.grad[nonzero].abs().max() < 1e-5
    # What was shrunk away would be worse if there were more of it.
    assert (~nonzero).any()
    assert end.grad[~nonzero].max() < 1e-5


def test_relevance_is_the_inverse_of_the_best_precision():
    squares = torch.tensor([0.0, 3.0], dtype=torch.float64)
    assert_allclose(relevance(squares, 10.0, USUAL), [2 / 14, 3.5 / 14])


@given(cases(), st.integers(1, 3), st.data())
@settings(max_examples=15)
def test_all_ways_to_hold_weights_give_the_same_step(case, n_threads, data):
    weights = case.weights
    unlinked = data.draw(st.sets(st.integers(1, len(weights) - 1), max_size=len(weights) - 2))
    weights[sorted(unlinked - {len(weights) - 1})] = 0
    weights[:, sorted(unlinked - {len(weights) - 1})] = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nmf, "MIN_WEIGHTS_PER_THREAD", 1)
        patch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        forms = [DenseWeights(torch.from_numpy(weights)), SparseWeights(sparse_tensor(weights))]
        both = [compiled(weights, sparse=sparse) for sparse in (False, True)]
        assert all(len(form._row_bounds) == min(n_threads, len(form._values)) + 1 for form in both)
        state = case.state("symmetric")
        expected = symmetric_step(forms[0], state, case.prior)
        assert math.isfinite(expected.change)
        for actual in [
            symmetric_step(forms[1], state, case.prior),
            *(form.symmetric_step(state, case.prior) for form in both),
        ]:
            assert_allclose(actual.state, expected.state, rtol=1e-10)
            assert_allclose(actual.objective, expected.objective, rtol=1e-10, atol=1e-10 * (1 + weights.sum()))
            assert_allclose(actual.change, expected.change, rtol=1e-9, atol=1e-14)
        for kind in ("paired", "published"):
            state = case.state(kind)
            dense, sparse = (STEPS[kind](form, state, case.prior) for form in forms)
            assert torch.isfinite(dense.state).all()
            assert_allclose(sparse.state, dense.state, rtol=1e-10)
            assert_allclose(sparse[1:], dense[1:], rtol=1e-10, atol=1e-10 * (1 + weights.sum()))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_any_number_of_threads_gives_the_same_bits(precision, sparse, monkeypatch):
    weights = symmetric_weights(np.random.default_rng(0), 300, 0.5)
    state = torch.rand(300, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    monkeypatch.setattr(nmf, "MIN_WEIGHTS_PER_THREAD", 1)
    steps = []
    for n_threads in (1, 2, 2, 3):
        monkeypatch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        form = compiled(weights, sparse=sparse, precision=precision)
        assert len(form._row_bounds) == n_threads + 1
        steps.append(form.symmetric_step(state, USUAL))
    for step in steps[1:]:
        assert_array_equal(step.state, steps[0].state)
        assert step[1:] == steps[0][1:]


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_logs_are_as_precise_as_those_of_python(precision):
    """Numbers from the smallest normal one to the largest, and those where fractions begin: near roots of 1/2 and 2."""
    limits, rng = np.finfo(precision), np.random.default_rng(0)
    anywhere = np.exp(rng.uniform(math.log(limits.tiny), math.log(limits.max), 2_000))
    roots = np.array([0.5, 2.0], precision) ** 0.5
    edges = [limits.tiny, limits.max, 1.0, *roots, *np.nextafter(roots, 0), *np.nextafter(roots, 2)]
    near_one = 1 + rng.normal(0, 1e-3, 200)
    numbers = np.concatenate([anywhere, edges, near_one]).astype(precision)
    one = np.ones(1, precision)
    for number in numbers:
        parts = nmf.FloatParts.empty(1, precision)
        parts.values[:] = number
        # Near one, what is lost is the rounding of a number near one.
        assert_allclose(nmf._weighted_log_sum(one, parts), math.log(number), rtol=4e-16, atol=2e-16)
    parts, weights = nmf.FloatParts.empty(len(numbers), precision), rng.random(len(numbers)).astype(precision)
    parts.values[:] = numbers
    terms = [float(weight) * math.log(number) for weight, number in zip(weights, numbers, strict=True)]
    size = sum(abs(term) for term in terms)
    assert_allclose(nmf._weighted_log_sum(weights, parts), math.fsum(terms), rtol=0, atol=1e-14 * size)


@given(cases(), st.booleans())
@settings(max_examples=30)
def test_single_precision_gives_the_same_step_to_single_precision(case, sparse):
    """Sums of at most four products and of at most six quotients: each a few times the rounding of one number."""
    state = case.state("symmetric")
    exact = symmetric_step(DenseWeights(torch.from_numpy(case.weights)), state, case.prior)
    actual = compiled(case.weights, sparse=sparse, precision=np.float32).symmetric_step(state, case.prior)
    few = 16 * np.finfo(np.float32).eps
    assert_allclose(actual.state, exact.state, rtol=few)
    assert_allclose(actual.objective, exact.objective, rtol=1e-9, atol=few * case.weights.sum())
    assert_allclose(actual.change, exact.change, rtol=few, atol=few)


@pytest.mark.parametrize(("scale", "precision"), [(1.0, np.float32), (1e-11, np.float64), (1e11, np.float64)])
def test_rows_are_in_single_precision_where_numbers_are_within_it(scale, precision):
    """Whatever the weights and the factors are, nothing overflows or vanishes."""
    weights = np.array([[0, 1, 0], [1, 0, 1e-30], [0, 1e-30, 0]]) * scale
    chosen = choose_nmf_backend("auto", device="cpu", dtype="auto", symmetric=True, largest=weights.max())
    assert chosen.dtype == torch.from_numpy(np.zeros(0, precision)).dtype
    form = compiled(weights, sparse=True, precision=precision)
    for entry in (1e-300, 1.0, 1e300):
        state = torch.full((3, 2), entry, dtype=torch.float64)
        state[0, 0] = 1.0
        step = form.symmetric_step(state, USUAL)
        assert math.isfinite(step.objective)
        assert torch.isfinite(step.state).all()
        assert (step.state >= nmf.TINY).all()


@pytest.mark.parametrize("kind", ["symmetric", "compiled", "paired", "published"])
def test_volunteers_with_next_to_no_weights_do_not_keep_the_iteration_going(kind):
    """Their factors are below what steps reckon with, or nothing at all, but their shares settle."""
    rng = np.random.default_rng(0)
    weights = np.kron(np.eye(2), np.ones((4, 4))) * 20
    np.fill_diagonal(weights, 0)
    # The last of each block is hardly linked, one more not at all.
    weights[3::4] *= 1e-30
    weights[:, 3::4] *= 1e-30
    weights = np.pad(weights, (0, 1))
    if kind == "compiled":
        step = stepping(weights)
    else:
        matrix = DenseWeights(torch.from_numpy(weights))
        step = partial(STEPS[kind], matrix, prior=USUAL)
    start = torch.from_numpy(rng.random((9 if kind in ("symmetric", "compiled") else 18, 2)))
    trace = squarem(step, start, max_iter=2_000, tol=1e-6, accelerate=False)
    assert trace.converged
    shares = trace.state[:9] / trace.state[:9].sum(1, keepdim=True)
    assert_allclose(shares[8], 0.5)
    # The weak ones belong where those that they are linked with do.
    assert_array_equal(shares[:8].argmax(1), shares[[0, 4]].argmax(1).repeat_interleave(4))
    assert shares[0].argmax() != shares[4].argmax()
    assert shares[:8].max(1).values.min() > 0.9


def test_the_hub_of_a_star_is_not_held_down():
    n = 600
    weights = np.zeros((n, n))
    weights[0, 1:] = weights[1:, 0] = 30.0
    matrix, prior = compiled(weights, sparse=True), USUAL
    start = torch.full((n, 1), 1.0, dtype=torch.float64)
    end = squarem(lambda state: matrix.symmetric_step(state, prior), start, max_iter=300, tol=-1.0, accelerate=True)
    assert end.state.max() > 100 * 30**0.5
    assert end.state.max() < matrix.max_factor / 10


def test_constants_keep_products_within_the_numbers():
    """The least factors, the largest weights and the most extreme extrapolations: nothing overflows or vanishes."""
    for scale in (1e-20, 1e200):
        weights = torch.tensor([[0, scale, 0], [scale, 0, scale], [0, scale, 0]], dtype=torch.float64)
        for entry in (1e-300, 1e300):
            for kind, step in STEPS.items():
                state = torch.full((3 if kind == "symmetric" else 6, 2), entry, dtype=torch.float64)
                state[0, 0] = 1.0
                following = step(DenseWeights(weights), state, USUAL)
                assert math.isfinite(following.objective)
                assert torch.isfinite(following.state).all()
                assert (following.state >= nmf.TINY).all()
