"""Whether a network separates two groups of volunteers, to tell a split from a group that was only not seen before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.network import VolunteerNetwork

# Two groups are apart if so few shuffles of their volunteers separate them as well; smaller groups cannot be compared.
N_SHUFFLES, MAX_APART_P_VALUE, MIN_GROUP = 199, 0.01, 8


class Separation(NamedTuple):
    """How far a network separates two groups of volunteers, and how often shuffled groups are as far apart.

    Attributes
    ----------
    contrast
        The weights inside the groups less those between them, beyond what shuffled groups have, as a share of all.
    p_value
        The share of shuffles with as much contrast; NaN if a group has fewer than eight volunteers in the network.
    """

    contrast: float
    p_value: float

    @classmethod
    def of(cls, network: VolunteerNetwork, groups: tuple[Array, Array], rng: np.random.Generator) -> Separation:
        """Compare two groups of volunteers, given by their ids."""
        parts = [[one for one in group.tolist() if one in network.table] for group in groups]
        if min(map(len, parts)) < MIN_GROUP:
            return cls(np.nan, np.nan)
        weights = network.subnetwork([*parts[0], *parts[1]]).weights
        sides = np.repeat([1.0, -1.0], [len(part) for part in parts])
        shuffled = rng.permuted(np.tile(sides, (N_SHUFFLES, 1)), axis=1).T
        contrast = float(sides @ (weights @ sides))
        by_chance = (shuffled * (weights @ shuffled)).sum(axis=0)
        total = max(float(weights.sum()), np.finfo(float).tiny)
        n_as_high = np.count_nonzero(by_chance >= contrast - 1e-12 * total)
        return cls((contrast - float(by_chance.mean())) / total, (1 + n_as_high) / (1 + N_SHUFFLES))

    def is_gone_in(self, other: Separation) -> bool:
        """Return whether groups that are apart here are together there: not distinct, and less than half as far."""
        return other.p_value > MAX_APART_P_VALUE and 2 * other.contrast < self.contrast
