"""Who may be asked about what, how often, and why nobody can be asked where nobody can."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import InfeasibleError, ParameterError
from crowdgraph.messages import Hint, quote

Count = int | Mapping[Hashable, int]


def codes_of(table: NodeTable, ids: Iterable[Hashable] | None, name: str) -> Array:
    """Return the codes of some volunteers or items, each named once; of all if left out."""
    if ids is None:
        return np.arange(len(table))
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ParameterError(f"{name}={ids!r} must be several {table.kind}s, such as [...].")
    codes = np.asarray(table.codes(list(ids)), dtype=np.int64)
    if len(np.unique(codes)) < len(codes):
        raise ParameterError(f"{name}= names one of the {table.kind}s twice; name each once.")
    return codes


def anonymous_volunteers(graph: CrowdGraph) -> Array:
    """Return which volunteers cannot be asked, since they were not logged in: their attribute `anonymous`, (V,)."""
    return _flags(graph.volunteers.table, "anonymous")


def retired_items(graph: CrowdGraph) -> Array:
    """Return which items need no questions, since they are retired already: their attribute `retired`, (N,)."""
    return _flags(graph.items.table, "retired")


def _flags(table: NodeTable, name: str) -> Array:
    """Return which nodes have an attribute that is true; none where it is no mark but something else."""
    values = table.attributes.get(name)
    if values is None:
        return np.zeros(len(table), dtype=bool)
    return np.array([value is True for value in values.tolist()], dtype=bool)


def open_items(graph: CrowdGraph, items: Iterable[Hashable] | None, retired: Iterable[Hashable] | None) -> Array:
    """Return the codes of the items that are asked about."""
    codes = codes_of(graph.items.table, items, "items")
    is_retired = np.isin(codes, codes_of(graph.items.table, () if retired is None else retired, "retired"))
    if items is not None and is_retired.any():
        raise ParameterError(
            f"items= names {int(is_retired.sum()):,} that are retired, such as "
            f"{graph.items.ids[codes[is_retired][0]]!r}.",
            hint="Name only items that are still open, or leave them out of retired=.",
        )
    return codes[~is_retired]


def answered_pairs(graph: CrowdGraph, volunteers: Array, items: Array) -> Array:
    """Return which of some volunteers have answered which of some items, both given as codes, of shape (N, M)."""
    answers = graph.answers
    volunteer_index, item_index = np.full(len(graph.volunteers), -1), np.full(len(graph.items), -1)
    volunteer_index[volunteers], item_index[items] = np.arange(len(volunteers)), np.arange(len(items))
    item, volunteer = item_index[answers.item], volunteer_index[answers.volunteer]
    both = (item >= 0) & (volunteer >= 0)
    answered = np.zeros((len(items), len(volunteers)), dtype=bool)
    answered[item[both], volunteer[both]] = True
    return answered


def capacities(graph: CrowdGraph, volunteers: Array, *, capacity: Count, load: Count | None) -> Array:
    """Return how many questions each volunteer may get: within their capacity and what is left of their load."""
    limits = _counts(graph, capacity, "capacity")
    if load is not None:
        n_responses = np.bincount(graph.responses.volunteer, minlength=len(graph.volunteers))
        limits = np.minimum(limits, np.maximum(_counts(graph, load, "load") - n_responses, 0))
    return np.asarray(limits[volunteers])


def _counts(graph: CrowdGraph, count: Count, name: str) -> Array:
    """Return a number for each volunteer, of shape (V,); zero for those that a mapping does not name."""
    if not isinstance(count, Mapping):
        check_integer(name, count, minimum=0)
        return np.full(len(graph.volunteers), int(count))
    for number in count.values():
        check_integer(name, number, minimum=0)
    counts = np.zeros(len(graph.volunteers), dtype=np.int64)
    counts[graph.volunteers.table.codes(list(count))] = list(count.values())
    return counts


def check_named(ids: Array, allowed: Array, capacity: Array) -> None:
    """Raise if some of the volunteers who were asked for by name cannot be asked anything."""
    full, idle = capacity == 0, ~allowed.any(axis=0)
    kind = ParameterError if allowed[:, capacity > 0].any() else InfeasibleError
    if full.any():
        raise kind(
            f"volunteers= names {quote(ids[full].tolist(), most=3)}, who may not be asked more: capacity or load leave "
            "nothing.",
            hint="Leave them out, or raise capacity= or load=.",
        )
    if idle.any() and len(allowed):
        raise kind(
            f"volunteers= names {quote(ids[idle].tolist(), most=3)}, who are not available for any of the items: they "
            "have answered them, or available= leaves them out.",
            hint="Leave them out, or name other items.",
        )


def infeasible(allowed: Array, capacity: Array) -> InfeasibleError:
    """Return the error that says why nobody can be asked anything."""
    hint: str | None = None
    if not len(allowed):
        why = "no item is open: all are retired, or none was named"
    elif not len(capacity):
        why = "there are no volunteers"
    elif not capacity.any():
        why, hint = "nobody has capacity left", Hint("Raise capacity= or load=.", cli="Raise --capacity.")
    elif not allowed.any():
        why = "everybody has answered every open item, or is not available"
        hint = Hint("Widen available=, or open more items.", cli="Raise --likely-within, or add items.")
    elif not allowed[:, capacity > 0].any():
        why = "those with capacity left have answered every open item, or are not available"
        hint = Hint(
            "Give others capacity=, or widen available=.",
            cli="Give an earlier --active-since, or raise --likely-within.",
        )
    else:
        why, hint = "no question is worth what it costs", "Lower the rate of cost, or ask about other items."
    return InfeasibleError(f"Nothing can be asked: {why}.", hint=hint)
