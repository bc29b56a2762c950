"""Who would gain from training: a recomputation in plain Python, planted groups, and what is wrong with bad input."""

from math import log

import numpy as np
import pytest
from builders import communities_of, crowd
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.allocation.training import TrainingPlan, training_candidates


@pytest.fixture(scope="module")
def taught():
    """Good, fair and poor volunteers in communities of their own, soft ones, and some who belong to none."""
    simulated = crowd(0.95, 0.8, 0.55, n_volunteers=30, n_items=150, n_responses=600, seed=2)
    shares = 0.8 * np.eye(3)[simulated.truth.group] + 0.2 * np.random.default_rng(0).dirichlet(np.ones(3), 30)
    shares[:2] = 0
    graph = simulated.graph.annotate(cg.IBCC().fit(simulated.graph))
    return graph.annotate(communities_of(shares, ids=graph.volunteers.ids)), simulated.truth


def information(probs, confusion):
    """Between class and label, from the joint distribution."""
    joint = [[p * q for q in row] for p, row in zip(probs, confusion, strict=True)]
    labels = [sum(row[label] for row in joint) for label in range(len(joint[0]))]
    return sum(
        q * log(q / (p * labels[label]))
        for p, row in zip(probs, joint, strict=True)
        for label, q in enumerate(row)
        if q > 0
    )


def by_hand(graph, n_teachers):
    """Rows of the plan, in plain Python."""
    fit, groups = graph.fit(), graph.communities()
    ids = graph.volunteers.ids.tolist()
    confusion = {name: fit.confusion.latest().mean[code] for code, name in enumerate(ids)}
    shares = {name: groups.of(name) for name in ids}
    tells = {name: information(fit.class_probs, confusion[name]) for name in ids}
    prototypes = [
        sum(shares[name][k] * confusion[name] for name in ids) / sum(shares[name][k] for name in ids) for k in range(3)
    ]
    better = sorted(((information(fit.class_probs, mean), k) for k, mean in enumerate(prototypes)), reverse=True)
    items = {name: set() for name in ids}
    for response in graph.responses:
        items[response.volunteer].add(response.item)
    rows = {}
    for name in ids:
        able = {
            k: sorted(
                (-len(items[name] & items[other]), -shares[other][k], ids.index(other), other)
                for other in ids
                if shares[other].any() and shares[other].argmax() == k
                if tells[other] >= information_of and items[name] & items[other]
            )
            for information_of, k in better
            if information_of > tells[name]
        }
        if able:
            k = next((k for k, teacher in able.items() if teacher), better[0][1])
            information_of = {k: information_of for information_of, k in better}[k]
            rows[name] = (k, information_of - tells[name], [teacher[3] for teacher in able[k][:n_teachers]])
    return tells, items, rows


@pytest.mark.parametrize("n_teachers", [0, 2, 100])
def test_plans_are_those_of_plain_python(taught, n_teachers):
    graph, _ = taught
    plan = training_candidates(graph, n_teachers=n_teachers)
    tells, items, rows = by_hand(graph, n_teachers)
    assert set(plan.volunteers.tolist()) == set(rows)
    assert len(rows) > 10
    assert (np.diff(plan.gain) <= 0).all()
    for row, name in enumerate(plan.volunteers.tolist()):
        better, gain, teachers = rows[name]
        assert plan.better[row] == better
        assert list(plan.teachers[row]) == teachers
        assert list(plan.common[row]) == [len(items[name] & items[other]) for other in teachers]
        assert_allclose([plan.gain[row], plan.information[row]], [gain, tells[name]], atol=1e-10)
        assert plan.n_responses[row] == graph.volunteers[name].n_responses
        assert plan.community[row] == graph.communities().assignment[graph.volunteers.table.code(name)]


def test_poor_volunteers_learn_from_good_ones(taught):
    graph, truth = taught
    plan = training_candidates(graph)
    codes = graph.volunteers.codes(plan.volunteers)
    kinds = truth.group[codes]
    assert np.isin(np.flatnonzero(truth.group == 2), codes).all()
    assert plan.gain[kinds == 2].mean() > plan.gain[kinds == 1].mean() > 0
    teaching = [truth.group[graph.volunteers.codes(teachers)] for teachers in plan.teachers if teachers]
    assert np.mean(np.concatenate(teaching) == 0) > 0.9


