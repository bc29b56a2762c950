"""The overview: what the page tells, in a few sentences and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import facts, headline, quantity
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.findings import Finding
from crowdgraph.plot._style import short_times
from crowdgraph.report._results import SETTLED_PROBABILITY, GraphResults
from crowdgraph.report.communities import track_sentence

__all__ = ["overview"]

# More classes than these are not told one by one, nor more findings than these.
MOST_CLASSES = 5
MOST_FINDINGS = 3
# Below this kappa the answers hardly agree.
LEAST_KAPPA = 0.1
# Of so many gold items that a model is sure of, it can be told whether it is rightly so.
ENOUGH_GOLD = 30
# Communities are shades rather than groups if starts agree by less, or their members are more mixed (1: in all alike).
LEAST_AGREEMENT = 0.8
MOST_MIXED = 0.5


def overview(parts: GraphResults, findings: Sequence[Finding], calibration: Mapping[str, Any] | None) -> dict[str, Any]:
    """Cards with the main numbers, sentences about what was found, and the graph's own story.

    Parameters
    ----------
    parts
        What the graph carries.
    findings
        What the data doctor found, the worst first.
    calibration
        How the fit stands against gold, as the checks tell it.
    """
    against_gold = None if calibration is None or "missing" in calibration else calibration
    doubt = _doubt(parts.graph, findings, against_gold)
    return {
        "headline": headline(parts.graph),
        "cards": [{"name": name, "value": value, "note": note} for name, value, note in _cards(parts, doubt)],
        "sentences": [
            *([] if against_gold is None else [{"words": _about_gold(against_gold), "section": "checks"}]),
            *({"words": words, "section": None} for words in _sentences(parts, doubt)),
            *({"words": words, "section": "doctor"} for words in _about_findings(findings)),
        ],
        "facts": [[name, text] for name, text in facts(parts.graph) if name != "annotated"],
    }


def _doubt(graph: CrowdGraph, findings: Sequence[Finding], against_gold: Mapping[str, Any] | None) -> str | None:
    """Why a model's certainty tells little; None if gold shows that it tells, or answers agree well enough."""
    if against_gold is not None and against_gold["sure"] >= ENOUGH_GOLD:
        share = against_gold["sure_accuracy"]
        return (
            None if share >= SETTLED_PROBABILITY else f"only {share:.0%} of the gold items that it is sure of are right"
        )
    answered = graph.items.n_responses[graph.items.n_responses > 0]
    if len(answered) and np.median(answered) < 2:
        return "most items have one answer: no agreement to tell by"
    for finding in findings:
        low = finding.name == "agreement" and finding.numbers["kappa"] < LEAST_KAPPA
        if low or finding.name == "no agreement":
            return "too little agreement to tell"
    return None


def _cards(parts: GraphResults, doubt: str | None) -> Iterator[tuple[str, str, str]]:
    """The name, the value and a short note of each card."""
    graph = parts.graph
    for name, nodes, verb in (("volunteers", graph.volunteers, "gave"), ("items", graph.items, "have")):
        middle = quantity(int(np.median(nodes.n_responses)), "answer") if len(nodes) else ""
        yield name, f"{len(nodes):,}", f"half {verb} {middle} or more" if middle else "none at all"
    yield "responses", f"{len(graph.responses):,}", _span(graph)
    if parts.fit is not None and not graph.gold.known.all():
        yield "settled items", *_settled(parts.fit, graph.gold.known, doubt)
    if parts.communities is not None:
        yield "communities", *_number(parts.communities)
    if len(graph.gold):
        yield "gold", f"{len(graph.gold):,}", "items whose class was known before"


def _settled(fit: ModelFit, has_gold: Array, doubt: str | None) -> tuple[str, str]:
    """The share of items that are settled, with a note; no share where it would mislead."""
    if doubt is not None:
        return "\u2013", doubt
    settled = fit.item_probs[~has_gold].max(axis=1) >= SETTLED_PROBABILITY
    whose = " of those without gold" if has_gold.any() else ""
    # Rounded down, so that 100% are all of them.
    return (
        f"{100 * int(settled.sum()) // len(settled)}%",
        f"a class is at least {SETTLED_PROBABILITY:.0%} probable{whose}",
    )


def _number(found: Communities) -> tuple[str, str]:
    if len(found) == 1:
        return "none", "one crowd"
    return f"{len(found):,}" if len(found) else "none", f"found by {found.method}"


def _sentences(parts: GraphResults, doubt: str | None) -> Iterator[str]:
    """What was found, in words."""
    graph, track, tasks = parts.graph, parts.community_track, parts.task_communities
    if parts.fit is not None and len(graph.items):
        yield _about_items(parts.fit, graph.gold.known, doubt)
    if parts.snapshot is not None and len(graph.volunteers):
        yield _about_skill(parts, parts.snapshot, doubt)
    if parts.communities is not None:
        yield _about_communities(parts.communities)
    if tasks is not None:
        yield _about_tasks(tasks)
    if track is not None and len(track) and track.n_communities.max() > 1:
        yield f"Communities over time: {track_sentence(track)}."


