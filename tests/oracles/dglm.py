"""Dynamic IBCC's states of one volunteer and label, as one joint Gaussian and by the equations of the paper.

Nothing here uses crowdgraph's kernels. A sequence is one volunteer's steps, seen by one label: the truth `h` of the
items, (T, J); `hit`, which is True, False, or None where the item was not answered, or the share of a soft answer that
the label has; how much each answer counts; and the drift before each step. The prior is given as counts for and
against the label, (J,). Every function returns means, (T, J), and covariances, (T, J, J), by stage. Comments cite the
paper as those in `crowdgraph.kernels` do.
"""

from typing import NamedTuple

import numpy as np


class Sequence(NamedTuple):
    truth: np.ndarray
    hit: list
    weight: np.ndarray
    drift: np.ndarray
    hits: np.ndarray
    misses: np.ndarray
    noise_scale: float


class PseudoObservation(NamedTuple):
    """A pseudo-observation of ``direction @ w`` at a step."""

    step: int
    direction: np.ndarray
    value: float
    variance: float


def logistic(x):
    return 1 / (1 + np.exp(-x)) if x > 0 else np.exp(x) / (1 + np.exp(x))


def bernoulli_variance(eta):
    return logistic(eta) * logistic(-eta)


def condition_on(start, variance, noise, observations):
    """Condition the joint Gaussian of w_1, ..., w_T on pseudo-observations; return means and covariances of all steps.

    The covariance of w_s and w_t is P_0 plus the noise before the earlier of them. All observations are used at once,
    each in units of its own standard deviation, so that the matrix to be solved has no eigenvalue below one.
    """
    n_steps, n_classes = len(noise), len(start)
    total_noise = np.cumsum(noise)
    earlier = np.minimum.outer(np.arange(n_steps), np.arange(n_steps))
    joint = np.kron(np.ones((n_steps, n_steps)), np.diag(variance)) + np.kron(total_noise[earlier], np.eye(n_classes))
    means = np.tile(start, n_steps)
    if observations:
        design = np.zeros((len(observations), n_steps * n_classes))
        for row, observation in enumerate(observations):
            design[row, observation.step * n_classes : (observation.step + 1) * n_classes] = (
                observation.direction / np.sqrt(observation.variance)
            )
        innovation = (
            np.array([observation.value / np.sqrt(observation.variance) for observation in observations])
            - design @ means
        )
        cross_covariance = joint @ design.T
        gain = np.linalg.solve(design @ cross_covariance + np.eye(len(observations)), cross_covariance.T).T
        means, joint = means + gain @ innovation, joint - gain @ cross_covariance.T
    blocks = joint.reshape(n_steps, n_classes, n_steps, n_classes)
    return means.reshape(n_steps, n_classes), np.array([blocks[t, :, t] for t in range(n_steps)])


def update_beta(eta, r, *, hit, weight):
    """Update a Beta distribution by an answer; return log odds and variance after it, and the reduction of variance."""
    a, b = (1 + np.exp(eta)) / r, (1 + np.exp(-eta)) / r  # eq:Dyn_priorAlpha
    for_label, against = weight * hit, weight * (1 - hit)
    reduction = for_label / (a * (a + for_label)) + against / (b * (b + against))
    a, b = a + for_label, b + against
    return np.log(a / b), 1 / a + 1 / b, reduction


def pseudo_observation(step, direction, eta, r, *, hit, weight):
    """Return the pseudo-observation that moves log odds as the Beta distribution does, and the log odds after it."""
    new_eta, new_r, reduction = update_beta(eta, r, hit=hit, weight=weight)
    return PseudoObservation(step, direction, eta + (new_eta - eta) / (reduction / r), r * new_r / reduction), new_eta


def joint_published(sequence):
    """Treat an answer as published, as a pseudo-observation of h @ w; every step conditions the entire path anew."""
    truth, hit, weight, drift, hits, misses, noise_scale = sequence
    start, variance = np.log(hits / misses), 1 / hits + 1 / misses
    noise, observations, next_noise = [], [], 0.0
    stages = {"predicted": ([], []), "filtered": ([], [])}

    def record(stage):
        state = [part[-1] for part in condition_on(start, variance, noise, observations)]
        for part, value in zip(stages[stage], state, strict=True):
            part.append(value)
        return state

    for t, h in enumerate(truth):
        noise.append(next_noise + drift[t])
        mean, covariance = record("predicted")
        eta = h @ mean
        if hit[t] is None:
            next_noise = noise_scale * bernoulli_variance(eta)
        else:
            observation, _ = pseudo_observation(t, h, eta, h @ covariance @ h, hit=hit[t], weight=weight[t])
            observations.append(observation)
        mean, _ = record("filtered")
        if hit[t] is not None:
            next_noise = noise_scale * max(bernoulli_variance(h @ mean) - bernoulli_variance(eta), 0)
    states = {stage: tuple(np.array(part) for part in parts) for stage, parts in stages.items()}
    return states | {"smoothed": condition_on(start, variance, noise, observations)}


