"""From a file to a graph without a word about columns: kinds of files, delimiters and columns are guessed, and told."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from crowdgraph.core._arrays import FrozenMapping
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import (
    ColumnError,
    GoldError,
    InputError,
    MissingValueError,
    ParameterError,
    TimeError,
    check_choice,
    collect_warnings,
    quote,
)

__all__ = ["KINDS", "Reading", "read", "saved_graph_path"]

KINDS = ("csv", "parquet", "panoptes", "crowd")
# What the columns are called elsewhere, the surest names first; those of a Zooniverse export make it one.
NAMES = {
    "volunteer": (
        "volunteer", "worker", "user_name", "user", "annotator", "rater", "user_id", "worker_id", "volunteer_id",
        "annotator_id", "username", "participant", "performer", "_worker_id",
    ),
    "item": (
        "item", "task", "subject", "subject_id", "subject_ids", "item_id", "task_id", "image", "image_id", "object",
        "object_id", "question", "question_id", "unit", "_unit_id", "example",
    ),
    "label": ("label", "answer", "response", "annotation", "value", "vote", "score", "judgment", "judgement", "choice"),
    "time": (
        "time", "created_at", "timestamp", "datetime", "date", "submitted_at", "finished_at", "answered_at",
        "_created_at",
    ),
}  # fmt: skip
GOLD_NAMES = ("label", "gold", "truth", "true_label", "gold_label", "class", "true_class", "ground_truth", "answer")
PANOPTES = {"user_name", "created_at", "annotations", "subject_ids"}
# The columns of graphs that were not read from a table.
OWN = {"item": "item", "label": "label"}
DELIMITERS = ",;\t|"
# How much of a file is looked at to tell what it is.
GLANCE = 2**16
# The graph in a directory of results.
SAVED = "graph.crowd"
# What messages say of rows, and the line by which spreadsheets tell each other the delimiter.
ROWS = re.compile(r"\brow(s?) (\d+(?:, \d+)*)")
SEPARATOR = re.compile(r'"?sep=.?"?', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A graph that was read from a file, and how.

    Attributes
    ----------
    graph
        The graph.
    kind
        What the file was taken for: one of ``"csv"``, ``"parquet"``, ``"panoptes"`` and ``"crowd"``.
    columns
        Which column was read as what; empty for kinds of files that leave no choice.
    notes
        What was guessed, and what the reader warned of, in sentences.
    """

    graph: CrowdGraph
    kind: str
    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()


def read(
    path: str | PathLike[str],
    *,
    gold: str | PathLike[str] | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    task: str = "T0",
    **options: Any,
) -> Reading:
    r"""Read a graph from a file, guessing what is not said.

    Parameters
    ----------
    path
        A CSV file (plain or compressed), a Parquet file or directory of them, a Zooniverse export, a saved graph, or a
        directory of results with one.
    gold
        A CSV or Parquet file with the items whose class is known, and that class.
    kind
        ``"csv"``, ``"parquet"``, ``"panoptes"`` or ``"crowd"``; told by the file's name and columns if left out.
    columns
        The names of some of the columns ``"volunteer"``, ``"item"``, ``"label"`` and ``"time"``; others are guessed
        among usual names, those of crowd-kit (worker, task, label) and Zooniverse among them. An empty name for the
        time leaves times out.
    delimiter, encoding
        Of CSV files; the delimiter is guessed from the first line if left out.
    task
        Of a Zooniverse export, the task to read.
    **options
        As in `CrowdGraph.from_responses`: `duplicates`, `missing`, `classes`, `labels`; for exports `workflow`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.tsv"
    >>> _ = path.write_text("worker\ttask\tlabel\nanna\tx\tyes\nbert\tx\tno\n")
    >>> reading = read(path)
    >>> len(reading.graph.responses), dict(reading.columns)
    (2, {'volunteer': 'worker', 'item': 'task', 'label': 'label'})
    """
    _check_there(path)
    if gold is not None:
        _check_there(gold)
    notes: list[str] = []
    if kind in (None, "crowd") and saved_graph_path(path) != Path(path):
        path = saved_graph_path(path)
        notes.append(f"A directory of results: its graph {SAVED!r} is read.")
    named = {role: name for role, name in (columns or {}).items() if name is not None}
    _check_roles(named)
    if kind is not None:
        check_choice("kind", kind, KINDS)
    kind = kind or _kind(path, delimiter, encoding)
    door = _FileReader(path, gold, named, delimiter, encoding, task, options, notes)
    try:
        with collect_warnings(notes):
            graph, used = getattr(door, kind)()
    except (TimeError, MissingValueError, GoldError) as error:
        raise type(error)(door.explained(error, kind)) from error
    door.check_gold(graph, used)
    told = [door.with_lines(sentence, path) if kind == "csv" else sentence for sentence in notes]
    return Reading(graph=graph, kind=kind, columns=FrozenMapping(used), notes=(*told, *_case_notes(graph)))


