"""Campaigns: try a policy on a simulated crowd, or on recorded responses as if they had not been given yet."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.allocation._eligibility import codes_of
from crowdgraph.allocation.objective import Objective, amounts
from crowdgraph.allocation.policies.communities_first import CommunitiesFirst
from crowdgraph.allocation.policy import Policy
from crowdgraph.allocation.retirement import Retirement
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock, object_array, read_only
from crowdgraph.core._parameters import check_instance, check_integer, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core.clock import Clock
from crowdgraph.core.communities import Communities
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.core.tables import ResponseTable
from crowdgraph.errors import GoldError, InfeasibleError, ParameterError, ResultError
from crowdgraph.evaluation.scores import calibration_error
from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated

if TYPE_CHECKING:
    from crowdgraph.simulate.crowd import SimulatedCrowd

__all__ = ["CAMPAIGN_COLUMNS", "Campaign", "simulate_campaign"]

# The columns of a campaign: one number for each update.
CAMPAIGN_COLUMNS = ("spent", "accuracy", "log_loss", "calibration", "cost", "n_retired", "retired_error", "seconds")
# Between two updates a volunteer is asked at most this many times their equal share, unless a capacity is given.
MAX_EQUAL_SHARES = 5
# Bins of stated certainty for the calibration error.
N_BINS = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class Campaign(ReadOnlyArrays, Tabular):
    """How right a campaign was after each update, and what it cost.

    Attributes
    ----------
    policy
        The name of the policy that decided who is asked about what.
    spent
        The number of responses at each update, of shape (T,).
    accuracy, log_loss
        The share of items whose most probable class is right, and the mean of minus the log probability of the right
        class, at each update, both of shape (T,).
    calibration
        The expected calibration error: how far stated certainty is from the share that is right, of shape (T,).
    cost
        The cost of the responses so far, in units of payment and effort, of shape (T,).
    n_retired, retired_error
        How many items were retired, and the share of them that retired with a wrong class (NaN if none), of shape (T,).
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
            dtype = np.int64 if name in {"spent", "n_retired"} else None
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), dtype=dtype)))
        lengths = {name: len(getattr(self, name)) for name in CAMPAIGN_COLUMNS}
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A campaign needs one number for each update in every column; got {lengths}.")
        if (np.diff(self.spent) < 0).any():
            raise ResultError("The number of responses spent must not fall from one update to the next.")

    @property
    def gini(self) -> float:
        """How unequally responses are shared among the volunteers: 0 if all gave as many, near 1 if one gave all."""
        loads = np.sort(self.loads.astype(np.float64))
        if not loads.sum():
            return 0.0
        ranks = np.arange(1, len(loads) + 1)
        return float((2 * ranks - len(loads) - 1) @ loads / (len(loads) * loads.sum()))

    def spent_until(self, accuracy: float) -> float:
        """Return the number of responses after which accuracy stays at this level or above; infinity if never."""
        if not 0 <= accuracy <= 1:
            raise ParameterError(f"accuracy={accuracy!r} must be a share from 0 to 1.")
        below = np.flatnonzero(self.accuracy < accuracy)
        first = int(below[-1]) + 1 if len(below) else 0
        return float(self.spent[first]) if first < len(self.spent) else float("inf")

    def _columns(self) -> Columns:
        """Return one row for each update."""
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


