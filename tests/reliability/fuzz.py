"""Give every reader inputs that are nearly valid: it reads them or refuses them, within limits of time and memory.

Each input is read in a fork that serves many; whatever ends a fork is noticed, and another goes on. An input that fails
is printed as ``reader-seed``, and ``python tests/reliability/run.py --again fuzz reader-seed`` reads it once more.

So that inputs are many, files lie in memory, only some forks let readers start threads, and only some of the graphs
that were accepted are saved and loaded again: those that most of the time would be spent on.
"""

import faulthandler
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from reliability.attack import Row, Size
from reliability.forks import Fork, in_fresh_process
from reliability.readers import FEW, READERS, prepare
from reliability.writers import remove
from results import same_graph

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphError

N_INPUTS = {Size.SHORT: 50, Size.LONG: 200_000}
# For how many seconds of the processor a reader is attacked at most: two hours and a half for all of them.
SECONDS = {Size.SHORT: 60, Size.LONG: 450}
# How many inputs a fork serves, so that what libraries keep does not add up.
N_SERVED = 1_000
# Of how many forks one lets readers start threads, which takes longer than most inputs.
THREADS_EVERY = 10
# Which share of the graphs that are accepted is shown as a page, saved and loaded again.
SHARE_SAVED = 0.1
# Inputs lie here, if it is there: writing and removing files takes longer than reading them.
MEMORY = Path("/dev/shm")  # noqa: S108 - folders of our own are made there
# What an input may take: seconds of the processor, and memory beyond what the process had before.
MOST_SECONDS, MOST_BYTES = 20, 500 * 2**20
# After so many inputs these seconds begin anew; asking for the time takes time, too.
N_LIMITED = 20
# What the process may ask for beyond that, so that the machine stays alive.
ADDRESS_SPACE = 4 * 2**30
MOST_CHARACTERS = 2_000


class Outcome(NamedTuple):
    """What came of an input: ``"accepted"``, ``"refused"`` or ``"failed"``, what was wrong, and what it took."""

    kind: str
    fault: str = ""
    seconds: float = 0.0
    n_bytes: int = 0


class Unsound(Exception):
    """A graph that was accepted, and should not have been."""


def attack(size: Size) -> Iterator[Row]:
    """Yield a row for each reader."""
    yield from in_fresh_process(__name__, size)


def rows(size: Size) -> Iterator[Row]:
    """Yield these rows."""
    for name in READERS:
        if name not in FEW:
            yield fuzzed(name, N_INPUTS[size], SECONDS[size])
        elif size is Size.LONG:
            yield fuzzed(name, FEW[name], SECONDS[size])


def again(seed: str) -> None:
    """Read an input that failed once more, and print the error."""
    name, _, number = seed.rpartition("-")
    faulthandler.enable()
    with input_folder() as folder:
        outcome = outcome_of(name, int(number), Path(folder), report=True)
    print(outcome)


def fuzzed(name: str, n_inputs: int, seconds: float) -> Row:
    """Give a reader so many inputs, or fewer if it has used its seconds; print those that fail."""
    counts: Counter[str] = Counter()
    used_up, slowest, largest = 0.0, 0.0, 0
    for seed, outcome in outcomes(name, n_inputs):
        counts[outcome.kind] += 1
        slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.n_bytes)
        used_up += outcome.seconds
        if outcome.kind == "failed":
            print(f"{name}-{seed}: {outcome.fault}", file=sys.stderr, flush=True)
        if used_up > seconds:
            break
    note = f"{counts['accepted']:,} read, {counts['refused']:,} refused; at most {slowest:.1f} s, {largest >> 20} MB"
    return Row(name, counts.total(), counts["failed"], READERS[name][1], note)


def outcomes(name: str, n_inputs: int) -> Iterator[tuple[int, Outcome]]:
    """Yield what came of the inputs, by their seeds."""
    prepare()
    seed = n_forks = 0
    while seed < n_inputs:
        seeds = range(seed, min(seed + N_SERVED, n_inputs))
        for outcome in served(name, seeds, threads=n_forks % THREADS_EVERY == 0):
            yield seed, outcome
            seed += 1
        n_forks += 1


def served(name: str, seeds: range, *, threads: bool) -> Iterator[Outcome]:
    """Yield what came of inputs that one fork reads, until it has read all or has ended, or nobody asks for more."""
    receiver, sender = Pipe(duplex=False)
    with input_folder() as folder:
        fork = Fork(lambda: serve(name, seeds, Path(folder), sender, threads=threads))
        sender.close()
        try:
            for _ in seeds:
                try:
                    yield receiver.recv()
                except EOFError:
                    yield Outcome("failed", how_it_ended(fork))
                    break
        finally:
            fork.kill()
            fork.wait()


