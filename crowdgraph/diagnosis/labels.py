"""Labels: hardly ever given, spelt in several ways, or just one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from crowdgraph.core.columns import Array, id_array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, named

__all__ = ["find_labels"]

# A label is rare with fewer answers than this, or with a smaller share of them.
FEW, RARE = 10, 0.001
# Among fewer answers than this a label may be missing by chance.
ENOUGH = 200


def find_labels(graph: CrowdGraph) -> list[Finding]:
    """What is wrong with the labels."""
    answered = graph.responses.label[graph.responses.label >= 0]
    counts = np.bincount(answered, minlength=len(graph.labels))
    if not len(answered):
        return []
    found = _spelt_alike(graph, counts)
    if np.count_nonzero(counts) == 1:
        return [*found, _one_label(graph, counts)]
    return found + (_rare(graph, counts) if len(answered) >= ENOUGH else [])


def _one_label(graph: CrowdGraph, counts: Array) -> Finding:
    label, n_answers = graph.labels[int(counts.argmax())], int(counts.sum())
    return Finding(
        topic="labels",
        name="one label",
        severity="warning",
        what=f"All {n_answers:,} answers say {label}." if n_answers > 1 else f"The only answer says {label}.",
        why="Where nobody ever says anything else, nothing can be learned about items or volunteers.",
        advice="Check which column holds the labels, and whether the file was filtered by label.",
        subject="label",
        ids=id_array([label]),
        numbers={"answers": n_answers},
    )


def _rare(graph: CrowdGraph, counts: Array) -> list[Finding]:
    rare = np.flatnonzero((counts < FEW) | (counts < RARE * counts.sum()))
    if not len(rare):
        return []
    rare = rare[np.argsort(counts[rare], kind="stable")]
    names = [graph.labels[code] for code in rare.tolist()]
    finding = Finding(
        topic="labels",
        name="rare labels",
        severity="note",
        what=(
            f"{counted(len(rare), 'label')} ({named(names)}) of {len(counts):,} {'was' if len(rare) == 1 else 'were'} "
            f"given {counts[rare].sum():,} times among {counted(int(counts.sum()), 'answer')}."
        ),
        why="What volunteers mean by a label that they hardly give is known from the prior only.",
        advice="Merge rare labels with others before building the graph, or leave out those that are mistakes.",
        subject="label",
        ids=id_array(names),
        evidence={"answers": counts[rare]},
        numbers={"labels": len(rare), "answers": int(counts[rare].sum())},
    )
    return [finding]


def _spelt_alike(graph: CrowdGraph, counts: Array) -> list[Finding]:
    """Labels that differ in case, spaces or the way a number is written only."""
    spelt: dict[str, list[int]] = defaultdict(list)
    for code, label in enumerate(graph.labels):
        spelt[_plain_spelling(str(label))].append(code)
    codes = [code for same in spelt.values() if len(same) > 1 for code in same]
    if not codes:
        return []
    names = [graph.labels[code] for code in codes]
    finding = Finding(
        topic="labels",
        name="labels spelt alike",
        severity="warning",
        what=f"{counted(len(codes), 'label')} differ in spelling only: {named(map(repr, names), most=6)}.",
        why="To a model they are as different as yes and no.",
        advice="Write each label in one way before building the graph.",
        subject="label",
        ids=id_array(names),
        evidence={"answers": counts[codes]},
        numbers={"labels": len(codes)},
    )
    return [finding]


def _plain_spelling(label: str) -> str:
    try:
        return str(float(label))
    except ValueError:
        return " ".join(label.replace("_", " ").replace("-", " ").casefold().split())
