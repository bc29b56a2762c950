"""What asking some volunteers about some items would bring, in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.allocation.beliefs import Beliefs
from crowdgraph.allocation.gain import (
    ENOUGH_STATES,
    MOST_STATES,
    Knowledge,
    Sharing,
    entropy,
    row_information,
    single_gains,
)
from crowdgraph.allocation.worth import Worth, amounts, training_effect
from crowdgraph.core.columns import Array
from crowdgraph.core.graph import CrowdGraph

__all__ = ["Outlook", "outlook"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Outlook:
    """What is believed, and what questions are worth, in places of some volunteers (M) and items (N).

    Attributes
    ----------
    worth
        The exchange rates.
    probs
        The class probabilities, of shape (N, J).
    kind
        Which confusion counts for each item, of shape (N,).
    confusion
        What is expected of each volunteer for items of each kind, of shape (G, M, J, L).
    sharing
        Who errs together; None if everybody decides alone.
    growth
        How much an item of each class would tell about each volunteer, and teach, of shape (M, J).
    payment, effort
        What a response costs by volunteer, of shape (M,), and by item, (N,).
    """

    worth: Worth
    probs: Array
    kind: Array
    confusion: Array
    sharing: Sharing | None
    growth: Array
    payment: Array
    effort: Array

    def knowledge(self, item: int, *, most_states: int | None = None) -> Knowledge:
        """What is known of an item before anybody is asked; if left out, as many posteriors as choosing needs."""
        chances = None if self.sharing is None else self.sharing.chance
        if most_states is None:
            most_states = ENOUGH_STATES if self.sharing is None else MOST_STATES
        return Knowledge(self.probs[item], most_states=most_states, chances=chances)

    def ask(self, known: Knowledge, item: int, volunteer: int) -> None:
        """Let a volunteer answer an item."""
        community = -1 if self.sharing is None else int(self.sharing.community[volunteer])
        known.ask(self.confusion[self.kind[item], volunteer], community)

    def further(self, known: Knowledge, item: int) -> Array:
        """How much each volunteer would tell of an item beyond what is known, of shape (M,)."""
        community = None if self.sharing is None else self.sharing.community
        return known.further(self.confusion[self.kind[item]], community)

    def first(self) -> Array:
        """How much each volunteer alone would tell of each item, of shape (N, M)."""
        gains = np.zeros((len(self.probs), self.confusion.shape[1]))
        for kind in np.unique(self.kind):
            rows = self.kind == kind
            gains[rows] = single_gains(self.probs[rows], self.confusion[kind])
        return gains

    def alone(self, items: Array, volunteers: Array) -> Array:
        """How much a volunteer alone would tell of an item, for pairs."""
        probs, rows = self.probs[items], self.confusion[self.kind[items], volunteers]
        labels = (probs[:, :, None] * rows).sum(axis=1)
        return np.asarray(np.maximum(entropy(labels) - (probs * entropy(rows)).sum(axis=1), 0.0))

    def learning(self, items: Array, volunteers: Array) -> Array:
        """How much labels would tell about the volunteers who give them, and teach, for pairs."""
        return np.asarray((self.probs[items] * self.growth[volunteers]).sum(axis=1))

    def costs(self, items: Array, volunteers: Array) -> Array:
        """What responses cost, in nats, never above zero, for pairs."""
        return np.asarray(0.0 - self.worth.cost * (self.payment[volunteers] + self.effort[items]))

    def values(self, gains: Array, items: int | slice = slice(None)) -> Array:
        """What questions about items, or one, are worth that tell so much, both of shape (N, M) or (M,)."""
        values = self.worth.information * gains
        # There may be many questions, and both are most often left out.
        if self.worth.learning:
            values = values + self.worth.learning * (self.probs[items] @ self.growth.T)
        if self.worth.cost:
            values = values - self.worth.cost * (self.effort[items, None] + self.payment)
        return np.asarray(values)


def outlook(graph: CrowdGraph, beliefs: Beliefs, worth: Worth, *, volunteers: Array, items: Array) -> Outlook:
    """What asking volunteers about items, both as codes, would bring."""
    special = worth.specialisation
    if special is not None:
        special.check_fits(graph)
    learned = row_information(beliefs.concentration) + training_effect(graph, beliefs, worth.training)
    return Outlook(
        worth=worth,
        probs=beliefs.item_probs[items],
        kind=np.zeros(len(items), dtype=np.int64) if special is None else special.kind[items],
        confusion=(beliefs.confusion[None] if special is None else special.confusion)[:, volunteers],
        sharing=None if worth.shared_errors is None else worth.shared_errors.sharing(graph).take(volunteers),
        growth=learned[volunteers],
        payment=amounts(worth.payment, graph.volunteers.table, "payment")[volunteers],
        effort=amounts(worth.effort, graph.items.table, "effort")[items],
    )
