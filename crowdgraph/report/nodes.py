"""The volunteers: how they answer, how good they are and were, to which communities they belong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.plot._style import short_times
from crowdgraph.report._results import MOST_NUMBERS, MOST_ROWS, GraphResults, most_active, numbers, texts

__all__ = ["histories", "item_table", "membership", "volunteer_table"]


def item_table(parts: GraphResults) -> dict[str, Any]:
    """The table of items, column by column, the most uncertain first; without a fit, those with the most responses."""
    graph, fit = parts.graph, parts.fit
    n_responses = graph.items.n_responses
    most = min(MOST_ROWS, MOST_NUMBERS // (len(graph.labels) + len(graph.classes)))
    chosen = most_active(n_responses, most) if fit is None else _most_uncertain(fit.item_probs, graph.gold.known, most)
    table: dict[str, Any] = {
        "total": len(graph.items),
        "id": texts(graph.items.ids[chosen]),
        "responses": n_responses[chosen].tolist(),
        "answers": _answers(parts)[chosen].tolist(),
        "gold": [_gold(parts, code) for code in chosen.tolist()],
    }
    if fit is None:
        return {
            **table,
            "missing": "What the items are is not known yet: graph = graph.annotate(cg.IBCC().fit(graph)).",
        }
    probs = fit.item_probs[chosen]
    return {
        **table,
        "model": fit.model,
        "probs": numbers(probs),
        "class": probs.argmax(axis=1).tolist(),
        "entropy": numbers(entropy(probs)),
    }


def _most_uncertain(probs: Array, has_gold: Array, most: int) -> Array:
    """The codes of the items of which least is known, at most so many; those with gold come last."""
    return np.lexsort((-entropy(probs).round(9), has_gold))[:most]


def entropy(probs: Array) -> Array:
    """How uncertain each row is, in bits."""
    from scipy.special import entr

    # A sum of rounded parts may lie a hair below zero.
    return np.asarray(np.maximum(entr(probs).sum(axis=1) / np.log(2), 0.0))


def _answers(parts: GraphResults) -> Array:
    """How often each item was given each label, of shape (N, L)."""
    responses, n_labels = parts.graph.responses, len(parts.graph.labels)
    given = responses.label >= 0
    cells = responses.item[given].astype(np.int64) * n_labels + responses.label[given]
    return np.bincount(cells, minlength=len(parts.graph.items) * n_labels).reshape(-1, n_labels)


def _gold(parts: GraphResults, code: int) -> int | list[float] | None:
    """The code of the known class, the probabilities of the classes where these are known, or None."""
    gold = parts.graph.gold
    if not gold.known[code]:
        return None
    return int(gold.codes[code]) if gold.codes[code] >= 0 else numbers(gold.probs[code])


# The probability that intervals hold.
LEVEL = 0.9
# The moments at which skill over time is read, and the most volunteers of whom it is.
MOMENTS = 40
MOST_HISTORIES = 2_000
# Smaller participations than this are not told.
SMALLEST_SHARE = 0.02


def volunteer_table(parts: GraphResults) -> dict[str, Any]:
    """The table of volunteers, column by column, the most active first."""
    graph, snapshot = parts.graph, parts.snapshot
    chosen = told(parts)
    table: dict[str, Any] = {
        "total": len(graph.volunteers),
        "id": texts(graph.volunteers.ids[chosen]),
        "responses": graph.volunteers.n_responses[chosen].tolist(),
        **_belonging(parts.groups, graph.volunteers.ids[chosen]),
    }
    if snapshot is None:
        missing = "How volunteers answer is not known yet: graph = graph.annotate(cg.IBCC().fit(graph))."
        return {**table, "missing": missing}
    accuracy, low, high = _skill(parts, _some(snapshot, chosen))
    mean = snapshot.mean[chosen]
    return {
        **table,
        "accuracy": numbers(accuracy),
        "low": numbers(low),
        "high": numbers(high),
        "level": LEVEL,
        "right": right_labels_note(parts),
        "confusion": numbers(mean, 3),
        **_behaviours(parts, mean),
    }


def told(parts: GraphResults) -> Array:
    """The codes of the volunteers who are told of one by one, the most active first."""
    each = len(parts.graph.classes) * len(parts.graph.labels) + 4
    return most_active(parts.graph.volunteers.n_responses, min(MOST_ROWS, MOST_NUMBERS // each))


def histories(parts: GraphResults) -> dict[str, Any]:
    """How the most active volunteers answered at several moments, in the order of the table; None before they began."""
    track, graph = parts.confusion, parts.graph
    if track is None:
        return {"missing": "Skill over time needs a model: graph = graph.annotate(cg.DynIBCC().fit(graph))."}
    if track.inference == "static":
        return {
            "missing": "The model takes volunteers to be the same at all times. To see how they change: "
            "graph = graph.annotate(cg.DynIBCC().fit(graph))."
        }
    moments = _moments(graph.responses.time)
    cells = len(track.classes) * len(track.labels)
    chosen = told(parts)[: min(MOST_HISTORIES, MOST_NUMBERS // (cells * max(len(moments), 1)))]
    views = [_some(track.at(moment), chosen) for moment in moments]
    begun = _begun(graph, chosen, moments)
    skill = np.stack([_skill(parts, view) for view in views], axis=2)
    means = np.stack([view.mean.reshape(len(chosen), cells) for view in views], axis=1)
    return {
        "times": short_times(graph.responses.clock, moments),
        "places": numbers(_places(moments)),
        "mean": [
            [row if known else None for row, known in zip(rows, knowns, strict=True)]
            for rows, knowns in zip((1000 * means).round().astype(int).tolist(), begun.tolist(), strict=True)
        ],
        **{
            name: numbers(np.where(begun, part, np.nan), 3)
            for name, part in zip(("accuracy", "low", "high"), skill, strict=True)
        },
    }


def membership(communities: Communities | None, ids: Iterable[Any]) -> tuple[Array, Array]:
    """The community of each volunteer (-1 for none) and the participation in each, of shapes (V,) and (V, K)."""
    names = list(ids)
    if communities is None:
        return np.full(len(names), -1), np.zeros((len(names), 0))
    known = np.array([name in communities.table for name in names], dtype=bool)
    codes = communities.table.codes([name for name, is_known in zip(names, known, strict=True) if is_known])
    assigned, shares = np.full(len(names), -1), np.zeros((len(names), len(communities)))
    assigned[known], shares[known] = communities.assignment[codes], communities.participation[codes]
    return assigned, shares


def pairs(shares: Array) -> list[list[float]]:
    """The communities of each volunteer and the participation in them, one after the other, without small ones."""
    found: list[list[float]] = [[] for _ in shares]
    for row, k in np.argwhere(shares >= SMALLEST_SHARE).tolist():
        found[row] += [k, round(float(shares[row, k]), 3)]
    return found


def right_labels_note(parts: GraphResults) -> str:
    """Which labels count as right, and how that is known."""
    right, known_by = parts.right
    if known_by == "names":
        return "Right is the label that names the class."
    clauses = [f"{' or '.join(texts(labels)) or 'no label'} for {name}" for name, labels in right.items()]
    how = {
        "votes": "as the model's votes say",
        "crowd": "read off the crowd's own answers; to say otherwise, fit with votes={label: class, ...}",
    }[known_by]
    return f"Right is {', '.join(clauses)} ({how})."


def _belonging(communities: Communities | None, ids: Array) -> dict[str, Any]:
    if communities is None:
        return {}
    assigned, shares = membership(communities, ids.tolist())
    return {"community": assigned.tolist(), "participation": pairs(shares)}


def _skill(parts: GraphResults, snapshot: ConfusionSnapshot) -> tuple[Array, Array, Array]:
    """The expected share of right labels of each volunteer, and the ends of its interval."""
    right = parts.right[0]
    accuracy = snapshot.accuracy(parts.class_probs, correct=right)
    low, high = snapshot.accuracy_interval(LEVEL, class_probs=parts.class_probs, correct=right)
    return accuracy, low, high


def _some(snapshot: ConfusionSnapshot, codes: Array) -> ConfusionSnapshot:
    return ConfusionSnapshot(
        ids=snapshot.ids[codes],
        concentration=snapshot.concentration[codes],
        classes=snapshot.classes,
        labels=snapshot.labels,
    )


def _behaviours(parts: GraphResults, means: Array) -> dict[str, Any]:
    """How each volunteer answers in words: the sentences, each once, and the number of each volunteer's."""
    names = {"classes": parts.graph.classes, "labels": parts.graph.labels}
    words = [behaviour(mean, **names) for mean in means]
    distinct = list(dict.fromkeys(words))
    place = {word: number for number, word in enumerate(distinct)}
    return {"behaviours": distinct, "behaviour": [place[word] for word in words]}


def _moments(times: Array) -> Array:
    """Moments with about as many responses between any two, the first and the last time among them."""
    if not len(times):
        return times
    return np.unique(times[np.linspace(0, len(times) - 1, MOMENTS).round().astype(np.int64)])


def _places(moments: Array) -> Array:
    """Where the moments lie between the first, 0, and the last, 1."""
    since = (moments - moments[:1]).astype(np.float64)
    return since / max(since[-1], 1e-300) if len(since) else since


def _begun(graph: CrowdGraph, chosen: Array, moments: Array) -> Array:
    """Whether each of the chosen volunteers had answered by each of the moments."""
    rows = graph.responses.by_volunteer
    active = np.flatnonzero(np.diff(rows.starts)[chosen])
    begun = np.zeros((len(chosen), len(moments)), dtype=bool)
    begun[active] = graph.responses.time[rows.order[rows.starts[chosen[active]]]][:, None] <= moments
    return begun
