"""Carry a graph's annotations, and the types of its values, through formats that hold only text and numbers.

Annotations become one line of ASCII text: a zip file, written as saved graphs are, in base64. Settings say how the text
of a file becomes ids, labels, times and attributes again, exactly.
"""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from crowdgraph.core._arrays import (
    Array,
    columns_equal,
    id_array,
    is_null,
    object_array,
    same_values,
    to_list,
    value_tuple,
)
from crowdgraph.core.clock import Clock
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import (
    AlignmentError,
    CrowdGraphError,
    CrowdGraphWarning,
    IdError,
    InputError,
    warn,
)
from crowdgraph.io._stored_values import read_npy
from crowdgraph.io.store import _ArchiveReader, _ArchiveWriter
from crowdgraph.messages import quote

# The version of the settings and of the annotations.
VERSION = 1
# How a column is written as text. Columns of other types are named by NumPy: int64, float64, bool, datetime64[us], ...
TEXT, JSON = "text", "json"
# Characters that XML cannot represent.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TABLES = ("volunteer", "item", "response")


# Annotations


def pack_annotations(graph: CrowdGraph) -> str:
    """Return a graph's annotations as one line of ASCII text; empty text if it has none.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=5, n_items=10, n_responses=40, seed=0).graph
    >>> text = pack_annotations(graph.annotate(cg.MajorityVote().fit(graph)))
    >>> unpack_annotations(text, graph).fit().model
    'majority_vote'
    """
    if not graph.annotations:
        return ""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        writer = _ArchiveWriter(archive, graph)
        manifest = {
            "version": VERSION,
            # The results may share the ids of the graph, which has others once it was edited.
            "volunteers": writer._array(graph.volunteers.ids, share=False),
            "items": writer._array(graph.items.ids, share=False),
            "annotations": [[name, writer.value(result)] for name, result in graph.annotations.items()],
        }
        # Without a date, so that the same annotations are the same text.
        entry = zipfile.ZipInfo("manifest.json")
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, json.dumps(manifest, allow_nan=False))
    return base64.b64encode(content.getvalue()).decode("ascii")


def unpack_annotations(text: str, graph: CrowdGraph) -> CrowdGraph:
    """Return the graph with the annotations of a text that `pack_annotations` wrote.

    An annotation that does not match the graph any more, because the graph was edited, is left out with a warning.

    Raises
    ------
    InputError
        If the text is damaged.
    """
    if not text.strip():
        return graph
    try:
        results = _read_annotations(text, graph)
    except Exception as error:  # damaged text can fail anywhere, in ways that nobody foresaw
        raise InputError(
            f"The annotations in the file are damaged or cut short ({error}). Write the file again from the graph, or "
            "delete the attribute 'crowdgraph_annotations' to read the graph without them."
        ) from error
    return annotate_matching(graph, results)


def annotate_matching(graph: CrowdGraph, results: Mapping[str, Any]) -> CrowdGraph:
    """Return the graph with the results that match it; those that do not are left out with a warning for each."""
    for name, result in results.items():
        try:
            graph = graph.annotate(result, name=name)
        except AlignmentError as error:
            warn(
                f"The annotation {name!r} is left out, since the graph was edited after it was made: {error}",
                CrowdGraphWarning,
            )
    return graph


def _read_annotations(text: str, graph: CrowdGraph) -> dict[str, Any]:
    content = base64.b64decode("".join(text.split()), validate=True)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        reader = _ArchiveReader(archive, "The graph attribute crowdgraph_annotations")
        manifest = reader.json("manifest.json")
        if manifest["version"] > VERSION:
            raise ValueError(f"they are of version {manifest['version']}, this crowdgraph reads up to {VERSION}")
        for name, ids in (("volunteers", graph.volunteers.ids), ("items", graph.items.ids)):
            old_ids = id_array(reader.value(manifest[name]))
            reader._shared_ids[name] = ids if same_values(old_ids, ids) else old_ids
        return {name: reader.value(result) for name, result in manifest["annotations"]}


# Settings


