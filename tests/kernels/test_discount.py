"""Discounted evidence: against loops written out, Bayes' rule, and a fine grid."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowdgraph.core.dependence import Dependence
from crowdgraph.kernels.discount import (
    discounted_probs,
    evenness_guard,
    item_discount,
    learn_correlation,
    log_evidence,
)

correlations = st.sampled_from([0.0, 1e-6, 0.1, 0.5, 0.9, 1.0])


@st.composite
def evidences(draw, *, n_classes=None):
    """Evidence of items, (N, J), numbers of answers, (N,), and class proportions, (J,)."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_items, n_classes = draw(st.integers(1, 6)), n_classes or draw(st.integers(2, 4))
    evidence = -rng.gamma(1, draw(st.sampled_from([0.1, 3.0, 300.0])), (n_items, n_classes))
    return evidence, rng.integers(0, 30, n_items), rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.3, 3.0]))))


def written_out(evidence, n_answers, class_probs, correlation):
    """The definition, item by item and class by class."""
    probs = []
    for logs, n in zip(evidence.tolist(), n_answers.tolist(), strict=True):
        factor = 1.0 if n < 2 else 1 / (1 + correlation * (n - 1))
        scores = [factor * (log + math.log(share)) for log, share in zip(logs, class_probs.tolist(), strict=True)]
        highest = max(scores)
        weights = [math.exp(score - highest) for score in scores]
        probs.append([weight / sum(weights) for weight in weights])
    return np.array(probs)


@given(evidences(), correlations)
def test_probabilities_are_those_of_a_loop(case, correlation):
    probs = discounted_probs(*case, correlation)
    assert_allclose(probs, written_out(*case, correlation), rtol=1e-9, atol=1e-300)
    assert_allclose(probs.sum(axis=1), 1, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 3))
