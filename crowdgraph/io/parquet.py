"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, shown
from crowdgraph.io.columns import LazyColumns
from crowdgraph.io.files import is_file

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
    if isinstance(gold, str | PathLike):
        gold = parquet_columns(gold)
    return CrowdGraph.from_responses(parquet_columns(source, columns=columns), gold=gold, **options)


def parquet_columns(source: Source, *, columns: Iterable[str] | None = None) -> LazyColumns:
    """The columns of one or several Parquet files."""
    paths = _files(source)
    try:
        files = [pq.ParquetFile(path) for path in paths]
        compact = {name for name in files[0].schema_arrow.names if all(_is_compact(file, name) for file in files)}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{_named(paths)} cannot be read as Parquet: {error}.") from error
    found = files[0].schema_arrow.names
    for path, file in zip(paths, files, strict=True):
        if set(file.schema_arrow.names) != set(found):
            raise ColumnError(
                f"{fspath(path)!r} has the columns {shown(file.schema_arrow.names, most=12)}, the first file has "
                f"{shown(found, most=12)}; all files need the same."
            )
    wanted = found if columns is None else list(columns)
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ColumnError(f"{_named(paths)} has no column {absent[0]!r}; it has {shown(found, most=12)}.")
    doubled = sorted({name for name in wanted if wanted.count(name) > 1})
    if doubled:
        raise ColumnError(f"{_named(paths)} has columns of the same name: {shown(doubled)}. Rename or drop them.")
    return LazyColumns(wanted, lambda name: _column(paths, name, coded=name in compact))


def _column(paths: list[Path], name: str, *, coded: bool) -> pa.ChunkedArray:
    """One column; opened anew, since columns are read in several threads and an open file is not safe there."""
    try:
        files = [pq.ParquetFile(path, read_dictionary=[name] if coded else None) for path in paths]
        tables = [file.read(columns=[name]) for file in files]
        column = tables[0][name] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")[name]
        column.validate(full=True)
        return column
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"Column {name!r} of {_named(paths)} cannot be read: {error}.") from error


def _is_compact(file: pq.ParquetFile, name: str) -> bool:
    """Whether a column of text is stored as codes throughout: it takes a few bytes a row and need not be hashed."""
    kind = file.schema_arrow.field(name).type if file.schema_arrow.names.count(name) == 1 else None
    if kind is None or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    place = file.metadata.schema.names.index(name) if name in file.metadata.schema.names else -1
    groups = [file.metadata.row_group(group).column(place) for group in range(file.metadata.num_row_groups)]
    return place >= 0 and all(
        group.has_dictionary_page and group.total_uncompressed_size < 4 * group.num_values for group in groups
    )


def _named(paths: list[Path]) -> str:
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return f"{fspath(paths[0])!r}{more}"


def _files(source: Source) -> list[Path]:
    if not isinstance(source, str | PathLike | Sequence):
        raise InputError(f"Expected a path, a list of paths or a directory; got {source!r}.")
    paths = [Path(source)] if isinstance(source, str | PathLike) else [Path(path) for path in source]
    if len(paths) == 1 and paths[0].is_dir():
        paths = sorted(paths[0].glob("*.parquet"))
    if not paths:
        raise InputError(
            f"There are no Parquet files in {source!r}; give a path, a list of paths or a directory of them."
        )
    for path in paths:
        if not is_file(path):
            raise InputError(f"{fspath(path)!r} does not exist or is not a file; give Parquet files.")
    return paths
