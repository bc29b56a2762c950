r"""Pairs who err together more often than hard items explain: covariances of errors beside one common factor.

If an item's difficulty :math:`d_i` moves everybody's probability of an error, each by an amount of their own, then the
errors of two who answer independently have the covariance :math:`\lambda_m \lambda_n` given the class. The loadings
:math:`\lambda \ge 0` of two are estimated by least squares from the covariances of all other pairs, so what is left of
their own, :math:`C_{mn} - \lambda_m \lambda_n`, is what they share beyond what everybody's errors explain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Moments", "excess_covariance", "pair_moments"]

Numbers = NDArray[Any]

# Steps of the least squares, each of which updates all loadings in turn.
N_SWEEPS = 200
# Below this share of the largest, loadings are zero and do not move with the covariances.
NEGLIGIBLE = 1e-6


class Moments(NamedTuple):
    """Covariances of the errors of pairs about items of one class, and what each item adds to them.

    Attributes
    ----------
    weight
        The number of items, weighted by the probability of the class, of shape (P,).
    covariance
        The covariance of each pair's errors, of shape (P,).
    first_variance, second_variance
        The variance of the errors of each member of a pair about the same items, of shape (P,).
    deviation, first_deviation, second_deviation
        By how much each item moves the covariance and the variances, of shape (N, P); they sum to zero over the items.
    """

    weight: Numbers
    covariance: Numbers
    first_variance: Numbers
    second_variance: Numbers
    deviation: Numbers
    first_deviation: Numbers
    second_deviation: Numbers


def pair_moments(error: Numbers, answered: Numbers, probs: Numbers, first: Numbers, second: Numbers) -> Moments:
    """Return the covariances of the errors of pairs about their common items.

    Parameters
    ----------
    error
        Each answer's error if the item is of the class, from 0 to 1, of shape (V, N).
    answered
        Who answered which item, of shape (V, N).
    probs
        The probability of the class for each item, of shape (N,).
    first, second
        The members of each pair, of shape (P,).
    """
    weights = (answered[first] & answered[second]).T * probs[:, None]
    total = weights.sum(axis=0)
    share = weights / np.where(total > 0, total, 1.0)
    one, other = (error[side].T - (share * error[side].T).sum(axis=0) for side in (first, second))
    moments = []
    for product in (one * other, one**2, other**2):
        mean = (share * product).sum(axis=0)
        moments.append((mean, share * (product - mean)))
    (covariance, own), (first_variance, left), (second_variance, right) = moments
    return Moments(total, covariance, first_variance, second_variance, own, left, right)


def excess_covariance(
    moments: Moments, first: Numbers, second: Numbers, together: Numbers, *, n_volunteers: int
) -> tuple[Numbers, Numbers]:
    """Return the covariance of each pair beyond what the others' errors explain, (P,), and what items add, (N, P).

    Parameters
    ----------
    moments
        The covariances.
    first, second
        The members of each pair, of shape (P,).
    together
        The pairs that err together, of shape (P,), from which no loading is estimated.
    n_volunteers
        How many volunteers there are.
    """
    n_pairs = len(first)
    fit_weight = np.where(together, 0.0, moments.weight)
    weights = np.repeat(fit_weight[None], n_pairs, axis=0)
    np.fill_diagonal(weights, 0.0)
    loadings = _loadings(moments.covariance, weights, first, second, n_volunteers)
    gradient = np.eye(n_pairs)
    rows = np.arange(n_pairs)
    for pair in range(n_pairs):
        own = loadings[pair]
        free = own > NEGLIGIBLE * own.max()
        if not free.any():
            continue
        slopes = np.zeros((n_pairs, n_volunteers))
        slopes[rows, first], slopes[rows, second] = own[second], own[first]
        slopes = slopes[:, free]
        weighted = slopes * weights[pair][:, None]
        gradient[pair] -= slopes[pair] @ np.linalg.pinv(slopes.T @ weighted, hermitian=True) @ weighted.T
    expected = loadings[rows, first] * loadings[rows, second]
    return moments.covariance - expected, moments.deviation @ gradient.T


def _loadings(covariance: Numbers, weights: Numbers, first: Numbers, second: Numbers, n_volunteers: int) -> Numbers:
    """Return loadings of shape (F, V) that minimise the weighted squared error of the covariances in F fits, (F, P)."""
    n_fits = len(weights)
    square = np.zeros((n_fits, n_volunteers, n_volunteers))
    square[:, first, second] = square[:, second, first] = weights
    target = np.zeros((n_volunteers, n_volunteers))
    target[first, second] = target[second, first] = covariance
    products = square * target
    total = weights.sum(axis=1)
    mean = (weights @ covariance) / np.where(total > 0, total, 1.0)
    loadings = np.repeat(np.sqrt(np.maximum(mean, 0.0))[:, None], n_volunteers, axis=1)
    for _ in range(N_SWEEPS):
        for one in range(n_volunteers):
            scale = (square[:, one] * loadings**2).sum(axis=1)
            value = (products[:, one] * loadings).sum(axis=1) / np.where(scale > 0, scale, 1.0)
            loadings[:, one] = np.where(scale > 0, np.maximum(value, 0.0), 0.0)
    return loadings
