r"""How much labels would tell about the class of an item, in nats.

What is known after some labels is a set of posteriors, each with its probability; one more volunteer splits each of
them by label. Where labels are independent given the class, posteriors that are nearly the same are merged when they
become too many. Merging loses no more information than what the merged posteriors told apart, which is added up: the
gain is at least what is returned, and at most that and the error.

The reason: if `S'` is a function of what is known, `S`, and labels `L` are independent of `S` given the class `T`, then
:math:`I(T; L | S') = H(L | S') - H(L | T) \ge H(L | S) - H(L | T) = I(T; L | S)`, so that
:math:`I(T; S, L) - I(T; S', L) \le I(T; S) - I(T; S')`.

Where a community shares errors, labels depend on what its other members said, and posteriors cannot be merged. When
they become too many, further volunteers are not counted: the gain is still at least what is returned, and the error is
all that is left to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, entr

from crowdgraph.core._arrays import Array

# Posteriors that are kept apart, and while questions are chosen, where less is enough.
MAX_STATES, MAX_STATES_WHILE_CHOOSING = 4_096, 256


class Gain(NamedTuple):
    """An expected gain: at least `nats`, at most `nats + error`."""

    nats: float
    error: float


class Sharing(NamedTuple):
    """Who errs together: the community of each volunteer, of shape (V,), -1 for none; its chance to, of shape (K,)."""

    community: Array
    chance: Array

    def take(self, volunteers: Array | Sequence[int]) -> Sharing:
        """The same for some of the volunteers."""
        return Sharing(self.community[volunteers], self.chance)


class SharedDraw(NamedTuple):
    """What members of a community have said of an item, for each posterior and class, all of shape (S, J).

    Attributes
    ----------
    alone
        The probability of their labels if everybody decides alone.
    low, high
        Where the one draw that decides for all of them must lie, if there is one.
    """

    alone: Array
    low: Array
    high: Array

    @classmethod
    def nothing(cls, posteriors: Array) -> SharedDraw:
        """Before any of them has said anything."""
        return cls(np.ones_like(posteriors), np.zeros_like(posteriors), np.ones_like(posteriors))

    def likelihood(self, chance: float) -> Array:
        """The probability of their labels given the class."""
        return np.asarray((1 - chance) * self.alone + chance * np.maximum(self.high - self.low, 0.0))

    def after(self, confusion: Array) -> SharedDraw:
        """The same after one more of them, of confusion (..., J, L), by label: of shape (..., S, J, L)."""
        edges = confusion.cumsum(axis=-1)
        # Sums of floats may end beside one, and the last label takes all that is left.
        edges[..., -1] = 1.0
        starts = np.concatenate([np.zeros_like(edges[..., :1]), edges[..., :-1]], axis=-1)
        rows, first, last = (values[..., None, :, :] for values in (confusion, starts, edges))
        return SharedDraw(
            self.alone[..., None] * rows, np.maximum(self.low[..., None], first), np.minimum(self.high[..., None], last)
        )

    def conditional(self, after: SharedDraw, chance: float) -> Array:
        """The chance of each label given the class and what they said before, of shape (..., S, J, L)."""
        before = self.likelihood(chance)
        return np.asarray(after.likelihood(chance) / np.where(before > 0, before, 1.0)[..., None])

    def spread(self, n_labels: int) -> SharedDraw:
        """The same whatever somebody else says, of shape (S, J, L)."""
        return SharedDraw(*(np.broadcast_to(values[..., None], (*values.shape, n_labels)) for values in self))

    def take(self, states: Array) -> SharedDraw:
        """The same for the posteriors that remain, from arrays of shape (S, J, L)."""
        return SharedDraw(*(np.moveaxis(values, 1, 2)[states] for values in self))


class PosteriorTree:
    """What may be known of an item's class after some volunteers: posteriors, of shape (S, J), and their weights.

    Parameters
    ----------
    probs
        The class probabilities before, of shape (J,).
    most_states
        How many posteriors are kept apart.
    chances
        The chance of each community to err together, of shape (K,); if left out, everybody decides alone.
    """

    def __init__(self, probs: Array, *, max_states: int = MAX_STATES, chances: Array | None = None) -> None:
        self.weights: Array = np.ones(1)
        self.posteriors: Array = np.asarray(probs, dtype=np.float64)[None]
        self._before = float(entropy(self.posteriors)[0])
        # The most that merging has lost, and the least that is known to be gained, which no further label lowers.
        self._lost = self._least = 0.0
        self._most_states = max_states
        self._chances = np.zeros(0) if chances is None else chances
        self._said: dict[int, SharedDraw] = {}
        self._full = False

    @property
    def gain(self) -> Gain:
        """How much the volunteers so far are expected to tell."""
        found = self._before - float(self.weights @ entropy(self.posteriors))
        self._least = max(self._least, found)
        most = self._before if self._full else min(found + self._lost, self._before)
        return Gain(self._least, max(most - self._least, 0.0))

    def ask(self, confusion: Array, community: int = -1) -> None:
        """One more volunteer, of confusion (J, L) and a community (-1 for none), gives a label."""
        shares = community >= 0 and self._chances[community] > 0
        if self._full or ((shares or self._said) and len(self.weights) * confusion.shape[1] > self._most_states):
            self._full = True
            return
        rows = np.broadcast_to(confusion, (len(self.weights), *confusion.shape))
        said = {one: common.spread(rows.shape[2]) for one, common in self._said.items()}
        if shares:
            before = self._said.get(community, SharedDraw.nothing(self.posteriors))
            said[community] = before.after(confusion)
            rows = before.conditional(said[community], self._chances[community])
        kept = self._split(rows)
        self._said = {one: common.take(kept) for one, common in said.items()}
        if len(self.weights) > self._most_states:
            self._merge()

    def further(self, confusion: Array, community: Array | None = None) -> Array:
        """How much one more volunteer would tell, for each of some with confusion (V, J, L), of shape (V,)."""
        if self._full:
            return np.zeros(len(confusion))
        doubt = entropy(confusion) @ (self.weights @ self.posteriors)
        labels = np.tensordot(self.posteriors, confusion, axes=(1, 1))
        gains = np.maximum(self.weights @ entropy(labels) - doubt, 0.0)
        for one, said in self._said.items():
            members = np.flatnonzero(community == one)
            rows = said.conditional(said.after(confusion[members]), self._chances[one])
            joint = (self.posteriors[:, :, None] * rows).sum(axis=2)
            doubt = (self.posteriors * entropy(rows)).sum(axis=2)
            gains[members] = np.maximum((entropy(joint) - doubt) @ self.weights, 0.0)
        return np.asarray(gains)

    def _split(self, rows: Array) -> Array:
        """Split all posteriors by label, of probabilities (S, J, L), and tell which remain, of shape (S, L)."""
        joint = self.posteriors[:, :, None] * rows
        chances = joint.sum(axis=1)
        posteriors = np.moveaxis(joint / np.where(chances > 0, chances, 1.0)[:, None], 1, 2)
        weights = self.weights[:, None] * chances
        kept = np.asarray(weights > 0)
        self.weights, self.posteriors = weights[kept], posteriors[kept]
        return kept

    def _merge(self) -> None:
        """Make one posterior of those in the same cell of the finest grid of probabilities that leaves few enough."""
        n_cells = self._most_states
        cell = _cells(self.posteriors, n_cells)
        while cell.max() >= self._most_states and n_cells > 1:
            n_cells //= 2
            cell = _cells(self.posteriors, n_cells)
        weights: Array = np.bincount(cell, weights=self.weights)
        sums = np.stack([np.bincount(cell, weights=self.weights * column) for column in self.posteriors.T], axis=1)
        before = float(self.weights @ entropy(self.posteriors))
        self._least = max(self._least, self._before - before)
        self.weights, self.posteriors = weights, sums / weights[:, None]
        self._lost += max(float(weights @ entropy(self.posteriors)) - before, 0.0)


def _cells(posteriors: Array, n_cells: int) -> Array:
    """The number of each posterior's cell in a grid of so many steps; if that is one, its most probable class."""
    if n_cells == 1:
        keys = posteriors.argmax(axis=1)
    else:
        steps = np.minimum((posteriors * n_cells).astype(np.uint64), n_cells - 1)
        # Cells are told apart by a hash. Where two have the same, more is merged than need be, and counted as lost.
        keys = steps @ np.random.default_rng(0).integers(0, 2**63, steps.shape[1], dtype=np.uint64)
    return np.asarray(np.unique(keys, return_inverse=True)[1])


