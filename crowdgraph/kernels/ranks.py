"""Who computes together: one process, or several that each hold a share of the responses and add up what they know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels.sweep import Sweep, Sweeper

__all__ = ["Alone", "Ranks", "SharedSweep"]

Value = TypeVar("Value")


class Ranks(Protocol):
    """The processes that compute together; each has a rank from 0 up."""

    @property
    def rank(self) -> int:
        """The rank of this process."""
        ...

    @property
    def size(self) -> int:
        """How many processes there are."""
        ...

    def total(self, values: Tensor) -> Tensor:
        """Return the sum of all processes' values, which is the same to the last bit everywhere."""
        ...

    def total_array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of all processes' values, for NumPy arrays."""
        ...

    def largest(self, value: float) -> float:
        """Return the largest of all processes' values."""
        ...

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all processes, by rank."""
        ...

    def from_first(self, value: Value) -> Value:
        """Return the value of rank 0."""
        ...

    def sum_rows(self, table: Tensor, shares: Sequence[range]) -> None:
        """Replace each process's share of the rows by the sum of all processes' (reduce-scatter).

        Other rows hold anything afterwards.
        """
        ...

    def spread_rows(self, table: Tensor, shares: Sequence[range]) -> None:
        """Replace the rows of the others' shares by what these have there (all-gather)."""
        ...


class Alone:
    """One process by itself."""

    rank = 0
    size = 1

    def total(self, values: Tensor) -> Tensor:
        """See `Ranks`."""
        return values

    def total_array(self, values: NDArray[Any]) -> NDArray[Any]:
        """See `Ranks`."""
        return values

    def largest(self, value: float) -> float:
        """See `Ranks`."""
        return value

    def gather(self, value: Value) -> list[Value]:
        """See `Ranks`."""
        return [value]

    def from_first(self, value: Value) -> Value:
        """See `Ranks`."""
        return value

    def sum_rows(self, table: Tensor, shares: Sequence[range]) -> None:
        """See `Ranks`."""

    def spread_rows(self, table: Tensor, shares: Sequence[range]) -> None:
        """See `Ranks`."""


class SharedSweep:
    """The sweep of several processes, each over its own items: their counts are added up once each sweep."""

    def __init__(self, sweeper: Sweeper, ranks: Ranks) -> None:
        self._sweeper = sweeper
        self._ranks = ranks

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """See `Sweeper`."""
        own = self._sweeper(logs, class_logs, probs, fixed)
        evidence = torch.as_tensor(own.evidence, dtype=own.counts.dtype, device=own.counts.device).reshape(1)
        sums = self._ranks.total(torch.cat([own.counts.ravel(), own.class_counts, evidence]))
        n_classes = len(own.class_counts)
        return Sweep(
            sums[: -n_classes - 1].reshape(own.counts.shape),
            sums[-n_classes - 1 : -1],
            float(sums[-1]),
            self._ranks.largest(float(own.change)),
        )

    def class_variance(self, probs: Tensor, effect: Tensor) -> Tensor:
        """See `Sweeper`."""
        return self._ranks.total(self._sweeper.class_variance(probs, effect))
