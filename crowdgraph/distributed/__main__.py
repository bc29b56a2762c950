"""The command ``torchrun --nproc-per-node=N -m crowdgraph.distributed fit STORE``: every process runs it."""

from __future__ import annotations

import os

# Processes on one machine share its processors; compiled code reads this when it is imported.
if "NUMBA_NUM_THREADS" not in os.environ:
    _n_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    _n_processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ["NUMBA_NUM_THREADS"] = str(max(1, _n_processors // _n_processes))

from crowdgraph.cli.distributed import main

if __name__ == "__main__":
    main()
