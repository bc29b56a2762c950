"""The one place that says which colours crowdgraph uses.

The eight hues are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb

from crowdgraph.core.columns import Array

__all__ = ["GREY", "HUES", "INK", "PALE", "SHARES", "colours", "ink_on", "mixed"]

INK = "#333333"
GREY = "#888888"
# The inside of what belongs to nobody; its outline is grey, since grey is a hue, too.
PALE = "#F2F2F2"
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
# From nothing to all.
SHARES = LinearSegmentedColormap.from_list("shares", ["#FFFFFF", "#B5D3E7", HUES[0], "#00263B"])


def colours(names: Sequence[object]) -> list[str]:
    """A colour for each name: the eight hues, then the same ones paler, darker, paler still and so on."""
    return [_shade(HUES[place % len(HUES)], place // len(HUES)) for place in range(len(names))]


def mixed(hues: Sequence[str], shares: Array) -> Array:
    """Mix colours as lights are mixed: red, green and blue from 0 to 1, of shape (V, 3), for shares of shape (V, K)."""
    light = _to_light(np.array([to_rgb(hue) for hue in hues]).reshape(-1, 3))
    sum_of_light = np.clip(shares @ light, 0, 1)
    curve = 1.055 * sum_of_light ** (1 / 2.4) - 0.055
    return np.asarray(np.where(sum_of_light <= 0.0031308, 12.92 * sum_of_light, curve))


def ink_on(colour: str) -> str:
    """The colour of a text that can be read on this one: dark or white."""
    brightness = float(_to_light(np.array(to_rgb(colour))) @ [0.2126, 0.7152, 0.0722])
    return INK if brightness > 0.3 else "#FFFFFF"


def _to_light(parts: Array) -> Array:
    """The amount of light that the parts of a colour stand for (the sRGB standard)."""
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _shade(hue: str, turn: int) -> str:
    """The hue itself at turn 0, then by turns closer to white and closer to black."""
    strength, end = 0.6 ** ((turn + 1) // 2), 255 if turn % 2 else 0
    parts = [int(hue[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(end + strength * (part - end)):02X}" for part in parts)
