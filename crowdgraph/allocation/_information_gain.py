r"""The information that labels are expected to give about the class of an item, in nats.

Some labels lead to a set of posteriors, each with its probability; one more label splits each of them. Where labels are
independent given the class, nearly equal posteriors are merged when they become too many. Merging loses no more
information than distinguished the merged posteriors. That loss is added up, so that the gain lies between the value
returned and that value plus the error.

The reason: if `S'` is a function of what is known, `S`, and labels `L` are independent of `S` given the class `T`, then
:math:`I(T; L | S') = H(L | S') - H(L | T) \ge H(L | S) - H(L | T) = I(T; L | S)`, so that
:math:`I(T; S, L) - I(T; S', L) \le I(T; S) - I(T; S')`.

Where a community shares errors, labels depend on those of its other members, and posteriors cannot be merged. When they
become too many, further labels are ignored: the value returned is still a lower bound, and the error is all that is
left to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, entr

from crowdgraph.core._arrays import Array

# How many posteriors are kept apart: for values that are reported, and while questions are chosen, where fewer suffice.
MAX_STATES, MAX_STATES_WHILE_CHOOSING = 4_096, 256


class Gain(NamedTuple):
    """An expected gain: at least `nats`, at most `nats + error`."""

    nats: float
    error: float


class Sharing(NamedTuple):
    """Who makes errors together.

    Attributes
    ----------
    community
        The community of each volunteer, of shape (V,); -1 for none.
    chance
        The chance that one draw decides for all members of a community, of shape (K,).
    """

    community: Array
    chance: Array

    def take(self, volunteers: Array | Sequence[int]) -> Sharing:
        """Return the same for some of the volunteers."""
        return Sharing(self.community[volunteers], self.chance)


class SharedDraw(NamedTuple):
    """The labels that members of one community have given to an item, all of shape (S, J): by posterior and class.

    Attributes
    ----------
    alone
        The probability of their labels if everybody decides alone.
    low, high
        The interval in which the single draw must lie if it decides for all of them.
    """

    alone: Array
    low: Array
    high: Array

    @classmethod
    def before_labels(cls, posteriors: Array) -> SharedDraw:
        """Return the state before any member has given a label."""
        return cls(np.ones_like(posteriors), np.zeros_like(posteriors), np.ones_like(posteriors))

    def likelihood(self, chance: float) -> Array:
        """Return the probability of the labels given the class."""
        return np.asarray((1 - chance) * self.alone + chance * np.maximum(self.high - self.low, 0.0))

    def after(self, confusion: Array) -> SharedDraw:
        """Return the state after one more member, of confusion (..., J, L), by label: of shape (..., S, J, L)."""
        upper = confusion.cumsum(axis=-1)
        # Sums of floats may miss one by a little; the last label takes all that is left.
        upper[..., -1] = 1.0
        lower = np.concatenate([np.zeros_like(upper[..., :1]), upper[..., :-1]], axis=-1)
        rows, lower, upper = (values[..., None, :, :] for values in (confusion, lower, upper))
        return SharedDraw(
            self.alone[..., None] * rows,
            np.maximum(self.low[..., None], lower),
            np.minimum(self.high[..., None], upper),
        )

    def conditional(self, after: SharedDraw, chance: float) -> Array:
        """Return the probability of each label given the class and the earlier labels, of shape (..., S, J, L)."""
        before = self.likelihood(chance)
        return np.asarray(after.likelihood(chance) / np.where(before > 0, before, 1.0)[..., None])

    def spread(self, n_labels: int) -> SharedDraw:
        """Repeat the state for every label of somebody outside the community, of shape (S, J, L)."""
        return SharedDraw(*(np.broadcast_to(values[..., None], (*values.shape, n_labels)) for values in self))

    def take(self, states: Array) -> SharedDraw:
        """Keep the posteriors that remain, given as a mask (S, L), of arrays of shape (S, J, L)."""
        return SharedDraw(*(np.moveaxis(values, 1, 2)[states] for values in self))


class PosteriorTree:
    """All posteriors of an item's class that the labels of some volunteers may lead to, and their probabilities.

    Parameters
    ----------
    probs
        The class probabilities before any label, of shape (J,).
    max_states
        How many posteriors are kept apart.
    chances
        The chance of each community to decide by one draw, of shape (K,); if left out, everybody decides alone.

    Attributes
    ----------
    weights, posteriors
        The probability of each posterior, of shape (S,), and the posteriors, of shape (S, J).
    n_labels
        How many labels were added.
    """

    def __init__(self, probs: Array, *, max_states: int = MAX_STATES, chances: Array | None = None) -> None:
        self.weights: Array = np.ones(1)
        self.posteriors: Array = np.asarray(probs, dtype=np.float64)[None]
        self._entropy_before = float(entropy(self.posteriors)[0])
        # The most that merging has lost, and the largest lower bound of the gain so far, which no label can lower.
        self._lost = self._lower_bound = 0.0
        self._max_states = max_states
        self._chances = np.zeros(0) if chances is None else chances
        self._draws: dict[int, SharedDraw] = {}
        self._full = False
        self.n_labels = 0

    @property
    def gain(self) -> Gain:
        """The information that the labels so far are expected to give."""
        gain = self._entropy_before - float(self.weights @ entropy(self.posteriors))
        self._lower_bound = max(self._lower_bound, gain)
        upper_bound = self._entropy_before if self._full else min(gain + self._lost, self._entropy_before)
        return Gain(self._lower_bound, max(upper_bound - self._lower_bound, 0.0))

    def add_label(self, confusion: Array, community: int = -1, *, independence: float = 1.0) -> None:
        """Split all posteriors by the label of one more volunteer, of confusion (J, L) and a community, -1 for none.

        With probability `independence` the label is an independent one; otherwise it adds nothing to the labels before.
        """
        self.n_labels += 1
        if independence < 1:
            nothing = np.full((len(confusion), 1), 1 - independence)
            confusion = np.concatenate([independence * confusion, nothing], axis=1)
        shares = community >= 0 and self._chances[community] > 0
        if self._full or ((shares or self._draws) and len(self.weights) * confusion.shape[1] > self._max_states):
            self._full = True
            return
        rows = np.broadcast_to(confusion, (len(self.weights), *confusion.shape))
        draws = {code: draw.spread(rows.shape[2]) for code, draw in self._draws.items()}
        if shares:
            before = self._draws.get(community, SharedDraw.before_labels(self.posteriors))
            draws[community] = before.after(confusion)
            rows = before.conditional(draws[community], self._chances[community])
        remaining = self._split(rows)
        self._draws = {code: draw.take(remaining) for code, draw in draws.items()}
        if len(self.weights) > self._max_states:
            self._merge()

    def marginal_gain(self, confusion: Array, community: Array | None = None) -> Array:
        """Return how much one more label would add, for each volunteer of confusion (V, J, L), of shape (V,)."""
        if self._full:
            return np.zeros(len(confusion))
        noise = entropy(confusion) @ (self.weights @ self.posteriors)
        labels = np.tensordot(self.posteriors, confusion, axes=(1, 1))
        gains = np.maximum(self.weights @ entropy(labels) - noise, 0.0)
        for code, draw in self._draws.items():
            members = np.flatnonzero(community == code)
            rows = draw.conditional(draw.after(confusion[members]), self._chances[code])
            joint = (self.posteriors[:, :, None] * rows).sum(axis=2)
            noise = (self.posteriors * entropy(rows)).sum(axis=2)
            gains[members] = np.maximum((entropy(joint) - noise) @ self.weights, 0.0)
        return np.asarray(gains)

    def _split(self, rows: Array) -> Array:
        """Split all posteriors by label, of probabilities (S, J, L), and return which ones remain, of shape (S, L)."""
        joint = self.posteriors[:, :, None] * rows
        chances = joint.sum(axis=1)
        posteriors = np.moveaxis(joint / np.where(chances > 0, chances, 1.0)[:, None], 1, 2)
        weights = self.weights[:, None] * chances
        remaining = np.asarray(weights > 0)
        self.weights, self.posteriors = weights[remaining], posteriors[remaining]
        return remaining

    def _merge(self) -> None:
        """Merge posteriors that share a cell, in the finest grid of probabilities that leaves few enough of them."""
        n_cells = self._max_states
        cell = _cells(self.posteriors, n_cells)
        while cell.max() >= self._max_states and n_cells > 1:
            n_cells //= 2
            cell = _cells(self.posteriors, n_cells)
        weights: Array = np.bincount(cell, weights=self.weights)
        sums = np.stack([np.bincount(cell, weights=self.weights * column) for column in self.posteriors.T], axis=1)
        before = float(self.weights @ entropy(self.posteriors))
        self._lower_bound = max(self._lower_bound, self._entropy_before - before)
        self.weights, self.posteriors = weights, sums / weights[:, None]
        self._lost += max(float(weights @ entropy(self.posteriors)) - before, 0.0)


def _cells(posteriors: Array, n_cells: int) -> Array:
    """Number each posterior's cell in a grid with this many steps per axis; with one step, by its likeliest class."""
    if n_cells == 1:
        keys = posteriors.argmax(axis=1)
    else:
        steps = np.minimum((posteriors * n_cells).astype(np.uint64), n_cells - 1)
        # Cells are identified by a hash. Where two collide, more is merged than necessary, and counted as lost.
        keys = steps @ np.random.default_rng(0).integers(0, 2**63, steps.shape[1], dtype=np.uint64)
    return np.asarray(np.unique(keys, return_inverse=True)[1])


