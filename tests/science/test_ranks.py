"""Processes that are killed at random moments: all of them end soon, and the resumed fit has the same answer."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest

import crowdgraph as cg

N_KILLS = int(os.environ.get("CROWDGRAPH_KILLS", "50"))
COMMAND = Path(__file__).parent.parent / "ranks" / "slow_ranks.py"
# The seconds within which all processes must have ended; about those that a start, and those that two sweeps take.
LIMIT, START, SWEEPS = 30, 5, 0.25
# What one of the processes says: how to go on, or that nothing is left to do.
NAMED = re.compile(
    r"Error: (Rank \d .*(lost the others|was asked to end).* checkpoint '.*fit\.checkpoint'|The fit was complete)"
    r"|^Open the results with",
    re.MULTILINE,
)

pytestmark = [pytest.mark.science, pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")]


class Launch:
    """A group of ranks that torchrun starts."""

    def __init__(self, folder, n_ranks):
        options = ["--out", folder / "results", "--checkpoint", folder / "fit.checkpoint", "--every", "1", "--resume"]
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_ranks}"]
        self.output = (folder / "output.txt").open("w+")
        command = [sys.executable, *launcher, COMMAND, "fit", folder / "crowd.store", *options]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT)
        self.n_ranks = n_ranks

    def ranks(self):
        """The process ids of the ranks, once all of them have started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while self.process.poll() is None:
            ids = [int(child) for child in children.read_text().split()]
            running = [child for child in ids if b"slow_ranks" in Path(f"/proc/{child}/cmdline").read_bytes()]
            if len(running) == self.n_ranks:
                return running
            time.sleep(0.02)
        return []

    def end(self):
        """Wait for the end; return the seconds that it took, the exit code and what the processes wrote."""
        begin = time.monotonic()
        code = self.process.wait(timeout=4 * LIMIT)
        with self.output:
            self.output.seek(0)
            return time.monotonic() - begin, code, self.output.read()

    def wait_for_writes(self, path, n_writes):
        """Wait until the checkpoint was written so many times since the start, or the end; return how often it was."""
        before, n_seen = last_written(path), 0
        while n_seen < n_writes and self.process.poll() is None:
            now = last_written(path)
            n_seen, before = n_seen + (now != before), now
            time.sleep(0.005)
        return n_seen


def last_written(path):
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def test_kills(tmp_path):
    graph = cg.simulate.crowd(
        n_volunteers=60, n_items=400, n_responses=4_000, classes=("a", "b", "c"), gold=0.1, seed=1
    ).graph
    graph.save(tmp_path / "crowd.store", format="columns")
    expected, checkpoint = cg.IBCC().fit(graph), tmp_path / "fit.checkpoint"
    rng, kills, differences = np.random.default_rng(0), [], []
    print("\n| kill | ranks | checkpoints before | seconds until all had ended | a message said how to go on |")
    print("|--:|--:|--:|--:|---|")
    while len(kills) < N_KILLS or not differences:
        launch = Launch(tmp_path, int(rng.integers(2, 5)))
        ranks = launch.ranks()
        # After enough kills the fit may end. One in eight is killed while it starts.
        early = rng.random() < 1 / 8
        n_writes = 1_000 if len(kills) >= N_KILLS else 0 if early else int(rng.integers(1, 5))
        n_seen = launch.wait_for_writes(checkpoint, n_writes)
        time.sleep(rng.uniform(0, START if early else SWEEPS))
        killed = launch.process.poll() is None
        if killed:
            os.kill(ranks[int(rng.integers(len(ranks)))], signal.SIGKILL)
        duration, code, output = launch.end()
        complete = (tmp_path / "results" / "manifest.json").exists()
        if killed and code:
            named = bool(NAMED.search(output))
            kills.append((duration, n_seen, complete, named))
            print(f"| {len(kills)} | {launch.n_ranks} | {n_seen} | {duration:.1f} | {named} |", flush=True)
            if not complete:
                continue
        assert code == 0 or complete, output
        fit = cg.load(tmp_path / "results").fit()
        differences.append(np.abs(fit.item_probs - expected.item_probs).max())
        assert fit.n_iter == expected.n_iter
        # A complete fit removes its checkpoint, unless it was killed before.
        checkpoint.unlink(missing_ok=True)
        rmtree(tmp_path / "results")
    seconds, n_seen, complete, named = zip(*kills, strict=True)
    n_early = sum(not n for n in n_seen)
    print(
        f"\n{len(kills)} kills, {n_early} before the first checkpoint, {sum(complete)} after all results were written:"
    )
    print(f"all processes ended within {max(seconds):.1f} s, and {sum(named)} times a message said how to go on;")
    print(f"{len(differences)} fits reached their end, with a largest difference of {max(differences):.1e}.")
    # A process may be killed before any other can say anything.
    assert all(a_message for a_message, n in zip(named, n_seen, strict=True) if n)
    assert max(seconds) < LIMIT
    assert max(differences) < 1e-9
