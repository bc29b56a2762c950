"""The scan of `crowdgraph.kernels.dglm` compiled for CPUs: one volunteer after another, in several threads.

Where answers are weighted, the state of a class is kept as counts for and against the label: an answer adds to them and
noise shrinks them, so that filtering needs no logarithm and nothing can become negative. Smoothing sums positive parts.
Where answers are mixed, `crowdgraph.kernels.dglm_mixed` does the work.

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
from crowdgraph.kernels.dglm import Stage, Steps, prior_counts
from crowdgraph.kernels.dglm_published import scan_published

__all__ = ["CompiledScan", "Workspace", "compile_scan", "filter_weighted", "smooth_weighted"]

# Fewer steps than this are not worth a second thread.
LEAST_STEPS = 2_000
# A volunteer is split by label where they have more than this part of a thread's share.
LONG = 1 / 8
STAGES = {"predicted": 0, "filtered": 1, "smoothed": 2}


class CompiledScan:
    """The scan on CPUs; see `crowdgraph.kernels.dglm.Scan`.

    The answer is written to the same memory each time.
    """

    def __init__(self, steps: Steps, prior: Tensor, *, published: bool = False) -> None:
        n_classes, n_labels = prior.shape[1:]
        self._starts = steps.starts.numpy()
        self._set(steps, prior)
        self._mixed = published
        counts = np.diff(self._starts)
        self._tasks = [
            [
                Task(
                    volunteers,
                    first,
                    last,
                    Workspace.of(int(counts[volunteers].max()), last - first, n_classes, published=published),
                )
                for volunteers, first, last in tasks
            ]
            for tasks in shares(counts, n_labels)
        ]
        self._found = np.empty((len(steps.item), n_classes, n_labels))
        compile_scan(n_classes, self._columns[0].dtype, self._columns[1].dtype, published=published)

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Scan once; see `Scan`."""
        truth, classes = probs.numpy(), tuple(range(probs.shape[1]))
        scan = _scan_for(published=self._mixed)

        def part(number: int) -> None:
            for task in self._tasks[number]:
                scan(
                    classes,
                    task.volunteers,
                    task.first,
                    task.last,
                    self._starts,
                    *self._columns,
                    truth,
                    *self._prior,
                    float(noise_scale),
                    STAGES[stage],
                    *task.room,
                    self._found,
                )

        in_parallel(part, len(self._tasks))
        if not self._mixed:
            self._join_split()
        return torch.from_numpy(self._found)

    def with_steps(self, steps: Steps, prior: Tensor) -> CompiledScan:
        """See `Scan`; it writes to the same memory."""
        other = copy(self)
        other._set(steps, prior)
        return other

    def _set(self, steps: Steps, prior: Tensor) -> None:
        self._columns = [column.numpy() for column in (steps.item, steps.label, steps.weight, steps.drift)]
        self._prior = [part.contiguous().numpy() for part in prior_counts(prior)]

    def _join_split(self) -> None:
        """Join the labels of those volunteers who were split, each in several threads."""
        parts = [task for tasks in self._tasks for task in tasks if task.last - task.first < self._found.shape[2]]
        for k in sorted({int(task.volunteers[0]) for task in parts}):
            rooms = [task.room for task in sorted(parts, key=attrgetter("first")) if task.volunteers[0] == k]
            hits, misses = (np.concatenate([room[place] for room in rooms], axis=1) for place in (0, 1))
            found = self._found[self._starts[k] : self._starts[k + 1]]
            at = chunk_bounds(len(found), at_most=len(self._tasks))
            in_parallel(partial(_join_stretch, at, hits, misses, found), len(at) - 1)


