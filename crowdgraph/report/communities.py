"""The networks of volunteers: where everybody stands, and the strongest links."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.core._text import quantity
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityEvent, CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.plot._style import short_times
from crowdgraph.plot.network import strongest_links, volunteer_positions
from crowdgraph.report._results import TASK_METHOD, GraphResults, most_active, numbers, texts
from crowdgraph.report.nodes import membership, pairs

__all__ = ["communities_over_time", "community_table", "describe_event", "network_pictures"]


def community_table(parts: GraphResults) -> dict[str, Any]:
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


def communities_over_time(parts: GraphResults) -> dict[str, Any]:
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
                "words": f"{times[event.snapshot]}: {describe_event(event)}",
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


def describe_event(event: CommunityEvent) -> str:
    """What happened to a community, in words."""
    who, other = f"community {event.community}", f"community {event.other}"
    people, n = quantity(event.volunteers, "volunteer"), event.volunteers
    return {
        "born": f"{who} appears with {people}",
        "split": f"{who} ({quantity(event.after, 'volunteer')}) splits off {other}, from which {n:,} came",
        "returned": f"{who} returns with {people}",
        "ended": f"{who} ends; it had {people}",
        "merged": f"{who} ({quantity(event.before, 'volunteer')}) merges into {other}, to which {n:,} went",
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


def _confusion(parts: GraphResults, found: Communities) -> ConfusionSnapshot | None:
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


# More volunteers and links than these are a cloud, and slow to move.
MOST_NODES = 2_000
MOST_LINKS = 8_000
NEIGHBOURS = 6
# The same network always looks the same.
SEED = 0
TITLES = {"pi_similarity": "Who behaves alike", TASK_METHOD: "Who works on the same items"}


def network_pictures(parts: GraphResults) -> dict[str, Any]:
    """A picture of each network that the graph carries."""
    if not parts.networks:
        return {
            "missing": "Networks tell who behaves alike and who works on the same items: "
            "graph = graph.annotate(cg.networks.pi_similarity(graph)), and likewise cg.networks.task_cooccurrence."
        }
    return {"pictures": [_picture(parts, name, network) for name, network in parts.networks.items()]}


def _picture(parts: GraphResults, name: str, network: VolunteerNetwork) -> dict[str, Any]:
    drawn = _largest(network)
    links = strongest_links(drawn, NEIGHBOURS) if len(drawn) else None
    places = _in_a_square(volunteer_positions(drawn, links, "auto", SEED)) if links is not None else np.zeros((0, 2))
    own = parts.task_communities if network.method == TASK_METHOD else None
    found = parts.groups if own is None else own if len(own) > 1 else None
    assigned, shares = membership(found, drawn.ids.tolist())
    kept = slice(MOST_LINKS)
    n_links = 0 if links is None else min(len(links.left), MOST_LINKS)
    return {
        "name": name,
        "title": TITLES.get(network.method, f"The network {name}"),
        "note": _note(network, len(drawn), n_links),
        "id": texts(drawn.ids),
        "x": numbers(places[:, 0]),
        "y": numbers(places[:, 1]),
        "size": numbers(_sizes(drawn), 3),
        "noun": None if found is None else "community" if own is None else "task community",
        "community": assigned.tolist(),
        "participation": pairs(shares),
        "links": [] if links is None else np.stack([links.left[kept], links.right[kept]], axis=1).ravel().tolist(),
        "weights": [] if links is None else numbers(links.weight[kept] / links.weight.max(initial=1e-300), 3),
    }


def _largest(network: VolunteerNetwork) -> VolunteerNetwork:
    """The network, or its volunteers on whom most is known if it is too large to be seen."""
    if len(network) <= MOST_NODES:
        return network
    codes = np.sort(most_active(_amount(network), MOST_NODES))
    return network.subnetwork(network.ids[codes].tolist())


def _amount(network: VolunteerNetwork) -> Array:
    return network.strength if network.support is None else network.support


def _sizes(network: VolunteerNetwork) -> Array:
    """How large each dot is, relative to the largest."""
    amount = _amount(network)
    return np.asarray(np.sqrt(amount / max(float(amount.max(initial=0.0)), 1e-300)))


def _in_a_square(places: Array) -> Array:
    """The same places between -1 and 1, turned so that they extend most from left to right."""
    _, _, turns = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)
    turned = places @ turns.T if len(places) > 2 else places
    low, high = turned.min(axis=0), turned.max(axis=0)
    return np.asarray((turned - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12))


def _note(network: VolunteerNetwork, n_drawn: int, n_links: int) -> str:
    """What of the network is drawn."""
    people = quantity(n_drawn, "volunteer")
    if n_drawn < len(network):
        whom = "of whom most answers are known" if network.support is not None else "with the strongest links"
        people = f"The {n_drawn:,} of {len(network):,} volunteers {whom}"
    links = quantity(n_links, "link")
    if n_links < network.n_edges:
        links = f"the strongest {n_links:,} of {network.n_edges:,} links"
    return f"{people}; {links}."
