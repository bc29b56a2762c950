"""Checks of the model: its bound, its calibration against gold, and what it expects of the answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import CrowdGraphError, CrowdGraphWarning
from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.scores import calibration_error, reliability_bins
from crowdgraph.report._results import SETTLED_PROBABILITY, GraphResults, numbers, texts
from crowdgraph.report.communities import evidence

__all__ = ["answers_alone", "model_checks", "predictive_check"]

N_BINS = 10
# A line of more points than these looks the same.
MOST_POINTS = 500
# In how many turns gold is hidden for a fair test, up to how many responses: each turn is a fit of its own.
FOLDS = 3
MOST_RESPONSES = 200_000
HOW_ELSE = "crowdgraph evaluate, or cg.evaluation.cross_validate, hides gold by turns and tells."


def model_checks(parts: GraphResults) -> dict[str, Any]:
    """All checks that the graph's annotations allow."""
    fits = parts.all_of(ModelFit)
    if not fits and parts.communities is None:
        return {"missing": "There is no model to check yet: graph = graph.annotate(cg.IBCC().fit(graph))."}
    return {
        "fits": [_settling(name, fit) for name, fit in fits.items()],
        "calibration": _calibration(parts),
        "predictive": _predictive(parts),
        "evidence": None if parts.communities is None else evidence(parts.communities),
    }


def _settling(name: str, fit: ModelFit) -> dict[str, Any]:
    """Whether a fit settled, its bound after each iteration, and single numbers that its model tells."""
    steps = np.unique(np.linspace(0, len(fit.bound) - 1, min(len(fit.bound), MOST_POINTS)).round().astype(np.int64))
    facts = {key: value for key, value in fit.diagnostics.items() if isinstance(value, int | float | str)}
    return {
        "name": name,
        "model": fit.model,
        "converged": bool(fit.converged),
        "iterations": fit.n_iter,
        "steps": (steps + 1).tolist(),
        "bound": numbers(fit.bound[steps], 6),
        "facts": [[key, _fact(value)] for key, value in facts.items()],
    }


