"""Checks of labels and gold: rare or misspelt labels, classes that are mixed up, and too little gold."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, id_array
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis._statistics import AnswerCodes, first_answers, rater_agreement, upper_tail
from crowdgraph.diagnosis.findings import Finding, FindingType, reports
from crowdgraph.messages import Hint

__all__ = ["check_gold", "check_labels", "check_switching"]

# Labels

# A label is rare with fewer answers than this, or with a smaller share of them.
MIN_LABEL_ANSWERS, MIN_LABEL_SHARE = 10, 0.001
# Among fewer answers than this a label may be missing by chance.
MIN_ANSWERS_FOR_RARITY = 200

LABELS_SPELT_ALIKE = FindingType(
    topic="labels",
    name="labels spelt alike",
    severity="warning",
    why="To a model they are as different as yes and no.",
    advice="Spell each label in one way before building the graph.",
    subject="label",
)
ONE_LABEL = FindingType(
    topic="labels",
    name="one label",
    severity="warning",
    why="Where nobody ever gives another label, nothing can be learned about items or volunteers.",
    advice="Check which column holds the labels, and whether the file was filtered by label.",
    subject="label",
)
RARE_LABELS = FindingType(
    topic="labels",
    name="rare labels",
    severity="note",
    why="What volunteers mean by a label that they hardly ever give is assumed rather than learned.",
    advice="Merge rare labels with others before building the graph, or leave out those that are mistakes.",
    subject="label",
)


@reports(RARE_LABELS, LABELS_SPELT_ALIKE, ONE_LABEL)
def check_labels(graph: CrowdGraph) -> list[Finding]:
    """Find labels that are hardly ever given, or spelt in several ways, and graphs with just one."""
    n_answers = len(graph.answers)
    if not n_answers:
        return []
    counts = np.bincount(graph.answers.label, minlength=len(graph.labels))
    findings = _spelt_alike(graph, counts)
    if np.count_nonzero(counts) == 1:
        return [*findings, _one_label(graph, counts)]
    return findings + (_rare(graph, counts) if n_answers >= MIN_ANSWERS_FOR_RARITY else [])


def _one_label(graph: CrowdGraph, counts: Array) -> Finding:
    label, n_answers = graph.labels[int(counts.argmax())], int(counts.sum())
    return ONE_LABEL.finding(
        f"All {n_answers:,} answers say {label}." if n_answers > 1 else f"The only answer says {label}.",
        ids=id_array([label]),
        numbers={"answers": n_answers},
    )


def _rare(graph: CrowdGraph, counts: Array) -> list[Finding]:
    rare = np.flatnonzero((counts < MIN_LABEL_ANSWERS) | (counts < MIN_LABEL_SHARE * counts.sum()))
    if not len(rare):
        return []
    rare = rare[np.argsort(counts[rare], kind="stable")]
    names = [graph.labels[code] for code in rare.tolist()]
    finding = RARE_LABELS.finding(
        f"{quantity(len(rare), 'label')} ({join_names(names)}) of {len(counts):,} "
        f"{'was' if len(rare) == 1 else 'were'} given {quantity(int(counts[rare].sum()), 'time')} among "
        f"{quantity(int(counts.sum()), 'answer')}.",
        ids=id_array(names),
        evidence={"answers": counts[rare]},
        numbers={"labels": len(rare), "answers": int(counts[rare].sum())},
    )
    return [finding]


def _spelt_alike(graph: CrowdGraph, counts: Array) -> list[Finding]:
    """Report labels that differ only in case, in spaces or in the way a number is written."""
    codes_by_spelling: dict[str, list[int]] = defaultdict(list)
    for code, label in enumerate(graph.labels):
        codes_by_spelling[_normalised(str(label))].append(code)
    codes = [code for alike in codes_by_spelling.values() if len(alike) > 1 for code in alike]
    if not codes:
        return []
    names = [graph.labels[code] for code in codes]
    finding = LABELS_SPELT_ALIKE.finding(
        f"{quantity(len(codes), 'label')} differ in spelling only: {join_names(map(repr, names), most=6)}.",
        ids=id_array(names),
        evidence={"answers": counts[codes]},
        numbers={"labels": len(codes)},
    )
    return [finding]


def _normalised(label: str) -> str:
    """Return a label in the spelling that it shares with its variants."""
    try:
        return str(float(label))
    except ValueError:
        return " ".join(label.replace("_", " ").replace("-", " ").casefold().split())


# Label switching

# A volunteer is compared with gold from so many answers on, a crowd from so many volunteers on.
MIN_GOLD_ANSWERS, MIN_VOLUNTEERS = 10, 5
# How probable it may be that volunteers or classes in order look as if they were not.
SWITCHING_LEVEL = 1e-3
# Below this kappa volunteers hardly agree beyond chance; kappa is measured from so many items with two answers on.
LOW_KAPPA, MIN_ITEMS_FOR_KAPPA = 0.05, 50

AGREEMENT = FindingType(topic="switching", name="agreement", severity="info", subject="item")
NO_AGREEMENT = FindingType(
    topic="switching",
    name="no agreement",
    severity="note",
    why=("This may be chance: these answers alone do not determine the classes, and a model may find any."),
    advice="Check that an item id means the same item for everybody; compare with gold before trusting a model.",
    subject="item",
)
NO_GOLD = FindingType(
    topic="switching",
    name="no gold",
    severity="note",
    why="That volunteers are right more often than not is then an assumption, and nothing can be checked.",
    advice=Hint(
        "Add the classes of some items with graph.with_gold({item: class, ...}).",
        cli="Add the classes of some items with --gold FILE.",
    ),
    subject="class",
)
WORSE_THAN_CHANCE = FindingType(
    topic="switching",
    name="worse than chance",
    severity="warning",
    why="A crowd is hardly ever wrong on purpose: labels or gold classes are probably mixed up in the file.",
    advice="Check what each label and each class of gold means, and that gold belongs to these items.",
)
SWAPPED_CLASSES = FindingType(
    topic="switching",
    name="swapped classes",
    severity="warning",
    why="A crowd hardly ever takes two classes for each other: labels or gold are probably mixed up in the file.",
    advice="Check what these labels and these classes of gold mean.",
    subject="class",
)
CONTRARY_VOLUNTEERS = FindingType(
    topic="switching",
    name="contrary volunteers",
    severity="note",
    why="They may have understood the question the other way round; votes count their answers as they are.",
    advice="Ask them what they mean. A model with gold, such as IBCC, learns to turn their answers round.",
)


class GoldRecord(NamedTuple):
    """Of some volunteers: their codes, answers on gold, right ones, and how often they would be right by chance."""

    codes: Array
    n_answers: Array
    n_right: Array
    chance: Array


@reports(AGREEMENT, NO_AGREEMENT, NO_GOLD, WORSE_THAN_CHANCE, SWAPPED_CLASSES, CONTRARY_VOLUNTEERS)
def check_switching(graph: CrowdGraph) -> list[Finding]:
    """Find signs that classes may be taken for each other, and that nothing shows which label means which class."""
    answers = first_answers(graph)
    if not len(answers.item) or len(graph.labels) < 2:
        return []
    findings = _agreement(graph, answers)
    if not len(graph.gold):
        return [*findings, _no_gold(graph)]
    meaning = _class_of_label(graph)
    if len(graph.classes) < 2 or (meaning < 0).all():
        return findings
    record = _gold_record(graph, answers, meaning)
    worse = _worse_than_chance(graph, record)
    return findings + (worse or _swapped(graph, answers, meaning)) + _contrary(graph, record)


def _class_of_label(graph: CrowdGraph) -> Array:
    """Return the code of the class that each label names, (L,); -1 for labels that name none."""
    codes = {name: code for code, name in enumerate(graph.classes)}
    return np.array([codes.get(label, -1) for label in graph.labels])


def _no_gold(graph: CrowdGraph) -> Finding:
    if set(graph.classes) <= set(graph.labels):
        return NO_GOLD.finding("The graph has no gold.")
    return NO_GOLD.finding(
        f"The graph has no gold, and its labels do not name the classes {join_names(graph.classes)}.",
        severity="warning",
        why="Nothing shows which label votes for which class, so classes can be taken for each other.",
        advice=Hint(
            "Add the classes of some items with graph.with_gold({item: class, ...}), or say what labels mean with "
            "votes={label: class, ...}.",
            cli="Add the classes of some items with --gold FILE, or say what labels mean with --vote LABEL=CLASS.",
        ),
    )


def _gold_record(graph: CrowdGraph, answers: AnswerCodes, meaning: Array) -> GoldRecord:
    """Count how often volunteers with enough answers on gold are right, and would be if they answered blindly."""
    n_volunteers, n_classes = len(graph.volunteers), len(graph.classes)
    truth, answered = graph.gold.codes[answers.item], meaning[answers.label]
    rows = np.flatnonzero((truth >= 0) & (answered >= 0))
    volunteer, truth, answered = answers.volunteer[rows].astype(np.int64), truth[rows], answered[rows]
    n_answers = np.bincount(volunteer, minlength=n_volunteers)
    n_right = np.bincount(volunteer[truth == answered], minlength=n_volunteers)
    n_true, n_answered = (
        np.bincount(volunteer * n_classes + code, minlength=n_volunteers * n_classes).reshape(-1, n_classes)
        for code in (truth, answered)
    )
    chance = (n_true * n_answered).sum(axis=1) / np.maximum(n_answers, 1) ** 2
    codes = np.flatnonzero(n_answers >= MIN_GOLD_ANSWERS)
    return GoldRecord(codes, n_answers[codes], n_right[codes], chance[codes])


def _worse_than_chance(graph: CrowdGraph, record: GoldRecord) -> list[Finding]:
    """Warn if most volunteers, and all answers together, agree with gold less than blind answers would."""
    n = len(record.codes)
    below = record.n_right < record.chance * record.n_answers
    n_below = int(np.count_nonzero(below))
    right, expected = record.n_right.sum(), (record.chance * record.n_answers).sum()
    if n < MIN_VOLUNTEERS or not upper_tail(n_below, n, 0.5) < 0.05 or not right < expected:
        return []
    total = record.n_answers.sum()
    finding = WORSE_THAN_CHANCE.finding(
        f"{n_below:,} of {quantity(n, 'volunteer')} with {MIN_GOLD_ANSWERS} answers on gold agree with it less than "
        f"blind answers would; all of them {percent(right / total)} of the time, by chance "
        f"{percent(expected / total)}.",
        ids=graph.volunteers.ids[record.codes[below]],
        evidence={"right": (record.n_right / record.n_answers)[below], "by_chance": record.chance[below]},
        numbers={"volunteers": n_below, "judged": n, "right": right / total, "by_chance": expected / total},
    )
    return [finding]


def _contrary(graph: CrowdGraph, record: GoldRecord) -> list[Finding]:
    """Report volunteers who are wrong so often that it cannot be chance."""
    tail = upper_tail(record.n_answers - record.n_right, record.n_answers, 1 - record.chance)
    contrary = np.flatnonzero(tail < SWITCHING_LEVEL / max(len(tail), 1))
    if not len(contrary):
        return []
    right = record.n_right / record.n_answers
    contrary = contrary[np.argsort((right - record.chance)[contrary], kind="stable")]
    ids = graph.volunteers.ids[record.codes[contrary]]
    finding = CONTRARY_VOLUNTEERS.finding(
        f"{len(contrary):,} of {quantity(len(tail), 'volunteer')} with {MIN_GOLD_ANSWERS} answers on gold "
        f"agree{'s' * (len(contrary) == 1)} with it less than blind answers would ({join_names(ids)}).",
        ids=ids,
        evidence={
            "answers": record.n_answers[contrary],
            "right": right[contrary],
            "by_chance": record.chance[contrary],
        },
        numbers={"volunteers": len(contrary), "judged": len(tail)},
    )
    return [finding]


def _swapped(graph: CrowdGraph, answers: AnswerCodes, meaning: Array) -> list[Finding]:
    """Report pairs of classes each of which is mostly called by the name of the other."""
    n_classes = len(graph.classes)
    truth, answered = graph.gold.codes[answers.item], meaning[answers.label]
    rows = (truth >= 0) & (answered >= 0)
    counts = np.bincount(truth[rows] * n_classes + answered[rows], minlength=n_classes**2).reshape(n_classes, n_classes)
    right, wrong = np.diag(counts)[:, None], counts
    mostly_wrong = upper_tail(wrong, right + wrong, 0.5) < SWITCHING_LEVEL / n_classes**2
    one, other = np.nonzero(np.triu(mostly_wrong & mostly_wrong.T, 1))
    if not len(one):
        return []
    names = graph.classes
    pairs = [f"{names[left]} and {names[right]}" for left, right in zip(one.tolist(), other.tolist(), strict=True)]
    finding = SWAPPED_CLASSES.finding(
        f"Classes that volunteers mostly call by each other's names, according to gold: {join_names(pairs)}.",
        ids=np.array([names[code] for code in np.unique(np.append(one, other)).tolist()], dtype=object),
        numbers={"pairs": len(one)},
    )
    return [finding]


def _agreement(graph: CrowdGraph, answers: AnswerCodes) -> list[Finding]:
    """Report how far volunteers agree: a warning if hardly beyond chance and without gold, a note if it may be so."""
    agreement = rater_agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
    if agreement.n_items < MIN_ITEMS_FOR_KAPPA or agreement.chance == 1:
        return []
    what = (
        f"Two volunteers who answer the same item agree {percent(agreement.share)} of the time; "
        f"{percent(agreement.chance)} would by chance (kappa {agreement.kappa:.2f})."
    )
    numbers = {
        "agree": agreement.share,
        "by_chance": agreement.chance,
        "kappa": agreement.kappa,
        "items": agreement.n_items,
    }
    if agreement.highest_kappa < LOW_KAPPA:
        finding = NO_AGREEMENT.finding(
            what,
            severity="note" if len(graph.gold) else "warning",
            why=(
                "Volunteers answer blindly, or groups contradict each other: without gold, models find no classes or "
                "arbitrary ones."
            ),
            numbers=numbers,
        )
    elif agreement.lowest_kappa <= 0:
        finding = NO_AGREEMENT.finding(what, numbers=numbers)
    else:
        finding = AGREEMENT.finding(what, numbers=numbers)
    return [finding]


# Gold

# A class has little gold with fewer items than this, and gold is skewed if a class has less than this share.
MIN_GOLD_ITEMS, SKEWED_SHARE = 10, 0.05
# From this share of gold items that nobody answered on, ids probably do not match.
UNMATCHED_SHARE = 0.5

GOLD = FindingType(topic="gold", name="gold", severity="info", subject="class")
SKEWED_GOLD = FindingType(
    topic="gold",
    name="skewed gold",
    severity="note",
    why="With a rare class, accuracy says little: whoever never names it is still right most of the time.",
    advice="Compare models by AUC, log loss or recall of the rare class, not by accuracy.",
    subject="class",
)
LITTLE_GOLD = FindingType(
    topic="gold",
    name="classes with little gold",
    severity="note",
    why="How volunteers answer these classes, and how well models find them, cannot be checked.",
    advice="Have experts label more items of these classes; cross validation over so few is left to chance.",
    subject="class",
)
GOLD_WITHOUT_ANSWERS = FindingType(
    topic="gold",
    name="gold without answers",
    severity="note",
    why="Such gold is not used; if there is much of it, the ids of gold and responses may be written differently.",
    advice="Compare a few ids of both files: leading zeros, suffixes, numbers against text.",
    subject="item",
)


@reports(GOLD, SKEWED_GOLD, LITTLE_GOLD, GOLD_WITHOUT_ANSWERS)
def check_gold(graph: CrowdGraph) -> list[Finding]:
    """Report how gold is spread over the classes, and gold whose items nobody answered."""
    gold = graph.gold
    findings = [_gold_without_answers(len(gold), gold.n_unmatched)] if gold.n_unmatched else []
    if not len(gold):
        return findings
    counts = gold.probs[gold.known].sum(axis=0)
    return [*findings, _class_shares(graph, counts), *_little_gold(graph, counts)]


def _class_shares(graph: CrowdGraph, counts: Array) -> Finding:
    shares = counts / counts.sum()
    skewed = 0 < shares[int(shares.argmin())] < SKEWED_SHARE
    parts = [f"{name} {percent(float(share))}" for name, share in zip(graph.classes, shares, strict=True)]
    covered = len(graph.gold) / max(len(graph.items), 1)
    return (SKEWED_GOLD if skewed else GOLD).finding(
        f"Gold covers {len(graph.gold):,} of {quantity(len(graph.items), 'item')} ({percent(covered)}): "
        f"{join_names(parts, most=8)}.",
        ids=id_array(graph.classes),
        evidence={"gold": counts, "share": shares},
        numbers={"items": len(graph.gold), "share": covered},
    )


def _little_gold(graph: CrowdGraph, counts: Array) -> list[Finding]:
    codes = np.flatnonzero(counts < MIN_GOLD_ITEMS)
    if not len(codes):
        return []
    names = [graph.classes[code] for code in codes.tolist()]
    finding = LITTLE_GOLD.finding(
        f"{quantity(len(codes), 'class')} ({join_names(names)}) of {len(counts):,} "
        f"{'has' if len(codes) == 1 else 'have'} fewer than {MIN_GOLD_ITEMS} gold items; "
        f"the smallest number is {counts.min():,.3g}.",
        ids=id_array(names),
        evidence={"gold": counts[codes]},
        numbers={"classes": len(codes), "fewest": float(counts.min())},
    )
    if all(count or name in graph.labels for name, count in zip(names, counts[codes], strict=True)):
        return [finding]
    why = "No label has the name of a class without gold, so nothing shows what volunteers say to such items."
    return [replace(finding, severity="warning", why=why)]


def _gold_without_answers(n_matched: int, n_unmatched: int) -> Finding:
    share = n_unmatched / (n_matched + n_unmatched)
    return GOLD_WITHOUT_ANSWERS.finding(
        f"Nobody answered {quantity(n_unmatched, 'gold item')} ({percent(share)} of the gold).",
        severity="warning" if share >= UNMATCHED_SHARE else "note",
        numbers={"items": n_unmatched, "share": share},
    )
