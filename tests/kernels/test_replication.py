"""Replicated answers: draws against exact distributions, and statistics against sums written out."""

from itertools import combinations

import numpy as np
import pytest
from builders import crowd, graph_of

import crowdgraph as cg
from crowdgraph.evaluation.replicates import grouped_answers
from crowdgraph.kernels.replication import (
    GroupedAnswers,
    common_items,
    draw_answers,
    draw_rows,
    error_correlation,
    item_agreement,
    pair_sums,
    sample_posterior,
)
from crowdgraph.testing import exact_posterior


@pytest.fixture(params=["static", "changing"])
def case(request):
    """Answers of 6 volunteers about 9 items, with classes and rows; the rows may change from answer to answer."""
    rng = np.random.default_rng(3)
    graph = crowd(n_volunteers=6, n_items=9, n_responses=30, seed=3).graph
    answers, _ = grouped_answers(graph, cg.IBCC().fit(graph))
    if request.param == "changing":
        answers = answers._replace(factor=rng.uniform(0.5, 2, (30, 2, 2)))
    return answers, rng.integers(2, size=9), rng.dirichlet([2, 1], size=(6, 2))


def slow_answers(answers, classes, rows):
    """Yield the number, the item, the volunteer and the probability of each label of each answer."""
    for item, (start, stop) in enumerate(zip(answers.starts, answers.starts[1:], strict=False)):
        for r in range(start, stop):
            probs = rows[answers.volunteer[r], classes[item]].copy()
            if len(answers.factor):
                probs *= answers.factor[r, classes[item]]
            yield r, item, answers.volunteer[r], probs / probs.sum()


def test_labels_are_drawn_from_the_rows(case):
    answers, classes, rows = case
    rng = np.random.default_rng(0)
    draws = np.array([draw_answers(rng, answers, classes, rows) for _ in range(4_000)])
    for r, _, _, probs in slow_answers(*case):
        assert draws[:, r].mean() == pytest.approx(probs[1], abs=0.04)


def test_rows_are_drawn_from_their_dirichlets():
    concentration = np.array([[[0.05, 3.0, 1.0], [20.0, 1.0, 1e-3]]])
    rng = np.random.default_rng(0)
    draws = np.array([draw_rows(rng, concentration) for _ in range(20_000)])
    total = concentration.sum(axis=2, keepdims=True)
    mean = concentration / total
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.01)
    np.testing.assert_allclose(draws.var(axis=0), mean * (1 - mean) / (total + 1), atol=0.01)
    np.testing.assert_allclose(draws.sum(axis=3), 1)


def test_classes_are_drawn_from_the_exact_posterior():
    graph = graph_of(
        [0, 1, 2, 0, 1, 2, 0, 1], [0, 0, 0, 1, 1, 2, 3, 3], [0, 0, 1, 1, 1, 0, 1, 0], gold={3: 1}, classes=[0, 1]
    )
    prior = np.array([[2.0, 1.0], [1.0, 3.0]])
    answers, _ = grouped_answers(graph, cg.IBCC().fit(graph))
    rng, classes = np.random.default_rng(1), np.zeros(4, dtype=np.int64)
    drawn = np.zeros((4, 2))
    for _ in range(20_000):
        sample_posterior(rng, answers, prior, np.array(graph.gold.probs), classes, n_volunteers=3, n_sweeps=1)
        drawn[np.arange(4), classes] += 1
    exact = exact_posterior(graph, confusion_prior=prior, class_prior=[1, 1]).item_probs
    np.testing.assert_allclose(drawn / 20_000, exact, atol=0.015)


def test_agreement_is_that_of_all_pairs(case):
    answers = case[0]
    found = item_agreement(answers.starts, answers.label, 2)
    for item, (start, stop) in enumerate(zip(answers.starts, answers.starts[1:], strict=False)):
        pairs = list(combinations(answers.label[start:stop], 2))
        if pairs:
            assert found[item] == pytest.approx(np.mean([one == other for one, other in pairs]))
        else:
            assert np.isnan(found[item])


def test_errors_correlate_as_all_pairs_of_residuals_do(case):
    answers, classes, rows = case
    residuals = [(item, v, np.eye(2)[answers.label[r]] - probs) for r, item, v, probs in slow_answers(*case)]
    products = squares = 0.0
    by_pair = np.zeros((3, 6, 6))
    for item in range(9):
        own = [(v, error) for where, v, error in residuals if where == item]
        if len(own) > 1:
            products += sum(2 * one @ other for (_, one), (_, other) in combinations(own, 2)) / (len(own) - 1)
            squares += sum(error @ error for _, error in own)
        for one, first in own:
            for other, second in own:
                if one != other:
                    by_pair[:, one, other] += [first @ second, first @ first, 1]
    assert error_correlation(answers, answers.label, classes, rows) == pytest.approx(products / squares)
    position = np.array([0, 1, -1, 2, 3, -1])
    selected = [0, 1, 3, 4]
    sums = pair_sums(answers, answers.label, classes, rows, position, 4)
    common = common_items(answers.starts, answers.volunteer, position, 4)
    np.testing.assert_allclose(np.stack([*sums, common]), by_pair[:, selected][:, :, selected], atol=1e-12)


def test_one_answer_an_item_has_no_correlation():
    alone = GroupedAnswers(np.arange(3), np.zeros(2, np.int32), np.zeros(2, np.int32), np.empty((0, 1, 2)))
    assert np.isnan(error_correlation(alone, alone.label, np.zeros(2, np.int64), np.full((1, 1, 2), 0.5)))
    assert np.isnan(item_agreement(alone.starts, alone.label, 2)).all()


def test_repeated_answers_have_room():
    """An item may have more answers than there are volunteers."""
    n = 30
    volunteer, label = np.tile(np.arange(2, dtype=np.int32), n), np.zeros(2 * n, np.int32)
    answers = GroupedAnswers(np.array([0, 2 * n]), volunteer, label, np.empty((0, 1, 2)))
    sums = pair_sums(answers, label, np.zeros(1, np.int64), np.full((2, 1, 2), 0.5), np.arange(2), 2)
    assert sums.products[0, 1] == n * n * 0.5
    assert sums.squares[0, 1] == n * n * 0.5
