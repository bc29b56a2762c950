"""The value of assignments: the sum of its parts, each worked out by hand; shared errors and specialisation found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import (
    GreedyValue,
    Objective,
    SharedErrors,
    Training,
    shared_errors,
    simulate_campaign,
    specialisation,
    value,
)
from crowdgraph.allocation._information_gain import row_information, single_gains
from crowdgraph.errors import AlignmentError, ParameterError, ResultError, UnknownIdError


def by_group(crowd):
    graph, truth = crowd
    return cg.Communities(
        ids=graph.volunteers.ids,
        participation=np.eye(len(truth.group_names))[truth.group],
        modularity=0.0,
        method="planted",
    )


@pytest.fixture(scope="module")
def crowd():
    groups = [
        cg.simulate.Group(name="good", confusion=[[0.9, 0.1], [0.1, 0.9]]),
        cg.simulate.Group(name="poor", confusion=[[0.7, 0.3], [0.3, 0.7]]),
    ]
    graph, truth = cg.simulate.crowd(
        n_volunteers=40, n_items=400, n_responses=6_000, groups=groups, shared_errors=0.4, gold=0.5, seed=0
    )
    return cg.simulate.SimulatedCrowd(graph.annotate(cg.IBCC().fit(graph)), truth)


@pytest.mark.parametrize(
    "objective",
    [
        Objective(),
        Objective(information=2.0, learning=0.7, cost=0.03, payment=2.0, effort=0.25),
        Objective(learning=1.0, training=Training(rate=0.5)),
    ],
    ids=["information", "all", "training"],
)
def test_total_value_is_the_sum_of_its_parts(crowd, objective):
    graph = crowd.graph
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


def test_costs_are_never_above_zero(crowd):
    graph = crowd.graph
    payment = dict.fromkeys(graph.volunteers.ids.tolist(), 3.0)
    effort = {name: code / 100 for code, name in enumerate(graph.items.ids.tolist())}
    cost = value.cost(graph, "volunteer-01", "item-020", rate=0.5, payment=payment, effort=effort)
    assert cost == pytest.approx(-0.5 * 3.2)


def test_costs_need_no_fit():
    graph = cg.CrowdGraph.from_responses({"volunteer": ["a"], "item": ["x"], "label": ["y"]})
    assert value.cost(graph, "a", "x", rate=0.5, payment={"a": 3.0}, effort=1.0) == -2.0
    with pytest.raises(ParameterError, match="graph= takes a CrowdGraph; got a list"):
        value.cost([], "a", "x")


def test_training_by_hand(crowd):
    graph = crowd.graph
    groups = by_group(crowd)
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


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_shared_errors_are_found(share):
    groups = [
        cg.simulate.Group(name=name, confusion=[[right, 1 - right], [1 - right, right]], concentration=1e4)
        for name, right in (("good", 0.9), ("poor", 0.7))
    ]
    simulated = cg.simulate.crowd(
        n_volunteers=40, n_items=3_000, n_responses=40_000, groups=groups, shared_errors=share, seed=0
    )
    graph = simulated.graph.annotate(cg.IBCC().fit(simulated.graph))
    estimate = shared_errors(graph, by_group(simulated))
    # Three standard errors: the draws of 3,000 items, of which 10 % or 30 % are wrong.
    assert_allclose(estimate.chance, share, atol=0.06)
    assert f"from {estimate.n_pairs.sum():,} pairs" in repr(estimate)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_those_who_agree_less_by_one_draw_are_told_as_well(share):
    """Rows that overlap little: by one draw these two agree less often than alone."""
    rng = np.random.default_rng(0)
    rows = np.array([[0.49, 0.49, 0.02], [0.02, 0.49, 0.49]])
    said = {"volunteer": [], "item": [], "label": []}
    for item in range(2_000):
        draws = np.full(2, rng.random()) if rng.random() < share else rng.random(2)
        for volunteer, draw in enumerate(draws.tolist()):
            said["volunteer"].append(volunteer)
            said["item"].append(item)
            said["label"].append(int((draw >= rows[volunteer].cumsum()[:-1]).sum()))
    gold = {item: item % 2 for item in range(2_000)}
    graph = cg.CrowdGraph.from_responses(said, gold=gold, labels=range(3), classes=range(2))
    graph = graph.annotate(cg.IBCC(confusion_prior=np.ones((2, 3))).fit(graph))
    both = cg.Communities(ids=graph.volunteers.ids, participation=[[1.0]] * 2, modularity=0.0, method="both")
    # Agreement is 0.26 alone and 0.06 by one draw, and known to 0.01: three standard errors are 0.15.
    assert_allclose(shared_errors(graph, both).chance, share, atol=0.15)


def test_one_pair_is_no_proof():
    rows = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["y", "y"]}
    graph = cg.CrowdGraph.from_responses(rows, gold={"x": "y"}, classes=["n", "y"], labels=["n", "y"])
    graph = graph.annotate(cg.IBCC().fit(graph))
    both = cg.Communities(ids=["a", "b"], participation=[[1.0]] * 2, modularity=0.0, method="both")
    assert shared_errors(graph, both).chance[0] < 0.2


def test_enough_gold_decides_alone():
    simulated = cg.simulate.crowd(n_volunteers=20, n_items=300, n_responses=4_500, shared_errors=0.5, gold=0.5, seed=0)
    graph, groups = simulated.graph.annotate(cg.IBCC().fit(simulated.graph)), by_group(simulated)
    gold = graph.items.ids[graph.gold.known]
    part = graph.subgraph(items=gold)
    part = part.annotate(cg.IBCC().fit(part))
    n_pairs = shared_errors(part, groups).n_pairs
    assert shared_errors(graph, groups).n_pairs.tolist() == n_pairs.tolist()


def test_a_little_gold_does_not_silence_the_rest():
    simulated = cg.simulate.crowd(n_volunteers=20, n_items=300, n_responses=4_500, shared_errors=0.5, seed=0)
    groups, truth = by_group(simulated), simulated.truth.classes
    complete = simulated.graph
    bare = complete.with_gold({})
    one = complete.with_gold({complete.items.ids[0]: complete.classes[truth[0]]})
    chances, pairs = [], []
    for graph in (bare, one, complete):
        estimate = shared_errors(graph.annotate(cg.IBCC().fit(graph)), groups)
        chances.append(estimate.chance[0])
        pairs.append(estimate.n_pairs[0])
    # A single item with gold is too little to judge by.
    assert pairs[0] == pairs[1]
    assert chances[0] == pytest.approx(chances[1], abs=0.02)
    assert chances[2] == pytest.approx(0.5, abs=0.12)
    assert chances[2] > chances[0]


def test_several_of_a_community_tell_less_where_errors_are_shared(crowd):
    graph, truth = crowd
    estimate = shared_errors(graph, by_group(crowd))
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


def test_specialists_tell_more_of_what_they_know():
    rng = np.random.default_rng(0)
    # Two teams, each right in nine of ten cases at home, and in six of ten abroad, where they answer less.
    rows = []
    for item in range(200):
        truth = item % 2
        for team, n in ((item // 100, 6), (1 - item // 100, 2)):
            for who in rng.choice(8, n, replace=False):
                right = rng.random() < (0.9 if team == item // 100 else 0.6)
                rows.append((f"v{team}-{who}", f"i{item:03d}", truth if right else 1 - truth))
    volunteer, item, label = zip(*rows, strict=True)
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": volunteer, "item": item, "label": label},
        gold={f"i{item:03d}": item % 2 for item in range(0, 200, 3)},
    )
    graph = graph.annotate(cg.IBCC().fit(graph))
    teams = cg.Communities(
        ids=graph.volunteers.ids,
        participation=[[1.0, 0.0] if name[1] == "0" else [0.0, 1.0] for name in graph.volunteers.ids],
        modularity=0.0,
        method="teams",
    )
    special = specialisation(graph, teams)
    assert special.kind[graph.items.table.codes(["i000", "i199"])].tolist() == [0, 1]
    open_items = [f"i{code:03d}" for code in (1, 2, 101, 103)]
    for name in open_items:
        home, abroad = ("v0-1", "v1-1") if name < "i100" else ("v1-1", "v0-1")
        plain = value.information_gain(graph, name, [home])
        assert value.information_gain(graph, name, [home], specialisation=special) > plain
        assert value.information_gain(graph, name, [abroad], specialisation=special) < value.information_gain(
            graph, name, [abroad]
        )
    assert "2 kinds of items" in repr(special)
    # By hand: what v0-1 said of items of the first kind, on top of 20 answers as they give on the whole.
    fit = graph.fit()
    code = graph.volunteers.table.code("v0-1")
    counts = 20 * fit.confusion.latest().mean[code]
    for who, what, said in zip(graph.responses.volunteer, graph.responses.item, graph.responses.label, strict=True):
        if who == code and special.kind[what] == 0:
            counts[:, said] += fit.item_probs[what]
    assert_allclose(special.confusion[0, code], counts / counts.sum(axis=1, keepdims=True))
    assert_allclose(special.confusion[2, code], fit.confusion.latest().mean[code])


def test_policies_take_all_of_it(crowd):
    objective = Objective(
        shared_errors=shared_errors(crowd.graph, by_group(crowd)),
        specialisation=specialisation(crowd.graph, by_group(crowd)),
        learning=0.2,
        training=Training(communities=by_group(crowd), reach=0.1),
        cost=0.001,
    )
    for policy in (GreedyValue(per_item=None), cg.allocation.CommunitiesFirst(communities=by_group(crowd))):
        # Few enough that all posteriors are kept apart.
        assignment = policy.assign(crowd.graph, budget=8, capacity=3, objective=objective)
        total = value.total_value(crowd.graph, assignment, objective=objective)
        assert assignment.value.sum() == pytest.approx(total.total, rel=1e-6)
    # The first question is that of most value.
    answered = set(
        zip(
            crowd.graph.volunteers.ids[crowd.graph.responses.volunteer].tolist(),
            crowd.graph.items.ids[crowd.graph.responses.item].tolist(),
            strict=True,
        )
    )
    everything = [
        (value.total_value(crowd.graph, [(who, what)], objective=objective).total, (who, what))
        for who in crowd.graph.volunteers.ids[:10].tolist()
        for what in crowd.graph.items.ids[:10].tolist()
    ]
    best = GreedyValue().assign(
        crowd.graph,
        budget=1,
        volunteers=crowd.graph.volunteers.ids[:10],
        items=crowd.graph.items.ids[:10],
        objective=objective,
    )
    assert best.value[0] == pytest.approx(max(value for value, pair in everything if pair not in answered))
    assert (
        simulate_campaign(crowd, GreedyValue(), budget=500, objective=Objective(learning=0.1), seed=0).spent[-1] == 500
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"information": -1.0}, "information=-1.0 must be a finite number of at least 0"),
        ({"cost": float("nan")}, "cost=nan"),
        ({"payment": float("nan")}, "payment=nan"),
        ({"payment": {"anna": float("inf")}}, "payment=inf"),
        ({"effort": "much"}, "effort='much'"),
        ({"training": 0.5}, "training= takes a Training; got a float"),
        ({"shared_errors": 0.5}, "shared_errors= takes a SharedErrors"),
    ],
)
def test_bad_rates_are_told(options, message):
    with pytest.raises(ParameterError, match=message):
        Objective(**options)


def test_bad_input_is_told(crowd):
    graph = crowd.graph
    with pytest.raises(ParameterError, match="share from 0 to 1"):
        Training(rate=2.0)
    with pytest.raises(ParameterError, match="needs communities="):
        Training(reach=0.5)
    with pytest.raises(UnknownIdError, match="nobody"):
        value.cost(graph, "nobody", "item-001")
    with pytest.raises(ParameterError, match="twice"):
        value.total_value(graph, [("volunteer-01", "item-001")] * 2)
    with pytest.raises(ParameterError, match="lacks 'item-001'"):
        value.cost(graph, "volunteer-01", "item-001", effort={"item-000": 1.0})
    with pytest.raises(ParameterError, match="takes Communities or the name of some"):
        shared_errors(graph, 3)
    with pytest.raises(ParameterError, match="takes Communities or the name of some"):
        specialisation(graph, 3)
    with pytest.raises(ParameterError, match="strength"):
        specialisation(graph, by_group(crowd), strength=0)
    with pytest.raises(ResultError, match="as many chances from 0 to 1"):
        SharedErrors(communities=by_group(crowd), chance=[0.5], n_pairs=[1])
    with pytest.raises(ParameterError, match="communities= takes Communities; got a str"):
        Training(reach=0.5, communities="x")
    with pytest.raises(ParameterError, match="takes an Objective; got a int"):
        value.total_value(graph, [], objective=3)
    for wrong in ("anna", 3, [("anna", "x", 1)]):
        with pytest.raises(ParameterError, match="pairs of a volunteer and an item"):
            value.total_value(graph, wrong)
    other = cg.simulate.crowd(n_volunteers=41, n_items=400, seed=0)
    elsewhere = other.graph.annotate(cg.IBCC().fit(other.graph))
    with pytest.raises(AlignmentError, match="specialisation"):
        GreedyValue().assign(
            graph, budget=1, objective=Objective(specialisation=specialisation(elsewhere, by_group(other)))
        )


def test_skipped_items_are_of_no_kind(crowd):
    rows = {
        "volunteer": ["a", "b", "c", "d", "b"],
        "item": ["x", "x", "x", "x", "y"],
        "label": ["n", None, None, None, "y"],
    }
    graph = cg.CrowdGraph.from_responses(rows, missing="keep", gold={"y": "y"}, classes=["n", "y"])
    graph = graph.annotate(cg.IBCC().fit(graph))
    groups = cg.Communities(
        ids=["a", "b", "c", "d"], participation=[[1, 0], [0, 1], [0, 1], [0, 1]], modularity=0.0, method="planted"
    )
    assert specialisation(graph, groups).kind.tolist() == [0, 1]
    nobody = cg.Communities(ids=["a"], participation=np.zeros((1, 0)), modularity=0.0, method="none")
    assert specialisation(graph, nobody).kind.tolist() == [0, 0]
