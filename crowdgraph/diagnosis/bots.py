"""Bots: pairs of volunteers whose answers are alike, errors included, beyond what chance and their habits explain."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis._statistics import FirstAnswers, crowd_labels, first_answers, rater_agreement, upper_tail
from crowdgraph.diagnosis.findings import Finding
from crowdgraph.diagnosis.responses import seconds

__all__ = ["find_constant", "find_copied", "find_fast"]

# So many answers in a row, each within this many seconds on average: nobody looks at pictures at that pace for long.
RUN, PACE = 30, 1.0
# If more than this share of the volunteers is so fast, it is not they but the way in which answers are sent.
TOO_MANY = 0.2
# From this share of all answers, fast ones are a warning.
FAST_WARNING_SHARE = 0.01
# A volunteer sends answers together if this share of them, of at least so many, bears the time of the one before.
TOGETHER, REGULAR = 0.1, 5


def find_fast(graph: CrowdGraph) -> list[Finding]:
    """Volunteers who answered thirty times in less than thirty seconds."""
    time = seconds(graph)
    if time is None or not len(time):
        return []
    rows = graph.responses.by_volunteer.order
    rows = rows[graph.responses.label[rows] >= 0]
    volunteer, time = graph.responses.volunteer[rows], time[rows]
    sent_together = _many_send_together(volunteer, time, len(graph.volunteers))
    if sent_together:
        # Several answers bear one time, so the pace is that of the moments.
        moments = np.append(True, (volunteer[1:] != volunteer[:-1]) | (time[1:] != time[:-1]))
        volunteer, time = volunteer[moments], time[moments]
    fastest = _fastest_runs(volunteer, time, len(graph.volunteers))
    fast = np.flatnonzero(fastest < RUN * PACE)
    return [_fast_finding(graph, fast, fastest, sent_together=sent_together)] if len(fast) else []


def _many_send_together(volunteer: Array, time: Array, n_volunteers: int) -> bool:
    """Whether it is the habit of many, and not of a few, to send several answers in a moment."""
    follows = np.flatnonzero(volunteer[1:] == volunteer[:-1]) + 1
    at_once = follows[time[follows] == time[follows - 1]]
    n_following = np.bincount(volunteer[follows], minlength=n_volunteers)
    n_at_once = np.bincount(volunteer[at_once], minlength=n_volunteers)
    regular = n_following >= REGULAR
    return bool(regular.any() and (n_at_once[regular] >= TOGETHER * n_following[regular]).mean() > TOO_MANY)


def _fastest_runs(volunteer: Array, time: Array, n_volunteers: int) -> Array:
    """The shortest time in which each volunteer gave a run of answers, (V,); infinite for those with fewer."""
    fastest = np.full(n_volunteers, np.inf)
    last = np.arange(RUN - 1, len(volunteer))
    same = last[volunteer[last] == volunteer[last - (RUN - 1)]]
    np.minimum.at(fastest, volunteer[same], time[same] - time[same - (RUN - 1)])
    return fastest


def _fast_finding(graph: CrowdGraph, fast: Array, fastest: Array, *, sent_together: bool) -> Finding:
    n_given = graph.volunteers.n_responses
    fast = fast[np.argsort(fastest[fast], kind="stable")]
    share = float(n_given[fast].sum() / n_given.sum())
    common = len(fast) > max(1, TOO_MANY * np.count_nonzero(np.isfinite(fastest)))
    what = (
        f"{quantity(len(fast), 'volunteer')} ({join_names(graph.volunteers.ids[fast])}), with {percent(share)} of the "
        f"responses, gave {RUN} answers in a row in less than {RUN * PACE:g} seconds, the fastest in "
        f"{fastest[fast[0]]:,.3g}."
    )
    if common:
        advice = "So many are so fast that answers may be sent together or drawn from a queue; ask how times are made."
    else:
        advice = (
            "Look at their answers; leave them out with graph.subgraph(volunteers=[...]) if they are not a person's."
        )
    counts = " Answers that bear the same time counted as one." if sent_together else ""
    return Finding(
        topic="bots",
        name="fast answers",
        severity="warning" if share >= FAST_WARNING_SHARE and not common else "note",
        what=what + counts,
        why="Nobody looks at items at that pace for long: a script, or somebody who clicks without looking.",
        advice=advice,
        ids=graph.volunteers.ids[fast],
        evidence={"seconds_for_30": fastest[fast], "responses": n_given[fast]},
        numbers={"volunteers": len(fast), "share": share},
    )


# Nearly all of at least so many answers are the same.
NEARLY_ALL, ENOUGH = 0.98, 20
# On so many items, at least, the others say something else; on fewer it may be that all items are alike.
OTHERWISE = 5
# How probable it may be that anybody in a crowd in order looks so.
CONSTANT_LEVEL = 1e-3
# From this share of all answers, constant ones are a warning.
CONSTANT_WARNING_SHARE = 0.01


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
    sure = (n_otherwise[candidates] >= OTHERWISE) & (tail < CONSTANT_LEVEL / len(candidates))
    chosen = candidates[sure]
    return [_constant_finding(graph, chosen, n_given, favourite, n_otherwise)] if len(chosen) else []


def _against_the_others(graph: CrowdGraph, answers: FirstAnswers, favourite: Array) -> tuple[Array, Array, Array]:
    """How volunteers answer items of which others say something else than the volunteer's favourite label.

    Returns how often each said it all the same and how many such items there are, (V,), and how often anybody says each
    label where others say something else, (L,).
    """
    n_volunteers, n_labels = len(graph.volunteers), len(graph.labels)
    said = crowd_labels(answers, n_volunteers=n_volunteers, n_items=len(graph.items), n_labels=n_labels).label[
        answers.item
    ]
    otherwise = said != favourite[answers.volunteer]
    n_otherwise = np.bincount(answers.volunteer[otherwise], minlength=n_volunteers)
    all_the_same = otherwise & (answers.label == favourite[answers.volunteer])
    n_same = np.bincount(answers.volunteer[all_the_same], minlength=n_volunteers)
    n_wrong = np.bincount(answers.label[answers.label != said], minlength=n_labels)
    n_elsewhere = len(answers.label) - np.bincount(said, minlength=n_labels)
    return n_same, n_otherwise, (n_wrong + 1) / (n_elsewhere + 2)


def _constant_finding(
    graph: CrowdGraph, chosen: Array, n_given: Array, favourite: Array, n_otherwise: Array
) -> Finding:
    chosen = chosen[np.argsort(-n_given[chosen], kind="stable")]
    share = float(n_given[chosen].sum() / n_given.sum())
    labels = np.array([str(label) for label in graph.labels], dtype=object)
    first, ids = chosen[0], graph.volunteers.ids[chosen]
    return Finding(
        topic="bots",
        name="constant answers",
        severity="warning" if share >= CONSTANT_WARNING_SHARE else "note",
        what=(
            f"{quantity(len(chosen), 'volunteer')} ({join_names(ids)}), with {percent(share)} of the answers, "
            f"gave the same "
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


# A pair has at least so many items in common, answers at least this share of them alike, and departs at least so often
# together from what the crowd says. Right answers that were copied cannot be told from skill.
COMMON, ALIKE, DEPARTURES = 20, 0.95, 8
# They differ at most this share of the times that their habits let expect: with many items in common, a little less
# often than that would be enough to be sure.
DIFFER = 0.25
# How probable it may be that any pair of a crowd in order looks so.
COPIED_LEVEL = 1e-3
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
COPIED_WARNING_SHARE = 0.01


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
    found = rater_agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
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
    sure = np.flatnonzero(close & (tail < COPIED_LEVEL / n_pairs))
    if not len(sure):
        return []
    copies = pairs.where(sure)._replace(left=examined[pairs.left[sure]], right=examined[pairs.right[sure]])
    return [_copied_finding(graph, copies, chance[sure])]


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
    agreed = crowd_labels(answers, n_volunteers=n_volunteers, n_items=len(graph.items), n_labels=len(graph.labels))
    known = graph.gold.codes >= 0
    what = np.where(known, len(graph.labels) + graph.gold.codes, np.maximum(agreed.label, 0))
    return np.asarray(what * (len(EDGES) + 1) + np.digitize(agreed.share, EDGES))


def _copied_finding(graph: CrowdGraph, pairs: Pairs, chance: Array) -> Finding:
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
        severity="warning" if share >= COPIED_WARNING_SHARE else "note",
        what=(
            f"{quantity(len(best), 'volunteer')}, with {percent(share)} of the responses, form "
            f"{quantity(len(departures), 'pair')} who answer alike beyond chance; {ids[pairs.left[top]]} and "
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
        what=f"The answers of {quantity(len(left_out), 'volunteer')} were not compared with those of others.",
        why=(
            "Either there are too many volunteers, and the less active ones were left out, or the crowd agrees so "
            "little that only items with gold tell copies from skill."
        ),
        advice="Search parts of the crowd, graph.subgraph(items=[...]).diagnose(), or add gold.",
        ids=graph.volunteers.ids[left_out],
        numbers={"volunteers": len(left_out)},
    )
    return [finding]
