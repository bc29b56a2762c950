"""What an analysis decides by itself: the model, the class that a label votes for, and who is in networks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace

import numpy as np

from crowdgraph.core._arrays import Array, FrozenMapping
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import Message, check_choice, quote
from crowdgraph.models import (
    IBCC,
    Cautious,
    DawidSkene,
    DynIBCC,
    GibbsIBCC,
    MajorityVote,
    MeanScore,
    Model,
    WeightedMajority,
    WeightedSum,
)
from crowdgraph.models._priors import gold_counts

__all__ = ["MODELS", "activity_threshold", "guess_votes", "named_model", "votes_note"]

# The models by name, with settings that suit a crowd about which nothing is known.
MODELS: Mapping[str, Model] = FrozenMapping(
    {
        model.name: model
        for model in (
            DynIBCC(noise_scale="auto"),
            IBCC(),
            GibbsIBCC(),
            DawidSkene(),
            MajorityVote(),
            WeightedMajority(),
            MeanScore(),
            WeightedSum(),
            Cautious(),
        )
    }
)
# A label votes for a class if it is given to items of that class this many times as often as to those of any other.
MIN_VOTE_RATIO = 1.2


def named_model(
    name: str, *, graph: CrowdGraph | None = None, votes: Mapping[Hashable, Hashable | None] | None = None
) -> Model:
    """Return a model by name, with its default settings, and with votes where labels are not classes.

    Parameters
    ----------
    name
        One of `MODELS`, such as ``"dynibcc"``.
    graph
        The graph that the model is for. If its labels are not its classes, the votes are guessed from its gold.
    votes
        The class that each label votes for, None for a label that votes for none.

    Examples
    --------
    >>> named_model("ibcc").name
    'ibcc'
    """
    check_choice("model", name, tuple(MODELS))
    return _with_votes(MODELS[name], graph, votes)


def _with_votes(model: Model, graph: CrowdGraph | None, votes: Mapping[Hashable, Hashable | None] | None) -> Model:
    """Return the model, or a cautious model around it, with votes where labels are not classes."""
    if isinstance(model, Cautious):
        return replace(model, model=_with_votes(model.model, graph, votes))
    if "votes" not in {setting.name for setting in fields(model)}:
        return model
    if votes is None and graph is not None and not set(graph.labels) <= set(graph.classes):
        votes = guess_votes(graph)
        if votes is None and "confusion_prior" in model.settings() and len(graph.gold):
            return replace(model, confusion_prior="gold")  # type: ignore[call-arg]
    return model if votes is None else replace(model, votes=votes)  # type: ignore[call-arg]


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


def votes_note(graph: CrowdGraph, votes: Mapping[Hashable, Hashable | None] | None) -> str:
    """Return a sentence on which class each label votes for, as guessed from gold; None stands for a failed guess."""
    if votes is None:
        return (
            f"The labels {quote(graph.labels)} are not the classes {quote(graph.classes)}, and gold does not show "
            "which class each of them votes for; say it with "
        ) + Message("votes={...}.", cli="--vote LABEL=CLASS.")
    pairs = ", ".join(f"{label} for {'none' if name is None else name}" for label, name in votes.items())
    n_answers = int(np.count_nonzero(graph.gold.known[graph.answers.item]))
    return (
        f"Labels are not the classes; by {n_answers:,} answers to {len(graph.gold):,} gold items they are taken to "
        f"vote so: {pairs}."
    )


def activity_threshold(graph: CrowdGraph, *, min_responses: int, max_volunteers: int) -> int:
    """Return the least number of answers, from `min_responses` up, that at most `max_volunteers` have given."""
    counts = graph.answers.n_by_volunteer
    if np.count_nonzero(counts >= min_responses) <= max_volunteers:
        return min_responses
    return int(np.sort(counts)[::-1][max_volunteers]) + 1
