"""Who may be asked about what in a round, how often, and why nobody can be where nobody can."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import InfeasibleError, ParameterError, quote

Count = int | Mapping[Hashable, int]


def some_codes(table: NodeTable, ids: Iterable[Hashable] | None, name: str) -> Array:
    """The codes of some volunteers or items, each named once; of all if left out."""
    if ids is None:
        return np.arange(len(table))
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ParameterError(f"{name}={ids!r} must be several {table.kind}s, such as [...].")
    codes = np.asarray(table.codes(list(ids)), dtype=np.int64)
    if len(np.unique(codes)) < len(codes):
        raise ParameterError(f"{name}= names one of the {table.kind}s twice; name each once.")
    return codes


def open_items(graph: CrowdGraph, items: Iterable[Hashable] | None, retired: Iterable[Hashable] | None) -> Array:
    """The codes of the items that are asked about."""
    codes = some_codes(graph.items.table, items, "items")
    gone = some_codes(graph.items.table, () if retired is None else retired, "retired")
    named = np.isin(codes, gone)
    if items is not None and named.any():
        raise ParameterError(
            f"items= names {int(named.sum()):,} that are retired, such as {graph.items.ids[codes[named][0]]!r}; name "
            "only items that are still open, or leave them out of retired=."
        )
    return codes[~named]


def answered(graph: CrowdGraph, people: Array, things: Array) -> Array:
    """Who has answered what, of shape (N, M)."""
    responses = graph.responses
    places = {kind: np.full(len(nodes), -1) for kind, nodes in (("v", graph.volunteers), ("i", graph.items))}
    places["v"][people], places["i"][things] = np.arange(len(people)), np.arange(len(things))
    given = responses.label >= 0
    item, volunteer = places["i"][responses.item[given]], places["v"][responses.volunteer[given]]
    both = (item >= 0) & (volunteer >= 0)
    found = np.zeros((len(things), len(people)), dtype=bool)
    found[item[both], volunteer[both]] = True
    return found


def capacities(graph: CrowdGraph, people: Array, *, capacity: Count, load: Count | None) -> Array:
    """How many questions each volunteer may get: no more than a round allows, nor than is left of their load."""
    most = _counts(graph, capacity, "capacity")
    if load is not None:
        given = np.bincount(graph.responses.volunteer, minlength=len(graph.volunteers))
        most = np.minimum(most, np.maximum(_counts(graph, load, "load") - given, 0))
    return np.asarray(most[people])


def _counts(graph: CrowdGraph, count: Count, name: str) -> Array:
    if not isinstance(count, Mapping):
        check_integer(name, count, minimum=0)
        return np.full(len(graph.volunteers), int(count))
    for one in count.values():
        check_integer(name, one, minimum=0)
    given = np.zeros(len(graph.volunteers), dtype=np.int64)
    given[graph.volunteers.table.codes(list(count))] = list(count.values())
    return given


def check_named(ids: Array, may: Array, capacity: Array) -> None:
    """Raise if some of the volunteers that were asked for by name cannot be asked anything."""
    full, idle = capacity == 0, ~may.any(axis=0)
    kind = ParameterError if may[:, capacity > 0].any() else InfeasibleError
    if full.any():
        raise kind(
            f"volunteers= names {quote(ids[full].tolist(), most=3)}, who may not be asked more: capacity or load leave "
            "nothing. Leave them out, or raise capacity= or load=."
        )
    if idle.any() and len(may):
        raise kind(
            f"volunteers= names {quote(ids[idle].tolist(), most=3)}, who are not available for any of the items: they "
            "have answered them, or available= leaves them out. Leave them out, or name other items."
        )


def infeasible(may: Array, capacity: Array) -> InfeasibleError:
    """Why nobody can be asked anything."""
    if not len(may):
        why = "no item is open: all are retired, or none was named"
    elif not len(capacity):
        why = "there are no volunteers"
    elif not capacity.any():
        why = "nobody has capacity left; raise capacity= or load="
    elif not may.any():
        why = "everybody there has answered every open item, or available= leaves nobody"
    elif not may[:, capacity > 0].any():
        why = "those with capacity left have answered every open item, or available= leaves them out"
    else:
        why = "no question is worth what it costs; lower the rate of cost, or ask about other items"
    return InfeasibleError(f"Nothing can be asked: {why}.")
