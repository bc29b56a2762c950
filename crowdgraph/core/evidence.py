"""Evidence: whether a network has communities at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.core.columns import Array, Sealed
from crowdgraph.core.result import real_array

__all__ = ["Evidence"]

# Modularities that differ by less than a few times this are taken for the same.
LEAST_SPREAD = 0.005


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(Sealed):
    """Whether a network has communities: restarts then agree, and modularity is more than chance gives.

    Attributes
    ----------
    agreement
        How well the communities of several starts agree, as the mean adjusted Rand index of all pairs: 1 if they are
        the same, about 0 by chance; NaN of a single start.
    modularity
        The modularity of the communities, in the weights that were searched.
    null_modularity
        The same in networks of the same making without communities, of shape (B,).
    structured
        The verdict: whether there are communities.
    """

    agreement: float
    modularity: float
    null_modularity: Array
    structured: bool

    def __post_init__(self) -> None:
        null = real_array("null_modularity", self.null_modularity, shape=(None,))
        object.__setattr__(self, "null_modularity", null)

    @property
    def p_value(self) -> float:
        """How probable so high a modularity is without communities, if those drawn are a sample of a normal one.

        By Student's distribution of one more draw; their spread is taken for 0.005 if it is less. NaN of fewer than
        three.
        """
        from scipy.special import stdtr

        null = self.null_modularity
        if len(null) < 3:
            return float("nan")
        spread = max(float(null.std(ddof=1)), LEAST_SPREAD) * np.sqrt(1 + 1 / len(null))
        return float(stdtr(len(null) - 1, (null.mean() - self.modularity) / spread))

    def __repr__(self) -> str:
        verdict = "communities" if self.structured else "no communities"
        agreement = "one start" if np.isnan(self.agreement) else f"restarts agree by {self.agreement:.2f}"
        null = self.null_modularity
        chance = f", without communities {null.min():.3f} to {null.max():.3f}" if len(null) else ""
        return f"Evidence({verdict}: {agreement}; modularity {self.modularity:.3f}{chance})"
