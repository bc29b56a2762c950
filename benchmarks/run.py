"""Run every benchmark, print a table for each and write docs/performance.md: ``make bench``.

``python benchmarks/run.py graph models`` runs some, and replaces their sections of the page. Each figure compares
contenders that are measured in turn in the same run, each in a process of its own.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
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
    sections = read_sections(PAGE)
    for name in names or BENCHMARKS:
        print(f"\n## {name}\n")
        with Copy(sys.stdout) as printed:
            BENCHMARKS[name]()
        sections[name] = f"{circumstances()}\n\n{printed.getvalue().strip()}\n"
        write_page(PAGE, sections)


class Copy(io.StringIO):
    """Keeps what is printed while it is printed."""

    def __init__(self, stream: io.TextIOBase) -> None:
        super().__init__()
        self._stream = stream
        self._redirection = contextlib.redirect_stdout(self)

    def write(self, text: str) -> int:
        self._stream.write(text)
        self._stream.flush()
        return super().write(text)

    def __enter__(self) -> Copy:
        self._redirection.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._redirection.__exit__(*error)


def circumstances() -> str:
    """Return a sentence on machine, versions and date."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("crowdgraph", "torch", "numpy", "scipy", "numba"))
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False, cwd=PAGE.parent
    ).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    today = f"{dt.datetime.now(tz=dt.UTC):%d %B %Y}"
    return (
        f"*{today}, commit {commit}, {os.cpu_count()} processors ({processor()}), {memory:.0f} GiB, "
        f"Python {platform.python_version()}, {packages}.*"
    )


def processor() -> str:
    """Return the name of the processor, as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read_sections(page: Path) -> dict[str, str]:
    """Return the sections of an earlier page by their names."""
    if not page.is_file():
        return {}
    parts = re.split(r"^## (.+)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.strip() + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def write_page(page: Path, sections: dict[str, str]) -> None:
    """Write the page, with the sections in the order of the benchmarks."""
    text = "\n".join(f"## {name}\n\n{sections[name]}" for name in BENCHMARKS if name in sections)
    page.write_text(f"{INTRODUCTION}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
