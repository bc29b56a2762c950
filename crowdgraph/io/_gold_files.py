"""Files of gold: one reader for all doors, whether a file is CSV or Parquet and whatever its columns are called."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from crowdgraph.errors import ColumnError, InputError
from crowdgraph.io._columns import SYNONYMS, Column, find_column
from crowdgraph.io._files import is_file
from crowdgraph.messages import quote

# What the column of true classes is called in files of gold.
GOLD_NAMES = ("label", "gold", "truth", "true_label", "gold_label", "class", "true_class", "ground_truth", "answer")


@dataclass(frozen=True)
class GoldFile:
    """A file with the items whose class is known, and that class, or a column of probabilities for each class.

    Its columns are called as those of the responses, or have usual names. Files do not say whether an id is a number or
    text: those of another type than the responses' are read as theirs where they are written alike.

    Parameters
    ----------
    path
        A CSV file (plain or compressed), a Parquet file or a directory of them.
    delimiter
        What stands between the fields of a CSV file; guessed if left out, or if its first line does not have it.
    encoding
        The encoding of a CSV file.
    notes
        Sentences on what was guessed are added to it.
    """

    path: str | PathLike[str]
    delimiter: str | None = None
    encoding: str = "utf-8"
    notes: list[str] = field(default_factory=list)

    def columns(self, *, item: str, label: str) -> dict[str, Column]:
        """Return the columns of items and classes under the names of the responses', or those of probabilities."""
        table = self.table(item, label)
        header = list(table)
        own_item = find_column(header, (item, "item", *SYNONYMS["item"]))
        own_label = find_column(header, (label, *GOLD_NAMES, *SYNONYMS["label"]))
        if own_item is None:
            raise ColumnError(
                f"{fspath(self.path)!r} has no column for the item among {quote(header, most=12)}; call it {item!r}, "
                "as in the responses."
            )
        if own_label is None:
            # Without a column of classes, each further column holds the probability of one.
            return {item if name == own_item else name: table[name] for name in header}
        sentence = f"Gold: the column {own_item} is read as the item, {own_label} as its class."
        if (own_item, own_label) != (item, label) and sentence not in self.notes:
            self.notes.append(sentence)
        return {item: table[own_item], label: table[own_label]}

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet, by its name."""
        return Path(self.path).is_dir() or Path(self.path).suffix.lower() in (".parquet", ".pq")

    def table(self, item: str = "item", label: str = "label") -> Mapping[str, Column]:
        """Return all columns of the file under their own names; ids and labels of CSV files are text."""
        # Readers of tables need gold, so they are imported when they are used.
        from crowdgraph.io.csv import csv_table, sniff_csv
        from crowdgraph.io.excel import excel_columns, is_excel
        from crowdgraph.io.parquet import parquet_columns

        if self.is_parquet:
            return parquet_columns(self.path)
        if is_excel(self.path) and is_file(self.path):
            return excel_columns(self.path)
        if not is_file(self.path):
            raise InputError(f"There is no file of gold {fspath(self.path)!r}; is the name spelt right?")
        delimiter, header = sniff_csv(self.path, delimiter=self.delimiter, encoding=self.encoding)
        if len(header) < 2:
            delimiter, header = sniff_csv(self.path, delimiter=None, encoding=self.encoding)
        known = {"item", *SYNONYMS["item"], *GOLD_NAMES, *SYNONYMS["label"], item.lower(), label.lower()}
        text = [name for name in header if name.lower().strip() in known]
        table = csv_table(self.path, text=text, delimiter=delimiter, encoding=self.encoding)
        return dict(zip(table.column_names, table.columns, strict=True))


def typed_alike(values: Sequence[Hashable], known: Sequence[Hashable]) -> list[Hashable]:
    """Return values of a file as text where the known ones are text, and as whole numbers where they are.

    Examples
    --------
    >>> typed_alike(["7", "007", "x"], [1, 2])
    [7, '007', 'x']
    >>> typed_alike([7, 8.0], ["1"])
    ['7', '8']
    """
    kinds = {type(name) for name in known}
    if kinds == {int}:
        return [_as_integer(value) for value in values]
    if kinds == {str}:
        return [str(_as_integer(value)) if isinstance(value, int | float) else value for value in values]
    return list(values)


def _as_integer(value: Any) -> Any:
    """Return a number, or text that is how one is written, as a whole number; anything else as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and str(int(value)) == value:
        return int(value)
    return value
