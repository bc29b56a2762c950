"""The sampler of Gibbs-IBCC draws from the distributions that it should."""

import numpy as np
from scipy.stats import dirichlet, kstest

from crowdgraph.kernels.gibbs import _sample_log_dirichlet


def test_draws_of_a_dirichlet_are_distributed_as_scipys():
    """As logarithms, small concentrations included."""
    rng = np.random.default_rng(0)
    alpha, out = np.array([0.05, 0.7, 3.0]), np.empty(3)
    draws = np.empty((4_000, 3))
    for row in draws:
        _sample_log_dirichlet(rng, alpha, out)
        row[:] = out
    assert np.allclose(np.exp(draws).sum(axis=1), 1)
    other = dirichlet.rvs(alpha, size=4_000, random_state=1)
    for index in range(3):
        assert kstest(np.exp(draws[:, index]), other[:, index]).pvalue > 1e-3