def input_folder() -> "TemporaryDirectory[str]":
    """Make a folder for inputs, in memory if that can be."""
    return TemporaryDirectory(prefix="crowdgraph-fuzz-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)


def serve(name: str, seeds: range, folder: Path, sender: Connection, *, threads: bool) -> None:
    """Read inputs, and send what came of each."""
    if not threads:
        ThreadPoolExecutor.submit = act_at_once
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, resource.RLIM_INFINITY))
    for number, seed in enumerate(seeds):
        if number % N_LIMITED == 0 or name in FEW:
            # Either limit ends the process by a signal of its own.
            most = int(time.process_time()) + MOST_SECONDS + 1
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
            signal.alarm(20 * MOST_SECONDS)
        sender.send(outcome_of(name, seed, folder))


def act_at_once(_: ThreadPoolExecutor, act: Callable[..., Any], *arguments: Any, **options: Any) -> "Future[Any]":
    """Do what a thread would do."""
    future: Future[Any] = Future()
    try:
        future.set_result(act(*arguments, **options))
    except Exception as error:
        future.set_exception(error)
    return future


def how_it_ended(fork: Fork) -> str:
    """Return what ended a fork, in words."""
    code = fork.wait()
    reasons = {signal.SIGXCPU: f"more than {MOST_SECONDS} s of the processor", signal.SIGALRM: "it hangs"}
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"{name} {reasons.get(-code, '')} {fork.output()[-300:]}"


def outcome_of(name: str, seed: int, folder: Path, *, report: bool = False) -> Outcome:
    """Make an input in an empty folder, read it, and return what came of it."""
    begin, before = used()
    rng = np.random.default_rng([crc32(name.encode()), seed])
    (folder / "input").mkdir()
    act = READERS[name][0](folder / "input", rng)
    kind, fault = "accepted", ""
    try:
        result = act()
        check(result)
        if rng.random() < SHARE_SAVED and isinstance(result, cg.CrowdGraph):
            check_saved(result, folder)
    except CrowdGraphError as error:
        kind = "refused"
        length = max(len(error.message.wording(interface)) for interface in ("python", "cli"))
        if length > MOST_CHARACTERS:
            kind, fault = "failed", f"a message of {length:,} characters: {str(error)[:100]}"
    except Exception as error:
        kind, fault = "failed", described(error)
        if report:
            traceback.print_exc()
    end, after = used()
    seconds, n_bytes = end - begin, after - before
    if n_bytes > MOST_BYTES:
        kind, fault = "failed", f"{n_bytes >> 20} MB"
    if not report:
        for path in folder.iterdir():
            remove(path)
    return Outcome(kind, fault, seconds, n_bytes)


def used() -> tuple[float, int]:
    """Return the seconds of the processor that this process has used, and the most memory that it ever had."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def described(error: Exception) -> str:
    """Return an error in a line, with the line of the package that raised it."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if "/crowdgraph/" in frame.filename]
    where = f" at {Path(lines[-1].filename).name}:{lines[-1].lineno}" if lines else ""
    return f"{type(error).__name__}: {str(error)[:160]!r}{where}"


# What a reader returned


def check(result: Any) -> None:
    """Raise unless a graph, a network or a fit is sound, and can be shown."""
    repr(result)
    if isinstance(result, cg.ModelFit):
        check_fit(result)
    if isinstance(result, cg.CrowdGraph):
        check_probabilities(result.gold.probs[result.gold.known], "gold")
        for annotation in result.annotations.values():
            check(annotation)


def check_saved(graph: cg.CrowdGraph, folder: Path) -> None:
    """Raise unless a graph can be shown as a page, made a table, and saved and loaded again."""
    graph._repr_html_()
    graph.save(folder / "saved.crowd")
    try:
        loaded = cg.load(folder / "saved.crowd")
    except CrowdGraphError as error:
        raise Unsound(f"a graph that was saved cannot be loaded: {error}") from error
    if not same_graph(loaded, graph):
        raise Unsound("the graph is another one after it was saved and loaded")


def check_fit(fit: cg.ModelFit) -> None:
    """Raise unless the probabilities of a fit are such."""
    check_probabilities(fit.item_probs, "class probabilities")
    if fit.confusion is not None:
        check_probabilities(fit.confusion.latest().mean, "confusion")


def check_probabilities(probs: Any, what: str) -> None:
    """Raise unless the last axis has probabilities that sum to one."""
    if not (np.isfinite(probs).all() and (probs >= 0).all() and np.allclose(probs.sum(axis=-1), 1)):
        raise Unsound(f"{what} are no probabilities")
