"""What holds for every policy: limits are respected, nobody is asked twice, and each question says what it is worth."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from builders import communities_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import (
    Assignment,
    CommunitiesFirst,
    GreedyValue,
    MostUncertain,
    OldestFirst,
    OptimalMatching,
    Policy,
    RandomPolicy,
    Retirement,
    availability,
    value,
)
from crowdgraph.allocation._information_gain import MAX_STATES_WHILE_CHOOSING
from crowdgraph.errors import InfeasibleError, ParameterError, ResultError

POLICIES = [
    RandomPolicy(),
    OldestFirst(),
    MostUncertain(),
    GreedyValue(per_item=None),
    CommunitiesFirst(),
    OptimalMatching(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(budget=st.integers(0, 150), capacity=st.integers(1, 6), seed=st.integers(0, 100), n_named=st.integers(1, 20))
@settings(max_examples=8, deadline=None)
def test_limits_are_respected(graph, policy, budget, capacity, seed, n_named):
    volunteers, items = graph.volunteers.ids[:n_named].tolist(), graph.items.ids[::2].tolist()
    assignment = policy.assign(graph, budget=budget, volunteers=volunteers, items=items, capacity=capacity, seed=seed)
    answered = set(
        zip(graph.volunteers.ids[graph.responses.volunteer], graph.items.ids[graph.responses.item], strict=True)
    )
    pairs = list(assignment)
    assert len(pairs) == len(set(pairs)) <= budget
    assert not set(pairs) & answered
    assert {who for who, _ in pairs} <= set(volunteers)
    assert {what for _, what in pairs} <= set(items)
    loads = [sum(who == one for who, _ in pairs) for one in volunteers]
    assert max(loads) <= capacity
    # As many as can be: budget, or nobody with capacity has an item left.
    if len(pairs) < budget and not isinstance(policy, OptimalMatching):
        for one, load in zip(volunteers, loads, strict=True):
            rest = {what for what in items if (one, what) not in answered} - {what for who, what in pairs if who == one}
            assert load == capacity or not rest
    again = policy.assign(graph, budget=budget, volunteers=volunteers, items=items, capacity=capacity, seed=seed)
    assert list(again) == pairs


def test_what_each_question_tells_adds_up(graph):
    assignment = GreedyValue(per_item=None).assign(graph, budget=40, capacity=5)
    for item in set(assignment.items.tolist()):
        members = [who for who, what in assignment if what == item]
        gain = assignment.gain[[what == item for _, what in assignment]].sum()
        # Choosing keeps fewer posteriors apart, which loses no more than it says.
        error = value.information_gain_bounds(graph, item, members, max_states=MAX_STATES_WHILE_CHOOSING).error
        assert error < 1e-3
        assert_allclose(gain, value.information_gain(graph, item, members), rtol=0, atol=error + 1e-10)
    expected = [value.learning_gain(graph, who, what) for who, what in assignment]
    assert_allclose(assignment.learning, expected)
    frame = assignment.to_frame()
    assert frame.columns.tolist() == [
        *("volunteer", "item", "gain", "learning", "cost", "chance", "value", "already", "others", "policy")
    ]
    for row, who, what in zip(frame["others"], assignment.volunteers, assignment.items, strict=True):
        assert row == ", ".join(other for other, same in assignment if same == what and other != who)
    assert frame["already"].tolist() == [
        sum(what == other for other in assignment.items[:index]) for index, what in enumerate(assignment.items)
    ]
    assert "40 questions" in repr(assignment)


@pytest.fixture(scope="module")
def likely(graph):
    return availability(graph, half_life=dt.timedelta(days=30))


def test_the_chance_of_an_answer_is_that_of_the_forecast(graph, likely):
    for policy in POLICIES:
        assignment = policy.assign(graph, budget=5, available=likely, seed=0)
        codes = graph.volunteers.table.codes(assignment.volunteers.tolist())
        everyone = likely.chance(volunteers=graph.volunteers.ids, items=assignment.items)
        assert_allclose(assignment.chance, everyone[np.arange(len(assignment)), codes])
    assert_allclose(likely.chance(iter(graph.volunteers.ids[:3]), iter(graph.items.ids)), likely.chance()[:, :3])


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_those_who_hardly_ever_come_are_asked_last(graph, likely, policy):
    """Good volunteers who come once in a thousand times, in a community of their own, and poor ones who always come."""
    skill = graph.confusion().latest().accuracy()
    rare = skill > np.median(skill)
    active = np.where(rare, 0.001, 1.0)
    forecast = replace(likely, active=active, finishes=np.ones(20))
    by_skill = graph.annotate(communities_of(rare.astype(int), ids=graph.volunteers.ids))
    assignment = policy.assign(by_skill, budget=3, capacity=1, available=forecast, seed=0)
    assert_allclose(assignment.chance, 1.0)
    # With room for more about each item, also after the first question.
    least_answered = graph.items.ids[np.where(graph.gold.known, 99, graph.items.n_responses).argmin()]
    again = policy.assign(by_skill, budget=3, capacity=6, items=[least_answered], available=forecast, seed=0)
    assert_allclose(again.chance, 1.0)


def test_items_that_were_skipped_may_be_asked_again():
    rows = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": [None, "n", "y"]}
    graph = cg.CrowdGraph.from_responses(rows, missing="keep", classes=["n", "y"])
    graph = graph.annotate(cg.IBCC().fit(graph))
    assignment = RandomPolicy().assign(graph, budget=10, capacity=2, seed=0)
    assert set(assignment) == {("a", "x"), ("b", "y")}


def test_loads_count_earlier_responses(graph):
    n_responses = np.bincount(graph.responses.volunteer, minlength=20)
    assignment = GreedyValue(per_item=None).assign(graph, budget=200, capacity=50, load=int(np.median(n_responses)) + 2)
    n_asked = np.bincount(graph.volunteers.table.codes(assignment.volunteers.tolist()), minlength=20)
    assert ((n_asked == 0) | (n_responses + n_asked <= np.median(n_responses) + 2)).all()
    assert n_asked.sum() > 0


@dataclass(frozen=True, kw_only=True)
class TooMuch(Policy):
    pairs: tuple[tuple[int, int], ...]
    name: ClassVar[str] = "too much"

    def _choose(self, problem, rng):
        return list(self.pairs)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (((0, 0), (1, 0)), "asks 'volunteer-00' 2 questions, who may get 1"),
        (((0, 0), (0, 1), (0, 2), (0, 3)), "4 questions with a budget of 3"),
    ],
)
def test_policies_must_respect_their_limits(graph, pairs, message):
    with pytest.raises(ResultError, match=message):
        TooMuch(pairs=pairs).assign(graph, budget=3)
    pair = graph.items.ids[graph.responses.item[0]], graph.volunteers.ids[graph.responses.volunteer[0]]
    codes = graph.items.table.code(pair[0]), graph.volunteers.table.code(pair[1])
    with pytest.raises(ResultError, match="may not be asked about"):
        TooMuch(pairs=(codes,)).assign(graph, budget=3)


def test_a_rule_says_what_is_retired(graph):
    rule = Retirement(threshold=0.9)
    retired = set(rule.retired_items(graph, graph.item_probs()).tolist())
    sure = graph.item_probs().max(axis=1) >= 0.9
    assert retired == set(graph.items.ids[sure & ~graph.gold.known & (graph.items.n_responses > 0)].tolist())
    assignment = RandomPolicy().assign(graph, budget=60, capacity=60, retired=rule, seed=0)
    assert retired
    assert not retired & set(assignment.items.tolist())
    assert len(RandomPolicy().assign(graph, budget=60, capacity=60, retired=None, seed=0)) == 60


def test_a_budget_of_nothing_is_no_error(graph):
    assert len(GreedyValue().assign(graph, budget=0, capacity=0)) == 0


def test_why_nothing_can_be_asked_on_the_command_line(graph):
    with pytest.raises(InfeasibleError) as caught:
        GreedyValue().assign(graph, budget=5, capacity=0)
    message = caught.value.message
    assert message == "Nothing can be asked: nobody has capacity left. Raise capacity= or load=."
    assert message.wording("cli") == "Nothing can be asked: nobody has capacity left. Raise --capacity."


def test_those_who_are_not_available_are_named(graph):
    who = graph.volunteers.ids[graph.responses.volunteer[0]]
    what = graph.items.ids[graph.responses.item[0]]
    with pytest.raises(InfeasibleError, match="not available for any of the items"):
        GreedyValue(per_item=None).assign(graph, budget=1, volunteers=[who], items=[what])
    # Where others can be asked, naming those who cannot is a mistake, but there is something to ask.
    with pytest.raises(ParameterError, match="not available for any of the items") as caught:
        GreedyValue(per_item=None).assign(graph, budget=1, volunteers=graph.volunteers.ids, items=[what])
    assert not isinstance(caught.value, InfeasibleError)


def test_assignments_count_who_was_asked_before():
    columns = {
        "volunteers": ["a", "b"],
        "items": [1, 1],
        "gain": [0.1, 0.1],
        "learning": [0.0, 0.0],
        "cost": [0.0, 0.0],
        "chance": [1.0, 1.0],
        "rates": (1.0, 0.0),
        "policy": "p",
    }
    assert Assignment(**columns).already.tolist() == [0, 1]


def test_notebooks_show_the_first_questions():
    who = [f"<{k}>" for k in range(25)]
    zeros = np.zeros(25)
    questions = Assignment(
        volunteers=who,
        items=who,
        gain=zeros + 0.25,
        learning=zeros,
        cost=zeros,
        chance=zeros + 1,
        rates=(2, 0),
        policy="p",
    )
    page = questions._repr_html_()
    assert page.count("<tr>") == 21
    assert page.count("&lt;19&gt;") == 2
    assert "&lt;20&gt;" not in page
    assert ">0.5</td>" in page
    assert "the first 20 of 25 questions" in page
