"""Policies: nobody is asked too much or twice, greedy is as good as it promises, and bad input is told."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import Assignment, GreedyInformation, MostUncertain, OldestFirst, RandomPolicy, value
from crowdgraph.allocation.base import Round
from crowdgraph.allocation.gain import ENOUGH_STATES, coalition_gain, entropy
from crowdgraph.errors import NotAnnotatedError, ParameterError, ResultError, UnknownIdError

POLICIES = [RandomPolicy(), OldestFirst(), MostUncertain(), GreedyInformation()]


@pytest.fixture(scope="module")
def graph():
    groups = [
        cg.simulate.Group(name="good", confusion=[[0.95, 0.05], [0.05, 0.95]]),
        cg.simulate.Group(name="poor", confusion=[[0.6, 0.4], [0.4, 0.6]]),
    ]
    crowd = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=500, groups=groups, gold=0.3, seed=0).graph
    return crowd.annotate(cg.IBCC().fit(crowd))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(budget=st.integers(0, 150), capacity=st.integers(0, 6), seed=st.integers(0, 100), some=st.integers(1, 20))
@settings(max_examples=12)
def test_limits_are_kept(graph, policy, budget, capacity, seed, some):
    people, things = graph.volunteers.ids[:some].tolist(), graph.items.ids[::2].tolist()
    found = policy.assign(graph, budget=budget, volunteers=people, items=things, capacity=capacity, seed=seed)
    answered = set(
        zip(graph.volunteers.ids[graph.responses.volunteer], graph.items.ids[graph.responses.item], strict=True)
    )
    pairs = list(found)
    assert len(pairs) == len(set(pairs)) <= budget
    assert not set(pairs) & answered
    assert {who for who, _ in pairs} <= set(people)
    assert {what for _, what in pairs} <= set(things)
    loads = [sum(who == one for who, _ in pairs) for one in people]
    assert max(loads) <= capacity
    # As many as can be: budget, or nobody with capacity has an item left.
    if len(pairs) < budget:
        for one, load in zip(people, loads, strict=True):
            rest = {what for what in things if (one, what) not in answered} - {
                what for who, what in pairs if who == one
            }
            assert load == capacity or not rest
    again = policy.assign(graph, budget=budget, volunteers=people, items=things, capacity=capacity, seed=seed)
    assert list(again) == pairs


def test_what_each_question_tells_adds_up(graph):
    found = GreedyInformation().assign(graph, budget=40, capacity=5)
    for item in set(found.items.tolist()):
        members = [who for who, what in found if what == item]
        told = found.gain[[what == item for _, what in found]].sum()
        # Choosing keeps fewer posteriors apart, which loses no more than it says.
        error = value.information_gain_bounds(graph, item, members, most_states=ENOUGH_STATES).error
        assert error < 1e-3
        assert_allclose(told, value.information_gain(graph, item, members), rtol=0, atol=error + 1e-10)
    expected = [value.learning_gain(graph, who, what) for who, what in found]
    assert_allclose(found.learning, expected)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["volunteer", "item", "gain", "learning", "already", "policy"]
    assert frame["already"].tolist() == [
        sum(what == other for other in found.items[:place]) for place, what in enumerate(found.items)
    ]
    assert "40 questions" in repr(found)


def test_greedy_asks_the_good_about_the_uncertain(graph):
    found = GreedyInformation().assign(graph, budget=10, capacity=10)
    skill = graph.confusion().latest().accuracy()
    chosen = graph.volunteers.table.codes(found.volunteers.tolist())
    assert skill[chosen].mean() > np.median(skill)
    assert np.diff(found.gain).max() <= 1e-12


def small_round(rng, *, n_items, n_volunteers, capacity, budget):
    return Round(
        graph=None,
        volunteers=np.arange(n_volunteers),
        items=np.arange(n_items),
        probs=rng.dirichlet([0.7, 0.7], n_items),
        confusion=rng.dirichlet([0.5, 0.5, 0.5], (n_volunteers, 2)),
        open=rng.random((n_items, n_volunteers)) < 0.8,
        capacity=np.full(n_volunteers, capacity),
        budget=budget,
    )


def worth(task, pairs):
    return sum(
        coalition_gain(task.probs[item], task.confusion[[v for i, v in pairs if i == item]]).nats
        for item in range(len(task.items))
    )


def best(task, *, budget):
    """The most that any feasible set of questions tells, by trying all."""
    everything = [tuple(map(int, pair)) for pair in np.argwhere(task.open)]
    ways = (some for size in range(budget + 1) for some in combinations(everything, size))
    fine = (
        some for some in ways if all(sum(v == one for _, v in some) <= task.capacity[one] for one in task.volunteers)
    )
    return max(worth(task, some) for some in fine)


@pytest.mark.parametrize("seed", range(8))
def test_greedy_keeps_its_promises(seed):
    rng = np.random.default_rng(seed)
    # One item and a limit on the number of volunteers: 1 - 1/e.
    task = small_round(rng, n_items=1, n_volunteers=6, capacity=1, budget=3)
    pairs = GreedyInformation()._choose(task, rng)
    assert worth(task, pairs) >= (1 - 1 / np.e) * best(task, budget=3) - 1e-12
    # Capacities: one half.
    task = small_round(rng, n_items=3, n_volunteers=3, capacity=1, budget=9)
    pairs = GreedyInformation()._choose(task, rng)
    assert worth(task, pairs) >= best(task, budget=3) / 2 - 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_the_queue_gives_the_best_question_each_time(seed):
    rng = np.random.default_rng(seed)
    task = small_round(rng, n_items=5, n_volunteers=6, capacity=2, budget=9)
    chosen = []
    for _ in range(9):
        free = [
            (i, v)
            for i, v in np.argwhere(task.open).tolist()
            if (i, v) not in chosen and sum(v == other for _, other in chosen) < 2
        ]
        if not free:
            break
        chosen.append(max(free, key=lambda pair: worth(task, [*chosen, pair])))
    found = GreedyInformation()._choose(task, rng)
    assert_allclose(worth(task, found), worth(task, chosen), atol=1e-10)


def test_orders_of_simple_policies(graph):
    uncertain = MostUncertain().assign(graph, budget=60, capacity=60, seed=0)
    doubt = entropy(graph.item_probs())[graph.items.table.codes(uncertain.items.tolist())]
    assert np.diff(doubt.round(9)).max() <= 0
    oldest = OldestFirst().assign(graph, budget=60, capacity=60, seed=0)
    first = [graph.responses.item.tolist().index(code) for code in graph.items.table.codes(oldest.items.tolist())]
    assert first == sorted(first)
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
        ({"fit": "nothing"}, NotAnnotatedError, "fit a model"),
        ({"fit": 3}, ParameterError, "got a int"),
        ({"seed": -1}, ParameterError, "seed"),
    ],
)
def test_bad_input_is_told(graph, options, error, message):
    with pytest.raises(error, match=message):
        GreedyInformation().assign(graph, **{"budget": 5, **options})


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


def test_assignments_are_checked():
    good = {"volunteers": ["a", "b"], "items": [1, 1], "gain": [0.1, 0.1], "learning": [0.0, 0.0], "policy": "p"}
    assert Assignment(**good).already.tolist() == [0, 1]
    for changes in ({"items": [1]}, {"volunteers": ["a", "a"]}, {"gain": [0.1]}, {"learning": [0.0, np.nan]}):
        with pytest.raises(ResultError):
            Assignment(**{**good, **changes})
