"""Save and load graphs with their annotations.

A saved graph is one zip file: a manifest (JSON) with ids, labels and settings, Parquet files for the columns of
volunteers, items and responses, and NumPy arrays for gold and annotations. Nothing in it is pickled, so loading a file
never runs code from it.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from decimal import Decimal
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph.core._arrays import Array, is_null, object_array, same_values
from crowdgraph.core._sparse import sparse_array
from crowdgraph.core.clock import Clock, zone_info
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.evidence import Evidence
from crowdgraph.core.fit import FitStage, FitState, ModelFit, PosteriorDraws
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.tables import NodeKind, NodeTable, ResponseTable
from crowdgraph.errors import IdError, StoreError
from crowdgraph.io._columns import attribute_array
from crowdgraph.io._files import atomic_file, is_directory, is_file, not_a_file, undamaged
from crowdgraph.io._repeated_text import repeated_text
from crowdgraph.io._stored_values import check_stored_fields, read_npy
from crowdgraph.io._unpacked import check_unpacked, unpacked_limit
from crowdgraph.io.columns import open_store
from crowdgraph.io.partitions import is_results, load_results
from crowdgraph.messages import Hint, with_article

__all__ = ["load", "save"]

# The saved graph in a directory of results.
SAVED_GRAPH = "graph.crowd"

FORMAT = "crowdgraph"
# The first bytes of zip files.
ZIP_MAGIC = b"PK\x03\x04"
VERSION = 1
# The largest exponent of a decimal number, as of ids: beyond that of numbers in quadruple precision.
MAX_DECIMAL_EXPONENT = 5_000
# The types that annotations consist of, by the names that stand for them in files. The names are part of the format:
# they stay, whatever the classes are called.
STORED_TYPES: dict[str, Any] = {
    "ModelFit": ModelFit,
    "FitState": FitState,
    "FitStage": FitStage,
    "ConfusionTrack": ConfusionTrack,
    "ConfusionSnapshot": ConfusionSnapshot,
    "CrowdPrior": CrowdPrior,
    "PosteriorDraws": PosteriorDraws,
    "ForwardState": ForwardState,
    "VolunteerNetwork": VolunteerNetwork,
    "Communities": Communities,
    "CommunityTrack": CommunityTrack,
    "Evidence": Evidence,
    "Clock": Clock,
}
STORED_NAMES = {kind: name for name, kind in STORED_TYPES.items()}
# The models of networks, and the modules that have them, which are imported where a file has one, since they are heavy.
NETWORK_MODELS = {
    "ConfusionModel": "crowdgraph.networks.pi_similarity",
    "CooccurrenceModel": "crowdgraph.networks.task_cooccurrence",
    "ResidualModel": "crowdgraph.networks.error_correlation",
}


def save(graph: CrowdGraph, path: str | PathLike[str]) -> None:
    """Write a graph to one file; see `CrowdGraph.save`."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        _write_graph(graph, archive)


def load(path: str | PathLike[str]) -> CrowdGraph:
    """Read a graph that `CrowdGraph.save` wrote: a file with its annotations, or a directory of columns.

    The columns of a directory are mapped into memory and read where they are needed. A directory of results that
    `crowdgraph.distributed.fit` wrote gives the graph that was fitted, annotated with the fit, and one of ``crowdgraph
    analyse`` its annotated graph.

    Raises
    ------
    StoreError
        If the file does not exist, is damaged, is not a saved graph, was written by a newer crowdgraph, or unpacks to
        more than 64 MB and 100 times its size (the environment variable ``CROWDGRAPH_MAX_UNPACKED`` sets another
        limit).

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "supernovae.crowd"
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> graph.save(path)
    >>> cg.load(path).equals(graph)
    True
    """
    if is_directory(path):
        if (Path(path) / SAVED_GRAPH).is_file():
            return load(Path(path) / SAVED_GRAPH)
        with undamaged(path):
            return load_results(path) if is_results(path) else open_store(path).graph()
    if not is_file(path):
        raise StoreError(f"{not_a_file(path)}; give the path that graph.save(path) wrote.")
    name = fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_graph(archive, name)
    except StoreError:
        raise
    except zipfile.BadZipFile as error:
        if not _begins_as_zip(path):
            raise StoreError(
                f"{name!r} is not a saved graph.",
                hint=Hint(
                    "Read tables with cg.read_csv or cg.read_parquet.",
                    cli="If it is a table, say so with --format csv or --format parquet.",
                ),
            ) from error
        raise StoreError(f"{name!r} is not a saved graph, or it is cut short or damaged ({error}).") from error
    except Exception as error:  # a damaged file can fail anywhere, in ways that nobody foresaw
        raise StoreError(f"{name!r} is damaged: its parts do not fit together ({error}).") from error


