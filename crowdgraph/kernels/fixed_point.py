"""Climbing to a fixed point of a map that never lowers its objective, in few steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from crowdgraph.errors import FitError

__all__ = ["Step", "Trace", "squarem"]

# Plain steps before the first leap, so that leaps start inside the mode to which the start belongs.
SETTLE = 5
# States are positive numbers; a leap goes no further than this.
MIN_STATE = 1e-300
# Sums of a million terms differ by this much, relatively, from rounding alone.
ROUNDING = 1e-13


class Step(NamedTuple):
    """One application of the map: the next state, the objective of the one before, and how much changed."""

    state: Tensor
    objective: float
    change: float


class Trace(NamedTuple):
    """Where the climb ended, and the objective after each step that was kept."""

    state: Tensor
    objectives: list[float]
    change: float
    n_steps: int
    converged: bool


def squarem(
    step: Callable[[Tensor], Step],
    start: Tensor,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool,
    give_up: Callable[[list[float]], bool] = lambda _: False,
    on_step: Callable[[Step], object] = lambda _: None,
) -> Trace:
    """Apply `step` until the change falls to `tol`.

    With `accelerate`, two plain steps are followed by a leap (SQUAREM, Varadhan and Roland 2008). A leap that lowers
    the objective is taken back, so that the objective never falls and every end is a fixed point of the plain map.

    Parameters
    ----------
    step
        From a state, all of whose entries are positive, to the next.
    start
        The first state.
    max_iter
        How often `step` may be applied.
    tol
        The change between two plain steps at which the climb is over.
    accelerate
        Whether to leap.
    hopeless
        Told the objectives so far, whether the climb is not worth another step.
    on_step
        Called with every step, for progress bars.
    """
    n_steps = 0

    def taken(state: Tensor) -> Step:
        nonlocal n_steps
        n_steps += 1
        result = step(state)
        on_step(result)
        return result

    before, now = start, taken(start)
    objectives = [_finite(now.objective)]
    change = math.inf
    while n_steps < max_iter and not give_up(objectives):
        after = taken(now.state)
        objectives.append(_finite(after.objective))
        change = after.change
        if change <= tol:
            return Trace(after.state, objectives, change, n_steps, converged=True)
        leap = _extrapolate(before, now.state, after.state) if accelerate and n_steps > SETTLE else None
        if leap is None or n_steps + 2 > max_iter:
            before, now = now.state, after
            continue
        landed = taken(leap)
        if landed.objective >= after.objective - ROUNDING * abs(after.objective):
            before, now = leap, landed
        else:
            before, now = after.state, taken(after.state)
        objectives.append(_finite(now.objective))
    return Trace(now.state, objectives, change, n_steps, converged=False)


def _extrapolate(first: Tensor, second: Tensor, third: Tensor) -> Tensor | None:
    """Where three successive states point to, worked out in logarithms; None if no further than the third."""
    # In place, since states may be large.
    start = first.log()
    speed = second.log().sub_(start)
    turn = third.log().sub_(start).sub_(speed, alpha=2)
    curvature = float(turn.norm())
    length = float(speed.norm()) / curvature if curvature > 0 else 0.0
    if not length > 1:
        return None
    return start.add_(speed, alpha=2 * length).add_(turn, alpha=length**2).exp_().clamp_(MIN_STATE, 1 / MIN_STATE)


def _finite(objective: float) -> float:
    if not math.isfinite(objective):
        raise FitError(
            f"The fit's numbers overflowed: its objective became {objective}. Priors that are extremely small or large "
            "do this; use values near the numbers of responses that they stand for."
        )
    return objective
