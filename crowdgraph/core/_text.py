"""The story a graph tells about itself, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, cell_text, is_null, to_list, value_tuple
from crowdgraph.core.result import probability_array
from crowdgraph.errors import AlignmentError, NotAnnotatedError

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityEvent, CommunityTrack
    from crowdgraph.core.confusion import ConfusionSnapshot
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.graph import CrowdGraph


def quantity(n: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 volunteer``, ``1,200 volunteers`` or ``2 communities``."""
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    plural = f"{noun[:-1]}ies" if is_ies else noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def percent(share: float) -> str:
    """A share in percent, with decimals where they tell something."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    if 0.999 < share < 1:
        return "more than 99.9%"
    return f"{share:.1%}" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share:.0%}"


def join_names(values: Iterable[object], *, most: int = 3) -> str:
    """The first few of several values, as in ``a, b, c and 4 more``."""
    listed = [str(value) for value in values]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


# The share of answers from which on something is said "nearly always", and "mostly".
NEARLY = 0.8
MOSTLY = 0.5
# Labels are named together if each is said at least this often, relative to the most frequent one.
COMPARABLE = 0.5
# Classes are answered alike if no two rows differ by more than this in total variation.
ALIKE = 0.15
# More labels than these are no preference; more classes or clauses than these are not told one by one.
MOST_LABELS = 3
MOST_CLASSES = 3
MOST_CLAUSES = 4
# So that shares such as 0.46 + 0.34 reach the 0.8 that they are on paper.
ROUNDING = 1e-9


class Habit(NamedTuple):
    """How a class is answered: how often by some labels, of which the codes are given; without labels, undecided."""

    often: str
    labels: tuple[int, ...]


def behaviour(confusion: ArrayLike, *, classes: Iterable[Hashable], labels: Iterable[Hashable]) -> str:
    """How somebody with this confusion matrix answers, in words.

    Each class has its favourites: the labels said at least half as often as the most frequent one. They are said
    "nearly always" if they make up at least 0.8 of the answers and "mostly" from 0.5 up. If they make up less, are more
    than three, or are all of several labels, the class is "undecided". Then the first of these that holds is told:

    1. The favourites of all classes are the same: "says X to nearly everything", or "to most things". Where no two
       rows differ by more than 0.15 in total variation, their mean is judged, as such differences tell little.
    2. All classes are undecided: "guesses" if the rows are as close as that. Otherwise, where classes are labels,
       "little better than guessing" if the right label is the most frequent one for every class, and "worse than
       guessing" if it is for none; else "close to guessing".
    3. Classes are labels, and the favourite of each is the right one, as often for all of them: "nearly always right"
       or "mostly right".
    4. Class by class, those answered in the same way together; after "contrary" where classes are labels and all of
       them are taken for others.

    Parameters
    ----------
    confusion
        The probability of each label given each true class, of shape (J, L); rows sum to one.
    classes, labels
        The names of the rows and of the columns. Labels that are text are quoted.

    Examples
    --------
    >>> names = {"classes": ["not supernova", "supernova"], "labels": [-1, 1, 3]}
    >>> behaviour([[0.92, 0.06, 0.02], [0.90, 0.08, 0.02]], **names)
    'says -1 to nearly everything'
    >>> behaviour([[0.88, 0.08, 0.04], [0.10, 0.46, 0.44]], **names)
    'nearly always says -1 to not supernova, 1 or 3 to supernova'
    >>> behaviour([[0.7, 0.3], [0.1, 0.9]], classes=["cat", "dog"], labels=["cat", "dog"])
    'nearly always right about dog, mostly right about cat'
    """
    classes, labels = value_tuple(classes, what="classes"), value_tuple(labels, what="labels")
    rows = probability_array("confusion", confusion, shape=(len(classes), len(labels)))
    right = [labels.index(name) if name in labels else None for name in classes]
    alike = _are_alike(rows)
    habits = [_habit(rows.mean(axis=0))] * len(rows) if alike else [_habit(row) for row in rows]
    always = all(habit.often == "nearly always" for habit in habits)
    if not any(habit.labels for habit in habits):
        return "guesses" if alike else _close_to_guessing(rows, right)
    if len({habit.labels for habit in habits}) == 1:
        return f"says {_said(habits[0], labels)} to {'nearly everything' if always else 'most things'}"
    equally = len({habit.often for habit in habits}) == 1
    if equally and all(habit.labels == (code,) for habit, code in zip(habits, right, strict=True)):
        return f"{habits[0].often} right"
    told = _class_by_class(habits, right, classes=classes, labels=labels)
    return f"contrary: {told}" if _are_contrary(habits, right) else told


def _are_alike(rows: Array) -> bool:
    """Whether all classes are answered nearly in the same way."""
    return all(np.abs(rows - row).sum(axis=1).max() / 2 <= ALIKE + ROUNDING for row in rows)


def _habit(row: Array) -> Habit:
    """How a class with this row of the confusion matrix is answered."""
    codes = np.flatnonzero(row >= COMPARABLE * row.max() - ROUNDING)
    share = float(row[codes].sum()) + ROUNDING
    too_many = len(codes) > 1 and (len(codes) == len(row) or len(codes) > MOST_LABELS)
    if share < MOSTLY or too_many:
        return Habit("", ())
    return Habit("nearly always" if share >= NEARLY else "mostly", tuple(codes.tolist()))


def _are_contrary(habits: list[Habit], right: list[int | None]) -> bool:
    """Whether every class is taken for other classes."""
    others = [{*right} - {code, None} for code in right]
    return None not in right and all(
        habit.labels and set(habit.labels) <= wrong for habit, wrong in zip(habits, others, strict=True)
    )


def _close_to_guessing(rows: Array, right: list[int | None]) -> str:
    """The words where no class has favourites, but classes differ."""
    found = [code is not None and row[code] >= row.max() - ROUNDING for row, code in zip(rows, right, strict=True)]
    if all(found):
        return "little better than guessing"
    return "close to guessing" if any(found) or None in right else "worse than guessing"


def _class_by_class(
    habits: list[Habit], right: list[int | None], *, classes: Sequence[Hashable], labels: Sequence[Hashable]
) -> str:
    """What is said to each class, those answered in the same way together, those answered rightly first."""
    groups: dict[tuple[bool, Habit], list[str]] = {}
    for name, habit, code in zip(classes, habits, right, strict=True):
        rightly = habit.labels == (code,)
        # Right answers are alike although they are different labels.
        key = (rightly, habit._replace(labels=()) if rightly else habit)
        groups.setdefault(key, []).append(str(name))
    ordered = sorted(groups.items(), key=lambda group: (not group[0][0], group[0][0] and group[0][1].often == "mostly"))
    clauses: list[str] = []
    before = ""
    for (rightly, habit), names in ordered[:MOST_CLAUSES]:
        about = _enumerate(names, "and", most=MOST_CLASSES)
        if rightly:
            clauses.append(f"{habit.often} right about {about}")
        elif not habit.labels:
            clauses.append(f"undecided about {about}")
        else:
            # Said once, the verb and its adverb hold for the clauses that follow.
            verb = f"{habit.often} says " if not before else f"{habit.often} " if habit.often != before else ""
            clauses.append(f"{verb}{_said(habit, labels)} to {about}")
        before = habit.often if habit.labels else ""
    n_left = sum(len(names) for _, names in ordered[MOST_CLAUSES:])
    return ", ".join(clauses) + (f", something else to {n_left} more" if n_left else "")


def _said(habit: Habit, labels: Sequence[Hashable]) -> str:
    """The labels of a habit, as in ``1 or 3``."""
    names = [f'"{labels[code]}"' if isinstance(labels[code], str) else str(labels[code]) for code in habit.labels]
    return _enumerate(names, "or", most=MOST_LABELS)


def _enumerate(names: list[str], word: str, *, most: int) -> str:
    """Names in a row, as in ``a, b and c`` or ``a, b, c and 4 more``."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# How many items and volunteers, communities, snapshots and events of a community are shown.
