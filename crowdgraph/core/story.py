"""The story a graph tells about itself, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.html import card, facts_table

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["headline", "html_story", "text_story"]

MOST_SHOWN = 8
# Up to how many responses a graph looks for repeated answers just to tell its story.
MOST_SEARCHED = 1_000_000


def headline(graph: CrowdGraph) -> str:
    """The sizes in one line."""
    parts = [counted("volunteer", graph.volunteers.n_responses), counted("item", graph.items.n_responses)]
    return ", ".join([*parts, f"{len(graph.responses):,} {plural('response', len(graph.responses))}"])


def counted(name: str, n_responses: Array) -> str:
    """How many nodes there are and, in a view, how many of them have responses."""
    active = np.count_nonzero(n_responses)
    nodes = f"{len(n_responses):,} {plural(name, len(n_responses))}"
    return nodes + (f" ({active:,} active)" if active < len(n_responses) else "")


def plural(noun: str, n: int) -> str:
    """The noun for so many."""
    return noun if n == 1 else f"{noun}s"


def text_story(graph: CrowdGraph) -> str:
    """Several lines of plain text."""
    lines = [f"  {name:<11} {text}" for name, text in facts(graph)]
    return "\n".join([f"CrowdGraph: {headline(graph)}", *lines])


def html_story(graph: CrowdGraph) -> str:
    """A small table."""
    return card("CrowdGraph", headline(graph), facts_table(facts(graph)))


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
            yield name, f"also have {listed(tuple(part.attributes))}"
    if graph.annotations:
        yield "annotated", ", ".join(f"{name} ({type(result).__name__})" for name, result in graph.annotations.items())


def class_sentence(graph: CrowdGraph) -> str:
    """The classes, and how many items have gold."""
    gold = graph.gold
    if not len(gold):
        return f"{listed(graph.classes)}; no gold"
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
    return listed(tuple(parts))


def listed(names: tuple[object, ...]) -> str:
    """The first few names."""
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(str(name) for name in names[:MOST_SHOWN]) + more


def spread(counts: Array) -> str:
    """The median and the largest count."""
    return f"median {np.median(counts[counts > 0]):,g} (most {counts.max():,})"
