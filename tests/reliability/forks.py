"""Processes that attacks start and end: a fresh one for an attack, and forks of it, which begin at once.

A process that has threads cannot be forked safely, and who runs the tests has some. So an attack that forks is made by
an interpreter of its own, which has imported what its forks need.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from reliability.attack import Row, Size

ROOT = Path(__file__).parents[2]
COMMAND = "from reliability.forks import print_rows; print_rows({module!r}, {size!r})"
# Threads of a process do not survive its fork.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

# After so many seconds a fork that hangs is ended by a signal.
LIMIT = 600


def in_fresh_process(module: str, size: Size) -> Iterator[Row]:
    """Yield what the function `rows` of a module yields in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", COMMAND.format(module=module, size=size.name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        for line in process.stdout or ():
            yield Row(*json.loads(line))
    if process.returncode:
        raise RuntimeError(f"The process of {module} ended with {process.returncode}.")


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a process that imports this checkout, and starts no threads."""
    paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **changes}


def print_rows(module: str, size: str) -> None:
    """Print the rows of a module for `in_fresh_process`."""
    for row in importlib.import_module(module).rows(Size[size]):
        print(json.dumps(row), flush=True)


class Fork:
    """A fork of this process that calls a function, and ends with the exit code that a script would have.

    Parameters
    ----------
    act
        The function.
    """

    def __init__(self, act: Callable[[], object]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the fork has ended
        self._code: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self._run(act)

    def _run(self, act: Callable[[], object]) -> NoReturn:
        code = 1
        signal.alarm(LIMIT)
        try:
            for stream in (1, 2):
                os.dup2(self._log.fileno(), stream)
            act()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            # The streams may be what is broken.
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, unless the fork has been waited for."""
        if self._code is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end; return the exit code, or minus the number of the signal that ended the fork."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def output(self) -> str:
        """Return what was printed on both streams, once the fork has ended."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")
