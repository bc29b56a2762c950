"""Special functions agree with scipy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln, polygamma

from crowdgraph.kernels.special import digamma_and_log_gamma, trigamma


@given(st.floats(1e-8, 1e12))
def test_agrees_with_scipy(x):
    got_digamma, got_log_gamma = digamma_and_log_gamma(x)
    assert np.isclose(got_digamma, digamma(x), rtol=1e-14, atol=1e-14)
    assert np.isclose(got_log_gamma, gammaln(x), rtol=1e-14, atol=1e-14 * (1 + abs(np.log(x))))


def test_known_values():
    assert np.isclose(digamma_and_log_gamma(1.0)[0], -np.euler_gamma, rtol=1e-15)
    assert abs(digamma_and_log_gamma(2.0)[1]) < 1e-14
    assert np.isclose(digamma_and_log_gamma(0.5)[1], 0.5 * np.log(np.pi), rtol=1e-14)


@given(st.floats(1e-6, 1e9))
def test_trigamma(x):
    assert np.isclose(trigamma(x), polygamma(1, x), rtol=1e-12)