TOP, MOST_ROWS, MOST_SNAPSHOTS, MOST_EVENTS = 5, 20, 8, 6
# What is told of communities, and by which name.
DESCRIBED = {
    "community": "community",
    "volunteers": "volunteers",
    "share": "share",
    "responses": "responses",
    "centroid": "most central",
    "behaviour": "in words",
}
# How an event is told where it has to do with another community.
EVENT_WORDS = {"split": "split from {}", "merged": "merged into {}", "moved": "{volunteers} moved to {}"}


def html_card(title: str, story: str, *parts: str) -> str:
    """A title and a sentence, which are escaped, and parts below, which are HTML already."""
    return f'<div style="text-align:left"><strong>{escape(title)}</strong>: {escape(story)}{"".join(parts)}</div>'


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """A table of names and sentences."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return f"<table>{rows}</table>"


def html_table(columns: Mapping[str, Sequence[object]], *, caption: str = "") -> str:
    """A table of columns by name: numbers to the right, text to the left, nothing where nothing is known.

    Examples
    --------
    >>> table({"who": ["<anna>"]}).count("&lt;anna&gt;")
    1
    """
    sides = {name: "right" if all(map(_is_number_or_null, column)) else "left" for name, column in columns.items()}
    head = "".join(f'<th style="text-align:{side}">{escape(name)}</th>' for name, side in sides.items())
    rows = "".join(
        "<tr>" + "".join(map(_cell, row, sides.values())) + "</tr>" for row in zip(*columns.values(), strict=True)
    )
    above = f'<caption style="text-align:left;white-space:nowrap">{escape(caption)}</caption>' if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _is_number_or_null(value: object) -> bool:
    return is_null(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object, side: str) -> str:
    return f'<td style="text-align:{side};vertical-align:top">{escape(cell_text(value))}</td>'


def _names(ids: Array) -> list[str]:
    """Ids as text: even numbers are names."""
    return ["" if is_null(value) else str(value) for value in to_list(ids)]


def _story(result: object) -> tuple[str, str]:
    """The name of a result's type, and what its `repr` tells of it."""
    name, _, story = repr(result).partition("(")
    return name, story.removesuffix(")")


