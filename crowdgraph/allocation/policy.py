"""Policies and assignments: the base class of all policies, the problem that they solve, and what they decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._beliefs import current_beliefs
from crowdgraph.allocation._eligibility import (
    Count,
    answered_pairs,
    capacities,
    check_named,
    codes_of,
    infeasible,
    open_items,
)
from crowdgraph.allocation._information_gain import MAX_STATES, PosteriorTree
from crowdgraph.allocation.availability import Availability
from crowdgraph.allocation.objective import Objective, QuestionValues, question_values
from crowdgraph.allocation.retirement import Retirement
from crowdgraph.core._arrays import Array, ReadOnlyArrays, id_array, lock, object_array, read_only
from crowdgraph.core._html import MAX_ROWS, html_card, html_table
from crowdgraph.core._parameters import Configured, check_instance, check_integer, check_seed
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, check_ids_match, real_array
from crowdgraph.errors import ParameterError, ResultError
from crowdgraph.messages import with_article

__all__ = ["Assignment", "Pair", "Policy", "Problem"]

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignment(ReadOnlyArrays, Tabular):
    """Questions in the order in which they were decided: pairs of a volunteer and an item, with their expected value.

    Attributes
    ----------
    volunteers, items
        Who is asked, and about what, both of shape (A,).
    gain
        How much each label is expected to reveal about its item, in nats, after those decided before it, of shape (A,).
    learning
        How much it is expected to reveal about the volunteer, and to teach them, in nats, of shape (A,).
    cost
        Its cost in nats, never above zero, of shape (A,).
    chance
        The chance that each question is answered, of shape (A,).
    rates
        The value of one nat of information about an item, and of one nat of learning.
    policy
        The name of the policy that decided.
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
        """The value of each label in nats if it is given, of shape (A,): information and learning, less the cost."""
        information, learning = self.rates
        return lock(information * self.gain + learning * self.learning + self.cost)

    @property
    def others(self) -> list[tuple[Hashable, ...]]:
        """Who else is asked about the same item in this assignment, for each question."""
        volunteers_of: dict[Hashable, list[Hashable]] = {}
        for volunteer, item in self:
            volunteers_of.setdefault(item, []).append(volunteer)
        return [tuple(other for other in volunteers_of[item] if other != volunteer) for volunteer, item in self]

    @property
    def already(self) -> Array:
        """How many others were asked about the same item earlier in this assignment, of shape (A,)."""
        n_asked: dict[Hashable, int] = {}
        before = []
        for item in self.items.tolist():
            before.append(n_asked.get(item, 0))
            n_asked[item] = before[-1] + 1
        return lock(np.array(before, dtype=np.int64))

    def _columns(self) -> Columns:
        """Return the audit log: a row for each question, in the order of decisions."""
        names = ("gain", "learning", "cost", "chance", "value", "already")
        return {
            "volunteer": self.volunteers,
            "item": self.items,
            **{name: getattr(self, name) for name in names},
            "others": object_array([", ".join(map(str, others)) for others in self.others]),
            "policy": object_array([self.policy] * len(self)),
        }

    def __repr__(self) -> str:
        n_volunteers, n_items = len(set(self.volunteers.tolist())), len(set(self.items.tolist()))
        return (
            f"Assignment({self.policy}: {len(self):,} questions to {n_volunteers:,} volunteers about {n_items:,} "
            f"items; worth {self.value.sum():.3g} nats)"
        )

    def _repr_html_(self) -> str:
        first = slice(MAX_ROWS)
        columns = {
            "volunteer": list(map(str, self.volunteers[first].tolist())),
            "item": list(map(str, self.items[first].tolist())),
            "value": self.value[first].tolist(),
            "chance of an answer": self.chance[first].tolist(),
        }
        caption = f"the first {MAX_ROWS} of {len(self):,} questions" if len(self) > MAX_ROWS else ""
        summary = repr(self).removeprefix("Assignment(").removesuffix(")")
        return html_card("Assignment", summary, html_table(columns, caption=caption))


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """One allocation problem, in positions among the volunteers (M) and items (N) that take part.

    Attributes
    ----------
    graph, volunteers, items
        The graph, and the codes of the volunteers and items that take part, of shapes (M,) and (N,).
    question_values
        The expected value of questions.
    allowed
        Which volunteer may be asked about which item, of shape (N, M): nobody who has answered it.
    chance
        The chance that each question is answered, of shape (N, M) or (1, 1).
    capacity
        How many questions each volunteer may be asked, of shape (M,).
    budget
        How many questions may be asked in all.
    """

    graph: CrowdGraph
    volunteers: Array
    items: Array
    question_values: QuestionValues
    allowed: Array
    chance: Array
    capacity: Array
    budget: int

    def chances(self, item: int) -> Array:
        """Return the chance that each volunteer answers an item, of shape (M,)."""
        return np.asarray(np.broadcast_to(self.chance, self.allowed.shape)[item])

    def first_values(self) -> Array:
        """Return the expected value of each question alone, of shape (N, M); minus infinity where it is not allowed."""
        values = self.question_values.net_values(self.question_values.single_gains())
        values *= self.chance
        values[~self.allowed] = -np.inf
        return values


