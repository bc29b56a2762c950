"""What a fit may use: how much memory, and which processes compute together. Set for as long as a context lasts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdgraph.core._parameters import is_integer
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.stored import StoredRows
from crowdgraph.errors import ParameterError
from crowdgraph.messages import Hint, argument

if TYPE_CHECKING:
    from crowdgraph.kernels.ranks import Ranks

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
STATUS = Path("/proc/self/statm")


@dataclass(frozen=True)
class Resources:
    """What a fit may use.

    Attributes
    ----------
    memory
        The bytes that the process may take; None if responses are read into memory.
    ranks
        The processes that share the items; None for one process by itself.
    """

    memory: int | None = None
    ranks: Ranks | None = None


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


def memory_in_bytes(memory: object) -> int:
    """Return a limit of memory, such as ``"4GB"`` or a number of bytes, in bytes.

    Examples
    --------
    >>> memory_in_bytes("4GB"), memory_in_bytes("512 MiB")
    (4000000000, 536870912)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory) if isinstance(memory, str) else None
    if match is not None and match[2].upper() in UNITS:
        n_bytes = int(float(match[1]) * UNITS[match[2].upper()])
    elif is_integer(memory):
        n_bytes = int(memory)  # type: ignore[call-overload]
    else:
        n_bytes = 0
    if n_bytes <= 0:
        raise ParameterError(
            argument("memory", memory) + " is not an amount of memory; give text such as '4GB' or a number of bytes."
        )
    return n_bytes


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
            f"A memory limit of {in_words(memory)} is too low for this crowd: its tables, with one block of responses, "
            f"need {in_words(needed)}.",
            hint=Hint(
                f"Raise it to memory='{needed / 10**9 + 0.05:.1f}GB', or share the items between processes with "
                "crowdgraph.distributed.",
                cli=f"Raise it to --memory {needed / 10**9 + 0.05:.1f}GB, or share the items between processes with "
                "torchrun -m crowdgraph.distributed.",
            ),
        )


def in_words(n_bytes: float) -> str:
    """Return an amount of memory as text.

    Examples
    --------
    >>> in_words(4e9), in_words(36_500_000)
    ('4.0 GB', '36.5 MB')
    """
    return f"{n_bytes / 10**9:,.1f} GB" if n_bytes >= 10**9 else f"{n_bytes / 10**6:,.1f} MB"


def resident_bytes() -> int:
    """Return the memory that this process takes now; its peak so far where the system does not say."""
    if STATUS.is_file():
        from mmap import PAGESIZE

        return int(STATUS.read_text().split()[1]) * PAGESIZE
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return 0
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
