"""Fit a crowd on disk by 1, 2 and 4 ranks: seconds, memory of a rank, and how much the answers differ.

Ranks are processes of this machine, so that more of them than processors take no less time. The environment variable
``CROWDGRAPH_MILLIONS`` says how many million responses there are; 4 if left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from crowds import Size, crowd

import crowdgraph as cg

N_RESPONSES = int(float(os.environ.get("CROWDGRAPH_MILLIONS", "4")) * 10**6)
SIZE = Size(
    n_items=N_RESPONSES // 10, n_volunteers=N_RESPONSES // 200, n_responses=N_RESPONSES, n_classes=3, n_labels=3
)
# A model, and the bytes of what all ranks hold: twelve tables of all volunteers and, for DynIBCC, the class
# probabilities of all items, those that passes start from, and the items' log weights.
TABLES = {"ibcc": 12 * SIZE.n_volunteers * 9 * 8, "dawid-skene": 12 * SIZE.n_volunteers * 9 * 8}
TABLES["dynibcc"] = TABLES["ibcc"] + 3 * SIZE.n_items * 3 * 8
MODELS = {"ibcc": "cg.IBCC()", "dawid-skene": "cg.DawidSkene()", "dynibcc": "cg.DynIBCC()"}
# What each rank runs: the fit, between two readings of the clock and of the resident memory.
RANK = """
import json, os, sys, time
os.environ["NUMBA_NUM_THREADS"] = "1"
import torch.distributed as dist
import crowdgraph as cg
from crowdgraph.distributed._ranks import joined

def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))

model, store, out = eval(sys.argv[1]), *sys.argv[2:]
with joined(timeout=600) as ranks:
    graph = cg.simulate.crowd(n_items=20, n_responses=100, classes=(0, 1, 2), seed=0).graph
    # What is compiled once on a machine, and what is imported, does not count.
    graph.save(out + f".{ranks.rank}", format="columns")
    cg.load(out + f".{ranks.rank}")
    model.fit(graph)
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    before, start, used = resident("VmRSS"), time.perf_counter(), time.process_time()
    fit = cg.distributed.fit(model, store, out=out)
    facts = {"seconds": time.perf_counter() - start, "processor": time.process_time() - used}
    facts |= {"peak": resident("VmHWM") - before, "sweeps": fit.n_iter}
    every = ranks.gather(facts)
    if ranks.rank == 0:
        print(json.dumps(every))
"""


def main() -> None:
    print(
        f"{SIZE.n_responses:,} responses of {SIZE.n_volunteers:,} volunteers about {SIZE.n_items:,} items, J = L = 3."
    )
    print(
        "Ranks are processes of one thread each. Memory is what the fit adds to the process of a rank, at its peak.\n"
    )
    print(
        "| model | ranks | sweeps | seconds | processor seconds of a rank | memory of a rank, MB "
        "| less the tables that all hold, MB | largest difference |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        crowd(SIZE).save(folder / "crowd.store", format="columns")
        for model, code in MODELS.items():
            first = None
            for n_ranks in (1, 2, 4):
                out = folder / f"{model}-{n_ranks}"
                facts = run(n_ranks, code, folder / "crowd.store", out)
                probs = cg.load(out).fit().item_probs
                first = probs if first is None else first
                peak = max(own["peak"] for own in facts)
                print(
                    f"| {model} | {n_ranks} | {facts[0]['sweeps']} | {max(own['seconds'] for own in facts):.2f} "
                    f"| {max(own['processor'] for own in facts):.2f} "
                    f"| {peak / 1e6:.0f} | {(peak - TABLES[model]) / 1e6:.0f} | {np.abs(probs - first).max():.1e} |",
                    flush=True,
                )


def run(n_ranks: int, *arguments: object) -> list[dict[str, float]]:
    """Run the ranks, and return what each of them measured."""
    script = Path(tempfile.mkdtemp()) / "rank.py"
    script.write_text(RANK)
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_ranks}"]
    process = subprocess.run(
        [sys.executable, *launcher, script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return list(json.loads(process.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
