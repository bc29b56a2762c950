"""The steps of volunteers in blocks, for DynIBCC: those of a store within a limit of memory, or those of a rank.

This module imports torch and numba; models import it only when they are fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core._arrays import Array, lock, row_blocks
from crowdgraph.core._maps import release, scratch_array, scratch_copy
from crowdgraph.core._memory import resident_bytes
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.stored import StoredRows
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.kernels.backends import Backend, step_kernels
from crowdgraph.kernels.dglm import Scan
from crowdgraph.kernels.dynibcc import MAX_CHOICE_STEPS, DynamicVB, Likelihood, draw_volunteers
from crowdgraph.kernels.fixed_point import Progress, Recorder
from crowdgraph.kernels.ranks import Alone, Ranks
from crowdgraph.kernels.step_blocks import BlockwiseVB, StepBlock
from crowdgraph.models._resources import SharedItems, check_memory, current_resources, require_stored
from crowdgraph.models._tensors import StepTensors, answer_weights, elapsed_ticks
from crowdgraph.tensors.dynibcc import MAX_DRIFT, LastStates, Stage, Steps

# Steps in memory at a time: at least, and at most, since more is not faster; a busy volunteer may have more.
MIN_STEPS, MAX_STEPS = 10_000, 2**20
# How many tables a pass holds, of all items and of a process's own items, and how many more of both it takes to
# extrapolate between passes and to look ahead.
ITEM_TABLES, OWN_ITEM_TABLES = 2, 1
ITEM_TABLES_AHEAD, OWN_ITEM_TABLES_AHEAD = 1, 9
# The bytes of a step's columns, in the store and as they are copied, and of what its weight and drift come from.
COLUMN_BYTES, TIME_BYTES = 40, 48
# The name of the stage whose checkpoints hold class probabilities.
PASSES = "DynIBCC"


class StepColumns:
    """The responses of a graph, one volunteer after another, each in order of time: maps of a store, or arrays.

    Parameters
    ----------
    graph
        The graph.

    Attributes
    ----------
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    item, label, time
        The columns.
    """

    def __init__(self, graph: CrowdGraph) -> None:
        stored = graph.responses.table.stored
        if stored is None:
            order, starts = graph.responses.by_volunteer
            self.starts = lock(starts.astype(np.int64))
            self.item, self.label, self.time = (
                lock(column[order]) for column in (graph.responses.item, graph.responses.label, graph.responses.time)
            )
        elif stored.has_all_times:
            columns, volunteers = stored.store.by_volunteer, stored.volunteers or range(len(graph.volunteers))
            every = np.asarray(columns.starts[volunteers.start : volunteers.stop + 1])
            self.starts = lock(every - every[0])
            self.item, self.label, self.time = (
                column[every[0] : every[-1]] for column in (columns.item, columns.label, columns.time)
            )
        else:
            self._copy_some(stored, len(graph.volunteers))
        self._sizes = len(graph.items), len(graph.labels)

    def _copy_some(self, stored: StoredRows, n_volunteers: int) -> None:
        """Copy the responses of a range of times to files."""
        stored.store.check_permutation("volunteer")
        columns = stored.store.by_volunteer
        volunteers = stored.volunteers or range(n_volunteers)
        begin, end = int(columns.starts[volunteers.start]), int(columns.starts[volunteers.stop])
        starts = np.asarray(columns.starts[volunteers.start : volunteers.stop + 1]) - begin
        targets = [scratch_array((stored.stop - stored.start,), columns[number].dtype) for number in (1, 2, 3)]
        counts, n_written = np.zeros(n_volunteers, dtype=np.int64), 0
        for block in row_blocks(end - begin):
            rows = slice(begin + block.start, begin + block.stop)
            row = columns.row[rows]
            is_in = (row >= stored.start) & (row < stored.stop)
            positions = np.flatnonzero(is_in) + block.start
            owners = np.searchsorted(starts, positions, side="right") - 1
            counts += np.bincount(owners, minlength=n_volunteers)
            first, n_written = n_written, n_written + len(positions)
            for target, column in zip(targets, columns[1:4], strict=True):
                target[first:n_written] = column[rows][is_in]
                release(target, first, n_written)
            for column in columns[1:]:
                release(column, rows.start, rows.stop)
        self.starts = lock(np.concatenate([[0], np.cumsum(counts)]))
        self.item, self.label, self.time = (lock(target[:n_written]) for target in targets)

    def read(self, rows: slice | Array) -> tuple[Array, Array, Array]:
        """Return copies of some rows of the columns, or raise if their codes do not exist."""
        item, label, time = (np.array(column[rows]) for column in (self.item, self.label, self.time))
        # Compiled code does not look where codes point.
        for name, codes, lowest, size in (("items", item, 0, self._sizes[0]), ("labels", label, -1, self._sizes[1])):
            if len(codes) and not lowest <= codes.min() <= codes.max() < size:
                raise StoreError(
                    f"The store is damaged: {name} run from {codes.min()} to {codes.max()}; expected {lowest} to "
                    f"{size - 1}."
                )
        return item, label, time

    def release(self, rows: slice) -> None:
        """Take some rows out of memory, if files hold them."""
        for column in (self.item, self.label, self.time):
            release(column, rows.start, rows.stop)


class BlockTensors(StepTensors):
    """The responses of a graph as steps that pass through memory in blocks; see `StepTensors` for the parameters.

    Where the fit has no limit of memory, there is one block. Where several processes share the volunteers, each of them
    updates some of the items.
    """

    def __init__(
        self,
        graph: CrowdGraph,
        backend: Backend,
        *,
        drift: float,
        repeat_span: float | None,
        forward: ForwardState | None = None,
        accelerate: bool,
    ) -> None:
        self._graph, self._backend, self._forward = graph, backend, forward
        self._drift, self._repeat_span = drift, repeat_span
        resources = current_resources()
        self._ranks = resources.ranks or Alone()
        self._items = resources.items or SharedItems([range(len(graph.items))], graph.gold.known)
        if resources.memory is not None:
            require_stored(graph)
            if not backend.compiled:
                raise ParameterError(
                    "memory= streams through compiled code on CPUs, and backend='torch' or a device was chosen.",
                    hint="Leave backend= and device= out, or memory=.",
                )
        self.columns = StepColumns(graph)
        self.starts, self.times = self.columns.starts, self.columns.time
        self.rows: Array = np.empty(0)
        self._bounds = np.array([0, len(self.starts) - 1])
        if resources.memory is not None:
            self._bounds = self._block_bounds(self._steps_per_block(resources.memory, accelerate=accelerate))

    def _steps_per_block(self, memory: int, *, accelerate: bool) -> int:
        """Return how many steps may be in memory, or raise if that is too few."""
        n_items, n_classes, n_labels = len(self._graph.items), len(self._graph.classes), len(self._graph.labels)
        width, cells = self._backend.dtype.itemsize, n_classes * n_labels
        own = len(self._items.shares[self._ranks.rank])
        n_rows = ITEM_TABLES * n_items + OWN_ITEM_TABLES * own
        if accelerate:
            n_rows += ITEM_TABLES_AHEAD * n_items + OWN_ITEM_TABLES_AHEAD * own
        tables = n_rows * n_classes * 8
        # Initial states, last states and the prior of every volunteer; and where their steps begin.
        volunteers = (len(self.starts) - 1) * (6 * cells * 8 + 32)
        # Beside the tables a byte an item says whether it is gold, and eight where its feedback is.
        needed = resident_bytes() + tables + 9 * n_items + volunteers
        # Rows and logarithms of a block, and the workspace of its busiest volunteers: at most that of all its steps.
        bytes_per_step = COLUMN_BYTES + width * (cells + n_classes) + 8 * (2 * cells + n_labels)
        bytes_per_step += TIME_BYTES if self._drift or self._repeat_span else 0
        busiest = int(np.diff(self.starts).max(initial=0))
        check_memory(needed + max(MIN_STEPS, busiest) * bytes_per_step, memory)
        return min(int((memory - needed) / bytes_per_step), MAX_STEPS)

    def _block_bounds(self, n_steps: int) -> Array:
        """Return the first volunteers of blocks of at most so many steps, or of one volunteer; and their number."""
        bounds, last = [0], len(self.starts) - 1
        while bounds[-1] < last:
            beyond = int(np.searchsorted(self.starts, self.starts[bounds[-1]] + n_steps, side="right")) - 1
            bounds.append(min(max(beyond, bounds[-1] + 1), last))
        return np.array(bounds)

    def new_rows(self, *shape: int) -> Array:
        """Return room for a table of a shape at every step."""
        everything = (len(self.times), *shape)
        return np.empty(everything) if current_resources().memory is None else scratch_array(everything, np.float64)

    def steps(self, rows: slice | Array, starts: Array, *, volunteers: slice | Array) -> Steps:
        """Return some rows of the columns as steps, which begin with the first step of each of some volunteers."""
        item, label, time = self.columns.read(rows)
        weight, drift = np.ones(len(item)), np.zeros(len(item))
        if self._repeat_span is not None:
            weight = answer_weights(item, label, starts, self._repeat_span)
        if self._drift:
            before = self._before_first(self._forward, time.dtype)
            elapsed = elapsed_ticks(time, starts, None if before is None else before[volunteers])
            drift = np.minimum(elapsed * self._drift, MAX_DRIFT)
        backend = self._backend
        return Steps(
            *map(backend.column, (starts, item, label)), *(backend.values(column) for column in (weight, drift))
        )

    def first_rows(self, volunteers: Array, lengths: Array) -> tuple[Array, Array]:
        """Return where so many first steps of some volunteers are, and where each volunteer's begin among these."""
        starts = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        return np.repeat(self.starts[volunteers], lengths) + within, starts

    @property
    def median_drift(self) -> float:
        """The median variance that log odds gain by drift between two responses, of a sample of volunteers."""
        if not self._drift:
            return 0.0
        counts = torch.from_numpy(np.diff(self.starts))
        volunteers, lengths = (part.numpy() for part in draw_volunteers(counts, n_steps=MAX_CHOICE_STEPS))
        rows, starts = self.first_rows(volunteers, lengths)
        later = np.ones(len(rows), dtype=bool)
        later[starts[:-1][lengths > 0]] = False
        drift = self.steps(rows, starts, volunteers=volunteers).drift.cpu().numpy()
        return float(np.median(drift[later])) if later.any() else 0.0

    def variational_bayes(self, prior: CrowdPrior, probs: Array, *, stage: Stage, published: bool) -> DynamicVB:
        """See `StepTensors`."""
        initial = self._initial_states(prior, self._forward, published=published)
        gold, table = self._graph.gold, np.array(probs, dtype=self._backend.array_type)
        release(probs)
        table[gold.known] = gold.probs[gold.known]
        self._probs = table
        return BlockwiseVB(
            Blocks(self, initial, published=published),
            class_prior=self._backend.values(prior.class_concentration),
            probs=torch.from_numpy(table).to(self._backend.device),
            fixed=self._backend.column(self._items.known),
            stage=stage,
            ranks=self._ranks,
            shares=self._items.shares,
        )

    def step_rows(self, confusion: Tensor) -> Array:
        """See `StepTensors`; a file holds them where there is a limit of memory."""
        # Not the tensor's memory, of which nobody could say that a file holds it.
        is_own = not confusion.numel() or confusion.data_ptr() == self.rows.ctypes.data
        assert is_own  # noqa: S101 - blocks write to these rows only
        return self.rows

    def item_probs(self, probs: Tensor) -> Array:
        """See `StepTensors`; a file holds them where there is a limit of memory."""
        table = probs.cpu().numpy()
        if current_resources().memory is not None:
            return lock(scratch_copy(table, np.float64))
        # The memory that the fit started with, if it can be: a copy would be as large as all items.
        is_own = table.ctypes.data == self._probs.ctypes.data and table.dtype == np.float64
        return lock(self._probs if is_own else table.astype(np.float64))

    def recorder(self) -> Recorder | None:
        """See `StepTensors`."""
        recorder = current_resources().recorder(PASSES)
        return None if recorder is None else RowsRecorder(recorder, self._ranks, self._items.shares)

    def _label_counts(self, probs: Tensor) -> Tensor:
        shape = (len(self.starts) - 1, len(self._graph.labels), probs.shape[1])
        counts = torch.zeros((shape[0] * shape[1], shape[2]), dtype=probs.dtype, device=probs.device)
        for volunteers, steps in self.blocks():
            first = volunteers.start * shape[1]
            own = counts[first : volunteers.stop * shape[1]]
            self._add_label_counts(steps, probs, own)
        return counts.reshape(shape).transpose(1, 2)

    def blocks(self) -> Iterator[tuple[slice, Steps]]:
        """Yield the volunteers of each block and their steps, which leave memory when the next ones are asked for."""
        for first, last in pairwise(self._bounds.tolist()):
            rows = slice(int(self.starts[first]), int(self.starts[last]))
            volunteers = slice(first, last)
            yield volunteers, self.steps(rows, self.starts[first : last + 1] - rows.start, volunteers=volunteers)
            self.columns.release(rows)


