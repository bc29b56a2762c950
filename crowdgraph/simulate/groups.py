"""Groups of volunteers who behave alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core.columns import Array
from crowdgraph.core.result import probability_array
from crowdgraph.errors import ParameterError

__all__ = ["Group", "checked_groups", "drawn_confusion"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """Volunteers who behave alike.

    Parameters
    ----------
    name
        What to call the group.
    confusion
        Their typical confusion matrix, of shape (J, L).
    share
        How many of the volunteers belong to it, relative to the other groups.
    concentration
        How much alike they are: the rows of a volunteer's confusion are Dirichlet with this total count.
    activity
        How active they are, relative to the other groups.
    tail
        The exponent of their Pareto distributed activity: the smaller, the more a few volunteers do.
    arrives
        The share of the project's duration before which nobody of the group appears, from 0 to below 0.9. Its members
        arrive in the time that is left just as others do in the whole.
    """

    name: str
    confusion: ArrayLike
    share: float = 1.0
    concentration: float = 30.0
    activity: float = 1.0
    tail: float = 1.5
    arrives: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion", probability_array("confusion", self.confusion, shape=(None, None)))
        for name in ("share", "concentration", "activity", "tail"):
            if not 0 < getattr(self, name) < np.inf:
                raise ParameterError(
                    f"{name}={getattr(self, name)!r} of group {self.name!r} must be positive and finite."
                )
        if not 0 <= self.arrives < 0.9:
            raise ParameterError(
                f"arrives={self.arrives!r} of group {self.name!r} must be a share of the project's duration from 0 to "
                "below 0.9."
            )


def checked_groups(groups: Sequence[Group] | None, shape: tuple[int, int]) -> tuple[Group, ...]:
    """The groups, if they fit the classes and labels; one that is right in three of four cases, if there are none."""
    if groups is None:
        if shape[0] != shape[1]:
            raise ParameterError(
                f"With {shape[0]} classes and {shape[1]} labels the behaviour is not plain; give groups=[Group(...)]."
            )
        right = np.eye(shape[0])
        wrong = (1 - right) / max(shape[0] - 1, 1)
        return (Group(name="all", confusion=0.75 * right + 0.25 * wrong if shape[0] > 1 else right),)
    if isinstance(groups, Group) or not groups or not all(isinstance(group, Group) for group in groups):
        raise ParameterError(f"groups={groups!r} must be a list of at least one Group.")
    for group in groups:
        if np.shape(group.confusion) != shape:
            raise ParameterError(
                f"The confusion of group {group.name!r} has shape {np.shape(group.confusion)}; expected {shape}, "
                "classes by labels."
            )
    return tuple(groups)


def drawn_confusion(groups: tuple[Group, ...], group: Array, rng: np.random.Generator) -> Array:
    """A confusion matrix for each volunteer, around that of their group."""
    base = np.array([behaviour.confusion for behaviour in groups])[group]
    concentration = np.array([behaviour.concentration for behaviour in groups])[group]
    # The smallest shape keeps rows with structural zeros (a label never used) from underflowing to 0 / 0.
    draws = rng.gamma(np.maximum(base * concentration[:, None, None], 1e-3)) + np.finfo(float).tiny
    confusion: Array = draws / draws.sum(axis=2, keepdims=True)
    return confusion
