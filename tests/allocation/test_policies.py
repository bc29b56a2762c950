"""Policies: nobody is asked too much or twice, greedy is as good as guaranteed, and bad input is told."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

import crowdgraph as cg
from crowdgraph.allocation import (
    Assignment,
    CommunitiesFirst,
    GreedyValue,
    MostUncertain,
    Objective,
    OldestFirst,
    OptimalMatching,
    Policy,
    RandomPolicy,
    Retirement,
    availability,
    value,
)
from crowdgraph.allocation._information_gain import MAX_STATES_WHILE_CHOOSING, coalition_gain, entropy, single_gains
from crowdgraph.allocation.objective import QuestionValues
from crowdgraph.allocation.policies import optimal_matching
from crowdgraph.allocation.policy import Problem
from crowdgraph.errors import InfeasibleError, NotAnnotatedError, ParameterError, ResultError, UnknownIdError

POLICIES = [
    RandomPolicy(),
    OldestFirst(),
    MostUncertain(),
    GreedyValue(per_item=None),
    CommunitiesFirst(),
    OptimalMatching(),
]


@pytest.fixture(scope="module")
def graph():
    groups = [
        cg.simulate.Group(name="good", confusion=[[0.95, 0.05], [0.05, 0.95]]),
        cg.simulate.Group(name="poor", confusion=[[0.6, 0.4], [0.4, 0.6]]),
    ]
    crowd = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=500, groups=groups, gold=0.3, seed=0).graph
    crowd = crowd.annotate(cg.IBCC().fit(crowd))
    groups = cg.Communities(
        ids=crowd.volunteers.ids,
        participation=np.eye(2)[np.arange(20) % 2],
        modularity=0.0,
        method="every other one",
    )
    return crowd.annotate(groups)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(budget=st.integers(0, 150), capacity=st.integers(1, 6), seed=st.integers(0, 100), some=st.integers(1, 20))
@settings(max_examples=8, deadline=None)
def test_limits_are_kept(graph, policy, budget, capacity, seed, some):
    volunteers, items = graph.volunteers.ids[:some].tolist(), graph.items.ids[::2].tolist()
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


def test_greedy_asks_the_good_about_the_uncertain(graph):
    assignment = GreedyValue(per_item=None).assign(graph, budget=10, capacity=10)
    skill = graph.confusion().latest().accuracy()
    codes = graph.volunteers.table.codes(assignment.volunteers.tolist())
    assert skill[codes].mean() > np.median(skill)
    assert np.diff(assignment.gain).max() <= 1e-12


def small_problem(rng, *, n_items, n_volunteers, capacity, budget):
    return Problem(
        graph=None,
        volunteers=np.arange(n_volunteers),
        items=np.arange(n_items),
        question_values=QuestionValues(
            objective=Objective(),
            probs=rng.dirichlet([0.7, 0.7], n_items),
            kind=np.zeros(n_items, dtype=int),
            confusion=rng.dirichlet([0.5, 0.5, 0.5], (1, n_volunteers, 2)),
            sharing=None,
            growth=np.zeros((n_volunteers, 2)),
            payment=np.zeros(n_volunteers),
            effort=np.zeros(n_items),
        ),
        allowed=rng.random((n_items, n_volunteers)) < 0.8,
        chance=np.ones((1, 1)),
        capacity=np.full(n_volunteers, capacity),
        budget=budget,
    )


def total_gain(problem, pairs):
    return sum(
        coalition_gain(
            problem.question_values.probs[item],
            problem.question_values.confusion[0, [v for i, v in pairs if i == item]],
        ).nats
        for item in range(len(problem.items))
    )


def best(problem, *, budget, per_item=99):
    """The most that any feasible set of questions tells, by trying all."""
    everything = [tuple(map(int, pair)) for pair in np.argwhere(problem.allowed)]
    ways = (some for size in range(budget + 1) for some in combinations(everything, size))
    fine = (
        some
        for some in ways
        if all(sum(v == one for _, v in some) <= problem.capacity[one] for one in problem.volunteers)
        and all(sum(i == one for i, _ in some) <= per_item for one in problem.items)
    )
    return max(total_gain(problem, some) for some in fine)


@pytest.mark.parametrize("seed", range(8))
def test_greedy_reaches_its_guarantees(seed):
    rng = np.random.default_rng(seed)
    # One item and a limit on the number of volunteers: 1 - 1/e.
    problem = small_problem(rng, n_items=1, n_volunteers=6, capacity=1, budget=3)
    pairs = GreedyValue(per_item=None)._choose(problem, rng)
    assert total_gain(problem, pairs) >= (1 - 1 / np.e) * best(problem, budget=3) - 1e-12
    # Capacities: one half.
    problem = small_problem(rng, n_items=3, n_volunteers=3, capacity=1, budget=9)
    pairs = GreedyValue(per_item=None)._choose(problem, rng)
    assert total_gain(problem, pairs) >= best(problem, budget=3) / 2 - 1e-12
    # The same with one question about each item.
    problem = small_problem(rng, n_items=4, n_volunteers=3, capacity=1, budget=3)
    pairs = GreedyValue()._choose(problem, rng)
    assert len({item for item, _ in pairs}) == len(pairs)
    assert total_gain(problem, pairs) >= best(problem, budget=3, per_item=1) / 2 - 1e-12


def test_greedy_may_take_a_dear_question_first():
    # There is no guarantee less cost: of two questions about one item, greedy takes the one of most value, after which
    # the cheaper ones, together worth more, are not worth their cost.
    problem = small_problem(np.random.default_rng(0), n_items=1, n_volunteers=5, capacity=1, budget=5)
    confusion = np.array([[[0.9, 0.1], [0.1, 0.9]], *[[[0.85, 0.15], [0.15, 0.85]]] * 4])
    gains = single_gains(np.array([[0.5, 0.5]]), confusion)[0]
    # The first costs so much that it is worth just more than one of the others.
    cheap = 0.1
    payment = np.array([gains[0] - gains[1] + cheap - 1e-6, *[cheap] * 4])
    values = replace(
        problem.question_values,
        objective=Objective(cost=1.0),
        probs=np.array([[0.5, 0.5]]),
        confusion=confusion[None],
        payment=payment,
    )
    problem = replace(problem, question_values=values, allowed=np.ones((1, 5), dtype=bool))
    pairs = GreedyValue(per_item=None)._choose(problem, np.random.default_rng(0))

    def less_cost(members):
        return coalition_gain(values.probs[0], confusion[list(members)]).nats - payment[list(members)].sum()

    net_value = less_cost([who for _, who in pairs])
    assert pairs[0] == (0, 0)
    assert net_value < max(less_cost(some) for size in range(6) for some in combinations(range(5), size)) - 1e-3


@pytest.mark.parametrize("seed", range(12))
def test_the_optimal_round_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    n_items, n_volunteers, capacity, budget = ((4, 3, 1, 9), (4, 3, 2, 2), (3, 4, 1, 3), (5, 2, 2, 3))[seed % 4]
    problem = small_problem(rng, n_items=n_items, n_volunteers=n_volunteers, capacity=capacity, budget=budget)
    pairs = OptimalMatching()._choose(problem, rng)
    assert len({item for item, _ in pairs}) == len(pairs) <= budget
    assert max(np.bincount([who for _, who in pairs])) <= capacity
    assert all(problem.allowed[pair] for pair in pairs)
    assert_allclose(total_gain(problem, pairs), best(problem, budget=min(budget, n_items), per_item=1), atol=1e-10)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
@pytest.mark.parametrize("budget", [7, 60, 5_000])
def test_large_rounds_equal_the_assignment_of_scipy(shape, budget):
    # With capacity one and exactly so many pairs, by dummies: all others go with a dummy for free.
    rng = np.random.default_rng(budget)
    problem = small_problem(rng, n_items=shape[0], n_volunteers=shape[1], capacity=1, budget=budget)
    values = np.where(problem.allowed, problem.question_values.single_gains(), -1e3)
    n_items, n_volunteers = shape
    size = min(budget, *shape)
    padded = np.zeros((n_items + n_volunteers - size,) * 2)
    padded[:n_items, :n_volunteers] = values
    padded[n_items:, n_volunteers:] = -1e6
    rows, columns = linear_sum_assignment(padded, maximize=True)
    expected = padded[rows, columns].sum()
    pairs = OptimalMatching()._choose(problem, rng)
    assert_allclose(sum(values[pair] for pair in pairs), expected, rtol=1e-9)


@pytest.mark.parametrize(("n_items", "n_volunteers", "budget"), [(60, 30, 15), (30, 30, 11), (20, 60, 60)])
def test_ties_do_not_keep_from_the_budget(n_items, n_volunteers, budget):
    # As at the beginning of a campaign, when nothing tells items or volunteers apart.
    rng = np.random.default_rng(0)
    problem = small_problem(rng, n_items=n_items, n_volunteers=n_volunteers, capacity=1, budget=budget)
    alike = np.tile([[0.7, 0.3], [0.3, 0.7]], (1, n_volunteers, 1, 1))
    values = replace(problem.question_values, probs=np.full((n_items, 2), 0.5), confusion=alike)
    problem = replace(problem, question_values=values, allowed=np.ones((n_items, n_volunteers), dtype=bool))
    pairs = OptimalMatching()._choose(problem, rng)
    assert len(pairs) == min(budget, n_items, n_volunteers)
    # Also where nothing is left to learn.
    sure = replace(problem, question_values=replace(values, probs=np.tile([1.0, 0.0], (n_items, 1))))
    assert len(OptimalMatching()._choose(sure, rng)) == min(budget, n_items, n_volunteers)


def test_rounds_that_are_too_large_are_refused(graph, monkeypatch):
    monkeypatch.setattr(optimal_matching, "MAX_MATRIX_SIZE", 20 * 60)
    # A place for every volunteer, and a budget for all of them, needs no dummies.
    assert len(OptimalMatching().assign(graph, budget=20)) > 0
    with pytest.raises(ParameterError, match="20 questions to volunteers and 60 items are too many"):
        OptimalMatching().assign(graph, budget=19)


def test_communities_ask_nobody_who_costs_more_than_they_tell(graph):
    payment = {who: 50.0 if code % 4 == 0 else 0.1 for code, who in enumerate(graph.volunteers.ids.tolist())}
    assignment = CommunitiesFirst().assign(graph, budget=8, capacity=3, objective=Objective(cost=0.05, payment=payment))
    assert len(assignment) > 0
    assert all(payment[who] < 1 for who, _ in assignment)


def test_communities_stand_for_their_members(graph):
    assignment = CommunitiesFirst().assign(graph, budget=12, capacity=3)
    groups = graph.communities()
    means = groups.mean_confusion(graph.confusion().latest())
    gains = single_gains(graph.item_probs(), means)
    # The first question is the best of communities and items, one of whose members may be asked.
    who, what = next(iter(assignment))
    community = groups.assignment[graph.volunteers.table.code(who)]
    assert gains[graph.items.table.code(what), community] == pytest.approx(gains.max())
    assert CommunitiesFirst(communities=groups).assign(graph, budget=12, capacity=3).items.tolist() == (
        assignment.items.tolist()
    )


def test_costs_end_what_is_not_worth_them(graph):
    free = GreedyValue(per_item=None).assign(graph, budget=100, capacity=20)
    rate = float(np.sort(free.gain)[50])
    dear = GreedyValue(per_item=None).assign(graph, budget=100, capacity=20, objective=Objective(cost=rate))
    assert len(dear) < len(free)
    assert (dear.value >= 0).all()
    assert_allclose(dear.cost, -rate)
    # Whoever is cheaper is asked more.
    payment = {who: 0.1 if code % 2 else 1.0 for code, who in enumerate(graph.volunteers.ids.tolist())}
    mixed = GreedyValue(per_item=None).assign(
        graph, budget=40, capacity=20, objective=Objective(cost=rate, payment=payment)
    )
    assert np.mean([payment[who] < 1 for who, _ in mixed]) > np.mean([payment[who] < 1 for who, _ in free])
    with pytest.raises(InfeasibleError, match="worth what it costs"):
        GreedyValue(per_item=None).assign(graph, budget=5, objective=Objective(cost=100.0))


def test_the_likely_are_asked(graph):
    likely = availability(graph)
    for policy in POLICIES:
        assignment = policy.assign(graph, budget=5, available=likely, seed=0)
        codes = graph.volunteers.table.codes(assignment.volunteers.tolist())
        everyone = likely.chance(volunteers=graph.volunteers.ids, items=assignment.items)
        assert_allclose(assignment.chance, everyone[np.arange(len(assignment)), codes])
    assert_allclose(likely.chance(iter(graph.volunteers.ids[:3]), iter(graph.items.ids)), likely.chance()[:, :3])


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_those_who_hardly_ever_come_are_asked_last(graph, policy):
    """Good volunteers who come once in a thousand times, in a community of their own, and poor ones who always come."""
    skill = graph.confusion().latest().accuracy()
    rare = skill > np.median(skill)
    active = np.where(rare, 0.001, 1.0)
    likely = replace(availability(graph), active=active, finishes=np.ones(20))
    groups = cg.Communities(
        ids=graph.volunteers.ids, participation=np.eye(2)[rare.astype(int)], modularity=0.0, method="by skill"
    )
    assignment = policy.assign(graph.annotate(groups), budget=3, capacity=1, available=likely, seed=0)
    assert_allclose(assignment.chance, 1.0)
    # With room for more about each item, also after the first question.
    shy = graph.items.ids[np.where(graph.gold.known, 99, graph.items.n_responses).argmin()]
    again = policy.assign(graph.annotate(groups), budget=3, capacity=6, items=[shy], available=likely, seed=0)
    assert_allclose(again.chance, 1.0)


def test_a_limit_on_questions_is_one_more_constraint():
    """Two items of 16 classes and volunteers who tell some of four bits: greedy gets 3 of the 7 bits of the best."""
    bits = np.array(list(np.ndindex(2, 2, 2, 2)))
    known_bits = [(0, 2), (1,), (0, 1), (2, 3)]
    confusion = np.zeros((1, 4, 16, 4))
    for volunteer, own_bits in enumerate(known_bits):
        label = sum(bits[:, bit] * 2**index for index, bit in enumerate(own_bits))
        confusion[0, volunteer, np.arange(16), label] = 1.0
    values = QuestionValues(
        objective=Objective(),
        probs=np.full((2, 16), 1 / 16),
        kind=np.zeros(2, dtype=int),
        confusion=confusion,
        sharing=None,
        growth=np.zeros((4, 16)),
        payment=np.zeros(4),
        effort=np.zeros(2),
    )
    problem = Problem(
        graph=None,
        volunteers=np.arange(4),
        items=np.arange(2),
        question_values=values,
        allowed=np.array([[True] * 4, [True, True, False, False]]),
        chance=np.ones((1, 1)),
        capacity=np.ones(4, dtype=int),
        budget=4,
    )
    pairs = [(item, volunteer) for item in range(2) for volunteer in range(4) if problem.allowed[item, volunteer]]

    def bits_of(chosen):
        return sum(
            coalition_gain(values.probs[item], confusion[0][[v for i, v in chosen if i == item]]).nats
            for item in range(2)
        ) / np.log(2)

    best = {}
    for chosen in (part for size in range(5) for part in combinations(pairs, size)):
        counts = np.bincount([item for item, _ in chosen], minlength=2)
        if len({volunteer for _, volunteer in chosen}) == len(chosen):
            best[max(counts)] = max(best.get(max(counts), 0.0), bits_of(chosen))
    most = max(value for count, value in best.items() if count <= 2)
    greedy = bits_of(GreedyValue(per_item=2)._choose(problem, np.random.default_rng(0)))
    assert most == pytest.approx(7.0)
    assert 1 / 3 <= greedy / most < 1 / 2
    free = bits_of(GreedyValue(per_item=None)._choose(problem, np.random.default_rng(0)))
    assert free >= max(best.values()) / 2


def test_matching_needs_no_more_places_than_questions(graph, monkeypatch):
    monkeypatch.setattr(optimal_matching, "MAX_MATRIX_SIZE", 20 * 60 * 60)
    most = OptimalMatching().assign(graph, budget=60, capacity=60)
    assert list(OptimalMatching().assign(graph, budget=10_000, capacity=10_000)) == list(most)


def test_efforts_count_where_questions_are_chosen(graph):
    effort = {name: 1e4 * (code % 2) for code, name in enumerate(graph.items.ids.tolist())}
    for policy in (GreedyValue(), OptimalMatching(), CommunitiesFirst()):
        assignment = policy.assign(graph, budget=10, objective=Objective(cost=0.01, payment=0.0, effort=effort))
        assert all(effort[what] == 0 for what in assignment.items.tolist())


def test_items_that_were_skipped_may_be_asked_again():
    rows = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": [None, "n", "y"]}
    graph = cg.CrowdGraph.from_responses(rows, missing="keep", classes=["n", "y"])
    graph = graph.annotate(cg.IBCC().fit(graph))
    assignment = RandomPolicy().assign(graph, budget=10, capacity=2, seed=0)
    assert set(assignment) == {("a", "x"), ("b", "y")}


def test_loads_count_what_was_given(graph):
    n_responses = np.bincount(graph.responses.volunteer, minlength=20)
    assignment = GreedyValue(per_item=None).assign(graph, budget=200, capacity=50, load=int(np.median(n_responses)) + 2)
    n_asked = np.bincount(graph.volunteers.table.codes(assignment.volunteers.tolist()), minlength=20)
    assert ((n_asked == 0) | (n_responses + n_asked <= np.median(n_responses) + 2)).all()
    assert n_asked.sum() > 0


@dataclass(frozen=True, kw_only=True)
class Greedy(Policy):
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
def test_policies_must_keep_to_their_limits(graph, pairs, message):
    with pytest.raises(ResultError, match=message):
        Greedy(pairs=pairs).assign(graph, budget=3)
    pair = graph.items.ids[graph.responses.item[0]], graph.volunteers.ids[graph.responses.volunteer[0]]
    codes = graph.items.table.code(pair[0]), graph.volunteers.table.code(pair[1])
    with pytest.raises(ResultError, match="may not be asked about"):
        Greedy(pairs=(codes,)).assign(graph, budget=3)


def test_a_rule_says_what_is_retired(graph):
    rule = Retirement(threshold=0.9)
    gone = set(rule.retired_items(graph, graph.item_probs()).tolist())
    sure = graph.item_probs().max(axis=1) >= 0.9
    assert gone == set(graph.items.ids[sure & ~graph.gold.known & (graph.items.n_responses > 0)].tolist())
    assignment = RandomPolicy().assign(graph, budget=60, capacity=60, retired=rule, seed=0)
    assert gone
    assert not gone & set(assignment.items.tolist())
    assert len(RandomPolicy().assign(graph, budget=60, capacity=60, retired=None, seed=0)) == 60


def test_why_nothing_can_be_asked(graph):
    with pytest.raises(InfeasibleError, match="all are retired"):
        GreedyValue(per_item=None).assign(graph, budget=5, retired=graph.items.ids)
    with pytest.raises(InfeasibleError, match="capacity left"):
        GreedyValue(per_item=None).assign(graph, budget=5, capacity=0)
    with pytest.raises(InfeasibleError, match="no volunteers"):
        GreedyValue(per_item=None).assign(graph, budget=5, volunteers=[])
    with pytest.raises(InfeasibleError, match="or is not available"):
        GreedyValue(per_item=None).assign(graph, budget=5, available=graph)
    assert len(GreedyValue(per_item=None).assign(graph, budget=0, capacity=0)) == 0


def test_why_nothing_can_be_asked_on_the_command_line(graph):
    with pytest.raises(InfeasibleError) as caught:
        GreedyValue().assign(graph, budget=5, capacity=0)
    message = caught.value.message
    assert message == "Nothing can be asked: nobody has capacity left. Raise capacity= or load=."
    assert message.wording("cli") == "Nothing can be asked: nobody has capacity left. Raise --capacity."


@pytest.mark.parametrize("seed", range(8))
def test_the_queue_gives_the_best_question_each_time(seed):
    rng = np.random.default_rng(seed)
    problem = small_problem(rng, n_items=5, n_volunteers=6, capacity=2, budget=9)
    expected = []
    for _ in range(9):
        free = [
            (i, v)
            for i, v in np.argwhere(problem.allowed).tolist()
            if (i, v) not in expected and sum(v == other for _, other in expected) < 2
        ]
        if not free:
            break
        expected.append(max(free, key=lambda pair: total_gain(problem, [*expected, pair])))
    pairs = GreedyValue(per_item=None)._choose(problem, rng)
    assert_allclose(total_gain(problem, pairs), total_gain(problem, expected), atol=1e-10)


def test_orders_of_simple_policies(graph):
    uncertain = MostUncertain().assign(graph, budget=60, capacity=60, seed=0)
    doubt = entropy(graph.item_probs())[graph.items.table.codes(uncertain.items.tolist())]
    assert np.diff(doubt.round(9)).max() <= 0
    oldest = OldestFirst(answers_per_item=9).assign(graph, budget=200, capacity=60, seed=0)
    codes = graph.items.table.codes(oldest.items.tolist())
    first = [graph.responses.item.tolist().index(code) for code in codes]
    # Until every item has nine answers, those that the round asks for included, no other is asked about.
    counts = graph.items.n_responses.copy()
    for index, code in enumerate(codes):
        assert counts[code] < 9 or (counts[graph.items.n_responses < 9] >= 9).all(), index
        counts[code] += 1
    assert (counts[codes] > 9).any()
    # In the first pass the oldest come first.
    short = np.count_nonzero(graph.items.n_responses < 9)
    assert first[:short] == sorted(first[:short])
    assert list(RandomPolicy().assign(graph, budget=60, seed=0)) != list(
        RandomPolicy().assign(graph, budget=60, seed=1)
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget": -1}, ParameterError, "budget"),
        ({"budget": 2.5}, ParameterError, "budget"),
        ({"capacity": -1}, ParameterError, "capacity"),
        ({"capacity": {"volunteer-00": -2}}, ParameterError, "capacity"),
        ({"capacity": {"nobody": 2}}, UnknownIdError, "nobody"),
        ({"volunteers": ["nobody"]}, UnknownIdError, "nobody"),
        ({"volunteers": "anna"}, ParameterError, "several volunteers"),
        ({"items": ["item-00", "item-00"]}, ParameterError, "twice"),
        ({"fit": "nothing"}, NotAnnotatedError, "Fit a model"),
        ({"fit": 3}, ParameterError, "got a int"),
        ({"seed": -1}, ParameterError, "seed"),
        ({"load": -1}, ParameterError, "load"),
        ({"volunteers": ["volunteer-00"], "capacity": 0}, ParameterError, "'volunteer-00', who may not be asked more"),
        ({"volunteers": ["volunteer-00"], "load": 1}, ParameterError, "capacity or load leave nothing"),
        ({"items": ["item-00"], "retired": ["item-00"]}, ParameterError, "1 that are retired, such as 'item-00'"),
        ({"retired": ["nothing"]}, UnknownIdError, "nothing"),
        ({"retired": "item-00"}, ParameterError, "retired='item-00' must be several items"),
        ({"available": 3}, ParameterError, "takes an Availability or a CrowdGraph; got a int"),
        ({"objective": 3}, ParameterError, "takes an Objective; got a int"),
        ({"objective": Objective(payment={"volunteer-00": 1.0})}, ParameterError, "lacks 'volunteer-01'"),
    ],
)
def test_bad_input_is_told(graph, options, error, message):
    with pytest.raises(error, match=message):
        GreedyValue(per_item=None).assign(graph, **{"budget": 5, **options})


def test_a_graph_without_a_fit_says_which_model_to_fit(graph):
    bare = graph.first(100)
    with pytest.raises(NotAnnotatedError, match=r"IBCC\(\).fit\(graph\)"):
        RandomPolicy().assign(bare, budget=1)
    votes = bare.annotate(cg.MajorityVote().fit(bare))
    with pytest.raises(NotAnnotatedError, match="no confusion matrices"):
        RandomPolicy().assign(votes, budget=1)
    with pytest.raises(ParameterError, match="CrowdGraph"):
        RandomPolicy().assign([1], budget=1)
    with pytest.raises(ParameterError, match="twice"):
        value.information_gain(graph, "item-00", ["volunteer-00", "volunteer-00"])
    with pytest.raises(ParameterError, match="several volunteers"):
        value.information_gain(graph, "item-00", "volunteer-00")


def test_those_who_are_not_available_are_named(graph):
    who = graph.volunteers.ids[graph.responses.volunteer[0]]
    what = graph.items.ids[graph.responses.item[0]]
    with pytest.raises(InfeasibleError, match="not available for any of the items"):
        GreedyValue(per_item=None).assign(graph, budget=1, volunteers=[who], items=[what])
    # Where others can be asked, naming those who cannot is a mistake, but there is something to ask.
    with pytest.raises(ParameterError, match="not available for any of the items") as caught:
        GreedyValue(per_item=None).assign(graph, budget=1, volunteers=graph.volunteers.ids, items=[what])
    assert not isinstance(caught.value, InfeasibleError)


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="per_item"):
        GreedyValue(per_item=0)
    with pytest.raises(ParameterError, match="answers_per_item"):
        OldestFirst(answers_per_item=0)
    with pytest.raises(ParameterError, match="communities= takes"):
        CommunitiesFirst(communities=3)


def test_assignments_are_checked():
    good = {
        "volunteers": ["a", "b"],
        "items": [1, 1],
        "gain": [0.1, 0.1],
        "learning": [0.0, 0.0],
        "cost": [0.0, 0.0],
        "chance": [1.0, 1.0],
        "rates": (1.0, 0.0),
        "policy": "p",
    }
    assert Assignment(**good).already.tolist() == [0, 1]
    for changes in ({"items": [1]}, {"volunteers": ["a", "a"]}, {"gain": [0.1]}, {"learning": [0.0, np.nan]}):
        with pytest.raises(ResultError):
            Assignment(**{**good, **changes})
