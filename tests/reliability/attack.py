"""What an attack is: it tries something many times and counts how often that fails.

An attack is a function of a `Size` that yields rows of the table that `run.py` prints. Inputs are drawn with seeds, and
whatever fails prints its seed, so that it can be tried again alone.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias


class Size(Enum):
    """How much is tried: what fits into ``make test``, or all of it, for which hours are allowed."""

    SHORT = "short"
    LONG = "long"


class Row(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    what
        What was tried.
    tried, failed
        How often, and how often it failed.
    before
        What the same attack counted on version 0.1.0, such as "154 of 234"; empty if it was not made.
    note
        What else was measured, such as the slowest input.
    """

    what: str
    tried: int
    failed: int
    before: str = ""
    note: str = ""


Attack: TypeAlias = Callable[[Size], Iterator[Row]]
