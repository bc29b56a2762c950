"""Turn a graph's responses into tensors for the kernels: grouped by item, or as the volunteers' steps in time.

This module imports torch and numba; models import it only when they are fitted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core.clock import ticks
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.kernels.backends import Backend, step_kernels, sweep_kernels
from crowdgraph.kernels.dglm_compiled import compile_scan
from crowdgraph.kernels.dirichlet import empirical_bayes_concentration
from crowdgraph.kernels.dynibcc import DynamicVB, ItemSteps
from crowdgraph.kernels.sweep import Expectations, ItemResponses, Sweeper, compile_sweep
from crowdgraph.models._priors import volunteer_priors
from crowdgraph.tensors.dynibcc import MAX_DRIFT, LastStates, Stage, Steps, prior_counts

# The number of volunteers from which a typical prior is learned; more hardly change it.
MAX_TYPICAL_VOLUNTEERS = 5_000


class AnswerTensors:
    """The answers grouped by item, and the volunteers who gave them by activity, the busiest first.

    Busy volunteers stand together so that the rows which the sweep visits most stay in the processor's cache;
    volunteers without answers have no rows in the tables.

    Attributes
    ----------
    responses
        The answers, grouped by item.
    backend
        What runs where.
    """

    def __init__(self, graph: CrowdGraph, backend: Backend) -> None:
        self._graph, answers = graph, graph.answers
        self.backend = backend
        counts = answers.n_by_volunteer
        self._busiest = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        table_row: Array = np.zeros(len(counts), dtype=_code_type(graph))
        table_row[self._busiest] = np.arange(len(self._busiest))
        order, starts = answers.by_item
        codes: Array = table_row[answers.volunteer]
        codes *= len(graph.labels)
        codes += answers.label
        self.responses = ItemResponses(
            torch.from_numpy(starts.astype(np.int64)),
            torch.from_numpy(codes.take(order)),
            len(self._busiest),
            len(graph.labels),
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of tables: volunteers with answers, labels and classes, (K, L, J)."""
        return (len(self._busiest), len(self._graph.labels), len(self._graph.classes))

    @property
    def volunteers(self) -> Array:
        """The codes of the volunteers with answers, in the order of the tables, of shape (K,)."""
        return self._busiest

    def kernels(self, *, tiny_counts: bool = False) -> tuple[Sweeper, Expectations]:
        """Return the sweep over the answers and the expectations that go with it."""
        return sweep_kernels(self.backend, self.responses, n_classes=self.shape[-1], tiny_counts=tiny_counts)

    def items(self) -> tuple[Tensor, Tensor]:
        """Return initial class probabilities, gold where there is some, of shape (N, J), and where that is, (N,)."""
        gold = self._graph.gold
        probs = np.where(gold.known[:, None], np.nan_to_num(gold.probs), 1 / len(self._graph.classes))
        return self.tensor(probs), self.backend.column(gold.known)

    def tensor(self, values: Array) -> Tensor:
        """Return an array as a new tensor, on the device and in its precision."""
        return self.backend.values(values)

    def table(self, confusion: Array) -> Tensor:
        """Return values by volunteer, class and label, (1 or all volunteers, J, L), as a table, (1 or K, L, J)."""
        rows = confusion if len(confusion) == 1 else confusion[self._busiest]
        return self.tensor(rows.transpose(0, 2, 1))

    def confusion(self, table: Tensor, *, others: Array) -> Array:
        """Return a table as values by volunteer, class and label, with `others` for volunteers without answers."""
        values = np.array(np.broadcast_to(others, (len(self._graph.volunteers), *others.shape[1:])))
        values[self._busiest] = table.cpu().double().numpy().transpose(0, 2, 1)
        return values