class Workspace(NamedTuple):
    """Where the states of one volunteer and some labels are worked out.

    Weighted: counts for and against the labels, each of shape (T, L, J), and the noise before each step, (T, L). Mixed,
    for one label at a time: means, (T, J), covariances, (T, J, J), and the noise, (T,).
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    noise: NDArray[np.float64]

    @classmethod
    def of(cls, n_steps: int, n_labels: int, n_classes: int, *, published: bool) -> Workspace:
        """Room for so many steps."""
        if published:
            return cls(np.empty((n_steps, n_classes)), np.empty((n_steps, n_classes, n_classes)), np.empty(n_steps))
        shape = (n_steps, n_labels, n_classes)
        return cls(np.empty(shape), np.empty(shape), np.empty((n_steps, n_labels)))


class Task(NamedTuple):
    """Volunteers, one after another, and which of the labels to scan for them, in a room of their own."""

    volunteers: NDArray[np.int64]
    first: int
    last: int
    room: Workspace


def shares(counts: NDArray[np.int64], n_labels: int) -> list[list[tuple[NDArray[np.int64], int, int]]]:
    """For each thread what it scans: volunteers, the first label and one beyond the last.

    The longest are given out first, each to the thread that has least to do. Volunteers who have more than a part of a
    thread's share are split by label, each label a task of its own; the others of a thread are one task together.
    """
    n_threads = len(chunk_bounds(0, at_most=int(counts.sum()) // LEAST_STEPS)) - 1
    long = LONG * counts.sum() / n_threads if n_threads > 1 else np.inf
    pieces = [
        (int(counts[k]) * (last - first), int(k), first, last)
        for k in np.flatnonzero(counts)
        for first, last in ([(n, n + 1) for n in range(n_labels)] if counts[k] > long else [(0, n_labels)])
    ]
    load = [(0, thread) for thread in range(n_threads)]
    split: list[list[tuple[NDArray[np.int64], int, int]]] = [[] for _ in load]
    whole: list[list[int]] = [[] for _ in load]
    for size, k, first, last in sorted(pieces, key=lambda piece: -piece[0]):
        busy, thread = heapq.heappop(load)
        heapq.heappush(load, (busy + size, thread))
        if last - first < n_labels:
            split[thread].append((np.array([k]), first, last))
        else:
            whole[thread].append(k)
    return [
        [*parts, *([(np.array(sorted(own)), 0, n_labels)] if own else [])]
        for parts, own in zip(split, whole, strict=True)
    ]


def _scan_for(*, published: bool) -> Callable[..., None]:
    return scan_published if published else _scan_weighted


@cache
def compile_scan(n_classes: int, item_type: np.dtype[Any], label_type: np.dtype[Any], *, published: bool) -> None:
    """Compile the scan for a number of classes, or load it from the disk, by scanning one step."""
    one, table, cube = np.ones(1), np.ones((1, 1, n_classes)), np.ones((1, n_classes, 1))
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
            np.full((1, n_classes), 1 / n_classes),
            table,
            table,
            1.0,
            2,
            *Workspace.of(1, 1, n_classes, published=published),
            cube,
        )
        _join(0, 1, table, table, cube)


# Compiled functions take `classes`, the tuple (0, ..., J - 1). Its length is known when compiling, so that short loops
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

    The labels take each step together: each has to wait for its own divisions, and so they wait at the same time.
    """
    n_classes, n_labels = len(classes), len(prior_hits)
    now, against = prior_hits.copy(), prior_misses.copy()
    # p (1 - p), which noise leaves as it is.
    bernoulli_variance = now * against / (now + against) ** 2
    gained, truth = np.zeros(n_labels), np.empty(n_classes)
    for step in range(first, last):
        t, given = step - first, label[step] - first_label
        answered, counted = label[step] >= 0, weight[step]
        for j in range(n_classes):
            truth[j] = probs[item[step], j]
        for own in range(n_labels):
            before = gained[own] + drift[step]
            noise[t, own] = before
            hit = counted if given == own else 0.0
            caused = 0.0
            for j in range(n_classes):
                a, b = now[own, j], against[own, j]
                # The odds stay, and the variance 1 / a + 1 / b grows by the noise.
                kept = (a + b) / (a + b + before * a * b)
                a, b = kept * a, kept * b
                if predicted:
                    hits[t, own, j], misses[t, own, j] = a, b
                if not answered:
                    caused += truth[j] * bernoulli_variance[own, j]
                elif truth[j] > 0.0:
                    a, b = a + hit * truth[j], b + (counted - hit) * truth[j]
                    after = a * b / ((a + b) * (a + b))
                    caused += max(after - bernoulli_variance[own, j], 0.0)
                    bernoulli_variance[own, j] = after
                now[own, j], against[own, j] = a, b
                if not predicted:
                    hits[t, own, j], misses[t, own, j] = a, b
            gained[own] = noise_scale * caused


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_weighted(classes: Any, n_steps: int, hits: Any, misses: Any, noise: Any) -> None:
    """Turn the filtered counts of one volunteer, (T, L, J), into smoothed ones."""
    n_classes, n_labels = len(classes), noise.shape[1]
    mean, variance = np.empty((n_labels, n_classes)), np.empty((n_labels, n_classes))
    for own in range(n_labels):
        for j in range(n_classes):
            mean[own, j] = math.log(hits[n_steps - 1, own, j] / misses[n_steps - 1, own, j])
            variance[own, j] = 1.0 / hits[n_steps - 1, own, j] + 1.0 / misses[n_steps - 1, own, j]
    for t in range(n_steps - 2, -1, -1):
        for own in range(n_labels):
            gained = noise[t + 1, own]
            for j in range(n_classes):
                if gained == 0.0:
                    hits[t, own, j], misses[t, own, j] = hits[t + 1, own, j], misses[t + 1, own, j]
                    continue
                a, b = hits[t, own, j], misses[t, own, j]
                # With the own variance P = 1 / a + 1 / b this is P / (P + q).
                share = (a + b) / (a + b + gained * a * b)
                filtered = math.log(a / b)
                smoothed = filtered + share * (mean[own, j] - filtered)
                spread = share * (gained + share * variance[own, j])
                odds = math.exp(smoothed)
                mean[own, j], variance[own, j] = smoothed, spread
                hits[t, own, j], misses[t, own, j] = (1.0 + odds) / spread, (1.0 + odds) / (spread * odds)


