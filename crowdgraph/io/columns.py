"""Graphs as directories of columns, which are mapped into memory instead of read: for crowds larger than memory.

A store is a directory::

    manifest.json          what is in it: sizes, classes, labels, clock, and the size and checksum of every file
    volunteers.parquet     ids and attributes, in the order of their codes
    items.parquet
    gold.parquet           the items with known classes, and their probabilities
    responses/             volunteer, item, label and time of each response, in order of time; and its attributes
    by_item/               the responses item by item: starts, volunteer, label, row
    by_volunteer/          the responses volunteer by volunteer: starts, item, label, time, row

Columns are NumPy files of codes and times. An attribute of responses that is not of plain numbers is a column of codes,
whose values are in a Parquet file beside it. Nothing in a store is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph import __version__
from crowdgraph.core._arrays import Array, grouped, id_array, is_null, lock, object_array, row_blocks
from crowdgraph.core._maps import release, reserve
from crowdgraph.core.clock import Clock, is_sorted
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.stored import CodedValues, ItemMajor, StoredAttributes, StoredRows, VolunteerMajor
from crowdgraph.core.tables import NodeKind, NodeTable, ResponseTable
from crowdgraph.errors import IdError, StoreError
from crowdgraph.io._columns import attribute_array
from crowdgraph.io._directories import Record, put, recover
from crowdgraph.io._files import NO_SPACE_ERRORS, file_digest, reason_of, undamaged, write_failure
from crowdgraph.io._repeated_text import repeated_text
from crowdgraph.io._temporary import PART, label_of, locked, sync_tree
from crowdgraph.io._unpacked import check_unpacked, unpacked_limit
from crowdgraph.messages import Hint, quote

__all__ = ["ResponseStore", "StoreWriter", "is_store", "open_store", "save_store"]

FORMAT = "crowdgraph columns"
VERSION = 1
MANIFEST = "manifest.json"
# The record of a conversion, which lies in an unfinished store.
CONVERSION = "conversion.json"
ROLES = ("volunteer", "item", "label", "time")
# What classes and labels in a store may be.
PLAIN_NAMES = (bool, int, float, str)


def is_store(path: str | PathLike[str]) -> bool:
    """Return whether a path names a store, whole or damaged."""
    return (Path(path) / MANIFEST).is_file() and (Path(path) / "by_item").is_dir()


def open_store(path: str | PathLike[str], *, verify: bool = False) -> ResponseStore:
    """Open a directory of columns that `CrowdGraph.save` or ``crowdgraph convert --store`` wrote, without reading it.

    Parameters
    ----------
    path
        The directory.
    verify
        Whether to read every file and compare it with its checksum, and the responses by item and by volunteer with
        those in order of time; sizes are always compared.

    Raises
    ------
    StoreError
        If there is no such store, it was written by another version, or a file of it is missing, cut short or changed.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "supernovae.store"
    >>> cg.simulate.crowd(seed=0).graph.save(path, format="columns")
    >>> store = cg.open_store(path)
    >>> store
    ResponseStore: 100 volunteers, 500 items, 5,000 responses
    >>> store.graph().n_responses
    5000
    """
    with undamaged(path):
        store = ResponseStore(Path(path), _read_manifest(Path(path)))
        store.check_files(verify=verify)
        return store


def _open_again(path: Path, fingerprint: str) -> ResponseStore:
    """Open a store in another process, and raise unless it is the same."""
    store = open_store(path)
    if store.fingerprint != fingerprint:
        raise StoreError(
            f"{fspath(path)!r} is another store than when it was opened first; replace no store that is in use."
        )
    return store


def _read_manifest(path: Path) -> Mapping[str, Any]:
    name = repr(fspath(path))
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if path.is_file():
            raise StoreError(
                f"{name} is a file, not a store.",
                hint=Hint(
                    "Make a store of it with cg.build_store(file, directory), or read it with cg.read_csv, "
                    "cg.read_parquet or cg.load.",
                    cli=f"Make a store of it: crowdgraph convert {path.name} --store {path.stem}.store.",
                ),
            ) from None
        if not path.exists():
            raise StoreError(f"There is no store {name}: no such directory can be seen from here.") from None
        raise StoreError(
            f"{name} is not a store: it has no {MANIFEST}. Give the directory that graph.save(path, format='columns') "
            "or crowdgraph convert --store wrote."
        ) from None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"The {MANIFEST} of {name} cannot be read: {error}. If it is cut short, convert the responses again."
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError(f"{name} is not a store of crowdgraph: its {MANIFEST} is of another format.")
    if manifest.get("version") != VERSION:
        raise StoreError(
            f"{name} is a store of version {manifest.get('version')}, written by crowdgraph "
            f"{manifest.get('written_by')}; this is crowdgraph {__version__}, which reads version {VERSION}. Convert "
            "the responses again, or use the version that wrote it."
        )
    missing = [key for key in ("classes", "labels", "clock", "sizes", "files", "fingerprint") if key not in manifest]
    if missing:
        raise StoreError(f"The {MANIFEST} of {name} is damaged: it lacks {quote(missing)}.")
    if wrong := _wrong_part(manifest):
        raise StoreError(f"The {MANIFEST} of {name} is damaged: its {wrong} cannot be what a store was written with.")
    return manifest


def _wrong_part(manifest: Mapping[str, Any]) -> str:
    """Return the part of a manifest that cannot be right, if there is one: nobody knows who wrote it."""
    sizes, attributes, files = manifest["sizes"], manifest.get("attributes", {}), manifest["files"]
    counts = ("volunteers", "items", "responses", "answers", "repeats")
    if not isinstance(sizes, dict) or not all(type(sizes.get(name)) is int and sizes[name] >= 0 for name in counts):
        return "sizes"
    for part in ("classes", "labels"):
        if not isinstance(manifest[part], list) or not all(isinstance(name, PLAIN_NAMES) for name in manifest[part]):
            return part
    if not isinstance(files, dict) or not all(map(is_inside, files)):
        return "list of files"
    if not isinstance(attributes, dict) or not all(map(is_inside, attributes.values())):
        return "attributes"
    clock = manifest["clock"]
    return "" if isinstance(clock, dict) and clock.keys() == {"kind", "zone"} else "clock"


def is_inside(name: object) -> bool:
    """Return whether the name of a file, as a manifest has it, is that of a file in the same directory or below."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