def _begins_as_zip(path: str | PathLike[str]) -> bool:
    """Return whether a file begins as a zip file does; one that is cut short still does."""
    with Path(path).open("rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def _write_graph(graph: CrowdGraph, archive: zipfile.ZipFile) -> None:
    writer = _ArchiveWriter(archive, graph)
    responses = graph.responses
    codes = {"volunteer": responses.volunteer, "item": responses.item, "label": responses.label, "time": responses.time}
    gold = graph.gold
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "classes": writer.value(graph.classes),
        "labels": writer.value(graph.labels),
        "clock": writer.value(responses.clock),
        "volunteers": writer.nodes("volunteers", graph.volunteers.table),
        "items": writer.nodes("items", graph.items.table),
        "responses": writer.table("responses", {**codes, **responses.attributes}),
        "gold": {
            "items": writer.value(np.flatnonzero(gold.known)),
            "probs": writer.value(gold.probs[gold.known]),
            "n_unmatched": gold.n_unmatched,
        },
        "annotations": [[name, writer.value(result)] for name, result in graph.annotations.items()],
    }
    archive.writestr("manifest.json", json.dumps(manifest, allow_nan=False))


def _read_graph(archive: zipfile.ZipFile, name: str) -> CrowdGraph:
    if "manifest.json" not in archive.namelist():
        raise StoreError(f"{name!r} is a zip file but not a saved graph: it has no manifest.")
    reader = _ArchiveReader(archive, name)
    manifest = reader.json("manifest.json")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError(f"{name!r} is not a saved graph: its manifest is of another format than {FORMAT!r}.")
    if manifest["version"] > VERSION:
        raise StoreError(
            f"{name!r} was written in format {manifest['version']}, this crowdgraph reads up to {VERSION}; "
            "upgrade it with: pip install --upgrade crowdgraph"
        )
    volunteers = reader.nodes("volunteer", manifest["volunteers"])
    items = reader.nodes("item", manifest["items"])
    columns = reader.table(manifest["responses"])
    response_columns: dict[str, Any] = {role: columns.pop(role) for role in ("volunteer", "item", "label", "time")}
    classes = reader.value(manifest["classes"])
    rows = np.asarray(reader.value(manifest["gold"]["items"]), dtype=np.int64)
    if (np.diff(rows, prepend=-1) <= 0).any() or (rows >= len(items)).any():
        raise StoreError(f"{name!r} is damaged: its gold names an item twice, or items that do not exist.")
    probs = np.full((len(items), len(classes)), np.nan)
    probs[rows] = reader.value(manifest["gold"]["probs"])
    graph = CrowdGraph(
        volunteers,
        items,
        ResponseTable(**response_columns, clock=reader.value(manifest["clock"]), attributes=columns),
        classes=classes,
        labels=reader.value(manifest["labels"]),
        gold=Gold(items, classes, probs, n_unmatched=manifest["gold"]["n_unmatched"]),
    )
    for annotation, result in manifest["annotations"]:
        graph = graph.annotate(reader.value(result), name=annotation)
    return graph


