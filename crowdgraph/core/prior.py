"""CrowdPrior, the prior of the volunteers' confusion and of the classes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, value_tuple
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.result import VolunteerIndexed, positive_array, unique_ids
from crowdgraph.errors import ResultError

__all__ = ["CrowdPrior"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CrowdPrior(ReadOnlyArrays, VolunteerIndexed):
    """Dirichlet concentrations of the volunteers' confusion and of the classes.

    `ModelFit.as_prior` derives one from a fit; models take it as their `confusion_prior`.

    Attributes
    ----------
    ids
        The volunteers who have a confusion prior of their own, K of them.
    confusion
        Their concentrations, of shape (K, J, L).
    shared
        The concentration for everybody else, of shape (J, L).
    class_concentration
        The concentration of the classes, of shape (J,).
    forward
        Where the filter of an earlier fit of `DynIBCC` ended, from which another one goes on; None if there was none.
    """

    ids: Array
    confusion: Array
    shared: Array
    class_concentration: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    forward: ForwardState | None = field(default=None, metadata={"saved": "unless default"})

    def __post_init__(self) -> None:
        shape = (len(tuple(self.classes)), len(tuple(self.labels)))
        self._set(
            ids=unique_ids(self.ids, kind="volunteer"),
            confusion=positive_array("confusion", self.confusion, shape=(len(self.ids), *shape)),
            shared=positive_array("shared", self.shared, shape=shape),
            class_concentration=positive_array("class_concentration", self.class_concentration, shape=shape[:1]),
            classes=value_tuple(self.classes, what="classes"),
            labels=value_tuple(self.labels, what="labels"),
        )
        if self.forward is not None and self.forward.mean.shape[1:] != shape[::-1]:
            raise ResultError(
                f"The forward state is of (labels, classes) {self.forward.mean.shape[1:]}; expected {shape[::-1]}."
            )

    def of(self, volunteer: Hashable) -> Array:
        """Return the concentration of one volunteer's confusion, of shape (J, L): their own, or else the shared one."""
        return np.asarray(self.confusion[self.table.code(volunteer)] if volunteer in self.table else self.shared)

    def of_all(self, volunteers: Sequence[Hashable]) -> Array:
        """Return the concentrations of several volunteers' confusion, of shape (len(volunteers), J, L)."""
        confusion = np.array(np.broadcast_to(self.shared, (len(volunteers), *self.shared.shape)))
        own = [row for row, volunteer in enumerate(volunteers) if volunteer in self.table]
        confusion[own] = self.confusion[self.table.codes([volunteers[row] for row in own])]
        return confusion

    def __deepcopy__(self, memo: dict[int, Any]) -> CrowdPrior:
        return self

    def __repr__(self) -> str:
        weight = np.median(self.confusion.sum(axis=2)) if len(self.ids) else self.shared.sum(axis=1).mean()
        return f"CrowdPrior({len(self.ids):,} volunteers, median weight of a row {weight:,.1f})"
