"""An analysis as files: tables, pictures, the report, the graph and how to repeat it; all of them, or none."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from crowdgraph.analysis.figures import draw
from crowdgraph.analysis.result import Analysis
from crowdgraph.analysis.tables import communities_table, confusion_table, items_table, latest, volunteers_table
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError, StoreError, quote
from crowdgraph.io.files import reason

__all__ = ["RECORD", "check_target", "whole_folder", "write_results"]

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
    with whole_folder(directory, force=force) as folder:
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
def whole_folder(directory: str | PathLike[str], *, force: bool = False) -> Iterator[Path]:
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
        why, advice = reason(error)
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
