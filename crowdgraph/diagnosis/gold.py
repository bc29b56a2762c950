"""Gold: how much of it there is for each class, and whether its items are the graph's."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.columns import Array, id_array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, named, percent

__all__ = ["find_gold"]

# A class has little gold with fewer items than this, and gold is skewed if a class has less than this share.
FEW, SKEWED = 10, 0.05
# From this share of gold items that nobody answered, ids probably do not match.
UNMATCHED = 0.5


def find_gold(graph: CrowdGraph) -> list[Finding]:
    """How gold is spread over the classes."""
    gold = graph.gold
    found = _unmatched(len(gold), gold.n_unmatched) if gold.n_unmatched else []
    if not len(gold):
        return found
    counts = gold.probs[gold.known].sum(axis=0)
    return [*found, _balance(graph, counts), *_little(graph, counts)]


def _balance(graph: CrowdGraph, counts: Array) -> Finding:
    shares = counts / counts.sum()
    rarest = int(shares.argmin())
    skewed = 0 < shares[rarest] < SKEWED
    parts = [f"{name} {percent(float(share))}" for name, share in zip(graph.classes, shares, strict=True)]
    return Finding(
        topic="gold",
        name="skewed gold" if skewed else "gold",
        severity="note" if skewed else "info",
        what=(
            f"Gold covers {len(graph.gold):,} of {counted(len(graph.items), 'item')} "
            f"({percent(len(graph.gold) / max(len(graph.items), 1))}): {named(parts, most=8)}."
        ),
        why="With a rare class, accuracy says little: who never names it is nearly always right." if skewed else "",
        advice="Compare models by AUC, log loss or recall of the rare class, not by accuracy." if skewed else "",
        subject="class",
        ids=id_array(graph.classes),
        evidence={"gold": counts, "share": shares},
        numbers={"items": len(graph.gold), "share": len(graph.gold) / max(len(graph.items), 1)},
    )


def _little(graph: CrowdGraph, counts: Array) -> list[Finding]:
    little = np.flatnonzero(counts < FEW)
    if not len(little):
        return []
    names = [graph.classes[code] for code in little.tolist()]
    unnamed = [
        name for name, count in zip(names, counts[little], strict=True) if not count and name not in graph.labels
    ]
    finding = Finding(
        topic="gold",
        name="classes with little gold",
        severity="warning" if unnamed else "note",
        what=(
            f"{counted(len(little), 'class')} ({named(names)}) of {len(counts):,} with fewer than {FEW} gold items; "
            f"the fewest are {counts.min():,.3g}."
        ),
        why=(
            "No label has the name of a class without gold, so nothing tells what volunteers say to it."
            if unnamed
            else "How volunteers answer these classes, and how well models find them, cannot be checked."
        ),
        advice="Have experts label more items of these classes; cross validation over them is chance.",
        subject="class",
        ids=id_array(names),
        evidence={"gold": counts[little]},
        numbers={"classes": len(little), "fewest": float(counts.min())},
    )
    return [finding]


def _unmatched(n_matched: int, n_unmatched: int) -> list[Finding]:
    share = n_unmatched / (n_matched + n_unmatched)
    finding = Finding(
        topic="gold",
        name="gold without answers",
        severity="warning" if share >= UNMATCHED else "note",
        what=f"Nobody answered {counted(n_unmatched, 'gold item')} ({percent(share)} of the gold).",
        why="Such gold is not used; if there is much of it, the ids of gold and responses may be written differently.",
        advice="Compare a few ids of both files: leading zeros, suffixes, numbers against text.",
        subject="item",
        numbers={"items": n_unmatched, "share": share},
    )
    return [finding]
