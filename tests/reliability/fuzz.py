"""Give every reader inputs that are nearly valid: it reads them or refuses them, within limits of time and memory.

Each input is read in a fork that serves many; whatever ends a fork is noticed, and another goes on. An input that fails
is printed as ``reader-seed``, and ``python tests/reliability/run.py --again fuzz reader-seed`` reads it once more.
"""

import faulthandler
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
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
# For how many seconds a reader is attacked at most.
SECONDS = {Size.SHORT: 60, Size.LONG: 1_800}
# How many inputs a fork serves, so that what libraries keep does not add up.
N_SERVED = 5_000
# What an input may take: seconds of the processor, and memory beyond what the process had before.
MOST_SECONDS, MOST_BYTES = 20, 500 * 2**20
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
    with TemporaryDirectory(prefix="crowdgraph-fuzz-") as folder:
        outcome = outcome_of(name, int(number), Path(folder), report=True)
    print(outcome)


def fuzzed(name: str, n_inputs: int, seconds: float) -> Row:
    """Give a reader so many inputs, or fewer if the time is over; print those that fail."""
    counts: Counter[str] = Counter()
    slowest, largest = 0.0, 0
    for seed, outcome in outcomes(name, n_inputs, time.monotonic() + seconds):
        counts[outcome.kind] += 1
        slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.n_bytes)
        if outcome.kind == "failed":
            print(f"{name}-{seed}: {outcome.fault}", file=sys.stderr, flush=True)
    note = f"{counts['accepted']:,} read, {counts['refused']:,} refused; at most {slowest:.1f} s, {largest >> 20} MB"
    return Row(name, counts.total(), counts["failed"], READERS[name][1], note)


def outcomes(name: str, n_inputs: int, end: float) -> Iterator[tuple[int, Outcome]]:
    """Yield what came of the inputs, by their seeds."""
    prepare()
    seed = 0
    while seed < n_inputs and time.monotonic() < end:
        for outcome in served(name, range(seed, min(seed + N_SERVED, n_inputs)), end):
            yield seed, outcome
            seed += 1


def served(name: str, seeds: range, end: float) -> Iterator[Outcome]:
    """Yield what came of inputs that one fork reads, until it has read all or has ended, or the time is over."""
    receiver, sender = Pipe(duplex=False)
    with TemporaryDirectory(prefix="crowdgraph-fuzz-") as folder:
        fork = Fork(lambda: serve(name, seeds, Path(folder), sender))
        sender.close()
        for _ in seeds:
            try:
                yield receiver.recv()
            except EOFError:
                yield Outcome("failed", how_it_ended(fork))
                break
            if time.monotonic() > end:
                fork.kill()
                break
        fork.wait()


def serve(name: str, seeds: range, folder: Path, sender: Connection) -> None:
    """Read inputs, and send what came of each."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, resource.RLIM_INFINITY))
    for seed in seeds:
        # Either limit ends the process by a signal of its own.
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + MOST_SECONDS + 1, resource.RLIM_INFINITY))
        signal.alarm(20 * MOST_SECONDS)
        sender.send(outcome_of(name, seed, folder))


def how_it_ended(fork: Fork) -> str:
    """Return what ended a fork, in words."""
    code = fork.wait()
    reasons = {signal.SIGXCPU: f"more than {MOST_SECONDS} s of the processor", signal.SIGALRM: "it hangs"}
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"{name} {reasons.get(-code, '')} {fork.output()[-300:]}"


def outcome_of(name: str, seed: int, folder: Path, *, report: bool = False) -> Outcome:
    """Read one input in an empty folder, and return what came of it."""
    rng = np.random.default_rng([crc32(name.encode()), seed])
    (folder / "input").mkdir()
    act = READERS[name][0](folder / "input", rng)
    begin, before = time.process_time(), peak_bytes()
    kind, fault = "accepted", ""
    try:
        check(act(), folder)
    except CrowdGraphError as error:
        kind = "refused"
        length = max(len(error.message.wording(interface)) for interface in ("python", "cli"))
        if length > MOST_CHARACTERS:
            kind, fault = "failed", f"a message of {length:,} characters: {str(error)[:100]}"
    except Exception as error:
        kind, fault = "failed", described(error)
        if report:
            traceback.print_exc()
    seconds, n_bytes = time.process_time() - begin, peak_bytes() - before
    if n_bytes > MOST_BYTES:
        kind, fault = "failed", f"{n_bytes >> 20} MB"
    if not report:
        for path in folder.iterdir():
            remove(path)
    return Outcome(kind, fault, seconds, n_bytes)


def peak_bytes() -> int:
    """Return the most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def described(error: Exception) -> str:
    """Return an error in a line, with the line of the package that raised it."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if "/crowdgraph/" in frame.filename]
    where = f" at {Path(lines[-1].filename).name}:{lines[-1].lineno}" if lines else ""
    return f"{type(error).__name__}: {str(error)[:160]!r}{where}"


# What a reader returned


def check(result: Any, folder: Path) -> None:
    """Show a graph or a fit, save and load it, and raise unless it is sound."""
    if isinstance(result, cg.ModelFit):
        check_fit(result)
        return
    repr(result)
    result._repr_html_()
    gold = result.gold.probs[result.gold.known]
    check_probabilities(gold, "gold")
    for annotation in result.annotations.values():
        repr(annotation)
        if isinstance(annotation, cg.ModelFit):
            check_fit(annotation)
    result.save(folder / "saved.crowd")
    try:
        loaded = cg.load(folder / "saved.crowd")
    except CrowdGraphError as error:
        raise Unsound(f"a graph that was saved cannot be loaded: {error}") from error
    if not same_graph(loaded, result):
        raise Unsound("the graph is another one after it was saved and loaded")


def check_fit(fit: cg.ModelFit) -> None:
    """Raise unless the probabilities of a fit are such."""
    repr(fit)
    check_probabilities(fit.item_probs, "class probabilities")
    if fit.confusion is not None:
        check_probabilities(fit.confusion.latest().mean, "confusion")


def check_probabilities(probs: Any, what: str) -> None:
    """Raise unless the last axis has probabilities that sum to one."""
    if not (np.isfinite(probs).all() and (probs >= 0).all() and np.allclose(probs.sum(axis=-1), 1)):
        raise Unsound(f"{what} are no probabilities")
