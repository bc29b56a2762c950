"""The one Dirichlet of a crowd without communities: SciPy's likelihood, finite differences and known parameters."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial

from crowdgraph.kernels.dirichlet import max_likelihood_concentration


def fitted(counts):
    return max_likelihood_concentration(torch.tensor(np.asarray(counts, dtype=float))).numpy()


def height(counts, alpha):
    """The log likelihood of one class's counts, (K, L), but for a constant."""
    alpha, totals = np.asarray(alpha), counts.sum(axis=1)
    people = gammaln(alpha.sum()) - gammaln(totals + alpha.sum())
    return (people + (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)).sum()


def sample(rng, alpha, n_people, n_answers):
    rows = rng.dirichlet(alpha, n_people)
    return rng.multinomial(np.broadcast_to(n_answers, n_people), rows / rows.sum(axis=1, keepdims=True))


def test_the_oracle_is_scipys_likelihood():
    counts = sample(np.random.default_rng(0), [2.0, 1.0, 0.5], 20, 7)
    gaps = [
        sum(dirichlet_multinomial.logpmf(row, np.array(alpha), 7) for row in counts) - height(counts, alpha)
        for alpha in ([1.0, 1.0, 1.0], [3.0, 0.2, 9.0])
    ]
    assert_allclose(*gaps)


@pytest.mark.parametrize("spread", [0.5, 5.0, 20.0, 100.0])
@pytest.mark.parametrize("n_answers", [10, 50, 10**6])
def test_known_parameters_are_found(spread, n_answers):
    rng = np.random.default_rng(3)
    alpha = spread * np.array([[0.7, 0.2, 0.1], [0.15, 0.35, 0.5]])
    counts = np.stack([sample(rng, row, 4_000, n_answers) for row in alpha], axis=1)
    result = fitted(counts)
    shares = alpha / spread
    assert_allclose(result / result.sum(axis=1, keepdims=True), shares, rtol=0.1)
    # Ten answers tell little about how alike people are who are very much so.
    assert_allclose(result.sum(axis=1), spread, rtol=0.35 if spread > 10 * n_answers / 2 else 0.12)


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 5), st.sampled_from([0.3, 2.0, 15.0]))
def test_the_likelihood_is_flat_at_the_optimum_and_lower_around_it(seed, n_people, n_labels, spread):
    rng = np.random.default_rng(seed)
    alpha = spread * rng.dirichlet(np.ones(n_labels))
    counts = sample(rng, np.maximum(alpha, 1e-3), n_people, rng.choice([1, 4, 30, 2_000], n_people))
    result = fitted(counts[:, None])[0]
    used = counts.any(axis=0)
    assert_array_equal(result > 0, used)
    counts, result = counts[:, used], result[used]
    best = height(counts, result)
    step = 1e-4
    # Rows of people who differ no more than chance makes them grow large, and so does the rounding of the heights.
    rounding = 1e-14 * n_people * abs(gammaln(result.sum() + counts.sum()))
    for label in range(len(result)):
        nudge = np.zeros(len(result))
        nudge[label] = step
        above, below = height(counts, result * np.exp(nudge)), height(counts, result * np.exp(-nudge))
        assert abs(above - below) < 2 * step * 1e-4 * n_people + rounding
    for nudge in rng.normal(0, 0.3, (10, len(result))):
        assert height(counts, result * np.exp(nudge)) < best + 1e-3 + rounding


def test_labels_that_nobody_used_and_classes_that_nobody_met():
    result = fitted([[[3, 0], [0, 0]], [[5, 0], [0, 0]]])
    assert result[0, 0] > 0
    assert result[0, 1] == 0
    assert_array_equal(result[1], 1)
    assert_array_equal(fitted([[[3]], [[0]]]), [[1]])
    assert_array_equal(fitted(np.zeros((4, 1, 3))), np.ones((1, 3)))


def test_people_who_are_all_alike_and_people_who_are_as_different_as_can_be():
    alike = fitted(np.broadcast_to([[30, 10]], (50, 1, 2)))[0]
    assert alike.sum() > 1e4
    assert_allclose(alike / alike.sum(), [0.75, 0.25], rtol=1e-3)
    apart = fitted([[[10**6, 0]], [[0, 10**6]], [[10**6, 0]]])[0]
    assert apart.sum() < 1e-3
    assert_allclose(apart / apart.sum(), [2 / 3, 1 / 3], rtol=0.01)
    assert np.isfinite(fitted([[[10**6, 0]], [[10**6, 1]]])).all()


def test_one_answer_each_tells_the_shares_only():
    result = fitted(np.eye(2)[[0, 0, 0, 1]][:, None])[0]
    assert_allclose(result, [1.5, 0.5])
