"""Which code runs where: compiled code on CPUs, or PyTorch tensors on any device. Everything is decided here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.kernels import nmf
from crowdgraph.kernels._runtime import single_threaded_torch
from crowdgraph.kernels.backend_names import BackendName, Precision
from crowdgraph.kernels.cautious import CautiousEM, CompiledEM, ItemLikelihoods, TensorEM, compile_cautious
from crowdgraph.kernels.dglm import Scan, TensorScan
from crowdgraph.kernels.dglm_compiled import CompiledScan
from crowdgraph.kernels.dynibcc import CompiledLikelihood, ItemSteps, Likelihood, TensorLikelihood
from crowdgraph.kernels.fixed_point import Step
from crowdgraph.kernels.sweep import (
    CompiledExpectations,
    CompiledSweep,
    Expectations,
    ItemResponses,
    Sweeper,
    TensorSweep,
    tensor_expectations,
)
from crowdgraph.tensors._options import resolve_device, tensor_options
from crowdgraph.tensors.devices import limits_of
from crowdgraph.tensors.dynibcc import LastStates, Steps

__all__ = [
    "Backend",
    "cautious_map",
    "choose_backend",
    "choose_nmf_backend",
    "nmf_step",
    "step_kernels",
    "sweep_kernels",
    "warm_up_cautious",
]


class Backend(NamedTuple):
    """What runs, where, and in which precision.

    Attributes
    ----------
    compiled
        Whether compiled code runs; PyTorch operations otherwise.
    device, dtype
        Where tensors are, and their type.
    """

    compiled: bool
    device: torch.device
    dtype: torch.dtype

    def values(self, array: NDArray[Any]) -> Tensor:
        """Return numbers as a new tensor, in this precision."""
        return torch.tensor(np.ascontiguousarray(array), dtype=self.dtype, device=self.device)

    def column(self, array: NDArray[Any]) -> Tensor:
        """Return codes or flags as a new tensor of their own type."""
        return torch.tensor(np.ascontiguousarray(array), device=self.device)

    @property
    def array_type(self) -> np.dtype[Any]:
        """The type of arrays in this precision."""
        return torch.empty(0, dtype=self.dtype).numpy().dtype

    def threads(self) -> AbstractContextManager[object]:
        """Return a context to compute in: compiled code has threads of its own, and torch's would be in their way."""
        return single_threaded_torch() if self.compiled else nullcontext()

    def facts(self) -> dict[str, str]:
        """Return what ran, as a fit's diagnostics hold it."""
        return {
            "backend": "compiled" if self.compiled else "torch",
            "device": str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def choose_backend(backend: BackendName = "auto", *, device: str = "cpu", dtype: Precision = "float64") -> Backend:
    """Return what runs for a user's settings, or raise if it cannot run: ``"auto"`` is compiled code on CPUs."""
    if backend == "compiled" and device.partition(":")[0] != "cpu":
        raise ParameterError(
            f"backend='compiled' runs on CPUs only; got device={device!r}.",
            hint="Use backend='torch' there, or leave device out.",
        )
    options = tensor_options(device, dtype)
    return Backend(backend != "torch" and options.device.type == "cpu", *options)


def sweep_kernels(
    backend: Backend, responses: ItemResponses, *, n_classes: int, tiny_counts: bool = False
) -> tuple[Sweeper, Expectations]:
    """Return the sweep over answers and the expectations that go with it, for IBCC and Dawid-Skene.

    With `tiny_counts` counts close to zero are exact, as maximum likelihood needs them.
    """
    if backend.compiled:
        sweep = CompiledSweep(responses, n_classes=n_classes, dtype=backend.dtype, tiny_counts=tiny_counts)
        return sweep, CompiledExpectations()
    return TensorSweep(responses, device=backend.device), tensor_expectations


def step_kernels(
    backend: Backend, steps: Steps, item_steps: ItemSteps | None, prior: Tensor | LastStates, *, published: bool
) -> tuple[Scan, Likelihood]:
    """Return the scan over steps from a prior, (1 or K, J, L), and the likelihood of the answers, for DynIBCC.

    The prior may also be the states in which a filter over earlier steps ended. Without `item_steps` the likelihood
    adds up log weights of items and does not update them.
    """
    if backend.compiled:
        n_classes = prior.mean.shape[2] if isinstance(prior, LastStates) else prior.shape[1]
        likelihood = CompiledLikelihood(steps, item_steps, n_classes=n_classes)
        return CompiledScan(steps, prior, published=published), likelihood
    return TensorScan(steps, prior, published=published), TensorLikelihood(steps)


def choose_nmf_backend(
    backend: BackendName, *, device: str, dtype: Precision | Literal["auto"], symmetric: bool, largest: float = 1.0
) -> Backend:
    """Return what factorises weights, of which `largest` is the largest, or raise if it cannot.

    ``dtype="auto"`` is single precision in compiled code, which multiplies rows in it and does everything else in
    double precision, if the weights allow it; elsewhere it is double precision, if the device has it.
    """
    if backend == "compiled" and not symmetric:
        raise ParameterError(
            "backend='compiled' factorises into one factor, and symmetric=False has two.",
            hint="Use backend='torch' or 'auto' for two factors.",
        )
    precision: Precision = "float64"
    if dtype != "auto":
        precision = dtype
    elif backend != "compiled" and not limits_of(resolve_device(device)).float64:
        precision = "float32"
    chosen = choose_backend(backend if symmetric else "torch", device=device, dtype=precision)
    fits = nmf.fits_single_precision(largest)
    if dtype == "auto" and chosen.compiled and fits:
        return chosen._replace(dtype=torch.float32)
    if chosen.dtype == torch.float32 and not fits:
        lowest, highest = nmf.SINGLE_PRECISION_RANGE
        raise ParameterError(
            f"dtype={precision!r} holds factors of weights whose largest is between {lowest:g} and {highest:g}; here "
            f"it is {largest:g}.",
            hint="Use dtype='float64', or give the weights another unit.",
        )
    return chosen


def nmf_step(
    weights: Any, prior: nmf.Prior, *, symmetric: bool, published: bool = False, backend: Backend
) -> Callable[[Tensor], Step]:
    """Return the step of factors of weights: an array or a SciPy CSR array of shape (N, N)."""
    if backend.compiled:
        precision = np.float32 if backend.dtype == torch.float32 else np.float64
        return partial(nmf.CompiledWeights.of(weights, precision=precision).symmetric_step, prior=prior)
    step = nmf.published_step if published else nmf.symmetric_step if symmetric else nmf.paired_step
    return partial(step, nmf.tensor_weights(weights, device=backend.device, dtype=backend.dtype), prior=prior)


def cautious_map(likelihoods: ItemLikelihoods, *, n_communities: int, strength: float, backend: Backend) -> CautiousEM:
    """Return the map of Cautious for likelihoods in double precision, on any device."""
    kind = CompiledEM if backend.compiled else TensorEM
    return kind(likelihoods.to(backend.device, backend.dtype), n_communities=n_communities, strength=strength)


def warm_up_cautious(backend: Backend) -> None:
    """Compile what `cautious_map` runs, if it is compiled."""
    if backend.compiled:
        compile_cautious(np.dtype(str(backend.dtype).removeprefix("torch.")))
