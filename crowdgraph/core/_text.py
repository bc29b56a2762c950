"""Text about graphs and results: numbers in sentences, summaries, and HTML for notebooks with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.soft_answers import count_soft_answers, is_label_column

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph


def quantity(n: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 volunteer``, ``1,200 volunteers`` or ``2 communities``."""
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    plural = f"{noun[:-1]}ies" if is_ies else noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def percent(share: float) -> str:
    """Return a share in percent, with a decimal where it matters."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    if 0.999 < share < 1:
        return "more than 99.9%"
    return f"{share:.1%}" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share:.0%}"


def p_value_text(p_value: float) -> str:
    """Return a p-value in words: ``p = 0.016``, or ``p < 0.001``."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def join_names(values: Iterable[object], *, most: int = 3) -> str:
    """Return the first few of several values, as in ``a, b, c and 4 more``."""
    names = [str(value) for value in values]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# How many classes, labels and attributes a graph lists in its summary.
MAX_NAMES = 8
# The largest number of responses among which a graph looks for repeated answers just for its summary.
MAX_RESPONSES_FOR_REPEATS = 1_000_000


def headline(graph: CrowdGraph) -> str:
    """Return the sizes of a graph in one line."""
    parts = [_count_nodes("volunteer", graph.volunteers.n_responses), _count_nodes("item", graph.items.n_responses)]
    return ", ".join([*parts, quantity(len(graph.responses), "response")])


def _count_nodes(name: str, n_responses: Array) -> str:
    """Return how many nodes there are and, in a view, how many of them have responses."""
    n_active = np.count_nonzero(n_responses)
    return quantity(len(n_responses), name) + (f" ({n_active:,} active)" if n_active < len(n_responses) else "")


def graph_text(graph: CrowdGraph) -> str:
    """Return a summary of a graph in several lines of text."""
    lines = [f"  {name:<11} {text}" for name, text in facts(graph)]
    return "\n".join([f"CrowdGraph: {headline(graph)}", *lines])


def facts(graph: CrowdGraph) -> Iterator[tuple[str, str]]:
    """Yield the main facts about a graph as pairs of a name and a sentence."""
    responses, answers = graph.responses, graph.answers
    yield "labels", shares(graph.labels, np.bincount(answers.label, minlength=len(graph.labels)))
    if len(answers) < len(responses):
        n = len(responses) - len(answers)
        yield "unanswered", f"{quantity(n, 'response')} show{'s' * (n == 1)} an item without an answer"
    soft = count_soft_answers(graph)
    if soft:
        yield "soft", f"{soft:,} of {quantity(len(answers), 'answer')} are probabilities of labels"
    yield "classes", class_sentence(graph)
    yield "time", time_sentence(graph)
    if len(responses):
        by_volunteer, by_item = (
            _median_and_most(graph.volunteers.n_responses),
            _median_and_most(graph.items.n_responses),
        )
        yield "activity", f"{by_volunteer} a volunteer, {by_item} an item"
    if len(responses) <= MAX_RESPONSES_FOR_REPEATS and answers.n_repeats:
        n = answers.n_repeats
        again = f"{quantity(n, 'response')} answer{'s' * (n == 1)} an item"
        yield "repeats", f"{again} that the volunteer had answered before"
    for name, part in (("volunteers", graph.volunteers), ("items", graph.items), ("responses", responses)):
        if names := [attribute for attribute in part.attributes if not is_label_column(attribute)]:
            yield name, f"also have {join_names(names, most=MAX_NAMES)}"
    if graph.annotations:
        yield "annotated", ", ".join(f"{name} ({type(result).__name__})" for name, result in graph.annotations.items())


def class_sentence(graph: CrowdGraph) -> str:
    """Return the classes, and how many items have gold."""
    gold = graph.gold
    if not len(gold):
        return f"{join_names(graph.classes, most=MAX_NAMES)}; no gold"
    counts = np.nansum(gold.probs, axis=0)
    soft = np.count_nonzero(gold.is_soft)
    note = f" ({soft:,} as probabilities)" if soft else ""
    return f"{shares(graph.classes, counts)}; gold for {len(gold):,} of {quantity(len(graph.items), 'item')}{note}"


def time_sentence(graph: CrowdGraph) -> str:
    """Return the first and the last time, and what the times are."""
    responses = graph.responses
    if responses.clock.kind == "order":
        return "none given: the order of the rows"
    if not len(responses):
        return "no responses"
    first, last = responses.clock.to_python(responses.time[[0, -1]])
    zone = f" ({responses.clock.zone})" if responses.clock.zone else ""
    return f"{first} to {last}{zone}"


def shares(names: tuple[object, ...], counts: Array) -> str:
    """Return names with their shares of the total."""
    total = max(float(counts.sum()), 1.0)
    parts = [f"{name} {count / total:.0%}" for name, count in zip(names, counts, strict=True)]
    return join_names(parts, most=MAX_NAMES)


def _median_and_most(counts: Array) -> str:
    """Return the median and the largest of the counts, in words."""
    return f"median {np.median(counts[counts > 0]):,g} (most {counts.max():,})"