def _span(graph: CrowdGraph) -> str:
    """From when to when."""
    clock, times = graph.responses.clock, graph.responses.time
    if not len(times) or clock.kind == "order":
        return "without times"
    first, last = short_times(clock, times[[0, -1]])
    return first if first == last else f"{first} to {last}"


def _about_gold(found: Mapping[str, Any]) -> str:
    n_items = quantity(sum(found["items"]), "item")
    words = f"Against gold the most probable class is right for {found['accuracy']:.1%} of {n_items}"
    if found["hidden"]:
        words += ", each judged while its gold was hidden"
    kind = ""
    if found["without_gold"] and not found["hidden"]:
        kind = " That is somewhat kind, since skills were learned with this gold."
    if not found["sure"]:
        return f"{words}; of none is the model at least {SETTLED_PROBABILITY:.0%} sure.{kind}"
    sure = f"of the {found['sure']:,} that the model is at least {SETTLED_PROBABILITY:.0%} sure of"
    return f"{words}; {sure}, {found['sure_accuracy']:.1%} are right.{kind}"


def _about_items(fit: ModelFit, has_gold: Array, doubt: str | None) -> str:
    best = fit.item_probs.argmax(axis=1)
    shares = np.bincount(best, minlength=len(fit.classes)) / len(best)
    order = np.argsort(-shares, kind="stable")[:MOST_CLASSES]
    named = ", ".join(f"{fit.classes[code]} {shares[code]:.0%}" for code in order)
    words = f"The items by their most probable class ({fit.model}): {named}."
    if has_gold.all():
        return f"{words} The class of all of them was known before."
    if doubt is not None:
        return f"{words} How sure the model is tells little: {doubt}."
    n_open = int((fit.item_probs.max(axis=1) < SETTLED_PROBABILITY).sum())
    if not n_open:
        return f"{words} All are settled: a class is at least {SETTLED_PROBABILITY:.0%} probable."
    return f"{words} No class is {SETTLED_PROBABILITY:.0%} probable yet for {quantity(n_open, 'item')}."


def _about_skill(parts: GraphResults, snapshot: ConfusionSnapshot, doubt: str | None) -> str:
    if doubt is not None:
        return f"How good the volunteers are is hardly known, and what is told of it is mostly the prior: {doubt}."
    accuracy = snapshot.accuracy(parts.class_probs, correct=parts.right[0])
    low, middle, high = np.quantile(accuracy, [0.1, 0.5, 0.9])
    return (
        f"Half of the volunteers are expected to be right at least {middle:.0%} of the time; "
        f"the middle eight of ten lie between {low:.0%} and {high:.0%}."
    )


def _about_communities(found: Communities) -> str:
    if not len(found):
        return f"No communities were found by {found.method}."
    if len(found) == 1:
        return "No groups were found: the volunteers are one crowd."
    return f"There are {len(found):,} communities with {_sizes(found)} volunteers.{_proof(found)}"


def _about_tasks(found: Communities) -> str:
    if len(found) < 2:
        return "By the items that they work on, volunteers form no groups."
    return (
        f"By the items that they work on, volunteers form {len(found):,} task communities with {_sizes(found)} "
        f"volunteers.{_proof(found)}"
    )


def _sizes(found: Communities) -> str:
    """The sizes of the largest communities."""
    sizes = ", ".join(f"{size:,}" for size in found.sizes[found.order][:MOST_CLASSES])
    return f"{sizes}{', ...' if len(found) > MOST_CLASSES else ''}"


def _proof(found: Communities) -> str:
    """Whether there are communities, and how clear they are."""
    seen = found.evidence
    if seen is not None and not seen.structured:
        return " They may be chance."
    proof = "" if seen is None else " The network has more structure than chance gives."
    why = []
    if found.entropy[found.assignment >= 0].mean() > MOST_MIXED:
        why.append("most members belong to several")
    if seen is not None and seen.agreement < LEAST_AGREEMENT:
        why.append(f"several starts agree by {seen.agreement:.2f} only (1 is the same)")
    return f"{proof} They are shades rather than groups: {', and '.join(why)}." if why else proof


def _about_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """The worst findings of the data doctor in words, and how many more there are."""
    bad = [finding for finding in findings if finding.severity != "info"]
    for finding in bad[:MOST_FINDINGS]:
        verb = "warns" if finding.severity == "warning" else "notes"
        yield f"The data doctor {verb} ({finding.name}): {finding.what}"
    more = len(bad) - MOST_FINDINGS
    if more > 0:
        yield f"The data doctor has {quantity(more, 'finding')} more to keep in mind."
    if not bad:
        yield "The data doctor has nothing to warn of."
