"""What devices can do: the limits of those that lack something."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["DeviceLimits", "limits_of", "most_precise", "total"]


class DeviceLimits(NamedTuple):
    """Whether a device computes in double precision, and whether it multiplies sparse matrices (CSR)."""

    float64: bool = True
    sparse: bool = True


# Metal (Apple) has neither, by design or until now: PyTorch's issues 122602 and 112849.
LIMITS = {"mps": DeviceLimits(float64=False, sparse=False)}


def limits_of(device: torch.device) -> DeviceLimits:
    """Return what a device can do."""
    return LIMITS.get(device.type, DeviceLimits())


def total(values: Tensor) -> Tensor:
    """Return the sum of all values, added up in double precision where the device has it."""
    return values.sum(dtype=torch.float64 if limits_of(values.device).float64 else None)


def most_precise(values: Tensor) -> Tensor:
    """Return a few values in double precision where the device has it, for differences of large numbers."""
    return values.double() if limits_of(values.device).float64 else values
