"""crowdgraph: understand crowds of volunteers who label items.

A `CrowdGraph` holds who said what about which item and when; models read it and return results; the graph is annotated
with results; networks, communities, dynamics, plots and reports are functions of the annotated graph.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# The stub beside this file lists the public names and the modules that define them, for type checkers and for this one.
# They are loaded when first used (PEP 562), so that importing crowdgraph stays fast.
_HOMES = {
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from crowdgraph.core._other_names import missing_from_module

        raise missing_from_module(__name__, name)
    home = _HOMES[name]
    value = import_module(f"crowdgraph.{name}") if home == "crowdgraph" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
