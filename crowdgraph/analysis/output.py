"""An analysis as files: tables, pictures, the report, the graph and how to repeat it; all of them, or none."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from crowdgraph.analysis.analyse import Analysis
from crowdgraph.core._arrays import Array, object_array
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import Result
from crowdgraph.errors import ParameterError, StoreError, quote
from crowdgraph.io._files import write_failure

__all__ = [
    "RECORD",
    "atomic_directory",
    "check_target",
    "communities_table",
    "confusion_table",
    "draw",
    "items_table",
    "volunteers_table",
    "write_results",
]

# More rows of a confusion table than these are not written: only the latest matrices are.
MOST_ROWS = 20_000_000


def items_table(graph: CrowdGraph) -> Any:
    """One row for each item: responses, gold and, if there is a fit, the classes and their probabilities."""
    from crowdgraph.io._columns import native_frame

    gold = object_array(None if item not in graph.gold else str(graph.gold[item]) for item in graph.items)
    known = {"item": graph.items.ids, "responses": graph.items.n_responses, "gold": gold}
    table = native_frame(known, kind="arrow")
    fit = latest(graph, ModelFit)
    if fit is None:
        return table
    told = fit.to_frame(kind="arrow")
    for name in told.column_names[1:]:
        table = table.append_column(name, told[name])
    return table


def volunteers_table(graph: CrowdGraph) -> Any:
    """One row for each volunteer: responses, how often they are right with an interval, and their communities."""
    from crowdgraph.io._columns import native_frame

    columns: dict[str, Array] = {"volunteer": graph.volunteers.ids, "responses": graph.volunteers.n_responses}
    columns |= _skill(graph)
    for name, column in (("communities", "community"), ("task communities", "task_community")):
        found = graph.annotations.get(name)
        if isinstance(found, Communities):
            columns |= _membership(graph, found, column)
    return native_frame(columns, kind="arrow")


def communities_table(graph: CrowdGraph) -> Any:
    """One row for each community, of volunteers who behave alike and of those who work on the same items."""
    import pyarrow as pa

    parts = []
    for name in ("communities", "task communities"):
        found = graph.annotations.get(name)
        if isinstance(found, Communities):
            table = _without_nan(found.describe(kind="arrow"))
            kind = "alike" if name == "communities" else "same items"
            parts.append(table.add_column(0, "kind", pa.array([kind] * len(table), pa.string())))
    return pa.concat_tables(parts, promote_options="permissive") if parts else None


def _without_nan(table: Any) -> Any:
    """A table in which numbers that are not known are null, which files leave empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_floating(column.type):
            known = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
            table = table.set_column(place, name, known)
    return table


def confusion_table(track: ConfusionTrack) -> Any:
    """The confusion of all volunteers, at every response if that is not too much."""
    cells = track.concentration.size
    if track.inference != "static" and cells > MOST_ROWS:
        now = track.latest()
        track = ConfusionTrack.static(
            ids=now.ids, concentration=now.concentration, classes=now.classes, labels=now.labels
        )
    return track.to_frame(kind="arrow")


def latest(graph: CrowdGraph, kind: type[Any]) -> Any:
    """The latest result of a kind that a graph carries, or None."""
    found: list[Result] = [result for result in graph.annotations.values() if isinstance(result, kind)]
    return found[-1] if found else None


def _skill(graph: CrowdGraph) -> dict[str, Array]:
    """How often each volunteer is right; nothing where it is not known which labels are right."""
    fit = latest(graph, ModelFit)
    if fit is None or fit.confusion is None:
        return {}
    try:
        table = fit.volunteers_to_frame(kind="arrow")
    except ParameterError:
        return {}
    codes = graph.volunteers.codes(table["volunteer"].to_pylist())
    columns = {}
    for name in ("accuracy", "low", "high"):
        columns[name] = np.empty(len(codes))
        columns[name][codes] = table[name].to_numpy()
    return columns


def _membership(graph: CrowdGraph, found: Communities, column: str) -> dict[str, Array]:
    """The community of each volunteer, -1 for none, and the participation in it."""
    codes = graph.volunteers.codes(found.ids.tolist())
    number = np.full(len(graph.volunteers), -1)
    number[codes] = found.assignment
    share = np.full(len(graph.volunteers), None, dtype=object)
    share[codes] = found.participation.max(axis=1, initial=0.0)
    return {column: number, f"{column}_participation": share}


# With more communities the panels are too small to read.
MOST_PANELS = 8


