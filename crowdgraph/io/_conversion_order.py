"""The other phases of a conversion: sort the rows by time, and then item by item and volunteer by volunteer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from crowdgraph.core._arrays import Array
from crowdgraph.io._column_files import (
    Block,
    Buckets,
    ColumnFile,
    blocks_of,
    code_ranges,
    distribute,
    key_ranges,
    row_type,
)
from crowdgraph.io._conversion_plan import IDS, MemoryLimit, Plan, n_ids, write_ids
from crowdgraph.io._id_coders import IntegerCoder
from crowdgraph.io.frames import duplicate_error


class Ordering:
    """Sorts rows by time, leaves out repeated answers, and codes ids by their first appearance."""

    def __init__(self, plan: Plan, facts: Mapping[str, Any]) -> None:
        self._plan = plan
        self._facts = facts
        self._rows, self._target = plan.folder / "rows", plan.folder / "responses"
        attributes = facts["attributes"]
        self._names = ["volunteer", "item", "label", "time", *attributes.values()]
        # The files whose codes count by first appearance, and where their values are: before, and afterwards.
        self._tables = {role: (self._rows / f"{role}s.parquet", plan.folder / f"{role}s.parquet") for role in IDS}
        for name in facts["coded_attributes"]:
            file = f"{attributes[name]}.parquet"
            self._tables[attributes[name]] = (self._rows / file, self._target / file)
        self._n_rows = int(facts["rows"])

    def write(self) -> int:
        """Write the responses, and return their number."""
        if self._facts["is_sorted"] and self._plan.duplicates == "all":
            self._move()
            return self._n_rows
        columns = {name: ColumnFile.open(self._rows / f"{name}.npy") for name in self._names}
        blocks = blocks_of(columns, self._n_rows)
        if not self._facts["is_sorted"]:
            buckets, max_rows = self._by_time(columns)
            blocks = (block.columns for block in buckets.sorted_blocks(max_rows=max_rows))
        if self._plan.duplicates != "all":
            if not self._facts["is_sorted"]:
                columns = self._written(blocks, self._rows / "in_time")
            blocks = self._without_repeats(columns)
        recoders = {name: IntegerCoder(name, n_ids(before) + 1) for name, (before, _) in self._tables.items()}
        with self._plan.bar("writing in order of time", self._n_rows) as bar:
            files = self._written(self._recoded(blocks, recoders, bar), self._target)
        for name, (before, after) in self._tables.items():
            (column,) = pq.read_table(before).itercolumns()
            order = recoders[name].ids()
            write_ids(after, pq.read_schema(before).names[0], column.combine_chunks().take(order))
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
        n_codes = sum(n_ids(before) for before, _ in self._tables.values())
        max_rows = self._plan.memory.rows_to_sort(8 * n_codes)
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
        with self._plan.bar("sorting by time", self._n_rows) as bar:
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
        how, memory = self._plan.duplicates, self._plan.memory
        n_items = n_ids(self._tables["item"][0])
        roles = {role: columns[role] for role in ("item", "volunteer", "label")}
        grouping = _Grouping(roles, "item", n_items, memory, in_pieces=False, n_more_bytes=self._n_rows)
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
        for rows in blocks_of(columns, self._n_rows):
            to_keep = keep[start : start + len(rows["label"])]
            start += len(to_keep)
            yield {name: values[to_keep] for name, values in rows.items()}

    def _recoded(self, blocks: Iterable[Block], recoders: Mapping[str, IntegerCoder], bar: Any) -> Iterator[Block]:
        """Yield blocks with the codes of the store."""
        labels = np.array([*self._facts["label_codes"], -1], dtype=np.int16)
        for block in _counted(blocks, bar):
            codes = {name: _recoded_column(block[name], coder) for name, coder in recoders.items()}
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


def write_groups(plan: Plan, kind: str, names: tuple[str, ...]) -> dict[str, int]:
    """Write the responses group by group; return the numbers of answers and, by items, of repeated ones."""
    columns = {name: ColumnFile.open(plan.folder / f"responses/{name}.npy") for name in (kind, *names)}
    n_rows = columns[kind].n_rows
    n_groups = n_ids(plan.folder / f"{kind}s.parquet")
    starts = ColumnFile.create(plan.folder / f"by_{kind}/starts.npy", np.int64)
    targets = {name: (plan.folder / f"by_{kind}/{name}.npy", columns[name].dtype) for name in names}
    targets["row"] = (plan.folder / f"by_{kind}/row.npy", np.dtype(row_type(n_rows)))
    grouping = _Grouping(columns, kind, n_groups, plan.memory, in_pieces=kind == "volunteer")
    starts.append(grouping.starts)
    starts.finish()
    answers = repeats = 0
    with plan.bar(f"sorting by {kind}", n_rows) as bar:
        buckets = grouping.distribute(targets, plan.folder / "scratch")
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
    rmtree(plan.folder / "scratch")
    return {"answers": answers, "repeats": repeats}


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
        memory: MemoryLimit,
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
        files = {name: ColumnFile.create(path, dtype, n_rows=self._n_rows) for name, (path, dtype) in targets.items()}
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


def _recoded_column(codes: Array, coder: IntegerCoder) -> Array:
    """Return codes by first appearance; those of nulls stay -1."""
    is_valid = codes >= 0
    if is_valid.all():
        return coder.code_numbers(codes.astype(np.int64))
    new_codes = np.full(len(codes), -1, np.int32)
    new_codes[is_valid] = coder.code_numbers(codes[is_valid].astype(np.int64))
    return new_codes


def _counted(blocks: Iterable[Block], bar: Any) -> Iterator[Block]:
    """Yield blocks, and let a progress bar count their rows."""
    for block in blocks:
        yield block
        bar.update(len(block["label"]))


def _unsigned(n: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type for numbers below `n`; NumPy sorts short ones in linear time."""
    return np.uint8 if n <= 2**8 else np.uint16 if n <= 2**16 else np.uint32


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)