def fit_html(fit: ModelFit) -> str:
    """A fit: its story, how often the classes occur, its first items and its best volunteers."""
    facts = facts_table([("classes", shares(fit.classes, fit.class_probs))])
    return html_card(*_story(fit), facts, _items_table(fit), _volunteers_table(fit))


def _items_table(fit: ModelFit) -> str:
    probs = fit.item_probs[:TOP]
    columns = {
        "item": _names(fit.items[:TOP]),
        "class": [str(fit.classes[code]) for code in probs.argmax(axis=1)],
        "probability": probs.max(axis=1).tolist(),
    }
    return html_table(columns, caption=_first_of(len(fit.items), "items, in their order"))


def _volunteers_table(fit: ModelFit) -> str:
    """The best volunteers; nothing where there are none, or where it is not known which labels are right."""
    track, correct = fit.confusion, fit.correct_labels
    if track is None or not len(track) or (correct is None and not set(fit.classes) <= set(track.labels)):
        return ""
    latest = track.latest()
    accuracy = latest.accuracy(fit.class_probs, correct=correct)
    best = np.argsort(-accuracy, kind="stable")[:TOP]
    few = replace(latest, ids=latest.ids[best], concentration=latest.concentration[best])
    low, high = few.accuracy_interval(0.9, class_probs=fit.class_probs, correct=correct)
    columns = {
        "volunteer": _names(track.ids[best]),
        "accuracy": accuracy[best].tolist(),
        "from": low.tolist(),
        "to": high.tolist(),
    }
    return html_table(columns, caption=_first_of(len(track), "volunteers, the best first; with 90 % intervals"))


def _first_of(n: int, what: str) -> str:
    return f"{TOP} of {n:,} {what}" if n > TOP else f"{n:,} {what}"


def communities_html(communities: Communities) -> str:
    """Communities: their story, and a row for each with its size, who is most central and what it does in words."""
    described = communities._description(_confusion(communities))
    shown: dict[str, list[Any]] = {}
    for key, name in DESCRIBED.items():
        if key in described:
            column = described[key][:MOST_ROWS]
            shown[name] = _names(column) if key in ("community", "centroid") else to_list(column)
    return html_card(*_story(communities), html_table(shown, caption=_some_of(len(communities))))


def _confusion(communities: Communities) -> ConfusionSnapshot | None:
    """The communities' own confusion, if it is known of all members."""
    try:
        return communities._resolve_confusion(None)
    except (NotAnnotatedError, AlignmentError):
        return None


def _some_of(n_communities: int) -> str:
    return f"{MOST_ROWS} of {n_communities:,} communities" if n_communities > MOST_ROWS else ""


def track_html(track: CommunityTrack) -> str:
    """A track: its story, and a row for each community with its sizes and what became of it."""
    places = np.unique(np.linspace(0, max(len(track) - 1, 0), MOST_SNAPSHOTS).round().astype(int))[: len(track)]
    lives: list[list[CommunityEvent]] = [[] for _ in range(track.n_communities_ever)]
    for event in track.events:
        lives[event.community].append(event)
    columns = {
        "community": [str(k) for k in range(track.n_communities_ever)],
        "volunteers over time": [" → ".join(f"{size:,}" for size in sizes) for sizes in track.sizes[places].T],
        "what became of it, at how many responses": [_life(events, track) for events in lives],
    }
    shown = {name: column[:MOST_ROWS] for name, column in columns.items()}
    return html_card(*_story(track), html_table(shown, caption=_some_of(track.n_communities_ever)))


