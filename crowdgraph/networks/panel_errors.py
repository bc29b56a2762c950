"""The errors of a panel: how wrong each answer of a few volunteers is for each class that its item may have."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import unique_ids
from crowdgraph.errors import ParameterError, TooFewError
from crowdgraph.messages import Hint, quote
from crowdgraph.networks._volunteers import last_answers

__all__ = ["MAX_PANEL", "PanelErrors", "panel_errors", "right_labels"]

# Every pair of a panel is compared on every item, so panels are small.
MAX_PANEL = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class PanelErrors(ReadOnlyArrays):
    """The errors of a panel about the items that at least two of its members answered.

    Attributes
    ----------
    ids
        The members, of shape (V,).
    error
        How much of each answer is wrong if the item is of a class, from 0 to 1, of shape (V, N, J); zero where there is
        no answer.
    answered
        Who answered which item, of shape (V, N).
    probs
        The probability of each class, of shape (N, J): one or zero where the class is known from gold.
    has_gold
        Where it is known, of shape (N,).
    """

    ids: Array
    error: Array
    answered: Array
    probs: Array
    has_gold: Array


def panel_errors(
    graph: CrowdGraph,
    fit: ModelFit | str | None,
    volunteers: Iterable[Hashable] | None,
    *,
    min_answers: int,
    min_members: int,
) -> PanelErrors:
    """Return the errors of some volunteers, or of all who gave enough answers; raise if too few or too many are left.

    The last answer of a volunteer to an item counts.
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"The errors of a panel are those of a CrowdGraph; got {type(graph).__name__}.")
    fit = graph.resolve_fit(fit)
    fit.check_matches(graph)
    right = right_labels(graph, fit)
    if right is None:
        raise ParameterError(
            f"Which labels are right is not known: the classes are {quote(graph.classes)}, the labels "
            f"{quote(graph.labels)}.",
            hint="Give the labels the names of the classes, or fit a model with votes={label: class, ...}.",
        )
    if volunteers is None:
        members = np.flatnonzero(graph.answers.n_by_volunteer >= min_answers)
    else:
        members = graph.volunteers.codes(volunteers)
        unique_ids(graph.volunteers.ids[members], kind="volunteer")
    if not min_members <= len(members) <= MAX_PANEL:
        kind = TooFewError if len(members) < min_members else ParameterError
        raise kind(
            f"A panel has from {min_members} to {MAX_PANEL} volunteers; got {len(members):,}"
            + (f" with {min_answers:,} answers or more." if volunteers is None else "."),
            hint=Hint("Name the members with volunteers=[...].", cli="Name the members."),
        )
    answers = last_answers(graph, members)
    n_answers = np.bincount(answers.item, minlength=len(graph.items))
    several = np.flatnonzero(n_answers >= 2)
    position = np.full(len(graph.items), -1)
    position[several] = np.arange(len(several))
    counts = position[answers.item] >= 0
    volunteer, item, rows = answers.volunteer[counts], position[answers.item[counts]], answers.row[counts]
    label_probs = graph.label_probs
    shares = np.eye(len(graph.labels))[graph.responses.label[rows]] if label_probs is None else label_probs[rows]
    error = np.zeros((len(members), len(several), len(graph.classes)))
    error[volunteer, item] = shares @ ~right.T
    answered = np.zeros(error.shape[:2], dtype=bool)
    answered[volunteer, item] = True
    gold = graph.gold.codes[several]
    probs = np.where(gold[:, None] >= 0, np.eye(len(graph.classes))[gold], fit.item_probs[several])
    return PanelErrors(
        ids=graph.volunteers.ids[members], error=error, answered=answered, probs=probs, has_gold=gold >= 0
    )


def right_labels(graph: CrowdGraph, fit: ModelFit) -> Array | None:
    """Return whether each label is right for each class, of shape (J, L); None if neither votes nor names say."""
    by_votes: Mapping[Hashable, Collection[Hashable]] | None = fit.correct_labels
    if by_votes is None:
        if not set(graph.classes) <= set(graph.labels):
            return None
        by_votes = {name: [name] for name in graph.classes}
    return np.array([[label in by_votes[name] for label in graph.labels] for name in graph.classes])
