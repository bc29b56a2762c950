"""Campaigns: only what was revealed is known, answers are the true ones, and good policies need fewer of them."""

from itertools import pairwise

import numpy as np
from builders import crowd
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.allocation import (
    Campaign,
    GreedyValue,
    MostUncertain,
    Objective,
    RandomPolicy,
    Retirement,
    replay_campaign,
    simulate_campaign,
)
from crowdgraph.allocation.campaign import CAMPAIGN_COLUMNS, GroundTruth, RetiredItems, SimulatedAnswers


def test_greedy_needs_far_fewer_responses_than_chance(three_skills):
    random, greedy = (
        simulate_campaign(three_skills, policy, budget=1_000, update_every=50, seed=0)
        for policy in (RandomPolicy(), GreedyValue())
    )
    assert greedy.spent_until(0.95) < 0.6 * random.spent_until(0.95)
    assert greedy.gini > random.gini
    # Both begin with the same questions.
    assert greedy.accuracy[0] == random.accuracy[0]
    assert greedy.spent[0] == 100
    assert greedy.spent[-1] == 1_000 == greedy.loads.sum()
    assert "greedy value: 1,000 responses" in repr(greedy)


def test_campaigns_repeat(three_skills):
    first, second = (simulate_campaign(three_skills, MostUncertain(), budget=300, seed=3) for _ in range(2))
    for name in ("spent", "accuracy", "log_loss", "loads"):
        assert_array_equal(getattr(first, name), getattr(second, name))


def test_answers_follow_the_behaviour_at_that_response():
    simulated = crowd(0.9, n_volunteers=2, n_items=200, n_responses=[100, 100], drift="step", difficulty=0.3)
    rows = simulated.graph.responses.by_volunteer.rows(0)
    asked = 4_000
    source = SimulatedAnswers(simulated, np.random.default_rng(0))
    # Only the first hundred answers change with time; later ones stay as the last.
    labels = [source.answer(0, 7) for _ in range(asked)]
    confusion = simulated.truth.confusion[rows[-1]]
    row = confusion[simulated.truth.classes[7]]
    expected = row + simulated.truth.difficulty[7] * (confusion.mean(axis=0) - row)
    assert_allclose(np.bincount(labels[100:], minlength=2) / (asked - 100), expected, atol=0.03)


class NotingModel(cg.IBCC):
    """IBCC, with a note of the responses that it was shown."""

    def fit(self, graph, **options):
        self.shown.append(graph.responses)
        return super().fit(graph, **options)


def with_notes(policy_or_model, name):
    """The policy or model, which is frozen, with an empty list of notes."""
    object.__setattr__(policy_or_model, name, [])
    return policy_or_model


def answers_of(responses):
    return sorted((response.volunteer, response.item, response.label) for response in responses)


def test_only_recorded_answers_are_revealed(three_skills):
    graph, model = three_skills.graph, with_notes(NotingModel(), "shown")
    complete = replay_campaign(graph, GreedyValue(), update_every=100, model=model, seed=0)
    assert complete.spent[-1] == len(graph.responses)
    assert answers_of(model.shown[-1]) == answers_of(graph.responses)
    assert_array_equal(complete.loads, graph.volunteers.n_responses)
    # After everything is revealed the order of revealing does not matter.
    other = replay_campaign(graph, RandomPolicy(), update_every=100, model=cg.IBCC(), seed=0)
    assert_allclose(complete.accuracy[-1], other.accuracy[-1], atol=0.01)
    part = replay_campaign(graph, GreedyValue(), budget=250, update_every=100, model=cg.IBCC(), seed=0)
    assert part.spent.tolist() == [100, 200, 250]
    assert_array_equal(part.accuracy[:2], complete.accuracy[:2])


def test_of_several_answers_the_first_counts():
    rows = {"volunteer": ["a", "a"], "item": ["x", "x"], "label": ["y", "n"], "time": [1, 2]}
    graph = cg.CrowdGraph.from_responses(rows, classes=["n", "y"], labels=["n", "y"], gold={"x": "y"})
    model = with_notes(NotingModel(), "shown")
    replay_campaign(graph, RandomPolicy(), model=model, seed=0)
    assert answers_of(model.shown[-1]) == [("a", "x", "y")]


class NotingPolicy(GreedyValue):
    """Greedy, with a note of what it was shown and what it chose."""

    def _choose(self, problem, rng):
        pairs = super()._choose(problem, rng)
        self.notes.append((problem.graph.item_probs(), problem.capacity, pairs))
        return pairs


