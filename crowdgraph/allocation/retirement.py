"""When to stop asking about an item: retirement by how sure the model is, with an error rate that gold can promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer, check_seed, child_seed, is_number, progress_bar
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import probability_array
from crowdgraph.errors import GoldError, ParameterError
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC

__all__ = ["ErrorGuarantee", "Retirement", "calibrated_retirement"]

# How many thresholds are tried at most.
N_THRESHOLDS = 20


@dataclass(frozen=True, kw_only=True)
class ErrorGuarantee:
    """What gold says of the items that a rule retires.

    Attributes
    ----------
    error, confidence
        At most this share of the retired items is wrong, with this confidence.
    updates
        After how many updates, evenly spread over the responses, items could retire.
    n_gold, n_retired, n_wrong
        How many gold items there were, how many of them the rule retired, and how many of these wrongly.
    bound
        The upper bound of the share of wrong ones among the retired, at `confidence` or above; at most `error`.
    """

    error: float
    confidence: float
    updates: int
    n_gold: int
    n_retired: int
    n_wrong: int
    bound: float


@dataclass(frozen=True, kw_only=True)
class Retirement:
    """A rule that retires an item as soon as its most probable class reaches a threshold.

    A threshold is no error rate: models are too sure where items differ in difficulty or volunteers share errors, and
    an item has a chance to pass by mistake at every update. See `calibrated_retirement` for one that keeps a promise.

    Attributes
    ----------
    threshold
        How probable the most probable class must be, above 0 and at most 1.
    promise
        What gold says of the retired items; None if nothing is promised.

    Examples
    --------
    >>> rule = Retirement(threshold=0.95)
    >>> rule
    Retirement(threshold 0.95; no error rate is promised)
    >>> rule.retired([[0.97, 0.03], [0.4, 0.6]]).tolist()
    [True, False]
    """

    threshold: float
    promise: ErrorGuarantee | None = None

    def __post_init__(self) -> None:
        if not is_number(self.threshold) or not 0 < self.threshold <= 1:
            raise ParameterError(f"threshold={self.threshold!r} must be a number above 0 and at most 1.")
        if self.promise is not None and not isinstance(self.promise, ErrorGuarantee):
            raise ParameterError(
                f"promise= takes the Promise that calibrated_retirement makes; got a {type(self.promise).__name__}."
            )

    def retired(self, item_probs: ArrayLike) -> Array:
        """Which items are retired, of shape (N,), given their class probabilities, of shape (N, J)."""
        probs = probability_array("item_probs", item_probs, shape=(None, None))
        return np.asarray(probs.max(axis=1) >= self.threshold)

    def items(self, graph: CrowdGraph, item_probs: ArrayLike) -> Array:
        """The ids of the items of a graph that are retired: those that are answered, and have no gold."""
        may = are_answered(graph) & ~graph.gold.known
        return np.asarray(graph.items.ids[may & self.retired(item_probs)])

    def __repr__(self) -> str:
        if self.promise is None:
            return f"Retirement(threshold {self.threshold:.8g}; no error rate is promised)"
        told = self.promise
        return (
            f"Retirement(threshold {self.threshold:.8g}; at most {told.error:.2%} wrong with {told.confidence:.0%} "
            f"confidence: of {told.n_gold:,} gold items {told.n_retired:,} retired, {told.n_wrong:,} of them wrongly, "
            f"bound {told.bound:.2%})"
        )


def calibrated_retirement(
    graph: CrowdGraph,
    model: Model = IBCC(),  # noqa: B008 - models cannot be changed
    *,
    error: float = 0.02,
    confidence: float = 0.95,
    updates: int = 10,
    folds: int = 5,
    seed: int | None = None,
    progress: bool = False,
) -> Retirement:
    """The rule that retires most items while gold shows that at most a share `error` of them is wrong.

    The responses are gone through in time order, in `updates` equal parts; after each the model is fitted to all so
    far. The gold of one fold at a time is hidden, and what the model then says of its items, and whether that is right,
    is kept. For a threshold, an item retires at its first update with that much certainty, if it has been answered by
    then, and is right or wrong as of then.

    Thresholds are tried from the highest down, each with the exact (Clopper-Pearson) bound, and the lowest that passes
    is taken. Trying many is paid for by the fallback procedure (Wiens and Dmitrienko 2005): of the doubt that there may
    be, 1 - `confidence`, half belongs to the first threshold, which retires so many gold items that one wrong answer
    among them would pass, and half to the one that retires half of the gold items. One that passes hands its doubt on
    to the next, one that fails loses it, and without any none passes. Where there is too little gold for two, all of it
    belongs to the first. The thresholds are set by how sure the model was, not by who was right.

    A model that is too sure of hard items, or where volunteers err together, retires few items or none: see `Cautious`.

    The promise is about items whose responses come in as those of the gold items did, with as many updates, and
    answered by the same crowd: gold of easy items says nothing of hard ones. It is about all retired items together; of
    those of a rare class more may be wrong. In the calibration, retired items go on being answered, and the model sees
    a little less gold than later.

    Parameters
    ----------
    graph
        A graph with gold; only items whose class is known for certain count, and gold that is a probability stays
        visible.
    model
        What learns from the responses.
    error, confidence
        At most this share of the retired items is to be wrong, with this confidence. With 0.02 and 0.95 at least 149
        gold items must retire.
    updates
        How often the model is fitted on the way. More updates are more chances to retire too early, so use as many as
        there will be.
    folds
        In how many parts gold is hidden.
    seed
        The same seed gives the same rule.
    progress
        Whether to show a progress bar.

    Raises
    ------
    GoldError
        If the graph has no certain gold.
    ParameterError
        If no threshold keeps the promise.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_items=600, n_responses=9_000, seed=0).graph
    >>> rule = calibrated_retirement(graph, error=0.05, seed=0)
    >>> bool(rule.promise.bound <= 0.05 and rule.promise.n_retired > 300)
    True
    """
    _check_settings(graph, model, error, confidence)
    check_integer("folds", folds, minimum=2)
    check_seed(seed)
    items = _certain_gold(graph, folds)
    ends = update_ends(graph, updates)
    rng = np.random.default_rng(seed)
    part = rng.permutation(np.arange(len(items)) % folds)
    paths = Paths(*np.zeros((2, len(ends), len(items))))
    with progress_bar("retirement", visible=progress, total=folds * len(ends), unit="fits") as bar:
        for fold in range(folds):
            here = part == fold
            held = _followed(graph, model, items[here], ends, child_seed(rng), bar.update)
            paths.certainty[:, here], paths.wrong[:, here] = held
    return _chosen(paths, float(error), float(confidence))


class Paths(NamedTuple):
    """How sure the model was of each hidden item after each update, and whether it was wrong, both (T, G)."""

    certainty: Array
    wrong: Array

    def tally(self, threshold: float) -> tuple[int, int]:
        """How many items a threshold retires, and how many of them wrongly: as of the first update that reaches it."""
        reached = self.certainty >= threshold
        items = np.flatnonzero(reached.any(axis=0))
        wrong = self.wrong[reached.argmax(axis=0)[items], items]
        return len(items), int(wrong.sum())


def update_ends(graph: CrowdGraph, updates: int) -> list[int]:
    """After how many responses each update comes, so that each brings as many answers, or one more or less."""
    check_integer("updates", updates)
    answered = np.flatnonzero(graph.responses.label >= 0)
    if len(answered) < updates:
        raise ParameterError(
            f"updates={updates!r}, but there are {len(answered):,} answers, and every update needs one; ask for fewer."
        )
    ends: list[int] = (answered[np.arange(1, updates + 1) * len(answered) // updates - 1] + 1).tolist()
    return ends


def are_answered(graph: CrowdGraph) -> Array:
    """For each item, whether anybody answered it, of shape (N,)."""
    found = np.zeros(len(graph.items), dtype=bool)
    found[graph.responses.item[graph.responses.label >= 0]] = True
    return found


def upper_bound(n_wrong: int, n: int, confidence: float) -> float:
    """The exact (Clopper-Pearson) upper bound of a share of which `n_wrong` in `n` were seen."""
    return float(betaincinv(n_wrong + 1, n - n_wrong, confidence)) if n_wrong < n else 1.0


def _check_settings(graph: object, model: object, error: object, confidence: object) -> None:
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Retirement is calibrated on a CrowdGraph with gold; got a {type(graph).__name__}.")
    if not isinstance(model, Model):
        raise ParameterError(f"model= takes a model, such as IBCC(); got {model!r}.")
    for name, value in (("error", error), ("confidence", confidence)):
        if not is_number(value) or not 0 < value < 1:  # type: ignore[operator]
            raise ParameterError(f"{name}={value!r} must be a number between 0 and 1.")


def _certain_gold(graph: CrowdGraph, folds: int) -> Array:
    """The items with certain gold that were answered; the others say nothing of items that come to be answered."""
    items = np.flatnonzero((graph.gold.codes >= 0) & are_answered(graph))
    if not len(items):
        raise GoldError(
            "No answered item has gold that is certain, so no error rate can be promised. Add gold with "
            "graph.with_gold({item: class, ...}), or choose a threshold yourself: Retirement(threshold=...)."
        )
    if len(items) < folds:
        raise ParameterError(f"folds={folds!r}, but only {len(items):,} items have gold; use fewer folds, or add gold.")
    return items


def _followed(
    graph: CrowdGraph, model: Model, items: Array, ends: list[int], seed: int, tick: Callable[[], Any]
) -> Paths:
    """What the model says of some items after each update while their gold is hidden."""
    kept = np.ones(len(graph.items), dtype=bool)
    kept[items] = False
    hidden = graph.replace(gold=graph.gold.where(kept))
    fit, certainty, wrong = None, [], []
    for end in ends:
        view = hidden.first(end)
        fit = model.fit(view, seed=seed, start=fit)
        probs = fit.item_probs[items]
        certainty.append(np.where(are_answered(view)[items], probs.max(axis=1), 0.0))
        wrong.append(probs.argmax(axis=1) != graph.gold.codes[items])
        tick()
    return Paths(np.array(certainty), np.array(wrong))


def _chosen(paths: Paths, error: float, confidence: float) -> Retirement:
    """The lowest threshold that passes: each is tried with its own doubt, and that of those that passed before it."""
    n_updates, n_gold = paths.certainty.shape
    rule, doubt, tried = None, 0.0, []
    for threshold, own in _thresholds(paths.certainty.max(axis=0), error, confidence):
        doubt += own
        if not doubt:
            continue
        n_retired, n_wrong = paths.tally(threshold)
        bound = upper_bound(n_wrong, n_retired, 1 - doubt)
        tried.append((n_wrong, n_retired, bound))
        if bound > error:
            doubt = 0.0
            continue
        promise = ErrorGuarantee(
            error=error,
            confidence=confidence,
            updates=n_updates,
            n_gold=n_gold,
            n_retired=n_retired,
            n_wrong=n_wrong,
            bound=bound,
        )
        rule = Retirement(threshold=threshold, promise=promise)
    if rule is None:
        n_wrong, n_retired, bound = tried[0]
        raise ParameterError(
            f"error={error!r} cannot be promised with confidence={confidence!r}: of {n_gold:,} gold items {n_wrong:,} "
            f"were wrong among the {n_retired:,} that the model was surest of, so up to {bound:.2%} of such items may "
            f"be. Add gold (at least {_fewest(error, 1 - confidence):,} items must retire), gather more responses for "
            "each item, let a model that is not too sure decide (Cautious), or allow a larger error=."
        )
    return rule


def _thresholds(highest: Array, error: float, confidence: float) -> list[tuple[float, float]]:
    """Thresholds that fall, each to retire about as many more, and the doubt that each may spend on its own.

    Half of the doubt is for the first, which retires so many gold items that one wrong answer would pass, and half for
    the one that retires half of them. Where there is not so much gold, all of it is for the first.
    """
    doubt, down = 1 - confidence, np.sort(highest)[::-1]
    half = len(down) // 2
    first = _fewest(error, doubt / 2, 1)
    split = first < half
    if not split:
        first = next((n for n in (_fewest(error, doubt, 1), _fewest(error, doubt)) if n <= len(down)), len(down))
    counts = np.linspace(first, len(down), N_THRESHOLDS).round().astype(np.int64)
    falling = np.unique(down[counts - 1])[::-1]
    own = np.zeros(len(falling))
    if split:
        own[(falling <= down[half - 1]).argmax()] = doubt / 2
    own[0] += doubt - own.sum()
    return list(zip(falling.tolist(), own.tolist(), strict=True))


def _fewest(error: float, doubt: float, n_wrong: int = 0) -> int:
    """How many items must retire, so many of them wrongly, for the bound to pass."""
    low, high = n_wrong, n_wrong + 1
    while upper_bound(n_wrong, high, 1 - doubt) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if upper_bound(n_wrong, middle, 1 - doubt) > error else (low, middle)
    return high
