"""The command ``python -m crowdgraph.distributed`` with slow sweeps, so that it can be killed in the middle of them."""

import time

from crowdgraph.cli import distributed as command

SECONDS = 0.1
make_model = command._model


def make_model_of_slow_sweeps(*arguments, **options):
    from crowdgraph.kernels.ranks import SharedSweep

    sweep = SharedSweep.__call__

    def slow_sweep(*args):
        time.sleep(SECONDS)
        return sweep(*args)

    SharedSweep.__call__ = slow_sweep
    return make_model(*arguments, **options)


# Not where the module is imported, as pytest does to look for doctests: sweeps of other tests would be slow, too.
if __name__ == "__main__":
    command._model = make_model_of_slow_sweeps
    command.app()
