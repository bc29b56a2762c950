"""The lower bound that the paper prints for Dynamic IBCC, term by term, with state noise kept from zero (erratum 3).

Nothing here uses crowdgraph's kernels. A crowd is the class probabilities of the items, (N, J); the class prior, (J,);
and the volunteers, each with a prior, (J, L), and steps: items, labels (-1 where there is none), weights and drifts.
"""

from typing import NamedTuple

import numpy as np
from oracles.dglm import Sequence, joint_weighted, recursion
from scipy.special import digamma, gammaln


class Volunteer(NamedTuple):
    prior: np.ndarray
    item: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    drift: np.ndarray


def log_beta(counts):
    """ln B of sec:staticLowerBound."""
    return sum(gammaln(count) for count in counts) - gammaln(sum(counts))


def mean_log(counts):
    return [digamma(count) - digamma(sum(counts)) for count in counts]


def mean_log_density(counts, logs):
    """Return the expected log density of a Dirichlet, given the expected logarithms: all terms about Pi and kappa."""
    return -log_beta(counts) + sum((count - 1) * log for count, log in zip(counts, logs, strict=True))


def states(volunteer, probs, *, noise_scale, published):
    """Return the smoothed counts for and against each label, (T, J, L), and the noise before each step, (T, L)."""
    n_classes, n_labels = volunteer.prior.shape
    hits, misses = np.empty((2, len(volunteer.item), n_classes, n_labels))
    noise = np.empty((len(volunteer.item), n_labels))
    for label in range(n_labels):
        sequence = Sequence(
            truth=probs[volunteer.item],
            hit=[None if answer < 0 else bool(answer == label) for answer in volunteer.label],
            weight=volunteer.weight,
            drift=volunteer.drift,
            hits=volunteer.prior[:, label],
            misses=volunteer.prior.sum(axis=1) - volunteer.prior[:, label],
            noise_scale=noise_scale,
        )
        stages = (recursion if published else joint_weighted)(sequence)
        mean, covariance = stages["smoothed"]
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        hits[:, :, label], misses[:, :, label] = (1 + np.exp(mean)) / variance, (1 + np.exp(-mean)) / variance
        # eq:P_prior: the variance grows by the noise from one step to the next.
        noise[0, label] = np.nan
        noise[1:, label] = stages["predicted"][1][1:, 0, 0] - stages["filtered"][1][:-1, 0, 0]
    return hits, misses, noise


def dirichlet(hits, misses, *, published):
    """Return the Dirichlet of one row, (L,): as printed, or one whose labels forget together."""
    if published:
        return hits
    share = [hit / (hit + miss) for hit, miss in zip(hits, misses, strict=True)]
    spread = [part * (1 - part) for part in share]
    scaled = [part / (hit + miss) for part, hit, miss in zip(spread, hits, misses, strict=True)]
    return np.array([part / sum(share) * sum(spread) / sum(scaled) for part in share])


def printed_bound(probs, class_prior, volunteers, *, noise_scale, floor, published):
    n_items, n_classes = probs.shape
    classes = [class_prior[j] + sum(probs[i, j] for i in range(n_items)) for j in range(n_classes)]
    log_kappa = mean_log(classes)
    log_labels, log_prior, log_posterior = 0.0, 0.0, 0.0
    for volunteer in volunteers:
        if len(volunteer.item) == 0:
            continue
        n_labels = volunteer.prior.shape[1]
        hits, misses, noise = states(volunteer, probs, noise_scale=noise_scale, published=published)
        for j in range(n_classes):
            previous = None
            for step, (item, label) in enumerate(zip(volunteer.item, volunteer.label, strict=True)):
                alpha = dirichlet(hits[step, j], misses[step, j], published=published)
                log_pi = mean_log(alpha)
                if previous is None:
                    prior = volunteer.prior[j]
                else:
                    pi = previous / sum(previous)
                    eta = [np.log(pi[own] / sum(pi[m] for m in range(n_labels) if m != own)) for own in range(n_labels)]
                    prior = [(1 + np.exp(eta[own])) / max(noise[step, own], floor) for own in range(n_labels)]
                if label >= 0:
                    log_labels += volunteer.weight[step] * probs[item, j] * log_pi[label]
                log_prior += mean_log_density(prior, log_pi)
                log_posterior += mean_log_density(alpha, log_pi)
                previous = alpha
    log_classes = sum(probs[i, j] * log_kappa[j] for i in range(n_items) for j in range(n_classes))
    log_class_prior = mean_log_density(class_prior, log_kappa)
    log_class_posterior = mean_log_density(classes, log_kappa)
    negative_entropy = sum(p * np.log(p) for p in probs.ravel() if p > 0)
    return (
        log_labels + log_prior + log_classes + log_class_prior - negative_entropy - log_posterior - log_class_posterior
    )
