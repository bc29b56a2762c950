"""Fixed points found by accelerated iteration (SQUAREM): of a map that never lowers its objective, or of one without.

Where there is an objective, `squarem` judges an extrapolation by it. Where there is none, `squarem_by_change` judges it
by the size of the next change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from crowdgraph.errors import FitError, StoreError
from crowdgraph.tensors.devices import total

__all__ = [
    "Passes",
    "Progress",
    "Recorder",
    "Step",
    "Trace",
    "min_state",
    "reachable_tolerance",
    "squarem",
    "squarem_by_change",
]

# Plain steps before the first extrapolation, so that it starts inside the mode to which the start belongs.
PLAIN_STEPS = 5
# States are positive numbers; extrapolation is clipped to [MIN_STATE, 1 / MIN_STATE], or further in single precision.
MIN_STATE = 1e-300
# The relative rounding error of a sum of a million terms in double precision.
ROUNDING_ERROR = 1e-13
# Without an objective: plain steps before the first extrapolation, and the bounds of its length. The upper bound falls
# to a fourth where the change after an extrapolation is this many times the one before, and doubles where it is not.
PLAIN_PASSES = 2
MIN_LENGTH, MAX_LENGTH = 0.5, 16.0
MAX_GROWTH = 10.0
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


class Progress(NamedTuple):
    """Where an iteration stands: all that it takes to go on from there as if it had not been interrupted.

    Attributes
    ----------
    state
        The state to which the map was applied last. Applying it once more also brings back whatever the map changes
        beside the state, such as the class probabilities of the items.
    objectives, change, n_steps, converged
        As those of a `Trace`, so far.
    ended
        Whether nothing is left to do.
    """

    state: Tensor
    objectives: list[float]
    change: float
    n_steps: int
    converged: bool = False
    ended: bool = False


class Recorder(Protocol):
    """Keeps where an iteration stands."""

    def last(self) -> Progress | None:
        """Return where an earlier process left the iteration; None if it has to begin."""
        ...

    def is_due(self, n_steps: int) -> bool:
        """Return whether enough steps were taken since the last note; a note before that may be ignored."""
        ...

    def record(self, progress: Progress) -> None:
        """Take note of where the iteration stands."""
        ...


def squarem(
    step: Callable[[Tensor], Step],
    start: Tensor,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool,
    weighted: bool = False,
    give_up: Callable[[list[float]], bool] = lambda _: False,
    on_step: Callable[[Step], object] = lambda _: None,
    on_rejection: Callable[[], object] = lambda: None,
    recorder: Recorder | None = None,
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
    weighted
        Whether entries of the state count for the length of an extrapolation in proportion to their size, which helps
        where many vanish: their logs fall at a steady rate, which alone would make extrapolations far too long. The
        length is then limited, too, and the more so after an extrapolation that was rejected.
    give_up
        Called with the objectives so far; returns whether to stop early.
    on_step
        Called with every step, for progress bars.
    on_rejection
        Called after a step from an extrapolation that is rejected, for maps that remember their last step.
    recorder
        Keeps where the iteration stands, and says where to go on.
    """
    n_steps, max_length = 0, MAX_LENGTH if weighted else math.inf

    def apply(state: Tensor) -> Step:
        nonlocal n_steps
        n_steps += 1
        result = step(state)
        result = result._replace(objective=float(result.objective), change=float(result.change))
        on_step(result)
        return result

    rounding_error = max(ROUNDING_ERROR, 4 * torch.finfo(start.dtype).eps)

    def keep(state: Tensor, *, converged: bool = False, ended: bool = False) -> None:
        if recorder is not None:
            recorder.record(Progress(state, objectives, change, n_steps, converged, ended))

    resumed = None if recorder is None else recorder.last()
    if resumed is None:
        previous, current = start, apply(start)
        objectives, change = [_check_finite(current.objective)], math.inf
    else:
        _check_resumed(resumed.state, start)
        previous, current = resumed.state, apply(resumed.state)
        objectives, change, n_steps = list(resumed.objectives), resumed.change, resumed.n_steps
        if resumed.ended:
            return Trace(current.state, objectives, change, n_steps, resumed.converged)
    while n_steps < max_iter and not give_up(objectives):
        keep(previous)
        following = apply(current.state)
        objectives.append(_check_finite(following.objective))
        change = float(following.change)
        if change <= tol:
            keep(current.state, converged=True, ended=True)
            return Trace(following.state, objectives, change, n_steps, converged=True)
        ready = accelerate and n_steps > PLAIN_STEPS
        states = previous, current.state, following.state
        extrapolated = _extrapolate(*states, weighted=weighted, max_length=max_length) if ready else None
        if extrapolated is None or n_steps + 2 > max_iter:
            previous, current = current.state, following
            continue
        trial = apply(extrapolated)
        reached = float(following.objective)
        if trial.objective >= reached - rounding_error * abs(reached):
            previous, current = extrapolated, trial
            max_length *= 2
        else:
            on_rejection()
            previous, current = following.state, apply(following.state)
            max_length = max(max_length / 4, 1.0)
        objectives.append(_check_finite(current.objective))
    keep(previous, ended=True)
    return Trace(current.state, objectives, change, n_steps, converged=False)


