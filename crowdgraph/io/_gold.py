"""Gold in any of its forms: a mapping, a table of classes, or a table of probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.core.gold import Gold
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ColumnError, GoldError, GoldWarning, quote, warn
from crowdgraph.io._columns import Column, LazyColumns, frame_columns
from crowdgraph.io._ids import encode, encode_labels, natural_order


class Stated(NamedTuple):
    """What was said about items, row by row: probabilities of the named classes."""

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
    """Gold for a graph's items; classes are those given, or the labels where gold says nothing else."""
    if gold is None:
        return Gold.unknown(items, classes or labels)
    stated = _stated(gold, item=item, label=label, names=classes or labels)
    matched = [row for row, name in enumerate(stated.items) if name in items]
    if stated.items and not matched:
        _warn_unmatched(len(set(stated.items)), stated.items, items)
        nothing = Gold.unknown(items, classes or labels)
        return replace(nothing, n_unmatched=len(set(stated.items)))
    known = _known_classes(stated.classes, labels=labels, classes=classes)
    codes = items.codes([stated.items[row] for row in matched])
    said = np.zeros((len(matched), len(known)))
    said[:, [known.index(name) for name in stated.classes]] = stated.probs[matched]
    probs = np.full((len(items), len(known)), np.nan)
    probs[codes] = said
    _check_agreement(said, probs[codes], items.ids[codes], known)
    n_unmatched = len(set(stated.items)) - len(np.unique(codes))
    if n_unmatched:
        _warn_unmatched(n_unmatched, stated.items, items)
    return Gold(items, known, probs, n_unmatched=n_unmatched)


def _check_agreement(said: Array, kept: Array, item_ids: Array, classes: tuple[Hashable, ...]) -> None:
    """Raise where a row says something else than the last row of the same item, which was kept."""
    other = np.flatnonzero((said != kept).any(axis=1) & ~np.isnan(said).any(axis=1))
    if len(other):
        row = other[0]
        raise GoldError(
            f"Gold contradicts itself for item {item_ids[row]!r}: {_said(said[row], classes)} and "
            f"{_said(kept[row], classes)}. Keep one of them, or give probabilities."
        )


