"""Settling: how many more answers until most items are settled, by simulating how the crowd goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdgraph.allocation._continuation import TINY, ItemKindSource, Reader, draw_dependence
from crowdgraph.allocation._eligibility import answered_pairs
from crowdgraph.core._arrays import Array, ReadOnlyArrays, object_array, read_only
from crowdgraph.core._parameters import check_fraction, check_instance, check_integer, check_seed
from crowdgraph.core._text import quantity
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import ParameterError
from crowdgraph.evaluation.model_checks import SURE_PROBABILITY
from crowdgraph.kernels.item_kinds import DIFFICULTIES, blurred_rows
from crowdgraph.models.calibrated import calibrated_if_possible

__all__ = ["SettlingForecast", "activity", "forecast_settled", "settled_items"]

TARGETS = (0.9, 0.95, 0.99)
# Nobody plans for more than this many further answers about each open item.
MAX_ROUNDS = 60
# In these rounds, and after them rarely, the model judges all answers anew.
LEARNING_ROUNDS = frozenset((1, 2, 3, 5, 8, 13, 21, 34, 55))
# Of more items times volunteers than these, a sample of the items is simulated.
MAX_PAIRS = 2_000_000
# How far a simulated continuation is from how a crowd really goes on, as the standard deviation of a logarithm: 15 %
# of its number of answers, as measured on simulated crowds that went on (tests/science/continuation.py).
DISCREPANCY = 0.15
# Of a crowd with times, those count as active who gave answers in this last part of all answers.
RECENT_SHARE = 0.5


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SettlingForecast(ReadOnlyArrays, Tabular):
    """How many more answers until given shares of the items are settled; a row for each share.

    Attributes
    ----------
    targets
        The shares of the items without gold, of shape (K,).
    median, low, high
        The number of further answers in half of the simulated continuations, and the ends of the interval that holds
        90 % of them, each of shape (K,). Infinity stands for continuations that do not reach the share at all.
    reached
        The share of the simulated continuations that reach each target, of shape (K,).
    n_items, n_settled
        How many items have no gold, and how many of them are settled now.
    exhausted
        Of the items that are not settled at the end of a continuation, the share about which nobody active was left to
        ask, on average.
    is_assumed
        Whether it is assumed, for lack of gold, how much answers about an item depend on each other.
    """

    targets: Array
    median: Array
    low: Array
    high: Array
    reached: Array
    n_items: int
    n_settled: int
    exhausted: float
    is_assumed: bool = False

    def __post_init__(self) -> None:
        for name in ("targets", "median", "low", "high", "reached"):
            object.__setattr__(self, name, read_only(getattr(self, name), dtype=np.float64))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def sentences(self) -> list[str]:
        """The forecast in words, one sentence for each share; the first that is not reached says why."""
        unreached = np.flatnonzero(np.isinf(self.median))
        return [self._sentence(number, explain=number in unreached[:1]) for number in range(len(self))]

    @property
    def advice(self) -> str | None:
        """What may settle more items than answers do, if that is known."""
        if not self.is_assumed or self.n_settled == self.n_items:
            return None
        return (
            "Fewer than ten items with several answers have gold, so it is assumed that answers about an item depend "
            "strongly on each other, and many count for few. Give the true classes of ten such items or more: they "
            "show how it is, and may settle more items than new answers do."
        )

    def _sentence(self, number: int, *, explain: bool) -> str:
        target, median = f"{100 * self.targets[number]:.3g}%", self.median[number]
        low, high = self.low[number], self.high[number]
        if not median:
            return f"{target} of the items are settled already."
        if np.isfinite(median):
            interval = f"between {low:,.0f} and {high:,.0f}"
            if not np.isfinite(high):
                interval = f"{low:,.0f} or more; in {1 - self.reached[number]:.0%} of the simulations they never are"
            return (
                f"{target} of the items are settled after about {quantity(int(median), 'more answer')} (90% interval: "
                f"{interval})."
            )
        chance = f"In {1 - self.reached[number]:.0%} of the simulations the" if self.reached[number] else "The"
        reason = f": {self._obstacle()}" if explain else ""
        return f"{chance} crowd as it is never settles {target} of the items{reason}."

    def _obstacle(self) -> str:
        if self.exhausted > 0.5:
            return "everybody who is active has answered the open items by then, so others would have to be asked"
        even = f"even {MAX_ROUNDS} more answers about each open item leave too many undecided"
        if self.is_assumed:
            return f"{even}, as long as it is assumed that answers depend on each other"
        return f"{even}, since answers about a hard item tell ever less; an expert would have to decide"

    def _columns(self) -> Columns:
        names = ("median", "low", "high")
        return {
            "target": self.targets,
            **{name: object_array(_integer_or_none(value) for value in getattr(self, name)) for name in names},
            "reached": self.reached,
            "words": object_array(self.sentences),
        }

    def __repr__(self) -> str:
        head = f"SettlingForecast: {self.n_settled:,} of {quantity(self.n_items, 'item')} are settled now"
        return "\n  ".join([head, *self.sentences, *filter(None, [self.advice])])


def _integer_or_none(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None


def settled_items(graph: CrowdGraph, item_probs: Array) -> Array:
    """Return which items are settled, of shape (N,): without gold, and with a class that is at least 0.9 probable."""
    return np.asarray((item_probs.max(axis=1) >= SURE_PROBABILITY) & ~graph.gold.known)


def activity(graph: CrowdGraph) -> Array:
    """Return how many answers each volunteer gave in the last half of all answers, or of all without times, (V,)."""
    volunteer = graph.answers.volunteer
    if graph.responses.clock.kind != "order":
        volunteer = volunteer[int(len(volunteer) * (1 - RECENT_SHARE)) :]
    return np.bincount(volunteer, minlength=len(graph.volunteers))


def forecast_settled(
    graph: CrowdGraph,
    *,
    fit: ModelFit | str | None = None,
    targets: Sequence[float] = TARGETS,
    n_draws: int = 50,
    seed: int | None = None,
) -> SettlingForecast:
    """Forecast how many more answers it takes until given shares of the items are settled.

    An item is settled if its most probable class is at least 0.9 probable. The crowd is continued many times: round
    after round every open item gets one more answer, in random order, from a volunteer who has not answered it, drawn
    in proportion to the answers that they gave of late (in the last half of all answers; without times, at all).

    The answers are drawn by classes and difficulties of the items and by confusion of the volunteers that are
    themselves drawn from what the answers so far say (`crowdgraph.kernels.item_kinds`), once for each continuation. The
    fit reads them as it reads answers now: it discounts them for dependence, of which a later fit may learn
    otherwise, and learns about volunteers from them. A settled item gets no more answers. No simulation is exact, so
    the number of answers of each continuation is multiplied by a random factor of 15 % or so.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    fit
        The fit, or the name under which the graph carries it; the latest if left out. One that is not calibrated is
        calibrated first.
    targets
        The shares of the items without gold that are to be settled.
    n_draws
        How many continuations to simulate.
    seed
        The same seed gives the same forecast.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=40, n_items=100, n_responses=600, gold=0.3, seed=0).graph
    >>> graph = graph.annotate(cg.Calibrated().fit(graph))
    >>> forecast = forecast_settled(graph, seed=0)
    >>> bool(0 < forecast.low[0] <= forecast.median[0] <= forecast.high[0])
    True
    """
    check_instance("graph", graph, CrowdGraph)
    fit = calibrated_if_possible(graph.resolve_fit(fit, needs="confusion"), graph)
    check_integer("n_draws", n_draws)
    check_seed(seed)
    if not isinstance(targets, Sequence):
        raise ParameterError(f"targets={targets!r} must be a list of shares, such as (0.9, 0.95).")
    for target in targets:
        check_fraction("targets", target)
    if graph.gold.known.all():
        raise ParameterError("All items have gold, so there is nothing to settle.")
    rng = np.random.default_rng(seed)
    crowd = _Continuation(graph, fit, rng)
    courses = [crowd.go_on(rng) for _ in range(n_draws)]
    factors = np.exp(DISCREPANCY * rng.standard_normal(n_draws))
    needed = np.array([[crowd.needed(course, target) for target in targets] for course in courses])
    n_items, settled = int((~graph.gold.known).sum()), settled_items(graph, fit.item_probs)
    n_settled = int(settled.sum())
    # Each item that is to settle takes an answer or more, and there are only so many to give.
    fewest = np.maximum(np.ceil(np.array(targets) * n_items - 1e-9) - n_settled, 0)
    needed = np.where(
        np.isfinite(needed), np.clip(np.ceil(needed * factors[:, None]), fewest, crowd.max_answers), needed
    )
    undecided = [course.exhausted for course in courses if not np.isnan(course.exhausted)]
    low, median, high = np.quantile(needed, [0.05, 0.5, 0.95], axis=0, method="closest_observation")
    return SettlingForecast(
        targets=np.array(targets),
        median=median,
        low=low,
        high=high,
        reached=np.isfinite(needed).mean(axis=0),
        n_items=n_items,
        n_settled=n_settled,
        exhausted=float(np.mean(undecided)) if undecided else 0.0,
        is_assumed=fit.dependence is not None and fit.dependence.source == "assumed",
    )


class _Course(NamedTuple):
    """How a continuation goes: the answers given and the items settled after each round, of shape (rounds + 1,)."""

    n_answers: Array
    n_settled: Array
    exhausted: float

    def needed(self, n_settled: int) -> float:
        """Return after how many answers so many items are settled, in even steps within a round."""
        reached = np.flatnonzero(self.n_settled >= n_settled)
        if not len(reached):
            return float("inf")
        end = int(reached[0])
        if not end:
            return 0.0
        before, after = self.n_settled[end - 1], self.n_settled[end]
        part = (n_settled - before) / (after - before)
        return float(np.ceil(self.n_answers[end - 1] + part * (self.n_answers[end] - self.n_answers[end - 1])))


class _Continuation:
    """A crowd that can be continued: its items, its active volunteers, and what is known of both.

    Parameters
    ----------
    graph, fit
        The graph, and its fit.
    rng
        Draws which items are simulated where there are very many.
    """

    def __init__(self, graph: CrowdGraph, fit: ModelFit, rng: np.random.Generator) -> None:
        self._fit, weights = fit, activity(graph)
        self._volunteers = np.flatnonzero(weights)
        self._weights = weights[self._volunteers].astype(np.float32)
        items = np.flatnonzero(~graph.gold.known)
        most = max(MAX_PAIRS // max(len(self._volunteers), 1), 1)
        self.share = min(most / len(items), 1.0)
        self._items = np.sort(rng.choice(items, most, replace=False)) if self.share < 1 else items
        self._answered = answered_pairs(graph, self._volunteers, self._items)
        self._kinds = ItemKindSource(graph, fit)
        self._reader = Reader(graph, fit, self._items, share=self.share)
        is_open = self._reader.certainty() < SURE_PROBABILITY
        n_left = np.minimum((~self._answered[is_open]).sum(axis=1), MAX_ROUNDS)
        self.max_answers = float(np.ceil(n_left.sum() / self.share))

    def needed(self, course: _Course, target: float) -> float:
        """Return after how many answers a share of the items is settled."""
        return float(np.ceil(course.needed(int(np.ceil(target * len(self._items) - 1e-9))) / self.share))

    def go_on(self, rng: np.random.Generator) -> _Course:
        """Continue the crowd until all items are settled or nobody is left to ask."""
        order = self._order_of_volunteers(rng)
        rows, kind = self._draw_truth(rng)
        reader = self._reader.copy(rho=draw_dependence(self._fit, rng))
        n_asked = np.zeros(len(self._items), dtype=np.int64)
        settled = reader.certainty() >= SURE_PROBABILITY
        course = [(0, int(settled.sum()))]
        left = np.ones(len(self._items), dtype=bool)
        for number in range(1, MAX_ROUNDS + 1):
            left = order[np.arange(len(order)), np.minimum(n_asked, order.shape[1] - 1)] >= 0
            left &= n_asked < order.shape[1]
            asked = np.flatnonzero(~settled & left)
            if not len(asked):
                break
            who = order[asked, n_asked[asked]]
            reader.add(asked, self._volunteers[who], _draw(rows[who], kind[asked], rng))
            n_asked[asked] += 1
            if number in LEARNING_ROUNDS:
                reader.learn()
            settled = reader.certainty() >= SURE_PROBABILITY
            course.append((course[-1][0] + len(asked), int(settled.sum())))
        n_answers, n_settled = np.array(course).T
        n_open = int((~settled).sum())
        return _Course(n_answers, n_settled, float((~settled & ~left).sum() / n_open) if n_open else np.nan)

    def _order_of_volunteers(self, rng: np.random.Generator) -> Array:
        """Draw in which order volunteers answer each item, of shape (M, rounds), as positions; -1 if nobody is left.

        The least of exponential times with the weights as rates is a draw in proportion to the weights, the next that
        of the others, and so on.
        """
        n_rounds = min(MAX_ROUNDS, len(self._volunteers))
        times = rng.standard_exponential(self._answered.shape, dtype=np.float32) / self._weights
        times[self._answered] = np.inf
        if n_rounds < times.shape[1]:
            order = np.argpartition(times, n_rounds - 1, axis=1)[:, :n_rounds]
            inner = np.take_along_axis(times, order, axis=1).argsort(axis=1)
            order = np.take_along_axis(order, inner, axis=1)
        else:
            order = times.argsort(axis=1)
        return np.where(np.isinf(np.take_along_axis(times, order, axis=1)), -1, order)

    def _draw_truth(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the rows of the active volunteers, (M, J, L), and the kind of each item: its class and difficulty."""
        kinds = self._kinds.draw(rng)
        gammas = rng.standard_gamma(kinds.concentration[self._volunteers]) + TINY
        probs = kinds.probs[self._items]
        return gammas / gammas.sum(axis=2, keepdims=True), _choose(probs.reshape(len(probs), -1), rng)


def _draw(rows: Array, kind: Array, rng: np.random.Generator) -> Array:
    """Draw a label from the confusion matrix of each answer, (n, J, L), given the kind of its item."""
    j, d = np.divmod(kind, len(DIFFICULTIES))
    chances = blurred_rows(rows, DIFFICULTIES[d][:, None, None])
    return _choose(chances[np.arange(len(rows)), j], rng)


def _choose(chances: Array, rng: np.random.Generator) -> Array:
    """Draw a column of each row in proportion to its values, of shape (n,)."""
    upto = chances.cumsum(axis=1)
    return np.asarray((rng.random(len(chances))[:, None] * upto[:, -1:] >= upto[:, :-1]).sum(axis=1))
