r"""Availability: who is likely to be active soon, and to take and finish which items.

A horizon is cut into four steps, and so is the time before now. A volunteer is active in a step in which they have a
response, one or many, so that a burst counts once. Of the steps after their first (about which nothing could be
forecast),

.. math:: a = \sum_t d^t y_t + c m, \qquad b = \sum_t d^t (1 - y_t) + c (1 - m)

count for and against being active, where :math:`y_t` is 1 if they were active `t` steps ago and :math:`d` halves the
weight of activity as old as the half-life. If the share of active steps is Beta(a, b), the chance to be active in the
horizon is

.. math:: 1 - \prod_{s=0}^{3} \frac{b + s}{a + b + s}.

The mean of a newcomer, :math:`m`, its weight in steps, :math:`c`, and, if it is not given, the half-life are those that
would have forecast best who was active in each of the latest four horizons, from what was known before it.
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
from crowdgraph.core._parameters import check_instance
from crowdgraph.core.clock import Moment, length_in_ticks, ticks, ticks_per_second
from crowdgraph.core.communities import Communities, main_community
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ResultError, TimeError

__all__ = ["Availability", "availability"]

# The default horizon, as a share of the time so far.
DEFAULT_HORIZON = 0.1
# The number of steps in a horizon, and of past horizons that the model of returning is fitted to.
STEPS = 4
N_PAST_HORIZONS = 4
# The half-lives that are tried, in steps.
HALF_LIVES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, np.inf)
# The limits between which the weight of a prior is searched, in observations.
PRIOR_WEIGHTS = (0.01, 10_000.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Availability(ReadOnlyArrays, Tabular):
    """Who is likely to be active within a horizon, and to take and finish which items.

    Attributes
    ----------
    volunteers, items
        The ids of a graph's volunteers and items, of shapes (V,) and (N,).
    active
        The chance that each volunteer is active within the horizon, of shape (V,).
    finishes
        The chance that an item shown to the volunteer gets a label and is not rejected, of shape (V,).
    participation
        How much each volunteer belongs to each task community, of shape (V, K). Rows sum to one, or to zero for
        volunteers of none.
    lift
        How much more often than the average item each item is taken by each task community, of shape (N, K).
    horizon, half_life
        How far the forecast looks ahead, and the age at which activity counts half (None: all counts the same), as
        numbers or timedeltas.

    Examples
    --------
    >>> likely = Availability(volunteers=["anna", "bert"], items=["x", "y"], active=[0.5, 1.0], finishes=[1.0, 0.8],
    ...                       participation=[[1.0, 0.0], [0.0, 1.0]], lift=[[1.5, 0.5], [1.0, 1.0]], horizon=7)
    >>> likely.chance()
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
        r"""Return how much more often than the average item the volunteers' communities take each item, (N', V').

        .. math:: a_{iv} = \sum_k P_{vk}\, \frac{p(k \mid i)}{p(k)}

        with :math:`P_{vk}` the participation of the volunteer and :math:`p(k \mid i) / p(k)` the `lift` of the item. It
        is 1 for volunteers of no community and for items that nobody has answered.

        Parameters
        ----------
        volunteers, items
            Some of them, in the order of the result; all if left out.
        """
        return self._affinity(*self._codes(volunteers, items))

    def chance(self, volunteers: Iterable[Hashable] | None = None, items: Iterable[Hashable] | None = None) -> Array:
        r"""Return the chance that a volunteer takes and answers an item that is offered now, of shape (N', V').

        .. math:: \text{active}_v \cdot \min(1, a_{iv}) \cdot \text{finishes}_v

        that is: they come within the horizon, take the item, and do not reject it. An item that a volunteer's
        communities take at least as often as the average item is assumed to be no obstacle; other items are taken less
        often in proportion (see `affinity`, which also tells favourites apart).

        Parameters
        ----------
        volunteers, items
            Some of them, in the order of the result; all if left out.
        """
        volunteer, item = self._codes(volunteers, items)
        takes = np.clip(self._affinity(volunteer, item), 0.0, 1.0)
        return np.asarray(takes * (self.active * self.finishes)[volunteer])

    def _affinity(self, volunteer: Array, item: Array) -> Array:
        shares = self.participation[volunteer]
        return np.asarray(self.lift[item] @ shares.T + (1 - shares.sum(axis=1)))

    def _codes(self, volunteers: Iterable[Hashable] | None, items: Iterable[Hashable] | None) -> tuple[Array, Array]:
        pairs = zip(self._tables, (volunteers, items), strict=True)
        volunteer, item = (np.arange(len(table)) if ids is None else table.codes(ids) for table, ids in pairs)
        return volunteer, item

    def _columns(self) -> Columns:
        """Return one row for each volunteer, the most likely first: `active`, `finishes` and main task community."""
        order = np.argsort(-self.active, kind="stable")
        return {
            "volunteer": self.volunteers[order],
            "active": self.active[order],
            "finishes": self.finishes[order],
            "community": main_community(self.participation)[order],
        }

    def __repr__(self) -> str:
        n_communities = self.participation.shape[1]
        communities = f"{n_communities} task communities" if n_communities else "no task communities"
        return (
            f"Availability({self.active.sum():.1f} of {len(self.volunteers):,} volunteers expected within "
            f"{str(self.horizon).removesuffix(', 0:00:00')}; {len(self.items):,} items, {communities})"
        )


