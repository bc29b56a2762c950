"""The first phase of a conversion: read all rows once, and write them as codes and times, in the order of the rows."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from os import fspath
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array, object_array
from crowdgraph.core._memory import resident_bytes
from crowdgraph.core.clock import UNITS, Clock
from crowdgraph.core.tables import RESPONSE_NAMES
from crowdgraph.errors import ColumnError, InputError, LabelError, MissingValueError, StoreError, TimeError
from crowdgraph.io._column_files import ColumnFile, blocks_of
from crowdgraph.io._columns import COUNTED
from crowdgraph.io._conversion_plan import IDS, READING_BYTES, Plan, file_stamp, write_ids
from crowdgraph.io._id_coders import IdCoder, TextCoder, ValueCoder, id_coder
from crowdgraph.io._ids import encode_labels, exact_integers, natural_order
from crowdgraph.io._row_streams import Batch
from crowdgraph.io._times import read_times
from crowdgraph.io.parquet import is_text
from crowdgraph.messages import Hint, argument, quote

# How many times of a batch are drawn to divide times into ranges.
SAMPLES = 2**10
# Codes of labels are short integers.
MAX_LABELS = 2**15 - 1


class RowReader:
    """The first phase: read all rows, and write codes in the order of the rows."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._folder = plan.folder / "rows"
        rmtree(self._folder, ignore_errors=True)
        self._names = plan.names
        self._files: dict[str, ColumnFile] = {}
        self._coders: dict[str, IdCoder] = {}
        self._label_code_of: dict[Hashable, int] = (
            {} if plan.labels is None else {name: code for code, name in enumerate(plan.labels)}
        )
        self._label_is_used = np.zeros(MAX_LABELS + 1, dtype=bool)
        self._times = Times()
        self._attributes = {
            name: Attribute(name, self._folder / f"attribute_{number}.npy")
            for number, name in enumerate(name for name in self._names if name not in RESPONSE_NAMES)
        }
        self._n_read = self._n_rows = 0
        self._skipped: dict[str, int] = {}
        self._examples: dict[str, list[int]] = {}

    def read(self) -> dict[str, Any]:
        """Read everything; return what later phases need to know."""
        plan, stream = self._plan, self._plan.stream
        before = [file_stamp(path) for path in stream.paths]
        text = [self._names[role] for role in ("volunteer", "item", "label")]
        baseline = resident_bytes()
        with plan.bar("reading", stream.n_rows) as bar, ThreadPoolExecutor(2) as pool:
            for batch in stream.batches(list(self._names.values()), text=text):
                try:
                    self._add(batch, pool)
                except (InputError, StoreError) as error:
                    batch.fail(error)
                tables = sum(coder.n_bytes for coder in self._coders.values())
                tables += sum(attribute.n_bytes for attribute in self._attributes.values())
                plan.memory.check(
                    baseline + READING_BYTES + tables * 1.5,
                    f"the ids of the first {self._n_read:,} rows, with what reading takes, need",
                )
                bar.update(len(batch))
        if before != [file_stamp(path) for path in stream.paths]:
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
        is_null = {role: _null_mask(columns[role]) for role in IDS}
        codes = labels.result()
        is_null |= {"label": codes < 0, "time": null_time}
        rows_to_keep = self._without_missing(is_null)
        self._n_read += n_rows
        if rows_to_keep is not None:
            codes, times = codes[rows_to_keep], times[rows_to_keep]
            mask = pa.array(rows_to_keep)
            columns = {role: column.filter(mask) for role, column in columns.items()}
        self._label_is_used[codes[codes >= 0]] = True
        ids = {role: pool.submit(self._coder(role, columns[role]).code, columns[role]) for role in IDS}
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
            max_range = self._plan.memory.limit // 32
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
        codes, names = encode_labels(pa.chunked_array([column]), labels=self._plan.labels)
        if self._plan.labels is not None:
            return codes
        for name in names:
            if not isinstance(name, bool | int | float | str):
                raise LabelError(
                    f"The label {name!r} is a {type(name).__name__}, and a store of columns holds labels that are text "
                    "or numbers; convert the column to text."
                )
            self._label_code_of.setdefault(name, len(self._label_code_of))
        if len(self._label_code_of) > MAX_LABELS:
            raise LabelError(
                f"There are more than {MAX_LABELS:,} different labels, such as {quote(names, most=3)}; is "
                f"{self._names['label']!r} the column of labels?"
            )
        table = np.array([*(self._label_code_of[name] for name in names), -1], dtype=np.int16)
        return np.asarray(table[codes])

    def _without_missing(self, is_null: dict[str, Array]) -> Array | None:
        """Return which rows of a batch stay; None if all do. Raise if rows with gaps are not to be left out."""
        missing = self._plan.missing
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
            write_ids(self._folder / f"{role}s.parquet", role, coder.ids())
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
        if self._plan.labels is not None:
            return values, list(range(len(values)))
        if any(isinstance(value, float) for value in values):
            # Whole numbers of a batch became integers, but there are others.
            values = exact_integers(object_array(float(value) for value in values)).tolist()
        ordered = natural_order(values)
        used = [name for name in ordered if self._label_is_used[self._label_code_of[name]]]
        code_of = {name: code for code, name in enumerate(used if self._n_rows < self._n_read else ordered)}
        return list(code_of), [code_of.get(name, -1) for name in values]


class Times:
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


class Attribute:
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
            write_ids(self.path.with_suffix(".parquet"), "value", self._coder.ids())

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


def _null_mask(column: pa.Array) -> Array:
    """Return which ids are null, or NaN."""
    return np.asarray(pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)))