def simulate_campaign(
    crowd: SimulatedCrowd,
    policy: Policy,
    *,
    budget: int,
    update_every: int = 100,
    capacity: int | None = None,
    model: Model = Calibrated(),  # noqa: B008 - models cannot be changed
    known_items: Iterable[Hashable] = (),
    retirement: Retirement | None = None,
    objective: Objective = Objective(),  # noqa: B008 - it cannot be changed
    seed: int | None = None,
    progress: bool = False,
) -> Campaign:
    """Try a policy on a simulated crowd, whose volunteers answer by their true confusion.

    The campaign begins with one question about each item, to volunteers drawn at random. Then the policy decides. The
    model is fitted to all responses after every `update_every` of them, or fewer where one round of the policy asks
    fewer (`GreedyValue` asks once about each open item); it sees no gold except that of `known_items`. Nobody is asked
    twice about an item. The k-th answer of a volunteer follows the confusion that the crowd gave them at their k-th
    response, so that drift and learning go on; after the last it stays.

    Parameters
    ----------
    crowd
        The crowd: its volunteers, items, classes and true confusion count; the responses it has are not used.
    policy
        The policy that decides who is asked about what.
    budget
        How many responses there may be, the first ones included.
    update_every
        After how many responses, at most, the model is fitted again.
    capacity
        How many questions a volunteer may be asked between two updates, after the first round; if left out, five times
        their equal share.
    model
        The model that learns from the responses.
    known_items
        Items whose class the model knows from the beginning, such as those labelled by experts; they do not count for
        accuracy.
    retirement
        The rule that retires items; none if left out. A retired item keeps its class. Known items do not retire.
    objective
        The value of questions, and the cost of responses. Shared errors, specialisation or communities of a policy that
        were found in the responses of the entire crowd contain more than the campaign has seen.
    seed
        The same seed gives the same campaign.
    progress
        Whether to show a progress bar.
    """
    if not hasattr(crowd, "truth"):
        raise ParameterError(
            "simulate_campaign takes what simulate.crowd(...) returns, a graph with its truth; got a "
            f"{type(crowd).__name__}.",
            hint="For recorded responses use replay_campaign.",
        )
    setup = CampaignSetup(policy, model, retirement, objective, budget, update_every, capacity)
    check_seed(seed)
    # Answers and decisions draw from separate streams.
    answers, decisions = np.random.default_rng(seed).spawn(2)
    truth = GroundTruth(crowd.graph, crowd.truth.classes, known_items)
    return run_campaign(truth, SimulatedAnswers(crowd, answers), setup, decisions, progress=progress)


@dataclass(frozen=True)
class CampaignSetup:
    """The settings of a campaign, checked: what decides and what learns, and how many responses there may be."""

    policy: Policy
    model: Model
    retirement: Retirement | None
    objective: Objective
    budget: int
    update_every: int
    capacity: int | None

    def __post_init__(self) -> None:
        check_instance("policy", self.policy, Policy, expected="a policy, such as GreedyValue()")
        check_instance("model", self.model, Model, expected="a model, such as Calibrated()")
        check_instance("objective", self.objective, Objective, expected="an objective, such as Objective(cost=0.1)")
        if self.retirement is not None:
            expected = "a retirement rule, such as Retirement(threshold=0.99)"
            check_instance("retirement", self.retirement, Retirement, expected=expected)
        if isinstance(self.policy, CommunitiesFirst) and not isinstance(self.policy.communities, Communities):
            raise ParameterError(
                "A campaign begins without any communities.",
                hint="Give them: CommunitiesFirst(communities=...), such as graph.communities().",
            )
        check_integer("budget", self.budget, minimum=0)
        check_integer("update_every", self.update_every)
        if self.capacity is not None:
            check_integer("capacity", self.capacity)

    def questions_per_volunteer(self, n_volunteers: int) -> int:
        """Return how many questions a volunteer may be asked until the next update."""
        if self.capacity is not None:
            return self.capacity
        return math.ceil(MAX_EQUAL_SHARES * self.update_every / max(n_volunteers, 1))


