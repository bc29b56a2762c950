"""What pictures of communities share: what they show, where, and how communities are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError
from crowdgraph.plot.axes import check_kind
from crowdgraph.plot.over_time import counted

__all__ = [
    "DIGIT",
    "MOST_LISTED",
    "check_communities",
    "confusion_of",
    "counted_communities",
    "given_axes",
    "name_of",
    "uncovered",
]

# More communities than these are not listed one by one.
MOST_LISTED = 12
# How wide and high a digit is, relative to the size of the text.
DIGIT = np.array([0.65, 1.0])


def check_communities(communities: object, *, least: int = 1) -> None:
    """Raise unless these are communities, and not too few to be drawn."""
    check_kind(communities, Communities, "BayesianNMF().detect(network)")
    if isinstance(communities, Communities) and len(communities) < least:
        raise ParameterError(
            f"There are no communities to draw: {communities.method!r} found none, as happens where nobody has a "
            "neighbour in the network."
        )


def confusion_of(
    communities: Communities, fit: ModelFit | ConfusionTrack | ConfusionSnapshot | None
) -> ConfusionSnapshot:
    """The confusion matrices of the communities' volunteers: those given, or those the communities were found by."""
    found: object = communities.confusion if fit is None else fit
    if found is None:
        raise ParameterError(
            f"The communities {communities.method!r} were not found by comparing confusion matrices. Say which to "
            "draw: give a fit, such as IBCC().fit(graph), as second argument."
        )
    if isinstance(found, ModelFit):
        if found.confusion is None:
            raise NotAnnotatedError(f"The model {found.model!r} has no confusion matrices to draw; use IBCC.")
        found = found.confusion
    if isinstance(found, ConfusionTrack):
        found = found.latest()
    if not isinstance(found, ConfusionSnapshot):
        raise ParameterError(
            f"Confusion matrices are taken from a fit, its confusion, or its confusion at a time; got a "
            f"{type(found).__name__}."
        )
    strangers = [volunteer for volunteer in communities.ids.tolist() if volunteer not in found.table]
    if strangers:
        raise AlignmentError(
            f"The confusion matrices lack {len(strangers):,} of the communities' volunteers, such as "
            f"{strangers[0]!r}. Take a fit of the graph in which the communities were found."
        )
    return found


def given_axes(axes: Sequence[Axes] | Any) -> list[Any]:
    """The axes of a sequence or array of them, such as ``plt.subplots`` returns."""
    listed = list(np.ravel(np.asarray(axes, dtype=object)))
    strange = [part for part in listed if not isinstance(part, Axes)]
    if strange or not listed:
        got = type(strange[0]).__name__ if strange else "none"
        raise ParameterError(f"axes= takes matplotlib axes, one for each panel; got {got}.")
    return listed


def name_of(number: int, size: int) -> str:
    """What a community is called in a picture: ``3: 120 volunteers``."""
    return f"{number}: {counted(int(size), 'volunteer')}"


def counted_communities(number: int) -> str:
    """``1 community``, ``32 communities``."""
    return f"{number:,} communit{'y' if number == 1 else 'ies'}"


def uncovered(spots: Array, texts: Sequence[str], *, points: float) -> list[int]:
    """The places of the texts that cover none of those before them; spots are in points, of shape (K, 2)."""
    sizes = [DIGIT * [len(text), 1] * points for text in texts]
    kept: list[int] = []
    for place, (spot, size) in enumerate(zip(spots, sizes, strict=True)):
        if not any((np.abs(spot - spots[other]) < (size + sizes[other]) / 2).all() for other in kept):
            kept.append(place)
    return kept
