"""What users ask of tensors: a device that is there, and a precision that it has."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from crowdgraph.errors import ParameterError
from crowdgraph.messages import argument
from crowdgraph.tensors.devices import limits_of

PRECISIONS = ("float64", "float32")
# How much of an error of PyTorch is quoted.
MAX_REASON_LENGTH = 160


class TensorOptions(NamedTuple):
    """Where tensors are, and the type of those that hold real numbers."""

    device: torch.device
    dtype: torch.dtype


def tensor_options(device: Any, dtype: Any) -> TensorOptions:
    """Return a user's choice of device and precision, or raise if this machine or the device does not have it."""
    name = str(dtype).removeprefix("torch.")
    if name not in PRECISIONS:
        raise ParameterError(
            f"dtype={dtype!r} is not a precision of crowdgraph.", hint="Use dtype='float64' or dtype='float32'."
        )
    resolved = resolve_device("cpu" if device is None else device)
    if name == "float64" and not limits_of(resolved).float64:
        raise ParameterError(
            argument("device", device) + " has no double precision; got " + argument("dtype", dtype) + ".",
            hint="Use " + argument("dtype", "float32") + " there.",
        )
    return TensorOptions(resolved, getattr(torch, name))


def resolve_device(device: Any) -> torch.device:
    """Return the named torch device, or raise if this machine does not have it."""
    try:
        resolved = torch.device(device)
        torch.zeros(1, device=resolved).sum().item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        available = ["cpu", *(name for name in ("cuda", "mps", "xpu") if getattr(torch, name).is_available())]
        raise ParameterError(
            argument("device", device)
            + f" is not available here ({_first_sentence(error)}); use one of {', '.join(available)}."
        ) from error
    return resolved


def _first_sentence(error: Exception) -> str:
    """Return how an error of PyTorch begins: some go on for pages."""
    return str(error).splitlines()[0].split(". ")[0][:MAX_REASON_LENGTH]
