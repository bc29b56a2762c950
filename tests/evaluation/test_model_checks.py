"""The calibration of a fitted model: gold does not help it, and intervals and verdicts are right."""

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.evaluation import Unmeasured, calibration
from crowdgraph.evaluation.model_checks import probs_without_own_gold


def brute_alone(graph, fit):
    """As `probs_without_own_gold` for static matrices, response by response."""
    probs, concentration = np.tile(np.log(fit.class_probs), (len(graph.items), 1)), fit.confusion.initial
    for response in graph.responses:
        k, i = graph.volunteers.table.code(response.volunteer), graph.items.table.code(response.item)
        label = graph.labels.index(response.label)
        for j in range(len(graph.classes)):
            row = concentration[k, j].copy()
            row[label] -= fit.item_probs[i, j]
            probs[i, j] += np.log(row[label] / row.sum())
    odds = np.exp(probs)
    return odds / odds.sum(axis=1, keepdims=True)


def test_answers_alone_leave_out_the_gold(columns):
    graph = cg.CrowdGraph.from_responses(columns, gold={"x": "yes"}, duplicates="first")
    fit = cg.IBCC(confusion_prior=(4, 1)).fit(graph)
    alone = probs_without_own_gold(graph, fit, fit.confusion)
    np.testing.assert_allclose(alone, brute_alone(graph, fit), rtol=1e-9)
    assert fit.item_probs[graph.items.table.code("x")].max() == 1
    assert alone.max() < 1


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


def test_without_gold_the_reason_is_returned():
    graph = guesses()
    unmeasured = calibration(graph.with_gold(None), cg.IBCC().fit(graph))
    assert isinstance(unmeasured, Unmeasured)
    assert unmeasured.reason.startswith("The stated probabilities were not checked: no gold.")


def stated(probability, share_right, n=400):
    """The calibration of a model that states one probability of two classes, and of the share of items it is right."""
    truth = (np.arange(n) >= share_right * n).astype(int)
    columns = {"volunteer": np.zeros(n), "item": np.arange(n), "label": np.zeros(n)}
    graph = cg.CrowdGraph.from_responses(columns, classes=[0, 1], labels=[0, 1], gold=dict(enumerate(truth.tolist())))
    probs = np.tile([probability, 1 - probability], (n, 1))
    fit = cg.ModelFit(model="by hand", items=graph.items.ids, classes=(0, 1), item_probs=probs, class_probs=[0.5, 0.5])
    return calibration(graph, fit)


def test_scores_come_with_intervals_of_bootstraps():
    measured = stated(0.95, 0.9)
    right = np.arange(400) < 360
    assert measured.error == pytest.approx(0.05)
    assert measured.log_loss == pytest.approx(-np.log(np.where(right, 0.95, 0.05)).mean())
    # The error of a bootstrap is that of its share of right items, which is binomial.
    spread = np.sqrt(0.9 * 0.1 / 400)
    np.testing.assert_allclose(measured.error_interval, 0.05 + 1.645 * spread * np.array([-1, 1]), atol=0.006)
    middle = np.mean(measured.log_loss_interval)
    assert middle == pytest.approx(measured.log_loss, abs=0.01)


@pytest.mark.parametrize(
    ("probability", "share", "words"),
    [
        (
            0.95,
            0.95,
            "sure of, 380 are right: 95% (90% interval 93% to 97%). Gold does not contradict",
        ),
        (0.95, 0.8, "Over all gold items the model is surer than it should be (p = 0.002)."),
        (
            0.91,
            1.0,
            "interval 100% to 100%). Over all gold items the model is less sure than it should be",
        ),
        (0.6, 0.6, "The model is at least 90% sure of no gold item. Gold does not contradict"),
    ],
)
def test_the_verdict_says_whether_stated_probabilities_hold(probability, share, words):
    measured = stated(probability, share)
    assert words in measured.verdict
    assert measured.holds == ("does not contradict" in words)


def test_stated_probabilities_that_hold_seldom_seem_wrong():
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(60):
        wrong += not stated(0.8, rng.binomial(100, 0.8) / 100, n=100).holds
    assert wrong <= 8
