"""Bots: pairs of volunteers whose answers are alike, errors included, beyond what chance and their habits explain."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.agreement import agreement
from crowdgraph.diagnosis.answers import FirstAnswers, first_answers, upper_tail
from crowdgraph.diagnosis.consensus import consensus
from crowdgraph.diagnosis.words import counted, percent

__all__ = ["find_copied"]

# A pair has at least so many items in common, answers at least this share of them alike, and departs at least so often
# together from what the crowd says. Right answers that were copied cannot be told from skill.
COMMON, ALIKE, DEPARTURES = 20, 0.95, 8
# They differ at most this share of the times that their habits let expect: with many items in common, a little less
# often than that would be enough to be sure.
DIFFER = 0.25
# How probable it may be that any pair of a crowd in order looks so.
LEVEL = 1e-3
# Items are told apart by how far the crowd agrees on them, since hard ones are answered wrongly by many.
EDGES = (0.6, 0.8)
# Below this agreement beyond chance, what the crowd says of an item tells nothing.
KAPPA = 0.1
# A volunteer's habits start from those of the crowd, as if so many answers had been seen.
PRIOR = 1.0
# How many meetings of two volunteers at an item are looked at, and how many pairs are held in memory at a time.
MOST_MEETINGS, BLOCK = 100_000_000, 10_000_000
# For how many pairs the common items are listed at a time.
AT_ONCE = 1_000
# From this share of all answers, copied ones are a warning.
MUCH = 0.01


class Pairs(NamedTuple):
    """Pairs of volunteers, by their codes.

    Attributes
    ----------
    left, right
        Who.
    n_common, n_alike, n_departures
        How many items both answered, how many alike, and how many of these against what is usually said.
    """

    left: Array
    right: Array
    n_common: Array
    n_alike: Array
    n_departures: Array

    def where(self, chosen: Array) -> Pairs:
        """Some of the pairs."""
        return Pairs(*(column[chosen] for column in self))


def find_copied(graph: CrowdGraph) -> list[Finding]:
    """Pairs of volunteers who make the same errors on the same items."""
    everything = first_answers(graph)
    if len(graph.labels) < 2 or not len(everything.item):
        return []
    answers = _telling(graph, everything)
    examined = _affordable(answers, _eligible(graph, answers), len(graph.volunteers))
    found = _not_examined(graph, np.setdiff1d(_eligible(graph, everything), examined))
    return found + _copies(graph, _of(answers, examined, len(graph.volunteers)), examined)


def _telling(graph: CrowdGraph, answers: FirstAnswers) -> FirstAnswers:
    """The answers to items of which one knows what is usually said: all, or those with gold if the crowd disagrees.

    Where groups of volunteers contradict each other, the crowd says nothing, and two good ones look like copies.
    """
    found = agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
    if found.kappa >= KAPPA:
        return answers
    known = graph.gold.codes[answers.item] >= 0
    return FirstAnswers(*(column[known] for column in answers))


def _eligible(graph: CrowdGraph, answers: FirstAnswers) -> Array:
    """Volunteers with enough answers, the most active first."""
    n_given = np.bincount(answers.volunteer, minlength=len(graph.volunteers))
    eligible = np.flatnonzero(n_given >= COMMON)
    return eligible[np.argsort(-n_given[eligible], kind="stable")]


def _affordable(answers: FirstAnswers, ordered: Array, n_volunteers: int) -> Array:
    """As many of the volunteers, the most active first, as can be compared with each other, in order of their codes."""
    rank = np.full(n_volunteers, len(ordered))
    rank[ordered] = np.arange(len(ordered))
    place = rank[answers.volunteer]

    def n_meetings(n: int) -> int:
        return int((np.bincount(answers.item[place < n]) ** 2).sum())

    n_affordable = bisect_right(range(len(ordered) + 1), MOST_MEETINGS, key=n_meetings) - 1
    return np.sort(ordered[:n_affordable])


def _of(answers: FirstAnswers, examined: Array, n_volunteers: int) -> FirstAnswers:
    """The answers of some volunteers, who are called by their places among these."""
    place = np.full(n_volunteers, -1)
    place[examined] = np.arange(len(examined))
    volunteer = place[answers.volunteer]
    rows = np.flatnonzero(volunteer >= 0)
    return FirstAnswers(volunteer[rows], answers.item[rows].astype(np.int64), answers.label[rows])


def _copies(graph: CrowdGraph, answers: FirstAnswers, examined: Array) -> list[Finding]:
    """The pairs whose likeness habits do not explain."""
    kind = _kinds(graph, answers, len(examined))
    said = kind[answers.item] * len(graph.labels) + answers.label
    n_kinds = (len(graph.labels) + len(graph.classes)) * (len(EDGES) + 1)
    crowd = np.bincount(said, minlength=n_kinds * len(graph.labels)).reshape(n_kinds, -1)
    n_pairs, pairs = _alike(answers, crowd.argmax(axis=1)[kind], len(examined), len(graph.labels))
    if not len(pairs.left):
        return []
    chance = _chance(answers, pairs, kind, crowd)
    tail = upper_tail(pairs.n_alike, pairs.n_common, chance)
    close = 1 - pairs.n_alike / pairs.n_common <= DIFFER * (1 - chance)
    sure = np.flatnonzero(close & (tail < LEVEL / n_pairs))
    if not len(sure):
        return []
    copies = pairs.where(sure)._replace(left=examined[pairs.left[sure]], right=examined[pairs.right[sure]])
    return [_finding(graph, copies, chance[sure])]


def _alike(answers: FirstAnswers, usual: Array, n_volunteers: int, n_labels: int) -> tuple[int, Pairs]:
    """How many pairs have enough items in common, and those who nearly always answered alike, often against others."""
    n_pairs, kept = 0, [Pairs(*(np.zeros(0, dtype=np.int64) for _ in Pairs._fields))]
    for pairs in _meeting_pairs(answers, usual, n_volunteers, n_labels):
        n_pairs += len(pairs.left)
        close = (pairs.n_alike >= ALIKE * pairs.n_common) & (pairs.n_departures >= DEPARTURES)
        kept.append(pairs.where(close))
    return n_pairs, Pairs(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))


def _meeting_pairs(answers: FirstAnswers, usual: Array, n_volunteers: int, n_labels: int) -> Iterator[Pairs]:
    """All pairs with enough items in common, block by block."""
    said = answers.item * n_labels + answers.label
    departs = answers.label != usual[answers.item]
    met = _incidence(answers.volunteer, answers.item, n_volunteers)
    alike = _incidence(answers.volunteer, said, n_volunteers)
    against = _incidence(answers.volunteer[departs], said[departs], n_volunteers)
    size = max(1, BLOCK // max(n_volunteers, 1))
    for start in range(0, n_volunteers, size):
        common = (met[start : start + size] @ met.T).tocoo()
        left, right = common.coords
        chosen = (left + start < right) & (common.data >= COMMON)
        left, right, n_common = left[chosen], right[chosen], common.data[chosen]
        if len(left):
            both = [(part[start : start + size] @ part.T).tocsr()[left, right] for part in (alike, against)]
            yield Pairs(left + start, right, n_common, *(np.asarray(count).ravel() for count in both))


def _incidence(rows: Array, things: Array, n_rows: int) -> Any:
    """Volunteers by the things that occur, one where a volunteer has a thing."""
    from scipy.sparse import csr_array

    values, columns = np.unique(things, return_inverse=True)
    return csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(n_rows, len(values)))


def _chance(answers: FirstAnswers, pairs: Pairs, kind: Array, crowd: Array) -> Array:
    """How often each pair would answer alike if both just followed their habits, on average over their items."""
    from scipy.sparse import csr_array

    involved, ends = np.unique([pairs.left, pairs.right], return_inverse=True)
    own = FirstAnswers(*(column[np.isin(answers.volunteer, involved)] for column in answers))
    own = own._replace(volunteer=np.searchsorted(involved, own.volunteer))
    habits = _habits(own, kind, crowd, len(involved))
    ones = np.ones(len(own.item), dtype=np.int32)
    met = csr_array((ones, (own.volunteer, own.item)), shape=(len(involved), len(kind)))
    places = (np.arange(len(kind)), kind)
    by_kind = csr_array((np.ones(len(kind), dtype=np.int32), places), shape=(len(kind), len(crowd)))
    chance = np.ones(len(pairs.left))
    for start in range(0, len(chance), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        left, right = ends.reshape(2, -1)[:, part]
        n_common = (met[left].multiply(met[right]) @ by_kind).toarray()
        chance[part] = (n_common * (habits[left] * habits[right]).sum(axis=2)).sum(axis=1) / n_common.sum(axis=1)
    return chance


def _habits(answers: FirstAnswers, kind: Array, crowd: Array, n_volunteers: int) -> Array:
    """How often each of the volunteers says each label to a kind of item, (V, kinds, L)."""
    cells = answers.volunteer * crowd.size + kind[answers.item] * crowd.shape[1] + answers.label
    counts = np.bincount(cells, minlength=n_volunteers * crowd.size).reshape(n_volunteers, *crowd.shape)
    usual = crowd + 1 / crowd.shape[1]
    habits = counts + PRIOR * usual / usual.sum(axis=1, keepdims=True)
    return np.asarray(habits / habits.sum(axis=2, keepdims=True))


def _kinds(graph: CrowdGraph, answers: FirstAnswers, n_volunteers: int) -> Array:
    """Of each item, its class or else what the crowd says of it, and how far the crowd agrees, as one number."""
    agreed = consensus(answers, n_volunteers=n_volunteers, n_items=len(graph.items), n_labels=len(graph.labels))
    known = graph.gold.codes >= 0
    what = np.where(known, len(graph.labels) + graph.gold.codes, np.maximum(agreed.label, 0))
    return np.asarray(what * (len(EDGES) + 1) + np.digitize(agreed.share, EDGES))


def _finding(graph: CrowdGraph, pairs: Pairs, chance: Array) -> Finding:
    departures = pairs.n_departures
    ids, n_given = graph.volunteers.ids, graph.volunteers.n_responses
    # Of each volunteer, the pair with most departures in common.
    owner, partner = np.append(pairs.left, pairs.right), np.append(pairs.right, pairs.left)
    order = np.lexsort((owner, -np.tile(departures, 2)))
    _, first = np.unique(owner[order], return_index=True)
    best = order[np.sort(first)]
    pair = best % len(departures)
    share = float(n_given[owner[best]].sum() / n_given.sum())
    top = int(departures.argmax())
    return Finding(
        topic="bots",
        name="copied answers",
        severity="warning" if share >= MUCH else "note",
        what=(
            f"{counted(len(best), 'volunteer')}, with {percent(share)} of the responses, form "
            f"{counted(len(departures), 'pair')} who answer alike beyond chance; {ids[pairs.left[top]]} and "
            f"{ids[pairs.right[top]]} agree on {pairs.n_alike[top]:,} of {pairs.n_common[top]:,} items, "
            f"{departures[top]:,} times against the crowd, where their habits explain {percent(float(chance[top]))}."
        ),
        why="Copies count as independent voices: items look surer than they are, and shared errors look like truth.",
        advice="Look at the pairs; if one person or script is behind them, keep one of each.",
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


def _not_examined(graph: CrowdGraph, left_out: Array) -> list[Finding]:
    if not len(left_out):
        return []
    finding = Finding(
        topic="bots",
        name="copies not examined",
        severity="info",
        what=f"The answers of {counted(len(left_out), 'volunteer')} were not compared with those of others.",
        why=(
            "Either there are too many volunteers, and the less active ones were left out, or the crowd agrees so "
            "little that only items with gold tell copies from skill."
        ),
        advice="Search parts of the crowd, graph.subgraph(items=[...]).diagnose(), or add gold.",
        ids=graph.volunteers.ids[left_out],
        numbers={"volunteers": len(left_out)},
    )
    return [finding]
