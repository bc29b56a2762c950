"""Tables in and out: from responses in any frame to a graph, and back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, id_array, lock, object_array, value_tuple
from crowdgraph.core.clock import Clock, is_sorted
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import CodedColumn, TimeColumn
from crowdgraph.core.tables import NodeKind, NodeTable, ResponseTable
from crowdgraph.errors import (
    ColumnError,
    DroppedRowsWarning,
    DuplicateError,
    IdError,
    InputError,
    MissingValueError,
    ParameterError,
    check_choice,
    quote,
    suggestion,
    warn,
)
from crowdgraph.io._columns import Column, attribute_array, frame_columns, id_columns, native_frame
from crowdgraph.io._gold import read_gold
from crowdgraph.io._ids import encode, encode_labels, first_appearance
from crowdgraph.io._times import read_times

__all__ = [
    "graph_frame",
    "graph_from_frame",
    "responses_frame",
]

# How many rows are numbered at a time: fresh memory costs more than the numbering.
BLOCK = 1_000_000

# What other tools call our columns, to suggest them where ours are missing.
SYNONYMS = {
    "volunteer": ("worker", "user", "user_name", "annotator", "rater", "agent", "volunteer_id", "user_id"),
    "item": ("task", "subject", "subject_ids", "object", "question", "item_id", "task_id", "subject_id"),
    "label": ("response", "answer", "value", "vote", "score", "annotation"),
}


@dataclass
class Rows:
    """The rows of a table on their way to becoming responses."""

    volunteer: CodedColumn
    item: CodedColumn
    label: Array
    time: Array
    clock: Clock
    attributes: dict[str, Array]

    def take(self, rows: Array) -> Rows:
        """Some rows, in the given order; columns are gathered beside each other."""
        columns = [self.volunteer.codes, self.item.codes, self.label, self.time, *self.attributes.values()]
        with ThreadPoolExecutor(2) as pool:
            volunteer, item, label, time, *extra = pool.map(lambda column: column.take(rows), columns)
        return Rows(
            CodedColumn(volunteer, self.volunteer.values),
            CodedColumn(item, self.item.values),
            label,
            time,
            self.clock,
            dict(zip(self.attributes, extra, strict=True)),
        )


def graph_from_frame(
    frame: Any,
    *,
    volunteer: str = "volunteer",
    item: str = "item",
    label: str = "label",
    time: str = "time",
    gold: Any = None,
    classes: Iterable[Hashable] | None = None,
    labels: Iterable[Hashable] | None = None,
    duplicates: str = "all",
    missing: str = "error",
    volunteers: Any = None,
    items: Any = None,
    clock: Clock | None = None,
    chosen: Array | None = None,
) -> CrowdGraph:
    """Build a graph from a table; see `CrowdGraph.from_responses`.

    Doors that know what their times are say so with `clock`; those that want some rows only say which with the mask
    `chosen`, so that errors name rows of the whole table.
    """
    check_choice("duplicates", duplicates, ("all", "first", "last", "error"))
    check_choice("missing", missing, ("error", "drop", "keep"))
    names = {"volunteer": volunteer, "item": item, "label": label, "time": time}
    strange = [f"{role}={name!r}" for role, name in names.items() if not isinstance(name, str)]
    if strange:
        raise ParameterError(f"Columns are named by text; got {quote(strange)}.")
    columns = frame_columns(frame)
    volunteer, item = id_columns(columns, volunteer=volunteer, item=item)
    names |= {"volunteer": volunteer, "item": item}
    _check_roles(columns, names)
    label_names = None if labels is None else value_tuple(labels, what="labels")
    rows, label_names, null = _read_rows(columns, names, label_names, clock)
    n_rows = len(rows.label)
    if chosen is not None:
        null = {role: mask & chosen for role, mask in null.items()}
    rows = _without_missing(rows, null, missing, chosen)
    if labels is None and len(rows.label) < n_rows:
        rows.label, label_names = _labels_that_occur(rows.label, label_names)
    if not len(rows.label) and volunteers is None and items is None:
        raise InputError("The table has no rows, so there is nothing to make a graph of.")
    if not is_sorted(rows.time):
        rows = rows.take(stable_order(rows.time))
    rows = _without_duplicates(rows, duplicates)
    volunteer_table, volunteer_codes = _nodes("volunteer", rows.volunteer, volunteers, volunteer)
    item_table, item_codes = _nodes("item", rows.item, items, item)
    class_names = None if classes is None else value_tuple(classes, what="classes")
    known = read_gold(gold, items=item_table, labels=label_names, classes=class_names, item=item, label=label)
    responses = ResponseTable(
        volunteer=lock(volunteer_codes),
        item=lock(item_codes),
        label=lock(rows.label),
        time=lock(rows.time),
        clock=rows.clock,
        attributes=rows.attributes,
    )
    return CrowdGraph(volunteer_table, item_table, responses, classes=known.classes, labels=label_names, gold=known)


def _check_roles(columns: Mapping[str, Column], names: Mapping[str, str]) -> None:
    for role, name in names.items():
        if name in columns or (role == "time" and name == "time"):
            continue
        guess = next((word for word in SYNONYMS.get(role, ()) if word in columns), None)
        hint = f" Did you mean {role}={guess!r}?" if guess else suggestion(name, list(columns))
        raise ColumnError(
            f"There is no column {name!r} for the {role}; the table has {quote(columns, most=12) or 'no columns'}. "
            f"Name the column with {role}='...'.{hint}"
        )
    used = [name for role, name in names.items() if name in columns]
    twice = sorted({name for name in used if used.count(name) > 1})
    if twice:
        raise ColumnError(f"Column {twice[0]!r} is named for two things; each of {quote(names)} needs its own column.")
    clash = [name for name in columns if name in names and name not in used]
    if clash:
        raise ColumnError(
            f"The further column {clash[0]!r} has the name of a part of a response, which is read from "
            f"{names[clash[0]]!r}; rename or drop one of them."
        )


def _read_rows(
    columns: Mapping[str, Column],
    names: Mapping[str, str],
    labels: tuple[Hashable, ...] | None,
    clock: Clock | None,
) -> tuple[Rows, tuple[Hashable, ...], dict[str, Array]]:
    """All rows as codes and times, the labels, and for each part of a response which rows lack it."""
    # The id columns take longest; Arrow encodes them beside each other. A column is let go as soon as it is read.
    with ThreadPoolExecutor(2) as pool:
        item = pool.submit(lambda: encode(columns[names["item"]], what="item"))
        volunteer = pool.submit(lambda: encode(columns[names["volunteer"]], what="volunteer"))
        label = pool.submit(lambda: encode_labels(columns[names["label"]], labels=labels))
        coded, label_names = label.result()
        if names["time"] in columns:
            timed, null_time = pool.submit(lambda: read_times(columns[names["time"]], clock=clock)).result()
        else:
            timed, null_time = TimeColumn(np.arange(len(coded)), Clock("order")), np.zeros(len(coded), dtype=bool)
        extra = {name: attribute_array(columns[name]) for name in columns if name not in names.values()}
        rows = Rows(volunteer.result(), item.result(), coded, timed.times, timed.clock, extra)
    null = {
        "volunteer": rows.volunteer.codes < 0,
        "item": rows.item.codes < 0,
        "label": rows.label < 0,
        "time": null_time,
    }
    return rows, label_names, null


def _without_missing(rows: Rows, null: dict[str, Array], missing: str, chosen: Array | None) -> Rows:
    if missing == "keep":
        null = {role: mask for role, mask in null.items() if role != "label"}
    found = {role: np.flatnonzero(mask) for role, mask in null.items() if mask.any()}
    if not found:
        return rows if chosen is None else rows.take(np.flatnonzero(chosen))
    told = "; ".join(f"{role} in rows {quote(places.tolist())}" for role, places in found.items())
    if missing != "drop":
        keep = " or missing='keep' for null labels" if missing == "error" and "label" in found else ""
        raise MissingValueError(f"Null {told}. Mend the table, or use missing='drop' to leave these rows out{keep}.")
    gone = np.logical_or.reduce(list(null.values()))
    warn(f"{np.count_nonzero(gone):,} of {len(gone):,} rows are left out: null {told}.", DroppedRowsWarning)
    return rows.take(np.flatnonzero(~gone if chosen is None else chosen & ~gone))


def stable_order(times: Array) -> Array:
    """The order that sorts the times and keeps equal ones as they are: ``argsort(kind="stable")``, faster.

    For integers, what fits of the time beside the row number is packed into one number and these are sorted, which
    NumPy does several times faster than it finds an order; what did not fit is left to a second, nearly sorted pass.
    """
    if times.dtype.kind == "f" or len(times) < 2:
        return np.argsort(times, kind="stable")
    ticks = times.view(np.int64)
    earliest = int(ticks.min())
    time_bits = (int(ticks.max()) - earliest).bit_length()
    index_bits = (len(times) - 1).bit_length()
    if time_bits > 62:
        return np.argsort(times, kind="stable")
    lost_bits = max(time_bits + index_bits - 63, 0)
    packed = ticks - earliest
    packed >>= lost_bits
    packed <<= index_bits
    for start in range(0, len(packed), BLOCK):
        packed[start : start + BLOCK] |= np.arange(start, min(start + BLOCK, len(packed)))
    packed.sort()
    packed &= 2**index_bits - 1
    if lost_bits:
        nearly = times.take(packed)
        if not is_sorted(nearly):
            return packed.take(np.argsort(nearly, kind="stable"))
    return packed


def _labels_that_occur(codes: Array, names: tuple[Hashable, ...]) -> tuple[Array, tuple[Hashable, ...]]:
    """Labels that only stood in rows left out are no labels."""
    occurs = np.bincount(codes[codes >= 0], minlength=len(names)) > 0
    if occurs.all():
        return codes, names
    place = np.append(np.cumsum(occurs) - 1, -1).astype(codes.dtype)
    return place[codes], tuple(name for name, kept in zip(names, occurs, strict=True) if kept)


def _without_duplicates(rows: Rows, duplicates: str) -> Rows:
    """Keep one answer for each pair of volunteer and item, as asked; rows are sorted by time."""
    if duplicates == "all":
        return rows
    answered = np.flatnonzero(rows.label >= 0)
    pairs = rows.volunteer.codes[answered].astype(np.int64) << 32 | rows.item.codes[answered]
    if duplicates == "last":
        _, from_end = np.unique(pairs[::-1], return_index=True)
        first = len(pairs) - 1 - from_end
    else:
        first = np.unique(pairs, return_index=True)[1]
    again = np.setdiff1d(answered, answered[first])
    if duplicates == "error" and len(again):
        raise DuplicateError(
            f"{len(again):,} responses repeat a volunteer and item, such as volunteer "
            f"{rows.volunteer.values[rows.volunteer.codes[again[0]]]!r} and item "
            f"{rows.item.values[rows.item.codes[again[0]]]!r}. Use duplicates='first', 'last' or 'all'."
        )
    return rows.take(np.setdiff1d(np.arange(len(rows.label)), again)) if len(again) else rows


def _nodes(kind: NodeKind, coded: CodedColumn, table: Any, id_column: str) -> tuple[NodeTable, Array]:
    """The nodes, those of the given table first, then by first response; and the codes of the responses."""
    order = first_appearance(coded)
    named = NodeTable(kind, id_array([])) if table is None else _node_table(kind, table, id_column)
    ids = coded.values[order]
    place = np.full(len(coded.values), -1, dtype=np.int32)
    if len(named):
        known = np.array([node_id in named for node_id in ids.tolist()], dtype=bool)
        place[order[known]] = named.codes(ids[known])
        order, ids = order[~known], ids[~known]
    place[order] = np.arange(len(named), len(named) + len(order))
    if len(named) and len(order):
        if named.attributes:
            raise IdError(
                f"{len(order):,} {kind}s have responses but no row in the table of {kind}s, such as "
                f"{quote(ids[:3].tolist())}; add them to it."
            )
        ids = object_array([*named.ids.tolist(), *ids.tolist()])
    nodes = named if len(named) and not len(order) else NodeTable(kind, lock(ids))
    return nodes, place.take(coded.codes)


def _node_table(kind: NodeKind, table: Any, id_column: str) -> NodeTable:
    columns = frame_columns(table)
    if id_column not in columns:
        raise ColumnError(f"The table of {kind}s has no column {id_column!r}; it has {quote(columns)}.")
    coded = encode(columns[id_column], what=kind)
    if (coded.codes < 0).any():
        raise MissingValueError(
            f"The table of {kind}s has null ids in rows {quote(np.flatnonzero(coded.codes < 0).tolist())}."
        )
    attributes = {name: attribute_array(column) for name, column in columns.items() if name != id_column}
    return NodeTable(kind, id_array(coded.decode()), attributes)


def graph_frame(graph: CrowdGraph, *, table: str, kind: str) -> Any:
    """One of a graph's tables as a frame; see `CrowdGraph.to_pandas`."""
    check_choice("table", table, ("responses", "volunteers", "items", "gold"))
    return native_frame(graph_columns(graph, table), kind=kind)


