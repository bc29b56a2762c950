r"""Items of several difficulties: how their answers go on, as far as the answers so far show it.

Given its class j and its difficulty d, an item's answers are independent. A volunteer answers an item of difficulty d
by their own row of class j, or, with probability d, as they answer items of no particular class:

.. math:: p(\text{label} \mid j, d) = (1 - d)\, \pi^{(k)}_{j, \text{label}} +
          d\, \frac{1}{J} \sum_{j'} \pi^{(k)}_{j', \text{label}}.

Class and difficulty of each item, the share of each difficulty and everybody's rows are estimated together by
expectation maximisation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import softmax

__all__ = ["DIFFICULTIES", "ItemKinds", "blurred_rows", "learn_item_kinds"]

Numbers = NDArray[Any]

DIFFICULTIES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
N_ITERATIONS = 15
TINY = 1e-9


class ItemKinds(NamedTuple):
    """The kinds of items, each a class and a difficulty, and how volunteers answer.

    Attributes
    ----------
    probs
        The probability of each class and difficulty for each item, of shape (N, J, D).
    concentration
        The Dirichlets of the volunteers' rows, of shape (V, J, L).
    """

    probs: Numbers
    concentration: Numbers


def blurred_rows(rows: Numbers, difficulty: Numbers) -> Numbers:
    """Return rows as they are for items of some difficulty.

    Parameters
    ----------
    rows
        Confusion matrices, of shape (n, J, L).
    difficulty
        One difficulty for all, or an array that broadcasts against `rows`.
    """
    return np.asarray((1 - difficulty) * rows + difficulty * rows.mean(axis=-2, keepdims=True))


def learn_item_kinds(
    volunteer: Numbers,
    item: Numbers,
    label: Numbers,
    *,
    prior: Numbers,
    start: Numbers,
    known: Numbers,
    weights: Numbers | None = None,
    n_iterations: int = N_ITERATIONS,
) -> ItemKinds:
    """Estimate the kinds of items and the rows of volunteers.

    Parameters
    ----------
    volunteer, item, label
        The codes of the answers, each of shape (R,).
    prior
        The concentration of everybody's rows before their answers, of shape (V, J, L).
    start
        The probabilities of the items' classes and difficulties to begin with, of shape (N, J, D) or (N, J, 1).
    known
        The probabilities of classes that are known, of shape (N, J), which stay as they are; NaN for items of which
        none is.
    weights
        How much each item counts for rows and shares, of shape (N,); all alike if left out.
    n_iterations
        How often everything is estimated anew.
    """
    n_items, n_classes = start.shape[:2]
    n_difficulties = len(DIFFICULTIES)
    shape = (-1, n_classes, n_difficulties)
    weights = np.ones(n_items) if weights is None else weights
    # Answers with the same label by the same volunteer differ in their items alone.
    cells, cell = np.unique(volunteer.astype(np.int64) * prior.shape[2] + label, return_inverse=True)
    who, said = np.divmod(cells, prior.shape[2])
    n_answers = csr_array((np.ones(len(item)), (item, cell)), shape=(n_items, len(cells)))
    is_known = ~np.isnan(known).any(axis=1)
    probs = np.broadcast_to(start, (n_items, n_classes, n_difficulties)) / (n_difficulties / start.shape[2])
    own: Any = np.ones((1, 1, n_difficulties))
    concentration = prior
    for _ in range(n_iterations):
        weighted = probs * weights[:, None, None]
        counts = ((n_answers.T @ weighted.reshape(n_items, -1)).reshape(shape) * own).sum(axis=2)
        concentration = prior.copy()
        concentration[who, :, said] += counts
        mean = concentration / concentration.sum(axis=2, keepdims=True)
        rows, anyhow = mean[who, :, said][:, :, None], mean.mean(axis=1)[who, said][:, None, None]
        chances = (1 - DIFFICULTIES) * rows + DIFFICULTIES * anyhow
        own = (1 - DIFFICULTIES) * rows / np.maximum(chances, TINY)
        evidence = n_answers @ np.log(np.maximum(chances, TINY)).reshape(len(cells), -1)
        totals = weighted.sum(axis=0)
        class_share, difficulty_share = totals.sum(axis=1) + 1, totals.sum(axis=0) + 1
        shares = np.log(class_share / class_share.sum())[:, None] + np.log(difficulty_share / difficulty_share.sum())
        evidence = evidence.reshape(shape) + shares
        probs = softmax(evidence.reshape(n_items, -1), axis=1).reshape(evidence.shape)
        probs[is_known] = known[is_known][:, :, None] * softmax(evidence[is_known], axis=2)
    return ItemKinds(probs, concentration)