class _ArchiveWriter:
    """Write values as JSON, and arrays and tables as files that the JSON names."""

    def __init__(self, archive: zipfile.ZipFile, graph: CrowdGraph) -> None:
        self._archive = archive
        self._shared_ids = {"volunteers": graph.volunteers.ids, "items": graph.items.ids}
        self._n_arrays = 0

    def value(self, value: Any) -> Any:
        """Return a value as JSON; what JSON lacks becomes {"kind": content}."""
        if is_null(value) and not isinstance(value, float):
            return None
        if isinstance(value, bool | str):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if (stored_name := _stored_name(value)) is not None:
            contents = {field.name: self.value(getattr(value, field.name)) for field in _saved_fields(value)}
            return {"result": stored_name, "fields": contents}
        if isinstance(value, tuple | list):
            return {"tuple" if isinstance(value, tuple) else "list": [self.value(part) for part in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.value(key), self.value(part)] for key, part in value.items()]}
        if hasattr(value, "tocsr"):
            sparse = value.tocsr()
            parts = {name: self._array(getattr(sparse, name)) for name in ("data", "indices", "indptr")}
            return {"csr": parts, "shape": list(sparse.shape)}
        return self._scalar(value)

    def nodes(self, name: str, table: NodeTable) -> dict[str, Any]:
        """Return a table of nodes as JSON, after writing its columns."""
        return {"ids": self._array(table.ids, share=False), "table": self.table(name, table.attributes)}

    def table(self, name: str, columns: Mapping[str, Array]) -> dict[str, Any]:
        """Write columns that Parquet preserves exactly to one file, others as arrays; return JSON that names them."""
        exact = {key: column for key, column in columns.items() if _is_exact_in_parquet(column)}
        file = f"{name}.parquet"
        if exact:
            with self._archive.open(file, "w", force_zip64=True) as target:
                pq.write_table(pa.table({key: _to_arrow(column) for key, column in exact.items()}), target)
        others = {key: self._array(column, share=False) for key, column in columns.items() if key not in exact}
        return {"file": file if exact else None, "order": list(columns), "arrays": others}

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, np.datetime64):
            return {"datetime64": [int(value.astype(np.int64)), np.datetime_data(value.dtype)[0]]}
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, dt.datetime) and not getattr(value, "nanosecond", 0):
            zone = getattr(value.tzinfo, "key", None)
            local = value.replace(tzinfo=None) if zone else value
            return {"datetime": [local.isoformat(), value.fold, zone]}
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return {"date": value.isoformat()}
        if isinstance(value, dt.time):
            return {"time": value.isoformat()}
        if isinstance(value, dt.timedelta):
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        if isinstance(value, Decimal):
            return {"decimal": str(value)}
        if isinstance(value, frozenset):
            return {"frozenset": [self.value(part) for part in sorted(value, key=repr)]}
        raise IdError(
            f"{value!r} is {with_article(type(value))}, which a saved graph cannot carry; "
            "use text, numbers, dates or tuples of them as ids, labels and attributes."
        )

    def _array(self, array: Array, *, share: bool = True) -> Any:
        for name, ids in self._shared_ids.items():
            if share and (array is ids or (array.dtype == object and same_values(array, ids))):
                return {"ids": name}
        if array.dtype == object:
            if array.ndim != 1:
                raise IdError(f"An array of objects of shape {array.shape} cannot be saved; use numbers or a list.")
            return {"objects": [self.value(part) for part in array.tolist()]}
        file = f"arrays/{self._n_arrays}.npy"
        self._n_arrays += 1
        with self._archive.open(file, "w", force_zip64=True) as target:
            np.lib.format.write_array(target, np.asarray(array, order="C"), allow_pickle=False)
        return {"array": file}


