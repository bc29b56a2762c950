"""Dynamic IBCC's states of one volunteer and label, as one big Gaussian and as the equations stand in the paper.

Nothing here knows crowdgraph's kernels. A sequence is one volunteer's steps, seen by one label: the truth `h` of the
items, (T, J); `hit`, which is True, False, or None where the item was not answered; how much each answer counts; and
the drift before each step. The prior are counts for and against the label, (J,). Every function returns means, (T, J),
and covariances, (T, J, J), by stage.
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


class Seen(NamedTuple):
    """A pseudo-observation of ``direction @ w`` at a step."""

    step: int
    direction: np.ndarray
    value: float
    variance: float


def logistic(x):
    return 1 / (1 + np.exp(-x)) if x > 0 else np.exp(x) / (1 + np.exp(x))


def bernoulli_variance(eta):
    return logistic(eta) * logistic(-eta)


def conditioned(start, spread, noise, seen):
    """The joint Gaussian of w_1, ..., w_T given pseudo-observations: means and covariances of the single steps.

    The covariance of w_s and w_t is P_0 plus the noise before the earlier of them. All observations are taken in at
    once, each in units of its own standard deviation, so that the matrix that is solved has no eigenvalue below one.
    """
    n_steps, n_classes = len(noise), len(start)
    walked = np.cumsum(noise)
    earlier = np.minimum.outer(np.arange(n_steps), np.arange(n_steps))
    joint = np.kron(np.ones((n_steps, n_steps)), np.diag(spread)) + np.kron(walked[earlier], np.eye(n_classes))
    means = np.tile(start, n_steps)
    if seen:
        look = np.zeros((len(seen), n_steps * n_classes))
        for row, one in enumerate(seen):
            look[row, one.step * n_classes : (one.step + 1) * n_classes] = one.direction / np.sqrt(one.variance)
        news = np.array([one.value / np.sqrt(one.variance) for one in seen]) - look @ means
        crossed = joint @ look.T
        gain = np.linalg.solve(look @ crossed + np.eye(len(seen)), crossed.T).T
        means, joint = means + gain @ news, joint - gain @ crossed.T
    blocks = joint.reshape(n_steps, n_classes, n_steps, n_classes)
    return means.reshape(n_steps, n_classes), np.array([blocks[t, :, t] for t in range(n_steps)])


def counted(eta, r, *, hit, weight):
    """What the Beta distribution makes of an answer: log odds and variance after it, and the variance it took away."""
    a, b = (1 + np.exp(eta)) / r, (1 + np.exp(-eta)) / r
    taken = weight / (a * (a + weight)) if hit else weight / (b * (b + weight))
    a, b = (a + weight, b) if hit else (a, b + weight)
    return np.log(a / b), 1 / a + 1 / b, taken


def observed(step, direction, eta, r, *, hit, weight):
    """The pseudo-observation that moves log odds as the Beta distribution does, and the log odds after it."""
    new_eta, new_r, taken = counted(eta, r, hit=hit, weight=weight)
    return Seen(step, direction, eta + (new_eta - eta) / (taken / r), r * new_r / taken), new_eta


def joint_published(sequence):
    """As published: an answer is a pseudo-observation of h @ w. Every step conditions the whole path anew."""
    truth, hit, weight, drift, hits, misses, noise_scale = sequence
    start, spread = np.log(hits / misses), 1 / hits + 1 / misses
    noise, seen, caused = [], [], 0.0
    stages = {"predicted": ([], []), "filtered": ([], [])}

    def note(stage):
        state = [part[-1] for part in conditioned(start, spread, noise, seen)]
        for part, value in zip(stages[stage], state, strict=True):
            part.append(value)
        return state

    for t, h in enumerate(truth):
        noise.append(caused + drift[t])
        mean, covariance = note("predicted")
        eta = h @ mean
        if hit[t] is None:
            caused = noise_scale * bernoulli_variance(eta)
        else:
            one, _ = observed(t, h, eta, h @ covariance @ h, hit=hit[t], weight=weight[t])
            seen.append(one)
        mean, _ = note("filtered")
        if hit[t] is not None:
            caused = noise_scale * max(bernoulli_variance(h @ mean) - bernoulli_variance(eta), 0)
    found = {stage: tuple(np.array(part) for part in parts) for stage, parts in stages.items()}
    return found | {"smoothed": conditioned(start, spread, noise, seen)}


def joint_weighted(sequence):
    """By shares: every class is a path of its own that sees h_j of an answer; the noise of all is one."""
    truth, hit, weight, drift, hits, misses, noise_scale = sequence
    n_steps, n_classes = truth.shape
    start, spread = np.log(hits / misses), 1 / hits + 1 / misses
    noise, seen, caused = [], [[] for _ in range(n_classes)], 0.0
    stages = ("predicted", "filtered", "smoothed")
    means = {stage: np.zeros((n_steps, n_classes)) for stage in stages}
    covariances = {stage: np.zeros((n_steps, n_classes, n_classes)) for stage in stages}

    def note(stage, t, j):
        path = conditioned(start[j : j + 1], spread[j : j + 1], noise, seen[j])
        means[stage][t, j], covariances[stage][t, j, j] = path[0][t, 0], path[1][t, 0, 0]
        return path[0][t, 0], path[1][t, 0, 0]

    for t, h in enumerate(truth):
        noise.append(caused + drift[t])
        caused = 0.0
        for j in range(n_classes):
            eta, r = note("predicted", t, j)
            share = weight[t] * h[j]
            if hit[t] is None:
                caused += noise_scale * h[j] * bernoulli_variance(eta)
            elif share > 0:
                one, new_eta = observed(t, np.ones(1), eta, r, hit=hit[t], weight=share)
                seen[j].append(one)
                caused += noise_scale * max(bernoulli_variance(new_eta) - bernoulli_variance(eta), 0)
            note("filtered", t, j)
    for t in range(n_steps):
        for j in range(n_classes):
            note("smoothed", t, j)
    return {stage: (means[stage], covariances[stage]) for stage in stages}


def recursion(sequence, *, printed_covariance=False, printed_smoother=False):
    """The filter and the modified Bryson-Frazier smoother, line by line; on request with the paper's misprints.

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
        P = P + (q + drift[t]) * identity
        predicted.append((w, P))
        eta, r = h @ w, h @ P @ h
        K = P @ h / r
        if hit[t] is None:
            moved, g, C = 0.0, 0.0, identity
            q = noise_scale * bernoulli_variance(eta)
        else:
            new_eta, new_r, taken = counted(eta, r, hit=hit[t], weight=weight[t])
            moved, g = new_eta - eta, taken / r
            w = w + K * moved
            printed = (identity - np.outer(K, h)) @ P * (1 - new_r / r)
            P = printed if printed_covariance else P - g * np.outer(K, h) @ P
            # The printed smoother multiplies by C and C'; here C' stands for it, so that the lines below are the same.
            C = (identity - np.outer(K, h)).T if printed_smoother else identity - g * np.outer(K, h)
            q = noise_scale * max(bernoulli_variance(h @ w) - bernoulli_variance(eta), 0)
        filtered.append((w, P))
        steps.append((h, r, moved, g, C))
    adjoint, adjoint_covariance = np.zeros(len(identity)), np.zeros_like(identity)
    for (w, P), (h, r, moved, g, C) in zip(reversed(filtered), reversed(steps), strict=True):
        smoothed.insert(0, (w - P @ adjoint, P - P @ adjoint_covariance @ P))
        adjoint = -h * moved / r + C.T @ adjoint
        adjoint_covariance = g * np.outer(h, h) / r + C.T @ adjoint_covariance @ C
    stages = {"predicted": predicted, "filtered": filtered, "smoothed": smoothed}
    return {stage: tuple(np.array(part) for part in zip(*states, strict=True)) for stage, states in stages.items()}
