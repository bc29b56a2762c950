"""Retirement: what a rule retires, and that a guaranteed error rate is paid for with held-out gold."""

import numpy as np
import pytest
from builders import crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest

import crowdgraph as cg
from crowdgraph.allocation.retirement import (
    CertaintyPaths,
    ErrorGuarantee,
    Retirement,
    _lowest_guaranteed,
    _thresholds,
    calibrated_retirement,
    min_retired,
    update_ends,
    upper_bound,
)
from crowdgraph.errors import ParameterError

SIZES = {"n_volunteers": 30, "n_items": 400, "n_responses": 4_000}


def drawn_paths(seed, n_updates=4, n_items=12):
    rng = np.random.default_rng(seed)
    return CertaintyPaths(rng.random((n_updates, n_items)).round(1), rng.random((n_updates, n_items)) < 0.3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.floats(0.01, 1))
def test_retired_items_are_those_that_are_sure(seed, threshold):
    probs = np.random.default_rng(seed).dirichlet([0.3, 0.3, 0.3], size=8)
    rule = Retirement(threshold=threshold)
    assert rule.retired(probs).tolist() == [max(row) >= threshold for row in probs.tolist()]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
def test_items_retire_at_the_first_update_that_is_sure(seed, threshold):
    paths = drawn_paths(seed)
    n_retired = n_wrong = 0
    for sure, wrong in zip(paths.certainty.T.tolist(), paths.wrong.T.tolist(), strict=True):
        for now, mistaken in zip(sure, wrong, strict=True):
            if now >= threshold:
                n_retired, n_wrong = n_retired + 1, n_wrong + mistaken
                break
    assert paths.count_retired(threshold) == (n_retired, n_wrong)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_bounds_are_clopper_and_pearsons(n, share, confidence):
    n_wrong = round(share * n)
    exact = binomtest(n_wrong, n, alternative="less").proportion_ci(confidence, method="exact").high
    assert_allclose(upper_bound(n_wrong, n, confidence), exact, rtol=1e-9)


@pytest.mark.parametrize(("error", "doubt"), [(0.02, 0.05), (0.1, 0.1), (0.5, 0.5)])
@pytest.mark.parametrize("n_wrong", [0, 1, 4])
def test_the_fewest_items_are_the_fewest(error, doubt, n_wrong):
    n = min_retired(error, doubt, n_wrong)
    assert upper_bound(n_wrong, n, 1 - doubt) <= error
    assert n == n_wrong + 1 or upper_bound(n_wrong, n - 1, 1 - doubt) > error
    assert min_retired(0.02, 0.05) == 149


def test_thresholds_fall_and_begin_where_one_mistake_passes():
    highest = np.random.default_rng(0).random(1_000)
    tried, doubts = zip(*_thresholds(highest, 0.02, 0.95), strict=True)
    assert list(tried) == sorted(tried, reverse=True)
    n_retired = [int((highest >= threshold).sum()) for threshold in tried]
    assert upper_bound(1, n_retired[0], 0.975) <= 0.02 < upper_bound(1, n_retired[0] - 1, 0.975)
    assert n_retired[-1] == 1_000
    assert max(np.diff(n_retired)) <= 50
    # Half of the doubt for the first, half for the first that retires half of the items.
    second = next(rank for rank, n in enumerate(n_retired) if n >= 500)
    assert_allclose(doubts, [0.025 * (rank in (0, second)) for rank in range(len(tried))])
    # Not enough for two: all of it for the first, where one mistake passes, or else where none does.
    for n_items, n_wrong in ((400, 1), (200, 0)):
        tried, doubts = zip(*_thresholds(highest[:n_items], 0.02, 0.95), strict=True)
        first = int((highest[:n_items] >= tried[0]).sum())
        assert upper_bound(n_wrong, first, 0.95) <= 0.02 < upper_bound(n_wrong, first - 1, 0.95)
        assert (highest[:n_items] >= tried[-1]).all()
        assert_allclose(doubts, [0.05, *[0] * (len(tried) - 1)])
    ((threshold, doubt),) = _thresholds(highest[:100], 0.02, 0.95)
    assert threshold == highest[:100].min()
    assert_allclose(doubt, 0.05)


def test_a_few_gold_items_guarantee_what_they_can():
    # 200 items, of which just the least certain is wrong: all but it, and a few for the steps between.
    sure = np.linspace(1, 0.5, 200)[None]
    guarantee = _lowest_guaranteed(CertaintyPaths(sure, (np.arange(200) == 199)[None]), 0.02, 0.95).guarantee
    assert 149 <= guarantee.n_retired < 200
    assert guarantee.n_wrong == 0


def test_the_lowest_threshold_that_passes_is_taken():
    # 600 items in the order of how sure the model is; mistakes begin after 400, and end after 450: one that fails is
    # not passed over, since it had all the doubt.
    sure = np.linspace(1, 0.5, 600)[None]
    rank = np.arange(600)
    rule = _lowest_guaranteed(CertaintyPaths(sure, ((rank >= 400) & (rank < 450))[None]), 0.02, 0.95)
    guarantee = rule.guarantee
    assert 380 <= guarantee.n_retired <= 404
    assert rule.retired(np.column_stack([sure[0], 1 - sure[0]])).sum() == guarantee.n_retired
    assert guarantee.n_wrong == max(guarantee.n_retired - 400, 0)
    assert guarantee.bound == upper_bound(guarantee.n_wrong, guarantee.n_retired, 0.95) <= 0.02
    assert (guarantee.n_gold, guarantee.updates, guarantee.error, guarantee.confidence) == (600, 1, 0.02, 0.95)


