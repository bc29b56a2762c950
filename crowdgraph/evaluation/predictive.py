"""Posterior predictive checks: whether the answers are those of independent volunteers, and what the fit expects."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, object_array, read_only
from crowdgraph.core._parameters import check_bool, check_integer, check_seed
from crowdgraph.core._random import child_seed
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.core.soft_answers import warn_of_most_probable_labels
from crowdgraph.errors import ParameterError, TooFewError, UnknownIdError
from crowdgraph.messages import Message, quote, suggestion, with_article
from crowdgraph.networks.panel_errors import right_labels

if TYPE_CHECKING:
    from crowdgraph.evaluation.replicates import PairStatistics, ReplicateStatistics

__all__ = ["ErrorPair", "LabelShares", "PredictiveCheck", "PredictiveChecks", "predictive_checks"]

# A check stands out below this p-value; several are made, so it is smaller than usual.
LEVEL = 0.02
# Replicates lie within the interval with this probability.
INTERVAL = 0.9
# A cause is named if it makes the answers about gold items 20 times as probable as another; this is the logarithm.
MIN_LOG_RATIO = 3.0
# At most this many pairs are named in a sentence, and listed in all.
MAX_PAIRS_IN_WORDS, MAX_PAIRS = 3, 20
# Smaller differences than these from what the fit expects are no matter of concern, however certain they are.
MIN_AGREEMENT_GAP = 0.02
MIN_LABEL_GAP = 0.01
# Labels whose shares differ by less, in all, differ little.
MIN_LARGE_GAP = 0.05
NO_PAIRS_OF_ANSWERS = "nothing to compare: no item has answers of two volunteers"


class PredictiveCheck(NamedTuple):
    """One check: a statistic of the answers, beside the same statistic of replicated answers.

    Attributes
    ----------
    name
        What is checked; see `predictive_checks`.
    observed
        The statistic of the answers; NaN if it was not checked.
    replicated, low, high
        Its mean in replicates, and the interval that holds 90 % of them.
    p_value
        How often replicates are at least as extreme; NaN if it was not checked.
    cause
        What the answers point to where the check stands out, otherwise empty.
    reason
        Why it was not checked, otherwise empty.
    """

    name: str
    observed: float = float("nan")
    replicated: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    p_value: float = float("nan")
    cause: str = ""
    reason: str = ""

    @property
    def stands_out(self) -> bool:
        """Whether the p-value is below 0.02."""
        return self.p_value < LEVEL

    def __repr__(self) -> str:
        if self.reason:
            return f"{self.name}: not checked ({self.reason})"
        numbers = f"{self.observed:z.3f}, replicated {self.replicated:z.3f} ({self.low:z.3f} to {self.high:z.3f})"
        return f"{self.name}: {numbers}, p = {self.p_value:.3f}{f'; {self.cause}' if self.cause else ''}"


class ErrorPair(NamedTuple):
    """Two volunteers whose errors agree more often than those of any pair in most replicates.

    Attributes
    ----------
    volunteer, other
        The two.
    n_common
        How many items both answered.
    correlation
        The correlation of their errors about these.
    """

    volunteer: Hashable
    other: Hashable
    n_common: int
    correlation: float


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelShares(ReadOnlyArrays):
    """The share of each label among the answers, and in replicates drawn from the fit.

    Attributes
    ----------
    labels
        The labels, L of them.
    observed
        Their shares, of shape (L,).
    replicated, low, high
        The mean of the replicated shares, and the interval that holds 90 % of them, each of shape (L,).
    """

    labels: tuple[Hashable, ...]
    observed: Array
    replicated: Array
    low: Array
    high: Array

    def __post_init__(self) -> None:
        self._set(**{name: read_only(getattr(self, name)) for name in ("observed", "replicated", "low", "high")})


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PredictiveChecks(ReadOnlyArrays, Tabular):
    """The result of `predictive_checks`; its table has a row for each check.

    Attributes
    ----------
    model
        The model of the fit.
    checks
        The checks.
    labels
        The share of each label.
    pairs
        The pairs of volunteers who err together, the most certain first; at most 20.
    n_replicates
        How many replicates were drawn.
    """

    model: str
    checks: tuple[PredictiveCheck, ...]
    labels: LabelShares
    pairs: tuple[ErrorPair, ...]
    n_replicates: int

    def __iter__(self) -> Iterator[PredictiveCheck]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __getitem__(self, name: str) -> PredictiveCheck:
        """Return the check of a name."""
        for check in self.checks:
            if check.name == name:
                return check
        names = [check.name for check in self.checks]
        raise UnknownIdError(f"There is no check {name!r}; there are {quote(names, most=9)}.{suggestion(name, names)}")

    @property
    def verdict(self) -> str:
        """What the checks say together: the causes that stand out, or that nothing does."""
        causes = dict.fromkeys(check.cause for check in self.checks if check.cause)
        if causes:
            result: str = Message("")
            for number, cause in enumerate(causes):
                result = result + (" " if number else "") + cause
            return result
        if all(check.reason for check in self.checks if check.name in INDEPENDENCE):
            return f"Whether volunteers answer independently was not checked: {NO_PAIRS_OF_ANSWERS}."
        return "The answers show no clear sign that volunteers err together or that items differ in difficulty."

    def _columns(self) -> Columns:
        numbers = ("observed", "replicated", "low", "high", "p_value")
        return {
            "check": object_array(check.name for check in self.checks),
            **{name: np.array([getattr(check, name) for check in self.checks]) for name in numbers},
            "cause": object_array(str(check.cause) for check in self.checks),
            "not_checked": object_array(str(check.reason) for check in self.checks),
        }

    def __repr__(self) -> str:
        head = f"PredictiveChecks of {self.model} by {quantity(self.n_replicates, 'replicate')}"
        return "\n".join([head, *(f"  {check!r}" for check in self.checks)])


# The checks of the assumption that volunteers answer independently once the class is known.
PAIR_CHECK = "pairs who err together"
INDEPENDENCE = ("agreement", "errors in common", "items nearly everyone gets wrong", PAIR_CHECK)


def predictive_checks(
    graph: CrowdGraph,
    fit: ModelFit | str | None = None,
    *,
    n_replicates: int = 200,
    seed: int | None = 0,
    progress: bool = False,
) -> PredictiveChecks:
    """Compare the answers with replicated ones, drawn for the same volunteers and items, and name what differs.

    Four checks are of the assumption that volunteers answer independently once an item's class is known. Their
    replicates come from the posterior of independent volunteers, which is sampled anew, beginning with the fit, with a
    prior that is learned from the crowd; so a poor prior of the fit is not mistaken for dependence:

    - ``"agreement"``: how often two answers about an item agree, on average over items (two-sided).
    - ``"errors in common"``: the mean correlation of the errors of two answers about an item. Errors are answers minus
      their expectation given the class, in observed and replicated answers by the same draws of classes and confusion.
    - ``"items nearly everyone gets wrong"``: the share of gold items with three answers or more, of which at least
      three quarters are wrong.
    - ``"pairs who err together"``: the largest correlation of the errors of two volunteers, times the root of the
      number of their common items, over all pairs with 20 common items or more among the 300 most active volunteers.
      What the crowd has in common, by the medians of all pairs and of those of each volunteer, is taken off.

    Two are of the fit as it is:

    - ``"volunteers"``: how often two answers about an item agree, if answers follow the fit's confusion matrices
      (two-sided). If that differs while the checks above do not, the matrices are off, not the assumption.
    - ``"label shares"``: how far the shares of labels are from those that the fit expects, as the share of answers that
      would have to change.

    Whether correlated errors come from items of different difficulty or from items that mislead nearly everyone is
    told by gold, if one of the two makes the answers about gold items 20 times as probable as the other.

    A check stands out if its p-value is below 0.02; of the fit as it is, differences below 0.02 (agreement) and 0.01
    (shares) have no cause named. P-values are conservative: the posterior has seen the answers, so
    that without dependence they are small less often than they say. Of repeated answers the last counts.

    Parameters
    ----------
    graph
        The graph.
    fit
        A fit with confusion matrices, or the name of one that the graph carries; the latest if left out.
    n_replicates
        How many replicates to draw. Large graphs get fewer, but no fewer than 100; the result says how many.
    seed
        The same seed gives the same result; None draws one.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(shared_errors=0.4, seed=0).graph
    >>> checks = cg.evaluation.predictive_checks(graph, cg.IBCC().fit(graph), n_replicates=100)
    >>> checks["errors in common"].stands_out
    True
    >>> print(checks["errors in common"].cause)
    Volunteers make the same errors about the same items: the items mislead them, or they confer.
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Checks are of a CrowdGraph; got {with_article(type(graph))}.")
    check_integer("n_replicates", n_replicates)
    check_seed(seed)
    check_bool("progress", progress)
    fit = graph.resolve_fit(fit, needs="confusion")
    fit.check_matches(graph)
    if not len(graph.answers):
        raise TooFewError("There are no answers, so there is nothing to compare.")
    warn_of_most_probable_labels(graph, "the comparison with replicates")
    from crowdgraph.evaluation.replicates import compare_with_replicates, replicates_for

    n_replicates = replicates_for(graph, int(n_replicates))
    seed = child_seed(np.random.default_rng()) if seed is None else int(seed)
    statistics = compare_with_replicates(graph, fit, n_replicates=n_replicates, seed=seed, progress=progress)
    pairs = _error_pairs(graph, statistics.pairs)
    checks = _independence_checks(graph, fit, statistics, pairs)
    labels = _label_shares(graph, *statistics.label_shares)
    is_dependent = any(check.stands_out for check in checks)
    checks += _fit_checks(statistics, labels, dependent=is_dependent, allowance=fit.dependence)
    return PredictiveChecks(
        model=fit.model, checks=tuple(checks), labels=labels, pairs=pairs, n_replicates=n_replicates
    )


