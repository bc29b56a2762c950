"""The test for change: statistics against plain NumPy, p-values against all permutations, uniform without change."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdgraph.kernels import change
from crowdgraph.kernels.change import Sequences, alternatives, permutation_test

seeds = st.integers(0, 2**32 - 1)


def many(n):
    return pytest.param(n, marks=pytest.mark.science)


def test_random_words_are_those_of_splitmix64():
    """The first words of state 1234567, as other implementations give them."""
    state, words = 1_234_567, []
    for _ in range(5):
        state, word = change._next_word(np.uint64(state))
        words.append(int(word))
    assert words == [
        *(6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821)
    ]


def slow_log_bayes_factors(probs, right, patterns):
    """The log Bayes factors of patterns over the answers, (K, n), by weighted regression on each: (K, 1 + J)."""
    logs = []
    for pattern in patterns:
        parts = []
        for weight, correct in zip(probs.T, right.T, strict=True):
            if weight.sum() == 0:
                parts.append((0.0, 0.0, 0.0))
                continue
            mean = np.average(correct, weights=weight)
            centred = pattern - np.average(pattern, weights=weight)
            information = (weight * centred**2).sum()
            parts.append(((weight * centred * (correct - mean)).sum(), mean * (1 - mean) * information, information))
        series = [tuple(map(sum, zip(*parts, strict=True))), *parts]
        row = []
        for score, variance, information in series:
            gain = change.PRIOR_VARIANCE * information
            squared = score**2 / variance if variance > 1e-12 else None
            row.append(0.0 if squared is None else squared / 2 * gain / (1 + gain) - np.log(1 + gain) / 2)
        logs.append(row)
    return np.array(logs)


def slow_statistics(probs, right):
    """The log of the mean Bayes factor of each series: half for steps, half for ramps."""
    n = len(probs)
    steps = [(np.arange(n) > last).astype(float) for last in range(n - 1)]
    ramps = [((np.arange(n) + 0.5) / n - start) / (stop - start) for start, stop in change.RAMPS]
    factors = [np.exp(slow_log_bayes_factors(probs, right, np.clip(kind, 0, 1))) for kind in (steps, ramps)]
    return np.log((factors[0].mean(axis=0) + factors[1].mean(axis=0)) / 2)


def random_answers(seed, n, n_classes=3, n_labels=3, softness=0.5):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_classes, softness), n)
    return probs, rng.integers(n_labels, size=n), np.eye(n_classes, n_labels, dtype=bool)


def one_sequence(probs, label, correct):
    return Sequences(probs, label, correct, np.array([0, len(probs)]))


def hard(n_volunteers, n, right, seed, n_classes=2):
    """Volunteers who are right with the probabilities of an array that broadcasts to (V, n); classes are known."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_volunteers * n)
    is_right = rng.random((n_volunteers, n)) < right
    label = np.where(is_right.ravel(), truth, (truth + 1) % n_classes)
    return Sequences(np.eye(n_classes)[truth], label, np.eye(n_classes, dtype=bool), n * np.arange(n_volunteers + 1))


@settings(max_examples=40)
@given(seeds, st.integers(3, 60), st.sampled_from([0.02, 0.5, 5.0]))
def test_statistics_are_those_of_regressions(seed, n, softness):
    probs, label, correct = random_answers(seed, n, softness=softness)
    right = correct[:, label].T
    expected = slow_statistics(probs, right)
    np.testing.assert_allclose(alternatives(probs, label, correct).total, expected, atol=1e-9)
    test = permutation_test(one_sequence(probs, label, correct), rate=0.5, seed=0)
    np.testing.assert_allclose(test.statistics[0], expected, atol=1e-9)


