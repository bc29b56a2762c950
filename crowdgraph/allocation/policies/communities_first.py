"""Communities first: choose which kind of volunteers to ask about an item, then who of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crowdgraph.allocation._beliefs import found_communities
from crowdgraph.allocation._information_gain import PosteriorTree, Sharing
from crowdgraph.allocation.objective import QuestionValues
from crowdgraph.allocation.policies._lazy_greedy import Queue
from crowdgraph.allocation.policy import Pair, Policy, Problem
from crowdgraph.core._arrays import Array
from crowdgraph.core.communities import Communities
from crowdgraph.errors import ParameterError

__all__ = ["CommunitiesFirst"]


@dataclass(frozen=True, kw_only=True)
class CommunitiesFirst(Policy):
    """Choose by value which community to ask about which item, as its members do on average, then one of its members.

    This is the paper's idea to make the problem smaller: there are far fewer communities than volunteers. A community
    is as likely to answer as those of its members who may be asked are on average. Of these members, if they do not
    cost more than the community would tell, the one with most capacity left, times the chance to answer, is asked.
    Volunteers of no community are taken for one of their own.

    Parameters
    ----------
    communities
        The communities, or the name under which the graph carries them; the latest if left out.
    """

    communities: Communities | str | None = None
    name: ClassVar[str] = "communities first"

    def __post_init__(self) -> None:
        if self.communities is not None and not isinstance(self.communities, Communities | str):
            raise ParameterError(
                f"communities= takes Communities or the name of some; got a {type(self.communities).__name__}."
            )

    def _choose(self, task: Problem, rng: np.random.Generator) -> list[Pair]:  # noqa: ARG002 - nothing is drawn
        groups = found_communities(task.graph, self.communities, network="pi_similarity")
        community = groups.assigned(task.graph)[task.volunteers]
        _, member = np.unique(community, return_inverse=True)
        return Groups(task, member).pairs()


class Groups(Queue):
    """A queue of communities, each standing for its members, of whom `member` tells the community, of shape (M,)."""

    def __init__(self, task: Problem, member: Array) -> None:
        self._community, self._size = member, int(member.max()) + 1
        self._prototypes = self._averaged(task.question_values)
        self._free = task.open.copy()
        self._chances = self._likely(task)
        values = self._prototypes.values(self._prototypes.first()) * self._chances
        values[self._chances == 0] = -np.inf
        super().__init__(task, values)

    @property
    def able(self) -> Array:
        """See `Queue`."""
        return np.asarray(np.bincount(self._community, weights=self.left, minlength=self._size) > 0)

    def _likely(self, task: Problem) -> Array:
        """How likely the members of each community who may be asked are to answer, on average, of shape (N, C)."""
        chance = np.where(task.open, task.chance, 0.0)
        sums, counts = (
            np.stack([what[:, self._community == one].sum(axis=1) for one in range(self._size)], axis=1)
            for what in (chance, task.open)
        )
        return np.asarray(sums / np.maximum(counts, 1))

    def _averaged(self, view: QuestionValues) -> QuestionValues:
        """The outlook of asking communities, each as its members are on average."""
        return replace(
            view,
            confusion=np.stack([self._means(confusion) for confusion in view.confusion]),
            growth=self._means(view.growth),
            payment=self._means(view.payment),
            sharing=None if view.sharing is None else self._shared(view.sharing),
        )

    def _means(self, values: Array) -> Array:
        """The means over the members of each community, along the first axis."""
        return np.stack([values[self._community == one].mean(axis=0) for one in range(self._size)])

    def _shared(self, sharing: Sharing) -> Sharing:
        """With whom each community errs together: those with whom all of its members do."""
        theirs = [np.unique(sharing.community[self._community == one]) for one in range(self._size)]
        return Sharing(np.array([one[0] if len(one) == 1 else -1 for one in theirs]), sharing.chance)

    def _member(self, item: int, column: int) -> int:
        told = self._values[item, column] / self._chances[item, column]
        worth = told - self._apart(self._prototypes, item)[column]
        paid = worth + self._apart(self.task.question_values, item) >= 0
        members = np.flatnonzero((self._community == column) & self._free[item] & (self.left > 0) & paid)
        if not len(members):
            return -1
        likely = self.left[members] * self.task.chances(item)[members]
        chosen = int(members[likely.argmax()])
        self._free[item, chosen] = False
        return chosen

    @staticmethod
    def _apart(view: QuestionValues, item: int) -> Array:
        """What questions about an item are worth apart from what they tell of it: learning, less cost."""
        return view.values(np.zeros(len(view.payment)), item)

    def _again(self, item: int, known: PosteriorTree, volunteer: int) -> Array:  # noqa: ARG002 - others like them may be
        values = self._prototypes.values(self._prototypes.further(known, item), item)
        return np.asarray(values * self._chances[item])
