"""The networks of volunteers: where everybody stands, and the strongest links."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.plot.layout import strongest_links, volunteer_places
from crowdgraph.plot.over_time import counted
from crowdgraph.report.parts import TASKS, Parts, most_active, numbers, texts
from crowdgraph.report.volunteers import membership, pairs

__all__ = ["network_pictures"]

# More volunteers and links than these are a cloud, and slow to move.
MOST_NODES = 2_000
MOST_LINKS = 8_000
NEIGHBOURS = 6
# The same network always looks the same.
SEED = 0
TITLES = {"pi_similarity": "Who behaves alike", TASKS: "Who works on the same items"}


def network_pictures(parts: Parts) -> dict[str, Any]:
    """A picture of each network that the graph carries."""
    if not parts.networks:
        return {
            "missing": "Networks tell who behaves alike and who works on the same items: "
            "graph = graph.annotate(cg.networks.pi_similarity(graph)), and likewise cg.networks.task_cooccurrence."
        }
    return {"pictures": [_picture(parts, name, network) for name, network in parts.networks.items()]}


def _picture(parts: Parts, name: str, network: VolunteerNetwork) -> dict[str, Any]:
    drawn = _largest(network)
    links = strongest_links(drawn, NEIGHBOURS) if len(drawn) else None
    places = _in_a_square(volunteer_places(drawn, links, "auto", SEED)) if links is not None else np.zeros((0, 2))
    own = parts.task_communities if network.method == TASKS else None
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
    people = counted(n_drawn, "volunteer")
    if n_drawn < len(network):
        whom = "of whom most answers are known" if network.support is not None else "with the strongest links"
        people = f"The {n_drawn:,} of {len(network):,} volunteers {whom}"
    links = counted(n_links, "link")
    if n_links < network.n_edges:
        links = f"the strongest {n_links:,} of {network.n_edges:,} links"
    return f"{people}; {links}."
