"""What annotation tools write: JSON with the line of each record, and annotations that become a graph.

A reader turns the records of its tool into annotations. An annotation is either read or left out for a reason that a
warning counts, or it is malformed and raises an error that names its position in the file.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import DroppedRowsWarning, GoldError, InputError, check_choice, warn
from crowdgraph.io._columns import COUNTED, ROW_NUMBERS
from crowdgraph.io._files import is_file
from crowdgraph.io._unpacked import check_unpacked, text_source
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.messages import Hint, Message, quote, wording

Malformed = Literal["error", "skip"]
SPACE = re.compile(r"[ \t\r\n]*")
NOT_JSON = (ValueError, RecursionError)
DECODER = json.JSONDecoder()


class Record(NamedTuple):
    """A value of a JSON file, and its position in words, such as ``line 3``."""

    value: Any
    position: str


class Tool(NamedTuple):
    """An annotation tool: its name, the kind of file, its function, and whether a record is its own."""

    name: str
    kind: str
    reader: str
    owns: Callable[[Mapping[str, Any]], bool]


# In this order: a record is of the first tool whose keys it has.
TOOLS = (
    Tool("Prodigy", "prodigy", "read_prodigy", lambda record: "_task_hash" in record or "_input_hash" in record),
    Tool(
        "Label Studio",
        "label_studio",
        "read_label_studio",
        lambda record: (
            ("data" in record and ("annotations" in record or "completions" in record))
            or {"annotation_id", "annotator"} <= set(record)
        ),
    ),
    Tool("Argilla", "argilla", "read_argilla", lambda record: "fields" in record and "responses" in record),
    Tool(
        "iNaturalist",
        "inaturalist",
        "read_inaturalist",
        lambda record: {"taxon", "user"} <= set(record) or "identifications" in record or "results" in record,
    ),
    Tool(
        "doccano",
        "doccano",
        "read_doccano",
        lambda record: (
            ("text" in record or "filename" in record or "data" in record)
            and any(key in record for key in ("label", "labels", "annotations", "cats"))
        ),
    ),
)


def tool_of(record: Any) -> Tool | None:
    """Return the tool whose record a value looks like."""
    return next((tool for tool in TOOLS if isinstance(record, dict) and tool.owns(record)), None)


def tool_named(kind: str) -> Tool:
    """Return the tool that writes a kind of file."""
    return next(tool for tool in TOOLS if tool.kind == kind)


def sniff_tool(path: str | PathLike[str]) -> str:
    """Return the kind of an annotation tool's file by its first record; raise if it is of none that is known."""
    if zipfile.is_zipfile(path):
        return "doccano"
    first = next(records_of(read_text(path), fspath(path)), None)
    tool = None if first is None else tool_of(first.value)
    if tool is None:
        names = quote([one.name for one in TOOLS], most=len(TOOLS))
        raise InputError(
            f"{fspath(path)!r} is JSON, but not a file of {names}: " + _what_it_is(first),
            hint="Give the export of such a tool, or a table (CSV or Parquet) with a row for each response.",
        )
    return tool.kind


def _what_it_is(first: Record | None) -> str:
    if first is None:
        return "it holds nothing."
    if isinstance(first.value, dict):
        return f"its first record has {quote(list(first.value), most=12) or 'no keys'}."
    return f"it begins with {first.value!r:.60}."


# Text and records


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file, plain or compressed, in UTF-8."""
    if not is_file(path):
        raise InputError(f"{path!r} is not a file; give the path of an export of the tool.")
    try:
        with text_source(path) as source:
            content = Path(source).read_bytes() if isinstance(source, str) else source.readall()
        return decoded(content, fspath(path))
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{fspath(path)!r} cannot be read: {error}. It may be cut short; download it again."
        ) from error


def decoded(content: bytes, name: str) -> str:
    """Return bytes as text; raise if they are not in UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name!r} is not text in UTF-8: line {line} has the byte {content[error.start]:#04x}. It may be another "
            "kind of file; give the JSON that the tool exports."
        ) from error


