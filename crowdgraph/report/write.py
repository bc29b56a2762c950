"""Writing the page: one file with its data, styles and scripts inside."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike
from typing import Any

from crowdgraph.allocation.next_steps import NextSteps
from crowdgraph.core._parameters import check_bool, check_instance
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.changes import Changes
from crowdgraph.core.communities import MIN_CROWD
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import check_ids_match
from crowdgraph.diagnosis.findings import Findings
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.evaluation.model_checks import Calibration, Unmeasured
from crowdgraph.evaluation.predictive import PredictiveChecks
from crowdgraph.io._files import atomic_file
from crowdgraph.messages import Interface, with_article, wording
from crowdgraph.plot._style import GREY, HUES, INK, colours
from crowdgraph.report._results import AnalysisLike, GraphResults, to_texts
from crowdgraph.report.checks import check_section
from crowdgraph.report.communities import community_section, network_section, track_section
from crowdgraph.report.next_steps import next_section
from crowdgraph.report.nodes import history_table, item_table, volunteer_table
from crowdgraph.report.overview import overview
from crowdgraph.report.pairs import pair_section
from crowdgraph.report.provenance import provenance

__all__ = ["write"]

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
    "names.js",
    "next.js",
    "items.js",
    "volunteers.js",
    "communities.js",
    "checks.js",
    "provenance.js",
    "main.js",
)
SECTIONS: dict[str, Callable[[GraphResults], dict[str, Any]]] = {
    "next": next_section,
    "items": item_table,
    "volunteers": volunteer_table,
    "histories": history_table,
    "networks": network_section,
    "communities": community_section,
    "track": track_section,
    "checks": check_section,
}
# The steps of an analysis that a section depends on; the first of them that was skipped says why the section is empty.
STEPS = {
    "next": ("what next", "model"),
    "items": ("model",),
    "volunteers": ("model", "pi_similarity"),
    "networks": ("pi_similarity",),
    "communities": ("communities",),
    "pairs": ("model", "pi_similarity", "task_cooccurrence"),
    "track": ("communities over time", "communities"),
    "checks": ("model",),
}
# Of a finding that concerns many, at most this many are named.
MAX_IDS = 20


def write(
    crowd: CrowdGraph | AnalysisLike,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    findings: Findings | None = None,
    calibration: Calibration | Unmeasured | None = None,
    changes: Changes | None = None,
    predictive: PredictiveChecks | None = None,
    plan: NextSteps | None = None,
    calibrated_fit: ModelFit | None = None,
    run: Mapping[str, Any] | None = None,
    interface: Interface = "python",
    progress: bool = False,
) -> None:
    """Write what is known of a crowd as a page: one HTML file that needs no network and can be sent by e-mail.

    The page shows the results on the graph: the classes of items from the latest fit, how volunteers answer from the
    latest confusion matrices (over time if they change), all networks, the latest communities and the latest
    communities over time. Of large crowds it holds the most active volunteers and the most uncertain items, and says
    so. Of files named by absolute paths it shows the names only.

    Nothing is fitted here. What is missing is named on the page, with the way to get it. A graph alone lacks the
    predictive checks, and the calibration of models that repeat the gold they were given (`crowdgraph.DynIBCC`,
    `crowdgraph.Cautious`): they must be fitted again while gold is hidden. `crowdgraph.analysis.analyse` does both, and
    the page of its result has all. Fewer than 30 volunteers are compared pair by pair instead of by communities.

    Parameters
    ----------
    crowd
        An analysis, as `crowdgraph.analysis.analyse` returns it, or a graph annotated with results.
    path
        The file. An existing one is replaced once the new page is complete.
    title
        The page's title.
    findings
        The findings of the data doctor; by default those of the analysis, or of ``graph.diagnose()``.
    calibration
        The calibration of the latest fit, as `crowdgraph.evaluation.calibration` measures it; by default that of the
        analysis, or what can be measured without a fit.
    changes
        The volunteers who changed, as ``fit.changes()`` returns them; by default those of the analysis.
    predictive
        The predictive checks of a fit, as `crowdgraph.evaluation.predictive_checks` makes them; by default those of the
        analysis.
    plan
        What to do next, as `crowdgraph.allocation.next_steps` says it; by default that of the analysis.
    calibrated_fit
        The shown fit with calibrated class probabilities, such as ``graph.fit().calibrated()``, to show beside those
        that are not; by default that of the analysis.
    run
        How the results were made, for the page's last section: names and values such as versions, settings, seeds and
        timings, which may be nested; under ``"commands"`` those that repeat the run, under ``"update"`` sentences on
        what an update changed, which the overview repeats, and under ``"skipped"`` a mapping from steps of
        `crowdgraph.analysis` that were left out to the reasons, which the sections repeat. By default
        the parameters, notes, skipped steps and timings of the analysis.
    interface
        For whom advice is worded: ``"python"``, or ``"cli"`` for users of the command line.
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
    _check(crowd, path, title, findings, run)
    if changes is not None:
        check_instance("changes", changes, Changes, expected="what fit.changes() returns")
    if plan is not None:
        check_instance("plan", plan, NextSteps, expected="what allocation.next_steps() returns")
    if calibrated_fit is not None:
        check_instance("calibrated_fit", calibrated_fit, ModelFit, expected="a fit, such as graph.fit().calibrated()")
    check_choice("interface", interface, ("python", "cli"))
    check_bool("progress", progress)
    with atomic_file(path) as part:
        data = payload(
            crowd,
            findings=findings,
            calibration=calibration,
            changes=changes,
            predictive=predictive,
            plan=plan,
            calibrated_fit=calibrated_fit,
            run=run,
            interface=interface,
            progress=progress,
        )
        part.write_text(page("Crowd report" if title is None else title, data), encoding="utf-8")


