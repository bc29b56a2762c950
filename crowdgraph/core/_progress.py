"""Progress bars on long work."""

from __future__ import annotations

from typing import Any


def progress_bar(name: str, *, visible: bool, total: int | None = None, unit: str = "sweeps") -> Any:
    """Return a tqdm progress bar, which is visible only if asked for."""
    from tqdm.auto import tqdm

    return tqdm(desc=name, total=total, unit=f" {unit}", disable=not visible, leave=False)
