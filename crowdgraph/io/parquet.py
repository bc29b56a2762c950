"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError
from crowdgraph.io._columns import LazyColumns, check_column_names
from crowdgraph.io._files import is_file, reason_of
from crowdgraph.io._repeated_text import repeated_text
from crowdgraph.io._unpacked import check_unpacked, unpacked_limit
from crowdgraph.io.frames import check_options, graph_from_frame
from crowdgraph.messages import quote

__all__ = ["is_dictionary_encoded", "is_text", "parquet_columns", "parquet_footers", "parquet_schema", "read_parquet"]

ParquetSource: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]]"


def read_parquet(
    source: ParquetSource, *, gold: Any = None, columns: Iterable[str] | None = None, **options: Any
) -> CrowdGraph:
    """Read a graph from Parquet with one row for each response.

    Parameters
    ----------
    source
        A file, a list of files or a directory of them; several are read in order (those of a directory by name).
    gold
        A Parquet or CSV file, or gold in any other form that `CrowdGraph.from_responses` takes.
    columns
        The columns to read; all if omitted. Further columns become attributes of the responses.
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
    check_options(read_parquet, options)
    return graph_from_frame(parquet_columns(source, columns=columns), gold=gold, **options)


def parquet_columns(source: ParquetSource, *, columns: Iterable[str] | None = None) -> LazyColumns:
    """Return the columns of one or several Parquet files, each read on access."""
    paths = _parquet_files(source)
    footers = parquet_footers(paths)
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    available = schemas[0].names
    for path, schema in zip(paths, schemas, strict=True):
        if set(schema.names) != set(available):
            raise ColumnError(
                f"{fspath(path)!r} has the columns {quote(schema.names, most=12)}, the first file has "
                f"{quote(available, most=12)}; all files need the same."
            )
    names = available if columns is None else list(columns)
    absent = [name for name in names if name not in available]
    if absent:
        raise ColumnError(f"{_quoted(paths)} has no column {absent[0]!r}; it has {quote(available, most=12)}.")
    check_column_names(names, owner=_quoted(paths))
    text = {name for name in names if all(is_text(schema.field(name).type) for schema in schemas)}
    encoded = {name for name in text if all(is_dictionary_encoded(footer, name) for footer in footers)}
    n_rows = sum(footer.num_rows for footer in footers)

    def read(name: str) -> pa.ChunkedArray:
        column = _column(paths, name, as_dictionary=name in encoded)
        if len(column) != n_rows:
            raise InputError(
                f"Column {name!r} of {_quoted(paths)} has {len(column):,} values for {n_rows:,} rows: the file is "
                "damaged. Copy or download it again."
            )
        return column

    return LazyColumns(names, read)


def parquet_footers(paths: list[Path]) -> list[pq.FileMetaData]:
    """Return what the ends of Parquet files say about them, unless it is that they unpack to more than is allowed."""
    try:
        footers = [pq.read_metadata(path) for path in paths]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"{_quoted(paths)} cannot be read as Parquet: {reason_of(error)}. Copy or download it again; if it "
            "is of another kind, let its name say so, such as .csv."
        ) from error
    for path, footer in zip(paths, footers, strict=True):
        pages = sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))
        # Repetitions take no room in pages, but in memory.
        widths = [max(footer.schema.column(index).length, 8) for index in range(footer.num_columns)]
        name, packed = repr(fspath(path)), path.stat().st_size
        check_unpacked(name, packed=packed, unpacked=max(pages, footer.num_rows * sum(widths)))
        check_unpacked(name, packed=packed, unpacked=repeated_text(path, footer, limit=unpacked_limit(packed)))
    return footers


def parquet_schema(source: ParquetSource) -> pa.Schema:
    """Return the columns and types of the first of some Parquet files."""
    return parquet_footers(_parquet_files(source)[:1])[0].schema.to_arrow_schema()


def _column(paths: list[Path], name: str, *, as_dictionary: bool) -> pa.ChunkedArray:
    """Read one column of all files."""
    try:
        tables = [_read(path, name, as_dictionary=as_dictionary) for path in paths]
        column = tables[0][name] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")[name]
        column.validate(full=True)
        return column
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"Column {name!r} of {_quoted(paths)} cannot be read: {reason_of(error)}.") from error


def _read(path: Path, name: str, *, as_dictionary: bool) -> pa.Table:
    """Read one column of a file, opened anew: several threads read columns, which must not share an open file."""
    with pq.ParquetFile(path, read_dictionary=[name] if as_dictionary else None) as file:
        return file.read(columns=[name])


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_dictionary_encoded(footer: pq.FileMetaData, name: str) -> bool:
    """Return whether a column is stored as codes throughout: it takes a few bytes a row and need not be hashed."""
    index = footer.schema.names.index(name)
    groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
    return all(group.has_dictionary_page and group.total_uncompressed_size < 4 * group.num_values for group in groups)


def _quoted(paths: list[Path]) -> str:
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return f"{fspath(paths[0])!r}{more}"


def _parquet_files(source: ParquetSource) -> list[Path]:
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
