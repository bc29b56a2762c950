"""The overview of the page: the main numbers, and what was found in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import facts, headline, quantity
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.findings import Finding
from crowdgraph.plot._style import short_times
from crowdgraph.report._results import SETTLED_PROBABILITY, GraphResults
from crowdgraph.report.communities import one_community, track_sentence
from crowdgraph.report.nodes import calibration_warning, change_sentences
from crowdgraph.report.pairs import pair_sentences

__all__ = ["overview"]

# At most this many classes or sizes, findings, and changes of volunteers are named one by one.
MAX_CLASSES = 5
MAX_FINDINGS = 3
MAX_CHANGES = 3
# Below this kappa the answers hardly agree.
MIN_KAPPA = 0.1
# Numbers of answers below this have a decimal.
SMALL_NUMBER = 10
# With this many gold items that a model is sure of, gold shows whether it is right to be sure.
MIN_SURE_GOLD = 30
# Communities are shades rather than groups if restarts agree by less, or members are more mixed (1: in all alike).
MIN_AGREEMENT = 0.8
MAX_MIXED = 0.5


def overview(
    results: GraphResults, findings: Sequence[Finding], checks: Mapping[str, Any], *, update: Sequence[str] = ()
) -> dict[str, Any]:
    """Return cards with the main numbers, sentences about what was found, and the facts about the graph.

    Parameters
    ----------
    results
        The results on the graph.
    findings
        The findings of the data doctor, the worst first.
    checks
        The section of checks.
    update
        Sentences on what the latest update changed.
    """
    calibration, predictive = checks.get("calibration"), checks.get("predictive")
    against_gold = None if calibration is None or "missing" in calibration else calibration
    doubt = _doubt(results.graph, findings, against_gold)
    return {
        "headline": headline(results.graph),
        "cards": [
            {"name": name, "value": value, "note": note} for name, value, note in _cards(results, doubt, against_gold)
        ],
        "sentences": [
            {"words": words, "section": section}
            for section, sentences in (
                (None, update),
                (None, _about_items(results, doubt)),
                ("checks", _about_gold(calibration)),
                (None, _about_volunteers(results, doubt)),
                (None, _about_communities(results)),
                ("communities", pair_sentences(results)),
                ("communities", _about_track(results.community_track)),
                (_change_section(results), _about_changes(results)),
                ("checks", _about_predictive(predictive)),
                ("doctor", _about_findings(findings)),
            )
            for words in sentences
        ],
        "facts": [[name, text] for name, text in facts(results.graph) if name != "annotated"],
    }


def _doubt(graph: CrowdGraph, findings: Sequence[Finding], against_gold: Mapping[str, Any] | None) -> str | None:
    """Return why the model's certainty means little; None if gold confirms it, or answers agree well enough."""
    if against_gold is not None and against_gold["sure"] >= MIN_SURE_GOLD:
        share = against_gold["sure_accuracy"]
        if share >= SETTLED_PROBABILITY:
            return None
        return f"only {share:.0%} of the gold items that it is sure of are right"
    answered = graph.items.n_responses[graph.items.n_responses > 0]
    if len(answered) and np.median(answered) < 2:
        return "most items have one answer, which nothing confirms"
    for finding in findings:
        low = finding.name == "agreement" and finding.numbers["kappa"] < MIN_KAPPA
        if low or finding.name == "no agreement":
            return "too little agreement to tell"
    return None


