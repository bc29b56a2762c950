"""Read gold in any of its forms: a mapping, a table of classes, or a table of probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.core._text import quantity
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ColumnError, GoldError, GoldWarning, warn
from crowdgraph.io._columns import COUNTED, Column, LazyColumns, frame_columns
from crowdgraph.io._gold_files import GoldFile, typed_alike
from crowdgraph.io._ids import encode, encode_labels, natural_order
from crowdgraph.messages import Message, quote

# Of a class that so many gold items would have by chance, hardly ever none has it.
MIN_EXPECTED_GOLD = 3.0
# How messages name the setting that lists the classes.
CLASSES_SETTING = Message("classes=[...]", cli="--class NAME")


class _GoldRows(NamedTuple):
    """Gold row by row: an item, and probabilities of the classes."""

    items: list[Hashable]
    classes: tuple[Hashable, ...]
    probs: Array


def read_gold(
    gold: Any,
    *,
    items: NodeTable,
    labels: tuple[Hashable, ...],
    classes: tuple[Hashable, ...] | None,
    item: str = "item",
    label: str = "label",
) -> Gold:
    """Return gold for a graph's items; without `classes`, these are the labels unless gold names others."""
    if gold is None:
        return Gold.unknown(items, classes or labels)
    if isinstance(gold, str | PathLike):
        gold = GoldFile(gold)
    rows = _gold_rows(gold, item=item, label=label, names=classes or labels)
    if isinstance(gold, GoldFile):
        rows = rows._replace(
            items=typed_alike(rows.items, items.ids[:1].tolist()),
            classes=tuple(typed_alike(rows.classes, classes or labels)),
        )
    matched = [row for row, name in enumerate(rows.items) if name in items]
    if rows.items and not matched:
        _warn_unmatched(len(set(rows.items)), rows.items, items)
        return replace(Gold.unknown(items, classes or labels), n_unmatched=len(set(rows.items)))
    graph_classes = _graph_classes(rows.classes, labels=labels, classes=classes)
    codes = items.codes([rows.items[row] for row in matched])
    row_probs = np.zeros((len(matched), len(graph_classes)))
    row_probs[:, [graph_classes.index(name) for name in rows.classes]] = rows.probs[matched]
    probs = np.full((len(items), len(graph_classes)), np.nan)
    probs[codes] = row_probs
    _check_agreement(row_probs, probs[codes], items.ids[codes], graph_classes)
    n_unmatched = len(set(rows.items)) - len(np.unique(codes))
    if n_unmatched:
        _warn_unmatched(n_unmatched, rows.items, items)
    return Gold(items, graph_classes, probs, n_unmatched=n_unmatched)


def unseen_classes(graph: CrowdGraph) -> list[Hashable]:
    """Return the classes that volunteers name and no gold item has, though chance would let some have them."""
    probs, answers = graph.gold.probs[graph.gold.known], graph.answers
    if graph.classes != graph.labels or not len(answers):
        return []
    expected = np.bincount(answers.label, minlength=len(graph.labels)) / len(answers) * len(probs)
    is_unseen = (expected >= MIN_EXPECTED_GOLD) & ~probs.any(axis=0)
    return [graph.classes[code] for code in np.flatnonzero(is_unseen)]


def gold_items(gold: Any, *, item: str, label: str, names: Sequence[Hashable]) -> list[Hashable]:
    """Return the items that gold names, as `read_gold` reads it; `names` are the classes or labels."""
    return _gold_rows(gold, item=item, label=label, names=names).items


def _check_agreement(row_probs: Array, item_probs: Array, item_ids: Array, classes: tuple[Hashable, ...]) -> None:
    """Raise where a row contradicts the last row of the same item, which decides its gold."""
    different = np.flatnonzero((row_probs != item_probs).any(axis=1) & ~np.isnan(row_probs).any(axis=1))
    if len(different):
        row = different[0]
        raise GoldError(
            f"Gold contradicts itself for item {item_ids[row]!r}: {_gold_text(row_probs[row], classes)} and "
            f"{_gold_text(item_probs[row], classes)}. Keep one of them, or give probabilities."
        )


def _gold_text(probs: Array, classes: tuple[Hashable, ...]) -> str:
    return repr(classes[probs.argmax()]) if probs.max() == 1 else repr(dict(zip(classes, probs.tolist(), strict=True)))


def _gold_rows(gold: Any, *, item: str, label: str, names: Sequence[Hashable]) -> _GoldRows:
    if hasattr(gold, "to_dict") and not hasattr(gold, "columns"):
        gold = gold.to_dict()  # a pandas series of classes by item
    if isinstance(gold, Mapping) and not isinstance(gold, LazyColumns) and not _is_table(gold, item):
        return _from_mapping(gold)
    columns = gold.columns(item=item, label=label) if isinstance(gold, GoldFile) else frame_columns(gold)
    if item not in columns:
        raise ColumnError(
            f"The gold table has no column {item!r}; it has {quote(columns)}. Its columns are named like those of the "
            f"responses: rename the one with the items to {item!r}."
        )
    if label in columns:
        return _from_labels(columns[item], columns[label])
    if len(columns) < 3:
        raise ColumnError(
            f"The gold table has no column {label!r}; it has {quote(columns)}. Rename the one with the classes to "
            f"{label!r}, or give a column of probabilities for each class."
        )
    return _from_probabilities(columns, item, names)


