"""What the phases of a conversion share: where from, where to, how, and within which limit of memory."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph.core._memory import in_words, resident_bytes
from crowdgraph.core._progress import progress_bar
from crowdgraph.errors import ParameterError
from crowdgraph.io._row_streams import RowStream
from crowdgraph.messages import Hint

# How many rows are sorted at once, if memory allows; and how few at least.
BUCKET_ROWS = 2**21
MIN_BUCKET_ROWS = 2**14
# The bytes that a row takes while it is sorted, in all blocks that are under way together.
SORTING_BYTES = 600
# The bytes that reading takes: a batch of rows in several forms, and what Arrow reads ahead.
READING_BYTES = 2**28
IDS = ("volunteer", "item")


@dataclass(frozen=True)
class MemoryLimit:
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


@dataclass(frozen=True)
class Plan:
    """One conversion.

    Attributes
    ----------
    stream
        The rows.
    folder
        The unfinished directory.
    names
        The column of each part of a response, and of each attribute.
    labels
        What volunteers can say; None if that is what they said.
    duplicates, missing
        As in `CrowdGraph.from_responses`.
    memory
        How much memory the process may take.
    progress
        Whether to show progress bars.
    """

    stream: RowStream
    folder: Path
    names: dict[str, str]
    labels: tuple[Hashable, ...] | None
    duplicates: str
    missing: str
    memory: MemoryLimit
    progress: bool

    def bar(self, name: str, total: int | None) -> Any:
        """Return a progress bar of rows."""
        return progress_bar(name, visible=self.progress, total=total, unit="rows")


def write_ids(path: Path, name: str, ids: pa.Array) -> None:
    """Write ids, or the values of an attribute, in the order of their codes; those of an attribute may be none."""
    pq.write_table(pa.table({name: ids if len(ids) else pa.nulls(0)}), path)


def n_ids(path: Path) -> int:
    """Return the number of ids in a file."""
    return int(pq.read_metadata(path).num_rows)


def file_stamp(path: Path) -> tuple[str, int, int]:
    """Return what changes when a file does: its size and the time of its last change."""
    facts = path.stat()
    return os.path.realpath(path), facts.st_size, facts.st_mtime_ns
