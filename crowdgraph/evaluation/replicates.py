"""Replicated answers of a crowd, and the statistics by which observed and replicated answers are compared.

This module imports torch and numba; the checks import it only when they are made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from crowdgraph.core._arrays import Array
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.kernels._runtime import in_parallel
from crowdgraph.kernels.dirichlet import max_likelihood_concentration
from crowdgraph.kernels.replication import (
    GroupedAnswers,
    PairSums,
    common_items,
    compile_replication,
    draw_answers,
    draw_rows,
    error_correlation,
    item_agreement,
    pair_sums,
    sample_posterior,
)
from crowdgraph.networks.panel_errors import right_labels

__all__ = ["PairStatistics", "ReplicateStatistics", "compare_with_replicates", "replicates_for"]

# So many operations take some tens of seconds; a graph gets fewer replicates rather than more, but not too few.
MAX_OPERATIONS = 1e9
MIN_REPLICATES = 100
# Sweeps of the chain before the first replicate, in rounds after each of which the prior is learned, and between two.
BURN_IN_ROUNDS, SWEEPS_A_ROUND = 6, 8
SWEEPS_BETWEEN = 3
# After so many replicates the prior is learned again, from at most so many volunteers.
REPLICATES_A_PRIOR = 10
MAX_VOLUNTEERS_FOR_PRIOR = 2_000
# Pairs are looked for among the most active volunteers: at most so many, and so many products of answers.
MAX_VOLUNTEERS_IN_PAIRS = 300
MAX_PRODUCTS = 2e7
# Pairs with fewer common items are left out: the correlation of their errors would be chance.
MIN_COMMON = 20
# How much more than others a volunteer owes to the crowd is known by so many pairs, and is at most this.
MIN_PAIRS_OF_ONE = 4
MAX_FACTOR = 3.0
# What makes gold items hard is looked at after so many replicates: items are hard to these degrees (1: guessing), or
# mislead volunteers, who then err with this probability.
REPLICATES_A_LOOK = 10
DEGREES = (0.0, 0.25, 0.5, 0.75, 1.0)
MISLED_ERROR = 0.9
N_MIXTURE_STEPS = 30
# Nearly everyone gets an item wrong if it has so many answers and at least this share of them is wrong.
MIN_ANSWERS_MISLED, MISLED_SHARE = 3, 0.75


@dataclass(frozen=True)
class PairStatistics:
    """How the errors of pairs of volunteers correlate, in observed and in replicated answers.

    Attributes
    ----------
    volunteers
        The codes of the volunteers among whom there are pairs, of shape (P,).
    common
        How many items each two of them have in common, of shape (P, P).
    correlation, score
        Means over replicates of the observed correlation, and of its excess over what the crowd has in common, times
        the root of the number of common items; each of shape (P, P), and zero for pairs with too few items.
    largest, median
        The largest score, and the median correlation of all pairs, for observed and for replicated answers at each
        draw; each of shape (S, 2).
    """

    volunteers: Array
    common: Array
    correlation: Array
    score: Array
    largest: Array
    median: Array


@dataclass(frozen=True)
class ReplicateStatistics:
    """Statistics of the observed answers, and of S replicates.

    Attributes
    ----------
    agreement
        The mean agreement of two answers about an item: observed, and in replicates by volunteers whose confusion is
        learned from these answers, of shape (S,).
    fit_agreement
        The same in replicates drawn from the fit as it is, of shape (S,).
    label_shares
        The share of each label: observed, of shape (L,), and in replicates drawn from the fit, of shape (S, L).
    correlation
        The mean correlation of the errors of two answers about an item, at each draw of classes and confusion: in
        observed and in replicated answers, of shape (S, 2).
    misled
        The share of gold items that nearly everyone gets wrong: observed, and in replicates, of shape (S,). None if
        there are none to look at.
    difficulty_gain, misled_gain
        By how much the answers about gold items become more probable, as logarithms, if items may be hard to different
        degrees, and if some may mislead nearly everyone; zero where there is no gold.
    pairs
        The pairs of volunteers; None if none has enough common items.
    """

    agreement: tuple[float, Array]
    fit_agreement: Array
    label_shares: tuple[Array, Array]
    correlation: Array
    misled: tuple[float, Array] | None
    difficulty_gain: float
    misled_gain: float
    pairs: PairStatistics | None


def replicates_for(graph: CrowdGraph, n_replicates: int) -> int:
    """Return how many replicates to draw for a graph: as many as asked for, fewer for large ones."""
    n_classes, n_labels = len(graph.classes), len(graph.labels)
    work = SWEEPS_BETWEEN * (len(graph.answers) * n_classes + 10 * len(graph.volunteers) * n_classes * n_labels)
    return min(n_replicates, max(MIN_REPLICATES, int(MAX_OPERATIONS / max(work, 1))))


def compare_with_replicates(
    graph: CrowdGraph, fit: ModelFit, *, n_replicates: int, seed: int, progress: bool
) -> ReplicateStatistics:
    """Draw replicates of the last answer of each volunteer to each item, and compute all statistics.

    Two kinds of replicates are drawn. Those of the fit as it is draw confusion and classes from its own distributions.
    Those of independent volunteers are draws from the posterior by Gibbs sampling, beginning with the fit, with a
    prior that is learned from the crowd: the distributions of a variational fit have seen the answers and take classes
    and confusion for independent, so that comparing with them alone would find dependence where there is none.
    """
    compile_replication()
    rng = np.random.default_rng(seed)
    answers, concentration = grouped_answers(graph, fit)
    n_labels = len(graph.labels)
    chain = _Chain(graph, fit, answers, rng)
    gold_items, pairs = _GoldItems.of(graph, fit, answers), _Pairs.of(graph, answers)
    misled = gold_items is not None and gold_items.enough.any()
    gains: list[tuple[float, float]] = []
    edges = fit.item_probs.cumsum(axis=1)
    agreement, fit_agreement, misled_share = (np.empty(n_replicates) for _ in range(3))
    correlation, label_shares = np.empty((n_replicates, 2)), np.empty((n_replicates, n_labels))
    with progress_bar("Checks", visible=progress, total=n_replicates, unit="replicates") as bar:
        for _ in range(BURN_IN_ROUNDS):
            chain.draw(SWEEPS_A_ROUND)
            chain.learn_prior()
        for s in range(n_replicates):
            rows = chain.draw(SWEEPS_BETWEEN)
            label = draw_answers(rng, answers, chain.classes, rows)
            agreement[s] = mean_agreement(answers.starts, label, n_labels)
            correlation[s] = [error_correlation(answers, one, chain.classes, rows) for one in (answers.label, label)]
            if gold_items is not None and misled:
                misled_share[s] = gold_items.misled_share(label)
            if gold_items is not None and s % REPLICATES_A_LOOK == 0:
                gains.append(gold_items.explain(rows))
            if pairs is not None:
                pairs.compare(answers, label, chain.classes, rows)
            if s % REPLICATES_A_PRIOR == REPLICATES_A_PRIOR - 1:
                chain.learn_prior()
            fit_classes = (rng.random((len(edges), 1)) >= edges[:, :-1]).sum(axis=1)
            fit_label = draw_answers(rng, answers, fit_classes, draw_rows(rng, concentration))
            fit_agreement[s] = mean_agreement(answers.starts, fit_label, n_labels)
            label_shares[s] = np.bincount(fit_label, minlength=n_labels) / len(fit_label)
            bar.update()
    difficulty_gain, misled_gain = np.mean(gains, axis=0).tolist() if gains else (0.0, 0.0)
    return ReplicateStatistics(
        agreement=(mean_agreement(answers.starts, answers.label, n_labels), agreement),
        fit_agreement=fit_agreement,
        label_shares=(np.bincount(answers.label, minlength=n_labels) / len(answers.label), label_shares),
        correlation=correlation,
        misled=(gold_items.misled_share(answers.label), misled_share) if gold_items is not None and misled else None,
        difficulty_gain=difficulty_gain,
        misled_gain=misled_gain,
        pairs=None if pairs is None else pairs.statistics(),
    )


def mean_agreement(starts: Array, label: Array, n_labels: int) -> float:
    """Return the mean over items of the share of pairs of answers that agree; NaN if no item has two answers."""
    by_item = item_agreement(starts, label, n_labels)
    several = ~np.isnan(by_item)
    return float(by_item[several].mean()) if several.any() else float("nan")


def grouped_answers(graph: CrowdGraph, fit: ModelFit) -> tuple[GroupedAnswers, Array]:
    """Return the last answers grouped by item, and the concentration of each volunteer's rows, of shape (V, J, L).

    Where confusion changes over time, a volunteer's rows are the mean over their answers, and the rows at an answer
    differ from it by the factor by which the fit's expectation does.
    """
    last, track = graph.answers.last, fit.confusion
    assert isinstance(track, ConfusionTrack)  # noqa: S101 - for type checkers; fits without one are refused before
    order, starts = last.by_item
    volunteer, label = last.volunteer[order].astype(np.int32), last.label[order].astype(np.int32)
    n_volunteers, shape = len(graph.volunteers), (len(graph.classes), len(graph.labels))
    starts = starts.astype(np.int64)
    if track.inference == "static":
        return GroupedAnswers(starts, volunteer, label, np.empty((0, *shape))), np.array(track.initial)
    at_answers = track.at_responses(graph)[last.rows[order]]
    mean = at_answers / at_answers.sum(axis=2, keepdims=True)
    # Volunteers without answers are never drawn; ones keep their rows proper.
    active, n_answers = last.n_by_volunteer > 0, np.maximum(last.n_by_volunteer, 1)
    concentration, mean_rows = np.ones((n_volunteers, *shape)), np.ones((n_volunteers, *shape))
    for j, c in np.ndindex(*shape):
        for rows, values in ((concentration, at_answers), (mean_rows, mean)):
            sums = np.bincount(volunteer, values[:, j, c], minlength=n_volunteers)
            rows[active, j, c] = (sums / n_answers)[active]
    return GroupedAnswers(starts, volunteer, label, mean / mean_rows[volunteer]), concentration


class _Chain:
    """A chain of draws from the posterior of independent volunteers, with a prior that is learned on the way.

    Parameters
    ----------
    graph, fit
        The graph, and the fit with whose most probable classes the chain begins.
    answers
        The answers.
    rng
        The random number generator.
    """

    def __init__(self, graph: CrowdGraph, fit: ModelFit, answers: GroupedAnswers, rng: np.random.Generator) -> None:
        self.classes = fit.item_probs.argmax(axis=1).astype(np.int64)
        self._rng, self._answers, self._gold = rng, answers, np.array(graph.gold.probs)
        self._n_volunteers = len(graph.volunteers)
        self._for_prior = np.arange(self._n_volunteers)
        if self._n_volunteers > MAX_VOLUNTEERS_FOR_PRIOR:
            self._for_prior = np.sort(rng.choice(self._n_volunteers, MAX_VOLUNTEERS_FOR_PRIOR, replace=False))
        shape = (len(graph.classes), len(graph.labels))
        self._prior, self._counts = np.ones(shape), np.zeros((self._n_volunteers, *shape))

    def draw(self, n_sweeps: int) -> Array:
        """Continue for some sweeps, and return the rows, of shape (V, J, L), that the classes were drawn from."""
        rows, self._counts = sample_posterior(
            self._rng,
            self._answers,
            self._prior,
            self._gold,
            self.classes,
            n_volunteers=self._n_volunteers,
            n_sweeps=n_sweeps,
        )
        return rows

    def learn_prior(self) -> None:
        """Let the prior be the one under which the answers by class are most probable."""
        rows = max_likelihood_concentration(torch.as_tensor(self._counts[self._for_prior])).numpy()
        # Labels that nobody has given to items of a class may still be given.
        rare = 0.5 / (self._counts.sum(axis=(0, 2)) + rows.shape[1] / 2)
        self._prior = np.maximum(rows, rows.sum(axis=1, keepdims=True) * rare[:, None])


@dataclass(frozen=True)
class _GoldItems:
    """The answers about M gold items, and which labels are right.

    Attributes
    ----------
    answers
        All answers.
    chosen
        Which of the answers are about gold items, of shape (G,).
    item, item_class
        The number of the item of each of these, of shape (G,), and the class of each item, of shape (M,).
    is_right
        Whether each label is right for each class, of shape (J, L).
    enough
        Whether an item has enough answers to say that nearly everyone gets it wrong, of shape (M,).
    """

    answers: GroupedAnswers
    chosen: Array
    item: Array
    item_class: Array
    is_right: Array
    enough: Array

    @classmethod
    def of(cls, graph: CrowdGraph, fit: ModelFit, answers: GroupedAnswers) -> _GoldItems | None:
        """Return those of a graph; None if there are none, or if it is unknown which labels are right."""
        is_right, codes = right_labels(graph, fit), graph.gold.codes
        all_items = np.repeat(np.arange(len(codes)), np.diff(answers.starts))
        chosen = np.flatnonzero(codes[all_items] >= 0)
        if is_right is None or not len(chosen):
            return None
        items, item = np.unique(all_items[chosen], return_inverse=True)
        return cls(answers, chosen, item, codes[items], is_right, np.bincount(item) >= MIN_ANSWERS_MISLED)

    def misled_share(self, label: Array) -> float:
        """Return the share of items with enough answers of which at least three in four are wrong."""
        is_wrong = ~self.is_right[self.item_class[self.item], label[self.chosen]]
        return float((self._mean(is_wrong) >= MISLED_SHARE)[self.enough].mean())

    def explain(self, rows: Array) -> tuple[float, float]:
        """Return the gains of `ReplicateStatistics`: if items may be hard, and if they may mislead nearly everyone."""
        volunteer, label = self.answers.volunteer[self.chosen], self.answers.label[self.chosen]
        classes = self.item_class[self.item]
        probs = rows[volunteer, classes]
        if len(self.answers.factor):
            probs = probs * self.answers.factor[self.chosen, classes]
            probs /= probs.sum(axis=1, keepdims=True)
        expected = np.maximum(probs[np.arange(len(label)), label], 1e-9)
        guess = (np.bincount(self.answers.label, minlength=rows.shape[2]) / len(self.answers.label))[label]
        independent = self._log_product(expected)
        hard = [self._log_product((1 - degree) * expected + degree * guess) for degree in DEGREES]
        misled = [independent, *self._misled_logs(label, classes)]
        total = float(independent.sum())
        return _mixture_log(np.stack(hard, axis=1)) - total, _mixture_log(np.stack(misled, axis=1)) - total

    def _misled_logs(self, label: Array, classes: Array) -> list[Array]:
        """Return the log probability of each item's answers if nearly everyone gives a wrong label: one, or any."""
        wrong = ~self.is_right
        n_wrong, n_right = (np.maximum(side.sum(axis=1), 1)[classes] for side in (wrong, self.is_right))
        any_wrong = self._log_product(
            np.where(wrong[classes, label], MISLED_ERROR / n_wrong, (1 - MISLED_ERROR) / n_right)
        )
        n_others = max(wrong.shape[1] - 1, 1)
        same = np.full((len(self.item_class), wrong.shape[1]), -np.inf)
        for code in range(wrong.shape[1]):
            log = self._log_product(np.where(label == code, MISLED_ERROR, (1 - MISLED_ERROR) / n_others))
            same[:, code] = np.where(wrong[self.item_class, code], log, -np.inf)
        n_wrong_labels = np.maximum(wrong.sum(axis=1), 1)[self.item_class]
        return [any_wrong, np.logaddexp.reduce(same, axis=1) - np.log(n_wrong_labels)]

    def _log_product(self, probs: Array) -> Array:
        return np.asarray(np.bincount(self.item, np.log(probs)))

    def _mean(self, values: Array) -> Array:
        return np.asarray(np.bincount(self.item, values) / np.bincount(self.item))