@dataclass(frozen=True, kw_only=True)
class Policy(Configured, ABC):
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
        objective: Objective = Objective(),  # noqa: B008 - it cannot be changed
        fit: ModelFit | str | None = None,
        seed: int | None = None,
    ) -> Assignment:
        """Decide who is asked about what next. Nobody is asked again about an item that they have answered.

        Parameters
        ----------
        graph
            The graph, annotated with a fit that has confusion matrices.
        budget
            How many questions to ask; fewer are asked if there are not as many to ask.
        volunteers, items
            Who is available, and which items to ask about; all if left out.
        capacity
            How many questions each volunteer may be asked: one number for all, or by volunteer (others get none).
        load
            How many responses each volunteer may give in all, including those in the graph, likewise; no limit if left
            out.
        retired
            Items that are not asked about any more, or the rule that retires them:
            ``allocation.Retirement(threshold=0.99)``.
        available
            How likely volunteers are to answer items, from `allocation.availability`; or a graph with the same
            volunteers and items: only those who answered an item there are asked about it.
        objective
            The value of a question, in nats. All policies report it; those that look for value decide by it.
        fit
            The fit, or the name under which the graph carries it; the latest if left out.
        seed
            For policies that draw: the same seed gives the same assignment.
        """
        beliefs = current_beliefs(graph, fit)
        check_integer("budget", budget, minimum=0)
        check_seed(seed)
        check_instance("objective", objective, Objective, expected="an Objective")
        if isinstance(retired, Retirement):
            retired = retired.retired_items(graph, beliefs.item_probs)
        volunteer_codes = codes_of(graph.volunteers.table, volunteers, "volunteers")
        item_codes = open_items(graph, items, retired)
        allowed, chance = _allowed_questions(graph, available, volunteer_codes, item_codes)
        limits = capacities(graph, volunteer_codes, capacity=capacity, load=load)
        if volunteers is not None and budget:
            check_named(graph.volunteers.ids[volunteer_codes], allowed, limits)
        problem = Problem(
            graph=graph,
            volunteers=volunteer_codes,
            items=item_codes,
            question_values=question_values(graph, beliefs, objective, volunteers=volunteer_codes, items=item_codes),
            allowed=allowed,
            chance=chance,
            capacity=limits,
            budget=int(budget),
        )
        pairs = self._choose(problem, np.random.default_rng(seed)) if allowed[:, limits > 0].any() else []
        if budget and not pairs:
            raise infeasible(allowed, limits)
        self._check_limits(problem, pairs)
        return self._assignment(problem, pairs)

    @abstractmethod
    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:
        """Return pairs of positions of items and volunteers, in the order of decisions, within all limits."""

    def _check_limits(self, problem: Problem, pairs: list[Pair]) -> None:
        """Raise if a policy asks more than it may."""
        items, volunteers = _pair_columns(pairs)
        loads = np.bincount(volunteers, minlength=len(problem.capacity))
        wrong = ""
        if len(pairs) > problem.budget:
            wrong = f"asks {len(pairs):,} questions with a budget of {problem.budget:,}"
        elif (loads > problem.capacity).any():
            worst = int((loads - problem.capacity).argmax())
            who = problem.graph.volunteers.ids[problem.volunteers[worst]]
            wrong = f"asks {who!r} {loads[worst]:,} questions, who may get {problem.capacity[worst]:,}"
        elif not problem.allowed[items, volunteers].all():
            wrong = "asks somebody about an item that they may not be asked about"
        if wrong:
            raise ResultError(f"The policy {self.name!r} {wrong}; its _choose must respect the limits of the problem.")

    def _assignment(self, problem: Problem, pairs: list[Pair]) -> Assignment:
        """Return the assignment with the expected value of each question after those before it."""
        values, trees = problem.question_values, dict[int, PosteriorTree]()
        items, volunteers = _pair_columns(pairs)
        gains = values.pair_gains(items, volunteers)
        for index in np.flatnonzero(np.bincount(items, minlength=len(problem.items))[items] > 1):
            item, volunteer = pairs[index]
            tree = trees.setdefault(item, values.posterior_tree(item, max_states=MAX_STATES))
            before = tree.gain.nats
            values.add_label(tree, item, volunteer)
            gains[index] = tree.gain.nats - before
        return Assignment(
            volunteers=problem.graph.volunteers.ids[problem.volunteers[volunteers]],
            items=problem.graph.items.ids[problem.items[items]],
            gain=gains,
            learning=values.learning(items, volunteers),
            cost=values.costs(items, volunteers),
            chance=np.broadcast_to(problem.chance, problem.allowed.shape)[items, volunteers],
            rates=(values.objective.information, values.objective.learning),
            policy=self.name,
        )


def _pair_columns(pairs: list[Pair]) -> tuple[Array, Array]:
    """Return the items and the volunteers of pairs."""
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _allowed_questions(
    graph: CrowdGraph, available: CrowdGraph | Availability | None, volunteers: Array, items: Array
) -> tuple[Array, Array]:
    """Return who may be asked about what, of shape (N, M), and the chances of an answer, likewise or (1, 1)."""
    allowed, certain = ~answered_pairs(graph, volunteers, items), np.ones((1, 1))
    if available is None:
        return allowed, certain
    if isinstance(available, Availability):
        chance = available.chance(volunteers=graph.volunteers.ids[volunteers], items=graph.items.ids[items])
        return allowed & (chance > 0), chance
    if not isinstance(available, CrowdGraph):
        raise ParameterError(f"available= takes an Availability or a CrowdGraph; got {with_article(type(available))}.")
    for kind in ("volunteer", "item"):
        check_ids_match("The graph of available=", available._table(kind).ids, graph._table(kind))
    return allowed & answered_pairs(available, volunteers, items), certain
