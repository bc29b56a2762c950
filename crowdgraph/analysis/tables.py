"""The tables of an analysis, as Arrow: items, volunteers, communities and confusion."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core.columns import Array, object_array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Result
from crowdgraph.errors import ParameterError

__all__ = ["communities_table", "confusion_table", "items_table", "volunteers_table"]

# More rows of a confusion table than these are not written: only the latest matrices are.
MOST_ROWS = 20_000_000


def items_table(graph: CrowdGraph) -> Any:
    """One row for each item: responses, gold and, if there is a fit, the classes and their probabilities."""
    from crowdgraph.io.columns import native_frame

    gold = object_array(None if item not in graph.gold else str(graph.gold[item]) for item in graph.items)
    known = {"item": graph.items.ids, "responses": graph.items.n_responses, "gold": gold}
    table = native_frame(known, kind="arrow")
    fit = latest(graph, ModelFit)
    if fit is None:
        return table
    told = fit.to_frame(kind="arrow")
    for name in told.column_names[1:]:
        table = table.append_column(name, told[name])
    return table


def volunteers_table(graph: CrowdGraph) -> Any:
    """One row for each volunteer: responses, how often they are right with an interval, and their communities."""
    from crowdgraph.io.columns import native_frame

    columns: dict[str, Array] = {"volunteer": graph.volunteers.ids, "responses": graph.volunteers.n_responses}
    columns |= _skill(graph)
    for name, column in (("communities", "community"), ("task communities", "task_community")):
        found = graph.annotations.get(name)
        if isinstance(found, Communities):
            columns |= _membership(graph, found, column)
    return native_frame(columns, kind="arrow")


def communities_table(graph: CrowdGraph) -> Any:
    """One row for each community, of volunteers who behave alike and of those who work on the same items."""
    import pyarrow as pa

    parts = []
    for name in ("communities", "task communities"):
        found = graph.annotations.get(name)
        if isinstance(found, Communities):
            table = _without_nan(found.describe(kind="arrow"))
            kind = "alike" if name == "communities" else "same items"
            parts.append(table.add_column(0, "kind", pa.array([kind] * len(table), pa.string())))
    return pa.concat_tables(parts, promote_options="permissive") if parts else None


def _without_nan(table: Any) -> Any:
    """A table in which numbers that are not known are null, which files leave empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_floating(column.type):
            known = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
            table = table.set_column(place, name, known)
    return table


def confusion_table(track: ConfusionTrack) -> Any:
    """The confusion of all volunteers, at every response if that is not too much."""
    cells = track.concentration.size
    if track.inference != "static" and cells > MOST_ROWS:
        now = track.latest()
        track = ConfusionTrack.static(
            ids=now.ids, concentration=now.concentration, classes=now.classes, labels=now.labels
        )
    return track.to_frame(kind="arrow")


def latest(graph: CrowdGraph, kind: type[Any]) -> Any:
    """The latest result of a kind that a graph carries, or None."""
    found: list[Result] = [result for result in graph.annotations.values() if isinstance(result, kind)]
    return found[-1] if found else None


def _skill(graph: CrowdGraph) -> dict[str, Array]:
    """How often each volunteer is right; nothing where it is not known which labels are right."""
    fit = latest(graph, ModelFit)
    if fit is None or fit.confusion is None:
        return {}
    try:
        table = fit.volunteers_to_frame(kind="arrow")
    except ParameterError:
        return {}
    codes = graph.volunteers.codes(table["volunteer"].to_pylist())
    columns = {}
    for name in ("accuracy", "low", "high"):
        columns[name] = np.empty(len(codes))
        columns[name][codes] = table[name].to_numpy()
    return columns


def _membership(graph: CrowdGraph, found: Communities, column: str) -> dict[str, Array]:
    """The community of each volunteer, -1 for none, and the participation in it."""
    codes = graph.volunteers.codes(found.ids.tolist())
    number = np.full(len(graph.volunteers), -1)
    number[codes] = found.assignment
    share = np.full(len(graph.volunteers), None, dtype=object)
    share[codes] = found.participation.max(axis=1, initial=0.0)
    return {column: number, f"{column}_participation": share}
