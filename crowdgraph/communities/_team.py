"""Who detects communities together: several processes may share the rows of weights, and null networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.kernels.fixed_point import Step
    from crowdgraph.kernels.nmf import Prior

Argument = TypeVar("Argument")
Value = TypeVar("Value")


class Team(Protocol):
    """Other processes, which do what this one asks them to."""

    def nmf_step(self, weights: Any, prior: Prior, *, precision: Any) -> Callable[[Tensor], Step]:
        """Return the step of symmetric factors of weights, of which every process has some rows."""
        ...

    def map(self, function: Callable[[Argument], Value], arguments: Sequence[Argument]) -> list[Value]:
        """Return the values of a function, of which every process computes some."""
        ...


_current: ContextVar[Team | None] = ContextVar("team", default=None)


def current_team() -> Team | None:
    """Return the processes that share the work; None if this one is alone."""
    return _current.get()


@contextmanager
def working_with(team: Team) -> Iterator[None]:
    """Let other processes share the work of a context."""
    token = _current.set(team)
    try:
        yield
    finally:
        _current.reset(token)


def shared_map(function: Callable[[Argument], Value], arguments: Sequence[Argument]) -> list[Value]:
    """Return the values of a function, together with the others if there are any."""
    team = current_team()
    return [function(argument) for argument in arguments] if team is None else team.map(function, arguments)
