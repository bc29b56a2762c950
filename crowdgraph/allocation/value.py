"""The value of asking volunteers about items: what labels tell about items and volunteers, less what they cost."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from crowdgraph.allocation._beliefs import believed
from crowdgraph.allocation._information_gain import MAX_STATES, Gain, coalition_gain
from crowdgraph.allocation.objective import Amount, Objective, QuestionValues, Training, question_values
from crowdgraph.allocation.policy import Assignment
from crowdgraph.allocation.shared_errors import SharedErrors
from crowdgraph.allocation.specialisation import Specialisation
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError

__all__ = ["TotalValue", "cost", "information_gain", "information_gain_bounds", "learning_gain", "total_value"]


class TotalValue(NamedTuple):
    """What an assignment is worth, in nats, and of what that is the sum.

    Attributes
    ----------
    information, learning
        What its labels tell about the items, and about the volunteers, by their exchange rates.
    cost
        What they cost, by its exchange rate; never above zero.
    """

    information: float
    learning: float
    cost: float

    @property
    def total(self) -> float:
        """The sum of the three."""
        return self.information + self.learning + self.cost


def information_gain(
    graph: CrowdGraph,
    item: Hashable,
    coalition: Iterable[Hashable],
    *,
    shared_errors: SharedErrors | None = None,
    specialisation: Specialisation | None = None,
    fit: ModelFit | str | None = None,
) -> float:
    r"""How much the labels of some volunteers are expected to tell about an item's class, in nats.

    .. math:: H(t_i) - E_{c}\, H(t_i \mid c), \qquad c_k \mid t_i = j \sim E[\pi^{(k)}_j],

    with everybody's confusion as it is now. It is exact as long as there are at most 4,096 combinations of labels;
    beyond that nearly equal posteriors are merged and it is a little too small, by at most what
    `information_gain_bounds` tells. With `shared_errors` nothing can be merged: volunteers beyond that, from the 13th
    on where labels are two, are not counted, so that the order of naming them matters.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    item
        The item.
    coalition
        The volunteers who would be asked, each once.
    shared_errors
        How often communities decide alike, which most often makes several of a community tell less; see
        `allocation.shared_errors`. If left out, everybody decides alone.
    specialisation
        What volunteers say of different kinds of items; see `allocation.specialisation`.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, gold=0.0, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> one, two = (cg.allocation.value.information_gain(graph, "item-000", graph.volunteers.ids[:n]) for n in (1, 2))
    >>> bool(0 < one < two < 2 * one)
    True
    """
    return information_gain_bounds(
        graph, item, coalition, shared_errors=shared_errors, specialisation=specialisation, fit=fit
    ).nats


def information_gain_bounds(
    graph: CrowdGraph,
    item: Hashable,
    coalition: Iterable[Hashable],
    *,
    shared_errors: SharedErrors | None = None,
    specialisation: Specialisation | None = None,
    fit: ModelFit | str | None = None,
    max_states: int = MAX_STATES,
) -> Gain:
    """As `information_gain`, with the most by which it is too small.

    Parameters
    ----------
    graph, item, coalition, shared_errors, specialisation, fit
        As for `information_gain`.
    most_states
        How many posteriors are kept apart; more are slower and nearer.
    """
    check_integer("most_states", max_states, minimum=2)
    worth = Objective(shared_errors=shared_errors, specialisation=specialisation)
    members, place = _members(graph, coalition), _place(graph, item)
    view = question_values(graph, believed(graph, fit), worth, volunteers=members, items=place)
    return coalition_gain(view.probs[0], view.confusion[view.kind[0]], sharing=view.sharing, max_states=max_states)


def learning_gain(
    graph: CrowdGraph,
    volunteer: Hashable,
    item: Hashable,
    *,
    training: Training | None = None,
    fit: ModelFit | str | None = None,
) -> float:
    r"""How much a label would tell about the volunteer's own confusion, in nats, once the item's class is known.

    .. math:: \sum_j q(t_i = j) \Big( H\big(E[\pi_j]\big) - E\big[H(\pi_j)\big] \Big),

    the information between the label and the row of the confusion matrix. It falls as the volunteer answers more. Where
    the class is never known, less is learned.

    Parameters
    ----------
    graph, item, fit
        As for `information_gain`.
    volunteer
        The volunteer who would be asked.
    training
        How volunteers become better by answering, which is added; not at all if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> order = graph.volunteers.n_responses.argsort()
    >>> shy, busy = (graph.volunteers.ids[order[place]] for place in (0, -1))
    >>> gains = [cg.allocation.value.learning_gain(graph, who, "item-000") for who in (shy, busy)]
    >>> bool(gains[0] > gains[1] > 0)
    True
    """
    view = _pair(graph, volunteer, item, Objective(training=training), fit)
    return float(view.learning(np.zeros(1, dtype=int), np.zeros(1, dtype=int))[0])


def cost(
    graph: CrowdGraph,
    volunteer: Hashable,
    item: Hashable,
    *,
    rate: float = 1.0,
    payment: Amount = 1.0,
    effort: Amount = 0.0,
    fit: ModelFit | str | None = None,
) -> float:
    """What a response costs, in nats, never above zero: minus the rate times payment and effort.

    Parameters
    ----------
    graph, volunteer, item, fit
        As for `learning_gain`.
    rate
        How many nats a unit of payment or effort must bring to be worth it.
    payment, effort
        What a response costs, by volunteer and by item: one number for all, or one for each.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> cg.allocation.value.cost(graph, "volunteer-00", "item-000", rate=0.1, payment=2.0)
    -0.2
    """
    view = _pair(graph, volunteer, item, Objective(cost=rate, payment=payment, effort=effort), fit)
    return float(view.costs(np.zeros(1, dtype=int), np.zeros(1, dtype=int))[0])


def total_value(
    graph: CrowdGraph,
    assignments: Assignment | Iterable[tuple[Hashable, Hashable]],
    *,
    worth: Objective = Objective(),  # noqa: B008 - it cannot be changed
    fit: ModelFit | str | None = None,
) -> TotalValue:
    r"""What an assignment is worth: the paper's sum over items of information, learning and cost of their coalitions.

    .. math:: V(C_1, \dots, C_N) = \sum_i V_\text{object}(C_i) + V_\text{dm}(C_i) + V_\text{cost}(C_i)

    What several labels tell about one volunteer is added up, as the paper does; together they tell a little less.
    With shared errors, of more than twelve questions about an item (where labels are two) only the first are counted.

    Parameters
    ----------
    graph, fit
        As for `information_gain`.
    assignments
        An assignment, or pairs of a volunteer and an item.
    worth
        The exchange rates to nats.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0, gold=0.5).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> worth = cg.allocation.Objective(learning=0.5, cost=0.01)
    >>> chosen = cg.allocation.GreedyValue().assign(graph, budget=10, worth=worth)
    >>> parts = cg.allocation.value.total_value(graph, chosen, worth=worth)
    >>> bool(abs(parts.total - chosen.value.sum()) < 1e-6), round(parts.cost, 9)
    (True, -0.1)
    """
    if not isinstance(worth, Objective):
        raise ParameterError(f"worth= takes a Worth; got a {type(worth).__name__}.")
    volunteers, items = _pairs(graph, assignments)
    whole = {"volunteers": np.arange(len(graph.volunteers)), "items": np.arange(len(graph.items))}
    view = question_values(graph, believed(graph, fit), worth, **whole)
    information = 0.0
    for item in np.unique(items).tolist():
        known = view.knowledge(item, max_states=MAX_STATES)
        for volunteer in volunteers[items == item].tolist():
            view.ask(known, item, volunteer)
        information += known.gain.nats
    return TotalValue(
        worth.information * information,
        worth.learning * float(view.learning(items, volunteers).sum()),
        float(view.costs(items, volunteers).sum()),
    )


def _pair(
    graph: CrowdGraph, volunteer: Hashable, item: Hashable, worth: Objective, fit: ModelFit | str | None
) -> QuestionValues:
    """The outlook of one volunteer and one item."""
    beliefs = believed(graph, fit)
    who = np.array([graph.volunteers.table.code(volunteer)])
    return question_values(graph, beliefs, worth, volunteers=who, items=_place(graph, item))


def _place(graph: CrowdGraph, item: Hashable) -> Array:
    return np.array([graph.items.table.code(item)])


def _pairs(graph: CrowdGraph, assignments: Iterable[tuple[Hashable, Hashable]]) -> tuple[Array, Array]:
    """The codes of volunteers and items."""
    takes = "assignments= takes an Assignment or pairs of a volunteer and an item, such as [('anna', 'x1')]"
    if not isinstance(assignments, Iterable):
        raise ParameterError(f"{takes}; got {assignments!r}.")
    pairs = [tuple(pair) if isinstance(pair, tuple | list) else (pair,) for pair in assignments]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise ParameterError(f"{takes}; got {wrong[0]!r} among them.")
    volunteers = np.asarray(graph.volunteers.table.codes([volunteer for volunteer, _ in pairs]), dtype=np.int64)
    items = np.asarray(graph.items.table.codes([item for _, item in pairs]), dtype=np.int64)
    if len(np.unique(volunteers * len(graph.items) + items)) < len(pairs):
        raise ParameterError("The assignments ask somebody twice about the same item; name each pair once.")
    return volunteers, items


def _members(graph: CrowdGraph, coalition: Iterable[Hashable]) -> Array:
    """The codes of the members of a coalition."""
    if isinstance(coalition, str | bytes) or not isinstance(coalition, Iterable):
        raise ParameterError(f"coalition={coalition!r} must be several volunteers, such as ['anna', 'bert'].")
    members = graph.volunteers.table.codes(list(coalition))
    if len(np.unique(members)) < len(members):
        raise ParameterError("The coalition names somebody twice; everybody is asked once.")
    return members
