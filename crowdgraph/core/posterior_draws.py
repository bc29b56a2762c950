"""PosteriorDraws: what a sampler drew from the posterior."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from crowdgraph.core.columns import Array, Sealed, read_only, value_tuple
from crowdgraph.core.result import unique_ids
from crowdgraph.errors import ResultError

__all__ = ["PosteriorDraws"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorDraws(Sealed):
    """Draws from the posterior, of C chains with D draws each.

    Attributes
    ----------
    classes, labels
        The true classes, J of them, and the labels, L of them.
    class_probs
        How often each class occurs, of shape (C, D, J).
    log_joint
        The log probability of answers and classes given what was drawn, of shape (C, D).
    items, item_classes
        Some items, or all, of shape (N,), and the codes of their classes, of shape (C, D, N).
    volunteers, confusion
        Some volunteers, or none, of shape (V,), and their confusion matrices, of shape (C, D, V, J, L).
    first
        The number of the first of these draws: earlier ones were not kept.
    """

    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    class_probs: Array
    log_joint: Array
    items: Array
    item_classes: Array
    volunteers: Array
    confusion: Array
    first: int = 0

    def __post_init__(self) -> None:
        classes, labels = value_tuple(self.classes, what="classes"), value_tuple(self.labels, what="labels")
        items, volunteers = unique_ids(self.items, kind="item"), unique_ids(self.volunteers, kind="volunteer")
        lead = np.shape(self.log_joint)
        shapes = {
            "class_probs": (len(classes),),
            "log_joint": (),
            "item_classes": (len(items),),
            "confusion": (len(volunteers), len(classes), len(labels)),
        }
        values = {"classes": classes, "labels": labels, "items": items, "volunteers": volunteers}
        arrays = {name: _shaped(name, getattr(self, name), (*lead, *rest)) for name, rest in shapes.items()}
        for name, value in {**values, **arrays}.items():
            object.__setattr__(self, name, value)

    @property
    def n_chains(self) -> int:
        """How many chains there are."""
        return len(self.log_joint)

    def __len__(self) -> int:
        return int(self.log_joint.shape[1])

    def __repr__(self) -> str:
        return (
            f"PosteriorDraws({self.n_chains} chains of {len(self):,} draws: classes of {len(self.items):,} items, "
            f"confusion of {len(self.volunteers):,} volunteers)"
        )


def _shaped(name: str, values: Array, shape: tuple[int, ...]) -> Array:
    """A read-only array of the expected shape, in its own precision."""
    array = read_only(values)
    if len(shape) < 2 or array.shape != shape:
        raise ResultError(f"{name} has shape {array.shape}; expected {shape}, the first two for chains and draws.")
    return array
