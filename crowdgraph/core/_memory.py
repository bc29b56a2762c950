"""Amounts of memory: what a user allows, and what the process takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from crowdgraph.core._parameters import is_integer
from crowdgraph.errors import ParameterError
from crowdgraph.messages import argument

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
STATUS = Path("/proc/self/statm")


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
