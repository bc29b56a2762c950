"""Who is asked about what, and why."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from crowdgraph.core.columns import Array, Sealed, id_array, object_array, read_only, sealed
from crowdgraph.core.result import Columns, Tabular, real_array
from crowdgraph.errors import ResultError

__all__ = ["Assignment"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignment(Sealed, Tabular):
    """Pairs of volunteers and items, in the order in which they were decided: who is asked about what, and why.

    Attributes
    ----------
    volunteers, items
        Who is asked, and about what, both of shape (A,).
    gain
        How much each label is expected to tell about its item, in nats, after those decided before it, of shape (A,).
    learning
        How much it is expected to tell about the volunteer, and to teach, in nats, of shape (A,).
    cost
        What it costs, in nats, never above zero, of shape (A,).
    chance
        How likely each question is to be answered, of shape (A,).
    rates
        How many nats what is told of the item, and what is learned, are worth.
    policy
        What decided.
    """

    volunteers: Array
    items: Array
    gain: Array
    learning: Array
    cost: Array
    chance: Array
    rates: tuple[float, float]
    policy: str

    def __post_init__(self) -> None:
        volunteers, items = id_array(self.volunteers), id_array(self.items)
        if len(volunteers) != len(items):
            raise ResultError(f"An assignment pairs {len(volunteers):,} volunteers with {len(items):,} items.")
        if len(set(zip(volunteers.tolist(), items.tolist(), strict=True))) < len(volunteers):
            raise ResultError("An assignment asks somebody twice about the same item.")
        for name, value in (("volunteers", volunteers), ("items", items)):
            object.__setattr__(self, name, read_only(value))
        for name in ("gain", "learning", "cost", "chance"):
            checked = real_array(name, getattr(self, name), shape=(len(volunteers),))
            object.__setattr__(self, name, checked)

    def __len__(self) -> int:
        return len(self.volunteers)

    def __iter__(self) -> Iterator[tuple[Hashable, Hashable]]:
        return iter(zip(self.volunteers.tolist(), self.items.tolist(), strict=True))

    @property
    def value(self) -> Array:
        """What each label is worth if it is given, in nats, of shape (A,): what it tells and teaches, less its cost."""
        information, learning = self.rates
        return sealed(information * self.gain + learning * self.learning + self.cost)

    @property
    def others(self) -> list[tuple[Hashable, ...]]:
        """Who else is asked about the same item in this assignment, for each question."""
        asked: dict[Hashable, list[Hashable]] = {}
        for volunteer, item in self:
            asked.setdefault(item, []).append(volunteer)
        return [tuple(other for other in asked[item] if other != volunteer) for volunteer, item in self]

    @property
    def already(self) -> Array:
        """How many others had been asked about the same item in this assignment before, of shape (A,)."""
        seen: dict[Hashable, int] = {}
        before = []
        for item in self.items.tolist():
            before.append(seen.get(item, 0))
            seen[item] = before[-1] + 1
        return sealed(np.array(before, dtype=np.int64))

    def _columns(self) -> Columns:
        """The audit log: a row for each question, in the order of decisions."""
        names = ("gain", "learning", "cost", "chance", "value", "already")
        return {
            "volunteer": self.volunteers,
            "item": self.items,
            **{name: getattr(self, name) for name in names},
            "others": object_array([", ".join(map(str, others)) for others in self.others]),
            "policy": object_array([self.policy] * len(self)),
        }

    def __repr__(self) -> str:
        people, things = len(set(self.volunteers.tolist())), len(set(self.items.tolist()))
        return (
            f"Assignment({self.policy}: {len(self):,} questions to {people:,} volunteers about {things:,} items; "
            f"worth {self.value.sum():.3g} nats)"
        )
