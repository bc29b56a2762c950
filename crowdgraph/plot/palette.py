"""The one place that says which colours crowdgraph uses.

The eight hues are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["HUES", "INK", "colours"]

INK = "#333333"
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def colours(names: Sequence[object]) -> list[str]:
    """A colour for each name; beyond eight names they come round again."""
    return [HUES[place % len(HUES)] for place in range(len(names))]
