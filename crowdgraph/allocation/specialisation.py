"""Specialisation: how volunteers answer the items that each task community works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.allocation._beliefs import current_beliefs, dirichlet_mean
from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core._parameters import check_positive
from crowdgraph.core.communities import Communities
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import check_ids_match
from crowdgraph.core.soft_answers import answer_parts
from crowdgraph.errors import AlignmentError

__all__ = ["Specialisation", "specialisation"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Specialisation(ReadOnlyArrays):
    """The confusion of volunteers for different kinds of items, where a kind is what one task community works on.

    Attributes
    ----------
    volunteers, items
        The ids of a graph's volunteers and items.
    kind
        The kind of each item, of shape (N,): the number of the community that answers it most, or the last kind for
        items that no community answered.
    confusion
        The expected confusion of each volunteer for each kind of item, of shape (K + 1, V, J, L); for the last kind,
        their overall confusion.
    """

    volunteers: Array
    items: Array
    kind: Array
    confusion: Array

    def __post_init__(self) -> None:
        for name in ("volunteers", "items", "kind", "confusion"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless the graph has the same volunteers, items, classes and labels."""
        for kind in ("volunteer", "item"):
            check_ids_match("The specialisation", getattr(self, f"{kind}s"), graph._table(kind))
        shape = (len(graph.classes), len(graph.labels))
        if self.confusion.shape[2:] != shape:
            raise AlignmentError(
                f"The specialisation has {self.confusion.shape[2]} classes and {self.confusion.shape[3]} labels, the "
                f"graph has {shape[0]} and {shape[1]}.",
                hint="Make it from the same graph.",
            )

    def __repr__(self) -> str:
        n_kinds, n_volunteers = self.confusion.shape[:2]
        return f"Specialisation({n_volunteers:,} volunteers, {n_kinds - 1} kinds of items)"


def specialisation(
    graph: CrowdGraph,
    communities: Communities | str | None = None,
    *,
    strength: float = 20.0,
    fit: ModelFit | str | None = None,
) -> Specialisation:
    """Estimate how volunteers answer the items that each task community works on.

    A volunteer's labels for items of a kind are counted, each answer by the class probabilities of its item, and added
    to `strength` answers that follow their overall confusion.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    communities
        Communities of `networks.task_cooccurrence`, or their name in the graph; the latest if left out.
    strength
        The number of answers about items of a class at which those of a kind count as much as the volunteer's overall
        confusion.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.
    """
    beliefs = current_beliefs(graph, fit)
    check_positive("strength", strength)
    groups = graph.resolve_communities(communities, network="task_cooccurrence")
    kind = _kinds(graph, groups)
    n_volunteers, n_classes, n_labels = beliefs.concentration.shape
    counts = np.zeros((len(groups) + 1, n_volunteers, n_labels, n_classes))
    parts = answer_parts(graph, graph.answers.where(kind[graph.answers.item] < len(groups)))
    cells = (kind[parts.item], parts.volunteer, parts.label)
    probs = beliefs.item_probs[parts.item]
    np.add.at(counts, cells, probs if parts.share is None else parts.share[:, None] * probs)
    return Specialisation(
        volunteers=graph.volunteers.ids,
        items=graph.items.ids,
        kind=kind,
        confusion=dirichlet_mean(strength * beliefs.confusion + counts.swapaxes(2, 3)),
    )


def _kinds(graph: CrowdGraph, communities: Communities) -> Array:
    """Return the community that answers each item most, of shape (N,); the number of communities where none does."""
    participation = communities.on(graph).participation
    answers = graph.answers
    weights = np.zeros((len(graph.items), len(communities)))
    for code, share in enumerate(participation.T):
        weights[:, code] = np.bincount(answers.item, weights=share[answers.volunteer], minlength=len(graph.items))
    if not len(communities):
        return np.zeros(len(graph.items), dtype=np.int64)
    return np.where(weights.any(axis=1), weights.argmax(axis=1), len(communities))
