"""Add responses to a graph: old codes stay, new nodes come after them, and late arrivals are sorted in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, cast_exactly, id_array, lock, object_array
from crowdgraph.core._text import quantity
from crowdgraph.core.clock import UNITS, Clock, is_sorted
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import CodedColumn
from crowdgraph.core.soft_answers import label_column
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphWarning,
    GoldError,
    IdError,
    LabelError,
    LateResponsesWarning,
    TimeError,
    check_choice,
    warn,
)
from crowdgraph.io._columns import attribute_array, frame_columns
from crowdgraph.io._gold import read_gold
from crowdgraph.io._ids import natural_order
from crowdgraph.io._soft_answers import soft_columns
from crowdgraph.io.frames import Rows, graph_from_frame, role_columns, stable_order, without_duplicates
from crowdgraph.messages import Hint, quote

__all__ = ["extend_graph", "without_known"]

# What to do about labels that a graph does not have.
# Of so many responses, old and new, some are expected to be by the same volunteers or about the same items.
MIN_RESPONSES_IN_COMMON = 20
LABELS_HINT = Hint(
    "Correct them, or allow new labels with new_labels=True.", cli="Correct them, or analyse all responses anew."
)


def extend_graph(
    graph: CrowdGraph,
    more: Any,
    *,
    gold: Any = None,
    duplicates: str = "all",
    new_labels: bool = False,
    **options: Any,
) -> CrowdGraph:
    """Return a graph with more responses; see `CrowdGraph.extend`."""
    check_choice("duplicates", duplicates, ("all", "first", "last", "error"))
    columns = {"item": "item", "label": "label"}
    if isinstance(more, CrowdGraph):
        added = more
    else:
        roles = {role: options.get(role, role) for role in ("volunteer", "item", "label", "time")}
        table = frame_columns(more)
        named = {name: options.get(name) for name in ("probability", "log_probability")}
        columns = {**columns, **role_columns(table, soft_columns(table, **named), **roles)}
        added = _read(graph, table, new_labels=new_labels, **options)
    labels, label_codes = _merged_labels(graph, added, new_labels=new_labels)
    # Where labels are the classes, they stay so.
    classes = labels if graph.classes == graph.labels else graph.classes
    volunteers, volunteer_codes = _merged_nodes(graph.volunteers.table, added.volunteers.table)
    items, item_codes = _merged_nodes(graph.items.table, added.items.table)
    n_before, n_new = (len(one.volunteers) + len(one.items) for one in (graph, added))
    is_unrelated = len(volunteers) + len(items) == n_before + n_new
    if is_unrelated and min(len(graph.responses), len(added.responses)) >= MIN_RESPONSES_IN_COMMON:
        warn(
            "No volunteer and no item of the new responses is in the graph already.",
            CrowdGraphWarning,
            hint="Are they of another project?",
        )
    old, new = graph.responses.table, added.responses.table
    unused = {label_column(label) for label in added.labels if label not in labels}
    new_attributes = {name: new.attributes[name] for name in new.attributes if name not in unused}
    times = _merged_times(old, new)
    n_late = int(np.count_nonzero(times[len(old) :] < times[len(old) - 1])) if len(old) else 0
    rows = Rows(
        CodedColumn(_appended(old.volunteer, volunteer_codes[new.volunteer]), volunteers.ids),
        CodedColumn(_appended(old.item, item_codes[new.item]), items.ids),
        _appended(old.label, label_codes[new.label]),
        times,
        old.clock,
        _merged_attributes(old.attributes, new_attributes, len(old), len(new)),
    )
    if not is_sorted(times):
        rows = rows.take(stable_order(times))
    if n_late:
        warn(
            f"{quantity(n_late, 'response')} of {len(new):,} came late: the graph has later ones already. They are "
            "sorted in by their times.",
            LateResponsesWarning,
        )
    rows = without_duplicates(rows, duplicates)
    responses = ResponseTable(
        volunteer=lock(rows.volunteer.codes),
        item=lock(rows.item.codes),
        label=lock(rows.label),
        time=lock(rows.time),
        clock=rows.clock,
        attributes=rows.attributes,
    )
    merged = _old_gold(graph.gold, items, classes)
    merged = _with_gold(merged, _own_gold(added.gold, items, classes))
    if gold is not None:
        other = read_gold(
            gold, items=items, labels=labels, classes=classes, item=columns["item"], label=columns["label"]
        )
        merged = _with_gold(merged, other)
    return CrowdGraph(volunteers, items, responses, classes=classes, labels=labels, gold=merged)


def without_known(graph: CrowdGraph, earlier: CrowdGraph, *, key: str) -> tuple[CrowdGraph, int]:
    """Return a graph without the responses that an earlier one has, by an attribute that is an id, and how many.

    Exports hold all responses from the beginning, so that a later one repeats the earlier.
    """
    new, old = (one.responses.table for one in (graph, earlier))
    if key not in new.attributes or key not in old.attributes:
        return graph, 0
    known = set(old.attributes[key].tolist()) - {None}
    is_new = np.array([value not in known for value in new.attributes[key].tolist()], dtype=bool)
    rest = CrowdGraph(
        graph.volunteers.table,
        graph.items.table,
        new.take(np.flatnonzero(is_new)),
        classes=graph.classes,
        labels=graph.labels,
        gold=graph.gold,
    )
    return rest, int(np.count_nonzero(~is_new))


def _read(graph: CrowdGraph, table: Any, *, new_labels: bool, **options: Any) -> CrowdGraph:
    """Read a table of new responses, with the labels of the graph."""
    try:
        return graph_from_frame(table, labels=None if new_labels else graph.labels, **options)
    except LabelError as error:
        raise LabelError(str(error.args[0]), hint=LABELS_HINT) from error


def _appended(old: Array, new: Array) -> Array:
    """Return two columns as one, in the type of the old one unless that is too small."""
    dtype = np.promote_types(old.dtype, new.dtype) if len(new) and np.any(new != new.astype(old.dtype)) else old.dtype
    column = np.empty(len(old) + len(new), dtype=dtype)
    column[: len(old)], column[len(old) :] = old, new
    return column


def _merged_labels(graph: CrowdGraph, added: CrowdGraph, *, new_labels: bool) -> tuple[tuple[Hashable, ...], Array]:
    """Return the labels, and the code of each label of the added responses; the last entry serves code -1."""
    used = np.bincount(added.answers.label, minlength=len(added.labels)) > 0
    if added.label_probs is not None:
        used |= (added.label_probs > 0).any(axis=0)
    code_of = {label: code for code, label in enumerate(graph.labels)}
    unknown = [label for label, is_used in zip(added.labels, used, strict=True) if is_used and label not in code_of]
    if unknown and not new_labels:
        raise LabelError(
            f"{len(unknown)} labels of the new responses are not among the graph's, {quote(graph.labels)}: "
            f"{quote(unknown)}.",
            hint=LABELS_HINT,
        )
    labels = (*graph.labels, *natural_order(unknown))
    code_of = {label: code for code, label in enumerate(labels)}
    dtype = np.int16 if len(labels) < 2**15 else np.int32
    return labels, np.array([*(code_of.get(label, -1) for label in added.labels), -1], dtype=dtype)


def _merged_nodes(old: NodeTable, new: NodeTable) -> tuple[NodeTable, Array]:
    """Return the nodes, old ones first, and the code of each added node among them."""
    types = [{type(node_id) for node_id in table.ids[:1000].tolist()} for table in (old, new)]
    if all(types) and not types[0] & types[1]:
        names = [" or ".join(sorted(kind.__name__ for kind in kinds)) for kinds in types]
        raise IdError(
            f"The graph's {old.kind}s are named by {names[0]}, such as {quote(old.ids[:1].tolist())}, those of the new "
            f"responses by {names[1]}, such as {quote(new.ids[:1].tolist())}, so that all would be new.",
            hint="Convert one of them.",
        )
    codes = old.known_codes(new.ids).astype(np.int32)
    is_new = codes < 0
    codes[is_new] = np.arange(len(old), len(old) + np.count_nonzero(is_new))
    if not is_new.any() and not new.attributes:
        return old, codes
    if old.ids.dtype == new.ids.dtype == np.int64:
        merged_ids = lock(np.concatenate([old.ids, new.ids[is_new]]))
    else:
        merged_ids = id_array([*old.ids.tolist(), *new.ids[is_new].tolist()])
    return NodeTable(old.kind, merged_ids, _node_attributes(old, new, codes, len(merged_ids))), codes


def _node_attributes(old: NodeTable, new: NodeTable, codes: Array, n_nodes: int) -> dict[str, Array]:
    """Return the attributes of all nodes, null where nobody gave them; what is known of a node later counts."""
    columns = {}
    for name in (*old.attributes, *(name for name in new.attributes if name not in old.attributes)):
        values = object_array([None] * n_nodes)
        for table, rows in ((old, np.arange(len(old))), (new, codes)):
            if name in table.attributes:
                column = table.attributes[name]
                _check_flat(name, column)
                known = object_array(column.tolist()) if column.dtype.kind != "M" else object_array(list(column))
                is_known = np.array([value is not None and value == value for value in known], dtype=bool)
                values[rows[is_known]] = known[is_known]
        columns[name] = _compact(values, old.attributes.get(name, new.attributes.get(name)))
    return columns


def _compact(values: Array, like: Array | None) -> Array:
    """Return objects as a column of numbers or times where that loses nothing."""
    if like is not None and like.dtype.kind == "M":
        times = np.array([np.datetime64("NaT") if value is None else value for value in values])
        # Where none is known, they have no unit.
        return lock(times.astype(np.promote_types(times.dtype, like.dtype)))
    if like is not None and like.dtype.kind == "f":
        return lock(np.array([np.nan if value is None else value for value in values], dtype=np.float64))
    return attribute_array(values.tolist())


def _merged_attributes(old: Mapping[str, Array], new: Mapping[str, Array], n_old: int, n_new: int) -> dict[str, Array]:
    """Return the attributes of old and new responses, one after the other, null where one of both has none."""
    names = (*old, *(name for name in new if name not in old))
    return {name: _joined(name, old.get(name), new.get(name), n_old, n_new) for name in names}


def _joined(name: str, old: Array | None, new: Array | None, n_old: int, n_new: int) -> Array:
    """Return two parts of a column as one; a missing part is null."""
    for part in (old, new):
        if part is not None:
            _check_flat(name, part)
    if old is not None and new is not None and old.dtype == new.dtype:
        return lock(np.concatenate([old, new]))
    kinds = {part.dtype.kind for part in (old, new) if part is not None}
    if kinds in ({"f"}, {"M"}):
        nothing = np.nan if kinds == {"f"} else np.datetime64("NaT")
        parts = [np.full(n, nothing) if part is None else part for part, n in ((old, n_old), (new, n_new))]
        return lock(np.concatenate(parts))
    lists = [[None] * n if part is None else part.tolist() for part, n in ((old, n_old), (new, n_new))]
    return attribute_array([*lists[0], *lists[1]])


def _check_flat(name: str, column: Array) -> None:
    if column.ndim != 1:
        raise ColumnError(
            f"The attribute {name!r} has shape {column.shape}; only attributes with one value for each row can be "
            "extended. Leave it out."
        )


def _merged_times(old: ResponseTable, new: ResponseTable) -> Array:
    """Return the times of old and new responses, one after the other, in the finer of their units."""
    _check_clocks(old.clock, new.clock)
    if old.clock.kind == "order":
        first = int(old.time[-1]) + 1 if len(old) else 0
        return _appended(old.time, np.arange(first, first + len(new)))
    if old.clock.kind == "datetime":
        units = [np.datetime_data(table.time.dtype)[0] for table in (old, new)]
        dtype: Any = np.dtype(f"datetime64[{max(units, key=lambda unit: UNITS[unit])}]")
    else:
        dtype = np.promote_types(old.time.dtype, new.time.dtype)
    parts = [part for table in (old, new) if (part := cast_exactly(table.time, dtype)) is not None]
    if len(parts) < 2:
        raise TimeError(
            f"The graph's times are {old.time.dtype}, the new ones {new.time.dtype}, and {dtype} cannot hold both "
            "exactly.",
            hint="Convert the new times to the type of the graph's.",
        )
    return np.concatenate(parts)


def _check_clocks(old: Clock, new: Clock) -> None:
    """Raise unless times of two clocks can be compared: numbers with numbers, times with a zone with such times."""
    words = {
        "order": "no times but the order of its rows",
        "number": "numbers as times",
        "datetime": "datetimes",
    }
    if old.kind != new.kind:
        raise TimeError(
            f"The graph has {words[old.kind]}, the new responses have {words[new.kind].replace('its', 'their')}.",
            hint=Hint(
                "Give the new responses times like those of the graph, or none where it has none.",
                cli="Give the new responses times like those of the results, or leave them out with --no-time where "
                "these have none.",
            ),
        )
    if (old.zone is None) != (new.zone is None):
        zones = [f"the zone {clock.zone!r}" if clock.zone else "no time zone" for clock in (old, new)]
        raise TimeError(
            f"The graph's times have {zones[0]}, those of the new responses {zones[1]}, so they cannot be compared.",
            hint="Give the new times a zone." if old.zone else "Drop the zone of the new times, in the graph's time.",
        )


def _old_gold(gold: Gold, items: NodeTable, classes: tuple[Hashable, ...]) -> Gold:
    """Return a graph's gold for more items, and perhaps more classes."""
    if not len(gold):
        return Gold(items, classes, Gold.unknown(items, classes).probs, n_unmatched=gold.n_unmatched)
    probs = np.full((len(items), len(classes)), np.nan)
    probs[: len(gold.probs), : len(gold.classes)] = gold.probs
    probs[np.flatnonzero(gold.known), len(gold.classes) :] = 0.0
    return Gold(items, classes, probs, n_unmatched=gold.n_unmatched)


