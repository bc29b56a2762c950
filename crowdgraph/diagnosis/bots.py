"""Checks for bots: answers faster than a person can look, the same answer to everything, and copied answers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis._statistics import (
    AnswerCodes,
    crowd_labels,
    first_answers,
    rater_agreement,
    seconds_since_start,
    upper_tail,
)
from crowdgraph.diagnosis.findings import Finding, FindingType, reports
from crowdgraph.messages import Hint

__all__ = ["check_constant_answers", "check_copied_answers", "check_fast_answers"]

# From this share of all answers on, those of suspected bots are a warning instead of a note.
WARNING_SHARE = 0.01

# Fast answers

# A run of so many answers in a row, within this many seconds each on average: nobody looks at items at that pace.
RUN_LENGTH, SECONDS_EACH = 30, 1.0
# Above this share of fast volunteers, the reason is not they but the way in which answers are sent.
MAX_FAST_SHARE = 0.2
# A volunteer sends answers in batches if this share of their answers has the same time as the answer before. Volunteers
# with fewer such pairs of answers do not count.
BATCH_SHARE, MIN_SUCCESSIVE = 0.1, 5

FAST_ANSWERS = FindingType(
    topic="bots",
    name="fast answers",
    severity="note",
    why="Nobody looks at items at that pace for long: this is a script, or somebody who clicks without looking.",
    advice=Hint(
        "Look at their answers; leave them out with graph.subgraph(volunteers=[...]) if no person gave them.",
        cli="Look at their answers; leave their rows out of the file if no person gave them.",
    ),
)


@reports(FAST_ANSWERS)
def check_fast_answers(graph: CrowdGraph) -> list[Finding]:
    """Find volunteers who gave thirty answers in less than thirty seconds."""
    seconds = seconds_since_start(graph)
    if seconds is None or not len(seconds):
        return []
    answers = graph.answers
    order = answers.by_volunteer.order
    volunteer, time = answers.volunteer[order], answers.of_responses(seconds)[order]
    in_batches = _many_send_batches(volunteer, time, len(graph.volunteers))
    if in_batches:
        # Several answers have one time, so the pace is that of the moments.
        moments = np.append(True, (volunteer[1:] != volunteer[:-1]) | (time[1:] != time[:-1]))
        volunteer, time = volunteer[moments], time[moments]
    fastest = _fastest_runs(volunteer, time, len(graph.volunteers))
    fast = np.flatnonzero(fastest < RUN_LENGTH * SECONDS_EACH)
    if not len(fast):
        return []
    n_responses = graph.volunteers.n_responses
    fast = fast[np.argsort(fastest[fast], kind="stable")]
    share = float(n_responses[fast].sum() / n_responses.sum())
    common = len(fast) > max(1, MAX_FAST_SHARE * np.count_nonzero(np.isfinite(fastest)))
    what = (
        f"{quantity(len(fast), 'volunteer')} ({join_names(graph.volunteers.ids[fast])}), with {percent(share)} of the "
        f"responses, gave {RUN_LENGTH} answers in a row in less than {RUN_LENGTH * SECONDS_EACH:g} seconds, the "
        f"fastest in {fastest[fast[0]]:,.3g}."
    )
    if in_batches:
        what += " Answers with the same time counted as one."
    batches = "So many are fast that answers may be sent in batches or from a queue; ask how the times are recorded."
    finding = FAST_ANSWERS.finding(
        what,
        advice=batches if common else FAST_ANSWERS.advice,
        severity="warning" if share >= WARNING_SHARE and not common else "note",
        ids=graph.volunteers.ids[fast],
        evidence={"seconds_for_30": fastest[fast], "responses": n_responses[fast]},
        numbers={"volunteers": len(fast), "share": share},
    )
    return [finding]


def _many_send_batches(volunteer: Array, time: Array, n_volunteers: int) -> bool:
    """Return whether many volunteers, and not just a few, send several answers at one moment."""
    successive = np.flatnonzero(volunteer[1:] == volunteer[:-1]) + 1
    at_once = successive[time[successive] == time[successive - 1]]
    n_successive = np.bincount(volunteer[successive], minlength=n_volunteers)
    n_at_once = np.bincount(volunteer[at_once], minlength=n_volunteers)
    frequent = n_successive >= MIN_SUCCESSIVE
    return bool(
        frequent.any() and (n_at_once[frequent] >= BATCH_SHARE * n_successive[frequent]).mean() > MAX_FAST_SHARE
    )


def _fastest_runs(volunteer: Array, time: Array, n_volunteers: int) -> Array:
    """Return the shortest time in which each volunteer gave a run of answers, (V,); infinite for those with fewer."""
    fastest = np.full(n_volunteers, np.inf)
    last = np.arange(RUN_LENGTH - 1, len(volunteer))
    same = last[volunteer[last] == volunteer[last - (RUN_LENGTH - 1)]]
    np.minimum.at(fastest, volunteer[same], time[same] - time[same - (RUN_LENGTH - 1)])
    return fastest


# Constant answers

# A volunteer is constant if this share of at least so many answers is the same label ...
CONSTANT_SHARE, MIN_CONSTANT_ANSWERS = 0.98, 20
# ... and the others give another label to at least so many of the items; with fewer, all items may be alike.
MIN_CONTRADICTED = 5
# How probable it may be that anybody in a crowd without constant volunteers looks like one.
CONSTANT_LEVEL = 1e-3

CONSTANT_ANSWERS = FindingType(
    topic="bots",
    name="constant answers",
    severity="note",
    why="Such answers carry no information about the items, yet votes count them in full.",
    advice="A model such as IBCC learns to ignore them. If you count votes, leave them out first.",
)


@reports(CONSTANT_ANSWERS)
def check_constant_answers(graph: CrowdGraph) -> list[Finding]:
    """Find volunteers with one label for everything, where this cannot be because all their items are alike."""
    if len(graph.labels) < 2:
        return []
    answers, n_labels = first_answers(graph), len(graph.labels)
    cells = answers.volunteer.astype(np.int64) * n_labels + answers.label
    counts = np.bincount(cells, minlength=len(graph.volunteers) * n_labels).reshape(-1, n_labels)
    n_answers, favourite = counts.sum(axis=1), counts.argmax(axis=1)
    constant = (n_answers >= MIN_CONSTANT_ANSWERS) & (counts.max(axis=1) >= CONSTANT_SHARE * n_answers)
    candidates = np.flatnonzero(constant)
    if not len(candidates):
        return []
    n_repeated, n_contradicted, chance = _against_the_crowd(graph, answers, favourite)
    tail = upper_tail(n_repeated[candidates], n_contradicted[candidates], chance[favourite[candidates]])
    significant = tail < CONSTANT_LEVEL / len(candidates)
    codes = candidates[(n_contradicted[candidates] >= MIN_CONTRADICTED) & significant]
    if not len(codes):
        return []
    codes = codes[np.argsort(-n_answers[codes], kind="stable")]
    share = float(n_answers[codes].sum() / n_answers.sum())
    labels = np.array([str(label) for label in graph.labels], dtype=object)
    ids = graph.volunteers.ids[codes]
    finding = CONSTANT_ANSWERS.finding(
        f"{quantity(len(codes), 'volunteer')} ({join_names(ids)}), with {percent(share)} of the answers, nearly always "
        f"gave the same label; {ids[0]} said {labels[favourite[codes[0]]]} to {n_answers[codes[0]]:,} items, and the "
        f"others say something else of {n_contradicted[codes[0]]:,} of them.",
        severity="warning" if share >= WARNING_SHARE else "note",
        ids=ids,
        evidence={
            "label": labels[favourite[codes]],
            "answers": n_answers[codes],
            "others_say_otherwise": n_contradicted[codes],
        },
        numbers={"volunteers": len(codes), "share": share},
    )
    return [finding]


def _against_the_crowd(graph: CrowdGraph, answers: AnswerCodes, favourite: Array) -> tuple[Array, Array, Array]:
    """Count how volunteers answer the items to which the crowd gives another label than the volunteer's favourite.

    Returns how often each volunteer gave the favourite label nevertheless and how many such items there are, (V,), and
    how often anybody gives each label to an item to which the crowd gives another, (L,).
    """
    n_volunteers, n_labels = len(graph.volunteers), len(graph.labels)
    sizes = {"n_volunteers": n_volunteers, "n_items": len(graph.items), "n_labels": n_labels}
    crowd = crowd_labels(answers, **sizes).label[answers.item]
    contradicted = crowd != favourite[answers.volunteer]
    n_contradicted = np.bincount(answers.volunteer[contradicted], minlength=n_volunteers)
    repeated = contradicted & (answers.label == favourite[answers.volunteer])
    n_repeated = np.bincount(answers.volunteer[repeated], minlength=n_volunteers)
    n_wrong = np.bincount(answers.label[answers.label != crowd], minlength=n_labels)
    n_elsewhere = len(answers.label) - np.bincount(crowd, minlength=n_labels)
    return n_repeated, n_contradicted, (n_wrong + 1) / (n_elsewhere + 2)


# Copied answers

# A suspected pair has at least so many items in common, answers at least this share of them alike, and departs at least
# so often together from what the crowd says. Right answers that were copied look like skill.
MIN_COMMON, MIN_ALIKE_SHARE, MIN_DEPARTURES = 20, 0.95, 8
# The pair differs at most this share of the times that their habits let expect: with many items in common, a little
# less often than that would already be significant.
MAX_DIFFERENCE = 0.25
# How probable it may be that any pair of a crowd without copies looks so.
COPIED_LEVEL = 1e-3
# Items are grouped by the share of the crowd that agrees on them, since many volunteers err on hard ones.
AGREEMENT_EDGES = (0.6, 0.8)
# Below this agreement beyond chance, the crowd's label of an item means nothing.
MIN_KAPPA = 0.1
# A volunteer's habits start from those of the crowd, as if so many answers had been seen.
PRIOR_STRENGTH = 1.0
# How many meetings of two volunteers at an item are examined, how many pairs are held in memory at a time, and for how
# many pairs the common items are listed at a time.
MAX_MEETINGS, PAIR_BLOCK, CHANCE_BLOCK = 100_000_000, 10_000_000, 1_000

COPIED_ANSWERS = FindingType(
    topic="bots",
    name="copied answers",
    severity="note",
    why="Copies count as independent voices: items look surer than they are, and shared errors look like truth.",
    advice="Look at the pairs; if one person or script is behind them, keep one of each.",
)
COPIES_NOT_EXAMINED = FindingType(
    topic="bots",
    name="copies not examined",
    severity="info",
    why=(
        "Either there are too many volunteers, and the less active ones were left out, or the crowd agrees so little "
        "that copies can be distinguished from skill only on items with gold."
    ),
    advice=Hint(
        "Examine parts of the crowd with graph.subgraph(items=[...]).diagnose(), or add gold.",
        cli="Examine parts of the crowd, each as a file of its own, or add gold.",
    ),
)


class Pairs(NamedTuple):
    """Pairs of volunteers.

    Attributes
    ----------
    left, right
        Their codes.
    n_common, n_alike, n_departures
        How many items both answered, how many alike, and how many of these against the crowd.
    """

    left: Array
    right: Array
    n_common: Array
    n_alike: Array
    n_departures: Array

    def where(self, mask: Array) -> Pairs:
        """Return the pairs for which a mask holds, or those at some positions."""
        return Pairs(*(column[mask] for column in self))


@reports(COPIED_ANSWERS, COPIES_NOT_EXAMINED)
def check_copied_answers(graph: CrowdGraph) -> list[Finding]:
    """Find pairs of volunteers who make the same errors on the same items, beyond what their habits explain."""
    answers = first_answers(graph)
    if len(graph.labels) < 2 or not len(answers.item):
        return []
    comparable = _comparable(graph, answers)
    examined = _affordable(comparable, _eligible(graph, comparable), len(graph.volunteers))
    skipped = np.setdiff1d(_eligible(graph, answers), examined)
    return _not_examined(graph, skipped) + _copies(
        graph, _renumbered(comparable, examined, len(graph.volunteers)), examined
    )


def _comparable(graph: CrowdGraph, answers: AnswerCodes) -> AnswerCodes:
    """Return the answers to items whose usual answer is known: all, or those with gold if the crowd disagrees.

    Where groups of volunteers contradict each other, the crowd's label means nothing, and two good volunteers look like
    copies.
    """
    agreement = rater_agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
    if agreement.kappa >= MIN_KAPPA:
        return answers
    return answers.where(graph.gold.codes[answers.item] >= 0)


def _eligible(graph: CrowdGraph, answers: AnswerCodes) -> Array:
    """Return the volunteers with enough answers, the most active first."""
    n_answers = np.bincount(answers.volunteer, minlength=len(graph.volunteers))
    eligible = np.flatnonzero(n_answers >= MIN_COMMON)
    return eligible[np.argsort(-n_answers[eligible], kind="stable")]


def _affordable(answers: AnswerCodes, ranked: Array, n_volunteers: int) -> Array:
    """Return as many of the volunteers, the first in rank, as can be compared with each other, in order of codes."""
    rank = np.full(n_volunteers, len(ranked))
    rank[ranked] = np.arange(len(ranked))
    rank_of_answer = rank[answers.volunteer]

    def n_meetings(n: int) -> int:
        return int((np.bincount(answers.item[rank_of_answer < n]) ** 2).sum())

    n_affordable = bisect_right(range(len(ranked) + 1), MAX_MEETINGS, key=n_meetings) - 1
    return np.sort(ranked[:n_affordable])


def _renumbered(answers: AnswerCodes, examined: Array, n_volunteers: int) -> AnswerCodes:
    """Return the answers of some volunteers, who are numbered by their position among these."""
    position = np.full(n_volunteers, -1)
    position[examined] = np.arange(len(examined))
    volunteer = position[answers.volunteer]
    rows = np.flatnonzero(volunteer >= 0)
    return AnswerCodes(volunteer[rows], answers.item[rows].astype(np.int64), answers.label[rows])


def _copies(graph: CrowdGraph, answers: AnswerCodes, examined: Array) -> list[Finding]:
    """Report the pairs whose likeness their habits do not explain."""
    kind = _item_kinds(graph, answers, len(examined))
    cells = kind[answers.item] * len(graph.labels) + answers.label
    n_kinds = (len(graph.labels) + len(graph.classes)) * (len(AGREEMENT_EDGES) + 1)
    crowd = np.bincount(cells, minlength=n_kinds * len(graph.labels)).reshape(n_kinds, -1)
    n_pairs, pairs = _similar_pairs(answers, crowd.argmax(axis=1)[kind], len(examined), len(graph.labels))
    if not len(pairs.left):
        return []
    chance = _chance_alike(answers, pairs, kind, crowd)
    tail = upper_tail(pairs.n_alike, pairs.n_common, chance)
    close = 1 - pairs.n_alike / pairs.n_common <= MAX_DIFFERENCE * (1 - chance)
    significant = np.flatnonzero(close & (tail < COPIED_LEVEL / n_pairs))
    if not len(significant):
        return []
    pairs = pairs.where(significant)
    pairs = pairs._replace(left=examined[pairs.left], right=examined[pairs.right])
    return [_copied_finding(graph, pairs, chance[significant])]


def _similar_pairs(answers: AnswerCodes, usual: Array, n_volunteers: int, n_labels: int) -> tuple[int, Pairs]:
    """Return how many pairs have enough items in common, and those who nearly always answer alike, also wrongly."""
    n_pairs, blocks = 0, [Pairs(*(np.zeros(0, dtype=np.int64) for _ in Pairs._fields))]
    for pairs in _meeting_pairs(answers, usual, n_volunteers, n_labels):
        n_pairs += len(pairs.left)
        similar = (pairs.n_alike >= MIN_ALIKE_SHARE * pairs.n_common) & (pairs.n_departures >= MIN_DEPARTURES)
        blocks.append(pairs.where(similar))
    return n_pairs, Pairs(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))


def _meeting_pairs(answers: AnswerCodes, usual: Array, n_volunteers: int, n_labels: int) -> Iterator[Pairs]:
    """Yield all pairs with enough items in common, block by block."""
    cells = answers.item * n_labels + answers.label
    departs = answers.label != usual[answers.item]
    met = _incidence(answers.volunteer, answers.item, n_volunteers)
    alike = _incidence(answers.volunteer, cells, n_volunteers)
    against = _incidence(answers.volunteer[departs], cells[departs], n_volunteers)
    size = max(1, PAIR_BLOCK // max(n_volunteers, 1))
    for start in range(0, n_volunteers, size):
        common = (met[start : start + size] @ met.T).tocoo()
        left, right = common.coords
        enough = (left + start < right) & (common.data >= MIN_COMMON)
        left, right, n_common = left[enough], right[enough], common.data[enough]
        if len(left):
            both = [(part[start : start + size] @ part.T).tocsr()[left, right] for part in (alike, against)]
            yield Pairs(left + start, right, n_common, *(np.asarray(count).ravel() for count in both))


def _incidence(rows: Array, values: Array, n_rows: int) -> Any:
    """Return a sparse matrix of volunteers by the values that occur, with ones where a volunteer has a value."""
    from scipy.sparse import csr_array

    unique, columns = np.unique(values, return_inverse=True)
    return csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(n_rows, len(unique)))


def _chance_alike(answers: AnswerCodes, pairs: Pairs, kind: Array, crowd: Array) -> Array:
    """Return how often each pair would answer alike if both just followed their habits, on average over their items."""
    from scipy.sparse import csr_array

    involved, ends = np.unique([pairs.left, pairs.right], return_inverse=True)
    own = answers.where(np.isin(answers.volunteer, involved))
    own = own._replace(volunteer=np.searchsorted(involved, own.volunteer))
    habits = _habits(own, kind, crowd, len(involved))
    ones = np.ones(len(own.item), dtype=np.int32)
    met = csr_array((ones, (own.volunteer, own.item)), shape=(len(involved), len(kind)))
    cells = (np.arange(len(kind)), kind)
    by_kind = csr_array((np.ones(len(kind), dtype=np.int32), cells), shape=(len(kind), len(crowd)))
    chance = np.ones(len(pairs.left))
    for start in range(0, len(chance), CHANCE_BLOCK):
        block = slice(start, start + CHANCE_BLOCK)
        left, right = ends.reshape(2, -1)[:, block]
        n_common = (met[left].multiply(met[right]) @ by_kind).toarray()
        chance[block] = (n_common * (habits[left] * habits[right]).sum(axis=2)).sum(axis=1) / n_common.sum(axis=1)
    return chance


def _habits(answers: AnswerCodes, kind: Array, crowd: Array, n_volunteers: int) -> Array:
    """Return how often each of the volunteers gives each label to each kind of item, (V, kinds, L)."""
    cells = answers.volunteer * crowd.size + kind[answers.item] * crowd.shape[1] + answers.label
    counts = np.bincount(cells, minlength=n_volunteers * crowd.size).reshape(n_volunteers, *crowd.shape)
    usual = crowd + 1 / crowd.shape[1]
    habits = counts + PRIOR_STRENGTH * usual / usual.sum(axis=1, keepdims=True)
    return np.asarray(habits / habits.sum(axis=2, keepdims=True))


def _item_kinds(graph: CrowdGraph, answers: AnswerCodes, n_volunteers: int) -> Array:
    """Return one number for each item's class, or else the crowd's label, and how far the crowd agrees on it."""
    crowd = crowd_labels(answers, n_volunteers=n_volunteers, n_items=len(graph.items), n_labels=len(graph.labels))
    has_gold = graph.gold.codes >= 0
    meaning = np.where(has_gold, len(graph.labels) + graph.gold.codes, np.maximum(crowd.label, 0))
    return np.asarray(meaning * (len(AGREEMENT_EDGES) + 1) + np.digitize(crowd.share, AGREEMENT_EDGES))


def _copied_finding(graph: CrowdGraph, pairs: Pairs, chance: Array) -> Finding:
    departures = pairs.n_departures
    ids, n_responses = graph.volunteers.ids, graph.volunteers.n_responses
    # Of each volunteer, the pair with most departures in common.
    owner, partner = np.append(pairs.left, pairs.right), np.append(pairs.right, pairs.left)
    order = np.lexsort((owner, -np.tile(departures, 2)))
    _, first = np.unique(owner[order], return_index=True)
    best = order[np.sort(first)]
    pair = best % len(departures)
    share = float(n_responses[owner[best]].sum() / n_responses.sum())
    top = int(departures.argmax())
    return COPIED_ANSWERS.finding(
        f"{quantity(len(best), 'volunteer')}, with {percent(share)} of the responses, form "
        f"{quantity(len(departures), 'pair')} who answer alike beyond chance; {ids[pairs.left[top]]} and "
        f"{ids[pairs.right[top]]} agree on {pairs.n_alike[top]:,} of {pairs.n_common[top]:,} items, "
        f"{quantity(int(departures[top]), 'time')} against the crowd, where their habits explain "
        f"{percent(float(chance[top]))}.",
        severity="warning" if share >= WARNING_SHARE else "note",
        ids=ids[owner[best]],
        evidence={
            "partner": ids[partner[best]],
            "common": pairs.n_common[pair],
            "alike": pairs.n_alike[pair],
            "against_the_crowd": departures[pair],
            "expected_share": chance[pair],
        },
        numbers={"volunteers": len(best), "pairs": len(departures), "share": share},
    )


def _not_examined(graph: CrowdGraph, codes: Array) -> list[Finding]:
    if not len(codes):
        return []
    finding = COPIES_NOT_EXAMINED.finding(
        f"The answers of {quantity(len(codes), 'volunteer')} were not compared with those of others.",
        ids=graph.volunteers.ids[codes],
        numbers={"volunteers": len(codes)},
    )
    return [finding]
