"""What asking some volunteers about some items would bring, in arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from crowdgraph.allocation._beliefs import Beliefs
from crowdgraph.allocation._information_gain import (
    MAX_STATES,
    MAX_STATES_WHILE_CHOOSING,
    PosteriorTree,
    Sharing,
    entropy,
    row_information,
    single_gains,
)
from crowdgraph.allocation.shared_errors import SharedErrors
from crowdgraph.allocation.specialisation import Specialisation
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import is_number
from crowdgraph.core.communities import Communities
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ParameterError, quote

__all__ = ["Amount", "Objective", "QuestionValues", "Training", "amounts", "question_values", "training_effect"]

Amount = float | Mapping[Hashable, float]


@dataclass(frozen=True, kw_only=True)
class Training:
    r"""Volunteers become better by meeting items of classes that they have hardly met, and so may their community.

    Meeting an item of class j closes a share of what lies between what a volunteer tells with a label, on average, and
    what the best tells. The more items of the class they have met, the smaller the share:

    .. math:: e_{kj} = \text{rate} \cdot \frac{\max_l g_l - g_k}{1 + m_{kj}}, \qquad
              \text{effect}(k, i) = \sum_j q(t_i = j) \Big( e_{kj} + \text{reach} \cdot \frac{1}{n_k}
              \sum_{l \sim k} e_{lj} \Big),

    in nats for each label given later, where :math:`m_{kj}` is how many items of the class the volunteer has met,
    answered or not, and
    :math:`l \sim k` are the :math:`n_k` others of the same community.

    Parameters
    ----------
    rate
        The share that the first item closes, from 0 to 1.
    reach
        How much of it others of the community gain, from 0 to 1.
    communities
        The communities; nobody else gains if left out.
    """

    rate: float = 0.1
    reach: float = 0.0
    communities: Communities | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "reach"):
            share = getattr(self, name)
            if not is_number(share) or not 0 <= share <= 1:
                raise ParameterError(f"{name}={share!r} must be a share from 0 to 1.")
        if self.communities is not None and not isinstance(self.communities, Communities):
            raise ParameterError(f"communities= takes Communities; got a {type(self.communities).__name__}.")
        if self.reach and self.communities is None:
            raise ParameterError(f"reach={self.reach!r} needs communities=, to say whom it reaches.")


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a question is worth, in nats: what it tells of the item, plus what of the volunteer, less what it costs.

    The rates say how many nats each part is worth. By default only what is told of the item counts.

    Parameters
    ----------
    information
        What a nat told about an item is worth.
    learning
        What a nat told about a volunteer's confusion, or gained by training, is worth.
    cost
        How many nats a unit of payment or effort must bring to be worth it.
    payment, effort
        What a response costs, by volunteer and by item, in units that are added: one number for all, or one for each.
    training
        How volunteers become better by answering; not at all if left out.
    shared_errors
        How often communities decide alike; see `allocation.shared_errors`. If left out, everybody decides alone.
    specialisation
        What volunteers say of different kinds of items; see `allocation.specialisation`. If left out, the same of all.
    """

    information: float = 1.0
    learning: float = 0.0
    cost: float = 0.0
    payment: Amount = 1.0
    effort: Amount = 0.0
    training: Training | None = None
    shared_errors: SharedErrors | None = None
    specialisation: Specialisation | None = None

    def __post_init__(self) -> None:
        for name in ("information", "learning", "cost"):
            _check_amount(name, getattr(self, name))
        for name in ("payment", "effort"):
            amount = getattr(self, name)
            for one in amount.values() if isinstance(amount, Mapping) else [amount]:
                _check_amount(name, one)
        for name, kind in (
            ("training", Training),
            ("shared_errors", SharedErrors),
            ("specialisation", Specialisation),
        ):
            part = getattr(self, name)
            if part is not None and not isinstance(part, kind):
                raise ParameterError(f"{name}= takes a {kind.__name__}; got a {type(part).__name__}.")


