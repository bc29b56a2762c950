"""Groups of volunteers who behave alike, and how volunteers drift from one behaviour into another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.result import probability_array
from crowdgraph.errors import ParameterError, check_choice

__all__ = ["Course", "Drift", "Group", "check_drift", "check_groups", "draw_confusion", "draw_course"]

Drift = Literal["none", "ramp", "step", "visit", "learning"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """Volunteers who behave alike.

    Parameters
    ----------
    name
        The name of the group.
    confusion
        Their typical confusion matrix, of shape (J, L).
    share
        How many of the volunteers belong to it, relative to the other groups.
    concentration
        How similar they are: the rows of a volunteer's confusion are Dirichlet with this total count.
    activity
        How active they are, relative to the other groups.
    tail
        The exponent of their Pareto distributed activity: the smaller, the more is done by a few.
    arrives
        The share of the project's duration before which nobody of the group appears, from 0 to below 0.9. Its members
        arrive in the remaining time just as others do in all of it.
    changing
        How many of its busiest members change, by the way they do: ``{"step": 2, "learning": 1}``. The ways are those
        of `drift` in `crowd`, which the others follow.
    becomes
        The name of the group whose behaviour its members take on when they change; a group drawn at random for each if
        left out.
    """

    name: str
    confusion: ArrayLike
    share: float = 1.0
    concentration: float = 30.0
    activity: float = 1.0
    tail: float = 1.5
    arrives: float = 0.0
    changing: Mapping[Drift, int] = field(default_factory=dict)
    becomes: str | None = None

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
        if not isinstance(self.changing, Mapping):
            raise ParameterError(
                f"changing={self.changing!r} of group {self.name!r} must map ways to change to numbers of volunteers, "
                "such as {'step': 2}."
            )
        for way, number in self.changing.items():
            check_choice("changing", way, get_args(Drift))
            check_integer(f"changing[{way!r}]", number, minimum=0)


def check_groups(groups: Sequence[Group] | None, shape: tuple[int, int]) -> tuple[Group, ...]:
    """Return the groups, which must match the classes and labels, or one that is right in three of four cases."""
    if groups is None:
        if shape[0] != shape[1]:
            raise ParameterError(
                f"With {shape[0]} classes and {shape[1]} labels it is unclear which are right: give groups=[...]."
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
        if group.becomes is not None and group.becomes not in {other.name for other in groups} - {group.name}:
            raise ParameterError(
                f"becomes={group.becomes!r} of group {group.name!r} must be the name of another group."
            )
    return tuple(groups)


def draw_confusion(groups: tuple[Group, ...], group: Array, rng: np.random.Generator) -> Array:
    """Draw a confusion matrix for each volunteer around that of their group."""
    base = np.array([one.confusion for one in groups])[group]
    concentration = np.array([one.concentration for one in groups])[group]
    # The smallest shape keeps rows with structural zeros (a label never used) from underflowing to 0 / 0.
    draws = rng.gamma(np.maximum(base * concentration[:, None, None], 1e-3)) + np.finfo(float).tiny
    confusion: Array = draws / draws.sum(axis=2, keepdims=True)
    return confusion


class Course(NamedTuple):
    """The behaviour of V volunteers, the behaviour into which they drift, and when they do."""

    drift: Array  # (V,) of texts, "none" for those who do not change
    group: Array  # (V,)
    own: Array  # (V, J, L)
    other: Array  # (V, J, L)
    other_group: Array  # (V,), -1 for those who do not drift or whose other behaviour is that of no group
    turn: Array  # (V,), the part of their responses after which volunteers change suddenly

    def at_responses(self, counts: Array, *, is_late: Array | None) -> tuple[Array, Array]:
        """Return the confusion at each response, of shape (R, J, L), and the group whose behaviour it is, (R,).

        `is_late` marks the responses after the moment at which all who drift change, if there is such a moment.
        """
        volunteer = np.repeat(np.arange(len(counts)), counts)
        weight = self._weight(volunteer, counts, is_late)
        confusion = self.own[volunteer] + weight[:, None, None] * (self.other - self.own)[volunteer]
        as_other = (weight > 0.5) & (self.drift != "learning")[volunteer]
        return confusion, np.where(as_other, self.other_group[volunteer], self.group[volunteer])

    def _weight(self, volunteer: Array, counts: Array, is_late: Array | None) -> Array:
        """Return the weight of the other behaviour in each response."""
        first = np.cumsum(counts) - counts
        progress = (np.arange(len(volunteer)) - first[volunteer]) / np.maximum(counts - 1, 1)[volunteer]
        weights = {
            "ramp": progress,
            "step": progress >= self.turn[volunteer] if is_late is None else is_late,
            "visit": (progress >= 1 / 3) & (progress < 2 / 3),
            "learning": np.exp(-5 * progress),
        }
        drift = self.drift[volunteer]
        return np.select([drift == name for name in weights], [*weights.values()], default=0.0)


def check_drift(drift: Drift, drift_at: float | None) -> None:
    """Raise unless there is such a drift and it can occur at such a moment."""
    check_choice("drift", drift, get_args(Drift))
    if drift_at is None:
        return
    if drift != "step":
        raise ParameterError(
            f"drift_at={drift_at!r} is the moment of a sudden change, but drift={drift!r}; use drift='step', or leave "
            "drift_at out."
        )
    if not 0 < drift_at < 1:
        raise ParameterError(f"drift_at={drift_at!r} must be a share of the project's duration between 0 and 1.")


def draw_course(
    groups: tuple[Group, ...], group: Array, drift: Drift, drifting: float, counts: Array, rng: np.random.Generator
) -> Course:
    """Draw the course of each volunteer; `drifting` is the share of those who drift, busy members of groups aside."""
    # A generator of its own, so that the same seed draws the same crowd, whoever drifts.
    drifts = rng.spawn(1)[0].permutation(len(group)) < round(drifting * len(group))
    ways = np.where(drifts, drift, "none").astype(object)
    for code, one in enumerate(groups):
        _mark_busiest(ways, one, np.flatnonzero(group == code), counts)
    own = draw_confusion(groups, group, rng)
    is_mixed = any(one.changing for one in groups)
    other, other_group = _other(groups, group, own, drift, ways, is_mixed=is_mixed, rng=rng)
    turn = rng.uniform(0.3, 0.7, len(group)) if drift == "step" or is_mixed else np.zeros(len(group))
    return Course(ways, group, own, other, np.where(ways == "none", -1, other_group), turn)


def _mark_busiest(ways: Array, one: Group, members: Array, counts: Array) -> None:
    """Mark how the busiest members of a group change, the busiest of all in the way that is named first."""
    names = [way for way, number in one.changing.items() for _ in range(number)]
    if len(names) > len(members):
        raise ParameterError(
            f"changing={dict(one.changing)!r} is for {len(names):,} members of group {one.name!r}, which has "
            f"{len(members):,}."
        )
    ways[members[np.argsort(-counts[members], kind="stable")[: len(names)]]] = names


def _other(
    groups: tuple[Group, ...],
    group: Array,
    own: Array,
    drift: Drift,
    ways: Array,
    *,
    is_mixed: bool,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Draw the confusion into which each volunteer drifts, and its group: -1 if it is that of no group."""
    nobody = np.full(len(group), -1)
    guessing = np.full_like(own, 1 / own.shape[2])
    if not is_mixed and drift == "none":
        return own, nobody
    if not is_mixed and drift == "learning":
        return guessing, nobody
    if len(groups) == 1:
        other, other_group = np.broadcast_to(own.mean(axis=1, keepdims=True), own.shape), nobody
    else:
        names = [one.name for one in groups]
        becomes = np.array([-1 if one.becomes is None else names.index(one.becomes) for one in groups])[group]
        drawn = (group + rng.integers(1, len(groups), len(group))) % len(groups)
        other_group = np.where(becomes < 0, drawn, becomes)
        other = draw_confusion(groups, other_group, rng)
    learns = ways == "learning"
    return np.where(learns[:, None, None], guessing, other), np.where(learns, -1, other_group)