def _mixture_log(logs: Array) -> float:
    """Return the largest log probability of items, (M,), whose kinds, (M, K), have unknown shares; by EM."""
    peak = logs.max(axis=1, keepdims=True)
    probs = np.exp(logs - peak)
    shares = np.full(logs.shape[1], 0.2 / (logs.shape[1] - 1))
    shares[0] = 0.8
    for _ in range(N_MIXTURE_STEPS):
        kinds = probs * shares
        shares = (kinds / kinds.sum(axis=1, keepdims=True)).mean(axis=0)
    return float((np.log(probs @ shares) + peak[:, 0]).sum())


class _Pairs:
    """Sums up the correlation of errors of pairs of active volunteers, from draw to draw."""

    def __init__(self, volunteers: Array, position: Array, common: Array) -> None:
        self._volunteers, self._position, self._common = volunteers, position, common
        self._enough = np.triu(common >= MIN_COMMON, 1)
        self._correlation, self._score = np.zeros(common.shape), np.zeros(common.shape)
        self._largest: list[list[float]] = []
        self._median: list[list[float]] = []

    @classmethod
    def of(cls, graph: CrowdGraph, answers: GroupedAnswers) -> _Pairs | None:
        """Return the pairs of a graph's most active volunteers; None if none has enough items in common."""
        n_answers = np.bincount(answers.volunteer, minlength=len(graph.volunteers))
        item = np.repeat(np.arange(len(graph.items)), np.diff(answers.starts))
        volunteers = np.argsort(-n_answers, kind="stable")[:MAX_VOLUNTEERS_IN_PAIRS]
        volunteers = volunteers[n_answers[volunteers] >= MIN_COMMON]
        while True:
            position = np.full(len(n_answers), -1)
            position[volunteers] = np.arange(len(volunteers))
            selected = np.bincount(item[position[answers.volunteer] >= 0], minlength=len(graph.items))
            if (selected.astype(float) ** 2).sum() <= MAX_PRODUCTS or len(volunteers) <= 2:
                break
            volunteers = volunteers[: len(volunteers) // 2]
        if len(volunteers) < 2:
            return None
        common = common_items(answers.starts, answers.volunteer, position, len(volunteers))
        return cls(volunteers, position, common) if (np.triu(common, 1) >= MIN_COMMON).any() else None

    def compare(self, answers: GroupedAnswers, label: Array, classes: Array, rows: Array) -> None:
        """Add a draw: the errors of the observed answers, and of replicated ones."""
        largest, median = [], []
        observed_and_replicated = (answers.label, label)

        def sums_of(which: int) -> PairSums:
            labels = observed_and_replicated[which]
            return pair_sums(answers, labels, classes, rows, self._position, len(self._volunteers))

        for labels, sums in zip(observed_and_replicated, in_parallel(sums_of, 2), strict=True):
            scale = np.sqrt(sums.squares * sums.squares.T)
            correlation = np.where(self._enough & (scale > 0), sums.products / np.where(scale > 0, scale, 1.0), 0.0)
            middle = float(np.median(correlation[self._enough]))
            excess = correlation - self._shared_part(correlation, middle)
            score = np.where(self._enough, excess * np.sqrt(self._common), 0.0)
            largest.append(float(score[self._enough].max()))
            median.append(middle)
            if labels is answers.label:
                self._correlation += correlation
                self._score += score
        self._largest.append(largest)
        self._median.append(median)

    def _shared_part(self, correlation: Array, middle: float) -> Array | float:
        """Return the correlation that each pair owes to what the crowd has in common, (P, P): a factor for each.

        Hard items let the errors of all correlate, those of some volunteers more than those of others. The part of a
        volunteer is the median over their pairs, relative to the median of all. With one or two pairs nothing is
        known of the crowd.
        """
        if middle <= 0 or self._enough.sum() <= 2:
            return 0.0
        either = self._enough | self._enough.T
        # Pairs with too few items come last, and do not count.
        ordered = np.sort(np.where(either, correlation + correlation.T, np.inf), axis=1)
        n_pairs, rows = either.sum(axis=1), np.arange(len(either))
        medians = (ordered[rows, (n_pairs - 1) // 2] + ordered[rows, n_pairs // 2]) / 2
        own = np.where(n_pairs >= MIN_PAIRS_OF_ONE, medians / middle, 1.0).clip(0.0, MAX_FACTOR)
        return np.asarray(middle * own[:, None] * own)

    def statistics(self) -> PairStatistics:
        """Return the statistics over all draws."""
        n = len(self._largest)
        return PairStatistics(
            volunteers=self._volunteers,
            common=self._common,
            correlation=self._correlation / n,
            score=self._score / n,
            largest=np.array(self._largest),
            median=np.array(self._median),
        )
