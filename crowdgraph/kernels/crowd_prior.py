r"""A prior of confusion matrices that a crowd sets itself, and how uncertain it leaves its volunteers.

Every volunteer `k` has an accuracy :math:`a_k \sim \text{Beta}(\mu \phi, (1 - \mu) \phi)`, and rows that scatter around
the one-coin matrix of that accuracy, :math:`\pi_{kj} \sim \text{Dirichlet}(s \, m_j(a_k))`: correct labels share
:math:`a_k`, all others :math:`1 - a_k`, both in proportion to how often the crowd uses them. The crowd sets
:math:`\mu`, :math:`\phi` and `s`. Neither weight grows beyond a few answers, so that volunteers who are unlike the
others can show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import digamma, gammaln

__all__ = [
    "CrowdWeights",
    "answer_effects",
    "class_variance",
    "honest_totals",
    "known_variance",
    "learn_crowd_weights",
    "one_coin_rows",
    "widened_totals",
]

Numbers = NDArray[Any]

# The crowd's accuracy counts for as many answers as these, at least and at most.
MIN_ACCURACY_WEIGHT, MAX_ACCURACY_WEIGHT = 1.0, 8.0
# A volunteer's one-coin matrix counts for as many answers a row as these, at least and at most.
MIN_ROW_WEIGHT, MAX_ROW_WEIGHT = 1.0, 16.0
# Answers assumed beforehand, three of four correct, so that accuracies are neither 0 nor 1.
ASSUMED_RIGHT, ASSUMED_ANSWERS = 3.0, 4.0
# Answers, over all rows, that a volunteer's prior takes for possible beside those that they always give.
MIN_OTHER_ANSWERS = 0.5
# No label is impossible.
MIN_LABEL_PROBABILITY = 1e-3
# More volunteers hardly change what is learned.
MAX_SAMPLED_VOLUNTEERS = 5_000
# The distance from an approximate minimum in which the root of the slope is looked for.
ROOT_MARGIN = 1e-3
# The logarithm of a weight that was learned before changes by less than this, if few answers are new.
NEAR = 0.05
# The least concentration of a row; less would put everything on single labels.
MIN_TOTAL = 0.5
# At most this share of what answers say about a volunteer is lost because classes are uncertain.
MAX_MISSING = 0.8
# Answers that are looked at together: few enough to stay in the cache.
ANSWERS_PER_CHUNK = 2**14


@dataclass(frozen=True)
class CrowdWeights:
    """What the crowd says about its volunteers.

    Attributes
    ----------
    accuracy, accuracy_weight
        The mean of the volunteers' accuracies, and how many answers it counts for.
    row_weight
        How many answers the one-coin matrix of a volunteer counts for, in each row.
    """

    accuracy: float
    accuracy_weight: float
    row_weight: float

    @property
    def total(self) -> float:
        """The concentration of a newcomer's row: it has the variance of the accuracy and that of the row around it."""
        accuracy_share = 1 / (self.accuracy_weight + 1)
        return 1 / (accuracy_share + (1 - accuracy_share) / (self.row_weight + 1)) - 1


