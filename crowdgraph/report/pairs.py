"""The pairs of a small crowd, which is too small for communities: who behaves alike, errs together, shares items."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import quantity
from crowdgraph.core.communities import MIN_CROWD
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.evaluation.predictive import PAIR_CHECK
from crowdgraph.messages import Message, wording
from crowdgraph.report._results import ALIKE_METHOD, ERROR_METHOD, TASK_METHOD, GraphResults

__all__ = ["pair_section", "pair_sentences"]

# At most this many pairs are named in a list.
MAX_PAIRS = 5
# Shares of common items that differ by less are as good as the same.
SAME_WEIGHT = 0.1
LIKENESS_EXPLAINED = (
    "Likeness compares how often two of them give each label to each class: it is 1 if that is the same for both. "
    "Two who are alike need not err about the same items."
)
ERRORS_EXPLAINED = (
    "Two who err about the same items in the same way are hardly two opinions. Listed are those whose errors come "
    "together more often than chance explains."
)


def pair_section(results: GraphResults) -> dict[str, Any] | None:
    """Return the pairs of a small crowd in words, list by list, and why they stand there; None for larger crowds."""
    if not results.is_small:
        return None
    graph = results.graph
    n_volunteers = len(graph.volunteers)
    if n_volunteers < 2:
        return {"reason": f"There is {'one volunteer' if n_volunteers else 'nobody'}, so nobody to compare with."}
    lists = [{"title": title, "note": note, "pairs": pairs} for title, note, pairs in _lists(results) if pairs]
    advice = "To compare pairs" + Message(
        ", annotate the graph with networks: graph = graph.annotate(cg.networks.pi_similarity(graph)), and likewise "
        "cg.networks.error_correlation and cg.networks.task_cooccurrence.",
        cli=", use crowdgraph analyse, and --min-responses 1 if volunteers gave few answers.",
    )
    return {
        "reason": f"{_who(results)} too few for communities, which need {MIN_CROWD}. "
        "So this is about pairs: whom you could exchange for whom, and who sees things differently.",
        **({"lists": lists} if lists else {"missing": wording(advice, results.interface)}),
    }


def pair_sentences(results: GraphResults) -> Iterator[str]:
    """Yield who is most and who least alike, for the overview."""
    alike = _network(results, ALIKE_METHOD) if results.is_small else None
    if alike is None:
        return
    one, other, weights = alike.pairs()
    if len(weights) > 1:
        order = _by_weight(weights)
        best, worst = (f"{alike.ids[one[k]]} and {alike.ids[other[k]]}" for k in (order[0], order[-1]))
        yield f"Most alike in how they answer are {best}; least alike are {worst}."


def _by_weight(weights: Array) -> list[int]:
    """Return the numbers of pairs, those with the largest weights first; ties are in the network's order."""
    return [int(k) for k in np.argsort(-weights, kind="stable")]


def _who(results: GraphResults) -> str:
    """Return how many volunteers can be compared."""
    n_all = len(results.graph.volunteers)
    n_linked = max((len(network) for network in results.networks.values()), default=n_all)
    if n_linked == n_all:
        return f"{quantity(n_all, 'volunteer')} are"
    return f"{n_linked:,} of {quantity(n_all, 'volunteer')} gave enough answers to be compared,"


