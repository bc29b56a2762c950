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
# The seconds within which all processes must have ended, and the seconds of a fit in which one of them is killed.
LIMIT, SPAN = 30, 9
LOST = re.compile(
    r"Error: Rank \d of \d (lost the others|was asked to end).* checkpoint '.*fit\.checkpoint' with the same"
)

pytestmark = [pytest.mark.science, pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")]


class Launch:
    """A group of ranks that torchrun starts."""

    def __init__(self, folder, n_ranks):
        options = ["--out", folder / "results", "--checkpoint", folder / "fit.checkpoint", "--every", "1", "--resume"]
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_ranks}"]
        self.errors = (folder / "errors.txt").open("w+")
        command = [sys.executable, *launcher, COMMAND, "fit", folder / "crowd.store", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.errors)
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
        """Wait for the end; return the seconds that it took, the exit code and what was written to the error stream."""
        begin = time.monotonic()
        code = self.process.wait(timeout=4 * LIMIT)
        with self.errors:
            self.errors.seek(0)
            return time.monotonic() - begin, code, self.errors.read()


def test_kills(tmp_path):
    graph = cg.simulate.crowd(
        n_volunteers=60, n_items=400, n_responses=4_000, classes=("a", "b", "c"), gold=0.1, seed=1
    ).graph
    graph.save(tmp_path / "crowd.store", format="columns")
    expected = cg.IBCC().fit(graph)
    rng, seconds, n_messages, differences, stages = np.random.default_rng(0), [], 0, [], {}
    while len(seconds) < N_KILLS or not differences:
        launch = Launch(tmp_path, int(rng.integers(2, 4)))
        ranks = launch.ranks()
        # After enough kills the fit may end.
        if len(seconds) < N_KILLS:
            time.sleep(rng.uniform(0, SPAN))
        else:
            launch.process.wait(timeout=4 * LIMIT)
        killed = launch.process.poll() is None
        if killed:
            os.kill(ranks[int(rng.integers(len(ranks)))], signal.SIGKILL)
        duration, code, errors = launch.end()
        if killed and code:
            seconds.append(duration)
            n_messages += bool(LOST.search(errors))
            # Before the ranks have met there is nothing to resume, and torchrun reports what happened.
            stage = "fitting" if (tmp_path / "fit.checkpoint").exists() else "before the first checkpoint"
            stages[stage] = stages.get(stage, 0) + 1
            continue
        assert code == 0, errors
        fit = cg.load(tmp_path / "results").fit()
        differences.append(np.abs(fit.item_probs - expected.item_probs).max())
        assert fit.n_iter == expected.n_iter
        (tmp_path / "fit.checkpoint").unlink()
        rmtree(tmp_path / "results")
    print(f"\n{len(seconds)} kills ({stages}): all processes ended within {max(seconds):.1f} s;")
    print(f"{n_messages} times a message named the checkpoint (before the ranks have met, torchrun alone reports);")
    print(f"{len(differences)} fits were resumed to their end, largest difference {max(differences):.1e}.")
    assert max(seconds) < LIMIT
    assert max(differences) < 1e-9
    assert n_messages > N_KILLS / 3
