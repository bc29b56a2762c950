"""Times: whether there are any, pauses of the whole project, stray ones, and answers that share a moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import percent, quantity
from crowdgraph.core.clock import UNITS, ticks
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis._statistics import first_answers, upper_tail
from crowdgraph.diagnosis.findings import Finding, Severity

__all__ = ["find_counts", "find_coverage", "find_duplicates", "find_times", "seconds"]


def find_counts(graph: CrowdGraph) -> list[Finding]:
    """The sizes; a warning if there is nothing at all."""
    n_responses = len(graph.responses)
    n_answers = int(np.count_nonzero(graph.responses.label >= 0))
    sizes = {
        "volunteers": int(np.count_nonzero(graph.volunteers.n_responses)),
        "items": int(np.count_nonzero(graph.items.n_responses)),
        "responses": n_responses,
        "answers": n_answers,
        "labels": len(graph.labels),
    }
    if not n_answers:
        return [_nothing(sizes)]
    what = (
        f"{quantity(sizes['volunteers'], 'volunteer')} gave {quantity(n_answers, 'answer')} about "
        f"{quantity(sizes['items'], 'item')}, with {quantity(sizes['labels'], 'label')} to choose from."
    )
    found = [Finding(topic="counts", name="counts", severity="info", what=what, numbers=sizes)]
    return found + _unanswered_responses(n_responses, n_answers)


def _nothing(sizes: dict[str, int]) -> Finding:
    return Finding(
        topic="counts",
        name="no answers",
        severity="warning",
        what=f"There are no answers among {quantity(sizes['responses'], 'response')}.",
        why="Without answers nothing can be learned.",
        advice="Check which column holds the labels, and which filter made the file.",
        numbers=sizes,
    )


def _unanswered_responses(n_responses: int, n_answers: int) -> list[Finding]:
    n_empty = n_responses - n_answers
    if not n_empty:
        return []
    share = n_empty / n_responses
    finding = Finding(
        topic="counts",
        name="shown but not answered",
        severity="note" if share > 0.05 else "info",
        what=f"{quantity(n_empty, 'response')} ({percent(share)}) show an item without an answer.",
        why="Items that are skipped are often the hard ones; models leave these responses out.",
        advice="If skipping means something, such as 'cannot tell', make it a label of its own.",
        numbers={"unanswered": n_empty, "share": share},
    )
    return [finding]


# Worth a note: from this share of items that one volunteer alone answered. A warning: this share without any answer.
MANY_SINGLE, MANY_EMPTY = 0.1, 0.5
# From this share of items that one volunteer alone answered, volunteers cannot be compared.
NEARLY_ALL = 0.9


def find_coverage(graph: CrowdGraph) -> list[Finding]:
    """Items with many, one or no answers; several answers of one volunteer count once."""
    n_answers = np.bincount(first_answers(graph).item, minlength=len(graph.items))
    if not n_answers.any():
        return []
    return [_spread(n_answers), *_unanswered_items(graph, n_answers), *_single(graph, n_answers)]


def _spread(n_answers: Array) -> Finding:
    answered = n_answers[n_answers > 0]
    return Finding(
        topic="coverage",
        name="coverage",
        severity="info",
        what=(
            f"Items were answered by {answered.min():,} to {quantity(int(answered.max()), 'volunteer')}, with a median "
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


def _unanswered_items(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    empty = np.flatnonzero(n_answers == 0)
    if not len(empty):
        return []
    share = len(empty) / len(n_answers)
    finding = Finding(
        topic="coverage",
        name="items without answers",
        severity="warning" if share >= MANY_EMPTY else "note",
        what=f"Nobody answered {len(empty):,} of {quantity(len(n_answers), 'item')} ({percent(share)}).",
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
        what=f"{quantity(len(single), 'item')} ({percent(share)} of those answered) rest on a single volunteer.",
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


# From this share of all answers, repeats are worth a note, and rows that are there twice a warning.
MANY = 0.01
# Fewer repeats than this do not tell whether volunteers are consistent.
MIN_REPEATS = 100
# Volunteers do not agree with themselves if chance alone would do as well with this probability, and if agreement
# beyond chance is surely below this.
BY_CHANCE, KAPPA = 0.05, 0.1


class Repeats(NamedTuple):
    """Of each repeated answer: who gave it, whether it is the one before, at the same moment, by chance."""

    volunteer: Array
    same: Array
    same_moment: Array
    chance: Array


def find_duplicates(graph: CrowdGraph) -> list[Finding]:
    """How many answers repeat a volunteer and item, and how consistent volunteers are with themselves."""
    repeats = _repeats(graph)
    n = len(repeats.volunteer)
    if not n:
        return []
    n_answers = int(np.count_nonzero(graph.responses.label >= 0))
    has_times = graph.responses.clock.kind != "order"
    if has_times:
        n_twice = int(np.count_nonzero(repeats.same & repeats.same_moment))
    else:
        # Without times only repeats that are all the same look like a mistake of the file.
        n_twice = n if n >= MIN_REPEATS and repeats.same.all() else 0
    found = [_consistency(graph, repeats, n_answers)]
    if n_twice and n_twice >= MANY * n_answers:
        found.append(_rows_twice(n_twice, n_answers, has_times=has_times))
    return found


def _repeats(graph: CrowdGraph) -> Repeats:
    """Every answer of a volunteer to an item after the first, compared with the one before it."""
    responses = graph.responses
    rows = np.flatnonzero(responses.label >= 0)
    pairs = responses.volunteer[rows].astype(np.int64) * len(graph.items) + responses.item[rows]
    order = rows[np.argsort(pairs, kind="stable")]
    later = np.flatnonzero(responses.is_repeat[order])
    now, before = order[later], order[later - 1]
    return Repeats(
        volunteer=responses.volunteer[now],
        same=responses.label[now] == responses.label[before],
        same_moment=responses.time[now] == responses.time[before],
        chance=_chance(graph)[responses.volunteer[now]],
    )


def _chance(graph: CrowdGraph) -> Array:
    """How often two answers of each volunteer are the same, whatever the items, (V,)."""
    responses, n_labels = graph.responses, len(graph.labels)
    answered = responses.label >= 0
    cells = responses.volunteer[answered].astype(np.int64) * n_labels + responses.label[answered]
    counts = np.bincount(cells, minlength=len(graph.volunteers) * n_labels).reshape(-1, n_labels)
    n = counts.sum(axis=1)
    return np.asarray((counts * (counts - 1)).sum(axis=1) / np.maximum(n * (n - 1), 1))


def _consistency(graph: CrowdGraph, repeats: Repeats, n_answers: int) -> Finding:
    n, n_same = len(repeats.volunteer), int(np.count_nonzero(repeats.same))
    chance = float(repeats.chance.mean())
    blind = _are_blind(repeats)
    severity: Severity = "warning" if blind else "note" if n >= MANY * n_answers else "info"
    who, counts = np.unique(repeats.volunteer, return_counts=True)
    alike = np.bincount(repeats.volunteer[repeats.same], minlength=len(graph.volunteers))[who]
    order = np.argsort(-counts, kind="stable")
    return Finding(
        topic="duplicates",
        name="inconsistent repeats" if blind else "repeated answers",
        severity=severity,
        what=(
            f"{quantity(n, 'answer')} ({percent(n / n_answers)}) by {quantity(len(who), 'volunteer')} repeat an item "
            f"that they had answered; {percent(n_same / n)} say the same again, {percent(chance)} would by chance."
        ),
        why=(
            "Volunteers who do not agree with themselves do not look at the items, or see others under the same id."
            if blind
            else "Models without time count a repeat as if somebody else had said it; items then look too sure."
        ),
        advice=(
            "Check that item ids name the same thing each time, and look at who repeats most."
            if blind
            else "Keep the first or the last: from_responses(..., duplicates='last'); DynIBCC takes them as they come."
        ),
        ids=graph.volunteers.ids[who[order]],
        evidence={"repeats": counts[order], "same": alike[order]},
        numbers={"repeats": n, "share": n / n_answers, "same": n_same / n, "chance": chance, "volunteers": len(who)},
    )


def _are_blind(repeats: Repeats) -> bool:
    """Whether volunteers say the same again no more often than they would blindly, and this is not for want of data."""
    n, same, chance = len(repeats.same), repeats.same.mean(), repeats.chance.mean()
    highest = same + 3 * np.sqrt(same * (1 - same) / n)
    enough = n >= MIN_REPEATS and highest - chance < KAPPA * (1 - chance)
    return bool(enough and upper_tail(repeats.same.sum(), n, chance) > BY_CHANCE)


def _rows_twice(n: int, n_answers: int, *, has_times: bool) -> Finding:
    how = "at the same moment" if has_times else "without a single exception"
    return Finding(
        topic="duplicates",
        name="rows twice",
        severity="warning",
        what=f"{quantity(n, 'answer')} ({percent(n / n_answers)}) repeat another of the same volunteer {how}.",
        why="People do not answer twice so alike; rows were probably exported or sent twice, and count twice.",
        advice="Leave them out with from_responses(..., duplicates='first'), and look how the file was made.",
        numbers={"answers": n, "share": n / n_answers},
    )


# A pause is at least this share of the project's duration, and this many times the mean time between responses.
LONG, MANY_TIMES = 0.05, 20
# On either side of a pause lies at least this share of the responses; at the ends of a project few are left.
EITHER_SIDE = 0.05
# Times are stray if nothing happens over this share of the duration, and hardly any responses lie beyond.
STRAY, HARDLY_ANY = 0.5, 0.01
# Worth a note: this share of answers at the very moment of the volunteer's answer before.
TOGETHER = 0.1
# With fewer responses than this, nothing can be said about pauses.
MIN_RESPONSES = 50


def find_times(graph: CrowdGraph) -> list[Finding]:
    """What can be said of the times."""
    responses = graph.responses
    if not len(responses):
        return []
    if responses.clock.kind == "order":
        return [_no_times()]
    found = _together(graph) + ([_no_unit()] if responses.clock.kind == "number" else [])
    if len(responses) >= MIN_RESPONSES and responses.time[0] < responses.time[-1]:
        found += _pauses(graph) + _stray(graph)
    return found


def seconds(graph: CrowdGraph) -> Array | None:
    """The time of each response in seconds; None where the times are not datetimes."""
    times = graph.responses.time
    if graph.responses.clock.kind != "datetime":
        return None
    # As floats first: nanoseconds of several centuries apart do not fit into an integer.
    counted_ticks = ticks(times).astype(np.float64)
    return np.asarray((counted_ticks - counted_ticks[:1]) / UNITS[np.datetime_data(times.dtype)[0]])


def _no_times() -> Finding:
    return Finding(
        topic="times",
        name="no times",
        severity="info",
        what="The responses have no times, so pauses and speed were not examined.",
        why="Models of change take the order of the rows for that of time.",
        advice="If the file has a column of times, name it: from_responses(..., time='created_at').",
    )


def _no_unit() -> Finding:
    return Finding(
        topic="times",
        name="times without a unit",
        severity="info",
        what="The times are numbers without a unit, so speed was not examined.",
        why="Only datetimes tell how many seconds lie between two answers.",
        advice="If they are seconds or ranks of something, give datetimes instead where there are any.",
    )


def _together(graph: CrowdGraph) -> list[Finding]:
    rows = graph.responses.by_volunteer.order
    time, volunteer = graph.responses.time[rows], graph.responses.volunteer[rows]
    together = (time[1:] == time[:-1])[volunteer[1:] == volunteer[:-1]]
    share = float(together.mean()) if len(together) else 0.0
    if share < TOGETHER:
        return []
    finding = Finding(
        topic="times",
        name="answers at the same moment",
        severity="note",
        what=f"{percent(share)} of the answers bear the time of the same volunteer's answer before.",
        why="Several answers were sent together or times are coarse: their order, and speed between them, are unknown.",
        advice="Where there is a finer time, use it; read changes within such a moment as chance.",
        numbers={"share": share, "answers": int(np.count_nonzero(together))},
    )
    return [finding]


def _pauses(graph: CrowdGraph) -> list[Finding]:
    """Stretches in which the whole project rested, between two stretches in which it did not."""
    times = ticks(graph.responses.time).astype(np.float64)
    gaps, duration, n = np.diff(times), times[-1] - times[0], len(times)
    before = np.arange(1, n)
    inside = (before >= EITHER_SIDE * n) & (n - before >= EITHER_SIDE * n)
    long = np.flatnonzero(inside & (gaps >= max(LONG * duration, MANY_TIMES * duration / n)))
    if not len(long):
        return []
    longest = int(long[gaps[long].argmax()])
    start, stop = graph.responses.clock.to_python(graph.responses.time[[longest, longest + 1]])
    rested = float(gaps[long].sum() / duration)
    finding = Finding(
        topic="times",
        name="pauses",
        severity="note",
        what=(
            f"The project rested {_times(len(long))}, for {percent(rested)} of its duration; the longest pause is from "
            f"{start} to {stop}."
        ),
        why="Volunteers, items or instructions may differ before and after; change over time mixes with that.",
        advice="Look at both sides on their own: graph.before(...), graph.window(...).",
        numbers={"pauses": len(long), "share": rested, "longest": float(gaps[longest] / duration)},
    )
    return [finding]


def _stray(graph: CrowdGraph) -> list[Finding]:
    """A few responses that lie far before or after all others."""
    times = ticks(graph.responses.time).astype(np.float64)
    gaps, n = np.diff(times), len(times)
    place = int(gaps.argmax())
    n_early, n_late = place + 1, n - place - 1
    if gaps[place] < STRAY * (times[-1] - times[0]) or min(n_early, n_late) > max(HARDLY_ANY * n, 1):
        return []
    early = n_early < n_late
    first, last = graph.responses.clock.to_python(graph.responses.time[[0, place] if early else [place + 1, n - 1]])
    n_stray, empty = min(n_early, n_late), float(gaps[place] / (times[-1] - times[0]))
    finding = Finding(
        topic="times",
        name="stray times",
        severity="warning",
        what=(
            f"{quantity(n_stray, 'response')} from {first} to {last} lie{'s' * (n_stray == 1)} far "
            f"{'before' if early else 'after'} all others; nothing happens in {percent(empty)} of the time."
        ),
        why="Such times are often wrong (an empty date read as 1970, a clock set wrongly) and stretch everything.",
        advice="Check them in the source; leave them out with graph.window(start, stop) if they are wrong.",
        numbers={"responses": n_stray, "share": empty},
    )
    return [finding]


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")
