"""The communities and networks of the page: how members answer, who is linked, and what changes over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.core._text import quantity
from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_events import CommunityEvent
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.messages import Message
from crowdgraph.plot._style import short_times
from crowdgraph.plot.network import strongest_links, volunteer_positions
from crowdgraph.report._results import (
    ALIKE_METHOD,
    ERROR_METHOD,
    TASK_METHOD,
    GraphResults,
    most_active,
    to_numbers,
    to_texts,
)
from crowdgraph.report.nodes import participation_pairs
from crowdgraph.report.tables import community_table

__all__ = [
    "community_evidence",
    "community_section",
    "network_section",
    "one_community",
    "track_section",
    "track_sentence",
]

# More volunteers and links than these are a cloud, and slow to move.
MAX_VOLUNTEERS = 2_000
MAX_LINKS = 8_000
N_NEIGHBOURS = 6
# With a fixed seed the same network always looks the same.
LAYOUT_SEED = 0
# Volunteers who move are named if they are no more than these.
MAX_MOVERS = 3
# The overview names at most this many snapshots, and at each this many communities that came or went.
MAX_SNAPSHOTS = 6
MAX_NEWS = 2
# What the overview says of events.
NEWS = dict.fromkeys(("born", "split"), "new") | {
    "first seen": "first seen",
    "returned": "again",
    "ended": "gone",
    "merged": "merged into another",
}
NETWORK_TITLES = {
    ALIKE_METHOD: "Who behaves alike",
    ERROR_METHOD: "Whose answers surprise the model alike, some by chance",
    TASK_METHOD: "Who works on the same items",
}


def community_section(results: GraphResults) -> dict[str, Any]:
    """Return the communities, described, with the mean confusion of their members and that of the most central one."""
    communities = results.communities
    if communities is None:
        return results.advice(
            "Communities are found in a network"
            + Message(
                ": graph = graph.annotate(cg.BayesianNMF().detect(network)).", cli=", which crowdgraph analyse makes."
            )
        )
    if len(communities) == 1:
        return results.advice(one_community(communities))
    confusion = results.snapshot if communities.confusion is None else communities.confusion
    on_page = (communities, results.task_communities)
    others = [name for name, other in results.all_of(Communities).items() if not any(other is one for one in on_page)]
    return {
        "modularity": _cell(round(communities.modularity, 3)),
        "others": others,
        "rows": [
            {name: _cell(value) for name, value in row.items()}
            for row in community_table(communities, confusion).to_pylist()
        ],
        **({} if confusion is None else _prototypes(communities, confusion)),
    }


def _prototypes(communities: Communities, confusion: ConfusionSnapshot) -> dict[str, Any]:
    """Return the mean confusion of each community, and the confusion of its most central volunteer."""
    mean = communities.mean_confusion(confusion, by_responses=communities.support is not None)
    central = np.full(mean.shape, np.nan)
    for k, name in enumerate(communities.centroids):
        if name is not None:
            central[k] = confusion.of(name).mean
    return {"mean": to_numbers(mean), "central": to_numbers(central)}


def one_community(communities: Communities) -> str:
    """Return why a single community is shown, which is no claim that there are no groups."""
    if communities.evidence is None:
        return f"{communities.method} found one community; whether there are more was not tested."
    return f"There is {communities.evidence.verdict}. The volunteers are shown as one group."


def community_evidence(communities: Communities) -> dict[str, Any] | None:
    """Return the evidence for communities."""
    evidence = communities.evidence
    if evidence is None:
        return None
    return {
        "structured": bool(evidence.structured),
        "verdict": evidence.verdict,
        "agreement": _cell(float(evidence.agreement)),
        "modularity": to_numbers(evidence.modularity),
        "null": to_numbers(evidence.chance),
        "p_value": _cell(evidence.p_value),
        "certainty": _cell(evidence.certainty),
    }


def _cell(value: Any) -> Any:
    """Return a value as the page shows it: a number as it is, anything else as text, None for null."""
    if is_null(value):
        return None
    return value if isinstance(value, int | float) else str(value)


# Over time


def track_section(results: GraphResults) -> dict[str, Any]:
    """Return the sizes, flows and events of the communities from snapshot to snapshot."""
    track = results.community_track
    if track is None or not len(track):
        return results.advice(
            "To follow communities through time"
            + Message(
                ": graph = graph.annotate(cg.dynamics.over_time(graph, counts=[...])).", cli=", use --snapshots 4."
            )
        )
    if track.n_communities.max() == 1:
        return results.advice("At no time was there clear evidence for communities, so there is nothing to follow.")
    times = short_times(track.clock, track.times)
    return {
        "method": track.method,
        "times": times,
        "counts": track.counts.tolist(),
        "sizes": track.sizes.tolist(),
        "reasons": list(track.reasons or []),
        "renumbered": _is_renumbered(results.communities, track),
        "flows": [
            {"from": before, "to": after, "ribbons": ribbons(track.assignment[before], track.assignment[after])}
            for before, after in pairwise(np.flatnonzero(track.n_communities).tolist())
        ],
        "events": [
            {
                "snapshot": event.snapshot,
                "community": event.community,
                "event": event.event,
                "words": f"{times[event.snapshot]}: {describe_event(event, movers(track, event))}",
            }
            for event in track.events
        ],
    }


def _is_renumbered(communities: Communities | None, track: CommunityTrack) -> bool:
    """Return whether the communities of the graph have other numbers than those at the end of the track."""
    if communities is None:
        return False
    at_end = dict(zip(track.ids.tolist(), track.assignment[-1].tolist(), strict=True))
    now = zip(communities.ids.tolist(), communities.assignment.tolist(), strict=True)
    return any(at_end.get(name) != k for name, k in now)


def ribbons(before: Array, after: Array) -> list[list[int]]:
    """Count the volunteers who go from one community to another: source, target, number."""
    both = (before >= 0) & (after >= 0)
    ways, counts = np.unique(np.stack([before[both], after[both]]), axis=1, return_counts=True)
    return [[source, target, n] for (source, target), n in zip(ways.T.tolist(), counts.tolist(), strict=True)]


def movers(track: CommunityTrack, event: CommunityEvent) -> list[str]:
    """Return the volunteers of a move if they are few; nobody for other events."""
    if event.event != "moved" or event.volunteers > MAX_MOVERS:
        return []
    last = max(index for index in np.flatnonzero(track.n_communities).tolist() if index < event.snapshot)
    before, after = track.assignment[last], track.assignment[event.snapshot]
    return to_texts(track.ids[(before == event.community) & (after == event.other)])


def describe_event(event: CommunityEvent, names: Sequence[str] = ()) -> str:
    """Return what happened to a community in words, with the names of volunteers who moved if they are given."""
    who, other = f"community {event.community}", f"community {event.other}"
    people, n = quantity(event.volunteers, "volunteer"), event.volunteers
    moved = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or people
    apart = "" if event.other < 0 else f" apart from {other}, though its members differed before"
    still_apart = "" if event.other < 0 else f" apart from {other}, though its members still differ"
    return {
        "born": f"{who} appears with {people}",
        "split": f"{who} ({quantity(event.after, 'volunteer')}) splits off {other}, from which {n:,} came",
        "returned": f"{who} returns with {people}",
        "ended": f"{who} ends; it had {people}",
        "merged": f"{who} ({quantity(event.before, 'volunteer')}) merges into {other}, to which {n:,} went",
        "grew": f"{who} grows from {event.before:,} to {event.after:,}",
        "shrank": f"{who} shrinks from {event.before:,} to {event.after:,}",
        "moved": f"{moved} {'moves' if n == 1 else 'move'} from {who} to {other}",
        "first seen": f"{who} ({quantity(event.after, 'volunteer')}) is first seen{apart or '; it may be older'}",
        "no longer seen": f"{who} ({quantity(event.before, 'volunteer')}) is no longer seen"
        f"{still_apart or '; that does not say that it ended'}",
    }[event.event]


def track_sentence(track: CommunityTrack) -> str:
    """Return how many communities there were after how many responses, and what is new among them."""
    shown = np.unique(np.linspace(0, len(track) - 1, min(len(track), MAX_SNAPSHOTS)).round().astype(np.int64)).tolist()
    parts = []
    for last, index in pairwise([-1, *shown]):
        n = "none clear" if track.unclear[index] else f"{track.n_communities[index] or 'none'}"
        when = f"{track.counts[index]:,}{' responses' if last < 0 else ''}"
        parts.append(f"{n} after {when}{'' if last < 0 else _news(track, last, index)}")
    return ", ".join(parts)


def _news(track: CommunityTrack, last: int, index: int) -> str:
    """Return in brackets which communities came and went between two snapshots, by how their members answer."""
    news: dict[str, list[str]] = {}
    for event in track.events:
        if last < event.snapshot <= index and event.event in NEWS and not track.unclear[index]:
            word, comes = NEWS[event.event], event.event not in ("ended", "merged")
            if comes == bool(track.sizes[index, event.community]):
                at = event.snapshot if comes else max(event.snapshot - 1, 0)
                news.setdefault(word, []).append(_conduct(track, event.community, at))
    clauses = []
    for word, names in news.items():
        more = [f"{len(names) - MAX_NEWS} more"] if len(names) > MAX_NEWS else []
        clauses.append(f"{word}: {'; '.join([*names[:MAX_NEWS], *more])}")
    return f" ({'; '.join(clauses)})" if clauses else ""


def _conduct(track: CommunityTrack, k: int, index: int) -> str:
    """Return how the members of a community answer at a snapshot, or its number if that is not known."""
    confusion = track[index].confusion
    mean = None if confusion is None else track.mean_confusion(k)[index]
    if confusion is None or mean is None or np.isnan(mean).any():
        return f"community {k}"
    return behaviour(mean, classes=confusion.classes, labels=confusion.labels)


# Networks


def network_section(results: GraphResults) -> dict[str, Any]:
    """Return a picture of each network on the graph."""
    if not results.networks:
        return results.advice(
            "Networks show who behaves alike and who works on the same items"
            + Message(
                ": graph = graph.annotate(cg.networks.pi_similarity(graph)), and likewise "
                "cg.networks.task_cooccurrence.",
                cli="; crowdgraph analyse makes them.",
            )
        )
    return {"pictures": [_picture(results, name, network) for name, network in results.networks.items()]}


def _picture(results: GraphResults, name: str, network: VolunteerNetwork) -> dict[str, Any]:
    part = _most_important(network)
    links = strongest_links(part, N_NEIGHBOURS) if len(part) else None
    positions = np.zeros((0, 2))
    if links is not None:
        positions = _fit_square(volunteer_positions(part, links, "auto", LAYOUT_SEED))
    of_tasks = results.task_communities if network.method == TASK_METHOD else None
    communities = results.several_communities
    if of_tasks is not None:
        communities = of_tasks if len(of_tasks) > 1 else None
    assignment, participation = np.full(len(part), -1), np.zeros((len(part), 0))
    if communities is not None:
        codes = results.graph.volunteers.codes(part.ids)
        assignment, participation = (values[codes] for values in communities.on(results.graph))
    first = slice(MAX_LINKS)
    n_links = 0 if links is None else min(len(links.left), MAX_LINKS)
    return {
        "name": name,
        "title": NETWORK_TITLES.get(network.method, f"The network {name}"),
        "note": _note(network, len(part), n_links),
        "id": to_texts(part.ids),
        "x": to_numbers(positions[:, 0]),
        "y": to_numbers(positions[:, 1]),
        "size": to_numbers(_dot_sizes(part), 3),
        "noun": None if communities is None else "community" if of_tasks is None else "task community",
        "community": assignment.tolist(),
        "participation": participation_pairs(participation),
        "links": [] if links is None else np.stack([links.left[first], links.right[first]], axis=1).ravel().tolist(),
        "weights": [] if links is None else to_numbers(links.weight[first] / links.weight.max(initial=1e-300), 3),
    }


def _most_important(network: VolunteerNetwork) -> VolunteerNetwork:
    """Return the network, or if it is too large to be seen, that of the volunteers with the most answers or links."""
    if len(network) <= MAX_VOLUNTEERS:
        return network
    codes = np.sort(most_active(_importance(network), MAX_VOLUNTEERS))
    return network.subnetwork(network.ids[codes].tolist())


def _importance(network: VolunteerNetwork) -> Array:
    return network.strength if network.support is None else network.support


def _dot_sizes(network: VolunteerNetwork) -> Array:
    """Return the size of each dot, relative to the largest."""
    importance = _importance(network)
    return np.asarray(np.sqrt(importance / max(float(importance.max(initial=0.0)), 1e-300)))


def _fit_square(positions: Array) -> Array:
    """Return positions between -1 and 1, rotated so that they extend most from left to right."""
    _, _, axes = np.linalg.svd(positions - positions.mean(axis=0), full_matrices=False)
    rotated = positions @ axes.T if len(positions) > 2 else positions
    low, high = rotated.min(axis=0), rotated.max(axis=0)
    return np.asarray((rotated - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12))


def _note(network: VolunteerNetwork, n_drawn: int, n_links: int) -> str:
    """Return how much of the network is drawn."""
    people = quantity(n_drawn, "volunteer")
    if n_drawn < len(network):
        which = "of whom most answers are known" if network.support is not None else "with the strongest links"
        people = f"The {n_drawn:,} of {len(network):,} volunteers {which}"
    links = quantity(n_links, "link")
    if n_links < network.n_edges:
        links = f"the strongest {n_links:,} of {network.n_edges:,} links"
    return f"{people}; {links}."
