"""Checks of a fitted model: its calibration against gold, and whether the answers are what it expects."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import CrowdGraphError, CrowdGraphWarning
from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.scores import calibration_error, reliability_bins
from crowdgraph.messages import Message

if TYPE_CHECKING:
    from crowdgraph.models.base import Model

__all__ = ["SURE_PROBABILITY", "Calibration", "PredictiveCheck", "Unmeasured", "calibration", "predictive_check"]

N_BINS = 10
# A model is sure of an item if its most probable class is at least this probable.
SURE_PROBABILITY = 0.9
# Gold is hidden in this many folds, each of which is a fit, for graphs of at most this many responses.
N_FOLDS = 3
MAX_RESPONSES_TO_REFIT = 200_000
CROSS_VALIDATION_HINT = Message(
    "crowdgraph evaluate, or cg.evaluation.cross_validate, hides gold in turns and measures it.",
    cli="crowdgraph evaluate hides gold in turns and measures it.",
)


class Calibration(NamedTuple):
    """How often the most probable class of gold items is right, by how probable the model says it is.

    Attributes
    ----------
    gold
        Why the gold did not help the model: ``"unused"`` if the model did not follow it, ``"left out"`` if every item's
        own gold was taken out of the confusion matrices again, ``"hidden"`` if the model was fitted again without it.
    stated, observed, n_items
        For each bin the mean probability of the most probable class, the share of items for which it is right, and
        the number of items.
    accuracy
        The share of items whose most probable class is right.
    n_sure, sure_accuracy
        The number of items whose most probable class has a probability of 0.9 or more, and the share of these for which
        it is right (NaN if there are none).
    error
        The mean difference between stated and observed shares.
    """

    gold: Literal["unused", "left out", "hidden"]
    stated: Array
    observed: Array
    n_items: Array
    accuracy: float
    n_sure: int
    sure_accuracy: float
    error: float


class Unmeasured(NamedTuple):
    """The reason why the calibration was not measured."""

    reason: str


class PredictiveCheck(NamedTuple):
    """The answers that a model expects of these volunteers about these items, beside those that were given.

    Attributes
    ----------
    observed, expected
        The share of each label, of shape (L,).
    agreement, expected_agreement
        How often two answers about an item agree, averaged over items with two answers or more; NaN if there are none.
    """

    observed: Array
    expected: Array
    agreement: float
    expected_agreement: float


def calibration(graph: CrowdGraph, fit: ModelFit, *, model: Model | None = None) -> Calibration | Unmeasured | None:
    """Compare the class probabilities of a fit with gold, without letting the gold help the model.

    A model that was given the gold repeats it. If its confusion matrices do not change over time, every item's gold is
    taken out of them again. Otherwise the model must be fitted again while gold is hidden, in three folds.

    Parameters
    ----------
    graph
        The graph that was fitted, with gold.
    fit
        The fit.
    model
        The model to fit again where that is needed; without it nothing is fitted, and the reason is returned instead.

    Returns
    -------
    Calibration, Unmeasured or None
        None if no item with an answer has gold that is certain.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(gold=0.5, seed=0).graph
    >>> measured = calibration(graph, cg.IBCC().fit(graph))
    >>> measured.gold, measured.accuracy > 0.8
    ('left out', True)
    """
    gold = graph.gold
    items = np.flatnonzero((gold.codes >= 0) & (graph.items.n_responses > 0))
    if not len(items):
        return None
    truth, probs = gold.codes[items], fit.item_probs[items]
    if not np.allclose(probs, gold.probs[items], atol=1e-6):
        return _against(truth, probs, "unused")
    # Neither the class probabilities of a model of difficulties nor calibrated ones follow from the answers alone.
    is_product = "difficulties" not in fit.diagnostics and fit.dependence is None
    if fit.confusion is not None and fit.confusion.inference == "static" and is_product:
        return _against(
            truth, probs_without_own_gold(graph, fit.confusion, class_probs=fit.class_probs)[items], "left out"
        )
    return _while_hidden(graph, model)


def _against(truth: Array, probs: Array, gold: Literal["unused", "left out", "hidden"]) -> Calibration:
    """Compare class probabilities, of shape (N, J), with the true classes."""
    stated, observed, n_items = reliability_bins(truth, probs, n_bins=N_BINS)
    right, sure = probs.argmax(axis=1) == truth, probs.max(axis=1) >= SURE_PROBABILITY
    return Calibration(
        gold=gold,
        stated=stated,
        observed=observed,
        n_items=n_items,
        accuracy=float(right.mean()),
        n_sure=int(sure.sum()),
        sure_accuracy=_share(float(right[sure].sum()), float(sure.sum())),
        error=calibration_error(truth, probs, n_bins=N_BINS),
    )


def _while_hidden(graph: CrowdGraph, model: Model | None) -> Calibration | Unmeasured:
    """Fit the model again while gold is hidden, and compare its class probabilities of the hidden items with gold.

    Matrices that change over time have followed the gold from answer to answer, and it cannot be taken out again.
    """
    if model is None:
        return _unmeasured(
            "The model repeats the gold, so it must be fitted again while gold is hidden, which was not done"
            + Message(": crowdgraph.analysis.analyse(graph) does it. ", cli=". ")
            + CROSS_VALIDATION_HINT
        )
    if len(graph.responses) > MAX_RESPONSES_TO_REFIT:
        return _unmeasured(
            f"The model repeats the gold; with over {MAX_RESPONSES_TO_REFIT:,} responses new fits take long. "
            + CROSS_VALIDATION_HINT
        )
    with warnings.catch_warnings():
        # The fit itself has warned already.
        warnings.simplefilter("ignore", CrowdGraphWarning)
        try:
            held_out = cross_validate(graph, model, folds=N_FOLDS, seed=0)
        except CrowdGraphError as error:
            return _unmeasured("The model repeats the gold, and hiding it does not work here. " + error.message)
    answered = graph.items.n_responses[graph.items.codes(held_out.items.tolist())] > 0
    return _against(held_out.truth[answered], held_out.item_probs[0][answered], "hidden")


def _unmeasured(reason: str) -> Unmeasured:
    return Unmeasured("Accuracy was not measured. " + reason)


def probs_without_own_gold(graph: CrowdGraph, track: ConfusionTrack, *, class_probs: Array) -> Array:
    """Return the class probabilities of each item given its answers but not its own gold, of shape (N, J).

    The confusion matrices, which do not change over time, have counted the answers about items with gold; each of these
    answers is taken out again. The effect of an item's gold on other items stays.
    """
    answers, concentration = graph.answers, track.initial
    item, label, volunteer = answers.item, answers.label, answers.volunteer
    log_odds = np.tile(np.log(np.maximum(class_probs, 1e-300)), (len(graph.items), 1))
    for j in range(len(track.classes)):
        of_class = graph.gold.codes[item] == j
        own = np.maximum(concentration[volunteer, j, label] - of_class, 1e-9)
        total = np.maximum(concentration[:, j].sum(axis=1)[volunteer] - of_class, own)
        log_odds[:, j] += np.bincount(item, np.log(own / total), minlength=len(graph.items))
    odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def predictive_check(graph: CrowdGraph, track: ConfusionTrack, *, item_probs: Array) -> PredictiveCheck | None:
    """Compare the answers with what the model expects: the share of each label, and the agreement of two volunteers.

    The model says that volunteers answer independently once the class is known. If two agree more often than it
    expects, something else makes items easy or hard, or volunteers err together. Every item with two answers or more
    counts the same: counted by pairs, a few items with very many answers would decide alone. None if there are no
    answers.

    Parameters
    ----------
    graph
        The graph.
    track
        The confusion matrices of its volunteers.
    item_probs
        The class probabilities of its items, of shape (N, J).
    """
    answers, n_items, n_labels = graph.answers, len(graph.items), len(graph.labels)
    item, label = answers.item, answers.label
    if not len(label):
        return None
    mean = track.latest().mean if track.inference == "static" else track.mean
    rows = _confusion_rows(graph, track)[answers.rows]
    expected, agreeing = np.zeros(n_labels), np.zeros(n_items)
    for j in range(len(graph.classes)):
        for code in range(n_labels):
            chance = mean[rows, j, code]
            sums = np.bincount(item, chance, minlength=n_items)
            expected[code] += item_probs[:, j] @ sums
            agreeing += item_probs[:, j] * (sums**2 - np.bincount(item, chance**2, minlength=n_items))
    cells = np.bincount(item.astype(np.int64) * n_labels + label, minlength=n_items * n_labels)
    counts = cells.reshape(n_items, -1)
    n_pairs = counts.sum(axis=1) * (counts.sum(axis=1) - 1.0)
    several = n_pairs > 0
    return PredictiveCheck(
        observed=counts.sum(axis=0) / len(label),
        expected=expected / len(label),
        agreement=_share(((counts * (counts - 1.0)).sum(axis=1)[several] / n_pairs[several]).sum(), several.sum()),
        expected_agreement=_share((agreeing[several] / n_pairs[several]).sum(), several.sum()),
    )


def _confusion_rows(graph: CrowdGraph, track: ConfusionTrack) -> Array:
    """Return, for each response, the row of its confusion matrix in the track: that of its volunteer or of its step."""
    if track.inference == "static":
        return graph.responses.volunteer
    rows = np.empty(len(graph.responses), dtype=np.int64)
    rows[graph.responses.by_volunteer.order] = np.arange(len(rows))
    return rows


def _share(part: float, total: float) -> float:
    return float(part / total) if total else float("nan")
