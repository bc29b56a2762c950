"""What a fit says about items and volunteers now, as allocation needs it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays
from crowdgraph.core._parameters import check_instance
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph


@dataclass(frozen=True, eq=False)
class Beliefs(ReadOnlyArrays):
    """Class probabilities of the items, and Dirichlets of every volunteer's current confusion.

    Attributes
    ----------
    item_probs, class_probs
        The class probabilities of the items, of shape (N, J), and of an item without responses, of shape (J,).
    concentration
        The Dirichlets of the volunteers' confusion, of shape (V, J, L).
    n_answers
        How many answers each item has, of shape (N,).
    dependence
        The dependence between answers that the class probabilities allow for; None if there is none.
    """

    item_probs: Array
    class_probs: Array
    concentration: Array
    n_answers: Array
    dependence: Dependence | None = None

    @property
    def confusion(self) -> Array:
        """The probability that each volunteer gives each label to an item of each class, of shape (V, J, L)."""
        return dirichlet_mean(self.concentration)


def dirichlet_mean(concentration: Array) -> Array:
    """Return the means of Dirichlets along the last axis."""
    return np.asarray(concentration / concentration.sum(axis=-1, keepdims=True))


def current_beliefs(graph: CrowdGraph, fit: ModelFit | str | None = None) -> Beliefs:
    """Return what a fit says now: the fit itself, one that the graph carries by name, or the latest one."""
    check_instance("graph", graph, CrowdGraph)
    fit = graph.resolve_fit(fit, needs="confusion")
    concentration = fit.confusion.latest().concentration  # type: ignore[union-attr]
    return Beliefs(fit.item_probs, fit.class_probs, concentration, graph.answers.n_by_item, fit.dependence)
