"""What annotations and gold say about nodes and responses, as columns for networkx, igraph and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

from crowdgraph.core._arrays import Array, same_values
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.graph import CrowdGraph, History
from crowdgraph.core.response_annotations import fit_with_confusion, response_confusion, response_surprise
from crowdgraph.errors import CrowdGraphWarning, NotAnnotatedError, check_choice, warn
from crowdgraph.messages import quote

Annotation = TypeVar("Annotation")
Values = TypeVar("Values")


class AnnotatedColumns(NamedTuple):
    """Columns by name for volunteers, items and responses; None (NaN for surprise) where nothing is known."""

    volunteer: Mapping[str, list[Any]]
    item: Mapping[str, list[Any]]
    response: Mapping[str, list[Any]]


def annotated_columns(graph: CrowdGraph, history: History) -> AnnotatedColumns:
    """Return what annotations and gold say about each node and response; see `CrowdGraph.to_networkx`.

    An attribute of the user goes before an annotation of the same name, which is left out with a warning.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> columns = annotated_columns(graph.annotate(cg.IBCC().fit(graph)), "full")
    >>> [list(part) for part in columns]
    [['confusion', 'confusion_times', 'confusion_history'], ['gold', 'class_probs'], ['surprise', 'confusion']]
    """
    check_choice("history", history, get_args(History))
    return AnnotatedColumns(
        without_clashes(_volunteer_columns(graph, history), graph.volunteers.attributes, "volunteers"),
        without_clashes(_item_columns(graph), graph.items.attributes, "items"),
        without_clashes(_response_columns(graph, history), graph.responses.attributes, "responses"),
    )


def annotation_or_none(read: Callable[[], Annotation]) -> Annotation | None:
    """Return an annotation, or None if the graph does not carry it."""
    try:
        return read()
    except NotAnnotatedError:
        return None


def confusion_histories(graph: CrowdGraph, track: ConfusionTrack) -> tuple[list[Array], list[Array]]:
    """Return the times, (T,), and the expected confusion after each, (T, J, L), for every volunteer.

    A static track has one entry, at the time of the graph's last response.
    """
    if track.inference == "static":
        times = graph.responses.time[-1:]
        latest = track.latest().mean[:, None][:, : len(times)]
        return [times] * len(track), list(latest)
    parts = track.starts[1:-1]
    return np.split(track.times, parts), np.split(track.mean, parts)


def _volunteer_columns(graph: CrowdGraph, history: History) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    n_volunteers = len(graph.volunteers)
    track = annotation_or_none(graph.confusion)
    community_track = annotation_or_none(graph.community_track)
    if (confusion := latest_confusion(graph)) is not None:
        columns["confusion"] = list(confusion.mean)
    if track is not None and history == "full":
        columns["confusion_times"], columns["confusion_history"] = confusion_histories(graph, track)
    if (communities := latest_communities(graph)) is not None:
        columns["participation"], columns["community"] = _memberships(graph, communities)
    if community_track is not None and history == "full" and n_volunteers:
        columns["participation_times"] = [community_track.times] * n_volunteers
        columns["participation_history"] = list(community_track.participation.swapaxes(0, 1))
        columns["community_history"] = list(community_track.assignment.T)
    return columns


def latest_confusion(graph: CrowdGraph) -> ConfusionSnapshot | None:
    """Return the latest confusion of all volunteers, or that with which the last communities of a track were found."""
    if (track := annotation_or_none(graph.confusion)) is not None:
        return track.latest()
    community_track = annotation_or_none(graph.community_track)
    confusion = community_track[-1].confusion if community_track else None
    return confusion if confusion is not None and same_values(confusion.ids, graph.volunteers.ids) else None


def latest_communities(graph: CrowdGraph) -> Communities | None:
    """Return the latest communities, or the last ones of a track."""
    community_track = annotation_or_none(graph.community_track)
    return annotation_or_none(graph.communities) or (community_track[-1] if community_track else None)


def _memberships(graph: CrowdGraph, communities: Communities) -> tuple[list[Any], list[int]]:
    """Return the participation of each volunteer, None for those who were not in the network, and the community."""
    participation: list[Any] = [None] * len(graph.volunteers)
    community = [-1] * len(graph.volunteers)
    codes = graph.volunteers.table.codes(communities.ids).tolist()
    for code, shares, number in zip(codes, communities.participation, communities.assignment.tolist(), strict=True):
        participation[code], community[code] = shares, number
    return participation, community


def _item_columns(graph: CrowdGraph) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    if len(graph.gold):
        columns["gold"] = _gold_values(graph)
    if (probs := annotation_or_none(graph.item_probs)) is not None:
        columns["class_probs"] = list(probs)
    return columns


def _gold_values(graph: CrowdGraph) -> list[Any]:
    """Return the class of each item, or the probability of each class, or None where nothing is known."""
    gold = graph.gold
    values: list[Any] = [graph.classes[code] if code >= 0 else None for code in gold.codes.tolist()]
    for code in np.flatnonzero(gold.is_soft).tolist():
        values[code] = dict(zip(graph.classes, gold.probs[code].tolist(), strict=True))
    return values


def _response_columns(graph: CrowdGraph, history: History) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    if (fit := fit_with_confusion(graph)) is not None:
        columns["surprise"] = response_surprise(graph, fit).tolist()
    if history == "full" and (track := annotation_or_none(graph.confusion)) is not None:
        columns["confusion"] = list(response_confusion(graph, track))
    return columns


def without_clashes(columns: Mapping[str, Values], own: Mapping[str, Array], owner: str) -> dict[str, Values]:
    """Return what annotations say under names that the user's attributes leave free; warn of the others."""
    clashes = [name for name in columns if name in own]
    if clashes:
        warn(
            f"The {owner} have attributes called {quote(clashes)} of their own, so what annotations say under these "
            "names is left out.",
            CrowdGraphWarning,
            hint="Rename the attributes.",
        )
    return {name: values for name, values in columns.items() if name not in own}
