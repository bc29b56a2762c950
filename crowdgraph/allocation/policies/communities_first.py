"""Communities first: choose which community to ask about an item, then which of its members."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._information_gain import PosteriorTree, Sharing
from crowdgraph.allocation.objective import QuestionValues
from crowdgraph.allocation.policies._lazy_greedy import LazyGreedy
from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._arrays import Array
from crowdgraph.core.communities import Communities
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article

__all__ = ["CommunitiesFirst"]


@dataclass(frozen=True, kw_only=True)
class CommunitiesFirst(Policy):
    """Choose by value which community to ask about which item, as its members answer on average, then one member.

    This is the paper's idea to make the problem smaller: there are far fewer communities than volunteers. The chance
    that a community answers is the mean chance of those of its members who may be asked. Of these members, as long as
    they do not cost more than the community would reveal, the one with most capacity left, times the chance to answer,
    is asked. Volunteers of no community form one of their own.

    Parameters
    ----------
    communities
        The communities, or the name under which the graph carries them; the latest if left out.
    """

    communities: Communities | str | None = None
    name: ClassVar[str] = "communities first"

    def _check_settings(self) -> None:
        if self.communities is not None and not isinstance(self.communities, Communities | str):
            raise ParameterError(
                f"communities= takes Communities or the name of some; got {with_article(type(self.communities))}."
            )

    def _choose(self, problem: Problem, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        communities = problem.graph.resolve_communities(self.communities)
        community = communities.on(problem.graph).assignment[problem.volunteers]
        _, column = np.unique(community, return_inverse=True)
        return _GreedyByCommunity(problem, column).pairs()


class _GreedyByCommunity(LazyGreedy):
    """Lazy greedy choice in which every community is a column; `community` is the column of each volunteer, (M,)."""

    def __init__(self, problem: Problem, community: Array) -> None:
        self._community, self._n_communities = community, int(community.max()) + 1
        self._mean_values = self._averaged(problem.question_values)
        self._free = problem.allowed.copy()
        self._chances = self._mean_chances(problem)
        values = self._mean_values.net_values(self._mean_values.single_gains()) * self._chances
        values[self._chances == 0] = -np.inf
        super().__init__(problem, values)

    @property
    def able(self) -> Array:
        return np.asarray(np.bincount(self._community, weights=self.left, minlength=self._n_communities) > 0)

    def _mean_chances(self, problem: Problem) -> Array:
        """Return the mean chance of an answer over the members who may be asked, of shape (N, C)."""
        chance = np.where(problem.allowed, problem.chance, 0.0)
        sums, counts = (
            np.stack([values[:, self._community == code].sum(axis=1) for code in range(self._n_communities)], axis=1)
            for values in (chance, problem.allowed)
        )
        return np.asarray(sums / np.maximum(counts, 1))

    def _averaged(self, values: QuestionValues) -> QuestionValues:
        """Return the values of asking communities, each as its members are on average."""
        return replace(
            values,
            confusion=np.stack([self._means(confusion) for confusion in values.confusion]),
            growth=self._means(values.growth),
            payment=self._means(values.payment),
            sharing=None if values.sharing is None else self._joint_sharing(values.sharing),
        )

    def _means(self, values: Array) -> Array:
        """Return the means over the members of each community, along the first axis."""
        return np.stack([values[self._community == code].mean(axis=0) for code in range(self._n_communities)])

    def _joint_sharing(self, sharing: Sharing) -> Sharing:
        """Let a community share errors with those with whom all of its members do."""
        sharers = [np.unique(sharing.community[self._community == code]) for code in range(self._n_communities)]
        return Sharing(np.array([codes[0] if len(codes) == 1 else -1 for codes in sharers]), sharing.chance)

    def _volunteer(self, item: int, column: int) -> int:
        value = self._values[item, column] / self._chances[item, column]
        information = value - self._learning_less_cost(self._mean_values, item)[column]
        affordable = information + self._learning_less_cost(self.problem.question_values, item) >= 0
        members = np.flatnonzero((self._community == column) & self._free[item] & (self.left > 0) & affordable)
        if not len(members):
            return -1
        priority = self.left[members] * self.problem.chances(item)[members]
        member = int(members[priority.argmax()])
        self._free[item, member] = False
        return member

    @staticmethod
    def _learning_less_cost(values: QuestionValues, item: int) -> Array:
        """Return the value of questions about an item apart from information about it."""
        return values.net_values(np.zeros(len(values.payment)), item)

    def _values_after(self, item: int, tree: PosteriorTree, volunteer: int) -> Array:  # noqa: ARG002 - others may be
        gains = self._mean_values.marginal_gain(tree, item)
        return np.asarray(self._mean_values.net_values(gains, item) * self._chances[item])