def _is_table(gold: Mapping[Any, Any], item: str) -> bool:
    """Return whether a mapping is a dict of columns, and not a mapping from items to classes."""
    column_types = list | np.ndarray | pa.Array | pa.ChunkedArray
    has_items = item in gold and hasattr(gold[item], "__len__") and not isinstance(gold[item], str | bytes | Mapping)
    return has_items or any(isinstance(values, column_types) for values in gold.values())


def _from_mapping(gold: Mapping[Any, Any]) -> _GoldRows:
    gold = {item: value for item, value in gold.items() if not is_null(value)}
    if not gold:
        return _GoldRows([], (), np.zeros((0, 0)))
    if not any(isinstance(value, Mapping) for value in gold.values()):
        return _from_labels(list(gold), list(gold.values()))
    names = natural_order(
        dict.fromkeys(name for value in gold.values() for name in (value if isinstance(value, Mapping) else (value,)))
    )
    rows = [value if isinstance(value, Mapping) else {value: 1.0} for value in gold.values()]
    try:
        probs = np.array([[float(row.get(name, 0.0)) for name in names] for row in rows])
    except (TypeError, ValueError) as error:
        raise GoldError(f"Gold given as {{class: probability}} must hold numbers: {error}.") from error
    return _GoldRows(list(gold), names, probs)


def _from_labels(items: Column, labels: Column) -> _GoldRows:
    """Read one class for each row; rows without a class are skipped."""
    codes, names = encode_labels(labels, labels=None, error=GoldError, what="gold label")
    rows = np.flatnonzero(codes >= 0)
    ids = _item_ids(items)
    return _GoldRows([ids[row] for row in rows], names, np.eye(len(names))[codes[rows]])


def _from_probabilities(columns: Mapping[str, Column], item: str, names: Sequence[Hashable]) -> _GoldRows:
    """Read a column of probabilities for each class; rows of nulls are skipped."""
    by_text = {str(name): name for name in names}
    class_columns = [column for column in columns if column != item]
    as_named = set(class_columns) <= by_text.keys()
    classes = tuple(by_text[column] for column in class_columns) if as_named else tuple(class_columns)
    try:
        probs = np.column_stack([_floats(columns[column]) for column in class_columns])
    except (TypeError, ValueError) as error:
        raise GoldError(
            f"Without a column of labels, the columns {quote(class_columns)} of the gold table must hold "
            f"probabilities: {error}."
        ) from error
    rows = np.flatnonzero(~np.isnan(probs).all(axis=1))
    ids = _item_ids(columns[item])
    return _GoldRows([ids[row] for row in rows], classes, probs[rows])


def _floats(column: Column) -> Array:
    values = column if isinstance(column, list) else column.to_pylist()
    return np.array([np.nan if is_null(value) else float(value) for value in values], dtype=np.float64)


def _item_ids(column: Column) -> list[Hashable]:
    ids = encode(column, what="gold item")
    missing = np.flatnonzero(ids.codes < 0)
    if len(missing):
        raise GoldError(
            f"The gold table names no item in rows {quote(missing.tolist())}{COUNTED}; name one or drop the rows."
        )
    return list(ids.decode().tolist())


def _graph_classes(
    gold_classes: tuple[Hashable, ...], *, labels: tuple[Hashable, ...], classes: tuple[Hashable, ...] | None
) -> tuple[Hashable, ...]:
    """Return the graph's classes: `classes` if there are any, else the labels, else those of gold."""
    if classes is None:
        if set(gold_classes) <= set(labels):
            return labels
        if not set(gold_classes) & set(labels) and set(map(str, gold_classes)) & set(map(str, labels)):
            raise GoldError(
                f"Gold names the classes {quote(gold_classes)}, the labels are {quote(labels)}: they differ in type.",
                hint="Convert one of them, or say with " + CLASSES_SETTING + " what items can be.",
            )
        if set(gold_classes) & set(labels) or len(gold_classes) == 1:
            no_labels = [name for name in gold_classes if name not in labels]
            warn(
                f"Gold names classes that are not labels ({quote(no_labels)}), so the classes are those of gold: "
                f"{quote(gold_classes)}.",
                GoldWarning,
                hint="Say " + CLASSES_SETTING + " if items can be something else.",
            )
        return gold_classes
    unknown = [name for name in gold_classes if name not in classes]
    if unknown:
        raise GoldError(
            f"Gold names classes that are not among {quote(classes)}: {quote(unknown)}.",
            hint="Add them to " + CLASSES_SETTING + ", or correct the gold.",
        )
    return classes


def _warn_unmatched(n_unmatched: int, gold_items: list[Hashable], items: NodeTable) -> None:
    unmatched = [name for name in gold_items if name not in items]
    text = f"Gold names {quantity(n_unmatched, 'item')} that nobody answered ({quote(unmatched, most=3)})"
    if len(unmatched) < len(gold_items):
        warn(f"{text}; {'it is' if n_unmatched == 1 else 'they are'} left out.", GoldWarning)
        return
    gold_types, item_types = ({type(name).__name__ for name in ids} for ids in (unmatched, items.ids[:100].tolist()))
    hint = "Is it the gold of other items?"
    if not gold_types & item_types:
        hint = f"Gold names items by {gold_types.pop()}, the responses by {item_types.pop()}: convert one of them."
    warn(f"{text} and no others, so there is no gold. {hint}", GoldWarning)
