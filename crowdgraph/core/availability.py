"""Who is likely to be there, and to take and finish which items."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdgraph.core.columns import Array, Sealed
from crowdgraph.core.communities import main_community
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ResultError

__all__ = ["Availability"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Availability(Sealed, Tabular):
    """Who is likely to be there within a horizon, and to take and finish which items.

    Attributes
    ----------
    volunteers, items
        The ids of a graph's volunteers and items, of shapes (V,) and (N,).
    active
        The chance that each volunteer is active within the horizon, of shape (V,).
    finishes
        The chance that an item that is shown to the volunteer gets a label and is not rejected, of shape (V,).
    participation
        How much each volunteer belongs to each task community, of shape (V, K). Rows sum to one, or to zero for
        volunteers of none.
    lift
        How much more often than the average item each item is taken by each task community, of shape (N, K).
    horizon, half_life
        How far ahead is looked, and the age at which activity counts half (None: all counts the same), as numbers or
        timedeltas.

    Examples
    --------
    >>> made = Availability(volunteers=["anna", "bert"], items=["x", "y"], active=[0.5, 1.0], finishes=[1.0, 0.8],
    ...                     participation=[[1.0, 0.0], [0.0, 1.0]], lift=[[1.5, 0.5], [1.0, 1.0]], horizon=7)
    >>> made.chance()
    array([[0.5, 0.4],
           [0.5, 0.8]])
    """

    volunteers: Array
    items: Array
    active: Array
    finishes: Array
    participation: Array
    lift: Array
    horizon: float | dt.timedelta
    half_life: float | dt.timedelta | None = None

    def __post_init__(self) -> None:
        volunteers, items = (unique_ids(getattr(self, f"{kind}s"), kind=kind) for kind in ("volunteer", "item"))
        participation = real_array("participation", self.participation, shape=(len(volunteers), None))
        checked = {
            "volunteers": volunteers,
            "items": items,
            "participation": participation,
            "lift": real_array("lift", self.lift, shape=(len(items), participation.shape[1])),
            **{
                name: real_array(name, getattr(self, name), shape=(len(volunteers),)) for name in ("active", "finishes")
            },
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name in ("active", "finishes"):
            if ((checked[name] < 0) | (checked[name] > 1)).any():
                raise ResultError(f"{name} must be chances from 0 to 1.")

    @cached_property
    def _tables(self) -> tuple[NodeTable, NodeTable]:
        return NodeTable("volunteer", self.volunteers), NodeTable("item", self.items)

    def affinity(self, volunteers: Iterable[Hashable] | None = None, items: Iterable[Hashable] | None = None) -> Array:
        r"""How much more often than the average item each item is taken by the volunteers' communities, (N', V').

        .. math:: a_{iv} = \sum_k P_{vk}\, \frac{p(k \mid i)}{p(k)}

        with :math:`P_{vk}` the participation of the volunteer and :math:`p(k \mid i) / p(k)` the `lift` of the item. It
        is 1 for volunteers of no community and for items that nobody has answered.

        Parameters
        ----------
        volunteers, items
            Some of them, in the order of the answer; all if left out.
        """
        return self._affinity(*self._places(volunteers, items))

    def chance(self, volunteers: Iterable[Hashable] | None = None, items: Iterable[Hashable] | None = None) -> Array:
        r"""The chance that a volunteer takes an item that is offered now, and answers it, of shape (N', V').

        .. math:: \text{active}_v \cdot \min(1, a_{iv}) \cdot \text{finishes}_v

        that they come within the horizon, take the item, and do not reject it. Items that a volunteer's communities
        take at least as often as the average item are taken to be no obstacle; of others they take as much less as
        their communities do (see `affinity`, which also tells favourites apart).

        Parameters
        ----------
        volunteers, items
            Some of them, in the order of the answer; all if left out.
        """
        people, things = self._places(volunteers, items)
        taken = np.clip(self._affinity(people, things), 0.0, 1.0)
        return np.asarray(taken * (self.active * self.finishes)[people])

    def _affinity(self, people: Array, things: Array) -> Array:
        shares = self.participation[people]
        return np.asarray(self.lift[things] @ shares.T + (1 - shares.sum(axis=1)))

    def _places(self, volunteers: Iterable[Hashable] | None, items: Iterable[Hashable] | None) -> tuple[Array, Array]:
        asked = zip(self._tables, (volunteers, items), strict=True)
        people, things = (np.arange(len(table)) if ids is None else table.codes(ids) for table, ids in asked)
        return people, things

    def _columns(self) -> Columns:
        """One row for each volunteer, the most likely first: `active`, `finishes` and the main task community."""
        order = np.argsort(-self.active, kind="stable")
        return {
            "volunteer": self.volunteers[order],
            "active": self.active[order],
            "finishes": self.finishes[order],
            "community": main_community(self.participation)[order],
        }

    def __repr__(self) -> str:
        groups = self.participation.shape[1]
        known = f"{groups} task communities" if groups else "no task communities"
        return (
            f"Availability({self.active.sum():.1f} of {len(self.volunteers):,} volunteers expected within "
            f"{self.horizon}; {len(self.items):,} items, {known})"
        )
