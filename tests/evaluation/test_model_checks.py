"""Checks of a fitted model, against slow oracles."""

from itertools import combinations

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.evaluation import Unmeasured, calibration
from crowdgraph.evaluation.model_checks import predictive_check, probs_without_own_gold


def brute_alone(graph, concentration, class_probs):
    """As `probs_without_own_gold` for static matrices, response by response."""
    probs = np.tile(np.log(class_probs), (len(graph.items), 1))
    for response in graph.responses:
        k, i = graph.volunteers.table.code(response.volunteer), graph.items.table.code(response.item)
        label = graph.labels.index(response.label)
        for j, name in enumerate(graph.classes):
            row = concentration[k, j].copy()
            if graph.items[response.item].gold == name:
                row[label] -= 1
            probs[i, j] += np.log(row[label] / row.sum())
    odds = np.exp(probs)
    return odds / odds.sum(axis=1, keepdims=True)


def test_answers_alone_leave_out_the_gold(columns):
    graph = cg.CrowdGraph.from_responses(columns, gold={"x": "yes"}, duplicates="first")
    fit = cg.IBCC().fit(graph)
    alone = probs_without_own_gold(graph, fit.confusion, class_probs=fit.class_probs)
    np.testing.assert_allclose(alone, brute_alone(graph, fit.confusion.initial, fit.class_probs), rtol=1e-9)
    assert fit.item_probs[graph.items.table.code("x")].max() == 1
    assert alone.max() < 1


def test_predictive_check_is_what_draws_give():
    graph = cg.simulate.crowd(n_volunteers=8, n_items=12, n_responses=60, gold=1.0, seed=3).graph
    fit = cg.IBCC().fit(graph)
    found = predictive_check(graph, fit.confusion, item_probs=fit.item_probs)
    mean, responses = fit.confusion.latest().mean, graph.responses
    expected, agree, seen = np.zeros(2), [], []
    for i in range(len(graph.items)):
        rows = np.flatnonzero(responses.item == i)
        chance = mean[responses.volunteer[rows]]
        expected += np.einsum("j,rjl->l", fit.item_probs[i], chance)
        pairs = list(combinations(range(len(rows)), 2))
        if pairs:
            agree.append(np.mean([fit.item_probs[i] @ (chance[a] * chance[b]).sum(axis=1) for a, b in pairs]))
            seen.append(np.mean([responses.label[rows[a]] == responses.label[rows[b]] for a, b in pairs]))
    np.testing.assert_allclose(found.expected, expected / len(responses), atol=5e-5)
    assert found.expected_agreement == pytest.approx(np.mean(agree), abs=5e-5)
    assert found.agreement == pytest.approx(np.mean(seen), abs=5e-5)


def test_one_item_does_not_decide_how_volunteers_agree():
    # About one item 40 volunteers disagree, about nine others two agree: nearly all pairs are about the first.
    rows = [(who, 0, who % 2) for who in range(40)] + [(who, item, 1) for item in range(1, 10) for who in (0, 1)]
    who, what, said = zip(*rows, strict=True)
    graph = cg.CrowdGraph.from_responses({"volunteer": who, "item": what, "label": said}, classes=[0, 1])
    fit = cg.IBCC().fit(graph)
    found = predictive_check(graph, fit.confusion, item_probs=fit.item_probs)
    assert found.agreement == pytest.approx((9 + 380 / 780) / 10, abs=5e-5)


def guesses():
    """Volunteers who guess: a model that is right more often than half of the time has seen the gold."""
    rng = np.random.default_rng(0)
    volunteer, item = np.divmod(np.arange(2_000), 200)
    label = np.array(["no", "yes"])[rng.integers(2, size=2_000)]
    gold = {int(code): str(name) for code, name in enumerate(np.array(["no", "yes"])[rng.integers(2, size=200)])}
    columns = {"volunteer": volunteer, "item": item, "label": label, "time": rng.permutation(2_000)}
    return cg.CrowdGraph.from_responses(columns, gold=gold)


@pytest.mark.parametrize(
    ("model", "gold"), [(cg.IBCC(), "left out"), (cg.MajorityVote(), "unused"), (cg.Cautious(), "hidden")]
)
def test_the_gold_does_not_help_the_model(model, gold):
    graph = guesses()
    measured = calibration(graph, model.fit(graph), model=model)
    assert measured.gold == gold
    assert measured.n_items.sum() == 200
    assert 0.35 < measured.accuracy < 0.65


def test_a_model_that_did_not_see_the_gold_is_taken_as_it_is():
    graph = guesses()
    fit = cg.DynIBCC().fit(graph.with_gold(None, classes=graph.classes))
    measured = calibration(graph, fit)
    assert measured.gold == "unused"
    assert measured.accuracy == pytest.approx((fit.item_probs.argmax(axis=1) == graph.gold.codes).mean())


def test_nothing_is_fitted_without_a_model():
    graph = guesses()
    measured = calibration(graph, cg.DynIBCC().fit(graph))
    assert isinstance(measured, Unmeasured)
    assert "must be fitted again while gold is hidden" in measured.reason
    assert "analysis.analyse" not in measured.reason.wording("cli")
    assert calibration(graph.with_gold(None), cg.IBCC().fit(graph)) is None
