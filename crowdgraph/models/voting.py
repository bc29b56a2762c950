"""The four baselines: majority vote, weighted majority, mean score and weighted sum.

The module also says which class a label votes for and which number it stands for, for all models.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._maps import release, scratch_array
from crowdgraph.core._memory import resident_bytes
from crowdgraph.core._parameters import choice, number, setting
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.item_scores import name_scores
from crowdgraph.core.soft_answers import AnswerParts, answer_parts
from crowdgraph.errors import GoldError, ParameterError
from crowdgraph.messages import Hint, quote, suggestion
from crowdgraph.models._resources import check_memory, current_resources, require_stored
from crowdgraph.models.base import Model
from crowdgraph.models.label_votes import Scores, Votes, check_mapping, label_scores, vote_codes

__all__ = ["MajorityVote", "MeanScore", "WeightedMajority", "WeightedSum", "vote_shares"]

# How many answers on disk are counted together.
VOTES_TOGETHER = 2**20
# What an answer takes meanwhile, and a class of its item: a label, a class, an item and a cell; a tally and a share.
BYTES_PER_VOTE, BYTES_PER_CELL = 48, 24


def _factor() -> float:
    """Declare the factor of weighted models."""
    return number(
        0.9, valid=lambda value: 0 < value < 1, expected="lie between 0 and 1: a mistake multiplies a weight by it"
    )


@dataclass(frozen=True, kw_only=True)
class MajorityVote(Model):
    """The class with the most votes, where every answer counts the same.

    It uses neither volunteers' skill nor gold, and is the first model to compare others with.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None if it votes for none. Not needed where labels are classes.
    output
        ``"shares"``: class probabilities are shares of the votes; ``"winner"``: 1 for the class with the most votes,
        divided equally in a tie.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "cleo"], "item": ["x", "x", "x"], "label": ["yes", "no", "yes"]})
    >>> cg.MajorityVote().fit(graph).predict()
    {'x': 'yes'}
    """

    name: ClassVar[str] = "majority_vote"
    soft_answers: ClassVar[bool] = True
    streams: ClassVar[bool] = True

    votes: Votes | None = setting(None, check_mapping)
    output: Literal["shares", "winner"] = choice("shares", ("shares", "winner"))

    def _fit(self, graph: CrowdGraph, *, seed: int | None, **_: Any) -> ModelFit:
        shares = vote_shares(graph, vote_codes(graph, self.votes), log_weights=None, output=self.output)
        return self._result(graph, seed=seed, item_probs=lock(shares), class_probs=shares.mean(axis=0))


@dataclass(frozen=True, kw_only=True)
class WeightedMajority(Model):
    """Majority vote in which each mistake on a gold item multiplies a volunteer's weight by a factor.

    After Littlestone and Warmuth, *The Weighted Majority Algorithm* (1994). Weights start at one. The more a volunteer
    answers, the more mistakes they make, so that busy volunteers lose weight even when they are good: one of the
    reasons why IBCC does better. The weights are in ``fit.diagnostics["weights"]``.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None if it votes for none. Not needed where labels are classes.
    factor
        The number by which a mistake multiplies a weight.
    output
        ``"shares"``: class probabilities are shares of the weight; ``"winner"``: 1 for the class with the most weight,
        divided equally in a tie.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "anna", "bert"], "item": ["x", "x", "y", "y"],
    ...      "label": ["yes", "no", "no", "yes"]}, gold={"x": "yes"})
    >>> cg.WeightedMajority().fit(graph).predict()["y"]
    'no'
    """

    name: ClassVar[str] = "weighted_majority"
    soft_answers: ClassVar[bool] = True

    votes: Votes | None = setting(None, check_mapping)
    factor: float = _factor()
    output: Literal["shares", "winner"] = choice("shares", ("shares", "winner"))

    def _fit(self, graph: CrowdGraph, *, seed: int | None, **_: Any) -> ModelFit:
        votes = vote_codes(graph, self.votes)
        log_weights = _learned_log_weights(graph, votes, factor=self.factor)
        shares = vote_shares(graph, votes, log_weights=log_weights, output=self.output)
        return self._result(
            graph,
            seed=seed,
            item_probs=shares,
            class_probs=shares.mean(axis=0),
            diagnostics={"weights": np.exp(log_weights)},
        )


@dataclass(frozen=True, kw_only=True)
class MeanScore(Model):
    """The mean of the labels' scores: how Galaxy Zoo Supernovae ranked its candidates, and how ratings are averaged.

    For two classes the mean is rescaled to [0, 1], between the lowest and the highest score, and used as a probability:
    it ranks items well enough, but it is not calibrated. More classes are scores as well: the two next to the mean
    share the probability so that the expected score, ``fit.expected_scores()``, is the mean.

    Parameters
    ----------
    scores
        For each label the number it stands for; labels that are numbers stand for themselves.
    positive
        Of two classes the one that high scores stand for. If left out, the one named by the highest label or, where
        labels are not classes, the last class.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [-1, 3]}, labels=[-1, 1, 3],
    ...     gold={}, classes=["not supernova", "supernova"])
    >>> cg.MeanScore().fit(graph).item_probs
    array([[0.5, 0.5]])
    """

    name: ClassVar[str] = "mean_score"
    soft_answers: ClassVar[bool] = True

    scores: Scores | None = setting(None, check_mapping)
    positive: Hashable | None = None

    def _fit(self, graph: CrowdGraph, *, seed: int | None, **_: Any) -> ModelFit:
        scores = label_scores(graph, self.scores)
        if len(graph.classes) == 2:
            probs = _mean_score_probs(graph, scores, log_weights=None, positive=self.positive)
        else:
            probs = _probs_of_means(graph, scores, self._class_scores(graph, scores))
        return self._result(graph, seed=seed, item_probs=probs, class_probs=probs.mean(axis=0))

    def _class_scores(self, graph: CrowdGraph, scores: Array) -> Array:
        """Return the numbers that more than two classes stand for: those of labels of the same name, or their own."""
        if self.positive is not None:
            raise ParameterError(
                f"positive={self.positive!r} names one of two classes; the graph has {len(graph.classes)}: "
                f"{quote(graph.classes)}.",
                hint="Leave positive= out.",
            )
        values = name_scores(graph.classes, dict(zip(graph.labels, scores.tolist(), strict=True)), what="classes")
        if len(set(values.tolist())) < len(values):
            raise ParameterError(
                f"Several classes have the same score: {dict(zip(graph.classes, values.tolist(), strict=True))}.",
                hint="Give each class a score of its own: scores={...}.",
            )
        return values


@dataclass(frozen=True, kw_only=True)
class WeightedSum(Model):
    """The weighted mean of the labels' scores, for two classes; weights as in `WeightedMajority`.

    Parameters
    ----------
    scores
        For each label the number it stands for; labels that are numbers stand for themselves.
    votes
        For each label the class it votes for, which defines what a mistake is. Not needed where labels are classes.
    factor
        The number by which a mistake multiplies a weight.
    positive
        The class that high scores stand for, as in `MeanScore`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "anna", "bert"], "item": ["x", "x", "y", "y"], "label": [1, 0, 0, 1]},
    ...     gold={"x": 1})
    >>> cg.WeightedSum(factor=0.5).fit(graph).item_probs[1].round(2)
    array([0.67, 0.33])
    """

    name: ClassVar[str] = "weighted_sum"
    soft_answers: ClassVar[bool] = True

    scores: Scores | None = setting(None, check_mapping)
    votes: Votes | None = setting(None, check_mapping)
    factor: float = _factor()
    positive: Hashable | None = None

    def _fit(self, graph: CrowdGraph, *, seed: int | None, **_: Any) -> ModelFit:
        scores = label_scores(graph, self.scores)
        log_weights = _learned_log_weights(graph, vote_codes(graph, self.votes), factor=self.factor)
        probs = _mean_score_probs(graph, scores, log_weights=log_weights, positive=self.positive)
        return self._result(
            graph,
            seed=seed,
            item_probs=probs,
            class_probs=probs.mean(axis=0),
            diagnostics={"weights": np.exp(log_weights)},
        )


# What labels stand for


# Counting votes and adding scores


def vote_shares(graph: CrowdGraph, votes: Array, *, log_weights: Array | None, output: str) -> Array:
    """Return the share of an item's votes for each class, (N, J), or 1 for the class with the most votes ("winner")."""
    if log_weights is None and current_resources().memory is not None:
        return _streamed_vote_shares(graph, votes, output=output)
    parts = answer_parts(graph)
    targets = votes[parts.label]
    voting = targets >= 0
    weights = _answer_weights(graph, parts, log_weights, counts=voting)
    n_items, n_classes = len(graph.items), len(graph.classes)
    cells = parts.item[voting].astype(np.int64) * n_classes + targets[voting]
    tallies = np.bincount(cells, weights[voting], minlength=n_items * n_classes).reshape(n_items, n_classes)
    return _shares_of(tallies, output=output)


