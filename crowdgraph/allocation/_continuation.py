"""What is needed to continue a crowd: how its items and volunteers are, and what a model makes of new answers."""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np
from scipy.special import softmax

from crowdgraph.core._arrays import Array
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.soft_answers import warn_of_most_probable_labels
from crowdgraph.kernels.discount import item_discount, log_evidence
from crowdgraph.kernels.item_kinds import ItemKinds, learn_item_kinds
from crowdgraph.models._crowd_prior import learn_prior, weights_of

# How often a draw is estimated, from the best estimate on.
N_ITERATIONS_OF_DRAWS = 5
# So many answers are read for draws of what a crowd may be like, and at least so many draws are made.
MAX_ANSWERS_OF_DRAWS, MIN_DRAWS = 2_000_000, 5
# By how much, on the scale of its logarithm, later fits change the dependence that gold shows.
DEPENDENCE_SPREAD = 0.2
# Stands for probabilities that are zero, where logarithms are taken, and the least concentration of a label.
TINY = 1e-9
MIN_CONCENTRATION = 1e-3


def prior_of_volunteers(graph: CrowdGraph, fit: ModelFit) -> Array:
    """Return the concentration of everybody's rows before their answers, of shape (V, J, L), as a fit has it."""
    weights = weights_of(fit)
    if fit.prior is None:
        counts = expected_counts(graph, fit.item_probs)
        now = fit.confusion.latest().concentration  # type: ignore[union-attr]
        return np.asarray(np.maximum(now - counts, MIN_CONCENTRATION))
    if weights is None:
        return np.broadcast_to(
            fit.prior.of_all(graph.volunteers.ids.tolist()),
            (len(graph.volunteers), len(graph.classes), len(graph.labels)),
        )
    return learn_prior(
        graph,
        fit.probs_before_discount(graph),
        votes=fit.params.get("votes"),
        class_concentration=fit.prior.class_concentration,
        weights=weights,
    ).own


def draw_dependence(fit: ModelFit, rng: np.random.Generator) -> float:
    """Draw the dependence that a later fit learns from the same gold; one that was not learned stays as it is."""
    dependence = fit.dependence
    if dependence is None or dependence.source != "gold":
        return 0.0 if dependence is None else dependence.rho
    return float(min(dependence.rho * np.exp(DEPENDENCE_SPREAD * rng.standard_normal()), 1.0))