def graph_columns(graph: CrowdGraph, table: str) -> dict[str, Array | CodedColumn | TimeColumn]:
    """The columns of one of a graph's tables."""
    if table == "volunteers":
        return {"volunteer": graph.volunteers.ids, **graph.volunteers.attributes}
    if table == "items":
        return {"item": graph.items.ids, **graph.items.attributes}
    if table == "gold":
        return _gold_columns(graph)
    return _response_columns(graph, graph.responses.table)


def responses_frame(graph: CrowdGraph, table: ResponseTable, *, kind: str) -> Any:
    """Some of a graph's responses as a frame."""
    return native_frame(_response_columns(graph, table), kind=kind)


def _response_columns(graph: CrowdGraph, table: ResponseTable) -> dict[str, Array | CodedColumn | TimeColumn]:
    columns: dict[str, Array | CodedColumn | TimeColumn] = {
        "volunteer": CodedColumn(table.volunteer, graph.volunteers.ids),
        "item": CodedColumn(table.item, graph.items.ids),
        "label": CodedColumn(table.label, id_array(graph.labels)),
    }
    if table.clock.kind != "order" or not np.array_equal(table.time, np.arange(len(table))):
        columns["time"] = TimeColumn(table.time, table.clock)
    return {**columns, **table.attributes}


def _gold_columns(graph: CrowdGraph) -> dict[str, Array | CodedColumn | TimeColumn]:
    """Items and classes or, where some gold is soft, a column of probabilities for each class."""
    gold = graph.gold
    items = graph.items.ids[gold.known]
    if not gold.is_soft.any():
        return {"item": items, "label": CodedColumn(gold.codes[gold.known], id_array(graph.classes))}
    probs = gold.probs[gold.known]
    taken = {"item", "label"} & set(map(str, graph.classes))
    if taken:
        raise ColumnError(
            f"Soft gold cannot become a table with a column for each class, since a class is called {taken.pop()!r}; "
            "read it from graph.gold."
        )
    return {"item": items, **{str(name): probs[:, code] for code, name in enumerate(graph.classes)}}
