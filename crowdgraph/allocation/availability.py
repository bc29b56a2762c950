r"""Who is likely to be there, and to take and finish which items, from times of activity and task communities.

A horizon is cut into four steps, and so is the time before now. A volunteer is active in a step in which they have a
response, one or many, so that a burst counts once. Of the steps after their first (of which nothing could be forecast),

.. math:: a = \sum_t d^t y_t + c m, \qquad b = \sum_t d^t (1 - y_t) + c (1 - m)

speak for and against being active, where :math:`y_t` is 1 if they were active `t` steps ago and :math:`d` halves what
is as old as the half-life. With a share of active steps that is Beta(a, b), the chance to be active in the horizon is

.. math:: 1 - \prod_{s=0}^{3} \frac{b + s}{a + b + s}.

What a newcomer does on average, :math:`m`, how many steps that is worth, :math:`c`, and, if left open, the half-life
are those that would have forecast best who was active in each of the latest four horizons, from what was known before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaln

from crowdgraph.core._arrays import Array, ReadOnlyArrays
from crowdgraph.core.clock import Moment, length_in_ticks, ticks, ticks_per_second
from crowdgraph.core.communities import Communities, main_community
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ParameterError, ResultError, TimeError

__all__ = ["Availability", "availability"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Availability(ReadOnlyArrays, Tabular):
    """Who is likely to be there within a horizon, and to take and finish which items.

    Attributes
    ----------
    volunteers, items
        The ids of a graph's volunteers and items, of shapes (V,) and (N,).
    active
        The chance that each volunteer is active within the horizon, of shape (V,).
    finishes
        The chance that an item that is shown to the volunteer gets a label and is not rejected, of shape (V,).
    participation
        How much each volunteer belongs to each task community, of shape (V, K). Rows sum to one, or to zero for
        volunteers of none.
    lift
        How much more often than the average item each item is taken by each task community, of shape (N, K).
    horizon, half_life
        How far ahead is looked, and the age at which activity counts half (None: all counts the same), as numbers or
        timedeltas.

    Examples
    --------
    >>> made = Availability(volunteers=["anna", "bert"], items=["x", "y"], active=[0.5, 1.0], finishes=[1.0, 0.8],
    ...                     participation=[[1.0, 0.0], [0.0, 1.0]], lift=[[1.5, 0.5], [1.0, 1.0]], horizon=7)
    >>> made.chance()
    array([[0.5, 0.4],
           [0.5, 0.8]])
    """

    volunteers: Array
    items: Array
    active: Array
    finishes: Array
    participation: Array
    lift: Array
    horizon: float | dt.timedelta
    half_life: float | dt.timedelta | None = None

    def __post_init__(self) -> None:
        volunteers, items = (unique_ids(getattr(self, f"{kind}s"), kind=kind) for kind in ("volunteer", "item"))
        participation = real_array("participation", self.participation, shape=(len(volunteers), None))
        checked = {
            "volunteers": volunteers,
            "items": items,
            "participation": participation,
            "lift": real_array("lift", self.lift, shape=(len(items), participation.shape[1])),
            **{
                name: real_array(name, getattr(self, name), shape=(len(volunteers),)) for name in ("active", "finishes")
            },
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name in ("active", "finishes"):
            if ((checked[name] < 0) | (checked[name] > 1)).any():
                raise ResultError(f"{name} must be chances from 0 to 1.")

    @cached_property
    def _tables(self) -> tuple[NodeTable, NodeTable]:
        return NodeTable("volunteer", self.volunteers), NodeTable("item", self.items)

    def affinity(self, volunteers: Iterable[Hashable] | None = None, items: Iterable[Hashable] | None = None) -> Array:
        r"""How much more often than the average item each item is taken by the volunteers' communities, (N', V').

        .. math:: a_{iv} = \sum_k P_{vk}\, \frac{p(k \mid i)}{p(k)}

        with :math:`P_{vk}` the participation of the volunteer and :math:`p(k \mid i) / p(k)` the `lift` of the item. It
        is 1 for volunteers of no community and for items that nobody has answered.

        Parameters
        ----------
        volunteers, items
            Some of them, in the order of the answer; all if left out.
        """
        return self._affinity(*self._places(volunteers, items))

    def chance(self, volunteers: Iterable[Hashable] | None = None, items: Iterable[Hashable] | None = None) -> Array:
        r"""The chance that a volunteer takes an item that is offered now, and answers it, of shape (N', V').

        .. math:: \text{active}_v \cdot \min(1, a_{iv}) \cdot \text{finishes}_v

        that they come within the horizon, take the item, and do not reject it. Items that a volunteer's communities
        take at least as often as the average item are taken to be no obstacle; of others they take as much less as
        their communities do (see `affinity`, which also tells favourites apart).

        Parameters
        ----------
        volunteers, items
            Some of them, in the order of the answer; all if left out.
        """
        people, things = self._places(volunteers, items)
        taken = np.clip(self._affinity(people, things), 0.0, 1.0)
        return np.asarray(taken * (self.active * self.finishes)[people])

    def _affinity(self, people: Array, things: Array) -> Array:
        shares = self.participation[people]
        return np.asarray(self.lift[things] @ shares.T + (1 - shares.sum(axis=1)))

    def _places(self, volunteers: Iterable[Hashable] | None, items: Iterable[Hashable] | None) -> tuple[Array, Array]:
        asked = zip(self._tables, (volunteers, items), strict=True)
        people, things = (np.arange(len(table)) if ids is None else table.codes(ids) for table, ids in asked)
        return people, things

    def _columns(self) -> Columns:
        """One row for each volunteer, the most likely first: `active`, `finishes` and the main task community."""
        order = np.argsort(-self.active, kind="stable")
        return {
            "volunteer": self.volunteers[order],
            "active": self.active[order],
            "finishes": self.finishes[order],
            "community": main_community(self.participation)[order],
        }

    def __repr__(self) -> str:
        groups = self.participation.shape[1]
        known = f"{groups} task communities" if groups else "no task communities"
        return (
            f"Availability({self.active.sum():.1f} of {len(self.volunteers):,} volunteers expected within "
            f"{self.horizon}; {len(self.items):,} items, {known})"
        )


# The share of the time so far that is looked ahead, if no horizon is given.
AHEAD = 0.1
# How many steps a horizon has, and how many of the latest horizons are forecast to learn from.
STEPS = 4
LEARNED_FROM = 4
# The half-lives that are tried, in steps.
HALF_LIVES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, np.inf)
# Between which limits the weight of a prior is sought, in observations.
WEIGHTS = (0.01, 10_000.0)


def availability(
    graph: CrowdGraph,
    *,
    communities: Communities | None = None,
    half_life: float | dt.timedelta | np.timedelta64 | None = None,
    horizon: float | dt.timedelta | np.timedelta64 | None = None,
    at: Moment | None = None,
) -> Availability:
    """Who is likely to be there within a horizon, and to take, finish or reject which items.

    Three things are learned from the graph. How they make the chance that a volunteer takes and answers an item is told
    at `Availability.chance`.

    - ``active``: the chance that a volunteer is active within the horizon, from when they were active before; the
      latest counts most. Of those without any response so far as much is known as of a newcomer.
    - ``finishes``: the chance that an item shown gets a label. Responses without a label (``missing="keep"`` when the
      graph was built) are rejections. The share of each volunteer is drawn to that of the crowd, less so the more they
      were shown.
    - ``affinity``: how much more often than the average item an item is taken by the volunteer's task communities, from
      who answered it; drawn to 1, less so the more answers there are and the more items differ.

    Parameters
    ----------
    graph
        The graph. Only its responses are used; of a view, such as ``graph.before(moment)``, only those in view.
    communities
        Communities of volunteers who work on the same items, found in ``networks.task_cooccurrence(graph)``; for a
        forecast that knows nothing of the future, in that of the same view. If left out, all items are alike.
    half_life
        The age at which activity counts half: a timedelta for datetimes, a number for other times (responses, where
        the graph has no times). Learned if left out.
    horizon
        How far to look ahead, likewise. If left out, a tenth of the time from the first response until now.
    at
        Now: only responses before it are used. If left out, right after the last response.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=40, n_communities=4, n_responses=2_000, seed=0).graph
    >>> groups = cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph), seed=0)
    >>> likely = availability(graph, communities=groups, horizon=dt.timedelta(days=7))
    >>> likely
    Availability(4.3 of 40 volunteers expected within 7 days, 0:00:00; 500 items, 4 task communities)
    >>> likely.chance(items=["item-000", "item-001"]).shape
    (2, 40)
    """
    _check(graph, communities)
    seen = graph if at is None else graph.before(at)
    now = _now(seen, at)
    step = _horizon(seen, horizon, now) / STEPS
    visits = _visits(seen, now, step)
    lives = HALF_LIVES if half_life is None else (_in_ticks(seen, "half_life", half_life) / step,)
    habit = min((_learned(visits, life) for life in lives), key=lambda tried: tried.loss)
    participation = _participation(seen, communities)
    return Availability(
        volunteers=seen.volunteers.ids,
        items=seen.items.ids,
        active=-np.expm1(habit.log_absent(*visits.record(0, habit.half_life))),
        finishes=_finishes(seen),
        participation=participation,
        lift=_lift(seen, participation),
        horizon=_shown(seen, step * STEPS),
        half_life=None if habit.half_life == np.inf else _shown(seen, habit.half_life * step),
    )


def _check(graph: CrowdGraph, communities: Communities | None) -> None:
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Who is available is told of a CrowdGraph; got a {type(graph).__name__}.")
    if communities is None:
        return
    if not isinstance(communities, Communities):
        raise ParameterError(
            f"communities= takes Communities, such as BayesianNMF().detect(networks.task_cooccurrence(graph)); got a "
            f"{type(communities).__name__}."
        )
    communities.check_matches(graph)


class Visits(NamedTuple):
    """Who was active in which step.

    Attributes
    ----------
    volunteer, age
        Codes of volunteers and how many steps ago they were active, 0 in the latest, one row for each such step.
    first
        How many steps ago each volunteer was seen first, of shape (V,); -1 for never.
    """

    volunteer: Array
    age: Array
    first: Array

    def record(self, back: int, half_life: float) -> tuple[Array, Array]:
        """The steps with and without activity that could be known `back` steps ago, discounted, both of shape (V,)."""
        rate = np.log(2) / half_life
        counted = (self.age >= back) & (self.age < self.first[self.volunteer])
        weights = np.exp(-rate * (self.age[counted] - back))
        active = np.bincount(self.volunteer[counted], weights=weights, minlength=len(self.first))
        length = np.maximum(self.first - back, 0)
        every = np.expm1(-rate * length) / np.expm1(-rate) if rate else length
        # Sums in another order may differ in the last digit.
        return active, np.maximum(every - active, 0)

    def active(self, start: int, stop: int) -> Array:
        """Whether each volunteer was active from `start` to before `stop` steps ago, of shape (V,)."""
        chosen = (self.age >= start) & (self.age < stop)
        return np.bincount(self.volunteer[chosen], minlength=len(self.first)) > 0


class Habit(NamedTuple):
    """How a record becomes a forecast, and how badly that would have gone so far."""

    mean: float
    weight: float
    half_life: float
    loss: float = np.inf

    def log_absent(self, active: Array, absent: Array) -> Array:
        """The log of the chance not to be active within the horizon, after so many steps with and without activity."""
        every = active + absent + self.weight
        ahead = np.arange(STEPS)[:, None]
        return np.asarray(np.log1p(-(active + self.weight * self.mean) / (every + ahead)).sum(axis=0))


def _visits(graph: CrowdGraph, now: float, step: float) -> Visits:
    responses, rows = graph.responses, graph.responses.by_volunteer
    volunteer = responses.volunteer[rows.order]
    elapsed = now - ticks(responses.time[rows.order]).astype(np.float64)
    age = np.maximum(np.ceil(elapsed / step) - 1, 0)
    new = np.ones(len(age), dtype=bool)
    new[1:] = (np.diff(volunteer) != 0) | (np.diff(age) != 0)
    first = np.full(len(graph.volunteers), -1.0)
    known = np.flatnonzero(np.diff(rows.starts))
    first[known] = age[rows.starts[known]]
    return Visits(volunteer[new], age[new], first)


def _learned(visits: Visits, half_life: float) -> Habit:
    """The habit with this half-life that would have forecast best who was active in the latest horizons."""
    from scipy.optimize import minimize

    parts = [_lesson(visits, horizon * STEPS, half_life) for horizon in range(LEARNED_FROM)]
    active, absent, came = (np.concatenate(column) for column in zip(*parts, strict=True))

    def habit(place: Array) -> Habit:
        return Habit(float(expit(place[0])), float(np.exp(place[1])), half_life)

    def loss(place: Array) -> float:
        tried = habit(place)
        stayed_away = tried.log_absent(active, absent)
        likely = np.where(came, np.log(-np.expm1(stayed_away)), stayed_away)
        # One more step, half of it active, so that the mean is never 0 or 1.
        return -float(likely.sum() + 0.5 * np.log(tried.mean * (1 - tried.mean)))

    found = minimize(loss, [0.0, 0.0], bounds=[(-12, 12), tuple(np.log(WEIGHTS))], method="L-BFGS-B")
    return habit(found.x)._replace(loss=float(found.fun))


def _lesson(visits: Visits, start: int, half_life: float) -> tuple[Array, Array, Array]:
    """What was known before a horizon of those seen by then, and whether they came; it ended `start` steps ago."""
    stop = start + STEPS
    seen = visits.first >= stop
    active, absent = visits.record(stop, half_life)
    return active[seen], absent[seen], visits.active(start, stop)[seen]


def _finishes(graph: CrowdGraph) -> Array:
    """The chance that each volunteer labels what is shown, of shape (V,)."""
    responses, n_volunteers = graph.responses, len(graph.volunteers)
    answered = responses.label >= 0
    counts = np.stack(
        [np.bincount(responses.volunteer[part], minlength=n_volunteers) for part in (answered, ~answered)]
    )
    return _shares(counts.T.astype(np.float64))[:, 0]


def _participation(graph: CrowdGraph, communities: Communities | None) -> Array:
    """How much each volunteer of the graph belongs to each community, of shape (V, K)."""
    if communities is None:
        return np.zeros((len(graph.volunteers), 0))
    participation = np.zeros((len(graph.volunteers), len(communities)))
    participation[graph.volunteers.codes(communities.ids)] = communities.participation
    return participation


def _lift(graph: CrowdGraph, participation: Array) -> Array:
    """How much more often than the average item each item is taken by each community, of shape (N, K)."""
    from scipy.sparse import csr_array

    responses = graph.responses
    answered = responses.label >= 0
    pairs = (responses.item[answered], responses.volunteer[answered])
    met = csr_array((np.ones(len(pairs[0])), pairs), shape=(len(graph.items), len(graph.volunteers)))
    met.sum_duplicates()
    met.data[:] = 1.0
    counts = np.asarray(met @ participation)
    return np.asarray(_shares(counts) / _average(counts))


def _average(counts: Array) -> Array:
    """The shares of all counts together, of shape (K,), with one more that is spread evenly, so that none is zero."""
    n_kinds = counts.shape[1]
    return np.asarray((counts.sum(axis=0) + 1 / max(n_kinds, 1)) / (counts.sum() + 1))


def _shares(counts: Array) -> Array:
    """The shares of each row of counts, (M, K), drawn to the average by as much as makes the rows most likely.

    Rows are taken to be drawn from shares of their own, which come from a Dirichlet around the average.
    """
    from scipy.optimize import minimize_scalar

    average, known = _average(counts), counts[counts.any(axis=1)]
    totals = known.sum(axis=1)

    def loss(log_weight: float) -> float:
        prior = np.exp(log_weight) * average
        rows = gammaln(prior.sum()) - gammaln(prior.sum() + totals)
        return -float(rows.sum() + (gammaln(prior + known) - gammaln(prior)).sum())

    weight = np.exp(minimize_scalar(loss, bounds=np.log(WEIGHTS), method="bounded").x)
    return np.asarray((counts + weight * average) / (counts.sum(axis=1, keepdims=True) + weight))


def _now(graph: CrowdGraph, at: Moment | None) -> float:
    """Now, in ticks of the graph's times."""
    responses = graph.responses
    if at is not None:
        moment = float(responses.clock._floor(at, responses.time.dtype)[0])
        if not np.isfinite(moment):
            raise TimeError(f"at={at!r} must be a finite moment.")
        return moment
    last = float(ticks(responses.time)[-1]) if len(responses) else 0.0
    # A hair later, so that the last response lies before now.
    return float(np.nextafter(last, np.inf))


def _horizon(graph: CrowdGraph, horizon: Any, now: float) -> float:
    """How far to look ahead, in ticks."""
    if horizon is not None:
        return _in_ticks(graph, "horizon", horizon)
    times = ticks(graph.responses.time[:1])
    span = float(np.nextafter(now, -np.inf) - times[0]) if len(times) else 0.0
    # Where all happened at once, or nothing did, any horizon tells the same.
    return AHEAD * span if span > 0 else 1.0


def _in_ticks(graph: CrowdGraph, name: str, length: Any) -> float:
    return length_in_ticks(name, length, graph.responses.clock, graph.responses.time)


def _shown(graph: CrowdGraph, length: float) -> float | dt.timedelta:
    """A length in ticks as a user would give it."""
    if graph.responses.clock.kind != "datetime":
        return length
    return dt.timedelta(seconds=length / ticks_per_second(graph.responses.time))
