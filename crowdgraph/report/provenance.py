"""The provenance of the page: versions, settings of the results, and the record of the run."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from crowdgraph.core.fit import ModelFit
from crowdgraph.core.result import Result
from crowdgraph.messages import Interface, wording
from crowdgraph.report._results import GraphResults

__all__ = ["provenance", "versions", "without_directories"]

PACKAGES = ("crowdgraph", "igraph", "matplotlib", "numba", "numpy", "pyarrow", "scipy", "torch")
# Longer texts are cut.
MAX_LETTERS = 500
# The directories of an absolute path: in quotes up to the last slash inside them, else without spaces.
ROOT = r"(?:(?<![\w.~:/-])/|(?<!\w)[A-Za-z]:[\\/])"
DIRECTORIES = re.compile(rf"""(?<='){ROOT}[^'\n]*[\\/]|(?<="){ROOT}[^"\n]*[\\/]|{ROOT}[^\s'"]*[\\/]""")


def provenance(results: GraphResults, run: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of every result on the graph, the versions of what made them, and the run's own record."""
    record = dict(run or {})
    commands = record.pop("commands", [])
    commands = [commands] if isinstance(commands, str) else [str(command) for command in commands]
    return {
        "versions": [list(pair) for pair in versions().items()],
        "results": [_settings(name, result) for name, result in results.graph.annotations.items()],
        "commands": [without_directories(command) for command in commands],
        "run": None if run is None else as_text(record, results.interface),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version(), **{package: _version(package) for package in PACKAGES}}


def as_text(value: Any, interface: Interface = "python") -> Any:
    """Return a setting as text, or a mapping as pairs of names and settings."""
    if isinstance(value, Mapping):
        return [[str(name), as_text(part, interface)] for name, part in value.items()]
    if value is None:
        return "\u2013"
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        # Sentences follow each other, names are separated.
        separator = " " if all(part.endswith(".") for part in value) else ", "
        value = separator.join(wording(part, interface) for part in value)
    if isinstance(value, str):
        value = wording(value, interface)
    is_plain = isinstance(value, str | int | float | np.generic)
    text = without_directories(str(value) if is_plain else repr(value))
    return text if len(text) <= MAX_LETTERS else f"{text[:MAX_LETTERS]} ..."


def without_directories(text: str) -> str:
    """Return the text with absolute paths cut to the names of files: readers of the page need not know more.

    Examples
    --------
    >>> without_directories("crowdgraph analyse /home/anna/birds.csv --out results/birds")
    'crowdgraph analyse birds.csv --out results/birds'
    """
    for kind in (PurePosixPath, PureWindowsPath):
        if "\n" not in text and kind(text).is_absolute():
            return kind(text).name
    return DIRECTORIES.sub("", text)


def _settings(name: str, result: Result) -> dict[str, Any]:
    """Return the settings of a result; a fit that knows its model is shown as it is written in Python."""
    params = getattr(result, "params", {})
    code = None
    if isinstance(result, ModelFit) and result.source is not None:
        code = f"cg.{result.source.model!r}.fit(graph, seed={result.source.seed!r})"
    return {"name": name, "kind": type(result).__name__, "params": as_text(params), "code": code, "repr": repr(result)}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
