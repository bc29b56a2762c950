"""Evidence that a network has communities: its modularity beside that of null networks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays
from crowdgraph.core._text import p_value_text
from crowdgraph.core.result import real_array

__all__ = ["Evidence"]

# The p-value below which modularity is evidence of communities.
MAX_P_VALUE = 0.005
# From so many null networks on, modularity is compared at the same mean weight; with fewer, a line is guesswork.
MIN_NULLS = 9
# A few null networks suffice where the excess over them would be so rare even in a network at the limit of the verdict.
MAX_DOUBT = 0.001
# Modularities that differ by less than a few times this are regarded as the same.
MIN_SPREAD = 0.005
# Below this p-value evidence that does not suffice for a verdict is weak, rather than none that is clear.
WEAK_P_VALUE = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(ReadOnlyArrays):
    """Evidence that a network has communities: restarts agree, and modularity exceeds what chance gives.

    Attributes
    ----------
    agreement
        How well the communities of several starts agree, as the mean adjusted Rand index of all pairs: 1 if they are
        the same, about 0 by chance; NaN for a single start.
    modularity
        The highest modularity of the weights that were factorised, as found by Leiden's algorithm; that of the
        communities if it was compared with nothing.
    null_modularity
        The highest modularity of networks drawn from the null model, of shape (B,).
    structured
        The verdict: whether there are communities.
    mean_weight, null_mean_weight
        The mean weight of all pairs in the network and in the null networks, the latter of shape (B,); NaN and None if
        they were not measured. Null networks whose volunteers happen to differ more have more modularity, so that
        modularity is compared at the same mean weight.
    power
        The share of crowds of a few kinds, drawn with the same numbers of answers and volunteers who differ no more, in
        which communities were seen; NaN if that was not tried.
    persists
        Whether the modularity alone does not suffice, but the communities are those of the snapshot before.

    Examples
    --------
    >>> evidence = Evidence(agreement=0.9, modularity=0.3, null_modularity=[0.09, 0.1, 0.11, 0.1], structured=True)
    >>> evidence
    Evidence(evidence for communities (p < 0.001): restarts agree by 0.90; modularity 0.300, by chance 0.090 to 0.110)
    """

    agreement: float
    modularity: float
    null_modularity: Array
    structured: bool
    mean_weight: float = field(default=float("nan"), metadata={"saved": "unless default"})
    null_mean_weight: Array | None = field(default=None, metadata={"saved": "unless default"})
    power: float = field(default=float("nan"), metadata={"saved": "unless default"})
    persists: bool = field(default=False, metadata={"saved": "unless default"})

    def __post_init__(self) -> None:
        null = real_array("null_modularity", self.null_modularity, shape=(None,))
        self._set(null_modularity=null)
        if self.null_mean_weight is not None:
            self._set(null_mean_weight=real_array("null_mean_weight", self.null_mean_weight, shape=null.shape))

    @cached_property
    def _excess(self) -> Excess:
        return Excess.of(self)

    @property
    def chance(self) -> Array:
        """The null modularities as they would be at the network's mean weight, of shape (B,).

        They are moved along the line through modularities and mean weights, if these were measured.
        """
        return self.null_modularity + self._excess.slope * self._excess.shifts

    @property
    def p_value(self) -> float:
        """The probability of so high a modularity without communities, if null modularities are normally distributed.

        It is that of one more draw by Student's distribution, given its mean weight where that was measured (by linear
        regression); a standard deviation below 0.005 counts as 0.005. NaN with fewer than three draws.
        """
        from scipy.special import stdtr

        excess = self._excess
        return float(stdtr(excess.freedom, -excess.z / np.sqrt(1 + excess.leverage))) if excess.freedom else np.nan

    @property
    def certainty(self) -> float:
        """The probability that many more null networks would give the same verdict; NaN with fewer than three.

        The verdict is that of the p-value alone. A certainty near one half says that the crowd is at the limit.
        """
        from scipy.special import ndtr, ndtri

        excess = self._excess
        if not excess.freedom:
            return float("nan")
        error = np.sqrt(excess.leverage + excess.z**2 / (2 * excess.freedom))
        return float(ndtr(abs(excess.z + ndtri(MAX_P_VALUE)) / error))

    @property
    def is_overwhelming(self) -> bool:
        """Whether more null networks could hardly change the verdict that there are communities, however few there are.

        Were the network at the limit of the verdict, its excess over the mean of normally distributed null
        modularities, in their standard deviations, would have a noncentral t-distribution; the excess must be beyond
        its quantile 0.999.

        Examples
        --------
        >>> few = [0.056, 0.057, 0.057, 0.058]
        >>> Evidence(agreement=1.0, modularity=0.65, null_modularity=few, structured=True).is_overwhelming
        True
        >>> Evidence(agreement=1.0, modularity=0.1, null_modularity=few, structured=True).is_overwhelming
        False
        """
        from scipy.special import nctdtr, ndtri

        excess = self._excess
        if not excess.freedom:
            return False
        root = 1 / np.sqrt(excess.leverage)
        return bool(nctdtr(excess.freedom, -ndtri(MAX_P_VALUE) * root, excess.z * root) > 1 - MAX_DOUBT)

    @property
    def verdict(self) -> str:
        """The verdict in words, with its p-value, or that there is none.

        "Evidence against communities" is said only where crowds of a few kinds, drawn for comparison, were recognised;
        where they were not, the answers are too few to say.

        Examples
        --------
        >>> Evidence(agreement=0.9, modularity=0.12, null_modularity=[0.09, 0.1, 0.1], structured=False).verdict
        'weak evidence for communities, not enough to call (p = 0.036)'
        """
        p_value = self.p_value
        chance = "" if np.isnan(p_value) else f" ({p_value_text(p_value)})"
        if not len(self.null_modularity):
            return "no comparison with chance"
        if self.persists:
            return f"weak evidence for communities{chance}, but they are those of the snapshot before"
        if self.structured:
            return f"evidence for communities{chance}"
        if p_value < WEAK_P_VALUE:
            return f"weak evidence for communities, not enough to call{chance}"
        if np.isnan(self.power):
            return f"no clear evidence for communities{chance}"
        if self.power < 1:
            return f"no clear evidence for communities{chance}: too few answers, or too little difference, to say"
        return f"evidence against communities{chance}: groups as different as these volunteers would have been seen"

    def __repr__(self) -> str:
        agreement = "one start" if np.isnan(self.agreement) else f"restarts agree by {self.agreement:.2f}"
        null = self.chance
        chance = f", by chance {null.min():.3f} to {null.max():.3f}" if len(null) else ""
        return f"Evidence({self.verdict}: {agreement}; modularity {self.modularity:.3f}{chance})"


class Excess(NamedTuple):
    """How far modularity exceeds that of null networks: in standard deviations, with what this number rests on.

    Attributes
    ----------
    z
        The excess over the null modularity expected at this mean weight, in standard deviations of the residuals.
    leverage
        The variance of the expectation, as a share of the residuals'.
    freedom
        The degrees of freedom of the standard deviation; 0 if there are too few null networks.
    slope, shifts
        How modularity depends on mean weight, and how far the mean weight lies from that of each null network.
    """

    z: float
    leverage: float
    freedom: int
    slope: float
    shifts: Array | float

    @classmethod
    def of(cls, evidence: Evidence) -> Excess:
        """Compare the modularity of a network with that of null networks."""
        null, weights = evidence.null_modularity, evidence.null_mean_weight
        n = len(null)
        if n < 3:
            return cls(np.nan, np.nan, 0, 0.0, 0.0)
        mean = null.mean()
        is_unknown = n < MIN_NULLS or np.isnan(evidence.mean_weight)
        if weights is None or is_unknown or np.ptp(weights) <= 1e-9 * abs(weights.mean()):
            spread = max(float(null.std(ddof=1)), MIN_SPREAD)
            return cls((evidence.modularity - mean) / spread, 1 / n, n - 1, 0.0, 0.0)
        centred = weights - weights.mean()
        squares = float(centred @ centred)
        slope = float(centred @ (null - mean)) / squares
        residuals = null - mean - slope * centred
        spread = max(float(np.sqrt(residuals @ residuals / (n - 2))), MIN_SPREAD)
        # The line is not followed beyond the null networks.
        own = float(np.clip(evidence.mean_weight, weights.min(), weights.max()))
        shift = own - float(weights.mean())
        z = (evidence.modularity - mean - slope * shift) / spread
        return cls(z, 1 / n + shift**2 / squares, n - 2, slope, own - weights)
