"""What the crowd says of each item, those who mostly agree with it counting more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.diagnosis.answers import FirstAnswers

__all__ = ["Consensus", "consensus"]

# How often votes are counted; the first time all count the same.
ROUNDS = 4
# What is believed of a volunteer before their answers are seen: so many right and wrong ones.
RIGHT, WRONG = 3.0, 1.0
# What a vote counts at least, so that items that only contrary volunteers answered have a label too.
LEAST = 1e-6


class Consensus(NamedTuple):
    """The label that speaks for each item, -1 where nobody answered, and the share of the answers that give it."""

    label: Array
    share: Array


def consensus(answers: FirstAnswers, *, n_volunteers: int, n_items: int, n_labels: int) -> Consensus:
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
    return Consensus(np.where(n_votes > 0, label, -1), n_alike / np.maximum(n_votes, 1))
