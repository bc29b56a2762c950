"""Replicated answers: draws from the posterior of independent volunteers, and statistics of the answers; compiled.

A sweep draws confusion, class proportions and classes in turn from their conditional distributions under the joint
distribution eq:IBCC, as `crowdgraph.kernels.gibbs` does. Answers are grouped by item. A volunteer's rows may differ
from answer to answer by known factors, so that volunteers who change are replicated as they changed.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdgraph.kernels._runtime import compile_notice

__all__ = [
    "GroupedAnswers",
    "PairSums",
    "common_items",
    "compile_replication",
    "draw_answers",
    "draw_rows",
    "error_correlation",
    "item_agreement",
    "pair_sums",
    "sample_posterior",
]

Numbers = NDArray[Any]


class GroupedAnswers(NamedTuple):
    """Answers grouped by item.

    Attributes
    ----------
    starts
        Where the answers of each item begin, of shape (N + 1,).
    volunteer, label
        The volunteer and the label of each answer, both of shape (A,).
    factor
        By how much the rows at each answer differ from the volunteer's own, of shape (A, J, L); of shape (0, J, L) if
        nobody changes.
    """

    starts: Numbers
    volunteer: Numbers
    label: Numbers
    factor: Numbers


class PairSums(NamedTuple):
    """Sums over the items that two of P volunteers have in common, each of shape (P, P).

    Attributes
    ----------
    products
        Of the products of both volunteers' residuals.
    squares
        Of the squared residuals of the first.
    """

    products: Numbers
    squares: Numbers


def sample_posterior(
    rng: np.random.Generator,
    answers: GroupedAnswers,
    prior: Numbers,
    gold: Numbers,
    classes: Numbers,
    *,
    n_volunteers: int,
    n_sweeps: int,
) -> tuple[Numbers, Numbers]:
    """Continue a chain for some sweeps; `classes`, of shape (N,), holds its state and is changed.

    Parameters
    ----------
    rng
        The random number generator.
    answers
        The answers.
    prior
        The concentration of everybody's rows, of shape (J, L).
    gold
        Class probabilities of items with gold, of shape (N, J); NaN for others.
    classes
        The current class of each item.
    n_volunteers, n_sweeps
        How many there are.

    Returns
    -------
    tuple
        The rows that the classes were drawn from, of shape (V, J, L), and the counts of labels by the classes,
        of the same shape.
    """
    n_classes, n_labels = prior.shape
    rows = np.empty((n_volunteers, n_classes, n_labels))
    counts = np.empty_like(rows)
    _sweep(rng, *answers, prior, gold, classes, rows, counts, n_sweeps)
    return rows, counts


@njit(cache=True, nogil=True)
def _sweep(
    rng: Any,
    starts: Any,
    volunteer: Any,
    label: Any,
    factor: Any,
    prior: Any,
    gold: Any,
    classes: Any,
    rows: Any,
    counts: Any,
    n_sweeps: int,
) -> None:
    n_classes, n_labels = prior.shape
    n_items = len(classes)
    changing = len(factor) > 0
    weights, class_alpha, class_probs = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    logs = np.empty(rows.shape)
    for _ in range(n_sweeps):
        _count(starts, volunteer, label, classes, counts)
        # Pi | t and kappa | t are Dirichlets: eq:decisionCount and eq:classCount of sampled classes plus the prior.
        for k in range(len(rows)):
            for j in range(n_classes):
                _draw_dirichlet(rng, prior[j] + counts[k, j], rows[k, j])
                for c in range(n_labels):
                    logs[k, j, c] = math.log(max(rows[k, j, c], 1e-300))
        class_alpha[:] = 1.0
        for item in range(n_items):
            class_alpha[classes[item]] += 1
        _draw_dirichlet(rng, class_alpha, class_probs)
        for item in range(n_items):
            if not math.isnan(gold[item, 0]):
                classes[item] = _draw_index(rng, gold[item], 1.0)
                continue
            # t_i | kappa, Pi: the factors of eq:IBCC that hold t_i.
            for j in range(n_classes):
                weights[j] = math.log(max(class_probs[j], 1e-300))
            for r in range(starts[item], starts[item + 1]):
                k, c = volunteer[r], label[r]
                for j in range(n_classes):
                    weights[j] += logs[k, j, c]
                    if changing:
                        norm = 0.0
                        for other in range(n_labels):
                            norm += rows[k, j, other] * factor[r, j, other]
                        weights[j] += math.log(max(factor[r, j, c], 1e-300) / max(norm, 1e-300))
            peak = weights.max()
            total = 0.0
            for j in range(n_classes):
                weights[j] = math.exp(weights[j] - peak)
                total += weights[j]
            classes[item] = _draw_index(rng, weights, total)
    _count(starts, volunteer, label, classes, counts)


@njit(cache=True, nogil=True)
def _count(starts: Any, volunteer: Any, label: Any, classes: Any, counts: Any) -> None:
    counts[:] = 0.0
    for item in range(len(classes)):
        for r in range(starts[item], starts[item + 1]):
            counts[volunteer[r], classes[item], label[r]] += 1


@njit(cache=True, nogil=True)
def _draw_index(rng: Any, weights: Any, total: float) -> int:
    """Draw an index with probabilities proportional to weights; rounding errors go to the largest."""
    remaining = rng.random() * total
    for j in range(len(weights)):
        remaining -= weights[j]
        if remaining < 0:
            return j
    return int(weights.argmax())


@njit(cache=True, nogil=True)
def _draw_dirichlet(rng: Any, alpha: Any, out: Any) -> None:
    """Draw from a Dirichlet; logarithms, since small concentrations give numbers too small for floats."""
    peak = -np.inf
    for i in range(len(alpha)):
        # If G ~ Gamma(a + 1) and U is uniform, G U^(1/a) ~ Gamma(a).
        out[i] = math.log(rng.standard_gamma(alpha[i] + 1)) + math.log(1 - rng.random()) / alpha[i]
        peak = max(peak, out[i])
    total = 0.0
    for i in range(len(alpha)):
        out[i] = math.exp(out[i] - peak)
        total += out[i]
    for i in range(len(alpha)):
        out[i] /= total


@njit(cache=True, nogil=True)
def draw_rows(rng: Any, concentration: Any) -> Any:
    """Draw every row of every volunteer from its Dirichlet, of shape (V, J, L)."""
    rows = np.empty(concentration.shape)
    for k in range(len(rows)):
        for j in range(rows.shape[1]):
            _draw_dirichlet(rng, concentration[k, j], rows[k, j])
    return rows


def draw_answers(rng: np.random.Generator, answers: GroupedAnswers, classes: Numbers, rows: Numbers) -> Numbers:
    """Draw a label for each answer, of shape (A,), from the rows of its volunteer, (V, J, L), and the classes, (N,)."""
    return np.asarray(_draw_labels(rng, answers.starts, answers.volunteer, answers.factor, classes, rows))


@njit(cache=True, nogil=True)
def _draw_labels(rng: Any, starts: Any, volunteer: Any, factor: Any, classes: Any, rows: Any) -> Any:
    n_labels = rows.shape[2]
    label = np.empty(len(volunteer), dtype=np.int32)
    weights = np.empty(n_labels)
    changing = len(factor) > 0
    for item in range(len(classes)):
        j = classes[item]
        for r in range(starts[item], starts[item + 1]):
            total = 0.0
            for c in range(n_labels):
                weights[c] = rows[volunteer[r], j, c] * (factor[r, j, c] if changing else 1.0)
                total += weights[c]
            label[r] = _draw_index(rng, weights, total)
    return label


@njit(cache=True, nogil=True)
def item_agreement(starts: Any, label: Any, n_labels: int) -> Any:
    """Return the share of pairs of answers that agree, for each item, of shape (N,); NaN with fewer than two."""
    agreement = np.full(len(starts) - 1, np.nan)
    counts = np.zeros(n_labels)
    for item in range(len(agreement)):
        n = starts[item + 1] - starts[item]
        if n < 2:
            continue
        counts[:] = 0.0
        for r in range(starts[item], starts[item + 1]):
            counts[label[r]] += 1
        agreement[item] = (counts * (counts - 1)).sum() / (n * (n - 1.0))
    return agreement


def pair_sums(
    answers: GroupedAnswers, label: Numbers, classes: Numbers, rows: Numbers, position: Numbers, n_selected: int
) -> PairSums:
    """Sum products of residuals, answer minus expectation, over the common items of pairs of selected volunteers.

    Parameters
    ----------
    answers, label
        The answers, and the labels to use instead of theirs.
    classes, rows
        The class of each item, of shape (N,), and the rows of each volunteer, of shape (V, J, L).
    position
        The position of each volunteer among the selected ones, of shape (V,); -1 for others.
    n_selected
        How many volunteers are selected.
    """
    sums = np.zeros((n_selected, n_selected, 3))
    _sum_pairs(answers.starts, answers.volunteer, answers.factor, label, classes, rows, position, sums)
    products, first, second = (sums[:, :, part] for part in range(3))
    return PairSums(products + products.T, first + second.T)


@njit(cache=True, nogil=True)
def _sum_pairs(
    starts: Any,
    volunteer: Any,
    factor: Any,
    label: Any,
    classes: Any,
    rows: Any,
    position: Any,
    sums: Any,
) -> None:
    """Add to the sums of each pair, at the lower position and then the higher: product, square of each.

    They lie side by side, so that a pair costs one memory access.
    """
    n_labels = rows.shape[2]
    longest = 0
    for item in range(len(classes)):
        longest = max(longest, starts[item + 1] - starts[item])
    residual, power = np.empty((longest, n_labels)), np.empty(longest)
    who = np.empty(longest, dtype=np.int64)
    changing = len(factor) > 0
    for item in range(len(classes)):
        j, n = classes[item], 0
        for r in range(starts[item], starts[item + 1]):
            k = volunteer[r]
            if position[k] < 0:
                continue
            who[n] = position[k]
            total = 0.0
            for c in range(n_labels):
                residual[n, c] = rows[k, j, c] * (factor[r, j, c] if changing else 1.0)
                total += residual[n, c]
            power[n] = 0.0
            for c in range(n_labels):
                residual[n, c] = (1.0 if c == label[r] else 0.0) - residual[n, c] / total
                power[n] += residual[n, c] ** 2
            n += 1
        for a in range(n):
            for b in range(a):
                low, high = (a, b) if who[a] < who[b] else (b, a)
                product = 0.0
                for c in range(n_labels):
                    product += residual[a, c] * residual[b, c]
                pair = sums[who[low], who[high]]
                pair[0] += product
                pair[1] += power[low]
                pair[2] += power[high]


@njit(cache=True, nogil=True)
def common_items(starts: Any, volunteer: Any, position: Any, n_selected: int) -> Any:
    """Return how many items pairs of selected volunteers have in common, of shape (P, P), zero on the diagonal.

    Arguments are those of `GroupedAnswers` and `pair_sums`.
    """
    common = np.zeros((n_selected, n_selected))
    for item in range(len(starts) - 1):
        for a in range(starts[item], starts[item + 1]):
            for b in range(starts[item], starts[item + 1]):
                first, second = position[volunteer[a]], position[volunteer[b]]
                if a != b and first >= 0 and second >= 0:
                    common[first, second] += 1
    return common


def error_correlation(answers: GroupedAnswers, label: Numbers, classes: Numbers, rows: Numbers) -> float:
    """Return the mean correlation of the residuals of two answers about an item; NaN without two about any.

    Items with n answers weigh as n, not as their pairs, so that a few with very many answers do not decide alone.
    Arguments are those of `pair_sums`.
    """
    return float(_correlate(answers.starts, answers.volunteer, answers.factor, label, classes, rows))


@njit(cache=True, nogil=True)
def _correlate(starts: Any, volunteer: Any, factor: Any, label: Any, classes: Any, rows: Any) -> float:
    n_labels = rows.shape[2]
    expected, total_residual = np.empty(n_labels), np.empty(n_labels)
    changing = len(factor) > 0
    products, squares, compared = 0.0, 0.0, False
    for item in range(len(classes)):
        n, j, power = starts[item + 1] - starts[item], classes[item], 0.0
        if n < 2:
            continue
        compared = True
        total_residual[:] = 0.0
        for r in range(starts[item], starts[item + 1]):
            norm = 0.0
            for c in range(n_labels):
                expected[c] = rows[volunteer[r], j, c] * (factor[r, j, c] if changing else 1.0)
                norm += expected[c]
            for c in range(n_labels):
                residual = (1.0 if c == label[r] else 0.0) - expected[c] / norm
                total_residual[c] += residual
                power += residual**2
        products += ((total_residual**2).sum() - power) / (n - 1)
        squares += power
    if squares > 0:
        return products / squares
    # Answers that are just as expected have no errors that could correlate.
    return 0.0 if compared else np.nan


@cache
def compile_replication() -> None:
    """Compile all of this, or load it from disk, by two answers about one item."""
    rng, classes, position = np.random.default_rng(0), np.zeros(1, dtype=np.int64), np.arange(2)
    two = np.zeros(2, dtype=np.int32)
    answers = GroupedAnswers(np.array([0, 2]), np.arange(2, dtype=np.int32), two, np.ones((2, 1, 1)))
    with compile_notice("the replication of answers"):
        rows, counts = sample_posterior(
            rng, answers, np.ones((1, 1)), np.full((1, 1), np.nan), classes, n_volunteers=2, n_sweeps=1
        )
        label = draw_answers(rng, answers, classes, draw_rows(rng, rows + counts))
        item_agreement(answers.starts, label, 1)
        error_correlation(answers, label, classes, rows)
        pair_sums(answers, label, classes, rows, position, 2)
