"""Expectation maximisation on plain arrays, where every volunteer has one accuracy (a coin)."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

__all__ = ["CodedAnswers", "OneCoinFit", "class_posterior", "fit_one_coin", "one_coin_confusion"]


class CodedAnswers(NamedTuple):
    """Answers as codes of volunteers, items and labels, each of shape (A,), and how many items there are."""

    volunteer: Array
    item: Array
    label: Array
    n_items: int


class OneCoinFit(NamedTuple):
    """Where the iteration ended: class probabilities (N, J), class proportions (J,), accuracies (K,), and how."""

    item_probs: Array
    class_probs: Array
    accuracy: Array
    n_iter: int
    change: float


def class_posterior(answers: CodedAnswers, confusion: Array, class_probs: Array) -> Array:
    """Return the probability of each class for each item, (N, J), from confusion of shape (K, J, L).

    Dawid and Skene (1979), equation 2.5.
    """
    logs = np.log(confusion)[answers.volunteer, :, answers.label]
    sums = [np.bincount(answers.item, column, minlength=answers.n_items) for column in logs.T]
    scores = np.log(class_probs) + np.stack(sums, axis=1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    posterior: Array = weights / weights.sum(axis=1, keepdims=True)
    return posterior


def one_coin_confusion(accuracy: Array, n_classes: int) -> Array:
    """Return confusion, (K, J, J), of volunteers who are right with a probability, and else give any other label."""
    wrong = (1 - accuracy) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), accuracy[:, None, None], wrong[:, None, None])


def fit_one_coin(
    answers: CodedAnswers, start: Array, *, n_volunteers: int, max_iter: int, tol: float, least: float
) -> OneCoinFit:
    """Maximise the likelihood of class proportions and of one accuracy for each volunteer.

    Parameters
    ----------
    answers
        The answers; label `j` is right for class `j`.
    start
        The first class probabilities, of shape (N, J).
    n_volunteers
        How many volunteers there are; each has an answer.
    max_iter, tol
        When to stop: after so many sweeps, or when no class probability changes by more.
    least
        The least probability of an accuracy, a mistake or a class, so that none is zero.
    """
    n_classes, n_answers = start.shape[1], np.bincount(answers.volunteer, minlength=n_volunteers)

    def estimates(probs: Array) -> tuple[Array, Array]:
        n_right = np.bincount(answers.volunteer, probs[answers.item, answers.label], minlength=n_volunteers)
        return (n_right / n_answers).clip(least, 1 - least), probs.mean(axis=0).clip(least, 1)

    probs, change, n_iter = start, np.inf, 0
    accuracy, class_probs = estimates(probs)
    while n_iter < max_iter and change > tol:
        following = class_posterior(answers, one_coin_confusion(accuracy, n_classes), class_probs)
        change, probs, n_iter = float(np.abs(following - probs).max()), following, n_iter + 1
        accuracy, class_probs = estimates(probs)
    return OneCoinFit(probs, class_probs, accuracy, n_iter, change)
