"""Measure how long ``import crowdgraph`` takes, compared with ``import numpy``."""

from __future__ import annotations

import subprocess
import sys

from side_by_side import measure


def main() -> None:
    statements = {
        "import numpy": ("", "import numpy"),
        "import crowdgraph": ("", "import crowdgraph"),
        "from crowdgraph import CrowdGraph": ("", "from crowdgraph import CrowdGraph"),
    }
    measured = measure(statements, repeats=9)
    base = measured["import numpy"].seconds
    print("| statement | seconds | times import numpy |\n|---|--:|--:|")
    for name, result in measured.items():
        print(f"| `{name}` | {result.seconds:.3f} | {result.seconds / base:.2f} |")
    check = "import sys, crowdgraph; crowdgraph.CrowdGraph; print('torch' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    print(f"\ntorch loaded: {loaded.stdout.strip()}")