def availability(
    graph: CrowdGraph,
    *,
    communities: Communities | None = None,
    half_life: float | dt.timedelta | np.timedelta64 | None = None,
    horizon: float | dt.timedelta | np.timedelta64 | None = None,
    at: Moment | None = None,
) -> Availability:
    """Forecast who is active within a horizon, and who then takes, finishes or rejects which items.

    Three quantities are learned from the graph. `Availability.chance` combines them to the chance that a volunteer
    takes and answers an item.

    - ``active``: the chance that a volunteer is active within the horizon, from their activity so far; recent activity
      counts most. Volunteers without any response are treated as newcomers.
    - ``finishes``: the chance that an item shown gets a label. Responses without a label (``missing="keep"`` when the
      graph was built) are rejections. The share of each volunteer is shrunk towards that of the crowd, less so the more
      items they were shown.
    - ``affinity``: how much more often than the average item an item is taken by the volunteer's task communities, from
      who answered it; shrunk towards 1, less so the more answers there are and the more items differ.

    Parameters
    ----------
    graph
        The graph. Only its responses are used; of a view, such as ``graph.before(moment)``, only those in view.
    communities
        Communities of volunteers who work on the same items, detected in ``networks.task_cooccurrence(graph)``; for a
        forecast without knowledge of the future, in that of the same view. If left out, all items are alike.
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
    Availability(4.3 of 40 volunteers expected within 7 days; 500 items, 4 task communities)
    >>> likely.chance(items=["item-000", "item-001"]).shape
    (2, 40)
    """
    check_instance("graph", graph, CrowdGraph)
    if communities is not None:
        expected = "Communities, such as BayesianNMF().detect(networks.task_cooccurrence(graph))"
        check_instance("communities", communities, Communities, expected=expected)
        communities.check_matches(graph)
    view = graph if at is None else graph.before(at)
    now = _now(view, at)
    step = _horizon_in_ticks(view, horizon, now) / STEPS
    activity = _activity(view, now, step)
    half_lives = HALF_LIVES if half_life is None else (_in_ticks(view, "half_life", half_life) / step,)
    model = min((_fit_return_model(activity, half_life) for half_life in half_lives), key=lambda model: model.loss)
    no_communities = np.zeros((len(view.volunteers), 0))
    participation = no_communities if communities is None else communities.on(view).participation
    return Availability(
        volunteers=view.volunteers.ids,
        items=view.items.ids,
        active=-np.expm1(model.log_absent(*activity.counts(0, model.half_life))),
        finishes=_finishes(view),
        participation=participation,
        lift=_lift(view, participation),
        horizon=_from_ticks(view, step * STEPS),
        half_life=None if model.half_life == np.inf else _from_ticks(view, model.half_life * step),
    )


