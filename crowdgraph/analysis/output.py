"""An analysis as files: tables, figures, the report, the graph and a record of the run; all of them, or none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdgraph.allocation.next_steps import NextSteps
from crowdgraph.analysis.analyse import Analysis
from crowdgraph.core.changes import Changes
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import to_frame
from crowdgraph.errors import (
    CrowdGraphError,
    LeftOutFigureWarning,
    ParameterError,
    StoreError,
    collect_warnings,
    warn,
)
from crowdgraph.io._cells import write_csv
from crowdgraph.io._directories import Record, new_directory, own_files, recover
from crowdgraph.io._files import write_failure
from crowdgraph.messages import Hint, Interface, Message, quote, with_article
from crowdgraph.report._results import GraphResults
from crowdgraph.report.provenance import versions
from crowdgraph.report.tables import community_table, item_columns, volunteer_columns

if TYPE_CHECKING:
    from crowdgraph.analysis.update import Renewal

__all__ = ["RECORD", "atomic_directory", "check_directory", "recover_directory", "write_record", "write_results"]

# The record of how a directory of results was made, and which files belong to it.
RECORD = "run.json"
# Each volunteer's strongest links in the file of a network in which all are linked.
N_NEIGHBOURS = 10
MAX_IDS = 20
# With more rows than these, only the latest confusion matrices are written.
MAX_CONFUSION_ROWS = 20_000_000
# With more communities the panels of a figure are too small to read.
MAX_PANELS = 8


def write_results(
    analysis: Analysis,
    directory: str | PathLike[str],
    *,
    title: str | None = None,
    command: str | Sequence[str] | None = None,
    source: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    update: Renewal | None = None,
    interface: Interface = "python",
    force: bool = False,
    raw_cells: bool = False,
    excel: bool = False,
) -> Path:
    """Write an analysis into a new directory: all files, or none if something goes wrong.

    - ``report.html``: everything on one page;
    - ``items.csv``, ``volunteers.csv``, ``communities.csv``, ``confusion.parquet``: the results as tables;
    - ``next_questions.csv``: whom to ask about what next;
    - ``changes.csv``: the volunteers for whose change there is evidence, with when, before and after;
    - ``network.graphml``: who behaves alike, each volunteer's strongest links, for Gephi and others;
    - ``figures``: pictures as SVG and PNG;
    - ``graph.crowd``: the annotated graph, for `crowdgraph.load`;
    - ``run.json``: versions, settings, seed, timings, findings, and what was skipped.

    Files about results that are missing are left out. A figure that cannot be drawn is left out with a warning, which
    the report and the record repeat.

    Parameters
    ----------
    analysis
        The result of `analyse`.
    directory
        The directory to write to, which must be new or empty.
    title
        The title of the report.
    command
        The command that repeats the run, or several in their order, for the record.
    source
        What was read, and how, for the record.
    settings
        The options of the run, from which ``crowdgraph update`` repeats it with more responses.
    update
        What the latest update changed, as `renewal` returns it, for the record and the report.
    interface
        For whom the report words its advice: ``"python"``, or ``"cli"`` for users of the command line.
    force
        Whether to replace a directory of earlier results; one that holds anything else is never replaced.
    raw_cells
        Whether the CSV files hold ids and other text as it is, also where a spreadsheet would run it as a formula.
        Otherwise such a cell begins with an apostrophe, which our readers take away again.
    excel
        Whether to write the tables as sheets of ``tables.xlsx``, too; needs openpyxl.

    Returns
    -------
    pathlib.Path
        The directory.
    """
    if not isinstance(analysis, Analysis):
        raise ParameterError(f"Results are written of an Analysis; got {with_article(type(analysis))}.")
    left_out: list[str] = []
    with atomic_directory(directory, force=force) as folder:
        with collect_warnings(left_out):
            draw_figures(GraphResults(analysis.graph), folder / "figures")
        analysis = replace(analysis, notes=(*analysis.notes, *left_out))
        record = {**_record(analysis, command, source), "settings": dict(settings or {})}
        if update is not None:
            record["update"] = update.to_dict()
        _write_tables(GraphResults(analysis.graph), folder, raw_cells=raw_cells)
        _write_if_any(analysis.plan, folder / "next_questions.csv", raw_cells=raw_cells)
        _write_if_any(analysis.changes, folder / "changes.csv", raw_cells=raw_cells)
        if excel:
            _write_workbook(analysis, folder / "tables.xlsx")
        _write_network(analysis.graph, folder)
        analysis.graph.save(folder / "graph.crowd")
        _write_report(analysis, folder / "report.html", title, record, update, interface)
        write_record(folder, record)
    for message in left_out:
        warn(message, LeftOutFigureWarning)
    return Path(directory)


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record of how a folder was made, with a list of its files."""
    files = sorted([*own_files(folder), RECORD])
    text = json.dumps({**record, "files": files}, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def _record(
    analysis: Analysis, command: str | Sequence[str] | None, source: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return how the analysis was made, and how it went."""
    return {
        "commands": [command] if isinstance(command, str) else list(command or ()),
        "source": dict(source or {}),
        "parameters": dict(analysis.parameters),
        "notes": list(analysis.notes),
        "skipped": dict(analysis.skipped),
        "timings": dict(analysis.timings),
        "versions": versions(),
        "findings": analysis.findings.to_dict(most_ids=MAX_IDS),
    }


# Directories


def check_directory(directory: str | PathLike[str], *, force: bool = False) -> None:
    """Raise unless results can be written to a directory: before the work is done, not after.

    What killed processes left there is put right first.
    """
    target = Path(os.path.realpath(directory))
    name = repr(fspath(directory))
    if target.exists() and not target.is_dir():
        raise StoreError(f"{name} is a file; name a directory for the results.")
    recover_directory(target)
    if target.is_dir() and own_files(target):
        if not force:
            raise StoreError(
                f"{name} is there already and not empty;",
                hint=Hint(
                    "name another directory, or use force to replace.",
                    cli="name another directory, or use --force to replace.",
                ),
            )
        _check_replaceable(target, name)
    # A folder that is there can be filled even if nothing may be written beside it.
    above = next(path for path in (target, *target.parents) if path.exists())
    if not above.is_dir():
        raise StoreError(f"{name} cannot be made, since {above.name!r} is a file; name a directory elsewhere.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise StoreError(f"You may not write to {fspath(above)!r}; name a directory elsewhere.")


def recover_directory(directory: str | PathLike[str]) -> None:
    """Put right what processes left that were killed while they wrote results to a directory."""
    try:
        recover(Path(os.path.realpath(directory)), RESULTS)
    except OSError as error:
        reason, _ = write_failure(error)
        raise StoreError(
            f"{fspath(directory)!r} was being written when a process was killed, and cannot be put right: {reason}."
        ) from error


@contextmanager
def atomic_directory(directory: str | PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Yield a new folder that becomes the directory once all is written; on an error nothing is left of it."""
    check_directory(directory, force=force)
    with new_directory(directory, record=RESULTS) as part:
        yield part


def _check_replaceable(target: Path, name: str) -> None:
    """Raise unless a directory holds results and nothing else."""
    recorded = _recorded_files(target)
    if not recorded:
        raise StoreError(f"{name} does not hold results of crowdgraph, so it is not replaced; name another.")
    others = sorted(file for file in set(own_files(target)) - recorded if not (target / file).is_symlink())
    if others:
        raise StoreError(f"{name} also holds {quote(others, most=3)}, which would be lost; move them, or name another.")


def _recorded_files(folder: Path) -> set[str]:
    """Return the files that the record of a folder lists; none if it has no record."""
    try:
        return set(json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


RESULTS = Record(RECORD, _recorded_files)


# Files


def _write_tables(results: GraphResults, folder: Path, *, raw_cells: bool) -> None:
    import pyarrow.parquet as pq

    for name, table in _tables(results).items():
        if table is not None:
            write_csv(table, fspath(folder / f"{name}.csv"), raw_cells=raw_cells)
    if results.confusion is not None:
        pq.write_table(confusion_table(results.confusion), fspath(folder / "confusion.parquet"))


def _tables(results: GraphResults) -> dict[str, Any]:
    """Return the tables of items, volunteers and communities; None where there is nothing to say."""
    volunteers = volunteer_columns(results)
    if results.correct_labels[1] == "crowd":
        # Files hold the share of right labels only where it is known which labels are right.
        for name in ("accuracy", "low", "high"):
            volunteers.pop(name, None)
    return {
        "items": to_frame(item_columns(results), kind="arrow"),
        "volunteers": to_frame(volunteers, kind="arrow"),
        "communities": all_communities(results),
    }


def _write_workbook(analysis: Analysis, path: Path) -> None:
    """Write all tables as the sheets of a workbook."""
    from crowdgraph.io.excel import write_excel

    tables = _tables(GraphResults(analysis.graph))
    for name, rows in (("next questions", analysis.plan), ("changes", analysis.changes)):
        tables[name] = rows.to_frame(kind="arrow") if rows is not None and len(rows) else None
    write_excel({name: table for name, table in tables.items() if table is not None}, path)


def _write_if_any(rows: NextSteps | Changes | None, path: Path, *, raw_cells: bool) -> None:
    """Write the questions to ask next, or the volunteers who changed, if there are any."""
    if rows is not None and len(rows):
        write_csv(rows.to_frame(kind="arrow"), fspath(path), raw_cells=raw_cells)


def all_communities(results: GraphResults) -> Any:
    """Return one row for each community, of volunteers who behave alike and of those who work on the same items."""
    import pyarrow as pa

    tables = []
    for kind, communities in (("alike", results.communities), ("same items", results.task_communities)):
        if communities is not None:
            table = community_table(communities)
            tables.append(table.add_column(0, "kind", pa.array([kind] * len(table), pa.string())))
    return pa.concat_tables(tables, promote_options="permissive") if tables else None


def confusion_table(track: ConfusionTrack) -> Any:
    """Return the confusion of all volunteers, at every response if that is not too much."""
    if track.inference != "static" and track.concentration.size > MAX_CONFUSION_ROWS:
        latest = track.latest()
        track = ConfusionTrack.static(
            ids=latest.ids, concentration=latest.concentration, classes=latest.classes, labels=latest.labels
        )
    return track.to_frame(kind="arrow")


def _write_network(graph: CrowdGraph, folder: Path) -> None:
    """Write who behaves alike or, where that is unknown, who works on the same items."""
    from crowdgraph.networks.pi_similarity import pi_similarity

    annotations: Mapping[str, Any] = graph.annotations
    if "pi_similarity" in annotations:
        threshold = annotations["pi_similarity"].params["min_responses"]
        network = pi_similarity(graph, min_responses=threshold, neighbours=N_NEIGHBOURS)
        network.save(folder / "network.graphml", communities=annotations.get("communities"))
    elif "task_cooccurrence" in annotations:
        network = annotations["task_cooccurrence"]
        network.save(folder / "network.graphml", communities=annotations.get("task communities"))


def _write_report(
    analysis: Analysis,
    path: Path,
    title: str | None,
    record: Mapping[str, Any],
    update: Renewal | None,
    interface: Interface,
) -> None:
    from crowdgraph.report import write

    run = {name: value for name, value in record.items() if name not in ("findings", "versions", "settings")}
    if update is not None:
        run["update"] = list(update.sentences())
    run = {name: value for name, value in run.items() if value}
    write(analysis, path, title=title, run=run, interface=interface)


# Figures


def draw_figures(results: GraphResults, folder: Path) -> None:
    """Draw every figure that the results allow, as SVG and PNG; warn of those that cannot be drawn."""
    import matplotlib as mpl

    from crowdgraph.plot._style import figures_apart_from_pyplot

    folder.mkdir()
    # Without a fixed salt and date the same figure would be another file each time.
    with mpl.rc_context({"svg.hashsalt": "crowdgraph"}), figures_apart_from_pyplot():
        for name, draw in _figures(results):
            for ending, picture in _drawn(name, draw).items():
                (folder / f"{name}.{ending}").write_bytes(picture)


def _drawn(name: str, draw: Callable[[], Any]) -> dict[str, bytes]:
    """Return a figure as SVG and PNG, or neither if it cannot be drawn, since the other results are worth more."""
    svg, png = BytesIO(), BytesIO()
    try:
        figure = draw().figure
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=150)
    except OSError:
        raise
    except Exception as error:  # Matplotlib and what it draws with raise anything.
        reason = error.message if isinstance(error, CrowdGraphError) else Message(_first_line(error))
        warn(f"The figure {name!r} was left out, since it could not be drawn. " + reason, LeftOutFigureWarning)
        return {}
    return {"svg": svg.getvalue(), "png": png.getvalue()}


def _first_line(error: Exception) -> str:
    """Return the kind of an error and the first line of what it says, which may have drawings below it."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".rstrip(": .") + "."


def _figures(results: GraphResults) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the names of figures, and what draws each."""
    from crowdgraph.plot import activity, flow, prototypes, responses_over_time, skill_over_time

    graph, fit, track = results.graph, results.fit, results.community_track
    if len(graph.responses):
        yield "activity", lambda: activity(graph)
    if graph.responses.clock.kind != "order" and len(graph.responses):
        yield "responses_over_time", lambda: responses_over_time(graph)
    yield from _network_figures(graph)
    communities = results.communities
    if communities is not None and communities.confusion is not None and len(communities) <= MAX_PANELS:
        yield "communities", lambda: prototypes(communities, mean=True)[0]
    if track is not None:
        yield "communities_over_time", lambda: flow(track)
    if fit is not None and fit.confusion is not None and fit.confusion.inference != "static":
        confusion, correct = fit.confusion, fit.correct_labels
        if correct is not None or set(fit.classes) <= set(confusion.labels):
            draw = partial(skill_over_time, confusion, class_probs=fit.class_probs, correct=correct)
            yield "skill_over_time", draw


def _network_figures(graph: CrowdGraph) -> Iterator[tuple[str, Callable[[], Any]]]:
    from crowdgraph.plot import network as draw_network

    for name, annotation in (("pi_similarity", "communities"), ("task_cooccurrence", "task communities")):
        network, communities = graph.annotations.get(name), graph.annotations.get(annotation)
        if isinstance(network, VolunteerNetwork):
            coloured = communities if isinstance(communities, Communities) else None
            yield f"network_{name}", partial(draw_network, network, coloured)
