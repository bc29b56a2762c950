r"""A test for change in a sequence of answers: Bayes factors of steps and ramps, with a p-value by permutation.

An answer `r` is about an item that is of class `j` with probability :math:`p_{rj}`; it is right if its label is correct
for the class. For each class, the share of right answers before and after a candidate step is compared through the
CUSUM

.. math:: S_{jt} = \sum_{r \le t} p_{rj} ([r \text{ is right for } j] - a_j), \qquad
          a_j = \frac{\sum_r p_{rj} [r \text{ is right for } j]}{\sum_r p_{rj}},

whose variance, if nothing changed, is :math:`a_j (1 - a_j) I_{jt}` with :math:`I_{jt} = W_{jt} (1 - W_{jt} / W_j)` and
:math:`W_{jt} = \sum_{r \le t} p_{rj}`. Ramps replace the indicator of :math:`r \le t` by a rising line. All classes
together have the sums of the classes' :math:`S`, variances and :math:`I`, so that a change of what is answered is no
change of how it is answered. With a normal prior of the change, in units of the standard deviation of one answer and
with variance :math:`\tau^2`, the Bayes factor of an alternative is

.. math:: (1 + \tau^2 I)^{-1/2} \exp\left(\frac{Z^2}{2} \frac{\tau^2 I}{1 + \tau^2 I}\right), \qquad
          Z^2 = \frac{S^2}{\mathrm{Var}\, S}.

Steps and ramps have half of the prior each. The statistic of a sequence is the largest log Bayes factor among all
classes together and each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel

__all__ = ["Alternatives", "PermutationTest", "Sequences", "alternatives", "permutation_test"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# Longer sequences are cut into at most this many blocks of as many answers, which are permuted as one.
MAX_BLOCKS = 128
# The prior variance of a change, in units of the variance of an answer: of accuracies near 0.8, a change of about 0.2.
PRIOR_VARIANCE = 0.25
# From where to where the ramps rise, as shares of the sequence.
RAMPS = np.array([[0.0, 1.0], [0.0, 0.5], [0.5, 1.0], [0.25, 0.75]])
# The permutations of a sequence end once so many are as extreme as the sequence itself (Besag and Clifford 1991).
MAX_EXCEEDANCES = 20
# How many permutations every sequence gets, unless it ends before; those that remain then get more.
FIRST_PERMUTATIONS = 250
# Statistics that differ by less are equal but for rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Sequences:
    """The answers of several volunteers, one volunteer after the other, each in order of time.

    Attributes
    ----------
    probs
        The probability of each class for each answer's item, of shape (A, J).
    label
        The code of each answer's label, of shape (A,).
    correct
        Which labels are correct for each class, of shape (J, L).
    starts
        Where each volunteer's answers begin, of shape (V + 1,).
    """

    probs: Floats
    label: Integers
    correct: NDArray[np.bool_]
    starts: Integers

    def one(self, number: int) -> tuple[Floats, Integers]:
        """Return the class probabilities and labels of one volunteer's answers."""
        rows = slice(self.starts[number], self.starts[number + 1])
        return self.probs[rows], self.label[rows]


class PermutationTest(NamedTuple):
    """P-values of sequences, each of shape (V,) or, for all classes and each class, (V, 1 + J).

    The statistics are those that were compared, of blocks of answers where sequences are long.
    """

    p_values: Floats
    series_p_values: Floats
    statistics: Floats
    n_permutations: Integers


class Alternatives(NamedTuple):
    """Log Bayes factors of one sequence, answer by answer.

    Columns are all classes together, then each class. Step `t` is one after `t + 1` answers.
    """

    steps: Floats
    ramps: Floats

    @property
    def sudden(self) -> Floats:
        """The log Bayes factor of a step somewhere, of shape (1 + J,)."""
        return np.asarray(np.logaddexp.reduce(self.steps, axis=0) - np.log(len(self.steps)))

    @property
    def gradual(self) -> Floats:
        """The log Bayes factor of one of the ramps, of shape (1 + J,)."""
        return np.asarray(np.logaddexp.reduce(self.ramps, axis=0) - np.log(len(self.ramps)))

    @property
    def total(self) -> Floats:
        """The log Bayes factor of a change, of shape (1 + J,)."""
        return np.asarray(np.logaddexp(self.sudden, self.gradual) - np.log(2))


