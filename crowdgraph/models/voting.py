"""Weighted sum: scores, of which those of volunteers who err on gold items count less."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import is_number
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import GoldError, ParameterError, check_choice, quote, suggestion
from crowdgraph.models.base import Answers, Job, Model, Outcome

__all__ = [
    "MajorityVote",
    "MeanScore",
    "Scores",
    "Votes",
    "WeightedMajority",
    "WeightedSum",
    "check_factor",
    "label_scores",
    "learned_log_weights",
    "mean_score_outcome",
    "vote_codes",
    "vote_outcome",
]

Votes: TypeAlias = "Mapping[Hashable, Hashable | None]"
Scores: TypeAlias = "Mapping[Hashable, float]"


def vote_codes(graph: CrowdGraph, votes: Votes | None, *, or_else: str = "") -> Array:
    """For each label the code of the class it votes for, of shape (L,); -1 where it votes for none.

    Without `votes`, every label must be the name of a class. `or_else` tells of another way out.
    """
    if votes is None:
        strange = [label for label in graph.labels if label not in graph.classes]
        if strange:
            example = ", ".join(f"{label!r}: {graph.classes[0]!r}" for label in graph.labels[:2])
            raise ParameterError(
                f"The labels {quote(graph.labels)} are not the classes {quote(graph.classes)}, so it must be said "
                f"which class a label speaks for: votes={{{example}, ...}}, with None for one that speaks for none."
                f"{or_else}"
            )
        votes = {label: label for label in graph.labels}
    _check_labels("votes", votes, graph)
    wrong = [target for target in votes.values() if target is not None and target not in graph.classes]
    if wrong:
        raise ParameterError(
            f"votes= names {quote(dict.fromkeys(wrong))}, which is no class; the classes are {quote(graph.classes)}. "
            f"Others are named with classes=[...] when building the graph.{suggestion(wrong[0], graph.classes)}"
        )
    targets = [votes[label] for label in graph.labels]
    return np.array([-1 if target is None else graph.classes.index(target) for target in targets])


def label_scores(graph: CrowdGraph, scores: Scores | None) -> Array:
    """For each label the number it stands for, of shape (L,); labels that are numbers, or their text, are their own."""
    if scores is None:
        values = np.array([_as_number(label) for label in graph.labels])
        words = [label for label, value in zip(graph.labels, values, strict=True) if not np.isfinite(value)]
        if words:
            raise ParameterError(
                f"The labels {quote(words)} are no numbers; say what each stands for: "
                f"scores={{{graph.labels[0]!r}: 0.0, ...}}."
            )
        return values
    _check_labels("scores", scores, graph)
    values = np.array([scores[label] if is_number(scores[label]) else np.nan for label in graph.labels], dtype=float)
    if not np.isfinite(values).all():
        raise ParameterError(f"scores= must give a finite number for each label; got {dict(scores)!r}.")
    return values


def check_mapping(name: str, value: object) -> None:
    """Raise unless a setting is a mapping or left out."""
    if value is not None and not isinstance(value, Mapping):
        raise ParameterError(f"{name}={value!r} must be a mapping from labels, such as {name}={{'yes': ...}}.")


def _as_number(label: Hashable) -> float:
    """The number that a label is or spells, as in a CSV file; NaN for others."""
    try:
        return float(label) if is_number(label) or isinstance(label, str) else np.nan  # type: ignore[arg-type]
    except ValueError:
        return np.nan


def _check_labels(name: str, mapping: Mapping[Hashable, object], graph: CrowdGraph) -> None:
    missing = [label for label in graph.labels if label not in mapping]
    if missing:
        raise ParameterError(
            f"{name}= misses {quote(missing)}; it must name every label: {quote(graph.labels, most=20)}."
        )
    strange = [label for label in mapping if label not in graph.labels]
    if strange:
        raise ParameterError(
            f"{name}= names {quote(strange)}, which is no label; the labels are {quote(graph.labels, most=20)}."
            f"{suggestion(strange[0], graph.labels)}"
        )


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


@dataclass(frozen=True, kw_only=True)
class MajorityVote(Model):
    """The class with most votes, every answer counting the same.

    It knows nothing of volunteers or gold, and is the first thing to compare with.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None where it votes for none. Not needed where labels are classes.
    output
        ``"shares"``: class probabilities are shares of the votes; ``"winner"``: 1 for the class with most votes,
        shared between equals.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "cleo"], "item": ["x", "x", "x"], "label": ["yes", "no", "yes"]})
    >>> cg.MajorityVote().fit(graph).predict()
    {'x': 'yes'}
    """

    name: ClassVar[str] = "majority_vote"

    votes: Votes | None = None
    output: Literal["shares", "winner"] = "shares"

    def __post_init__(self) -> None:
        check_mapping("votes", self.votes)
        check_choice("output", self.output, ("shares", "winner"))

    def _fit(self, job: Job) -> Outcome:
        votes = vote_codes(job.answers.graph, self.votes)
        return vote_outcome(job.answers, votes, log_weights=None, output=self.output)


@dataclass(frozen=True, kw_only=True)
class WeightedMajority(Model):
    """Majority vote in which a volunteer's weight falls by a factor at each mistake on a gold item.

    After Littlestone and Warmuth, *The Weighted Majority Algorithm* (1994). Weights start at one. The more a volunteer
    answers, the more mistakes they make, so that busy volunteers lose weight even when they are good: one of the
    reasons why IBCC does better. The weights are in ``fit.diagnostics["weights"]``.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None where it votes for none. Not needed where labels are classes.
    factor
        What a mistake multiplies a weight by.
    output
        ``"shares"``: class probabilities are shares of the weight; ``"winner"``: 1 for the heaviest class,
        shared between equals.

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

    votes: Votes | None = None
    factor: float = 0.9
    output: Literal["shares", "winner"] = "shares"

    def __post_init__(self) -> None:
        check_mapping("votes", self.votes)
        check_factor(self.factor)
        check_choice("output", self.output, ("shares", "winner"))

    def _fit(self, job: Job) -> Outcome:
        votes = vote_codes(job.answers.graph, self.votes)
        log_weights = learned_log_weights(job.answers, votes, factor=self.factor)
        return vote_outcome(job.answers, votes, log_weights=log_weights, output=self.output)


