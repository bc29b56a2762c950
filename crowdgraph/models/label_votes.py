"""Which class each label votes for, and which score it counts for: as the user says, or as gold suggests."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

import numpy as np

from crowdgraph.core._arrays import Array, row_blocks
from crowdgraph.core._parameters import is_number
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.item_scores import as_number
from crowdgraph.errors import ParameterError
from crowdgraph.messages import Hint, Message, quote, suggestion
from crowdgraph.models._resources import current_resources

__all__ = [
    "Scores",
    "Votes",
    "check_mapping",
    "gold_counts",
    "guess_votes",
    "label_scores",
    "vote_codes",
    "vote_mask",
]

Votes: TypeAlias = "Mapping[Hashable, Hashable | None]"
Scores: TypeAlias = "Mapping[Hashable, float]"
# A label votes for a class if it is given to items of that class this many times as often as to those of any other.
MIN_VOTE_RATIO = 1.2


def check_mapping(name: str, value: object) -> None:
    """Raise unless a setting is a mapping from labels."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"{name}={value!r} must be a mapping from labels, such as {name}={{'yes': ...}}.")


def vote_codes(graph: CrowdGraph, votes: Votes | None, *, alternative: str = "") -> Array:
    """Return for each label the code of the class it votes for, of shape (L,); -1 where it votes for none.

    Without `votes`, every label must be the name of a class. `alternative` is a sentence for the error that describes
    another solution.
    """
    if votes is None:
        if any(label not in graph.classes for label in graph.labels):
            # Which class the others vote for cannot be guessed, so that the example must not be usable as it is.
            example = ", ".join(
                f"{label!r}: {repr(label) if label in graph.classes else '...'}" for label in graph.labels[:2]
            )
            more = ", ..." if len(graph.labels) > 2 else ""
            raise ParameterError(
                f"The labels {quote(graph.labels)} are not the classes {quote(graph.classes)}.",
                hint=Hint(
                    f"Say which class a label votes for: votes={{{example}{more}}}, with None for a label that votes "
                    "for none.",
                    cli="Say which class a label votes for: --vote LABEL=CLASS for each label, LABEL= for one that "
                    "votes for none.",
                )
                + alternative,
            )
        votes = {label: label for label in graph.labels}
    _check_known_labels("votes", votes, graph)
    wrong = [target for target in votes.values() if target is not None and target not in graph.classes]
    if wrong:
        raise ParameterError(
            Message("votes=", cli="--vote")
            + f" names {quote(dict.fromkeys(wrong))}, which is not a class; the classes are {quote(graph.classes)}.",
            hint=Hint(
                "Name other classes with classes=[...] when building the graph.", cli="Name others with --class NAME."
            )
            + suggestion(wrong[0], graph.classes),
        )
    _check_every_label("votes", votes, graph)
    targets = [votes[label] for label in graph.labels]
    return np.array([-1 if target is None else graph.classes.index(target) for target in targets])


def vote_mask(graph: CrowdGraph, votes: Votes | None, *, alternative: str = "") -> Array:
    """Return whether each label votes for each class, of shape (J, L); see `vote_codes`."""
    targets = vote_codes(graph, votes, alternative=alternative)
    return np.asarray(targets == np.arange(len(graph.classes))[:, None])


def label_scores(graph: CrowdGraph, scores: Scores | None) -> Array:
    """Return for each label the number it stands for, of shape (L,); numbers, or their text, stand for themselves."""
    if scores is None:
        values = np.array([as_number(label) for label in graph.labels])
        words = [label for label, value in zip(graph.labels, values, strict=True) if not np.isfinite(value)]
        if words:
            raise ParameterError(
                f"The labels {quote(words)} are not numbers.",
                hint=f"Say what each label stands for: scores={{{graph.labels[0]!r}: 0.0, ...}}.",
            )
        return values
    _check_known_labels("scores", scores, graph)
    _check_every_label("scores", scores, graph)
    values = np.array([scores[label] if is_number(scores[label]) else np.nan for label in graph.labels], dtype=float)
    if not np.isfinite(values).all():
        raise ParameterError(f"scores= must give a finite number for each label; got {dict(scores)!r}.")
    return values


def _setting_name(name: str) -> Message:
    return Message(f"{name}=", cli="--vote" if name == "votes" else f"{name}=")


def _check_every_label(name: str, mapping: Mapping[Hashable, object], graph: CrowdGraph) -> None:
    """Raise unless a mapping has all the labels of a graph."""
    missing = [label for label in graph.labels if label not in mapping]
    if missing:
        raise ParameterError(
            _setting_name(name) + f" misses {quote(missing)}; it must name every label: {quote(graph.labels, most=20)}."
        )


def _check_known_labels(name: str, mapping: Mapping[Hashable, object], graph: CrowdGraph) -> None:
    """Raise unless a mapping has only labels of a graph."""
    unknown = [label for label in mapping if label not in graph.labels]
    if unknown:
        raise ParameterError(
            _setting_name(name) + f" names {quote(unknown)}, which is not a label; the labels are "
            f"{quote(graph.labels, most=20)}.{suggestion(unknown[0], graph.labels)}"
        )


def gold_counts(graph: CrowdGraph) -> tuple[Array, Array]:
    """Count how often volunteers gave labels to gold items of each class, (K, J, L), and the gold items, (J,).

    Soft gold counts by its probabilities.
    """
    gold, answers, resources = graph.gold, graph.answers, current_resources()
    shape = (len(graph.volunteers), len(graph.classes), len(graph.labels))
    counts, class_counts = np.zeros(shape), np.zeros(shape[1])
    if len(gold):
        about_gold = np.concatenate([gold.known[answers.item[block]] for block in row_blocks(len(answers))])
        counts = expected_counts(graph, gold.probs, answers=answers.where(about_gold))
        class_counts = gold.probs[gold.known].sum(axis=0)
    return resources.total(counts), resources.total(class_counts)


def guess_votes(graph: CrowdGraph) -> dict[Hashable, Hashable | None] | None:
    """Guess from gold which class each label votes for; None if some class would have no label.

    A label that names a class votes for it. Any other votes for the class to whose gold items it is given clearly more
    often (1.2 times) than to those of every other class, and for none if there is no such class.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> table = {"volunteer": list("abcdef"), "item": list("xxxyyy"), "label": ["likely"] * 3 + ["unlikely"] * 3}
    >>> graph = cg.CrowdGraph.from_responses(table, gold={"x": "yes", "y": "no"})
    >>> guess_votes(graph)
    {'likely': 'yes', 'unlikely': 'no'}
    """
    counts = gold_counts(graph)[0].sum(axis=0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    votes = {
        label: label if label in graph.classes else _likely_class(graph.classes, shares[:, code])
        for code, label in enumerate(graph.labels)
    }
    return votes if set(graph.classes) <= set(votes.values()) else None


def _likely_class(classes: tuple[Hashable, ...], shares: Array) -> Hashable | None:
    """Return the class to whose items a label is given most often, if that is clear."""
    first, *rest = np.argsort(-shares, kind="stable")
    runner_up = max((float(shares[code]) for code in rest), default=0.0)
    return classes[first] if shares[first] > 0 and shares[first] >= MIN_VOTE_RATIO * runner_up else None
