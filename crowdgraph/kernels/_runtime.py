"""How kernels run: threads for compiled code, and a notice while code is compiled."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, Timer
from typing import TypeVar

import numpy as np
import torch
from numba import config
from numpy.typing import NDArray

Value = TypeVar("Value")
# Seconds before a user is told about compilation: loading compiled code from disk takes less, compiling takes more.
NOTICE_AFTER = 1.5


def chunk_bounds(n: int, *, at_most: int) -> NDArray[np.int64]:
    """Return the bounds that cut `n` elements into equal chunks, one for each thread but no more than `at_most`.

    There are as many threads as processors, or as many as the environment variable ``NUMBA_NUM_THREADS`` says.
    """
    n_chunks = max(1, min(int(config.NUMBA_NUM_THREADS), at_most))  # type: ignore[attr-defined]
    return np.asarray(np.arange(n_chunks + 1) * n // n_chunks)


def in_parallel(run_chunk: Callable[[int], Value], n_chunks: int) -> list[Value]:
    """Return ``[run_chunk(0), run_chunk(1), ...]``, each run in its own thread.

    This helps compiled code that releases the interpreter lock.
    """
    if n_chunks == 1:
        return [run_chunk(0)]
    return list(_pool(os.getpid(), n_chunks).map(run_chunk, range(n_chunks)))


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a child process has no threads yet
    return ThreadPoolExecutor(n_threads)


class single_threaded_torch:  # noqa: N801 - used as a statement
    """Context manager that keeps torch to one thread: its idle threads spin on the processors that ours need.

    Fits may run beside each other; the last one to end gives torch its threads back.
    """

    _lock = Lock()
    _n_running = 0
    _n_threads = 1

    def __enter__(self) -> None:
        cls = single_threaded_torch
        with cls._lock:
            if cls._n_running == 0:
                cls._n_threads = torch.get_num_threads()
            cls._n_running += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        cls = single_threaded_torch
        with cls._lock:
            cls._n_running -= 1
            if cls._n_running == 0:
                torch.set_num_threads(cls._n_threads)


@contextmanager
def compile_notice(what: str) -> Iterator[None]:
    """Write to the error stream that `what` is being compiled, if that takes a noticeable time."""
    message = f"crowdgraph: compiling {what}; this happens once on a machine and takes some seconds.\n"
    timer = Timer(NOTICE_AFTER, sys.stderr.write, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
