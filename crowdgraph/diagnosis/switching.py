"""Label switching: whether anything tells which class is which, and whether labels mean what they say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.agreement import agreement
from crowdgraph.diagnosis.answers import FirstAnswers, first_answers, upper_tail
from crowdgraph.diagnosis.words import counted, named, percent

__all__ = ["find_switching"]

# A volunteer is judged by gold from so many answers on, a crowd from so many volunteers, a class from so many answers.
ANSWERS, VOLUNTEERS = 10, 5
# How probable it may be that a crowd in order looks so.
LEVEL = 1e-3
# Volunteers agree hardly more than by chance below this kappa; so many items with two answers are needed to tell.
KAPPA, ITEMS = 0.05, 50


class Judged(NamedTuple):
    """Of some volunteers: their codes, answers on gold, right ones, and how often they would be right by chance."""

    codes: Array
    n_answers: Array
    n_right: Array
    chance: Array


def find_switching(graph: CrowdGraph) -> list[Finding]:
    """Signs that classes may be taken for each other."""
    answers = first_answers(graph)
    if not len(answers.item) or len(graph.labels) < 2:
        return []
    found = _agreement(graph, answers)
    if not len(graph.gold):
        return [*found, _nothing_tells(graph)]
    meaning = _meaning(graph)
    if len(graph.classes) < 2 or (meaning < 0).all():
        return found
    judged = _judged(graph, answers, meaning)
    worse = _worse_than_chance(graph, judged)
    return found + (worse or _swapped(graph, answers, meaning)) + _contrary(graph, judged)


def _meaning(graph: CrowdGraph) -> Array:
    """The code of the class that each label names, (L,); -1 for labels that name none."""
    place = {name: code for code, name in enumerate(graph.classes)}
    return np.array([place.get(label, -1) for label in graph.labels])


def _nothing_tells(graph: CrowdGraph) -> Finding:
    named_by_labels = set(graph.classes) <= set(graph.labels)
    return Finding(
        topic="switching",
        name="no gold",
        severity="note" if named_by_labels else "warning",
        what="The graph has no gold"
        + ("." if named_by_labels else f", and its labels do not name the classes {named(graph.classes)}."),
        why=(
            "That volunteers are right more often than not is then an assumption, and nothing can be checked."
            if named_by_labels
            else "Nothing tells which label speaks for which class, so classes can be taken for each other."
        ),
        advice="Add the classes of some items with graph.with_gold({item: class, ...})"
        + ("." if named_by_labels else ", or say what labels mean with votes={label: class, ...}."),
        subject="class",
    )


def _judged(graph: CrowdGraph, answers: FirstAnswers, meaning: Array) -> Judged:
    """How often volunteers with enough answers on gold are right, and would be if they answered blindly."""
    n_volunteers, n_classes = len(graph.volunteers), len(graph.classes)
    truth, said = graph.gold.codes[answers.item], meaning[answers.label]
    rows = np.flatnonzero((truth >= 0) & (said >= 0))
    volunteer, truth, said = answers.volunteer[rows].astype(np.int64), truth[rows], said[rows]
    n_answers = np.bincount(volunteer, minlength=n_volunteers)
    n_right = np.bincount(volunteer[truth == said], minlength=n_volunteers)
    size = n_volunteers * n_classes
    true, told = (np.bincount(volunteer * n_classes + c, minlength=size).reshape(-1, n_classes) for c in (truth, said))
    chance = (true * told).sum(axis=1) / np.maximum(n_answers, 1) ** 2
    codes = np.flatnonzero(n_answers >= ANSWERS)
    return Judged(codes, n_answers[codes], n_right[codes], chance[codes])


def _worse_than_chance(graph: CrowdGraph, judged: Judged) -> list[Finding]:
    """A warning if most volunteers, and all answers together, agree with gold less than blind answers would."""
    n = len(judged.codes)
    below = judged.n_right < judged.chance * judged.n_answers
    n_below = int(np.count_nonzero(below))
    right, expected = judged.n_right.sum(), (judged.chance * judged.n_answers).sum()
    sure = n >= VOLUNTEERS and upper_tail(n_below, n, 0.5) < 0.05 and right < expected
    if not sure:
        return []
    total = judged.n_answers.sum()
    finding = Finding(
        topic="switching",
        name="worse than chance",
        severity="warning",
        what=(
            f"{n_below:,} of {counted(n, 'volunteer')} with {ANSWERS} answers on gold agree with it less than blind "
            f"answers would; all of them {percent(right / total)} of the time, by chance {percent(expected / total)}."
        ),
        why="A crowd is hardly ever wrong on purpose: labels or gold classes are probably mixed up in the file.",
        advice="Check what each label and each class of gold means, and that gold belongs to these items.",
        ids=graph.volunteers.ids[judged.codes[below]],
        evidence={"right": (judged.n_right / judged.n_answers)[below], "by_chance": judged.chance[below]},
        numbers={"volunteers": n_below, "judged": n, "right": right / total, "by_chance": expected / total},
    )
    return [finding]


def _contrary(graph: CrowdGraph, judged: Judged) -> list[Finding]:
    """Volunteers who are wrong so often that it cannot be chance."""
    tail = upper_tail(judged.n_answers - judged.n_right, judged.n_answers, 1 - judged.chance)
    chosen = np.flatnonzero(tail < LEVEL / max(len(tail), 1))
    if not len(chosen):
        return []
    rate = judged.n_right / judged.n_answers
    chosen = chosen[np.argsort((rate - judged.chance)[chosen], kind="stable")]
    finding = Finding(
        topic="switching",
        name="contrary volunteers",
        severity="note",
        what=(
            f"{len(chosen):,} of {counted(len(tail), 'volunteer')} with {ANSWERS} answers on gold agree with it less "
            f"than blind answers would ({named(graph.volunteers.ids[judged.codes[chosen]])})."
        ),
        why="They may have understood the question the other way round; votes count them as they stand.",
        advice="Ask them what they mean. A model with gold, such as IBCC, learns to turn their answers round.",
        ids=graph.volunteers.ids[judged.codes[chosen]],
        evidence={
            "answers": judged.n_answers[chosen],
            "right": rate[chosen],
            "by_chance": judged.chance[chosen],
        },
        numbers={"volunteers": len(chosen), "judged": len(tail)},
    )
    return [finding]


def _swapped(graph: CrowdGraph, answers: FirstAnswers, meaning: Array) -> list[Finding]:
    """Pairs of classes each of which is mostly called by the name of the other."""
    n_classes = len(graph.classes)
    truth, said = graph.gold.codes[answers.item], meaning[answers.label]
    rows = (truth >= 0) & (said >= 0)
    counts = np.bincount(truth[rows] * n_classes + said[rows], minlength=n_classes**2).reshape(n_classes, n_classes)
    right, wrong = np.diag(counts)[:, None], counts
    surely = upper_tail(wrong, right + wrong, 0.5) < LEVEL / n_classes**2
    left, other = np.nonzero(np.triu(surely & surely.T, 1))
    if not len(left):
        return []
    names = graph.classes
    pairs = [f"{names[one]} and {names[two]}" for one, two in zip(left.tolist(), other.tolist(), strict=True)]
    finding = Finding(
        topic="switching",
        name="swapped classes",
        severity="warning",
        what=f"Classes that volunteers mostly call by each other's names, according to gold: {named(pairs)}.",
        why="A crowd hardly ever takes two classes for each other: labels or gold are probably mixed up in the file.",
        advice="Check what these labels and these classes of gold mean.",
        subject="class",
        ids=np.array([names[code] for code in np.unique(np.append(left, other)).tolist()], dtype=object),
        numbers={"pairs": len(left)},
    )
    return [finding]


def _agreement(graph: CrowdGraph, answers: FirstAnswers) -> list[Finding]:
    """How far volunteers agree: a warning if hardly more than by chance and without gold, a note if it may be so."""
    found = agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
    if found.n_items < ITEMS or found.chance == 1:
        return []
    low, unsure = found.highest_kappa < KAPPA, found.lowest_kappa <= 0
    why = (
        "Volunteers answer blindly, or groups contradict each other: without gold models find no classes, or any."
        if low
        else "This may be chance: by themselves these answers do not tell the classes, and a model may find any."
    )
    advice = "Check that item ids name the same thing for everybody; compare with gold before trusting a model."
    finding = Finding(
        topic="switching",
        name="no agreement" if low or unsure else "agreement",
        severity="warning" if low and not len(graph.gold) else "note" if low or unsure else "info",
        what=(
            f"Two volunteers who answer the same item agree {percent(found.share)} of the time; "
            f"{percent(found.chance)} would by chance (kappa {found.kappa:.2f})."
        ),
        why=why if low or unsure else "",
        advice=advice if low or unsure else "",
        subject="item",
        numbers={"agree": found.share, "by_chance": found.chance, "kappa": found.kappa, "items": found.n_items},
    )
    return [finding]