class ItemKindSource:
    """The classes and difficulties of items, and how volunteers answer, as far as all answers show it.

    Parameters
    ----------
    graph, fit
        The graph, and its fit.
    """

    def __init__(self, graph: CrowdGraph, fit: ModelFit) -> None:
        warn_of_most_probable_labels(graph, "the forecast of further answers")
        answers = graph.answers
        self._learn = partial(
            learn_item_kinds,
            answers.volunteer,
            answers.item,
            answers.label,
            prior=prior_of_volunteers(graph, fit),
            known=np.where(graph.gold.known[:, None], graph.gold.probs, np.nan),
        )
        self._best = self._learn(start=fit.item_probs[:, :, None])
        self._n_draws = max(MAX_ANSWERS_OF_DRAWS // max(len(answers), 1), MIN_DRAWS)
        self._draws: list[ItemKinds] = []

    def draw(self, rng: np.random.Generator) -> ItemKinds:
        """Draw how the crowd may be: what is learned when items count by random weights (a Bayesian bootstrap).

        Of very large crowds a few such draws are made, and drawn from again.
        """
        if len(self._draws) == self._n_draws:
            return self._draws[int(rng.integers(self._n_draws))]
        weights = rng.standard_exponential(len(self._best.probs))
        draw = self._learn(start=self._best.probs, weights=weights, n_iterations=N_ITERATIONS_OF_DRAWS)
        self._draws.append(draw)
        return draw


class Reader:
    """What a fitted model makes of further answers, without being fitted again.

    It keeps the evidence about items, adds that of new answers, and now and then judges all answers anew by confusion
    that has counted the new ones, though none about the item that is judged, as in calibrated fits.

    Parameters
    ----------
    graph, fit
        The graph, and its fit.
    items
        The codes of the items that get further answers, of shape (M,).
    share
        These items stand for all that get further answers, of which they are this share: so much more do their further
        answers count for the volunteers.

    Attributes
    ----------
    n_answers
        How many answers each of these items has, of shape (M,).
    """

    def __init__(self, graph: CrowdGraph, fit: ModelFit, items: Array, *, share: float = 1.0) -> None:
        self._rho = self._rho_later = 0.0 if fit.dependence is None else fit.dependence.rho
        self._new_weight = 1 / share
        self._prior = prior_of_volunteers(graph, fit)
        position = np.full(len(graph.items), -1)
        position[items] = np.arange(len(items))
        answers = graph.answers
        about = np.flatnonzero(position[answers.item] >= 0)
        self._volunteer, self._label = answers.volunteer[about].astype(np.int64), answers.label[about].astype(np.int64)
        self._item, self._weight = position[answers.item[about]], np.ones(len(about))
        before = fit.probs_before_discount(graph)
        self._concentration = self._prior + expected_counts(graph, before)
        self._counted = before[items]
        self._others = self._concentration - self._counts(self._counted)
        self.n_answers = graph.answers.n_by_item[items].copy()
        probs = np.maximum(fit.item_probs[items], np.finfo(float).tiny)
        self._evidence = np.log(probs) / item_discount(self.n_answers, self._rho)[:, None]
        # What the answers so far say by the present confusion, so that only changes of it count later.
        self._base = self._evidence - self._answers_evidence()

    def copy(self, *, rho: float) -> Reader:
        """Return a reader with the same answers that discounts by `rho` once something was learned."""
        other = copy(self)
        other.n_answers, other._evidence, other._rho_later = self.n_answers.copy(), self._evidence.copy(), rho
        return other

    def add(self, item: Array, volunteer: Array, label: Array) -> None:
        """Add answers, at most one about each item; items are named by their positions."""
        self._item = np.concatenate([self._item, item])
        self._volunteer = np.concatenate([self._volunteer, volunteer])
        self._label = np.concatenate([self._label, label])
        self._weight = np.concatenate([self._weight, np.full(len(item), self._new_weight)])
        hits, totals = self._concentration[volunteer, :, label], self._concentration[volunteer].sum(axis=2)
        self._evidence[item] += np.log(np.maximum(hits / totals, TINY))
        self.n_answers[item] += 1

    def learn(self) -> None:
        """Judge all answers about the items by confusion that has counted the new ones."""
        self._counted = softmax(self._evidence, axis=1)
        self._concentration = self._others + self._counts(self._counted)
        self._evidence = self._base + self._answers_evidence()
        self._rho = self._rho_later

    def certainty(self) -> Array:
        """Return how probable the most probable class of each item is now, of shape (M,)."""
        return np.asarray(
            softmax(item_discount(self.n_answers, self._rho)[:, None] * self._evidence, axis=1).max(axis=1)
        )

    def _answers_evidence(self) -> Array:
        own = self._counted[self._item] * self._weight[:, None]
        hits = self._concentration[self._volunteer, :, self._label] - own
        totals = self._concentration.sum(axis=2)[self._volunteer] - own
        return log_evidence(np.log(np.maximum(hits / totals, TINY)), self._item, len(self.n_answers))

    def _counts(self, probs: Array) -> Array:
        shape = self._prior.shape
        cells = self._volunteer * shape[2] + self._label
        counts = (probs[self._item] * self._weight[:, None]).T
        columns = [np.bincount(cells, column, minlength=shape[0] * shape[2]) for column in counts]
        return np.stack([column.reshape(shape[0], shape[2]) for column in columns], axis=1)