def records_of(text: str, name: str, *, on_error: Callable[[str, str], None] | None = None) -> Iterator[Record]:
    """Yield the records of a JSON array, of JSON lines or of a single JSON value, each with its line.

    Parameters
    ----------
    text
        The JSON.
    name
        The file, as errors call it.
    on_error
        Called with the reason and the position of a line of JSON lines that is not JSON, which is then passed over;
        without it, and in arrays, this is an error.
    """
    begin = _skip_space(text, 0)
    if text.startswith("[", begin):
        return _array_records(text, begin, name)
    return _line_records(text, begin, name, on_error)


def _array_records(text: str, begin: int, name: str) -> Iterator[Record]:
    """Yield the values of a JSON array."""
    lines = _Lines(text)
    at = _skip_space(text, begin + 1)
    ends = text.startswith("]", at)
    while not ends:
        position = f"line {lines.at(at)}"
        try:
            value, at = DECODER.raw_decode(text, at)
        except NOT_JSON as error:
            raise _not_json(name, position, _reason(error)) from error
        yield Record(value, position)
        at = _skip_space(text, at)
        ends = text.startswith("]", at)
        if not ends:
            if not text.startswith(",", at):
                raise _not_json(name, f"line {lines.at(at)}", "a comma or ] was expected after a record")
            at = _skip_space(text, at + 1)
    if text[at + 1 :].strip():
        raise _not_json(name, f"line {lines.at(at)}", "there is more after the end of the array")


def _line_records(text: str, at: int, name: str, on_error: Callable[[str, str], None] | None) -> Iterator[Record]:
    """Yield JSON values that follow each other, as in JSON lines."""
    lines = _Lines(text)
    while at < len(text):
        position = f"line {lines.at(at)}"
        try:
            value, end = DECODER.raw_decode(text, at)
        except NOT_JSON as error:
            if on_error is None:
                raise _not_json(name, position, _reason(error)) from error
            on_error(f"is not JSON ({_reason(error)})", position)
            end = text.find("\n", at)
            at = len(text) if end < 0 else _skip_space(text, end)
            continue
        yield Record(value, position)
        at = _skip_space(text, end)


class _Lines:
    """The numbers of lines of rising positions in a text."""

    def __init__(self, text: str) -> None:
        self._text, self._position, self._line = text, 0, 1

    def at(self, position: int) -> int:
        """Return the line of a position that is not before the last one."""
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).split(":")[0]


def _skip_space(text: str, at: int) -> int:
    match = SPACE.match(text, at)
    return at if match is None else match.end()


def _not_json(name: str, position: str, reason: str) -> InputError:
    return InputError(
        f"{name!r} is not JSON: {position} cannot be read ({reason}).",
        hint="It may be cut short, or edited by hand; export it from the tool again.",
    )


# Annotations


class Annotation(NamedTuple):
    """What a volunteer said about an item: a value for each question that was answered, when, and where it stands."""

    volunteer: str
    item: str
    answers: Mapping[str, Any]
    time: str | None
    position: str


class MalformedError(Exception):
    """A record is not as its tool writes it."""


