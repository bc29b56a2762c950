"""What became of every row of a file: read, or left out for a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdgraph.core._arrays import FrozenMapping
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError
from crowdgraph.messages import short

__all__ = ["RowAccount"]

# How many lines of the file are named for each reason.
MAX_LINES = 5


@dataclass(frozen=True, kw_only=True)
class RowAccount:
    """What became of every row of a file: ``read + sum(skipped.values())`` is `rows`.

    Attributes
    ----------
    rows, read
        How many rows the file has, and how many of them are responses of the graph.
    skipped
        How many rows were left out, by the reason.
    lines
        The first lines of the file that were left out for a reason, where that is worth knowing; the header is line 1.

    Examples
    --------
    >>> print(RowAccount(rows=10, read=7, skipped={"not answered": 3}))
    Of 10 rows, 7 were read; 3 were not: not answered 3.
    """

    rows: int
    read: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "skipped", FrozenMapping({name: n for name, n in self.skipped.items() if n}))
        object.__setattr__(self, "lines", FrozenMapping(self.lines))
        if self.read + self.n_skipped != self.rows:
            raise ParameterError(f"An account of {self.rows:,} rows names {self.read + self.n_skipped:,} of them.")

    @property
    def n_skipped(self) -> int:
        """How many rows were left out."""
        return sum(self.skipped.values())

    def __str__(self) -> str:
        all_read = f"All {self.rows:,} rows were read." if self.rows != 1 else "The only row was read."
        if not self.n_skipped:
            return all_read
        was = "was" if self.n_skipped == 1 else "were"
        return (
            f"Of {quantity(self.rows, 'row')}, {self.read:,} were read; {self.n_skipped:,} {was} not: "
            f"{', '.join(self._reasons())}."
        )

    def _reasons(self) -> Iterator[str]:
        for reason, n in self.skipped.items():
            yield f"{short(reason)} {n:,}{self._line_words(reason)}"

    def _line_words(self, reason: str) -> str:
        lines = self.lines.get(reason, ())
        if not lines:
            return ""
        more = ", ..." if self.skipped.get(reason, 0) > len(lines[:MAX_LINES]) else ""
        return f" (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:MAX_LINES]))}{more})"

    def to_dict(self) -> dict[str, Any]:
        """Return the account for machines."""
        return {"rows": self.rows, "read": self.read, "skipped": dict(self.skipped)}
