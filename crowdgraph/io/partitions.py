"""Fits as directories of partitions, which several processes write together: for crowds larger than one machine.

A directory of results, of N ranks, has::

    manifest.json                    what it is the fit of, and the size and checksum of every file
    fit.zip                          the model's settings, class proportions, prior and diagnostics
    items-00000-of-0000N.parquet     item, most probable class, and the probability of every class; one for each rank
    volunteers-00000-of-0000N.parquet    volunteer, number of steps, and the concentration of confusion, class by class
    steps-00000-of-0000N.parquet     where confusion changes: time and concentration of each step

Items and volunteers stand in the order of their codes, from one partition to the next.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph import __version__
from crowdgraph.core._arrays import Array, id_array, row_blocks
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import StoreError
from crowdgraph.io._files import atomic_file, file_digest, reason_of
from crowdgraph.io.columns import MANIFEST, ResponseStore, is_inside, open_store
from crowdgraph.messages import quote

__all__ = ["finish_results", "is_results", "load_results", "prepare_results", "write_partition"]

FORMAT = "crowdgraph fit"
VERSION = 1
REST = "fit.zip"
# The fields of a fit that are not about single items or volunteers.
REST_FIELDS = (
    "model",
    "class_probs",
    "bound",
    "converged",
    "n_iter",
    "params",
    "class_concentration",
    "prior",
    "diagnostics",
)
PARTS = ("items", "volunteers", "steps")


def is_results(path: str | PathLike[str]) -> bool:
    """Return whether a directory holds a fit in partitions, whole or damaged."""
    return (Path(path) / REST).is_file() and (Path(path) / MANIFEST).is_file()


def prepare_results(path: str | PathLike[str], *, replaced_crowd: str | None = None) -> None:
    """Make a directory for results, or raise if it holds anything but what an interrupted process left.

    With `replaced_crowd`, the fingerprint of a store, finished results of that crowd are there no longer afterwards.
    """
    folder, name = Path(path), repr(fspath(path))
    if is_results(folder) and _read_manifest(folder, name)["store"]["fingerprint"] == replaced_crowd:
        (folder / MANIFEST).unlink()
    if folder.is_file():
        raise StoreError(f"{name} is a file; name a directory for the results.")
    if (folder / MANIFEST).exists():
        raise StoreError(f"{name} holds finished results or a store already; name another directory, or remove it.")
    others = [file.name for file in folder.iterdir() if not _is_part(file.name)] if folder.is_dir() else []
    if others:
        raise StoreError(f"{name} holds other files ({quote(others)}); name a directory of its own for the results.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"Cannot make the directory {name}: {error.strerror}.") from error


def write_partition(folder: Path, fit: ModelFit, *, number: int, n_parts: int, volunteers: range) -> dict[str, Any]:
    """Write one rank's part of a fit, and return the size and checksum of each file.

    Parameters
    ----------
    folder
        The directory.
    fit
        The fit of the rank's items.
    number, n_parts
        Which part it is, and of how many.
    volunteers
        The positions of the volunteers, among those of the fit, that the part has to write.
    """
    files = {}
    names = {part: f"{part}-{number:05d}-of-{n_parts:05d}.parquet" for part in PARTS}
    files[names["items"]] = _write_rows(folder / names["items"], _item_columns(fit), len(fit.items))
    track = fit.confusion
    if track is not None:
        first, last = volunteers.start, volunteers.stop
        ids, n_steps = track.ids[first:last], np.diff(track.starts[first : last + 1])
        initial = track.initial[first:last]

        def volunteer_columns(rows: slice) -> dict[str, pa.Array]:
            columns = {"volunteer": _to_arrow(ids[rows]), "steps": pa.array(n_steps[rows])}
            return {**columns, "concentration": _matrices(initial[rows])}

        files[names["volunteers"]] = _write_rows(folder / names["volunteers"], volunteer_columns, len(ids))
        begin, end = int(track.starts[first]), int(track.starts[last])
        if track.inference != "static":
            times, steps = track.times[begin:end], track.concentration[begin:end]

            def step_columns(rows: slice) -> dict[str, pa.Array]:
                return {"time": pa.array(times[rows]), "concentration": _matrices(steps[rows])}

            files[names["steps"]] = _write_rows(folder / names["steps"], step_columns, end - begin)
    return files


def finish_results(
    folder: Path, fit: ModelFit, graph: CrowdGraph, store: ResponseStore, files: Sequence[Mapping[str, Any]]
) -> None:
    """Write what a fit has beside its partitions, and last the manifest, which makes the results complete.

    Parameters
    ----------
    folder
        The directory.
    fit
        The fit of any rank.
    graph
        The graph of that rank.
    store
        The store that was fitted.
    files
        What `write_partition` returned, for each rank.
    """
    from crowdgraph.io.store import _ArchiveWriter

    parts = {name: facts for part in files for name, facts in part.items()}
    for file in folder.iterdir():
        # Of an interrupted fit by another number of ranks; whatever else appeared meanwhile is not ours.
        if file.name not in parts and file.is_file() and _is_part(file.name):
            file.unlink()
    track = fit.confusion
    with atomic_file(folder / REST) as part, zipfile.ZipFile(part, "w") as archive:
        writer = _ArchiveWriter(archive, graph)
        rest: dict[str, Any] = {name: getattr(fit, name) for name in REST_FIELDS}
        if track is not None:
            rest |= {"inference": track.inference, "clock": track.clock}
        archive.writestr("fit.json", json.dumps(writer.value(rest), allow_nan=False))
    parts[REST] = _facts_of(folder / REST)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "model": fit.model,
        "settings": {name: repr(value) for name, value in fit.params.items()},
        "converged": fit.converged,
        "iterations": fit.n_iter,
        "store": {"path": os.path.relpath(store.path, folder), "fingerprint": store.fingerprint},
        "files": parts,
    }
    with atomic_file(folder / MANIFEST) as part:
        part.write_text(json.dumps(manifest, indent=1, allow_nan=False), encoding="utf-8")


def load_results(path: str | PathLike[str]) -> CrowdGraph:
    """Return the graph of the store that was fitted, annotated with the fit.

    Raises
    ------
    StoreError
        If a partition is missing or damaged, or the store is no longer there or another one.
    """
    folder, name = Path(path), repr(fspath(path))
    manifest = _read_manifest(folder, name)
    _check_files(folder, manifest, name)
    store = open_store(folder / manifest["store"]["path"])
    if store.fingerprint != manifest["store"]["fingerprint"]:
        raise StoreError(
            f"{name} is a fit of another crowd than the one that is now in {fspath(store.path)!r}. Fit the model again."
        )
    graph = store.graph()
    return graph.annotate(_read_fit(folder, manifest, graph))


def _read_fit(folder: Path, manifest: Mapping[str, Any], graph: CrowdGraph) -> ModelFit:
    from crowdgraph.io.store import _ArchiveReader

    with _readable(folder / REST), zipfile.ZipFile(folder / REST) as archive:
        reader = _ArchiveReader(archive, fspath(folder / REST))
        reader._shared_ids |= {"volunteers": graph.volunteers.ids, "items": graph.items.ids}
        rest = reader.value(reader.json("fit.json"))
    item_probs = np.empty((graph.n_items, len(graph.classes)))
    begin = 0
    for file in _files_of(manifest, "items"):
        with _readable(folder / file):
            table = pq.read_table(folder / file)
            columns = [table[name].to_numpy() for name in table.column_names[2:]]
            begin, end = begin + table.num_rows, begin
            item_probs[end:begin] = np.column_stack(columns)
    if begin != graph.n_items:
        raise StoreError(f"{fspath(folder)!r} has {begin:,} items; the store has {graph.n_items:,}.")
    confusion = None
    if "inference" in rest:
        confusion = _read_track(folder, manifest, graph, inference=rest.pop("inference"), clock=rest.pop("clock"))
    return ModelFit(items=graph.items.ids, classes=graph.classes, item_probs=item_probs, confusion=confusion, **rest)


def _read_track(
    folder: Path, manifest: Mapping[str, Any], graph: CrowdGraph, *, inference: Any, clock: Any
) -> ConfusionTrack:
    shape = (-1, len(graph.classes), len(graph.labels))
    volunteers = _read_columns(folder, _files_of(manifest, "volunteers"))
    initial = _numbers(volunteers["concentration"]).reshape(shape)
    if inference == "static":
        return ConfusionTrack.static(
            ids=graph.volunteers.ids, concentration=initial, classes=graph.classes, labels=graph.labels
        )
    steps = _read_columns(folder, _files_of(manifest, "steps"))
    return ConfusionTrack(
        ids=graph.volunteers.ids,
        starts=np.append(0, np.cumsum(volunteers["steps"].to_numpy())),
        times=steps["time"].to_numpy().astype(graph.responses.time.dtype),
        concentration=_numbers(steps["concentration"]).reshape(shape),
        initial=initial,
        classes=graph.classes,
        labels=graph.labels,
        clock=clock,
        inference=inference,
    )


def _read_manifest(folder: Path, name: str) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError("it is of another format")
        version = manifest["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"The {MANIFEST} of {name} cannot be read: {error}.") from error
    if version != VERSION:
        raise StoreError(
            f"{name} holds results of version {version}, written by crowdgraph {manifest.get('written_by')}; this is "
            f"crowdgraph {__version__}, which reads version {VERSION}."
        )
    return dict(manifest)


def _check_files(folder: Path, manifest: Mapping[str, Any], name: str) -> None:
    for file, facts in manifest["files"].items():
        if not is_inside(file):
            raise StoreError(f"The {MANIFEST} of {name} is damaged: it names {file!r}, which is elsewhere.")
        path = folder / file
        if not path.is_file():
            raise StoreError(f"{name} lacks its partition {file!r}: copy it from where the fit ran, or fit again.")
        if path.stat().st_size != facts["bytes"]:
            raise StoreError(
                f"The partition {file!r} of {name} has {path.stat().st_size:,} bytes; expected {facts['bytes']:,}. "
                "Copy it again from where the fit ran, or fit again."
            )


def _files_of(manifest: Mapping[str, Any], part: str) -> list[str]:
    return sorted(name for name in manifest["files"] if name.startswith(f"{part}-"))


def _is_part(name: str) -> bool:
    """Return whether a file may have been left by an interrupted process."""
    return name == REST or name.endswith(".part") or (name.startswith(PARTS) and name.endswith(".parquet"))


def _item_columns(fit: ModelFit) -> Any:
    names = _to_arrow(id_array(fit.classes))

    def columns(rows: slice) -> dict[str, pa.Array]:
        probs = fit.item_probs[rows]
        winners = pa.DictionaryArray.from_arrays(pa.array(probs.argmax(axis=1).astype(np.int32)), names)
        by_class = {f"p({name})": pa.array(probs[:, code]) for code, name in enumerate(fit.classes)}
        return {"item": _to_arrow(fit.items[rows]), "class": winners, **by_class}

    return columns


def _write_rows(path: Path, columns: Any, n_rows: int) -> dict[str, Any]:
    """Write a table block by block, and return its size and checksum."""
    with atomic_file(path) as part:
        schema = pa.table(columns(slice(0, 0))).schema
        # Ids and probabilities hardly repeat: dictionaries of them take much memory for nothing.
        coded = [column.name for column in schema if pa.types.is_dictionary(column.type)]
        with pq.ParquetWriter(part, schema, use_dictionary=coded or False) as writer:
            for rows in row_blocks(n_rows):
                writer.write_table(pa.table(columns(rows)))
    return _facts_of(path)


def _facts_of(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "checksum": file_digest(path)}


def _matrices(values: Array) -> pa.Array:
    """Return matrices, of shape (n, J, L), as a column of lists."""
    flat = np.ascontiguousarray(values, dtype=np.float64)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), values.shape[1] * values.shape[2])


def _numbers(column: pa.ChunkedArray) -> Array:
    return np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])


def _read_columns(folder: Path, files: Sequence[str]) -> pa.Table:
    tables = []
    for file in files:
        with _readable(folder / file):
            tables.append(pq.read_table(folder / file))
    return pa.concat_tables(tables)


def _to_arrow(ids: Array) -> pa.Array:
    return pa.array(ids) if ids.dtype == np.int64 else pa.array(ids.tolist(), _arrow_type(ids))


def _arrow_type(ids: Array) -> pa.DataType | None:
    """Return the type of ids, which is not to be guessed where there are none; text is the usual one."""
    return pa.large_string() if all(type(value) is str for value in ids.tolist()) else None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say which file it is if one cannot be read."""
    try:
        yield
    except (OSError, ValueError, KeyError, pa.ArrowException, zipfile.BadZipFile) as error:
        raise StoreError(
            f"The partition {path.name!r} of {fspath(path.parent)!r} is damaged ({reason_of(error)}). Copy it again "
            "from where the fit ran, or fit again."
        ) from error
