"""Build graphs from tables of responses, and convert graphs to tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, id_array, lock, object_array, value_tuple
from crowdgraph.core._text import quantity
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
    warn,
)
from crowdgraph.io._columns import (
    COUNTED,
    SYNONYMS,
    Column,
    attribute_array,
    frame_columns,
    id_columns,
)
from crowdgraph.io._gold import read_gold
from crowdgraph.io._ids import encode, encode_labels, first_appearance
from crowdgraph.io._soft_answers import SoftColumns, soft_columns
from crowdgraph.io._times import read_times
from crowdgraph.messages import Hint, argument, quote, suggestion

__all__ = [
    "Rows",
    "check_options",
    "duplicate_error",
    "graph_from_frame",
    "role_columns",
    "stable_order",
    "without_duplicates",
]

# Row numbers are added in blocks of this size: allocating fresh memory costs more than the numbering.
BLOCK_ROWS = 1_000_000


@dataclass
class Rows:
    """The rows of a table before they become responses."""

    volunteer: CodedColumn
    item: CodedColumn
    label: Array
    time: Array
    clock: Clock
    attributes: dict[str, Array]

    def take(self, rows: Array) -> Rows:
        """Return some rows in the given order; two threads gather the columns."""
        columns = [self.volunteer.codes, self.item.codes, self.label, self.time, *self.attributes.values()]
        with ThreadPoolExecutor(2) as pool:
            volunteer, item, label, time, *attributes = pool.map(lambda column: column.take(rows), columns)
        return Rows(
            CodedColumn(volunteer, self.volunteer.values),
            CodedColumn(item, self.item.values),
            label,
            time,
            self.clock,
            dict(zip(self.attributes, attributes, strict=True)),
        )


def graph_from_frame(
    frame: Any,
    *,
    volunteer: str = "volunteer",
    item: str = "item",
    label: str = "label",
    time: str = "time",
    probability: Any = None,
    log_probability: Any = None,
    gold: Any = None,
    classes: Iterable[Hashable] | None = None,
    labels: Iterable[Hashable] | None = None,
    duplicates: str = "all",
    missing: str = "error",
    volunteers: Any = None,
    items: Any = None,
    clock: Clock | None = None,
    row_mask: Array | None = None,
) -> CrowdGraph:
    """Build a graph from a table; see `CrowdGraph.from_responses`.

    Readers that know what their times are pass a `clock`. Those that want only some of the rows pass a `row_mask`
    instead of a shorter table, so that errors number the rows as the file does.
    """
    check_choice("duplicates", duplicates, ("all", "first", "last", "error"))
    check_choice("missing", missing, ("error", "drop", "keep"))
    columns = frame_columns(frame)
    soft = soft_columns(columns, probability=probability, log_probability=log_probability)
    names = role_columns(columns, soft, volunteer=volunteer, item=item, label=label, time=time)
    label_names = None if labels is None else value_tuple(labels, what="labels")
    rows, label_names, null = _read_rows(columns, names, soft, label_names, clock)
    n_rows = len(rows.label)
    if row_mask is not None:
        null = {role: mask & row_mask for role, mask in null.items()}
    rows = _without_missing(rows, null, missing, row_mask)
    if labels is None and soft is None and len(rows.label) < n_rows:
        rows.label, label_names = _drop_unused_labels(rows.label, label_names)
    if not len(rows.label) and volunteers is None and items is None:
        raise InputError(
            "All rows of the table were left out, so there is nothing to make a graph of."
            if n_rows
            else "The table has a header and no rows; give one row for each response."
        )
    if not is_sorted(rows.time):
        rows = rows.take(stable_order(rows.time))
    rows = without_duplicates(rows, duplicates)
    volunteer_table, volunteer_codes = _nodes("volunteer", rows.volunteer, volunteers, names["volunteer"])
    item_table, item_codes = _nodes("item", rows.item, items, names["item"])
    class_names = None if classes is None else value_tuple(classes, what="classes")
    item_gold = read_gold(
        gold, items=item_table, labels=label_names, classes=class_names, item=names["item"], label=label
    )
    responses = ResponseTable(
        volunteer=lock(volunteer_codes),
        item=lock(item_codes),
        label=lock(rows.label),
        time=lock(rows.time),
        clock=rows.clock,
        attributes=rows.attributes,
    )
    return CrowdGraph(
        volunteer_table, item_table, responses, classes=item_gold.classes, labels=label_names, gold=item_gold
    )


def check_options(reader: Callable[..., CrowdGraph], options: Mapping[str, Any]) -> None:
    """Raise the TypeError of a reader that was called with options that `CrowdGraph.from_responses` does not have."""
    parameters = [*signature(reader).parameters.values(), *signature(CrowdGraph.from_responses).parameters.values()]
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    wrong = next((name for name in options if name not in known), None)
    if wrong is None:
        return
    role = next((role for role, words in SYNONYMS.items() if wrong in words), None)
    guess = f" Did you mean {role}={options[wrong]!r}?" if role else suggestion(wrong, known)
    raise TypeError(f"{reader.__name__}() has no option {wrong!r}.{guess}")


def role_columns(columns: Collection[str], soft: SoftColumns | None = None, **names: str) -> dict[str, str]:
    """Return the column of each role (volunteer, item, label, time); raise if one is missing or named twice.

    Where columns have the probabilities of all labels, a column of labels is not needed.
    """
    not_text = [f"{role}={name!r}" for role, name in names.items() if not isinstance(name, str)]
    if not_text:
        raise ParameterError(f"Columns are named by text; got {quote(not_text)}.")
    names["volunteer"], names["item"] = id_columns(columns, volunteer=names["volunteer"], item=names["item"])
    if soft is not None and names["label"] == "label" and "label" not in columns:
        del names["label"]
    for role, name in names.items():
        if name in columns or (role == "time" and name == "time"):
            continue
        synonym = next((word for word in SYNONYMS[role] if word in columns), None)
        guess = f" Did you mean {role}={synonym!r}?" if synonym else suggestion(name, list(columns))
        raise ColumnError(
            f"There is no column {name!r} for the {role}; the table has {quote(columns, most=12) or 'no columns'}. "
            f"Name the column with {role}='...'.{guess}"
        )
    used = [name for name in (*names.values(), *(() if soft is None else soft.names)) if name in columns]
    repeated = sorted({name for name in used if used.count(name) > 1})
    if repeated:
        raise ColumnError(
            f"Column {repeated[0]!r} is named for two things; each of {quote(names)} needs its own column."
        )
    clash = [name for name in columns if name in names and name not in used]
    if clash:
        raise ColumnError(
            f"The further column {clash[0]!r} has the name of a part of a response, which is read from "
            f"{names[clash[0]]!r}; rename or drop one of them."
        )
    return names


def _read_rows(
    columns: Mapping[str, Column],
    names: Mapping[str, str],
    soft: SoftColumns | None,
    labels: tuple[Hashable, ...] | None,
    clock: Clock | None,
) -> tuple[Rows, tuple[Hashable, ...], dict[str, Array]]:
    """Return all rows as codes and times, the labels, and for each part of a response a mask of rows without it."""
    # The id columns take longest, so Arrow encodes them in parallel. Each column is freed as soon as it is read.
    with ThreadPoolExecutor(2) as pool:
        item = pool.submit(lambda: encode(columns[names["item"]], what="item"))
        volunteer = pool.submit(lambda: encode(columns[names["volunteer"]], what="volunteer"))
        if soft is None:
            label = pool.submit(lambda: encode_labels(columns[names["label"]], labels=labels))
            codes, label_names = label.result()
            probs: dict[str, Array] = {}
        else:
            codes, label_names, probs = soft.read(columns, names.get("label"), labels)
        if names["time"] in columns:
            time, null_time = pool.submit(lambda: read_times(columns[names["time"]], clock=clock)).result()
        else:
            time, null_time = TimeColumn(np.arange(len(codes)), Clock("order")), np.zeros(len(codes), dtype=bool)
        used = (*names.values(), *(() if soft is None else soft.names))
        attributes = {name: attribute_array(columns[name]) for name in columns if name not in used} | probs
        rows = Rows(volunteer.result(), item.result(), codes, time.times, time.clock, attributes)
    null = {
        "volunteer": rows.volunteer.codes < 0,
        "item": rows.item.codes < 0,
        "label": rows.label < 0,
        "time": null_time,
    }
    return rows, label_names, null


def _without_missing(rows: Rows, null: dict[str, Array], missing: str, row_mask: Array | None) -> Rows:
    """Drop or refuse rows with nulls, as `missing` says, and rows outside the mask."""
    if missing == "keep":
        null = {role: mask for role, mask in null.items() if role != "label"}
    null_rows = {role: np.flatnonzero(mask) for role, mask in null.items() if mask.any()}
    if not null_rows:
        return rows if row_mask is None else rows.take(np.flatnonzero(row_mask))
    listing = "; ".join(f"{role} in rows {quote(numbers.tolist())}" for role, numbers in null_rows.items())
    if missing != "drop":
        hint = "Correct the table, or use " + argument("missing", "drop") + " to leave these rows out"
        if missing == "error" and "label" in null_rows:
            hint += " or " + argument("missing", "keep") + " for null labels"
        raise MissingValueError(f"Null {listing}{COUNTED}.", hint=hint + ".")
    dropped = np.logical_or.reduce(list(null.values()))
    warn(
        f"{np.count_nonzero(dropped):,} of {len(dropped):,} rows are left out: null {listing}{COUNTED}.",
        DroppedRowsWarning,
    )
    return rows.take(np.flatnonzero(~dropped if row_mask is None else row_mask & ~dropped))


def stable_order(times: Array) -> Array:
    """Return ``np.argsort(times, kind="stable")``, faster.

    For integers, as much of the time as fits is packed with the row number into one integer, and these are sorted,
    which NumPy does several times faster than an argsort. A second, nearly sorted pass orders by the bits that did not
    fit.
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
    for start in range(0, len(packed), BLOCK_ROWS):
        packed[start : start + BLOCK_ROWS] |= np.arange(start, min(start + BLOCK_ROWS, len(packed)))
    packed.sort()
    packed &= 2**index_bits - 1
    if lost_bits:
        nearly_sorted = times.take(packed)
        if not is_sorted(nearly_sorted):
            return packed.take(np.argsort(nearly_sorted, kind="stable"))
    return packed