class GroundTruth:
    """The true classes of the items, and which of them the model knows from the beginning.

    Parameters
    ----------
    graph
        The volunteers and items.
    classes
        The class of each item, of shape (N,); -1 if nobody knows it.
    known_items
        The items whose class the model knows.

    Attributes
    ----------
    graph
        The graph with the gold of the known items only.
    """

    def __init__(self, graph: CrowdGraph, classes: Array, known_items: Iterable[Hashable]) -> None:
        is_known = np.zeros(len(classes), dtype=bool)
        is_known[codes_of(graph.items.table, known_items, "known_items")] = True
        if (classes[is_known] < 0).any():
            raise GoldError(
                "known_items= names items whose class is not known.",
                hint="Give gold for them, or leave them out.",
            )
        self._is_known = is_known
        self._scored = np.flatnonzero((classes >= 0) & ~is_known)
        if not len(self._scored):
            raise GoldError(
                "known_items= names all items with gold, so none is left to measure accuracy on.",
                hint="Leave some out.",
            )
        self._classes = classes[self._scored]
        probs = np.full((len(classes), len(graph.classes)), np.nan)
        probs[is_known] = np.eye(len(graph.classes))[classes[is_known]]
        self.graph = graph.replace(gold=Gold(graph.items.table, graph.classes, probs))

    def graph_of(self, rows: list[tuple[int, int, int]]) -> CrowdGraph:
        """Return the graph of some responses (codes of volunteers, items and labels), in the order given."""
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
        """Return accuracy, log loss and calibration error on the items whose class the model does not know."""
        probs = item_probs[self._scored]
        right = probs[np.arange(len(probs)), self._classes]
        return (
            float((probs.argmax(axis=1) == self._classes).mean()),
            float(-np.log(right.clip(1e-300)).mean()),
            calibration_error(self._classes, probs, n_bins=N_BINS),
        )

    def may_retire(self, graph: CrowdGraph) -> Array:
        """Return which items may retire, of shape (N,): those with answers, except the known ones."""
        return np.asarray((graph.answers.n_by_item > 0) & ~self._is_known)

    def error_rate(self, classes: Array) -> float:
        """Return the share of wrong classes, of shape (N,), where -1 stands for none; NaN if there are none at all."""
        predicted = classes[self._scored] >= 0
        return float((classes[self._scored] != self._classes)[predicted].mean()) if predicted.any() else float("nan")


class RetiredItems:
    """The items that were retired, with the class probabilities that they had then.

    Attributes
    ----------
    classes
        The class with which each item retired, of shape (N,); -1 for those that are open.
    """

    def __init__(self, rule: Retirement | None, truth: GroundTruth) -> None:
        self._rule, self._truth = rule, truth
        shape = (len(truth.graph.items), len(truth.graph.classes))
        self._probs = np.zeros(shape)
        self.classes: Array = np.full(shape[0], -1)

    @property
    def mask(self) -> Array:
        """Which items are retired, of shape (N,)."""
        return np.asarray(self.classes >= 0)

    def update(self, graph: CrowdGraph, item_probs: Array) -> Array:
        """Retire items by the rule, and return the class probabilities of all items, of shape (N, J)."""
        if self._rule is not None:
            newly = self._rule.retired(item_probs) & ~self.mask & self._truth.may_retire(graph)
            self.classes[newly], self._probs[newly] = item_probs[newly].argmax(axis=1), item_probs[newly]
        return np.where(self.mask[:, None], self._probs, item_probs)


