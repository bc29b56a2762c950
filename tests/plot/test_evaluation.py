"""Curves of a cross validation show what the result holds."""

from typing import get_args

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from plot.reading import legend

import crowdgraph as cg
from crowdgraph.allocation.campaign import CAMPAIGN_COLUMNS
from crowdgraph.evaluation import cross_validate
from crowdgraph.plot._style import HUES
from crowdgraph.plot.evaluation import MAX_HALO_AREA, MIN_BOLD_ITEMS, CampaignScore


@pytest.fixture(scope="module")
def result():
    graph = cg.simulate.crowd(n_volunteers=20, n_items=80, n_responses=300, seed=0).graph
    return cross_validate(graph, [cg.MajorityVote(), cg.WeightedMajority(factor=0.5)], folds=4)


@pytest.fixture(scope="module")
def three_classes():
    graph = cg.simulate.crowd(n_volunteers=20, n_items=90, n_responses=300, classes=["cat", "dog", "owl"], seed=0).graph
    return cross_validate(graph, cg.MajorityVote(), folds=3)


def test_roc_draws_every_model(result, tmp_path):
    ax = cg.plot.roc(result)
    diagonal, *lines = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert [to_hex(line.get_color()).upper() for line in lines] == list(HUES[:2])
    for line, band, model in zip(lines, ax.collections, result.models, strict=True):
        curve = result.roc(model, positive="yes")
        np.testing.assert_array_equal(line.get_xdata(), curve.false_positive_rate)
        np.testing.assert_array_equal(line.get_ydata(), curve.true_positive_rate)
        corners = band.get_paths()[0].vertices
        at_half = np.sort(corners[np.isclose(corners[:, 0], 0.5), 1])
        index = np.flatnonzero(np.isclose(curve.false_positive_rate, 0.5))[0]
        mean, spread = curve.true_positive_rate[index], curve.spread[index]
        np.testing.assert_allclose(at_half, [mean - spread, min(mean + spread, 1)])
        assert spread > 0
    aucs = result.mean("auc(yes)")
    assert legend(ax) == [f"majority_vote, AUC {aucs[0]:.3f}", f"weighted_majority, AUC {aucs[1]:.3f}"]
    assert ax.get_title(loc="left") == "ROC of class yes, 4 folds"
    ax.figure.savefig(tmp_path / "roc.png")


def test_roc_of_a_class_and_of_all(three_classes):
    ax = cg.plot.roc(three_classes)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), three_classes.roc("majority_vote").true_positive_rate)
    assert legend(ax) == [f"majority_vote, AUC {three_classes.mean('auc')[0]:.3f}"]
    assert ax.get_title(loc="left") == "ROC, mean over classes, 3 folds"
    ax = cg.plot.roc(three_classes, positive="dog")
    named = three_classes.roc("majority_vote", positive="dog")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), named.true_positive_rate)
    assert legend(ax) == [f"majority_vote, AUC {three_classes.mean('auc(dog)')[0]:.3f}"]
    assert ax.get_title(loc="left") == "ROC of class dog, 3 folds"
    with pytest.raises(cg.errors.ParameterError, match="positive='cow' is not a class"):
        cg.plot.roc(three_classes, positive="cow")


def test_reliability_draws_every_bin(result, tmp_path):
    ax = cg.plot.reliability(result)
    diagonal, *lines = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    for line, bold, halos, model in zip(lines[::2], lines[1::2], ax.collections, result.models, strict=True):
        curve = result.reliability(model)
        assert len(curve.stated) > 2
        np.testing.assert_array_equal(line.get_xdata(), curve.stated)
        np.testing.assert_array_equal(line.get_ydata(), curve.observed)
        np.testing.assert_array_equal(bold.get_ydata(), curve.observed[curve.n_items >= MIN_BOLD_ITEMS])
        np.testing.assert_array_equal(halos.get_offsets(), np.column_stack([curve.stated, curve.observed]))
        np.testing.assert_allclose(halos.get_sizes() / MAX_HALO_AREA, curve.n_items / 80)
    errors = result.mean("calibration_error")
    assert legend(ax) == [f"majority_vote, ECE {errors[0]:.3f}", f"weighted_majority, ECE {errors[1]:.3f}"]
    assert ax.get_title(loc="left") == "Reliability on 80 gold items"
    ax.figure.savefig(tmp_path / "reliability.png")


@pytest.mark.parametrize("draw", [cg.plot.roc, cg.plot.reliability])
def test_given_axes_are_used(result, draw):
    ax = Figure().subplots()
    assert draw(result, ax=ax) is ax
    assert ax.get_aspect() == 1


@pytest.mark.parametrize("draw", [cg.plot.roc, cg.plot.reliability, cg.plot.activity, cg.plot.responses_over_time])
def test_something_else_cannot_be_drawn(draw):
    with pytest.raises(cg.errors.ParameterError, match=r"This picture shows a .*; got a dict\. Make one with"):
        draw({})


def test_campaigns_can_be_drawn_by_each_of_their_scores():
    drawn = set(get_args(CampaignScore))
    assert drawn == set(CAMPAIGN_COLUMNS) - {"spent", "seconds"}