def _check_resumed(state: Tensor, start: Tensor) -> None:
    """Raise unless a state from a file is one that an iteration from this start can have reached."""
    # Compiled code would read beyond the end of a smaller one.
    fits = state.shape == start.shape and state.dtype == start.dtype
    if not fits or not bool(((state >= 0) & state.isfinite()).all()):
        raise StoreError(
            f"The checkpoint is damaged: it has a state of shape {tuple(state.shape)} of {state.dtype}; expected "
            f"{tuple(start.shape)} of {start.dtype}, finite and not negative. Start anew without it."
        )


def _extrapolate(first: Tensor, second: Tensor, third: Tensor, *, weighted: bool, max_length: float) -> Tensor | None:
    """Extrapolate three successive states on the log scale; None if that goes no further than the third."""
    # In place, since states may be large.
    start = first.log()
    difference = second.log().sub_(start)
    second_difference = third.log().sub_(start).sub_(difference, alpha=2)
    roots = third.sqrt() if weighted else None
    curvature = _size(second_difference, roots)
    length = min(_size(difference, roots) / curvature if curvature > 0 else 0.0, max_length)
    if not length > 1:
        return None
    lowest = min_state(start.dtype)
    return (
        start.add_(difference, alpha=2 * length)
        .add_(second_difference, alpha=length**2)
        .exp_()
        .clamp_(lowest, 1 / lowest)
    )


def _size(values: Tensor, weights: Tensor | None) -> float:
    return float((values if weights is None else values * weights).norm())


def _check_finite(value: Tensor | float) -> float:
    objective = float(value)
    if not math.isfinite(objective):
        raise FitError(
            f"The fit overflowed: its objective became {objective}, as it does for extremely small or large priors.",
            hint="Use pseudo-counts near the numbers of responses that they stand for.",
        )
    return objective


class Passes(NamedTuple):
    """How often a map was applied to class probabilities, and by how much it changed them at last."""

    n_steps: int
    change: float