class RowsRecorder:
    """Keeps where an iteration of the items' class probabilities stands, of which each process updates some rows."""

    def __init__(self, recorder: Recorder, ranks: Ranks, shares: Sequence[range]) -> None:
        self._recorder, self._ranks, self._shares = recorder, ranks, shares
        self._own = slice(shares[ranks.rank].start, shares[ranks.rank].stop)

    def last(self) -> Progress | None:
        """See `Recorder`."""
        last = self._recorder.last()
        return None if last is None else last._replace(state=last.state[:, self._own])

    def is_due(self, n_steps: int) -> bool:
        """See `Recorder`."""
        return self._recorder.is_due(n_steps)

    def record(self, progress: Progress) -> None:
        """Take note of the rows of all processes; see `Recorder`."""
        state = progress.state.new_empty((len(progress.state), self._shares[-1].stop, progress.state.shape[2]))
        state[:, self._own] = progress.state
        for table in state:
            self._ranks.spread_rows(table, self._shares)
        self._recorder.record(progress._replace(state=state))


class Blocks:
    """The blocks of steps with the kernels for them; see `crowdgraph.kernels.step_blocks.StepBlocks`.

    Parameters
    ----------
    tensors
        The steps.
    initial
        What volunteers start from: Dirichlet rows, (1 or K, J, L), or where an earlier filter ended.
    published
        Whether answers count as published.
    """

    def __init__(self, tensors: BlockTensors, initial: Tensor | LastStates, *, published: bool) -> None:
        self._tensors, self._initial, self._published = tensors, initial, published
        self.starts = tensors._backend.column(tensors.starts)
        self._on_disk = current_resources().memory is not None
        self._only: StepBlock | None = None

    def __iter__(self) -> Iterator[StepBlock]:
        """See `StepBlocks`."""
        if self._only is not None:
            yield self._only
            return
        for volunteers, steps in self._tensors.blocks():
            first = int(self._tensors.starts[volunteers.start])
            rows = slice(first, first + len(steps.item))
            block = StepBlock(volunteers, rows, steps, *self.kernels(steps, self._initial_of(volunteers)))
            if not self._on_disk:
                self._only = block
            yield block

    def _initial_of(self, volunteers: slice) -> Tensor | LastStates:
        if isinstance(self._initial, LastStates):
            return LastStates(*(part[volunteers] for part in self._initial))
        return self._initial if len(self._initial) == 1 else self._initial[volunteers]

    def first_steps(self, volunteers: Tensor, lengths: Tensor) -> Steps:
        """See `StepBlocks`."""
        codes = volunteers.numpy()
        rows, starts = self._tensors.first_rows(codes, lengths.numpy())
        return self._tensors.steps(rows, starts, volunteers=codes)

    def kernels(self, steps: Steps, prior: Tensor | LastStates) -> tuple[Scan, Likelihood]:
        """See `StepBlocks`."""
        return step_kernels(self._tensors._backend, steps, None, prior, published=self._published)

    def rows_for_all(self, *shape: int) -> Tensor:
        """See `StepBlocks`."""
        self._tensors.rows = self._tensors.new_rows(*shape)
        return torch.from_numpy(self._tensors.rows)

    def release(self, rows: slice) -> None:
        """See `StepBlocks`."""
        release(self._tensors.rows, rows.start, rows.stop)


def step_tensors(
    graph: CrowdGraph,
    backend: Backend,
    *,
    drift: float,
    repeat_span: float | None,
    forward: ForwardState | None,
    accelerate: bool,
) -> StepTensors:
    """Return the steps of a graph: all together, or in blocks where memory is limited or processes share them."""
    resources = current_resources()
    if resources.memory is None and resources.items is None:
        return StepTensors(graph, backend, drift=drift, repeat_span=repeat_span, forward=forward)
    return BlockTensors(graph, backend, drift=drift, repeat_span=repeat_span, forward=forward, accelerate=accelerate)