def permutation_test(sequences: Sequences, *, rate: float, seed: int) -> PermutationTest:
    """Test each sequence for a change, by permuting its answers.

    A permutation moves the label and the class probabilities of an answer together. Long sequences are permuted block
    by block, which is as exact, since permutations of blocks are permutations. A sequence that is no likelier with a
    change than without one has the p-value 1, so that someone who is always right does not seem to change where items
    become more certain.

    A sequence is permuted until enough permutations are as extreme as itself. Those that remain go on until there are
    so many permutations that the threshold of Benjamini and Hochberg, if all that remain were rejected, is far above
    the smallest possible p-value.

    Parameters
    ----------
    sequences
        The sequences.
    rate
        The false-discovery rate that the p-values shall serve.
    seed
        The same seed gives the same p-values. They depend neither on the order of the volunteers nor, up to the length
        of `MAX_BLOCKS` answers, on whether time runs forwards or backwards.
    """
    n_sequences, n_series = len(sequences.starts) - 1, sequences.probs.shape[1] + 1
    sequences = Sequences(
        np.ascontiguousarray(sequences.probs, dtype=np.float64),
        sequences.label.astype(np.int64),
        np.ascontiguousarray(sequences.correct, dtype=np.bool_),
        sequences.starts.astype(np.int64),
    )
    keys = answer_keys(sequences.probs, sequences.correct[:, sequences.label].T)
    states = np.zeros(n_sequences, dtype=np.uint64)
    exceedances, done = np.zeros((n_sequences, n_series + 1), dtype=np.int64), np.zeros(n_sequences, dtype=np.int64)
    observed = np.zeros((n_sequences, n_series))
    data = (sequences.probs, sequences.label, sequences.correct, sequences.starts, keys, states, observed)
    alternatives_tested = (RAMPS, MAX_BLOCKS, PRIOR_VARIANCE)
    active, target = np.argsort(-np.diff(sequences.starts), kind="stable"), FIRST_PERMUTATIONS

    def run(chunk: int) -> None:
        # Each thread has its share of long and of short sequences.
        numbers = np.ascontiguousarray(active[chunk::n_chunks])
        _permute(*data, exceedances, done, numbers, target, *alternatives_tested, MAX_EXCEEDANCES, ROUNDING)

    with compile_notice("the test for changes"):
        _observe(*data, np.uint64(seed % 2**64), *alternatives_tested)
    while len(active):
        n_chunks = len(chunk_bounds(len(active), at_most=len(active))) - 1
        in_parallel(run, n_chunks)
        active = active[exceedances[active, 0] < MAX_EXCEEDANCES]
        enough = ceil(MAX_EXCEEDANCES * n_sequences / (rate * max(len(active), 1)))
        if target >= enough:
            break
        target = min(2 * target, enough)
    stopped = exceedances[:, 0] >= MAX_EXCEEDANCES
    p_values = np.where(stopped, exceedances[:, 0] / np.maximum(done, 1), (exceedances[:, 0] + 1) / (done + 1))
    return PermutationTest(
        p_values=np.where(observed.max(axis=1, initial=-np.inf) > 0, p_values, 1.0),
        series_p_values=(exceedances[:, 1:] + 1) / (done[:, None] + 1),
        statistics=observed,
        n_permutations=done,
    )


def alternatives(probs: Floats, label: Integers, correct: NDArray[np.bool_]) -> Alternatives:
    """Return the log Bayes factors of all steps and ramps of one sequence, answer by answer."""
    weights = np.ascontiguousarray(probs, dtype=np.float64)
    logs = np.zeros((len(weights) - 1 + len(RAMPS), weights.shape[1] + 1))
    heights = _ramp_heights(RAMPS, len(weights))
    _log_bayes_factors(weights, weights * correct[:, label].T, heights, PRIOR_VARIANCE, logs)
    return Alternatives(steps=logs[: len(weights) - 1], ramps=logs[len(weights) - 1 :])


def answer_keys(probs: Floats, right: NDArray[np.bool_]) -> Words:
    """Return a number for each answer that depends on its class probabilities and on what it is right for alone.

    Permutations start from the order of these keys, and random numbers from their sum, so that neither depends on the
    order of answers or volunteers.
    """
    keys = np.zeros(len(probs), dtype=np.uint64)
    for column in range(probs.shape[1]):
        values = np.round(probs[:, column] * 2**30).astype(np.uint64) * np.uint64(2) + right[:, column]
        keys = _scrambled(keys ^ values)
    return keys


