"""What next: questions with honest expectations, and a sentence wherever something cannot be said."""

import numpy as np
import pytest
from builders import crowd, graph_of
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import forecast_settled, next_steps
from crowdgraph.kernels.item_kinds import DIFFICULTIES, blurred_rows, learn_item_kinds


@pytest.fixture(scope="module")
def graph():
    graph = crowd(0.9, 0.7, n_volunteers=30, n_items=200, n_responses=1_000, gold=0.5).graph
    return graph.annotate(cg.Calibrated().fit(graph))


@pytest.fixture(scope="module")
def steps(graph):
    return next_steps(graph, seed=0)


def test_there_are_thirty_questions_about_open_items_to_several_volunteers(graph, steps):
    assert len(steps) == len(steps.to_frame()) == 30
    assert np.unique(steps.volunteers, return_counts=True)[1].max() <= 3
    probs = graph.fit().item_probs[graph.items.codes(steps.items.tolist())]
    assert probs.max() < 0.9
    assert not any(graph.has_edge(*pair) for pair in zip(steps.volunteers.tolist(), steps.items.tolist(), strict=True))


def test_the_expected_certainty_is_that_of_all_answers(graph, steps):
    fit = graph.fit()
    for row in range(5):
        probs = fit.item_probs[graph.items.table.code(steps.items[row])]
        rows = fit.confusion.latest().mean[graph.volunteers.table.code(steps.volunteers[row])]
        n = graph.answers.n_by_item[graph.items.table.code(steps.items[row])]
        counts_as = fit.dependence.next_answer(n)
        after, entropy = 0.0, 0.0
        for label in range(len(graph.labels)):
            joint = probs * rows[:, label]
            after += joint.max()
            entropy -= (joint * np.log(joint / joint.sum())).sum()
        before = -(probs * np.log(probs)).sum()
        assert_allclose(steps.expected[row], (1 - counts_as) * probs.max() + counts_as * after)
        assert_allclose(steps.removed[row], counts_as * (before - entropy) / before)


def test_the_parts_have_words(steps):
    assert len(steps.forecast.sentences) == 3
    assert steps.thanks[0].share == max(one.share for one in steps.thanks)
    assert "NextSteps: 30 questions" in repr(steps)


def test_without_gold_nobody_checked():
    graph = crowd(0.9, gold=0.0).graph
    steps = next_steps(graph.annotate(cg.IBCC().fit(graph)), seed=0)
    assert steps.retirable.guarantee is None
    assert "nobody checked" in steps.retirable.words


def test_a_guarantee_where_gold_allows():
    graph = crowd(0.98, n_volunteers=20, n_items=200, n_responses=2_000, gold=0.8).graph
    steps = next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    assert steps.retirable.guarantee.bound <= 0.05
    assert 0 < len(steps.retirable.items) <= 40


def test_a_model_without_confusion():
    graph = crowd(0.9).graph
    steps = next_steps(graph.annotate(cg.MajorityVote().fit(graph)))
    assert set(steps.reasons) == {"questions", "forecast", "retirable", "learners"}
    assert "majority" in steps.reasons["questions"]
    assert not steps.by_information
    assert steps.thanks


def test_nobody_left_to_ask():
    graph = graph_of(["anna"] * 5, list("abcde"), [0, 1, 0, 1, 0])
    steps = next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    assert not len(steps)
    assert steps.reasons["questions"].startswith("Nobody can be asked")
    assert "others would have to be asked" in steps.forecast.sentences[-1]


def test_a_fit_is_needed(graph):
    with pytest.raises(cg.errors.NotAnnotatedError):
        next_steps(graph.replace())


def test_a_forecast_repeats_and_orders_its_targets(graph):
    one, other = (forecast_settled(graph, seed=3, n_draws=10) for _ in range(2))
    assert_allclose(one.median, other.median)
    assert (np.diff(one.low) >= 0).all()
    done = forecast_settled(graph, targets=(0.01,), n_draws=2, seed=0)
    assert done.sentences == ["1% of the items are settled already."]


def test_kinds_of_items_are_found_again():
    rng = np.random.default_rng(0)
    n_items, n_volunteers = 400, 40
    classes, hard = rng.integers(2, size=n_items), rng.random(n_items) < 0.4
    item, volunteer = np.divmod(np.arange(n_items * n_volunteers), n_volunteers)
    rows = blurred_rows(np.array([[[0.9, 0.1], [0.1, 0.9]]]), hard[item][:, None, None].astype(float))
    label = (rng.random(len(item)) > rows[np.arange(len(item)), classes[item], 0]).astype(int)
    kinds = learn_item_kinds(
        volunteer,
        item,
        label,
        prior=np.tile([[2.0, 1.0], [1.0, 2.0]], (n_volunteers, 1, 1)),
        start=np.full((n_items, 2, 1), 0.5),
        known=np.full((n_items, 2), np.nan),
    )
    difficulty = kinds.probs.sum(axis=1) @ DIFFICULTIES
    assert difficulty[hard].mean() > 0.8 > 0.2 > difficulty[~hard].mean()
    assert (kinds.probs.sum(axis=2).argmax(axis=1) == classes)[~hard].all()
