"""Updates of fits as data arrive: from where a fit ended to where a fit of more responses ends.

This module imports torch and numba; models import it only when they are updated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core._arrays import Array
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.fit import FitStage, FitState
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.kernels.backends import Backend
from crowdgraph.kernels.fixed_point import Step, Trace, squarem
from crowdgraph.kernels.local_sweeps import CountedSweep, LocalSweep, ResponsesByCode
from crowdgraph.kernels.sweep import Sweeper
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models._tensors import AnswerTensors

OnStep: TypeAlias = Callable[[Step], object]

# Local sweeps are followed by a full one at most so often; then all sweeps are full.
MAX_CYCLES = 20
# The share of the tolerance to which local sweeps go on, so that the full one that follows finds less.
LOCAL_TOLERANCE = 0.5
# How many times the tolerance the first of two stages may change at its end. Only the centres of the prior follow from
# it, which weigh as much as a few answers of each volunteer.
FIRST_STAGE_TOLERANCE = 10.0


class SweepMap(Protocol):
    """A map for `squarem` that sweeps: that of IBCC, or of Dawid and Skene."""

    probs: Tensor
    sweeper: Sweeper

    def __call__(self, state: Tensor) -> Step:
        """Take one step."""
        ...

    def from_expected_counts(self, counts: Tensor, class_counts: Tensor) -> Tensor:
        """Return the state that follows from expected counts, of shape (K, L, J) and (J,)."""
        ...


class StageStart(NamedTuple):
    """Where an update of a stage starts.

    Attributes
    ----------
    probs
        Class probabilities of the items, of shape (N, J): gold, those of the earlier fit, equal ones for new items.
    counts
        The expected counts that they imply, by volunteer, class and label, of shape (K, J, L).
    is_new
        Which items have new answers or other gold, of shape (N,).
    n_visited
        How many responses were visited to compute the counts.
    """

    probs: Array
    counts: Array
    is_new: Array
    n_visited: int


def stage_start(graph: CrowdGraph, state: FitState, stage: FitStage, label_use: Array) -> StageStart:
    """Return where the update of a stage starts; counts are corrected by the new answers alone where that is exact.

    `label_use` says how often each volunteer gave each label, (K, L). The old answers about an item are taken to be its
    first ones. Where late answers came in between, the numbers of labels of some volunteer do not add up, and all
    answers are counted.
    """
    answers, gold, n_old = graph.answers, graph.gold, len(stage.item_probs)
    previous = np.full((len(graph.items), len(graph.classes)), 1 / len(graph.classes))
    previous[:n_old] = stage.item_probs
    probs, known = previous.copy(), np.flatnonzero(gold.known)
    probs[known] = gold.probs[known]
    n_before = np.zeros(len(graph.items), dtype=np.int64)
    n_before[:n_old] = state.n_answers
    is_new = answers.n_by_item != n_before
    is_new[known] |= (probs[known] != previous[known]).any(axis=1)
    counts = np.zeros((len(graph.volunteers), len(graph.classes), len(graph.labels)))
    counts[: len(stage.counts)] = stage.counts
    items = np.flatnonzero(is_new)
    rows = answers.by_item.rows_of(items)
    lengths = answers.n_by_item[items]
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_old = rank < np.repeat(n_before[items], lengths)
    item = answers.item[rows]
    added = probs[item] - np.where(is_old[:, None], previous[item], 0.0)
    cells = answers.volunteer[rows].astype(np.int64) * len(graph.labels) + answers.label[rows]
    n_cells = len(graph.volunteers) * len(graph.labels)
    for code in range(len(graph.classes)):
        counts[:, code] += np.bincount(cells, added[:, code], minlength=n_cells).reshape(-1, len(graph.labels))
    if np.abs(counts.sum(axis=1) - label_use).max(initial=0.0) > 1e-6:
        return StageStart(probs, expected_counts(graph, probs), is_new, len(rows) + len(answers))
    return StageStart(probs, np.maximum(counts, 0.0), is_new, len(rows))


class StageUpdater:
    """Updates the stages of a fit: local sweeps, then a full one, until a full one changes nothing by more than `tol`.

    Parameters
    ----------
    graph, tensors
        The graph with more answers, and its answers as tensors.
    state
        Where the earlier fit ended.
    sweeper
        The sweep over all answers.
    tol, accelerate
        As for `squarem`.

    Attributes
    ----------
    n_visited
        The number of responses visited so far.
    """

    def __init__(
        self,
        graph: CrowdGraph,
        state: FitState,
        tensors: AnswerTensors,
        sweeper: CountedSweep,
        *,
        tol: float,
        accelerate: bool,
    ) -> None:
        self._graph, self._state, self._tensors, self._sweeper = graph, state, tensors, sweeper
        self._tol, self._accelerate = tol, accelerate
        self._visited_locally = 0
        self._by_code = ResponsesByCode.of(tensors.responses)
        # How often each volunteer gave each label, (K, L).
        used = torch.from_numpy(np.diff(self._by_code.starts)).reshape(*tensors.shape[:2], 1)
        self._label_use = tensors.confusion(used, others=np.zeros((1, 1, tensors.shape[1])))[:, 0]

    @property
    def n_visited(self) -> int:
        """The number of responses visited so far."""
        return self._visited_locally + self._sweeper.n_visited

    def update(
        self, step_map: SweepMap, stage: FitStage, *, max_iter: int, on_step: OnStep, is_last: bool = True
    ) -> Trace:
        """Return the trace of a map from where a stage ended; the map's `probs` are those at its end.

        Parameters
        ----------
        step_map
            The map, whose sweep is replaced.
        stage
            Where the stage of the earlier fit ended.
        max_iter, on_step
            As for `squarem`.
        is_last
            Whether the stage is the last one, which must end where a fit would.
        """
        tol = self._tol if is_last else FIRST_STAGE_TOLERANCE * self._tol
        state, local = self._start(step_map, stage, LOCAL_TOLERANCE * tol)
        options: dict[str, Any] = {"tol": tol, "accelerate": self._accelerate, "give_up": is_interrupted}
        local_options = {**options, "tol": LOCAL_TOLERANCE * tol, "on_rejection": local.visit_again}
        objectives: list[float] = []
        n_steps, change = 0, math.inf
        for _ in range(MAX_CYCLES):
            trace = squarem(step_map, state, max_iter=max(max_iter - n_steps, 2), on_step=on_step, **local_options)
            local.visit_all = True
            step = step_map(trace.state)
            local.visit_all = False
            on_step(step)
            objectives += [*trace.objectives, float(step.objective)]
            n_steps += trace.n_steps + 1
            state, change = step.state, float(step.change)
            if change <= tol or n_steps >= max_iter or is_interrupted():
                break
        else:
            local.visit_all = True
            trace = squarem(step_map, state, max_iter=max(max_iter - n_steps, 2), on_step=on_step, **options)
            objectives += trace.objectives
            n_steps, state, change = n_steps + trace.n_steps, trace.state, trace.change
        self._visited_locally += local.n_visited
        return Trace(state, objectives, change, n_steps, converged=change <= tol)

    def _start(self, step_map: SweepMap, stage: FitStage, tol: float) -> tuple[Tensor, LocalSweep]:
        """Return the first state and the local sweep of a map, which gets the sweep and the first probabilities."""
        tensors, start = self._tensors, stage_start(self._graph, self._state, stage, self._label_use)
        counts, class_counts = tensors.table(start.counts), tensors.tensor(start.probs.sum(axis=0))
        local = LocalSweep(
            tensors.responses,
            self._by_code,
            self._sweeper,
            counts=counts.numpy(),
            class_counts=class_counts.numpy(),
            is_new=start.is_new,
            tol=tol,
        )
        self._visited_locally += start.n_visited
        step_map.sweeper = local
        step_map.probs.copy_(tensors.tensor(start.probs))
        return step_map.from_expected_counts(counts, class_counts), local


def runs_locally(graph: CrowdGraph, backend: Backend, state: FitState | None, *, n_stages: int) -> bool:
    """Return whether local sweeps can run: on CPUs, in double precision, from where as many stages ended.

    They count answers, not shares of soft ones.
    """
    if graph.label_probs is not None:
        return False
    return state is not None and len(state.stages) == n_stages and backend.compiled and backend.dtype == torch.float64
