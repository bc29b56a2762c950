"""The value of asking volunteers about items: what labels reveal about items and volunteers, less what they cost."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from crowdgraph.allocation._beliefs import current_beliefs
from crowdgraph.allocation._information_gain import MAX_STATES, Gain, coalition_gain
from crowdgraph.allocation.objective import Amount, Objective, amounts, question_values
from crowdgraph.allocation.policy import Assignment
from crowdgraph.allocation.shared_errors import SharedErrors
from crowdgraph.allocation.specialisation import Specialisation
from crowdgraph.allocation.training import Training
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_instance, check_integer
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError

__all__ = ["TotalValue", "cost", "information_gain", "information_gain_bounds", "learning_gain", "total_value"]


def __dir__() -> list[str]:
    return __all__


class TotalValue(NamedTuple):
    """The value of an assignment in nats, in its three parts.

    Attributes
    ----------
    information, learning
        What its labels are expected to reveal about the items, and about the volunteers, times the rates.
    cost
        What they cost, times the rate; never above zero.
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
    r"""Return how much the labels of some volunteers are expected to reveal about an item's class, in nats.

    .. math:: H(t_i) - E_{c}\, H(t_i \mid c), \qquad c_k \mid t_i = j \sim E[\pi^{(k)}_j],

    with everybody's current confusion. Where the fit is calibrated, each label counts as what it adds to the item's
    effective number of answers: it is an independent one with that probability, and otherwise adds nothing; the first
    ones count most, so the order of the coalition matters a little.

    The result is exact up to 4,096 combinations of labels. Beyond that, nearly equal posteriors are merged, and the
    result is too small by at most the error of `information_gain_bounds`. With `shared_errors` nothing can be merged:
    volunteers beyond that number of combinations (from the 13th on where there are two labels) are ignored, so that
    their order matters.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    item
        The item.
    coalition
        The volunteers who would be asked, each once.
    shared_errors
        How often communities decide alike, so that several members most often reveal less; see
        `allocation.shared_errors`. If left out, everybody decides alone.
    specialisation
        How volunteers answer different kinds of items; see `allocation.specialisation`.
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
    """Return `information_gain` together with the most by which it may be too small.

    Parameters
    ----------
    graph, item, coalition, shared_errors, specialisation, fit
        As for `information_gain`.
    max_states
        How many posteriors are kept apart; more are slower and more exact.
    """
    check_integer("max_states", max_states, minimum=2)
    objective = Objective(shared_errors=shared_errors, specialisation=specialisation)
    members, items = _members(graph, coalition), np.array([graph.items.table.code(item)])
    values = question_values(graph, current_beliefs(graph, fit), objective, volunteers=members, items=items)
    return coalition_gain(
        values.probs[0],
        values.confusion[values.kind[0]],
        sharing=values.sharing,
        independence=np.array([float(values.independence(0, number)) for number in range(len(members))]),
        max_states=max_states,
    )


def learning_gain(
    graph: CrowdGraph,
    volunteer: Hashable,
    item: Hashable,
    *,
    training: Training | None = None,
    fit: ModelFit | str | None = None,
) -> float:
    r"""Return how much a label would reveal about the volunteer's confusion, in nats, once the item's class is known.

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
        How volunteers improve by answering, which is added; not at all if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> order = graph.volunteers.n_responses.argsort()
    >>> fewest, most = (graph.volunteers.ids[order[rank]] for rank in (0, -1))
    >>> gains = [cg.allocation.value.learning_gain(graph, who, "item-000") for who in (fewest, most)]
    >>> bool(gains[0] > gains[1] > 0)
    True
    """
    beliefs = current_beliefs(graph, fit)
    volunteers = np.array([graph.volunteers.table.code(volunteer)])
    items = np.array([graph.items.table.code(item)])
    values = question_values(graph, beliefs, Objective(training=training), volunteers=volunteers, items=items)
    return float(values.learning(np.zeros(1, dtype=int), np.zeros(1, dtype=int))[0])


def cost(
    graph: CrowdGraph,
    volunteer: Hashable,
    item: Hashable,
    *,
    rate: float = 1.0,
    payment: Amount = 1.0,
    effort: Amount = 0.0,
) -> float:
    """Return the cost of a response in nats, never above zero: minus the rate times the sum of payment and effort.

    Parameters
    ----------
    graph
        The graph that the volunteer and the item belong to; it needs no fit.
    volunteer, item
        Who would be asked, and about what.
    rate
        How many nats a unit of payment or effort must bring to be worth it.
    payment, effort
        The cost of a response, by volunteer and by item: one number for all, or one for each.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> cg.allocation.value.cost(graph, "volunteer-00", "item-000", rate=0.1, payment=2.0)
    -0.2
    """
    objective = Objective(cost=rate, payment=payment, effort=effort)
    check_instance("graph", graph, CrowdGraph)
    volunteers, items = graph.volunteers.table, graph.items.table
    who, what = volunteers.code(volunteer), items.code(item)
    paid = amounts(objective.payment, volunteers, "payment")[who] + amounts(objective.effort, items, "effort")[what]
    return float(0.0 - objective.cost * paid)


def total_value(
    graph: CrowdGraph,
    assignments: Assignment | Iterable[tuple[Hashable, Hashable]],
    *,
    objective: Objective = Objective(),  # noqa: B008 - it cannot be changed
    fit: ModelFit | str | None = None,
) -> TotalValue:
    r"""Return the value of an assignment: the sum over items of information, learning and cost.

    This is the paper's equation ``eq:weakcontrolvalues`` (its discussion):

    .. math:: V(C_1, \dots, C_N) = \sum_i V_\text{object}(C_i) + V_\text{dm}(C_i) + V_\text{cost}(C_i)

    What several labels reveal about one volunteer is added up, as in the paper; together they reveal a little less.
    With shared errors, only the first twelve questions about an item (where there are two labels) are counted.

    Parameters
    ----------
    graph, fit
        As for `information_gain`.
    assignments
        An assignment, or pairs of a volunteer and an item.
    objective
        The rates that convert each part to nats.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0, gold=0.5).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> objective = cg.allocation.Objective(learning=0.5, cost=0.01)
    >>> assignment = cg.allocation.GreedyValue().assign(graph, budget=10, objective=objective)
    >>> parts = cg.allocation.value.total_value(graph, assignment, objective=objective)
    >>> bool(abs(parts.total - assignment.value.sum()) < 1e-6), round(parts.cost, 9)
    (True, -0.1)
    """
    check_instance("objective", objective, Objective, expected="an Objective")
    volunteers, items = _pairs(graph, assignments)
    everybody, everything = np.arange(len(graph.volunteers)), np.arange(len(graph.items))
    beliefs = current_beliefs(graph, fit)
    values = question_values(graph, beliefs, objective, volunteers=everybody, items=everything)
    information = 0.0
    for item in np.unique(items).tolist():
        tree = values.posterior_tree(item, max_states=MAX_STATES)
        for volunteer in volunteers[items == item].tolist():
            values.add_label(tree, item, volunteer)
        information += tree.gain.nats
    return TotalValue(
        objective.information * information,
        objective.learning * float(values.learning(items, volunteers).sum()),
        float(values.costs(items, volunteers).sum()),
    )


def _pairs(graph: CrowdGraph, assignments: Iterable[tuple[Hashable, Hashable]]) -> tuple[Array, Array]:
    """Return the codes of the volunteers and items of an assignment."""
    expected = "assignments= takes an Assignment or pairs of a volunteer and an item, such as [('anna', 'x1')]"
    if not isinstance(assignments, Iterable):
        raise ParameterError(f"{expected}; got {assignments!r}.")
    pairs = [tuple(pair) if isinstance(pair, tuple | list) else (pair,) for pair in assignments]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise ParameterError(f"{expected}; got {wrong[0]!r} among them.")
    volunteers = np.asarray(graph.volunteers.table.codes([volunteer for volunteer, _ in pairs]), dtype=np.int64)
    items = np.asarray(graph.items.table.codes([item for _, item in pairs]), dtype=np.int64)
    if len(np.unique(volunteers * len(graph.items) + items)) < len(pairs):
        raise ParameterError("The assignments ask somebody twice about the same item; name each pair once.")
    return volunteers, items


def _members(graph: CrowdGraph, coalition: Iterable[Hashable]) -> Array:
    """Return the codes of the members of a coalition."""
    if isinstance(coalition, str | bytes) or not isinstance(coalition, Iterable):
        raise ParameterError(f"coalition={coalition!r} must be several volunteers, such as ['anna', 'bert'].")
    members = graph.volunteers.table.codes(list(coalition))
    if len(np.unique(members)) < len(members):
        raise ParameterError("The coalition names somebody twice; everybody is asked once.")
    return members
