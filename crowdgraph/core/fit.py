"""ModelFit: what a model found out about items, classes and volunteers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core.columns import Array, value_tuple
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.result import (
    Result,
    check_same_ids,
    check_same_values,
    parameters,
    probability_array,
    real_array,
    unique_ids,
)
from crowdgraph.errors import ResultError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["ModelFit"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelFit(Result):
    """What a model found out.

    Attributes
    ----------
    model
        The model's name, such as ``"ibcc"``.
    items
        Item ids, of shape (N,).
    classes
        The true classes, J of them.
    item_probs
        The probability of each class for each item, of shape (N, J).
    class_probs
        How often each class occurs, of shape (J,).
    confusion
        The volunteers' confusion over time; None for models that have none.
    bound
        The lower bound (or score) after each iteration; empty for models that have none.
    converged, n_iter
        Whether the fit settled, and after how many iterations it stopped.
    params
        The model's settings.

    Examples
    --------
    >>> fit = ModelFit(model="mine", items=["x", "y"], classes=("no", "yes"), item_probs=[[0.9, 0.1], [0.3, 0.7]],
    ...                class_probs=[0.6, 0.4])
    >>> fit.predict()
    {'x': 'no', 'y': 'yes'}
    """

    model: str
    items: Array
    classes: tuple[Hashable, ...]
    item_probs: Array
    class_probs: Array
    confusion: ConfusionTrack | None = None
    bound: Array = field(default_factory=lambda: np.zeros(0))
    converged: bool = True
    n_iter: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        items = unique_ids(self.items, kind="item")
        classes = value_tuple(self.classes, what="classes")
        self._set(
            items=items,
            classes=classes,
            item_probs=probability_array("item_probs", self.item_probs, shape=(len(items), len(classes))),
            class_probs=probability_array("class_probs", self.class_probs, shape=(len(classes),)),
            bound=real_array("bound", self.bound, shape=(None,)),
            params=parameters(self.params),
        )
        if self.n_iter < 0:
            raise ResultError(f"n_iter={self.n_iter!r} cannot be negative.")
        if self.confusion is not None and self.confusion.classes != classes:
            raise ResultError(f"The confusion has the classes {self.confusion.classes}, the fit {classes}.")

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    def predict(self) -> dict[Hashable, Hashable]:
        """The most probable class of each item; of equally probable ones the first."""
        best = self.item_probs.argmax(axis=1)
        return {item: self.classes[code] for item, code in zip(self.items.tolist(), best, strict=True)}

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each item: its most probable class and the probability of every class.

        `kind` is ``"pandas"``, ``"polars"`` or ``"arrow"``.
        """
        from crowdgraph.io.frames import fit_frame

        return fit_frame(self, kind=kind)

    def check_fits(self, graph: CrowdGraph) -> None:
        """Raise unless the fit was made for the graph's items, volunteers, classes and labels."""
        check_same_ids(f"The fit {self.model!r}", self.items, graph.items.table)
        check_same_values(f"The fit {self.model!r}", "classes", self.classes, graph.classes)
        if self.confusion is not None:
            self.confusion.check_fits(graph)

    def __repr__(self) -> str:
        settled = "converged" if self.converged else "not converged"
        last = f", bound {self.bound[-1]:,.4f}" if len(self.bound) else ""
        return f"ModelFit({self.model}: {len(self.items):,} items, {settled} after {self.n_iter:,} iterations{last})"
