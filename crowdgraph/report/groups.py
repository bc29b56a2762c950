"""The communities: how their members answer, and what becomes of them over time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from crowdgraph.core.columns import Array, is_null
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.lifelines import CommunityEvent
from crowdgraph.plot.over_time import counted, short_times
from crowdgraph.report.parts import Parts, numbers

__all__ = ["communities_over_time", "community_rows", "event_words"]


def community_rows(parts: Parts) -> dict[str, Any]:
    """The communities, described, with the mean confusion of their members and that of the most central one."""
    found = parts.communities
    if found is None:
        return {
            "missing": "Communities are found in a network: graph = graph.annotate(cg.BayesianNMF().detect(network))."
        }
    if len(found) == 1:
        return {"missing": "No groups were found: the volunteers are one crowd."}
    known = _confusion(parts, found)
    rows = found.describe(known, kind="arrow").to_pylist()
    told = (found, parts.task_communities)
    others = [name for name, other in parts.all_of(Communities).items() if not any(other is one for one in told)]
    return {
        "method": found.method,
        "modularity": round(found.modularity, 3),
        "others": others,
        "rows": [{name: _cell(value) for name, value in row.items()} for row in rows],
        **({} if known is None else _prototypes(found, known)),
    }


def communities_over_time(parts: Parts) -> dict[str, Any]:
    """Sizes, ribbons and events of the communities from snapshot to snapshot."""
    track = parts.community_track
    if track is None or not len(track):
        return {
            "missing": "To follow communities through time: "
            "graph = graph.annotate(cg.dynamics.over_time(graph, counts=[...]))."
        }
    if track.n_communities.max() == 1:
        return {"missing": "No groups were found at any time: the volunteers are one crowd."}
    times = short_times(track.clock, track.times)
    return {
        "method": track.method,
        "times": times,
        "counts": track.counts.tolist(),
        "sizes": track.sizes.tolist(),
        "reasons": list(track.reasons or []),
        "renumbered": _renumbered(parts.communities, track),
        "flows": [
            {"from": before, "to": after, "ribbons": ribbons(track.assignment[before], track.assignment[after])}
            for before, after in pairwise(np.flatnonzero(track.n_communities).tolist())
        ],
        "events": [
            {
                "snapshot": event.snapshot,
                "community": event.community,
                "event": event.event,
                "words": f"{times[event.snapshot]}: {event_words(event)}",
            }
            for event in track.events
        ],
    }


def _renumbered(found: Communities | None, track: CommunityTrack) -> bool:
    """Whether the communities of the graph have other numbers than those at the end of the track."""
    if found is None:
        return False
    at_end = dict(zip(track.ids.tolist(), track.assignment[-1].tolist(), strict=True))
    return any(at_end.get(name) != k for name, k in zip(found.ids.tolist(), found.assignment.tolist(), strict=True))


def ribbons(before: Array, after: Array) -> list[list[int]]:
    """How many volunteers go from which community to which: source, target, number."""
    both = (before >= 0) & (after >= 0)
    ways, counts = np.unique(np.stack([before[both], after[both]]), axis=1, return_counts=True)
    return [[source, target, n] for (source, target), n in zip(ways.T.tolist(), counts.tolist(), strict=True)]


def event_words(event: CommunityEvent) -> str:
    """What happened to a community, in words."""
    who, other = f"community {event.community}", f"community {event.other}"
    people, n = counted(event.volunteers, "volunteer"), event.volunteers
    return {
        "born": f"{who} appears with {people}",
        "split": f"{who} ({counted(event.after, 'volunteer')}) splits off {other}, from which {n:,} came",
        "returned": f"{who} returns with {people}",
        "ended": f"{who} ends; it had {people}",
        "merged": f"{who} ({counted(event.before, 'volunteer')}) merges into {other}, to which {n:,} went",
        "grew": f"{who} grows from {event.before:,} to {event.after:,}",
        "shrank": f"{who} shrinks from {event.before:,} to {event.after:,}",
        "moved": f"{people} {'moves' if n == 1 else 'move'} from {who} to {other}",
    }[event.event]


def evidence(found: Communities) -> dict[str, Any] | None:
    """What tells that there are communities at all."""
    seen = found.evidence
    if seen is None:
        return None
    return {
        "structured": bool(seen.structured),
        "agreement": _cell(float(seen.agreement)),
        "modularity": numbers(seen.modularity),
        "null": numbers(seen.null_modularity),
        "p_value": _cell(seen.p_value),
    }


def track_sentence(track: CommunityTrack) -> str:
    """How many communities there were at first and at last."""
    n_first, n_last = track.n_communities[[0, -1]].tolist()
    if len(track) == 1:
        return f"{n_last} in the only snapshot"
    return f"{n_first} at the first of {len(track)} snapshots, {n_last} at the last"


def _confusion(parts: Parts, found: Communities) -> ConfusionSnapshot | None:
    """The confusion that tells how the members answer: the communities' own, or else the graph's."""
    return parts.snapshot if found.confusion is None else found.confusion


def _prototypes(found: Communities, known: ConfusionSnapshot) -> dict[str, Any]:
    """The mean confusion of each community, and that of its most central volunteer."""
    mean = found.mean_confusion(known, by_responses=found.support is not None)
    central = np.full(mean.shape, np.nan)
    for k, name in enumerate(found.centroids):
        if name is not None:
            central[k] = known.of(name).mean
    return {"mean": numbers(mean), "central": numbers(central)}


def _cell(value: Any) -> Any:
    """A value of a table for the page: numbers as they are, names as text, nothing for nulls."""
    if is_null(value):
        return None
    return value if isinstance(value, int | float) else str(value)