def _cards(
    results: GraphResults, doubt: str | None, against_gold: Mapping[str, Any] | None
) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the value and a short note of each card."""
    graph = results.graph
    counts = {"volunteers": (graph.answers.n_by_volunteer, "gave"), "items": (graph.answers.n_by_item, "have")}
    for name, (n_answers, verb) in counts.items():
        yield name, f"{len(n_answers):,}", _typical(n_answers, verb)
    yield "responses", f"{len(graph.responses):,}", _span(graph)
    if results.fit is not None and not graph.gold.known.all():
        name, better = "settled items", results.better_fit
        if better is not None:
            yield name, *_settled_calibrated(better, graph.gold.known)
            name = f"settled by {results.fit.model} alone"
        yield name, *_settled(results.fit, graph.gold.known, doubt, against_gold)
    if results.communities is not None:
        yield "communities", *_community_card(results.communities)
    if len(graph.gold):
        yield "gold", f"{len(graph.gold):,}", f"item{'s' * (len(graph.gold) != 1)} whose class was known before"


def _typical(n_answers: Array, verb: str) -> str:
    """Return how many answers half of the volunteers gave, or half of the items have."""
    if not n_answers.any():
        return "without answers" if len(n_answers) else "none at all"
    median = quantity(int(np.median(n_answers)), "answer")
    return f"half {verb} {median} or more" if len(n_answers) > 1 else f"with {median}"


def _settled(
    fit: ModelFit, has_gold: Array, doubt: str | None, against_gold: Mapping[str, Any] | None
) -> tuple[str, str]:
    """Return the share of settled items, and what gold says of such items; no share where it would mislead."""
    if doubt is not None:
        return "\u2013", doubt
    which = "items without gold" if has_gold.any() else "items"
    checked = "nobody checked how many of them are right"
    if against_gold is not None:
        n_sure, is_hidden = against_gold["sure"], against_gold["hidden"]
        if n_sure:
            were, hidden = "was" if n_sure == 1 else "were", " when their gold was hidden" if is_hidden else ""
            sure = f"{quantity(n_sure, 'gold item')} that {were} that sure{hidden}"
            checked = f"of {sure}, {against_gold['sure_accuracy']:.0%} were right"
        else:
            checked = f"no gold item was that sure{' when its gold was hidden' if is_hidden else ''}, so {checked}"
    about = f"of {which} have a class that is at least {SETTLED_PROBABILITY:.0%} probable; {checked}"
    return _settled_share(fit, has_gold), about


def _settled_calibrated(fit: ModelFit, has_gold: Array) -> tuple[str, str]:
    """Return the share of settled items by calibrated probabilities, and by what they were calibrated."""
    dependence = fit.dependence
    checked = "nobody checked how many of them are right"
    if dependence is not None and dependence.source == "gold":
        checked = f"how much they do was learned from {quantity(dependence.n_gold, 'gold item')}"
    about = "by calibrated probabilities, which allow for answers that depend on each other"
    return _settled_share(fit, has_gold), f"{about}; {checked}"


def _settled_share(fit: ModelFit, has_gold: Array) -> str:
    """Return the share of settled items, rounded down, so that 100% are all of them."""
    settled = fit.item_probs[~has_gold].max(axis=1) >= SETTLED_PROBABILITY
    return f"{100 * int(settled.sum()) // len(settled)}%"


def _community_card(communities: Communities) -> tuple[str, str]:
    if len(communities) == 1:
        verdict = "" if communities.evidence is None else communities.evidence.verdict
        words = {"weak": "weak evidence, not enough to call", "evidence": "evidence against communities"}
        return "\u2013", words.get(verdict.split(" ")[0], "no clear evidence")
    kind = "of volunteers who are linked" if communities.confusion is None else "by how volunteers answer"
    return f"{len(communities):,}" if len(communities) else "none", kind


def _about_items(results: GraphResults, doubt: str | None) -> Iterator[str]:
    """Yield what the items are, and how sure that is."""
    graph, fit = results.graph, results.fit
    if fit is not None and len(graph.items):
        yield _shares_of_classes(fit, results.better_fit, graph.gold.known, doubt)
        if results.is_doubtful:
            yield calibration_warning(results, fit)


def _about_volunteers(results: GraphResults, doubt: str | None) -> Iterator[str]:
    """Yield for how much their answers count, and how good they are."""
    graph, fit = results.graph, results.fit
    if fit is not None and fit.dependence is not None and len(graph.answers):
        yield _about_dependence(fit.dependence, graph)
    if results.snapshot is not None and len(graph.volunteers):
        yield _about_skill(results, results.snapshot, doubt)


def _about_communities(results: GraphResults) -> Iterator[str]:
    """Yield which communities there are, of those who behave alike and of those who work on the same items."""
    if results.communities is not None:
        yield _about_behaviour(results.communities)
    if results.task_communities is not None:
        yield _about_tasks(results.task_communities)


def _about_track(track: CommunityTrack | None) -> Iterator[str]:
    """Yield the story of the communities over time."""
    if track is not None and len(track) and track.n_communities.max() > 1:
        yield f"Communities over time: {track_sentence(track)}."


def _span(graph: CrowdGraph) -> str:
    """Return the period of the responses."""
    clock, times = graph.responses.clock, graph.responses.time
    if not len(times) or clock.kind == "order":
        return "without times"
    first, last = short_times(clock, times[[0, -1]])
    return first if first == last else f"{first} to {last}"


def _about_gold(calibration: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what gold says of the fit, or why nothing."""
    if calibration is None:
        return
    if "missing" in calibration:
        yield calibration["missing"]
        return
    n_items = sum(calibration["items"])
    n_right = f"{calibration['accuracy']:.1%} of {quantity(n_items, 'item')}"
    words = f"Against gold the most probable class is right for {n_right}"
    if calibration["hidden"]:
        words += ", each judged while its gold was hidden"
    caveat = ""
    if calibration["without_gold"] and not calibration["hidden"]:
        caveat = " That is somewhat kind, since skills were learned with this gold."
    yield f"{words}. {calibration['verdict']}{caveat}"