def learn_crowd_weights(
    counts: Numbers, is_correct: Numbers, class_noise: Numbers, *, near: float | None = None
) -> CrowdWeights:
    r"""Learn accuracy and weights from expected counts by empirical Bayes.

    The accuracy's weight follows from moments. Right answers :math:`R_k` are expected ones, so the variance of the
    unknown classes is added to theirs:

    .. math:: E[(R_k / n_k - \mu)^2] + v_k / n_k^2 = \frac{\mu (1 - \mu)}{n_k}
              \Big(1 + \frac{n_k - 1}{\phi + 1}\Big).

    The weight of rows maximises the Dirichlet-multinomial evidence of the counts around each volunteer's own matrix.

    Parameters
    ----------
    counts
        Expected numbers of answers by volunteer, class and label, of shape (K, J, L).
    is_correct
        Whether a label is correct for a class, of shape (J, L).
    class_noise
        The variance of each volunteer's number of right answers that is due to unknown classes, of shape (K,).
    near
        The weight of rows that was learned from fewer answers, near which the new one is looked for first.
    """
    answers = counts.sum(axis=(1, 2))
    active = np.flatnonzero(answers > 0)
    counts, answers, noise = counts[active], answers[active], class_noise[active]
    right = (counts * is_correct).sum(axis=(1, 2))
    mean = float((right.sum() + ASSUMED_RIGHT) / (answers.sum() + ASSUMED_ANSWERS))
    binomial = mean * (1 - mean)
    excess = float((answers * ((right / answers - mean) ** 2 + noise / answers**2)).sum()) - binomial * len(answers)
    # Expected counts add up to whole numbers of answers but for rounding, which must not pass for second answers.
    n_second = float((answers - 1).sum())
    share = excess / (binomial * n_second) if n_second > 0.5 else 0.0
    accuracy_weight = 1 / float(np.clip(share, 1 / (MAX_ACCURACY_WEIGHT + 1), 1 / (MIN_ACCURACY_WEIGHT + 1))) - 1
    initial = CrowdWeights(mean, accuracy_weight, MAX_ROW_WEIGHT)
    sample = counts[:: 1 + len(counts) // MAX_SAMPLED_VOLUNTEERS]
    centres = one_coin_rows(sample, is_correct, initial, label_use=counts.sum(axis=(0, 1)), pooled=True)

    def missing_evidence(log_weight: float) -> float:
        alpha = np.exp(log_weight) * centres
        total = alpha.sum(axis=2)
        rows = gammaln(total) - gammaln(total + sample.sum(axis=2))
        return -float((gammaln(alpha + sample) - gammaln(alpha)).sum() + rows.sum())

    def slope(log_weight: float) -> float:
        alpha = np.exp(log_weight) * centres
        total = alpha.sum(axis=2)
        rows = total * (digamma(total) - digamma(total + sample.sum(axis=2)))
        return -float((alpha * (digamma(alpha + sample) - digamma(alpha))).sum() + rows.sum())

    if not len(sample):
        return initial
    bounds = (float(np.log(MIN_ROW_WEIGHT)), float(np.log(MAX_ROW_WEIGHT)))

    def minimum_around(log_weight: float, margin: float) -> float | None:
        """Return the minimum within a margin, if it is there, by the slope.

        Rounding decides about the last digits of a minimum, but not of a root.
        """
        below, above = max(log_weight - margin, bounds[0]), min(log_weight + margin, bounds[1])
        falls, rises = slope(below) < 0, slope(above) > 0
        if falls and rises:
            return float(brentq(slope, below, above, xtol=1e-13))
        if falls and above == bounds[1]:
            return above
        return below if rises and below == bounds[0] else None

    best = None if near is None else minimum_around(float(np.log(near)), NEAR)
    if best is None:
        lowest = float(minimize_scalar(missing_evidence, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)
        best = minimum_around(lowest, ROOT_MARGIN)
        best = lowest if best is None else best
    return CrowdWeights(mean, accuracy_weight, float(np.exp(best)))


def one_coin_rows(
    counts: Numbers, is_correct: Numbers, weights: CrowdWeights, *, label_use: Numbers, pooled: bool = False
) -> Numbers:
    """Return the one-coin matrix of each volunteer, of shape (K, J, L), at their own accuracy.

    The accuracy is the posterior mean given the counts. Answers to items of one class share what is special about the
    volunteer's row, so `n` of them say as much about the accuracy as `n (s + 1) / (s + n)`; with `pooled`, as all `n`.

    Parameters
    ----------
    counts
        Expected numbers of answers, of shape (K, J, L).
    is_correct
        Whether a label is correct for a class, of shape (J, L).
    weights
        What the crowd says about its volunteers.
    label_use
        How often the crowd uses each label, of shape (L,).
    pooled
        Whether rows are taken to be alike.
    """
    by_class, right = counts.sum(axis=2), (counts * is_correct).sum(axis=2)
    worth = 1.0 if pooled else (weights.row_weight + 1) / (weights.row_weight + by_class)
    n_right, n_answers = (worth * right).sum(axis=1), (worth * by_class).sum(axis=1)
    accuracy = (n_right + weights.accuracy_weight * weights.accuracy) / (n_answers + weights.accuracy_weight)
    # Nobody is so good, or so bad, that half an answer among all rows could not have been otherwise.
    margin = min(0.5, MIN_OTHER_ANSWERS / (weights.row_weight * counts.shape[1]))
    accuracy = np.clip(accuracy, margin, 1 - margin)
    use = label_use + 1.0
    correct, wrong = _shares(np.where(is_correct, use, 0.0)), _shares(np.where(is_correct, 0.0, use))
    rows = accuracy[:, None, None] * correct + (1 - accuracy)[:, None, None] * wrong
    rows = np.maximum(rows, MIN_LABEL_PROBABILITY)
    return np.asarray(rows / rows.sum(axis=2, keepdims=True))


def _shares(values: Numbers) -> Numbers:
    """Return rows as shares; equal shares for rows of zeros."""
    totals = values.sum(axis=1, keepdims=True)
    return np.asarray(np.where(totals > 0, values / np.where(totals > 0, totals, 1.0), 1 / values.shape[1]))


def class_variance(
    volunteer: Numbers,
    item: Numbers,
    label: Numbers,
    probs: Numbers,
    effect: Numbers,
    *,
    n_volunteers: int,
    share: Numbers | None = None,
) -> Numbers:
    """Return by how much a volunteer's sum of effects varies because the classes of items are unknown, of shape (K,).

    Parameters
    ----------
    volunteer, item, label
        The answers, each of shape (R,).
    probs
        The class probabilities of the items, of shape (N, J).
    effect
        What an answer adds if its item has a class, by volunteer, class and label, of shape (1 or K, J, L).
    n_volunteers
        K.
    share
        How much each answer counts, of shape (R,), if not one. Soft answers are answers with each of their labels; the
        mean of the labels' variances is at most too large.
    """
    variance = np.zeros(n_volunteers)
    for first in range(0, len(volunteer), ANSWERS_PER_CHUNK):
        chunk = slice(first, first + ANSWERS_PER_CHUNK)
        who = volunteer[chunk]
        values = effect[who if len(effect) > 1 else np.zeros_like(who), :, label[chunk]]
        weights = probs[item[chunk]]
        mean = (weights * values).sum(axis=1)
        own = (weights * values**2).sum(axis=1) - mean**2
        variance += np.bincount(who, own if share is None else share[chunk] * own, minlength=n_volunteers)
    return np.maximum(variance, 0.0)


def known_variance(
    rows: Numbers, totals: Numbers, is_correct: Numbers, class_probs: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the shares of correct labels by class, (n, J), and the accuracy's variance if classes were known, (n,).

    Parameters
    ----------
    rows, totals
        The means, of shape (n, J, L), and the concentrations, of shape (n, J), of Dirichlet rows.
    is_correct, class_probs
        Whether a label is correct for a class, of shape (J, L), and the proportion of each class, of shape (J,).
    """
    right = (rows * is_correct).sum(axis=2)
    return right, np.maximum((right * (1 - right) / (totals + 1)) @ class_probs**2, np.finfo(float).tiny)


def answer_effects(right: Numbers, totals: Numbers, is_correct: Numbers, class_probs: Numbers) -> Numbers:
    """Return what an answer adds to the accuracy if its item has a class, by label, of shape (n, J, L)."""
    return np.asarray((class_probs / totals)[:, :, None] * (is_correct - right[:, :, None]))


def honest_totals(
    rows: Numbers,
    totals: Numbers,
    is_correct: Numbers,
    class_probs: Numbers,
    *,
    weights: CrowdWeights | None,
    variance_of: Any,
    doubt: Numbers | float = 0.0,
) -> Numbers:
    r"""Return the concentrations of rows, of shape (K, J), at which the interval of a volunteer's accuracy holds.

    Rows of known classes around a known centre have the variance of their Dirichlets, :math:`V`. Two things add to it:
    the centre, which was estimated from the same answers, and the classes, which are not known. The information that
    unknown classes cost is the variance that they give to the estimate (Louis 1982), so that
    :math:`V / (1 - \text{missing share})` is left. All rows of a volunteer are widened alike.

    Parameters
    ----------
    rows, totals
        The expected confusion, of shape (K, J, L), and the concentration of its rows, of shape (K, J).
    is_correct
        Whether a label is correct for a class, of shape (J, L).
    class_probs
        The proportion of each class, of shape (J,).
    weights
        What the crowd says about its volunteers; None if the centres of rows were given and not learned.
    variance_of
        A function that returns `class_variance` for the effects of answers.
    doubt
        Further variance of each volunteer's accuracy, of shape (K,).
    """
    right, known = known_variance(rows, totals, is_correct, class_probs)
    effect = answer_effects(right, totals, is_correct, class_probs)
    accuracy = right @ class_probs
    centre = np.zeros(len(rows))
    if weights is not None:
        strength = weights.row_weight
        worth = (strength + 1) / totals
        n_answers = ((totals - strength) * worth).sum(axis=1) + weights.accuracy_weight
        pull = (strength / totals) @ class_probs
        centre = pull**2 * accuracy * (1 - accuracy) / (n_answers + 1)
        effect = effect + (pull / n_answers)[:, None, None] * worth[:, :, None] * (is_correct - accuracy[:, None, None])
    variance = known + centre
    missing = np.minimum(variance_of(effect) / variance, MAX_MISSING)
    return widened_totals(totals, (variance / (1 - missing) + doubt) / known)


def widened_totals(totals: Numbers, widening: Numbers) -> Numbers:
    """Return the concentrations of rows, of shape (n, J), whose variances are `widening` times as large, (n,)."""
    return np.asarray(np.maximum((totals + 1) / widening[:, None] - 1, np.minimum(totals, MIN_TOTAL)))