def _fact(value: float | str) -> str:
    """A number in few digits."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _predictive(parts: GraphResults) -> dict[str, Any] | None:
    """The check of the latest confusion matrices, with the class probabilities of their fit, or of the latest."""
    if parts.skilled is None:
        return None
    track, fit = parts.skilled
    fit = parts.fit if fit is None else fit
    unknown = np.tile(parts.class_probs, (len(parts.graph.items), 1))
    return predictive_check(parts.graph, track, unknown if fit is None else fit.item_probs)


def _calibration(parts: GraphResults) -> dict[str, Any] | None:
    """How often the most probable class of gold items is the right one, by how probable it is said to be."""
    gold, fit = parts.graph.gold, parts.fit
    certain = np.flatnonzero((gold.codes >= 0) & (parts.graph.items.n_responses > 0))
    if fit is None or not len(certain):
        return None
    probs, truth = fit.item_probs[certain], gold.codes[certain]
    # A model that was given the gold repeats it.
    if not np.allclose(probs, gold.probs[certain], atol=1e-6):
        return {"without_gold": False, "hidden": False, **_against(truth, probs)}
    # Answers alone do not tell what a model says that knows of difficulties, too.
    if fit.confusion is not None and fit.confusion.inference == "static" and "difficulties" not in fit.diagnostics:
        alone = answers_alone(parts.graph, fit.confusion, fit.class_probs)
        return {"without_gold": True, "hidden": False, **_against(truth, alone[certain])}
    return _while_hidden(fit)


def _against(truth: Array, probs: Array) -> dict[str, Any]:
    """Class probabilities, of shape (N, J), against the classes that are true."""
    stated, observed, n_items = reliability_bins(truth, probs, n_bins=N_BINS)
    right, sure = probs.argmax(axis=1) == truth, probs.max(axis=1) >= SETTLED_PROBABILITY
    return {
        "stated": numbers(stated),
        "observed": numbers(observed),
        "items": n_items.tolist(),
        "accuracy": round(float(right.mean()), 4),
        "sure": int(sure.sum()),
        "sure_accuracy": _share(float(right[sure].sum()), float(sure.sum())),
        "error": round(calibration_error(truth, probs, n_bins=N_BINS), 4),
    }


def _while_hidden(fit: ModelFit) -> dict[str, Any]:
    """What the model says of gold items while their gold is hidden, against gold; or why that was not worked out.

    The matrices of changing volunteers have followed the gold from answer to answer, and it cannot be taken out of
    them again; so the model is fitted anew, from nothing.
    """
    if fit.source is None:
        why = "The model repeats the gold, and a graph that was loaded no longer knows its model."
        return _not_measured(f"{why} {HOW_ELSE}")
    graph, model = fit.source.graph, fit.source.model
    if len(graph.responses) > MOST_RESPONSES:
        why = f"The model repeats the gold; with over {MOST_RESPONSES:,} responses new fits take long."
        return _not_measured(f"{why} {HOW_ELSE}")
    with warnings.catch_warnings():
        # The fit itself has told what there is to warn of.
        warnings.simplefilter("ignore", CrowdGraphWarning)
        try:
            found = cross_validate(graph, model, folds=FOLDS, seed=0)  # type: ignore[arg-type]
        except CrowdGraphError as error:
            return _not_measured(f"The model repeats the gold, and hiding it does not work here. {error}")
    answered = graph.items.n_responses[graph.items.codes(found.items.tolist())] > 0
    return {"without_gold": True, "hidden": True, **_against(found.truth[answered], found.item_probs[0][answered])}


def _not_measured(why: str) -> dict[str, Any]:
    return {"missing": f"How right the model is was not measured. {why}"}


def answers_alone(graph: CrowdGraph, track: ConfusionTrack, class_probs: Array) -> Array:
    """What the answers about each item tell of its class, its own gold left out, of shape (N, J).

    The confusion matrices, which do not change, have counted the answers about items with gold; each of these answers
    is taken out again. What the gold of an item did to other items stays.
    """
    responses, concentration = graph.responses, track.initial
    given = np.flatnonzero(responses.label >= 0)
    item, label, rows = responses.item[given], responses.label[given], responses.volunteer[given]
    log_odds = np.tile(np.log(np.maximum(class_probs, 1e-300)), (len(graph.items), 1))
    for j in range(len(track.classes)):
        counted = graph.gold.codes[item] == j
        own = np.maximum(concentration[rows, j, label] - counted, 1e-9)
        total = np.maximum(concentration[:, j].sum(axis=1)[rows] - counted, own)
        log_odds[:, j] += np.bincount(item, np.log(own / total), minlength=len(graph.items))
    odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def predictive_check(graph: CrowdGraph, track: ConfusionTrack, item_probs: Array) -> dict[str, Any] | None:
    """What the model expects of the answers: how often each label is given, and how often two agree about an item.

    Volunteers answer independently once the class is known, the model says. Where two agree more often than it
    expects, something else makes items easy or hard, or volunteers err together. Every item with two answers counts
    the same: by pairs, a few items with very many answers would decide alone.
    """
    responses, n_items = graph.responses, len(graph.items)
    given = np.flatnonzero(responses.label >= 0)
    item, label = responses.item[given], responses.label[given]
    if not len(given):
        return None
    mean = track.latest().mean if track.inference == "static" else track.mean
    rows = _rows(graph, track)[given]
    expected, agreeing = np.zeros(len(graph.labels)), np.zeros(n_items)
    for j in range(len(graph.classes)):
        for code in range(len(graph.labels)):
            chance = mean[rows, j, code]
            sums = np.bincount(item, chance, minlength=n_items)
            expected[code] += item_probs[:, j] @ sums
            agreeing += item_probs[:, j] * (sums**2 - np.bincount(item, chance**2, minlength=n_items))
    cells = np.bincount(item.astype(np.int64) * len(graph.labels) + label, minlength=n_items * len(graph.labels))
    counts = cells.reshape(n_items, -1)
    n_pairs = counts.sum(axis=1) * (counts.sum(axis=1) - 1.0)
    several = n_pairs > 0
    return {
        "labels": texts(graph.labels),
        "observed": numbers(counts.sum(axis=0) / len(given)),
        "expected": numbers(expected / len(given)),
        "agreement": _share(((counts * (counts - 1.0)).sum(axis=1)[several] / n_pairs[several]).sum(), several.sum()),
        "expected_agreement": _share((agreeing[several] / n_pairs[several]).sum(), several.sum()),
    }


def _share(part: float, whole: float) -> float | None:
    return round(float(part / whole), 4) if whole else None


def _rows(graph: CrowdGraph, track: ConfusionTrack) -> Array:
    """For each response, the row of the confusion matrix with which it was given: the volunteer's, or the step's."""
    if track.inference == "static":
        return graph.responses.volunteer
    rows = np.empty(len(graph.responses), dtype=np.int64)
    rows[graph.responses.by_volunteer.order] = np.arange(len(rows))
    return rows
