"""What probabilities are worth against the truth: ROC curves on a common grid, their areas, and reliability."""

from __future__ import annotations

import numpy as np

from crowdgraph.core._arrays import Array, lock

__all__ = ["FALSE_POSITIVE_RATE", "aucs_by_class", "calibration_error", "reliability", "roc_curves_by_class"]

# Where ROC curves are read off before they are averaged. Zero comes twice: a curve begins at the origin and rises there
# to what is found without a false positive.
FALSE_POSITIVE_RATE = lock(np.concatenate([[0.0], np.linspace(0.0, 1.0, 101)]))


def aucs_by_class(truth: Array, probs: Array) -> Array:
    """The area under the ROC curve of each class against all others, of shape (J,); NaN where there are no others.

    Examples
    --------
    >>> import numpy as np
    >>> aucs_by_class(np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]))
    array([0.5, 0.5])
    """
    from sklearn.metrics import roc_auc_score

    areas = np.full(probs.shape[1], np.nan)
    for code in _told_apart(truth, probs.shape[1]):
        areas[code] = roc_auc_score(truth == code, probs[:, code])
    return areas


def roc_curves_by_class(truth: Array, probs: Array) -> Array:
    """The ROC curve of each class against all others, of shape (J, G): true positive rates on the common grid."""
    from sklearn.metrics import roc_curve

    curves = np.full((probs.shape[1], len(FALSE_POSITIVE_RATE)), np.nan)
    for code in _told_apart(truth, probs.shape[1]):
        false_positive, true_positive, _ = roc_curve(truth == code, probs[:, code])
        # Where the curve rises straight up, this reads off the upper end.
        curves[code] = np.interp(FALSE_POSITIVE_RATE, false_positive, true_positive)
        curves[code, 0] = 0.0
    return curves


def reliability(truth: Array, probs: Array, *, n_bins: int) -> tuple[Array, Array, Array]:
    """For bins of the most probable class's probability: its mean, the share of items it is true of, their number.

    Bins have equal widths from 0 to 1 and hold their lower edge, the last one both; NaN for empty bins.

    Examples
    --------
    >>> import numpy as np
    >>> stated, observed, n_items = reliability(
    ...     np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), n_bins=2)
    >>> stated, observed, n_items
    (array([nan, 0.7]), array([       nan, 0.66666667]), array([0, 3]))
    """
    from scipy.stats import binned_statistic

    stated = probs.max(axis=1).clip(0.0, 1.0)
    right = probs.argmax(axis=1) == truth
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    # Empty bins would have means of nothing, of which NumPy warns.
    sums, _, place = binned_statistic(stated, [stated, right.astype(np.float64)], statistic="sum", bins=edges)
    n_items: Array = np.bincount(place - 1, minlength=n_bins)
    means = sums / np.where(n_items > 0, n_items, np.nan)
    return means[0], means[1], n_items


def calibration_error(truth: Array, probs: Array, *, n_bins: int) -> float:
    """The expected calibration error: the mean over items of the gap, in their bin, between stated and observed."""
    stated, observed, n_items = reliability(truth, probs, n_bins=n_bins)
    return float(np.nansum(np.abs(stated - observed) * n_items) / n_items.sum())


def _told_apart(truth: Array, n_classes: int) -> Array:
    """The classes that some of the items belong to and others do not."""
    counts: Array = np.bincount(truth, minlength=n_classes)
    return np.flatnonzero((counts > 0) & (counts < len(truth)))
