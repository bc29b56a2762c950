"""Tests of links: how likely chance gives two volunteers as many common items, or a link as much of the weight."""

from __future__ import annotations

from math import copysign, erfc, exp, expm1, lgamma, log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdgraph.errors import FitError
from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel

__all__ = [
    "ConfigurationModel",
    "common_items_p_values",
    "configuration_model",
    "disparity_p_values",
    "hypergeometric_p_values",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# No p-value is below the smallest normal number, so that none is zero.
SMALLEST = float(np.finfo(np.float64).tiny)
# The configuration model reproduces degrees to this share of themselves.
TOLERANCE = 1e-10
MAX_ITERATIONS = 200
# Eigenvalues of the scaled Hessian below this are directions in which nothing changes.
NULL_EIGENVALUE = 1e-13
# The largest change of a logarithm in one step.
MAX_STEP = 5.0
# Up to this number of items times common items, the recursion is as fast as the saddlepoint and exact.
MAX_RECURSION = 4096
# The saddlepoint formula is 0 / 0 at the mean; closer to it than this, in standard deviations, its limit is used.
NEAR_MEAN = 0.02
# Terms of a tail below this share of their sum are left out.
NEGLIGIBLE = 1e-17


class ConfigurationModel(NamedTuple):
    """The maximum-entropy model of who answers what, given everybody's and every item's number of answers.

    Volunteers with as many answers have the same probabilities, and so have items.

    Attributes
    ----------
    probs
        The probability that a volunteer of a class answers an item of a class, of shape (A, B).
    volunteer_class
        The class of each volunteer, of shape (V,); it means nothing for volunteers without items.
    items_per_class
        The number of items of each class, of shape (B,).
    """

    probs: Floats
    volunteer_class: Integers
    items_per_class: Integers


# The configuration model


def configuration_model(n_items: Integers, n_volunteers: Integers) -> ConfigurationModel:
    r"""Return the probabilities :math:`p_{vi} = x_v y_i / (1 + x_v y_i)` that reproduce both degree sequences.

    :math:`\sum_i p_{vi}` is the number of items of volunteer `v`, :math:`\sum_v p_{vi}` the number of volunteers of
    item `i`. They are solved by Newton's method for :math:`\theta = \ln x` and :math:`\phi = \ln y`, one for each
    distinct degree, which minimise the convex :math:`\sum_{vi} \ln(1 + e^{\theta_v + \phi_i}) - \sum_v d_v \theta_v -
    \sum_i k_i \phi_i`. Where a volunteer answered everything or an item was answered by everybody, the logarithm grows
    until the probabilities are one to within the tolerance.

    Parameters
    ----------
    n_items
        How many items each volunteer answered, of shape (V,). Those who answered none are not part of the model.
    n_volunteers
        How many volunteers answered each item, of shape (N,), likewise.
    """
    degree, size = np.unique(n_items[n_items > 0], return_counts=True)
    item_degree, item_size = np.unique(n_volunteers[n_volunteers > 0], return_counts=True)
    half_log_total = 0.5 * np.log(max(n_items.sum(), 1))
    theta, phi = np.log(degree) - half_log_total, np.log(item_degree) - half_log_total
    for _ in range(MAX_ITERATIONS):
        probs = _logistic(theta, phi)
        lacking = degree - probs @ item_size  # d_v - sum_i p_vi
        item_lacking = item_degree - size @ probs  # k_i - sum_v p_vi
        if max(_largest(lacking / degree), _largest(item_lacking / item_degree)) <= TOLERANCE:
            return ConfigurationModel(probs, np.searchsorted(degree, n_items), item_size)
        step = _newton_step(probs, size, item_size, size * lacking, item_size * item_lacking)
        shorten = min(1.0, MAX_STEP / max(_largest(step[0]), _largest(step[1]), SMALLEST))
        before = _objective(theta, phi, degree, item_degree, size, item_size)
        while True:
            new = theta + shorten * step[0], phi + shorten * step[1]
            # Rounding may make the objective seem to grow at the minimum.
            if _objective(*new, degree, item_degree, size, item_size) <= before + 1e-12 * abs(before):
                break
            shorten /= 2
        theta, phi = new
    raise FitError(
        f"The configuration model did not reproduce the numbers of answers in {MAX_ITERATIONS} steps; validate links "
        'by method="hypergeometric".'
    )


def _logistic(theta: Floats, phi: Floats) -> Floats:
    """Return p = x y / (1 + x y) of all pairs of classes."""
    return np.asarray(1 / (1 + np.exp(-(theta[:, None] + phi))))


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


def _objective(
    theta: Floats, phi: Floats, degree: Integers, item_degree: Integers, size: Integers, item_size: Integers
) -> float:
    """Return the negative log-likelihood of the degrees, which the model minimises."""
    log_partition = size @ np.logaddexp(0, theta[:, None] + phi) @ item_size
    return float(log_partition - (size * degree) @ theta - (item_size * item_degree) @ phi)


def _newton_step(
    probs: Floats, size: Integers, item_size: Integers, descent: Floats, item_descent: Floats
) -> tuple[Floats, Floats]:
    """Solve the Hessian for a descent; classes of volunteers are eliminated, so that only those of items remain."""
    mixed = size[:, None] * item_size * (probs * (1 - probs))  # d2L / dtheta dphi
    own, item_own = mixed.sum(axis=1), mixed.sum(axis=0)  # the diagonals d2L / dtheta2 and d2L / dphi2
    schur = np.diag(item_own) - mixed.T @ (mixed / own[:, None])
    scale = np.sqrt(item_own)
    right = (item_descent - mixed.T @ (descent / own)) / scale
    # theta + a and phi - a are the same model, so the matrix is singular.
    values, vectors = np.linalg.eigh(schur / scale[:, None] / scale)
    inverse = np.where(values > NULL_EIGENVALUE, 1 / np.maximum(values, NULL_EIGENVALUE), 0)
    item_step = vectors @ (inverse * (vectors.T @ right)) / scale
    return (descent - mixed @ item_step) / own, item_step


# Common items


def common_items_p_values(model: ConfigurationModel, left: Integers, right: Integers, common: Integers) -> Floats:
    r"""Return how likely each pair of volunteers has as many common items or more under the configuration model.

    The number of common items is the sum of independent draws with probabilities :math:`q_i = p_{vi} p_{wi}`
    (Poisson-binomial). Its tail is exact for one common item and for few items, and otherwise by a saddlepoint with
    terms of second order; see `_saddlepoint_tail`.

    Parameters
    ----------
    model
        The configuration model.
    left, right
        The volunteers of each pair, of shape (P,).
    common
        How many items they have in common, of shape (P,), at least one.
    """
    classes = model.volunteer_class
    low, high = np.minimum(classes[left], classes[right]), np.maximum(classes[left], classes[right])
    cases, case_of = _distinct(low, high, common)
    tails = np.empty(len(cases))
    bounds = chunk_bounds(len(cases), at_most=max(len(cases), 1))
    sizes = np.ascontiguousarray(model.items_per_class, dtype=np.float64)

    def run(chunk: int) -> None:
        part = slice(bounds[chunk], bounds[chunk + 1])
        _poisson_binomial_tails(model.probs, sizes, cases[part], tails[part], MAX_RECURSION)

    with compile_notice("the test of links"):
        in_parallel(run, len(bounds) - 1)
    return np.asarray(tails[case_of])


def hypergeometric_p_values(n_items: Integers, left: Integers, right: Integers, common: Integers, total: int) -> Floats:
    r"""Return how likely each pair has as many common items or more if both draw theirs from all, each as likely.

    .. math:: P(X \ge c) = \sum_{k \ge c} \binom{d_v}{k} \binom{N - d_v}{d_w - k} \Big/ \binom{N}{d_w}

    Parameters
    ----------
    n_items
        How many items each volunteer answered, of shape (V,).
    left, right
        The volunteers of each pair, of shape (P,).
    common
        How many items they have in common, of shape (P,), at least one.
    total
        The number of items.
    """
    low, high = np.minimum(n_items[left], n_items[right]), np.maximum(n_items[left], n_items[right])
    cases, case_of = _distinct(low, high, common)
    with compile_notice("the test of links"):
        return np.asarray(_hypergeometric_tails(cases, total)[case_of])


def _distinct(low: Integers, high: Integers, common: Integers) -> tuple[Integers, Integers]:
    """Return the distinct cases, of shape (C, 3), and the case of each pair."""
    n_common, n_high = int(common.max(initial=0)) + 1, int(high.max(initial=0)) + 1
    key = (low.astype(np.int64) * n_high + high) * n_common + common.astype(np.int64)
    keys, case_of = np.unique(key, return_inverse=True)
    pair, count = np.divmod(keys, n_common)
    return np.column_stack([*np.divmod(pair, n_high), count]), case_of


@njit(cache=True, error_model="numpy", nogil=True)
def _poisson_binomial_tails(
    probs: Floats, sizes: Floats, cases: Integers, tails: Floats, max_recursion: int
) -> None:  # pragma: no cover - compiled
    total = sizes.sum()
    for row in range(len(cases)):
        first, second, common = cases[row]
        # Sure answers are one minus the tolerance of the model; one itself has no logarithm of its odds.
        q = np.minimum(probs[first] * probs[second], 1 - 1e-15)
        if common == 1:
            tail = _any_tail(q, sizes)
        elif common * total <= max_recursion or common >= total:
            tail = _recursive_tail(q, sizes, common)
        else:
            tail = _saddlepoint_tail(q, sizes, common)
        tails[row] = min(max(tail, SMALLEST), 1.0)


@njit(cache=True, error_model="numpy", nogil=True)
def _any_tail(q: Floats, sizes: Floats) -> float:  # pragma: no cover - compiled
    """Return P(X >= 1) = 1 - prod (1 - q)."""
    log_none = 0.0
    for b in range(len(q)):
        log_none += sizes[b] * log1p(-q[b])
    return -expm1(log_none)


@njit(cache=True, error_model="numpy", nogil=True)
def _recursive_tail(q: Floats, sizes: Floats, common: int) -> float:  # pragma: no cover - compiled
    """Return P(X >= c), adding one item at a time; all terms are positive, so small tails are as exact."""
    mass = np.zeros(common)  # P(X = 0), ..., P(X = c - 1)
    mass[0] = 1.0
    tail = 0.0
    for b in range(len(q)):
        for _ in range(int(sizes[b])):
            tail += mass[common - 1] * q[b]
            for k in range(common - 1, 0, -1):
                mass[k] = mass[k] * (1 - q[b]) + mass[k - 1] * q[b]
            mass[0] *= 1 - q[b]
    return tail


@njit(cache=True, error_model="numpy", nogil=True)
def _cumulants(q: Floats, sizes: Floats, s: float) -> tuple[float, float]:  # pragma: no cover - compiled
    """Return K'(s) and K''(s), where K(s) = sum ln(1 - q + q e^s)."""
    z, mean, variance = exp(s), 0.0, 0.0
    for b in range(len(q)):
        tilted = q[b] * z / (1 - q[b] + q[b] * z)
        mean += sizes[b] * tilted
        variance += sizes[b] * tilted * (1 - tilted)
    return mean, variance


@njit(cache=True, error_model="numpy", nogil=True)
def _saddlepoint(q: Floats, sizes: Floats, common: int) -> float:  # pragma: no cover - compiled
    """Solve K'(s) = c by Newton's method for ln K', within bounds that close in."""
    mean, _ = _cumulants(q, sizes, 0.0)
    s = log(common / mean)  # exact where all q are small
    low, high = -100.0, 700.0
    for _ in range(100):
        value, slope = _cumulants(q, sizes, s)
        if abs(value - common) <= 1e-12 * common:
            break
        if value < common:
            low = s
        else:
            high = s
        s += log(common / value) * value / slope
        if not low < s < high:
            s = (low + high) / 2
    return s


@njit(cache=True, error_model="numpy", nogil=True)
def _saddlepoint_tail(q: Floats, sizes: Floats, common: int) -> float:  # pragma: no cover - compiled
    r"""Return P(X >= c) by the formula of Lugannani and Rice for whole numbers, with terms of second order.

    The tail is the integral of :math:`e^{K(s) - s c} h(s)` with :math:`h(s) = 1 / (1 - e^{-s})` over a line through the
    saddlepoint :math:`K'(s) = c`. With :math:`w^2 / 2 = s c - K(s)` and standardised cumulants :math:`\lambda` at s,

    .. math:: P(X \ge c) \approx 1 - \Phi(w) + \varphi(w) \Big[\frac{h}{\sqrt{K''}} \Big(1 + \frac{\lambda_4}{8}
        - \frac{5 \lambda_3^2}{24}\Big) + \frac{\lambda_3 h'}{2 K''} - \frac{h''}{2 K''^{3/2}} - \frac{1}{w}
        + \frac{1}{w^3}\Big].
    """
    s = _saddlepoint(q, sizes, common)
    z = exp(s)
    k0, k2, k3, k4 = 0.0, 0.0, 0.0, 0.0
    for b in range(len(q)):
        tilted = q[b] * z / (1 - q[b] + q[b] * z)
        variance = tilted * (1 - tilted)
        k0 += sizes[b] * log1p(q[b] * expm1(s))  # K(s)
        k2 += sizes[b] * variance  # K''(s)
        k3 += sizes[b] * variance * (1 - 2 * tilted)  # K'''(s)
        k4 += sizes[b] * variance * (1 - 6 * variance)  # K''''(s)
    sigma = sqrt(k2)
    skewness, kurtosis = k3 / k2**1.5, k4 / k2**2  # lambda_3, lambda_4
    w = copysign(sqrt(max(2 * (s * common - k0), 0.0)), s)
    if abs(w) < NEAR_MEAN:
        series = 1 / (2 * sigma) - skewness / 6  # the limit for s -> 0, without terms of second order
    else:
        h = -1 / expm1(-s)
        h1 = -exp(-s) * h**2  # h'
        h2 = exp(-s) * (1 + exp(-s)) * h**3  # h''
        series = h / sigma * (1 + kurtosis / 8 - 5 * skewness**2 / 24)
        series += skewness * h1 / (2 * k2) - h2 / (2 * sigma**3) - 1 / w + 1 / w**3
    tail: float = 0.5 * erfc(w / sqrt(2)) + exp(-(w**2) / 2) / sqrt(2 * pi) * series
    return tail


@njit(cache=True, error_model="numpy", nogil=True)
def _hypergeometric_tails(cases: Integers, total: int) -> Floats:  # pragma: no cover - compiled
    tails = np.empty(len(cases))
    for row in range(len(cases)):
        first, second, common = cases[row]
        if common * total > first * second:  # more than the mean
            tail = _hypergeometric_sum(first, second, common, total, 1)
        else:
            tail = 1 - _hypergeometric_sum(first, second, common - 1, total, -1)
        tails[row] = min(max(tail, SMALLEST), 1.0)
    return tails


@njit(cache=True, error_model="numpy", nogil=True)
def _hypergeometric_sum(
    first: int, second: int, common: int, total: int, step: int
) -> float:  # pragma: no cover - compiled
    """Return the probability of so many common items and of more (step 1) or fewer (step -1)."""
    rest = total - first - second
    if common < max(0, -rest):
        return 0.0
    # ln of the probability of exactly c common items
    term = exp(
        _log_binomial(first, common) + _log_binomial(total - first, second - common) - _log_binomial(total, second)
    )
    tail, k = 0.0, common
    while term > NEGLIGIBLE * tail:
        tail += term
        if step > 0:
            term *= (first - k) * (second - k) / ((k + 1.0) * (rest + k + 1.0))  # times P(k + 1) / P(k)
        else:
            term *= k * float(rest + k) / ((first - k + 1.0) * (second - k + 1.0))  # times P(k - 1) / P(k)
        k += step
    return tail


@njit(cache=True, error_model="numpy", nogil=True)
def _log_binomial(n: int, k: int) -> float:  # pragma: no cover - compiled
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


# Weighted links


def disparity_p_values(weights: Floats, left: Integers, right: Integers, n_volunteers: int) -> Floats:
    r"""Return how likely each link has as large a share of the weights of one of its ends.

    If a volunteer's strength :math:`s` were split over :math:`k` links at random, a share of :math:`w / s` or more
    has the probability :math:`(1 - w / s)^{k - 1}`. The smaller of both ends counts, times two, since two are tried.
    """
    ends = np.concatenate([left, right])
    strength = np.bincount(ends, np.concatenate([weights, weights]), n_volunteers)
    degree = np.bincount(ends, minlength=n_volunteers)
    shares = np.minimum(weights / strength[np.stack([left, right])], 1.0)
    of_end = (1 - shares) ** (degree[np.stack([left, right])] - 1)  # one where the link is the only one
    return np.asarray(np.clip(2 * of_end.min(axis=0, initial=1.0), SMALLEST, 1.0))
