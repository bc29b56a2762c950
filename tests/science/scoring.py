"""Scores of class probabilities on gold, and whether volunteers' accuracy lies in its interval."""

import numpy as np
from scipy.special import betaln, gammaln
from scipy.stats import chisquare, kstest

SCORES = ("accuracy", "log loss", "Brier", "ECE", "settled", "right", "interval")
MIN_GOLD_ANSWERS = 10


def item_scores(probs, truth, *, n_bins=10, sure=0.9):
    """Scores of class probabilities (N, J) against the codes of the true classes (N,).

    accuracy: the share of items whose most probable class, the first of equals, is true. log loss: probabilities below
    1e-15 count as that. Brier: squared differences summed over classes, 0 to 2. ECE: expected calibration error of the
    most probable class, ten bins of equal width. settled: the share of items with a class of probability .9 or more.
    right: the share of these whose class is true; NaN where none is settled.
    """
    best, stated = probs.argmax(axis=1), probs.max(axis=1)
    right = best == truth
    target = np.eye(probs.shape[1])[truth]
    bins = np.minimum((stated * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, stated - right, minlength=n_bins)
    settled = stated >= sure
    return {
        "accuracy": right.mean(),
        "log loss": -np.log(np.maximum(probs[np.arange(len(truth)), truth], 1e-15)).mean(),
        "Brier": ((probs - target) ** 2).sum(axis=1).mean(),
        "ECE": np.abs(gaps).sum() / len(truth),
        "settled": settled.mean(),
        "right": right[settled].mean() if settled.any() else np.nan,
    }


def interval_coverage(answers, concentration, truth, *, level=0.9, min_answers=MIN_GOLD_ANSWERS):
    r"""The share of volunteers whose share of right answers to gold items lies in its predictive interval.

    Nobody knows the accuracy of a real volunteer, only how often they were right on gold. So the question is whether
    that number of right answers is one that the fit expects. For each volunteer with at least `min_answers` answers to
    gold items that the model was not given:

    - the classes of those items have the shares :math:`w_j`, which are taken as they are: a fit is not blamed for the
      mix of classes that somebody happened to see;
    - the posterior of the volunteer's accuracy on that mix has the mean :math:`\sum_j w_j m_j` and the variance
      :math:`\sum_j w_j^2 m_j (1 - m_j) / (A_j + 1)`, where :math:`m_j` is the expected share of labels that vote for
      class j in row j of their confusion matrix, and :math:`A_j` the row's concentration;
    - the number of right answers out of n is Beta-binomial, with the Beta of that mean and variance;
    - it is inside if neither tail, the probability of as few or of as many right answers, is below (1 - level) / 2.

    Since numbers of answers are whole, an honest posterior covers somewhat more than `level`. The interval allows for
    chance in n answers, so it is wide for people with few of them, where it tests little.

    Parameters
    ----------
    answers
        `oracles.aggregators.Answers`.
    concentration
        Dirichlet concentration of each volunteer's confusion, (K, J, L).
    truth
        The class of each item that is scored, -1 for all others, (N,).

    Returns
    -------
    float
        NaN where nobody has enough answers.
    """
    known = truth[answers.item] >= 0
    volunteer, label = answers.volunteer[known], answers.label[known]
    true_class = truth[answers.item[known]]
    size = answers.n_volunteers, answers.n_classes
    seen = np.bincount(volunteer * size[1] + true_class, minlength=size[0] * size[1]).reshape(size)
    n_right = np.bincount(volunteer, answers.targets[label] == true_class, minlength=size[0]).astype(int)
    n_answers = seen.sum(axis=1)
    votes = answers.targets == np.arange(size[1])[:, None]
    total = concentration.sum(axis=2)
    share = (concentration * votes).sum(axis=2) / total
    weight = seen / np.maximum(n_answers, 1)[:, None]
    mean = (weight * share).sum(axis=1).clip(1e-9, 1 - 1e-9)
    variance = np.maximum((weight**2 * share * (1 - share) / (total + 1)).sum(axis=1), 1e-18)
    strength = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
    tail = (1 - level) / 2
    inside = []
    for k in np.flatnonzero(n_answers >= min_answers):
        masses = beta_binomial(n_answers[k], strength[k] * mean[k], strength[k] * (1 - mean[k]))
        inside.append(masses[: n_right[k] + 1].sum() >= tail and masses[n_right[k] :].sum() >= tail)
    return float(np.mean(inside)) if inside else np.nan


def beta_binomial(n, a, b):
    """The probabilities of 0 to n successes."""
    k = np.arange(n + 1)
    logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + betaln(k + a, n - k + b) - betaln(a, b)
    return np.exp(logs)


def uniformity(values, *, n_bins=10):
    """Return the p-values of the Kolmogorov-Smirnov and of the chi-square test that values are uniform on (0, 1)."""
    counts = np.bincount(np.minimum((np.asarray(values) * n_bins).astype(int), n_bins - 1), minlength=n_bins)
    return float(kstest(values, "uniform").pvalue), float(chisquare(counts).pvalue)


def table(rows, columns, *, title, digits=3):
    """A Markdown table of rows, a mapping from names to mappings from columns to numbers; NaN is "-"."""

    def cell(value):
        if isinstance(value, str | int):
            return str(value)
        return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"

    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---|" + "--:|" * len(columns)]
    lines += [f"| {name} | " + " | ".join(cell(row.get(c)) for c in columns) + " |" for name, row in rows.items()]
    return "\n".join(lines)
