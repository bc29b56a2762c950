"""The overview: what the page tells, in a few sentences and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.findings import Finding
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.story import facts, headline
from crowdgraph.plot.over_time import counted, short_times
from crowdgraph.report.groups import track_sentence
from crowdgraph.report.parts import Parts

__all__ = ["overview"]

# An item is settled if its most probable class is at least this probable.
SETTLED = 0.9
# More classes than these are not told one by one.
MOST_CLASSES = 5


def overview(parts: Parts, findings: Sequence[Finding]) -> dict[str, Any]:
    """Cards with the main numbers, sentences about what was found, and the graph's own story."""
    return {
        "headline": headline(parts.graph),
        "cards": [{"name": name, "value": value, "note": note} for name, value, note in _cards(parts)],
        "sentences": list(_sentences(parts, findings)),
        "facts": [[name, text] for name, text in facts(parts.graph) if name != "annotated"],
    }


def _cards(parts: Parts) -> Iterator[tuple[str, str, str]]:
    """The name, the value and a short note of each card."""
    graph, fit = parts.graph, parts.fit
    for name, nodes, verb in (("volunteers", graph.volunteers, "gave"), ("items", graph.items, "have")):
        middle = f"half {verb} {np.median(nodes.n_responses):,.6g} answers or more" if len(nodes) else "none at all"
        yield name, f"{len(nodes):,}", middle
    yield "responses", f"{len(graph.responses):,}", _span(graph)
    if fit is not None and not graph.gold.known.all():
        settled = (fit.item_probs[~graph.gold.known].max(axis=1) >= SETTLED).mean()
        whose = " of those without gold" if len(graph.gold) else ""
        yield "settled items", f"{settled:.0%}", f"a class is at least {SETTLED:.0%} probable{whose}"
    if parts.communities is not None:
        yield "communities", f"{len(parts.communities):,}", f"found by {parts.communities.method}"
    if len(graph.gold):
        yield "gold", f"{len(graph.gold):,}", "items whose class was known before"


def _sentences(parts: Parts, findings: Sequence[Finding]) -> Iterator[str]:
    """What was found, in words."""
    graph = parts.graph
    if parts.fit is not None and len(graph.items):
        yield _about_items(parts.fit, graph.gold.known)
    if parts.snapshot is not None and len(graph.volunteers):
        yield _about_skill(parts, parts.snapshot)
    if parts.communities is not None:
        yield _about_communities(parts.communities)
    if parts.community_track is not None and len(parts.community_track):
        yield f"Communities over time: {track_sentence(parts.community_track)}."
    bad = sum(finding.severity == "warning" for finding in findings)
    told = counted(len(findings), "finding") if findings else "nothing to tell"
    yield f"The data doctor has {told}{f', {bad} of them a warning' if bad else ''}."


def _span(graph: CrowdGraph) -> str:
    """From when to when."""
    clock, times = graph.responses.clock, graph.responses.time
    if not len(times) or clock.kind == "order":
        return "without times"
    first, last = short_times(clock, times[[0, -1]])
    return first if first == last else f"{first} to {last}"


def _about_items(fit: ModelFit, has_gold: Array) -> str:
    best = fit.item_probs.argmax(axis=1)
    shares = np.bincount(best, minlength=len(fit.classes)) / len(best)
    order = np.argsort(-shares, kind="stable")[:MOST_CLASSES]
    named = ", ".join(f"{fit.classes[code]} {shares[code]:.0%}" for code in order)
    words = f"The items by their most probable class ({fit.model}): {named}."
    if has_gold.all():
        return f"{words} The class of all of them was known before."
    n_open = int((fit.item_probs.max(axis=1) < SETTLED).sum())
    if not n_open:
        return f"{words} All are settled: a class is at least {SETTLED:.0%} probable."
    return f"{words} No class is {SETTLED:.0%} probable yet for {counted(n_open, 'item')}."


def _about_skill(parts: Parts, snapshot: ConfusionSnapshot) -> str:
    accuracy = snapshot.accuracy(parts.class_probs, correct=parts.right[0])
    low, middle, high = np.quantile(accuracy, [0.1, 0.5, 0.9])
    return (
        f"Half of the volunteers are expected to be right at least {middle:.0%} of the time; "
        f"the middle eight of ten lie between {low:.0%} and {high:.0%}."
    )


def _about_communities(found: Communities) -> str:
    if not len(found):
        return f"No communities were found by {found.method}."
    sizes = ", ".join(f"{size:,}" for size in found.sizes[found.order][:MOST_CLASSES])
    more = ", ..." if len(found) > MOST_CLASSES else ""
    words = {None: "", True: " The network has more structure than chance gives.", False: " They may be chance."}
    proof = words[None if found.evidence is None else bool(found.evidence.structured)]
    number = "one community" if len(found) == 1 else f"{len(found):,} communities"
    return f"There {'is' if len(found) == 1 else 'are'} {number} with {sizes}{more} volunteers.{proof}"
