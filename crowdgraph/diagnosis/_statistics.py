"""Statistics of answers that several checks of the data doctor share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core.clock import UNITS, ticks
from crowdgraph.core.graph import CrowdGraph

# How many rounds of weighted votes there are; in the first all votes count the same.
N_VOTE_ROUNDS = 4
# The prior of how often a volunteer agrees with the crowd, as counts of answers that agree and that do not.
PRIOR_AGREED, PRIOR_DISAGREED = 3.0, 1.0
# The least weight of a vote, so that items answered only by contrary volunteers have a label as well.
MIN_VOTE_WEIGHT = 1e-6


class AnswerCodes(NamedTuple):
    """Codes of the volunteer, the item and the label of some answers, in order of time, each of shape (A,).

    Unlike ``graph.answers``, the volunteers may be numbered anew.
    """

    volunteer: Array
    item: Array
    label: Array

    def where(self, mask: Array) -> AnswerCodes:
        """Return the answers for which a mask of shape (A,) holds."""
        return AnswerCodes(*(column[mask] for column in self))


def first_answers(graph: CrowdGraph) -> AnswerCodes:
    """Return each volunteer's first answer to each item; later ones are not independent of it."""
    first = graph.answers.first
    return AnswerCodes(first.volunteer, first.item, first.label.astype(np.int64))


def seconds_since_start(graph: CrowdGraph) -> Array | None:
    """Return the time of each response in seconds after the first one; None where the times are not datetimes."""
    times = graph.responses.time
    if graph.responses.clock.kind != "datetime":
        return None
    # As floats first: nanoseconds of several centuries apart do not fit into an integer.
    elapsed = ticks(times).astype(np.float64)
    return np.asarray((elapsed - elapsed[:1]) / UNITS[np.datetime_data(times.dtype)[0]])


def upper_tail(successes: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Array:
    """Return the probability of at least so many successes in independent trials; all of the same shape.

    If the trials differ in their chances, the mean chance gives an upper bound above the expected number (Hoeffding
    1956).
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
    """How often two volunteers agree on an item, and how often they would by chance.

    Attributes
    ----------
    share, chance
        How often two answers to an item are the same, and how often they would be if everybody answered blindly at the
        crowd's rates.
    error
        The standard error of `share`, with items as independent units.
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
        """An upper limit of kappa, three standard errors above it."""
        return self.kappa + 3 * self.error / (1 - self.chance) if self.chance < 1 else np.nan

    @property
    def lowest_kappa(self) -> float:
        """A lower limit of kappa, two standard errors below it."""
        return self.kappa - 2 * self.error / (1 - self.chance) if self.chance < 1 else np.nan


def rater_agreement(answers: AnswerCodes, *, n_items: int, n_labels: int) -> RaterAgreement:
    """Measure how far two volunteers who answer the same item agree; all pairs of answers count the same."""
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


class CrowdLabels(NamedTuple):
    """The label that the crowd gives each item, -1 where nobody answered, and the share of the answers that agree."""

    label: Array
    share: Array


def crowd_labels(answers: AnswerCodes, *, n_volunteers: int, n_items: int, n_labels: int) -> CrowdLabels:
    r"""Choose a label for each item by votes that are weighted by how often their volunteers agree with the others.

    A vote has the weight :math:`\log ((L - 1) a / (1 - a))`, where `a` is how often the volunteer agrees with the
    crowd's labels: the best weight if all errors are equally likely. Without weights, two good volunteers who agree
    against several poor ones would look as if they had copied.
    """
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    n_answers = np.bincount(answers.volunteer, minlength=n_volunteers)
    weight = np.ones(n_volunteers)
    for _ in range(N_VOTE_ROUNDS):
        tally = np.bincount(cells, weight[answers.volunteer], minlength=n_items * n_labels).reshape(n_items, n_labels)
        label = tally.argmax(axis=1)
        n_agreed = np.bincount(answers.volunteer[answers.label == label[answers.item]], minlength=n_volunteers)
        agreed = (n_agreed + PRIOR_AGREED) / (n_answers + PRIOR_AGREED + PRIOR_DISAGREED)
        # A vote never counts against its own label.
        weight = np.maximum(np.log(max(n_labels - 1, 1) * agreed / (1 - agreed)), MIN_VOTE_WEIGHT)
    n_votes = np.bincount(answers.item, minlength=n_items)
    n_alike = np.bincount(answers.item[answers.label == label[answers.item]], minlength=n_items)
    return CrowdLabels(np.where(n_votes > 0, label, -1), n_alike / np.maximum(n_votes, 1))
