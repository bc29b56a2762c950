"""All that a page tells, as values that JSON knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.progress import progress_bar
from crowdgraph.plot.palette import colours
from crowdgraph.report.checks import model_checks
from crowdgraph.report.groups import communities_over_time, community_rows
from crowdgraph.report.items import item_rows
from crowdgraph.report.making import making
from crowdgraph.report.networks import network_pictures
from crowdgraph.report.overview import overview
from crowdgraph.report.parts import Parts, texts
from crowdgraph.report.volunteers import histories, volunteer_rows

__all__ = ["payload"]

# Of a finding that concerns many, so many are named.
MOST_NAMED = 20


def payload(graph: CrowdGraph, *, run: Mapping[str, Any] | None = None, progress: bool = False) -> dict[str, Any]:
    """What the page tells, section by section; sections that something is missing for say so under ``missing``."""
    parts = Parts(graph)
    told: dict[str, Any] = {
        "classes": texts(graph.classes),
        "labels": texts(graph.labels),
        "colours": {"communities": _community_colours(parts), "classes": colours(graph.classes)},
    }
    sections: dict[str, Callable[[Parts], Any]] = {
        "items": item_rows,
        "volunteers": volunteer_rows,
        "histories": histories,
        "networks": network_pictures,
        "communities": community_rows,
        "track": communities_over_time,
        "checks": model_checks,
    }
    with progress_bar("Report", shown=progress, total=len(sections) + 1, unit="sections") as bar:
        findings = graph.diagnose()
        bar.update()
        for name, section in sections.items():
            told[name] = section(parts)
            bar.update()
    told["doctor"] = findings.to_dict(most_ids=MOST_NAMED)
    return {
        **told,
        "overview": overview(parts, findings, told["checks"].get("calibration")),
        "making": making(parts, run),
    }


def _community_colours(parts: Parts) -> list[str]:
    """A colour for each community, at one time or over time; task communities have the same ones."""
    widths = [len(found or ()) for found in (parts.communities, parts.task_communities)]
    return colours(range(max(*widths, parts.community_track.width if parts.community_track else 0)))
