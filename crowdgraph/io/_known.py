"""What was known at a moment: the responses until then, and the annotations that saw nothing later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdgraph.core._arrays import same_values
from crowdgraph.core.clock import Moment
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Result
from crowdgraph.errors import CrowdGraphWarning, warn
from crowdgraph.messages import quote


def known_at(graph: CrowdGraph, at: Moment | None) -> tuple[CrowdGraph, tuple[str, ...]]:
    """Return the graph as it was known at a moment, and the names of the annotations that are left out.

    It has the responses up to and including the moment; nodes, classes, labels and gold, which have no times, stay. An
    annotation stays if it provably saw no later response: a fit whose source has only responses of this graph until
    then, and the snapshots until then of a track that was made without hindsight. Others are left out, with one
    warning. A moment at or after the last response, or None, leaves the graph as it is.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> view = graph.first(1_000)
    >>> known, left_out = known_at(graph.annotate(cg.MajorityVote().fit(view)), view.responses[-1].time)
    >>> len(known.responses), known.fit().model, left_out
    (1000, 'majority_vote', ())
    """
    if at is None:
        return graph, ()
    responses = graph.responses
    n_known = responses.clock.count_until(responses.time, at, inclusive=True)
    if n_known == len(responses):
        return graph, ()
    view, left_out = graph.first(n_known), []
    for name, result in graph.annotations.items():
        known = _known_result(result, view, at)
        if known is None:
            left_out.append(name)
        else:
            view = view.annotate(known, name=name)
    if left_out:
        several = len(left_out) > 1
        warn(
            f"The annotation{'s' if several else ''} {quote(left_out)} {'are' if several else 'is'} left out at "
            f"{at!s}: {'they' if several else 'it'} saw later responses, or cannot be shown not to have.",
            CrowdGraphWarning,
            hint="Fit what was known then: view = graph.first(n), then view.annotate(model.fit(view)).",
        )
    return view, tuple(left_out)


def _known_result(result: Result, view: CrowdGraph, at: Moment) -> Result | None:
    """Return what was known of a result when the responses of a view were, None if nothing provably was."""
    if isinstance(result, CommunityTrack):
        return _known_track(result, view, at)
    source = result.source if isinstance(result, ModelFit | ConfusionTrack) else None
    return result if source is not None and _has_only_responses_of(view, source.graph) else None


def _has_only_responses_of(view: CrowdGraph, graph: CrowdGraph) -> bool:
    """Return whether the responses of a graph are the first ones of a view."""
    n_responses = len(graph.responses)
    return (
        n_responses <= len(view.responses)
        and same_values(graph.volunteers.ids, view.volunteers.ids)
        and same_values(graph.items.ids, view.items.ids)
        and same_values(graph.labels, view.labels)
        and view.responses.table.slice(0, n_responses).equals(graph.responses.table)
    )


def _known_track(track: CommunityTrack, view: CrowdGraph, at: Moment) -> CommunityTrack | None:
    """Return the snapshots of a track that had been taken, with the communities that had been seen."""
    if track.params.get("hindsight") is not False or track.clock != view.responses.clock:
        return None
    was_taken = track.clock.reached(track.times, at) & (track.counts <= len(view.responses))
    moments = track.params.get("moments", ())
    if len(moments) == len(track):
        # A snapshot that has only responses until then, but was taken later, would say that none came in between.
        taken = [track.clock.tick(moment, track.times) for moment in moments]
        was_taken &= np.array(taken) <= track.clock.tick(at, track.times)
    n_snapshots = int(np.argmin(np.append(was_taken, False)))
    snapshots = track.snapshots[:n_snapshots]
    has_members = np.zeros(track.n_communities_ever, dtype=bool)
    for snapshot in snapshots:
        has_members |= (snapshot.participation > 0).any(axis=0)
    if not has_members.any():
        return None
    width = int(np.flatnonzero(has_members)[-1]) + 1
    return replace(
        track,
        times=track.times[:n_snapshots],
        counts=track.counts[:n_snapshots],
        snapshots=tuple(replace(one, participation=one.participation[:, :width]) for one in snapshots),
        params={name: _first(value, n_snapshots, len(track)) for name, value in track.params.items()},
        confidence=None if track.confidence is None else track.confidence[:n_snapshots, :width],
        reasons=None if track.reasons is None else track.reasons[:n_snapshots],
        apparent=tuple(event for event in track.apparent if event[0] < n_snapshots),
    )


def _first(value: Any, n_snapshots: int, n_all: int) -> Any:
    """Return the part of a setting with one value for each snapshot that belongs to the first ones."""
    return value[:n_snapshots] if isinstance(value, tuple | list) and len(value) == n_all else value
