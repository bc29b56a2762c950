"""Pairs who err together: planted ones, hard items alone, the covariances against loops, and bad input."""

import numpy as np
import pytest
from builders import crowd, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import PAIRS, draw_judges, judged, names
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.errors import NotAnnotatedError, ParameterError, TooFewError
from crowdgraph.kernels.error_pairs import excess_covariance, pair_moments


def pairs_of(graph, **options):
    return cg.networks.error_pairs(graph, fit=cg.MajorityVote().fit(graph), **options)


def known(seed, **options):
    """Judges whose prompts all have gold."""
    classes, labels = draw_judges(seed, **options)
    return judged(labels, classes, gold=range(len(classes)), n_classes=options.get("n_classes", 2))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_planted_pairs_are_found_and_no_others(n_classes):
    result = pairs_of(known(1, n_classes=n_classes))
    assert {frozenset(pair) for pair in result.pairs} == names(PAIRS)
    assert (len(result), result.n_untested) == (36, 0)
    assert_array_equal(result.p_value, np.sort(result.p_value))
    assert (result.low <= result.correlation).all()
    assert (result.correlation <= result.high).all()
    assert result.excess[:2].min() > 0.15
    assert repr(result) == "ErrorPairs(2 of 36 pairs err together at 0.05)"


def test_hard_items_correlate_errors_but_make_no_pairs():
    result = pairs_of(known(2, pairs=(), hard=0.3, harder=0.5))
    assert result.low.min() > 0.05
    assert result.pairs == []


def test_pairs_are_found_without_gold():
    classes, labels = draw_judges(0)
    graph = judged(labels, classes)
    result = cg.networks.error_pairs(graph, fit=cg.Calibrated().fit(graph))
    assert {frozenset(pair) for pair in result.pairs} == names(PAIRS)


@pytest.mark.slow
def test_p_values_are_uniform_where_nobody_errs_together():
    p_values = np.concatenate(
        [pairs_of(known(seed, n=600, n_judges=6, pairs=(), hard=0.3, harder=0.5)).p_value for seed in range(40)]
    )
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        # 15 pairs of 40 panels; the p-values of a panel depend on each other, so this is four standard errors.
        assert abs((p_values <= level).mean() - level) < 4 * np.sqrt(level * (1 - level) / len(p_values))


def test_copies_correlate_fully():
    classes, labels = draw_judges(3, n=400)
    labels[1] = labels[0]
    result = pairs_of(judged(labels, classes, gold=range(400)))
    top = {result.volunteer[0], result.other[0]}
    assert top == {"j0", "j1"}
    assert_allclose([result.correlation[0], result.low[0], result.high[0]], 1.0)


def test_those_who_never_err_have_no_correlation():
    classes, labels = draw_judges(4, n=300)
    labels[0] = classes
    result = pairs_of(judged(labels, classes, gold=range(300)))
    of_them = (result.volunteer == "j0") | (result.other == "j0")
    assert np.isnan(result.correlation[of_them]).all()
    assert not np.isnan(result.correlation[~of_them]).any()
    assert_array_equal(result.p_value[of_them], 1.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_moments_are_those_of_loops(seed):
    rng = np.random.default_rng(seed)
    error, answered, probs = rng.random((4, 12)), rng.random((4, 12)) < 0.8, rng.random(12)
    first, second = np.triu_indices(4, 1)
    moments = pair_moments(error, answered, probs, first, second)
    for pair, (one, other) in enumerate(zip(first, second, strict=True)):
        both = answered[one] & answered[other]
        if both.sum() < 2:
            continue
        expected = np.cov(error[one, both], error[other, both], aweights=probs[both], ddof=0)
        got = moments.first_variance[pair], moments.covariance[pair], moments.second_variance[pair]
        assert_allclose(got, [expected[0, 0], expected[0, 1], expected[1, 1]], atol=1e-12)
    assert_allclose(moments.deviation.sum(axis=0), 0, atol=1e-12)


def test_excess_beyond_one_factor_is_exact_and_its_slopes_are_differences():
    rng = np.random.default_rng(0)
    first, second = np.triu_indices(6, 1)
    loadings = rng.uniform(0.1, 0.3, 6)
    planted = np.where((first == 1) & (second == 4), 0.05, 0.0)
    covariance = loadings[first] * loadings[second] + planted
    moments = pair_moments(rng.random((6, 50)), np.ones((6, 50), dtype=bool), np.ones(50), first, second)

    def excess(values):
        given = moments._replace(covariance=values, deviation=np.eye(len(first)))
        return excess_covariance(given, first, second, planted > 0, n_volunteers=6)

    value, slopes = excess(covariance)
    assert_allclose(value, planted, atol=1e-9)
    for pair in range(len(first)):
        step = np.zeros(len(first))
        step[pair] = 1e-6
        assert_allclose((excess(covariance + step)[0] - excess(covariance - step)[0]) / 2e-6, slopes[pair], atol=1e-5)


def test_pairs_without_enough_common_items_are_counted():
    classes, labels = draw_judges(5, n=300, n_judges=6)
    answered = np.ones(labels.shape, dtype=bool)
    answered[0, :280] = False
    graph = judged(labels, classes, gold=range(300), answered=answered)
    members = graph.volunteers.ids
    result = pairs_of(graph, volunteers=members)
    assert (len(result), result.n_untested) == (10, 5)
    assert "5 have too few common items" in repr(result)
    assert "j0" not in {*result.volunteer, *result.other}
    assert len(result.to_frame()) == 10


def test_bad_input():
    graph = known(0, n=60, n_judges=5)
    with pytest.raises(TooFewError, match=r"from 4 to 30 volunteers; got 3\."):
        pairs_of(graph, volunteers=["j0", "j1", "j2"])
    with pytest.raises(TooFewError, match="got 0 with 61 answers or more"):
        pairs_of(graph, min_common=61)
    with pytest.raises(cg.errors.IdError, match="repeat"):
        pairs_of(graph, volunteers=["j0", "j0", "j1", "j2"])
    with pytest.raises(ParameterError, match="level=2 must lie between 0 and 1"):
        pairs_of(graph, level=2)
    with pytest.raises(NotAnnotatedError):
        cg.networks.error_pairs(graph)
    large = crowd(n_volunteers=40, n_responses=2_000).graph
    with pytest.raises(ParameterError, match="from 4 to 30 volunteers; got 40 with 10"):
        pairs_of(large, min_common=10)
    apart = graph_of(["abcde"[code // 10] for code in range(50)], range(50), [0, 1] * 25)
    with pytest.raises(TooFewError, match="No pair can be tested"):
        pairs_of(apart, min_common=5)


def test_labels_that_are_no_classes_need_votes():
    graph = graph_of(list("abcd") * 10, np.repeat(np.arange(10), 4), [3, 4] * 20, classes=["yes", "no"])
    with pytest.raises(ParameterError, match="Which labels are right is not known"):
        cg.networks.error_pairs(graph, fit=cg.IBCC(confusion_prior=[[2, 1], [1, 2]]).fit(graph), min_common=5)