def _own_gold(gold: Gold, items: NodeTable, classes: tuple[Hashable, ...]) -> Gold:
    """Return the gold of added responses for the graph's items and classes."""
    if not len(gold):
        return Gold.unknown(items, classes)
    known = gold.probs[gold.known]
    unknown = [name for code, name in enumerate(gold.classes) if name not in classes and known[:, code].any()]
    if unknown:
        raise GoldError(
            f"The gold of the new responses names {quote(unknown)}; the graph's classes are {quote(classes)}."
        )
    probs = np.full((len(items), len(classes)), np.nan)
    rows = items.codes(gold.items_table.ids[gold.known])
    probs[rows] = 0.0
    for code, name in enumerate(gold.classes):
        if name in classes:
            probs[rows, classes.index(name)] = known[:, code]
    return Gold(items, classes, probs)


def _with_gold(gold: Gold, other: Gold) -> Gold:
    """Return the gold of both; raise where they contradict each other."""
    if not len(other):
        return gold
    both = gold.known & other.known
    conflicts = np.flatnonzero(both & (gold.probs != other.probs).any(axis=1))
    if len(conflicts):
        item = gold.items_table.ids[conflicts[0]]
        raise GoldError(
            f"New gold contradicts the graph's for {quantity(len(conflicts), 'item')}, such as {item!r}: "
            f"{other[item]!r} instead of {gold[item]!r}.",
            hint=Hint(
                "Correct one of them; graph.with_gold(gold) replaces the graph's.",
                cli="Correct the new gold, or analyse all responses anew.",
            ),
        )
    probs = np.where(other.known[:, None], other.probs, gold.probs)
    return Gold(gold.items_table, gold.classes, probs, n_unmatched=gold.n_unmatched)