class StepTensors:
    """The responses of a graph, one volunteer after another, each in order of time, including those without an answer.

    Parameters
    ----------
    graph
        The graph.
    drift
        The variance that log odds gain in one tick of the graph's times.
    repeat_span
        After how many steps an answer to an item is forgotten; None if all answers count fully.
    backend
        What runs where.
    forward
        Where the filter of earlier responses ended, if there were some.

    Attributes
    ----------
    starts, times
        Where each volunteer's steps begin, of shape (K + 1,), and their times, of shape (S,).
    """

    def __init__(
        self,
        graph: CrowdGraph,
        backend: Backend,
        *,
        drift: float,
        repeat_span: float | None,
        forward: ForwardState | None = None,
    ) -> None:
        self._graph, self._backend, self._forward = graph, backend, forward
        order, starts = graph.responses.by_volunteer
        self.starts = lock(starts.astype(np.int64))
        self.times = lock(graph.responses.time[order])
        item = graph.responses.item[order]
        self._steps = Steps(
            self._backend.column(self.starts),
            self._backend.column(item),
            self._backend.column(graph.responses.label[order]),
            self._backend.values(_answer_weights(item, graph.responses.label[order], self.starts, repeat_span)),
            self._backend.values(np.minimum(self._elapsed() * drift, MAX_DRIFT)),
        )
        step_of_row = np.empty_like(order)
        step_of_row[order] = np.arange(len(order))
        by_item = graph.responses.by_item
        self._item_steps = ItemSteps(
            self._backend.column(by_item.starts.astype(np.int64)), self._backend.column(step_of_row[by_item.order])
        )

    @property
    def median_drift(self) -> float:
        """The median variance that log odds gain by drift between two responses of a volunteer."""
        later = np.ones(len(self.times), dtype=bool)
        later[self.starts[:-1][np.diff(self.starts) > 0]] = False
        return float(np.median(self._steps.drift.cpu().numpy()[later])) if later.any() else 0.0

    def _elapsed(self) -> Array:
        """Return the ticks since the volunteer's previous step; zero at the first of all."""
        tick_counts = ticks(self.times).astype(np.float64)
        elapsed = np.diff(tick_counts, prepend=tick_counts[:1])
        first = self.starts[:-1][np.diff(self.starts) > 0]
        elapsed[first] = 0
        if self._forward is not None and self._forward.times.dtype.kind == self.times.dtype.kind:
            codes, rows = self._forward_rows(self._forward)
            has_steps = np.diff(self.starts)[codes] > 0
            first, before = self.starts[codes[has_steps]], self._forward.times[rows[has_steps]]
            elapsed[first] = tick_counts[first] - ticks(before.astype(self.times.dtype)).astype(np.float64)
        # Responses from before the state was reached are taken as simultaneous with it.
        return np.maximum(elapsed, 0)

    def _forward_rows(self, forward: ForwardState) -> tuple[Array, Array]:
        """Return the codes of the volunteers who have a forward state, and its rows."""
        table = self._graph.volunteers.table
        rows = np.array([row for row, name in enumerate(forward.ids.tolist()) if name in table], dtype=np.int64)
        return np.asarray(table.codes(forward.ids[rows].tolist()), dtype=np.int64), rows

    def _initial_states(
        self, prior: CrowdPrior, forward: ForwardState | None, *, published: bool
    ) -> Tensor | LastStates:
        """Return what volunteers start from: Dirichlet rows, (1 or K, J, L), or where an earlier filter ended."""
        concentration = volunteer_priors(prior, self._graph)
        if forward is None:
            return self._backend.values(concentration)
        n_volunteers = len(self._graph.volunteers)
        rows = torch.from_numpy(np.array(np.broadcast_to(concentration, (n_volunteers, *concentration.shape[1:]))))
        hits, misses = (part.numpy() for part in prior_counts(rows))
        mean, variance, noise = np.log(hits / misses), 1 / hits + 1 / misses, np.zeros(hits.shape[:2])
        covariance = variance[..., None] * np.eye(variance.shape[-1]) if published else variance
        codes, known = self._forward_rows(forward)
        mean[codes], noise[codes] = forward.mean[known], forward.noise[known]
        if published and forward.covariance.ndim > mean.ndim:
            covariance[codes] = forward.covariance[known]
        elif published:
            covariance[codes] = forward.variance[known][..., None] * np.eye(variance.shape[-1])
        else:
            covariance[codes] = forward.variance[known]
        return LastStates(*map(self._backend.values, (mean, covariance, noise)))

    def forward_state(self, last: LastStates) -> ForwardState:
        """Return where the filter ended, of the volunteers who have steps or came with such a state."""
        responded = np.diff(self.starts) > 0
        times = np.zeros(len(responded), dtype=self.times.dtype)
        times[responded] = self.times[self.starts[1:][responded] - 1]
        if self._forward is not None and self._forward.times.dtype.kind == times.dtype.kind:
            codes, rows = self._forward_rows(self._forward)
            earlier = ~responded[codes]
            times[codes[earlier]] = self._forward.times[rows[earlier]].astype(times.dtype)
            responded[codes] = True
        mean, covariance, noise = (part.cpu().double().numpy()[responded] for part in last)
        return ForwardState(
            ids=self._graph.volunteers.ids[responded],
            mean=mean,
            covariance=covariance,
            noise=noise,
            times=times[responded],
        )

    def variational_bayes(self, prior: CrowdPrior, probs: Array, *, stage: Stage, published: bool) -> DynamicVB:
        """Return variational Bayes over the steps, from initial class probabilities of the items, of shape (N, J)."""
        initial = self._initial_states(prior, self._forward, published=published)
        scan, likelihood = step_kernels(self._backend, self._steps, self._item_steps, initial, published=published)
        gold = self._graph.gold
        return DynamicVB(
            self._steps,
            scan,
            likelihood,
            class_prior=self._backend.values(prior.class_concentration),
            probs=self._backend.values(np.where(gold.known[:, None], gold.probs, probs)),
            fixed=self._backend.column(gold.known),
            stage=stage,
        )

    def reach_new_steps(
        self,
        vb: DynamicVB,
        prior: CrowdPrior,
        forward: ForwardState,
        *,
        earlier: ConfusionTrack,
        noise_scale: float,
        published: bool,
    ) -> None:
        """Update the items about which there are new steps, filtered from where the volunteers' earlier steps ended.

        `earlier` has the earlier steps. Volunteers with a new step before one of those are left out.
        """
        new = self._steps_after(earlier)
        if not len(new.rows):
            return
        initial = self._initial_states(prior, forward, published=published)
        vb.filter_new_steps(
            self._backend.column(new.rows), self._backend.column(new.starts), initial, noise_scale=noise_scale
        )

    def _steps_after(self, earlier: ConfusionTrack) -> _NewSteps:
        """Return the steps that come after the earlier ones of the same volunteer."""
        counts, n_earlier = np.diff(self.starts), np.zeros(len(self.starts) - 1, dtype=np.int64)
        n_earlier[: len(earlier.ids)] = np.diff(earlier.starts)
        owner = np.repeat(np.arange(len(earlier.ids)), np.diff(earlier.starts))
        index = self.starts[owner] + np.arange(len(owner)) - earlier.starts[owner]
        moved = index >= self.starts[owner + 1]
        moved |= self.times[np.minimum(index, len(self.times) - 1)] != earlier.times
        is_late = np.zeros(len(counts), dtype=bool)
        is_late[owner[moved]] = True
        n_new = np.where(is_late, 0, counts - n_earlier)
        starts = np.concatenate([[0], np.cumsum(n_new)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], n_new)
        return _NewSteps(np.repeat(self.starts[:-1] + n_earlier, n_new) + within, starts)

    def typical_prior(self, prior: CrowdPrior, probs: Tensor) -> Tensor:
        """Learn what volunteers are like, (K, J, L), from class probabilities of the items, (N, J).

        Volunteers with a prior of their own keep it; all others get the one that fits them best.
        """
        graph, steps = self._graph, self._steps
        shape = (len(graph.volunteers), len(graph.labels))
        typical = self._backend.values(
            np.broadcast_to(volunteer_priors(prior, graph), (shape[0], len(graph.classes), shape[1]))
        )
        answered = steps.label >= 0
        codes = torch.repeat_interleave(torch.arange(shape[0], device=steps.starts.device), steps.starts.diff())
        cells = (codes * shape[1] + steps.label)[answered]
        truth = (steps.weight[:, None] * probs[steps.item.long()])[answered]
        counts = truth.new_zeros(shape[0] * shape[1], truth.shape[1]).index_add(0, cells, truth)
        counts = counts.reshape(*shape, -1).transpose(1, 2)
        own_prior = set(prior.ids.tolist())
        is_shared = np.array([volunteer not in own_prior for volunteer in graph.volunteers.ids.tolist()])
        eligible = is_shared & (counts.sum((1, 2)) > 0).cpu().numpy()
        sample = np.flatnonzero(eligible)[:: 1 + np.count_nonzero(eligible) // MAX_TYPICAL_VOLUNTEERS]
        if len(sample):
            learned = empirical_bayes_concentration(
                counts[self._backend.column(sample)], self._backend.values(prior.shared)
            )
            typical = torch.where(self._backend.column(is_shared)[:, None, None], learned, typical)
        return typical


class _NewSteps(NamedTuple):
    """The indices of new steps, one volunteer after another, and where each volunteer's begin, of shape (K + 1,)."""

    rows: Array
    starts: Array


def compile_sweep_for(graph: CrowdGraph, backend: Backend) -> None:
    """Compile, or load from disk, the sweep over the answers of such a graph, if compiled code runs."""
    if backend.compiled:
        compile_sweep(len(graph.classes), np.dtype(_code_type(graph).replace("int", "uint")), backend.array_type)


def compile_scan_for(graph: CrowdGraph, backend: Backend, *, published: bool) -> None:
    """Compile, or load from disk, the scan over the steps of such a graph, if compiled code runs."""
    if backend.compiled:
        types = graph.responses.item.dtype, graph.responses.label.dtype, backend.array_type
        compile_scan(len(graph.classes), *types, published=published)


def _code_type(graph: CrowdGraph) -> str:
    """Return the integer type that can number all pairs of volunteers and labels."""
    return "int32" if len(graph.volunteers) * len(graph.labels) < 2**31 else "int64"


def _answer_weights(item: Array, label: Array, starts: Array, span: float | None) -> Array:
    """Return how much each answer counts: less if the volunteer answered the item not long before."""
    weights = np.ones(len(item))
    if span is None:
        return weights
    volunteer = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    answered = np.flatnonzero(label >= 0)
    order = answered[np.lexsort((item[answered], volunteer[answered]))]
    repeated = (np.diff(volunteer[order]) == 0) & (np.diff(item[order]) == 0)
    weights[order[1:][repeated]] = -np.expm1(-np.diff(order)[repeated] / span)
    return weights
