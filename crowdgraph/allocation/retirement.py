"""Retirement: when to stop asking about an item, with an error rate that gold can guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import Configured, check_instance, check_integer, check_number, check_seed, instance
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core._text import quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import probability_array
from crowdgraph.errors import GoldError, InfeasibleError, ParameterError
from crowdgraph.messages import Hint
from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated

__all__ = ["ErrorGuarantee", "Retirement", "calibrated_retirement"]

# At most this many thresholds are tried.
MAX_THRESHOLDS = 20


@dataclass(frozen=True, kw_only=True)
class ErrorGuarantee:
    """The error rate that gold guarantees for the items that a rule retires.

    Attributes
    ----------
    error, confidence
        At most this share of the retired items is wrong, with this confidence.
    updates
        The number of updates, evenly spread over the responses, at which items could retire.
    n_gold, n_retired, n_wrong
        The number of gold items, how many of them the rule retired, and how many of these with a wrong class.
    bound
        The upper bound of the share of wrong classes among the retired items, at `confidence` or above; at most
        `error`.
    """

    error: float
    confidence: float
    updates: int
    n_gold: int
    n_retired: int
    n_wrong: int
    bound: float


@dataclass(frozen=True, kw_only=True)
class Retirement(Configured):
    """A rule that retires an item as soon as its most probable class reaches a threshold.

    A threshold is not an error rate: models are overconfident where items differ in difficulty or volunteers share
    errors, and at every update an item may pass by mistake. `calibrated_retirement` finds a threshold with a guarantee.

    Attributes
    ----------
    threshold
        How probable the most probable class must be, above 0 and at most 1.
    guarantee
        The error rate that gold guarantees for the retired items; None if there is no guarantee.

    Examples
    --------
    >>> rule = Retirement(threshold=0.95)
    >>> rule
    Retirement(threshold 0.95; no error rate is guaranteed)
    >>> rule.retired([[0.97, 0.03], [0.4, 0.6]]).tolist()
    [True, False]
    """

    threshold: float
    guarantee: ErrorGuarantee | None = instance(
        None, ErrorGuarantee, expected="the ErrorGuarantee that calibrated_retirement gives"
    )

    def _check_settings(self) -> None:
        expected = "be a number above 0 and at most 1"
        check_number("threshold", self.threshold, valid=lambda value: 0 < value <= 1, expected=expected)

    def retired(self, item_probs: ArrayLike) -> Array:
        """Return which items are retired, of shape (N,), given their class probabilities, of shape (N, J)."""
        probs = probability_array("item_probs", item_probs, shape=(None, None))
        return np.asarray(probs.max(axis=1) >= self.threshold)

    def retired_items(self, graph: CrowdGraph, item_probs: ArrayLike) -> Array:
        """Return the ids of the retired items of a graph: only items that have answers and no gold can retire."""
        may_retire = (graph.answers.n_by_item > 0) & ~graph.gold.known
        return np.asarray(graph.items.ids[may_retire & self.retired(item_probs)])

    def __repr__(self) -> str:
        guarantee = self.guarantee
        if guarantee is None:
            return f"Retirement(threshold {self.threshold:.8g}; no error rate is guaranteed)"
        return (
            f"Retirement(threshold {self.threshold:.8g}; at most {guarantee.error:.2%} wrong with "
            f"{guarantee.confidence:.0%} confidence: {guarantee.n_retired:,} of "
            f"{quantity(guarantee.n_gold, 'gold item')} "
            f"retired, {guarantee.n_wrong:,} of them wrongly, bound {guarantee.bound:.2%})"
        )


def calibrated_retirement(
    graph: CrowdGraph,
    model: Model = Calibrated(),  # noqa: B008 - models cannot be changed
    *,
    error: float = 0.02,
    confidence: float = 0.95,
    updates: int = 10,
    folds: int = 5,
    seed: int | None = None,
    progress: bool = False,
) -> Retirement:
    """Find the rule that retires most items while gold shows that at most a share `error` of them is wrong.

    The responses are replayed in time order, in `updates` equal parts, and the model is fitted after each part to all
    responses so far. The gold of one fold at a time is hidden, and the model's prediction for its items, right or
    wrong, is recorded. Under a threshold, an item retires at the first update at which the model is that certain,
    provided that the item has an answer by then, and counts as right or wrong as of that update.

    Thresholds are tried from the highest down, each with the exact (Clopper-Pearson) bound, and the lowest that passes
    is taken. The fallback procedure (Wiens and Dmitrienko 2005) corrects for testing many: half of the error
    probability, 1 - `confidence`, belongs to the first threshold, which retires so many gold items that one wrong class
    among them would pass, and half to the one that retires half of the gold items. A threshold that passes hands its
    error probability on to the next; one that fails loses it, and without any none passes. Where there is too little
    gold for two, all of it belongs to the first. The thresholds are set by the model's certainty, not by which items
    were right.

    A model that is overconfident about hard items, or where volunteers make errors together, retires few items or none:
    see `Cautious`.

    The guarantee holds for items whose responses arrive as those of the gold items did, with as many updates, and from
    the same crowd: gold of easy items says nothing about hard ones. It is about all retired items together; the error
    rate of a rare class may be higher. In the calibration, retired items go on receiving answers, and the model sees a
    little less gold than later.

    Parameters
    ----------
    graph
        A graph with gold; only items whose class is certain count, and gold that is a probability stays visible.
    model
        The model that learns from the responses.
    error, confidence
        At most this share of the retired items is to be wrong, with this confidence. With 0.02 and 0.95 at least 149
        gold items must retire.
    updates
        How often the model is fitted on the way. More updates are more chances to retire too early, so use as many as
        there will be.
    folds
        The number of parts in which gold is hidden.
    seed
        The same seed gives the same rule.
    progress
        Whether to show a progress bar.

    Raises
    ------
    GoldError
        If the graph has no certain gold.
    InfeasibleError
        If no threshold can be guaranteed.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_items=600, n_responses=9_000, seed=0).graph
    >>> rule = calibrated_retirement(graph, error=0.05, seed=0)
    >>> bool(rule.guarantee.bound <= 0.05 and rule.guarantee.n_retired > 300)
    True
    """
    _check_settings(graph, model, error, confidence)
    check_integer("folds", folds, minimum=2)
    check_seed(seed)
    items = _certain_gold(graph, folds)
    ends = update_ends(graph, updates)
    rng = np.random.default_rng(seed)
    fold_of_item = rng.permutation(np.arange(len(items)) % folds)
    paths = CertaintyPaths(*np.zeros((2, len(ends), len(items))))
    with progress_bar("retirement", visible=progress, total=folds * len(ends), unit="fits") as bar:
        for fold in range(folds):
            hidden = fold_of_item == fold
            part = _certainty_paths(graph, model, items[hidden], ends, child_seed(rng), bar.update)
            paths.certainty[:, hidden], paths.wrong[:, hidden] = part
    return _lowest_guaranteed(paths, float(error), float(confidence))


class CertaintyPaths(NamedTuple):
    """How certain the model was of each hidden item after each update, and whether it was wrong, both (T, G)."""

    certainty: Array
    wrong: Array

    def count_retired(self, threshold: float) -> tuple[int, int]:
        """Return how many items a threshold retires, and how many of them wrongly, as of the first update above it."""
        reached = self.certainty >= threshold
        items = np.flatnonzero(reached.any(axis=0))
        wrong = self.wrong[reached.argmax(axis=0)[items], items]
        return len(items), int(wrong.sum())


def update_ends(graph: CrowdGraph, updates: int) -> list[int]:
    """Return after how many responses each update comes, so that all bring as many answers, or one more or less."""
    check_integer("updates", updates)
    rows = graph.answers.rows
    if len(rows) < updates:
        raise ParameterError(
            f"updates={updates!r}, but there are {len(rows):,} answers, and every update needs one.",
            hint="Ask for fewer updates.",
        )
    ends: list[int] = (rows[np.arange(1, updates + 1) * len(rows) // updates - 1] + 1).tolist()
    return ends


def upper_bound(n_wrong: int, n: int, confidence: float) -> float:
    """Return the exact (Clopper-Pearson) upper bound of a share of which `n_wrong` in `n` were seen."""
    return float(betaincinv(n_wrong + 1, n - n_wrong, confidence)) if n_wrong < n else 1.0


def _check_settings(graph: object, model: object, error: object, confidence: object) -> None:
    check_instance("graph", graph, CrowdGraph, expected="a CrowdGraph with gold")
    check_instance("model", model, Model, expected="a model, such as Calibrated()")
    for name, value in (("error", error), ("confidence", confidence)):
        check_number(name, value, valid=lambda number: 0 < number < 1, expected="be a number between 0 and 1")


def _certain_gold(graph: CrowdGraph, folds: int) -> Array:
    """Return the items with certain gold and an answer; the others say nothing about items that will be answered."""
    items = np.flatnonzero((graph.gold.codes >= 0) & (graph.answers.n_by_item > 0))
    if not len(items):
        raise GoldError(
            "No answered item has gold that is certain, so no error rate can be guaranteed.",
            hint=Hint(
                "Add gold with graph.with_gold({item: class, ...}), or choose a threshold yourself: "
                "Retirement(threshold=...).",
                cli="Add gold with --gold FILE, or, in Python, choose a threshold yourself: Retirement(threshold=...).",
            ),
        )
    if len(items) < folds:
        raise ParameterError(
            f"folds={folds!r}, but only {len(items):,} items have gold.",
            hint="Use fewer folds, or add gold.",
        )
    return items


def _certainty_paths(
    graph: CrowdGraph, model: Model, items: Array, ends: list[int], seed: int, tick: Callable[[], Any]
) -> CertaintyPaths:
    """Record what the model says about some items after each update while their gold is hidden."""
    visible = np.ones(len(graph.items), dtype=bool)
    visible[items] = False
    hidden = graph.replace(gold=graph.gold.where(visible))
    fit, certainty, wrong = None, [], []
    for end in ends:
        view = hidden.first(end)
        fit = model.fit(view, seed=seed, start=fit)
        probs = fit.item_probs[items]
        certainty.append(np.where(view.answers.n_by_item[items] > 0, probs.max(axis=1), 0.0))
        wrong.append(probs.argmax(axis=1) != graph.gold.codes[items])
        tick()
    return CertaintyPaths(np.array(certainty), np.array(wrong))


def _lowest_guaranteed(paths: CertaintyPaths, error: float, confidence: float) -> Retirement:
    """Find the lowest threshold that passes; each is tested at its own alpha plus that of those that passed before."""
    n_updates, n_gold = paths.certainty.shape
    rule, alpha, tests = None, 0.0, []
    for threshold, own_alpha in _thresholds(paths.certainty.max(axis=0), error, confidence):
        alpha += own_alpha
        if not alpha:
            continue
        n_retired, n_wrong = paths.count_retired(threshold)
        bound = upper_bound(n_wrong, n_retired, 1 - alpha)
        tests.append((n_wrong, n_retired, bound))
        if bound > error:
            alpha = 0.0
            continue
        guarantee = ErrorGuarantee(
            error=error,
            confidence=confidence,
            updates=n_updates,
            n_gold=n_gold,
            n_retired=n_retired,
            n_wrong=n_wrong,
            bound=bound,
        )
        rule = Retirement(threshold=threshold, guarantee=guarantee)
    if rule is None:
        n_wrong, n_retired, bound = tests[0]
        raise InfeasibleError(
            f"error={error!r} cannot be guaranteed with confidence={confidence!r}: of the "
            f"{quantity(n_retired, 'gold item')} (of {n_gold:,}) that the model was most certain of, {n_wrong:,} "
            f"{'was' if n_wrong == 1 else 'were'} wrong, so up to {bound:.2%} of such "
            "items may be wrong.",
            hint=f"Add gold (at least {min_retired(error, 1 - confidence):,} items must retire), gather more "
            "responses for each item, use a model that is less overconfident (Cautious), or allow a larger error=.",
        )
    return rule


def _thresholds(highest: Array, error: float, confidence: float) -> list[tuple[float, float]]:
    """Return falling thresholds, each retiring about as many more items, with the alpha that each may spend.

    Half of the alpha is for the first, which retires so many gold items that one wrong class would pass, and half for
    the one that retires half of them. Where there is not so much gold, all of it is for the first.
    """
    alpha, falling = 1 - confidence, np.sort(highest)[::-1]
    half = len(falling) // 2
    first = min_retired(error, alpha / 2, 1)
    split = first < half
    if not split:
        sizes = (min_retired(error, alpha, 1), min_retired(error, alpha))
        first = next((n for n in sizes if n <= len(falling)), len(falling))
    counts = np.linspace(first, len(falling), MAX_THRESHOLDS).round().astype(np.int64)
    thresholds = np.unique(falling[counts - 1])[::-1]
    alphas = np.zeros(len(thresholds))
    if split:
        alphas[(thresholds <= falling[half - 1]).argmax()] = alpha / 2
    alphas[0] += alpha - alphas.sum()
    return list(zip(thresholds.tolist(), alphas.tolist(), strict=True))


def min_retired(error: float, alpha: float, n_wrong: int = 0) -> int:
    """Return how many items must retire for the bound to pass if `n_wrong` of them are wrong."""
    low, high = n_wrong, n_wrong + 1
    while upper_bound(n_wrong, high, 1 - alpha) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if upper_bound(n_wrong, middle, 1 - alpha) > error else (low, middle)
    return high