class _ArchiveReader:
    """Read values that an `_ArchiveWriter` wrote, and believe nothing that a file says about itself.

    Parameters
    ----------
    archive
        The file; None where there is none.
    name
        What messages call it.
    """

    def __init__(self, archive: zipfile.ZipFile | None, name: str) -> None:
        self._archive, self._name = archive, name
        self._packed = 0 if archive is None or archive.fp is None else archive.fp.seek(0, os.SEEK_END)
        self._n_unpacked = 0
        self._shared_ids: dict[str, Array] = {}
        self._readers: dict[str, Callable[[Any], Any]] = {
            "tuple": lambda parts: tuple(map(self.value, parts)),
            "list": lambda parts: list(map(self.value, parts)),
            "frozenset": lambda parts: frozenset(map(self.value, parts)),
            "dict": lambda pairs: {self.value(key): self.value(part) for key, part in pairs},
            "objects": lambda parts: object_array(map(self.value, parts)),
            "array": self._array,
            "ids": lambda name: self._shared_ids[name],
            "float": float.fromhex,
            "bytes": bytes.fromhex,
            "datetime": _read_datetime,
            "date": dt.date.fromisoformat,
            "time": dt.time.fromisoformat,
            "timedelta": lambda parts: dt.timedelta(*parts),
            "decimal": _read_decimal,
            "datetime64": lambda pair: np.datetime64(*pair),
        }

    def value(self, node: Any) -> Any:
        """Return the value of a JSON node."""
        if not isinstance(node, dict):
            return node
        if "result" in node:
            kind = _stored_type(node["result"])
            values = {name: self.value(part) for name, part in node["fields"].items()}
            check_stored_fields(kind, values, (*STORED_TYPES.values(), NetworkModel))
            return kind(**values)
        if "csr" in node:
            data, indices, indptr = (self.value(node["csr"][name]) for name in ("data", "indices", "indptr"))
            n_rows, n_columns = node["shape"]
            return sparse_array("A sparse array", data, indices, indptr, shape=(n_rows, n_columns))
        ((kind, content),) = node.items()
        return self._readers[kind](content)

    def nodes(self, kind: NodeKind, node: dict[str, Any]) -> NodeTable:
        """Return a table of nodes, whose ids are shared with the results that refer to them."""
        table = NodeTable(kind, self.value(node["ids"]), self.table(node["table"]))
        self._shared_ids[f"{kind}s"] = table.ids
        return table

    def table(self, node: dict[str, Any]) -> dict[str, Array]:
        """Return the columns of a table, in their order."""
        columns: dict[str, Array] = {}
        if node["file"]:
            content = self._read(node["file"])
            with pq.ParquetFile(pa.BufferReader(content)) as file:
                self._allow(8 * file.metadata.num_rows * file.metadata.num_columns)
                limit = unpacked_limit(self._packed)
                self._allow(repeated_text(pa.BufferReader(content), file.metadata, limit=limit))
                table = file.read()
            columns = {name: attribute_array(table[name]) for name in table.column_names}
        columns |= {name: self.value(part) for name, part in node["arrays"].items()}
        return {name: columns[name] for name in node["order"]}

    def json(self, file: str) -> Any:
        """Return the JSON that a part of the archive holds."""
        return json.loads(self._read(file))

    def _read(self, file: str) -> bytes:
        """Return a part of the archive; however often parts are read, they make up no more than is allowed."""
        self._allow(self._archive.getinfo(file).file_size)  # type: ignore[union-attr]
        return self._archive.read(file)  # type: ignore[union-attr]

    def _allow(self, n_bytes: int) -> None:
        self._n_unpacked += n_bytes
        check_unpacked(repr(self._name), packed=self._packed, unpacked=self._n_unpacked, error=StoreError)

    def _array(self, file: str) -> Array:
        return read_npy(self._read(file))


def _saved_fields(result: Any) -> list[Field[Any]]:
    """Return the fields of a result that a file keeps; newer ones only where they are set, so that older files stay."""
    rules = {field: field.metadata.get("saved", True) for field in fields(result)}
    return [
        field
        for field, saved in rules.items()
        if saved is True
        or (saved == "unless default" and not _is_default(getattr(result, field.name), field))
        or (saved == "if possible" and _stored_name(getattr(result, field.name)) is not None)
    ]


def _stored_name(value: Any) -> str | None:
    """Return the name by which files call the type of a result; None if they cannot hold it."""
    kind = type(value)
    is_model = NETWORK_MODELS.get(kind.__name__) == kind.__module__
    return kind.__name__ if is_model else STORED_NAMES.get(kind)


def _stored_type(name: str) -> Any:
    """Return the type of results that files call by a name."""
    return getattr(import_module(NETWORK_MODELS[name]), name) if name in NETWORK_MODELS else STORED_TYPES[name]


def _is_default(value: Any, field: Field[Any]) -> bool:
    """Return whether a value is a field's default, which is a plain value or None; NaN is the same as NaN."""
    if isinstance(value, float) and isinstance(field.default, float):
        return value == field.default or (value != value and field.default != field.default)
    return value is field.default or (isinstance(value, bool | tuple) and value == field.default)


def _read_datetime(parts: tuple[str, int, str | None]) -> dt.datetime:
    text, fold, zone = parts
    value = dt.datetime.fromisoformat(text).replace(fold=fold)
    return value if zone is None else value.replace(tzinfo=zone_info(zone))


def _read_decimal(text: str) -> Decimal:
    value = Decimal(text)
    # As a whole number, one with a larger exponent would take gigabytes and hours.
    if value.is_finite() and abs(value.adjusted()) > MAX_DECIMAL_EXPONENT:
        raise ValueError(f"the number {text!r:.40} is too large or too small")
    return value


def _is_exact_in_parquet(column: Array) -> bool:
    """Return whether Parquet preserves a column exactly: numbers, booleans, datetimes and text."""
    if column.ndim != 1:
        return False
    if column.dtype == object:
        return all(value is None or type(value) is str for value in column.tolist())
    is_number = column.dtype.kind in "iub" or column.dtype in (np.float32, np.float64)
    return is_number or column.dtype in ("datetime64[ms]", "datetime64[us]", "datetime64[ns]")


def _to_arrow(column: Array) -> pa.Array:
    return pa.array(column.tolist(), pa.string()) if column.dtype == object else pa.array(column)
