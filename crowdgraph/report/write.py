"""Writing the page: one file with its data, styles and scripts inside."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike
from typing import Any

from crowdgraph.core._parameters import check_bool, progress_bar
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.findings import Finding, Findings
from crowdgraph.errors import ParameterError
from crowdgraph.io._files import atomic_file
from crowdgraph.plot._style import GREY, HUES, INK, colours
from crowdgraph.report._results import GraphResults, texts
from crowdgraph.report.checks import model_checks
from crowdgraph.report.communities import communities_over_time, community_table, network_pictures
from crowdgraph.report.nodes import histories, item_table, volunteer_table
from crowdgraph.report.overview import overview
from crowdgraph.report.provenance import making

__all__ = ["payload", "write"]

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
    parts = GraphResults(graph)
    told: dict[str, Any] = {
        "classes": texts(graph.classes),
        "labels": texts(graph.labels),
        "colours": {"communities": _community_colours(parts), "classes": colours(graph.classes)},
    }
    sections: dict[str, Callable[[GraphResults], Any]] = {
        "items": item_table,
        "volunteers": volunteer_table,
        "histories": histories,
        "networks": network_pictures,
        "communities": community_table,
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


def _community_colours(parts: GraphResults) -> list[str]:
    """A colour for each community, at one time or over time; task communities have the same ones."""
    widths = [len(found or ()) for found in (parts.communities, parts.task_communities)]
    return colours(range(max(*widths, parts.community_track.n_communities_ever if parts.community_track else 0)))


PAGE = files("crowdgraph.report") / "page"
# In the order in which they build on each other.
STYLES = ("theme.css", "layout.css", "tables.css", "pictures.css", "media.css")
SCRIPTS = (
    "base.js",
    "table.js",
    "charts.js",
    "ternary.js",
    "network.js",
    "flow.js",
    "items.js",
    "volunteers.js",
    "communities.js",
    "checks.js",
    "making.js",
    "main.js",
)


def write(
    graph: CrowdGraph,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    run: Mapping[str, Any] | None = None,
    words: Callable[[str], str] | None = None,
    progress: bool = False,
) -> None:
    """Write what is known of a crowd as a page: one HTML file that needs no network and can be sent by e-mail.

    The page tells what the graph carries: the classes of items from the latest fit, how volunteers answer from the
    latest confusion matrices (over time if they change), all networks, the latest communities and the latest
    communities over time. Where something is missing it says how to get it. Of large crowds it holds the most active
    volunteers and the most uncertain items, and says so. Of files named by absolute paths it tells the names only.

    Parameters
    ----------
    graph
        The graph, annotated with what is to be told.
    path
        The file. One that is there is replaced once the new page is written whole.
    title
        The page's title.
    run
        How the results were made, for the page's last section: names and values such as versions, settings, seeds and
        timings, which may be nested; under ``"commands"`` those that repeat the run, and under ``"skipped"`` a mapping
        from steps of `crowdgraph.analysis` that were left out to the reasons, which the sections tell.
    words
        Puts advice, which speaks of calls in Python, in the words of those who did not call them.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import crowdgraph as cg
    >>> from crowdgraph import report
    >>> graph = cg.simulate.crowd(n_volunteers=20, n_responses=600, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "report.html"
    ...     report.write(graph, page, title="My crowd")
    ...     "<title>My crowd</title>" in page.read_text()
    True
    """
    _check(graph, path, title, run, words)
    check_bool("progress", progress)
    with atomic_file(path) as part:
        told = payload(graph, run=run, words=words, progress=progress)
        part.write_text(page("What is known of a crowd" if title is None else title, told), encoding="utf-8")


def page(title: str, told: Mapping[str, Any]) -> str:
    """The page as text.

    Its policy lets run what belongs to the page and nothing else, whatever ids contain; data are no script, and the
    one sign that could end their element is escaped.
    """
    script = "\n".join(["(() => {", "'use strict';", *map(_source, SCRIPTS), "})();"])
    style = "\n".join([_palette(), *map(_source, STYLES)])
    filled = {
        "title": escape(title),
        "policy": f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}",
        "style": style,
        "data": json.dumps(told, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "script": script,
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda place: filled[place[1]], _source("index.html"))


def _check(graph: object, path: object, title: object, run: object, words: object) -> None:
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"A report is written of a CrowdGraph; got a {type(graph).__name__}.")
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"path={path!r} must name a file, such as 'report.html'.")
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title={title!r} must be text.")
    if run is not None and not isinstance(run, Mapping):
        raise ParameterError(f"run={run!r} must be a mapping from names to values, such as {{'seed': 0}}.")
    if isinstance(run, Mapping) and not isinstance(run.get("skipped", {}), Mapping):
        raise ParameterError(f"run['skipped']={run['skipped']!r} must be a mapping from steps to reasons.")
    if words is not None and not callable(words):
        raise ParameterError(f"words={words!r} must be a function from text to text, such as str.strip.")


def _source(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _palette() -> str:
    """The colours of all pictures, as variables of the page's style."""
    hues = "".join(f"--hue-{place}: {hue}; " for place, hue in enumerate(HUES))
    return f":root {{ --ink: {INK}; --grey: {GREY}; {hues}}}"


def _hash(text: str) -> str:
    """The name by which a policy knows an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
