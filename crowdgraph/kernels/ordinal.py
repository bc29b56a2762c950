r"""Graders: volunteers who perceive an item's score with a bias and noise of their own, and name the nearest label.

Grader `k` perceives an item of class `j` at :math:`x_j + b_k + s_k \varepsilon` with normal :math:`\varepsilon` and
names the label whose score is nearest (ordered probit):

.. math:: T_{jl}(b, s) = \Phi((\tau_{l+1} - x_j - b) / s) - \Phi((\tau_l - x_j - b) / s),

where :math:`\tau_l` lies midway between the scores of neighbouring labels. A share of the answers is of any label
alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, ndtr

__all__ = ["BIASES", "SCALES", "Graders", "grader_rows", "learn_graders"]

Numbers = NDArray[Any]

# The graders that a crowd is taken to be made of, in units of the mean distance between neighbouring classes.
BIASES = np.linspace(-1.0, 1.0, 9)
SCALES = np.array([0.15, 0.25, 0.4, 0.6, 0.9, 1.3, 2.0, 3.0])
# The share of answers that are of any label alike.
CARELESS = 0.05
# How many answers a grader's rows may count for; the best of these is chosen.
WEIGHTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# So many volunteers at a time, and rounds in which the kinds of graders are counted.
VOLUNTEERS_TOGETHER, COUNTING_ROUNDS = 1_000, 50


class Graders(NamedTuple):
    """What a crowd of graders is like.

    Attributes
    ----------
    own
        The concentration of each volunteer's rows that follows from their own bias and noise, of shape (K, J, L).
    typical
        That of somebody about whom nothing is known, of shape (J, L).
    weight
        How many answers a row counts for.
    bias, scale
        The expected bias and noise of each volunteer, in units of the distance between classes, of shape (K,).
    """

    own: Numbers
    typical: Numbers
    weight: float
    bias: Numbers
    scale: Numbers


def grader_rows(class_scores: Numbers, label_scores: Numbers, bias: Numbers, scale: Numbers) -> Numbers:
    """Return the probability of each label given each class for graders, (G, J, L).

    Parameters
    ----------
    class_scores, label_scores
        The numbers that classes and labels stand for, (J,) and (L,), all different.
    bias, scale
        What the graders add to a score, and the standard deviation of their noise, in the same unit, (G,).
    """
    order = np.argsort(label_scores)
    ranked = label_scores[order]
    thresholds = (ranked[1:] + ranked[:-1]) / 2
    centre = class_scores[None, :, None] + bias[:, None, None]
    below = ndtr((thresholds - centre) / scale[:, None, None])
    cumulative = np.concatenate([np.zeros_like(centre), below, np.ones_like(centre)], axis=2)
    rows = np.empty((len(bias), len(class_scores), len(ranked)))
    rows[..., order] = np.diff(cumulative, axis=2)
    return (1 - CARELESS) * rows + CARELESS / len(ranked)


def learn_graders(counts: Numbers, class_scores: Numbers, label_scores: Numbers) -> Graders:
    """Learn the biases and noises of a crowd from expected counts of labels by class, (K, J, L): empirical Bayes.

    Volunteers are of kinds, a bias and a noise each; how frequent these are, and the weight of their rows, maximise the
    probability of the counts.
    """
    unit = float(np.diff(np.sort(class_scores)).mean())
    bias, scale = (part.ravel() for part in np.meshgrid(BIASES, SCALES, indexing="ij"))
    rows = grader_rows(class_scores, label_scores, unit * bias, unit * scale)
    active = np.flatnonzero(counts.sum(axis=(1, 2)) > 0)
    fits = []
    for weight in WEIGHTS:
        evidence = np.concatenate(
            [np.zeros((0, len(rows)))]
            + [
                _log_evidence(counts[active[first : first + VOLUNTEERS_TOGETHER]], weight * rows)
                for first in range(0, len(active), VOLUNTEERS_TOGETHER)
            ]
        )
        fits.append((*_count_kinds(evidence), weight))
    shares, kinds, _, weight = max(fits, key=lambda fit: fit[2])
    everybody = np.tile(shares, (len(counts), 1))
    everybody[active] = kinds
    return Graders(
        own=weight * np.einsum("kg,gjl->kjl", everybody, rows),
        typical=weight * np.einsum("g,gjl->jl", shares, rows),
        weight=weight,
        bias=everybody @ bias,
        scale=everybody @ scale,
    )


def _log_evidence(counts: Numbers, concentration: Numbers) -> Numbers:
    """Return the log probability of counts, (K, J, L), drawn from Dirichlet rows, (G, J, L), of shape (K, G)."""
    drawn = counts[:, None] + concentration
    rows = gammaln(concentration.sum(axis=2)) - gammaln(drawn.sum(axis=3))
    return np.asarray((rows + (gammaln(drawn) - gammaln(concentration)).sum(axis=3)).sum(axis=2))


def _count_kinds(evidence: Numbers) -> tuple[Numbers, Numbers, float]:
    """Return the shares of the kinds, (G,), each volunteer's probability of them, (K, G), and the log evidence."""
    n_kinds = evidence.shape[1]
    shares = np.full(n_kinds, 1 / n_kinds)
    for _ in range(COUNTING_ROUNDS):
        kinds = np.exp(_normalised(evidence + np.log(shares)))
        # One volunteer more, of any kind alike, so that no kind is ruled out.
        shares = (kinds.sum(axis=0) + 1 / n_kinds) / (len(evidence) + 1)
    joint = evidence + np.log(shares)
    return shares, np.exp(_normalised(joint)), float(logsumexp(joint, axis=1).sum())


def _normalised(logs: Numbers) -> Numbers:
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))
