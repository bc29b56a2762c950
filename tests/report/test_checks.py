"""The checks of the model on the page: evidence, bounds, and calibration that is measured elsewhere."""

import numpy as np
import pytest
from report.pages import VOTES

import crowdgraph as cg
from crowdgraph.evaluation.model_checks import calibration
from crowdgraph.report.write import payload


def test_evidence_and_bound(graph, data):
    evidence = graph.communities().evidence
    assert data["checks"]["evidence"]["structured"] == evidence.structured
    np.testing.assert_allclose(data["checks"]["evidence"]["null"], evidence.null_modularity, atol=5e-5)
    ibcc = data["checks"]["fits"][0]
    np.testing.assert_allclose(ibcc["bound"], graph.fit("ibcc").bound, rtol=1e-6)
    assert ibcc["steps"] == [*range(1, len(ibcc["bound"]) + 1)]


def test_calibration_says_when_the_model_was_given_the_gold(graph, data):
    assert data["checks"]["calibration"]["without_gold"] is True
    assert sum(data["checks"]["calibration"]["items"]) == len(graph.gold)
    blind = graph.with_gold(None)
    fair = graph.with_gold(graph.gold).annotate(cg.IBCC(confusion_prior=(4, 1), votes=VOTES).fit(blind))
    shown = payload(fair)["checks"]["calibration"]
    known = graph.gold.known
    right = fair.item_probs()[known].argmax(axis=1) == graph.gold.codes[known]
    assert shown["without_gold"] is False
    assert shown["accuracy"] == pytest.approx(right.mean(), abs=5e-5)


def test_no_gold_no_calibration(graph):
    blind = graph.with_gold(None)
    fit = cg.IBCC(confusion_prior=(4, 1), votes=VOTES).fit(blind)
    shown = payload(blind.annotate(fit))["checks"]["calibration"]
    assert "not checked: no gold" in shown["missing"]


@pytest.mark.parametrize("model", [cg.DynIBCC(), cg.Cautious()], ids=lambda model: model.name)
def test_models_that_are_no_products_are_judged_while_gold_is_hidden(model):
    """Volunteers guess, so a model that is right more often than half of the time has seen the gold."""
    rng = np.random.default_rng(0)
    names = np.array(["no", "yes"])
    volunteers, items = np.divmod(np.arange(4_000), 200)
    labels = names[rng.integers(2, size=4_000)]
    gold = dict(enumerate(names[rng.integers(2, size=200)].tolist()))
    columns = {"volunteer": volunteers, "item": items, "label": labels, "time": rng.permutation(4_000)}
    graph = cg.CrowdGraph.from_responses(columns, gold=gold)
    graph = graph.annotate(model.fit(graph))
    data = payload(graph, calibration=calibration(graph, graph.fit(), model=model))
    shown = data["checks"]["calibration"]
    assert (shown["without_gold"], shown["hidden"]) == (True, True)
    assert sum(shown["items"]) == 200
    assert 0.4 < shown["accuracy"] < 0.6
    (first,) = [one["words"] for one in data["overview"]["sentences"] if one["words"].startswith("Against gold")]
    assert f"right for {shown['accuracy']:.1%} of 200 items, each judged while its gold was hidden" in first
    assert "kind" not in first


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        ("no model", "must be fitted again while gold is hidden"),
        ("large crowd", "over 2,399 responses"),
        ("little gold", "Gold covers the class"),
    ],
)
def test_what_was_not_measured_is_not_shown(obstacle, reason, graph, monkeypatch):
    model = None if obstacle == "no model" else cg.DynIBCC(confusion_prior=(4, 1), votes=VOTES)
    if obstacle == "large crowd":
        monkeypatch.setattr("crowdgraph.evaluation.model_checks.MAX_RESPONSES_TO_REFIT", 2_399)
    if obstacle == "little gold":
        graph = graph.with_gold({item: graph.gold[item] for item in list(graph.gold)[:2]}, classes=graph.classes)
        graph = graph.annotate(model.fit(graph))
    data = payload(graph, calibration=calibration(graph, graph.fit(), model=model))
    shown = data["checks"]["calibration"]
    assert list(shown) == ["missing"]
    assert reason in shown["missing"]
    # It needs gold of all classes as well.
    assert ("crowdgraph evaluate" in shown["missing"]) == (obstacle != "little gold")
    assert not any("Against gold" in sentence["words"] for sentence in data["overview"]["sentences"])


def test_predictive_checks_are_shown(graph):
    checks = cg.evaluation.predictive_checks(graph, n_replicates=100)
    shown = payload(graph, predictive=checks)["checks"]["predictive"]
    assert shown["replicates"] == 100
    assert shown["verdict"] == checks.verdict
    assert [one["name"] for one in shown["checks"]] == [check.name for check in checks]
    p_values = [one["p_value"] for one in shown["checks"]]
    np.testing.assert_allclose(p_values, [check.p_value for check in checks], atol=5e-5)
    np.testing.assert_allclose(shown["observed"], checks.labels.observed, atol=5e-5)
    assert len(shown["pairs"]) == len(checks.pairs)


def test_a_page_without_predictive_checks_says_how_to_get_them(graph):
    assert "cg.evaluation.predictive_checks(graph)" in payload(graph)["checks"]["predictive"]["missing"]
    cli = payload(graph, interface="cli")["checks"]["predictive"]["missing"]
    assert cli == "Whether volunteers answer independently was not checked; crowdgraph analyse does it."


def test_a_page_fits_nothing(graph, monkeypatch):
    def fit(*args, **options):
        raise AssertionError("a page fits nothing")

    monkeypatch.setattr(cg.models.Model, "fit", fit)
    data = payload(graph)
    assert "crowdgraph.analysis.analyse(graph) does it" in data["checks"]["calibration"]["missing"]
    assert data == payload(graph, findings=graph.diagnose(), calibration=calibration(graph, graph.fit()))