def _summary(name: str, observed: Array | float, replicated: Array, *, two_sided: bool = False) -> PredictiveCheck:
    """Return a check without its cause; an observed statistic may differ from draw to draw."""
    n = len(replicated)
    # Statistics that are the same but for rounding are the same.
    n_above, n_below = (int(np.count_nonzero(sign * (replicated - observed) >= -1e-12)) for sign in (1, -1))
    p_value = (1 + n_above) / (1 + n)
    if two_sided:
        p_value = min(1.0, 2 * min(p_value, (1 + n_below) / (1 + n)))
    low, high = np.quantile(replicated, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return PredictiveCheck(
        name, float(np.mean(observed)), float(replicated.mean()), float(low), float(high), float(p_value)
    )


def _independence_checks(
    graph: CrowdGraph, fit: ModelFit, statistics: ReplicateStatistics, pairs: tuple[ErrorPair, ...]
) -> list[PredictiveCheck]:
    """Return the checks of the assumption that volunteers answer independently, with causes."""
    agreement, errors, misled, paired = INDEPENDENCE
    if np.isnan(statistics.agreement[0]):
        return [PredictiveCheck(name, reason=NO_PAIRS_OF_ANSWERS) for name in INDEPENDENCE]
    checks = {
        agreement: _summary(agreement, *statistics.agreement, two_sided=True),
        errors: _summary(errors, statistics.correlation[:, 0], statistics.correlation[:, 1]),
        misled: PredictiveCheck(misled, reason=_no_misled_items(graph, fit)),
        paired: PredictiveCheck(paired, reason="no two volunteers have 20 items in common"),
    }
    if statistics.misled is not None:
        checks[misled] = _summary(misled, *statistics.misled)
    crowd_wide = True
    if statistics.pairs is not None:
        checks[paired] = _summary(paired, statistics.pairs.largest[:, 0], statistics.pairs.largest[:, 1])
        median = _summary("median", statistics.pairs.median[:, 0], statistics.pairs.median[:, 1])
        crowd_wide = median.stands_out or not checks[paired].stands_out
    causes = {
        agreement: _agreement_cause(checks[agreement]),
        errors: _errors_cause(statistics, has_gold=not checks[misled].reason) if crowd_wide else "",
        misled: _misled_cause(checks[misled]),
        paired: _pairs_cause(pairs),
    }
    if any(checks[name].stands_out and causes[name] for name in (errors, paired)):
        # Agreement follows from these, which say more.
        causes[agreement] = ""
    return [check._replace(cause=causes[name] if check.stands_out else "") for name, check in checks.items()]


def _no_misled_items(graph: CrowdGraph, fit: ModelFit) -> str:
    if not (graph.gold.codes >= 0).any():
        return "no gold"
    if right_labels(graph, fit) is None:
        return "which labels are right is not known"
    return "no gold item has answers of three volunteers"


def _agreement_cause(check: PredictiveCheck) -> str:
    if check.observed > check.replicated:
        return "Answers about an item agree more often than those of independent volunteers would."
    return "Answers about an item agree less often than those of independent volunteers would."


def _errors_cause(statistics: ReplicateStatistics, *, has_gold: bool) -> str:
    """Return what correlated errors of the crowd point to, by what explains the answers about gold items best."""
    ratio = statistics.misled_gain - statistics.difficulty_gain
    if ratio >= MIN_LOG_RATIO:
        return "Volunteers make the same errors about the same items: the items mislead them, or they confer."
    if ratio <= -MIN_LOG_RATIO:
        return "Items differ in difficulty: some are hard for everybody, others easy."
    return (
        "Errors about an item go together: some items are hard for everybody, or volunteers err together; "
        f"{'more ' if has_gold else ''}gold would tell which."
    )


def _misled_cause(check: PredictiveCheck) -> str:
    return (
        f"Nearly everyone gets {percent(check.observed)} of the gold items wrong, where {percent(check.replicated)} "
        "are expected."
    )


def _pairs_cause(pairs: tuple[ErrorPair, ...]) -> str:
    if not pairs:
        return "Some pairs of volunteers err together."
    named = "; ".join(f"{pair.volunteer} and {pair.other}" for pair in pairs[:MAX_PAIRS_IN_WORDS])
    n_more = len(pairs) - MAX_PAIRS_IN_WORDS
    return f"These volunteers err together: {named}{f'; and {n_more:,} more pairs' if n_more > 0 else ''}."


def _error_pairs(graph: CrowdGraph, pairs: PairStatistics | None) -> tuple[ErrorPair, ...]:
    """Return the pairs whose score exceeds the largest score of any pair in nearly all replicates."""
    if pairs is None:
        return ()
    threshold = np.quantile(pairs.largest[:, 1], 1 - LEVEL)
    rows, columns = np.nonzero(pairs.score > threshold)
    order = np.argsort(-pairs.score[rows, columns], kind="stable")[:MAX_PAIRS]
    ids = graph.volunteers.ids[pairs.volunteers].tolist()
    return tuple(
        ErrorPair(ids[one], ids[other], int(pairs.common[one, other]), float(pairs.correlation[one, other]))
        for one, other in zip(rows[order].tolist(), columns[order].tolist(), strict=True)
    )


def _label_shares(graph: CrowdGraph, observed: Array, replicated: Array) -> LabelShares:
    low, high = np.quantile(replicated, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], axis=0)
    return LabelShares(labels=graph.labels, observed=observed, replicated=replicated.mean(axis=0), low=low, high=high)