def _streamed_vote_shares(graph: CrowdGraph, votes: Array, *, output: str) -> Array:
    """Return the same for answers on disk, where the shares lie, too."""
    stored, n_classes, memory = require_stored(graph), len(graph.classes), current_resources().memory
    if memory is not None:
        check_memory(resident_bytes() + VOTES_TOGETHER * (BYTES_PER_VOTE + BYTES_PER_CELL * n_classes), memory)
    shares = scratch_array((len(graph.items), n_classes), np.float64)
    for block in stored.answers_by_item(VOTES_TOGETHER):
        n_items = block.last - block.first
        targets = votes[block.label]
        item = np.repeat(np.arange(n_items), np.diff(block.starts))[targets >= 0]
        cells = item * n_classes + targets[targets >= 0]
        tallies = np.bincount(cells, minlength=n_items * n_classes).reshape(n_items, n_classes)
        shares[block.first : block.last] = _shares_of(tallies, output=output)
        release(shares, block.first, block.last)
    return shares


def _shares_of(tallies: Array, *, output: str) -> Array:
    """Return votes for each class, (N, J), as shares of an item's votes, or as 1 for the class with the most."""
    totals, n_classes = tallies.sum(axis=1, keepdims=True), tallies.shape[1]
    shares = np.where(totals > 0, tallies / np.where(totals > 0, totals, 1), 1 / n_classes)
    if output == "winner":
        # Weights are added in the order of the answers, so that equal sums may differ by rounding.
        wins = shares >= shares.max(axis=1, keepdims=True) - 1e-12
        shares = wins / wins.sum(axis=1, keepdims=True)
    return shares


