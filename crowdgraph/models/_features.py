"""The features of a graph's items as one tensor, whatever they were given as.

This module imports torch; models import it only when they are fitted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import InputError, ParameterError
from crowdgraph.messages import quote, suggestion, with_article

KINDS = (
    "the name of an item attribute or several, an array with a row for each item, a mapping from item ids to rows, a "
    "function of a list of item ids, or a torch Dataset"
)


def feature_rows(features: Any, graph: CrowdGraph) -> Tensor:
    """Return the features of all items, in the order of the graph's items, of shape (N, ...)."""
    if isinstance(features, str):
        rows = _attributes(graph, [features])
    elif isinstance(features, list | tuple) and features and all(isinstance(name, str) for name in features):
        rows = _attributes(graph, features)
    elif isinstance(features, Mapping):
        rows = _of_mapping(features, graph)
    elif isinstance(features, Dataset):
        rows = _of_dataset(features, len(graph.items))
    elif callable(features):
        rows = _as_tensor(features(graph.items.ids.tolist()))
    else:
        rows = _as_tensor(features)
    return _checked(rows, graph)


def _attributes(graph: CrowdGraph, names: Sequence[str]) -> Tensor:
    """Return attributes of items as columns."""
    attributes = graph.items.attributes
    for name in names:
        if name not in attributes:
            known = f"they have {quote(attributes)}" if attributes else "they have no attributes"
            raise ParameterError(
                f"features= names {name!r}, which is no attribute of the items; {known}."
                f"{suggestion(name, list(attributes))}",
                hint="Add attributes with items={'item': [...], 'name': [...]} when building the graph.",
            )
        if attributes[name].dtype.kind not in "iufb":
            raise ParameterError(
                f"The item attribute {name!r} is not made of numbers (it is of type {attributes[name].dtype}).",
                hint="Turn it into numbers, such as one column of 0 and 1 for each category.",
            )
    return torch.tensor(np.stack([np.asarray(attributes[name], dtype=float) for name in names], axis=1))


def _of_mapping(features: Mapping[Hashable, Any], graph: CrowdGraph) -> Tensor:
    ids = graph.items.ids.tolist()
    missing = [item for item in ids if item not in features]
    unknown = [item for item in features if item not in graph.items]
    if missing:
        raise InputError(
            f"features= misses {len(missing):,} of {len(ids):,} items: {quote(missing)}."
            f"{suggestion(missing[0], unknown[:10_000])}"
        )
    if unknown:
        raise InputError(
            f"features= has {len(unknown):,} items that are not in the graph: {quote(unknown)}."
            f"{suggestion(unknown[0], ids[:10_000])}",
            hint="Items that nobody answered are added with items={'item': [...]} when building the graph.",
        )
    return _stacked(features[item] for item in ids)


def _of_dataset(features: Any, n_items: int) -> Tensor:
    """Read all entries of a dataset into memory; of entries that are pairs, such as (picture, class), the first."""
    if len(features) != n_items:
        raise InputError(_length_message(len(features), n_items))
    entries = (features[code] for code in range(n_items))
    return _stacked(entry[0] if isinstance(entry, tuple | list) else entry for entry in entries)


def _stacked(rows: Iterable[Any]) -> Tensor:
    tensors = [_as_tensor(row) for row in rows]
    shapes = sorted({tuple(row.shape) for row in tensors})
    if len(shapes) > 1:
        raise InputError(f"features= has rows of different shapes: {quote(shapes)}; all must be alike.")
    return torch.stack(tensors)


def _as_tensor(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"features= has rows of different shapes ({error}); all must be alike.") from error
    if array.dtype.kind not in "iufb":
        raise ParameterError(
            f"features= must be numbers: {KINDS}; got {with_article(type(values))} of type {array.dtype}."
        )
    return torch.tensor(array)


def _length_message(n_rows: int, n_items: int) -> str:
    return f"features= has {n_rows:,} rows, and the graph {n_items:,} items; there must be one for each, in that order."


def _checked(rows: Tensor, graph: CrowdGraph) -> Tensor:
    """Return features as floating-point rows, or raise if there is not one finite row for each item."""
    n_items = len(graph.items)
    if rows.ndim == 0 or len(rows) != n_items:
        raise InputError(_length_message(len(rows) if rows.ndim else 1, n_items), hint="See graph.items.ids.")
    rows = rows[:, None] if rows.ndim == 1 else rows
    rows = rows if rows.is_floating_point() else rows.double()
    bad = ~rows.isfinite().flatten(1).all(1)
    if bad.any():
        ids = graph.items.ids[bad.cpu().numpy()].tolist()
        raise InputError(
            f"features= is NaN or infinite for {len(ids):,} of {n_items:,} items: {quote(ids)}.",
            hint="Fill such values in, or leave these items out of the graph.",
        )
    return rows
