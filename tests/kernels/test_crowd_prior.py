"""The prior that a crowd sets itself: against loops, brute force, simulation and enumeration."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from crowdgraph.kernels import crowd_prior as kernel
from crowdgraph.kernels.crowd_prior import (
    CrowdWeights,
    class_variance,
    honest_totals,
    learn_crowd_weights,
    one_coin_rows,
)

DIAGONAL = np.eye(2, dtype=bool)


@st.composite
def crowds(draw, *, max_volunteers=5):
    """Expected counts, (K, J, L), which labels are correct, (J, L), each for one class at most, and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_classes, n_labels = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    counts = rng.gamma(
        0.5, draw(st.sampled_from([0.5, 10.0])), (draw(st.integers(1, max_volunteers)), n_classes, n_labels)
    )
    votes = rng.integers(-1, n_classes, n_labels)
    is_correct = votes == np.arange(n_classes)[:, None]
    weights = CrowdWeights(rng.uniform(0.05, 0.95), rng.uniform(1, 8), rng.uniform(1, 16))
    return counts, is_correct, weights


# One-coin matrices


def one_coin_by_loops(counts, is_correct, weights, label_use, *, pooled=False):
    """The definition: the posterior accuracy, spread over labels in proportion to their use, with a floor."""
    n_classes, n_labels = is_correct.shape
    rows = np.zeros_like(counts)
    for k in range(len(counts)):
        right = total = 0.0
        for j in range(n_classes):
            n = sum(counts[k, j])
            each = 1.0 if pooled else (weights.row_weight + 1) / (weights.row_weight + n)
            right += each * sum(counts[k, j, c] for c in range(n_labels) if is_correct[j, c])
            total += each * n
        accuracy = (right + weights.accuracy_weight * weights.accuracy) / (total + weights.accuracy_weight)
        margin = min(0.5, 0.5 / (weights.row_weight * counts.shape[1]))
        accuracy = min(max(accuracy, margin), 1 - margin)
        for j in range(n_classes):
            for c in range(n_labels):
                share = 0.0
                for mass, wanted in ((accuracy, True), (1 - accuracy, False)):
                    alike = [m for m in range(n_labels) if is_correct[j, m] == wanted]
                    if not alike:
                        share += mass / n_labels
                    elif c in alike:
                        share += mass * (label_use[c] + 1) / sum(label_use[m] + 1 for m in alike)
                rows[k, j, c] = max(share, 1e-3)
            rows[k, j] /= rows[k, j].sum()
    return rows


@given(crowds(), st.booleans())
def test_one_coin_matrices_are_those_of_loops(case, pooled):
    counts, is_correct, weights = case
    use = counts.sum(axis=(0, 1))
    rows = one_coin_rows(counts, is_correct, weights, label_use=use, pooled=pooled)
    assert_allclose(rows, one_coin_by_loops(counts, is_correct, weights, use, pooled=pooled), rtol=1e-10)
    assert_allclose(rows.sum(axis=2), 1)
    assert (rows > 0).all()


def test_the_share_of_right_labels_is_the_accuracy():
    counts = np.array([[[8.0, 2, 0], [1, 0, 3]], [[0, 0, 0], [0, 0, 0]]])
    is_correct = np.array([[True, False, False], [False, False, True]])
    weights = CrowdWeights(0.7, 5.0, 1e12)
    rows = one_coin_rows(counts, is_correct, weights, label_use=np.array([9.0, 2, 3]), pooled=True)
    right = (rows * is_correct).sum(axis=2)
    assert_allclose(right[0], (8 + 3 + 5 * 0.7) / (14 + 5))
    assert_allclose(right[1], 0.7)
    # Wrong labels are as frequent as the crowd uses them.
    assert_allclose(rows[:, 0, 1] / rows[:, 0, 2], 3 / 4)


def test_answers_to_one_class_say_little_about_the_accuracy():
    """Rows of weight s: however many answers one class has, they count for s + 1 at most."""
    weights = CrowdWeights(0.5, 2.0, 3.0)
    counts = np.array([[[1e9, 0.0], [0.0, 0.0]]])
    rows = one_coin_rows(counts, DIAGONAL, weights, label_use=np.ones(2))
    assert_allclose(rows[0, 0, 0], (4 + 2 * 0.5) / (4 + 2))


