"""A plugin of pytest that stops each test after some seconds of processor time: ``-p reliability.time_limit``.

It is for tests whose sizes were chosen for compiled code, and that are run without. What a test ran until then has run.
"""

import signal

import pytest

from crowdgraph.kernels import _runtime

SECONDS = 2


class NoThreads:
    """Stands for a pool: a test that is stopped while threads wait for each other would leave their locks locked."""

    map = staticmethod(map)


def pytest_configure():
    _runtime._pool = lambda *_: NoThreads()


def stop(number, frame):
    pytest.skip(f"stopped after {SECONDS} s of processor time")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
