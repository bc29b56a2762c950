"""Volunteers who answer an item twice: how often, and whether they say the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding, Severity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.answers import upper_tail
from crowdgraph.diagnosis.words import counted, percent

__all__ = ["find_duplicates"]

# From this share of all answers, repeats are worth a note, and rows that are there twice a warning.
MANY = 0.01
# Fewer repeats than this do not tell whether volunteers are consistent.
ENOUGH = 100
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
        n_twice = n if n >= ENOUGH and repeats.same.all() else 0
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
            f"{counted(n, 'answer')} ({percent(n / n_answers)}) by {counted(len(who), 'volunteer')} repeat an item "
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
    enough = n >= ENOUGH and highest - chance < KAPPA * (1 - chance)
    return bool(enough and upper_tail(repeats.same.sum(), n, chance) > BY_CHANCE)


def _rows_twice(n: int, n_answers: int, *, has_times: bool) -> Finding:
    how = "at the same moment" if has_times else "without a single exception"
    return Finding(
        topic="duplicates",
        name="rows twice",
        severity="warning",
        what=f"{counted(n, 'answer')} ({percent(n / n_answers)}) repeat another of the same volunteer {how}.",
        why="People do not answer twice so alike; rows were probably exported or sent twice, and count twice.",
        advice="Leave them out with from_responses(..., duplicates='first'), and look how the file was made.",
        numbers={"answers": n, "share": n / n_answers},
    )