def coalition_gain(
    probs: Array, confusion: Array, *, sharing: Sharing | None = None, max_states: int = MAX_STATES
) -> Gain:
    """How much the labels of volunteers with confusion (M, J, L) are expected to tell about an item's class."""
    community = np.full(len(confusion), -1) if sharing is None else sharing.community
    known = PosteriorTree(probs, max_states=max_states, chances=None if sharing is None else sharing.chance)
    for one, theirs in zip(confusion, community.tolist(), strict=True):
        known.ask(one, theirs)
    return known.gain


def single_gains(item_probs: Array, confusion: Array) -> Array:
    """How much each volunteer alone, of confusion (V, J, L), would tell about each item, (N, J); of shape (N, V)."""
    from crowdgraph.kernels.information_gain import label_information

    probs, rows = (np.ascontiguousarray(values, dtype=np.float64) for values in (item_probs, confusion))
    return np.asarray(label_information(probs, rows, entropy(rows)))


def entropy(probs: Array) -> Array:
    """The entropy along the last axis, in nats."""
    return np.asarray(entr(probs).sum(axis=-1))


def row_information(concentration: Array) -> Array:
    """The information between a label and the Dirichlet row that it is drawn from, for rows on the last axis."""
    total = concentration.sum(axis=-1, keepdims=True)
    mean = concentration / total
    expected = (mean * (digamma(total + 1) - digamma(concentration + 1))).sum(axis=-1)
    return np.asarray(np.maximum(entropy(mean) - expected, 0.0))
