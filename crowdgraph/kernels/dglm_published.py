"""The compiled filter and smoother for answers that count once, for the mixture of an item's classes, as published.

Covariances are factorised as U D U' (Bierman 1977, Agee and Turner 1972) and smoothed as sums of positive terms, so
that no rounding error makes a variance negative. Functions take `classes`, the tuple (0, ..., J - 1), whose length is
known at compile time, so that short loops over the classes are unrolled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from crowdgraph.tensors.dynibcc import MAX_LOG_ODDS

__all__ = ["filter_published", "scan_published", "share_of", "smooth_published"]


@njit(cache=True, nogil=True, error_model="numpy")
def share_of(shares: Any, label: Any, step: int, target: int) -> float:
    """Return the share of an answer that a label has: one or zero where `shares` is empty, so that none is soft."""
    if len(shares) > 0:
        return float(shares[step, target])
    return 1.0 if label[step] == target else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _predict(classes: Any, upper: Any, scale: Any, noise: float, direction: Any) -> None:
    """Add noise to every variance of U D U' (eq:P_prior): one rank-one update without subtractions for each class."""
    for k in range(len(classes)):
        for j in range(k):
            direction[j] = 0.0
        direction[k] = 1.0
        variance = noise
        for j in range(k, -1, -1):
            previous = scale[j]
            scale[j] = previous + variance * direction[j] * direction[j]
            factor = variance * direction[j] / scale[j]
            for i in range(j):
                direction[i] -= direction[j] * upper[i, j]
                upper[i, j] += factor * direction[i]
            variance *= previous / scale[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _factorise(classes: Any, covariance: Any, upper: Any, scale: Any) -> None:
    """Fill in U and D of a covariance U D U'."""
    for j in range(len(classes) - 1, -1, -1):
        for i in range(j, -1, -1):
            total = covariance[i, j]
            for m in range(j + 1, len(classes)):
                total -= upper[i, m] * scale[m] * upper[j, m]
            if i == j:
                scale[j] = total
            else:
                upper[i, j] = total / scale[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _store(classes: Any, upper: Any, scale: Any, mean: Any, t: int, means: Any, covariances: Any) -> None:
    """Write the mean and U D U' of one step."""
    n_classes = len(classes)
    for i in range(n_classes):
        means[t, i] = mean[i]
        for j in range(i, n_classes):
            total = upper[i, j] * scale[j]
            for m in range(j + 1, n_classes):
                total += upper[i, m] * scale[m] * upper[j, m]
            covariances[t, i, j] = total
            covariances[t, j, i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def filter_published(
    classes: Any,
    first: int,
    last: int,
    target: int,
    item: Any,
    label: Any,
    weight: Any,
    drift: Any,
    shares: Any,
    probs: Any,
    prior_mean: Any,
    prior_covariance: Any,
    noise_scale: float,
    predicted: bool,  # noqa: FBT001 - compiled code has no keywords
    means: Any,
    covariances: Any,
    noise: Any,
) -> None:
    """Fill in the states of one volunteer and label at every step, and the process noise before it.

    On entry the first noise is what earlier answers caused; the last one, (T + 1,), becomes what awaits the next step.
    """
    n_classes = len(classes)
    mean, scale, upper, process_noise = prior_mean.copy(), np.empty(n_classes), np.eye(n_classes), noise[0]
    _factorise(classes, prior_covariance, upper, scale)
    rotated, scaled, direction = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for step in range(first, last):
        t = step - first
        process_noise += drift[step]
        noise[t] = process_noise
        if process_noise > 0.0:
            _predict(classes, upper, scale, process_noise, rotated)  # eq:P_prior
        if predicted:
            _store(classes, upper, scale, mean, t, means, covariances)
        truth = probs[item[step]]
        # eta = h' w and r = h' P h, with U' h in `rotated` and D U' h in `scaled`.
        eta, variance = 0.0, 0.0
        for j in range(n_classes):
            total = truth[j]
            for i in range(j):
                total += upper[i, j] * truth[i]
            rotated[j] = total
            scaled[j] = scale[j] * total
            variance += total * scaled[j]
            eta += truth[j] * mean[j]
        odds = math.exp(min(max(eta, -MAX_LOG_ODDS), MAX_LOG_ODDS))
        u_before = odds / (1.0 + odds) / (1.0 + odds)  # u, below eq:q_tau
        if label[step] < 0:
            process_noise = noise_scale * u_before  # z of eq:q_tau
        else:
            # The Beta distribution of eq:Dyn_priorAlpha.
            hits, misses, count = (1.0 + odds) / variance, (1.0 + 1.0 / odds) / variance, weight[step]
            # alpha + delta, beta + 1 - delta, eta' - eta and r - r', "Forward Pass Filtering Steps".
            hit = count * share_of(shares, label, step, target)
            miss = count - hit
            new_hits, new_misses = hits + hit, misses + miss
            shift, reduction = 0.0, 0.0
            if hit > 0.0:
                shift, reduction = math.log1p(hit / hits), hit / hits / new_hits
            if miss > 0.0:
                shift, reduction = shift - math.log1p(miss / misses), reduction + miss / misses / new_misses
            total = new_hits + new_misses
            process_noise = noise_scale * max(new_hits / total * (new_misses / total) - u_before, 0.0)  # eq:q_tau
            # Erratum 1: the answer amounts to an observation of eta with variance r r' / (r - r'), the inverse of this.
            precision = reduction / (variance * (1.0 / new_hits + 1.0 / new_misses))
            innovation = 1.0
            for j in range(n_classes):
                previous = innovation
                innovation += rotated[j] * scaled[j] * precision
                scale[j] *= previous / innovation
                factor = -rotated[j] * precision / previous
                direction[j] = scaled[j]
                for i in range(j):
                    old = upper[i, j]
                    upper[i, j] = old + factor * direction[i]
                    direction[i] += scaled[j] * old
            # w + K (eta' - eta), with P h in `direction`.
            for j in range(n_classes):
                mean[j] += direction[j] / variance * shift
        if not predicted:
            _store(classes, upper, scale, mean, t, means, covariances)
    noise[last - first] = process_noise


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_published(classes: Any, n_steps: int, means: Any, covariances: Any, noise: Any) -> None:
    """Turn the filtered states of one volunteer and label into smoothed ones.

    The recursion of Rauch, Tung and Striebel gives the states of "Backward Pass Smoothing Steps" without erratum 2.
    """
    n_classes = len(classes)
    square = (n_classes, n_classes)
    lower, gain, product, difference = np.empty(square), np.empty(square), np.empty(square), np.empty(n_classes)
    for t in range(n_steps - 2, -1, -1):
        process_noise = noise[t + 1]
        if process_noise == 0.0:
            for i in range(n_classes):
                means[t, i] = means[t + 1, i]
                for j in range(n_classes):
                    covariances[t, i, j] = covariances[t + 1, i, j]
            continue
        filtered, following = covariances[t], covariances[t + 1]
        # P + q I = L D L', with D on the diagonal of `lower`; then gain = (P + q I)^-1 P, which is symmetric.
        for j in range(n_classes):
            for i in range(j, n_classes):
                total = filtered[i, j] + (process_noise if i == j else 0.0)
                for m in range(j):
                    total -= lower[i, m] * lower[m, m] * lower[j, m]
                lower[i, j] = max(total, process_noise) if i == j else total / lower[j, j]
        for column in range(n_classes):
            for i in range(n_classes):
                total = filtered[i, column]
                for m in range(i):
                    total -= lower[i, m] * gain[m, column]
                gain[i, column] = total
            for i in range(n_classes - 1, -1, -1):
                total = gain[i, column] / lower[i, i]
                for m in range(i + 1, n_classes):
                    total -= lower[m, i] * gain[m, column]
                gain[i, column] = total
        # w + G (w_next - w) and q G + G P_next G'.
        for i in range(n_classes):
            difference[i] = means[t + 1, i] - means[t, i]
            for j in range(n_classes):
                total = 0.0
                for m in range(n_classes):
                    total += gain[i, m] * following[m, j]
                product[i, j] = total
        for i in range(n_classes):
            for m in range(n_classes):
                means[t, i] += gain[i, m] * difference[m]
            for j in range(i, n_classes):
                total = process_noise * gain[i, j]
                for m in range(n_classes):
                    total += product[i, m] * gain[j, m]
                covariances[t, i, j] = total
                covariances[t, j, i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def scan_published(
    classes: Any,
    volunteers: Any,
    first_label: int,
    last_label: int,
    starts: Any,
    item: Any,
    label: Any,
    weight: Any,
    drift: Any,
    shares: Any,
    probs: Any,
    prior_means: Any,
    prior_covariances: Any,
    prior_noise: Any,
    noise_scale: float,
    stage: int,
    means: Any,
    covariances: Any,
    noise: Any,
    rows: Any,
    noises: Any,
    last_means: Any,
    last_covariances: Any,
    last_noise: Any,
) -> None:
    """Write the Dirichlet rows of some volunteers and labels.

    Write the noise before each step, too, (S, L), unless `noises` is empty, and the last states unless these are.
    """
    for k in volunteers:
        first, last = starts[k], starts[k + 1]
        prior_row = 0 if len(prior_means) == 1 else k
        for target in range(first_label, last_label):
            noise[0] = prior_noise[prior_row, target]
            filter_published(
                classes,
                first,
                last,
                target,
                item,
                label,
                weight,
                drift,
                shares,
                probs,
                prior_means[prior_row, target],
                prior_covariances[prior_row, target],
                noise_scale,
                stage == 0,
                means,
                covariances,
                noise,
            )
            if len(noises) > 0:
                noises[first:last, target] = noise[: last - first]
            if len(last_means) > 0:
                last_means[k, target] = means[last - first - 1]
                last_covariances[k, target] = covariances[last - first - 1]
                last_noise[k, target] = noise[last - first]
            if stage == 2:
                smooth_published(classes, last - first, means, covariances, noise)
            # Dirichlet rows, eq:DynVB_alpha.
            for t in range(last - first):
                for j in range(len(classes)):
                    odds = math.exp(min(max(means[t, j], -MAX_LOG_ODDS), MAX_LOG_ODDS))
                    rows[first + t, j, target] = (1.0 + odds) / covariances[t, j, j]