def saved_graph_path(path: str | PathLike[str]) -> Path:
    """The saved graph in a directory of results; any other path as it is."""
    saved = Path(path) / SAVED
    return saved if Path(path).is_dir() and saved.is_file() else Path(path)


@dataclass(frozen=True)
class _FileReader:
    """What was asked of a file, and the notes taken while reading it."""

    path: str | PathLike[str]
    gold: str | PathLike[str] | None
    named: Mapping[str, str]
    delimiter: str | None
    encoding: str
    task: str
    options: Mapping[str, Any]
    notes: list[str]

    def csv(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        """The graph of a CSV file, and the columns used."""
        from crowdgraph.io.csv import csv_table

        mark = self.delimiter or _delimiter(self.path, self.encoding)
        header = _header(self.path, mark, self.encoding)
        if not header:
            # The reader knows better what is wrong with the file, if there is anything in it.
            csv_table(self.path, text=None, delimiter=mark, encoding=self.encoding)
            raise InputError(
                f"{fspath(self.path)!r} is empty; give a CSV file with a header and a row for each response."
            )
        used = _guessed(header, self.named, self.notes, self.path)
        text = [used[role] for role in ("volunteer", "item", "label")]
        table = csv_table(self.path, text=text, delimiter=mark, encoding=self.encoding)
        if not table.num_rows:
            raise InputError(
                f"{fspath(self.path)!r} has a header and no rows; give a file with a row for each response."
            )
        return self._built(table.select(self._kept(table.column_names)), used)

    def parquet(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        """The graph of Parquet files, and the columns used."""
        from crowdgraph.io.parquet import parquet_columns

        header = list(parquet_columns(self.path))
        used = _guessed(header, self.named, self.notes, self.path)
        return self._built(parquet_columns(self.path, columns=self._kept(header)), used)

    def panoptes(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        """The graph of a Zooniverse export."""
        from crowdgraph.io.panoptes import read_panoptes

        if self.named:
            raise ParameterError("The columns of a Zooniverse export are known; leave out their names.")
        self.notes.append(f"A Zooniverse export: the answers to task {self.task} are read.")
        return read_panoptes(self.path, task=self.task, gold=self._gold(OWN), **self.options), {}

    def crowd(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        """A saved graph, with other gold if there is any."""
        from crowdgraph.io.store import load

        if self.named:
            raise ParameterError("A saved graph has no columns to name; leave out their names.")
        graph, classes = load(self.path), self.options.get("classes")
        if self.gold is None and classes is None:
            return graph, {}
        return graph.with_gold(graph.gold if self.gold is None else self._gold(OWN), classes=classes), {}

    def explained(self, error: InputError, kind: str) -> str:
        """What an error says of rows, in lines of the file, and the way around times that cannot be read."""
        path = self.gold if isinstance(error, GoldError) else self.path
        told = str(error)
        if isinstance(error, GoldError) or kind == "csv":
            told = self.with_lines(told, path)
        return f"{told} Or leave the times out: columns={{'time': ''}}." if isinstance(error, TimeError) else told

    def with_lines(self, message: str, path: Any) -> str:
        """A message with lines of a CSV file, of which the header is the first, in the place of rows from 0 on."""

        def lines(found: re.Match[str]) -> str:
            mark = self.delimiter or _delimiter(path, self.encoding)
            try:
                begins = _lines(path, mark, self.encoding, [int(row) for row in found[2].split(", ")])
            except (csv.Error, IndexError):
                # What is told of rows is right, too.
                return found[0]
            return f"line{found[1]} {', '.join(map(str, begins))}"

        told = ROWS.search(message) and _kind(path, self.delimiter, self.encoding) == "csv"
        return ROWS.sub(lines, message) if told else message

    def _kept(self, header: list[str]) -> list[str]:
        """The columns to read: a column that is called time would be taken for it."""
        return [name for name in header if name != "time" or self.named.get("time") != ""]

    def _built(self, table: Any, used: Mapping[str, str]) -> tuple[CrowdGraph, Mapping[str, str]]:
        options: dict[str, Any] = {**used, **self.options}
        return CrowdGraph.from_responses(table, gold=self._gold(used), **options), used

    def _gold(self, used: Mapping[str, str]) -> Any:
        """The columns of the file of gold under the names that those of the responses have."""
        if self.gold is None:
            return None
        table = self._gold_table(used)
        header = list(table)
        item = _found(header, (used["item"], *NAMES["item"]))
        label = _found(header, (used["label"], *GOLD_NAMES, *NAMES["label"]))
        if item is None:
            raise ColumnError(
                f"{fspath(self.gold)!r} has no column for the item among {quote(header, most=12)}; call it "
                f"{used['item']!r}, as in the responses."
            )
        if label is None:
            # Without a column of classes, each further column is the probability of one.
            return {used["item"] if name == item else name: table[name] for name in header}
        if (item, label) != (used["item"], used["label"]):
            self.notes.append(f"Gold: the column {item} is taken for the item, {label} for its class.")
        return {used["item"]: table[item], used["label"]: table[label]}

    def check_gold(self, graph: CrowdGraph, used: Mapping[str, str]) -> None:
        """Raise if a file of gold is of other items; keep a note if it says nothing."""
        if self.gold is None or len(graph.gold):
            return
        if not graph.gold.n_unmatched:
            self.notes.append(
                f"The file of gold {Path(self.gold).name!r} names no class of any item, so there is no gold."
            )
            return
        item = (used or OWN)["item"]
        named = list(self._gold(used or OWN)[item].slice(0, 3).to_pylist())
        raise GoldError(
            f"None of the {graph.gold.n_unmatched:,} items in {fspath(self.gold)!r} ({quote(named)}, ...) has a "
            f"response in {fspath(self.path)!r} ({quote(graph.items.ids[:3].tolist())}, ...). Give the gold of these "
            "items, with their ids written alike, or none."
        )

    def _gold_table(self, used: Mapping[str, str]) -> Mapping[str, Any]:
        from crowdgraph.io.csv import csv_table
        from crowdgraph.io.parquet import parquet_columns

        gold: Any = self.gold
        if _kind(gold, self.delimiter, self.encoding) == "parquet":
            return parquet_columns(gold)
        mark = self.delimiter or _delimiter(gold, self.encoding)
        words = {*NAMES["item"], *NAMES["label"], *GOLD_NAMES, used["item"].lower(), used["label"].lower()}
        text = [name for name in _header(gold, mark, self.encoding) if name.lower() in words]
        table = csv_table(gold, text=text, delimiter=mark, encoding=self.encoding)
        return {name: table[name] for name in table.column_names}


def _guessed(header: list[str], named: Mapping[str, str], notes: list[str], path: Any) -> dict[str, str]:
    """The column of each role: as named, or guessed from usual names."""
    absent = [name for role, name in named.items() if name not in header and (role, name) != ("time", "")]
    if absent:
        raise ColumnError(f"{fspath(path)!r} has no column {absent[0]!r}; it has {quote(header, most=12)}.")
    used = dict(named)
    for role, words in NAMES.items():
        found = None if role in used else _found([name for name in header if name not in used.values()], words)
        if found is not None:
            used[role] = found
    if named.get("time") == "":
        del used["time"]
    lacking = [role for role in ("volunteer", "item", "label") if role not in used]
    if lacking:
        headless = "" if used else " If these are a response, add a header line above, such as: volunteer,item,label"
        raise ColumnError(
            f"No column of {fspath(path)!r} looks like the {lacking[0]}; it has {quote(header, most=12)}. Name it with "
            f"{lacking[0]}='COLUMN'.{headless}"
        )
    guessed = [f"{name} for the {role}" for role, name in used.items() if role not in named and role != name]
    if guessed:
        notes.append(f"Columns were guessed: {', '.join(guessed)}.")
    return used


def _found(header: list[str], words: tuple[str, ...]) -> str | None:
    """The first of the words that is a column, whatever its case."""
    lower = {name.lower().strip(): name for name in reversed(header)}
    return next((lower[word.lower()] for word in words if word.lower() in lower), None)


def _case_notes(graph: CrowdGraph) -> list[str]:
    """A sentence on classes and labels that are the same but for case, if there are any."""
    labels = {str(label).casefold(): label for label in graph.labels}
    alike = [(name, labels.get(str(name).casefold())) for name in graph.classes if name not in graph.labels]
    told = [f"{name!r} and {label!r}" for name, label in alike if label is not None]
    return [f"Classes of gold and labels differ only in case; a typo? {', '.join(told)}."] if told else []


def _check_there(path: str | PathLike[str]) -> None:
    """Raise unless there is something to read at a path."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"Expected the path of a file; got {path!r}.")
    place = Path(path)
    try:
        if not place.exists():
            raise InputError(f"There is no file {fspath(path)!r}; is the name spelt right?")
        if place.is_dir() and not (list(place.glob("*.parquet")) or (place / SAVED).is_file()):
            raise InputError(f"{fspath(path)!r} is a directory without Parquet files; give the path of a file.")
        if place.suffix.lower() in (".html", ".htm"):
            raise InputError(_is_a_page(place))
        if place.is_file():
            with place.open("rb"):
                pass
    except OSError as error:
        raise InputError(
            f"{fspath(path)!r} cannot be read: {error.strerror}; check the path and its rights."
        ) from error


def _is_a_page(path: Path) -> str:
    saved = path.with_name(SAVED)
    instead = f"give {fspath(saved)!r} beside it" if saved.is_file() else f"give the responses, or a saved {SAVED}"
    return f"{fspath(path)!r} is a report, to be read by people; {instead}."


def _check_roles(named: Mapping[str, str]) -> None:
    strange = [role for role in named if role not in NAMES]
    if strange:
        raise ParameterError(f"columns= names {quote(strange)}; the columns are {quote(NAMES)}.")


def _kind(path: Any, delimiter: Any, encoding: str) -> str:
    """What a file is, by its name or, for CSV, by its columns."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if Path(path).is_dir() or (suffixes and suffixes[-1] in (".parquet", ".pq")):
        return "parquet"
    if suffixes and suffixes[-1] == ".crowd":
        return "crowd"
    header = _header(path, delimiter or _delimiter(path, encoding), encoding)
    return "panoptes" if set(header) >= PANOPTES else "csv"


def _delimiter(path: Any, encoding: str) -> str:
    """The mark that parts the first line into most fields."""
    line = _first_line(path, encoding)
    return max(DELIMITERS, key=lambda mark: (len(_fields(line, mark)), -DELIMITERS.index(mark)))


def _header(path: Any, delimiter: str, encoding: str) -> list[str]:
    return _fields(_first_line(path, encoding), delimiter)


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _first_line(path: Any, encoding: str) -> str:
    """The first line of a file, plain or compressed; nothing where it cannot be read, which the reader will tell."""
    import pyarrow as pa

    try:
        with pa.input_stream(fspath(path), compression="detect") as stream:
            start = stream.read(GLANCE)
            text = start.decode(encoding, errors="replace")
    except (OSError, LookupError, pa.ArrowException):
        return ""
    if "\0" in text and _is_utf16(start):
        raise InputError(f"{fspath(path)!r} is text in UTF-16, as spreadsheets save it; use encoding='utf-16'.")
    if "\0" in text:
        raise InputError(
            f"{fspath(path)!r} is not a text file; give a CSV file, Parquet (.parquet) or a saved graph (.crowd)."
        )
    first = next((line for line in text.lstrip("\ufeff").splitlines() if line.strip()), "")
    if SEPARATOR.fullmatch(first.strip()):
        raise InputError(
            f"{fspath(path)!r} begins with the line {first.strip()!r}, which only spreadsheets know; delete that line."
        )
    return first


def _is_utf16(start: bytes) -> bool:
    """Whether a file begins with the mark of UTF-16, or every other byte is null, as in plain words."""
    few = start[:100]
    return few[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or not (any(few[1::2]) and any(few[::2]))


def _lines(path: Any, delimiter: str, encoding: str, rows: list[int]) -> list[int]:
    """The lines of a CSV file on which some of its rows begin; rows count from 0 after the header."""
    from crowdgraph.io.csv import csv_lines

    begins = [line for line, _ in islice(csv_lines(path, delimiter=delimiter, encoding=encoding), max(rows) + 2)]
    return [begins[row + 1] for row in rows]
