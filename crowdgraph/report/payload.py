"""All that a page tells, as values that JSON knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from crowdgraph.core.findings import Finding, Findings
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
# The steps of a run without which a section has nothing to tell; the first that was skipped says why.
STEPS = {
    "items": ("model",),
    "volunteers": ("model", "pi_similarity"),
    "networks": ("pi_similarity",),
    "communities": ("communities",),
    "track": ("communities over time", "communities"),
    "checks": ("model",),
}


def payload(
    graph: CrowdGraph,
    *,
    run: Mapping[str, Any] | None = None,
    words: Callable[[str], str] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
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
    with progress_bar("Report", visible=progress, total=len(sections) + 1, unit="sections") as bar:
        findings = graph.diagnose() if words is None else _put(graph.diagnose(), words)
        bar.update()
        for name, section in sections.items():
            told[name] = _explained(section(parts), _why_skipped(name, run), words)
            bar.update()
    told["doctor"] = findings.to_dict(most_ids=MOST_NAMED)
    return {
        **told,
        "overview": overview(parts, findings, told["checks"].get("calibration")),
        "making": making(parts, run),
    }


def _why_skipped(section: str, run: Mapping[str, Any] | None) -> str | None:
    """Why the run left out what a section tells of."""
    skipped = (run or {}).get("skipped", {})
    return next((skipped[step] for step in STEPS.get(section, ()) if step in skipped), None)


def _explained(section: dict[str, Any], why: str | None, words: Callable[[str], str] | None) -> dict[str, Any]:
    """A section that, where something is missing, says why the run skipped it, or else how to get it."""
    if "missing" not in section:
        return section
    how = section["missing"] if words is None else words(section["missing"])
    return {**section, "missing": how if why is None else f"This was skipped. {why}"}


def _put(findings: Findings, words: Callable[[str], str]) -> Findings:
    """The findings in other words."""

    def put(finding: Finding) -> Finding:
        return replace(finding, what=words(finding.what), why=words(finding.why), advice=words(finding.advice))

    return Findings(tuple(map(put, findings)), examined=findings.examined)


def _community_colours(parts: Parts) -> list[str]:
    """A colour for each community, at one time or over time; task communities have the same ones."""
    widths = [len(found or ()) for found in (parts.communities, parts.task_communities)]
    return colours(range(max(*widths, parts.community_track.width if parts.community_track else 0)))
