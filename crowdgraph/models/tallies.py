"""Counting votes and adding scores, with or without weights learned from gold."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.settings import is_number
from crowdgraph.errors import GoldError, ParameterError, quote, suggestion
from crowdgraph.models.base import Answers, Outcome

__all__ = ["check_factor", "learned_log_weights", "mean_score_outcome", "vote_outcome"]


def vote_outcome(answers: Answers, votes: Array, *, log_weights: Array | None, output: str) -> Outcome:
    """Each item's share of votes for each class or, for the output "winner", all for the class with most votes."""
    targets = votes[answers.label]
    voting = targets >= 0
    weights = _response_weights(answers, log_weights, counted=voting)
    n_items, n_classes = len(answers.graph.items), len(answers.graph.classes)
    cells = answers.item[voting].astype(np.int64) * n_classes + targets[voting]
    tallies = np.bincount(cells, weights[voting], minlength=n_items * n_classes).reshape(n_items, n_classes)
    totals = tallies.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, tallies / np.where(totals > 0, totals, 1), 1 / n_classes)
    if output == "winner":
        # Weights are added in the order of the answers, so that equals may differ by rounding.
        wins = shares >= shares.max(axis=1, keepdims=True) - 1e-12
        shares = wins / wins.sum(axis=1, keepdims=True)
    return Outcome(item_probs=shares, class_probs=shares.mean(axis=0), diagnostics=_told(log_weights))


def mean_score_outcome(
    answers: Answers, scores: Array, *, log_weights: Array | None, positive: Hashable | None
) -> Outcome:
    """Each item's weighted mean score, moved to [0, 1], as the probability of the positive one of two classes."""
    graph = answers.graph
    place = positive_class(graph, scores, positive)
    lowest, highest = float(scores.min()), float(scores.max())
    if lowest == highest:
        raise ParameterError(f"All labels have the score {lowest:g}, so their mean tells nothing; use scores={{...}}.")
    if not np.isfinite(highest - lowest):
        raise ParameterError(f"Scores from {lowest:g} to {highest:g} are too far apart to be averaged; rescale them.")
    weights = _response_weights(answers, log_weights, counted=np.ones(len(answers), dtype=bool))
    n_items = len(graph.items)
    totals = np.bincount(answers.item, weights, minlength=n_items)
    sums = np.bincount(answers.item, weights * (scores[answers.label] - lowest) / (highest - lowest), minlength=n_items)
    share = np.where(totals > 0, sums / np.where(totals > 0, totals, 1), 0.5).clip(0, 1)
    probs = np.empty((n_items, 2))
    probs[:, place], probs[:, 1 - place] = share, 1 - share
    return Outcome(item_probs=probs, class_probs=probs.mean(axis=0), diagnostics=_told(log_weights))


def positive_class(graph: CrowdGraph, scores: Array, positive: Hashable | None) -> int:
    """Which of two classes high scores speak for: the named one, the one the highest label names, or the last."""
    if len(graph.classes) != 2:
        raise ParameterError(
            f"A mean score tells two classes apart; the graph has {len(graph.classes)}: {quote(graph.classes)}. Use a "
            "model for several classes, such as MajorityVote or IBCC."
        )
    if positive is None:
        top = graph.labels[int(scores.argmax())]
        positive = top if set(graph.labels) <= set(graph.classes) else graph.classes[-1]
    if positive not in graph.classes:
        raise ParameterError(
            f"positive={positive!r} is no class; the classes are {quote(graph.classes)}."
            f"{suggestion(positive, graph.classes)}"
        )
    return graph.classes.index(positive)


def learned_log_weights(answers: Answers, votes: Array, *, factor: float) -> Array:
    """The logarithm of each volunteer's weight, of shape (K,): it falls by a factor at each mistake on a gold item.

    After Littlestone and Warmuth (1994). What counts is the weight after the last mistake. Soft gold and labels that
    vote for no class teach nothing.
    """
    gold = answers.graph.gold.codes
    if not (gold >= 0).any():
        raise GoldError(
            "Weights are learned from mistakes on items whose class is known, and the graph has no such gold. Add some "
            "with graph.with_gold({item: class, ...}), or use MajorityVote or MeanScore."
        )
    truth, voted = gold[answers.item], votes[answers.label]
    mistaken = (truth >= 0) & (voted >= 0) & (voted != truth)
    n_mistakes: Array = np.bincount(answers.volunteer[mistaken], minlength=len(answers.graph.volunteers))
    return np.asarray(n_mistakes * np.log(factor))


def check_factor(factor: object) -> None:
    """Raise unless the factor of a mistake lies between 0 and 1."""
    if not is_number(factor) or not 0 < factor < 1:  # type: ignore[operator]
        raise ParameterError(f"factor={factor!r} must lie between 0 and 1: a mistake multiplies a weight by it.")


def _response_weights(answers: Answers, log_weights: Array | None, *, counted: Array) -> Array:
    """A weight for each answer, relative to the largest that is counted for the item, so that some remain."""
    if log_weights is None:
        return np.ones(len(answers))
    logs = log_weights[answers.volunteer]
    largest = np.full(len(answers.graph.items), -np.inf)
    np.maximum.at(largest, answers.item[counted], logs[counted])
    return np.where(counted, np.exp(np.minimum(logs - largest[answers.item], 0.0)), 0.0)


def _told(log_weights: Array | None) -> dict[str, Array]:
    return {} if log_weights is None else {"weights": np.exp(log_weights)}