@njit(cache=True, nogil=True, error_model="numpy")
def _join(first: int, last: int, hits: Any, misses: Any, found: Any) -> None:
    """Turn counts for and against labels, (T, L, J), into Dirichlet rows; see `crowdgraph.kernels.dglm.rows`."""
    _, n_classes, n_labels = found.shape
    for step in range(first, last):
        for j in range(n_classes):
            shares, spreads, losses = 0.0, 0.0, 0.0
            for label in range(n_labels):
                per_count = 1.0 / (hits[step, label, j] + misses[step, label, j])
                share = hits[step, label, j] * per_count
                spread = share * misses[step, label, j] * per_count
                found[step, j, label] = share
                shares += share
                spreads += spread
                losses += spread * per_count
            weight = spreads / (losses * shares)
            for label in range(n_labels):
                found[step, j, label] *= weight


def _join_stretch(
    at: NDArray[np.int64],
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
    found: NDArray[np.float64],
    part: int,
) -> None:
    _join(at[part], at[part + 1], hits, misses, found)


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
    probs: Any,
    prior_hits: Any,
    prior_misses: Any,
    noise_scale: float,
    stage: int,
    hits: Any,
    misses: Any,
    noise: Any,
    found: Any,
) -> None:
    """Write the Dirichlets of some volunteers; of those whose labels are split, leave the counts in the room."""
    for k in volunteers:
        first, last = starts[k], starts[k + 1]
        own = 0 if len(prior_hits) == 1 else k
        filter_weighted(
            classes,
            first,
            last,
            first_label,
            item,
            label,
            weight,
            drift,
            probs,
            prior_hits[own, first_label:last_label],
            prior_misses[own, first_label:last_label],
            noise_scale,
            stage == 0,
            hits,
            misses,
            noise,
        )
        if stage == 2:
            smooth_weighted(classes, last - first, hits, misses, noise)
        if last_label - first_label == found.shape[2]:
            _join(0, last - first, hits, misses, found[first:last])