class AnswerSource(ABC):
    """Where the answers of a campaign come from."""

    available: CrowdGraph | None = None

    @abstractmethod
    def first_questions(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Return one question about each item, to volunteers drawn at random, as codes of volunteers and items."""

    @abstractmethod
    def answer(self, volunteer: int, item: int) -> int:
        """Return the label that a volunteer gives to an item, all as codes."""


class SimulatedAnswers(AnswerSource):
    """Answers drawn from the true confusion of a simulated crowd."""

    def __init__(self, crowd: SimulatedCrowd, rng: np.random.Generator) -> None:
        self._truth, self._rng = crowd.truth, rng
        self._rows, self._ids = crowd.graph.responses.by_volunteer, crowd.graph.volunteers.ids
        self._n_asked = np.zeros(len(crowd.graph.volunteers), dtype=np.int64)

    def first_questions(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Return one question about each item; everybody is asked as often, or once more."""
        n_volunteers, n_items = len(self._n_asked), len(self._truth.classes)
        volunteers = np.concatenate([rng.permutation(n_volunteers) for _ in range(-(-n_items // n_volunteers))])
        return list(zip(volunteers[:n_items].tolist(), rng.permutation(n_items).tolist(), strict=True))

    def answer(self, volunteer: int, item: int) -> int:
        """Draw the label that a volunteer gives to an item."""
        rows = self._rows.rows(volunteer)
        if not len(rows):
            raise ParameterError(
                f"{self._ids[volunteer]!r} of the simulated crowd gave no response and so has no true confusion.",
                hint="Simulate a crowd in which everybody gives at least one.",
            )
        confusion = self._truth.confusion[rows[min(self._n_asked[volunteer], len(rows) - 1)]]
        self._n_asked[volunteer] += 1
        row = confusion[self._truth.classes[item]]
        row = row + self._truth.difficulty[item] * (confusion.mean(axis=0) - row)
        shared, own = self._truth.shared[self._truth.group[volunteer], item], self._rng.random()
        draw = own if np.isnan(shared) else shared
        return int((draw * row.sum() >= row.cumsum()[:-1]).sum())


def run_campaign(
    truth: GroundTruth, source: AnswerSource, setup: CampaignSetup, rng: np.random.Generator, *, progress: bool
) -> Campaign:
    """Ask, fit, decide and ask again until the budget is spent or there is nothing left to ask."""
    volunteers, items = truth.graph.volunteers, truth.graph.items
    payment = amounts(setup.objective.payment, volunteers.table, "payment")
    effort = amounts(setup.objective.effort, items.table, "effort")
    rows: list[tuple[int, int, int]] = []
    updates: list[tuple[float, ...]] = []
    retired, cost = RetiredItems(setup.retirement, truth), 0.0
    fit, name = None, setup.policy.name
    with progress_bar(f"Campaign, {name}", visible=progress, total=setup.budget, unit="responses") as bar:
        questions = source.first_questions(rng)[: setup.budget]
        while questions:
            rows += [(volunteer, item, source.answer(volunteer, item)) for volunteer, item in questions]
            cost += sum(payment[volunteer] + effort[item] for volunteer, item in questions)
            bar.update(len(questions))
            graph = truth.graph_of(rows)
            fit = setup.model.fit(graph, seed=child_seed(rng), start=fit)
            scores = truth.scores(retired.update(graph, fit.item_probs))
            start = time.perf_counter()
            questions = _next_questions(setup, graph.annotate(fit), source, retired.mask, child_seed(rng))
            seconds = time.perf_counter() - start
            error = truth.error_rate(retired.classes)
            updates.append((len(rows), *scores, cost, retired.mask.sum(), error, seconds))
    columns = np.array(updates, dtype=np.float64).reshape(-1, len(CAMPAIGN_COLUMNS)).T
    return Campaign(
        policy=name,
        loads=np.bincount([row[0] for row in rows], minlength=len(volunteers)),
        retired_items=items.ids[retired.mask],
        **dict(zip(CAMPAIGN_COLUMNS, columns, strict=True)),
    )


def _next_questions(
    setup: CampaignSetup, graph: CrowdGraph, source: AnswerSource, retired: Array, seed: int
) -> list[tuple[int, int]]:
    """Return whom the policy asks about what next, as codes; nothing if there is nothing left to ask."""
    try:
        assignment = setup.policy.assign(
            graph,
            budget=min(setup.update_every, setup.budget - len(graph.responses)),
            capacity=setup.questions_per_volunteer(len(graph.volunteers)),
            retired=graph.items.ids[retired],
            available=source.available,
            objective=setup.objective,
            seed=seed,
        )
    except InfeasibleError:
        return []
    volunteers = graph.volunteers.table.codes(assignment.volunteers)
    items = graph.items.table.codes(assignment.items)
    return list(zip(volunteers.tolist(), items.tolist(), strict=True))
