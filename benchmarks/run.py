"""Run every benchmark, print a table for each and write docs/performance.md: ``make bench``.

``python benchmarks/run.py graph models`` runs some, and replaces their sections of the page. Each figure compares
contenders that are measured in turn in the same run, each in a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import allocation
import analyse
import backends
import change
import communities
import doors
import dynibcc
import gexf
import graph
import growth
import imports
import models
import out_of_core
import ranks
import updates
import vocabulary
from page import print_sections

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BENCHMARKS = {
    "growth": growth.main,
    "imports": imports.main,
    "graph": graph.main,
    "vocabulary": vocabulary.main,
    "doors": doors.main,
    "gexf": gexf.main,
    "models": models.main,
    "updates": updates.main,
    "dynibcc": dynibcc.main,
    "out_of_core": out_of_core.main,
    "change": change.main,
    "backends": backends.main,
    "ranks": ranks.main,
    "communities": communities.main,
    "allocation": allocation.main,
    "analyse": analyse.main,
}
INTRODUCTION = """# Performance

These tables were printed by `make bench`, which writes this page. Every ratio compares contenders that took turns in
one run on one machine; seconds are of that machine. `python benchmarks/run.py growth` measures one topic again.
"""


def main(names: list[str]) -> None:
    print_sections(PAGE, INTRODUCTION, BENCHMARKS, names or BENCHMARKS)


if __name__ == "__main__":
    main(sys.argv[1:])
