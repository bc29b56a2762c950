r"""Evidence about items, discounted because answers about one item depend on each other.

What makes an item hard is shared by all who answer. If answers about an item have the intraclass correlation
:math:`\rho` given its class, `n` of them carry as much information as :math:`n / (1 + \rho (n - 1))` independent ones.
So the log odds are multiplied by

.. math:: T_i = \frac{1}{1 + \rho (n_i - 1)}, \qquad
          \ln p_{ij} = T_i \Big( \ln \kappa_j + \sum_{\text{answers}} \ln E[\pi^{(k)}_{j, \text{label}}] \Big) +
          \text{const}.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

__all__ = ["discounted_probs", "evenness_guard", "item_discount", "learn_correlation", "log_evidence"]

Numbers = NDArray[Any]

# The correlation that suits real crowds of all kinds (half of them have more, half less), and how far, on the scale of
# its logarithm, a crowd may be from it before gold must show it.
TYPICAL_CORRELATION, LOG_SPREAD = 0.5, 1.0
# Keeps the logarithm of no correlation finite.
LOG_SHIFT = 0.02
# The weight of equal class proportions beside the estimated ones, which dependence exaggerates: classes that are rare
# vanish from them.
EVEN_WEIGHT = 1 / 3
MIN_PROBABILITY = 1e-300


def log_evidence(log_rows: Numbers, item: Numbers, n_items: int) -> Numbers:
    """Return the sum of the answers' log probabilities given each class, (R, J), for every item, of shape (N, J)."""
    return np.stack([np.bincount(item, column, minlength=n_items) for column in log_rows.T], axis=1)


def item_discount(n_answers: Numbers, correlation: float) -> Numbers:
    """Return the factor of each item's log odds, of shape (N,); items with one answer or none are not discounted."""
    return np.asarray(1 / (1 + correlation * (np.maximum(n_answers, 1) - 1)))


def evenness_guard(class_probs: Numbers, *, possible: Numbers) -> Numbers:
    """Return class proportions moved a third of the way to equal ones of the `possible` classes, (J,), a mask."""
    return np.asarray((1 - EVEN_WEIGHT) * class_probs + EVEN_WEIGHT * possible / possible.sum())


def discounted_probs(evidence: Numbers, n_answers: Numbers, class_probs: Numbers, correlation: float) -> Numbers:
    """Return the class probabilities of items from discounted evidence, of shape (N, J)."""
    return np.asarray(np.exp(_log_probs(evidence, n_answers, class_probs, correlation)))


def learn_correlation(evidence: Numbers, n_answers: Numbers, class_probs: Numbers, truth: Numbers) -> float:
    """Return the correlation between 0 and 1 under which known classes are most probable.

    A log-normal prior around the typical correlation decides where few classes are known.

    Parameters
    ----------
    evidence
        The log probabilities of the answers about each item given each class, of shape (N, J), from confusion that has
        not seen the item's class.
    n_answers, truth
        How many answers each item has, and the codes of the classes, each of shape (N,).
    class_probs
        The proportion of each class, of shape (J,).
    """
    rows = np.arange(len(truth))

    def loss(correlation: float) -> float:
        log_probs = _log_probs(evidence, n_answers, class_probs, correlation)[rows, truth]
        distance = np.log((correlation + LOG_SHIFT) / (TYPICAL_CORRELATION + LOG_SHIFT)) / LOG_SPREAD
        return float(distance**2 / 2 - log_probs.sum())

    # The loss may have more than one dip; the best of a grid is refined between its neighbours.
    grid = np.linspace(0.0, 1.0, 41)
    best = int(np.argmin([loss(value) for value in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    refined = float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-5}).x)
    return min((float(grid[best]), refined), key=loss)


def _log_probs(evidence: Numbers, n_answers: Numbers, class_probs: Numbers, correlation: float) -> Numbers:
    prior = np.log(np.maximum(class_probs, MIN_PROBABILITY))
    return np.asarray(log_softmax(item_discount(n_answers, correlation)[:, None] * (evidence + prior), axis=1))
