"""Influence: what one response, item or volunteer changes in a fit."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core.columns import Array, Sealed, id_array, sealed
from crowdgraph.core.result import Coded, Columns, Tabular, Timed
from crowdgraph.errors import NotAnnotatedError, ParameterError

if TYPE_CHECKING:
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["Influence", "leave_out", "without"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Influence(Sealed, Tabular):
    """The difference between a fit and the one that would be found without some responses.

    Attributes
    ----------
    volunteer, item
        Whose responses, or the responses to which item, were left out; None for all.
    n_responses
        How many were left out.
    fit, without
        The fit with and without them. The second starts from the first, so that both lie in the same mode.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=10, n_items=50, n_responses=300, seed=1).graph
    >>> fit = cg.IBCC().fit(graph)
    >>> busiest = graph.volunteers.ids[graph.volunteers.n_responses.argmax()]
    >>> influence = fit.influence(volunteer=busiest)
    >>> influence.item_change.shape
    (50, 2)
    """

    volunteer: Hashable | None
    item: Hashable | None
    n_responses: int
    fit: ModelFit
    without: ModelFit

    @cached_property
    def item_change(self) -> Array:
        """What the responses add to each item's class probabilities, of shape (N, J)."""
        return sealed(self.fit.item_probs - self.without.item_probs)

    @cached_property
    def confusion_change(self) -> Array:
        """What the responses add to each volunteer's expected confusion, of shape (K, J, L)."""
        if self.fit.confusion is None or self.without.confusion is None:
            raise NotAnnotatedError(f"The model {self.fit.model!r} has no confusion matrices that could change.")
        return sealed(self.fit.confusion.latest().mean - self.without.confusion.latest().mean)

    @property
    def flipped(self) -> list[Hashable]:
        """The items whose most probable class depends on the responses."""
        differs = self.fit.item_probs.argmax(axis=1) != self.without.item_probs.argmax(axis=1)
        return list(self.fit.items[differs].tolist())

    def _columns(self) -> Columns:
        """One row for each item, those that change most first."""
        return compared_columns(self.fit, self.item_change, without=self.without)

    def __repr__(self) -> str:
        parts = [
            f"of volunteer {self.volunteer!r}" if self.volunteer is not None else "",
            f"about item {self.item!r}" if self.item is not None else "",
        ]
        return (
            f"Influence of the {self.n_responses:,} responses {' '.join(part for part in parts if part)}: "
            f"{len(self.flipped):,} items change their most probable class, "
            f"the largest change of a probability is {np.abs(self.item_change).max():.3f}"
        )


def without(graph: CrowdGraph, volunteer: Hashable | None, item: Hashable | None) -> CrowdGraph:
    """The graph without the responses of a volunteer, about an item, or of that volunteer about that item.

    Without an item means without what is known of it, too.
    """
    if volunteer is None and item is None:
        raise ParameterError("Say whose influence you ask for: volunteer=..., item=... or both for one response.")
    gone = np.ones(len(graph.responses), dtype=bool)
    if volunteer is not None:
        gone &= graph.responses.volunteer == graph.volunteers.table.code(volunteer)
    if item is not None:
        gone &= graph.responses.item == graph.items.table.code(item)
    if not gone.any():
        raise ParameterError(f"There is no response with volunteer={volunteer!r} and item={item!r} in the graph.")
    forgotten = [] if volunteer is not None or item is None else [graph.items.table.code(item)]
    return leave_out(graph, gone, forgotten=forgotten)


def leave_out(graph: CrowdGraph, gone: Array, *, forgotten: ArrayLike = ()) -> CrowdGraph:
    """The graph without the responses of a mask, of shape (R,), and without the gold of some items, as codes."""
    known = np.ones(len(graph.items), dtype=bool)
    known[np.asarray(forgotten, dtype=np.int64)] = False
    return graph._with(responses=graph.responses.table.take(np.flatnonzero(~gone)), gold=graph.gold.where(known))


def compared_columns(fit: ModelFit, change: Array, *, retired_at: Array | None = None, **other: ModelFit) -> Columns:
    """Return a row for each item, those that change most first, to compare a fit with another one.

    The columns are the most probable class in both, the other under its name, and the change of every class's
    probability.
    """
    order = np.argsort(-np.abs(change).max(axis=1), kind="stable")
    names = id_array(fit.classes)
    fits = {"class": fit, **other}
    columns: dict[str, Array | Coded | Timed] = {
        "item": fit.items[order],
        **{name: Coded(one.item_probs[order].argmax(axis=1), names) for name, one in fits.items()},
        **{f"change of p({name})": change[order, code] for code, name in enumerate(fit.classes)},
    }
    return columns if retired_at is None else {**columns, "retired_at": retired_at[order]}
