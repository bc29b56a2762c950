"""The compiled scan for answers that count once, for the mixture of an item's classes, as published.

Covariances are kept as U D U' (Bierman 1977, Agee and Turner 1972) and smoothed as sums of positive parts, so that no
rounding makes a variance negative. Functions take `classes`, the tuple (0, ..., J - 1), whose length is known when
compiling, so that short loops over the classes are unrolled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from crowdgraph.kernels.dglm import MAX_LOG_ODDS

__all__ = ["filter_published", "scan_published", "smooth_published"]


@njit(cache=True, nogil=True, error_model="numpy")
def _widen(classes: Any, upper: Any, scale: Any, noise: float, turned: Any) -> None:
    """Add noise to every variance of U D U', one after another, each as a rank-one update without subtractions."""
    for place in range(len(classes)):
        for j in range(place):
            turned[j] = 0.0
        turned[place] = 1.0
        added = noise
        for j in range(place, -1, -1):
            before = scale[j]
            scale[j] = before + added * turned[j] * turned[j]
            push = added * turned[j] / scale[j]
            for i in range(j):
                turned[i] -= turned[j] * upper[i, j]
                upper[i, j] += push * turned[i]
            added *= before / scale[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _store(classes: Any, upper: Any, scale: Any, mean: Any, t: int, means: Any, covariances: Any) -> None:
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
    probs: Any,
    prior_hits: Any,
    prior_misses: Any,
    noise_scale: float,
    predicted: bool,  # noqa: FBT001 - compiled code has no keywords
    means: Any,
    covariances: Any,
    noise: Any,
) -> None:
    """Fill in the states of one volunteer and label at every step, and the noise before it."""
    n_classes = len(classes)
    mean, scale = np.log(prior_hits / prior_misses), 1.0 / prior_hits + 1.0 / prior_misses
    upper = np.eye(n_classes)
    turned, spread, direction = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    gained = 0.0
    for step in range(first, last):
        t = step - first
        gained += drift[step]
        noise[t] = gained
        if gained > 0.0:
            _widen(classes, upper, scale, gained, turned)
        if predicted:
            _store(classes, upper, scale, mean, t, means, covariances)
        truth = probs[item[step]]
        eta, variance = 0.0, 0.0
        for j in range(n_classes):
            total = truth[j]
            for i in range(j):
                total += upper[i, j] * truth[i]
            turned[j] = total
            spread[j] = scale[j] * total
            variance += total * spread[j]
            eta += truth[j] * mean[j]
        odds = math.exp(min(max(eta, -MAX_LOG_ODDS), MAX_LOG_ODDS))
        before = odds / (1.0 + odds) / (1.0 + odds)
        if label[step] < 0:
            gained = noise_scale * before
        else:
            hits, misses, counted = (1.0 + odds) / variance, (1.0 + 1.0 / odds) / variance, weight[step]
            if label[step] == target:
                more_hits, more_misses = hits + counted, misses
                moved = math.log1p(counted / hits)
                learned = counted / hits / more_hits
            else:
                more_hits, more_misses = hits, misses + counted
                moved = -math.log1p(counted / misses)
                learned = counted / misses / more_misses
            total = more_hits + more_misses
            gained = noise_scale * max(more_hits / total * (more_misses / total) - before, 0.0)
            # The precision of the pseudo-observation that the answer amounts to.
            precision = learned / (variance * (1.0 / more_hits + 1.0 / more_misses))
            grown = 1.0
            for j in range(n_classes):
                smaller = grown
                grown += turned[j] * spread[j] * precision
                scale[j] *= smaller / grown
                pull = -turned[j] * precision / smaller
                direction[j] = spread[j]
                for i in range(j):
                    old = upper[i, j]
                    upper[i, j] = old + pull * direction[i]
                    direction[i] += spread[j] * old
            for j in range(n_classes):
                mean[j] += direction[j] / variance * moved
        if not predicted:
            _store(classes, upper, scale, mean, t, means, covariances)


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_published(classes: Any, n_steps: int, means: Any, covariances: Any, noise: Any) -> None:
    """Turn the filtered states of one volunteer and label into smoothed ones."""
    n_classes = len(classes)
    square = (n_classes, n_classes)
    lower, share, product, moved = np.empty(square), np.empty(square), np.empty(square), np.empty(n_classes)
    for t in range(n_steps - 2, -1, -1):
        gained = noise[t + 1]
        if gained == 0.0:
            for i in range(n_classes):
                means[t, i] = means[t + 1, i]
                for j in range(n_classes):
                    covariances[t, i, j] = covariances[t + 1, i, j]
            continue
        own, later = covariances[t], covariances[t + 1]
        # P + q I = L D L', with D on the diagonal of `lower`; then share = (P + q I)^-1 P, which is symmetric.
        for j in range(n_classes):
            for i in range(j, n_classes):
                total = own[i, j] + (gained if i == j else 0.0)
                for m in range(j):
                    total -= lower[i, m] * lower[m, m] * lower[j, m]
                lower[i, j] = max(total, gained) if i == j else total / lower[j, j]
        for column in range(n_classes):
            for i in range(n_classes):
                total = own[i, column]
                for m in range(i):
                    total -= lower[i, m] * share[m, column]
                share[i, column] = total
            for i in range(n_classes - 1, -1, -1):
                total = share[i, column] / lower[i, i]
                for m in range(i + 1, n_classes):
                    total -= lower[m, i] * share[m, column]
                share[i, column] = total
        for i in range(n_classes):
            moved[i] = means[t + 1, i] - means[t, i]
            for j in range(n_classes):
                total = 0.0
                for m in range(n_classes):
                    total += share[i, m] * later[m, j]
                product[i, j] = total
        for i in range(n_classes):
            for m in range(n_classes):
                means[t, i] += share[i, m] * moved[m]
            for j in range(i, n_classes):
                total = gained * share[i, j]
                for m in range(n_classes):
                    total += product[i, m] * share[j, m]
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
    probs: Any,
    prior_hits: Any,
    prior_misses: Any,
    noise_scale: float,
    stage: int,
    means: Any,
    covariances: Any,
    noise: Any,
    found: Any,
) -> None:
    """Write the Dirichlets of some volunteers and labels, as published."""
    for k in volunteers:
        first, last = starts[k], starts[k + 1]
        own = 0 if len(prior_hits) == 1 else k
        for target in range(first_label, last_label):
            filter_published(
                classes,
                first,
                last,
                target,
                item,
                label,
                weight,
                drift,
                probs,
                prior_hits[own, target],
                prior_misses[own, target],
                noise_scale,
                stage == 0,
                means,
                covariances,
                noise,
            )
            if stage == 2:
                smooth_published(classes, last - first, means, covariances, noise)
            for t in range(last - first):
                for j in range(len(classes)):
                    odds = math.exp(min(max(means[t, j], -MAX_LOG_ODDS), MAX_LOG_ODDS))
                    found[first + t, j, target] = (1.0 + odds) / covariances[t, j, j]