def _drop_unused_labels(codes: Array, names: tuple[Hashable, ...]) -> tuple[Array, tuple[Hashable, ...]]:
    """Forget labels that occurred only in rows that were left out."""
    used = np.bincount(codes[codes >= 0], minlength=len(names)) > 0
    if used.all():
        return codes, names
    # The last entry serves code -1, so that nulls stay -1.
    new_codes = np.append(np.cumsum(used) - 1, -1).astype(codes.dtype)
    return new_codes[codes], tuple(name for name, is_used in zip(names, used, strict=True) if is_used)


def without_duplicates(rows: Rows, duplicates: str) -> Rows:
    """Keep one answer for each pair of volunteer and item, as `duplicates` says; rows are sorted by time."""
    if duplicates == "all":
        return rows
    answered = np.flatnonzero(rows.label >= 0)
    pairs = rows.volunteer.codes[answered].astype(np.int64) << 32 | rows.item.codes[answered]
    if duplicates == "last":
        _, from_end = np.unique(pairs[::-1], return_index=True)
        single = len(pairs) - 1 - from_end
    else:
        single = np.unique(pairs, return_index=True)[1]
    repeated = np.setdiff1d(answered, answered[single])
    if duplicates == "error" and len(repeated):
        volunteer = rows.volunteer.values[rows.volunteer.codes[repeated[0]]]
        raise duplicate_error(len(repeated), volunteer, rows.item.values[rows.item.codes[repeated[0]]])
    return rows.take(np.setdiff1d(np.arange(len(rows.label)), repeated)) if len(repeated) else rows


