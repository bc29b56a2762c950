"""Bots: volunteers who say the same to everything, also where others say otherwise."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.answers import FirstAnswers, first_answers, upper_tail
from crowdgraph.diagnosis.consensus import consensus
from crowdgraph.diagnosis.words import counted, named, percent

__all__ = ["find_constant"]

# Nearly all of at least so many answers are the same.
NEARLY_ALL, ENOUGH = 0.98, 20
# On so many items, at least, the others say something else; on fewer it may be that all items are alike.
OTHERWISE = 5
# How probable it may be that anybody in a crowd in order looks so.
LEVEL = 1e-3
# From this share of all answers, constant ones are a warning.
MUCH = 0.01


def find_constant(graph: CrowdGraph) -> list[Finding]:
    """Volunteers with one label for everything, where that cannot be because all their items are alike."""
    if len(graph.labels) < 2:
        return []
    answers, n_labels = first_answers(graph), len(graph.labels)
    cells = answers.volunteer.astype(np.int64) * n_labels + answers.label
    counts = np.bincount(cells, minlength=len(graph.volunteers) * n_labels).reshape(-1, n_labels)
    n_given, favourite = counts.sum(axis=1), counts.argmax(axis=1)
    candidates = np.flatnonzero((n_given >= ENOUGH) & (counts.max(axis=1) >= NEARLY_ALL * n_given))
    if not len(candidates):
        return []
    n_same, n_otherwise, chance = _against_the_others(graph, answers, favourite)
    tail = upper_tail(n_same[candidates], n_otherwise[candidates], chance[favourite[candidates]])
    sure = (n_otherwise[candidates] >= OTHERWISE) & (tail < LEVEL / len(candidates))
    chosen = candidates[sure]
    return [_finding(graph, chosen, n_given, favourite, n_otherwise)] if len(chosen) else []


def _against_the_others(graph: CrowdGraph, answers: FirstAnswers, favourite: Array) -> tuple[Array, Array, Array]:
    """How volunteers answer items of which others say something else than the volunteer's favourite label.

    Returns how often each said it all the same and how many such items there are, (V,), and how often anybody says each
    label where others say something else, (L,).
    """
    n_volunteers, n_labels = len(graph.volunteers), len(graph.labels)
    said = consensus(answers, n_volunteers=n_volunteers, n_items=len(graph.items), n_labels=n_labels).label[
        answers.item
    ]
    otherwise = said != favourite[answers.volunteer]
    n_otherwise = np.bincount(answers.volunteer[otherwise], minlength=n_volunteers)
    all_the_same = otherwise & (answers.label == favourite[answers.volunteer])
    n_same = np.bincount(answers.volunteer[all_the_same], minlength=n_volunteers)
    n_wrong = np.bincount(answers.label[answers.label != said], minlength=n_labels)
    n_elsewhere = len(answers.label) - np.bincount(said, minlength=n_labels)
    return n_same, n_otherwise, (n_wrong + 1) / (n_elsewhere + 2)


def _finding(graph: CrowdGraph, chosen: Array, n_given: Array, favourite: Array, n_otherwise: Array) -> Finding:
    chosen = chosen[np.argsort(-n_given[chosen], kind="stable")]
    share = float(n_given[chosen].sum() / n_given.sum())
    labels = np.array([str(label) for label in graph.labels], dtype=object)
    first, ids = chosen[0], graph.volunteers.ids[chosen]
    return Finding(
        topic="bots",
        name="constant answers",
        severity="warning" if share >= MUCH else "note",
        what=(
            f"{counted(len(chosen), 'volunteer')} ({named(ids)}), with {percent(share)} of the answers, gave the same "
            f"label nearly always; {ids[0]} said {labels[favourite[first]]} to {n_given[first]:,} items, "
            f"of {n_otherwise[first]:,} of which others say something else."
        ),
        why="Such answers tell nothing about the items; votes count them in full.",
        advice="A model such as IBCC learns to ignore them. If you count votes, leave them out first.",
        ids=ids,
        evidence={
            "label": labels[favourite[chosen]],
            "answers": n_given[chosen],
            "others_say_otherwise": n_otherwise[chosen],
        },
        numbers={"volunteers": len(chosen), "share": share},
    )