def test_long_sequences_are_tested_in_blocks():
    """Sums over blocks are answers of more weight: the same statistic as of these."""
    probs, label, correct = random_answers(0, 1_000)
    test = permutation_test(one_sequence(probs, label, correct), rate=0.5, seed=0)
    blocks = np.arange(1_000) // 8
    weights, rights = (np.zeros((125, 3)) for _ in range(2))
    np.add.at(weights, blocks, probs)
    np.add.at(rights, blocks, probs * correct[:, label].T)
    np.testing.assert_allclose(test.statistics[0], slow_statistics(weights, rights / weights), atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_p_values_are_those_of_all_permutations(seed):
    n = 6
    sequences = hard(1, n, 0.6, seed)
    right = sequences.correct[:, sequences.label].T
    observed = slow_statistics(sequences.probs, right).max()
    orders = map(list, permutations(range(n)))
    exact = np.mean([slow_statistics(sequences.probs[o], right[o]).max() >= observed - 1e-9 for o in orders])
    runs = [permutation_test(sequences, rate=0.01, seed=number) for number in range(200)]
    # Of a number of trials until the k-th success, (k - 1) / (trials - 1) is an unbiased estimate of their share.
    trials = np.array([run.n_permutations[0] for run in runs])
    assert np.mean((change.MAX_EXCEEDANCES - 1) / (trials - 1)) == pytest.approx(exact, abs=0.02)
    if slow_statistics(sequences.probs, right).max() > 0:
        assert [run.p_values[0] for run in runs] == (change.MAX_EXCEEDANCES / trials).tolist()
    else:
        assert {run.p_values[0] for run in runs} == {1.0}


@pytest.mark.parametrize("n", [1_000, many(3_000)])
def test_p_values_are_uniform_without_a_change(n):
    p_values = permutation_test(hard(n, 60, 0.75, seed=0), rate=0.05, seed=0).p_values
    # Larger ones are 1 where the answers are no evidence for a change.
    for level in (0.002, 0.01, 0.05, 0.1):
        assert np.mean(p_values <= level) == pytest.approx(level, abs=3 * np.sqrt(level / n))


@pytest.mark.parametrize("n", [1_000, many(2_000)])
def test_p_values_are_uniform_where_the_mix_of_classes_changes(n):
    """Volunteers are better at one class, and see that one first."""
    rng = np.random.default_rng(0)
    truth = (np.arange(100) + rng.integers(-30, 30, (n, 100)) > 50).astype(int).ravel()
    right = rng.random(len(truth)) < np.array([0.9, 0.6])[truth]
    sequences = Sequences(
        np.eye(2)[truth], np.where(right, truth, 1 - truth), np.eye(2, dtype=bool), 100 * np.arange(n + 1)
    )
    p_values = permutation_test(sequences, rate=0.05, seed=0).p_values
    assert np.mean(p_values <= 0.05) < 0.07


def test_a_change_of_certainty_is_no_change_of_the_volunteer():
    """Always right as far as one can know, first about uncertain items and then about certain ones."""
    sure = np.repeat([0.98, 1.0], 20)
    probs = np.column_stack([sure, 1 - sure])
    test = permutation_test(one_sequence(probs, np.zeros(40, dtype=int), np.eye(2, dtype=bool)), rate=0.05, seed=0)
    assert test.p_values[0] == 1


@pytest.mark.parametrize("n_volunteers", [500, many(1_500)])
@pytest.mark.parametrize("n_sure", [0, 30])
def test_p_values_are_uniform_where_classes_are_uncertain(n_sure, n_volunteers):
    """Also if the last items are certain and the first are not."""
    rng = np.random.default_rng(1)
    n = 60
    truth = rng.integers(2, size=n_volunteers * n)
    said, other = (np.where(rng.random(len(truth)) < 0.75, truth, 1 - truth) for _ in range(2))
    # The posterior of this answer and of another of the same skill, or the truth itself.
    odds = 3.0 ** ((2 * said - 1) + (2 * other - 1))
    probs = np.column_stack([1 / (1 + odds), odds / (1 + odds)])
    is_sure = np.arange(len(truth)) % n >= n - n_sure
    probs[is_sure] = np.eye(2)[truth[is_sure]]
    sequences = Sequences(probs, said, np.eye(2, dtype=bool), n * np.arange(n_volunteers + 1))
    p_values = permutation_test(sequences, rate=0.05, seed=0).p_values
    for level in (0.01, 0.05):
        assert np.mean(p_values <= level) <= level + 3 * np.sqrt(level / n_volunteers)


def test_a_change_has_a_small_p_value():
    right = np.where(np.arange(2_000) < 800, 0.73, 0.85)
    test = permutation_test(hard(20, 2_000, right, seed=0), rate=0.05, seed=0)
    assert np.mean(test.p_values < 0.01) > 0.9
    # Enough permutations that a single volunteer could pass the threshold of twenty.
    assert (test.p_values[test.p_values < 0.01] < 0.05 / 20).mean() > 0.9


def test_a_lone_change_in_a_large_crowd_can_be_reported():
    right = np.full((500, 60), 0.8)
    right[7] = np.repeat([0.98, 0.05], 30)
    test = permutation_test(hard(500, 60, right, seed=0), rate=0.05, seed=0)
    assert test.p_values[7] < 0.05 / 500


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(8, change.MAX_BLOCKS))
def test_time_may_run_backwards(seed, n):
    probs, label, correct = random_answers(seed, n)
    there = permutation_test(one_sequence(probs, label, correct), rate=0.2, seed=seed)
    back = permutation_test(one_sequence(probs[::-1], label[::-1], correct), rate=0.2, seed=seed)
    assert there.p_values == back.p_values
    np.testing.assert_allclose(there.statistics, back.statistics, atol=1e-9)
    mirrored = alternatives(probs[::-1].copy(), label[::-1], correct)
    np.testing.assert_allclose(alternatives(probs, label, correct).steps, mirrored.steps[::-1], atol=1e-9)


def test_p_values_are_the_same_in_any_order_of_volunteers_and_any_number_of_threads(monkeypatch):
    sequences = hard(30, 40, 0.7, seed=3)
    order = np.random.default_rng(0).permutation(30)
    rows = (40 * order[:, None] + np.arange(40)).ravel()
    shuffled = Sequences(sequences.probs[rows], sequences.label[rows], sequences.correct, sequences.starts)
    plain = permutation_test(sequences, rate=0.05, seed=5)
    np.testing.assert_array_equal(plain.p_values[order], permutation_test(shuffled, rate=0.05, seed=5).p_values)
    assert (plain.p_values != permutation_test(sequences, rate=0.05, seed=6).p_values).any()
    monkeypatch.setattr(change, "chunk_bounds", lambda n, at_most: np.array([0, n]))
    np.testing.assert_array_equal(plain.p_values, permutation_test(sequences, rate=0.05, seed=5).p_values)


def test_nobody_and_nothing():
    empty = Sequences(np.zeros((0, 2)), np.zeros(0, dtype=int), np.eye(2, dtype=bool), np.zeros(1, dtype=int))
    assert permutation_test(empty, rate=0.05, seed=0).p_values.shape == (0,)
    # Someone who is always right did not change.
    assert permutation_test(hard(1, 20, 1.0, seed=0), rate=0.05, seed=0).p_values[0] == 1