def coalition_gain(
    probs: Array,
    confusion: Array,
    *,
    sharing: Sharing | None = None,
    independence: Array | None = None,
    max_states: int = MAX_STATES,
) -> Gain:
    """Return what labels of volunteers with confusion (M, J, L) are expected to reveal about an item's class.

    The label of each is an independent one with probability `independence`, (M,), or always if that is left out.
    """
    communities = np.full(len(confusion), -1) if sharing is None else sharing.community
    chances = np.ones(len(confusion)) if independence is None else independence
    tree = PosteriorTree(probs, max_states=max_states, chances=None if sharing is None else sharing.chance)
    for rows, community, chance in zip(confusion, communities.tolist(), chances.tolist(), strict=True):
        tree.add_label(rows, community, independence=chance)
    return tree.gain


def single_gains(item_probs: Array, confusion: Array) -> Array:
    """Return what one label of each volunteer, (V, J, L), would reveal about each item, (N, J); of shape (N, V)."""
    from crowdgraph.kernels.information_gain import label_information

    probs, rows = (np.ascontiguousarray(values, dtype=np.float64) for values in (item_probs, confusion))
    return np.asarray(label_information(probs, rows, entropy(rows)))


def entropy(probs: Array) -> Array:
    """Return the entropy along the last axis, in nats."""
    return np.asarray(entr(probs).sum(axis=-1))


def row_information(concentration: Array) -> Array:
    """Return the information between a label and the Dirichlet row that it is drawn from, for rows on the last axis."""
    total = concentration.sum(axis=-1, keepdims=True)
    mean = concentration / total
    expected = (mean * (digamma(total + 1) - digamma(concentration + 1))).sum(axis=-1)
    return np.asarray(np.maximum(entropy(mean) - expected, 0.0))
