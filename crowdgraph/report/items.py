"""The items: what they are believed to be, and on how many answers that rests."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.report.parts import MOST_NUMBERS, MOST_ROWS, Parts, most_active, numbers, texts

__all__ = ["item_rows"]


def item_rows(parts: Parts) -> dict[str, Any]:
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


def _answers(parts: Parts) -> Array:
    """How often each item was given each label, of shape (N, L)."""
    responses, n_labels = parts.graph.responses, len(parts.graph.labels)
    given = responses.label >= 0
    cells = responses.item[given].astype(np.int64) * n_labels + responses.label[given]
    return np.bincount(cells, minlength=len(parts.graph.items) * n_labels).reshape(-1, n_labels)


def _gold(parts: Parts, code: int) -> int | list[float] | None:
    """The code of the known class, the probabilities of the classes where these are known, or None."""
    gold = parts.graph.gold
    if not gold.known[code]:
        return None
    return int(gold.codes[code]) if gold.codes[code] >= 0 else numbers(gold.probs[code])
