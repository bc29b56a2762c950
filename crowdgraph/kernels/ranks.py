"""Who computes together: one process, or several that each hold a share of the responses and add up what they know."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.kernels.dynibcc import Likelihood
from crowdgraph.kernels.sweep import Sweep, Sweeper
from crowdgraph.tensors.dynibcc import Steps
from crowdgraph.tensors.ibcc import item_posteriors

__all__ = ["Alone", "Ranks", "SharedLikelihood", "SharedSweep"]


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


class SharedLikelihood:
    """The likelihood of several processes, each with the steps of its own volunteers; all of them know all items.

    What the answers say about each item is added up once each pass.
    """

    def __init__(self, likelihood: Likelihood, steps: Steps, ranks: Ranks) -> None:
        self._likelihood, self._steps, self._ranks = likelihood, steps, ranks

    def logs(self, concentration: Tensor) -> Tensor:
        """See `Likelihood`."""
        return self._likelihood.logs(concentration)

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Tensor:
        """See `Likelihood`."""
        # eq:DynVB_lnqstar_ti, a sum over answers and so over the processes that have them.
        own = torch.zeros_like(probs).index_add_(0, self._steps.item.long(), logs)
        log_weights = class_logs + self._ranks.total(own)
        updated = item_posteriors(log_weights, torch.where(fixed[:, None], probs, torch.nan))
        change = (updated - probs).abs().max()
        probs.copy_(updated)
        return change

    def feedback(self, concentration: Tensor, chosen: Tensor) -> Tensor:
        """See `Likelihood`."""
        return self._ranks.total(self._likelihood.feedback(concentration, chosen))

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        """See `Likelihood`."""
        own = torch.tensor(self._likelihood.predictive(concentration, logs, probs, fixed), dtype=torch.float64)
        left_out, expected = self._ranks.total(own).tolist()
        return left_out, expected

    def with_steps(self, steps: Steps) -> SharedLikelihood:
        """See `Likelihood`."""
        return SharedLikelihood(self._likelihood.with_steps(steps), steps, self._ranks)
