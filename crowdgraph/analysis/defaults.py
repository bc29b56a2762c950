"""What an analysis decides by itself: the model, which class a label speaks for, and whom communities are of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace

import numpy as np

from crowdgraph.core._arrays import FrozenMapping
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import check_choice, quote
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

# The models by name, with the settings that suit a crowd of which nothing is known.
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
# How many times as often as to items of any other class a label must be given to those of a class to speak for it.
CLEARLY = 1.2


def named_model(
    name: str, *, graph: CrowdGraph | None = None, votes: Mapping[Hashable, Hashable | None] | None = None
) -> Model:
    """A model by name, with the usual settings, and with votes where labels are not classes.

    Parameters
    ----------
    name
        One of `MODELS`, such as ``"dynibcc"``.
    graph
        The graph that the model is for. If its labels are not its classes, the votes are guessed from its gold.
    votes
        Which class each label speaks for, None for one that speaks for none.

    Examples
    --------
    >>> named_model("ibcc").name
    'ibcc'
    """
    check_choice("model", name, tuple(MODELS))
    return _voting(MODELS[name], graph, votes)


def _voting(model: Model, graph: CrowdGraph | None, votes: Mapping[Hashable, Hashable | None] | None) -> Model:
    """A model, or the one inside of it, with votes where labels are not classes."""
    if isinstance(model, Cautious):
        return replace(model, model=_voting(model.model, graph, votes))
    if "votes" not in {setting.name for setting in fields(model)}:
        return model
    if votes is None and graph is not None and not set(graph.labels) <= set(graph.classes):
        votes = guess_votes(graph)
        if votes is None and "confusion_prior" in model.settings() and len(graph.gold):
            return replace(model, confusion_prior="gold")  # type: ignore[call-arg]
    return model if votes is None else replace(model, votes=votes)  # type: ignore[call-arg]


def guess_votes(graph: CrowdGraph) -> dict[Hashable, Hashable | None] | None:
    """Which class each label speaks for, as far as gold tells; None where some class would have no label.

    A label that names a class speaks for it. Any other speaks for the class to whose gold items it is given clearly
    more often (1.2 times) than to those of every other class, and for none if there is no such class.

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
        label: label if label in graph.classes else _spoken_for(graph.classes, shares[:, code])
        for code, label in enumerate(graph.labels)
    }
    return votes if set(graph.classes) <= set(votes.values()) else None


def votes_note(graph: CrowdGraph, votes: Mapping[Hashable, Hashable | None] | None) -> str:
    """A sentence on which class each label speaks for, as guessed from gold; None stands for a guess that failed."""
    if votes is None:
        return (
            f"The labels {quote(graph.labels)} are not the classes {quote(graph.classes)}, and gold does not tell "
            "which class each of them speaks for; say it with votes={...}."
        )
    told = ", ".join(f"{label} for {'none' if name is None else name}" for label, name in votes.items())
    on_gold = int(np.count_nonzero(graph.gold.known[graph.responses.item] & (graph.responses.label >= 0)))
    return (
        f"Labels are not the classes; by {on_gold:,} answers to {len(graph.gold):,} gold items they are taken to speak "
        f"so: {told}."
    )


def activity_threshold(graph: CrowdGraph, *, least: int, max_volunteers: int) -> int:
    """The number of answers from which on at most so many volunteers are left, and `least` at least."""
    responses = graph.responses
    counts = np.bincount(responses.volunteer[responses.label >= 0], minlength=len(graph.volunteers))
    if np.count_nonzero(counts >= least) <= max_volunteers:
        return least
    return int(np.sort(counts)[::-1][max_volunteers]) + 1


def _spoken_for(classes: tuple[Hashable, ...], shares: np.ndarray) -> Hashable | None:
    """The class whose items are given a label most often, if that is clear."""
    first, *rest = np.argsort(-shares, kind="stable")
    runner_up = max((float(shares[code]) for code in rest), default=0.0)
    return classes[first] if shares[first] > 0 and shares[first] >= CLEARLY * runner_up else None
