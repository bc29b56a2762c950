"""Run every benchmark and print a table for each: ``make bench``, or ``python benchmarks/run.py graph``.

Each figure compares contenders that are measured in turn in the same run, each in a process of its own.
"""

from __future__ import annotations

import sys

import allocation
import analyse
import backends
import change
import communities
import doors
import gexf
import graph
import imports
import models
import vocabulary

BENCHMARKS = {
    "imports": imports.main,
    "graph": graph.main,
    "vocabulary": vocabulary.main,
    "doors": doors.main,
    "gexf": gexf.main,
    "models": models.main,
    "change": change.main,
    "backends": backends.main,
    "communities": communities.main,
    "allocation": allocation.main,
    "analyse": analyse.main,
}


def main(names: list[str]) -> None:
    for name in names or BENCHMARKS:
        print(f"\n## {name}\n")
        BENCHMARKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