class AnnotationLog:
    """Collects the annotations of a file and accounts for every one of them.

    Parameters
    ----------
    path
        The file.
    kind
        The kind of file, of one of the tools.
    malformed
        What to do with annotations that are not as the tool writes them: raise an ``"error"``, or ``"skip"`` them.
    """

    def __init__(self, path: str | PathLike[str], kind: str, *, malformed: str) -> None:
        check_choice("malformed", malformed, ("error", "skip"))
        self.tool = tool_named(kind)
        self._name = fspath(path) if isinstance(path, str | PathLike) else repr(path)
        self._skips_malformed = malformed == "skip"
        self._annotations: list[Annotation] = []
        self._left_out: dict[str, list[str]] = {}

    def records(self, text: str, *, of: str = "") -> Iterator[dict[str, Any]]:
        """Yield the records of JSON that are objects; `position` is then that of the last one.

        The first one must be of this tool; an error names the other tool, if it is of one.
        """
        is_first = True
        for value, position in records_of(
            text, of or self._name, on_error=self.reject if self._skips_malformed else None
        ):
            self.position = f"{position} of {of!r}" if of else position
            if is_first:
                self.check_own(value)
            is_first = False
            if isinstance(value, dict):
                yield value
            else:
                self.reject(f"is not an object but {value!r:.40}", self.position)

    def check_own(self, record: Any) -> None:
        """Raise unless a record looks like one of this tool."""
        other = tool_of(record)
        if other == self.tool:
            return
        if other is not None:
            raise InputError(
                f"{self._name!r} is a file of {other.name}, not of {self.tool.name}.",
                hint=Hint(
                    f"Read it with crowdgraph.{other.reader}(path).",
                    cli=f"Leave out --format, or use --format {other.kind}.",
                ),
            )
        raise InputError(
            f"{self._name!r} is not an export of {self.tool.name}: " + _what_it_is(Record(record, "")),
            hint=Hint("For tables use crowdgraph.read_csv or read_parquet.", cli="For tables use --format csv."),
        )

    def add(self, volunteer: Any, item: Any, answers: Mapping[str, Any], *, time: str | None = None) -> None:
        """Take note of an annotation at the position of the last record; who and what are made text."""
        self._annotations.append(
            Annotation(identifier(volunteer, "volunteer"), identifier(item, "item"), answers, time, self.position)
        )

    def leave_out(self, reason: str) -> None:
        """Take note that the annotation at the position of the last record is left out."""
        self._left_out.setdefault(reason, []).append(self.position)

    def reject(self, reason: str, position: str) -> None:
        """Leave out what is malformed, or raise."""
        if not self._skips_malformed:
            raise InputError(
                f"{self._name!r}, {position}: what is there {reason}.",
                hint=Hint(
                    "Correct the file, or use malformed='skip' to leave such annotations out.",
                    cli="Correct the file, or leave such annotations out, in Python with malformed='skip'.",
                ),
            )
        self._left_out.setdefault(f"malformed: {reason}", []).append(position)

    def each(self, entries: Iterable[Any], take: Callable[[Any], None]) -> None:
        """Call a function with each entry of a record; one that it finds malformed is left out, or raises."""
        for entry in entries:
            try:
                take(entry)
            except MalformedError as error:
                self.reject(str(error), self.position)

    def graph(self, *, question: str | None, gold: Any, options: Mapping[str, Any]) -> CrowdGraph:
        """Return the graph of the annotations that answer a question, the only one if it is not named."""
        question = self._question(question)
        rows = [row for row in (self._row(one, question) for one in self._annotations) if row is not None]
        if any(row.time is not None for row in rows):
            for row in rows:
                if row.time is None:
                    self.reject("has no time, though others have", row.position)
            rows = [row for row in rows if row.time is not None]
        n_left_out = sum(map(len, self._left_out.values()))
        if n_left_out:
            reasons = "; ".join(
                f"{len(positions):,} {why} ({_first(positions)})" for why, positions in self._left_out.items()
            )
            warn(
                f"{n_left_out:,} of {n_left_out + len(rows):,} annotations are left out: {reasons}.", DroppedRowsWarning
            )
        if not rows:
            raise InputError(f"No annotation of {self._name!r} is left, so there is nothing to make a graph of.")
        frame: dict[str, Any] = {
            "volunteer": [row.volunteer for row in rows],
            "item": [row.item for row in rows],
            "label": [row.answers[question] for row in rows],
        }
        if rows[0].time is not None:
            frame["time"] = [row.time for row in rows]
        try:
            return graph_from_frame(frame, gold=gold, **options)
        except GoldError:
            raise
        except InputError as error:
            raise type(error)(_with_positions(error.message, [row.position for row in rows])) from error

    def _question(self, question: str | None) -> str:
        """Return the question to read; raise if it is not asked, or if it is not named and there are several."""
        counts = Counter(name for one in self._annotations for name in one.answers)
        named = Message("question=", cli="--task ")
        if question is not None and question not in counts:
            asked = quote(counts) or "nothing that can be a label"
            raise InputError(f"No annotation of {self._name!r} answers the question {question!r}; it answers {asked}.")
        if question is not None:
            return question
        plain = [name for name in counts if any(_is_plain(one.answers.get(name)) for one in self._annotations)]
        if len(plain) != 1:
            what = f"answers several questions: {quote(plain)}" if plain else "has no answer that can be a label"
            raise InputError(
                f"{self._name!r} {what}.",
                hint="Say which one to read with " + named + "NAME." if plain else "Is it the right file?",
            )
        return plain[0]

    def _row(self, annotation: Annotation, question: str) -> Annotation | None:
        """Return an annotation with the label that it gives; None if it is left out."""
        self.position = annotation.position
        if question not in annotation.answers:
            self.leave_out("do not answer the question")
            return None
        value = annotation.answers[question]
        if value is None or value in ([], ""):
            self.leave_out("have no label")
            return None
        if not _is_plain(value):
            self.reject(f"has an answer that cannot be a label: {value!r:.60}", annotation.position)
            return None
        return annotation._replace(answers={question: label_of(value)})


