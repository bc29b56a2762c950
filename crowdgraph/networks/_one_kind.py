"""A crowd of one kind: volunteers who differ by degrees, as a logistic-normal distribution of confusion matrices.

The distribution has the mean and the covariance of the crowd, between labels and between classes, so that crowds drawn
from it differ as the volunteers do, along the same directions (who is good at one class is often good at another), but
without gaps between groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array

# With more answers than this, the share of each label is taken to be its probability.
MAX_DRAWN_ANSWERS = 1e9
# At least so many volunteers are simulated to fit the distribution, in so many steps for its covariance and its spread.
N_SIMULATED, N_COVARIANCE_STEPS, N_SPREAD_STEPS = 1000, 8, 6
# With more classes times labels than this, the rows of different classes are taken to be independent, and only as many
# volunteers as there are are simulated.
MAX_JOINT = 64
# The part of a difference that a step corrects, since covariances act on answers more than in proportion.
STEP = 0.8
# A step changes the variance of a class by this factor at most.
MAX_FACTOR = 2.0
# Directions in which the variance is less than this share of the largest are taken for the noise of few volunteers.
MIN_VARIANCE = 0.2
# Labels that nobody gives still have a small share.
SMALL = 1e-3


class OneKind(NamedTuple):
    """A logistic-normal distribution of the rows of confusion matrices.

    Attributes
    ----------
    mean
        The mean of the logarithms of the rows, of shape (J, L).
    covariance
        Their covariance, of shape (1, J L, J L), or (J, L, L) if the rows of different classes are independent.
    """

    mean: Array
    covariance: Array

    def rows(self, normal: Array) -> Array:
        """Return rows, of shape (V, J, L), from standard normal variables, of shape (V, J L)."""
        values, vectors = np.linalg.eigh(self.covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        blocks = normal.reshape(len(normal), *values.shape)
        logs = np.einsum("bij,vbj->vbi", roots, blocks).reshape(-1, *self.mean.shape) + self.mean
        rows = np.exp(logs - logs.max(axis=2, keepdims=True))
        return np.asarray(rows / rows.sum(axis=2, keepdims=True))


def fit_one_kind(evidence: Array, others: Array) -> OneKind:
    """Fit the distribution such that crowds drawn from it have the mean, covariance and spread of this crowd.

    Answers blur how volunteers differ. The distribution is found by simulating crowds with as many answers: first the
    mean and the covariance of the logarithms of their shares are corrected, of which the main directions remain; then
    for each class the variance of the square roots of expected confusion, half the mean distance of two volunteers.

    Parameters
    ----------
    evidence
        The number of answers of each volunteer, by class and label, of shape (V, J, L).
    others
        The rest of the concentrations, such as the prior, of the same shape.
    """
    n_labels = evidence.shape[2]
    usual = evidence.sum(axis=0) + SMALL
    usual = usual / usual.sum(axis=1, keepdims=True)
    n_copies = 1 if usual.size > MAX_JOINT else -(-N_SIMULATED // len(evidence))
    totals, rest = np.tile(evidence.sum(axis=2), (n_copies, 1)), np.tile(others, (n_copies, 1, 1))
    # The same random numbers in every step, so that only the distribution makes a difference.
    normal = _standardised(np.random.default_rng(0).standard_normal((len(totals), usual.size)))

    def answers(kind: OneKind) -> Array:
        return sample_answers(totals, kind.rows(normal), np.random.default_rng(1))

    mean, covariance = _moments(evidence, usual)
    spread = _spread(evidence + others)
    kind = OneKind(mean, covariance)
    for _ in range(N_COVARIANCE_STEPS):
        simulated_mean, simulated_covariance = _moments(answers(kind), usual)
        kind = OneKind(
            kind.mean + mean - simulated_mean,
            _nearest_covariance(kind.covariance + STEP * (covariance - simulated_covariance)),
        )
    kind = kind._replace(covariance=_main_directions(kind.covariance))
    for _ in range(N_SPREAD_STEPS):
        simulated = _spread(answers(kind) + rest)
        ratio = np.divide(spread, simulated, out=np.ones_like(spread), where=simulated > 0)
        scale = np.repeat(np.sqrt(ratio.clip(1 / MAX_FACTOR, MAX_FACTOR)), n_labels).reshape(covariance.shape[:2])
        kind = kind._replace(covariance=kind.covariance * scale[:, :, None] * scale[:, None, :])
        kind = kind._replace(mean=kind.mean + mean - _moments(answers(kind), usual)[0])
    return kind


def sample_answers(totals: Array, rows: Array, rng: np.random.Generator) -> Array:
    """Draw `totals` answers, (V, J), from rows, (V, J, L): integer counts, and one more answer for the fraction."""
    integer = np.floor(totals)
    counts = rng.multinomial(np.minimum(integer, MAX_DRAWN_ANSWERS).astype(np.int64), rows)
    fraction = rng.multinomial(1, rows) * (totals - integer)[..., None]
    return np.asarray(np.where(integer[..., None] > MAX_DRAWN_ANSWERS, totals[..., None] * rows, counts + fraction))


def _standardised(normal: Array) -> Array:
    """Return normal variables with a mean of exactly zero and, where there are enough, exactly unit covariance."""
    centred: Array = normal - normal.mean(axis=0)
    if len(centred) <= 2 * centred.shape[1]:
        return centred
    root = np.linalg.cholesky(centred.T @ centred / len(centred))
    return np.asarray(np.linalg.solve(root, centred.T).T)


def _moments(answers: Array, usual: Array) -> tuple[Array, Array]:
    """Return mean and covariance of the centred logarithms of shares, where everybody has one usual answer more."""
    logs = np.log(answers + usual)
    logs = logs - logs.mean(axis=2, keepdims=True)
    mean = logs.mean(axis=0)
    blocks = (logs - mean) if usual.size > MAX_JOINT else (logs - mean).reshape(len(logs), 1, -1)
    return mean, np.asarray(np.einsum("vbi,vbj->bij", blocks, blocks, optimize=True) / max(len(answers) - 1, 1))


def _spread(concentration: Array) -> Array:
    """Return the variance of the square roots of expected rows, summed over labels, for each class, (J,)."""
    roots = np.sqrt(concentration / concentration.sum(axis=2, keepdims=True))
    centred = roots - roots.mean(axis=0)
    return np.asarray((centred**2).sum(axis=(0, 2)) / max(len(roots) - 1, 1))


def _nearest_covariance(matrix: Array) -> Array:
    """Return symmetric matrices, (B, D, D), without their negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.swapaxes(1, 2)) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2))


def _main_directions(covariance: Array) -> Array:
    """Return covariances, (B, D, D), without the directions in which volunteers hardly differ."""
    values, vectors = np.linalg.eigh(covariance)
    main = np.where(values >= MIN_VARIANCE * values.max(axis=1, keepdims=True), values, 0.0)
    return np.asarray((vectors * main[:, None, :]) @ vectors.swapaxes(1, 2))
