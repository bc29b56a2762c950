r"""How much labels would tell about the class of an item, in nats.

Labels of different volunteers are independent given the class. What is known after some of them is a set of posteriors,
each with its probability; one more volunteer splits each of them by label. Where they become too many, posteriors that
are nearly the same are merged. Merging loses no more information than what the merged posteriors told apart, which is
added up: the gain is at least what is returned, and at most that and the error.

The reason: if `S'` is a function of what is known, `S`, and labels `L` are independent of `S` given the class `T`, then
:math:`I(T; L | S') = H(L | S') - H(L | T) \ge H(L | S) - H(L | T) = I(T; L | S)`, so that
:math:`I(T; S, L) - I(T; S', L) \le I(T; S) - I(T; S')`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from crowdgraph.core.columns import Array

__all__ = ["ENOUGH_STATES", "MOST_STATES", "Gain", "Knowledge", "coalition_gain", "entropy", "single_gains"]

# Posteriors that are kept apart, and while questions are chosen, where less is enough.
MOST_STATES, ENOUGH_STATES = 4_096, 256


class Gain(NamedTuple):
    """An expected gain: at least `nats`, at most `nats + error`."""

    nats: float
    error: float


class Knowledge:
    """What may be known of an item's class after some volunteers: posteriors, of shape (S, J), and their weights.

    Parameters
    ----------
    probs
        The class probabilities before, of shape (J,).
    most_states
        How many posteriors are kept apart.
    """

    def __init__(self, probs: Array, *, most_states: int = MOST_STATES) -> None:
        self.weights: Array = np.ones(1)
        self.posteriors: Array = np.asarray(probs, dtype=np.float64)[None]
        self.error = 0.0
        self._before = float(entropy(self.posteriors)[0])
        self._most_states = most_states

    @property
    def gain(self) -> Gain:
        """How much the volunteers so far are expected to tell."""
        return Gain(max(self._before - float(self.weights @ entropy(self.posteriors)), 0.0), self.error)

    def ask(self, confusion: Array) -> None:
        """One more volunteer, of confusion (J, L), gives a label."""
        joint = self.posteriors[:, :, None] * confusion
        chances = joint.sum(axis=1)
        posteriors = np.moveaxis(joint / np.where(chances > 0, chances, 1.0)[:, None], 1, 2)
        weights = self.weights[:, None] * chances
        kept = weights > 0
        self.weights, self.posteriors = weights[kept], posteriors[kept]
        if len(self.weights) > self._most_states:
            self._merge()

    def further(self, confusion: Array) -> Array:
        """How much one more volunteer would tell, for each of some with confusion (V, J, L), of shape (V,)."""
        doubt = entropy(confusion) @ (self.weights @ self.posteriors)
        labels = np.tensordot(self.posteriors, confusion, axes=(1, 1))
        return np.asarray(np.maximum(self.weights @ entropy(labels) - doubt, 0.0))

    def _merge(self) -> None:
        """Make one posterior of those in the same cell of a grid over the probabilities of all classes but one."""
        n_classes = self.posteriors.shape[1]
        n_cells = max(int(self._most_states ** (1 / (n_classes - 1))), 1)
        cells = np.minimum((self.posteriors[:, :-1] * n_cells).astype(np.int64), n_cells - 1)
        _, cell = np.unique(cells @ n_cells ** np.arange(n_classes - 1), return_inverse=True)
        weights: Array = np.bincount(cell, weights=self.weights)
        sums = np.stack([np.bincount(cell, weights=self.weights * column) for column in self.posteriors.T], axis=1)
        before = float(self.weights @ entropy(self.posteriors))
        self.weights, self.posteriors = weights, sums / weights[:, None]
        self.error += max(float(weights @ entropy(self.posteriors)) - before, 0.0)


def coalition_gain(probs: Array, confusion: Array, *, most_states: int = MOST_STATES) -> Gain:
    """How much the labels of volunteers with confusion (M, J, L) are expected to tell about an item's class."""
    known = Knowledge(probs, most_states=most_states)
    for one in confusion:
        known.ask(one)
    return known.gain


def single_gains(item_probs: Array, confusion: Array) -> Array:
    """How much each volunteer alone, of confusion (V, J, L), would tell about each item, (N, J); of shape (N, V)."""
    gains = -(item_probs @ entropy(confusion).T)
    # One label at a time, since there may be many items and volunteers.
    for label in range(confusion.shape[2]):
        gains += entr(item_probs @ confusion[:, :, label].T)
    return np.asarray(np.maximum(gains, 0.0))


def entropy(probs: Array) -> Array:
    """The entropy along the last axis, in nats."""
    return np.asarray(entr(probs).sum(axis=-1))
