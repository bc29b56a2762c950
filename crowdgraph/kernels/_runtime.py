"""Where tensors live."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, Timer
from typing import Any, TypeVar

import numpy as np
import torch
from numba import config
from numpy.typing import NDArray

from crowdgraph.errors import ParameterError

Found = TypeVar("Found")
# Loading compiled code from the disk takes less, compiling takes more.
PATIENCE = 1.5


def chunk_bounds(n: int, *, at_most: int) -> NDArray[np.int64]:
    """Where to cut `n` things into equal stretches, one for each thread but no more than `at_most`.

    There are as many threads as processors, or as the environment variable ``NUMBA_NUM_THREADS`` says.
    """
    n_parts = max(1, min(int(config.NUMBA_NUM_THREADS), at_most))  # type: ignore[attr-defined]
    return np.asarray(np.arange(n_parts + 1) * n // n_parts)


def in_parallel(part: Callable[[int], Found], n_parts: int) -> list[Found]:
    """``[part(0), part(1), ...]``, each in a thread of its own; for compiled code that lets go of the interpreter."""
    if n_parts == 1:
        return [part(0)]
    return list(_pool(os.getpid(), n_parts).map(part, range(n_parts)))


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a child process has no threads yet
    return ThreadPoolExecutor(n_threads)


class single_threaded_torch:  # noqa: N801 - used as a statement
    """Keep torch to one thread meanwhile: its threads wait for work busily, on the processors that ours need.

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
    """Say on the error stream that something is being compiled, if it takes its time."""
    message = f"crowdgraph: compiling {what}; this happens once on a machine and takes some seconds.\n"
    timer = Timer(PATIENCE, sys.stderr.write, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def resolve_device(device: Any) -> torch.device:
    """The named device, if this machine has it."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).sum().item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        have = ["cpu", *(name for name in ("cuda", "mps", "xpu") if getattr(torch, name).is_available())]
        raise ParameterError(
            f"device={device!r} is not available here ({str(error).splitlines()[0]}); use one of {', '.join(have)}."
        ) from error
    return found
