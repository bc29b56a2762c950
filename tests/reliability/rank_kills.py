"""Kill one of the processes that fit a model together, at random moments: all end soon, and the fit can be resumed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from reliability.attack import Row
from reliability.forks import ROOT, environment

import crowdgraph as cg

COMMAND = ROOT / "tests" / "ranks" / "slow_ranks.py"
# The seconds within which all processes must have ended; about those that a start, and those that two sweeps take.
LIMIT, START, SWEEPS = 30, 5, 0.25
# What one of the processes says: how to go on, or that nothing is left to do.
NAMED = re.compile(
    r"Error: (Rank \d .*(lost the others|was asked to end).* checkpoint '.*fit\.checkpoint'|The fit was complete)"
    r"|^Open the results with",
    re.MULTILINE,
)
# How much a resumed fit may differ from one that was never killed.
MAX_DIFFERENCE = 1e-9


class Launch:
    """A group of ranks that torchrun starts.

    Parameters
    ----------
    folder
        Where the store is, and where checkpoint and results go.
    n_ranks
        How many processes to start.
    """

    def __init__(self, folder: Path, n_ranks: int) -> None:
        options = ["--out", folder / "results", "--checkpoint", folder / "fit.checkpoint", "--every", "1", "--resume"]
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_ranks}"]
        self.output = (folder / "output.txt").open("w+")
        command = [sys.executable, *launcher, COMMAND, "fit", folder / "crowd.store", *options]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT, env=environment())
        self.n_ranks = n_ranks

    def ranks(self) -> list[int]:
        """Return the process ids of the ranks, once all of them have started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while self.process.poll() is None:
            ids = [int(child) for child in children.read_text().split()]
            running = [child for child in ids if b"slow_ranks" in Path(f"/proc/{child}/cmdline").read_bytes()]
            if len(running) == self.n_ranks:
                return running
            time.sleep(0.02)
        return []

    def end(self) -> tuple[float, int, str]:
        """Wait for the end; return the seconds that it took, the exit code and what the processes wrote."""
        begin = time.monotonic()
        code = self.process.wait(timeout=4 * LIMIT)
        with self.output:
            self.output.seek(0)
            return time.monotonic() - begin, code, self.output.read()

    def wait_for_writes(self, path: Path, n_writes: int) -> int:
        """Wait until the checkpoint was written so many times since the start, or the end; return how often it was."""
        before, n_seen = last_written(path), 0
        while n_seen < n_writes and self.process.poll() is None:
            now = last_written(path)
            n_seen, before = n_seen + (now != before), now
            time.sleep(0.005)
        return n_seen


def last_written(path: Path) -> int:
    """Return when a file was written last; 0 if it is not there."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


class Kill(NamedTuple):
    """How a group of processes ended after one of them was killed."""

    seconds: float
    n_checkpoints: int
    named: bool

    def faults(self) -> list[str]:
        """Return what was wrong."""
        faults = [] if self.seconds < LIMIT else [f"{self.seconds:.0f} s until all processes had ended"]
        # A process may be killed before any other can say anything.
        return faults if self.named or not self.n_checkpoints else [*faults, "no message said how to go on"]


def rows(n_kills: int) -> Iterator[Row]:
    """Yield a row about the kills, and one about the fits that reached their end after some of them."""
    graph = cg.simulate.crowd(
        n_volunteers=60, n_items=400, n_responses=4_000, classes=("a", "b", "c"), gold=0.1, seed=1
    ).graph
    with TemporaryDirectory(prefix="crowdgraph-kills-") as name:
        folder = Path(name)
        graph.save(folder / "crowd.store", format="columns")
        kills, fits = killed_fits(folder, n_kills)
    expected = cg.IBCC().fit(graph)
    differences = [np.abs(fit.item_probs - expected.item_probs).max() for fit in fits]
    for kill in kills:
        if kill.faults():
            print(f"ranks: {kill}: {'; '.join(kill.faults())}", file=sys.stderr)
    slowest = max(kill.seconds for kill in kills)
    note = f"all processes had ended after {slowest:.1f} s at most; the limit is {LIMIT} s"
    yield Row("ranks of a distributed fit", len(kills), sum(bool(kill.faults()) for kill in kills), "", note)
    n_wrong = sum(
        not difference < MAX_DIFFERENCE or fit.n_iter != expected.n_iter
        for difference, fit in zip(differences, fits, strict=True)
    )
    yield Row("fits resumed after kills of ranks", len(fits), n_wrong, "", f"at most {max(differences):.0e} apart")


def killed_fits(folder: Path, n_kills: int) -> tuple[list[Kill], list[cg.ModelFit]]:
    """Kill ranks, and start their fit again and again; return the kills, and the fits that reached their end."""
    rng = np.random.default_rng(0)
    checkpoint, results = folder / "fit.checkpoint", folder / "results"
    kills: list[Kill] = []
    fits: list[cg.ModelFit] = []
    while len(kills) < n_kills or not fits:
        launch = Launch(folder, int(rng.integers(2, 5)))
        ranks = launch.ranks()
        # After enough kills the fit may end. One in eight is killed while it starts.
        early = rng.random() < 1 / 8
        n_writes = 1_000 if len(kills) >= n_kills else 0 if early else int(rng.integers(1, 5))
        n_seen = launch.wait_for_writes(checkpoint, n_writes)
        time.sleep(rng.uniform(0, START if early else SWEEPS))
        is_killed = launch.process.poll() is None
        if is_killed:
            os.kill(ranks[int(rng.integers(len(ranks)))], signal.SIGKILL)
        seconds, code, output = launch.end()
        if is_killed and code:
            kills.append(Kill(seconds, n_seen, bool(NAMED.search(output))))
        if (results / "manifest.json").exists():
            fits.append(cg.load(results).fit())
            # A complete fit removes its checkpoint, unless it was killed before.
            checkpoint.unlink(missing_ok=True)
            rmtree(results)
        elif not (is_killed and code):
            raise RuntimeError(f"A fit ended without results: {output}")
    return kills, fits