def draw(graph: CrowdGraph, folder: Path) -> None:
    """Draw every picture that the graph's annotations allow, as SVG and PNG."""
    import matplotlib as mpl

    folder.mkdir()
    # Without these two the same picture would be another file each time.
    with mpl.rc_context({"svg.hashsalt": "crowdgraph"}):
        for name, picture in _pictures(graph):
            figure = picture().figure
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"{name}.png", dpi=150)


def _pictures(graph: CrowdGraph) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of pictures, and what draws each."""
    from crowdgraph.plot import activity, flow, prototypes, responses_over_time, skill_over_time

    if len(graph.responses):
        yield "activity", lambda: activity(graph)
    if graph.responses.clock.kind != "order" and len(graph.responses):
        yield "responses_over_time", lambda: responses_over_time(graph)
    yield from _of_networks(graph)
    groups, track, fit = (latest(graph, kind) for kind in (Communities, CommunityTrack, ModelFit))
    behaving = graph.annotations.get("communities")
    if isinstance(behaving, Communities) and behaving.confusion is not None and len(groups) <= MOST_PANELS:
        yield "communities", lambda: prototypes(behaving, mean=True)[0]
    if track is not None:
        yield "communities_over_time", lambda: flow(track)
    if fit is not None and fit.confusion is not None and fit.confusion.inference != "static":
        right = _right(fit)
        if right is not None or set(fit.classes) <= set(fit.confusion.labels):
            shares = fit.class_probs
            yield "skill_over_time", lambda: skill_over_time(fit.confusion, class_probs=shares, correct=right)


def _of_networks(graph: CrowdGraph) -> Iterator[tuple[str, Callable[[], Any]]]:
    from crowdgraph.plot import network as drawn

    for name, groups in (("pi_similarity", "communities"), ("task_cooccurrence", "task communities")):
        network, found = graph.annotations.get(name), graph.annotations.get(groups)
        if isinstance(network, VolunteerNetwork):
            coloured = found if isinstance(found, Communities) else None
            yield f"network_{name}", partial(drawn, network, coloured)


def _right(fit: ModelFit) -> dict[Any, list[Any]] | None:
    """For each class the labels that vote for it, where the model was told."""
    votes = fit.params.get("votes")
    if not votes:
        return None
    return {name: [label for label, target in votes.items() if target == name] for name in fit.classes}


# What tells how a folder of results was made, and which files belong to it.
RECORD = "run.json"
PACKAGES = ("crowdgraph", "igraph", "matplotlib", "numba", "numpy", "pyarrow", "scipy", "torch")
# Everybody's strongest links in the file of a network in which all are linked.
NEIGHBOURS = 10
MOST_IDS = 20


def write_results(
    analysis: Analysis,
    directory: str | PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
    source: Mapping[str, Any] | None = None,
    words: Callable[[str], str] | None = None,
    force: bool = False,
) -> Path:
    """Write an analysis into a new directory: all files, or none if something goes wrong.

    - ``report.html``: everything on one page;
    - ``items.csv``, ``volunteers.csv``, ``communities.csv``, ``confusion.parquet``: the results as tables;
    - ``network.graphml``: who behaves alike, everybody's strongest links, for Gephi and others;
    - ``figures``: pictures as SVG and PNG;
    - ``graph.crowd``: the annotated graph, for `crowdgraph.load`;
    - ``run.json``: versions, settings, seed, timings, findings, and what was skipped.

    Files about what was not found are left out.

    Parameters
    ----------
    analysis
        What `analyse` found.
    directory
        Where to; a directory that is not there yet, or empty.
    title
        The title of the report.
    command
        The command that repeats the run, for the record.
    source
        What was read, and how, for the record.
    words
        Puts advice, which speaks of calls in Python, in the words of those who read the report.
    force
        Whether to replace a directory of earlier results; one that holds anything else is never replaced.

    Returns
    -------
    pathlib.Path
        The directory.
    """
    if not isinstance(analysis, Analysis):
        raise ParameterError(f"Results are written of an Analysis; got a {type(analysis).__name__}.")
    with atomic_directory(directory, force=force) as folder:
        record = _record(analysis, command, source)
        _write_tables(analysis.graph, folder)
        _write_network(analysis.graph, folder)
        draw(analysis.graph, folder / "figures")
        analysis.graph.save(folder / "graph.crowd")
        _write_report(analysis, folder / "report.html", title, record, words)
        write_record(folder, record)
    return Path(directory)


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write how a folder was made, and which files it has."""
    files = sorted([*_files(folder), RECORD])
    text = json.dumps({**record, "files": files}, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def check_target(directory: str | PathLike[str], *, force: bool = False) -> None:
    """Raise unless results can be written to a directory: before the work is done, not after."""
    target = Path(os.path.realpath(directory))
    name = repr(fspath(directory))
    if target.exists() and not target.is_dir():
        raise StoreError(f"{name} is a file; name a directory for the results.")
    if target.is_dir() and any(target.iterdir()):
        if not force:
            raise StoreError(f"{name} is there already and not empty; name another directory, or use force to replace.")
        _check_ours(target, name)
    above = next(parent for parent in target.parents if parent.exists())
    if not above.is_dir():
        raise StoreError(f"{name} cannot be made, since {above.name!r} is a file; name a directory elsewhere.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise StoreError(f"You may not write to {fspath(above)!r}; name a directory elsewhere.")


@contextmanager
def atomic_directory(directory: str | PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A new folder that takes its place once all is written; on an error nothing is left of it."""
    check_target(directory, force=force)
    target = Path(os.path.realpath(directory))
    part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")
    made = next((parent for parent in reversed(target.parents) if not parent.exists()), None)
    try:
        part.mkdir(parents=True)
        yield part
        _replace(part, target)
    except OSError as error:
        why, advice = write_failure(error)
        raise StoreError(
            f"The results could not be written to {fspath(directory)!r}: {why}. None were kept{advice}."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if made is not None and not target.exists():
            shutil.rmtree(made, ignore_errors=True)


def _replace(part: Path, target: Path) -> None:
    """Put a folder in its place; what was there goes only once the new one stands."""
    if not target.exists():
        part.rename(target)
        return
    old = part.with_suffix(".old")
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _check_ours(target: Path, name: str) -> None:
    """Raise unless a directory holds results and nothing else."""
    try:
        known = set(json.loads((target / RECORD).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{name} does not hold results of crowdgraph, so it is not replaced; name another.") from error
    others = sorted(set(_files(target)) - known)
    if others:
        raise StoreError(f"{name} also holds {quote(others, most=3)}, which would be lost; move them, or name another.")


def _files(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]


def _write_tables(graph: CrowdGraph, folder: Path) -> None:
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    tables = {
        "items": items_table(graph),
        "volunteers": volunteers_table(graph),
        "communities": communities_table(graph),
    }
    for name, table in tables.items():
        if table is not None:
            pa_csv.write_csv(table, fspath(folder / f"{name}.csv"))
    fit = latest(graph, ModelFit)
    if fit is not None and fit.confusion is not None:
        pq.write_table(confusion_table(fit.confusion), fspath(folder / "confusion.parquet"))


def _write_network(graph: CrowdGraph, folder: Path) -> None:
    """Write who behaves alike or, where that is not known, who works on the same items."""
    from crowdgraph.networks.pi_similarity import pi_similarity

    networks = {name: found for name, found in graph.annotations.items() if isinstance(found, VolunteerNetwork)}
    if "pi_similarity" in networks:
        least = networks["pi_similarity"].params["min_responses"]
        network = pi_similarity(graph, min_responses=least, neighbours=NEIGHBOURS)
        network.save(folder / "network.graphml", communities=graph.annotations.get("communities"))  # type: ignore[arg-type]
    elif networks:
        network = networks["task_cooccurrence"]
        network.save(folder / "network.graphml", communities=graph.annotations.get("task communities"))  # type: ignore[arg-type]


def _write_report(
    analysis: Analysis,
    path: Path,
    title: str | None,
    record: Mapping[str, Any],
    words: Callable[[str], str] | None,
) -> None:
    from crowdgraph.report import write

    told = {name: value for name, value in record.items() if name not in ("command", "findings", "versions")}
    if record["command"]:
        told["commands"] = [record["command"]]
    if words is not None:
        told["notes"] = [words(note) for note in analysis.notes]
        told["skipped"] = {step: words(reason) for step, reason in analysis.skipped.items()}
    write(analysis.graph, path, title=title, run={name: value for name, value in told.items() if value}, words=words)


def _record(analysis: Analysis, command: str | None, source: Mapping[str, Any] | None) -> dict[str, Any]:
    """How the run was made and went."""
    return {
        "command": command,
        "source": dict(source or {}),
        "parameters": dict(analysis.parameters),
        "notes": list(analysis.notes),
        "skipped": dict(analysis.skipped),
        "timings": dict(analysis.timings),
        "versions": versions(),
        "findings": analysis.findings.to_dict(most_ids=MOST_IDS),
    }


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
