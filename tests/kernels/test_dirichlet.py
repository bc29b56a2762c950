"""Dirichlet distributions: scipy, Monte Carlo and round trips as oracles."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet, dirichlet_multinomial

from crowdgraph.kernels.dirichlet import (
    concentration_from_mean_logs,
    empirical_bayes_concentration,
    expected_log,
    log_normaliser,
)

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