def _mean_score_probs(
    graph: CrowdGraph, scores: Array, *, log_weights: Array | None, positive: Hashable | None
) -> Array:
    """Return class probabilities, (N, 2): an item's weighted mean score, rescaled to [0, 1], for the positive class."""
    parts, positive_code = answer_parts(graph), _positive_code(graph, scores, positive)
    lowest, highest = float(scores.min()), float(scores.max())
    if lowest == highest:
        raise ParameterError(
            f"All labels have the score {lowest:g}, so their mean carries no information.", hint="Use scores={...}."
        )
    if not np.isfinite(highest - lowest):
        raise ParameterError(f"Scores from {lowest:g} to {highest:g} are too far apart to be averaged; rescale them.")
    weights = _answer_weights(graph, parts, log_weights, counts=np.ones(len(parts.label), dtype=bool))
    n_items = len(graph.items)
    totals = np.bincount(parts.item, weights, minlength=n_items)
    sums = np.bincount(parts.item, weights * (scores[parts.label] - lowest) / (highest - lowest), minlength=n_items)
    share = np.where(totals > 0, sums / np.where(totals > 0, totals, 1), 0.5).clip(0, 1)
    probs = np.empty((n_items, 2))
    probs[:, positive_code], probs[:, 1 - positive_code] = share, 1 - share
    return probs