def _lists(results: GraphResults) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the title, an explanation, and the pairs in words of each list that the networks on the graph allow."""
    alike, erring, together = (_network(results, method) for method in (ALIKE_METHOD, ERROR_METHOD, TASK_METHOD))
    checked = () if results.predictive is None else results.predictive.pairs
    linked = [name for network in results.networks.values() for name in network.ids.tolist()]
    named = [*linked, *(name for pair in checked for name in (pair.volunteer, pair.other))]
    common = CommonAnswers.of(results, list(dict.fromkeys(named)))
    if alike is not None:
        yield from _alike(alike, common)
    if erring is not None or results.predictive is not None:
        yield "Who errs together", ERRORS_EXPLAINED, _erring(results, common)
    if together is not None:
        yield "Who works together most", "", _together(together, common)


def _network(results: GraphResults, method: str) -> VolunteerNetwork | None:
    """Return the latest network of a method that links anybody."""
    networks = [network for network in results.networks.values() if network.method == method and network.n_edges]
    return networks[-1] if networks else None


def _alike(network: VolunteerNetwork, common: CommonAnswers) -> Iterator[tuple[str, str, list[str]]]:
    ids, (one, other, weights) = network.ids.tolist(), network.pairs()
    order = _by_weight(weights)
    n_top = min(MAX_PAIRS, max(len(order) // 2, 1))
    # In two decimals all of a crowd that behaves much alike would be the same.
    digits = 3 if all(f"{weight:.2f}" == "1.00" for weight in weights) else 2

    def in_words(k: int, *, differ: bool) -> str:
        names = ids[one[k]], ids[other[k]]
        words = f"{names[0]} and {names[1]}: likeness {weights[k]:.{digits}f}; {common.agreement(*names)}."
        return f"{words} {_difference(network, *names)}".strip() if differ else words

    if len(order) == 1:
        yield "The two", LIKENESS_EXPLAINED, [in_words(order[0], differ=True)]
        return
    yield "Who behaves most alike", LIKENESS_EXPLAINED, [in_words(k, differ=False) for k in order[:n_top]]
    yield "Who behaves least alike", "", [in_words(k, differ=True) for k in order[: -n_top - 1 : -1]]


def _difference(network: VolunteerNetwork, volunteer: Hashable, other: Hashable) -> str:
    """Return to which class two volunteers give a label most differently, by the matrices that the network compares.

    It is empty if the network does not know them, as after it was read from a file: others may say something else.
    """
    confusion = getattr(network.model, "confusion", None)
    if not isinstance(confusion, ConfusionSnapshot):
        return ""
    means = [confusion.of(name).mean for name in (volunteer, other)]
    j, label = np.unravel_index(np.abs(means[0] - means[1]).argmax(), means[0].shape)
    shares = [f"{mean[j, label]:.0%}" for mean in means]
    if shares[0] == shares[1]:
        return ""
    return (
        f"They differ most about {confusion.classes[j]}: {volunteer} says {confusion.labels[label]} to {shares[0]} of "
        f"such items, {other} to {shares[1]}."
    )


def _erring(results: GraphResults, common: CommonAnswers) -> list[str]:
    """Return the pairs who share more errors than chance explains, by the predictive checks, or that nobody does."""
    checks = results.predictive
    if checks is None:
        advice = "Whether errors in common are more than chance was not checked" + Message(
            ": give predictive=cg.evaluation.predictive_checks(graph).", cli="; crowdgraph analyse does it."
        )
        return [wording(advice, results.interface)]
    reasons = [check.reason for check in checks if check.name == PAIR_CHECK and check.reason]
    if reasons:
        return [f"Whether anybody errs together was not checked: {reasons[0]}."]
    words = []
    for pair in checks.pairs:
        n_wrong, n_same = common.errors(pair.volunteer, pair.other)
        if n_wrong:
            words.append(
                f"{pair.volunteer} and {pair.other}: both err about {n_wrong:,} of "
                f"{quantity(common.count(pair.volunteer, pair.other), 'item')} in common, with the same answer to "
                f"{n_same:,} of them; that is more than chance explains."
            )
    return words[:MAX_PAIRS] or ["Nobody errs together more than chance explains."]


def _together(network: VolunteerNetwork, common: CommonAnswers) -> list[str]:
    """Return the pairs with the most items in common, or that all answered the same items."""
    ids, (one, other, weights) = network.ids.tolist(), network.pairs()
    counts = [common.count(ids[a], ids[b]) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    is_complete = len(ids) > 2 and len(weights) == len(ids) * (len(ids) - 1) / 2
    if is_complete and weights.min() >= 1:
        return [f"All {len(ids):,} answered the same {quantity(counts[0], 'item')}."]
    if is_complete and np.ptp(weights) < SAME_WEIGHT:
        return [f"Nobody stands out: any two of them answered {min(counts):,} to {max(counts):,} items in common."]
    words = []
    for k in _by_weight(weights)[:MAX_PAIRS]:
        names = ids[one[k]], ids[other[k]]
        words.append(
            f"{names[0]} and {names[1]}: {quantity(counts[k], 'item')} in common, {weights[k]:.0%} of what each of "
            "them answered on average."
        )
    return words


@dataclass(frozen=True, eq=False)
class CommonAnswers:
    """The last label that each of a few volunteers gave to each item, of shape (N,), -1 for none.

    `right` says whether a label is right for the most probable class of an item, of shape (N, L); None without a fit.
    """

    labels: Mapping[Hashable, Array]
    right: Array | None

    @classmethod
    def of(cls, results: GraphResults, volunteers: list[Hashable]) -> CommonAnswers:
        """Return the answers of a few volunteers."""
        graph, fit = results.graph, results.fit
        answers = graph.answers
        labels = {}
        for name, code in zip(volunteers, graph.volunteers.codes(volunteers).tolist(), strict=True):
            own = answers.volunteer == code
            labels[name] = np.full(len(graph.items), -1)
            labels[name][answers.item[own]] = answers.label[own]
        if fit is None:
            return cls(labels, None)
        correct = results.correct_labels[0]
        is_right = np.array([[label in correct[name] for label in graph.labels] for name in graph.classes])
        return cls(labels, is_right[fit.item_probs.argmax(axis=1)])

    def count(self, volunteer: Hashable, other: Hashable) -> int:
        """Return how many items both answered."""
        one, two = self.labels[volunteer], self.labels[other]
        return int(((one >= 0) & (two >= 0)).sum())

    def errors(self, volunteer: Hashable, other: Hashable) -> tuple[int, int]:
        """Return about how many items both gave other answers than the right one, and how often the same."""
        if self.right is None:
            return 0, 0
        one, two = self.labels[volunteer], self.labels[other]
        items = np.flatnonzero((one >= 0) & (two >= 0))
        both = items[~self.right[items, one[items]] & ~self.right[items, two[items]]]
        return len(both), int((one[both] == two[both]).sum())

    def agreement(self, volunteer: Hashable, other: Hashable) -> str:
        """Return to how many of their common items two volunteers gave the same answer, in words."""
        one, two = self.labels[volunteer], self.labels[other]
        n_common, n_same = self.count(volunteer, other), int(((one == two) & (one >= 0)).sum())
        if not n_common:
            return "they answered no item in common"
        return f"they gave the same answer to {n_same / n_common:.0%} of {quantity(n_common, 'item')} in common"
