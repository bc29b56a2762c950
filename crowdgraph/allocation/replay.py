"""Campaigns: policies tried on simulated crowds, or on recorded responses as if they had not been given yet."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.allocation.base import Policy
from crowdgraph.core.campaign import Campaign
from crowdgraph.core.clock import Clock
from crowdgraph.core.columns import Array, sealed
from crowdgraph.core.draws import drawn_seed
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.progress import progress_bar
from crowdgraph.core.settings import check_seed, check_whole
from crowdgraph.core.tables import ResponseTable
from crowdgraph.errors import GoldError, ParameterError
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC

if TYPE_CHECKING:
    from crowdgraph.simulate.crowd import SimulatedCrowd

__all__ = ["offline", "simulate"]

# How many times their equal share volunteers are asked at most between two updates.
FAIR = 5


def simulate(
    crowd: SimulatedCrowd,
    policy: Policy,
    *,
    budget: int,
    update_every: int = 100,
    capacity: int | None = None,
    model: Model = IBCC(),  # noqa: B008 - models cannot be changed
    known: Iterable[Hashable] = (),
    seed: int | None = None,
    progress: bool = False,
) -> Campaign:
    """Try a policy on a simulated crowd, whose volunteers answer as their true behaviour says.

    The campaign begins with one question about each item, to volunteers drawn at random. Then the policy decides, and
    after every `update_every` responses the model is fitted to all of them; it sees no gold but that of `known` items.
    Nobody is asked twice about an item. The k-th answer of a volunteer follows the confusion that the crowd gave them
    at their k-th response, so that drift and learning go on; after the last it stays.

    Parameters
    ----------
    crowd
        The crowd: its volunteers, items, classes and behaviour count; the responses it has are not used.
    policy
        What decides who is asked about what.
    budget
        How many responses there may be, the first ones included.
    update_every
        After how many responses the model is fitted again.
    capacity
        How many questions a volunteer may be asked between two updates; if left out, five times their equal share.
    model
        What learns from the responses.
    known
        Items whose class the model knows from the beginning, such as experts have labelled; they do not count for
        accuracy.
    seed
        The same seed gives the same campaign.
    progress
        Whether to show a progress bar.
    """
    check_seed(seed)
    # Answers and decisions draw from sources of their own.
    answers, decisions = np.random.default_rng(seed).spawn(2)
    return _led(
        Known(crowd.graph, crowd.truth.classes, known),
        Simulated(crowd, answers),
        policy,
        model,
        Pace(budget, update_every, capacity),
        decisions,
        progress=progress,
    )


def offline(
    graph: CrowdGraph,
    policy: Policy,
    *,
    budget: int | None = None,
    update_every: int = 100,
    capacity: int | None = None,
    model: Model = IBCC(),  # noqa: B008 - models cannot be changed
    known: Iterable[Hashable] = (),
    seed: int | None = None,
    progress: bool = False,
) -> Campaign:
    """Try a policy on recorded responses: it may ask whom it likes, among those who really answered the item.

    Otherwise as `simulate`. Accuracy is that among items with gold, which the model does not see except for those in
    `known`. Of several answers of a volunteer to an item the first counts.

    Parameters
    ----------
    graph
        The recorded responses, with gold.
    policy, update_every, capacity, model, known, seed, progress
        As for `simulate`.
    budget
        How many responses may be revealed; all if left out.
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"A policy is tried on a CrowdGraph; got a {type(graph).__name__}.")
    if not graph.gold.known.any():
        raise GoldError("The graph has no gold, so nobody can tell how right a policy is; give some with with_gold.")
    check_seed(seed)
    pace = Pace(len(graph.responses) if budget is None else budget, update_every, capacity)
    facts = Known(graph, graph.gold.codes, known)
    return _led(facts, Recorded(graph), policy, model, pace, np.random.default_rng(seed), progress=progress)


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
        self._rows = crowd.graph._rows_by_volunteer
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
            raise ParameterError("A volunteer of the simulated crowd has no behaviour, having given no response.")
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