def joint_weighted(sequence):
    """Treat an answer by shares: every class is a path of its own that sees h_j of it; all share the noise."""
    truth, hit, weight, drift, hits, misses, noise_scale = sequence
    n_steps, n_classes = truth.shape
    start, variance = np.log(hits / misses), 1 / hits + 1 / misses
    noise, observations, next_noise = [], [[] for _ in range(n_classes)], 0.0
    stages = ("predicted", "filtered", "smoothed")
    means = {stage: np.zeros((n_steps, n_classes)) for stage in stages}
    covariances = {stage: np.zeros((n_steps, n_classes, n_classes)) for stage in stages}

    def record(stage, steps, j):
        path = condition_on(start[j : j + 1], variance[j : j + 1], noise, observations[j])
        means[stage][steps, j], covariances[stage][steps, j, j] = path[0][steps, 0], path[1][steps, 0, 0]
        return path[0][steps, 0], path[1][steps, 0, 0]

    for t, h in enumerate(truth):
        noise.append(next_noise + drift[t])
        next_noise = 0.0
        for j in range(n_classes):
            eta, r = record("predicted", t, j)
            share = weight[t] * h[j]
            if hit[t] is None:
                next_noise += noise_scale * h[j] * bernoulli_variance(eta)
            elif share > 0:
                observation, new_eta = pseudo_observation(t, np.ones(1), eta, r, hit=hit[t], weight=share)
                observations[j].append(observation)
                next_noise += noise_scale * max(bernoulli_variance(new_eta) - bernoulli_variance(eta), 0)
            record("filtered", t, j)
    for j in range(n_classes):
        record("smoothed", slice(None), j)
    return {stage: (means[stage], covariances[stage]) for stage in stages}


def recursion(sequence, *, printed_covariance=False, printed_smoother=False):
    """Run the filter and the modified Bryson-Frazier smoother, line by line; on request with the paper's misprints.

    Erratum 1, the covariance: the paper has (I - K h') P (1 - r' / r) where it must be P - (1 - r' / r) K h' P.
    Erratum 2, the smoother: the paper has C = I - K h', multiplied as C lambda and C Lambda C', where it must be
    C = I - (1 - r' / r) K h', multiplied as C' lambda and C' Lambda C.
    """
    truth, hit, weight, drift, hits, misses, noise_scale = sequence
    identity = np.eye(truth.shape[1])
    w, P = np.log(hits / misses), np.diag(1 / hits + 1 / misses)
    q, steps = 0.0, []
    predicted, filtered, smoothed = [], [], []
    for t, h in enumerate(truth):
        P = P + (q + drift[t]) * identity  # eq:P_prior
        predicted.append((w, P))
        eta, r = h @ w, h @ P @ h
        K = P @ h / r
        if hit[t] is None:
            shift, g, C = 0.0, 0.0, identity
            q = noise_scale * bernoulli_variance(eta)  # z of eq:q_tau
        else:
            # "Forward Pass Filtering Steps".
            new_eta, new_r, reduction = update_beta(eta, r, hit=hit[t], weight=weight[t])
            shift, g = new_eta - eta, reduction / r
            w = w + K * shift
            printed = (identity - np.outer(K, h)) @ P * (1 - new_r / r)
            P = printed if printed_covariance else P - g * np.outer(K, h) @ P
            # The printed smoother multiplies by C and C'; here C' stands for it, so that the lines below are the same.
            C = (identity - np.outer(K, h)).T if printed_smoother else identity - g * np.outer(K, h)
            q = noise_scale * max(bernoulli_variance(h @ w) - bernoulli_variance(eta), 0)  # eq:q_tau
        filtered.append((w, P))
        steps.append((h, r, shift, g, C))
    # "Backward Pass Smoothing Steps".
    adjoint, adjoint_covariance = np.zeros(len(identity)), np.zeros_like(identity)
    for (w, P), (h, r, shift, g, C) in zip(reversed(filtered), reversed(steps), strict=True):
        smoothed.insert(0, (w - P @ adjoint, P - P @ adjoint_covariance @ P))
        adjoint = -h * shift / r + C.T @ adjoint
        adjoint_covariance = g * np.outer(h, h) / r + C.T @ adjoint_covariance @ C
    stages = {"predicted": predicted, "filtered": filtered, "smoothed": smoothed}
    return {stage: tuple(np.array(part) for part in zip(*states, strict=True)) for stage, states in stages.items()}
