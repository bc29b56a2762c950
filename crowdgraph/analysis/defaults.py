"""What an analysis decides by itself: the model, the class that a label votes for, and who is in networks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace

import numpy as np

from crowdgraph.core._arrays import FrozenMapping
from crowdgraph.core._text import quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import Hint, Message, quote
from crowdgraph.models import (
    IBCC,
    Calibrated,
    Cautious,
    DawidSkene,
    DynIBCC,
    GibbsIBCC,
    MajorityVote,
    MeanScore,
    Model,
    OrdinalIBCC,
    WeightedMajority,
    WeightedSum,
)
from crowdgraph.models._priors import ConfusionPrior
from crowdgraph.models.label_votes import guess_votes

__all__ = ["DEFAULT_MODEL", "MODELS", "activity_threshold", "named_model", "takes_prior", "votes_note"]

# The name of the model that is fitted if none is named.
DEFAULT_MODEL = Calibrated.name
# The models by name, with settings that suit a crowd about which nothing is known.
MODELS: Mapping[str, Model] = FrozenMapping(
    {
        model.name: model
        for model in (
            Calibrated(),
            IBCC(),
            DynIBCC(noise_scale="auto"),
            GibbsIBCC(),
            DawidSkene(),
            MajorityVote(),
            WeightedMajority(),
            MeanScore(),
            WeightedSum(),
            Cautious(),
            OrdinalIBCC(),
        )
    }
)


def named_model(
    name: str,
    *,
    graph: CrowdGraph | None = None,
    votes: Mapping[Hashable, Hashable | None] | None = None,
    confusion_prior: ConfusionPrior = None,
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
    confusion_prior
        The prior of confusion, for models that have one; learned from the crowd if left out.

    Examples
    --------
    >>> named_model("ibcc").name
    'ibcc'
    """
    check_choice("model", name, tuple(MODELS))
    model = _with_votes(MODELS[name], graph, votes)
    return model if confusion_prior is None else _with_prior(model, confusion_prior)


def takes_prior(name: str) -> bool:
    """Return whether a named model, or the model that it is around, has a prior of confusion."""
    check_choice("model", name, tuple(MODELS))
    model = MODELS[name]
    return "confusion_prior" in (model.model if isinstance(model, Cautious | Calibrated) else model).settings()


def _with_prior(model: Model, confusion_prior: ConfusionPrior) -> Model:
    """Return the model, or the model that one is around, with a prior of confusion."""
    if isinstance(model, Cautious | Calibrated):
        return replace(model, model=_with_prior(model.model, confusion_prior))
    if "confusion_prior" not in model.settings():
        raise ParameterError(
            f"The model {model.name!r} has no prior of confusion.",
            hint=Hint("Leave confusion_prior= out, or use 'ibcc'.", cli="Leave --prior out, or use --model ibcc."),
        )
    return replace(model, confusion_prior=confusion_prior)  # type: ignore[call-arg]


def _with_votes(model: Model, graph: CrowdGraph | None, votes: Mapping[Hashable, Hashable | None] | None) -> Model:
    """Return the model, or the model that one is around, with votes where labels are not classes."""
    if isinstance(model, Cautious | Calibrated):
        return replace(model, model=_with_votes(model.model, graph, votes))
    if "votes" not in {setting.name for setting in fields(model)}:
        return model
    if votes is None and graph is not None and not set(graph.labels) <= set(graph.classes):
        votes = guess_votes(graph)
        if votes is None and "confusion_prior" in model.settings() and len(graph.gold):
            return replace(model, confusion_prior="gold")  # type: ignore[call-arg]
    return model if votes is None else replace(model, votes=votes)  # type: ignore[call-arg]


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
        f"Labels are not the classes; by {quantity(n_answers, 'answer')} to "
        f"{quantity(len(graph.gold), 'gold item')} they are taken to vote so: {pairs}."
    )


def activity_threshold(graph: CrowdGraph, *, min_responses: int, max_volunteers: int) -> int:
    """Return the least number of answers, from `min_responses` up, that at most `max_volunteers` have given."""
    counts = graph.answers.n_by_volunteer
    if np.count_nonzero(counts >= min_responses) <= max_volunteers:
        return min_responses
    return int(np.sort(counts)[::-1][max_volunteers]) + 1
