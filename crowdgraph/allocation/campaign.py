"""Where the answers of a campaign come from: a simulated crowd, or what was recorded."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.allocation._eligibility import some_codes
from crowdgraph.allocation.objective import Objective, amounts
from crowdgraph.allocation.policies.communities_first import CommunitiesFirst
from crowdgraph.allocation.policy import Policy
from crowdgraph.allocation.retirement import Retirement, are_answered
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock, object_array, read_only
from crowdgraph.core._parameters import check_integer, check_seed, child_seed, progress_bar
from crowdgraph.core.clock import Clock
from crowdgraph.core.communities import Communities
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.core.tables import ResponseTable
from crowdgraph.errors import GoldError, InfeasibleError, ParameterError, ResultError
from crowdgraph.evaluation.scores import calibration_error
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC

if TYPE_CHECKING:
    from crowdgraph.simulate.crowd import SimulatedCrowd

__all__ = ["CAMPAIGN_COLUMNS", "Campaign", "Recorded", "Simulated", "Source", "offline", "simulate"]

# What is told at each update.
CAMPAIGN_COLUMNS = ("spent", "accuracy", "log_loss", "calibration", "cost", "n_retired", "retired_error", "seconds")


@dataclass(frozen=True, eq=False, kw_only=True)
class Campaign(ReadOnlyArrays, Tabular):
    """What was known after each update of a campaign, beside the truth.

    Attributes
    ----------
    policy
        What decided who is asked about what.
    spent
        How many responses there were at each update, of shape (T,).
    accuracy, log_loss
        The share of items whose most probable class is right, and the mean of minus the log probability of the right
        class, at each update, both of shape (T,).
    calibration
        The expected calibration error: how far stated certainty is from the share that is right, of shape (T,).
    cost
        What the responses so far cost, in units of payment and effort, of shape (T,).
    n_retired, retired_error
        How many items were retired, and the share of them whose settled class is wrong (NaN if none), of shape (T,).
    seconds
        How long each decision took, for all questions until the next update, of shape (T,).
    loads
        How many responses each volunteer gave, of shape (V,).
    retired_items
        The items that were retired in the end.
    """

    policy: str
    spent: Array
    accuracy: Array
    log_loss: Array
    calibration: Array
    cost: Array
    n_retired: Array
    retired_error: Array
    seconds: Array
    loads: Array
    retired_items: Array

    def __post_init__(self) -> None:
        for name in (*CAMPAIGN_COLUMNS, "loads", "retired_items"):
            whole = np.int64 if name in {"spent", "n_retired"} else None
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), dtype=whole)))
        lengths = {name: len(getattr(self, name)) for name in CAMPAIGN_COLUMNS}
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A campaign needs as many figures as updates; got {lengths}.")
        if (np.diff(self.spent) < 0).any():
            raise ResultError("What was spent must not fall from one update to the next.")

    @property
    def gini(self) -> float:
        """How unequally responses are shared among the volunteers: 0 if all gave as many, near 1 if one gave all."""
        loads = np.sort(self.loads.astype(np.float64))
        if not loads.sum():
            return 0.0
        ranks = np.arange(1, len(loads) + 1)
        return float((2 * ranks - len(loads) - 1) @ loads / (len(loads) * loads.sum()))

    def spent_until(self, accuracy: float) -> float:
        """After how many responses accuracy has reached this, and keeps it until the end; infinity if it never does."""
        if not 0 <= accuracy <= 1:
            raise ParameterError(f"accuracy={accuracy!r} must be a share from 0 to 1.")
        below = np.flatnonzero(self.accuracy < accuracy)
        first = int(below[-1]) + 1 if len(below) else 0
        return float(self.spent[first]) if first < len(self.spent) else float("inf")

    def _columns(self) -> Columns:
        """One row for each update."""
        return {
            "policy": object_array([self.policy] * len(self.spent)),
            **{name: getattr(self, name) for name in CAMPAIGN_COLUMNS},
        }

    def __repr__(self) -> str:
        if not len(self.spent):
            return f"Campaign({self.policy}: nothing was asked)"
        retired = f", {self.n_retired[-1]:,} items retired" if self.n_retired[-1] else ""
        return (
            f"Campaign({self.policy}: {self.spent[-1]:,} responses, accuracy {self.accuracy[-1]:.3f}, log loss "
            f"{self.log_loss[-1]:.3f}{retired})"
        )


# How many times their equal share volunteers are asked at most between two updates, and bins of stated certainty.
FAIR, N_BINS = 5, 10


def simulate(
    crowd: SimulatedCrowd,
    policy: Policy,
    *,
    budget: int,
    update_every: int = 100,
    capacity: int | None = None,
    model: Model = IBCC(),  # noqa: B008 - models cannot be changed
    known: Iterable[Hashable] = (),
    retirement: Retirement | None = None,
    worth: Objective = Objective(),  # noqa: B008 - it cannot be changed
    seed: int | None = None,
    progress: bool = False,
) -> Campaign:
    """Try a policy on a simulated crowd, whose volunteers answer as their true behaviour says.

    The campaign begins with one question about each item, to volunteers drawn at random. Then the policy decides, and
    after every `update_every` responses, or fewer where a round asks fewer (`GreedyValue` asks once about each open
    item), the model is fitted to all of them; it sees no gold but that of `known` items.
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
        After how many responses, at the most, the model is fitted again.
    capacity
        How many questions a volunteer may be asked between two updates, after the first round; if left out, five times
        their equal share.
    model
        What learns from the responses.
    known
        Items whose class the model knows from the beginning, such as experts have labelled; they do not count for
        accuracy.
    retirement
        When items are asked about no more; never if left out. The class of a retired item is settled. Known items do
        not retire.
    worth
        What questions are worth, and what responses cost. Shared errors and specialisation that were found in the whole
        crowd, and communities that a policy is given, know more than the campaign has seen.
    seed
        The same seed gives the same campaign.
    progress
        Whether to show a progress bar.
    """
    if not hasattr(crowd, "truth"):
        raise ParameterError(
            f"A policy is simulated on what simulate.crowd(...) gives, a graph with its truth; got a "
            f"{type(crowd).__name__}. For recorded responses use replay.offline."
        )
    rules, pace = Rules(policy, model, retirement, worth), Pace(budget, update_every, capacity)
    check_seed(seed)
    # Answers and decisions draw from sources of their own.
    answers, decisions = np.random.default_rng(seed).spawn(2)
    facts = Known(crowd.graph, crowd.truth.classes, known)
    return _led(facts, Simulated(crowd, answers), rules, pace, decisions, progress=progress)


def offline(
    graph: CrowdGraph,
    policy: Policy,
    *,
    budget: int | None = None,
    update_every: int = 100,
    capacity: int | None = None,
    model: Model = IBCC(),  # noqa: B008 - models cannot be changed
    known: Iterable[Hashable] = (),
    retirement: Retirement | None = None,
    worth: Objective = Objective(),  # noqa: B008 - it cannot be changed
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
    policy, update_every, capacity, model, known, retirement, worth, seed, progress
        As for `simulate`.
    budget
        How many responses may be revealed; all if left out.
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"A policy is tried on a CrowdGraph; got a {type(graph).__name__}.")
    if not (graph.gold.codes >= 0).any():
        raise GoldError(
            "The graph has no gold that is certain, so nobody can tell how right a policy is; give some with with_gold."
        )
    check_seed(seed)
    rules = Rules(policy, model, retirement, worth)
    pace = Pace(len(graph.responses) if budget is None else budget, update_every, capacity)
    facts = Known(graph, graph.gold.codes, known)
    return _led(facts, Recorded(graph), rules, pace, np.random.default_rng(seed), progress=progress)


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
        told[some_codes(graph.items.table, known, "known")] = True
        if (truth[told] < 0).any():
            raise GoldError("known= names items whose class is not known; give gold for them, or leave them out.")
        self._told = told
        self._scored = np.flatnonzero((truth >= 0) & ~told)
        if not len(self._scored):
            raise GoldError("known= names all items with gold, so none is left to tell how right a policy is.")
        self._right = truth[self._scored]
        probs = np.full((len(truth), len(graph.classes)), np.nan)
        probs[told] = np.eye(len(graph.classes))[truth[told]]
        self.graph = graph.replace(gold=Gold(graph.items.table, graph.classes, probs))

    def after(self, rows: list[tuple[int, int, int]]) -> CrowdGraph:
        """The graph of some responses (codes of volunteers, items and labels), in the order of their giving."""
        volunteer, item, label = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        table = ResponseTable(
            volunteer=lock(volunteer.astype(np.int32)),
            item=lock(item.astype(np.int32)),
            label=lock(label.astype(np.int16)),
            time=lock(np.arange(len(volunteer))),
            clock=Clock("number"),
        )
        return self.graph.replace(responses=table)

    def scores(self, item_probs: Array) -> tuple[float, float, float]:
        """Accuracy, log loss and calibration error among the items that the model was not told."""
        probs = item_probs[self._scored]
        right = probs[np.arange(len(probs)), self._right]
        return (
            float((probs.argmax(axis=1) == self._right).mean()),
            float(-np.log(right.clip(1e-300)).mean()),
            calibration_error(self._right, probs, n_bins=N_BINS),
        )

    def may_retire(self, graph: CrowdGraph) -> Array:
        """Which items may retire, of shape (N,): answered ones, and not those that tell how good volunteers are."""
        return np.asarray(are_answered(graph) & ~self._told)

    def wrong(self, classes: Array) -> float:
        """The share of wrong ones among classes that were settled, of shape (N,), -1 for those that were not."""
        settled = classes[self._scored] >= 0
        return float((classes[self._scored] != self._right)[settled].mean()) if settled.any() else float("nan")


@dataclass(frozen=True)
class Pace:
    """How many responses there may be, how many until the next update, and how many of a volunteer until then."""

    budget: int
    update_every: int
    capacity: int | None

    def __post_init__(self) -> None:
        check_integer("budget", self.budget, minimum=0)
        check_integer("update_every", self.update_every)
        if self.capacity is not None:
            check_integer("capacity", self.capacity)

    def most(self, n_volunteers: int) -> int:
        """How many questions a volunteer may be asked until the next update."""
        return math.ceil(FAIR * self.update_every / max(n_volunteers, 1)) if self.capacity is None else self.capacity


@dataclass(frozen=True)
class Rules:
    """What decides and what learns, when items retire, and what questions are worth."""

    policy: Policy
    model: Model
    retirement: Retirement | None
    worth: Objective

    def __post_init__(self) -> None:
        kinds = {
            "policy": (Policy, "GreedyValue()"),
            "model": (Model, "IBCC()"),
            "worth": (Objective, "Worth(cost=0.1)"),
        }
        if self.retirement is not None:
            kinds["retirement"] = (Retirement, "Retirement(threshold=0.99)")
        for name, (kind, example) in kinds.items():
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise ParameterError(f"{name}= takes a {name}, such as {example}; got a {type(given).__name__}.")
        if isinstance(self.policy, CommunitiesFirst) and not isinstance(self.policy.communities, Communities):
            raise ParameterError(
                "A campaign begins without any communities; give them: CommunitiesFirst(communities=...), such as "
                "graph.communities()."
            )


class Settled:
    """The items that were retired, and what was believed of them when they were.

    Attributes
    ----------
    classes
        The class of each item, of shape (N,); -1 for those that are open.
    """

    def __init__(self, rule: Retirement | None, facts: Known) -> None:
        self._rule, self._facts = rule, facts
        shape = (len(facts.graph.items), len(facts.graph.classes))
        self._probs = np.zeros(shape)
        self.classes: Array = np.full(shape[0], -1)

    @property
    def retired(self) -> Array:
        """Which items are retired, of shape (N,)."""
        return np.asarray(self.classes >= 0)

    def settle(self, graph: CrowdGraph, item_probs: Array) -> Array:
        """Retire what the rule says, and tell what is believed of all items, of shape (N, J)."""
        if self._rule is not None:
            newly = self._rule.retired(item_probs) & ~self.retired & self._facts.may_retire(graph)
            self.classes[newly], self._probs[newly] = item_probs[newly].argmax(axis=1), item_probs[newly]
        return np.where(self.retired[:, None], self._probs, item_probs)


def _led(
    facts: Known, source: Source, rules: Rules, pace: Pace, rng: np.random.Generator, *, progress: bool
) -> Campaign:
    """Ask, learn, decide and ask again until the budget is spent or nobody is left to ask."""
    volunteers, items = facts.graph.volunteers, facts.graph.items
    payment = amounts(rules.worth.payment, volunteers.table, "payment")
    effort = amounts(rules.worth.effort, items.table, "effort")
    rows: list[tuple[int, int, int]] = []
    figures: list[tuple[float, ...]] = []
    settled, spent = Settled(rules.retirement, facts), 0.0
    fit, name = None, rules.policy.name
    with progress_bar(f"Campaign, {name}", visible=progress, total=pace.budget, unit="responses") as bar:
        asked = source.first(rng)[: pace.budget]
        while asked:
            rows += [(volunteer, item, source.answer(volunteer, item)) for volunteer, item in asked]
            spent += sum(payment[volunteer] + effort[item] for volunteer, item in asked)
            bar.update(len(asked))
            view = facts.after(rows)
            fit = rules.model.fit(view, seed=child_seed(rng), start=fit)
            scores = facts.scores(settled.settle(view, fit.item_probs))
            start = time.perf_counter()
            asked = _decided(rules, view.annotate(fit), source, pace, settled.retired, child_seed(rng))
            seconds = time.perf_counter() - start
            wrong = facts.wrong(settled.classes)
            figures.append((len(rows), *scores, spent, settled.retired.sum(), wrong, seconds))
    columns = np.array(figures, dtype=np.float64).reshape(-1, len(CAMPAIGN_COLUMNS)).T
    return Campaign(
        policy=name,
        loads=np.bincount([row[0] for row in rows], minlength=len(volunteers)),
        retired_items=items.ids[settled.retired],
        **dict(zip(CAMPAIGN_COLUMNS, columns, strict=True)),
    )


def _decided(
    rules: Rules, graph: CrowdGraph, source: Source, pace: Pace, retired: Array, seed: int
) -> list[tuple[int, int]]:
    """Whom the policy asks about what next, as codes; nobody if nothing is left to ask."""
    try:
        chosen = rules.policy.assign(
            graph,
            budget=min(pace.update_every, pace.budget - len(graph.responses)),
            capacity=pace.most(len(graph.volunteers)),
            retired=graph.items.ids[retired],
            available=source.available,
            worth=rules.worth,
            seed=seed,
        )
    except InfeasibleError:
        return []
    people, things = graph.volunteers.table, graph.items.table
    return list(zip(people.codes(chosen.volunteers).tolist(), things.codes(chosen.items).tolist(), strict=True))


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
        self._rows, self._ids = crowd.graph.responses.by_volunteer, crowd.graph.volunteers.ids
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