def test_the_model_sees_no_gold(three_skills):
    graph, truth = three_skills
    contrary = {item: graph.classes[1 - code] for item, code in zip(graph.items.ids, truth.classes, strict=True)}
    policies = [with_notes(NotingPolicy(), "notes") for _ in range(2)]
    for policy, view in zip(policies, (graph, graph.with_gold(contrary)), strict=True):
        replay_campaign(view, policy, budget=300, seed=0)
    assert len(policies[0].notes) > 1
    for (probs, _, pairs), (others, _, other_pairs) in zip(*(policy.notes for policy in policies), strict=True):
        assert_array_equal(probs, others)
        assert pairs == other_pairs


def test_known_items_do_not_count_for_accuracy(three_skills):
    known = three_skills.graph.items.ids[10:]
    campaign = simulate_campaign(three_skills, RandomPolicy(), budget=300, known_items=known, seed=0)
    # Of ten items each is a tenth.
    assert_allclose(10 * campaign.accuracy, (10 * campaign.accuracy).round(), atol=1e-9)


def test_capacities_of_campaigns_are_respected(three_skills):
    policy = with_notes(NotingPolicy(), "notes")
    simulate_campaign(three_skills, policy, budget=300, capacity=3, seed=0)
    assert all((capacity == 3).all() for _, capacity, _ in policy.notes)


def test_the_class_of_a_retired_item_is_settled(three_skills):
    truth = GroundTruth(three_skills.graph, three_skills.truth.classes, ())
    retired = RetiredItems(Retirement(threshold=0.9), truth)
    view = truth.graph_of([(0, item, 0) for item in range(len(truth.graph.items))])
    sure = np.tile([0.95, 0.05], (len(truth.graph.items), 1))
    assert_array_equal(retired.update(view, sure), sure)
    assert_array_equal(retired.update(view, sure[:, ::-1]), sure)
    assert (retired.classes == 0).all()


def campaign_of(policy="p", *, spent, accuracy, **others):
    """A campaign of which only some figures matter."""
    figures = {name: np.zeros(len(spent)) for name in CAMPAIGN_COLUMNS}
    figures |= {"spent": spent, "accuracy": accuracy, "loads": [30], "retired_items": [], **others}
    return Campaign(policy=policy, **figures)


def test_campaigns_count_what_retires_and_what_it_costs(three_skills):
    rule, objective = Retirement(threshold=0.99), Objective(payment=2.0, effort=0.5)
    campaign = simulate_campaign(
        three_skills, GreedyValue(), budget=450, update_every=50, retirement=rule, objective=objective, seed=0
    )
    assert_allclose(campaign.cost, 2.5 * campaign.spent)
    assert (np.diff(campaign.n_retired) >= 0).all()
    assert 0 < campaign.n_retired[-1] == len(campaign.retired_items)
    # The settled class is that of the moment of retirement; of well-known items few are wrong.
    assert 0 <= campaign.retired_error[-1] < 0.1
    assert (campaign.calibration >= 0).all()
    assert (campaign.calibration <= 1).all()
    assert "items retired" in repr(campaign)
    assert campaign.to_frame().columns.tolist() == ["policy", *CAMPAIGN_COLUMNS]


def test_known_items_do_not_retire(three_skills):
    known = three_skills.graph.items.ids[:25]
    campaign = simulate_campaign(
        three_skills, RandomPolicy(), budget=300, retirement=Retirement(threshold=0.6), known_items=known, seed=0
    )
    assert len(campaign.retired_items) > 50
    assert not set(campaign.retired_items) & set(known)


def test_retired_items_are_asked_about_no_more(three_skills):
    class NotingRandom(RandomPolicy):
        def _choose(self, problem, rng):
            self.notes.append(set(problem.items.tolist()))
            return super()._choose(problem, rng)

    policy = with_notes(NotingRandom(), "notes")
    campaign = simulate_campaign(
        three_skills, policy, budget=450, update_every=50, retirement=Retirement(threshold=0.95), seed=0
    )
    for before, after in pairwise(policy.notes):
        assert after <= before
    assert len(policy.notes[-1]) < len(policy.notes[0])
    assert campaign.n_retired[-1] >= len(three_skills.graph.items) - len(policy.notes[-1])


def test_campaigns_work_out_when_an_accuracy_is_reached():
    campaign = campaign_of(spent=[10, 20, 30, 40], accuracy=[0.9, 0.7, 0.9, 0.95], loads=[0, 0, 0, 40])
    assert campaign.spent_until(0.9) == 30
    assert campaign.spent_until(0.5) == 10
    assert campaign.spent_until(0.99) == float("inf")
    assert campaign.gini == 0.75
    assert len(campaign.to_frame()) == 4


def test_a_campaign_without_a_budget_asks_nothing(three_skills):
    nothing = simulate_campaign(three_skills, RandomPolicy(), budget=0)
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
