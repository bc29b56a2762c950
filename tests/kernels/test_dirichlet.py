"""Dirichlet distributions: scipy, Monte Carlo and round trips as oracles."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet, dirichlet_multinomial

from crowdgraph.kernels.dirichlet import (
    concentration_from_mean_logs,
    empirical_bayes_concentration,
    max_likelihood_concentration,
)
from crowdgraph.tensors import expected_log, log_normaliser

rows = st.lists(st.floats(0.05, 500), min_size=2, max_size=6)


@given(rows)
def test_expectations_agree_with_scipy(row):
    alpha = np.array(row)
    got = expected_log(torch.tensor(row, dtype=torch.float64), axis=0).numpy()
    assert np.allclose(got, digamma(alpha) - digamma(alpha.sum()), rtol=1e-12)
    norm = float(log_normaliser(torch.tensor(row, dtype=torch.float64), axis=0))
    assert np.isclose(norm, gammaln(alpha).sum() - gammaln(alpha.sum()), rtol=1e-12, atol=1e-10)


def test_expected_log_is_the_mean_of_draws():
    alpha = np.array([0.7, 2.0, 5.0])
    draws = np.log(dirichlet.rvs(alpha, size=200_000, random_state=0))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(expected_log(torch.tensor(alpha), axis=0).numpy() - draws.mean(axis=0)) < 5 * error).all()


@given(rows, st.floats(0.1, 10))
def test_best_concentration_finds_the_dirichlet_that_made_the_logarithms(row, factor):
    alpha = torch.tensor([row], dtype=torch.float64)
    logs = expected_log(alpha, axis=1)
    estimate = concentration_from_mean_logs(logs, torch.full_like(alpha, factor))
    assert torch.allclose(expected_log(estimate, axis=1), logs, rtol=1e-9, atol=1e-9)
    assert torch.allclose(estimate, alpha, rtol=1e-5)


def test_best_concentration_is_of_greatest_likelihood():
    """No nearby concentration makes drawn rows more probable."""
    samples = dirichlet.rvs([2.0, 0.5, 4.0], size=50, random_state=1)
    logs = torch.tensor(np.log(samples).mean(axis=0)[None])
    estimate = concentration_from_mean_logs(logs, torch.ones(1, 3, dtype=torch.float64))[0].numpy()
    best = sum(dirichlet.logpdf(row, estimate) for row in samples)
    for nudge in np.random.default_rng(0).normal(0, 0.02, (50, 3)):
        assert sum(dirichlet.logpdf(row, estimate * np.exp(nudge)) for row in samples) < best


def test_shared_concentration_is_of_greatest_likelihood():
    """Of the counts of many people drawn from one Dirichlet; no nearby concentration makes them more probable."""
    rng = np.random.default_rng(2)
    rows = rng.dirichlet([3.0, 1.0, 0.5], 400)
    counts = np.array([rng.multinomial(10, row) for row in rows])
    prior = torch.ones(1, 3, dtype=torch.float64)
    estimate = empirical_bayes_concentration(torch.from_numpy(counts[:, None].astype(float)), prior)[0].numpy()
    assert np.allclose(estimate, [3, 1, 0.5], rtol=0.25)

    def height(alpha):
        logs = digamma(np.ones(3)) - digamma(3.0)
        return (
            dirichlet_multinomial.logpmf(counts, alpha, 10).sum()
            + ((alpha - 1) * logs).sum()
            - gammaln(alpha).sum()
            + gammaln(alpha.sum())
        )

    for nudge in rng.normal(0, 0.03, (30, 3)):
        assert height(estimate * np.exp(nudge)) < height(estimate)


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
def test_best_concentration_from_far_starts(start):
    logs = expected_log(torch.tensor([[0.1, 30.0], [4.0, 4.0]], dtype=torch.float64), axis=1)
    estimate = concentration_from_mean_logs(logs, torch.full((2, 2), start, dtype=torch.float64))
    assert torch.allclose(estimate, torch.tensor([[0.1, 30.0], [4.0, 4.0]], dtype=torch.float64), rtol=1e-6)


# The one Dirichlet of a crowd without communities: SciPy's likelihood, finite differences and known parameters.


def fitted_concentration(counts):
    return max_likelihood_concentration(torch.tensor(np.asarray(counts, dtype=float))).numpy()


def log_likelihood(counts, alpha):
    """The log likelihood of one class's counts, (K, L), but for a constant."""
    alpha, totals = np.asarray(alpha), counts.sum(axis=1)
    people = gammaln(alpha.sum()) - gammaln(totals + alpha.sum())
    return (people + (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)).sum()


def sampled_counts(rng, alpha, n_people, n_answers):
    rows = rng.dirichlet(alpha, n_people)
    return rng.multinomial(np.broadcast_to(n_answers, n_people), rows / rows.sum(axis=1, keepdims=True))


