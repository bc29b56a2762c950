"""The command ``python -m crowdgraph.distributed`` with slow sweeps, so that it can be killed in the middle of them."""

import time

from crowdgraph.cli.distributed import app
from crowdgraph.kernels.ranks import SharedSweep

SECONDS = 0.1
sweep = SharedSweep.__call__


def slow_sweep(*args):
    time.sleep(SECONDS)
    return sweep(*args)


SharedSweep.__call__ = slow_sweep

if __name__ == "__main__":
    app()
