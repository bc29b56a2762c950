"""Progress on long work: bars where somebody watches, a line now and then in a log file."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any, ClassVar, Self

# So many seconds lie between two lines of a log.
LOG_SECONDS = 30.0


def progress_bar(name: str, *, visible: bool, total: int | None = None, unit: str = "sweeps") -> Any:
    """Return a tqdm progress bar, or what writes lines to a log; visible only if asked for."""
    if visible and not _is_watched():
        return _LogLines(name, total, unit)
    from tqdm.auto import tqdm

    return tqdm(desc=name, total=total, unit=f" {unit}", disable=not visible, leave=False)


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _LogLines:
    """Says on the error stream how far work is, every `LOG_SECONDS` at most; it has the methods of tqdm that we use.

    Parameters
    ----------
    name
        What is being done.
    total
        How many units there are, if that is known.
    unit
        What is counted.
    """

    # When a line was written last, or when work first began, whatever the work.
    last_line: ClassVar[float | None] = None

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._n_done, self._facts, self._start = 0, "", monotonic()
        if _LogLines.last_line is None:
            _LogLines.last_line = self._start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_postfix(self, refresh: bool = True, **facts: object) -> None:  # noqa: FBT001, FBT002 - as in tqdm
        """Name further facts for the next line, or for one now if that is due."""
        self._facts = "".join(f", {name.replace('_', ' ')} {value}" for name, value in facts.items())
        if refresh:
            self.update(0)

    def update(self, n: int = 1) -> None:
        """Count, and write a line if it is due."""
        self._n_done += n
        now = monotonic()
        if _LogLines.last_line is not None and now < _LogLines.last_line + LOG_SECONDS:
            return
        _LogLines.last_line = now
        count = f"{self._n_done:,}" + ("" if self._total is None else f" of {self._total:,}")
        sys.stderr.write(f"{self._name}: {count} {self._unit} after {now - self._start:,.0f} s{self._facts}\n")
        sys.stderr.flush()
