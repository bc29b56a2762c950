"""Checks of responses: how many there are, how they cover the items, repeated answers, and their times."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import percent, quantity
from crowdgraph.core.clock import ticks
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.soft_answers import count_soft_answers
from crowdgraph.diagnosis._statistics import upper_tail
from crowdgraph.diagnosis.findings import Finding, FindingType, Severity, reports
from crowdgraph.messages import Hint

__all__ = ["check_counts", "check_coverage", "check_duplicates", "check_times"]

# Counts

# Above this share of responses without an answer, they are worth a note.
UNANSWERED_SHARE = 0.05

COUNTS = FindingType(topic="counts", name="counts", severity="info")
NO_ANSWERS = FindingType(
    topic="counts",
    name="no answers",
    severity="warning",
    why="Without answers nothing can be learned.",
    advice="Check which column holds the labels, and which filter made the file.",
)
SHOWN_NOT_ANSWERED = FindingType(
    topic="counts",
    name="shown but not answered",
    severity="info",
    why="Items that are skipped are often the hard ones; models leave these responses out.",
    advice="If skipping means something, such as 'cannot tell', make it a label of its own.",
)
SOFT_ANSWERS = FindingType(
    topic="counts",
    name="soft answers",
    severity="info",
    why="The checks of the doctor, and models without soft answers, know only the most probable label of each.",
    advice="Fit IBCC, DynIBCC, DawidSkene or a vote, for which soft answers count by their probabilities.",
)


@reports(COUNTS, NO_ANSWERS, SHOWN_NOT_ANSWERED, SOFT_ANSWERS)
def check_counts(graph: CrowdGraph) -> list[Finding]:
    """Report how much there is of everything; warn if there are no answers at all."""
    n_responses, n_answers = len(graph.responses), len(graph.answers)
    sizes = {
        "volunteers": int(np.count_nonzero(graph.volunteers.n_responses)),
        "items": int(np.count_nonzero(graph.items.n_responses)),
        "responses": n_responses,
        "answers": n_answers,
        "labels": len(graph.labels),
    }
    if not n_answers:
        what = f"There are no answers among {quantity(n_responses, 'response')}."
        return [NO_ANSWERS.finding(what, numbers=sizes)]
    counts = COUNTS.finding(
        f"{quantity(sizes['volunteers'], 'volunteer')} gave {quantity(n_answers, 'answer')} about "
        f"{quantity(sizes['items'], 'item')}, with {quantity(sizes['labels'], 'label')} to choose from.",
        numbers=sizes,
    )
    findings = [counts]
    if n_soft := count_soft_answers(graph):
        share = n_soft / n_answers
        findings.append(
            SOFT_ANSWERS.finding(
                f"{quantity(n_soft, 'answer')} ({percent(share)}) {'is' if n_soft == 1 else 'are'} soft: probabilities "
                "of several labels.",
                numbers={"soft": n_soft, "share": share},
            )
        )
    n_unanswered = n_responses - n_answers
    if not n_unanswered:
        return findings
    share = n_unanswered / n_responses
    unanswered = SHOWN_NOT_ANSWERED.finding(
        f"{quantity(n_unanswered, 'response')} ({percent(share)}) show{'s' * (n_unanswered == 1)} an item "
        "without an answer.",
        severity="note" if share > UNANSWERED_SHARE else "info",
        numbers={"unanswered": n_unanswered, "share": share},
    )
    return [*findings, unanswered]


# Coverage

# Worth a note: from this share of items that one volunteer alone answered. A warning: this share without any answer.
SINGLE_ANSWER_SHARE, EMPTY_SHARE = 0.1, 0.5
# From this share of items that one volunteer alone answered on, volunteers cannot be compared.
NEARLY_ALL_SINGLE = 0.9

COVERAGE = FindingType(topic="coverage", name="coverage", severity="info", subject="item")
ITEMS_WITHOUT_ANSWERS = FindingType(
    topic="coverage",
    name="items without answers",
    severity="note",
    why="Models only know how frequent classes are elsewhere; such items look as uncertain as they are.",
    advice=Hint(
        "Ask about them, or leave them out: graph.subgraph(items=[...]). Many may mean that ids do not match.",
        cli="Ask about them, or leave their rows out of the file. Many may mean that ids do not match.",
    ),
    subject="item",
)
ITEMS_WITH_ONE_ANSWER = FindingType(
    topic="coverage",
    name="items with one answer",
    severity="note",
    why="Their class is one person's word, and they do not show how far volunteers agree.",
    advice=Hint(
        "Ask a second volunteer about them; cg.allocation decides whom to ask about which first.",
        cli="Ask a second volunteer about them; crowdgraph allocate decides whom to ask about which first.",
    ),
    subject="item",
)


@reports(COVERAGE, ITEMS_WITHOUT_ANSWERS, ITEMS_WITH_ONE_ANSWER)
def check_coverage(graph: CrowdGraph) -> list[Finding]:
    """Report how many answers items have; several answers of one volunteer count once."""
    n_answers = graph.answers.first.n_by_item
    if not n_answers.any():
        return []
    return [_coverage(n_answers), *_without_answers(graph, n_answers), *_with_one_answer(graph, n_answers)]


def _coverage(n_answers: Array) -> Finding:
    answered = n_answers[n_answers > 0]
    most = quantity(int(answered.max()), "volunteer")
    if answered.min() == answered.max():
        what = f"Items were answered by {most} each."
    else:
        what = f"Items were answered by {answered.min():,} to {most}, with a median of {np.median(answered):,g}."
    return COVERAGE.finding(
        what,
        numbers={
            "median": float(np.median(answered)),
            "least": int(answered.min()),
            "most": int(answered.max()),
            "mean": float(answered.mean()),
        },
    )


def _without_answers(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    codes = np.flatnonzero(n_answers == 0)
    if not len(codes):
        return []
    share = len(codes) / len(n_answers)
    finding = ITEMS_WITHOUT_ANSWERS.finding(
        f"Nobody answered {len(codes):,} of {quantity(len(n_answers), 'item')} ({percent(share)}).",
        severity="warning" if share >= EMPTY_SHARE else "note",
        ids=graph.items.ids[codes],
        numbers={"items": len(codes), "share": share},
    )
    return [finding]


def _with_one_answer(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    codes = np.flatnonzero(n_answers == 1)
    share = len(codes) / np.count_nonzero(n_answers)
    if share < SINGLE_ANSWER_SHARE:
        return []
    finding = ITEMS_WITH_ONE_ANSWER.finding(
        f"{quantity(len(codes), 'item')} ({percent(share)} of those answered) rest{'s' * (len(codes) == 1)} on a "
        "single volunteer.",
        ids=graph.items.ids[codes],
        numbers={"items": len(codes), "share": share},
    )
    if share < NEARLY_ALL_SINGLE:
        return [finding]
    why = "Hardly anything can be checked: nobody's answers can be compared with those of others, only with gold."
    return [replace(finding, why=why)]


# Repeated answers

# From this share of all answers on, repeats are worth a note, and rows that occur twice a warning.
REPEAT_SHARE = 0.01
# Fewer repeats than this do not show whether volunteers are consistent.
MIN_REPEATS = 100
# Volunteers do not agree with themselves if chance alone would do as well with this probability, and if their agreement
# beyond chance is surely below this.
BLIND_PROBABILITY, BLIND_KAPPA = 0.05, 0.1

REPEATED_ANSWERS = FindingType(
    topic="duplicates",
    name="repeated answers",
    severity="info",
    why="Models without time count a repeat as if somebody else had given it; items then look too sure.",
    advice=Hint(
        "Keep the first or the last: from_responses(..., duplicates='last'); DynIBCC takes them as they come.",
        cli="Keep the first or the last: --duplicates last; DynIBCC takes them as they come.",
    ),
)
INCONSISTENT_REPEATS = FindingType(
    topic="duplicates",
    name="inconsistent repeats",
    severity="warning",
    why="Volunteers who do not agree with themselves do not look at the items, or see others under the same id.",
    advice="Check that an item id means the same item each time, and look at who repeats most.",
)
ROWS_TWICE = FindingType(
    topic="duplicates",
    name="rows twice",
    severity="warning",
    why="People do not answer twice so alike; rows were probably exported or sent twice, and count twice.",
    advice=Hint(
        "Leave them out with from_responses(..., duplicates='first'), and look at how the file was made.",
        cli="Leave them out with --duplicates first, and look at how the file was made.",
    ),
)


class Repeats(NamedTuple):
    """Of each repeated answer: its volunteer, whether label and time are those of the answer before, and the chance.

    The chance is how often two answers of the volunteer are the same, whatever the items.
    """

    volunteer: Array
    same: Array
    same_moment: Array
    chance: Array


@reports(REPEATED_ANSWERS, INCONSISTENT_REPEATS, ROWS_TWICE)
def check_duplicates(graph: CrowdGraph) -> list[Finding]:
    """Report how many answers repeat a volunteer and item, and how consistent volunteers are with themselves."""
    repeats = _repeats(graph)
    n_repeats, n_answers = len(repeats.volunteer), len(graph.answers)
    if not n_repeats:
        return []
    has_times = graph.responses.clock.kind != "order"
    if has_times:
        n_twice = int(np.count_nonzero(repeats.same & repeats.same_moment))
    else:
        # Without times only repeats that are all the same look like a mistake of the file.
        n_twice = n_repeats if n_repeats >= MIN_REPEATS and repeats.same.all() else 0
    findings = [_consistency(graph, repeats, n_answers)]
    if n_twice and n_twice >= REPEAT_SHARE * n_answers:
        how = "at the same moment" if has_times else "without a single exception"
        twice = ROWS_TWICE.finding(
            f"{quantity(n_twice, 'answer')} ({percent(n_twice / n_answers)}) repeat{'s' * (n_twice == 1)} another of "
            f"the same volunteer {how}.",
            numbers={"answers": n_twice, "share": n_twice / n_answers},
        )
        findings.append(twice)
    return findings


def _repeats(graph: CrowdGraph) -> Repeats:
    """Compare every answer of a volunteer to an item after the first with the one before it."""
    answers = graph.answers
    pairs = answers.volunteer.astype(np.int64) * len(graph.items) + answers.item
    order = np.argsort(pairs, kind="stable")
    later = np.flatnonzero(pairs[order[1:]] == pairs[order[:-1]]) + 1
    now, before = order[later], order[later - 1]
    return Repeats(
        volunteer=answers.volunteer[now],
        same=answers.label[now] == answers.label[before],
        same_moment=answers.time[now] == answers.time[before],
        chance=_chance_same(graph)[answers.volunteer[now]],
    )


def _chance_same(graph: CrowdGraph) -> Array:
    """Return how often two answers of each volunteer are the same, whatever the items, (V,)."""
    answers, n_labels = graph.answers, len(graph.labels)
    cells = answers.volunteer.astype(np.int64) * n_labels + answers.label
    counts = np.bincount(cells, minlength=len(graph.volunteers) * n_labels).reshape(-1, n_labels)
    n = counts.sum(axis=1)
    return np.asarray((counts * (counts - 1)).sum(axis=1) / np.maximum(n * (n - 1), 1))


def _consistency(graph: CrowdGraph, repeats: Repeats, n_answers: int) -> Finding:
    n, n_same = len(repeats.volunteer), int(np.count_nonzero(repeats.same))
    chance = float(repeats.chance.mean())
    blind = _are_blind(repeats)
    severity: Severity = "warning" if blind else "note" if n >= REPEAT_SHARE * n_answers else "info"
    codes, counts = np.unique(repeats.volunteer, return_counts=True)
    n_same_by = np.bincount(repeats.volunteer[repeats.same], minlength=len(graph.volunteers))[codes]
    order = np.argsort(-counts, kind="stable")
    return (INCONSISTENT_REPEATS if blind else REPEATED_ANSWERS).finding(
        f"{quantity(n, 'answer')} ({percent(n / n_answers)}) by {quantity(len(codes), 'volunteer')} "
        f"repeat{'s' * (n == 1)} an item that they had answered; {percent(n_same / n)} say the same again, "
        f"{percent(chance)} would by chance.",
        severity=severity,
        ids=graph.volunteers.ids[codes[order]],
        evidence={"repeats": counts[order], "same": n_same_by[order]},
        numbers={"repeats": n, "share": n / n_answers, "same": n_same / n, "chance": chance, "volunteers": len(codes)},
    )


def _are_blind(repeats: Repeats) -> bool:
    """Return whether volunteers surely say the same again no more often than they would blindly."""
    n, same, chance = len(repeats.same), repeats.same.mean(), repeats.chance.mean()
    highest = same + 3 * np.sqrt(same * (1 - same) / n)
    surely_low = n >= MIN_REPEATS and highest - chance < BLIND_KAPPA * (1 - chance)
    return bool(surely_low and upper_tail(repeats.same.sum(), n, chance) > BLIND_PROBABILITY)


# Times

# A pause is at least this share of the project's duration, and this many times the mean time between responses.
PAUSE_SHARE, PAUSE_MULTIPLE = 0.05, 20
# On either side of a pause lies at least this share of the responses; at the ends of a project few are left.
MIN_SHARE_EACH_SIDE = 0.05
# Times are stray if nothing happens over this share of the duration, and at most this share of responses lies beyond.
STRAY_GAP_SHARE, MAX_STRAY_SHARE = 0.5, 0.01
# Worth a note: this share of answers at the very moment of the volunteer's answer before.
SAME_MOMENT_SHARE = 0.1
# With fewer responses than this, nothing can be said about pauses.
MIN_RESPONSES_FOR_PAUSES = 50

NO_TIMES = FindingType(
    topic="times",
    name="no times",
    severity="info",
    why="Models of change take the order of the rows for that of time.",
    advice=Hint(
        "If the file has a column of times, name it: from_responses(..., time='created_at').",
        cli="If the file has a column of times, name it: --time created_at.",
    ),
)
TIMES_WITHOUT_UNIT = FindingType(
    topic="times",
    name="times without a unit",
    severity="info",
    why="Only datetimes say how many seconds lie between two answers.",
    advice="If they are seconds or ranks of something, give datetimes instead where there are any.",
)
SAME_MOMENT = FindingType(
    topic="times",
    name="answers at the same moment",
    severity="note",
    why="Several answers were sent together or times are coarse: their order, and speed between them, are unknown.",
    advice="Where there is a finer time, use it; read changes within such a moment as chance.",
)
PAUSES = FindingType(
    topic="times",
    name="pauses",
    severity="note",
    why="Volunteers, items or instructions may differ before and after; change over time mixes with that.",
    advice=Hint(
        "Look at both sides on their own: graph.before(...), graph.window(...).",
        cli="Look at both sides on their own, as two files.",
    ),
)
STRAY_TIMES = FindingType(
    topic="times",
    name="stray times",
    severity="warning",
    why="Such times are often wrong (an empty date read as 1970, a clock set wrongly) and stretch everything.",
    advice=Hint(
        "Check them in the source; leave them out with graph.window(start, stop) if they are wrong.",
        cli="Check them in the source; leave their rows out of the file if they are wrong.",
    ),
)


@reports(NO_TIMES, TIMES_WITHOUT_UNIT, SAME_MOMENT, PAUSES, STRAY_TIMES)
def check_times(graph: CrowdGraph) -> list[Finding]:
    """Report whether there are times, pauses of the project, stray times, and answers that share a moment."""
    responses = graph.responses
    if not len(responses):
        return []
    if responses.clock.kind == "order":
        return [NO_TIMES.finding("The responses have no times, so pauses and speed were not examined.")]
    findings = _same_moment(graph)
    if responses.clock.kind == "number":
        findings.append(TIMES_WITHOUT_UNIT.finding("The times are numbers without a unit, so speed was not examined."))
    if len(responses) >= MIN_RESPONSES_FOR_PAUSES and responses.time[0] < responses.time[-1]:
        findings += _pauses(graph) + _stray(graph)
    return findings


def _same_moment(graph: CrowdGraph) -> list[Finding]:
    rows = graph.responses.by_volunteer.order
    time, volunteer = graph.responses.time[rows], graph.responses.volunteer[rows]
    same = (time[1:] == time[:-1])[volunteer[1:] == volunteer[:-1]]
    share = float(same.mean()) if len(same) else 0.0
    if share < SAME_MOMENT_SHARE:
        return []
    finding = SAME_MOMENT.finding(
        f"{percent(share)} of the answers have the time of the same volunteer's answer before.",
        numbers={"share": share, "answers": int(np.count_nonzero(same))},
    )
    return [finding]


def _pauses(graph: CrowdGraph) -> list[Finding]:
    """Report stretches in which the whole project rested, between two stretches in which it did not."""
    times = ticks(graph.responses.time).astype(np.float64)
    gaps, duration, n = np.diff(times), times[-1] - times[0], len(times)
    n_before = np.arange(1, n)
    inside = (n_before >= MIN_SHARE_EACH_SIDE * n) & (n - n_before >= MIN_SHARE_EACH_SIDE * n)
    long = np.flatnonzero(inside & (gaps >= max(PAUSE_SHARE, PAUSE_MULTIPLE / n) * duration))
    if not len(long):
        return []
    longest = int(long[gaps[long].argmax()])
    start, stop = graph.responses.clock.to_python(graph.responses.time[[longest, longest + 1]])
    share = float(gaps[long].sum() / duration)
    how_often = {1: "once", 2: "twice"}.get(len(long), f"{len(long):,} times")
    finding = PAUSES.finding(
        f"The project rested {how_often}, for {percent(share)} of its duration; the longest pause is from {start} to "
        f"{stop}.",
        numbers={"pauses": len(long), "share": share, "longest": float(gaps[longest] / duration)},
    )
    return [finding]


def _stray(graph: CrowdGraph) -> list[Finding]:
    """Report a few responses that lie far before or after all others."""
    times = ticks(graph.responses.time).astype(np.float64)
    gaps, n = np.diff(times), len(times)
    widest = int(gaps.argmax())
    n_early, n_late = widest + 1, n - widest - 1
    n_stray = min(n_early, n_late)
    if gaps[widest] < STRAY_GAP_SHARE * (times[-1] - times[0]) or n_stray > max(MAX_STRAY_SHARE * n, 1):
        return []
    early = n_early < n_late
    ends = [0, widest] if early else [widest + 1, n - 1]
    first, last = graph.responses.clock.to_python(graph.responses.time[ends])
    share = float(gaps[widest] / (times[-1] - times[0]))
    finding = STRAY_TIMES.finding(
        f"{quantity(n_stray, 'response')} from {first} to {last} lie{'s' * (n_stray == 1)} far "
        f"{'before' if early else 'after'} all others; nothing happens in {percent(share)} of the time.",
        numbers={"responses": n_stray, "share": share},
    )
    return [finding]
