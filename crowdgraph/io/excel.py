"""Excel workbooks: tables of responses and of gold are read, and tables of results written."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from crowdgraph.errors import InputError, MissingPackageError, StoreError
from crowdgraph.io._columns import Column, check_column_names
from crowdgraph.io._files import atomic_file
from crowdgraph.io._unpacked import check_unpacked
from crowdgraph.messages import OBEYED

__all__ = ["excel_columns", "is_excel", "openpyxl_package", "write_excel"]

# How many rows a sheet can have, with its header.
MAX_ROWS = 1_048_576
# How long the name of a sheet can be.
MAX_NAME = 31


def is_excel(path: Any) -> bool:
    """Return whether a file is an Excel workbook, by its name."""
    return str(path).lower().endswith(".xlsx")


def excel_columns(path: str | PathLike[str], *, text: bool = False) -> dict[str, Column]:
    """Return the columns of the first sheet, the first row of which names them; whole numbers are no fractions.

    Empty rows are left out. With `text`, everything but times is text.
    """
    name = repr(fspath(path))
    openpyxl = openpyxl_package()
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        packed, unpacked = (sum(getattr(one, size) for one in members) for size in ("compress_size", "file_size"))
        check_unpacked(name, packed=packed, unpacked=unpacked)
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = workbook.worksheets[0]
        sheet.reset_dimensions()
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        workbook.close()
    except InputError:
        raise
    except Exception as error:  # what a stranger wrote can fail anywhere
        raise InputError(f"{name} cannot be read as an Excel workbook (.xlsx): {error}.") from error
    rows = [row for row in rows if any(cell not in (None, "") for cell in row)]
    if not rows:
        raise InputError(f"{name} is empty; its first sheet needs a row of names and a row for each response.")
    header = ["" if cell is None else str(cell).strip() for cell in rows[0]]
    while header and not header[-1]:
        header.pop()
    check_column_names(header, owner=name)
    body = [[*row, *[None] * len(header)][: len(header)] for row in rows[1:]]
    return {column: [_value(row[number], text=text) for row in body] for number, column in enumerate(header)}


def _value(cell: Any, *, text: bool) -> Any:
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell) if text and not isinstance(cell, dt.datetime | dt.date) else cell


def write_excel(tables: Mapping[str, pa.Table], path: str | PathLike[str]) -> None:
    """Write Arrow tables as the sheets of a workbook. Text is text, also where it looks like a formula."""
    openpyxl = openpyxl_package()
    from openpyxl.cell import WriteOnlyCell

    workbook = openpyxl.Workbook(write_only=True)
    for name, table in tables.items():
        if table.num_rows >= MAX_ROWS:
            raise StoreError(
                f"A sheet holds {MAX_ROWS - 1:,} rows, and the {name} are {table.num_rows:,}; write .csv or .parquet."
            )
        sheet = workbook.create_sheet(name[:MAX_NAME])
        sheet.freeze_panes = "A2"
        sheet.append([_cell(WriteOnlyCell, sheet, column) for column in table.column_names])
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            sheet.append([_cell(WriteOnlyCell, sheet, value) for value in row])
    with atomic_file(path) as part:
        workbook.save(fspath(part))


def _cell(kind: Any, sheet: Any, value: Any) -> Any:
    """Return a cell; text never becomes a formula, and has nothing that a workbook cannot hold."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        # Excel knows no time zones.
        value = value.isoformat()
    if value is not None and not isinstance(value, str | int | float | bool | dt.datetime | dt.date):
        value = str(value)
    if not isinstance(value, str):
        return value
    cell = kind(sheet, value=OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), value))
    cell.data_type = "s"
    cell.quotePrefix = value[:1] in ("=", "+", "-", "@")
    return cell


def openpyxl_package() -> Any:
    """Import the package that reads and writes workbooks, or raise with the command that installs it."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingPackageError(
            "Excel workbooks (.xlsx) need openpyxl; install it with: pip install crowdgraph[excel]"
        ) from error
    return openpyxl