def duplicate_error(n_repeated: int, volunteer: Hashable, item: Hashable) -> DuplicateError:
    """Return the error for repeated answers, such as one by a volunteer about an item."""
    return DuplicateError(
        f"{quantity(n_repeated, 'response')} {'repeats' if n_repeated == 1 else 'repeat'} a volunteer and item, such "
        f"as volunteer {volunteer!r} and item {item!r}.",
        hint=Hint("Use duplicates='first', 'last' or 'all'.", cli="Use --duplicates first, last or all."),
    )


def _nodes(kind: NodeKind, column: CodedColumn, table: Any, id_column: str) -> tuple[NodeTable, Array]:
    """Return the nodes, those of the user's table first, then by first response; and the code of each response."""
    order = first_appearance(column)
    listed_nodes = NodeTable(kind, id_array([])) if table is None else _node_table(kind, table, id_column)
    ids = column.values[order]
    node_codes = np.full(len(column.values), -1, dtype=np.int32)
    if len(listed_nodes):
        in_table = np.array([node_id in listed_nodes for node_id in ids.tolist()], dtype=bool)
        node_codes[order[in_table]] = listed_nodes.codes(ids[in_table])
        order, ids = order[~in_table], ids[~in_table]
    node_codes[order] = np.arange(len(listed_nodes), len(listed_nodes) + len(order))
    if len(listed_nodes) and len(order):
        if listed_nodes.attributes:
            raise IdError(
                f"{len(order):,} {kind}s have responses but no row in the table of {kind}s, such as "
                f"{quote(ids[:3].tolist())}; add them to it."
            )
        ids = object_array([*listed_nodes.ids.tolist(), *ids.tolist()])
    nodes = listed_nodes if len(listed_nodes) and not len(order) else NodeTable(kind, lock(ids))
    return nodes, node_codes.take(column.codes)


def _node_table(kind: NodeKind, table: Any, id_column: str) -> NodeTable:
    columns = frame_columns(table)
    if id_column not in columns:
        raise ColumnError(f"The table of {kind}s has no column {id_column!r}; it has {quote(columns)}.")
    ids = encode(columns[id_column], what=kind)
    if (ids.codes < 0).any():
        raise MissingValueError(
            f"The table of {kind}s has null ids in rows {quote(np.flatnonzero(ids.codes < 0).tolist())}{COUNTED}."
        )
    attributes = {name: attribute_array(column) for name, column in columns.items() if name != id_column}
    return NodeTable(kind, id_array(ids.decode()), attributes)
