"""Graders are those of an ordered probit, and what a crowd of them is like is learned by maximising the evidence."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import dirichlet_multinomial

from crowdgraph.kernels.ordinal import BIASES, CARELESS, SCALES, WEIGHTS, grader_rows, learn_graders

SCORES = np.array([1.0, 2.0, 4.0])


def perceived(class_score, bias, scale, low, high):
    """The probability that a normal variable is between two thresholds, by quadrature."""
    low, high = (min(max(end, class_score + bias - 12 * scale), class_score + bias + 12 * scale) for end in (low, high))
    density = lambda x: math.exp(-(((x - class_score - bias) / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))  # noqa: E731
    return quad(density, low, high, points=[class_score + bias] if low < class_score + bias < high else None)[0]


@pytest.mark.parametrize(("bias", "scale"), [(0.0, 0.5), (-0.7, 1.3), (1.0, 0.15)])
def test_rows_are_those_of_noisy_perception(bias, scale):
    labels = np.array([4.0, 1.0, 2.0])  # in any order
    rows = grader_rows(SCORES, labels, np.array([bias]), np.array([scale]))[0]
    assert_allclose(rows.sum(axis=1), 1)
    thresholds = [-math.inf, 1.5, 3.0, math.inf]
    for j, class_score in enumerate(SCORES):
        chances = [perceived(class_score, bias, scale, *ends) for ends in pairwise(thresholds)]
        expected = [(1 - CARELESS) * chances[code] + CARELESS / 3 for code in (2, 0, 1)]
        assert_allclose(rows[j], expected, atol=1e-8)


def test_what_is_learned_maximises_the_probability_of_the_counts():
    """The evidence of every weight and kind, written out with SciPy's Dirichlet-multinomial, volunteer by volunteer."""
    rng = np.random.default_rng(0)
    scores = np.arange(3.0)
    counts = np.zeros((5, 3, 3))
    planted = grader_rows(scores, scores, np.array([0.5, 0.0, -0.5, 0.5]), np.full(4, 0.4))
    for k in range(4):  # the last volunteer answered nothing
        for j in range(3):
            counts[k, j] = rng.multinomial(15, planted[k, j])
    learned = learn_graders(counts, scores, scores)
    bias, scale = (part.ravel() for part in np.meshgrid(BIASES, SCALES, indexing="ij"))
    rows = grader_rows(scores, scores, bias, scale)
    best = (-math.inf,)
    for weight in WEIGHTS:
        evidence = np.array(
            [
                [
                    sum(dirichlet_multinomial.logpmf(counts[k, j].astype(int), weight * row[j], 15) for j in range(3))
                    for row in rows
                ]
                for k in range(4)
            ]
        )
        shares = np.full(len(rows), 1 / len(rows))
        for _ in range(50):
            kinds = np.exp(evidence) * shares
            kinds /= kinds.sum(axis=1, keepdims=True)
            shares = (kinds.sum(axis=0) + 1 / len(rows)) / 5
        joint = np.exp(evidence) * shares
        best = max(
            best,
            (np.log(joint.sum(axis=1)).sum(), weight, joint / joint.sum(axis=1, keepdims=True), shares),
            key=lambda one: one[0],
        )
    _, weight, kinds, shares = best
    assert learned.weight == weight
    assert_allclose(learned.own[:4], weight * np.einsum("kg,gjl->kjl", kinds, rows), rtol=1e-6)
    assert_allclose(learned.own[4], learned.typical)
    assert_allclose(learned.typical, weight * np.einsum("g,gjl->jl", shares, rows), rtol=1e-6)
    assert_allclose(learned.bias[:4], kinds @ bias, atol=1e-6)
    assert (learned.bias[[0, 3]] > 0.2).all()
    assert learned.bias[2] < -0.2
    assert ((learned.scale[:4] > 0.15) & (learned.scale[:4] < 0.9)).all()


def test_units_do_not_matter():
    counts = np.random.default_rng(1).integers(0, 9, (6, 3, 3)).astype(float)
    one = learn_graders(counts, SCORES, SCORES)
    ten = learn_graders(counts, 10 * SCORES + 3, 10 * SCORES + 3)
    assert_allclose(ten.own, one.own, rtol=1e-9)
