"""Which code runs where: compiled code on CPUs, or PyTorch tensors on any device. Everything is decided here."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.tensors._options import resolve_device
from crowdgraph.tensors.devices import limits_of

__all__ = ["Backend", "BackendName", "Precision", "choose_backend"]

BackendName = Literal["auto", "compiled", "torch"]
Precision = Literal["float64", "float32"]


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


def backend_names() -> tuple[str, ...]:
    """Return the words that a setting `backend` can be."""
    return get_args(BackendName)
