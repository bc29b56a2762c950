"""What a fit may use: how much memory, and which processes compute together. Set for as long as a context lasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from crowdgraph.core._arrays import Array
from crowdgraph.core._memory import in_words, resident_bytes
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.stored import StoredRows
from crowdgraph.errors import ParameterError
from crowdgraph.messages import Hint

if TYPE_CHECKING:
    from crowdgraph.kernels.fixed_point import Recorder
    from crowdgraph.kernels.ranks import Ranks


class Checkpoints(Protocol):
    """Keeps where a fit stands, so that another process can go on."""

    def recorder(self, stage: str) -> Recorder:
        """Return what keeps where a stage of the fit stands, by the stage's name."""
        ...


class SharedItems(NamedTuple):
    """The items of processes that share the volunteers.

    Attributes
    ----------
    shares
        The items that each process updates.
    known
        Which of all items have gold, of shape (N,); their class probabilities are those that a fit starts from.
    """

    shares: Sequence[range]
    known: Array


@dataclass(frozen=True)
class Resources:
    """What a fit may use.

    Attributes
    ----------
    memory
        The bytes that the process may take; None if responses are read into memory.
    ranks
        The processes that share the items, or the volunteers; None for one process by itself.
    items
        The items that each process updates, where the processes share the volunteers; None otherwise.
    checkpoints
        What keeps where the fit stands; None if nothing does.
    """

    memory: int | None = None
    ranks: Ranks | None = None
    items: SharedItems | None = None
    checkpoints: Checkpoints | None = None

    def recorder(self, stage: str) -> Recorder | None:
        """Return what keeps where a stage of the fit stands, if something does."""
        return None if self.checkpoints is None else self.checkpoints.recorder(stage)

    def total(self, values: Array) -> Array:
        """Return the sum of all processes' values."""
        return values if self.ranks is None else self.ranks.total_array(values)

    def largest(self, value: float) -> float:
        """Return the largest of all processes' values."""
        return value if self.ranks is None else self.ranks.largest(value)


UNLIMITED = Resources()
_current: ContextVar[Resources] = ContextVar("resources", default=UNLIMITED)


def current_resources() -> Resources:
    """Return what the fit that is under way may use."""
    return _current.get()


@contextmanager
def using(**changes: Any) -> Iterator[None]:
    """Let the fits of a context use other resources."""
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield
    finally:
        _current.reset(token)


def require_stored(graph: CrowdGraph) -> StoredRows:
    """Return where a graph's responses lie on disk, or raise if they do not."""
    stored = graph.responses.table.stored
    if stored is None:
        raise ParameterError(
            "memory= limits fits of crowds that lie on disk; this graph is in memory already.",
            hint=Hint(
                "Leave memory= out, or save the graph with graph.save(path, format='columns') and load it again. Views "
                "of a stored graph must be consecutive responses, as before(...) and first(...) give them.",
                cli="Leave --memory out, or convert the responses first: crowdgraph convert FILE --store DIR.",
            ),
        )
    return stored


def check_memory(needed: float, memory: int) -> None:
    """Raise if a limit is below what is needed."""
    if needed > memory:
        raise ParameterError(
            f"A memory limit of {in_words(memory)} is too low for this crowd: the process itself takes "
            f"{in_words(resident_bytes())}, and with the crowd's tables and one block of responses it needs "
            f"{in_words(needed)}.",
            hint=Hint(
                f"Raise it to memory='{needed / 10**9 + 0.05:.1f}GB', or share the items between processes with "
                "crowdgraph.distributed.",
                cli=f"Raise it to --memory {needed / 10**9 + 0.05:.1f}GB, or share the items between processes with "
                "torchrun -m crowdgraph.distributed.",
            ),
        )
