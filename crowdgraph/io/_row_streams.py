"""Read tables of responses batch by batch: Parquet and CSV files of any size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from crowdgraph.errors import ColumnError, CrowdGraphError, InputError
from crowdgraph.io._cells import has_formulas, original_cells, written_formulas
from crowdgraph.io._columns import check_column_names
from crowdgraph.io._files import is_file, reason_of
from crowdgraph.io._repeated_text import BUFFER_BYTES
from crowdgraph.io._unpacked import text_source
from crowdgraph.io.csv import check_delimiter, check_encoding, csv_header, failure, parse_options
from crowdgraph.io.parquet import is_dictionary_encoded, is_text, parquet_footers
from crowdgraph.messages import Message, quote, wording

# How many rows are read at once.
BATCH_ROWS = 2**19
# How much of a CSV file is read at once. Its first block decides the types of columns.
CSV_BYTES = 2**25
# How messages name rows.
ROW_NUMBERS = re.compile(r"\brow(s?) (\d+(?:, \d+)*)")


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of a file.

    Attributes
    ----------
    columns
        The columns by name.
    path
        The file.
    first_row
        The number of rows of the file before these.
    """

    columns: dict[str, pa.Array]
    path: Path
    first_row: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def fail(self, error: CrowdGraphError) -> NoReturn:
        """Raise an error that numbers the rows of this batch again, with the rows of the file, and names the file."""

        def shift(match: re.Match[str]) -> str:
            rows = [str(int(row) + self.first_row) for row in match[2].split(", ")]
            return f"row{match[1]} {', '.join(rows)}"

        def change(text: str) -> str:
            return ROW_NUMBERS.sub(shift, text) + f" Rows are those of {fspath(self.path)!r}, counted from 0."

        message = Message(change(wording(error.message, "python")), cli=change(wording(error.message, "cli")))
        raise type(error)(message) from error