def test_a_failure_at_the_beginning_is_passed_over_with_half_of_the_doubt():
    # Two mistakes among the surest fail the first thresholds, and none after them: half of the items pass.
    sure, rank = np.linspace(1, 0.5, 1_000)[None], np.arange(1_000)
    guarantee = _lowest_guaranteed(CertaintyPaths(sure, (rank < 2)[None]), 0.02, 0.95).guarantee
    assert (guarantee.n_retired, guarantee.n_wrong) == (1_000, 2)
    assert guarantee.bound == upper_bound(2, 1_000, 0.975)


def test_choosing_among_thresholds_is_paid_for():
    # At every threshold a little more than guaranteed is wrong: a rule must come out at most once in twenty.
    rng = np.random.default_rng(0)
    n_guaranteed, n_draws = 0, 1_500
    for _ in range(n_draws):
        paths = CertaintyPaths(rng.random((1, 500)), rng.random((1, 500)) < 0.0501)
        try:
            _lowest_guaranteed(paths, 0.05, 0.95)
            n_guaranteed += 1
        except ParameterError:
            pass
    assert 0 < n_guaranteed <= n_draws * 0.05 + 3 * np.sqrt(n_draws * 0.05 * 0.95)


def test_updates_share_the_answers_equally():
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": list("aaabbbccc"),
            "item": list("xyzxyzxyz"),
            "label": [None, "no", None, "yes", "no", "yes", "no", "yes", None],
        },
        missing="keep",
    )
    assert update_ends(graph, 1) == [8]
    assert update_ends(graph, 2) == [5, 8]
    assert update_ends(graph, 3) == [4, 6, 8]
    assert update_ends(graph, 6) == [2, 4, 5, 6, 7, 8]
    with pytest.raises(ParameterError, match="there are 6 answers"):
        update_ends(graph, 7)


def test_good_crowds_get_a_guarantee_that_holds():
    graph = crowd(0.85, **{**SIZES, "n_responses": 6_000}).graph
    model = cg.IBCC()
    rule = calibrated_retirement(graph, model, error=0.05, updates=4, folds=2, seed=0)
    guarantee = rule.guarantee
    assert guarantee.n_gold == 400
    assert guarantee.n_retired > 300
    assert guarantee.bound <= 0.05
    fit = model.fit(graph.with_gold(None, classes=graph.classes))
    assert rule.retired(fit.item_probs).sum() > 300
    assert f"{guarantee.n_retired:,} of 400 gold items retired, {guarantee.n_wrong:,} of them wrongly" in repr(rule)
    assert "at most 5.00% wrong with 95% confidence" in repr(rule)
    assert rule == calibrated_retirement(graph, model, error=0.05, updates=4, folds=2, seed=0)


def test_the_model_does_not_see_the_gold_that_it_is_judged_by():
    # One gold class in five is false: were it seen, the model would repeat it and be right.
    graph = crowd(0.97, **SIZES, seed=1).graph
    false = set(graph.items.ids[::5].tolist())
    other = {"no": "yes", "yes": "no"}
    gold = {item: other[name] if item in false else name for item, name in graph.gold.items()}
    with pytest.raises(ParameterError, match=r"error=0.1 cannot be guaranteed .* \(of 400\)"):
        calibrated_retirement(graph.with_gold(gold), error=0.1, updates=2, folds=4, seed=0)
    rule = calibrated_retirement(graph.with_gold(gold), error=0.4, updates=2, folds=4, seed=0)
    assert_allclose(rule.guarantee.n_wrong / rule.guarantee.n_retired, 0.2, atol=0.05)


def test_items_that_nobody_answered_say_nothing():
    graph = crowd(0.85, **SIZES, seed=2).graph
    rows = graph.responses.item < 300
    graph = graph.replace(responses=graph.responses.table.take(np.flatnonzero(rows)))
    assert calibrated_retirement(graph, error=0.1, updates=2, folds=2, seed=0).guarantee.n_gold == 300


def test_a_rule_without_a_guarantee_says_so():
    assert repr(Retirement(threshold=0.98)) == "Retirement(threshold 0.98; no error rate is guaranteed)"
    assert_array_equal(Retirement(threshold=1).retired([[1.0, 0.0], [0.5, 0.5]]), [True, False])


def test_guarantees_are_shown_in_full():
    guarantee = ErrorGuarantee(
        error=0.02, confidence=0.9, updates=3, n_gold=1_500, n_retired=1_200, n_wrong=7, bound=0.0105
    )
    assert repr(Retirement(threshold=0.9987, guarantee=guarantee)) == (
        "Retirement(threshold 0.9987; at most 2.00% wrong with 90% confidence: 1,200 of 1,500 gold items retired, 7 of "
        "them wrongly, bound 1.05%)"
    )