@dataclass(frozen=True)
class GraphSettings:
    """How text becomes a graph again.

    Attributes
    ----------
    classes, labels
        The graph's classes and labels.
    clock, time_type
        The graph's clock and the type of its column of times.
    n_unmatched
        The number of gold items that are not in the graph.
    id_types
        How the ids of each kind of node are written.
    attributes
        For ``"volunteer"``, ``"item"`` and ``"response"``, how each attribute is written, in order.
    """

    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    clock: Clock
    time_type: str
    n_unmatched: int
    id_types: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, str]]


def graph_settings(graph: CrowdGraph) -> dict[str, Any]:
    """Return what `read_settings` needs to know about a graph, as values that JSON holds.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> read_settings(graph_settings(graph)).classes == graph.classes
    True
    """
    responses, clock = graph.responses, graph.responses.clock
    return {
        "version": VERSION,
        "classes": [encode_value(name) for name in graph.classes],
        "labels": [encode_value(name) for name in graph.labels],
        "clock": {"kind": clock.kind, "zone": clock.zone, "type": str(responses.time.dtype)},
        "n_unmatched": graph.gold.n_unmatched,
        "ids": {kind: column_type(table.ids) for kind, table in _node_tables(graph).items()},
        "attributes": {
            name: {key: column_type(column) for key, column in columns.items()}
            for name, columns in _attributes(graph).items()
        },
    }


def read_settings(values: Any) -> GraphSettings:
    """Return the settings that `graph_settings` wrote; raise `InputError` if they are not."""
    try:
        if values["version"] > VERSION:
            raise InputError(
                f"The graph was written in format {values['version']}, this crowdgraph reads up to {VERSION}; upgrade "
                "it with: pip install --upgrade crowdgraph"
            )
        clock = values["clock"]
        return GraphSettings(
            classes=value_tuple(map(decode_value, values["classes"]), what="classes"),
            labels=value_tuple(map(decode_value, values["labels"]), what="labels"),
            clock=Clock(clock["kind"], clock["zone"]),
            time_type=str(np.dtype(clock["type"])),
            n_unmatched=int(values["n_unmatched"]),
            id_types={kind: str(values["ids"][kind]) for kind in TABLES[:2]},
            attributes={name: _text_mapping(values["attributes"][name]) for name in TABLES},
        )
    except InputError:
        raise
    except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"The settings in the graph attribute 'crowdgraph' are damaged ({error}); delete the attribute to read the "
            "graph as that of another program."
        ) from error


def _text_mapping(values: Any) -> dict[str, str]:
    """Return a mapping of text to text, or raise if it is none."""
    if not all(isinstance(part, str) for pair in values.items() for part in pair):
        raise TypeError("the types of attributes are named by text")
    return dict(values)


def _node_tables(graph: CrowdGraph) -> dict[str, NodeTable]:
    return {"volunteer": graph.volunteers.table, "item": graph.items.table}


def _attributes(graph: CrowdGraph) -> dict[str, Mapping[str, Array]]:
    nodes = {kind: table.attributes for kind, table in _node_tables(graph).items()}
    return {**nodes, "response": graph.responses.attributes}


# Columns and values as text


def column_type(column: Array) -> str:
    """Return how a column is written as text: ``"text"``, ``"json"``, or as the NumPy type of its values.

    Text with characters that XML lacks is written as JSON, which escapes them.

    Examples
    --------
    >>> import numpy as np
    >>> [column_type(np.array(values)) for values in ([1, 2], [0.5], [True], ["x"], [(1, 2), (3, 4)])]
    ['int64', 'float64', 'bool', 'text', 'json']
    """
    if column.ndim != 1:
        return JSON
    if column.dtype.kind in "iufbM" and column.dtype.itemsize <= 8:
        return str(column.dtype)
    values = [value for value in column.tolist() if value is not None]
    plain_text = all(type(value) is str for value in values) and not any(map(NOT_XML.search, values))
    return TEXT if plain_text else JSON