def test_those_who_met_nobody_have_no_teachers():
    columns = {
        "volunteer": ["good"] * 40 + ["poor"] * 40 + ["alone"] * 40,
        "item": [*range(40), *range(40), *range(100, 140)],
        "label": ["a", "b"] * 20 + ["a"] * 40 + ["a"] * 40,
    }
    gold = {item: "ab"[item % 2] for item in [*range(40), *range(100, 140)]}
    graph = cg.CrowdGraph.from_responses(columns, gold=gold)
    graph = graph.annotate(cg.IBCC().fit(graph))
    groups = communities_of([0, 1, 1], ids=["good", "poor", "alone"])
    plan = training_candidates(graph, communities=groups)
    rows = dict(zip(plan.volunteers.tolist(), zip(plan.better, plan.teachers, plan.common, strict=True), strict=True))
    assert rows["poor"] == (0, ("good",), (40,))
    assert rows["alone"] == (0, (), ())
    assert "good" not in rows
    assert repr(plan).startswith("TrainingPlan(2 volunteers would gain, 1 of them have teachers; at most 0.")


def test_members_count_by_their_answers_where_that_is_known(taught):
    graph, _ = taught
    groups = graph.communities()
    support = np.where(np.arange(30) < 15, 1.0, 100.0)
    counted = communities_of(groups.participation, ids=groups.ids, support=support)
    plan = training_candidates(graph, communities=counted)
    prototypes = counted.mean_confusion(graph.confusion().latest(), by_responses=True)
    best = max(information(graph.fit().class_probs, mean) for mean in prototypes)
    assert_allclose(plan.gain[plan.better == 0] + plan.information[plan.better == 0], best)


def test_rejections_and_repeats_are_no_meetings():
    rows = [("good", item, "ab"[item % 2]) for item in range(30)] + [("poor", item, "a") for item in range(20)]
    rows += [("poor", 0, "a"), ("poor", 29, None)]
    names, items, labels = map(list, zip(*rows, strict=True))
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": names, "item": items, "label": labels}, missing="keep", gold={n: "ab"[n % 2] for n in range(30)}
    )
    with pytest.warns(cg.errors.RepeatedAnswersWarning):
        fit = cg.IBCC().fit(graph)
    groups = communities_of([0, 1], ids=["good", "poor"])
    plan = training_candidates(graph, communities=groups, fit=fit)
    assert plan.common == ((20,),)
    assert_array_equal(plan.n_responses, [21])


def test_communities_without_members_teach_nobody(taught):
    graph, _ = taught
    none = training_candidates(graph, communities=communities_of(np.zeros((30, 0)), ids=graph.volunteers.ids))
    assert len(none) == 0
    assert repr(none) == "TrainingPlan(0 volunteers would gain, 0 of them have teachers)"
    assert len(none.to_frame()) == 0
    # A community that nobody belongs to teaches nobody.
    groups = graph.communities()
    wider = communities_of(np.column_stack([np.zeros(30), groups.participation]), ids=groups.ids)
    first, second = training_candidates(graph), training_candidates(graph, communities=wider)
    assert_array_equal(first.better + 1, second.better)
    assert first.teachers == second.teachers


def test_plans_become_frames():
    plan = TrainingPlan(
        volunteers=["a", "b"],
        community=[1, -1],
        information=[0.1, 0.2],
        better=[0, 0],
        gain=[0.3, 0.2],
        n_responses=[5, 7],
        teachers=[["c", "d"], []],
        common=[[3, 2], []],
    )
    assert plan.to_frame(kind="text").splitlines() == [
        "volunteer  community  information  better  gain  n_responses  teachers  common",
        "a                  1          0.1       0   0.3            5  c, d      3, 2",
        "b                 -1          0.2       0   0.2            7",
    ]
    assert plan.to_frame().teachers.tolist() == ["c, d", ""]
    with pytest.raises(ValueError, match="read-only"):
        plan.gain[0] = 1
