"""How many answers items have."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.answers import first_answers
from crowdgraph.diagnosis.words import counted, percent

__all__ = ["find_coverage"]

# Worth a note: from this share of items that one volunteer alone answered. A warning: this share without any answer.
MANY_SINGLE, MANY_EMPTY = 0.1, 0.5
# From this share of items that one volunteer alone answered, volunteers cannot be compared.
NEARLY_ALL = 0.9


def find_coverage(graph: CrowdGraph) -> list[Finding]:
    """Items with many, one or no answers; several answers of one volunteer count once."""
    n_answers = np.bincount(first_answers(graph).item, minlength=len(graph.items))
    if not n_answers.any():
        return []
    return [_spread(n_answers), *_unanswered(graph, n_answers), *_single(graph, n_answers)]


def _spread(n_answers: Array) -> Finding:
    answered = n_answers[n_answers > 0]
    return Finding(
        topic="coverage",
        name="coverage",
        severity="info",
        what=(
            f"Items were answered by {answered.min():,} to {counted(int(answered.max()), 'volunteer')}, with a median "
            f"of {np.median(answered):,g}."
        ),
        subject="item",
        numbers={
            "median": float(np.median(answered)),
            "least": int(answered.min()),
            "most": int(answered.max()),
            "mean": float(answered.mean()),
        },
    )


def _unanswered(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    empty = np.flatnonzero(n_answers == 0)
    if not len(empty):
        return []
    share = len(empty) / len(n_answers)
    finding = Finding(
        topic="coverage",
        name="items without answers",
        severity="warning" if share >= MANY_EMPTY else "note",
        what=f"Nobody answered {len(empty):,} of {counted(len(n_answers), 'item')} ({percent(share)}).",
        why="Models can only tell how frequent classes are elsewhere; such items look as uncertain as they are.",
        advice="Ask about them, or leave them out: graph.subgraph(items=[...]). Many may mean that ids do not match.",
        subject="item",
        ids=graph.items.ids[empty],
        numbers={"items": len(empty), "share": share},
    )
    return [finding]


def _single(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    single = np.flatnonzero(n_answers == 1)
    share = len(single) / np.count_nonzero(n_answers)
    if share < MANY_SINGLE:
        return []
    finding = Finding(
        topic="coverage",
        name="items with one answer",
        severity="note",
        what=f"{counted(len(single), 'item')} ({percent(share)} of those answered) rest on a single volunteer.",
        why=(
            "Hardly anything can be checked: nobody's answers can be compared with those of others, only with gold."
            if share >= NEARLY_ALL
            else "Their class is one person's word, and they tell nothing about how far volunteers agree."
        ),
        advice="Ask a second volunteer about them; cg.allocation tells whom to ask about which first.",
        subject="item",
        ids=graph.items.ids[single],
        numbers={"items": len(single), "share": share},
    )
    return [finding]