class RowStream:
    """The rows of one or several files of one kind, with the same columns.

    Parameters
    ----------
    source
        A file, several, or a directory of Parquet files.
    delimiter, encoding
        Of CSV files.
    """

    def __init__(
        self, source: str | PathLike[str] | Sequence[str | PathLike[str]], *, delimiter: str, encoding: str
    ) -> None:
        self.paths = stream_files(source)
        self._delimiter, self._encoding = delimiter, encoding
        self.is_parquet = is_parquet(self.paths[0])
        if any(is_parquet(path) != self.is_parquet for path in self.paths):
            raise InputError(
                f"Parquet and CSV files cannot be mixed: {quote(map(str, self.paths))}; convert some first."
            )
        if self.is_parquet:
            self._footers = parquet_footers(self.paths)
            headers = [footer.schema.to_arrow_schema().names for footer in self._footers]
        else:
            check_delimiter(delimiter)
            check_encoding(encoding)
            headers = [self._csv_header(path) for path in self.paths]
        self.names: list[str] = headers[0]
        for path, header in zip(self.paths, headers, strict=True):
            check_column_names(header, owner=repr(fspath(path)))
            if set(header) != set(self.names):
                raise ColumnError(
                    f"{fspath(path)!r} has the columns {quote(header)}, {fspath(self.paths[0])!r} has "
                    f"{quote(self.names)}; all files need the same."
                )

    def _csv_header(self, path: Path) -> list[str]:
        try:
            return csv_header(path, delimiter=self._delimiter, encoding=self._encoding)
        except (OSError, UnicodeError, LookupError, pa.ArrowException) as error:
            raise self._csv_error(error, path) from error

    def _csv_error(self, error: Exception, path: Path) -> InputError:
        return InputError(f"{fspath(path)!r} " + failure(error, path, self._delimiter, self._encoding))

    @property
    def n_rows(self) -> int | None:
        """The number of all rows; None where only reading them tells."""
        return sum(footer.num_rows for footer in self._footers) if self.is_parquet else None

    def batches(self, names: Sequence[str], *, text: Sequence[str]) -> Iterator[Batch]:
        """Yield all rows; of CSV files, the columns of `text` stay text, and other types are inferred."""
        if self.is_parquet:
            yield from self._parquet_batches(names)
        else:
            yield from self._csv_batches(names, text)

    def _parquet_batches(self, names: Sequence[str]) -> Iterator[Batch]:
        schemas = [footer.schema.to_arrow_schema() for footer in self._footers]
        try:
            common = pa.unify_schemas(
                [pa.schema([schema.field(name).remove_metadata() for name in names]) for schema in schemas],
                promote_options="permissive",
            )
        except pa.ArrowException as error:
            raise ColumnError(f"The files differ in the types of a column: {error}. Give them one type.") from error
        for path, footer, schema in zip(self.paths, self._footers, schemas, strict=True):
            encoded = [
                name for name in names if is_text(schema.field(name).type) and is_dictionary_encoded(footer, name)
            ]
            first_row = 0
            try:
                with pq.ParquetFile(path, read_dictionary=encoded, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
                    for batch in file.iter_batches(BATCH_ROWS, columns=list(names)):
                        columns = {name: _as_type(batch[name], common.field(name).type) for name in names}
                        yield Batch(columns, path, first_row)
                        first_row += len(batch)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise InputError(
                    f"{fspath(path)!r} cannot be read beyond row {first_row}: {reason_of(error)}. Copy or "
                    "download it again."
                ) from error

    def _csv_batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[Batch]:
        types: dict[str, Any] = {name: pa.string() for name in text}
        cells = {name: _TextCells(name) for name in names}
        for path in self.paths:
            options = pa_csv.ConvertOptions(
                column_types=types, include_columns=list(names), null_values=[""], strings_can_be_null=True
            )
            read = pa_csv.ReadOptions(encoding=self._encoding, block_size=CSV_BYTES)
            first_row = 0
            try:
                with (
                    text_source(path) as source,
                    pa_csv.open_csv(
                        source,
                        read_options=read,
                        parse_options=parse_options(self._delimiter),
                        convert_options=options,
                    ) as reader,
                ):
                    # The first file decides for all.
                    types = {field.name: field.type for field in reader.schema if not pa.types.is_null(field.type)}
                    for batch in reader:
                        yield Batch({name: cells[name].original(batch[name], path) for name in names}, path, first_row)
                        first_row += len(batch)
            except (OSError, UnicodeError, LookupError, pa.ArrowException) as error:
                if "conversion error" in str(error) and "UTF8" not in str(error):
                    raise ColumnError(
                        f"{fspath(path)!r} has values after row {first_row} that are not of the type that its column "
                        f"has before: {reason_of(error)}. Correct them, or write the table as Parquet first."
                    ) from error
                raise self._csv_error(error, path) from error


class _TextCells:
    """Takes the apostrophes before formulas from one column, batch by batch, as `original_cells` does for all of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_written = self._has_bare = False

    def original(self, column: pa.Array, path: Path) -> pa.Array:
        """Return some cells as they were; raise if it cannot be known whether apostrophes were added."""
        self._has_written = self._has_written or written_formulas(column) is not None
        self._has_bare = self._has_bare or (pa.types.is_string(column.type) and has_formulas(column))
        if self._has_written and self._has_bare:
            raise InputError(
                f"The column {self._name!r} of {fspath(path)!r} has cells that begin like a formula, some of them "
                "behind an apostrophe, so that it is not known whether the apostrophes belong to them. Write the "
                "table as Parquet."
            )
        return original_cells(column)


def stream_files(source: Any) -> list[Path]:
    """Return the files to read; raise if there is one that cannot be read twice."""
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
        if not path.exists():
            raise InputError(f"There is no file {fspath(path)!r}; is the name spelt right?")
        if not is_file(path):
            kind = "a directory" if path.is_dir() else "a pipe or device"
            raise InputError(
                f"{fspath(path)!r} is {kind}; give files, which can be read again if a conversion is interrupted."
            )
    return paths


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its name."""
    return path.suffix.lower() in (".parquet", ".pq")


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as the type that all files share; text may stay codes, but no views, which cannot be filtered."""
    if pa.types.is_string_view(kind):
        kind = pa.large_string()
    if column.type == kind or pa.types.is_dictionary(column.type):
        return column
    return column.cast(kind)
