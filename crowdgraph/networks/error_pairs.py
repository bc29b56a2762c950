"""Pairs of volunteers who err together more often than the difficulty of items explains."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import compress

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core._parameters import check_integer, check_number
from crowdgraph.core.changes import holm
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import TooFewError
from crowdgraph.kernels.error_pairs import Moments, excess_covariance, pair_moments
from crowdgraph.messages import Hint
from crowdgraph.networks.panel_errors import PanelErrors, panel_errors

__all__ = ["ErrorPairs", "error_pairs"]

# What is hard for two volunteers is estimated from their errors beside those of at least two others.
MIN_MEMBERS = 4
# Smaller variances are rounding.
SMALLEST_VARIANCE = 1e-20


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorPairs(ReadOnlyArrays, Tabular):
    """The result of `error_pairs`; its table has a row for each pair, the smallest p-value first.

    Attributes
    ----------
    volunteer, other
        The two of each pair, of shape (P,).
    n_common
        How many items both answered, of shape (P,).
    correlation, low, high
        The correlation of their errors given the class, and its interval; NaN where one of them never errs.
    excess
        How much of it is more than the errors of the others explain; negative if they share fewer errors.
    p_value, adjusted_p_value
        How likely chance gives as large an excess, and the same corrected by Holm for the number of pairs.
    together
        Whether they err together: the adjusted p-value is at most `level`.
    level
        The chance that any pair is said to err together if none does. Intervals hold the correlation with a
        probability of one minus it.
    n_untested
        How many pairs of the panel have too few common items, with each other or with others.
    """

    volunteer: Array
    other: Array
    n_common: Array
    correlation: Array
    low: Array
    high: Array
    excess: Array
    p_value: Array
    adjusted_p_value: Array
    together: Array
    level: float
    n_untested: int

    def __post_init__(self) -> None:
        self._set(**{name: read_only(getattr(self, name)) for name in self._columns()})

    def __len__(self) -> int:
        return len(self.volunteer)

    @property
    def pairs(self) -> list[tuple[Hashable, Hashable]]:
        """The pairs that err together, the smallest p-value first."""
        both = zip(self.volunteer.tolist(), self.other.tolist(), strict=True)
        return list(compress(both, self.together.tolist()))

    def _columns(self) -> Columns:
        names = ("volunteer", "other", "n_common", "correlation", "low", "high", "excess")
        return {name: getattr(self, name) for name in (*names, "p_value", "adjusted_p_value", "together")}

    def __repr__(self) -> str:
        untested = f"; {self.n_untested:,} have too few common items" if self.n_untested else ""
        return f"ErrorPairs({len(self.pairs):,} of {len(self):,} pairs err together at {self.level:g}{untested})"


def error_pairs(
    graph: CrowdGraph,
    *,
    fit: ModelFit | str | None = None,
    volunteers: Iterable[Hashable] | None = None,
    min_common: int = 30,
    level: float = 0.05,
) -> ErrorPairs:
    r"""Test which pairs of a panel share more errors than the errors of the others on the same items explain.

    Hard items make everybody's errors correlate. If the probability of an error of each volunteer rises with the
    difficulty of the item, by an amount of their own, the errors of two who answer independently have the covariance
    :math:`\lambda_m \lambda_n` given the class. The loadings :math:`\lambda \ge 0` are estimated for each pair from the
    covariances of all other pairs; what is left, :math:`C_{mn} - \lambda_m \lambda_n`, is the pair's excess. Classes
    are compared each with itself, and add up by their number of items. The p-value is that of the excess divided by
    its standard error over the items, which allows for the estimation of the loadings, against the normal
    distribution, on the side of more common errors. Pairs that err together are left out of the loadings one by one,
    the clearest first, until no further pair is found.

    Parameters
    ----------
    graph
        The graph, annotated with a fit. Classes are those of gold where it is known, otherwise the probabilities of the
        fit.
    fit
        The fit, or the name of its annotation; the latest if left out.
    volunteers
        The panel, from 4 to 30 volunteers; all with at least `min_common` answers if left out.
    min_common
        Pairs with fewer common items are not tested, nor those of which a member has as many with fewer than two
        others.
    level
        The chance that any pair is said to err together if none does.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> confusion = [[0.85, 0.15], [0.15, 0.85]]
    >>> sizes = {"pair": 2, "other pair": 2, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1}
    >>> groups = [cg.simulate.Group(name=name, confusion=confusion, share=sizes[name]) for name in sizes]
    >>> crowd = cg.simulate.crowd(n_volunteers=9, n_items=2_000, n_responses=[1_500] * 9, groups=groups,
    ...                           difficulty=0.1, shared_errors=0.4, seed=0)
    >>> graph = crowd.graph.annotate(cg.Calibrated().fit(crowd.graph))
    >>> result = cg.networks.error_pairs(graph)
    >>> result
    ErrorPairs(2 of 36 pairs err together at 0.05)
    >>> result.pairs
    [('volunteer-2', 'volunteer-3'), ('volunteer-1', 'volunteer-6')]
    """
    check_integer("min_common", min_common, minimum=2)
    check_number("level", level, valid=lambda value: 0 < value < 1, expected="lie between 0 and 1")
    panel = panel_errors(graph, fit, volunteers, min_answers=int(min_common), min_members=MIN_MEMBERS)
    n_common = panel.answered.astype(np.int64) @ panel.answered.T.astype(np.int64)
    first, second = _testable_pairs(n_common >= min_common)
    n_members = len(panel.ids)
    if not len(first):
        raise TooFewError(
            f"No pair can be tested: no volunteers have {min_common:,} items in common with each other and with two "
            "others.",
            hint=Hint("Lower min_common.", cli="Lower --min-common."),
        )
    by_class = _moments(panel, first, second)
    excess, p_value, adjusted = _tests(by_class, first, second, n_members, level)
    correlation, low, high, scale = _correlations(by_class, level)
    order = np.argsort(p_value, kind="stable")
    return ErrorPairs(
        volunteer=panel.ids[first[order]],
        other=panel.ids[second[order]],
        n_common=n_common[first, second][order],
        correlation=correlation[order],
        low=low[order],
        high=high[order],
        excess=(excess / np.where(scale > 0, scale, np.nan))[order],
        p_value=p_value[order],
        adjusted_p_value=adjusted[order],
        together=(adjusted <= level)[order],
        level=float(level),
        n_untested=n_members * (n_members - 1) // 2 - len(first),
    )


def _testable_pairs(enough: Array) -> tuple[Array, Array]:
    """Return the pairs with enough common items, of those who have enough with at least two others besides."""
    linked = enough & ~np.eye(len(enough), dtype=bool)
    while True:
        dropped = linked & ((linked.sum(axis=0) < MIN_MEMBERS - 1)[:, None] | (linked.sum(axis=0) < MIN_MEMBERS - 1))
        if not dropped.any():
            first, second = np.nonzero(np.triu(linked))
            return first, second
        linked &= ~dropped


def _moments(panel: PanelErrors, first: Array, second: Array) -> list[Moments]:
    """Return the covariances of the errors of pairs for each class."""
    return [
        pair_moments(panel.error[:, :, code], panel.answered, panel.probs[:, code], first, second)
        for code in range(panel.probs.shape[1])
    ]


def _tests(
    by_class: list[Moments], first: Array, second: Array, n_members: int, level: float
) -> tuple[Array, Array, Array]:
    """Return the excess of each pair, summed over items, its p-value, and that corrected by Holm."""
    from scipy.special import ndtr

    together = np.zeros(len(first), dtype=bool)
    while True:
        excess = np.zeros(len(first))
        deviation = np.zeros_like(by_class[0].deviation)
        for moments in by_class:
            of_class, moved = excess_covariance(moments, first, second, together, n_volunteers=n_members)
            excess += moments.weight * of_class
            deviation += moments.weight * moved
        variance = (deviation**2).sum(axis=0)
        known = variance > SMALLEST_VARIANCE
        score = np.where(known, excess / np.sqrt(np.where(known, variance, 1.0)), 0.0)
        p_value = np.where(known, ndtr(-score), 1.0)
        adjusted = holm(p_value)
        further = (adjusted <= level) & ~together
        if not further.any():
            return excess, p_value, adjusted
        together[np.argmax(np.where(further, score, -np.inf))] = True


def _correlations(by_class: list[Moments], level: float) -> tuple[Array, Array, Array, Array]:
    """Return the correlation of each pair, its interval on Fisher's scale, and what it was divided by."""
    from scipy.special import ndtri

    covariance, one, other = (sum(moments.weight * moments[part] for moments in by_class) for part in (1, 2, 3))
    moved, moved_one, moved_other = (sum(moments.weight * moments[part] for moments in by_class) for part in (4, 5, 6))
    scale = np.sqrt(one * other)
    errs = scale > 0
    one, other = np.where(errs, one, 1.0), np.where(errs, other, 1.0)
    correlation = np.clip(covariance / np.where(errs, scale, 1.0), -1.0, 1.0)
    deviation = moved / np.where(errs, scale, 1.0) - correlation / 2 * (moved_one / one + moved_other / other)
    spread = 1 - correlation**2
    inside = spread > SMALLEST_VARIANCE
    middle = np.arctanh(np.where(inside, correlation, 0.0))
    half = ndtri(1 - level / 2) * np.sqrt((deviation**2).sum(axis=0)) / np.where(inside, spread, 1.0)
    low, high = (np.where(inside, np.tanh(middle + side * half), correlation) for side in (-1, 1))
    correlation, low, high = (np.where(errs, values, np.nan) for values in (correlation, low, high))
    return correlation, low, high, scale
