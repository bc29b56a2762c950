"""Predictive checks: closed forms for replicates, planted causes, and crowds about which nothing can be said."""

from dataclasses import FrozenInstanceError, replace
from itertools import combinations

import numpy as np
import pytest
from builders import crowd, fitted, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError, TooFewError, UnknownIdError
from crowdgraph.evaluation import predictive_checks
from crowdgraph.evaluation.predictive import INDEPENDENCE, LabelShares, _labels_cause
from crowdgraph.evaluation.replicates import compare_with_replicates, replicates_for

AGREEMENT, ERRORS, MISLED, PAIRS = INDEPENDENCE


@pytest.fixture(scope="module")
def independent():
    return fitted(n_volunteers=30, n_items=150, n_responses=1_500, seed=4)


@pytest.fixture(scope="module")
def dependent():
    return fitted(n_volunteers=30, n_items=150, n_responses=1_500, shared_errors=0.5, seed=4)


# Replicates and statistics


def test_replicates_of_the_fit_agree_as_often_as_its_matrices_say(independent):
    fit, answers = independent.fit(), independent.answers.last
    certain = replace(fit.confusion, initial=1e9 * fit.confusion.latest().mean)
    fit = replace(fit, confusion=certain)
    mean = certain.latest().mean
    expected, shares = [], np.zeros(2)
    for item, probs in enumerate(fit.item_probs):
        rows = mean[answers.volunteer[answers.item == item]]
        shares += np.einsum("j,rjl->l", probs, rows)
        pairs = [probs @ (one * other).sum(axis=1) for one, other in combinations(rows, 2)]
        expected += [np.mean(pairs)] if pairs else []
    found = compare_with_replicates(independent, fit, n_replicates=400, seed=0, progress=False)
    assert found.fit_agreement.mean() == pytest.approx(np.mean(expected), abs=0.003)
    np.testing.assert_allclose(found.label_shares[1].mean(axis=0), shares / len(answers), atol=0.003)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.RepeatedAnswersWarning")
def test_observed_statistics_are_those_of_the_last_answers(independent):
    graph = graph_of([0, 0, 1, 2, 1], ["x", "x", "x", "x", "y"], [0, 1, 1, 0, 1], classes=[0, 1])
    checks = predictive_checks(graph, cg.IBCC().fit(graph), n_replicates=20)
    assert checks[AGREEMENT].observed == pytest.approx(1 / 3)
    np.testing.assert_allclose(checks.labels.observed, [1 / 4, 3 / 4])
    every = predictive_checks(independent, n_replicates=20)
    answers = independent.answers.last
    by_item = [answers.label[answers.item == item] for item in range(150)]
    agreeing = [np.mean([a == b for a, b in combinations(labels, 2)]) for labels in by_item if len(labels) > 1]
    assert every[AGREEMENT].observed == pytest.approx(np.mean(agreeing))
    known = [(labels, code) for labels, code in zip(by_item, independent.gold.codes, strict=True) if len(labels) >= 3]
    assert every[MISLED].observed == pytest.approx(np.mean([(one != code).mean() >= 0.75 for one, code in known]))


def test_the_same_seed_gives_the_same_checks(independent):
    one, same, other = (predictive_checks(independent, n_replicates=30, seed=seed) for seed in (5, 5, 6))
    assert one.to_frame().equals(same.to_frame())
    assert not one.to_frame().equals(other.to_frame())
    assert len(predictive_checks(independent, n_replicates=5, seed=None)) == 6


# What they find


def test_independent_answers_do_not_stand_out(independent):
    checks = predictive_checks(independent)
    assert not any(checks[name].stands_out for name in INDEPENDENCE)
    assert checks.verdict.startswith("The answers show no clear sign")
    assert checks.pairs == ()


def test_a_strong_prior_is_not_taken_for_difficulty():
    classes = tuple("abcde")
    group = cg.simulate.Group(name="all", confusion=0.875 * np.eye(5) + 0.025)
    graph = crowd(n_volunteers=80, n_items=300, n_responses=2_400, classes=classes, groups=[group], gold=0.2).graph
    checks = predictive_checks(graph, cg.IBCC(confusion_prior=(4, 1)).fit(graph))
    assert not any(checks[name].stands_out for name in INDEPENDENCE)
    assert "what it assumed beforehand weighs too much" in checks.verdict
    assert "Leave --prior out" in checks.verdict.wording("cli")
    learned = predictive_checks(graph, cg.IBCC().fit(graph))
    assert not learned["volunteers"].stands_out


