"""Measure pieces of code in processes of their own, in turn, and return the medians."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import NamedTuple

# The code runs between two readings of the clock and of the resident memory. The system records the peak, which is
# reset before the code runs, so that imports do not count.
TEMPLATE = """
import gc, json, resource, time
facts = {{}}
{setup}
gc.collect()
def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
before = resident("VmRSS")
start = time.perf_counter()
{code}
seconds = time.perf_counter() - start
print(json.dumps({{"seconds": seconds, "peak_bytes": resident("VmHWM") - before, "facts": facts}}))
"""


class Measurement(NamedTuple):
    """Seconds, bytes beyond those before, and numbers that the code put into `facts`."""

    seconds: float
    peak_bytes: float
    facts: dict[str, float]


def measure(pieces: dict[str, tuple[str, str]], *, repeats: int) -> dict[str, Measurement]:
    """Return the median time and memory of each (setup, code); the pieces take turns."""
    runs: dict[str, list[Measurement]] = {name: [] for name in pieces}
    for _ in range(repeats):
        for name, (setup, code) in pieces.items():
            script = TEMPLATE.format(setup=setup, code=code)
            process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
            runs[name].append(Measurement(**json.loads(process.stdout.splitlines()[-1])))
    return {
        name: Measurement(
            statistics.median(run.seconds for run in measurements),
            statistics.median(run.peak_bytes for run in measurements),
            {key: statistics.median(run.facts[key] for run in measurements) for key in measurements[0].facts},
        )
        for name, measurements in runs.items()
    }
