"""Read a graph from a file of any kind: the kind, the delimiter and the columns are guessed, and notes say how."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

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
)
from crowdgraph.io._annotations import TOOLS, sniff_tool
from crowdgraph.io._columns import COUNTED, ROW_NUMBERS, SYNONYMS, find_column
from crowdgraph.io._files import is_file
from crowdgraph.io._gold import gold_items, unseen_classes
from crowdgraph.io._gold_files import GoldFile
from crowdgraph.io._panoptes_rows import check_no_other_export
from crowdgraph.io._soft_answers import soft_columns
from crowdgraph.io.accounts import RowAccount
from crowdgraph.io.columns import ResponseStore, is_store
from crowdgraph.io.conversion import build_store
from crowdgraph.io.csv import csv_table, row_lines, sniff_csv
from crowdgraph.io.excel import excel_columns, is_excel
from crowdgraph.io.extend import without_known
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.io.gexf import read_gexf
from crowdgraph.io.graphml import read_graphml
from crowdgraph.io.panoptes import REQUIRED_COLUMNS, PanoptesExport, QuestionReading, open_panoptes
from crowdgraph.io.parquet import parquet_columns, parquet_schema
from crowdgraph.io.partitions import is_results
from crowdgraph.io.store import SAVED_GRAPH, load
from crowdgraph.messages import Hint, Message, argument, quote, wording

__all__ = ["FILE_KINDS", "Reading", "convert", "file_kind", "open_export", "read", "read_questions", "saved_graph_path"]

TOOL_KINDS = tuple(tool.kind for tool in TOOLS)
FILE_KINDS = ("csv", "excel", "parquet", "panoptes", "crowd", "store", "graphml", "gexf", *TOOL_KINDS)
# The columns of graphs that were not read from a table.
OWN_COLUMNS = {"item": "item", "label": "label"}
# How to leave times out.
WITHOUT_TIMES = Message("columns={'time': ''}.", cli="--no-time.")

# How the names of annotation tools' exports end; doccano's is a zip archive.
JSON_ENDINGS = (".json", ".jsonl", ".ndjson", ".zip")

# What can be said of Zooniverse exports only, and how these options are called on the command line.
EXPORT_OPTIONS = ("task", "workflow", "option", "version", "bins", "anonymous", "malformed", "gold_standard")

# What to do about a file whose columns are not recognised, perhaps because it has no header.
HEADLESS_HINT = " If the first line is already a response, add a header line above it, such as: volunteer,item,label"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A graph that was read from a file, and how it was read.

    Attributes
    ----------
    graph
        The graph.
    kind
        The kind of file it was read as: ``"csv"``, ``"excel"``, ``"parquet"``, ``"panoptes"``, ``"crowd"``,
        ``"store"``, ``"graphml"``, ``"gexf"``, or an annotation tool's: ``"label_studio"``, ``"argilla"``,
        ``"doccano"``, ``"prodigy"`` or ``"inaturalist"``.
    columns
        The column that was read for each role; empty for kinds of files that leave no choice.
    notes
        What was guessed, and what the reader warned about, in sentences.
    account
        What became of every row of a Zooniverse export; None for other kinds.
    title
        What a Zooniverse export asks; None for other kinds.
    choice
        The workflow, the task and what else says which answers of a Zooniverse export these are.
    others
        The other questions of the same workflow.
    """

    graph: CrowdGraph
    kind: str
    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()
    account: RowAccount | None = None
    title: str | None = None
    choice: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()