class Activity(NamedTuple):
    """The steps in which each volunteer was active.

    Attributes
    ----------
    volunteer, age
        Codes of volunteers and how many steps ago they were active, 0 in the latest, one row for each such step.
    first
        How many steps ago each volunteer was first active, of shape (V,); -1 for never.
    """

    volunteer: Array
    age: Array
    first: Array

    def counts(self, back: int, half_life: float) -> tuple[Array, Array]:
        """Return the discounted numbers of steps with and without activity, as known `back` steps ago, both (V,)."""
        rate = np.log(2) / half_life
        recorded = (self.age >= back) & (self.age < self.first[self.volunteer])
        weights = np.exp(-rate * (self.age[recorded] - back))
        active = np.bincount(self.volunteer[recorded], weights=weights, minlength=len(self.first))
        length = np.maximum(self.first - back, 0)
        total = np.expm1(-rate * length) / np.expm1(-rate) if rate else length
        # Sums in another order may differ in the last digit.
        return active, np.maximum(total - active, 0)

    def active(self, start: int, stop: int) -> Array:
        """Return whether each volunteer was active from `start` to before `stop` steps ago, of shape (V,)."""
        within = (self.age >= start) & (self.age < stop)
        return np.bincount(self.volunteer[within], minlength=len(self.first)) > 0


class ReturnModel(NamedTuple):
    """A Beta-binomial model of returning: how past activity becomes a forecast, and the loss of past forecasts."""

    mean: float
    weight: float
    half_life: float
    loss: float = np.inf

    def log_absent(self, active: Array, absent: Array) -> Array:
        """Return the log chance of no activity within the horizon, after so many steps with and without activity."""
        total = active + absent + self.weight
        ahead = np.arange(STEPS)[:, None]
        return np.asarray(np.log1p(-(active + self.weight * self.mean) / (total + ahead)).sum(axis=0))


def _activity(graph: CrowdGraph, now: float, step: float) -> Activity:
    """Return the steps in which each volunteer of a graph was active."""
    responses, rows = graph.responses, graph.responses.by_volunteer
    volunteer = responses.volunteer[rows.order]
    elapsed = now - ticks(responses.time[rows.order]).astype(np.float64)
    age = np.maximum(np.ceil(elapsed / step) - 1, 0)
    new = np.ones(len(age), dtype=bool)
    new[1:] = (np.diff(volunteer) != 0) | (np.diff(age) != 0)
    first = np.full(len(graph.volunteers), -1.0)
    ever_active = np.flatnonzero(np.diff(rows.starts))
    first[ever_active] = age[rows.starts[ever_active]]
    return Activity(volunteer[new], age[new], first)


def _fit_return_model(activity: Activity, half_life: float) -> ReturnModel:
    """Fit the mean and weight with which this half-life would have forecast the latest horizons best."""
    from scipy.optimize import minimize

    parts = [_past_horizon(activity, horizon * STEPS, half_life) for horizon in range(N_PAST_HORIZONS)]
    active, absent, came = (np.concatenate(column) for column in zip(*parts, strict=True))

    def model(point: Array) -> ReturnModel:
        return ReturnModel(float(expit(point[0])), float(np.exp(point[1])), half_life)

    def loss(point: Array) -> float:
        candidate = model(point)
        log_absent = candidate.log_absent(active, absent)
        log_likelihood = np.where(came, np.log(-np.expm1(log_absent)), log_absent)
        # One more step, half of it active, so that the mean is never 0 or 1.
        return -float(log_likelihood.sum() + 0.5 * np.log(candidate.mean * (1 - candidate.mean)))

    best = minimize(loss, [0.0, 0.0], bounds=[(-12, 12), tuple(np.log(PRIOR_WEIGHTS))], method="L-BFGS-B")
    return model(best.x)._replace(loss=float(best.fun))


