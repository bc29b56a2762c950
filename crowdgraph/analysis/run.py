"""One analysis at work: steps that are timed, and skipped with a reason where they cannot be done."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Result
from crowdgraph.errors import CrowdGraphError, CrowdGraphWarning

__all__ = ["CannotError", "Run", "noted"]

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
            with noted(self.notes):
                return make()
        except CrowdGraphError as error:
            self.skipped[name] = str(error)
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


@contextmanager
def noted(notes: list[str]) -> Iterator[None]:
    """Keep what crowdgraph warns of as sentences, each kind once; the warnings of others are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdGraphWarning)
        yield
    told: dict[tuple[str, int], list[str]] = {}
    for warning in caught:
        if issubclass(warning.category, CrowdGraphWarning):
            told.setdefault((warning.filename, warning.lineno), []).append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    for first, *others in told.values():
        sentence = f"{first} (And {len(others):,} more like this.)" if others else first
        if sentence not in notes:
            notes.append(sentence)
