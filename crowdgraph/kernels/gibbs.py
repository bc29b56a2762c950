"""Independent Bayesian classifier combination by Gibbs sampling: one chain, compiled.

Classes, confusion matrices and class proportions are drawn in turn from their conditional distributions under the joint
distribution eq:IBCC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdgraph.kernels._runtime import compile_notice

__all__ = ["Chain", "Draws", "compile_sampler"]

Numbers = NDArray[Any]


@dataclass
class Draws:
    """Some successive draws of a chain.

    Attributes
    ----------
    class_probs
        Sampled class proportions, of shape (draws, J).
    log_joint
        The log probability of answers and classes given the sampled confusion and proportions, of shape (draws,).
    change
        How much the mean of the sampled classes changed, summed over items, of shape (draws,).
    watched
        Sampled classes of the watched items, of shape (draws, watched).
    classes, confusion
        If everything is kept: sampled classes of all items, of shape (draws, N), and the confusion matrices from which
        they were sampled, of shape (draws, K, L, J), in single precision; otherwise without draws.
    """

    class_probs: Numbers
    log_joint: Numbers
    change: Numbers
    watched: Numbers
    classes: Numbers = field(default_factory=lambda: np.empty((0, 0), dtype=np.int16))
    confusion: Numbers = field(default_factory=lambda: np.empty((0, 0, 0, 0), dtype=np.float32))


@dataclass
class Chain:
    """A chain: its current classes, and sums over its draws.

    Attributes
    ----------
    starts, codes
        Answers grouped by item, as in `crowdgraph.kernels.sweep.ItemResponses`.
    prior
        Concentration of the confusion, of shape (1 or K, L, J).
    class_prior
        Concentration of the classes, of shape (J,).
    gold
        Class probabilities of items with gold, of shape (N, J), from which their classes are drawn.
    fixed
        Whether an item has gold, of shape (N,).
    classes
        The current class of each item, of shape (N,).
    rng
        The chain's own random number generator.
    n_volunteers
        K.
    n_draws
        How many draws are in the sums.
    prob_sums, class_sums
        Sums over draws of conditional class probabilities and of sampled classes, each of shape (N, J).
    mean_sums, square_sums
        Sums over draws of the expected confusion, and of its expected square, given the classes, each (K, L, J).
    """

    starts: Numbers
    codes: Numbers
    prior: Numbers
    class_prior: Numbers
    gold: Numbers
    fixed: Numbers
    classes: Numbers
    rng: np.random.Generator
    n_volunteers: int
    n_draws: int = 0
    prob_sums: Numbers = field(init=False)
    class_sums: Numbers = field(init=False)
    mean_sums: Numbers = field(init=False)
    square_sums: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.reset_sums()

    def reset_sums(self) -> None:
        """Start the sums again: all draws so far were burn-in."""
        n_items, n_classes = self.gold.shape
        shape = (self.n_volunteers, *self.prior.shape[1:])
        self.n_draws = 0
        self.prob_sums, self.class_sums = np.zeros((n_items, n_classes)), np.zeros((n_items, n_classes))
        self.mean_sums, self.square_sums = np.zeros(shape), np.zeros(shape)

    def draw(self, n_draws: int, watched: Numbers, *, keep: bool = False) -> Draws:
        """Continue for some draws, keeping everything if asked; compiled code that lets other threads run."""
        n_items, n_classes = self.gold.shape
        n_stored = n_draws if keep else 0
        draws = Draws(
            class_probs=np.empty((n_draws, n_classes)),
            log_joint=np.empty(n_draws),
            change=np.empty(n_draws),
            watched=np.empty((n_draws, len(watched)), dtype=np.int16),
            classes=np.empty((n_stored, n_items), dtype=np.int16),
            confusion=np.empty((n_stored, *self.mean_sums.shape), dtype=np.float32),
        )
        _run(
            self.rng,
            self.starts,
            self.codes,
            self.prior,
            self.class_prior,
            self.gold,
            self.fixed,
            self.classes,
            self.n_draws,
            self.prob_sums,
            self.class_sums,
            self.mean_sums,
            self.square_sums,
            watched,
            draws.class_probs,
            draws.log_joint,
            draws.change,
            draws.watched,
            draws.classes,
            draws.confusion,
        )
        self.n_draws += n_draws
        return draws


@cache
def compile_sampler() -> None:
    """Compile the sampler, or load it from disk, by one draw of the class of one item."""
    one = np.ones((1, 1))
    with compile_notice("the Gibbs sampler"):
        Chain(
            starts=np.array([0, 1]),
            codes=np.zeros(1, dtype=np.int32),
            prior=one[None],
            class_prior=one[0],
            gold=one,
            fixed=np.zeros(1, dtype=bool),
            classes=np.zeros(1, dtype=np.int64),
            rng=np.random.default_rng(0),
            n_volunteers=1,
        ).draw(1, np.zeros(1, dtype=np.int64))


@njit(cache=True, nogil=True)
def _run(
    rng: Any,
    starts: Any,
    codes: Any,
    prior: Any,
    class_prior: Any,
    gold: Any,
    fixed: Any,
    classes: Any,
    n_previous: int,
    prob_sums: Any,
    class_sums: Any,
    mean_sums: Any,
    square_sums: Any,
    watched: Any,
    class_probs: Any,
    log_joint: Any,
    change: Any,
    watched_classes: Any,
    stored_classes: Any,
    stored_confusion: Any,
) -> None:
    n_volunteers, n_labels, n_classes = mean_sums.shape
    logs = np.empty((n_volunteers * n_labels, n_classes))
    counts = np.empty((n_volunteers, n_labels, n_classes))
    class_logs, class_counts, weights = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for draw in range(len(log_joint)):
        # kappa | t and Pi | t are Dirichlets: eq:classCount and eq:decisionCount of sampled classes plus the prior.
        _count(starts, codes, classes, counts.reshape(-1, n_classes), class_counts)
        _sample_log_dirichlet(rng, class_prior + class_counts, class_logs)
        _sample_confusion(rng, prior, counts, logs, mean_sums, square_sums)
        joint, difference = 0.0, 0.0
        n_earlier = n_previous + draw
        for item in range(len(classes)):
            # t_i | kappa, Pi: the factors of eq:IBCC that hold t_i.
            for j in range(n_classes):
                weights[j] = class_logs[j]
            for response in range(starts[item], starts[item + 1]):
                for j in range(n_classes):
                    weights[j] += logs[codes[response], j]
            joint += _sample_class(rng, item, weights, gold, fixed, classes, prob_sums)
            # Total variation distance between the means of the sampled classes after this draw and before it: the
            # stopping rule of sec:galaxyzooresults.
            if n_earlier:
                difference += (1 - class_sums[item, classes[item]] / n_earlier) / (n_earlier + 1)
            class_sums[item, classes[item]] += 1
        class_probs[draw] = np.exp(class_logs)
        log_joint[draw] = joint
        change[draw] = difference if n_earlier else np.inf
        watched_classes[draw] = classes[watched]
        if draw < len(stored_classes):
            _store(classes, logs, stored_classes[draw], stored_confusion[draw].reshape(-1, n_classes))


@njit(cache=True, nogil=True)
def _store(classes: Any, logs: Any, stored_classes: Any, stored_confusion: Any) -> None:
    for item in range(len(classes)):
        stored_classes[item] = classes[item]
    for row in range(len(logs)):
        for j in range(logs.shape[1]):
            stored_confusion[row, j] = math.exp(logs[row, j])


@njit(cache=True, nogil=True)
def _count(starts: Any, codes: Any, classes: Any, counts: Any, class_counts: Any) -> None:
    counts[:] = 0.0
    class_counts[:] = 0.0
    for item in range(len(classes)):
        class_counts[classes[item]] += 1
        for response in range(starts[item], starts[item + 1]):
            counts[codes[response], classes[item]] += 1


@njit(cache=True, nogil=True)
def _sample_confusion(rng: Any, prior: Any, counts: Any, logs: Any, mean_sums: Any, square_sums: Any) -> None:
    """Draw the logarithm of every confusion matrix, and add up its expectation given the classes."""
    n_volunteers, n_labels, n_classes = counts.shape
    shared = len(prior) == 1
    alpha, log_row = np.empty(n_labels), np.empty(n_labels)
    for k in range(n_volunteers):
        prior_row = 0 if shared else k
        for j in range(n_classes):
            total = 0.0
            for label in range(n_labels):
                alpha[label] = prior[prior_row, label, j] + counts[k, label, j]
                total += alpha[label]
            _sample_log_dirichlet(rng, alpha, log_row)
            for label in range(n_labels):
                logs[k * n_labels + label, j] = log_row[label]
                mean_sums[k, label, j] += alpha[label] / total
                square_sums[k, label, j] += alpha[label] * (alpha[label] + 1) / (total * (total + 1))


@njit(cache=True, nogil=True)
def _sample_log_dirichlet(rng: Any, alpha: Any, out: Any) -> None:
    """Draw the logarithm of a Dirichlet; small concentrations give probabilities too small for floats."""
    peak = -np.inf
    for i in range(len(alpha)):
        if alpha[i] < 1:
            # If G ~ Gamma(a + 1) and U is uniform, G U^(1/a) ~ Gamma(a).
            out[i] = math.log(rng.standard_gamma(alpha[i] + 1)) + math.log(1 - rng.random()) / alpha[i]
        else:
            out[i] = math.log(rng.standard_gamma(alpha[i]))
        peak = max(peak, out[i])
    norm = 0.0
    for i in range(len(alpha)):
        norm += math.exp(out[i] - peak)
    for i in range(len(alpha)):
        out[i] -= peak + math.log(norm)


@njit(cache=True, nogil=True)
def _sample_class(rng: Any, item: int, weights: Any, gold: Any, fixed: Any, classes: Any, prob_sums: Any) -> float:
    """Draw the class of an item from its log weights, or from its gold; return the log weight of the class."""
    n_classes = len(weights)
    peak = weights.max()
    norm = 0.0
    for j in range(n_classes):
        norm += math.exp(weights[j] - peak)
    remaining, sampled = rng.random(), -1
    for j in range(n_classes):
        prob = gold[item, j] if fixed[item] else math.exp(weights[j] - peak) / norm
        prob_sums[item, j] += prob
        remaining -= prob
        if sampled < 0 and remaining < 0:
            sampled = j
    # Probabilities may sum to a little less than one; the rounding error goes to the most probable class.
    if sampled < 0:
        sampled = int(gold[item].argmax()) if fixed[item] else int(weights.argmax())
    classes[item] = sampled
    return float(weights[sampled])
