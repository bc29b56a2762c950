"""Labels: hardly ever given, spelt in several ways, or just one."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, id_array
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis._statistics import FirstAnswers, first_answers, rater_agreement, upper_tail
from crowdgraph.diagnosis.findings import Finding

__all__ = ["find_gold", "find_labels", "find_switching"]

# A label is rare with fewer answers than this, or with a smaller share of them.
RARE_LABEL_ANSWERS, RARE = 10, 0.001
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
    rare = np.flatnonzero((counts < RARE_LABEL_ANSWERS) | (counts < RARE * counts.sum()))
    if not len(rare):
        return []
    rare = rare[np.argsort(counts[rare], kind="stable")]
    names = [graph.labels[code] for code in rare.tolist()]
    finding = Finding(
        topic="labels",
        name="rare labels",
        severity="note",
        what=(
            f"{quantity(len(rare), 'label')} ({join_names(names)}) of {len(counts):,} "
            f"{'was' if len(rare) == 1 else 'were'} "
            f"given {counts[rare].sum():,} times among {quantity(int(counts.sum()), 'answer')}."
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
        what=f"{quantity(len(codes), 'label')} differ in spelling only: {join_names(map(repr, names), most=6)}.",
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
        + ("." if named_by_labels else f", and its labels do not name the classes {join_names(graph.classes)}."),
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
            f"{n_below:,} of {quantity(n, 'volunteer')} with {ANSWERS} answers on gold agree with it less than blind "
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
            f"{len(chosen):,} of {quantity(len(tail), 'volunteer')} with {ANSWERS} answers on gold agree with it less "
            f"than blind answers would ({join_names(graph.volunteers.ids[judged.codes[chosen]])})."
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
        what=f"Classes that volunteers mostly call by each other's names, according to gold: {join_names(pairs)}.",
        why="A crowd hardly ever takes two classes for each other: labels or gold are probably mixed up in the file.",
        advice="Check what these labels and these classes of gold mean.",
        subject="class",
        ids=np.array([names[code] for code in np.unique(np.append(left, other)).tolist()], dtype=object),
        numbers={"pairs": len(left)},
    )
    return [finding]


def _agreement(graph: CrowdGraph, answers: FirstAnswers) -> list[Finding]:
    """How far volunteers agree: a warning if hardly more than by chance and without gold, a note if it may be so."""
    found = rater_agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
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


# A class has little gold with fewer items than this, and gold is skewed if a class has less than this share.
LITTLE_GOLD, SKEWED = 10, 0.05
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
            f"Gold covers {len(graph.gold):,} of {quantity(len(graph.items), 'item')} "
            f"({percent(len(graph.gold) / max(len(graph.items), 1))}): {join_names(parts, most=8)}."
        ),
        why="With a rare class, accuracy says little: who never names it is nearly always right." if skewed else "",
        advice="Compare models by AUC, log loss or recall of the rare class, not by accuracy." if skewed else "",
        subject="class",
        ids=id_array(graph.classes),
        evidence={"gold": counts, "share": shares},
        numbers={"items": len(graph.gold), "share": len(graph.gold) / max(len(graph.items), 1)},
    )


def _little(graph: CrowdGraph, counts: Array) -> list[Finding]:
    little = np.flatnonzero(counts < LITTLE_GOLD)
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
            f"{quantity(len(little), 'class')} ({join_names(names)}) of {len(counts):,} "
            f"with fewer than {LITTLE_GOLD} gold items; "
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
        what=f"Nobody answered {quantity(n_unmatched, 'gold item')} ({percent(share)} of the gold).",
        why="Such gold is not used; if there is much of it, the ids of gold and responses may be written differently.",
        advice="Compare a few ids of both files: leading zeros, suffixes, numbers against text.",
        subject="item",
        numbers={"items": n_unmatched, "share": share},
    )
    return [finding]
