"""How the page was made: versions, settings, and what was run."""

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
from crowdgraph.report._results import GraphResults

__all__ = ["making"]

PACKAGES = ("crowdgraph", "numpy", "scipy", "torch", "igraph")
# Longer texts are cut.
MOST_LETTERS = 500
# The directories of an absolute path: in quotes up to the last slash inside them, else without spaces.
ROOT = r"(?:(?<![\w.~:/-])/|(?<!\w)[A-Za-z]:[\\/])"
DIRECTORIES = re.compile(rf"""(?<='){ROOT}[^'\n]*[\\/]|(?<="){ROOT}[^"\n]*[\\/]|{ROOT}[^\s'"]*[\\/]""")


def making(parts: GraphResults, run: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of every result that the graph carries, the versions of what made them, and the run's own record."""
    record = dict(run or {})
    commands = record.pop("commands", [])
    commands = [commands] if isinstance(commands, str) else [str(command) for command in commands]
    return {
        "versions": [["python", platform.python_version()], *([name, _version(name)] for name in PACKAGES)],
        "results": [_settings(name, result) for name, result in parts.graph.annotations.items()],
        "commands": [without_directories(command) for command in commands],
        "run": None if run is None else told(record),
    }


def told(value: Any) -> Any:
    """A setting as text, or as pairs of names and settings."""
    if isinstance(value, Mapping):
        return [[str(name), told(part)] for name, part in value.items()]
    if value is None:
        return "\u2013"
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        # Sentences follow each other, names are parted.
        value = (" " if all(part.endswith(".") for part in value) else ", ").join(value)
    plain = isinstance(value, str | int | float | np.generic)
    text = without_directories(str(value) if plain else repr(value))
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} ..."


def without_directories(text: str) -> str:
    """The text with only the names of files that it gives by absolute paths: who reads the page need not know more.

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
    """How one result was made; a fit that knows its model tells it as it is written in Python."""
    params = getattr(result, "params", {})
    code = None
    if isinstance(result, ModelFit) and result.source is not None:
        code = f"cg.{result.source.model!r}.fit(graph, seed={result.source.seed!r})"
    return {"name": name, "kind": type(result).__name__, "params": told(params), "code": code, "repr": repr(result)}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
