"""Progress bars on long work."""

from __future__ import annotations

from typing import Any

__all__ = ["progress_bar"]


def progress_bar(name: str, *, visible: bool, total: int | None = None, unit: str = "sweeps") -> Any:
    """A tqdm bar, which shows nothing unless asked."""
    from tqdm.auto import tqdm

    return tqdm(desc=name, total=total, unit=f" {unit}", disable=not visible, leave=False)