def _probs_of_means(graph: CrowdGraph, scores: Array, class_scores: Array) -> Array:
    """Return class probabilities, (N, J), of which the two classes next to an item's mean score share all."""
    parts, n_items = answer_parts(graph), len(graph.items)
    totals = np.bincount(parts.item, parts.share, minlength=n_items)
    share = 1.0 if parts.share is None else parts.share
    means = np.bincount(parts.item, share * scores[parts.label], minlength=n_items) / np.maximum(totals, 1e-300)
    order = np.argsort(class_scores)
    ranked = class_scores[order]
    means = means.clip(ranked[0], ranked[-1])
    lower = np.clip(np.searchsorted(ranked, means, side="right") - 1, 0, len(ranked) - 2)
    above = (means - ranked[lower]) / (ranked[lower + 1] - ranked[lower])
    probs, rows = np.zeros((n_items, len(ranked))), np.arange(n_items)
    probs[rows, order[lower]], probs[rows, order[lower + 1]] = 1 - above, above
    probs[totals == 0] = 1 / len(ranked)
    return probs


def _positive_code(graph: CrowdGraph, scores: Array, positive: Hashable | None) -> int:
    """Return which of two classes high scores stand for: the named one, that of the highest label, or the last."""
    if len(graph.classes) != 2:
        raise ParameterError(
            f"A weighted sum tells two classes apart; the graph has {len(graph.classes)}: {quote(graph.classes)}.",
            hint="Use a model for several classes, such as MeanScore or OrdinalIBCC.",
        )
    if positive is None:
        top = graph.labels[int(scores.argmax())]
        positive = top if set(graph.labels) <= set(graph.classes) else graph.classes[-1]
    if positive not in graph.classes:
        raise ParameterError(
            f"positive={positive!r} is not a class; the classes are {quote(graph.classes)}."
            f"{suggestion(positive, graph.classes)}"
        )
    return graph.classes.index(positive)


def _learned_log_weights(graph: CrowdGraph, votes: Array, *, factor: float) -> Array:
    """Return the logarithm of each volunteer's weight, of shape (K,): each mistake on a gold item adds ln(factor).

    After Littlestone and Warmuth (1994), with the weight after the last mistake. Soft gold and labels that vote for no
    class are ignored.
    """
    parts, gold = answer_parts(graph), graph.gold.codes
    if not (gold >= 0).any():
        raise GoldError(
            "Weights are learned from mistakes on items whose class is known, and the graph has no such gold.",
            hint=Hint(
                "Add some with graph.with_gold({item: class, ...}), or use MajorityVote or MeanScore.",
                cli="Add some with --gold FILE, or use --model majority_vote or --model mean_score.",
            ),
        )
    truth, voted = gold[parts.item], votes[parts.label]
    mistaken = (truth >= 0) & (voted >= 0) & (voted != truth)
    share = None if parts.share is None else parts.share[mistaken]
    n_mistakes: Array = np.bincount(parts.volunteer[mistaken], share, minlength=len(graph.volunteers))
    return np.asarray(n_mistakes * np.log(factor))


def _answer_weights(graph: CrowdGraph, parts: AnswerParts, log_weights: Array | None, *, counts: Array) -> Array:
    """Return a weight for each part that counts, relative to the largest of its item, so that some remain."""
    share = np.ones(len(parts.label)) if parts.share is None else parts.share
    if log_weights is None:
        return share
    logs = log_weights[parts.volunteer]
    largest = np.full(len(graph.items), -np.inf)
    np.maximum.at(largest, parts.item[counts], logs[counts])
    return share * np.where(counts, np.exp(np.minimum(logs - largest[parts.item], 0.0)), 0.0)
