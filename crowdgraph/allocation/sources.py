"""Where the answers of a campaign come from: a simulated crowd, or what was recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.simulate.crowd import SimulatedCrowd

__all__ = ["Recorded", "Simulated", "Source"]


class Source(ABC):
    """Where answers come from."""

    available: CrowdGraph | None = None

    @abstractmethod
    def first(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """One question about each item, to volunteers drawn at random, as codes of volunteers and items."""

    @abstractmethod
    def answer(self, volunteer: int, item: int) -> int:
        """The label that a volunteer gives to an item, as codes."""


class Simulated(Source):
    """Answers as the true behaviour of a simulated crowd says."""

    def __init__(self, crowd: SimulatedCrowd, rng: np.random.Generator) -> None:
        self._truth, self._rng = crowd.truth, rng
        self._rows, self._ids = crowd.graph._rows_by_volunteer, crowd.graph.volunteers.ids
        self._asked = np.zeros(len(crowd.graph.volunteers), dtype=np.int64)

    def first(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """See `Source`; everybody is asked as often, or once more."""
        n_volunteers, n_items = len(self._asked), len(self._truth.classes)
        people = np.concatenate([rng.permutation(n_volunteers) for _ in range(-(-n_items // n_volunteers))])
        return list(zip(people[:n_items].tolist(), rng.permutation(n_items).tolist(), strict=True))

    def answer(self, volunteer: int, item: int) -> int:
        """See `Source`."""
        rows = self._rows.rows(volunteer)
        if not len(rows):
            who = self._ids[volunteer]
            raise ParameterError(
                f"{who!r} of the simulated crowd has no behaviour, having given no response; simulate a crowd in which "
                "everybody gives at least one."
            )
        confusion = self._truth.confusion[rows[min(self._asked[volunteer], len(rows) - 1)]]
        self._asked[volunteer] += 1
        row = confusion[self._truth.classes[item]]
        row = row + self._truth.difficulty[item] * (confusion.mean(axis=0) - row)
        shared, own = self._truth.shared[self._truth.group[volunteer], item], self._rng.random()
        chance = own if np.isnan(shared) else shared
        return int((chance * row.sum() >= row.cumsum()[:-1]).sum())


class Recorded(Source):
    """Answers that were given."""

    def __init__(self, graph: CrowdGraph) -> None:
        responses = graph.responses
        self.available = graph
        self._labels: dict[tuple[int, int], int] = {}
        rows = zip(responses.volunteer.tolist(), responses.item.tolist(), responses.label.tolist(), strict=True)
        for volunteer, item, label in rows:
            if label >= 0:
                self._labels.setdefault((volunteer, item), label)

    def first(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """See `Source`."""
        pairs = list(self._labels)
        drawn = {pairs[place][1]: pairs[place] for place in rng.permutation(len(pairs))}
        return [drawn[item] for item in rng.permutation(sorted(drawn)).tolist()]

    def answer(self, volunteer: int, item: int) -> int:
        """See `Source`."""
        return self._labels[volunteer, item]