def _past_horizon(activity: Activity, start: int, half_life: float) -> tuple[Array, Array, Array]:
    """Return what was known before a horizon that ended `start` steps ago, and who came, for those seen before it."""
    stop = start + STEPS
    present = activity.first >= stop
    active, absent = activity.counts(stop, half_life)
    return active[present], absent[present], activity.active(start, stop)[present]


def _finishes(graph: CrowdGraph) -> Array:
    """Return the chance that each volunteer labels an item that is shown, of shape (V,)."""
    n_responses = np.bincount(graph.responses.volunteer, minlength=len(graph.volunteers))
    n_answers = graph.answers.n_by_volunteer
    counts = np.stack([n_answers, n_responses - n_answers])
    return _shrunken_shares(counts.T.astype(np.float64))[:, 0]


def _lift(graph: CrowdGraph, participation: Array) -> Array:
    """Return how much more often than the average item each item is taken by each community, of shape (N, K)."""
    from scipy.sparse import csr_array

    answers = graph.answers
    pairs = (answers.item, answers.volunteer)
    answered = csr_array((np.ones(len(pairs[0])), pairs), shape=(len(graph.items), len(graph.volunteers)))
    answered.sum_duplicates()
    answered.data[:] = 1.0
    counts = np.asarray(answered @ participation)
    return np.asarray(_shrunken_shares(counts) / _average_shares(counts))


def _average_shares(counts: Array) -> Array:
    """Return the shares of all counts together, of shape (K,); one more is spread evenly, so that none is zero."""
    n_kinds = counts.shape[1]
    return np.asarray((counts.sum(axis=0) + 1 / max(n_kinds, 1)) / (counts.sum() + 1))


def _shrunken_shares(counts: Array) -> Array:
    """Return the shares of each row of counts, (M, K), shrunk towards the average by empirical Bayes.

    Each row is drawn from shares of its own, which come from a Dirichlet around the average; the weight of the
    Dirichlet is the most likely one.
    """
    from scipy.optimize import minimize_scalar

    average, observed = _average_shares(counts), counts[counts.any(axis=1)]
    totals = observed.sum(axis=1)

    def loss(log_weight: float) -> float:
        prior = np.exp(log_weight) * average
        rows = gammaln(prior.sum()) - gammaln(prior.sum() + totals)
        return -float(rows.sum() + (gammaln(prior + observed) - gammaln(prior)).sum())

    weight = np.exp(minimize_scalar(loss, bounds=np.log(PRIOR_WEIGHTS), method="bounded").x)
    return np.asarray((counts + weight * average) / (counts.sum(axis=1, keepdims=True) + weight))


def _now(graph: CrowdGraph, at: Moment | None) -> float:
    """Return now, in ticks of the graph's times."""
    responses = graph.responses
    if at is not None:
        moment = float(responses.clock._floor(at, responses.time.dtype)[0])
        if not np.isfinite(moment):
            raise TimeError(f"at={at!r} must be a finite moment.")
        return moment
    last = float(ticks(responses.time)[-1]) if len(responses) else 0.0
    # A hair later, so that the last response lies before now.
    return float(np.nextafter(last, np.inf))


def _horizon_in_ticks(graph: CrowdGraph, horizon: Any, now: float) -> float:
    """Return how far to look ahead, in ticks."""
    if horizon is not None:
        return _in_ticks(graph, "horizon", horizon)
    times = ticks(graph.responses.time[:1])
    span = float(np.nextafter(now, -np.inf) - times[0]) if len(times) else 0.0
    # Where all responses came at once, or there are none, every horizon gives the same forecast.
    return DEFAULT_HORIZON * span if span > 0 else 1.0


def _in_ticks(graph: CrowdGraph, name: str, length: Any) -> float:
    return length_in_ticks(name, length, graph.responses.clock, graph.responses.time)


def _from_ticks(graph: CrowdGraph, length: float) -> float | dt.timedelta:
    """Return a length in ticks as a user would write it."""
    if graph.responses.clock.kind != "datetime":
        return length
    return dt.timedelta(seconds=length / ticks_per_second(graph.responses.time))
