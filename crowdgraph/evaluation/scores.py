"""Scores of class probabilities against the truth: accuracy, losses, ROC curves and calibration.

Everywhere `truth` holds the code of each item's class, of shape (N,), and `probs` class probabilities, of shape (N, J).
"""

from __future__ import annotations

import numpy as np

from crowdgraph.core._arrays import Array, lock

__all__ = [
    "FALSE_POSITIVE_RATE",
    "accuracy",
    "aucs_by_class",
    "brier_score",
    "calibration_error",
    "item_log_losses",
    "log_loss",
    "nan_mean",
    "nan_std",
    "reliability_bins",
    "roc_curves_by_class",
]

# The grid on which ROC curves are averaged. Zero occurs twice: a curve begins at the origin and rises there to the rate
# that is reached without a false positive.
FALSE_POSITIVE_RATE = lock(np.concatenate([[0.0], np.linspace(0.0, 1.0, 101)]))


def accuracy(truth: Array, probs: Array) -> float:
    """Return the share of items whose most probable class, the first of equals, is the true one."""
    return float((probs.argmax(axis=1) == truth).mean())


def log_loss(truth: Array, probs: Array) -> float:
    """Return the mean of minus the logarithm of the true class's probability, with 0 counted as 2.2e-16."""
    import sklearn.metrics

    # Probabilities of single precision sum to one less exactly than scikit-learn wants.
    normalised = probs / probs.sum(axis=1, keepdims=True)
    return float(sklearn.metrics.log_loss(truth, normalised, labels=np.arange(probs.shape[1])))


def item_log_losses(truth: Array, probs: Array) -> Array:
    """Return minus the logarithm of the probability of each item's true class, (N,), with 0 counted as 2.2e-16."""
    probs_of_truth = probs[np.arange(len(truth)), truth] / probs.sum(axis=1)
    return np.asarray(-np.log(np.clip(probs_of_truth, np.finfo(float).eps, 1.0)))


def brier_score(truth: Array, probs: Array) -> float:
    """Return the mean over items of the squared differences from the truth, summed over classes."""
    return float(((probs - np.eye(probs.shape[1])[truth]) ** 2).sum(axis=1).mean())


def aucs_by_class(truth: Array, probs: Array) -> Array:
    """Return the area under the ROC curve of each class against all others, (J,); NaN where there are no others.

    Examples
    --------
    >>> import numpy as np
    >>> aucs_by_class(np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]))
    array([0.5, 0.5])
    """
    from sklearn.metrics import roc_auc_score

    areas = np.full(probs.shape[1], np.nan)
    for code in _classes_with_others(truth, probs.shape[1]):
        areas[code] = roc_auc_score(truth == code, probs[:, code])
    return areas


def roc_curves_by_class(truth: Array, probs: Array) -> Array:
    """Return the ROC curve of each class against all others: true positive rates on the common grid, (J, G)."""
    from sklearn.metrics import roc_curve

    curves = np.full((probs.shape[1], len(FALSE_POSITIVE_RATE)), np.nan)
    for code in _classes_with_others(truth, probs.shape[1]):
        false_positive, true_positive, _ = roc_curve(truth == code, probs[:, code])
        # Where the curve rises straight up, this reads off the upper end.
        curves[code] = np.interp(FALSE_POSITIVE_RATE, false_positive, true_positive)
        curves[code, 0] = 0.0
    return curves


def reliability_bins(truth: Array, probs: Array, *, n_bins: int) -> tuple[Array, Array, Array]:
    """Compare the probability of the most probable class with how often it is the true one, bin by bin.

    Bins of that probability have equal widths from 0 to 1 and include their lower edge, the last one both edges.

    Returns
    -------
    tuple of arrays of shape (B,)
        For each bin the mean probability, the share of items whose class is the most probable one, and the number of
        items; means and shares are NaN for empty bins.

    Examples
    --------
    >>> import numpy as np
    >>> stated, observed, n_items = reliability_bins(
    ...     np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), n_bins=2)
    >>> stated, observed, n_items
    (array([nan, 0.7]), array([       nan, 0.66666667]), array([0, 3]))
    """
    from scipy.stats import binned_statistic

    stated = probs.max(axis=1).clip(0.0, 1.0)
    right = probs.argmax(axis=1) == truth
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    # Sums, since NumPy warns of the means of empty bins.
    sums, _, number = binned_statistic(stated, [stated, right.astype(np.float64)], statistic="sum", bins=edges)
    n_items: Array = np.bincount(number - 1, minlength=n_bins)
    means = sums / np.where(n_items > 0, n_items, np.nan)
    return means[0], means[1], n_items


def calibration_error(truth: Array, probs: Array, *, n_bins: int) -> float:
    """Return the expected calibration error: the mean over items of their bin's gap between stated and observed."""
    stated, observed, n_items = reliability_bins(truth, probs, n_bins=n_bins)
    return float(np.nansum(np.abs(stated - observed) * n_items) / n_items.sum())


def nan_mean(values: Array, *, axis: int) -> Array:
    """Return the mean of the values that are not NaN; NaN where all are, without a warning."""
    n_defined = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.where(n_defined > 0, n_defined, np.nan))


def nan_std(values: Array, *, axis: int) -> Array:
    """Return the sample standard deviation of the values that are not NaN; NaN for fewer than two."""
    n_defined = np.count_nonzero(~np.isnan(values), axis=axis)
    gaps = values - np.expand_dims(nan_mean(values, axis=axis), axis)
    return np.asarray(np.sqrt(np.nansum(gaps**2, axis=axis) / np.where(n_defined > 1, n_defined - 1, np.nan)))


def _classes_with_others(truth: Array, n_classes: int) -> Array:
    """Return the classes to which some of the items belong and others do not."""
    counts: Array = np.bincount(truth, minlength=n_classes)
    return np.flatnonzero((counts > 0) & (counts < len(truth)))