def _stated(gold: Any, *, item: str, label: str, names: Sequence[Hashable]) -> Stated:
    if isinstance(gold, str | Path):
        raise GoldError(
            f"gold={str(gold)!r} is a path; read it with crowdgraph.read_csv(..., gold=path), or give a table."
        )
    if hasattr(gold, "to_dict") and not hasattr(gold, "columns"):
        gold = gold.to_dict()  # a pandas series of classes by item
    if isinstance(gold, Mapping) and not isinstance(gold, LazyColumns) and not _is_table(gold, item):
        return _from_mapping(gold)
    columns = frame_columns(gold)
    if item not in columns:
        raise ColumnError(
            f"The gold table has no column {item!r}; it has {quote(columns)}. Its columns are named as those of the "
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
    """Whether a mapping is a dict of columns and not a mapping from item to class."""
    listed = list | np.ndarray | pa.Array | pa.ChunkedArray
    whole = item in gold and hasattr(gold[item], "__len__") and not isinstance(gold[item], str | bytes | Mapping)
    return whole or any(isinstance(values, listed) for values in gold.values())


def _from_mapping(gold: Mapping[Any, Any]) -> Stated:
    gold = {item: value for item, value in gold.items() if not is_null(value)}
    if not gold:
        return Stated([], (), np.zeros((0, 0)))
    soft = [isinstance(value, Mapping) for value in gold.values()]
    if not any(soft):
        return _from_labels(list(gold), list(gold.values()))
    names = natural_order(
        dict.fromkeys(name for value in gold.values() for name in (value if isinstance(value, Mapping) else (value,)))
    )
    rows = [value if isinstance(value, Mapping) else {value: 1.0} for value in gold.values()]
    try:
        probs = np.array([[float(row.get(name, 0.0)) for name in names] for row in rows])
    except (TypeError, ValueError) as error:
        raise GoldError(f"Gold given as {{class: probability}} must hold numbers: {error}.") from error
    return Stated(list(gold), names, probs)


def _from_labels(items: Column, labels: Column) -> Stated:
    """One class for each row; rows without a class say nothing."""
    codes, names = encode_labels(labels, labels=None, error=GoldError, what="gold label")
    stated = np.flatnonzero(codes >= 0)
    ids = _item_ids(items)
    return Stated([ids[row] for row in stated], names, np.eye(len(names))[codes[stated]])


def _from_probabilities(columns: Mapping[str, Column], item: str, names: Sequence[Hashable]) -> Stated:
    """A column of probabilities for each class; rows that are null throughout say nothing."""
    by_text = {str(name): name for name in names}
    found = [column for column in columns if column != item]
    known = tuple(by_text[column] for column in found) if set(found) <= by_text.keys() else tuple(found)
    try:
        probs = np.column_stack([_floats(columns[column]) for column in found])
    except (TypeError, ValueError) as error:
        raise GoldError(
            f"Without a column of labels, the columns {quote(found)} of the gold table must hold probabilities: "
            f"{error}."
        ) from error
    stated = np.flatnonzero(~np.isnan(probs).all(axis=1))
    ids = _item_ids(columns[item])
    return Stated([ids[row] for row in stated], known, probs[stated])


def _floats(column: Column) -> Array:
    values = column if isinstance(column, list) else column.to_pylist()
    return np.array([np.nan if is_null(value) else float(value) for value in values], dtype=np.float64)


def _item_ids(column: Column) -> list[Hashable]:
    coded = encode(column, what="gold item")
    missing = np.flatnonzero(coded.codes < 0)
    if len(missing):
        raise GoldError(f"The gold table names no item in rows {quote(missing.tolist())}; name one or drop the rows.")
    return list(coded.decode().tolist())


def _known_classes(
    stated: tuple[Hashable, ...], *, labels: tuple[Hashable, ...], classes: tuple[Hashable, ...] | None
) -> tuple[Hashable, ...]:
    """The graph's classes: those given, else the labels, else what gold names."""
    if classes is None:
        if set(stated) <= set(labels):
            return labels
        if not set(stated) & set(labels) and set(map(str, stated)) & set(map(str, labels)):
            raise GoldError(
                f"Gold names the classes {quote(stated)}, the labels are {quote(labels)}: they differ in type. "
                "Convert one of them, or say with classes=[...] what items can be."
            )
        if set(stated) & set(labels) or len(stated) == 1:
            strange = [name for name in stated if name not in labels]
            warn(
                f"Gold names classes that are no labels ({quote(strange)}), so the classes are those of gold: "
                f"{quote(stated)}. Say classes=[...] if items can be something else.",
                GoldWarning,
            )
        return stated
    strangers = [name for name in stated if name not in classes]
    if strangers:
        raise GoldError(
            f"Gold names classes that are not among {quote(classes)}: {quote(strangers)}. "
            "Add them to classes=[...], or mend the gold."
        )
    return classes


def _warn_unmatched(n_unmatched: int, stated: list[Hashable], items: NodeTable) -> None:
    strangers = [name for name in stated if name not in items]
    text = f"Gold names {n_unmatched:,} items that nobody answered ({quote(strangers, most=3)})"
    if len(strangers) < len(stated):
        warn(f"{text}; they are left out.", GoldWarning)
        return
    theirs, ours = ({type(name).__name__ for name in ids} for ids in (strangers, items.ids[:100].tolist()))
    hint = "Is it the gold of other items?"
    if not theirs & ours:
        hint = f"Gold names items by {theirs.pop()}, the responses by {ours.pop()}: convert one of them."
    warn(f"{text} and no others, so there is no gold. {hint}", GoldWarning)


def _said(probs: Array, classes: tuple[Hashable, ...]) -> str:
    return repr(classes[probs.argmax()]) if probs.max() == 1 else repr(dict(zip(classes, probs.tolist(), strict=True)))
