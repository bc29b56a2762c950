"""Ctrl-C during a fit: the step under way is completed, and the fit ends there, so that its state is not lost."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

NOTE = "\nInterrupted: the fit ends after this step. Press Ctrl-C again to stop at once, without a result.\n"


class Interruption:
    """Whether Ctrl-C was pressed since a fit began."""

    def __init__(self) -> None:
        self.is_requested = False

    def request(self, *_: object) -> None:
        """Let the fit end after its step; the next Ctrl-C stops at once."""
        self.is_requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr.write(NOTE)


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


def is_interrupted(*_: Any) -> bool:
    """Return whether the fit under way shall end after its step; called with anything, as `squarem` calls it."""
    interruption = _current.get()
    return interruption is not None and interruption.is_requested


@contextmanager
def listening() -> Iterator[Interruption]:
    """Note a Ctrl-C instead of raising KeyboardInterrupt, and yield what it is noted in.

    Only the outermost of fits within fits listens, so that the inner ones end early and the outer one is complete. A
    program that handles SIGINT itself, as our command does, is left alone, and so are threads, which get no signals.
    """
    interruption = Interruption()
    if (
        _current.get() is not None
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield interruption
        return
    token = _current.set(interruption)
    signal.signal(signal.SIGINT, interruption.request)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _current.reset(token)