def test_the_oracle_is_scipys_likelihood():
    counts = sampled_counts(np.random.default_rng(0), [2.0, 1.0, 0.5], 20, 7)
    gaps = [
        sum(dirichlet_multinomial.logpmf(row, np.array(alpha), 7) for row in counts) - log_likelihood(counts, alpha)
        for alpha in ([1.0, 1.0, 1.0], [3.0, 0.2, 9.0])
    ]
    assert_allclose(*gaps)


@pytest.mark.parametrize("spread", [0.5, 5.0, 20.0, 100.0])
@pytest.mark.parametrize("n_answers", [10, 50, 10**6])
def test_known_parameters_are_found(spread, n_answers):
    rng = np.random.default_rng(3)
    alpha = spread * np.array([[0.7, 0.2, 0.1], [0.15, 0.35, 0.5]])
    counts = np.stack([sampled_counts(rng, row, 4_000, n_answers) for row in alpha], axis=1)
    result = fitted_concentration(counts)
    shares = alpha / spread
    assert_allclose(result / result.sum(axis=1, keepdims=True), shares, rtol=0.1)
    # Ten answers tell little about how alike people are who are very much so.
    assert_allclose(result.sum(axis=1), spread, rtol=0.35 if spread > 10 * n_answers / 2 else 0.12)


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 5), st.sampled_from([0.3, 2.0, 15.0]))
def test_the_likelihood_is_flat_at_the_optimum_and_lower_around_it(seed, n_people, n_labels, spread):
    rng = np.random.default_rng(seed)
    alpha = spread * rng.dirichlet(np.ones(n_labels))
    counts = sampled_counts(rng, np.maximum(alpha, 1e-3), n_people, rng.choice([1, 4, 30, 2_000], n_people))
    result = fitted_concentration(counts[:, None])[0]
    used = counts.any(axis=0)
    assert_array_equal(result > 0, used)
    counts, result = counts[:, used], result[used]
    best = log_likelihood(counts, result)
    step = 1e-4
    # Rows of people who differ no more than chance makes them grow large, and so does the rounding of the heights.
    rounding = 1e-14 * n_people * abs(gammaln(result.sum() + counts.sum()))
    for label in range(len(result)):
        nudge = np.zeros(len(result))
        nudge[label] = step
        above, below = log_likelihood(counts, result * np.exp(nudge)), log_likelihood(counts, result * np.exp(-nudge))
        assert abs(above - below) < 2 * step * 1e-4 * n_people + rounding
    for nudge in rng.normal(0, 0.3, (10, len(result))):
        assert log_likelihood(counts, result * np.exp(nudge)) < best + 1e-3 + rounding


def test_labels_that_nobody_used_and_classes_that_nobody_met():
    result = fitted_concentration([[[3, 0], [0, 0]], [[5, 0], [0, 0]]])
    assert result[0, 0] > 0
    assert result[0, 1] == 0
    assert_array_equal(result[1], 1)
    assert_array_equal(fitted_concentration([[[3]], [[0]]]), [[1]])
    assert_array_equal(fitted_concentration(np.zeros((4, 1, 3))), np.ones((1, 3)))


def test_people_who_are_all_alike_and_people_who_are_as_different_as_can_be():
    alike = fitted_concentration(np.broadcast_to([[30, 10]], (50, 1, 2)))[0]
    assert alike.sum() > 1e4
    assert_allclose(alike / alike.sum(), [0.75, 0.25], rtol=1e-3)
    apart = fitted_concentration([[[10**6, 0]], [[0, 10**6]], [[10**6, 0]]])[0]
    assert apart.sum() < 1e-3
    assert_allclose(apart / apart.sum(), [2 / 3, 1 / 3], rtol=0.01)
    assert np.isfinite(fitted_concentration([[[10**6, 0]], [[10**6, 1]]])).all()


def test_one_answer_each_tells_the_shares_only():
    result = fitted_concentration(np.eye(2)[[0, 0, 0, 1]][:, None])[0]
    assert_allclose(result, [1.5, 0.5])


def test_fewer_steps_than_are_needed_still_rise():
    """What was reached is returned, and no step lowers the objective."""
    mean_logs = expected_log(torch.tensor([[0.2, 30.0, 4.0]], dtype=torch.float64), axis=1)
    start = torch.ones(1, 3, dtype=torch.float64)
    reached = [concentration_from_mean_logs(mean_logs, start, n_steps=n) for n in range(6)]
    objectives = [float(((one - 1) * mean_logs).sum() - log_normaliser(one, axis=1)) for one in reached]
    assert objectives == sorted(objectives)
    assert objectives[0] < objectives[-1]
    counts = torch.tensor(sampled_counts(np.random.default_rng(0), np.array([0.5, 3.0]), 40, 20), dtype=torch.float64)
    counts = counts.reshape(len(counts), 1, 2)
    gains = [
        log_likelihood(counts.numpy()[:, 0], max_likelihood_concentration(counts, n_steps=n).numpy()[0])
        for n in (1, 2, 50)
    ]
    assert gains == sorted(gains)
