"""The objective of allocation: what a question is worth, from the information in its answer and from its cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

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
from crowdgraph.allocation.training import Training, training_effect
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import Configured, check_non_negative, instance, non_negative, setting
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ParameterError
from crowdgraph.messages import quote

__all__ = ["Amount", "Objective", "QuestionValues"]

Amount = float | Mapping[Hashable, float]


def _check_amounts(name: str, amount: object) -> None:
    for number in amount.values() if isinstance(amount, Mapping) else [amount]:
        check_non_negative(name, number)


@dataclass(frozen=True, kw_only=True)
class Objective(Configured):
    """The value of a question in nats: information about the item, plus learning about the volunteer, less the cost.

    Where the fit is calibrated, one more answer counts as what it adds to the item's effective number of answers, so
    that questions about items with many answers are worth less. The rates convert each part to nats. By default only
    information about the item counts.

    Parameters
    ----------
    information
        The value of one nat of information about an item.
    learning
        The value of one nat of information about a volunteer's confusion, or gained by training.
    cost
        How many nats a unit of payment or effort must bring to be worth it.
    payment, effort
        The cost of a response, by volunteer and by item, in units that are added: one number for all, or one for each.
    training
        How volunteers improve by answering; not at all if left out.
    shared_errors
        How often communities decide alike; see `allocation.shared_errors`. If left out, everybody decides alone.
    specialisation
        How volunteers answer different kinds of items; see `allocation.specialisation`. If left out, all items alike.
    """

    information: float = non_negative(1.0)
    learning: float = non_negative(0.0)
    cost: float = non_negative(0.0)
    payment: Amount = setting(1.0, _check_amounts)
    effort: Amount = setting(0.0, _check_amounts)
    training: Training | None = instance(None, Training)
    shared_errors: SharedErrors | None = instance(None, SharedErrors)
    specialisation: Specialisation | None = instance(None, Specialisation)


def amounts(amount: Amount, table: NodeTable, name: str) -> Array:
    """Return the payment or effort of each volunteer or item of a table, of shape (n,)."""
    if not isinstance(amount, Mapping):
        return np.full(len(table), float(amount))
    column = np.full(len(table), np.nan)
    column[table.codes(list(amount))] = list(amount.values())
    missing = table.ids[np.isnan(column)].tolist()
    if missing:
        raise ParameterError(
            f"{name}= names {len(amount):,} {table.kind}s and lacks {quote(missing, most=3)}.",
            hint="Give a number for each, or one for all.",
        )
    return column


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionValues:
    """The expected value of asking some volunteers (M) about some items (N), each named by its position among them.

    Attributes
    ----------
    objective
        The rates that convert information, learning and cost to nats.
    probs
        The class probabilities of the items, of shape (N, J).
    kind
        Which of the confusion matrices holds for each item, of shape (N,).
    confusion
        The expected confusion of each volunteer for each kind of item, of shape (G, M, J, L).
    sharing
        Who makes errors together; None if everybody decides alone.
    growth
        How much an item of each class would reveal about each volunteer, and teach them, of shape (M, J).
    payment, effort
        The cost of a response by volunteer, of shape (M,), and by item, of shape (N,).
    dependence
        The dependence between answers, for which one more answer counts as less than one; None if there is none, or
        where `sharing` says who makes errors together.
    n_answers
        How many answers the items have, of shape (N,), where there is dependence.
    """

    objective: Objective
    probs: Array
    kind: Array
    confusion: Array
    sharing: Sharing | None
    growth: Array
    payment: Array
    effort: Array
    dependence: Dependence | None = None
    n_answers: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def independence(self, items: int | slice | Array, n_more: int = 0) -> Array:
        """Return for how many independent answers one more counts, after so many further ones about the same items."""
        if self.dependence is None:
            return np.ones(np.shape(self.kind[items]))
        return self.dependence.next_answer(self.n_answers[items] + n_more)

    def posterior_tree(self, item: int, *, max_states: int | None = None) -> PosteriorTree:
        """Return the posterior of an item before any label; by default with as many states as choosing needs."""
        chances = None if self.sharing is None else self.sharing.chance
        if max_states is None:
            max_states = MAX_STATES_WHILE_CHOOSING if self.sharing is None else MAX_STATES
        return PosteriorTree(self.probs[item], max_states=max_states, chances=chances)

    def add_label(self, tree: PosteriorTree, item: int, volunteer: int) -> None:
        """Add the label that a volunteer would give to an item to its posterior tree."""
        community = -1 if self.sharing is None else int(self.sharing.community[volunteer])
        independence = float(self.independence(item, tree.n_labels))
        tree.add_label(self.confusion[self.kind[item], volunteer], community, independence=independence)

    def marginal_gain(self, tree: PosteriorTree, item: int) -> Array:
        """Return how much a label of each volunteer would add to an item's posterior tree, of shape (M,)."""
        community = None if self.sharing is None else self.sharing.community
        return tree.marginal_gain(self.confusion[self.kind[item]], community) * self.independence(item, tree.n_labels)

    def single_gains(self) -> Array:
        """Return how much one label of each volunteer would reveal about each item, of shape (N, M)."""
        gains = np.zeros((len(self.probs), self.confusion.shape[1]))
        for kind in np.unique(self.kind):
            rows = self.kind == kind
            gains[rows] = single_gains(self.probs[rows], self.confusion[kind])
        if self.dependence is not None:
            gains *= self.independence(slice(None))[:, None]
        return gains

    def pair_gains(self, items: Array, volunteers: Array) -> Array:
        """Return how much one label would reveal about its item, for pairs of an item and a volunteer."""
        probs, rows = self.probs[items], self.confusion[self.kind[items], volunteers]
        labels = (probs[:, :, None] * rows).sum(axis=1)
        gains = np.maximum(entropy(labels) - (probs * entropy(rows)).sum(axis=1), 0.0)
        return np.asarray(gains * self.independence(items))

    def learning(self, items: Array, volunteers: Array) -> Array:
        """Return how much labels would reveal about the volunteers who give them, and teach them, for pairs."""
        return np.asarray((self.probs[items] * self.growth[volunteers]).sum(axis=1))

    def costs(self, items: Array, volunteers: Array) -> Array:
        """Return the cost of responses in nats, never above zero, for pairs."""
        return np.asarray(0.0 - self.objective.cost * (self.payment[volunteers] + self.effort[items]))

    def net_values(self, gains: Array, items: int | slice = slice(None)) -> Array:
        """Return the value of questions with these gains, of shape (N, M) for items or (M,) for one item."""
        # One coalition's terms of the paper's eq:weakcontrolvalues: V_object + V_dm + V_cost, each at its rate.
        values = self.objective.information * gains
        # There may be many questions, and the rates of learning and cost are most often zero.
        if self.objective.learning:
            values = values + self.objective.learning * (self.probs[items] @ self.growth.T)
        if self.objective.cost:
            values = values - self.objective.cost * (self.effort[items, None] + self.payment)
        return np.asarray(values)


def question_values(
    graph: CrowdGraph, beliefs: Beliefs, objective: Objective, *, volunteers: Array, items: Array
) -> QuestionValues:
    """Value questions to volunteers about items, both given as codes."""
    special = objective.specialisation
    if special is not None:
        special.check_matches(graph)
    growth = row_information(beliefs.concentration) + training_effect(graph, beliefs, objective.training)
    return QuestionValues(
        objective=objective,
        probs=beliefs.item_probs[items],
        kind=np.zeros(len(items), dtype=np.int64) if special is None else special.kind[items],
        confusion=(beliefs.confusion[None] if special is None else special.confusion)[:, volunteers],
        sharing=None if objective.shared_errors is None else objective.shared_errors.sharing(graph).take(volunteers),
        growth=growth[volunteers],
        payment=amounts(objective.payment, graph.volunteers.table, "payment")[volunteers],
        effort=amounts(objective.effort, graph.items.table, "effort")[items],
        n_answers=beliefs.n_answers[items],
        dependence=beliefs.dependence if objective.shared_errors is None else None,
    )
