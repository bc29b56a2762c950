"""Renew finished results when more responses have come: read them, update the fit, and say what changed."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.analysis.analyse import OVER_TIME
from crowdgraph.analysis.output import RECORD
from crowdgraph.core._arrays import FrozenMapping, plain
from crowdgraph.core._text import quantity
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import StoreError
from crowdgraph.io._files import undamaged
from crowdgraph.io.store import SAVED_GRAPH, load
from crowdgraph.messages import Hint

__all__ = ["ChangedAnswer", "EarlierResults", "Renewal", "read_results", "renewal"]

# How many items with another answer are listed.
MAX_LISTED = 5
ANALYSE_AGAIN = Hint(
    "Analyse all responses again, and write the results with settings=.", cli="Analyse all responses again."
)


@dataclass(frozen=True, kw_only=True)
class EarlierResults:
    """What a directory of results holds.

    Attributes
    ----------
    graph
        The annotated graph.
    settings, source
        The options of the run, and what was read.
    commands
        The commands that led to the results, in their order; none if they were not made by commands.
    """

    graph: CrowdGraph
    settings: Mapping[str, Any]
    source: Mapping[str, Any]
    commands: tuple[str, ...] = ()

    @property
    def fit(self) -> ModelFit | None:
        """The fit, under the name of its model; None if there is none."""
        fits = [result for result in self.graph.annotations.values() if isinstance(result, ModelFit)]
        return replace(fits[-1], model=fits[-1].model.removesuffix(OVER_TIME)) if fits else None


class ChangedAnswer(NamedTuple):
    """An item whose most probable class is another one."""

    item: Hashable
    before: Hashable
    after: Hashable


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """What more responses changed.

    Attributes
    ----------
    n_volunteers, n_items, n_responses
        How many are new.
    n_late
        How many of the new responses are earlier than the last old one.
    changed
        The old items whose most probable class is another one.
    """

    n_volunteers: int
    n_items: int
    n_responses: int
    n_late: int
    changed: tuple[ChangedAnswer, ...]

    def sentences(self) -> Iterator[str]:
        """Yield what changed in words."""
        late = f", of which {self.n_late:,} came late" if self.n_late else ""
        volunteers, items = quantity(self.n_volunteers, "new volunteer"), quantity(self.n_items, "new item")
        yield f"The update added {quantity(self.n_responses, 'response')}{late}, {volunteers} and {items}."
        if not self.changed:
            yield "No old item has another answer."
            return
        listed = ", ".join(
            f"{item} ({before} before, now {after})" for item, before, after in self.changed[:MAX_LISTED]
        )
        more = f" and {len(self.changed) - MAX_LISTED:,} more" if len(self.changed) > MAX_LISTED else ""
        have = "has" if len(self.changed) == 1 else "have"
        yield f"{quantity(len(self.changed), 'old item')} {have} another answer: {listed}{more}."

    def to_dict(self) -> dict[str, Any]:
        """Return what changed for machines."""
        counts = {name: getattr(self, f"n_{name}") for name in ("volunteers", "items", "responses", "late")}
        return {**counts, "changed": [one._asdict() for one in self.changed]}


def read_results(directory: str | PathLike[str]) -> EarlierResults:
    """Read what `write_results` wrote, or raise unless it can be renewed."""
    folder, name = Path(directory), repr(fspath(directory))
    if not folder.is_dir():
        raise StoreError(
            f"{name} is {'a file' if folder.exists() else 'not there'}; expected a directory of results.",
            hint=Hint("Write one with write_results.", cli="Make one with: crowdgraph analyse responses.csv."),
        )
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        settings, source, commands = record["settings"], record["source"], record["commands"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{name} has no complete {RECORD} that says how its results were made.", hint=ANALYSE_AGAIN
        ) from error
    if not settings:
        raise StoreError(f"{RECORD} in {name} does not say with which options the run was made.", hint=ANALYSE_AGAIN)
    with undamaged(folder / RECORD):
        return EarlierResults(
            graph=load(folder / SAVED_GRAPH),
            settings=FrozenMapping(settings),
            source=FrozenMapping(source),
            commands=tuple(commands),
        )


def renewal(earlier: EarlierResults, graph: CrowdGraph) -> Renewal:
    """Return what changed from earlier results to an annotated graph with more responses."""
    before, old_fit, fits = earlier.graph, earlier.fit, [*graph.annotations.values()]
    fit = next((result for result in reversed(fits) if isinstance(result, ModelFit)), None)
    changed = []
    if old_fit is not None and fit is not None:
        old, new = old_fit.item_probs.argmax(axis=1), fit.item_probs[: len(old_fit.items)].argmax(axis=1)
        changed = [
            ChangedAnswer(plain(before.items.ids[row]), fit.classes[int(old[row])], fit.classes[int(new[row])])
            for row in np.flatnonzero(old != new)
        ]
    n_late = 0
    if before.n_responses and before.responses.clock.kind != "order":
        last = before.responses.time[-1]
        times = [np.searchsorted(one.responses.time, last.astype(one.responses.time.dtype)) for one in (before, graph)]
        n_late = int(times[1] - times[0])
    return Renewal(
        n_volunteers=graph.n_volunteers - before.n_volunteers,
        n_items=graph.n_items - before.n_items,
        n_responses=graph.n_responses - before.n_responses,
        n_late=n_late,
        changed=tuple(changed),
    )
