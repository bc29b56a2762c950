"""What every policy has in common: settings as fields, and one verb, `assign`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation.beliefs import Beliefs, believed
from crowdgraph.allocation.gain import ENOUGH_STATES, Knowledge
from crowdgraph.allocation.value import row_information
from crowdgraph.core.assignment import Assignment
from crowdgraph.core.columns import Array
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import check_same_ids
from crowdgraph.core.settings import check_seed, check_whole
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ParameterError

__all__ = ["Policy", "Round"]

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Round:
    """One round of giving out tasks, in places of the volunteers (M) and items (N) that take part.

    Attributes
    ----------
    graph, volunteers, items
        The graph, and the codes of who and what takes part, of shapes (M,) and (N,).
    probs, confusion
        What is believed: class probabilities, of shape (N, J), and confusion, (M, J, L).
    open
        Which volunteer may be asked about which item, of shape (N, M): not those who answered it.
    capacity
        How many items each volunteer may be asked about, of shape (M,).
    budget
        How many questions may be asked in all.
    """

    graph: CrowdGraph
    volunteers: Array
    items: Array
    probs: Array
    confusion: Array
    open: Array
    capacity: Array
    budget: int


@dataclass(frozen=True, kw_only=True)
class Policy(ABC):
    """A way to decide who is asked about what next.

    A policy is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a `name`
    and implement `_choose`.
    """

    name: ClassVar[str]

    def assign(
        self,
        graph: CrowdGraph,
        *,
        budget: int,
        volunteers: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
        capacity: int | Mapping[Hashable, int] = 1,
        available: CrowdGraph | None = None,
        fit: ModelFit | str | None = None,
        seed: int | None = None,
    ) -> Assignment:
        """Decide who is asked about what next. Nobody is asked again about an item that they have answered.

        Parameters
        ----------
        graph
            The graph, annotated with a fit that has confusion matrices.
        budget
            How many questions may be asked; fewer are if there are not as many to ask.
        volunteers, items
            Who is there, and which items are to be asked about; all if left out.
        capacity
            How many questions each volunteer may be asked: one number for all, or by volunteer (others get none).
        available
            A graph of the same volunteers and items: only those who answered an item there are asked about it.
        fit
            The fit, or the name under which the graph carries it; the latest if left out.
        seed
            For policies that draw: the same seed gives the same assignment.
        """
        beliefs = believed(graph, fit)
        check_whole("budget", budget, least=0)
        check_seed(seed)
        people = _codes(graph.volunteers.table, volunteers)
        things = _codes(graph.items.table, items)
        task = Round(
            graph=graph,
            volunteers=people,
            items=things,
            probs=beliefs.item_probs[things],
            confusion=beliefs.confusion[people],
            open=_open(graph, available, people, things),
            capacity=_capacities(graph, people, capacity),
            budget=int(budget),
        )
        pairs = self._choose(task, np.random.default_rng(seed))
        return _told(self.name, task, beliefs, pairs)

    @abstractmethod
    def _choose(self, task: Round, rng: np.random.Generator) -> list[Pair]:
        """Pairs of places of items and volunteers, in the order of decisions, within all limits of the round."""


def _codes(table: NodeTable, ids: Iterable[Hashable] | None) -> Array:
    if ids is None:
        return np.arange(len(table))
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ParameterError(f"{table.kind}s={ids!r} must be several {table.kind}s, such as [...].")
    codes = np.asarray(table.codes(list(ids)), dtype=np.int64)
    if len(np.unique(codes)) < len(codes):
        raise ParameterError(f"The {table.kind}s name one of them twice; name each once.")
    return codes


def _open(graph: CrowdGraph, available: CrowdGraph | None, people: Array, things: Array) -> Array:
    """Who may be asked about what, of shape (N, M)."""
    allowed = ~_answered(graph, people, things)
    if available is None:
        return allowed
    if not isinstance(available, CrowdGraph):
        raise ParameterError(f"available= takes a CrowdGraph; got a {type(available).__name__}.")
    for kind in ("volunteer", "item"):
        check_same_ids("The graph of available=", available._table(kind).ids, graph._table(kind))
    return allowed & _answered(available, people, things)


def _answered(graph: CrowdGraph, people: Array, things: Array) -> Array:
    """Who has answered what, of shape (N, M)."""
    responses = graph.responses
    places = {kind: np.full(len(nodes), -1) for kind, nodes in (("v", graph.volunteers), ("i", graph.items))}
    places["v"][people], places["i"][things] = np.arange(len(people)), np.arange(len(things))
    answered = responses.label >= 0
    item, volunteer = places["i"][responses.item[answered]], places["v"][responses.volunteer[answered]]
    both = (item >= 0) & (volunteer >= 0)
    found = np.zeros((len(things), len(people)), dtype=bool)
    found[item[both], volunteer[both]] = True
    return found


def _capacities(graph: CrowdGraph, people: Array, capacity: int | Mapping[Hashable, int]) -> Array:
    if isinstance(capacity, Mapping):
        for value in capacity.values():
            check_whole("capacity", value, least=0)
        given = np.zeros(len(graph.volunteers), dtype=np.int64)
        given[graph.volunteers.table.codes(list(capacity))] = list(capacity.values())
        return np.asarray(given[people])
    check_whole("capacity", capacity, least=0)
    return np.full(len(people), int(capacity))


def _told(name: str, task: Round, beliefs: Beliefs, pairs: list[Pair]) -> Assignment:
    """The assignment with what each question is expected to tell, after those before it."""
    known: dict[int, Knowledge] = {}
    gains = []
    for item, volunteer in pairs:
        knowledge = known.setdefault(item, Knowledge(task.probs[item], most_states=ENOUGH_STATES))
        before = knowledge.gain.nats
        knowledge.ask(task.confusion[volunteer])
        gains.append(max(knowledge.gain.nats - before, 0.0))
    things, people = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    rows = row_information(beliefs.concentration[task.volunteers[people]])
    return Assignment(
        volunteers=task.graph.volunteers.ids[task.volunteers[people]],
        items=task.graph.items.ids[task.items[things]],
        gain=np.array(gains, dtype=np.float64),
        learning=(task.probs[things] * rows).sum(axis=1),
        policy=name,
    )
