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


# Answers that depend on each other


@pytest.fixture(scope="module")
def dependent(erring_together):
    """The graph with a calibrated fit, of which answers count as half dependent."""
    graph = erring_together[0].graph
    return graph.replace().annotate(cg.IBCC().fit(graph).calibrated(rho=0.5))


def test_the_value_of_a_question_is_the_share_of_an_independent_one(dependent):
    fit = dependent.fit()
    who = dependent.volunteers.ids[0]
    codes = np.flatnonzero(~dependent.gold.known)[:20]
    for code in codes.tolist():
        n = int(dependent.answers.n_by_item[code])
        share = (n + 1) / (1 + 0.5 * n) - (n / (1 + 0.5 * (n - 1)) if n else 0)
        independent = single_gains(fit.item_probs[[code]], fit.confusion.latest().mean[[0]])[0, 0]
        gain = value.information_gain(dependent, dependent.items.ids[code], [who])
        assert_allclose(gain, share * independent, atol=1e-12)


def test_questions_about_items_with_many_answers_are_worth_less():
    """One item after another has more answers; all have the same class probabilities."""
    n_items = 6
    table = {
        "volunteer": [k for item in range(n_items) for k in range(item)],
        "item": [item for item in range(n_items) for _ in range(item)],
        "label": [k % 2 for item in range(n_items) for k in range(item)],
    }
    graph = cg.CrowdGraph.from_responses(
        table, labels=[0, 1], items={"item": list(range(n_items))}, volunteers={"volunteer": [*range(n_items), "asked"]}
    )
    confusion = np.tile([[8.0, 2.0], [2.0, 8.0]], (n_items + 1, 1, 1))
    fit = cg.ModelFit(
        model="by hand",
        items=graph.items.ids,
        classes=graph.classes,
        item_probs=np.full((n_items, 2), 0.5),
        class_probs=[0.5, 0.5],
        confusion=cg.ConfusionTrack.static(
            ids=graph.volunteers.ids, concentration=confusion, classes=graph.classes, labels=graph.labels
        ),
        diagnostics={"dependence": {"rho": 0.3, "source": "given", "n_gold": 0}},
    )
    annotated = graph.annotate(fit)
    gains = [value.information_gain(annotated, item, ["asked"]) for item in range(n_items)]
    assert gains[0] == pytest.approx(gains[1] / (2 / 1.3 - 1))
    assert (np.diff(gains) < 0).all()
    asked = cg.allocation.GreedyValue().assign(annotated, budget=1, capacity={"asked": 1})
    assert list(asked) == [("asked", 0)]


@pytest.mark.parametrize("objective", [Objective(), Objective(learning=0.7, cost=1e-4, effort=0.25)])
def test_gains_of_a_greedy_round_add_up_where_answers_depend_on_each_other(dependent, objective):
    certainty = np.where(dependent.gold.known, 1, dependent.fit().item_probs.max(axis=1))
    items = dependent.items.ids[np.argsort(certainty)[:4]].tolist()
    assignment = GreedyValue(per_item=None).assign(dependent, budget=15, capacity=5, objective=objective, items=items)
    total = value.total_value(dependent, assignment, objective=objective)
    assert_allclose(assignment.value.sum(), total.total, rtol=1e-6)
    assert len(assignment.items) == 15


def test_shared_errors_take_the_place_of_dependence(dependent, erring_together):
    """Both would discount the same answers twice."""
    estimate = shared_errors(dependent, erring_together[1])
    item, members = dependent.items.ids[0], dependent.volunteers.ids[:3].tolist()
    fit = dependent.fit()
    without = cg.ModelFit(
        **{name: getattr(fit, name) for name in ("model", "items", "classes", "item_probs", "class_probs", "confusion")}
    )
    plain = dependent.replace().annotate(without)
    assert value.information_gain(dependent, item, members, shared_errors=estimate) == pytest.approx(
        value.information_gain(plain, item, members, shared_errors=estimate)
    )
