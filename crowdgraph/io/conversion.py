"""Convert tables of responses of any size to a store of columns, within a limit of memory.

The rows are read once, batch by batch, and written as codes. They are sorted on disk by time, unless they are sorted
already, and then item by item and volunteer by volunteer (see `crowdgraph.io._column_files`). Only ids stay in memory.

A conversion has phases, and a record in the unfinished directory says which are complete, so that the next conversion
of the same files goes on from there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crowdgraph import __version__
from crowdgraph.core._arrays import Array, id_array, value_tuple
from crowdgraph.core._memory import in_words, memory_in_bytes, resident_bytes
from crowdgraph.core.clock import Clock
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import Duplicates, Missing
from crowdgraph.core.tables import RESPONSE_NAMES, NodeTable
from crowdgraph.errors import (
    ColumnError,
    DroppedRowsWarning,
    InputError,
    ParameterError,
    StoreError,
    check_choice,
    warn,
)
from crowdgraph.io._conversion_order import Ordering, write_groups
from crowdgraph.io._conversion_plan import READING_BYTES, MemoryLimit, Plan, file_stamp, n_ids
from crowdgraph.io._conversion_rows import RowReader
from crowdgraph.io._files import NO_SPACE_ERRORS
from crowdgraph.io._gold import gold_items, read_gold
from crowdgraph.io._gold_files import GoldFile, typed_alike
from crowdgraph.io._row_streams import RowStream
from crowdgraph.io._temporary import sync
from crowdgraph.io.columns import CONVERSION, VERSION, ResponseStore, StoreWriter, open_store, plain_name
from crowdgraph.io.frames import role_columns
from crowdgraph.messages import quote

__all__ = ["build_store"]


def build_store(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    path: str | PathLike[str],
    *,
    volunteer: str = "volunteer",
    item: str = "item",
    label: str = "label",
    time: str | None = "time",
    gold: Any = None,
    classes: Iterable[Hashable] | None = None,
    labels: Iterable[Hashable] | None = None,
    duplicates: Duplicates = "all",
    missing: Missing = "error",
    attributes: Iterable[str] | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
    memory: str | int = "4GB",
    force: bool = False,
    progress: bool = False,
) -> ResponseStore:
    r"""Convert a table of responses that may be larger than memory to a store of columns, for `open_store` and `load`.

    The store is that of ``CrowdGraph.from_responses(table).save(path, format="columns")``, but the table is never in
    memory. A conversion that was interrupted goes on when it is called again with the same files; what was done is in a
    directory beside `path` whose name begins with a dot. The directory `path` is there when the store is complete.

    Parameters
    ----------
    source
        Parquet files, a directory of them, or CSV files (plain or compressed) with one row for each response. Several
        are read in order (those of a directory by name).
    path
        The directory to write.
    volunteer, item, label, time
        The names of the columns, as in `CrowdGraph.from_responses`; ``time=None`` leaves times out. Ids are text or
        whole numbers.
    gold
        A Parquet or CSV file with the columns `item` and `label`, or gold in any form that `CrowdGraph.from_responses`
        takes.
    classes, labels, duplicates, missing
        As in `CrowdGraph.from_responses`.
    attributes
        The further columns to keep, as attributes of the responses; all if left out.
    delimiter, encoding
        Of CSV files. Types of their columns are those of the first rows (32 MB).
    memory
        How much memory the process may take, such as ``"4GB"``.
    force
        Whether to replace a store that is there; nothing else is ever replaced.
    progress
        Whether to show progress bars.

    Returns
    -------
    ResponseStore
        The store; ``store.manifest["source"]`` says how many rows were read and how many of them left out.

    Raises
    ------
    InputError
        If the table cannot become a graph. Nothing is left behind.
    StoreError
        If the store cannot be written. What was done stays, and the same call goes on from there.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "responses.csv").write_text("volunteer,item,label\nanna,x,yes\nbert,x,no\n")
    >>> store = cg.build_store(folder / "responses.csv", folder / "responses.store")
    >>> store
    ResponseStore: 2 volunteers, 1 items, 2 responses
    >>> cg.load(folder / "responses.store").labels
    ('no', 'yes')
    """
    check_choice("duplicates", duplicates, ("all", "first", "last", "error"))
    check_choice("missing", missing, ("error", "drop", "keep"))
    stream = RowStream(source, delimiter=delimiter, encoding=encoding)
    names = _columns_to_read(stream.names, attributes, volunteer=volunteer, item=item, label=label, time=time)
    writer = StoreWriter(path, force=force, resume=True)
    plan = Plan(
        stream=stream,
        folder=writer.folder,
        names=names,
        labels=None if labels is None else value_tuple(labels, what="labels"),
        duplicates=duplicates,
        missing=missing,
        memory=MemoryLimit(memory_in_bytes(memory)),
        progress=progress,
    )
    class_names = None if classes is None else value_tuple(classes, what="classes")
    if isinstance(gold, str | PathLike):
        gold = GoldFile(gold, delimiter, encoding)
    known = _KnownClasses(gold, class_names, names["item"], label)
    with writer:
        _Conversion(plan, writer, known).run()
    return open_store(path)


def _columns_to_read(
    header: list[str], attributes: Iterable[str] | None, *, time: str | None, **roles: str
) -> dict[str, str]:
    """Return the column of each role, and each attribute under its own name."""
    available = [name for name in header if name != "time" or time is not None]
    names = role_columns(available, None, time=time or "time", **roles)
    names = {role: name for role, name in names.items() if name in available}
    further = [name for name in available if name not in names.values()]
    if attributes is not None:
        chosen = [attributes] if isinstance(attributes, str) else list(attributes)
        absent = [name for name in chosen if name not in further]
        if absent:
            raise ColumnError(
                f"There is no further column {absent[0]!r}; there are {quote(further, most=12) or 'none'}."
            )
        further = chosen
    taken = [name for name in further if name in RESPONSE_NAMES]
    if taken:
        raise ColumnError(f"An attribute of the responses cannot be called {taken[0]!r}; rename the column.")
    return names | {name: name for name in further}


@dataclass(frozen=True)
class _KnownClasses:
    """Gold, as the user gave it; `item` and `label` are the names of its columns."""

    gold: Any
    classes: tuple[Hashable, ...] | None
    item: str
    label: str

    def items(self, labels: tuple[Hashable, ...] = ()) -> list[Hashable]:
        """Return the items that gold names; raise if it cannot be read."""
        if self.gold is None:
            return []
        return gold_items(self.gold, item=self.item, label=self.label, names=self.classes or labels)

    def of(self, ids: pa.Array, labels: tuple[Hashable, ...]) -> tuple[Gold, Array]:
        """Return gold of a table of those items that it names, and their codes among all ids."""
        own = int if pa.types.is_int64(ids.type) else str
        items_of_gold = self.items(labels)
        if isinstance(self.gold, GoldFile):
            items_of_gold = typed_alike(items_of_gold, [own()])
        named = pa.array([name for name in items_of_gold if type(name) is own], ids.type)
        # With some others, whose types are named where gold is of other items.
        codes = np.union1d(np.arange(min(len(ids), 100)), np.flatnonzero(np.asarray(pc.is_in(ids, value_set=named))))
        few = ids.take(pa.array(codes))
        items = NodeTable("item", few.to_numpy() if own is int else id_array(few.to_pylist()))
        gold = read_gold(self.gold, items=items, labels=labels, classes=self.classes, item=self.item, label=self.label)
        return gold, codes[gold.known]


@dataclass
class _Conversion:
    """One conversion, and how far it is."""

    plan: Plan
    writer: StoreWriter
    known: _KnownClasses
    phases: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The unfinished directory."""
        return self.plan.folder

    def run(self) -> None:
        """Go through the phases that are not complete yet, and put the store in its place."""
        with self._clean_failure():
            self.plan.memory.check(resident_bytes() + READING_BYTES, "reading the responses alone needs")
            self.known.items()
            self._resume()
            rows = self._phase("read", lambda: RowReader(self.plan).read())
            n_rows = self._phase("order", lambda: Ordering(self.plan, rows).write())
            rmtree(self.folder / "rows", ignore_errors=True)
            counts = self._phase("by_item", lambda: write_groups(self.plan, "item", ("volunteer", "label")))
            self._phase("by_volunteer", lambda: write_groups(self.plan, "volunteer", ("item", "label", "time")))
            self._finish(rows, n_rows, counts)

    def _finish(self, rows: dict[str, Any], n_rows: int, counts: dict[str, int]) -> None:
        """Write what is left, and put the store in its place."""
        labels = tuple(rows["labels"])
        ids = pq.read_table(self.folder / "items.parquet")["item"].combine_chunks()
        gold, gold_rows = self.known.of(ids, labels)
        # Without a class nobody could open the store as a graph.
        value_tuple(gold.classes, what="classes")
        if rows["skipped"]:
            warn(rows["warning"], DroppedRowsWarning)
        self.writer.gold(gold_rows, gold.probs[gold.known])
        self.writer.finish(
            classes=gold.classes,
            labels=labels,
            clock=Clock(**rows["clock"]),
            sizes={
                "volunteers": n_ids(self.folder / "volunteers.parquet"),
                "items": len(ids),
                "responses": n_rows,
                "answers": counts["answers"],
                "repeats": counts["repeats"],
                "unmatched_gold": gold.n_unmatched,
            },
            attributes=rows["attributes"],
            source={
                "files": [file.name for file in self.plan.stream.paths],
                "rows": rows["read"],
                "skipped": rows["read"] - n_rows,
            },
        )
        (self.writer.path / CONVERSION).unlink()

    # The record

    def _request(self) -> dict[str, Any]:
        """Return what must be the same for a conversion to go on."""
        plan = self.plan
        return {
            "format": VERSION,
            "written_by": __version__,
            "files": [list(file_stamp(path)) for path in plan.stream.paths],
            "names": plan.names,
            "labels": None if plan.labels is None else [plain_name(name) for name in plan.labels],
            "duplicates": plan.duplicates,
            "missing": plan.missing,
        }

    def _resume(self) -> None:
        """Read the record of an interrupted conversion; begin anew if it was of something else."""
        try:
            record = json.loads((self.folder / CONVERSION).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = {}
        if record.get("request") == self._request():
            self.phases = record["phases"]
        else:
            self.writer.clear()

    def _phase(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a phase, unless it is complete, and record that it is; return what it returned."""
        if name in self.phases:
            return self.phases[name]
        facts = work()
        written = {"order": "responses", "by_item": "by_item", "by_volunteer": "by_volunteer"}
        if name in written:
            self.writer.complete(
                *(path.relative_to(self.folder).as_posix() for path in (self.folder / written[name]).iterdir())
            )
        for path in self.folder.rglob("*"):
            if path.is_file():
                sync(path)
        self.phases[name] = facts
        part = self.folder / f"{CONVERSION}.part"
        part.write_text(json.dumps({"request": self._request(), "phases": self.phases}), encoding="utf-8")
        sync(part)
        part.replace(self.folder / CONVERSION)
        return facts

    @contextmanager
    def _clean_failure(self) -> Iterator[None]:
        """Leave nothing behind where the rows are at fault, and say how to go on where the disk is full."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_SPACE_ERRORS:
                raise
            free = in_words(disk_usage(self.folder).free)
            complete = f" ({', '.join(self.phases)})" if self.phases else ""
            raise StoreError(
                f"{fspath(self.writer.path)!r} could not be written: {os.strerror(error.errno)}, with {free} free. "
                f"Free some space on that disk and repeat the conversion: it resumes, since what is complete{complete} "
                f"is kept in {fspath(self.folder)!r}."
            ) from error
        except (InputError, ParameterError):
            if "order" not in self.phases:
                self.writer.discard()
            raise