def test_shared_errors_are_named(dependent):
    checks = predictive_checks(dependent)
    assert checks[ERRORS].stands_out
    assert checks[MISLED].stands_out
    assert "Volunteers make the same errors" in checks.verdict
    blind = dependent.with_gold(None)
    checks = predictive_checks(blind, cg.IBCC().fit(blind))
    assert checks[ERRORS].stands_out
    assert checks[MISLED].reason == "no gold"
    assert "; gold would tell which." in checks.verdict


def test_hard_items_are_named():
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(2, size=400), rng.random(400) < 0.3
    right = rng.random((15, 400)) < np.where(hard, 0.5, 0.85)
    volunteer, item = np.divmod(np.arange(15 * 400), 400)
    said = np.where(right, truth, 1 - truth).ravel()
    graph = graph_of(volunteer, item, said, gold=dict(enumerate(truth.tolist())), classes=[0, 1])
    checks = predictive_checks(graph, cg.IBCC().fit(graph))
    assert "Items differ in difficulty" in checks[ERRORS].cause
    assert checks.pairs == ()


@pytest.mark.parametrize("model", [cg.IBCC(), cg.DynIBCC()], ids=lambda model: model.name)
def test_a_pair_who_errs_together_is_named(model):
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=300)
    said = np.where(rng.random((8, 300)) < 0.75, truth, 1 - truth)
    copied = rng.random(300) < 0.5
    said[5, copied] = said[2, copied]
    volunteer, item = np.divmod(np.arange(8 * 300), 300)
    columns = {"volunteer": volunteer, "item": item, "label": said.ravel(), "time": item * 10 + volunteer}
    graph = cg.CrowdGraph.from_responses(columns, classes=[0, 1])
    checks = predictive_checks(graph, model.fit(graph))
    (pair,) = checks.pairs
    assert {pair.volunteer, pair.other} == {2, 5}
    assert pair.n_common == 300
    assert 0.3 < pair.correlation < 0.8
    assert "These volunteers err together: 2 and 5." in checks.verdict
    assert "difficulty" not in checks.verdict
    assert "hard for everybody" not in checks.verdict


def test_volunteers_who_learn_do_not_err_together():
    graph = crowd(n_volunteers=30, n_items=200, n_responses=3_000, drift="learning", seed=2).graph
    checks = predictive_checks(graph, cg.DynIBCC().fit(graph))
    assert not any(checks[name].stands_out for name in INDEPENDENCE)


# The result


def test_checks_are_shown_and_cannot_be_changed(dependent):
    checks = predictive_checks(dependent, n_replicates=100)
    assert repr(checks).startswith("PredictiveChecks of ibcc by 100 replicates\n  agreement: 0.")
    frame = checks.to_frame()
    assert frame["check"].tolist() == [*INDEPENDENCE, "volunteers", "label shares"]
    assert frame["p_value"].tolist() == [check.p_value for check in checks]
    assert [check.name for check in checks] == frame["check"].tolist()
    with pytest.raises(FrozenInstanceError):
        checks.model = "x"
    with pytest.raises(ValueError, match="read-only"):
        checks.labels.observed[0] = 1
    with pytest.raises(UnknownIdError, match="Did you mean 'agreement'"):
        checks["agreemnt"]


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (
            0.012,
            "slightly other shares of labels than there are (0 51.2% against 50.0%, 1 48.8% against 50.0%): 1.2% of",
        ),
        (0.25, "expects other shares of labels than there are (0 75.0% against 50.0%, 1 25.0% against 50.0%): 25% of"),
    ],
)
def test_how_much_labels_are_off_is_said(gap, words):
    half, off = np.array([0.5, 0.5]), np.array([0.5 + gap, 0.5 - gap])
    cause = _labels_cause(LabelShares(labels=(0, 1), observed=off, replicated=half, low=half, high=half))
    assert words in cause
    assert cause.endswith("that is little." if gap < 0.05 else "take it with care.")


