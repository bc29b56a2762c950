"""Work by several processes, on one machine or many: ``torchrun -m crowdgraph.distributed fit``, and in Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdgraph.distributed.detection import detect
    from crowdgraph.distributed.fitting import fit
    from crowdgraph.distributed.similarity import pi_similarity

__all__ = ["detect", "fit", "pi_similarity"]


def __dir__() -> list[str]:
    return __all__


# Modules are loaded when they are first used: before that, the command divides the processors among its processes, and
# can say what to do if it is asked to end.
_HOMES = {"detect": "detection", "fit": "fitting", "pi_similarity": "similarity"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
