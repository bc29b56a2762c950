"""How each policy decides: greedy as well as guaranteed, matching as well as possible, the others in their order."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from crowdgraph.allocation import (
    CommunitiesFirst,
    GreedyValue,
    MostUncertain,
    Objective,
    OldestFirst,
    OptimalMatching,
    RandomPolicy,
    Training,
    shared_errors,
    simulate_campaign,
    specialisation,
    value,
)
from crowdgraph.allocation._information_gain import coalition_gain, entropy, single_gains
from crowdgraph.allocation.objective import QuestionValues
from crowdgraph.allocation.policies import optimal_matching
from crowdgraph.allocation.policy import Problem
from crowdgraph.errors import InfeasibleError, ParameterError


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
    candidates = (pairs for size in range(budget + 1) for pairs in combinations(everything, size))
    feasible = (
        pairs
        for pairs in candidates
        if all(sum(v == volunteer for _, v in pairs) <= problem.capacity[volunteer] for volunteer in problem.volunteers)
        and all(sum(i == item for i, _ in pairs) <= per_item for item in problem.items)
    )
    return max(total_gain(problem, pairs) for pairs in feasible)


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
    assert net_value < max(less_cost(members) for size in range(6) for members in combinations(range(5), size)) - 1e-3


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


def test_simple_policies_follow_their_order(graph):
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


def test_policies_decide_by_all_parts_of_an_objective(erring_together):
    simulated, groups = erring_together
    graph = simulated.graph
    objective = Objective(
        shared_errors=shared_errors(graph, groups),
        specialisation=specialisation(graph, groups),
        learning=0.2,
        training=Training(communities=groups, reach=0.1),
        cost=0.001,
    )
    for policy in (GreedyValue(per_item=None), CommunitiesFirst(communities=groups)):
        # Few enough that all posteriors are kept apart.
        assignment = policy.assign(graph, budget=8, capacity=3, objective=objective)
        total = value.total_value(graph, assignment, objective=objective)
        assert assignment.value.sum() == pytest.approx(total.total, rel=1e-6)
    # The first question is that of most value.
    answered = set(
        zip(
            graph.volunteers.ids[graph.responses.volunteer].tolist(),
            graph.items.ids[graph.responses.item].tolist(),
            strict=True,
        )
    )
    everything = [
        (value.total_value(graph, [(who, what)], objective=objective).total, (who, what))
        for who in graph.volunteers.ids[:10].tolist()
        for what in graph.items.ids[:10].tolist()
    ]
    best = GreedyValue().assign(
        graph,
        budget=1,
        volunteers=graph.volunteers.ids[:10],
        items=graph.items.ids[:10],
        objective=objective,
    )
    assert best.value[0] == pytest.approx(max(value for value, pair in everything if pair not in answered))


def test_campaigns_take_an_objective(three_skills):
    campaign = simulate_campaign(three_skills, GreedyValue(), budget=200, objective=Objective(learning=0.1), seed=0)
    assert campaign.spent[-1] == 200