def test_large_graphs_get_fewer_replicates(independent, monkeypatch):
    assert replicates_for(independent, 200) == 200
    monkeypatch.setattr("crowdgraph.evaluation.replicates.MAX_OPERATIONS", 1.5e6)
    assert 100 <= replicates_for(independent, 200) < 200
    monkeypatch.setattr("crowdgraph.evaluation.replicates.MAX_OPERATIONS", 1.0)
    assert predictive_checks(independent).n_replicates == 100
    assert predictive_checks(independent, n_replicates=7).n_replicates == 7


def test_many_volunteers_are_sampled(independent, monkeypatch):
    monkeypatch.setattr("crowdgraph.evaluation.replicates.MAX_VOLUNTEERS_FOR_PRIOR", 10)
    monkeypatch.setattr("crowdgraph.evaluation.replicates.MAX_PRODUCTS", 300)
    assert not predictive_checks(independent)[PAIRS].stands_out


# What cannot be checked


def test_one_answer_an_item_is_nothing_to_compare():
    graph = graph_of([0, 0, 1, 1], [0, 1, 2, 3], [0, 1, 1, 0], classes=[0, 1])
    checks = predictive_checks(graph, cg.IBCC().fit(graph), n_replicates=10)
    assert all(checks[name].reason.startswith("nothing to compare") for name in (*INDEPENDENCE, "volunteers"))
    assert not checks["label shares"].reason
    assert "was not checked" in checks.verdict
    assert "not checked (nothing to compare" in repr(checks)


def test_two_volunteers_can_be_a_pair():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    said = np.where(rng.random((2, 60)) < 0.7, truth, 1 - truth)
    said[1] = said[0]
    gold = dict(enumerate(truth.tolist()))
    graph = graph_of(np.repeat([0, 1], 60), np.tile(np.arange(60), 2), said.ravel(), gold=gold, classes=[0, 1])
    checks = predictive_checks(graph, cg.IBCC().fit(graph))
    assert checks[PAIRS].stands_out
    few = graph.subgraph(items=list(range(19)))
    assert predictive_checks(few, cg.IBCC().fit(few))[PAIRS].reason == "no two volunteers have 20 items in common"


def test_without_known_right_labels_nothing_is_wrong():
    graph = graph_of([0, 1, 2], [0, 0, 0], ["a", "b", "a"], gold={0: 1}, classes=[0, 1])
    checks = predictive_checks(graph, cg.IBCC(confusion_prior=[[2, 1], [1, 2]]).fit(graph), n_replicates=5)
    assert checks[MISLED].reason == "which labels are right is not known"
    voted = predictive_checks(graph, cg.IBCC(votes={"a": 0, "b": 1}).fit(graph), n_replicates=5)
    assert voted[MISLED].observed == 0


def test_bad_input_is_refused(independent):
    with pytest.raises(ParameterError, match="n_replicates=0 must be"):
        predictive_checks(independent, n_replicates=0)
    with pytest.raises(ParameterError, match="got a dict"):
        predictive_checks({})
    with pytest.raises(NotAnnotatedError):
        predictive_checks(independent, cg.MajorityVote().fit(independent))
    with pytest.raises(NotAnnotatedError):
        predictive_checks(independent.replace())
    with pytest.raises(AlignmentError):
        predictive_checks(independent.subgraph(items=independent.items.ids[:5].tolist()), independent.fit())
    with pytest.raises(TooFewError, match="no answers"):
        predictive_checks(independent.first(0), independent.fit())


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.RepeatedAnswersWarning")
@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_small_crowds_never_fail(n_volunteers, n_items, n_labels, has_gold, seed):
    rng = np.random.default_rng(seed)
    n = 3 * n_volunteers
    gold = {0: 0} if has_gold else None
    volunteer, item = np.arange(n) % n_volunteers, np.r_[0, rng.integers(0, n_items, n - 1)]
    graph = graph_of(volunteer, item, rng.integers(0, n_labels, n), gold=gold, classes=[0, 1, 2], labels=[0, 1, 2])
    for check in predictive_checks(graph, cg.IBCC().fit(graph), n_replicates=8, seed=seed):
        if check.reason:
            assert np.isnan(check.p_value)
        else:
            assert 1 / 9 <= check.p_value <= 1
            assert np.isfinite([check.observed, check.replicated]).all()
            assert check.low <= check.high
