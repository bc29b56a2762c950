"""Convert tables of responses of any size to a store of columns, within a limit of memory.

The rows are read once, batch by batch, and written as codes. Where their times are not sorted, and then item by item and
volunteer by volunteer, they are sorted on disk (see `crowdgraph.io._column_files`). What stays in memory are the ids.

A conversion has phases, and a record in the unfinished directory says which are complete, so that the next conversion
of the same files goes on from there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from crowdgraph.core._arrays import Array, id_array, object_array, value_tuple
from crowdgraph.core._memory import in_words, memory_in_bytes, resident_bytes
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._text import quantity
from crowdgraph.core.clock import UNITS, Clock
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import Duplicates, Missing
from crowdgraph.core.tables import NODE_NAMES, RESPONSE_NAMES, NodeTable
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphError,
    DroppedRowsWarning,
    InputError,
    LabelError,
    MissingValueError,
    ParameterError,
    StoreError,
    TimeError,
    check_choice,
    warn,
)
from crowdgraph.io._column_files import (
    Block,
    ColumnFile,
    Buckets,
    blocks_of,
    code_ranges,
    distribute,
    key_ranges,
    row_type,
)
from crowdgraph.io._columns import COUNTED
from crowdgraph.io._files import NO_SPACE_ERRORS
from crowdgraph.io._gold import gold_items, read_gold
from crowdgraph.io._id_coders import IdCoder, IntegerCoder, TextCoder, ValueCoder, id_coder
from crowdgraph.io._ids import encode_labels, exact_integers, natural_order
from crowdgraph.io._row_streams import Batch, RowStream, is_parquet
from crowdgraph.io._times import read_times
from crowdgraph.io.columns import VERSION, ResponseStore, StoreWriter, open_store, plain_name
from crowdgraph.io.csv import csv_table
from crowdgraph.io.frames import duplicate_error, role_columns
from crowdgraph.io.parquet import is_text, parquet_columns
from crowdgraph.messages import Hint, Message, argument, quote

__all__ = ["build_store"]

# The record of a conversion, in its unfinished directory.
RECORD = "conversion.json"
# How many rows are sorted at once, if memory allows; and how few at least.
BUCKET_ROWS = 2**21
MIN_BUCKET_ROWS = 2**14
# The bytes that a row takes while it is sorted, in all blocks that are under way together.
SORTING_BYTES = 600
# The bytes that reading takes: a batch of rows in several forms, and what Arrow reads ahead.
READING_BYTES = 2**28
# How many times of a batch are drawn to divide times into ranges.
SAMPLES = 2**10
MAX_LABELS = 2**15 - 1
IDS = ("volunteer", "item")


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
    conversion = _Conversion(
        stream=stream,
        writer=StoreWriter(path, force=force, resume=True),
        names=names,
        labels=None if labels is None else value_tuple(labels, what="labels"),
        duplicates=duplicates,
        missing=missing,
        memory=_Memory(memory_in_bytes(memory)),
        progress=progress,
    )
    class_names = None if classes is None else value_tuple(classes, what="classes")
    gold_table = _gold_table(gold, item=names["item"], label=label, delimiter=delimiter, encoding=encoding)
    with conversion.writer, conversion.clean_failure():
        conversion.run(gold_table, class_names, label)
    return open_store(path)


def _columns_to_read(header: list[str], attributes: Iterable[str] | None, **roles: str | None) -> dict[str, str]:
    """Return the column of each role, and each attribute under its own name."""
    time = roles.pop("time")
    available = [name for name in header if name != "time" or time is not None]
    names = role_columns(dict.fromkeys(available, []), time=time or "time", **roles)
    names = {role: name for role, name in names.items() if name in available}
    further = [name for name in available if name not in names.values()]
    if attributes is not None:
        chosen = [attributes] if isinstance(attributes, str) else list(attributes)
        absent = [name for name in chosen if name not in further]
        if absent:
            raise ColumnError(f"There is no further column {absent[0]!r}; there are {quote(further, most=12) or 'none'}.")
        further = chosen
    taken = [name for name in further if name in RESPONSE_NAMES]
    if taken:
        raise ColumnError(f"An attribute of the responses cannot be called {taken[0]!r}; rename the column.")
    return names | {name: name for name in further}


def _gold_table(gold: Any, *, item: str, label: str, delimiter: str, encoding: str) -> Any:
    if not isinstance(gold, str | PathLike):
        return gold
    if is_parquet(Path(gold)):
        return parquet_columns(gold)
    return csv_table(gold, text=(item, label), delimiter=delimiter, encoding=encoding)


@dataclass(frozen=True)
class _Memory:
    """How much memory there is, and for how many rows it is enough."""

    limit: int

    def check(self, needed: float, what: str) -> None:
        """Raise unless a number of bytes is within the limit."""
        if needed > self.limit:
            amount = f"{needed / 10**9 + 0.05:.1f}GB"
            raise ParameterError(
                f"A memory limit of {in_words(self.limit)} is too low: {what} {in_words(needed)}.",
                hint=Hint(f"Raise it to memory='{amount}' or more.", cli=f"Raise it to --memory {amount} or more."),
            )

    def rows_to_sort(self, n_table_bytes: int, *, longest: int = 0) -> int:
        """Return how many rows can be sorted at once beside tables; raise if these are too few."""
        taken = resident_bytes() + n_table_bytes
        rows = min(BUCKET_ROWS, int((self.limit - taken) / SORTING_BYTES))
        fewest = max(min(MIN_BUCKET_ROWS, BUCKET_ROWS), longest)
        self.check(taken + fewest * SORTING_BYTES, "sorting the responses needs")
        return rows


@dataclass
class _Conversion:
    """One conversion: where from, where to, how, and how far it is."""

    stream: RowStream
    writer: StoreWriter
    names: dict[str, str]
    labels: tuple[Hashable, ...] | None
    duplicates: str
    missing: str
    memory: _Memory
    progress: bool
    phases: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The unfinished directory."""
        return self.writer.folder

    def run(self, gold: Any, classes: tuple[Hashable, ...] | None, label: str) -> None:
        """Go through the phases that are not complete yet."""
        self.memory.check(resident_bytes() + READING_BYTES, "reading the responses alone needs")
        self._resume()
        rows = self._phase("read", lambda: _Reader(self).read())
        n_rows = self._phase("order", lambda: _Ordering(self, rows).write())
        rmtree(self.folder / "rows", ignore_errors=True)
        sizes = self._phase("by_item", lambda: self._group("item", ("volunteer", "label"), n_rows))
        self._phase("by_volunteer", lambda: self._group("volunteer", ("item", "label", "time"), n_rows))
        if rows["skipped"]:
            warn(rows["warning"], DroppedRowsWarning)
        item_gold, gold_rows, n_items = self._gold(gold, tuple(rows["labels"]), classes, label)
        self.writer.gold(gold_rows, item_gold.probs[item_gold.known])
        self.writer.finish(
            classes=item_gold.classes,
            labels=tuple(rows["labels"]),
            clock=Clock(**rows["clock"]),
            sizes={
                "volunteers": pq.read_metadata(self.folder / "volunteers.parquet").num_rows,
                "items": n_items,
                "responses": n_rows,
                "answers": sizes["answers"],
                "repeats": sizes["repeats"],
                "unmatched_gold": item_gold.n_unmatched,
            },
            attributes=rows["attributes"],
            source={
                "files": [file.name for file in self.stream.paths],
                "rows": rows["read"],
                "skipped": rows["read"] - n_rows,
            },
        )
        (self.writer.path / RECORD).unlink()

    # The record

    def _request(self) -> dict[str, Any]:
        """Return what must be the same for a conversion to go on."""
        return {
            "format": VERSION,
            "written_by": __version__,
            "files": [list(_stamp(path)) for path in self.stream.paths],
            "names": self.names,
            "labels": None if self.labels is None else [plain_name(name) for name in self.labels],
            "duplicates": self.duplicates,
            "missing": self.missing,
        }

    def _resume(self) -> None:
        """Read the record of an interrupted conversion; begin anew if it was of something else."""
        try:
            record = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = {}
        if record.get("request") == json.loads(json.dumps(self._request())):
            self.phases = record["phases"]
            return
        self.writer.discard()
        self.writer.__enter__()

    def _phase(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a phase, unless it is complete, and record that it is; return what it returned."""
        if name in self.phases:
            return self.phases[name]
        facts = work()
        written = {"order": "responses", "by_item": "by_item", "by_volunteer": "by_volunteer"}
        if name in written:
            self.writer.complete(*(path.relative_to(self.folder).as_posix() for path in (self.folder / written[name]).iterdir()))
        for path in self.folder.rglob("*"):
            if path.is_file():
                _sync(path)
        self.phases[name] = facts
        part = self.folder / f"{RECORD}.part"
        part.write_text(json.dumps({"request": self._request(), "phases": self.phases}), encoding="utf-8")
        _sync(part)
        part.replace(self.folder / RECORD)
        return facts

    @contextmanager
    def clean_failure(self) -> Iterator[None]:
        """Leave nothing behind where the input is at fault, and say how to go on where the disk is."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_SPACE_ERRORS:
                raise
            free = in_words(disk_usage(self.folder.parent).free)
            done = f"What is complete ({', '.join(self.phases)})" if self.phases else "What was begun"
            raise StoreError(
                f"{fspath(self.writer.path)!r} could not be written: {os.strerror(error.errno)}, with {free} free. "
                f"{done} is kept in {fspath(self.folder)!r}: free some space on that disk and repeat the conversion, "
                "which goes on from there."
            ) from error
        except (InputError, ParameterError):
            self.writer.discard()
            raise

    # Item by item, and volunteer by volunteer

    def _group(self, kind: str, names: tuple[str, ...], n_rows: int) -> dict[str, int]:
        """Write the responses group by group; return the numbers of answers and, by items, of repeated ones."""
        columns = {name: ColumnFile.open(self.folder / f"responses/{name}.npy") for name in (kind, *names)}
        n_groups = pq.read_metadata(self.folder / f"{kind}s.parquet").num_rows
        starts = ColumnFile.create(self.folder / f"by_{kind}/starts.npy", np.int64)
        targets = {name: (self.folder / f"by_{kind}/{name}.npy", columns[name].dtype) for name in names}
        targets["row"] = (self.folder / f"by_{kind}/row.npy", np.dtype(row_type(n_rows)))
        grouping = _Grouping(columns, kind, n_groups, self.memory, in_pieces=kind == "volunteer")
        starts.append(grouping.starts)
        starts.finish()
        answers = repeats = 0
        with self.bar(f"sorting by {kind}", n_rows) as bar:
            buckets = grouping.distribute(targets, self.folder / "scratch")
            for block in buckets.sorted_blocks(max_rows=None if kind == "item" else grouping.max_rows):
                if not block.was_sorted:
                    for name in targets:
                        buckets.columns[name].write(block.start, block.columns[name])
                is_answer = block.columns["label"] >= 0
                answers += int(np.count_nonzero(is_answer))
                if kind == "item":
                    pairs = np.sort(_pairs(block.columns)[is_answer])
                    repeats += int(np.count_nonzero(pairs[1:] == pairs[:-1]))
                bar.update(len(is_answer))
        rmtree(self.folder / "scratch")
        return {"answers": answers, "repeats": repeats}

    def _gold(
        self, gold: Any, labels: tuple[Hashable, ...], classes: tuple[Hashable, ...] | None, label: str
    ) -> tuple[Gold, Array, int]:
        """Return the gold of a table of the items that gold names, their codes among all, and the number of items."""
        ids = pq.read_table(self.folder / "items.parquet")["item"].combine_chunks()
        codes = np.arange(min(len(ids), 100))
        if gold is not None:
            named = _same_type(gold_items(gold, item=self.names["item"], label=label, names=classes or labels), ids.type)
            codes = np.union1d(codes, np.flatnonzero(np.asarray(pc.is_in(ids, value_set=named))))
        items = NodeTable("item", _id_values(ids.take(pa.array(codes))))
        item_gold = read_gold(
            gold, items=items, labels=labels, classes=classes, item=self.names["item"], label=label
        )
        return item_gold, codes[item_gold.known], len(ids)

    def bar(self, name: str, total: int | None) -> Any:
        """Return a progress bar of rows."""
        return progress_bar(name, visible=self.progress, total=total, unit="rows")


class _Reader:
    """The first phase: read all rows, and write codes in the order of the rows."""

    def __init__(self, conversion: _Conversion) -> None:
        self._conversion = conversion
        self._folder = conversion.folder / "rows"
        rmtree(self._folder, ignore_errors=True)
        self._names = conversion.names
        self._files: dict[str, ColumnFile] = {}
        self._coders: dict[str, IdCoder] = {}
        self._label_code_of: dict[Hashable, int] = (
            {} if conversion.labels is None else {name: code for code, name in enumerate(conversion.labels)}
        )
        self._label_is_used = np.zeros(MAX_LABELS + 1, dtype=bool)
        self._times = _Times()
        self._attributes = {
            name: _Attribute(name, self._folder / f"attribute_{number}.npy")
            for number, name in enumerate(name for name in self._names if name not in RESPONSE_NAMES)
        }
        self._n_read = self._n_rows = 0
        self._skipped: dict[str, int] = {}
        self._examples: dict[str, list[int]] = {}

    def read(self) -> dict[str, Any]:
        """Read everything; return what later phases need to know."""
        conversion, stream = self._conversion, self._conversion.stream
        before = [_stamp(path) for path in stream.paths]
        text = [self._names[role] for role in ("volunteer", "item", "label")]
        baseline = resident_bytes()
        with conversion.bar("reading", stream.n_rows) as bar, ThreadPoolExecutor(2) as pool:
            for batch in stream.batches(list(self._names.values()), text=text):
                try:
                    self._add(batch, pool)
                except (InputError, StoreError) as error:
                    batch.fail(error)
                tables = sum(part.n_bytes for part in (*self._coders.values(), *self._attributes.values()))
                conversion.memory.check(
                    baseline + READING_BYTES + tables * 1.5,
                    f"the ids of the first {self._n_read:,} rows, with what reading takes, need",
                )
                bar.update(len(batch))
        if before != [_stamp(path) for path in stream.paths]:
            raise InputError(
                f"{fspath(stream.paths[0])!r} or another of the files changed while it was read; convert it again "
                "when nobody writes to it."
            )
        if not self._n_rows:
            raise InputError(
                "All rows of the table were left out, so there is nothing to make a graph of."
                if self._n_read
                else "The table has a header and no rows; give one row for each response."
            )
        return self._finish()

    def _add(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        """Code a batch of rows, and write it."""
        columns = {role: batch.columns[name] for role, name in self._names.items()}
        n_rows = len(batch)
        times, null_time = self._read_times(columns.get("time"), n_rows)
        labels = pool.submit(self._code_labels, columns["label"])
        is_null = {role: _null_mask(columns[role]) for role in ("volunteer", "item")}
        codes = labels.result()
        is_null |= {"label": codes < 0, "time": null_time}
        rows_to_keep = self._without_missing(is_null, n_rows)
        self._n_read += n_rows
        if rows_to_keep is not None:
            codes, times = codes[rows_to_keep], times[rows_to_keep]
            mask = pa.array(rows_to_keep)
            columns = {role: column.filter(mask) for role, column in columns.items()}
        self._label_is_used[codes[codes >= 0]] = True
        ids = {role: pool.submit(self._coder(role, columns[role]).code, columns[role]) for role in ("volunteer", "item")}
        for name, attribute in self._attributes.items():
            attribute.append(columns[name], has_null=bool(batch.columns[name].null_count))
        for role, values in {"label": codes, "time": self._times.add(times)}.items():
            self._file(role, values.dtype).append(values)
        for role, future in ids.items():
            self._file(role, np.int32).append(future.result())
        self._n_rows += len(codes)

    def _file(self, role: str, dtype: Any) -> ColumnFile:
        if role not in self._files:
            self._files[role] = ColumnFile.create(self._folder / f"{role}.npy", dtype)
        return self._files[role]

    def _coder(self, role: str, column: pa.Array) -> IdCoder:
        if role not in self._coders:
            max_range = self._conversion.memory.limit // 32
            self._coders[role] = id_coder(column.type, what=role, max_range=max_range)
        return self._coders[role]

    def _read_times(self, column: pa.Array | None, n_rows: int) -> tuple[Array, Array]:
        if column is None:
            self._times.clock = Clock("order")
            return np.arange(self._n_read, self._n_read + n_rows), np.zeros(n_rows, dtype=bool)
        time, is_null = read_times(pa.chunked_array([column]))
        if not is_null.all():
            self._times.see(time.clock, int(np.argmin(is_null)))
        return time.times, is_null

    def _code_labels(self, column: pa.Array) -> Array:
        """Return labels as codes in the order of their first appearance, or in that of `labels=`."""
        codes, names = encode_labels(pa.chunked_array([column]), labels=self._conversion.labels)
        if self._conversion.labels is not None:
            return codes
        for name in names:
            self._label_code_of.setdefault(name, len(self._label_code_of))
            plain_name(name)
        if len(self._label_code_of) > MAX_LABELS:
            raise LabelError(
                f"There are more than {MAX_LABELS:,} different labels, such as {quote(names, most=3)}; is "
                f"{self._names['label']!r} the column of labels?"
            )
        table = np.array([*(self._label_code_of[name] for name in names), -1], dtype=np.int16)
        return np.asarray(table[codes])

    def _without_missing(self, is_null: dict[str, Array], n_rows: int) -> Array | None:
        """Return which rows of a batch stay; None if all do. Raise if rows with gaps are not to be left out."""
        missing = self._conversion.missing
        if missing == "keep":
            del is_null["label"]
        rows = {role: np.flatnonzero(mask) for role, mask in is_null.items() if mask.any()}
        if not rows:
            return None
        if missing != "drop":
            listing = "; ".join(f"{role} in rows {quote(numbers.tolist())}" for role, numbers in rows.items())
            hint = "Correct the table, or use " + argument("missing", "drop") + " to leave these rows out"
            if missing == "error" and "label" in rows:
                hint += " or " + argument("missing", "keep") + " for null labels"
            raise MissingValueError(f"Null {listing}{COUNTED}.", hint=hint + ".")
        for role, numbers in rows.items():
            self._skipped[role] = self._skipped.get(role, 0) + len(numbers)
            self._examples.setdefault(role, []).extend((numbers[:5] + self._n_read).tolist())
        return np.asarray(~np.logical_or.reduce(list(is_null.values())))

    def _finish(self) -> dict[str, Any]:
        """Complete the files, and write the ids."""
        sample = self._times.finish(self._files["time"])
        for role in ("volunteer", "item", "label"):
            self._files[role].finish()
        for role, coder in self._coders.items():
            _write_ids(self._folder / f"{role}s.parquet", role, coder.ids())
        np.save(self._folder / "sample.npy", sample)
        for attribute in self._attributes.values():
            attribute.finish()
        names, table = self._label_names()
        clock = self._times.clock or Clock("number")
        n_skipped = self._n_read - self._n_rows
        listing = "; ".join(
            f"{role} in rows {quote(rows[:5])}{f' and {self._skipped[role] - 5:,} more' if len(rows) > 5 else ''}"
            for role, rows in self._examples.items()
        )
        return {
            "read": self._n_read,
            "rows": self._n_rows,
            "skipped": n_skipped,
            "warning": f"{n_skipped:,} of {self._n_read:,} rows are left out: null {listing}{COUNTED}.",
            "is_sorted": self._times.is_sorted,
            "clock": {"kind": clock.kind, "zone": clock.zone},
            "labels": names,
            "label_codes": table,
            "coded_attributes": [name for name, attribute in self._attributes.items() if attribute.is_coded],
            "attributes": {name: attribute.path.stem for name, attribute in self._attributes.items()},
        }

    def _label_names(self) -> tuple[list[Any], list[int]]:
        """Return the labels in their order, and the code in it of each code that was written."""
        values: list[Any] = list(self._label_code_of)
        if self._conversion.labels is not None:
            return values, list(range(len(values)))
        if any(isinstance(value, float) for value in values):
            # Whole numbers of a batch became integers, but there are others.
            values = exact_integers(object_array(float(value) for value in values)).tolist()
        ordered = natural_order(values)
        used = [name for name in ordered if self._label_is_used[self._label_code_of[name]]]
        code_of = {name: code for code, name in enumerate(used if self._n_rows < self._n_read else ordered)}
        return list(code_of), [code_of.get(name, -1) for name in values]


class _Times:
    """What the times of all batches have in common, and whether they are sorted."""

    def __init__(self) -> None:
        self.clock: Clock | None = None
        self.is_sorted = True
        self._last: Any = None
        self._lengths: list[int] = []
        self._units: list[str | None] = []
        self._samples: list[Array] = []
        self._rng = np.random.default_rng(0)

    def see(self, clock: Clock, row: int) -> None:
        """Take note of the clock of a batch, whose first time is in a row."""
        if self.clock is None:
            self.clock = clock
        elif clock != self.clock:
            zones = [f"in {zone}" if zone else "without a zone" for zone in (clock.zone, self.clock.zone)]
            raise TimeError(
                f"The times mix kinds: that in row {row} is {zones[0]}, those before are {zones[1]}. Give all of them "
                "one form, with a zone or without."
            )

    def add(self, times: Array) -> Array:
        """Take note of the times of a batch, and return them as numbers."""
        ticks = times.view(np.int64) if times.dtype.kind == "M" else times
        self._lengths.append(len(ticks))
        self._units.append(np.datetime_data(times.dtype)[0] if times.dtype.kind == "M" else None)
        if len(ticks):
            rises = self._last is None or self._last <= ticks[0]
            self.is_sorted = self.is_sorted and bool(rises) and not bool((ticks[1:] < ticks[:-1]).any())
            self._last = ticks[-1]
        rows = np.arange(len(ticks)) if len(ticks) <= SAMPLES else self._rng.integers(0, len(ticks), SAMPLES)
        self._samples.append(ticks[rows])
        return ticks

    def finish(self, file: ColumnFile) -> Array:
        """Complete the file of times, all in the finest unit of any batch; return a sample of them."""
        units = {unit for unit, length in zip(self._units, self._lengths, strict=True) if length}
        finest = max(units, key=lambda unit: UNITS.get(unit or "", 0))
        if len(units) > 1:
            self.is_sorted = False
            start = 0
            for number, (unit, length) in enumerate(zip(self._units, self._lengths, strict=True)):
                factor = UNITS[finest or ""] // UNITS[unit or finest or ""]
                file.write(start, _scaled(file.read(start, start + length), factor))
                self._samples[number] = _scaled(self._samples[number], factor)
                start += length
        file.finish(dtype=None if finest is None else f"datetime64[{finest}]")
        return np.concatenate(self._samples)


def _scaled(ticks: Array, factor: int) -> Array:
    if len(ticks) and factor > 1 and max(-int(ticks.min()), int(ticks.max())) > (2**63 - 1) // factor:
        raise TimeError("Times with nanoseconds must lie between the years 1678 and 2262.")
    return ticks * factor


class _Attribute:
    """A further column: numbers as they are, anything else as codes of its distinct values.

    Integers and truth values are numbers until the first null, which NumPy cannot hold.
    """

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self.path = path
        self._file: ColumnFile | None = None
        self._coder: TextCoder | ValueCoder | None = None

    @property
    def is_coded(self) -> bool:
        """Whether the file holds codes."""
        return self._coder is not None

    @property
    def n_bytes(self) -> int:
        """The memory that the distinct values take."""
        return 0 if self._coder is None else self._coder.n_bytes

    def append(self, column: pa.Array, *, has_null: bool) -> None:
        """Write some rows; `has_null` says whether there are nulls among them or among those left out of them."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if self._coder is None and not _is_plain(kind, has_null=has_null):
            self._begin_codes(kind)
        if self._coder is not None:
            values = self._coder.code(column)
        else:
            values = column.cast(kind).to_numpy(zero_copy_only=False)
        if self._file is None:
            self._file = ColumnFile.create(self.path, values.dtype)
        self._file.append(values)

    def finish(self) -> None:
        """Complete the file, and write the distinct values beside it."""
        if self._file is not None:
            self._file.finish()
        if self._coder is not None:
            _write_ids(self.path.with_suffix(".parquet"), "value", self._coder.ids())

    def _begin_codes(self, kind: pa.DataType) -> None:
        """Write codes from now on, and also for the numbers that were written already."""
        if pa.types.is_nested(kind):
            raise ColumnError(
                f"The further column {self._name!r} holds {kind} values, which a store of columns cannot hold.",
                hint=Hint("Choose others with attributes=[...].", cli="Choose others with --attribute NAME."),
            )
        self._coder = TextCoder() if is_text(kind) or pa.types.is_string_view(kind) else ValueCoder()
        if self._file is None:
            return
        numbers, self._file = self._file, ColumnFile.create(self.path.with_suffix(".codes"), np.int32)
        for block in blocks_of({"number": numbers}, numbers.n_rows):
            self._file.append(self._coder.code(pa.array(block["number"])))
        self._file.path = self._file.path.replace(self.path)


def _is_plain(kind: pa.DataType, *, has_null: bool) -> bool:
    """Return whether NumPy holds a column as numbers, as `attribute_array` has it."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return not has_null
    return bool(pa.types.is_floating(kind) or (pa.types.is_timestamp(kind) and kind.tz is None))


class _Ordering:
    """The second phase: sort the rows by time, leave out repeated answers, and code by the order of first appearance."""

    def __init__(self, conversion: _Conversion, facts: Mapping[str, Any]) -> None:
        self._conversion = conversion
        self._facts = facts
        self._rows, self._target = conversion.folder / "rows", conversion.folder / "responses"
        attributes = facts["attributes"]
        self._names = ["volunteer", "item", "label", "time", *attributes.values()]
        # The files whose codes count by first appearance, and where their values are: before, and afterwards.
        self._tables = {role: (self._rows / f"{role}s.parquet", conversion.folder / f"{role}s.parquet") for role in IDS}
        for name in facts["coded_attributes"]:
            file = f"{attributes[name]}.parquet"
            self._tables[attributes[name]] = (self._rows / file, self._target / file)
        self._n_rows = int(facts["rows"])

    def write(self) -> int:
        """Write the responses, and return their number."""
        if self._facts["is_sorted"] and self._conversion.duplicates == "all":
            self._move()
            return self._n_rows
        columns = {name: ColumnFile.open(self._rows / f"{name}.npy") for name in self._names}
        blocks = blocks_of(columns, self._n_rows)
        if not self._facts["is_sorted"]:
            buckets, max_rows = self._by_time(columns)
            blocks = (block.columns for block in buckets.sorted_blocks(max_rows=max_rows))
        if self._conversion.duplicates != "all":
            if not self._facts["is_sorted"]:
                columns = self._written(blocks, self._rows / "in_time")
            blocks = self._without_repeats(columns)
        recoders = {
            name: IntegerCoder(name, pq.read_metadata(before).num_rows + 1)
            for name, (before, _) in self._tables.items()
        }
        with self._conversion.bar("writing in order of time", self._n_rows) as bar:
            files = self._written(self._recoded(blocks, recoders, bar), self._target)
        for name, (before, after) in self._tables.items():
            (column,) = pq.read_table(before).itercolumns()
            order = recoders[name].ids()
            _write_ids(after, pq.read_schema(before).names[0], column.combine_chunks().take(order))
        return files["label"].n_rows

    def _move(self) -> None:
        """Let the files that are in order already be those of the store; a second time, those that are left."""
        labels = np.array([*self._facts["label_codes"], -1], dtype=np.int16)
        if (labels[:-1] != np.arange(len(labels) - 1)).any():
            column = ColumnFile.open(self._rows / "label.npy")
            blocks = ({"label": labels[block["label"]]} for block in blocks_of({"label": column}, self._n_rows))
            self._written(blocks, self._target)
        else:
            _move(self._rows / "label.npy", self._target / "label.npy")
        for name in self._names:
            if name != "label":
                _move(self._rows / f"{name}.npy", self._target / f"{name}.npy")
        for before, after in self._tables.values():
            _move(before, after)

    def _by_time(self, columns: Mapping[str, ColumnFile]) -> tuple[Buckets, int]:
        """Distribute the rows among ranges of times; also return how many rows are sorted at once."""
        n_ids = sum(pq.read_metadata(before).num_rows for before, _ in self._tables.values())
        max_rows = self._conversion.memory.rows_to_sort(8 * n_ids)
        first_keys, is_constant = key_ranges(np.load(self._rows / "sample.npy"), -(-self._n_rows // max_rows))

        def bucket_of(times: Array) -> Array:
            ticks = times.view(np.int64) if times.dtype.kind == "M" else times
            return np.searchsorted(first_keys, ticks, "right").astype(_unsigned(len(is_constant)))

        counts = np.zeros(len(is_constant) + 1, np.int64)
        for block in blocks_of({"time": columns["time"]}, self._n_rows):
            counts[1:] += np.bincount(bucket_of(block["time"]), minlength=len(is_constant))
        targets = {
            name: ColumnFile.create(self._rows / f"by_time/{name}.npy", column.dtype, n_rows=self._n_rows)
            for name, column in columns.items()
        }
        with self._conversion.bar("sorting by time", self._n_rows) as bar:
            buckets = distribute(
                _counted(blocks_of(columns, self._n_rows), bar),
                targets,
                key="time",
                bucket_of=bucket_of,
                bounds=np.cumsum(counts),
                is_constant=is_constant,
            )
        return buckets, max_rows

    def _without_repeats(self, columns: Mapping[str, ColumnFile]) -> Iterator[Block]:
        """Yield the rows without answers that repeat a volunteer and item, as `duplicates` says."""
        how = self._conversion.duplicates
        n_items = pq.read_metadata(self._tables["item"][0]).num_rows
        roles = {role: columns[role] for role in ("item", "volunteer", "label")}
        grouping = _Grouping(roles, "item", n_items, self._conversion.memory, in_pieces=False, n_more_bytes=self._n_rows)
        scratch = self._rows / "by_item"
        targets = {role: (scratch / f"{role}.npy", columns[role].dtype) for role in ("volunteer", "label")}
        targets["row"] = (scratch / "row.npy", np.dtype(row_type(self._n_rows)))
        keep = np.ones(self._n_rows, dtype=bool)
        for block in grouping.distribute(targets, scratch).sorted_blocks():
            answered = np.flatnonzero(block.columns["label"] >= 0)
            pairs = _pairs(block.columns)[answered]
            order = np.argsort(pairs, kind="stable")
            is_repeat = pairs[order[1:]] == pairs[order[:-1]]
            repeats = order[:-1][is_repeat] if how == "last" else order[1:][is_repeat]
            keep[block.columns["row"][answered[repeats]]] = False
        rmtree(scratch)
        n_repeats = self._n_rows - int(np.count_nonzero(keep))
        if how == "error" and n_repeats:
            row = int(np.argmin(keep))
            ids = {role: pq.read_table(self._tables[role][0])[role] for role in IDS}
            first = {role: ids[role][int(columns[role].read(row, row + 1)[0])].as_py() for role in IDS}
            raise duplicate_error(n_repeats, first["volunteer"], first["item"])
        start = 0
        for block in blocks_of(columns, self._n_rows):
            rows = keep[start : start + len(block["label"])]
            start += len(rows)
            yield {name: values[rows] for name, values in block.items()}

    def _recoded(self, blocks: Iterable[Block], recoders: Mapping[str, IntegerCoder], bar: Any) -> Iterator[Block]:
        """Yield blocks with the codes of the store."""
        labels = np.array([*self._facts["label_codes"], -1], dtype=np.int16)
        for block in _counted(blocks, bar):
            codes = {name: coder.code_numbers(block[name]) for name, coder in recoders.items()}
            yield {**block, "label": labels[block["label"]], **codes}

    def _written(self, blocks: Iterable[Block], folder: Path) -> dict[str, ColumnFile]:
        """Write blocks one after another."""
        files: dict[str, ColumnFile] = {}
        for block in blocks:
            for name, values in block.items():
                if name not in files:
                    files[name] = ColumnFile.create(folder / f"{name}.npy", values.dtype)
                files[name].append(values)
        for file in files.values():
            file.finish()
        return files


class _Grouping:
    """Sorts rows by codes.

    Parameters
    ----------
    columns
        The rows.
    key
        The column with the codes, which lie below `n_groups`.
    n_groups
        The number of groups.
    memory
        The limit.
    in_pieces
        Whether a group that is too long to be in memory may come in several pieces.
    n_more_bytes
        What else is in memory meanwhile.
    """

    def __init__(
        self,
        columns: Mapping[str, ColumnFile],
        key: str,
        n_groups: int,
        memory: _Memory,
        *,
        in_pieces: bool,
        n_more_bytes: int = 0,
    ) -> None:
        self._columns, self._key = columns, key
        self._n_rows = columns[key].n_rows
        counts = np.zeros(n_groups + 1, np.int64)
        for block in blocks_of({key: columns[key]}, self._n_rows):
            np.add.at(counts[1:], block[key], 1)
        longest = 0 if in_pieces else int(counts.max())
        self.starts = np.cumsum(counts, out=counts)
        self.max_rows = memory.rows_to_sort(3 * n_groups + n_more_bytes, longest=longest)

    def distribute(self, targets: Mapping[str, tuple[Path, Any]], scratch: Path) -> Buckets:
        """Distribute the rows among ranges of codes, and return them with the key and their numbers as columns.

        Parameters
        ----------
        targets
            The files to write, and the types of their columns; ``row`` is the number of the row.
        scratch
            A directory for the key.
        """
        first_codes = code_ranges(self.starts, self.max_rows)
        ends = np.append(first_codes, len(self.starts) - 1)
        bucket_of = np.repeat(np.arange(len(first_codes), dtype=_unsigned(len(first_codes))), np.diff(ends))
        files = {
            name: ColumnFile.create(path, dtype, n_rows=self._n_rows) for name, (path, dtype) in targets.items()
        }
        files[self._key] = ColumnFile.create(
            scratch / f"key_{self._key}.npy", self._columns[self._key].dtype, n_rows=self._n_rows
        )
        return distribute(
            blocks_of(self._columns, self._n_rows, number="row"),
            files,
            key=self._key,
            bucket_of=bucket_of.take,
            bounds=self.starts[ends],
            is_constant=np.diff(ends) == 1,
        )


def _pairs(columns: Block) -> Array:
    """Return the item and the volunteer of each row as one number."""
    return np.asarray(columns["item"].astype(np.int64) << 32 | columns["volunteer"])


def _counted(blocks: Iterable[Block], bar: Any) -> Iterator[Block]:
    """Yield blocks, and let a progress bar count their rows."""
    for block in blocks:
        yield block
        bar.update(len(block["label"]))


def _unsigned(n: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type for numbers below `n`; NumPy sorts short ones in linear time."""
    return np.uint8 if n <= 2**8 else np.uint16 if n <= 2**16 else np.uint32


def _null_mask(column: pa.Array) -> Array:
    """Return which ids are null, or NaN."""
    return np.asarray(pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)))


def _id_values(ids: pa.Array) -> Array:
    return ids.to_numpy() if pa.types.is_int64(ids.type) else id_array(ids.to_pylist())


def _same_type(ids: Sequence[Hashable], kind: pa.DataType) -> pa.Array:
    """Return those of the ids that are of the type of a column."""
    own = int if pa.types.is_int64(kind) else str
    return pa.array([value for value in ids if type(value) is own and (own is str or abs(value) < 2**63)], kind)


def _write_ids(path: Path, name: str, ids: pa.Array) -> None:
    pq.write_table(pa.table({name: ids}), path)


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)


def _stamp(path: Path) -> tuple[str, int, int]:
    facts = path.stat()
    return os.path.realpath(path), facts.st_size, facts.st_mtime_ns


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
