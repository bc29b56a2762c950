"""A graph's answers as tensors for the kernels, and tables of tensors back as arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core.columns import Array
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.kernels.devices import checked_device
from crowdgraph.kernels.ibcc import Expectations, tensor_expectations
from crowdgraph.kernels.sweep import ItemResponses, Sweeper, TensorSweep
from crowdgraph.kernels.sweep_compiled import CompiledSweep, compiled_expectations, ready
from crowdgraph.models.base import Answers

__all__ = ["AnswerTensors", "prepare_sweep"]


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
        self._device, self._dtype = checked_device(device), getattr(torch, dtype)
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


def prepare_sweep(graph: CrowdGraph) -> None:
    """Load, or compile, the sweep over the answers of such a graph."""
    ready(len(graph.classes), np.dtype(code_type(graph).replace("int", "uint")))


def code_type(graph: CrowdGraph) -> str:
    """The type of numbers that count all pairs of volunteers and labels."""
    return "int32" if len(graph.volunteers) * len(graph.labels) < 2**31 else "int64"
