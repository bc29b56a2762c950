"""What a graph carries that a page can tell of."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import Result

# A table holds at most so many rows, and a part of the page about so many numbers: some megabytes in all.
MOST_ROWS = 20_000
MOST_NUMBERS = 600_000
# An item is settled if its most probable class is at least this probable.
SETTLED_PROBABILITY = 0.9
# The method of networks of those who work on the same items.
TASK_METHOD = "task_cooccurrence"

Kind = TypeVar("Kind", bound=Result)
Right = dict[Hashable, list[Hashable]]


@dataclass(frozen=True)
class GraphResults:
    """The latest result of each kind that a graph carries."""

    graph: CrowdGraph

    def all_of(self, kind: type[Kind]) -> dict[str, Kind]:
        """The results of a kind by name, in the order in which the graph was annotated."""
        return {name: result for name, result in self.graph.annotations.items() if isinstance(result, kind)}

    def latest(self, kind: type[Kind]) -> Kind | None:
        """The latest result of a kind."""
        return next(reversed(self.all_of(kind).values()), None)

    @property
    def fit(self) -> ModelFit | None:
        """The fit that tells the classes of the items."""
        return self.latest(ModelFit)

    @property
    def communities(self) -> Communities | None:
        """The communities that give volunteers their colours: those of who behaves alike."""
        alike = [found for name, found in self.all_of(Communities).items() if not self._of_tasks(name, found)]
        return alike[-1] if alike else None

    @property
    def groups(self) -> Communities | None:
        """The same, if there are several: one community is the whole crowd, and nobody's group."""
        return self.communities if self.communities is not None and len(self.communities) > 1 else None

    @property
    def task_communities(self) -> Communities | None:
        """The communities of those who work on the same items."""
        found = [found for name, found in self.all_of(Communities).items() if self._of_tasks(name, found)]
        return found[-1] if found else None

    @property
    def community_track(self) -> CommunityTrack | None:
        """The communities over time."""
        return self.latest(CommunityTrack)

    @property
    def networks(self) -> dict[str, VolunteerNetwork]:
        """The networks of volunteers."""
        return self.all_of(VolunteerNetwork)

    @cached_property
    def skilled(self) -> tuple[ConfusionTrack, ModelFit | None] | None:
        """The latest confusion matrices, and the fit that they are part of, if they are."""
        for result in reversed([*self.graph.annotations.values()]):
            if isinstance(result, ConfusionTrack):
                return result, None
            if isinstance(result, ModelFit) and result.confusion is not None:
                return result.confusion, result
        return None

    @property
    def confusion(self) -> ConfusionTrack | None:
        """The latest confusion matrices."""
        return None if self.skilled is None else self.skilled[0]

    @cached_property
    def snapshot(self) -> ConfusionSnapshot | None:
        """The confusion of all volunteers after their last response."""
        return None if self.confusion is None else self.confusion.latest()

    @property
    def class_probs(self) -> Array:
        """How often each class occurs, as far as that is known."""
        fit = self.fit if self.skilled is None or self.skilled[1] is None else self.skilled[1]
        n_classes = len(self.graph.classes)
        return np.full(n_classes, 1 / n_classes) if fit is None else fit.class_probs

    @cached_property
    def right(self) -> tuple[Right, str]:
        """The labels that are right for each class, and how that is known: ``votes``, ``names`` or ``crowd``."""
        graph = self.graph
        votes = None if self.skilled is None or self.skilled[1] is None else self.skilled[1].params.get("votes")
        if votes:
            spoken = {name: [label for label in graph.labels if votes.get(label) == name] for name in graph.classes}
            return spoken, "votes"
        if set(graph.classes) <= set(graph.labels):
            return {name: [name] for name in graph.classes}, "names"
        return self._read_off(), "crowd"

    def _of_tasks(self, name: str, found: Communities) -> bool:
        """Whether communities are of those who work on the same items, by their name or by whom they are of.

        Communities do not tell the network that they were found in.
        """
        networks = [network for network in self.networks.values() if network.method == TASK_METHOD]
        same = any(network.ids.tolist() == found.ids.tolist() for network in networks)
        return "task" in name.lower() or (found.confusion is None and same)

    def _read_off(self) -> Right:
        """Each label is right for the class that makes it most probable in the crowd's mean."""
        snapshot, graph = self.snapshot, self.graph
        if snapshot is None:
            return {name: [] for name in graph.classes}
        target = np.average(snapshot.mean, axis=0, weights=graph.volunteers.n_responses + 1e-9).argmax(axis=0)
        return {
            name: [label for label, code in zip(graph.labels, target, strict=True) if code == place]
            for place, name in enumerate(graph.classes)
        }


def most_active(n_responses: Array, most: int) -> Array:
    """The codes of the nodes with the most responses, at most so many, the most active first."""
    return np.argsort(-n_responses, kind="stable")[:most]


def numbers(values: ArrayLike, digits: int = 4) -> Any:
    """An array as nested lists of rounded numbers; None for what is not a number."""
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return array.tolist()
    rounded = array.round(digits)
    finite = np.isfinite(rounded)
    if finite.all():
        return rounded.tolist()
    told = rounded.astype(object)
    told[~finite] = None
    return told.tolist()


def texts(values: Any) -> list[str]:
    """Ids, classes or labels as texts."""
    return [str(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
