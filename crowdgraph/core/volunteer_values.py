"""VolunteerValues: one number for each of some volunteers, such as their centrality or their common items."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, cell_text, plain, read_only
from crowdgraph.core._html import values_html
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.result import Columns, Tabular, VolunteerIndexed, unique_ids
from crowdgraph.errors import ResultError

__all__ = ["VolunteerValues"]

# How many volunteers the text of the values names.
MAX_NAMES = 5


@dataclass(frozen=True, eq=False, repr=False)
class VolunteerValues(VolunteerIndexed, ReadOnlyArrays, Mapping[Hashable, Any], Tabular):
    """One number for each of some volunteers: a mapping from ids to numbers, and a table.

    Attributes
    ----------
    quantity
        The meaning of the numbers, which is also the name of their column.
    ids
        The volunteers, of shape (V,).
    array
        Their numbers, of shape (V,).

    Examples
    --------
    >>> values = VolunteerValues("strength", ["anna", "bert", "cleo"], [2.0, 0.5, 3.0])
    >>> values["anna"]
    2.0
    >>> values.top(2)
    strength of 2 volunteers: 'cleo' 3, 'anna' 2
    >>> dict(values)
    {'anna': 2.0, 'bert': 0.5, 'cleo': 3.0}
    """

    quantity: str
    ids: Array
    array: Array

    def __post_init__(self) -> None:
        self._set(ids=unique_ids(self.ids, kind="volunteer"), array=read_only(self.array))
        if self.array.shape != self.ids.shape:
            raise ResultError(
                f"The numbers have shape {self.array.shape}; expected ({len(self.ids)},), one for each volunteer."
            )

    def __getitem__(self, volunteer: Hashable) -> Any:
        return plain(self.array[self.table.code(volunteer)])

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.ids.tolist())

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, volunteer: object) -> bool:
        return volunteer in self.table

    def get(self, volunteer: Hashable, default: Any = None) -> Any:
        """Return the number of a volunteer, or `default` for those who have none."""
        # Without the search for similar ids of the error.
        return self[volunteer] if volunteer in self.table else default

    def top(self, n: int = 10) -> VolunteerValues:
        """Return the `n` largest, the largest first; equal ones stay in their order."""
        check_integer("n", n, minimum=0)
        best = np.argsort(-self.array, kind="stable")[:n]
        return VolunteerValues(self.quantity, self.ids[best], self.array[best])

    def _columns(self) -> Columns:
        return {"volunteer": self.ids, self.quantity: self.array}

    def __repr__(self) -> str:
        best = self.top(MAX_NAMES)
        names = ", ".join(f"{name!r} {cell_text(number)}" for name, number in best.items())
        more = ", ..." if len(self) > MAX_NAMES else ""
        return f"{self.quantity} of {len(self):,} volunteers{': ' if names else ''}{names}{more}"

    def _repr_html_(self) -> str:
        return values_html(self)