def amounts(amount: Amount, table: NodeTable, name: str) -> Array:
    """What each volunteer or item of a table costs, of shape (n,)."""
    if not isinstance(amount, Mapping):
        return np.full(len(table), float(amount))
    found = np.full(len(table), np.nan)
    found[table.codes(list(amount))] = list(amount.values())
    lacking = table.ids[np.isnan(found)].tolist()
    if lacking:
        raise ParameterError(
            f"{name}= names {len(amount):,} {table.kind}s and lacks {quote(lacking, most=3)}; give a number for each, "
            "or one for all."
        )
    return found


def training_effect(graph: CrowdGraph, beliefs: Beliefs, training: Training | None) -> Array:
    """What a volunteer, and their community, gain by meeting an item of each class, of shape (V, J)."""
    shape = beliefs.concentration.shape[:2]
    if training is None:
        return np.zeros(shape)
    tells = single_gains(beliefs.class_probs[None], beliefs.confusion)[0]
    responses = graph.responses
    met = np.zeros(shape)
    np.add.at(met, responses.volunteer, beliefs.item_probs[responses.item])
    own = training.rate * (tells.max(initial=0.0) - tells)[:, None] / (1 + met)
    if training.communities is None:
        return np.asarray(own)
    community = training.communities.assigned(graph)
    sums = np.zeros((len(training.communities) + 1, shape[1]))
    np.add.at(sums, community, own)
    others = np.bincount(community[community >= 0], minlength=len(sums))[community] - 1
    reached = np.where(community[:, None] >= 0, sums[community] - own, 0.0) / np.maximum(others, 1)[:, None]
    return np.asarray(own + training.reach * reached)


def _check_amount(name: str, amount: object) -> None:
    if not is_number(amount) or not 0 <= amount < float("inf"):  # type: ignore[operator]
        raise ParameterError(f"{name}={amount!r} must be a finite number of at least 0.")


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionValues:
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

    worth: Objective
    probs: Array
    kind: Array
    confusion: Array
    sharing: Sharing | None
    growth: Array
    payment: Array
    effort: Array

    def knowledge(self, item: int, *, max_states: int | None = None) -> PosteriorTree:
        """What is known of an item before anybody is asked; if left out, as many posteriors as choosing needs."""
        chances = None if self.sharing is None else self.sharing.chance
        if max_states is None:
            max_states = MAX_STATES_WHILE_CHOOSING if self.sharing is None else MAX_STATES
        return PosteriorTree(self.probs[item], max_states=max_states, chances=chances)

    def ask(self, known: PosteriorTree, item: int, volunteer: int) -> None:
        """Let a volunteer answer an item."""
        community = -1 if self.sharing is None else int(self.sharing.community[volunteer])
        known.ask(self.confusion[self.kind[item], volunteer], community)

    def further(self, known: PosteriorTree, item: int) -> Array:
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


def question_values(
    graph: CrowdGraph, beliefs: Beliefs, worth: Objective, *, volunteers: Array, items: Array
) -> QuestionValues:
    """What asking volunteers about items, both as codes, would bring."""
    special = worth.specialisation
    if special is not None:
        special.check_matches(graph)
    learned = row_information(beliefs.concentration) + training_effect(graph, beliefs, worth.training)
    return QuestionValues(
        worth=worth,
        probs=beliefs.item_probs[items],
        kind=np.zeros(len(items), dtype=np.int64) if special is None else special.kind[items],
        confusion=(beliefs.confusion[None] if special is None else special.confusion)[:, volunteers],
        sharing=None if worth.shared_errors is None else worth.shared_errors.sharing(graph).take(volunteers),
        growth=learned[volunteers],
        payment=amounts(worth.payment, graph.volunteers.table, "payment")[volunteers],
        effort=amounts(worth.effort, graph.items.table, "effort")[items],
    )