def payload(
    crowd: CrowdGraph | AnalysisLike,
    *,
    findings: Findings | None = None,
    calibration: Calibration | Unmeasured | None = None,
    changes: Changes | None = None,
    predictive: PredictiveChecks | None = None,
    plan: NextSteps | None = None,
    calibrated_fit: ModelFit | None = None,
    run: Mapping[str, Any] | None = None,
    interface: Interface = "python",
    progress: bool = False,
) -> dict[str, Any]:
    """Return the data of the page, section by section; empty sections say why under ``missing``."""
    graph = crowd if isinstance(crowd, CrowdGraph) else crowd.graph
    if not isinstance(crowd, CrowdGraph):
        findings = crowd.findings if findings is None else findings
        calibration = crowd.calibration if calibration is None else calibration
        changes = crowd.changes if changes is None else changes
        predictive = crowd.predictive if predictive is None else predictive
        plan = crowd.plan if plan is None else plan
        calibrated_fit = crowd.calibrated_fit if calibrated_fit is None else calibrated_fit
        run = _record(crowd) if run is None else run
    if changes is not None:
        check_ids_match("What is known of changes", changes.ids, graph.volunteers.table)
    if calibrated_fit is not None:
        calibrated_fit.check_matches(graph)
    if plan is not None:
        # Raise if the plan names somebody, or something, that the graph does not have.
        graph.volunteers.codes(plan.volunteers.tolist())
        graph.items.codes(plan.items.tolist())
    results = GraphResults(
        graph,
        measured=calibration,
        predictive=predictive,
        interface=interface,
        changes=changes,
        plan=plan,
        calibrated_fit=calibrated_fit,
    )
    skipped, pairs = (run or {}).get("skipped", {}), pair_section(results)
    data: dict[str, Any] = {
        "classes": to_texts(graph.classes),
        "labels": to_texts(graph.labels),
        "most_names": MIN_CROWD - 1,
        "colours": {"communities": _community_colours(results), "classes": colours(graph.classes)},
    }
    with progress_bar("Report", visible=progress, total=len(SECTIONS) + 1, unit="sections") as bar:
        findings = (graph.diagnose() if findings is None else findings).wording(interface)
        bar.update()
        for name, section in SECTIONS.items():
            data[name] = _with_reason(section(results), _skip_reason(name, skipped), interface)
            bar.update()
    data["pairs"] = None if pairs is None else _with_reason(pairs, _skip_reason("pairs", skipped), interface)
    data["doctor"] = findings.to_dict(most_ids=MAX_IDS)
    return {
        **data,
        "overview": overview(results, findings, data["checks"], update=(run or {}).get("update", ())),
        "provenance": provenance(results, run),
    }


def _record(analysis: AnalysisLike) -> dict[str, Any]:
    """Return how an analysis was made."""
    record = {name: getattr(analysis, name) for name in ("parameters", "notes", "skipped", "timings")}
    return {name: value for name, value in record.items() if value}


def _skip_reason(section: str, skipped: Mapping[str, str]) -> str | None:
    """Return why the step that a section depends on was skipped."""
    return next((skipped[step] for step in STEPS.get(section, ()) if step in skipped), None)


def _with_reason(section: dict[str, Any], reason: str | None, interface: Interface) -> dict[str, Any]:
    """Return the section; if it is empty because a step was skipped, with the reason instead of advice."""
    if "missing" not in section or reason is None:
        return section
    return {**section, "missing": f"This was skipped. {wording(reason, interface)}"}


def _community_colours(results: GraphResults) -> list[str]:
    """Return a colour for each community, at one time or over time; task communities share them."""
    counts = [len(communities or ()) for communities in (results.communities, results.task_communities)]
    track = results.community_track
    return colours(range(max(*counts, track.n_communities_ever if track else 0)))


def page(title: str, data: Mapping[str, Any]) -> str:
    """Return the page as text.

    Its security policy lets run what belongs to the page and nothing else, whatever ids contain. The data are no
    script, and the one character that could end their element is escaped.
    """
    script = "\n".join(["(() => {", "'use strict';", *map(_source, SCRIPTS), "})();"])
    style = "\n".join([_palette(), *map(_source, STYLES)])
    values = {
        "title": escape(title),
        "policy": f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}",
        "style": style,
        "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "script": script,
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda slot: values[slot[1]], _source("index.html"))


def _check(crowd: object, path: object, title: object, findings: object, run: object) -> None:
    if not isinstance(crowd, CrowdGraph | AnalysisLike):
        raise ParameterError(
            f"A report is written of a CrowdGraph or an Analysis; got {with_article(type(crowd))}. "
            "Read a file with cg.read_csv first."
        )
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"path={path!r} must name a file, such as 'report.html'.")
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title={title!r} must be text.")
    if findings is not None and not isinstance(findings, Findings):
        raise ParameterError(f"findings= takes what graph.diagnose() returns; got {with_article(type(findings))}.")
    if run is not None and not isinstance(run, Mapping):
        raise ParameterError(f"run={run!r} must be a mapping from names to values, such as {{'seed': 0}}.")
    if isinstance(run, Mapping) and not isinstance(run.get("skipped", {}), Mapping):
        raise ParameterError(f"run['skipped']={run['skipped']!r} must be a mapping from steps to reasons.")


def _source(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _palette() -> str:
    """Return the colours of all pictures, as variables of the page's style."""
    hues = "".join(f"--hue-{number}: {hue}; " for number, hue in enumerate(HUES))
    return f":root {{ --ink: {INK}; --grey: {GREY}; {hues}}}"


def _hash(text: str) -> str:
    """Return the name by which a security policy knows an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
