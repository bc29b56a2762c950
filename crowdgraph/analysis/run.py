"""One analysis at work: steps that are timed, and skipped with a reason where they cannot be done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Result
from crowdgraph.errors import CrowdGraphError, collect_warnings

__all__ = ["CannotError", "Run"]

Made = TypeVar("Made")


class CannotError(CrowdGraphError):
    """Why a step cannot be done."""


@dataclass
class Run:
    """The graph as far as it is annotated, and how the steps went."""

    graph: CrowdGraph
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    def step(self, name: str, make: Callable[[], Made]) -> Made | None:
        """What a step makes; None, and a reason, where it cannot be made."""
        start = time.perf_counter()
        try:
            with collect_warnings(self.notes):
                return make()
        except CrowdGraphError as error:
            self.skipped[name] = error.message
            return None
        finally:
            self.timings[name] = round(time.perf_counter() - start, 3)

    def annotate(self, result: Result | None, *, name: str | None = None) -> None:
        """Let the graph carry a result, if there is one."""
        if result is not None:
            self.graph = self.graph.annotate(result, name=name)

    def note(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)