def _fit_checks(
    statistics: ReplicateStatistics, labels: LabelShares, *, dependent: bool, allowance: Dependence | None
) -> list[PredictiveCheck]:
    """Return the checks of the fit as it is, with causes."""
    volunteers = PredictiveCheck("volunteers", reason=NO_PAIRS_OF_ANSWERS)
    if not np.isnan(statistics.agreement[0]):
        volunteers = _summary("volunteers", statistics.agreement[0], statistics.fit_agreement, two_sided=True)
    if volunteers.stands_out and abs(volunteers.observed - volunteers.replicated) >= MIN_AGREEMENT_GAP:
        volunteers = volunteers._replace(cause=_volunteers_cause(volunteers, dependent=dependent, allowance=allowance))
    observed, replicated = statistics.label_shares
    gaps = np.abs(np.vstack([observed, replicated]) - labels.replicated).sum(axis=1) / 2
    shares = _summary("label shares", float(gaps[0]), gaps[1:])
    if shares.stands_out and np.abs(labels.observed - labels.replicated).max() >= MIN_LABEL_GAP:
        shares = shares._replace(cause=_labels_cause(labels))
    return [volunteers, shares]


def _volunteers_cause(check: PredictiveCheck, *, dependent: bool, allowance: Dependence | None) -> str:
    if check.observed < check.replicated:
        return (
            "The fit takes volunteers for more reliable than their answers show; with few answers an item it is too "
            "sure of classes."
        )
    if allowance is not None and not dependent:
        return (
            "The fit takes volunteers for less reliable than their answers show: it allows for more dependence between "
            "answers than there is a sign of."
        ) + (" Gold would show how much there is." if allowance.source == "assumed" else "")
    if allowance is not None:
        return "Answers agree more than the fit expects, whose volunteers treat easy and hard items of a class alike."
    if dependent:
        return "The fit expects less agreement than there is, since it takes volunteers for independent."
    return (
        "The fit takes volunteers for less reliable than their answers show: what it assumed beforehand weighs too "
        "much for so few answers to so many labels, and errors in common are not the cause."
        + Message(" Leave confusion_prior out: by default it is learned from the crowd.", cli=" Leave --prior out.")
    )


def _labels_cause(labels: LabelShares) -> str:
    gaps = labels.observed - labels.replicated
    order = [code for code in np.argsort(-np.abs(gaps), kind="stable").tolist() if abs(gaps[code]) >= MIN_LABEL_GAP]
    named = join_names(
        f"{labels.labels[code]} {labels.observed[code]:.1%} against {labels.replicated[code]:.1%}" for code in order
    )
    size = float(np.abs(gaps).sum() / 2)
    slightly, advice = ("slightly ", "that is little") if size < MIN_LARGE_GAP else ("", "take it with care")
    return (
        f"The model expects {slightly}other shares of labels than there are ({named}): {percent(size)} of the answers "
        f"would have to be other ones. What it says of how volunteers answer is off by about as much; {advice}."
    )
