"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import InputError
from crowdgraph.io.frames import graph_from_frame

__all__ = ["read_parquet"]

Source: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]]"


def read_parquet(
    source: Source, *, gold: Any = None, columns: Iterable[str] | None = None, **options: Any
) -> CrowdGraph:
    """Read a graph from Parquet with one row for each response.

    Parameters
    ----------
    source
        A file, a list of files or a directory of them; several are read in order (those of a directory by name).
    gold
        Another Parquet file, or gold in any form that `CrowdGraph.from_responses` takes.
    columns
        The columns to read; all if left out. Further columns become attributes of the responses.
    **options
        As in `CrowdGraph.from_responses`: the names of the columns, `classes`, `labels`, `duplicates`, `missing`, ...

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "responses.parquet"
    >>> pq.write_table(pa.table({"volunteer": ["anna", "bert"], "item": [1, 1], "label": ["yes", "no"]}), path)
    >>> len(cg.read_parquet(path).responses)
    2
    """
    wanted = None if columns is None else list(columns)
    if isinstance(gold, str | PathLike):
        gold = parquet_table(gold)
    return graph_from_frame(parquet_table(source, columns=wanted), gold=gold, **options)


def parquet_table(source: Source, *, columns: list[str] | None = None) -> pa.Table:
    """One table of one or several Parquet files."""
    paths = _files(source)
    try:
        # Files are read one by one: a directory read as a data set would add columns from the names of its folders.
        tables = [pq.ParquetFile(path).read(columns=columns) for path in paths]
        return pa.concat_tables(tables, promote_options="default")
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{fspath(paths[0])!r} and its sisters are not readable Parquet files: {error}.") from error


def _files(source: Source) -> list[Path]:
    paths = [Path(source)] if isinstance(source, str | PathLike) else [Path(path) for path in source]
    if len(paths) == 1 and paths[0].is_dir():
        paths = sorted(paths[0].glob("*.parquet"))
        if not paths:
            raise InputError(f"The directory {fspath(source)!r} holds no *.parquet files.")  # type: ignore[arg-type]
    if not paths:
        raise InputError("No Parquet files were named; give a path, a list of paths or a directory.")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{fspath(path)!r} does not exist or is not a file; give Parquet files.")
    return paths
