"""Turn a graph's responses into tensors for the kernels: grouped by item, or as the volunteers' steps in time.

This module imports torch and numba; models import it only when they are fitted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core._arrays import Array, grouped, lock, row_blocks
from crowdgraph.core._maps import release, scratch_array, scratch_copy
from crowdgraph.core._memory import resident_bytes
from crowdgraph.core.clock import ticks
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.soft_answers import answer_parts
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.kernels._runtime import chunk_bounds
from crowdgraph.kernels.backends import Backend, step_kernels, sweep_kernels
from crowdgraph.kernels.dglm_compiled import compile_scan
from crowdgraph.kernels.dirichlet import empirical_bayes_concentration
from crowdgraph.kernels.dynibcc import DynamicVB, ItemSteps
from crowdgraph.kernels.fixed_point import Recorder
from crowdgraph.kernels.ranks import Alone, SharedSweep
from crowdgraph.kernels.sweep import (
    MAX_TABLE_BYTES,
    Expectations,
    ItemResponses,
    Streaming,
    Sweeper,
    compile_sweep,
    expected_counts,
)
from crowdgraph.models._priors import volunteer_priors
from crowdgraph.models._resources import check_memory, current_resources, require_stored
from crowdgraph.tensors.dynibcc import MAX_DRIFT, LastStates, Stage, Steps, prior_counts

# How many copies of the tables of all volunteers a fit holds at its peak: states, priors, logarithms, counts.
TABLE_COPIES = 12
# Responses that a thread has in memory at a time: at least, and at most, since more is not faster.
MIN_BLOCK, MAX_BLOCK = 10_000, 2**24
# How much more a block takes than its responses, while it is coded.
BLOCK_SHARE = 3
# The number of volunteers from which a typical prior is learned; more hardly change it.
MAX_TYPICAL_VOLUNTEERS = 5_000


class AnswerTensors:
    """The answers grouped by item, and the volunteers who gave them by activity, the busiest first.

    Busy volunteers stand together so that the rows which the sweep visits most stay in the processor's cache;
    volunteers without answers have no rows in the tables.

    Where the fit has a limit of memory, answers and class probabilities are maps of files and pass through memory block
    by block. Where several processes share the items, counts are those of all of them.

    Attributes
    ----------
    responses
        The answers, grouped by item.
    backend
        What runs where.
    """

    def __init__(self, graph: CrowdGraph, backend: Backend) -> None:
        self._graph, self.backend, self._resources = graph, backend, current_resources()
        self._ranks = self._resources.ranks or Alone()
        self._kernels: dict[bool, tuple[Sweeper, Expectations]] = {}
        counts = self._ranks.total_array(graph.answers.n_by_volunteer)
        self._busiest = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        table_row: Array = np.zeros(len(counts), dtype=_code_type(graph))
        table_row[self._busiest] = np.arange(len(self._busiest))
        if self._resources.memory is None:
            self.responses = self._in_memory(table_row)
        else:
            self.responses = self._on_disk(table_row, self._resources.memory)

    def _in_memory(self, table_row: Array) -> ItemResponses:
        answers, n_labels = self._graph.answers, len(self._graph.labels)
        parts = answer_parts(self._graph)
        by_item = answers.by_item if parts.share is None else grouped(parts.item, len(self._graph.items))
        order, starts = by_item
        codes: Array = table_row[parts.volunteer]
        codes *= n_labels
        codes += parts.label
        columns = torch.from_numpy(starts.astype(np.int64)), torch.from_numpy(codes.take(order))
        shares = None if parts.share is None else self.backend.values(parts.share[order])
        return ItemResponses(*columns, len(self._busiest), n_labels, shares=shares)

    def _on_disk(self, table_row: Array, memory: int) -> ItemResponses:
        """Write the codes of the answers to a file, and plan how many of them are in memory at a time."""
        if not self.backend.compiled:
            raise ParameterError(
                "memory= streams through compiled code on CPUs, and backend='torch' or a device was chosen.",
                hint="Leave backend= and device= out, or memory=.",
            )
        n_labels, stored = len(self._graph.labels), require_stored(self._graph)
        self._probs = scratch_array((len(self._graph.items), len(self._graph.classes)), self.backend.array_type)
        block = self._responses_per_block(memory)
        codes = scratch_array((len(self._graph.answers),), table_row.dtype)
        starts = scratch_array((len(self._graph.items) + 1,), np.int64)
        end = 0
        for answers in stored.answers_by_item(block):
            check_labels(answers.label, n_labels)
            begin, end = end, end + len(answers.label)
            codes[begin:end] = table_row[answers.volunteer] * n_labels + answers.label
            starts[answers.first : answers.last + 1] = begin + answers.starts
            release(codes, begin, end)
            release(starts, answers.first, answers.last)

        def leave(first: int, last: int) -> None:
            release(codes, starts[first], starts[last])
            release(self._probs, first, last)
            release(starts, first, last)

        return ItemResponses(
            torch.from_numpy(starts),
            torch.from_numpy(codes),
            len(self._busiest),
            n_labels,
            streaming=Streaming(block, leave),
        )

    def _responses_per_block(self, memory: int) -> int:
        """Return how many responses a thread may have in memory, or raise if that is none."""
        n_cells, width = int(np.prod(self.shape)), self.backend.dtype.itemsize
        n_items, n_threads = len(self._graph.items), len(chunk_bounds(0, at_most=2**10)) - 1
        tables = min(n_threads * 2 * n_cells * width, MAX_TABLE_BYTES)
        # A byte an item says whether it is gold, for the fit and once more for counting.
        needed = resident_bytes() + TABLE_COPIES * n_cells * 8 + tables + 2 * n_items
        bytes_per_response = 4 + 8 + (width * self.shape[2] + 8) * n_items / max(len(self._graph.answers), 1)
        block = int((memory - needed) / (n_threads * BLOCK_SHARE * bytes_per_response))
        check_memory(needed + n_threads * BLOCK_SHARE * MIN_BLOCK * bytes_per_response, memory)
        return min(block, MAX_BLOCK)

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
        if tiny_counts not in self._kernels:
            sweeper, expectations = sweep_kernels(
                self.backend, self.responses, n_classes=self.shape[-1], tiny_counts=tiny_counts
            )
            shared = sweeper if self._ranks.size == 1 else SharedSweep(sweeper, self._ranks)
            self._kernels[tiny_counts] = shared, expectations
        return self._kernels[tiny_counts]

    def items(self) -> tuple[Tensor, Tensor]:
        """Return initial class probabilities, gold where there is some, of shape (N, J), and where that is, (N,).

        With a limit of memory the probabilities are the same memory each time.
        """
        gold, n_classes = self._graph.gold, len(self._graph.classes)
        probs = np.empty((len(self._graph.items), n_classes), self.backend.array_type)
        if self._resources.memory is not None:
            probs = self._probs
        for rows in row_blocks(len(probs)):
            probs[rows] = np.where(gold.known[rows, None], np.nan_to_num(gold.probs[rows]), 1 / n_classes)
            release(probs, rows.start, rows.stop)
        return torch.from_numpy(probs).to(self.backend.device), self.backend.column(gold.known)

    def tensor(self, values: Array) -> Tensor:
        """Return an array as a new tensor, on the device and in its precision."""
        return self.backend.values(values)

    @property
    def in_memory(self) -> bool:
        """Whether one process holds all answers and class probabilities in memory."""
        return self._resources.memory is None and self._ranks.size == 1

    def copied(self, item_probs: Array) -> Array:
        """Return a copy of class probabilities, which lies where they do."""
        return item_probs.copy() if self._resources.memory is None else scratch_copy(item_probs, item_probs.dtype)

    def item_probs(self, probs: Tensor) -> Array:
        """Return class probabilities that `items` gave and a fit has changed, in double precision, as they are now.

        They may share memory with the tensor.
        """
        if self._resources.memory is None:
            return probs.cpu().double().numpy()
        return self._probs if self._probs.dtype == np.float64 else scratch_copy(self._probs, np.float64)

    def shared(self, values: Array) -> Tensor:
        """Return an array as a tensor, on the device and in its precision, which shares its memory if it can."""
        if not values.flags.writeable:
            values = values.copy() if self._resources.memory is None else scratch_copy(values, values.dtype)
        return torch.from_numpy(values).to(device=self.backend.device, dtype=self.backend.dtype)

    def table(self, confusion: Array) -> Tensor:
        """Return values by volunteer, class and label, (1 or all volunteers, J, L), as a table, (1 or K, L, J)."""
        rows = confusion if len(confusion) == 1 else confusion[self._busiest]
        return self.tensor(rows.transpose(0, 2, 1))

    def confusion(self, table: Tensor, *, others: Array) -> Array:
        """Return a table as values by volunteer, class and label, with `others` for volunteers without answers."""
        values = np.array(np.broadcast_to(others, (len(self._graph.volunteers), *others.shape[1:])))
        values[self._busiest] = table.cpu().double().numpy().transpose(0, 2, 1)
        return values

    def by_volunteer(self, values: Tensor) -> Array:
        """Return a number for each row of the tables as one for each volunteer; zero for those without answers."""
        numbers = np.zeros(len(self._graph.volunteers))
        numbers[self._busiest] = values.cpu().double().numpy()
        return numbers


class AnswerSums:
    """Sums over all answers, by volunteer, as `crowdgraph.models._crowd_prior.GraphSums`, by the sweep over them."""

    def __init__(self, tensors: AnswerTensors, sweeper: Sweeper) -> None:
        self._tensors, self._sweeper = tensors, sweeper

    def expected_counts(self, item_probs: Array) -> Array:
        """Count how often volunteers are expected to have given each label to items of each class, (K, J, L)."""
        counts = expected_counts(self._sweeper, self._tensors.shared(item_probs), self._tensors.shape).counts
        return self._tensors.confusion(counts, others=np.zeros((1, *counts.shape[:0:-1])))

    def class_variance(self, item_probs: Array, effect: Array) -> Array:
        """Return by how much sums of effects, (1 or K, J, L), vary because classes are unknown, of shape (K,)."""
        variance = self._sweeper.class_variance(self._tensors.shared(item_probs), self._tensors.table(effect))
        return self._tensors.by_volunteer(variance)


def answer_sums(graph: CrowdGraph, backend: Backend) -> AnswerSums | None:
    """Return what adds up the answers of a graph on disk, if the fit has a limit of memory; None otherwise."""
    if current_resources().memory is None:
        return None
    tensors = AnswerTensors(graph, backend)
    return AnswerSums(tensors, tensors.kernels()[0])


def check_labels(label: Array, n_labels: int) -> None:
    """Raise if labels in a store do not exist, since compiled code would not look."""
    if len(label) and not 0 <= label.min() <= label.max() < n_labels:
        raise StoreError(
            f"The store is damaged: labels run from {label.min()} to {label.max()}; expected 0 to {n_labels - 1}."
        )


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
        label_probs = graph.label_probs
        self.starts = lock(starts.astype(np.int64))
        self.times = lock(graph.responses.time[order])
        item = graph.responses.item[order]
        elapsed = elapsed_ticks(self.times, self.starts, self._before_first(forward, self.times.dtype))
        self._steps = Steps(
            self._backend.column(self.starts),
            self._backend.column(item),
            self._backend.column(graph.responses.label[order]),
            self._backend.values(answer_weights(item, graph.responses.label[order], self.starts, repeat_span)),
            self._backend.values(np.minimum(elapsed * drift, MAX_DRIFT)),
            None if label_probs is None else self._backend.values(label_probs[order]),
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

    def _before_first(self, forward: ForwardState | None, time_type: np.dtype[Any]) -> Array | None:
        """Return when volunteers reached their forward states, in ticks, NaN for those who have none; of shape (K,)."""
        if forward is None or forward.times.dtype.kind != time_type.kind:
            return None
        codes, rows = self._forward_rows(forward)
        before = np.full(len(self.starts) - 1, np.nan)
        before[codes] = ticks(forward.times[rows].astype(time_type))
        return before

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

    def step_rows(self, confusion: Tensor) -> Array:
        """Return the Dirichlets at the steps, (S, J, L), in double precision, in memory of their own."""
        return np.array(confusion.cpu().double().numpy())

    def item_probs(self, probs: Tensor) -> Array:
        """Return the class probabilities of the items, (N, J), in double precision."""
        return probs.cpu().double().numpy()

    def recorder(self) -> Recorder | None:
        """Return what keeps where the passes stand; nothing does where one process has all steps in memory."""
        return None

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
        graph = self._graph
        shape = (len(graph.volunteers), len(graph.labels))
        typical = self._backend.values(
            np.broadcast_to(volunteer_priors(prior, graph), (shape[0], len(graph.classes), shape[1]))
        )
        counts = self._label_counts(probs)
        own_prior = set(prior.ids.tolist())
        is_shared = np.array([volunteer not in own_prior for volunteer in graph.volunteers.ids.tolist()])
        eligible = is_shared & (counts.sum((1, 2)) > 0).cpu().numpy()
        # Where several processes share the volunteers, the sample is that of all of them.
        ranks = current_resources().ranks or Alone()
        numbers = ranks.gather(int(np.count_nonzero(eligible)))
        stride = 1 + sum(numbers) // MAX_TYPICAL_VOLUNTEERS
        sample = np.flatnonzero(eligible)[-sum(numbers[: ranks.rank]) % stride :: stride]
        sampled = torch.cat(ranks.gather(counts[self._backend.column(sample)]))
        if len(sampled):
            learned = ranks.from_first(empirical_bayes_concentration(sampled, self._backend.values(prior.shared)))
            typical = torch.where(self._backend.column(is_shared)[:, None, None], learned, typical)
        return typical

    def _label_counts(self, probs: Tensor) -> Tensor:
        """Return how often volunteers are expected to have given each label to items of each class, (K, J, L)."""
        shape = (len(self._graph.volunteers), len(self._graph.labels), probs.shape[1])
        counts = probs.new_zeros((shape[0] * shape[1], shape[2]))
        self._add_label_counts(self._steps, probs, counts)
        return counts.reshape(shape).transpose(1, 2)

    def _add_label_counts(self, steps: Steps, probs: Tensor, counts: Tensor) -> None:
        """Add the class probabilities of what was answered to the counts by volunteer and label, (K * L, J)."""
        codes = torch.repeat_interleave(torch.arange(len(steps.starts) - 1, device=counts.device), steps.starts.diff())
        values, n_labels = steps.weight[:, None] * probs[steps.item.long()], len(self._graph.labels)
        if steps.shares is not None:
            for label in range(n_labels):
                counts.index_add_(0, codes * n_labels + label, steps.shares[:, label, None] * values)
            return
        answered = steps.label >= 0
        cells = (codes * n_labels + steps.label)[answered]
        counts.index_add_(0, cells, values[answered])


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


def elapsed_ticks(times: Array, starts: Array, before: Array | None) -> Array:
    """Return the ticks since the volunteer's previous step; at the first of all zero, or since another moment.

    Parameters
    ----------
    times, starts
        The times of the steps, of shape (S,), and where each volunteer's begin, of shape (K + 1,).
    before
        The ticks of that moment for each volunteer, NaN where there is none, of shape (K,).
    """
    tick_counts = ticks(times).astype(np.float64)
    elapsed = np.diff(tick_counts, prepend=tick_counts[:1])
    has_steps = np.diff(starts) > 0
    first = starts[:-1][has_steps]
    elapsed[first] = 0 if before is None else np.nan_to_num(tick_counts[first] - before[has_steps])
    # Responses from before the moment are taken as simultaneous with it.
    return np.maximum(elapsed, 0)


def answer_weights(item: Array, label: Array, starts: Array, span: float | None) -> Array:
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
