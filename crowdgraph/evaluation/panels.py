"""The effective number of independent votes of a panel: how much its common errors take from its size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core._parameters import check_integer, check_number, check_seed
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import TooFewError
from crowdgraph.messages import Hint
from crowdgraph.networks.panel_errors import PanelErrors, panel_errors

__all__ = ["EffectiveVotes", "effective_votes"]

# With as many items with gold, only these count, since elsewhere the class is inferred from the same answers.
ENOUGH_GOLD_ITEMS = 50
# Smaller sums of squared residuals are rounding.
SMALLEST_POWER = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class EffectiveVotes(ReadOnlyArrays):
    """The result of `effective_votes`.

    Attributes
    ----------
    ids
        The panel, of shape (V,): those of its members who err.
    value, low, high
        The effective number of votes, and its interval; NaN where classes are not known for enough items.
    correlation
        The correlations of the members' errors given the class, of shape (V, V); NaN for pairs with too few common
        items, for which the mean of all others counts.
    n_items, n_gold
        How many items counted, and of how many of these the class is known.
    never_err
        The volunteers of the panel who never err about these items, so that nothing is known of their dependence.
    level
        The interval holds the value with this probability.
    """

    ids: Array
    value: float
    low: float
    high: float
    correlation: Array
    n_items: int
    n_gold: int
    never_err: tuple[Hashable, ...]
    level: float

    def __post_init__(self) -> None:
        self._set(ids=read_only(self.ids), correlation=read_only(self.correlation))

    def __repr__(self) -> str:
        interval = (
            "no interval, since too few items have gold"
            if np.isnan(self.low)
            else f"{self.level:.0%} interval {self.low:.1f} to {self.high:.1f}"
        )
        return (
            f"EffectiveVotes({self.value:.1f} of {len(self.ids)}, {interval}; {self.n_items:,} items, "
            f"{self.n_gold:,} with gold)"
        )


def effective_votes(
    graph: CrowdGraph,
    *,
    fit: ModelFit | str | None = None,
    volunteers: Iterable[Hashable] | None = None,
    min_common: int = 30,
    level: float = 0.95,
    n_resamples: int = 1_000,
    seed: int | None = 0,
) -> EffectiveVotes:
    r"""Estimate how many independent volunteers would vote as reliably as a panel.

    With :math:`R` the correlations of the errors of `n` volunteers given the class, ones on the diagonal,

    .. math:: n_{\text{eff}} = \frac{n^2}{\sum_{mn} R_{mn}} = \frac{n}{1 + \bar\rho (n - 1)},

    where :math:`\bar\rho` is the mean correlation of two: the mean of `n` standardised errors varies as much as that
    of :math:`n_{\text{eff}}` independent ones. Correlations of all causes count, also those that hard items make.
    Negative ones count too, so that a panel whose errors cancel is worth more than its size.

    If 50 items or more have gold, only these count. Otherwise the class probabilities of the fit stand for the truth
    of the other items, and the value is only as good as they are: errors that most of the panel shares are taken for
    the truth. How far that may lead is not known, so there is no interval then.

    Parameters
    ----------
    graph
        The graph, annotated with a fit.
    fit
        The fit, or the name of its annotation; the latest if left out.
    volunteers
        The panel, from 2 to 30 volunteers; all with at least `min_common` answers if left out.
    min_common
        For pairs with fewer common items the mean correlation of the others counts.
    level
        The interval holds the value with this probability; it comes from drawing the items with replacement.
    n_resamples
        How often the items are drawn.
    seed
        The same seed gives the same interval.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = [cg.simulate.Group(name="alike", confusion=[[0.8, 0.2], [0.2, 0.8]])]
    >>> graph = cg.simulate.crowd(n_volunteers=5, n_items=1_000, n_responses=[800] * 5, groups=groups,
    ...                           shared_errors=0.5, gold=0.5, seed=0).graph
    >>> cg.evaluation.effective_votes(graph, fit=cg.Calibrated().fit(graph))
    EffectiveVotes(2.1 of 5, 95% interval 1.9 to 2.4; 520 items, 520 with gold)
    """
    for name, count in (("min_common", min_common), ("n_resamples", n_resamples)):
        check_integer(name, count, minimum=2)
    check_number("level", level, valid=lambda value: 0 < value < 1, expected="lie between 0 and 1")
    check_seed(seed)
    panel = panel_errors(graph, fit, volunteers, min_answers=int(min_common), min_members=2)
    enough_gold = np.count_nonzero(panel.has_gold) >= ENOUGH_GOLD_ITEMS
    counted = panel.has_gold if enough_gold else np.ones_like(panel.has_gold)
    residual, answered = _residuals(panel, counted)
    errs = (residual**2).sum(axis=(1, 2)) > SMALLEST_POWER
    residual, answered = residual[errs], answered[errs]
    common = answered @ answered.T >= min_common
    if not np.triu(common, 1).any():
        raise TooFewError(
            f"No two volunteers who sometimes err have {min_common:,} items in common.",
            hint=Hint("Lower min_common.", cli="Lower --min-common."),
        )
    correlation = _correlations(residual, answered, np.ones(residual.shape[1]))
    pairs, n_members = np.triu(common, 1), len(correlation)
    low = high = float("nan")
    if enough_gold:
        rng = np.random.default_rng(seed)
        mean = np.array([_resampled(residual, answered, rng)[pairs].mean() for _ in range(n_resamples)])
        # The more correlation, the fewer votes.
        low, high = (_votes(n_members, end) for end in np.quantile(mean, [(1 + level) / 2, (1 - level) / 2]))
    return EffectiveVotes(
        ids=panel.ids[errs],
        value=_votes(n_members, correlation[pairs].mean()),
        low=low,
        high=high,
        correlation=np.where(common, correlation, np.nan),
        n_items=residual.shape[1],
        n_gold=int(np.count_nonzero(panel.has_gold & counted)),
        never_err=tuple(panel.ids[~errs].tolist()),
        level=float(level),
    )


def _residuals(panel: PanelErrors, counts: Array) -> tuple[Array, Array]:
    """Return errors less each member's mean given the class, times the root of its probability, and who answered.

    Of shape (V, N, J) and, as numbers, (V, N), for the items that count.
    """
    error, answered, probs = panel.error[:, counts], panel.answered[:, counts].astype(float), panel.probs[counts]
    weights = answered[:, :, None] * probs
    total = weights.sum(axis=1)
    mean = (weights * error).sum(axis=1) / np.where(total > 0, total, 1.0)
    return (error - mean[:, None]) * np.sqrt(weights), answered


def _correlations(residual: Array, answered: Array, counts: Array) -> Array:
    """Return the correlations of residuals over common items, each counted so often; zero where one has none."""
    weighted = residual * counts[:, None]
    products = weighted.reshape(len(residual), -1) @ residual.reshape(len(residual), -1).T
    power = (weighted * residual).sum(axis=2) @ answered.T
    scale = np.sqrt(power * power.T)
    return np.where(scale > 0, products / np.where(scale > 0, scale, 1.0), 0.0)


def _resampled(residual: Array, answered: Array, rng: np.random.Generator) -> Array:
    """Return the correlations over items that are drawn with replacement."""
    n_items = residual.shape[1]
    return _correlations(residual, answered, rng.multinomial(n_items, np.full(n_items, 1 / n_items)))


def _votes(n_members: int, mean: float) -> float:
    """Return the effective number of votes; infinite where negative correlations outweigh everything."""
    total = 1 + mean * (n_members - 1)
    return float(n_members / total) if total > 0 else float("inf")