def squarem_by_change(
    step: Callable[[], float],
    probs: Tensor,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool,
    all_reduce: Callable[[Tensor], Tensor] = lambda sums: sums,
    give_up: Callable[[], bool] = lambda: False,
    recorder: Recorder | None = None,
) -> Passes:
    """Apply a map of class probabilities until none changes by more than `tol`; the map need not raise an objective.

    With `accelerate`, every two plain steps are followed by an extrapolation of the log odds (SQUAREM, Varadhan and
    Roland 2008). Its length is positive: where a difference grows from step to step, it grows faster, so that a fixed
    point that plain steps leave is left, too; Anderson's method could stay there. Changes are measured by the variance
    of the log odds under the class probabilities, to which undecided items contribute most. If the change after an
    extrapolation is many times the one before, the extrapolation is undone and the next ones are shorter. The result
    always comes from a plain step.

    Parameters
    ----------
    step
        Overwrites `probs` by what follows from them, and returns the largest change.
    probs
        Class probabilities, of shape (N, J). Rows that `step` leaves as they are stay so to the last bit.
    max_iter, tol
        How often `step` may be applied, and the largest change at which the iteration has converged.
    accelerate
        Whether to extrapolate.
    all_reduce
        Adds up sums over rows, a small tensor, where each of several processes has some of the rows.
    give_up
        Returns whether to stop early; asked after each plain step.
    recorder
        Keeps where the iteration stands, and says where to go on. The state is that of `probs` with those to return to,
        of shape (2, N, J); in place of objectives are the bounds of the next length and of the next change.
    """
    n_steps, change, is_plain = 0, math.inf, False
    max_length, allowed, safe = MAX_LENGTH, math.inf, probs

    def keep(*, ended: bool = False) -> None:
        if recorder is not None and (ended or recorder.is_due(n_steps)):
            state = torch.stack([probs, safe])
            recorder.record(Progress(state, [max_length, allowed], change, n_steps, change <= tol, ended))

    resumed = None if recorder is None else recorder.last()
    if resumed is not None:
        _check_resumed(resumed.state, torch.stack([probs, probs]))
        change, n_steps, (max_length, allowed) = resumed.change, resumed.n_steps, resumed.objectives
        probs.copy_(resumed.state[0])
        safe = resumed.state[1].to(probs).clone()
        if resumed.ended:
            return Passes(n_steps, change)

    def go_on() -> bool:
        nonlocal n_steps, change, is_plain
        if n_steps >= max_iter or change <= tol or (is_plain and give_up()):
            return False
        change = step()
        n_steps, is_plain = n_steps + 1, True
        return change > tol

    while (n_steps < PLAIN_PASSES or not accelerate) and go_on():
        keep()
    while True:
        keep()
        first = _log_probs(probs)
        if not go_on():
            break
        # In place, since states may be large: the states at the three points become one and two differences.
        difference = _log_probs(probs).sub_(first)
        if float(all_reduce(_variance(difference, probs))) > allowed:
            probs.copy_(safe)
            max_length, allowed = max(max_length / 4, 1.0), math.inf
            continue
        if not go_on() or n_steps == max_iter:
            break
        following = _log_probs(probs).sub_(first).sub_(difference)
        sizes = torch.stack([_variance(part, probs) for part in (difference, following, following - difference)])
        size, next_size, curvature = all_reduce(sizes).tolist()
        length = math.sqrt(size / curvature) if curvature > 0 else 1.0
        length = min(max(length, MIN_LENGTH), max_length)
        safe, allowed, max_length = probs.clone(), MAX_GROWTH**2 * next_size, min(2 * max_length, MAX_LENGTH)
        moved = ((difference != 0) | (following != 0)).any(1, keepdim=True)
        # x + 2 a r + a^2 v, with r the first difference and v the second.
        following.sub_(difference)
        extrapolated = first.add_(difference, alpha=2 * length).add_(following, alpha=length**2)
        probs.copy_(torch.where(moved, torch.softmax(extrapolated, 1), probs))
        is_plain = False
    keep(ended=True)
    return Passes(n_steps, change)


def _log_probs(probs: Tensor) -> Tensor:
    return probs.clamp_min(min_state(probs.dtype)).log_()


def _variance(log_change: Tensor, probs: Tensor) -> Tensor:
    """Return the sum over rows of the variances of changes of log probabilities under the probabilities."""
    mean = (probs * log_change).sum(1, keepdim=True)
    return total(probs * (log_change - mean) ** 2)