def _scrambled(words: Words) -> Words:
    """Return words in which every bit depends on every bit (splitmix64; Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


@njit(cache=True, nogil=True, error_model="numpy")
def _ramp_heights(ramps: Floats, n_blocks: int) -> Floats:
    """Return how high each ramp is at the middle of each block, from 0 to 1."""
    heights = np.zeros((len(ramps), n_blocks))
    for ramp in range(len(ramps)):
        start, stop = ramps[ramp, 0] * n_blocks, ramps[ramp, 1] * n_blocks
        for block in range(n_blocks):
            heights[ramp, block] = min(max((block + 0.5 - start) / (stop - start), 0.0), 1.0)
    return heights


@njit(cache=True, nogil=True, error_model="numpy")
def _log_bayes_factors(weights: Floats, rights: Floats, heights: Floats, prior_variance: float, logs: Floats) -> None:
    """Write the log Bayes factors of the steps after each of the blocks but the last, then those of the ramps.

    `weights` and `rights` hold the expected numbers of answers, and of right ones, in each block for each class.
    """
    n_ramps, n_blocks = heights.shape
    n_classes = weights.shape[1]
    totals, means = np.zeros(n_classes), np.zeros(n_classes)
    for block in range(n_blocks):
        for j in range(n_classes):
            totals[j] += weights[block, j]
            means[j] += rights[block, j]
    for j in range(n_classes):
        means[j] = min(means[j] / totals[j], 1.0) if totals[j] > 0 else 0.0
    # For each class: weights and rights so far, and what follows from them, which a block without the class leaves.
    weight_sums, right_sums = np.zeros(n_classes), np.zeros(n_classes)
    scores, variances, informations = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    for block in range(n_blocks - 1):
        for j in range(n_classes):
            if weights[block, j] == 0.0:
                logs[block, j + 1] = logs[block - 1, j + 1] if block else 0.0
                continue
            weight_sums[j] += weights[block, j]
            right_sums[j] += rights[block, j]
            scores[j] = right_sums[j] - means[j] * weight_sums[j]
            informations[j] = weight_sums[j] * (1 - weight_sums[j] / totals[j])
            variances[j] = means[j] * (1 - means[j]) * informations[j]
            logs[block, j + 1] = _log_bayes_factor(scores[j], variances[j], informations[j], prior_variance)
        logs[block, 0] = _log_bayes_factor_of_all(scores, variances, informations, prior_variance)
    for ramp in range(n_ramps):
        row = n_blocks - 1 + ramp
        for j in range(n_classes):
            first = second = score = 0.0
            for block in range(n_blocks):
                part = weights[block, j] * heights[ramp, block]
                first += part
                second += part * heights[ramp, block]
                score += rights[block, j] * heights[ramp, block]
            scores[j] = score - means[j] * first
            informations[j] = second - first * first / totals[j] if totals[j] > 0 else 0.0
            variances[j] = means[j] * (1 - means[j]) * informations[j]
            logs[row, j + 1] = _log_bayes_factor(scores[j], variances[j], informations[j], prior_variance)
        logs[row, 0] = _log_bayes_factor_of_all(scores, variances, informations, prior_variance)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_bayes_factor(score: float, variance: float, information: float, prior_variance: float) -> float:
    # Below this, all answers are right, or wrong, but for rounding.
    if variance < 1e-12 or information <= 0:
        return 0.0
    gain = prior_variance * information
    return 0.5 * (score * score * gain / (variance * (1 + gain)) - log(1 + gain))


@njit(cache=True, nogil=True, error_model="numpy")
def _log_bayes_factor_of_all(scores: Floats, variances: Floats, informations: Floats, prior_variance: float) -> float:
    score = variance = information = 0.0
    for j in range(len(scores)):
        score += scores[j]
        variance += variances[j]
        information += informations[j]
    return _log_bayes_factor(score, variance, information, prior_variance)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_totals(logs: Floats, n_steps: int, n_ramps: int, totals: Floats) -> None:
    """Write the log of the mean Bayes factor of each series: half for the steps, half for the ramps."""
    for series in range(logs.shape[1]):
        highest = logs[0, series]
        for row in range(1, n_steps + n_ramps):
            highest = max(highest, logs[row, series])
        steps = ramps = 0.0
        factor = np.exp(logs[0, series] - highest)
        for row in range(n_steps):
            # Neighbours are often equal, and exponentials are most of the work.
            if row and logs[row, series] != logs[row - 1, series]:
                factor = np.exp(logs[row, series] - highest)
            steps += factor
        for row in range(n_steps, n_steps + n_ramps):
            ramps += np.exp(logs[row, series] - highest)
        totals[series] = highest + np.log(0.5 * (steps / n_steps + ramps / n_ramps))


@njit(cache=True, nogil=True, error_model="numpy")
def _next_word(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the next state of a random generator, and its random number (splitmix64)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True, error_model="numpy")
def _block_size(length: int, max_blocks: int) -> int:
    return (length + max_blocks - 1) // max_blocks


@njit(cache=True, nogil=True, error_model="numpy")
def _observe(
    probs: Floats,
    label: Integers,
    correct: NDArray[np.bool_],
    starts: Integers,
    keys: Words,
    states: Words,
    observed: Floats,
    seed: np.uint64,
    ramps: Floats,
    max_blocks: int,
    prior_variance: float,
) -> None:
    """Write the observed statistics, and the first state of each sequence's random generator."""
    n_classes = probs.shape[1]
    logs = np.zeros((max_blocks + len(ramps), n_classes + 1))
    for number in range(len(starts) - 1):
        start, stop = starts[number], starts[number + 1]
        size = _block_size(stop - start, max_blocks)
        n_blocks = (stop - start + size - 1) // size
        weights, rights = np.zeros((n_blocks, n_classes)), np.zeros((n_blocks, n_classes))
        state = seed
        for row in range(start, stop):
            state += keys[row]
            for j in range(n_classes):
                weights[(row - start) // size, j] += probs[row, j]
                rights[(row - start) // size, j] += probs[row, j] * correct[j, label[row]]
        # Sums of keys are close to each other where seeds are; scrambled ones are not.
        states[number] = _next_word(state)[1]
        _log_bayes_factors(weights, rights, _ramp_heights(ramps, n_blocks), prior_variance, logs)
        _log_totals(logs, n_blocks - 1, len(ramps), observed[number])


@njit(cache=True, nogil=True, error_model="numpy")
def _permute(
    probs: Floats,
    label: Integers,
    correct: NDArray[np.bool_],
    starts: Integers,
    keys: Words,
    states: Words,
    observed: Floats,
    exceedances: Integers,
    done: Integers,
    numbers: Integers,
    target: int,
    ramps: Floats,
    max_blocks: int,
    prior_variance: float,
    max_exceedances: int,
    rounding: float,
) -> None:
    """Permute sequences until `target` permutations are done, or enough are as extreme as the sequence."""
    n_classes = probs.shape[1]
    weights, rights = np.zeros((max_blocks, n_classes)), np.zeros((max_blocks, n_classes))
    logs, totals = np.zeros((max_blocks + len(ramps), n_classes + 1)), np.zeros(n_classes + 1)
    for number in numbers:
        start, stop = starts[number], starts[number + 1]
        size, state = _block_size(stop - start, max_blocks), states[number]
        n_full, n_blocks = (stop - start) // size, (stop - start + size - 1) // size
        # Single answers start from the order of their keys, blocks from that of time; an incomplete last block stays.
        order = np.argsort(keys[start:stop], kind="mergesort") if size == 1 else np.arange(n_blocks)
        heights, highest = _ramp_heights(ramps, n_blocks), observed[number].max()
        while done[number] < target and exceedances[number, 0] < max_exceedances:
            for last in range(n_full - 1, 0, -1):
                state, word = _next_word(state)
                other = np.int64(((word >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32))
                order[last], order[other] = order[other], order[last]
            weights[:n_blocks], rights[:n_blocks] = 0.0, 0.0
            for block in range(n_blocks):
                first = start + order[block] * size
                for row in range(first, min(first + size, stop)):
                    for j in range(n_classes):
                        weights[block, j] += probs[row, j]
                        rights[block, j] += probs[row, j] * correct[j, label[row]]
            _log_bayes_factors(weights, rights, heights, prior_variance, logs)
            _log_totals(logs, n_blocks - 1, len(ramps), totals)
            done[number] += 1
            exceedances[number, 0] += totals.max() >= highest - rounding
            for series in range(n_classes + 1):
                exceedances[number, series + 1] += totals[series] >= observed[number, series] - rounding
        states[number] = state
