"""The communities that count when tasks are given out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays
from crowdgraph.core.communities import Communities
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import NotAnnotatedError, ParameterError


@dataclass(frozen=True, eq=False)
class Beliefs(ReadOnlyArrays):
    """Class probabilities, and Dirichlets of everybody's confusion now.

    Attributes
    ----------
    item_probs, class_probs
        The class probabilities of the items, of shape (N, J), and of an item nobody has seen, (J,).
    concentration
        The Dirichlets of the volunteers' confusion, of shape (V, J, L).
    """

    item_probs: Array
    class_probs: Array
    concentration: Array

    @property
    def confusion(self) -> Array:
        """The probability that each volunteer gives each label to an item of each class, of shape (V, J, L)."""
        return expected(self.concentration)


def expected(concentration: Array) -> Array:
    """The means of Dirichlets along the last axis."""
    return np.asarray(concentration / concentration.sum(axis=-1, keepdims=True))


def believed(graph: CrowdGraph, fit: ModelFit | str | None = None) -> Beliefs:
    """What a fit says now: the one given, the one carried under a name, or the latest that the graph carries."""
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Tasks are given out in a CrowdGraph; got a {type(graph).__name__}.")
    try:
        found = graph.fit(fit) if fit is None or isinstance(fit, str) else fit
    except NotAnnotatedError as error:
        raise NotAnnotatedError(
            f"{error} To give out tasks, fit a model that knows confusion: graph = graph.annotate(IBCC().fit(graph)), "
            "or DynIBCC() where volunteers change."
        ) from error
    if not isinstance(found, ModelFit):
        raise ParameterError(f"fit= takes a fit or the name of one; got a {type(found).__name__}.")
    found.check_nodes(graph)
    if found.confusion is None:
        raise NotAnnotatedError(
            f"The model {found.model!r} has no confusion matrices, so nobody knows what a volunteer would say; use "
            "IBCC, or DynIBCC where volunteers change."
        )
    return Beliefs(found.item_probs, found.class_probs, found.confusion.latest().concentration)


def found_communities(graph: CrowdGraph, communities: Communities | str | None, *, network: str) -> Communities:
    """The communities given, carried under a name, or carried last; `network` says in which network they are found."""
    try:
        found = graph.communities(communities) if communities is None or isinstance(communities, str) else communities
    except NotAnnotatedError as error:
        raise NotAnnotatedError(
            f"{error} Find some: graph = graph.annotate(BayesianNMF().detect(networks.{network}(graph)))."
        ) from error
    if not isinstance(found, Communities):
        raise ParameterError(f"communities= takes Communities or the name of some; got a {type(found).__name__}.")
    found.check_matches(graph)
    return found