def test_independent_answers_follow_bayes_rule(seed, n_volunteers, n_classes):
    """Without correlation and with equal class proportions, a product of probabilities, normalised."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(3), (n_volunteers, n_classes))
    item, volunteer = np.repeat(np.arange(4), n_volunteers), np.tile(np.arange(n_volunteers), 4)
    label = rng.integers(0, 3, len(item))
    expected = np.full((4, n_classes), 1 / n_classes)
    for i, k, answer in zip(item, volunteer, label, strict=True):
        expected[i] *= confusion[k, :, answer]
    expected /= expected.sum(axis=1, keepdims=True)
    evidence = log_evidence(np.log(confusion[volunteer, :, label]), item, 4)
    n_answers = np.full(4, n_volunteers)
    equal = np.full(n_classes, 1 / n_classes)
    assert_allclose(discounted_probs(evidence, n_answers, equal, 0.0), expected, rtol=1e-9)


def test_evidence_adds_up_by_item_and_is_zero_without_answers():
    rows = np.log([[0.5, 0.2], [0.3, 0.1], [0.25, 1.0]])
    evidence = log_evidence(rows, np.array([2, 0, 2], dtype=np.int8), 4)
    assert_allclose(np.exp(evidence), [[0.3, 0.1], [1, 1], [0.125, 0.2], [1, 1]])
    assert log_evidence(np.zeros((0, 3)), np.zeros(0, dtype=int), 2).tolist() == [[0, 0, 0]] * 2


@given(correlations)
def test_one_answer_is_not_discounted_and_no_answer_leaves_the_class_proportions(correlation):
    shares = np.array([0.7, 0.2, 0.1])
    evidence = np.log([[0.1, 0.8, 0.1], [1.0, 1.0, 1.0]])
    probs = discounted_probs(evidence, np.array([1, 0]), shares, correlation)
    assert_allclose(probs[0], np.array([0.07, 0.16, 0.01]) / 0.24)
    assert_allclose(probs[1], shares)
    assert item_discount(np.array([0, 1]), correlation).tolist() == [1, 1]


@given(evidences(), correlations, st.randoms(use_true_random=False))
def test_permuting_classes_permutes_probabilities(case, correlation, random):
    evidence, n_answers, shares = case
    order = list(range(len(shares)))
    random.shuffle(order)
    permuted = discounted_probs(evidence[:, order], n_answers, shares[order], correlation)
    assert_allclose(permuted, discounted_probs(*case, correlation)[:, order], rtol=1e-9, atol=1e-300)


@given(evidences(), correlations, st.floats(-1e3, 1e3))
def test_what_all_classes_share_is_no_evidence(case, correlation, constant):
    evidence, n_answers, shares = case
    moved = discounted_probs(evidence + constant, n_answers, shares, correlation)
    assert_allclose(moved, discounted_probs(*case, correlation), rtol=1e-7, atol=1e-12)


@given(evidences(), correlations)
def test_the_most_probable_class_does_not_depend_on_the_correlation(case, correlation):
    """The discount moves all log odds of an item toward zero alike, so its order of classes stays."""
    before, after = discounted_probs(*case, 0.0), discounted_probs(*case, correlation)
    rows = np.arange(len(before))
    assert_allclose(after[rows, before.argmax(axis=1)], after.max(axis=1), rtol=1e-9)
    assert (after.max(axis=1) <= before.max(axis=1) + 1e-9).all()


def test_a_class_without_a_share_is_ruled_out_but_guarded_ones_are_not():
    shares = np.array([1.0, 0.0, 0.0])
    probs = discounted_probs(np.zeros((1, 3)), np.array([0]), shares, 0.5)
    assert_allclose(probs, [[1, 0, 0]], atol=1e-200)
    assert_allclose(evenness_guard(shares, possible=np.ones(3, dtype=bool)), [7 / 9, 1 / 9, 1 / 9])
    assert_allclose(evenness_guard(shares, possible=np.array([True, True, False])), [5 / 6, 1 / 6, 0])
    assert_allclose(evenness_guard(np.full(4, 0.25), possible=np.ones(4, dtype=bool)), 0.25)


# The correlation


def loss(correlation, evidence, n_answers, shares, truth):
    """The negative log probability of the known classes and of the correlation, by the slow code above."""
    probs = written_out(evidence, n_answers, shares, correlation)
    distance = math.log((correlation + 0.02) / 0.52)
    return distance**2 / 2 - sum(math.log(max(probs[row, code], 1e-300)) for row, code in enumerate(truth.tolist()))


@given(st.integers(0, 10**6), st.integers(0, 40), st.sampled_from([1.0, 5.0, 20.0]))
def test_the_correlation_is_the_best_of_a_fine_grid(seed, n_items, strength):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    n_answers = rng.integers(1, 25, n_items)
    evidence = -rng.gamma(2, strength, (n_items, 3))
    # Most evidence is right, some misleads.
    best = np.where(rng.random(n_items) < 0.8, truth, rng.integers(0, 3, n_items))
    evidence[np.arange(n_items), best] = 0
    shares = np.array([0.5, 0.3, 0.2])
    learned = learn_correlation(evidence, n_answers, shares, truth)
    grid = np.linspace(0, 1, 201)
    losses = [loss(value, evidence, n_answers, shares, truth) for value in grid]
    assert 0 <= learned <= 1
    assert loss(learned, evidence, n_answers, shares, truth) <= min(losses) + 1e-6


def test_without_known_classes_the_correlation_is_typical():
    learned = learn_correlation(np.zeros((0, 2)), np.zeros(0, dtype=int), np.array([0.5, 0.5]), np.zeros(0, dtype=int))
    assert learned == pytest.approx(0.5, abs=1e-5)


def test_single_answers_say_nothing_about_the_correlation():
    rng = np.random.default_rng(0)
    evidence, truth = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    assert learn_correlation(evidence, np.ones(200, dtype=int), np.array([0.5, 0.5]), truth) == pytest.approx(
        0.5, abs=1e-4
    )


@pytest.mark.parametrize(("correlation", "tolerance"), [(0.0, 0.01), (0.3, 0.06), (0.8, 0.12)])
def test_a_planted_correlation_is_recovered(correlation, tolerance):
    """Classes drawn from the discounted probabilities themselves."""
    rng = np.random.default_rng(1)
    evidence, n_answers, shares = rng.normal(0, 8, (4_000, 2)), rng.integers(2, 20, 4_000), np.array([0.6, 0.4])
    probs = written_out(evidence, n_answers, shares, correlation)
    truth = (rng.random(4_000) > probs[:, 0]).astype(int)
    assert learn_correlation(evidence, n_answers, shares, truth) == pytest.approx(correlation, abs=tolerance)


def test_evidence_that_is_always_right_is_not_discounted_and_misleading_evidence_is():
    truth, n_answers, shares = np.tile([0, 1], 100), np.full(200, 10), np.array([0.5, 0.5])
    right = np.where(np.arange(2) == truth[:, None], 0.0, -2.0)
    assert learn_correlation(right, n_answers, shares, truth) < 0.01
    assert learn_correlation(right, n_answers, shares, 1 - truth) == pytest.approx(1)


# The effective number of answers


@given(st.floats(0, 1), st.integers(0, 10_000))
def test_effective_answers_are_no_more_than_answers(rho, n):
    dependence = Dependence(rho, "given", 0)
    effective = float(dependence.effective_answers(n))
    assert 0 <= effective <= n * (1 + 1e-12)
    assert effective * rho <= 1 + 1e-12
    assert effective == pytest.approx(n * float(item_discount(np.array(n), rho)))


@given(st.floats(0, 1), st.integers(0, 200))
def test_next_answers_add_up_and_count_ever_less(rho, n):
    dependence = Dependence(rho, "given", 0)
    each = dependence.next_answer(np.arange(n))
    assert_allclose(each.sum(), dependence.effective_answers(n), atol=1e-9)
    assert (np.diff(each) <= 1e-12).all()
    assert (each >= -1e-12).all()
    assert dependence.next_answer(0) == 1


def test_extreme_correlations():
    answers = np.array([0, 1, 2, 9])
    independent, one = (Dependence(rho, "given", 0) for rho in (0.0, 1.0))
    assert_array_equal(independent.effective_answers(answers), answers)
    assert_array_equal(one.effective_answers(answers), [0, 1, 1, 1])
