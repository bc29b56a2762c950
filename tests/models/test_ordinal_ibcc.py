"""OrdinalIBCC, expected scores and mean scores: what they compute, and that order helps where there is one."""

import warnings

import numpy as np
import pytest
from builders import ratings
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.core.item_scores import expected_scores
from crowdgraph.errors import CrowdGraphWarning, ParameterError, UnknownIdError


def test_order_helps():
    graph, truth = ratings(n_items=120)
    losses, errors = {}, {}
    for model in (cg.OrdinalIBCC(), cg.IBCC(), cg.MeanScore()):
        fit = model.fit(graph)
        chances = fit.item_probs[np.arange(120), truth - 1]
        losses[model.name] = -np.log(np.maximum(chances, 1e-6)).mean()
        errors[model.name] = np.abs(fit.expected_scores().expected - truth).mean()
    assert losses["ordinal_ibcc"] < 0.7 * min(losses["ibcc"], losses["mean_score"])
    assert errors["ordinal_ibcc"] < 0.9 * min(errors["ibcc"], errors["mean_score"])


def test_a_fit_is_ibcc_with_the_prior_that_it_learned():
    graph, _ = ratings(1, n_items=120)
    fit = cg.OrdinalIBCC(tol=1e-9).fit(graph)
    again = cg.IBCC(confusion_prior=fit.prior, tol=1e-9, compare_starts=False).fit(graph, start=fit)
    assert_allclose(again.item_probs, fit.item_probs, atol=1e-7)
    assert again.bound[-1] == pytest.approx(fit.bound[-1], abs=1e-6)
    assert fit.diagnostics["bias"].shape == fit.diagnostics["noise"].shape == (40,)
    # Rows of the prior fall from their highest label to both sides.
    row = fit.prior.shared[2]
    assert (np.diff(row[:3]) > 0).all()
    assert (np.diff(row[2:]) < 0).all()


def test_turning_the_scale_around_changes_nothing():
    graph, _ = ratings(2, n_items=60)
    turned = cg.OrdinalIBCC(scores={score: -score for score in range(1, 6)}, tol=1e-9).fit(graph)
    assert_allclose(turned.item_probs, cg.OrdinalIBCC(tol=1e-9).fit(graph).item_probs, atol=1e-6)
    assert_allclose(turned.expected_scores().expected, -turned.expected_scores({s: s for s in range(1, 6)}).expected)


def test_labels_need_not_be_classes_and_words_need_scores():
    table = {
        "volunteer": ["a", "b", "c"] * 2,
        "item": ["x"] * 3 + ["y"] * 3,
        "label": ["low", "mid", "low", "top", "top", "mid"],
    }
    graph = cg.CrowdGraph.from_responses(table, classes=["no", "yes"], gold={})
    scores = {"low": 0, "mid": 0.5, "top": 1, "no": 0, "yes": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        fit = cg.OrdinalIBCC(scores=scores).fit(graph)
    assert fit.expected_scores()["x"] < 0.5 < fit.expected_scores()["y"]
    for wrong, message in (
        (None, "'no', 'yes' are not numbers. Say what they stand for"),
        ({**scores, "never": 2}, "names 'never', which is neither a class nor a label"),
        ({**scores, "mid": 0}, "Several labels have the same score"),
        ({**scores, "mid": float("nan")}, "'mid' are not numbers"),
    ):
        with pytest.raises(ParameterError, match=message):
            cg.OrdinalIBCC(scores=wrong).fit(graph)


# Expected scores


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=6),
    st.floats(0.05, 0.95),
    st.permutations([1.0, 2.0, 5.0, 7.0]),
)
def test_expected_scores_are_moments_and_quantiles(weights, level, scores):
    probs, scores = np.array(weights) + 1e-3, np.array(scores)
    probs /= probs.sum(axis=1, keepdims=True)
    result = expected_scores(np.arange(len(probs)), probs, scores, level=level)
    for row, chances in enumerate(probs):
        mean = sum(chance * score for chance, score in zip(chances, scores, strict=True))
        variance = sum(chance * (score - mean) ** 2 for chance, score in zip(chances, scores, strict=True))
        assert result.expected[row] == pytest.approx(mean)
        assert result.deviation[row] ** 2 == pytest.approx(variance, abs=1e-9)
        low, high = result.low[row], result.high[row]
        assert low in scores
        assert high in scores
        assert chances[(scores >= low) & (scores <= high)].sum() >= level - 1e-9
        # No more than the tail lies beyond either end.
        assert chances[scores < low].sum() <= (1 - level) / 2 + 1e-9
        assert chances[scores > high].sum() <= (1 - level) / 2 + 1e-9


def test_expected_scores_of_a_fit():
    graph = cg.CrowdGraph.from_responses({"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["1", "3"]})
    scores = cg.MajorityVote().fit(graph).expected_scores()
    assert repr(scores) == "ItemScores(1 items, intervals of 90%)"
    assert scores.to_frame(kind="arrow").to_pylist() == [
        {"item": "x", "expected": 2.0, "deviation": 1.0, "low": 1.0, "high": 3.0}
    ]
    with pytest.raises(UnknownIdError, match="no item 'y'"):
        scores["y"]
    words = cg.CrowdGraph.from_responses({"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["bad", "good"]})
    with pytest.raises(ParameterError, match="'bad', 'good' are not numbers"):
        cg.MajorityVote().fit(words).expected_scores()
    with pytest.raises(ParameterError, match="level"):
        cg.MajorityVote().fit(graph).expected_scores(level=1)


# Mean scores of more than two classes


def test_the_expected_score_of_a_mean_is_the_mean():
    graph, _ = ratings(3, n_items=50)
    fit = cg.MeanScore().fit(graph)
    answers = graph.answers
    means = [(answers.label[answers.item == item] + 1).mean() for item in range(50)]
    assert_allclose(fit.expected_scores().expected, means)
    assert ((fit.item_probs > 0).sum(axis=1) <= 2).all()
    silent = cg.CrowdGraph.from_responses(
        {"volunteer": ["a"], "item": ["x"], "label": [2]}, labels=[1, 2, 3], items={"item": ["x", "y"]}
    )
    assert_allclose(cg.MeanScore().fit(silent).item_probs, [[0, 1, 0], [1 / 3] * 3])


def test_what_mean_scores_cannot_be():
    graph, _ = ratings(3, n_items=20)
    with pytest.raises(ParameterError, match="positive=5 names one of two classes; the graph has 5"):
        cg.MeanScore(positive=5).fit(graph)
    with pytest.raises(ParameterError, match="Several classes have the same score"):
        cg.MeanScore(scores={1: 0, 2: 0, 3: 1, 4: 2, 5: 3}).fit(graph)
    with pytest.raises(ParameterError, match="A weighted sum tells two classes apart"):
        cg.WeightedSum().fit(graph.with_gold({0: 1}))
