"""Where tensors live."""

from __future__ import annotations

from typing import Any

import torch

from crowdgraph.errors import ParameterError

__all__ = ["checked_device"]


def checked_device(device: Any) -> torch.device:
    """The named device, if this machine has it."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).sum().item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        have = ["cpu", *(name for name in ("cuda", "mps", "xpu") if getattr(torch, name).is_available())]
        raise ParameterError(
            f"device={device!r} is not available here ({str(error).splitlines()[0]}); use one of {', '.join(have)}."
        ) from error
    return found
