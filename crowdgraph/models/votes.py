"""Which class a label speaks for, and which number it stands for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.settings import is_number
from crowdgraph.errors import ParameterError, quote, suggestion

__all__ = ["Scores", "Votes", "label_scores", "vote_codes"]

Votes: TypeAlias = "Mapping[Hashable, Hashable | None]"
Scores: TypeAlias = "Mapping[Hashable, float]"


def vote_codes(graph: CrowdGraph, votes: Votes | None, *, or_else: str = "") -> Array:
    """For each label the code of the class it votes for, of shape (L,); -1 where it votes for none.

    Without `votes`, every label must be the name of a class. `or_else` tells of another way out.
    """
    if votes is None:
        strange = [label for label in graph.labels if label not in graph.classes]
        if strange:
            example = ", ".join(f"{label!r}: {graph.classes[0]!r}" for label in graph.labels[:2])
            raise ParameterError(
                f"The labels {quote(graph.labels)} are not the classes {quote(graph.classes)}, so it must be said "
                f"which class a label speaks for: votes={{{example}, ...}}, with None for one that speaks for none."
                f"{or_else}"
            )
        votes = {label: label for label in graph.labels}
    _check_labels("votes", votes, graph)
    wrong = [target for target in votes.values() if target is not None and target not in graph.classes]
    if wrong:
        raise ParameterError(
            f"votes= names {quote(dict.fromkeys(wrong))}, which is no class; the classes are {quote(graph.classes)}. "
            f"Others are named with classes=[...] when building the graph.{suggestion(wrong[0], graph.classes)}"
        )
    targets = [votes[label] for label in graph.labels]
    return np.array([-1 if target is None else graph.classes.index(target) for target in targets])


def label_scores(graph: CrowdGraph, scores: Scores | None) -> Array:
    """For each label the number it stands for, of shape (L,); labels that are numbers, or their text, are their own."""
    if scores is None:
        values = np.array([_as_number(label) for label in graph.labels])
        words = [label for label, value in zip(graph.labels, values, strict=True) if not np.isfinite(value)]
        if words:
            raise ParameterError(
                f"The labels {quote(words)} are no numbers; say what each stands for: "
                f"scores={{{graph.labels[0]!r}: 0.0, ...}}."
            )
        return values
    _check_labels("scores", scores, graph)
    values = np.array([scores[label] if is_number(scores[label]) else np.nan for label in graph.labels], dtype=float)
    if not np.isfinite(values).all():
        raise ParameterError(f"scores= must give a finite number for each label; got {dict(scores)!r}.")
    return values


def check_mapping(name: str, value: object) -> None:
    """Raise unless a setting is a mapping or left out."""
    if value is not None and not isinstance(value, Mapping):
        raise ParameterError(f"{name}={value!r} must be a mapping from labels, such as {name}={{'yes': ...}}.")


def _as_number(label: Hashable) -> float:
    """The number that a label is or spells, as in a CSV file; NaN for others."""
    try:
        return float(label) if is_number(label) or isinstance(label, str) else np.nan  # type: ignore[arg-type]
    except ValueError:
        return np.nan


def _check_labels(name: str, mapping: Mapping[Hashable, object], graph: CrowdGraph) -> None:
    missing = [label for label in graph.labels if label not in mapping]
    if missing:
        raise ParameterError(
            f"{name}= misses {quote(missing)}; it must name every label: {quote(graph.labels, most=20)}."
        )
    strange = [label for label in mapping if label not in graph.labels]
    if strange:
        raise ParameterError(
            f"{name}= names {quote(strange)}, which is no label; the labels are {quote(graph.labels, most=20)}."
            f"{suggestion(strange[0], graph.labels)}"
        )