def read(
    path: str | PathLike[str],
    *,
    gold: str | PathLike[str] | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    extend: CrowdGraph | None = None,
    **options: Any,
) -> Reading:
    r"""Read a graph from a file, and guess what is not specified.

    Parameters
    ----------
    path
        A CSV file (plain or compressed), an Excel workbook (.xlsx), a Parquet file or directory of them, a Zooniverse
        export, an export of an annotation tool (JSON, JSON lines or zip), a saved graph (a file, or a store of
        columns), a directory of results with one, GraphML or GEXF.
    gold
        A CSV or Parquet file with the items whose class is known, and that class.
    kind
        The kind of file, one of those of `Reading`; by default inferred from the file's name and content.
    columns
        The names of some of the columns ``"volunteer"``, ``"item"``, ``"label"`` and ``"time"``; the others are guessed
        among usual names, including those of crowd-kit (worker, task, label) and Zooniverse. An empty name for the time
        leaves times out.
    delimiter, encoding
        Of CSV files; by default the delimiter is guessed from the first line.
    extend
        A graph to which the responses are added, as by `CrowdGraph.extend`; its labels and classes stay.
    **options
        As in `CrowdGraph.from_responses`: `duplicates`, `missing`, `classes`, `labels`, and of tables `probability` and
        `log_probability`; for Zooniverse exports those of `crowdgraph.read_panoptes`, such as `task` and `workflow`;
        for exports of annotation tools `malformed`, and `task`, which names the question.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.tsv"
    >>> _ = path.write_text("worker\ttask\tlabel\nanna\tx\tyes\nbert\tx\tno\n")
    >>> reading = read(path)
    >>> len(reading.graph.responses), dict(reading.columns)
    (2, {'volunteer': 'worker', 'item': 'task', 'label': 'label'})
    """
    _check_readable(path)
    if gold is not None:
        _check_readable(gold)
    notes: list[str] = []
    if kind in (None, "crowd") and saved_graph_path(path) != Path(path):
        path = saved_graph_path(path)
        notes.append(f"This is a directory of results: its graph {SAVED_GRAPH!r} is read.")
    user_columns = {role: name for role, name in (columns or {}).items() if name is not None}
    unknown = [role for role in user_columns if role not in SYNONYMS]
    if unknown:
        raise ParameterError(f"columns= names {quote(unknown)}; the columns are {quote(SYNONYMS)}.")
    if kind is not None:
        check_choice("kind", kind, FILE_KINDS, option="format")
    kind = kind or file_kind(path, delimiter, encoding)
    if kind != "panoptes":
        _check_no_export_options(options, path, kind)
    reader = _FileReader(path, gold, user_columns, delimiter, encoding, options, notes, extend)
    try:
        with collect_warnings(notes):
            graph, used = reader.read(kind)
    except (TimeError, MissingValueError, GoldError) as error:
        raise type(error)(reader.explain(error, kind)) from error
    reader.check_gold(graph, used)
    if kind in ("csv", "panoptes"):
        notes = [reader.with_lines(note, path) for note in notes]
    notes += [*_case_notes(graph), *_unseen_class_notes(graph)]
    facts: dict[str, Any] = {}
    for export, reading in reader.export_reading:
        own = reading.question.workflow
        others = [str(one) for one in export.questions if one.workflow == own and one != reading.question]
        facts = {**_export_facts(reading, options), "others": tuple(others)}
    return Reading(graph=graph, kind=kind, columns=FrozenMapping(used), notes=tuple(notes), **facts)


def open_export(
    path: str | PathLike[str], *, kind: str | None = None, delimiter: str | None = None, encoding: str = "utf-8"
) -> PanoptesExport | None:
    """Return a Zooniverse export with its questions; None for any other file, and for what `read` has to explain."""
    if kind not in (None, "panoptes") or not is_file(path):
        return None
    try:
        is_export = kind is not None or file_kind(path, delimiter, encoding) == "panoptes"
    except InputError:
        return None
    return open_panoptes(path) if is_export else None


def read_questions(export: PanoptesExport, **options: Any) -> tuple[tuple[Reading, ...], Mapping[str, str]]:
    """Read all questions of a Zooniverse export, or some of them; see `PanoptesExport.read_all`.

    Returns
    -------
    tuple, dict
        The readings; and why other questions were not read, by the question.
    """
    notes: list[str] = []
    with collect_warnings(notes):
        readings, refused = export.read_all(**options)
    named = {"tasks", "options", "survey"}
    return tuple(
        Reading(
            graph=one.graph,
            kind="panoptes",
            columns=FrozenMapping({}),
            notes=(*(notes if number == 0 else ()), *one.notes, *_unseen_class_notes(one.graph)),
            **_export_facts(one, {name: value for name, value in options.items() if name not in named}),
        )
        for number, one in enumerate(readings)
    ), refused


