"""Tests of links against SciPy, exact convolution and formulas written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import hypergeom

from crowdgraph.errors import FitError
from crowdgraph.kernels import link_tests
from crowdgraph.kernels.link_tests import (
    ConfigurationModel,
    common_items_p_values,
    configuration_model,
    disparity_p_values,
    hypergeometric_p_values,
)

seeds = st.integers(0, 2**32)


def random_answers(seed):
    """Who answered what: at random, with heavy tails, nested, or with parts in which everybody answered everything."""
    rng = np.random.default_rng(seed)
    n_volunteers, n_items = rng.integers(1, 15, 2)
    kind = rng.integers(4)
    if kind == 0:
        answered = rng.random((n_volunteers, n_items)) < rng.random()
    elif kind == 1:
        answered = rng.random((n_volunteers, n_items)) < np.outer(rng.random(n_volunteers) ** 3, rng.random(n_items))
    elif kind == 2:
        answered = rng.integers(0, n_items + 1, n_volunteers)[:, None] > np.arange(n_items)
    else:
        answered = rng.random((n_volunteers, n_items)) < 0.5
        first, last = rng.integers(0, n_volunteers + 1), rng.integers(0, n_items + 1)
        answered[:first, :last], answered[first:, last:] = True, False
    answered[0, 0] = True
    return answered


@given(seeds)
def test_the_configuration_model_reproduces_both_degree_sequences(seed):
    answered = random_answers(seed)
    n_items, n_volunteers = answered.sum(axis=1), answered.sum(axis=0)
    model = configuration_model(n_items, n_volunteers)
    active = n_items > 0
    expected = (model.probs @ model.items_per_class)[model.volunteer_class]
    assert_allclose(expected[active], n_items[active], atol=1e-8)
    degrees, sizes = np.unique(n_items[active], return_counts=True)
    item_degrees, item_sizes = np.unique(n_volunteers[n_volunteers > 0], return_counts=True)
    assert_allclose(sizes @ model.probs, item_degrees, atol=1e-8)
    assert_array_equal(model.items_per_class, item_sizes)
    assert model.probs.shape == (len(degrees), len(item_degrees))


def test_the_configuration_model_has_the_odds_of_a_product():
    rng = np.random.default_rng(0)
    answered = rng.random((60, 90)) < np.outer(rng.random(60), rng.random(90))
    odds = np.log(configuration_model(answered.sum(axis=1), answered.sum(axis=0)).probs)
    odds -= np.log1p(-np.exp(odds))
    # ln x_v + ln y_i: no interaction remains after the means of rows and columns.
    rest = odds - odds.mean(axis=0) - odds.mean(axis=1, keepdims=True) + odds.mean()
    assert_allclose(rest, 0, atol=1e-8)


def convolved_tails(q):
    """P(X >= c) for all c from 0, by multiplying out the distributions of single items."""
    mass = np.ones(1)
    for chance in q:
        mass = np.convolve(mass, [1 - chance, chance])
    return np.cumsum(mass[::-1])[::-1]


def pair_of(q_by_class, sizes):
    """A model of two volunteers of one class, whose chance to meet on an item of a class is given."""
    return ConfigurationModel(np.sqrt(np.array([q_by_class])), np.zeros(2, dtype=np.int64), np.asarray(sizes))


def tails(model, counts):
    return common_items_p_values(model, np.zeros(len(counts), int), np.ones(len(counts), int), np.asarray(counts))


@given(seeds)
def test_few_items_have_the_exact_tail(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, rng.integers(1, 6))
    q = rng.random(len(sizes)) ** rng.integers(1, 6)
    counts = np.arange(1, sizes.sum() + 1)
    exact = convolved_tails(np.repeat(q, sizes))[1:]
    assert_allclose(tails(pair_of(q, sizes), counts), exact, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("mean", [0.01, 0.2, 1, 5, 40, 300])
def test_many_items_have_the_tail_within_a_fifth_of_a_percent(mean):
    """Sums of 4,000 draws with heavy-tailed probabilities, against convolution, to tails of 1e-13 and beyond."""
    rng = np.random.default_rng(0)
    sizes = rng.multinomial(4_000, np.full(20, 1 / 20))
    q = rng.pareto(1.5, 20)
    q = np.minimum(q * mean / (q @ sizes), 0.9)
    mean, deviation = q @ sizes, np.sqrt((q * (1 - q)) @ sizes)
    counts = np.unique(np.maximum(1, [1, 2, 3, 4, 6, *(mean + deviation * np.linspace(-3, 8, 40)).astype(int)]))
    exact = convolved_tails(np.repeat(q, sizes))[counts]
    result = tails(pair_of(q, sizes), counts)
    worth = exact > 1e-280
    assert_allclose(result[worth], exact[worth], rtol=2e-3)
    assert result[counts == 1] == pytest.approx(exact[counts == 1], rel=1e-10)
    assert (np.diff(result) <= 0).all()


def test_tails_beyond_the_smallest_number_are_not_zero():
    result = tails(pair_of([1e-6], [10_000]), [100, 5_000, 10_000, 10_001])
    assert (result > 0).all()
    assert_allclose(result[1:], np.finfo(float).tiny)


def test_sure_answers_leave_no_surprise():
    """Volunteers who both answered everything meet everywhere."""
    model = configuration_model(np.array([6, 6, 2]), np.array([3, 3, 2, 2, 2, 2]))
    pairs = np.array([0, 0]), np.array([1, 2])
    assert_allclose(common_items_p_values(model, *pairs, np.array([6, 2])), [1, 1], atol=1e-6)


@given(seeds)
def test_hypergeometric_is_scipys(seed):
    rng = np.random.default_rng(seed)
    total = int(rng.integers(1, 3_000))
    n_items = rng.integers(1, total + 1, 6)
    left, right = np.triu_indices(6, 1)
    most = np.minimum(n_items[left], n_items[right])
    common = rng.integers(np.maximum(1, n_items[left] + n_items[right] - total), most + 1)
    expected = hypergeom.sf(common - 1, total, n_items[left], n_items[right])
    result = hypergeometric_p_values(n_items, left, right, common, total)
    assert_allclose(result, np.maximum(expected, np.finfo(float).tiny), rtol=1e-8)


@given(seeds)
def test_disparity_is_the_integral_over_random_splits(seed):
    """A volunteer's strength cut at random into k parts: the share of one part is above x with (1 - x)^(k - 1)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    upper = np.triu(rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.6), 1)
    left, right = np.nonzero(upper)
    weights = upper + upper.T
    expected = []
    for one, other in zip(left, right, strict=True):
        ends = []
        for end in (one, other):
            degree = np.count_nonzero(weights[end])
            share = weights[one, other] / weights[end].sum()
            ends.append(1.0 if degree == 1 else (1 - share) ** (degree - 1))
        expected.append(min(1, 2 * min(ends)))
    assert_allclose(disparity_p_values(upper[left, right], left, right, n), expected, rtol=1e-9)


def test_random_splits_are_as_likely_as_disparity_says():
    """Shares of Dirichlet splits are beyond their p-value as often as it says."""
    rng = np.random.default_rng(1)
    n_leaves, n_draws = 6, 4_000
    centres = np.repeat(np.arange(n_draws), n_leaves)
    leaves = n_draws + np.arange(n_draws * n_leaves)
    weights = rng.dirichlet(np.ones(n_leaves), n_draws).ravel()
    p_values = disparity_p_values(weights, centres, leaves, n_draws * (n_leaves + 1)) / 2
    for level in (0.01, 0.1, 0.4):
        assert np.mean(p_values <= level) == pytest.approx(level, rel=0.15)


def test_a_model_that_is_not_reached_in_time_is_an_error(monkeypatch):
    monkeypatch.setattr(link_tests, "MAX_ITERATIONS", 1)
    with pytest.raises(
        FitError, match=r"did not reproduce the numbers of answers in 1 steps; .*method=\"hypergeometric\"\."
    ):
        configuration_model(np.array([3, 2, 1]), np.array([3, 2, 1]))
