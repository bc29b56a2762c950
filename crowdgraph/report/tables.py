"""One table each of items, volunteers and communities, from which the page and the files of an analysis are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, object_array
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.report._results import GraphResults

__all__ = ["INTERVAL_LEVEL", "community_table", "item_columns", "skill", "volunteer_columns"]

# The probability with which the share of right labels lies within its interval.
INTERVAL_LEVEL = 0.9


def item_columns(results: GraphResults) -> dict[str, Any]:
    """Return the columns of the items: responses, gold, if there is a fit class and probabilities, and attributes."""
    graph, fit = results.graph, results.fit
    gold = object_array(str(graph.gold[item]) if item in graph.gold else None for item in graph.items)
    columns: dict[str, Any] = {"item": graph.items.ids, "responses": graph.items.n_responses, "gold": gold}
    columns |= {} if fit is None else fit._columns()
    for name, values in graph.items.attributes.items():
        # What the team knows of items comes last, and takes the place of nothing.
        columns[f"item_{name}" if name in columns else name] = values
    return columns


def volunteer_columns(results: GraphResults) -> dict[str, Array]:
    """Return the columns of the volunteers: responses, how often they are right, and communities.

    A community of -1 and a participation of None stand for volunteers who belong to none.
    """
    graph = results.graph
    columns: dict[str, Array] = {"volunteer": graph.volunteers.ids, "responses": graph.volunteers.n_responses}
    if results.snapshot is not None:
        columns |= dict(zip(("accuracy", "low", "high"), skill(results, results.snapshot), strict=True))
    for name, communities in (("community", results.communities), ("task_community", results.task_communities)):
        if communities is not None:
            assignment, participation = communities.on(graph)
            share = np.full(len(graph.volunteers), None, dtype=object)
            codes = graph.volunteers.codes(communities.ids)
            share[codes] = participation[codes].max(axis=1, initial=0.0)
            columns |= {name: assignment, f"{name}_participation": share}
    return columns


def community_table(communities: Communities, confusion: ConfusionSnapshot | None = None) -> Any:
    """Return an Arrow table with a row for each community, as `Communities.describe`; null for unknown numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = communities.describe(confusion, kind="arrow")
    for position, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_floating(column.type):
            without_nan = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
            table = table.set_column(position, name, without_nan)
    return table


def skill(results: GraphResults, snapshot: ConfusionSnapshot) -> tuple[Array, Array, Array]:
    """Return the expected share of right labels of each volunteer of a snapshot, and the ends of its interval."""
    class_probs, correct = results.class_probs, results.correct_labels[0]
    accuracy = snapshot.accuracy(class_probs, correct=correct)
    low, high = snapshot.accuracy_interval(INTERVAL_LEVEL, class_probs=class_probs, correct=correct)
    return accuracy, low, high
