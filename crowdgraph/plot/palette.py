"""The one place that says which colours crowdgraph uses.

The eight hues are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["HUES", "INK", "colours"]

INK = "#333333"
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def colours(names: Sequence[object]) -> list[str]:
    """A colour for each name: the eight hues, then the same ones paler and paler."""
    return [_paler(HUES[place % len(HUES)], 0.6 ** (place // len(HUES))) for place in range(len(names))]


def _paler(hue: str, strength: float) -> str:
    parts = [int(hue[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(255 - strength * (255 - part)):02X}" for part in parts)
