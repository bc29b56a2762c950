"""The filter and smoother of DynIBCC over fixed steps: what a scan is, and the scan as tensor operations.

`crowdgraph.tensors.dynibcc` has the equations; `crowdgraph.kernels.dglm_compiled` has them for CPUs.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from crowdgraph.tensors.dynibcc import (
    FilteredStates,
    LastStates,
    Rounds,
    Stage,
    Steps,
    confusion_over_time,
    filter_states,
    last_states,
)

__all__ = ["Scan", "TensorScan"]


class Scan(Protocol):
    """A filter and smoother over fixed steps from fixed priors.

    Attributes
    ----------
    prior
        Dirichlet rows of the confusion before the first step, of shape (1 or K, J, L), or the states in which a filter
        over earlier steps ended.
    """

    prior: Tensor | LastStates

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Return the Dirichlet of the confusion at every step, of shape (S, J, L).

        Parameters
        ----------
        probs
            The class probabilities of the items, of shape (N, J).
        noise_scale
            The factor of the process noise that answers cause.
        stage
            ``"predicted"`` uses the answers before the step, ``"filtered"`` also its own, ``"smoothed"`` all answers of
            the volunteer.
        """
        ...

    def noise(self, probs: Tensor, *, noise_scale: float) -> Tensor:
        """Return the process noise that each label's log odds gain before each step, of shape (S, L)."""
        ...

    def with_last_states(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> tuple[Tensor, LastStates]:
        """Return what a call returns, and the filtered states of all volunteers after their last steps."""
        ...

    def with_steps(self, steps: Steps, prior: Tensor | LastStates) -> Scan:
        """Return the same scan for other steps, as many for each volunteer, or another prior, (1 or K, J, L).

        It may write to the same memory.
        """
        ...

    def for_steps(self, steps: Steps, prior: Tensor | LastStates) -> Scan:
        """Return a scan of the same kind for the steps of other volunteers and their prior, (1 or K, J, L)."""
        ...


class TensorScan:
    """The scan as tensor operations, all volunteers and labels at once, on the device of its arguments.

    It takes as many rounds as the busiest volunteer has steps.
    """

    def __init__(
        self, steps: Steps, prior: Tensor | LastStates, *, published: bool = False, rounds: Rounds | None = None
    ) -> None:
        self.prior = prior
        self._steps, self._published = steps, published
        self._rounds = Rounds(steps.starts) if rounds is None else rounds

    def __call__(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> Tensor:
        """Filter and smooth once; see `Scan`."""
        return confusion_over_time(
            self._steps,
            self.prior,
            probs=probs,
            noise_scale=noise_scale,
            stage=stage,
            published=self._published,
            rounds=self._rounds,
        )

    def noise(self, probs: Tensor, *, noise_scale: float) -> Tensor:
        """See `Scan`."""
        return self._filter(probs, noise_scale).noise

    def with_last_states(self, probs: Tensor, *, noise_scale: float, stage: Stage) -> tuple[Tensor, LastStates]:
        """See `Scan`."""
        last = last_states(self._steps, self.prior, filtered=self._filter(probs, noise_scale))
        return self(probs, noise_scale=noise_scale, stage=stage), last

    def _filter(self, probs: Tensor, noise_scale: float) -> FilteredStates:
        return filter_states(
            self._steps,
            self.prior,
            probs=probs,
            noise_scale=noise_scale,
            published=self._published,
            rounds=self._rounds,
        )

    def with_steps(self, steps: Steps, prior: Tensor | LastStates) -> TensorScan:
        """See `Scan`."""
        return TensorScan(steps, prior, published=self._published, rounds=self._rounds)

    def for_steps(self, steps: Steps, prior: Tensor | LastStates) -> TensorScan:
        """See `Scan`."""
        return TensorScan(steps, prior, published=self._published)
