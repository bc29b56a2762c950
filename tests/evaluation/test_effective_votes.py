"""The effective number of votes: copies, equal correlations, gaps in the panel, gold, and bad input."""

import numpy as np
import pytest
from judges import draw_judges, judged, true_votes
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.errors import ParameterError, TooFewError
from crowdgraph.evaluation import effective_votes


def votes_of(graph, **options):
    options = {"n_resamples": 100, **options}
    return effective_votes(graph, fit=cg.MajorityVote().fit(graph), **options)


def balanced(n_judges):
    """Errors of judges in all combinations, about two classes: exactly independent."""
    combinations = np.array(np.meshgrid(*[[0, 1]] * n_judges)).reshape(n_judges, -1)
    errors = np.tile(combinations, 2)
    classes = np.repeat([0, 1], combinations.shape[1])
    return classes, errors


def of_errors(classes, errors):
    return judged((classes + errors) % 2, classes, gold=range(len(classes)))


def test_independent_judges_count_fully_and_copies_once():
    classes, errors = balanced(5)
    assert_allclose(votes_of(of_errors(classes, errors)).value, 5)
    # Two identical ones of five: 25 / (5 + 2).
    assert_allclose(votes_of(of_errors(classes, errors[[0, 0, 1, 2, 3]])).value, 25 / 7)
    copies = votes_of(of_errors(classes, errors[[0, 0, 0, 0]]))
    assert_allclose([copies.value, copies.low, copies.high], 1)


def test_equal_correlations_are_those_of_the_formula():
    # All combinations once, and the two in which everybody agrees 24 times more: the correlation of each pair is 0.6.
    classes, errors = balanced(5)
    extra = np.repeat([[0, 1]], 24, axis=0).ravel() * np.ones((5, 1), dtype=int)
    errors = np.hstack([errors[:, :32], extra, errors[:, :32], extra])
    classes = np.repeat([0, 1], 80)
    assert_allclose(votes_of(of_errors(classes, errors)).value, 5 / (1 + 0.6 * 4))


def test_errors_that_cancel_count_more_than_their_number():
    classes, errors = balanced(3)
    classes, errors = np.tile(classes, 5), np.tile(errors, 5)
    differ = errors[0] != errors[1]
    graph = of_errors(np.concatenate([classes, classes[differ]]), np.hstack([errors, errors[:, differ]]))
    assert votes_of(graph).value > 3
    opposite = votes_of(of_errors(classes, np.stack([errors[0], 1 - errors[0]])))
    assert opposite.value == opposite.low == np.inf


def test_the_mean_of_other_pairs_counts_for_pairs_without_common_items():
    classes, labels = draw_judges(0, n=1_000, n_judges=6, pairs=())
    complete = votes_of(judged(labels, classes, gold=range(1_000)))
    answered = np.ones(labels.shape, dtype=bool)
    answered[0, :500] = answered[1, 500:] = False
    partial = votes_of(judged(labels, classes, gold=range(1_000), answered=answered))
    position = [partial.ids.tolist().index(name) for name in ("j0", "j1")]
    assert np.isnan(partial.correlation[tuple(position)])
    assert np.isnan(partial.correlation).sum() == 2
    assert_allclose(partial.value, complete.value, rtol=0.1)


def test_enough_gold_counts_alone():
    classes, labels = draw_judges(1)
    rng = np.random.default_rng(0)
    gold = rng.choice(2_000, 300, replace=False)
    result = votes_of(judged(labels, classes, gold=gold), n_resamples=500)
    assert (result.n_items, result.n_gold) == (300, 300)
    assert_allclose(result.value, true_votes(labels[:, gold], classes[gold]), rtol=1e-9)
    assert result.low < true_votes(labels, classes) < result.high
    few = votes_of(judged(labels, classes, gold=gold[:49]))
    assert (few.n_items, few.n_gold) == (2_000, 49)
    assert np.isnan([few.low, few.high]).all()
    assert "no interval, since too few items have gold; 2,000 items, 49 with gold" in repr(few)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    options = {"n_judges": 5, "pairs": (), "hard": 0.2}
    truth = true_votes(*draw_judges(99, n=400_000, **options)[::-1])
    inside = 0
    for seed in range(60):
        classes, labels = draw_judges(seed, n=300, **options)
        result = votes_of(judged(labels, classes, gold=range(300)), level=0.9)
        inside += result.low < truth < result.high
    # Three standard errors.
    assert 47 <= inside <= 60


def test_those_who_never_err_are_named_and_a_seed_repeats():
    classes, labels = draw_judges(2, n=300, n_judges=5)
    labels[2] = classes
    graph = judged(labels, classes, gold=range(300))
    result, again = votes_of(graph), votes_of(graph)
    assert (result.never_err, len(result.ids)) == (("j2",), 4)
    assert (result.low, result.high) == (again.low, again.high)
    assert votes_of(graph, seed=1).low != result.low
    panel = votes_of(graph, volunteers=["j0", "j4"])
    assert panel.ids.tolist() == ["j0", "j4"]
    assert repr(panel).startswith(f"EffectiveVotes({panel.value:.1f} of 2, 95% interval ")


def test_bad_input():
    classes, labels = draw_judges(0, n=60, n_judges=3, pairs=())
    graph = judged(labels, classes)
    with pytest.raises(TooFewError, match=r"from 2 to 30 volunteers; got 1\."):
        votes_of(graph, volunteers=["j0"])
    with pytest.raises(ParameterError, match="level=1 must lie"):
        votes_of(graph, level=1)
    with pytest.raises(TooFewError, match="No two volunteers who sometimes err"):
        votes_of(judged(np.tile(classes, (3, 1)), classes, gold=range(60)))
