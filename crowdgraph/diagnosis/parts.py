"""Parts of the response graph that share neither volunteers nor items."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, percent

__all__ = ["find_parts"]

# From this share of all answers outside the largest part, the parts are a warning.
MUCH = 0.05


def find_parts(graph: CrowdGraph) -> list[Finding]:
    """Volunteers who share no items with the others, not even through third ones."""
    answered = graph.responses.label >= 0
    volunteer, item = graph.responses.volunteer[answered], graph.responses.item[answered]
    if not len(item):
        return []
    part_of_volunteer, part_of_item = _parts(graph, volunteer, item)
    n_answers = np.bincount(part_of_volunteer[volunteer])
    if np.count_nonzero(n_answers) == 1:
        return []
    main = int(n_answers.argmax())
    active = np.bincount(volunteer, minlength=len(graph.volunteers)) > 0
    outside = np.flatnonzero(active & (part_of_volunteer != main))
    sizes = np.bincount(part_of_volunteer[outside], minlength=len(n_answers))
    order = np.argsort(-sizes[part_of_volunteer[outside]], kind="stable")
    tied = _tied_by_gold(graph, part_of_item, np.flatnonzero(n_answers))
    return [_finding(graph, outside[order], part_of_volunteer, n_answers, tied=tied)]


def _parts(graph: CrowdGraph, volunteer: Array, item: Array) -> tuple[Array, Array]:
    """The number of the part to which each volunteer and each item belongs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_volunteers, n = len(graph.volunteers), len(graph.volunteers) + len(graph.items)
    links = coo_array((np.ones(len(item), dtype=np.int8), (volunteer, item + n_volunteers)), shape=(n, n))
    part = connected_components(links.tocsr(), directed=False)[1]
    return part[:n_volunteers], part[n_volunteers:]


def _tied_by_gold(graph: CrowdGraph, part_of_item: Array, parts: Array) -> bool:
    """Whether every part has gold of every class, to which all volunteers can be compared."""
    known = np.flatnonzero(graph.gold.codes >= 0)
    n_classes = len(graph.classes)
    cells = part_of_item[known].astype(np.int64) * n_classes + graph.gold.codes[known]
    n_parts = int(max(part_of_item.max(), parts.max())) + 1
    counts = np.bincount(cells, minlength=n_parts * n_classes).reshape(n_parts, n_classes)
    return bool((counts[parts] > 0).all())


def _finding(graph: CrowdGraph, outside: Array, part: Array, n_answers: Array, *, tied: bool) -> Finding:
    n_parts = int(np.count_nonzero(n_answers))
    share = float(1 - n_answers.max() / n_answers.sum())
    people = counted(len(outside), "volunteer")
    gold = " Each part has gold of every class, which ties them together." if tied else ""
    return Finding(
        topic="parts",
        name="disconnected parts",
        severity="warning" if share >= MUCH and not tied else "note",
        what=(
            f"The crowd falls into {counted(n_parts, 'part')} that share no items; {people} with {percent(share)} of "
            f"the answers {'lies' if len(outside) == 1 else 'lie'} outside the largest.{gold}"
        ),
        why="Skills can be compared only through items that both answered; between parts the prior decides.",
        advice="Ask some volunteers of each part about items of the others, add gold to each, or analyse them apart.",
        ids=graph.volunteers.ids[outside],
        evidence={"part": np.unique(part[outside], return_inverse=True)[1].ravel()},
        numbers={"parts": n_parts, "volunteers": len(outside), "share": share},
    )
