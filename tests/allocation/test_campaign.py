"""Campaigns: only what was revealed is known, answers are the true ones, and good policies need fewer of them."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.allocation import (
    Campaign,
    CommunitiesFirst,
    GreedyValue,
    MostUncertain,
    Objective,
    RandomPolicy,
    Retirement,
    replay_campaign,
    simulate_campaign,
)
from crowdgraph.allocation.campaign import (
    CAMPAIGN_COLUMNS,
    GroundTruth,
    RecordedAnswers,
    RetiredItems,
    SimulatedAnswers,
)
from crowdgraph.errors import GoldError, ParameterError, ResultError


def crowd(seed, **options):
    kinds = {"good": 0.92, "fair": 0.75, "poor": 0.55}
    groups = [
        cg.simulate.Group(name=name, confusion=[[right, 1 - right], [1 - right, right]])
        for name, right in kinds.items()
    ]
    sizes = {"n_volunteers": 40, "n_items": 200, "n_responses": 2_000}
    return cg.simulate.crowd(groups=groups, seed=seed, **{**sizes, **options})


def test_greedy_needs_far_fewer_responses_than_chance():
    simulated = crowd(0)
    random, greedy = (
        simulate_campaign(simulated, policy, budget=2_000, update_every=100, seed=0)
        for policy in (RandomPolicy(), GreedyValue())
    )
    assert greedy.spent_until(0.95) < 0.6 * random.spent_until(0.95)
    assert greedy.gini > random.gini
    # Both begin with the same questions.
    assert greedy.accuracy[0] == random.accuracy[0]
    assert greedy.spent[0] == 200
    assert greedy.spent[-1] == 2_000 == greedy.loads.sum()
    assert "greedy value: 2,000 responses" in repr(greedy)


def test_campaigns_repeat():
    simulated = crowd(1)
    first, second = (simulate_campaign(simulated, MostUncertain(), budget=500, seed=3) for _ in range(2))
    for name in ("spent", "accuracy", "log_loss", "loads"):
        assert_array_equal(getattr(first, name), getattr(second, name))


def test_answers_follow_the_behaviour_at_that_response():
    simulated = crowd(2, n_volunteers=2, n_responses=[100, 100], drift="step", difficulty=0.3)
    rows = simulated.graph.responses.by_volunteer.rows(0)
    asked = 4_000
    source = SimulatedAnswers(simulated, np.random.default_rng(0))
    # Only the first hundred answers change with time; later ones stay as the last.
    labels = [source.answer(0, 7) for _ in range(asked)]
    confusion = simulated.truth.confusion[rows[-1]]
    row = confusion[simulated.truth.classes[7]]
    expected = row + simulated.truth.difficulty[7] * (confusion.mean(axis=0) - row)
    assert_allclose(np.bincount(labels[100:], minlength=2) / (asked - 100), expected, atol=0.03)


def test_only_recorded_answers_are_revealed():
    graph = crowd(3).graph
    source = RecordedAnswers(graph)
    for row in range(0, len(graph.responses), 97):
        volunteer, item = int(graph.responses.volunteer[row]), int(graph.responses.item[row])
        assert source.answer(volunteer, item) == graph.responses.label[row]
    complete = replay_campaign(graph, GreedyValue(), update_every=200, seed=0)
    assert complete.spent[-1] == len(graph.responses)
    assert_array_equal(complete.loads, graph.volunteers.n_responses)
    # After everything is revealed the order of revealing does not matter.
    other = replay_campaign(graph, RandomPolicy(), update_every=200, seed=0)
    assert_allclose(complete.accuracy[-1], other.accuracy[-1], atol=0.01)
    part = replay_campaign(graph, GreedyValue(), budget=500, update_every=200, seed=0)
    assert part.spent.tolist() == [200, 400, 500]
    assert_array_equal(part.accuracy[:2], complete.accuracy[:2])


class GreedyWithNotes(GreedyValue):
    """Greedy, with a note of what it was shown and what it chose."""

    def _choose(self, problem, rng):
        pairs = super()._choose(problem, rng)
        self.notes.append((problem.graph.item_probs(), problem.capacity, pairs))
        return pairs


def with_notes():
    policy = GreedyWithNotes()
    object.__setattr__(policy, "notes", [])
    return policy


def test_the_model_sees_no_gold():
    simulated = crowd(4)
    contrary = {
        item: simulated.graph.classes[1 - code]
        for item, code in zip(simulated.graph.items.ids, simulated.truth.classes, strict=True)
    }
    policies = with_notes(), with_notes()
    for policy, graph in zip(policies, (simulated.graph, simulated.graph.with_gold(contrary)), strict=True):
        replay_campaign(graph, policy, budget=400, seed=0)
    assert len(policies[0].notes) > 1
    for (probs, _, pairs), (others, _, other_pairs) in zip(*(policy.notes for policy in policies), strict=True):
        assert_array_equal(probs, others)
        assert pairs == other_pairs


def test_known_items_do_not_count_for_accuracy():
    simulated = crowd(4)
    known = simulated.graph.items.ids[10:]
    campaign = simulate_campaign(simulated, RandomPolicy(), budget=600, known_items=known, seed=0)
    # Of ten items each is a tenth.
    assert_allclose(10 * campaign.accuracy, (10 * campaign.accuracy).round(), atol=1e-9)


def test_capacities_of_campaigns_are_kept():
    policy = with_notes()
    simulate_campaign(crowd(4), policy, budget=600, capacity=3, seed=0)
    assert all((capacity == 3).all() for _, capacity, _ in policy.notes)


def test_of_several_answers_the_first_counts():
    rows = {"volunteer": ["a", "a"], "item": ["x", "x"], "label": ["y", "n"], "time": [1, 2]}
    graph = cg.CrowdGraph.from_responses(rows, classes=["n", "y"], labels=["n", "y"])
    assert RecordedAnswers(graph).answer(0, 0) == 1


def test_the_class_of_a_retired_item_is_settled():
    truth = GroundTruth(crowd(4).graph, crowd(4).truth.classes, ())
    retired = RetiredItems(Retirement(threshold=0.9), truth)
    view = truth.graph_of([(0, item, 0) for item in range(len(truth.graph.items))])
    sure = np.tile([0.95, 0.05], (len(truth.graph.items), 1))
    assert_array_equal(retired.update(view, sure), sure)
    assert_array_equal(retired.update(view, sure[:, ::-1]), sure)
    assert (retired.classes == 0).all()


def test_communities_of_a_campaign_must_be_given():
    with pytest.raises(ParameterError, match=r"CommunitiesFirst\(communities=...\)"):
        simulate_campaign(crowd(4), CommunitiesFirst(), budget=400)


def campaign_of(policy="p", *, spent, accuracy, **others):
    """A campaign of which only some figures matter."""
    figures = {name: np.zeros(len(spent)) for name in CAMPAIGN_COLUMNS}
    figures |= {"spent": spent, "accuracy": accuracy, "loads": [30], "retired_items": [], **others}
    return Campaign(policy=policy, **figures)


def test_campaigns_tell_their_figures_of_retired_items():
    rule = Retirement(threshold=0.99)
    objective = Objective(payment=2.0, effort=0.5)
    simulated = crowd(1)
    campaign = simulate_campaign(simulated, GreedyValue(), budget=900, retirement=rule, objective=objective, seed=0)
    assert_allclose(campaign.cost, 2.5 * campaign.spent)
    assert (np.diff(campaign.n_retired) >= 0).all()
    assert 0 < campaign.n_retired[-1] == len(campaign.retired_items)
    # The settled class is that of the moment of retirement; of well-known items few are wrong.
    assert 0 <= campaign.retired_error[-1] < 0.1
    assert (campaign.calibration >= 0).all()
    assert (campaign.calibration <= 1).all()
    assert "items retired" in repr(campaign)
    frame = campaign.to_frame()
    assert frame.columns.tolist() == ["policy", *CAMPAIGN_COLUMNS]


def test_known_items_do_not_retire():
    simulated = crowd(1)
    known = simulated.graph.items.ids[:50]
    campaign = simulate_campaign(
        simulated, RandomPolicy(), budget=600, retirement=Retirement(threshold=0.6), known_items=known, seed=0
    )
    assert len(campaign.retired_items) > 100
    assert not set(campaign.retired_items) & set(known)


def test_retired_items_are_asked_about_no_more():
    class Watched(RandomPolicy):
        def _choose(self, problem, rng):
            asked.append(set(problem.items.tolist()))
            return super()._choose(problem, rng)

    asked = []
    campaign = simulate_campaign(crowd(1), Watched(), budget=900, retirement=Retirement(threshold=0.95), seed=0)
    for before, after in pairwise(asked):
        assert after <= before
    assert len(asked[-1]) < len(asked[0])
    assert campaign.n_retired[-1] >= len(crowd(1).graph.items) - len(asked[-1])


def test_campaigns_tell_their_figures():
    campaign = campaign_of(spent=[10, 20, 30, 40], accuracy=[0.9, 0.7, 0.9, 0.95], loads=[0, 0, 0, 40])
    assert campaign.spent_until(0.9) == 30
    assert campaign.spent_until(0.5) == 10
    assert campaign.spent_until(0.99) == float("inf")
    assert campaign.gini == 0.75
    assert len(campaign.to_frame()) == 4
    with pytest.raises(ParameterError, match="accuracy"):
        campaign.spent_until(2)
    with pytest.raises(ResultError, match="one number for each update"):
        campaign_of(spent=[1], accuracy=[])
    with pytest.raises(ResultError, match="fall"):
        campaign_of(spent=[2, 1], accuracy=[1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": -1}, "budget"),
        ({"update_every": 0}, "update_every"),
        ({"capacity": 0}, "capacity"),
        ({"seed": 1.5}, "seed"),
        ({"policy": "random"}, "takes a policy"),
        ({"model": "ibcc"}, "model= takes a model, such as IBCC"),
        ({"objective": None}, "objective= takes an objective"),
        ({"retirement": 0.9}, "retirement= takes a retirement"),
        ({"known_items": "item-000"}, "known_items='item-000' must be several items"),
    ],
)
def test_bad_input_is_told(options, message):
    with pytest.raises(ParameterError, match=message):
        simulate_campaign(crowd(0), **{"policy": RandomPolicy(), "budget": 300, **options})
    graph = crowd(0).graph
    with pytest.raises(ParameterError, match=message):
        replay_campaign(graph, **{"policy": RandomPolicy(), "budget": 300, **options})


def test_without_gold_nobody_can_tell():
    with pytest.raises(GoldError, match="no gold"):
        replay_campaign(crowd(0, gold=0.0).graph, RandomPolicy())
    with pytest.raises(ParameterError, match="CrowdGraph"):
        replay_campaign(3, RandomPolicy())
    with pytest.raises(ParameterError, match=r"use replay_campaign"):
        simulate_campaign(crowd(0).graph, RandomPolicy(), budget=10)
    nothing = simulate_campaign(crowd(0), RandomPolicy(), budget=0)
    assert len(nothing.spent) == 0
    assert "nothing was asked" in repr(nothing)


def test_pictures_show_means_and_bands():
    def shifted(policy, shift):
        return campaign_of(policy, spent=[10, 20 + shift, 30], accuracy=[0.5, 0.7 + shift / 100, 0.9])

    ax = cg.plot.campaign([shifted("a", 0), shifted("a", 2), shifted("b", 0)])
    first, second = ax.lines
    assert_array_equal(first.get_xdata(), [10, 20, 22, 30])
    assert_allclose(first.get_ydata(), [0.5, 0.6, 0.71, 0.9])
    assert_allclose(second.get_ydata(), [0.5, 0.7, 0.9])
    assert len(ax.collections) == 1
    assert cg.plot.campaign(shifted("a", 0), score="log_loss").get_ylabel() == "log loss"
    for wrong, message in (([], "no campaigns"), ([3], "Campaign")):
        with pytest.raises(ParameterError, match=message):
            cg.plot.campaign(wrong)
