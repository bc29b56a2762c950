"""A graph's responses as the steps of its volunteers, for kernels of models with time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core.clock import ticks
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.kernels._runtime import resolve_device
from crowdgraph.kernels.dglm import Scan, Stage, Steps, TensorScan
from crowdgraph.kernels.dglm_compiled import CompiledScan, compile_scan
from crowdgraph.kernels.dirichlet import empirical_bayes_concentration
from crowdgraph.kernels.dynibcc import CompiledLikelihood, DynamicVB, ItemSteps, Likelihood, TensorLikelihood
from crowdgraph.kernels.ibcc import Expectations, tensor_expectations
from crowdgraph.kernels.sweep import (
    CompiledSweep,
    ItemResponses,
    Sweeper,
    TensorSweep,
    compile_sweep,
    compiled_expectations,
)
from crowdgraph.models._priors import volunteer_priors
from crowdgraph.models.base import Answers


class AnswerTensors:
    """The answers in item order, and the volunteers who gave them by activity, the busiest first.

    Busy volunteers stand together so that what the sweep visits most stays in the processor's cache; volunteers without
    answers have no place in the tables.

    Attributes
    ----------
    responses
        The answers, gathered by item.
    """

    def __init__(self, answers: Answers, *, device: str = "cpu", dtype: str = "float64") -> None:
        self._graph = graph = answers.graph
        self._device, self._dtype = resolve_device(device), getattr(torch, dtype)
        counts = np.bincount(answers.volunteer, minlength=len(graph.volunteers))
        self._busiest = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        place: Array = np.zeros(len(counts), dtype=code_type(graph))
        place[self._busiest] = np.arange(len(self._busiest))
        order, starts = answers.by_item()
        codes: Array = place[answers.volunteer]
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
        """Volunteers with answers, labels and classes: (K, L, J)."""
        return (len(self._busiest), len(self._graph.labels), len(self._graph.classes))

    @property
    def volunteers(self) -> Array:
        """The places of the volunteers with answers in the graph, in the order of the tables, of shape (K,)."""
        return self._busiest

    def kernels(self) -> tuple[Sweeper, Expectations]:
        """The sweep over the answers and the expectations that go with it: compiled on CPUs, tensors elsewhere."""
        if self._device.type == "cpu":
            return CompiledSweep(self.responses, n_classes=self.shape[-1]), compiled_expectations
        return TensorSweep(self.responses, device=self._device, dtype=self._dtype), tensor_expectations

    def items(self) -> tuple[Tensor, Tensor]:
        """Class probabilities to begin with, gold where it is known, of shape (N, J); and where it is, (N,)."""
        gold = self._graph.gold
        probs = np.where(gold.known[:, None], np.nan_to_num(gold.probs), 1 / len(self._graph.classes))
        return self.tensor(probs), torch.from_numpy(gold.known.copy()).to(self._device)

    def tensor(self, values: Array) -> Tensor:
        """An array as a tensor of its own, on the device and in its precision."""
        # Compiled kernels compute in double precision.
        dtype = torch.float64 if self._device.type == "cpu" else self._dtype
        return torch.tensor(np.ascontiguousarray(values), dtype=dtype, device=self._device)

    def table(self, confusion: Array) -> Tensor:
        """Values by volunteer, class and label, (any, J, L), as a table of the busiest, labels and classes."""
        rows = confusion if len(confusion) == 1 else confusion[self._busiest]
        return self.tensor(rows.transpose(0, 2, 1))

    def confusion(self, table: Tensor, *, others: Array) -> Array:
        """The way back: values by volunteer, class and label, with those of `others` for who has no answers."""
        found = np.array(np.broadcast_to(others, (len(self._graph.volunteers), *others.shape[1:])))
        found[self._busiest] = table.cpu().double().numpy().transpose(0, 2, 1)
        return found


def compile_sweep_for(graph: CrowdGraph) -> None:
    """Load, or compile, the sweep over the answers of such a graph."""
    compile_sweep(len(graph.classes), np.dtype(code_type(graph).replace("int", "uint")))


def code_type(graph: CrowdGraph) -> str:
    """The type of numbers that count all pairs of volunteers and labels."""
    return "int32" if len(graph.volunteers) * len(graph.labels) < 2**31 else "int64"


# So many volunteers tell well enough what volunteers are like.
ENOUGH = 5_000
# Log odds that gain so much variance are forgotten; more would only overflow.
MOST_DRIFT = 1e6


class StepTensors:
    """The responses of a graph, one volunteer after another, each in order of time; also those without an answer.

    Parameters
    ----------
    graph
        The graph.
    drift
        The variance that log odds gain in one tick of the graph's times.
    repeat_span
        After how many steps an answer to an item is forgotten; None where all answers count fully.
    device, dtype
        Where to compute, and in which precision unless it is the CPU.

    Attributes
    ----------
    starts, times
        Where each volunteer's steps begin, of shape (K + 1,), and when they were, of shape (S,).
    """

    def __init__(self, graph: CrowdGraph, *, drift: float, repeat_span: float | None, device: str, dtype: str) -> None:
        self._graph = graph
        self._device = resolve_device(device)
        # Compiled kernels compute in double precision.
        self._dtype = torch.float64 if self._device.type == "cpu" else getattr(torch, dtype)
        order, starts = graph.responses.by_volunteer
        self.starts = lock(starts.astype(np.int64))
        self.times = lock(graph.responses.time[order])
        item = graph.responses.item[order]
        self._steps = Steps(
            self._column(self.starts),
            self._column(item),
            self._column(graph.responses.label[order]),
            self._values(_weights(item, graph.responses.label[order], self.starts, repeat_span)),
            self._values(np.minimum(_elapsed(self.times, self.starts) * drift, MOST_DRIFT)),
        )
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        by_item = graph.responses.by_item
        self._gathered = ItemSteps(self._column(by_item.starts.astype(np.int64)), self._column(place[by_item.order]))

    @property
    def typical_drift(self) -> float:
        """The median variance that log odds gain between two responses of a volunteer because of time."""
        later = np.ones(len(self.times), dtype=bool)
        later[self.starts[:-1][np.diff(self.starts) > 0]] = False
        return float(np.median(self._steps.drift.cpu().numpy()[later])) if later.any() else 0.0

    def passes(self, prior: CrowdPrior, guess: Array, *, stage: Stage, published: bool) -> DynamicVB:
        """Passes over the steps that start from a guess at the class probabilities of the items, of shape (N, J)."""
        scan, reader = self.kernels(prior, published=published)
        gold = self._graph.gold
        return DynamicVB(
            self._steps,
            scan,
            reader,
            class_prior=self._values(prior.class_concentration),
            probs=self._values(np.where(gold.known[:, None], gold.probs, guess)),
            fixed=self._column(gold.known),
            stage=stage,
        )

    def kernels(self, prior: CrowdPrior, *, published: bool) -> tuple[Scan, Likelihood]:
        """The scan over the steps and the reading of what it finds: compiled on CPUs, tensors elsewhere."""
        own = self._values(volunteer_priors(prior, self._graph))
        if self._device.type == "cpu":
            reader = CompiledLikelihood(self._steps, self._gathered, n_classes=own.shape[1])
            return CompiledScan(self._steps, own, published=published), reader
        return TensorScan(self._steps, own, published=published), TensorLikelihood(self._steps, self._gathered)

    def typical(self, prior: CrowdPrior, probs: Tensor) -> Tensor:
        """What volunteers are like, (K, J, L), learned from class probabilities of the items, (N, J).

        Those who have a prior of their own keep it; all others get the one that fits them best.
        """
        graph, steps = self._graph, self._steps
        shape = (len(graph.volunteers), len(graph.labels))
        typical = self._values(
            np.broadcast_to(volunteer_priors(prior, graph), (shape[0], len(graph.classes), shape[1]))
        )
        answered = steps.label >= 0
        codes = torch.repeat_interleave(torch.arange(shape[0], device=self._device), steps.starts.diff())
        cells = (codes * shape[1] + steps.label)[answered]
        truth = (steps.weight[:, None] * probs[steps.item.long()])[answered]
        counts = truth.new_zeros(shape[0] * shape[1], truth.shape[1]).index_add(0, cells, truth)
        counts = counts.reshape(*shape, -1).transpose(1, 2)
        known = set(prior.ids.tolist())
        alike = np.array([volunteer not in known for volunteer in graph.volunteers.ids.tolist()])
        spoke = alike & (counts.sum((1, 2)) > 0).cpu().numpy()
        sample = np.flatnonzero(spoke)[:: 1 + np.count_nonzero(spoke) // ENOUGH]
        if len(sample):
            typical[alike] = empirical_bayes_concentration(counts[sample], self._values(prior.shared))
        return typical

    def _column(self, values: Array) -> Tensor:
        return torch.tensor(values, device=self._device)

    def _values(self, values: Array) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values), dtype=self._dtype, device=self._device)


def compile_scan_for(graph: CrowdGraph, *, published: bool) -> None:
    """Load, or compile, the scan over the steps of such a graph."""
    compile_scan(len(graph.classes), graph.responses.item.dtype, graph.responses.label.dtype, published=published)


def _elapsed(times: Array, starts: Array) -> Array:
    """Ticks since the volunteer's step before; none before the first."""
    counted = ticks(times).astype(np.float64)
    elapsed = np.diff(counted, prepend=counted[:1])
    elapsed[starts[:-1][np.diff(starts) > 0]] = 0
    return elapsed


def _weights(item: Array, label: Array, starts: Array, span: float | None) -> Array:
    """How much each answer counts: less where the volunteer has answered the item not long ago."""
    weights = np.ones(len(item))
    if span is None:
        return weights
    volunteer = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    answered = np.flatnonzero(label >= 0)
    order = answered[np.lexsort((item[answered], volunteer[answered]))]
    again = (np.diff(volunteer[order]) == 0) & (np.diff(item[order]) == 0)
    weights[order[1:][again]] = -np.expm1(-np.diff(order)[again] / span)
    return weights