@given(crowds(), st.randoms(use_true_random=False))
def test_names_do_not_matter(case, random):
    counts, is_correct, weights = case
    use = counts.sum(axis=(0, 1))
    orders = [list(range(size)) for size in counts.shape]
    for order in orders:
        random.shuffle(order)
    volunteers, classes, labels = orders
    permuted = one_coin_rows(
        counts[np.ix_(*orders)], is_correct[np.ix_(classes, labels)], weights, label_use=use[labels]
    )
    rows = one_coin_rows(counts, is_correct, weights, label_use=use)
    assert_allclose(permuted, rows[np.ix_(*orders)], rtol=1e-9)
    noise = np.full(len(counts), 0.1)
    learned = learn_crowd_weights(counts + 0.1, is_correct, noise)
    again = learn_crowd_weights(counts[np.ix_(*orders)] + 0.1, is_correct[np.ix_(classes, labels)], noise[volunteers])
    assert_allclose([again.accuracy, again.accuracy_weight], [learned.accuracy, learned.accuracy_weight], rtol=1e-6)
    assert_allclose(again.row_weight, learned.row_weight, rtol=1e-2)


# Learned weights


def test_a_class_without_a_label_and_a_label_without_use():
    """Nobody can be right about the second class; the third label is never given."""
    counts = np.random.default_rng(0).gamma(1, 3, (6, 2, 3))
    counts[:, :, 2] = 0
    is_correct = np.array([[True, False, False], [False, False, False]])
    weights = learn_crowd_weights(counts, is_correct, np.zeros(6))
    rows = one_coin_rows(counts, is_correct, weights, label_use=counts.sum(axis=(0, 1)))
    assert np.isfinite(rows).all()
    assert (rows[:, :, 2] >= 1e-3 / (1 + 3e-3)).all()
    assert_allclose(rows.sum(axis=2), 1)


@pytest.mark.parametrize("rounding", [-1e-7, -1e-16, 0.0, 2.3e-16, 1e-7])
def test_one_answer_each_says_nothing_about_how_accuracies_differ(rounding):
    """Whatever rounding makes of one answer."""
    probs = np.array([[0.2, 0.8], [0.3, 0.7], [0.9, 0.1]]) * (1 + rounding)
    counts = np.zeros((3, 2, 2))
    counts[np.arange(3), :, [0, 0, 1]] = probs
    weights = learn_crowd_weights(counts, DIAGONAL, np.full(3, 0.2))
    assert weights.accuracy_weight == pytest.approx(kernel.MAX_ACCURACY_WEIGHT, rel=1e-12)


def test_nobody_answered():
    weights = learn_crowd_weights(np.zeros((3, 2, 2)), DIAGONAL, np.zeros(3))
    assert weights == CrowdWeights(0.75, 8.0, 16.0)
    assert learn_crowd_weights(np.zeros((0, 2, 2)), DIAGONAL, np.zeros(0)) == weights


def evidence_by_loops(weight, counts, centres):
    """The log probability of counts under Dirichlet-multinomials around the centres."""
    total = 0.0
    for matrix, centre in zip(counts.tolist(), centres.tolist(), strict=True):
        for row, mean in zip(matrix, centre, strict=True):
            alpha = [weight * share for share in mean]
            total += math.lgamma(sum(alpha)) - math.lgamma(sum(alpha) + sum(row))
            total += sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(alpha, row, strict=True))
    return total


