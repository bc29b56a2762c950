"""Cells of CSV files that spreadsheets would run as formulas: written so that they do not, and read as they were.

Volunteers choose their names, and what is written about items. A cell that begins with ``=``, ``+``, ``-``, ``@`` or a
control character gets an apostrophe, which spreadsheets take for "this is text", and so does one that already has
apostrophes before such a character, so that reading is exact. Plain numbers are no formulas.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from crowdgraph.errors import ColumnError

# What formulas begin with, also in the full width of East Asian keyboards.
STARTS = r"[=+\-@\t\r\n\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]"
FORMULA = rf"^'*{STARTS}"
WRITTEN_FORMULA = rf"^'+{STARTS}"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def write_csv(table: pa.Table, target: Any, *, raw_cells: bool = False) -> None:
    """Write a table as CSV to a path or stream; with `raw_cells`, formulas stay formulas."""
    if not raw_cells:
        table = pa.table(
            {name: _neutral(column) for name, column in zip(table.column_names, table.columns, strict=True)}
        )
    pa_csv.write_csv(_as_text(table), target)


def _as_text(table: pa.Table) -> pa.Table:
    """Return a table whose bytes are text; raise if they are not UTF-8."""
    for number, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            try:
                table = table.set_column(number, field.name, table[number].cast(pa.large_string()))
            except pa.ArrowInvalid as error:
                raise ColumnError(
                    f"Column {field.name!r} holds bytes that are not UTF-8, which a CSV file cannot hold; leave it "
                    "out, or write Parquet."
                ) from error
    return table


def original_cells(column: Any) -> Any:
    """Return a column of a CSV file without the apostrophes that `write_csv` adds.

    A column in which some text begins like a formula was not written by it, and stays as it is: otherwise the names
    ``=a`` and ``'=a`` of two volunteers would become one.
    """
    is_written = written_formulas(column)
    if is_written is None or has_formulas(column):
        return column
    return pc.if_else(is_written, pc.utf8_slice_codeunits(column, 1), column)


def written_formulas(column: Any) -> Any:
    """Return which cells look like formulas that `write_csv` wrote; None if none does."""
    if not _is_text(column.type) or not pc.any(pc.starts_with(column, "'")).as_py():
        return None
    is_written = pc.match_substring_regex(column, WRITTEN_FORMULA)
    return is_written if pc.any(is_written).as_py() else None


def has_formulas(column: Any) -> bool:
    """Return whether some cell would be run as a formula."""
    return bool(pc.any(pc.and_not(pc.match_substring_regex(column, rf"^{STARTS}"), _is_number(column))).as_py())


def _neutral(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        column = column.cast(column.type.value_type)
    if not _is_text(column.type):
        return column
    is_formula = pc.and_not(pc.match_substring_regex(column, FORMULA), _is_number(column))
    mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
    return pc.if_else(is_formula, pc.binary_join_element_wise(mark, column, nothing), column)


def _is_number(column: Any) -> Any:
    return pc.match_substring_regex(column, NUMBER)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