class Known:
    """What is true of the items, and what the model knows of it from the beginning.

    Parameters
    ----------
    graph
        The volunteers and items.
    truth
        The class of each item, of shape (N,); -1 if nobody knows it.
    known
        The items whose class the model knows.
    """

    def __init__(self, graph: CrowdGraph, truth: Array, known: Iterable[Hashable]) -> None:
        told = np.zeros(len(truth), dtype=bool)
        told[graph.items.codes(list(known))] = True
        if (truth[told] < 0).any():
            raise GoldError("known= names items whose class is not known; give gold for them, or leave them out.")
        self._scored = np.flatnonzero((truth >= 0) & ~told)
        if not len(self._scored):
            raise GoldError("known= names all items with gold, so none is left to tell how right a policy is.")
        self._right = truth[self._scored]
        probs = np.full((len(truth), len(graph.classes)), np.nan)
        probs[told] = np.eye(len(graph.classes))[truth[told]]
        self.graph = graph._with(gold=Gold(graph.items.table, graph.classes, probs))

    def after(self, rows: list[tuple[int, int, int]]) -> CrowdGraph:
        """The graph of some responses (codes of volunteers, items and labels), in the order of their giving."""
        volunteer, item, label = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        table = ResponseTable(
            volunteer=sealed(volunteer.astype(np.int32)),
            item=sealed(item.astype(np.int32)),
            label=sealed(label.astype(np.int16)),
            time=sealed(np.arange(len(volunteer))),
            clock=Clock("number"),
        )
        return self.graph._with(responses=table)

    def scores(self, item_probs: Array) -> tuple[float, float]:
        """Accuracy and log loss among the items that the model was not told."""
        probs = item_probs[self._scored]
        right = probs[np.arange(len(probs)), self._right]
        return float((probs.argmax(axis=1) == self._right).mean()), float(-np.log(right.clip(1e-300)).mean())


@dataclass(frozen=True)
class Pace:
    """How many responses there may be, how many until the next update, and how many of a volunteer until then."""

    budget: int
    update_every: int
    capacity: int | None

    def __post_init__(self) -> None:
        check_whole("budget", self.budget, least=0)
        check_whole("update_every", self.update_every)
        if self.capacity is not None:
            check_whole("capacity", self.capacity)

    def most(self, n_volunteers: int) -> int:
        """How many questions a volunteer may be asked until the next update."""
        return math.ceil(FAIR * self.update_every / max(n_volunteers, 1)) if self.capacity is None else self.capacity


def _led(
    facts: Known,
    source: Source,
    policy: Policy,
    model: Model,
    pace: Pace,
    rng: np.random.Generator,
    *,
    progress: bool,
) -> Campaign:
    """Ask, learn, decide and ask again until the budget is spent or nobody is left to ask."""
    _check_policy(policy)
    volunteers, items = facts.graph.volunteers, facts.graph.items
    rows: list[tuple[int, int, int]] = []
    figures: list[tuple[float, ...]] = []
    fit = None
    with progress_bar(f"Campaign, {policy.name}", shown=progress, total=pace.budget, unit="responses") as bar:
        asked = source.first(rng)[: pace.budget]
        while asked:
            rows += [(volunteer, item, source.answer(volunteer, item)) for volunteer, item in asked]
            bar.update(len(asked))
            view = facts.after(rows)
            fit = model.fit(view, seed=drawn_seed(rng), start=fit)
            start = time.perf_counter()
            chosen = policy.assign(
                view.annotate(fit),
                budget=min(pace.update_every, pace.budget - len(rows)),
                capacity=pace.most(len(volunteers)),
                available=source.available,
                seed=drawn_seed(rng),
            )
            figures.append((len(rows), *facts.scores(fit.item_probs), time.perf_counter() - start))
            asked = list(zip(volunteers.codes(chosen.volunteers), items.codes(chosen.items), strict=True))
    spent, accuracy, log_loss, seconds = np.array(figures, dtype=np.float64).reshape(-1, 4).T
    return Campaign(
        policy=policy.name,
        spent=spent.astype(np.int64),
        accuracy=accuracy,
        log_loss=log_loss,
        seconds=seconds,
        loads=np.bincount([row[0] for row in rows], minlength=len(volunteers)),
    )


def _check_policy(policy: object) -> None:
    if not isinstance(policy, Policy):
        raise ParameterError(f"policy= takes a policy, such as GreedyInformation(); got a {type(policy).__name__}.")
