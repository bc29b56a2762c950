"""The answers that count: each volunteer's first to each item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core.columns import Array
from crowdgraph.core.graph import CrowdGraph

__all__ = ["FirstAnswers", "first_answers", "upper_tail"]


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
