"""Volunteers who are better, or worse, at what their task community works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.allocation._beliefs import believed, expected, found_communities
from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core._parameters import check_positive
from crowdgraph.core.communities import Communities
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import check_ids_match
from crowdgraph.errors import AlignmentError

__all__ = ["Specialisation", "specialisation"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Specialisation(ReadOnlyArrays):
    """What volunteers say of items of different kinds, a kind being what a task community works on.

    Attributes
    ----------
    volunteers, items
        The ids of a graph's volunteers and items.
    kind
        The kind of each item, of shape (N,): the number of the community that answers it most, or the last kind for
        items that no community answered.
    confusion
        What is expected of each volunteer for items of each kind, of shape (K + 1, V, J, L); for the last kind, what is
        expected of them on the whole.
    """

    volunteers: Array
    items: Array
    kind: Array
    confusion: Array

    def __post_init__(self) -> None:
        for name in ("volunteers", "items", "kind", "confusion"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless this is about the volunteers, items, classes and labels of a graph."""
        for kind in ("volunteer", "item"):
            check_ids_match("The specialisation", getattr(self, f"{kind}s"), graph._table(kind))
        shape = (len(graph.classes), len(graph.labels))
        if self.confusion.shape[2:] != shape:
            raise AlignmentError(
                f"The specialisation is about {self.confusion.shape[2]} classes and {self.confusion.shape[3]} labels, "
                f"the graph has {shape[0]} and {shape[1]}. Make it from the same graph."
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
    """What volunteers say of the items that each task community works on.

    What a volunteer said of items of a kind is counted, each answer by the class probabilities of its item, and added
    to `strength` answers as the volunteer gives them on the whole.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    communities
        Communities of `networks.task_cooccurrence`, or their name in the graph; the latest if left out.
    strength
        How many answers about items of a class it takes until those of a kind count as much as what is known of the
        volunteer on the whole.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.
    """
    beliefs = believed(graph, fit)
    check_positive("strength", strength)
    groups = found_communities(graph, communities, network="task_cooccurrence")
    kind = _kinds(graph, groups)
    n_volunteers, n_classes, n_labels = beliefs.concentration.shape
    counts = np.zeros((len(groups) + 1, n_volunteers, n_labels, n_classes))
    responses = graph.responses
    rows = np.flatnonzero((responses.label >= 0) & (kind[responses.item] < len(groups)))
    item = responses.item[rows]
    np.add.at(counts, (kind[item], responses.volunteer[rows], responses.label[rows]), beliefs.item_probs[item])
    return Specialisation(
        volunteers=graph.volunteers.ids,
        items=graph.items.ids,
        kind=kind,
        confusion=expected(strength * beliefs.confusion + counts.swapaxes(2, 3)),
    )


def _kinds(graph: CrowdGraph, communities: Communities) -> Array:
    """The community that answers each item most, of shape (N,); the number of communities where none does."""
    shares = np.zeros((len(graph.volunteers), len(communities)))
    shares[graph.volunteers.table.codes(communities.ids.tolist())] = communities.participation
    given = graph.responses.label >= 0
    item, volunteer = graph.responses.item[given], graph.responses.volunteer[given]
    answers = np.zeros((len(graph.items), len(communities)))
    for one, share in enumerate(shares.T):
        answers[:, one] = np.bincount(item, weights=share[volunteer], minlength=len(graph.items))
    if not len(communities):
        return np.zeros(len(graph.items), dtype=np.int64)
    return np.where(answers.any(axis=1), answers.argmax(axis=1), len(communities))
