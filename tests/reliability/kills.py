"""Kill whatever writes files, at random moments and between any two operations on files.

Afterwards the old or the new version is there, and nothing else once the next run has ended.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from cli.commands import figures_left_out
from reliability import rank_kills
from reliability.attack import Row, Size
from reliability.forks import in_fresh_process
from reliability.writers import WRITERS, Target, Writer

# How often each writer is killed.
N_KILLS = {Size.SHORT: 1, Size.LONG: 18}
# How often a process of those that fit a model together.
N_RANK_KILLS = 30
# The last operations put files into their places, so every other kill is before one of these.
N_LAST = 6
# What the first version left behind, by the writers that were killed.
BEFORE = {
    "graph.save": "0 of 60",
    "report.write": "0 of 25",
    "to_graphml": "0 of 20",
    "to_gexf": "0 of 15",
    "network.save": "0 of 20",
    "tables": "0 of 20",
    "write_results, force": "0 of 74; 1 of 1 between the two renames",
}
BEFORE_LEFT_OVER = "155 of 234"
# What takes too long for the tests.
ONLY_LONG = ("write_results", "crowdgraph analyse --force", "crowdgraph update", "crowdgraph convert --store --force")
REMOVALS = {"os.remove", "os.rmdir"}
OPERATIONS = {"os.mkdir", "os.rename", "os.chmod", "os.link", "os.truncate", *REMOVALS}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# How Python reports that a path is not relative to an open folder.
NO_FOLDER = -1


def attack(size: Size) -> Iterator[Row]:
    """Yield a row for each writer, one for what was left over, and two for fits by several processes."""
    yield from in_fresh_process(__name__, size)
    if size is Size.LONG:
        yield from rank_kills.rows(N_RANK_KILLS)


def rows(size: Size) -> Iterator[Row]:
    """Yield the rows of the writers."""
    n_tried, n_left_over = 0, 0
    with figures_left_out() if size is Size.SHORT else nullcontext():
        for number, writer in enumerate(WRITERS):
            if size is Size.LONG or writer.name not in ONLY_LONG:
                row, n_left = killed(writer, N_KILLS[size], seed=number)
                n_tried, n_left_over = n_tried + row.tried, n_left_over + n_left
                yield row
    yield Row("left over after the next run", n_tried, n_left_over, BEFORE_LEFT_OVER)


def killed(writer: Writer, n_kills: int, *, seed: int) -> tuple[Row, int]:
    """Kill a writer so many times; return its row, and after how many kills something was left over."""
    rng = np.random.default_rng(seed)
    n_torn, n_left, n_hidden = 0, 0, 0
    with TemporaryDirectory(prefix="crowdgraph-kills-") as folder:
        target = Target(writer, Path(folder))
        duration, n_operations = measured(target)
        for number in range(n_kills):
            # The short form does not depend on how fast the machine is.
            if number % 2 and kill_at_moment(target, rng, duration):
                how = "at a moment"
            else:
                how = kill_at_operation(target, rng, n_operations)
            is_complete = target.is_complete()
            n_torn += not is_complete
            n_hidden += bool(target.left_over())
            names = target.next_run()
            n_left += bool(names)
            if names or not is_complete:
                state = "complete" if is_complete else "torn"
                print(f"{writer.name}: kill {number} {how}: {state}; left over: {names}", file=sys.stderr, flush=True)
    note = f"{n_operations} operations on files; {n_hidden} left something for the next run"
    return Row(writer.name, n_kills, n_torn, BEFORE.get(writer.name, ""), note), n_left


def measured(target: Target) -> tuple[float, int]:
    """Return how many seconds a write takes, and how many operations on files it has."""
    begin = time.monotonic()
    fork = target.overwrite(lambda: watch(target.folder, lambda number: print(f"\noperation {number}")))
    if fork.wait():
        raise RuntimeError(f"{target.writer.name} failed without being killed: {fork.output()}")
    duration = time.monotonic() - begin
    target.next_run()
    return duration, fork.output().count("\noperation ")


def kill_at_moment(target: Target, rng: np.random.Generator, duration: float) -> bool:
    """Kill a write at a moment drawn uniformly over its duration; return False if it was over before."""
    fork = target.overwrite()
    time.sleep(rng.uniform(0, duration))
    fork.kill()
    if fork.wait() == -signal.SIGKILL:
        return True
    target.next_run()
    return False


def kill_at_operation(target: Target, rng: np.random.Generator, n_operations: int) -> str:
    """Kill a write before one of its operations on files; return which."""
    last = int(rng.integers(max(n_operations - N_LAST, 0) if rng.random() < 0.5 else 0, n_operations))

    def kill(number: int) -> None:
        if number == last:
            os.kill(os.getpid(), signal.SIGKILL)

    fork = target.overwrite(lambda: watch(target.folder, kill))
    if fork.wait() != -signal.SIGKILL:
        raise RuntimeError(f"{target.writer.name} has no operation {last}: {fork.output()}")
    return f"before operation {last} of {n_operations}"


def watch(folder: Path, act: Callable[[int], object]) -> None:
    """Call a function with the number of each operation on files below a folder, before it is done."""
    numbers = count()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if is_operation(event, arguments, str(folder)):
            act(next(numbers))

    sys.addaudithook(hook)


def is_operation(event: str, arguments: tuple[object, ...], folder: str) -> bool:
    """Return whether an event that Python reports changes files below a folder."""
    if event == "open":
        path, _, flags = arguments
        return bool(flags & WRITING) and str(path).startswith(folder)
    if event in REMOVALS and arguments[1] != NO_FOLDER:
        return True
    return event in OPERATIONS and str(arguments[0]).startswith(folder)