def _export_facts(reading: QuestionReading, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reading of an export has beside its graph; the choice holds what other files are read with."""
    choice = {name: options[name] for name in EXPORT_OPTIONS if options.get(name) is not None}
    choice |= {"workflow": reading.question.workflow or None, "task": reading.question.task, "option": reading.option}
    return {
        "account": reading.account,
        "title": reading.title,
        "choice": FrozenMapping({name: value for name, value in choice.items() if value is not None}),
    }


def _check_no_export_options(options: Mapping[str, Any], path: Any, kind: str) -> None:
    allowed = _tool_options(kind) if kind in TOOL_KINDS else {}
    wrong = next((name for name in EXPORT_OPTIONS if options.get(name) is not None and name not in allowed), None)
    if wrong is not None:
        raise ParameterError(
            Message(f"{wrong}=", cli=f"--{wrong.replace('_', '-')}")
            + f" is for Zooniverse exports, and {fspath(path)!r} is none; leave it out."
        )


def _tool_reader(kind: str) -> Callable[..., CrowdGraph]:
    """Return the reader of an annotation tool's exports."""
    tool = next(tool for tool in TOOLS if tool.kind == kind)
    reader: Callable[..., CrowdGraph] = getattr(import_module(f"crowdgraph.io.{kind}"), tool.reader)
    return reader


def _tool_options(kind: str) -> dict[str, str]:
    """Return how the reader of a tool's exports calls those options of Zooniverse exports that it has."""
    names = {"task": "question", "malformed": "malformed"}
    return {option: name for option, name in names.items() if name in signature(_tool_reader(kind)).parameters}


def convert(
    paths: Sequence[str | PathLike[str]],
    store: str | PathLike[str],
    *,
    gold: str | PathLike[str] | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    labels: Sequence[str] | None = None,
    **options: Any,
) -> tuple[ResponseStore, tuple[str, ...]]:
    """Convert tables to a store of columns, and guess what is not specified.

    Parameters
    ----------
    paths
        CSV or Parquet files, or a directory of the latter.
    store
        The directory to write.
    gold, kind, columns, delimiter, encoding
        As in `read`.
    labels
        What volunteers can say, as text; whole numbers where the column has them.
    **options
        As in `crowdgraph.build_store`: `duplicates`, `missing`, `classes`, `attributes`, `memory`, `force`, ...

    Returns
    -------
    ResponseStore, tuple
        The store; and what was guessed, and what the reader warned about, in sentences.
    """
    for path in paths:
        _check_readable(path)
    kinds = {kind or file_kind(path, delimiter, encoding) for path in paths}
    if not kinds <= {"csv", "parquet"} or len(kinds) > 1:
        raise InputError(
            f"Only tables of one kind, CSV or Parquet, are converted to a store without reading them into memory; got "
            f"{quote(sorted(kinds))}. Convert others to Parquet first."
        )
    (one_kind,) = kinds
    notes: list[str] = []
    reader = _FileReader(paths[0], gold, dict(columns or {}), delimiter, encoding, {}, notes)
    mark, header = reader.header(one_kind)
    used = _guess_columns(header, reader.user_columns, notes, paths[0])
    try:
        with collect_warnings(notes):
            built = build_store(
                paths[0] if len(paths) == 1 else paths,
                store,
                volunteer=used["volunteer"],
                item=used["item"],
                label=used["label"],
                time=used.get("time"),
                gold=reader.gold_file,
                labels=_typed_labels(labels, paths[0], used["label"], one_kind),
                delimiter=mark,
                encoding=encoding,
                **options,
            )
    except TimeError as error:
        raise TimeError(error.message + " Or leave the times out: " + WITHOUT_TIMES) from error
    return built, tuple(notes)


def _typed_labels(labels: Sequence[str] | None, path: Any, column: str, kind: str) -> list[Any] | None:
    """Return labels, which are text, as whole numbers if the column of a Parquet file holds such."""
    if not labels or kind != "parquet":
        return list(labels) if labels else None
    is_integer = pa.types.is_integer(parquet_schema(path).field(column).type)
    return [int(label) if is_integer and label.removeprefix("-").isdecimal() else label for label in labels]


def saved_graph_path(path: str | PathLike[str]) -> Path:
    """Return the path of the saved graph in a directory of results; any other path unchanged."""
    saved = Path(path) / SAVED_GRAPH
    return saved if Path(path).is_dir() and saved.is_file() else Path(path)


@dataclass(frozen=True)
class _FileReader:
    """Read one file with its gold, and collect notes; `user_columns` are the columns that the user named."""

    path: str | PathLike[str]
    gold: str | PathLike[str] | None
    user_columns: Mapping[str, str]
    delimiter: str | None
    encoding: str
    options: Mapping[str, Any]
    notes: list[str]
    extend: CrowdGraph | None = None
    export_reading: list[tuple[PanoptesExport, QuestionReading]] = field(default_factory=list)

    def read(self, kind: str) -> tuple[CrowdGraph, Mapping[str, str]]:
        """Return the graph, and the column of each role."""
        duplicates = self.options.get("duplicates", "all")
        readers: dict[str, Callable[[], tuple[CrowdGraph, Mapping[str, str]]]] = {
            "csv": self._csv,
            "parquet": self._parquet,
            "excel": self._excel,
            "panoptes": self._panoptes,
            "crowd": lambda: self._graph_file("A saved graph", load),
            "store": lambda: self._graph_file("A store of columns", load),
            "graphml": lambda: self._graph_file("A GraphML file", partial(read_graphml, duplicates=duplicates)),
            "gexf": lambda: self._graph_file("A GEXF file", partial(read_gexf, duplicates=duplicates)),
        }
        graph, used = self._annotations(kind) if kind in TOOL_KINDS else readers[kind]()
        if self.extend is not None and kind not in ("csv", "excel", "parquet"):
            graph = self.extend.extend(self.only_new(graph, self.extend), duplicates=duplicates)
        return graph, used

    def only_new(self, graph: CrowdGraph, earlier: CrowdGraph) -> CrowdGraph:
        """Return the graph without the responses that an earlier one has already; a note says how many it has."""
        graph, n_known = without_known(graph, earlier, key="classification_id")
        if n_known and not graph.n_responses:
            raise InputError(f"{fspath(self.path)!r} has no new responses: all {n_known:,} are known already.")
        if n_known:
            self.notes.append(f"{n_known:,} of its responses are known already, and are not added again.")
        return graph

    def header(self, kind: str) -> tuple[str, list[str]]:
        """Return the delimiter and the names of the columns of a table."""
        if kind == "parquet":
            return ",", list(parquet_columns(self.path))
        delimiter, header = self._sniff(self.path)
        if not header:
            # If there is anything in the file, the reader can explain better what is wrong with it.
            csv_table(self.path, text=None, delimiter=delimiter, encoding=self.encoding)
            raise InputError(
                f"{fspath(self.path)!r} is empty; give a CSV file with a header and a row for each response."
            )
        return delimiter, header

    def _csv(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        delimiter, header = self.header("csv")
        check_no_other_export(header)
        used = self._guess_columns(header)
        text = [used[role] for role in ("volunteer", "item", "label") if role in used]
        table = csv_table(self.path, text=text, delimiter=delimiter, encoding=self.encoding)
        if not table.num_rows:
            raise InputError(
                f"{fspath(self.path)!r} has a header and no rows; give a file with a row for each response."
            )
        return self._graph(table.select(self._selected(table.column_names)), used), used

    def _parquet(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        _, header = self.header("parquet")
        used = self._guess_columns(header)
        return self._graph(parquet_columns(self.path, columns=self._selected(header)), used), used

    def _excel(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        columns = excel_columns(self.path)
        used = self._guess_columns(list(columns))
        for role in used.keys() & {"volunteer", "item", "label"}:
            # As in CSV files: 7 and "7" are the same name.
            columns[used[role]] = [None if value is None else str(value) for value in columns[used[role]]]
        return self._graph({name: columns[name] for name in self._selected(list(columns))}, used), used

    def _guess_columns(self, header: list[str]) -> dict[str, str]:
        """Return the column of each role; columns of probabilities have none, and may make that of labels needless."""
        named = {name: self.options.get(name) for name in ("probability", "log_probability")}
        soft = soft_columns(header, **named)
        free = [name for name in header if soft is None or name not in soft.names]
        follows = soft is not None and (soft.single is None or "label" not in header)
        if not follows or "label" in self.user_columns:
            return _guess_columns(free, self.user_columns, self.notes, self.path)
        # Any column may be called like one of answers; beside probabilities only the usual name counts.
        others = [name for name in free if name == "label" or name not in SYNONYMS["label"]]
        return _guess_columns(others, self.user_columns, self.notes, self.path, needs_label=False)

    def _refuse_probabilities(self, what: str) -> None:
        if any(self.options.get(name) is not None for name in ("probability", "log_probability")):
            raise ParameterError(
                f"{what} has no columns of probabilities.",
                hint=Hint("Leave probability= out.", cli="Leave --probability out."),
            )

    def _panoptes(self) -> tuple[CrowdGraph, Mapping[str, str]]:
        self._refuse_probabilities("A Zooniverse export")
        if self.user_columns:
            raise ParameterError("The columns of a Zooniverse export are known; leave out their names.")
        options = {name: value for name, value in self.options.items() if value is not None}
        export = open_panoptes(self.path)
        reading = export.read(gold=self.gold_file, **options)
        self.export_reading.append((export, reading))
        asked = reading.question if reading.option is None else f"{reading.question}, whether {reading.option}"
        self.notes.insert(0, f"This is a Zooniverse export: read are the answers to {asked}.")
        self.notes.extend([*reading.notes, str(reading.account)])
        if "task" not in options:
            refused = [one for one in export.questions if one != reading.question and one.refusal is not None]
            self.notes.extend(f"Not read: {one}. " + (one.refusal or "") for one in refused)
        return reading.graph, {}

    def _annotations(self, kind: str) -> tuple[CrowdGraph, Mapping[str, str]]:
        """Read an export of an annotation tool."""
        tool = next(tool for tool in TOOLS if tool.kind == kind)
        self._refuse_probabilities(f"An export of {tool.name}")
        if self.user_columns:
            raise ParameterError(f"The fields of an export of {tool.name} are known; leave out names of columns.")
        self.notes.append(f"This is an export of {tool.name}.")
        names = _tool_options(kind)
        options = {names.get(name, name): value for name, value in self.options.items() if value is not None}
        return _tool_reader(kind)(self.path, gold=self.gold_file, **options), {}

    def _graph_file(self, what: str, read_graph: Callable[[Any], CrowdGraph]) -> tuple[CrowdGraph, Mapping[str, str]]:
        """Read a file that holds a graph, and replace its gold and classes if there are others."""
        self._refuse_probabilities(what)
        if self.user_columns:
            raise ParameterError(f"{what} has no columns to name; leave out their names.")
        graph, classes = read_graph(self.path), self.options.get("classes")
        if self.gold is None and classes is None:
            return graph, {}
        gold = graph.gold if self.gold is None else self.gold_file
        if graph.annotations:
            self.notes.append(f"The graph's results ({quote(graph.annotations)}) saw other gold, and are left out.")
        return graph.with_gold(gold, classes=classes), {}

    def _sniff(self, path: str | PathLike[str]) -> tuple[str, list[str]]:
        return sniff_csv(path, delimiter=self.delimiter, encoding=self.encoding)

    def _selected(self, header: list[str]) -> list[str]:
        """Return the columns to read; without times, a column called time would be taken for them."""
        return [name for name in header if name != "time" or self.user_columns.get("time") != ""]

    def _graph(self, table: Any, used: Mapping[str, str]) -> CrowdGraph:
        options: dict[str, Any] = {**used, **self.options, "gold": self.gold_file}
        return graph_from_frame(table, **options) if self.extend is None else self.extend.extend(table, **options)

    @property
    def gold_file(self) -> GoldFile | None:
        """The file of gold, if there is one."""
        return None if self.gold is None else GoldFile(self.gold, self.delimiter, self.encoding, self.notes)

    def check_gold(self, graph: CrowdGraph, used: Mapping[str, str]) -> None:
        """Raise if a gold file is about other items; add a note if it names no classes."""
        file = self.gold_file
        if file is None or len(graph.gold):
            return
        if not graph.gold.n_unmatched:
            name = Path(file.path).name
            self.notes.append(f"The gold file {name!r} names no class of any item, so there is no gold.")
            return
        item, label = ((used or OWN_COLUMNS)[role] for role in ("item", "label"))
        named = gold_items(file, item=item, label=label, names=graph.classes)[:3]
        raise GoldError(
            f"None of the {graph.gold.n_unmatched:,} items in {fspath(file.path)!r} ({quote(named)}, ...) has a "
            f"response in {fspath(self.path)!r} ({quote(graph.items.ids[:3].tolist())}, ...). Give the gold of these "
            "items, with their ids written alike, or none."
        )

    def explain(self, error: InputError, kind: str) -> Message:
        """Return an error's message with lines of the file instead of rows, and the way around unreadable times."""
        message = error.message
        of_gold = isinstance(error, GoldError) and self.gold is not None
        if of_gold or kind in ("csv", "panoptes"):
            message = self.with_lines(message, self.gold if of_gold else self.path)
        if isinstance(error, TimeError) and "--no-time" not in message.wording("cli"):
            return message + " Or leave the times out: " + WITHOUT_TIMES
        return message

    def with_lines(self, message: str, path: Any) -> Message:
        """Replace row numbers, which count from 0, by lines of a CSV file, whose header is line 1."""

        def lines(match: re.Match[str]) -> str:
            rows = [int(row) for row in match[2].split(", ")]
            delimiter, _ = self._sniff(path)
            try:
                numbers = row_lines(path, rows, delimiter=delimiter, encoding=self.encoding)
            except (csv.Error, IndexError):
                # The number of the row is right, too.
                return match[0]
            return f"line{match[1]} {', '.join(map(str, numbers))}"

        is_text = file_kind(path, self.delimiter, self.encoding) in ("csv", "panoptes")
        names_rows = ROW_NUMBERS.search(message) and is_text

        def change(text: str) -> str:
            changed = ROW_NUMBERS.sub(lines, text) if names_rows else text
            return changed if ROW_NUMBERS.search(changed) else changed.replace(COUNTED, "")

        return _in_both_wordings(message, change)


def _in_both_wordings(message: str, change: Callable[[str], str]) -> Message:
    return Message(change(wording(message, "python")), cli=change(wording(message, "cli")))


def _guess_columns(
    header: list[str], user_columns: Mapping[str, str], notes: list[str], path: Any, *, needs_label: bool = True
) -> dict[str, str]:
    """Return the column of each role: the user_columns one, or one with a usual name."""
    absent = [name for role, name in user_columns.items() if name not in header and (role, name) != ("time", "")]
    if absent:
        raise ColumnError(f"{fspath(path)!r} has no column {absent[0]!r}; it has {quote(header, most=12)}.")
    used = dict(user_columns)
    for role, synonyms in SYNONYMS.items():
        if role not in used:
            free = [name for name in header if name not in used.values()]
            column = find_column(free, (role, *synonyms))
            if column is not None:
                used[role] = column
    if user_columns.get("time") == "":
        del used["time"]
    needed = ("volunteer", "item", "label") if needs_label else ("volunteer", "item")
    lacking = next((role for role in needed if role not in used), None)
    if lacking is not None:
        headless = "" if used else HEADLESS_HINT
        raise ColumnError(
            f"No column of {fspath(path)!r} looks like the {lacking}; it has {quote(header, most=12)}. Name it with "
            + argument(lacking, "COLUMN")
            + f".{headless}"
        )
    guesses = [f"{name} for the {role}" for role, name in used.items() if role not in user_columns and role != name]
    if guesses:
        notes.append(f"Columns were guessed: {', '.join(guesses)}.")
    return used


def _case_notes(graph: CrowdGraph) -> list[str]:
    """Return a note on classes and labels that differ only in case, if there are any."""
    labels = {str(label).casefold(): label for label in graph.labels}
    alike = [(name, labels.get(str(name).casefold())) for name in graph.classes if name not in graph.labels]
    pairs = [f"{name!r} and {label!r}" for name, label in alike if label is not None]
    return [f"Classes of gold and labels differ only in case; a typo? {', '.join(pairs)}."] if pairs else []


def _unseen_class_notes(graph: CrowdGraph) -> list[str]:
    """Return a note on labels that are classes although gold never is, which chance alone does not explain."""
    unseen = unseen_classes(graph)
    if not unseen:
        return []
    seen = [name for name in graph.classes if name not in unseen]
    classes = Message(f"classes={seen!r}", cli=" ".join(f"--class {shlex.quote(str(name))}" for name in seen))
    one = len(unseen) == 1
    sentence = (
        f"No gold item is {quote(unseen)}, though volunteers say so: {'it is a class' if one else 'they are classes'} "
        f"here. If no item can be {'that' if one else 'those'}, name what items can be: "
    )
    return [sentence + classes + "."]


def _check_readable(path: str | PathLike[str]) -> None:
    """Raise unless there is something to read at a path."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"Expected the path of a file; got {path!r}.")
    file = Path(path)
    try:
        if not file.exists():
            raise InputError(f"There is no file {fspath(path)!r}; is the name spelt right?")
        if file.is_dir() and (file / "index.html").is_file() and not (file / SAVED_GRAPH).is_file():
            raise InputError(f"{fspath(path)!r} holds several analyses; give the folder of one of them.")
        if file.is_dir() and not (
            list(file.glob("*.parquet")) or (file / SAVED_GRAPH).is_file() or is_store(file) or is_results(file)
        ):
            raise InputError(f"{fspath(path)!r} is a directory without Parquet files; give the path of a file.")
        if file.suffix.lower() in (".html", ".htm"):
            saved = file.with_name(SAVED_GRAPH)
            beside = f"give {fspath(saved)!r} beside it"
            advice = beside if saved.is_file() else f"give the responses, or a saved {SAVED_GRAPH}"
            raise InputError(f"{fspath(path)!r} is a report, to be read by people; {advice}.")
        if file.is_file():
            with file.open("rb"):
                pass
    except OSError as error:
        raise InputError(
            f"{fspath(path)!r} cannot be read: {error.strerror}; check the path and its permissions."
        ) from error


def file_kind(path: Any, delimiter: str | None, encoding: str) -> str:
    """Return the kind of a file by its name or, for CSV, by its columns."""
    suffix = Path(path).suffix.lower()
    if is_store(path) or is_results(path):
        return "store"
    if Path(path).is_dir() or suffix in (".parquet", ".pq"):
        return "parquet"
    if is_excel(path):
        return "excel"
    if suffix in (".crowd", ".graphml", ".gexf"):
        return suffix.removeprefix(".")
    if suffix in JSON_ENDINGS or (suffix == ".gz" and Path(Path(path).stem).suffix.lower() in JSON_ENDINGS):
        return sniff_tool(path)
    _, header = sniff_csv(path, delimiter=delimiter, encoding=encoding)
    if {"annotation_id", "annotator", "lead_time"} <= set(header):
        return "label_studio"
    return "panoptes" if set(header) >= set(REQUIRED_COLUMNS) else "csv"