@dataclass(frozen=True, kw_only=True)
class MeanScore(Model):
    """The mean of the labels' scores, for two classes: what Galaxy Zoo Supernovae ranked its candidates by.

    The mean is moved to [0, 1], between the lowest and the highest score, and taken for a probability: it ranks items
    well enough, but it is not calibrated.

    Parameters
    ----------
    scores
        For each label the number it stands for; labels that are numbers stand for themselves.
    positive
        The class that high scores speak for. If left out, the one named by the highest label or, where labels are no
        classes, the last class.

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

    scores: Scores | None = None
    positive: Hashable | None = None

    def __post_init__(self) -> None:
        check_mapping("scores", self.scores)

    def _fit(self, job: Job) -> Outcome:
        scores = label_scores(job.answers.graph, self.scores)
        return mean_score_outcome(job.answers, scores, log_weights=None, positive=self.positive)


@dataclass(frozen=True, kw_only=True)
class WeightedSum(Model):
    """The weighted mean of the labels' scores, for two classes; weights as in `WeightedMajority`.

    Parameters
    ----------
    scores
        For each label the number it stands for; labels that are numbers stand for themselves.
    votes
        For each label the class it votes for, which says what is a mistake. Not needed where labels are classes.
    factor
        What a mistake multiplies a weight by.
    positive
        The class that high scores speak for, as in `MeanScore`.

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

    scores: Scores | None = None
    votes: Votes | None = None
    factor: float = 0.9
    positive: Hashable | None = None

    def __post_init__(self) -> None:
        check_mapping("scores", self.scores)
        check_mapping("votes", self.votes)
        check_factor(self.factor)

    def _fit(self, job: Job) -> Outcome:
        scores = label_scores(job.answers.graph, self.scores)
        votes = vote_codes(job.answers.graph, self.votes)
        log_weights = learned_log_weights(job.answers, votes, factor=self.factor)
        return mean_score_outcome(job.answers, scores, log_weights=log_weights, positive=self.positive)
