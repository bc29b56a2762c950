"""What every policy has in common: settings as fields, and one verb, `assign`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._beliefs import believed
from crowdgraph.allocation._eligibility import (
    Count,
    answered,
    capacities,
    check_named,
    infeasible,
    open_items,
    some_codes,
)
from crowdgraph.allocation._information_gain import MAX_STATES, PosteriorTree
from crowdgraph.allocation.availability import Availability
from crowdgraph.allocation.objective import Objective, QuestionValues, question_values
from crowdgraph.allocation.retirement import Retirement
from crowdgraph.core._arrays import Array, ReadOnlyArrays, id_array, lock, object_array, read_only
from crowdgraph.core._parameters import check_integer, check_seed
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, check_ids_match, real_array
from crowdgraph.errors import ParameterError, ResultError

__all__ = ["Assignment", "Pair", "Policy", "Problem"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignment(ReadOnlyArrays, Tabular):
    """Pairs of volunteers and items, in the order in which they were decided: who is asked about what, and why.

    Attributes
    ----------
    volunteers, items
        Who is asked, and about what, both of shape (A,).
    gain
        How much each label is expected to tell about its item, in nats, after those decided before it, of shape (A,).
    learning
        How much it is expected to tell about the volunteer, and to teach, in nats, of shape (A,).
    cost
        What it costs, in nats, never above zero, of shape (A,).
    chance
        How likely each question is to be answered, of shape (A,).
    rates
        How many nats what is told of the item, and what is learned, are worth.
    policy
        What decided.
    """

    volunteers: Array
    items: Array
    gain: Array
    learning: Array
    cost: Array
    chance: Array
    rates: tuple[float, float]
    policy: str

    def __post_init__(self) -> None:
        volunteers, items = id_array(self.volunteers), id_array(self.items)
        if len(volunteers) != len(items):
            raise ResultError(f"An assignment pairs {len(volunteers):,} volunteers with {len(items):,} items.")
        if len(set(zip(volunteers.tolist(), items.tolist(), strict=True))) < len(volunteers):
            raise ResultError("An assignment asks somebody twice about the same item.")
        for name, value in (("volunteers", volunteers), ("items", items)):
            object.__setattr__(self, name, read_only(value))
        for name in ("gain", "learning", "cost", "chance"):
            checked = real_array(name, getattr(self, name), shape=(len(volunteers),))
            object.__setattr__(self, name, checked)

    def __len__(self) -> int:
        return len(self.volunteers)

    def __iter__(self) -> Iterator[tuple[Hashable, Hashable]]:
        return iter(zip(self.volunteers.tolist(), self.items.tolist(), strict=True))

    @property
    def value(self) -> Array:
        """What each label is worth if it is given, in nats, of shape (A,): what it tells and teaches, less its cost."""
        information, learning = self.rates
        return lock(information * self.gain + learning * self.learning + self.cost)

    @property
    def others(self) -> list[tuple[Hashable, ...]]:
        """Who else is asked about the same item in this assignment, for each question."""
        asked: dict[Hashable, list[Hashable]] = {}
        for volunteer, item in self:
            asked.setdefault(item, []).append(volunteer)
        return [tuple(other for other in asked[item] if other != volunteer) for volunteer, item in self]

    @property
    def already(self) -> Array:
        """How many others had been asked about the same item in this assignment before, of shape (A,)."""
        seen: dict[Hashable, int] = {}
        before = []
        for item in self.items.tolist():
            before.append(seen.get(item, 0))
            seen[item] = before[-1] + 1
        return lock(np.array(before, dtype=np.int64))

    def _columns(self) -> Columns:
        """The audit log: a row for each question, in the order of decisions."""
        names = ("gain", "learning", "cost", "chance", "value", "already")
        return {
            "volunteer": self.volunteers,
            "item": self.items,
            **{name: getattr(self, name) for name in names},
            "others": object_array([", ".join(map(str, others)) for others in self.others]),
            "policy": object_array([self.policy] * len(self)),
        }

    def __repr__(self) -> str:
        people, things = len(set(self.volunteers.tolist())), len(set(self.items.tolist()))
        return (
            f"Assignment({self.policy}: {len(self):,} questions to {people:,} volunteers about {things:,} items; "
            f"worth {self.value.sum():.3g} nats)"
        )


Pair = tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """One round of giving out tasks, in places of the volunteers (M) and items (N) that take part.

    Attributes
    ----------
    graph, volunteers, items
        The graph, and the codes of who and what takes part, of shapes (M,) and (N,).
    outlook
        What is believed, and what questions are worth.
    open
        Which volunteer may be asked about which item, of shape (N, M): not those who answered it.
    chance
        How likely each question is to be answered, of shape (N, M) or (1, 1).
    capacity
        How many items each volunteer may be asked about, of shape (M,).
    budget
        How many questions may be asked in all.
    """

    graph: CrowdGraph
    volunteers: Array
    items: Array
    question_values: QuestionValues
    open: Array
    chance: Array
    capacity: Array
    budget: int

    def chances(self, item: int) -> Array:
        """How likely each volunteer is to answer an item, of shape (M,)."""
        return np.asarray(np.broadcast_to(self.chance, self.open.shape)[item])

    def first_values(self) -> Array:
        """What each question alone is expected to be worth, of shape (N, M); minus infinity if it may not be asked."""
        values = self.question_values.values(self.question_values.first())
        values *= self.chance
        values[~self.open] = -np.inf
        return values


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
        capacity: Count = 1,
        load: Count | None = None,
        retired: Iterable[Hashable] | Retirement = (),
        available: CrowdGraph | Availability | None = None,
        worth: Objective = Objective(),  # noqa: B008 - it cannot be changed
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
        load
            How many responses each volunteer may give in all, those of the graph included, likewise; without limit if
            left out.
        retired
            Items that are asked about no more, or the rule that tells: ``allocation.Retirement(threshold=0.99)``.
        available
            Who is likely to answer what, from `allocation.availability`; or a graph of the same volunteers and items:
            only those who answered an item there are asked about it.
        worth
            What a question is worth, in nats. All policies tell it; those that look for value decide by it.
        fit
            The fit, or the name under which the graph carries it; the latest if left out.
        seed
            For policies that draw: the same seed gives the same assignment.
        """
        beliefs = believed(graph, fit)
        check_integer("budget", budget, minimum=0)
        check_seed(seed)
        if not isinstance(worth, Objective):
            raise ParameterError(f"worth= takes a Worth; got a {type(worth).__name__}.")
        gone = retired.items(graph, beliefs.item_probs) if isinstance(retired, Retirement) else retired
        people, things = some_codes(graph.volunteers.table, volunteers, "volunteers"), open_items(graph, items, gone)
        may, chance = _available(graph, available, people, things)
        most = capacities(graph, people, capacity=capacity, load=load)
        if volunteers is not None and budget:
            check_named(graph.volunteers.ids[people], may, most)
        task = Problem(
            graph=graph,
            volunteers=people,
            items=things,
            question_values=question_values(graph, beliefs, worth, volunteers=people, items=things),
            open=may,
            chance=chance,
            capacity=most,
            budget=int(budget),
        )
        pairs = self._choose(task, np.random.default_rng(seed)) if may[:, most > 0].any() else []
        if budget and not pairs:
            raise infeasible(may, most)
        self._check_kept(task, pairs)
        return self._told(task, pairs)

    @abstractmethod
    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:
        """Pairs of places of items and volunteers, in the order of decisions, within all limits of the round."""

    def _check_kept(self, task: Problem, pairs: list[Pair]) -> None:
        """Raise if a policy asks more than it may."""
        things, people = _columns(pairs)
        loads = np.bincount(people, minlength=len(task.capacity))
        wrong = ""
        if len(pairs) > task.budget:
            wrong = f"asks {len(pairs):,} questions with a budget of {task.budget:,}"
        elif (loads > task.capacity).any():
            worst = int((loads - task.capacity).argmax())
            who = task.graph.volunteers.ids[task.volunteers[worst]]
            wrong = f"asks {who!r} {loads[worst]:,} questions, who may get {task.capacity[worst]:,}"
        elif not task.open[things, people].all():
            wrong = "asks somebody about an item that they may not be asked about"
        if wrong:
            raise ResultError(f"The policy {self.name!r} {wrong}; its _choose must keep to the limits of the round.")

    def _told(self, task: Problem, pairs: list[Pair]) -> Assignment:
        """The assignment with what each question is expected to be worth, after those before it."""
        view, known = task.question_values, dict[int, PosteriorTree]()
        things, people = _columns(pairs)
        gains = view.alone(things, people)
        for place in np.flatnonzero(np.bincount(things, minlength=len(task.items))[things] > 1):
            item, volunteer = pairs[place]
            knowledge = known.setdefault(item, view.knowledge(item, max_states=MAX_STATES))
            before = knowledge.gain.nats
            view.ask(knowledge, item, volunteer)
            gains[place] = knowledge.gain.nats - before
        return Assignment(
            volunteers=task.graph.volunteers.ids[task.volunteers[people]],
            items=task.graph.items.ids[task.items[things]],
            gain=gains,
            learning=view.learning(things, people),
            cost=view.costs(things, people),
            chance=np.broadcast_to(task.chance, task.open.shape)[things, people],
            rates=(view.worth.information, view.worth.learning),
            policy=self.name,
        )


def _columns(pairs: list[Pair]) -> tuple[Array, Array]:
    """The items and the volunteers of pairs."""
    places = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _available(
    graph: CrowdGraph, available: CrowdGraph | Availability | None, people: Array, things: Array
) -> tuple[Array, Array]:
    """Who may be asked about what, of shape (N, M), and how likely they are to answer, of the same shape or (1, 1)."""
    allowed, sure = ~answered(graph, people, things), np.ones((1, 1))
    if available is None:
        return allowed, sure
    if isinstance(available, Availability):
        chance = available.chance(volunteers=graph.volunteers.ids[people], items=graph.items.ids[things])
        return allowed & (chance > 0), chance
    if not isinstance(available, CrowdGraph):
        raise ParameterError(f"available= takes an Availability or a CrowdGraph; got a {type(available).__name__}.")
    for kind in ("volunteer", "item"):
        check_ids_match("The graph of available=", available._table(kind).ids, graph._table(kind))
    return allowed & answered(available, people, things), sure