def _first(positions: list[str], most: int = 5) -> str:
    return ", ".join(positions[:most]) + (", ..." if len(positions) > most else "")


def _is_plain(value: Any) -> bool:
    """Return whether a value can be a label: a plain one, or a list of such."""
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(one, str | int | float) for one in values)


def label_of(value: Any) -> Hashable:
    """Return the label of a plain value; several are joined with ``" + "``, as those of Zooniverse."""
    if not isinstance(value, list):
        return value  # type: ignore[no-any-return]
    return value[0] if len(value) == 1 else " + ".join(sorted(map(str, value)))


def identifier(value: Any, what: str) -> str:
    """Return an id as text; raise if it is missing or not plain."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise MalformedError(f"does not name the {what} ({value!r:.40})")
    return str(value)


def member(record: Any, key: str, kind: type) -> Any:
    """Return what a record has under a key; raise unless it is of a kind."""
    if not isinstance(record, dict):
        raise MalformedError(f"is not an object but {record!r:.40}")
    value = record.get(key)
    if not isinstance(value, kind):
        words = {"dict": "an object", "list": "a list", "str": "text"}[kind.__name__]
        raise MalformedError(f"needs {words} under {key!r}, and has {value!r:.40}")
    return value


def time_of(record: Mapping[str, Any], key: str = "created_at") -> str | None:
    """Return the text of a time, or None if there is none."""
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedError(f"needs a time as text under {key!r}, and has {value!r:.40}")
    return value or None


def archive_texts(path: str | PathLike[str], endings: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of files in a zip archive whose names end so, by their names."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if one.filename.endswith(endings) and not one.is_dir()]
            unpacked = sum(one.file_size for one in members)
            check_unpacked(repr(fspath(path)), packed=Path(path).stat().st_size, unpacked=unpacked)
            return {one.filename: decoded(archive.read(one), one.filename) for one in members}
    except InputError:
        raise
    except Exception as error:  # what a stranger wrote can fail anywhere
        raise InputError(f"{fspath(path)!r} is a damaged archive ({error}); download it again.") from error


def _with_positions(message: Message, positions: list[str]) -> Message:
    """Replace the numbers of rows in a message by the positions of these annotations."""

    def change(text: str) -> str:
        def position(match: re.Match[str]) -> str:
            return ", ".join(positions[int(row)] for row in match[2].split(", "))

        with suppress(IndexError):
            text = ROW_NUMBERS.sub(position, text).replace(COUNTED, "")
        return text

    return Message(change(wording(message, "python")), cli=change(wording(message, "cli")))