@pytest.mark.parametrize("scatter", [1.5, 4.0, 10.0, 60.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_weight_of_rows_maximises_the_evidence(scatter, seed):
    rng = np.random.default_rng(seed)
    centre = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    rows = rng.standard_gamma(scatter * np.tile(centre, (40, 1, 1)))
    rows /= rows.sum(axis=2, keepdims=True)
    counts = rng.multinomial(15, rows).astype(float)
    is_correct = np.eye(2, 3, dtype=bool)
    learned = learn_crowd_weights(counts, is_correct, np.zeros(40))
    initial = CrowdWeights(learned.accuracy, learned.accuracy_weight, 16.0)
    centres = one_coin_by_loops(counts, is_correct, initial, counts.sum(axis=(0, 1)), pooled=True)
    best = minimize_scalar(
        lambda log_weight: -evidence_by_loops(math.exp(log_weight), counts, centres),
        bounds=(0, math.log(16)),
        method="bounded",
    )
    grid = [evidence_by_loops(weight, counts, centres) for weight in np.geomspace(1, 16, 60)]
    reached = evidence_by_loops(learned.row_weight, counts, centres)
    assert reached >= max(grid) - 1e-4
    assert reached >= -best.fun - 1e-4
    assert 1 <= learned.row_weight <= 16


@pytest.mark.parametrize(("mean", "weight"), [(0.75, 1.0), (0.6, 3.0), (0.8, 6.0)])
@pytest.mark.parametrize("n_volunteers", [3_000])
def test_the_weight_of_accuracies_is_recovered(mean, weight, n_volunteers):
    """A Beta-binomial crowd with very different numbers of answers."""
    rng = np.random.default_rng(0)
    accuracy = rng.beta(mean * weight, (1 - mean) * weight, n_volunteers)
    answers = rng.geometric(0.05, n_volunteers)
    right = rng.binomial(answers, accuracy)
    counts = np.zeros((n_volunteers, 2, 2))
    counts[:, 0, 0], counts[:, 0, 1] = right, answers - right
    learned = learn_crowd_weights(counts, DIAGONAL, np.zeros(n_volunteers))
    assert learned.accuracy == pytest.approx(mean, abs=0.03)
    assert learned.accuracy_weight == pytest.approx(weight, rel=0.15)


@pytest.mark.parametrize(("weight", "expected"), [(0.1, 1.0), (1_000.0, 8.0)])
def test_the_weight_of_accuracies_is_capped(weight, expected):
    rng = np.random.default_rng(0)
    right = rng.binomial(30, rng.beta(0.7 * weight, 0.3 * weight, 2_000))
    counts = np.zeros((2_000, 2, 2))
    counts[:, 1, 1], counts[:, 1, 0] = right, 30 - right
    learned = learn_crowd_weights(counts, DIAGONAL, np.zeros(2_000))
    assert learned.accuracy_weight == pytest.approx(expected)
    # Noise of the classes is variance that expected counts lack, so it lowers the weight, never raises it.
    noisy = learn_crowd_weights(counts, DIAGONAL, np.full(2_000, 30.0))
    assert noisy.accuracy_weight <= learned.accuracy_weight


def test_noise_of_unknown_classes_replaces_the_variance_that_expectations_lack():
    """Right answers known, and only expected with the variance that is missing, give one weight."""
    rng = np.random.default_rng(3)
    n, answers, certainty = 4_000, 20, 0.8
    accuracy = rng.beta(0.7 * 3, 0.3 * 3, n)
    right = rng.random((n, answers)) < accuracy[:, None]
    # Each answer's being right is known only to be likely: a signal that is right with 0.8 either way, by Bayes' rule.
    signal = np.where(rng.random((n, answers)) < certainty, right, ~right)
    likely = np.where(signal, certainty, 1 - certainty) * accuracy[:, None]
    other = np.where(signal, 1 - certainty, certainty) * (1 - accuracy[:, None])
    posterior = likely / (likely + other)
    counts = np.zeros((2, n, 2, 2))
    for number, values in enumerate((right, posterior)):
        counts[number, :, 0, 0] = values.sum(axis=1)
        counts[number, :, 0, 1] = answers - values.sum(axis=1)
    known = learn_crowd_weights(counts[0], DIAGONAL, np.zeros(n))
    expected = learn_crowd_weights(counts[1], DIAGONAL, (posterior * (1 - posterior)).sum(axis=1))
    assert expected.accuracy == pytest.approx(known.accuracy, abs=0.01)
    assert expected.accuracy_weight == pytest.approx(known.accuracy_weight, rel=0.1)


def test_a_newcomers_total_has_both_variances():
    """The variance of a right label's probability: that of the accuracy, plus the row's around it; by simulation."""
    weights = CrowdWeights(0.7, 4.0, 6.0)
    rng = np.random.default_rng(0)
    accuracy = rng.beta(0.7 * 4, 0.3 * 4, 400_000)
    right = rng.beta(np.maximum(6 * accuracy, 1e-9), np.maximum(6 * (1 - accuracy), 1e-9))
    assert right.var() == pytest.approx(0.7 * 0.3 / (weights.total + 1), rel=0.01)


@given(st.floats(1, 8), st.floats(1, 16))
def test_a_newcomers_total_is_below_both_weights(accuracy_weight, row_weight):
    total = CrowdWeights(0.5, accuracy_weight, row_weight).total
    assert 0 < total <= min(accuracy_weight, row_weight) + 1e-9


# What unknown classes cost


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_the_variance_of_unknown_classes_is_that_of_all_assignments(seed, own_effects, small_chunks):
    rng = np.random.default_rng(seed)
    n_items, n_classes, n_labels, n_volunteers = 4, 2, 3, 3
    probs = rng.dirichlet(np.full(n_classes, 0.7), n_items)
    # Nobody answers an item twice; the last volunteer may have no answers.
    pairs = [(k, i) for k in range(n_volunteers) for i in range(n_items) if rng.random() < 0.6]
    volunteer, item = np.array(pairs, dtype=np.int8).reshape(-1, 2).T
    label = rng.integers(0, n_labels, len(pairs))
    effect = rng.normal(size=(n_volunteers if own_effects else 1, n_classes, n_labels))
    first, second = np.zeros(n_volunteers), np.zeros(n_volunteers)
    for classes in product(range(n_classes), repeat=n_items):
        chance = math.prod(probs[i, j] for i, j in enumerate(classes))
        sums = np.zeros(n_volunteers)
        for k, i, c in zip(volunteer, item, label, strict=True):
            sums[k] += effect[k if own_effects else 0, classes[i], c]
        first += chance * sums
        second += chance * sums**2
    with pytest.MonkeyPatch.context() as patch:
        if small_chunks:
            patch.setattr(kernel, "ANSWERS_PER_CHUNK", 3)
        variance = class_variance(volunteer, item, label, probs, effect, n_volunteers=n_volunteers)
    assert_allclose(variance, second - first**2, atol=1e-10)


@given(crowds(), st.booleans(), st.sampled_from([0.0, 1e-6, 0.1, 1e6]))
def test_honest_totals_are_never_larger(case, learned, variance):
    counts, is_correct, weights = case
    use = counts.sum(axis=(0, 1))
    posterior = weights.row_weight * one_coin_rows(counts, is_correct, weights, label_use=use) + counts
    totals = posterior.sum(axis=2)
    shares = np.full(counts.shape[1], 1 / counts.shape[1])
    honest = honest_totals(
        posterior / totals[:, :, None],
        totals,
        is_correct,
        shares,
        weights=weights if learned else None,
        variance_of=lambda effect: variance * (effect**2).sum(axis=(1, 2)),
    )
    assert np.isfinite(honest).all()
    assert (honest <= totals * (1 + 1e-12)).all()
    assert (honest >= np.minimum(totals, 0.5) * (1 - 1e-12)).all()
    if not learned and variance == 0:
        assert_allclose(honest, totals, rtol=1e-12)


def test_known_classes_around_given_centres_leave_the_totals():
    rng = np.random.default_rng(0)
    posterior = rng.gamma(2, 2, (5, 2, 3)) + 0.6
    totals = posterior.sum(axis=2)
    truth = np.eye(2)[rng.integers(0, 2, 8)]
    volunteer, item, label = rng.integers(0, 5, 30), rng.integers(0, 8, 30), rng.integers(0, 3, 30)
    honest = honest_totals(
        posterior / totals[:, :, None],
        totals,
        np.eye(2, 3, dtype=bool),
        np.array([0.3, 0.7]),
        weights=None,
        variance_of=lambda effect: class_variance(volunteer, item, label, truth, effect, n_volunteers=5),
    )
    assert_allclose(honest, totals, rtol=1e-12)


def exact_accuracy(labels, given_probs, prior, shares):
    """Enumerate the classes of one volunteer's items: mean and variance of the accuracy, and the class probabilities.

    The items' classes have given probabilities apart from this volunteer; rows are Dirichlet with a prior.
    """
    logs, means, variances, assignments = [], [], [], []
    for classes in product(range(2), repeat=len(labels)):
        counts = np.zeros((2, 2))
        for j, c in zip(classes, labels, strict=True):
            counts[j, c] += 1
        log = sum(math.log(given_probs[i][j]) for i, j in enumerate(classes))
        alpha = prior + counts
        for j in range(2):
            log += math.lgamma(prior[j].sum()) - math.lgamma(alpha[j].sum())
            log += sum(math.lgamma(alpha[j, c]) - math.lgamma(prior[j, c]) for c in range(2))
        right = np.array([alpha[j, j] / alpha[j].sum() for j in range(2)])
        logs.append(log)
        assignments.append(classes)
        means.append(shares @ right)
        variances.append(sum(shares[j] ** 2 * right[j] * (1 - right[j]) / (alpha[j].sum() + 1) for j in range(2)))
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    probs = np.stack([weight @ (np.array(assignments) == j) for j in range(2)], axis=1)
    return mean, weight @ (np.array(variances) + (np.array(means) - mean) ** 2), probs


@pytest.mark.parametrize("certainty", [0.6, 0.75, 0.9, 0.99])
def test_the_variance_of_the_accuracy_is_near_the_exact_one(certainty):
    """On average over answers; nearer, at least, than that of known classes."""
    rng = np.random.default_rng(0)
    prior, shares = np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([0.5, 0.5])
    exact, implied, naive = [], [], []
    for _ in range(25):
        truth = rng.integers(0, 2, 9)
        labels = np.where(rng.random(9) < 0.8, truth, 1 - truth)
        # What others said: right about as often as it is sure.
        likely = np.where(rng.random(9) < certainty, truth, 1 - truth)
        given_probs = np.where(np.arange(2) == likely[:, None], certainty, 1 - certainty)
        _, variance, probs = exact_accuracy(labels.tolist(), given_probs, prior, shares)
        posterior = prior.copy()
        for i, label in enumerate(labels):
            posterior[:, label] += probs[i]
        totals = posterior.sum(axis=1)
        rows = posterior / totals[:, None]
        honest = honest_totals(
            rows[None],
            totals[None],
            DIAGONAL,
            shares,
            weights=None,
            variance_of=lambda effect, labels=labels, probs=probs: class_variance(
                np.zeros(9, dtype=int), np.arange(9), labels, probs, effect, n_volunteers=1
            ),
        )[0]
        right = rows.diagonal()
        exact.append(variance)
        implied.append((shares**2 * right * (1 - right) / (honest + 1)).sum())
        naive.append((shares**2 * right * (1 - right) / (totals + 1)).sum())
    assert np.mean(implied) == pytest.approx(np.mean(exact), rel=0.2)
    assert abs(np.mean(implied) - np.mean(exact)) <= abs(np.mean(naive) - np.mean(exact)) + 1e-12


@given(st.integers(0, 10**6), st.sampled_from([0.2, 3.0, 200.0]))
def test_the_weight_of_rows_is_found_again_near_an_earlier_one(seed, scatter):
    """Also at the bounds, and where the earlier weight is far away."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(scatter * np.array([0.8, 0.2]), (30, 2))
    rows[:, 1] = rows[:, 1, ::-1]
    counts = rng.multinomial(40, rows).astype(float)
    noise = np.zeros(30)
    weights = learn_crowd_weights(counts, DIAGONAL, noise)
    for near in (weights.row_weight, min(weights.row_weight * 1.02, 16.0), 1.0, 16.0):
        again = learn_crowd_weights(counts, DIAGONAL, noise, near=near)
        assert again.row_weight == pytest.approx(weights.row_weight, rel=1e-9)
