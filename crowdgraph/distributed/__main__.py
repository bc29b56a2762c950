"""The command ``torchrun --nproc-per-node=N -m crowdgraph.distributed fit STORE``: every process runs it."""

from __future__ import annotations

import os

# Processes on one machine share its processors; compiled code reads this when it is imported.
if "NUMBA_NUM_THREADS" not in os.environ:
    _n_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    os.environ["NUMBA_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // _n_processes))

from crowdgraph.cli.distributed import app

if __name__ == "__main__":
    app(prog_name="python -m crowdgraph.distributed")
