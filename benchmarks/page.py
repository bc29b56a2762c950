"""Pages of measured tables: one section for each topic, with the machine, the versions and the date."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path


def print_sections(
    page: Path, introduction: str, topics: Mapping[str, Callable[[], None]], names: Iterable[str]
) -> None:
    """Print what some topics print, and replace their sections of the page, which are in the order of the topics."""
    sections = read_sections(page)
    for name in names:
        print(f"\n## {name}\n")
        with Copy(sys.stdout) as printed:
            topics[name]()
        sections[name] = f"{circumstances(page)}\n\n{printed.getvalue().strip()}\n"
        text = "\n".join(f"## {name}\n\n{sections[name]}" for name in topics if name in sections)
        page.write_text(f"{introduction}\n{text}", encoding="utf-8")


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


def circumstances(page: Path) -> str:
    """Return a sentence on machine, versions and date."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("crowdgraph", "torch", "numpy", "scipy", "numba"))
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False, cwd=page.parent
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