@dataclass(frozen=True, eq=False, repr=False)
class ResponseStore:
    """A directory of columns, opened by `open_store`; `graph` gives it as an ordinary graph.

    Attributes
    ----------
    path
        The directory.
    manifest
        What it says about itself.
    """

    path: Path
    manifest: Mapping[str, Any]
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    _are_permutations: set[NodeKind] = field(default_factory=set)

    def __repr__(self) -> str:
        return (
            f"ResponseStore: {self.n_volunteers:,} volunteers, {self.n_items:,} items, {self.n_responses:,} responses"
        )

    @property
    def n_volunteers(self) -> int:
        """The number of volunteers."""
        return int(self.manifest["sizes"]["volunteers"])

    @property
    def n_items(self) -> int:
        """The number of items."""
        return int(self.manifest["sizes"]["items"])

    @property
    def n_responses(self) -> int:
        """The number of responses."""
        return int(self.manifest["sizes"]["responses"])

    @property
    def n_answers(self) -> int:
        """The number of responses with a label."""
        return int(self.manifest["sizes"]["answers"])

    @property
    def lowest_label(self) -> int:
        """The lowest code of a label: -1 if some responses are no answers, otherwise 0."""
        # Where all are answers nobody looks for those that are none, and compiled code follows every code.
        return 0 if self.n_answers == self.n_responses else -1

    @property
    def n_repeats(self) -> int:
        """The number of answers by a volunteer who had answered the item before."""
        return int(self.manifest["sizes"]["repeats"])

    @property
    def classes(self) -> tuple[Any, ...]:
        """What items can be."""
        return tuple(self.manifest["classes"])

    @property
    def labels(self) -> tuple[Any, ...]:
        """What volunteers can say."""
        return tuple(self.manifest["labels"])

    @property
    def clock(self) -> Clock:
        """What the times are."""
        return Clock(**self.manifest["clock"])

    @property
    def fingerprint(self) -> str:
        """A checksum of everything in the store: two stores with the same fingerprint hold the same crowd."""
        return str(self.manifest["fingerprint"])

    @cached_property
    def by_item(self) -> ItemMajor:
        """The responses, item by item."""
        maps = ItemMajor(*(self.column(f"by_item/{name}") for name in ItemMajor._fields))
        self._check_starts(maps.starts, self.n_items, "item")
        return maps

    @cached_property
    def by_volunteer(self) -> VolunteerMajor:
        """The responses, volunteer by volunteer."""
        maps = VolunteerMajor(*(self.column(f"by_volunteer/{name}") for name in VolunteerMajor._fields))
        self._check_starts(maps.starts, self.n_volunteers, "volunteer")
        return maps

    def column(self, name: str) -> Array:
        """Return a column as a read-only map."""
        path = self.path / f"{name}.npy"
        try:
            column: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # NumPy parses a damaged header as Python, which fails in many ways
            raise StoreError(f"The column {name!r} of {fspath(self.path)!r} cannot be read: {error}.") from error
        expected = {"by_item/starts": self.n_items + 1, "by_volunteer/starts": self.n_volunteers + 1}
        is_code = name.split("/")[1] in ("starts", "row", "volunteer", "item", "label")
        if column.dtype.hasobject or not column.dtype.isnative or (is_code and column.dtype.kind != "i"):
            raise StoreError(f"The column {name!r} of {fspath(self.path)!r} is of {column.dtype}: it is damaged.")
        if column.shape != (expected.get(name, self.n_responses),):
            raise StoreError(
                f"The column {name!r} of {fspath(self.path)!r} has shape {column.shape}; expected "
                f"({expected.get(name, self.n_responses):,},). The store is damaged: convert the responses again."
            )
        return column

    def nodes(self, kind: NodeKind) -> NodeTable:
        """Return the volunteers or the items."""
        table = self._parquet(f"{kind}s")
        ids, *attributes = table.column_names
        column = table[ids]
        expected = self.n_volunteers if kind == "volunteer" else self.n_items
        if len(column) != expected:
            raise StoreError(
                f"{fspath(self.path)!r} is damaged: it has {len(column):,} {kind}s; expected {expected:,}."
            )
        values = lock(column.to_numpy()) if pa.types.is_int64(column.type) else id_array(column.to_pylist())
        return NodeTable(kind, values, {name: attribute_array(table[name]) for name in attributes})

    def gold(self, items: NodeTable) -> Gold:
        """Return the known classes of the items."""
        table = self._parquet("gold")
        if not table.num_rows:
            return Gold.unknown(items, self.classes)
        probs = np.full((len(items), len(self.classes)), np.nan)
        rows = table["item"].to_numpy()
        if not 0 <= rows.min() <= rows.max() < len(items):
            raise StoreError(f"{fspath(self.path)!r} is damaged: its gold names items that do not exist.")
        probs[rows] = np.column_stack([table[f"p{code}"].to_numpy() for code in range(len(self.classes))])
        return Gold(items, self.classes, lock(probs), n_unmatched=int(self.manifest["sizes"].get("unmatched_gold", 0)))

    def graph(self) -> CrowdGraph:
        """Return the store as a graph, whose columns are maps: they are read where they are needed.

        All methods of graphs work. Models that stream, such as `IBCC`, take ``memory=`` to stay below a limit.
        """
        responses = self.responses()
        sizes = {
            "volunteer": (0, self.n_volunteers),
            "item": (0, self.n_items),
            "label": (self.lowest_label, len(self.labels)),
        }
        for role, (lowest, size) in sizes.items():
            self._check_codes(getattr(responses, role), role, lowest, size)
        self._check_times(responses.time)
        items = self.nodes("item")
        graph = object.__new__(CrowdGraph)
        graph._fill(self.nodes("volunteer"), items, responses, self.classes, self.labels, self.gold(items), {})
        return graph

    def responses(self) -> ResponseTable:
        """Return the responses, whose columns are maps and are not checked; `graph` checks them."""
        return ResponseTable.trusted(
            **{role: self.column(f"responses/{role}") for role in ROLES},
            clock=self.clock,
            attributes=StoredAttributes(
                {name: self._attribute(f"responses/{file}") for name, file in self.manifest["attributes"].items()}
            ),
            stored=StoredRows(self, 0, self.n_responses),
        )

    def _attribute(self, name: str) -> Array | CodedValues:
        """Return an attribute of the responses: a map of numbers, or a map of codes with their values."""
        column = self.column(name)
        if f"{name}.parquet" not in self.manifest["files"]:
            return column
        values = object_array(self._parquet(name)["value"].to_pylist())
        self._check_codes(column, name, -1, len(values))
        return CodedValues(column, lock(np.append(values, [None])))

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the store by itself, so that nothing is copied.
        return _open_again, (self.path, self.fingerprint)

    def check_files(self, *, verify: bool = False) -> None:
        """Raise if a file is missing or of another size or, with `verify`, if its checksum differs."""
        for name, facts in self.manifest["files"].items():
            path = self.path / name
            if not path.is_file():
                raise StoreError(f"{fspath(self.path)!r} lacks its file {name!r}; convert the responses again.")
            if path.stat().st_size != facts["bytes"]:
                raise StoreError(
                    f"The file {name!r} of {fspath(self.path)!r} has {path.stat().st_size:,} bytes; expected "
                    f"{facts['bytes']:,}. It is cut short or damaged: convert the responses again."
                )
            if verify and file_digest(path) != facts["checksum"]:
                raise StoreError(
                    f"The file {name!r} of {fspath(self.path)!r} has another checksum than when it was written: it was "
                    "changed or damaged. Convert the responses again."
                )
            self._stamps[name] = _stamp(path)
        if verify:
            for kind in get_args(NodeKind):
                self._check_agreement(kind)

    def check_unchanged(self) -> None:
        """Raise if a file has changed since the store was opened."""
        for name, stamp in self._stamps.items():
            path = self.path / name
            if not path.is_file() or _stamp(path) != stamp:
                raise StoreError(
                    f"The file {name!r} of {fspath(self.path)!r} changed while it was read, so the results are of no "
                    "crowd at all. Let nobody write to a store that is being read."
                )

    def _parquet(self, name: str) -> pa.Table:
        path = self.path / f"{name}.parquet"
        try:
            with pq.ParquetFile(path) as file:
                packed = path.stat().st_size
                unpacked = repeated_text(path, file.metadata, limit=unpacked_limit(packed))
                check_unpacked(repr(fspath(path)), packed=packed, unpacked=unpacked, error=StoreError)
                return file.read()
        except StoreError:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StoreError(
                f"The table {path.name!r} of {fspath(self.path)!r} cannot be read: {reason_of(error)}."
            ) from error

    def _check_starts(self, starts: Array, n_groups: int, kind: str) -> None:
        # Compiled code runs from one start to the next without looking again.
        if starts[0] != 0 or starts[n_groups] != self.n_responses or not is_sorted(starts):
            raise StoreError(
                f"{fspath(self.path)!r} is damaged: the responses of each {kind} do not follow each other."
            )

    def _check_codes(self, column: Array, role: str, lowest: int, size: int) -> None:
        for block in row_blocks(len(column)):
            self._check_range(column[block], role, lowest, size)
            release(column, block.start, block.stop)

    def _check_range(self, codes: Array, role: str, lowest: int, size: int) -> None:
        if len(codes) and not lowest <= codes.min() <= codes.max() < size:
            raise StoreError(
                f"{fspath(self.path)!r} is damaged: codes in {role!r} run from {codes.min()} to {codes.max()}; "
                f"expected {lowest} to {size - 1}."
            )

    def check_rows(self, kind: NodeKind, rows: slice) -> None:
        """Raise if codes in some rows of `by_item` or `by_volunteer` point at what does not exist."""
        columns: ItemMajor | VolunteerMajor = self.by_item if kind == "item" else self.by_volunteer
        sizes = {
            "volunteer": (0, self.n_volunteers),
            "item": (0, self.n_items),
            "label": (self.lowest_label, len(self.labels)),
            "row": (0, self.n_responses),
        }
        for name in sizes.keys() & set(columns._fields):
            self._check_range(getattr(columns, name)[rows], f"by_{kind}/{name}", *sizes[name])

    def check_permutation(self, kind: NodeKind) -> None:
        """Raise unless `by_item` or `by_volunteer` has every response once."""
        if kind in self._are_permutations:
            return
        row: Array = (self.by_item if kind == "item" else self.by_volunteer).row
        # A bit for each response, which is set where it is met.
        bits = np.zeros(-(-self.n_responses // 8), dtype=np.uint8)
        for block in row_blocks(self.n_responses):
            self.check_rows(kind, block)
            numbers = row[block]
            np.bitwise_or.at(bits, numbers >> 3, np.left_shift(np.uint8(1), (numbers & 7).astype(np.uint8)))
            release(row, block.start, block.stop)
        if int(np.bitwise_count(bits).sum(dtype=np.int64)) < self.n_responses:
            raise StoreError(f"{fspath(self.path)!r} is damaged: 'by_{kind}/row' has some responses twice.")
        self._are_permutations.add(kind)

    def _check_agreement(self, kind: NodeKind) -> None:
        """Raise unless the responses by item, or by volunteer, are those in order of time."""
        self.check_permutation(kind)
        columns: ItemMajor | VolunteerMajor = self.by_item if kind == "item" else self.by_volunteer
        owners, starts = self.column(f"responses/{kind}"), columns.starts
        others = {name: self.column(f"responses/{name}") for name in set(columns._fields) - {"starts", "row"}}
        for block in row_blocks(self.n_responses):
            row = np.asarray(columns.row[block])
            owner = np.searchsorted(starts, np.arange(block.start, block.stop), side="right") - 1
            alike = all((getattr(columns, name)[block] == column[row]).all() for name, column in others.items())
            if not alike or (owners[row] != owner).any():
                raise StoreError(f"{fspath(self.path)!r} is damaged: 'by_{kind}' has other responses than 'responses'.")
            for column in (*columns[1:], owners, *others.values()):
                release(column)

    def _check_times(self, times: Array) -> None:
        self.clock.check_kind(times)
        for block in row_blocks(len(times)):
            # With the first of the next block, so that no step between two blocks is missed.
            if not is_sorted(times[block.start : block.stop + 1]):
                raise StoreError(f"{fspath(self.path)!r} is damaged: its times are not sorted.")
            release(times, block.start, block.stop)


class StoreWriter:
    """Writes a store: into a directory beside it, which takes its place once everything is written and checked.

    Use it as a context; after an error the old store, if there was one, is unchanged.

    Parameters
    ----------
    path
        The directory to write.
    force
        Whether a store that is there is replaced; nothing else ever is.
    resume
        Whether to keep what an earlier writer left behind, and to leave behind what is written when it fails.
    """

    def __init__(self, path: str | PathLike[str], *, force: bool = False, resume: bool = False) -> None:
        self.path = Path(os.path.realpath(path))
        self.folder = self.path.with_name(f".{label_of(self.path)}{PART}")
        self._resume = resume
        self._checksums: dict[str, Future[str]] = {}
        self._pool = ThreadPoolExecutor(2)
        self._lock = ExitStack()
        recover(self.path, STORE)
        if self.path.exists() and not (force and is_store(self.path)):
            is_other = force and not is_store(self.path)
            raise StoreError(
                f"{fspath(path)!r} is there already" + (", and it is not a store." if is_other else "."),
                hint=Hint(
                    "Name a new directory for the store, or remove it.",
                    cli="Name a new directory for the store"
                    + (", or remove it." if is_other else ", or use --force to replace a store."),
                ),
            )

    def __enter__(self) -> StoreWriter:
        self._make_folders()
        if self._lock.enter_context(locked(self.folder)) is False:
            raise StoreError(
                f"Another process is writing {fspath(self.path)!r} now; wait for it, or name another directory."
            )
        if not self._resume:
            self.clear()
        return self

    def _make_folders(self) -> None:
        try:
            for name in ("responses", "by_item", "by_volunteer"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"Cannot write to {fspath(self.path.parent)!r}: {error.strerror}. Name a directory elsewhere."
            ) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with self._lock:
            self._pool.shutdown(cancel_futures=True)
            if kind is None or self._resume:
                return
            self.discard()
        if isinstance(error, OSError) and error.errno in NO_SPACE_ERRORS:
            why, advice = write_failure(error)
            raise StoreError(
                f"{fspath(self.path)!r} could not be written: {why}. What was there is unchanged{advice}."
            ) from error

    def discard(self) -> None:
        """Remove what was written so far."""
        rmtree(self.folder, ignore_errors=True)

    def clear(self) -> None:
        """Begin anew."""
        for part in self.folder.iterdir():
            if part.is_dir():
                rmtree(part)
            else:
                part.unlink()
        self._make_folders()

    def column(self, name: str, n_rows: int, dtype: Any) -> Array:
        """Return a new column to be filled in: a writable map of its file."""
        path = self.folder / f"{name}.npy"
        if not n_rows:
            np.save(path, np.zeros(0, dtype))
            return np.zeros(0, dtype)
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=(n_rows,))
        with path.open("rb+") as file:
            reserve(file.fileno(), path.stat().st_size)
        return array

    def write(self, name: str, values: Array) -> None:
        """Write a column block by block."""
        column = self.column(name, len(values), values.dtype)
        for block in row_blocks(len(values)):
            column[block] = values[block]
            release(column, block.start, block.stop)

    def nodes(self, table: NodeTable) -> None:
        """Write the ids and attributes of nodes."""
        self.table(f"{table.kind}s", {table.kind: _id_column(table), **_attribute_columns(table.attributes)})

    def gold(self, rows: Array, probs: Array) -> None:
        """Write the known classes: the codes of items, and the probabilities of their classes."""
        self.table(
            "gold", {"item": pa.array(rows)} | {f"p{code}": pa.array(probs[:, code]) for code in range(probs.shape[1])}
        )

    def table(self, name: str, columns: Mapping[str, pa.Array]) -> None:
        """Write a table of nodes, of gold or of the values of an attribute."""
        pq.write_table(pa.table(dict(columns)), self.folder / f"{name}.parquet")

    def complete(self, *names: str) -> None:
        """Begin to write files through to the disk and to take their checksums, while they are in memory anyway."""
        for name in names:
            if name not in self._checksums:
                self._checksums[name] = self._pool.submit(_synced_checksum, self.folder / name)

    def finish(
        self,
        *,
        classes: tuple[Any, ...],
        labels: tuple[Any, ...],
        clock: Clock,
        sizes: Mapping[str, int],
        attributes: Mapping[str, str] | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the manifest with the checksums of all files, and put the store in its place.

        Parameters
        ----------
        classes, labels, clock, sizes, attributes
            Of the crowd.
        source
            What it was made of, which does not count for its fingerprint.
        """
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": __version__,
            "classes": [plain_name(name) for name in classes],
            "labels": [plain_name(name) for name in labels],
            "clock": {"kind": clock.kind, "zone": clock.zone},
            "sizes": dict(sizes),
            "attributes": dict(attributes or {}),
        }
        names = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if _is_part(path)]
        self.complete(*sorted(names))
        manifest["files"] = {
            name: {"bytes": (self.folder / name).stat().st_size, "checksum": self._checksums[name].result()}
            for name in sorted(names)
        }
        manifest["fingerprint"] = hashlib.blake2b(json.dumps(manifest).encode(), digest_size=16).hexdigest()
        if source is not None:
            manifest["source"] = dict(source)
        with (self.folder / MANIFEST).open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        sync_tree(self.folder)
        put(self.folder, self.path, STORE, is_replacing=True)


def _store_files(folder: Path) -> set[str]:
    """Return the files that a store's manifest lists; none if there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {MANIFEST, CONVERSION, *manifest["files"]} if manifest["format"] == FORMAT else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


STORE = Record(MANIFEST, _store_files)


def save_store(graph: CrowdGraph, path: str | PathLike[str]) -> None:
    """Write a graph as a directory of columns; see `CrowdGraph.save`."""
    responses, answers = graph.responses, graph.answers
    with StoreWriter(path) as writer:
        for role in ROLES:
            writer.write(f"responses/{role}", getattr(responses, role))
        for kind, n_groups, names in (
            ("item", graph.n_items, ("volunteer", "label")),
            ("volunteer", graph.n_volunteers, ("item", "label", "time")),
        ):
            order, starts = grouped(getattr(responses, kind), n_groups)
            writer.write(f"by_{kind}/starts", starts.astype(np.int64))
            for name in names:
                writer.write(f"by_{kind}/{name}", getattr(responses, name)[order])
            writer.write(f"by_{kind}/row", order)
        attributes = {}
        for number, (name, values) in enumerate(responses.attributes.items()):
            attributes[name] = f"attribute_{number}"
            column = values
            if values.dtype == object:
                column, distinct = _coded_attribute(name, values)
                writer.table(f"responses/attribute_{number}", {"value": distinct})
            writer.write(f"responses/attribute_{number}", column)
        writer.nodes(graph.volunteers.table)
        writer.nodes(graph.items.table)
        writer.gold(np.flatnonzero(graph.gold.known), graph.gold.probs[graph.gold.known])
        writer.finish(
            classes=graph.classes,
            labels=graph.labels,
            clock=responses.clock,
            sizes={
                "volunteers": graph.n_volunteers,
                "items": graph.n_items,
                "responses": graph.n_responses,
                "answers": len(answers),
                "repeats": answers.n_repeats,
                "unmatched_gold": graph.gold.n_unmatched,
            },
            attributes=attributes,
        )


def _coded_attribute(name: str, values: Array) -> tuple[Array, pa.Array]:
    """Return an attribute that is not of plain numbers as codes, in order of first appearance, and its values."""
    column = attribute_column(name, values)
    if pa.types.is_null(column.type):
        return np.full(len(values), -1, np.int32), column[:0]
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int32)
    return codes, encoded.dictionary


def _is_part(path: Path) -> bool:
    """Return whether a file is a column or a table of a store."""
    return path.is_file() and path.suffix in (".npy", ".parquet")


def _synced_checksum(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return file_digest(path)


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def plain_name(name: Any) -> Any:
    """Return a class or label if a store can hold it."""
    if isinstance(name, PLAIN_NAMES):
        return name
    raise StoreError(
        f"The class or label {name!r} cannot be kept in a store of columns, which holds text and numbers; save the "
        "graph as one file: graph.save('name.crowd')."
    )


def _id_column(table: NodeTable) -> pa.Array:
    if table.ids.dtype == np.int64:
        return pa.array(table.ids)
    ids = table.ids.tolist()
    other = next((value for value in ids if type(value) is not str), None)
    if other is not None:
        raise IdError(
            f"The {table.kind} id {other!r} is neither text nor a whole number like the others, so a store of columns "
            "cannot hold it; save the graph as one file: graph.save('name.crowd')."
        )
    return pa.array(ids, pa.large_string())


def _attribute_columns(attributes: Mapping[str, Array]) -> dict[str, pa.Array]:
    return {name: attribute_column(name, column) for name, column in attributes.items()}


def attribute_column(name: str, column: Array) -> pa.Array:
    """Return an attribute as an Arrow column; raise if Arrow has no type for its values."""
    values: Any = column
    try:
        if column.dtype == object:
            values = [None if is_null(value) else value for value in column.tolist()]
            types = {type(value) for value in values if value is not None}
            if len(types) > 1 or types & {list, tuple, dict, set, frozenset}:
                names = " and ".join(sorted(kind.__name__ for kind in types))
                raise TypeError(f"it holds values of type {names}")
        array = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise StoreError(
            f"The attribute {name!r} cannot be kept in a store of columns ({error}); leave it out, or save the graph "
            "as one file: graph.save('name.crowd')."
        ) from error
    return array.cast(pa.large_string()) if pa.types.is_string(array.type) else array
