"""Which code runs where: compiled code on CPUs, or PyTorch tensors on any device. Everything is decided here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.kernels import nmf
from crowdgraph.kernels._runtime import resolve_device
from crowdgraph.kernels.backend_names import BackendName, Precision
from crowdgraph.kernels.cautious import CautiousEM, CompiledEM, ItemLikelihoods, TensorEM, compile_cautious
from crowdgraph.kernels.fixed_point import Step
from crowdgraph.tensors.devices import limits_of

__all__ = ["Backend", "cautious_map", "choose_backend", "choose_nmf_backend", "nmf_step", "warm_up_cautious"]


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

    def facts(self) -> dict[str, str]:
        """Return what ran, as a fit's diagnostics hold it."""
        return {
            "backend": "compiled" if self.compiled else "torch",
            "device": str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def choose_backend(backend: BackendName, *, device: str, dtype: Precision) -> Backend:
    """Return what runs for a user's settings, or raise if it cannot run: ``"auto"`` is compiled code on CPUs."""
    resolved = resolve_device(device)
    compiled = resolved.type == "cpu" if backend == "auto" else backend == "compiled"
    if compiled and resolved.type != "cpu":
        raise ParameterError(
            f"backend='compiled' runs on CPUs, and device={device!r} is none.",
            hint="Use backend='torch' there, or leave device out.",
        )
    if dtype == "float64" and not limits_of(resolved).float64:
        raise ParameterError(
            f"device={device!r} has no double precision, and dtype='float64'.", hint="Use dtype='float32' there."
        )
    return Backend(compiled, resolved, getattr(torch, dtype))


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
    automatic = dtype == "auto"
    if automatic:
        dtype = "float64" if limits_of(resolve_device(device)).float64 else "float32"
    chosen = choose_backend(backend if symmetric else "torch", device=device, dtype=dtype)
    fits = nmf.fits_single_precision(largest)
    if automatic and chosen.compiled and fits:
        return chosen._replace(dtype=torch.float32)
    if chosen.dtype == torch.float32 and not fits:
        lowest, highest = nmf.SINGLE_PRECISION_RANGE
        raise ParameterError(
            f"dtype={dtype!r} holds factors of weights whose largest is between {lowest:g} and {highest:g}; here it is "
            f"{largest:g}.",
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


def cautious_map(
    likelihoods: ItemLikelihoods, *, n_communities: int, strength: float, backend: Backend
) -> CautiousEM:
    """Return the map of Cautious for likelihoods in double precision, on any device."""
    kind = CompiledEM if backend.compiled else TensorEM
    return kind(likelihoods.to(backend.device, backend.dtype), n_communities=n_communities, strength=strength)


def warm_up_cautious(backend: Backend) -> None:
    """Compile what `cautious_map` runs, if it is compiled."""
    if backend.compiled:
        compile_cautious(np.dtype(str(backend.dtype).removeprefix("torch.")))
