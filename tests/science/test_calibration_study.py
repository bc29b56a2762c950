"""How right, how sure and how honest models are: the tables of docs/calibration_study.rst (``make check-science``)."""

import numpy as np
import pytest
from oracles.aggregators import Answers
from science import planted_crowds, real_table
from science.scoring import beta_binomial, interval_coverage, item_scores, table
from scipy.stats import betabinom

import crowdgraph as cg

CALIBRATES = hasattr(cg.ModelFit, "calibrated")


def test_scores_of_items_by_hand():
    probs = np.array([[0.95, 0.05], [0.4, 0.6], [0.92, 0.08], [0.5, 0.5]])
    scores = item_scores(probs, np.array([0, 1, 1, 0]))
    assert scores["accuracy"] == 0.75
    assert np.isclose(scores["log loss"], -np.log([0.95, 0.6, 0.08, 0.5]).mean())
    assert np.isclose(scores["Brier"], 2 * np.mean([0.05**2, 0.4**2, 0.92**2, 0.5**2]))
    # Three bins: .95 and .92 with one right of two, .6 right, .5 right.
    assert np.isclose(scores["ECE"], (abs(1.87 - 1) + 0.4 + 0.5) / 4)
    assert (scores["settled"], scores["right"]) == (0.5, 0.5)


def test_probabilities_of_counts():
    assert np.allclose(beta_binomial(12, 2.5, 0.7), betabinom(12, 2.5, 0.7).pmf(range(13)))


def test_an_honest_posterior_covers_what_it_says():
    """Accuracies that are drawn from their own posterior lie in the interval a little more often than asked."""
    rng = np.random.default_rng(0)
    concentration = rng.uniform(0.3, 3, (2_000, 2, 3))
    rows = planted_crowds.draw_rows(rng, concentration)
    truth = rng.integers(0, 2, 30)
    volunteer, item = (part.ravel() for part in np.meshgrid(np.arange(2_000), np.arange(30), indexing="ij"))
    cumulative = rows[volunteer, truth[item]].cumsum(axis=1)
    label = (rng.random(len(item))[:, None] > cumulative).sum(axis=1).clip(max=2)
    answers = Answers(item, volunteer, label, np.array([0, 1, -1]), np.full(30, -1), 2_000, 2)
    assert 0.89 < interval_coverage(answers, concentration, truth) < 0.94
    too_sure = interval_coverage(answers, 20 * concentration, truth)
    assert too_sure < 0.75
    assert np.isnan(interval_coverage(answers, concentration, np.where(np.arange(30) < 9, truth, -1)))


@pytest.mark.science
@pytest.mark.filterwarnings("ignore")
def test_real_crowds():
    if not real_table.set_names():
        pytest.skip("the real crowds are not on this machine")
    studies = {share: real_table.measure(share) for share in real_table.SHARES}
    print("\n" + real_table.describe(studies))
    without = {share: real_table.means(results, without=(real_table.TWIN,)) for share, results in studies.items()}
    if len(real_table.set_names()) == 18:
        # Figures of models that do not change: they say that sets and scores are still the same.
        assert abs(without[0]["vote shares, one vote added per class"]["log loss"] - 0.653) < 0.002
        assert abs(without[0]["BWA"]["log loss"] - 0.721) < 0.01
        assert abs(without[0]["EBCC"]["log loss"] - 1.6) < 0.1
        assert abs(without[0]["IBCC, prior (4, 1)"]["interval"] - 0.736) < 0.005
    for rows in without.values():
        if "IBCC, calibrated" in rows:
            calibrated = rows["IBCC, calibrated"]["log loss"]
            others = ("vote shares, one vote added per class", "Dawid-Skene", "crowd-kit DawidSkene", "EBCC", "BWA")
            assert all(calibrated < rows[title]["log loss"] for title in others if title in rows)


@pytest.mark.science
@pytest.mark.filterwarnings("ignore")
def test_intervals_of_planted_accuracy():
    rows = planted_crowds.planted_table()
    columns = list(planted_crowds.PLANTED)
    print("\n" + table(rows, columns, title="coverage of the true accuracy by the 90 % interval"))
    if CALIBRATES:
        assert all(0.85 <= share <= 0.97 for share in rows["IBCC"].values())


@pytest.mark.science
@pytest.mark.filterwarnings("ignore")
def test_truth_from_the_prior():
    rows = {title: planted_crowds.simulation_based_calibration(*row) for title, row in planted_crowds.SBC_ROWS.items()}
    rows = {title: row for title, row in rows.items() if row is not None}
    volunteers, items = ({title: row[part] for title, row in rows.items()} for part in (0, 1))
    print("\n" + table(volunteers, planted_crowds.SBC_COLUMNS, title="truth from the prior: volunteers"))
    print("\n" + table(items, planted_crowds.SBC_ITEM_COLUMNS, title="truth from the prior: items"))
    checked = ["matrix prior: IBCC with it", "matrix prior: GibbsIBCC with it"]
    checked += ["hierarchical prior: IBCC"] if CALIBRATES else []
    for title in checked:
        assert 0.87 <= volunteers[title]["coverage"] <= 0.93
        assert volunteers[title]["busiest"] >= 0.84


@pytest.mark.science
@pytest.mark.filterwarnings("ignore")
def test_independent_answers():
    """What it costs to allow for dependence where there is none."""
    results = planted_crowds.independent_table()
    print("\n" + planted_crowds.describe_independent(results))
    for name in planted_crowds.INDEPENDENT if CALIBRATES else ():
        plain, assumed = results["IBCC"][name], results["calibrated, correlation assumed"][name]
        assert assumed[0] > plain[0] - 0.01
        assert results["calibrated, gold for 30 %"][name][1] < assumed[1] + 0.005
