"""Fixed points of a map that never lowers its objective, found by accelerated iteration (SQUAREM)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.errors import FitError

__all__ = ["Step", "Trace", "min_state", "reachable_tolerance", "squarem"]

# Plain steps before the first extrapolation, so that it starts inside the mode to which the start belongs.
PLAIN_STEPS = 5
# States are positive numbers; extrapolation is clipped to [MIN_STATE, 1 / MIN_STATE], or further in single precision.
MIN_STATE = 1e-300
# The relative rounding error of a sum of a million terms in double precision.
ROUNDING_ERROR = 1e-13
# Class probabilities keep changing by rounding, by less than this many times the precision.
MIN_TOL_OF_EPS = 40.0


class Step(NamedTuple):
    """One application of the map: the next state, the objective of the previous state, and the size of the change.

    The latter two are numbers, or tensors of one element.
    """

    state: Tensor
    objective: Tensor | float
    change: Tensor | float


def min_state(dtype: torch.dtype) -> float:
    """Return the smallest number that stands for zero where logarithms or quotients are taken."""
    return max(MIN_STATE, torch.finfo(dtype).tiny)


def reachable_tolerance(tol: float, dtype: torch.dtype) -> float:
    """Return a tolerance for class probabilities, or the lowest at which rounding does not keep a fit from ending."""
    return max(tol, MIN_TOL_OF_EPS * torch.finfo(dtype).eps)


class Trace(NamedTuple):
    """The last state of an iteration, and the objective after each accepted step."""

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
    plain_steps: int = PLAIN_STEPS,
    give_up: Callable[[list[float]], bool] = lambda _: False,
    on_step: Callable[[Step], object] = lambda _: None,
) -> Trace:
    """Apply `step` until the change falls to `tol`.

    With `accelerate`, every two plain steps are followed by an extrapolation (SQUAREM, Varadhan and Roland 2008). An
    extrapolation that lowers the objective is rejected, so the objective never falls and every result is a fixed point
    of the plain map.

    Parameters
    ----------
    step
        Maps a state, whose entries are all positive, to the next one.
    start
        The first state.
    max_iter
        How often `step` may be applied.
    tol
        The change between two plain steps at which the iteration has converged.
    accelerate
        Whether to extrapolate.
    plain_steps
        How many plain steps to take before the first extrapolation.
    give_up
        Called with the objectives so far; returns whether to stop early.
    on_step
        Called with every step, for progress bars.
    """
    n_steps = 0

    def apply(state: Tensor) -> Step:
        nonlocal n_steps
        n_steps += 1
        result = step(state)
        result = result._replace(objective=float(result.objective), change=float(result.change))
        on_step(result)
        return result

    rounding_error = max(ROUNDING_ERROR, 4 * torch.finfo(start.dtype).eps)

    previous, current = start, apply(start)
    objectives = [_check_finite(current.objective)]
    change = math.inf
    while n_steps < max_iter and not give_up(objectives):
        following = apply(current.state)
        objectives.append(_check_finite(following.objective))
        change = float(following.change)
        if change <= tol:
            return Trace(following.state, objectives, change, n_steps, converged=True)
        ready = accelerate and n_steps > plain_steps
        extrapolated = _extrapolate(previous, current.state, following.state) if ready else None
        if extrapolated is None or n_steps + 2 > max_iter:
            previous, current = current.state, following
            continue
        trial = apply(extrapolated)
        reached = float(following.objective)
        if trial.objective >= reached - rounding_error * abs(reached):
            previous, current = extrapolated, trial
        else:
            previous, current = following.state, apply(following.state)
        objectives.append(_check_finite(current.objective))
    return Trace(current.state, objectives, change, n_steps, converged=False)


def _extrapolate(first: Tensor, second: Tensor, third: Tensor) -> Tensor | None:
    """Extrapolate three successive states on the log scale; None if that goes no further than the third."""
    # In place, since states may be large.
    start = first.log()
    difference = second.log().sub_(start)
    second_difference = third.log().sub_(start).sub_(difference, alpha=2)
    curvature = float(second_difference.norm())
    length = float(difference.norm()) / curvature if curvature > 0 else 0.0
    if not length > 1:
        return None
    lowest = min_state(start.dtype)
    return (
        start.add_(difference, alpha=2 * length)
        .add_(second_difference, alpha=length**2)
        .exp_()
        .clamp_(lowest, 1 / lowest)
    )


def _check_finite(value: Tensor | float) -> float:
    objective = float(value)
    if not math.isfinite(objective):
        raise FitError(
            f"The fit overflowed: its objective became {objective}, as it does for extremely small or large priors.",
            hint="Use pseudo-counts near the numbers of responses that they stand for.",
        )
    return objective