def _about_predictive(predictive: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what the predictive checks say."""
    if predictive is not None and "missing" not in predictive:
        yield predictive["verdict"]


def _shares_of_classes(fit: ModelFit, better: ModelFit | None, has_gold: Array, doubt: str | None) -> str:
    best = fit.item_probs.argmax(axis=1)
    shares = np.bincount(best, minlength=len(fit.classes)) / len(best)
    order = np.argsort(-shares, kind="stable")[:MAX_CLASSES]
    named = ", ".join(f"{fit.classes[code]} {shares[code]:.0%}" for code in order)
    words = f"The items by their most probable class ({fit.model}): {named}."
    if has_gold.all():
        return f"{words} The class of all of them was known before."
    if doubt is not None:
        return f"{words} How sure the model is means little: {doubt}."
    n_open = int(((better or fit).item_probs.max(axis=1) < SETTLED_PROBABILITY).sum())
    if not n_open:
        return f"{words} All are settled: a class is at least {SETTLED_PROBABILITY:.0%} probable."
    by = "" if better is None else ", by calibrated probabilities"
    return f"{words} No class is {SETTLED_PROBABILITY:.0%} probable yet for {quantity(n_open, 'item')}{by}."


def _about_dependence(dependence: Dependence, graph: CrowdGraph) -> str:
    """Return for how many independent answers the answers about a typical item count, and how that is known."""
    counts = graph.answers.n_by_item
    typical = int(np.median(counts[counts > 0]))
    source = {
        "gold": f"learned from {quantity(dependence.n_gold, 'gold item')}",
        "given": "as asked for",
        "assumed": "as is typical of real crowds; gold would show what it is here",
    }[dependence.source]
    if typical < 2:
        return "Most items have one answer, so nothing is known about how answers depend on each other."
    if dependence.rho == 0:
        return f"Answers about an item do not depend on each other, so that each counts fully ({source})."
    effective = float(dependence.effective_answers(typical))
    # Few answers count for so few that a decimal matters.
    count = f"{effective:.1f}" if effective < SMALL_NUMBER else f"{effective:.0f}"
    return (
        f"Answers about one item depend on each other, so {typical:,} answers, as many as a typical item has, count as "
        f"about {count} independent ones ({source})."
    )


def _about_skill(results: GraphResults, snapshot: ConfusionSnapshot, doubt: str | None) -> str:
    if doubt is not None:
        return f"How good the volunteers are is hardly known, and what is shown of it is mostly assumed: {doubt}."
    accuracy = snapshot.accuracy(results.class_probs, correct=results.correct_labels[0])
    low, median, high = np.quantile(accuracy, [0.1, 0.5, 0.9])
    if len(accuracy) == 1:
        return f"The only volunteer is expected to be right {median:.0%} of the time."
    if results.is_small:
        return (
            f"The volunteers are expected to be right {accuracy.min():.0%} to {accuracy.max():.0%} of the time, half "
            f"of them at least {median:.0%}."
        )
    return (
        f"Half of the volunteers are expected to be right at least {median:.0%} of the time; "
        f"the middle eight of ten lie between {low:.0%} and {high:.0%}."
    )


def _change_section(results: GraphResults) -> str:
    """Return where there is more about changes: the list of who changed, if anybody did."""
    return "who-changed" if results.changes is not None and len(results.changes) else "volunteers"


def _about_changes(results: GraphResults) -> Iterator[str]:
    """Yield who changed, the clearest few one by one, and how that is known."""
    changes = results.changes
    if changes is None:
        return
    if not changes.n_tested:
        yield (
            f"Whether volunteers changed was not tested: nobody gave {quantity(changes.min_answers, 'answer')} or more."
        )
        return
    n_few = len(changes.ids) - changes.n_tested
    few = f"; {quantity(n_few, 'volunteer')} with fewer than {changes.min_answers} answers were not" if n_few else ""
    tested = f"{quantity(changes.n_tested, 'volunteer')} {'was' if changes.n_tested == 1 else 'were'} tested{few}"
    if not len(changes):
        yield f"There is no evidence that anybody changed, though small changes may be missed ({tested})."
        return
    sentences = change_sentences(changes, results.graph)[:MAX_CHANGES]
    named = "; ".join(f"{change.volunteer}, {words}" for change, words in zip(changes, sentences, strict=False))
    more = len(changes) - MAX_CHANGES
    yield (
        f"There is evidence that {quantity(len(changes), 'volunteer')} changed: {named}"
        f"{f'; and {more:,} more' if more > 0 else ''}. Of such reports at most {changes.false_discovery_rate:.0%} are "
        f"false on average ({tested})."
    )


def _about_behaviour(communities: Communities) -> str:
    if not len(communities):
        return "No communities were found."
    if len(communities) == 1:
        return one_community(communities)
    return f"There are {len(communities):,} communities with {_sizes(communities)} volunteers.{_verdict(communities)}"


def _about_tasks(communities: Communities) -> str:
    if len(communities) < 2:
        verdict = "no clear evidence for communities" if communities.evidence is None else communities.evidence.verdict
        return f"By the items that volunteers work on, there is {verdict}."
    return (
        f"By the items that they work on, volunteers form {len(communities):,} task communities with "
        f"{_sizes(communities)} volunteers.{_verdict(communities)}"
    )


def _sizes(communities: Communities) -> str:
    """Return the sizes of the largest communities."""
    sizes = ", ".join(f"{size:,}" for size in communities.sizes[communities.order][:MAX_CLASSES])
    return f"{sizes}{', ...' if len(communities) > MAX_CLASSES else ''}"


def _verdict(communities: Communities) -> str:
    """Return a sentence on whether there are communities, and how clear they are."""
    evidence = communities.evidence
    verdict = "" if evidence is None else f" There is {evidence.verdict}."
    if evidence is not None and not evidence.structured:
        return f"{verdict} They may be chance."
    reasons = []
    if communities.entropy[communities.assignment >= 0].mean() > MAX_MIXED:
        reasons.append("most members belong to several")
    if evidence is not None and evidence.agreement < MIN_AGREEMENT:
        reasons.append(f"several starts agree by {evidence.agreement:.2f} only (1 is the same)")
    return f"{verdict} They are shades rather than groups: {', and '.join(reasons)}." if reasons else verdict


def _about_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the worst findings of the data doctor in words, and how many more there are."""
    bad = [finding for finding in findings if finding.severity != "info"]
    for finding in bad[:MAX_FINDINGS]:
        verb = "warns" if finding.severity == "warning" else "notes"
        yield f"The data doctor {verb} ({finding.name}): {finding.what}"
    more = len(bad) - MAX_FINDINGS
    if more > 0:
        yield f"The data doctor has {quantity(more, 'finding')} more to keep in mind."
    if not bad:
        yield "The data doctor has nothing to warn of."
