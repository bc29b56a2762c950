"""Areas, curves and calibration, against plain counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from crowdgraph.evaluation.scores import (
    FALSE_POSITIVE_RATE,
    aucs_by_class,
    calibration_error,
    reliability_bins,
    roc_curves_by_class,
)

TRUTH = np.array([0, 0, 1, 1])
PROBS = np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])


@st.composite
def stated(draw, *, n_classes=3, both=False):
    """True classes and probabilities on a coarse grid, so that there are many ties."""
    n_items = draw(st.integers(2, 30))
    truth = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_items, max_size=n_items))
    if both:
        truth = [0, 1, *truth[2:]]
    rows = st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes).filter(any)
    weights = np.array(draw(st.lists(rows, min_size=n_items, max_size=n_items)), dtype=float)
    return np.array(truth), weights / weights.sum(axis=1, keepdims=True)


def share_of_pairs(members, others):
    """How often one of the members has more than one of the others; a tie is half."""
    return np.mean([[(left > right) + 0.5 * (left == right) for right in others] for left in members])


@given(stated())
def test_areas_are_shares_of_pairs(case):
    truth, probs = case
    for code, area in enumerate(aucs_by_class(truth, probs)):
        members, others = probs[truth == code, code], probs[truth != code, code]
        if len(members) and len(others):
            assert area == pytest.approx(share_of_pairs(members, others), abs=1e-12)
        else:
            assert np.isnan(area)


@pytest.mark.slow
@given(stated(n_classes=2, both=True))
def test_areas_depend_on_the_order_only(case):
    truth, probs = case
    np.testing.assert_allclose(aucs_by_class(truth, np.exp(3 * probs) - 1), aucs_by_class(truth, probs), atol=1e-12)
    np.testing.assert_allclose(aucs_by_class(truth, -probs), 1 - aucs_by_class(truth, probs), atol=1e-12)


def test_curves_are_read_off_a_grid():
    """False positives come at 1/2 and 1; before them one of two is found, after them all."""
    curve = roc_curves_by_class(TRUTH, PROBS)[1]
    assert FALSE_POSITIVE_RATE[:3].tolist() == [0, 0, 0.01]
    assert curve[0] == 0
    assert set(curve[1:][FALSE_POSITIVE_RATE[1:] < 0.5]) == {0.5}
    assert set(curve[FALSE_POSITIVE_RATE >= 0.5]) == {1.0}


@given(stated(both=True))
def test_curves_rise_and_enclose_their_area(case):
    truth, probs = case
    areas, curves = aucs_by_class(truth, probs), roc_curves_by_class(truth, probs)
    assert (np.isnan(curves).all(axis=1) == np.isnan(areas)).all()
    for area, curve in zip(areas[:2], curves[:2], strict=True):
        assert (np.diff(curve) >= 0).all()
        assert curve[-1] == 1
        # Between two points of the grid, which are 0.01 apart, a step may be anywhere.
        assert np.trapezoid(curve, FALSE_POSITIVE_RATE) == pytest.approx(area, abs=0.01)


def test_reliability_by_hand():
    """Two in [0.8, 1], of which one is right, and two in [0.6, 0.8), of which one is right."""
    probs = np.array([[0.9, 0.1], [0.35, 0.65], [0.75, 0.25], [0.05, 0.95]])
    shares, observed, n_items = reliability_bins(TRUTH, probs, n_bins=5)
    np.testing.assert_allclose(shares, [np.nan, np.nan, np.nan, 0.7, 0.925])
    np.testing.assert_allclose(observed, [np.nan, np.nan, np.nan, 0.0, 1.0])
    assert n_items.tolist() == [0, 0, 0, 2, 2]
    assert calibration_error(TRUTH, probs, n_bins=5) == pytest.approx((2 * 0.7 + 2 * 0.075) / 4)
    assert calibration_error(TRUTH, probs, n_bins=1) == pytest.approx(abs((0.9 + 0.65 + 0.75 + 0.95) / 4 - 0.5))


def test_reliability_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=500)
    truth = rng.integers(3, size=500)
    shares, observed, n_items = reliability_bins(truth, probs, n_bins=10)
    full = n_items > 0
    theirs = calibration_curve(probs.argmax(axis=1) == truth, probs.max(axis=1), n_bins=10)
    np.testing.assert_allclose([observed[full], shares[full]], theirs)
    assert n_items.tolist() == np.histogram(probs.max(axis=1), bins=10, range=(0, 1))[0].tolist()


@given(stated(), st.integers(1, 20))
def test_calibration_errors_are_shares(case, n_bins):
    truth, probs = case
    assert 0 <= calibration_error(truth, probs, n_bins=n_bins) <= 1
    assert reliability_bins(truth, probs, n_bins=n_bins)[2].sum() == len(truth)
    assert calibration_error(truth, np.eye(3)[truth], n_bins=n_bins) == 0
    assert calibration_error(truth, np.eye(3)[(truth + 1) % 3], n_bins=n_bins) == 1


def test_bins_hold_their_lower_edge_and_the_last_one_both():
    probs = np.array([[0.5, 0.5], [1.0, 0.0], [1.0 + 1e-9, 0.0]])
    assert reliability_bins(np.zeros(3, dtype=int), probs, n_bins=2)[2].tolist() == [0, 3]
    assert reliability_bins(np.zeros(3, dtype=int), probs, n_bins=10)[2].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 2]