def column_texts(column: Array, kind: str, *, owner: str) -> list[str | None]:
    """Return the values of a column as text, None for null.

    Parameters
    ----------
    column
        The column.
    kind
        Its `column_type`.
    owner
        What the column is, for errors, such as ``"The attribute 'country' of the volunteers"``.
    """
    if kind == TEXT:
        return [None if value is None else value for value in column.tolist()]
    if kind == JSON:
        return [None if is_null(value) else _json_text(value, owner) for value in to_list(column)]
    if kind == "bool":
        return ["true" if value else "false" for value in column.tolist()]
    if kind.startswith("datetime64"):
        texts = np.datetime_as_string(column).tolist()
        return [None if text == "NaT" else text for text in texts]
    if kind.startswith("float"):
        texts = [None if value != value else str(value) for value in column.tolist()]
        # Java, in which Gephi is written, reads no other word for it.
        infinite = {"inf": "Infinity", "-inf": "-Infinity"}
        return [infinite.get(text, text) for text in texts] if np.isinf(column).any() else texts
    return list(map(str, column.tolist()))


def column_values(texts: Sequence[str | None], kind: str, *, owner: str) -> Any:
    """Return the values of texts that `column_texts` wrote: an array if it has no gaps, otherwise a list.

    Raises
    ------
    InputError
        If a text is not a value of the type; it names `owner`.
    """
    try:
        if kind == TEXT:
            return list(texts)
        if kind == JSON:
            return [None if text is None else decode_value(json.loads(text)) for text in texts]
        if kind == "bool":
            return typed_column([None if text is None else _boolean(text) for text in texts], kind)
        if kind.startswith("datetime64"):
            return np.array(["NaT" if text is None else text for text in texts], dtype=kind)
        number: Any = float if kind.startswith("float") else int
        return typed_column([None if text is None else number(text) for text in texts], kind)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{owner} should be of type {kind}, and one of its values is not ({error}). Correct the value, or delete "
            "the graph attribute 'crowdgraph' to read everything as it looks."
        ) from error


def typed_column(values: Iterable[Any], kind: str) -> Any:
    """Return Python values as an array of a type where that is exact, and as the list that they are elsewhere."""
    listed = list(values)
    has_gaps = any(value is None for value in listed)
    if kind in (TEXT, JSON) or (has_gaps and not kind.startswith(("float", "datetime64"))):
        return listed
    column = np.array(listed, dtype=kind)
    return column if columns_equal(object_array(to_list(column)), object_array(listed)) else listed


def encode_value(value: Any) -> Any:
    """Return a value as JSON, in the form of saved graphs.

    Examples
    --------
    >>> encode_value((1, "a")), decode_value(encode_value((1, "a")))
    ({'tuple': [1, 'a']}, (1, 'a'))
    """
    return _TextWriter().value(value)


def decode_value(node: Any) -> Any:
    """Return the value that `encode_value` wrote."""
    return _text_reader().value(node)


class _TextWriter(_ArchiveWriter):
    """Write values as JSON, arrays included."""

    def __init__(self) -> None:
        self._shared_ids = {}

    def _array(self, array: Array, *, share: bool = True) -> Any:  # noqa: ARG002 - nothing is shared between values
        if array.dtype == object:
            raise IdError("an array of objects cannot be written as text")
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array, order="C"), allow_pickle=False)
        return {"array": base64.b64encode(content.getvalue()).decode("ascii")}


class _TextReader(_ArchiveReader):
    """Read values that a `_TextWriter` wrote."""

    def __init__(self) -> None:
        super().__init__(None, "")  # there is no archive

    def _array(self, file: str) -> Array:
        return read_npy(base64.b64decode(file, validate=True))


@cache
def _text_reader() -> _TextReader:
    return _TextReader()


def _json_text(value: Any, owner: str) -> str:
    try:
        return json.dumps(encode_value(value), allow_nan=False)
    except CrowdGraphError as error:
        raise IdError(f"{owner} holds {quote([value])}, which a file cannot carry: {error}") from error


def _boolean(text: str) -> bool:
    return {"true": True, "false": False, "True": True, "False": False, "1": True, "0": False}[text.strip()]
