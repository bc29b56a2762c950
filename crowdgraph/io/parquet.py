"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, quote
from crowdgraph.io._columns import LazyColumns, check_column_names
from crowdgraph.io._files import is_file

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
        metadata = [pq.read_metadata(path) for path in paths]
        schemas = [footer.schema.to_arrow_schema() for footer in metadata]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"{_named(paths)} cannot be read as Parquet: {str(error).rstrip('.')}. Copy or download it again; if it is "
            "of another kind, let its name say so, such as .csv."
        ) from error
    found = schemas[0].names
    for path, schema in zip(paths, schemas, strict=True):
        if set(schema.names) != set(found):
            raise ColumnError(
                f"{fspath(path)!r} has the columns {quote(schema.names, most=12)}, the first file has "
                f"{quote(found, most=12)}; all files need the same."
            )
    wanted = found if columns is None else list(columns)
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ColumnError(f"{_named(paths)} has no column {absent[0]!r}; it has {quote(found, most=12)}.")
    check_column_names(wanted, owner=_named(paths))
    text = {name for name in wanted if all(_is_text(schema.field(name).type) for schema in schemas)}
    compact = {name for name in text if all(_is_compact(footer, name) for footer in metadata)}
    return LazyColumns(wanted, lambda name: _column(paths, name, coded=name in compact))


def _column(paths: list[Path], name: str, *, coded: bool) -> pa.ChunkedArray:
    """One column of all files."""
    try:
        tables = [_read(path, name, coded=coded) for path in paths]
        column = tables[0][name] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")[name]
        column.validate(full=True)
        return column
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"Column {name!r} of {_named(paths)} cannot be read: {error}.") from error


def _read(path: Path, name: str, *, coded: bool) -> pa.Table:
    """One column of a file, opened anew: columns are read in several threads and an open file is not safe there."""
    with pq.ParquetFile(path, read_dictionary=[name] if coded else None) as file:
        return file.read(columns=[name])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_compact(footer: pq.FileMetaData, name: str) -> bool:
    """Whether a column is stored as codes throughout: it takes a few bytes a row and need not be hashed."""
    place = footer.schema.names.index(name)
    groups = [footer.row_group(group).column(place) for group in range(footer.num_row_groups)]
    return all(group.has_dictionary_page and group.total_uncompressed_size < 4 * group.num_values for group in groups)


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
