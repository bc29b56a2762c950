"""The scan of `crowdgraph.kernels.dglm` compiled for CPUs: one volunteer after another, in several threads.

Where answers are weighted, the state of a class is represented by counts for and against the label: an answer adds to
them and noise shrinks them, so that filtering needs no logarithm and nothing can become negative. Smoothing sums
positive terms. Where answers count as published, `crowdgraph.kernels.dglm_published` does the work.

A thread holds the states of one volunteer at a time. Only volunteers who alone would keep a thread busy for long are
split by label, so that several threads share them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from copy import copy
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.dglm_published import scan_published, share_of
from crowdgraph.tensors.dynibcc import LastStates, Stage, Steps, prior_counts, state_counts

__all__ = [
    "CompiledScan",
    "Workspace",
    "compile_scan",
    "filter_weighted",
    "shares_array",
    "smooth_weighted",
    "split_work",
]

# Fewer steps than this are not worth a second thread.
MIN_STEPS_PER_THREAD = 2_000
# A volunteer with more than this part of a thread's work is split by label.
MAX_UNSPLIT_SHARE = 1 / 8
STAGE_CODES = {"predicted": 0, "filtered": 1, "smoothed": 2}


class CompiledScan:
    """The scan on CPUs; see `crowdgraph.kernels.dglm.Scan`.

    The result is written to the same memory each time, in the precision of the steps' weights. Everything else is in
    double precision.
    """

    def __init__(self, steps: Steps, prior: Tensor | LastStates, *, published: bool = False) -> None:
        self._starts = steps.starts.numpy()
        self._published = published
        self._set(steps, prior)
        n_labels, n_classes = self._initial[0].shape[1:3]
        counts = np.diff(self._starts)
        self._tasks = [
            [
                Task(
                    volunteers,
                    first,
                    last,
                    Workspace.for_steps(int(counts[volunteers].max()), last - first, n_classes, published=published),
                )
                for volunteers, first, last in tasks
            ]
            for tasks in split_work(counts, n_labels)
        ]
        self._rows = torch.empty((len(steps.item), n_classes, n_labels), dtype=steps.weight.dtype).numpy()
        types = (self._columns[0].dtype, self._columns[1].dtype, self._rows.dtype)
        compile_scan(n_classes, *types, published=published)

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Filter and smooth once; see `Scan`."""
        self._run(probs, noise_scale, stage)
        return self._joined_rows()

    def noise(self, probs: Tensor, *, noise_scale: float) -> Tensor:
        """See `Scan`."""
        noises = np.empty((len(self._rows), self._rows.shape[2]))
        self._run(probs, noise_scale, "filtered", noises=noises)
        return torch.from_numpy(noises)

    def with_last_states(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> tuple[Tensor, LastStates]:
        """See `Scan`."""
        n_volunteers = len(self._starts) - 1
        # In the order of the empty arrays that other calls pass: another order would be compiled once more.
        last = [np.array(np.broadcast_to(part, (n_volunteers, *part.shape[1:])), order="C") for part in self._initial]
        self._run(probs, noise_scale, "filtered" if stage == "predicted" else stage, last=last)
        rows = self(probs, noise_scale=noise_scale, stage=stage) if stage == "predicted" else self._joined_rows()
        first, second, noise = map(torch.from_numpy, last)
        if self._published:
            return rows, LastStates(first, second, noise)
        return rows, LastStates(torch.log(first / second), 1 / first + 1 / second, noise)

    def _joined_rows(self) -> Tensor:
        if not self._published:
            self._join_split_volunteers()
        return torch.from_numpy(self._rows)

    def _run(
        self,
        probs: Tensor,
        noise_scale: float,
        stage: Stage,
        *,
        noises: NDArray[np.float64] | None = None,
        last: list[NDArray[np.float64]] | None = None,
    ) -> None:
        """Write the rows of all volunteers, the noise before their steps and their last states, if there is room."""
        truth, classes = probs.numpy(), tuple(range(probs.shape[1]))
        noises = np.empty((0, self._rows.shape[2])) if noises is None else noises
        last = [part[:0] for part in self._initial] if last is None else last
        scan = _scan_for(published=self._published)

        def run_thread(thread: int) -> None:
            for task in self._tasks[thread]:
                scan(
                    classes,
                    task.volunteers,
                    task.first_label,
                    task.last_label,
                    self._starts,
                    *self._columns,
                    truth,
                    *self._initial,
                    float(noise_scale),
                    STAGE_CODES[stage],
                    *task.workspace,
                    self._rows,
                    noises,
                    *last,
                )

        in_parallel(run_thread, len(self._tasks))

    def with_steps(self, steps: Steps, prior: Tensor | LastStates) -> CompiledScan:
        """See `Scan`; the copy writes to the same memory."""
        other = copy(self)
        other._set(steps, prior)
        return other

    def for_steps(self, steps: Steps, prior: Tensor | LastStates) -> CompiledScan:
        """See `Scan`."""
        return CompiledScan(steps, prior, published=self._published)

    def _set(self, steps: Steps, prior: Tensor | LastStates) -> None:
        self.prior = prior
        self._columns = [column.numpy() for column in (steps.item, steps.label, steps.weight, steps.drift)]
        self._columns.append(shares_array(steps))
        self._initial = [part.double().contiguous().numpy() for part in self._initial_states(prior)]

    def _initial_states(self, prior: Tensor | LastStates) -> tuple[Tensor, Tensor, Tensor]:
        """Return the states before the first step as the compiled code holds them, and the noise that awaits it."""
        if isinstance(prior, LastStates):
            return prior if self._published else (*state_counts(prior.mean, prior.covariance), prior.noise)
        hits, misses = prior_counts(prior.double())
        noise = torch.zeros_like(hits[..., 0])
        if self._published:
            # "Prior Distributions over the State Variables".
            return torch.log(hits / misses), torch.diag_embed(1 / hits + 1 / misses), noise
        return hits, misses, noise

    def _join_split_volunteers(self) -> None:
        """Join the labels of those volunteers who were split by label between threads."""
        parts = [
            task for tasks in self._tasks for task in tasks if task.last_label - task.first_label < self._rows.shape[2]
        ]
        for k in sorted({int(task.volunteers[0]) for task in parts}):
            workspaces = [
                task.workspace for task in sorted(parts, key=attrgetter("first_label")) if task.volunteers[0] == k
            ]
            hits, misses = (np.concatenate([space[index] for space in workspaces], axis=1) for index in (0, 1))
            rows = self._rows[self._starts[k] : self._starts[k + 1]]
            bounds = chunk_bounds(len(rows), at_most=len(self._tasks))
            in_parallel(partial(_join_chunk, bounds, hits, misses, rows), len(bounds) - 1)


def shares_array(steps: Steps) -> NDArray[Any]:
    """Return the shares of the labels in soft answers, (S, L), for compiled code: empty where there are none."""
    if steps.shares is not None:
        return np.ascontiguousarray(steps.shares.numpy())
    return np.empty((0, 2), steps.weight.numpy().dtype)


class Workspace(NamedTuple):
    """Memory for the states of one volunteer and some labels.

    Weighted: counts for and against the labels, each of shape (T, L, J), and the noise before each step, (T + 1, L). As
    published, for one label at a time: means, (T, J), covariances, (T, J, J), and the noise, (T + 1,). Before the
    filter runs, the first noise is what earlier answers caused; afterwards, the last one awaits the next step.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    noise: NDArray[np.float64]

    @classmethod
    def for_steps(cls, n_steps: int, n_labels: int, n_classes: int, *, published: bool) -> Workspace:
        """Allocate memory for a number of steps."""
        if published:
            return cls(np.empty((n_steps, n_classes)), np.empty((n_steps, n_classes, n_classes)), np.zeros(n_steps + 1))
        shape = (n_steps, n_labels, n_classes)
        return cls(np.empty(shape), np.empty(shape), np.zeros((n_steps + 1, n_labels)))


class Task(NamedTuple):
    """Volunteers to scan one after another, the range of labels to scan for them, and a workspace of their own."""

    volunteers: NDArray[np.int64]
    first_label: int
    last_label: int
    workspace: Workspace


def split_work(counts: NDArray[np.int64], n_labels: int) -> list[list[tuple[NDArray[np.int64], int, int]]]:
    """Return for each thread what it scans: volunteers, the first label and one beyond the last.

    The longest pieces are assigned first, each to the thread with the least work. Volunteers with more than a part of a
    thread's work are split by label, each label a task of its own; the other volunteers of a thread are one task.
    """
    n_threads = len(chunk_bounds(0, at_most=int(counts.sum()) // MIN_STEPS_PER_THREAD)) - 1
    max_unsplit = MAX_UNSPLIT_SHARE * counts.sum() / n_threads if n_threads > 1 else np.inf
    pieces = [
        (int(counts[k]) * (last - first), int(k), first, last)
        for k in np.flatnonzero(counts)
        for first, last in ([(n, n + 1) for n in range(n_labels)] if counts[k] > max_unsplit else [(0, n_labels)])
    ]
    load = [(0, thread) for thread in range(n_threads)]
    split: list[list[tuple[NDArray[np.int64], int, int]]] = [[] for _ in load]
    unsplit: list[list[int]] = [[] for _ in load]
    for size, k, first, last in sorted(pieces, key=lambda piece: -piece[0]):
        work, thread = heapq.heappop(load)
        heapq.heappush(load, (work + size, thread))
        if last - first < n_labels:
            split[thread].append((np.array([k]), first, last))
        else:
            unsplit[thread].append(k)
    return [
        [*tasks, *([(np.array(sorted(volunteers)), 0, n_labels)] if volunteers else [])]
        for tasks, volunteers in zip(split, unsplit, strict=True)
    ]


def _scan_for(*, published: bool) -> Callable[..., None]:
    return scan_published if published else _scan_weighted


@cache
def compile_scan(
    n_classes: int,
    item_type: np.dtype[Any],
    label_type: np.dtype[Any],
    precision: np.dtype[Any],
    *,
    published: bool,
) -> None:
    """Compile the scan for a number of classes, or load it from disk, by scanning one step."""
    one, table, cube = np.ones(1, precision), np.ones((1, 1, n_classes)), np.ones((1, n_classes, 1), precision)
    square = np.ones((1, 1, n_classes, n_classes)) if published else table
    with compile_notice(f"the scan over volunteers for {n_classes} classes"):
        _scan_for(published=published)(
            tuple(range(n_classes)),
            np.array([0]),
            0,
            1,
            np.array([0, 1]),
            np.zeros(1, dtype=item_type),
            np.zeros(1, dtype=label_type),
            one,
            one,
            np.empty((0, 2), precision),
            np.full((1, n_classes), 1 / n_classes, precision),
            table,
            square,
            table[..., 0],
            1.0,
            2,
            *Workspace.for_steps(1, 1, n_classes, published=published),
            cube,
            np.empty((0, 1)),
            table[:0],
            square[:0],
            table[:0, :, 0],
        )
        _join_labels(0, 1, table, table, cube)


# Compiled functions take `classes`, the tuple (0, ..., J - 1). Its length is known at compile time, so that short loops
# over the classes are unrolled.


@njit(cache=True, nogil=True, error_model="numpy")
def filter_weighted(
    classes: Any,
    first: int,
    last: int,
    first_label: int,
    item: Any,
    label: Any,
    weight: Any,
    drift: Any,
    shares: Any,
    probs: Any,
    prior_hits: Any,
    prior_misses: Any,
    noise_scale: float,
    predicted: bool,  # noqa: FBT001 - compiled code has no keywords
    hits: Any,
    misses: Any,
    noise: Any,
) -> None:
    """Fill in the counts of one volunteer at every step, (T, L, J), from `first_label` on, and the noise before it.

    On entry the first noise is what earlier answers caused; the last one, (T + 1, L), becomes what awaits the next
    step. All labels take a step together: each waits for its own divisions, and so they wait at the same time. A soft
    answer counts for each label by its share, and against it by the rest.
    """
    n_classes, n_labels = len(classes), len(prior_hits)
    current_hits, current_misses = prior_hits.copy(), prior_misses.copy()
    # u = p (1 - p), below eq:q_tau; noise does not change it.
    u = current_hits * current_misses / (current_hits + current_misses) ** 2
    answer_noise, truth = noise[0].copy(), np.empty(n_classes)
    for step in range(first, last):
        t, answered, count = step - first, label[step] >= 0, weight[step]
        for j in range(n_classes):
            truth[j] = probs[item[step], j]
        for target in range(n_labels):
            process_noise = answer_noise[target] + drift[step]
            noise[t, target] = process_noise
            hit = count * share_of(shares, label, step, first_label + target)
            next_noise = 0.0
            for j in range(n_classes):
                a, b = current_hits[target, j], current_misses[target, j]
                # Predict: the odds stay (eq:what_prior), the variance 1 / a + 1 / b grows by the noise (eq:P_prior).
                shrinkage = (a + b) / (a + b + process_noise * a * b)
                a, b = shrinkage * a, shrinkage * b
                if predicted:
                    hits[t, target, j], misses[t, target, j] = a, b
                if not answered:
                    next_noise += truth[j] * u[target, j]  # z of eq:q_tau
                elif truth[j] > 0.0:
                    # Update: "Forward Pass Filtering Steps", by shares of the classes.
                    a, b = a + hit * truth[j], b + (count - hit) * truth[j]
                    u_after = a * b / ((a + b) * (a + b))
                    next_noise += max(u_after - u[target, j], 0.0)  # eq:q_tau
                    u[target, j] = u_after
                current_hits[target, j], current_misses[target, j] = a, b
                if not predicted:
                    hits[t, target, j], misses[t, target, j] = a, b
            answer_noise[target] = noise_scale * next_noise
    noise[last - first] = answer_noise


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_weighted(classes: Any, n_steps: int, hits: Any, misses: Any, noise: Any) -> None:
    """Turn the filtered counts of one volunteer, (T, L, J), into smoothed ones.

    The recursion of Rauch, Tung and Striebel gives the states of "Backward Pass Smoothing Steps" without erratum 2.
    """
    n_classes, n_labels = len(classes), noise.shape[1]
    mean, variance = np.empty((n_labels, n_classes)), np.empty((n_labels, n_classes))
    for target in range(n_labels):
        for j in range(n_classes):
            mean[target, j] = math.log(hits[n_steps - 1, target, j] / misses[n_steps - 1, target, j])
            variance[target, j] = 1.0 / hits[n_steps - 1, target, j] + 1.0 / misses[n_steps - 1, target, j]
    for t in range(n_steps - 2, -1, -1):
        for target in range(n_labels):
            process_noise = noise[t + 1, target]
            for j in range(n_classes):
                if process_noise == 0.0:
                    hits[t, target, j], misses[t, target, j] = hits[t + 1, target, j], misses[t + 1, target, j]
                    continue
                a, b = hits[t, target, j], misses[t, target, j]
                # With the filtered variance P = 1 / a + 1 / b this is P / (P + q).
                gain = (a + b) / (a + b + process_noise * a * b)
                filtered = math.log(a / b)
                smoothed = filtered + gain * (mean[target, j] - filtered)
                smoothed_variance = gain * (process_noise + gain * variance[target, j])
                odds = math.exp(smoothed)
                mean[target, j], variance[target, j] = smoothed, smoothed_variance
                # Back to counts, eq:Dyn_postAlpha.
                hits[t, target, j] = (1.0 + odds) / smoothed_variance
                misses[t, target, j] = (1.0 + odds) / (smoothed_variance * odds)


@njit(cache=True, nogil=True, error_model="numpy")
def _join_labels(first: int, last: int, hits: Any, misses: Any, rows: Any) -> None:
    """Turn counts for and against labels, (T, L, J), into Dirichlet rows, as `tensors.dynibcc.dirichlet_rows` does."""
    _, n_classes, n_labels = rows.shape
    for step in range(first, last):
        for j in range(n_classes):
            share_sum, variance_sum, scaled_sum = 0.0, 0.0, 0.0
            for label in range(n_labels):
                inverse_total = 1.0 / (hits[step, label, j] + misses[step, label, j])
                share = hits[step, label, j] * inverse_total
                variance = share * misses[step, label, j] * inverse_total
                rows[step, j, label] = share
                share_sum += share
                variance_sum += variance
                scaled_sum += variance * inverse_total
            row_total = variance_sum / (scaled_sum * share_sum)
            for label in range(n_labels):
                rows[step, j, label] *= row_total


def _join_chunk(
    bounds: NDArray[np.int64],
    hits: NDArray[Any],
    misses: NDArray[Any],
    rows: NDArray[Any],
    chunk: int,
) -> None:
    _join_labels(bounds[chunk], bounds[chunk + 1], hits, misses, rows)


@njit(cache=True, nogil=True, error_model="numpy")
def _scan_weighted(
    classes: Any,
    volunteers: Any,
    first_label: int,
    last_label: int,
    starts: Any,
    item: Any,
    label: Any,
    weight: Any,
    drift: Any,
    shares: Any,
    probs: Any,
    prior_hits: Any,
    prior_misses: Any,
    prior_noise: Any,
    noise_scale: float,
    stage: int,
    hits: Any,
    misses: Any,
    noise: Any,
    rows: Any,
    noises: Any,
    last_hits: Any,
    last_misses: Any,
    last_noise: Any,
) -> None:
    """Write the Dirichlet rows of some volunteers; for volunteers split by label, leave the counts in the workspace.

    Write the noise before each step, too, (S, L), unless `noises` is empty, and the last states unless these are.
    """
    for k in volunteers:
        first, last = starts[k], starts[k + 1]
        prior_row = 0 if len(prior_hits) == 1 else k
        noise[0] = prior_noise[prior_row, first_label:last_label]
        filter_weighted(
            classes,
            first,
            last,
            first_label,
            item,
            label,
            weight,
            drift,
            shares,
            probs,
            prior_hits[prior_row, first_label:last_label],
            prior_misses[prior_row, first_label:last_label],
            noise_scale,
            stage == 0,
            hits,
            misses,
            noise,
        )
        if len(noises) > 0:
            noises[first:last, first_label:last_label] = noise[: last - first]
        if len(last_hits) > 0:
            last_hits[k, first_label:last_label] = hits[last - first - 1]
            last_misses[k, first_label:last_label] = misses[last - first - 1]
            last_noise[k, first_label:last_label] = noise[last - first]
        if stage == 2:
            smooth_weighted(classes, last - first, hits, misses, noise)
        if last_label - first_label == rows.shape[2]:
            _join_labels(0, last - first, hits, misses, rows[first:last])
