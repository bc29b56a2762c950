"""What the crowd says of each item, those who mostly agree with it counting more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core.graph import CrowdGraph


class FirstAnswers(NamedTuple):
    """Codes of who first said what about which item, in order of time, each of shape (R,)."""

    volunteer: Array
    item: Array
    label: Array


def first_answers(graph: CrowdGraph) -> FirstAnswers:
    """Each volunteer's first answer to each item; later ones are not independent of it."""
    responses = graph.responses
    rows = np.flatnonzero((responses.label >= 0) & ~responses.is_repeat)
    return FirstAnswers(responses.volunteer[rows], responses.item[rows], responses.label[rows].astype(np.int64))


def upper_tail(successes: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Array:
    """The probability of at least so many successes in independent trials; all of the same shape.

    With different chances in the trials, their mean gives an upper bound above the expected number (Hoeffding 1956).
    """
    from scipy.special import betainc

    k, n, p = np.broadcast_arrays(
        np.asarray(successes, dtype=float), np.asarray(trials, dtype=float), np.asarray(chance, dtype=float)
    )
    tail = betainc(
        np.maximum(k, 1), n - np.maximum(k, 1) + 1, p.clip(0, 1), where=(k >= 1) & (k <= n), out=np.ones(k.shape)
    )
    return np.where(k > n, 0.0, tail)


class RaterAgreement(NamedTuple):
    """How often two volunteers agree on an item, and would by chance.

    Attributes
    ----------
    share, chance
        How often two answers to an item are the same, and would be if all answered blindly at the crowd's rates.
    error
        The standard error of `share`, items being independent.
    n_items
        How many items have two answers or more.
    """

    share: float
    chance: float
    error: float
    n_items: int

    @property
    def kappa(self) -> float:
        """Agreement beyond chance (Fleiss 1971): 0 for none, 1 for complete; NaN where all answers are the same."""
        return (self.share - self.chance) / (1 - self.chance) if self.chance < 1 else np.nan

    @property
    def highest_kappa(self) -> float:
        """The kappa that the answers still allow, three standard errors up."""
        return self.kappa + 3 * self.error / (1 - self.chance) if self.chance < 1 else np.nan

    @property
    def lowest_kappa(self) -> float:
        """The kappa that the answers surely show, two standard errors down."""
        return self.kappa - 2 * self.error / (1 - self.chance) if self.chance < 1 else np.nan


def rater_agreement(answers: FirstAnswers, *, n_items: int, n_labels: int) -> RaterAgreement:
    """How far two volunteers who answer the same item agree; all pairs of answers count the same."""
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    counts = np.bincount(cells, minlength=n_items * n_labels).reshape(n_items, n_labels).astype(np.float64)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return RaterAgreement(np.nan, 1.0, np.nan, 0)
    n = counts.sum(axis=1)
    alike, pairs = (counts * (counts - 1)).sum(axis=1), n * (n - 1)
    share = float(alike.sum() / pairs.sum())
    chance = float(((counts.sum(axis=0) / n.sum()) ** 2).sum())
    error = float(np.sqrt(((alike - share * pairs) ** 2).sum()) / pairs.sum())
    return RaterAgreement(share, chance, error, len(counts))


# How often votes are counted; the first time all count the same.
ROUNDS = 4
# What is believed of a volunteer before their answers are seen: so many right and wrong ones.
RIGHT, WRONG = 3.0, 1.0
# What a vote counts at least, so that items that only contrary volunteers answered have a label too.
LEAST = 1e-6


class CrowdLabels(NamedTuple):
    """The label that speaks for each item, -1 where nobody answered, and the share of the answers that give it."""

    label: Array
    share: Array


def crowd_labels(answers: FirstAnswers, *, n_volunteers: int, n_items: int, n_labels: int) -> CrowdLabels:
    r"""The label with most votes for each item, each vote weighted by how often its volunteer agrees with the others.

    A vote counts :math:`\log ((L - 1) a / (1 - a))`, where `a` is how often the volunteer agreed with the consensus:
    the best weight if all errors are equally likely. Without weights, two good volunteers who agree against several
    poor ones would look as if they had copied.
    """
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    n_given = np.bincount(answers.volunteer, minlength=n_volunteers)
    weight = np.ones(n_volunteers)
    for _ in range(ROUNDS):
        tally = np.bincount(cells, weight[answers.volunteer], minlength=n_items * n_labels).reshape(n_items, n_labels)
        label = tally.argmax(axis=1)
        n_agreed = np.bincount(answers.volunteer[answers.label == label[answers.item]], minlength=n_volunteers)
        agreed = (n_agreed + RIGHT) / (n_given + RIGHT + WRONG)
        # A vote that would speak against its label counts nothing.
        weight = np.maximum(np.log(max(n_labels - 1, 1) * agreed / (1 - agreed)), LEAST)
    n_votes = np.bincount(answers.item, minlength=n_items)
    n_alike = np.bincount(answers.item[answers.label == label[answers.item]], minlength=n_items)
    return CrowdLabels(np.where(n_votes > 0, label, -1), n_alike / np.maximum(n_votes, 1))