def _life(events: Sequence[CommunityEvent], track: CommunityTrack) -> str:
    """The last events of a community in words."""
    earlier = f"{len(events) - MOST_EVENTS:,} more, " if len(events) > MOST_EVENTS else ""
    told = (f"{_event(event)} ({track.counts[event.snapshot]:,})" for event in events[-MOST_EVENTS:])
    return earlier + ", ".join(told)


def _event(event: CommunityEvent) -> str:
    words = EVENT_WORDS.get(event.event)
    return words.format(event.other, volunteers=f"{event.volunteers:,}") if words else event.event


MOST_SHOWN = 8
# Up to how many responses a graph looks for repeated answers just to tell its story.
MOST_SEARCHED = 1_000_000


def headline(graph: CrowdGraph) -> str:
    """The sizes in one line."""
    parts = [count_nodes("volunteer", graph.volunteers.n_responses), count_nodes("item", graph.items.n_responses)]
    return ", ".join([*parts, f"{len(graph.responses):,} {plural('response', len(graph.responses))}"])


def count_nodes(name: str, n_responses: Array) -> str:
    """How many nodes there are and, in a view, how many of them have responses."""
    active = np.count_nonzero(n_responses)
    nodes = f"{len(n_responses):,} {plural(name, len(n_responses))}"
    return nodes + (f" ({active:,} active)" if active < len(n_responses) else "")


def plural(noun: str, n: int) -> str:
    """The noun for so many."""
    return noun if n == 1 else f"{noun}s"


def graph_text(graph: CrowdGraph) -> str:
    """Several lines of plain text."""
    lines = [f"  {name:<11} {text}" for name, text in facts(graph)]
    return "\n".join([f"CrowdGraph: {headline(graph)}", *lines])


def graph_html(graph: CrowdGraph) -> str:
    """A small table."""
    return html_card("CrowdGraph", headline(graph), facts_table(facts(graph)))


def facts(graph: CrowdGraph) -> Iterator[tuple[str, str]]:
    """What is worth knowing first, as pairs of a name and a sentence."""
    responses = graph.responses
    answered = responses.label[responses.label >= 0]
    yield "labels", shares(graph.labels, np.bincount(answered, minlength=len(graph.labels)))
    if len(answered) < len(responses):
        yield "unanswered", f"{len(responses) - len(answered):,} responses show an item without an answer"
    yield "classes", class_sentence(graph)
    yield "time", time_sentence(graph)
    if len(responses):
        yield (
            "activity",
            f"{spread(graph.volunteers.n_responses)} a volunteer, {spread(graph.items.n_responses)} an item",
        )
    if len(responses) <= MOST_SEARCHED and responses.is_repeat.any():
        n_again = np.count_nonzero(responses.is_repeat)
        yield "repeats", f"{n_again:,} responses answer an item that the volunteer had answered before"
    for name, part in (("volunteers", graph.volunteers), ("items", graph.items), ("responses", responses)):
        if part.attributes:
            yield name, f"also have {join_few(tuple(part.attributes))}"
    if graph.annotations:
        yield "annotated", ", ".join(f"{name} ({type(result).__name__})" for name, result in graph.annotations.items())


def class_sentence(graph: CrowdGraph) -> str:
    """The classes, and how many items have gold."""
    gold = graph.gold
    if not len(gold):
        return f"{join_few(graph.classes)}; no gold"
    counts = np.nansum(gold.probs, axis=0)
    soft = np.count_nonzero(gold.is_soft)
    note = f" ({soft:,} as probabilities)" if soft else ""
    return f"{shares(graph.classes, counts)}; gold for {len(gold):,} of {len(graph.items):,} items{note}"


def time_sentence(graph: CrowdGraph) -> str:
    """From when to when, and what the times are."""
    responses = graph.responses
    if responses.clock.kind == "order":
        return "none given: the order of the rows"
    if not len(responses):
        return "no responses"
    first, last = responses.clock.to_python(responses.time[[0, -1]])
    zone = f" ({responses.clock.zone})" if responses.clock.zone else ""
    return f"{first} to {last}{zone}"


def shares(names: tuple[object, ...], counts: Array) -> str:
    """Names with their share of the total."""
    total = max(float(counts.sum()), 1.0)
    parts = [f"{name} {count / total:.0%}" for name, count in zip(names, counts, strict=True)]
    return join_few(tuple(parts))


def join_few(names: tuple[object, ...]) -> str:
    """The first few names."""
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(str(name) for name in names[:MOST_SHOWN]) + more


def spread(counts: Array) -> str:
    """The median and the largest count."""
    return f"median {np.median(counts[counts > 0]):,g} (most {counts.max():,})"
