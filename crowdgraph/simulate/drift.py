"""How volunteers change: into whom, when, and who does at all."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.simulate.groups import Group, drawn_confusion

__all__ = ["Course", "Drift", "check_drift", "drawn_course"]

Drift = Literal["none", "ramp", "step", "visit", "learning"]


class Course(NamedTuple):
    """What volunteers do by themselves, what they drift into, and when."""

    drift: Drift
    group: Array  # (V,)
    own: Array  # (V, J, L)
    other: Array  # (V, J, L)
    other_group: Array  # (V,), -1 for those who do not drift or whose other behaviour is that of no group
    drifts: Array  # (V,) of bool
    turn: Array  # (V,), the part of their responses after which volunteers change suddenly

    def at_responses(self, counts: Array, *, late: Array | None) -> tuple[Array, Array]:
        """The confusion at every response, of shape (R, J, L), and the group whose behaviour it is, of shape (R,).

        `late` marks the responses after the moment at which all who drift change, where there is such a moment.
        """
        volunteer = np.repeat(np.arange(len(counts)), counts)
        weight = self._weight(volunteer, counts, late) * self.drifts[volunteer]
        confusion = self.own[volunteer] + weight[:, None, None] * (self.other - self.own)[volunteer]
        as_other = (weight > 0.5) & (self.drift != "learning")
        return confusion, np.where(as_other, self.other_group[volunteer], self.group[volunteer])

    def _weight(self, volunteer: Array, counts: Array, late: Array | None) -> Array:
        """How much of the other behaviour there is in every response of those who drift."""
        first = np.cumsum(counts) - counts
        progress = (np.arange(len(volunteer)) - first[volunteer]) / np.maximum(counts - 1, 1)[volunteer]
        weight: Array = np.zeros(len(volunteer))
        if self.drift == "ramp":
            weight = progress
        elif self.drift == "step":
            weight = progress >= self.turn[volunteer] if late is None else late
        elif self.drift == "visit":
            weight = (progress >= 1 / 3) & (progress < 2 / 3)
        elif self.drift == "learning":
            weight = np.exp(-5 * progress)
        return weight.astype(float)


def check_drift(drift: Drift, drift_at: float | None) -> None:
    """Raise unless there is such a drift and it can come at such a moment."""
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


def drawn_course(
    groups: tuple[Group, ...], group: Array, drift: Drift, drifting: float, rng: np.random.Generator
) -> Course:
    """The course of every volunteer; `drifting` is the share of those who drift."""
    n_volunteers = len(group)
    # A generator of its own, so that the same seed draws the same crowd, whoever drifts.
    drifts = rng.spawn(1)[0].permutation(n_volunteers) < round(drifting * n_volunteers)
    own = drawn_confusion(groups, group, rng)
    other, other_group = _other(groups, group, own, drift, rng)
    turn = rng.uniform(0.3, 0.7, n_volunteers) if drift == "step" else np.zeros(n_volunteers)
    return Course(drift, group, own, other, np.where(drifts, other_group, -1), drifts, turn)


def _other(
    groups: tuple[Group, ...], group: Array, own: Array, drift: Drift, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The confusion that each volunteer drifts into, and the group whose it is: -1 if it is that of no group."""
    nobody = np.full(len(group), -1)
    if drift == "none":
        return own, nobody
    if drift == "learning":
        return np.full_like(own, 1 / own.shape[2]), nobody
    if len(groups) == 1:
        return np.broadcast_to(own.mean(axis=1, keepdims=True), own.shape), nobody
    other_group = (group + rng.integers(1, len(groups), len(group))) % len(groups)
    return drawn_confusion(groups, other_group, rng), other_group
