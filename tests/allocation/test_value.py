"""The value of assignments: the sum of its parts, each worked out by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import GreedyValue, Objective, Training, shared_errors, value
from crowdgraph.allocation._information_gain import row_information, single_gains


@pytest.mark.parametrize(
    "objective",
    [
        Objective(),
        Objective(information=2.0, learning=0.7, cost=0.03, payment=2.0, effort=0.25),
        Objective(learning=1.0, training=Training(rate=0.5)),
    ],
    ids=["information", "all", "training"],
)
def test_total_value_is_the_sum_of_its_parts(erring_together, objective):
    graph = erring_together[0].graph
    assignment = GreedyValue(per_item=None).assign(graph, budget=25, capacity=5, objective=objective)
    total = value.total_value(graph, assignment, objective=objective)
    by_item = {}
    for who, what in assignment:
        by_item.setdefault(what, []).append(who)
    information = sum(value.information_gain(graph, what, members) for what, members in by_item.items())
    learning = sum(value.learning_gain(graph, who, what, training=objective.training) for who, what in assignment)
    costs = sum(
        value.cost(graph, who, what, rate=objective.cost, payment=objective.payment, effort=objective.effort)
        for who, what in assignment
    )
    assert_allclose(total.information, objective.information * information, rtol=1e-10)
    assert_allclose(total.learning, objective.learning * learning, rtol=1e-10)
    assert_allclose(total.cost, costs, rtol=1e-10)
    assert total.total == total.information + total.learning + total.cost
    # The audit log tells the same, in the order of decisions; pairs do as well as an assignment.
    assert_allclose(assignment.value.sum(), total.total, rtol=1e-6)
    assert value.total_value(graph, list(assignment)[::-1], objective=objective).total == pytest.approx(
        total.total, rel=1e-10
    )


def test_costs_are_never_above_zero(erring_together):
    graph = erring_together[0].graph
    payment = dict.fromkeys(graph.volunteers.ids.tolist(), 3.0)
    effort = {name: code / 100 for code, name in enumerate(graph.items.ids.tolist())}
    cost = value.cost(graph, "volunteer-01", "item-020", rate=0.5, payment=payment, effort=effort)
    assert cost == pytest.approx(-0.5 * 3.2)


def test_costs_need_no_fit():
    graph = cg.CrowdGraph.from_responses({"volunteer": ["a"], "item": ["x"], "label": ["y"]})
    assert value.cost(graph, "a", "x", rate=0.5, payment={"a": 3.0}, effort=1.0) == -2.0


def test_what_training_adds_is_worked_out_by_hand(erring_together):
    (graph, _), groups = erring_together
    training = Training(rate=0.3, reach=0.5, communities=groups)
    fit = graph.fit()
    confusion = fit.confusion.latest()
    tells = single_gains(fit.class_probs[None], confusion.mean)[0]
    who, what = "volunteer-03", "item-007"
    code, probs = graph.volunteers.table.code(who), fit.item_probs[graph.items.table.code(what)]

    def effect(volunteer):
        met = fit.item_probs[graph.responses.item[graph.responses.volunteer == volunteer]].sum(axis=0)
        return sum(probs[j] * 0.3 * (tells.max() - tells[volunteer]) / (1 + met[j]) for j in range(2))

    mates = [k for k in range(40) if groups.assignment[k] == groups.assignment[code] and k != code]
    expected = effect(code) + 0.5 * np.mean([effect(k) for k in mates])
    plain = value.learning_gain(graph, who, what)
    assert plain == pytest.approx(probs @ row_information(confusion.concentration[code]))
    assert value.learning_gain(graph, who, what, training=training) - plain == pytest.approx(expected)


def test_several_of_a_community_tell_less_where_errors_are_shared(erring_together):
    (graph, truth), groups = erring_together
    estimate = shared_errors(graph, groups)
    good, poor = (graph.volunteers.ids[truth.group == code][:2].tolist() for code in (0, 1))

    def gains(coalition):
        return (
            value.information_gain(graph, "item-001", coalition),
            value.information_gain(graph, "item-001", coalition, shared_errors=estimate),
        )

    alone, shared = gains(good)
    assert shared < alone
    for coalition in (good[:1], [good[0], poor[0]]):
        alone, shared = gains(coalition)
        assert shared == pytest.approx(alone)
