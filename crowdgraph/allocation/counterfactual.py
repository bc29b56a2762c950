"""Counterfactuals: what a model would have concluded without some volunteers, or had items been retired."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdgraph.allocation.retirement import Retirement, update_ends
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock, read_only
from crowdgraph.core._parameters import check_bool, check_instance, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core.fit import ModelFit, compared_columns, drop_responses
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import ParameterError, ResultError
from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated

__all__ = ["Counterfactual", "counterfactual"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Counterfactual(ReadOnlyArrays, Tabular):
    """What a model concludes, and what it would have concluded had some responses never been given.

    Attributes
    ----------
    reason
        What would have been different, in words.
    fit, other
        The fit as it was, and as it would have been. In `other`, items that retired keep the class probabilities that
        they retired with.
    n_responses, n_left_out
        How many responses there are, and how many would not have been given.
    truth
        The class of each item whose gold was hidden from the model, as a code, of shape (N,); -1 for all others.
    retired_at
        The update after which each item would have retired, counted from 1, of shape (N,); 0 for those never retired.
    """

    reason: str
    fit: ModelFit
    other: ModelFit
    n_responses: int
    n_left_out: int
    truth: Array
    retired_at: Array

    def __post_init__(self) -> None:
        for name in ("truth", "retired_at"):
            column = read_only(getattr(self, name))
            if column.shape != (len(self.fit.items),):
                raise ResultError(f"{name} has shape {column.shape}; expected one value for each item of the fit.")
            object.__setattr__(self, name, column)

    @cached_property
    def item_change(self) -> Array:
        """What would be added to each item's class probabilities, of shape (N, J)."""
        return lock(self.other.item_probs - self.fit.item_probs)

    @property
    def changed(self) -> Array:
        """Ids of the items whose most probable class would have been another."""
        was, would_be = (fit.item_probs.argmax(axis=1) for fit in (self.fit, self.other))
        return np.asarray(self.fit.items[was != would_be])

    @property
    def retired(self) -> Array:
        """Ids of the items that would have retired."""
        return np.asarray(self.fit.items[self.retired_at > 0])

    @property
    def accuracy(self) -> tuple[float, float]:
        """The share of items with hidden gold that are right, as it was and as it would have been; NaN without any."""
        scored = self.truth >= 0
        if not scored.any():
            return float("nan"), float("nan")
        right = [fit.item_probs[scored].argmax(axis=1) == self.truth[scored] for fit in (self.fit, self.other)]
        return float(right[0].mean()), float(right[1].mean())

    def _columns(self) -> Columns:
        """Return one row for each item, those that change most first."""
        return compared_columns(self.fit, self.item_change, instead=self.other, retired_at=self.retired_at)

    def __repr__(self) -> str:
        n_retired, n_scored = len(self.retired), np.count_nonzero(self.truth >= 0)
        before, after = self.accuracy
        parts = [
            f"{self.n_left_out:,} of {self.n_responses:,} responses left out",
            f"{n_retired:,} of {len(self.retired_at):,} items retired" if n_retired else "",
            f"{len(self.changed):,} items have another class",
            f"accuracy {after:.3f} instead of {before:.3f} among {n_scored:,} with hidden gold" if n_scored else "",
        ]
        return f"Counterfactual {self.reason}: {', '.join(part for part in parts if part)}"


def counterfactual(
    graph: CrowdGraph,
    *,
    without: Iterable[Hashable] | None = None,
    retirement: Retirement | None = None,
    model: Model = Calibrated(),  # noqa: B008 - models cannot be changed
    updates: int = 10,
    hide_gold: bool = False,
    seed: int | None = None,
    progress: bool = False,
) -> Counterfactual:
    """Compute what a model would have concluded had some volunteers never answered, or had items been retired.

    Without volunteers: the model is fitted to all responses, and again, starting from there, without theirs.

    With retirement: the responses are replayed in time order, in `updates` equal parts, and the model is fitted after
    each to the responses so far. Items that the rule then retires keep their class, and their later responses are left
    out. Items with gold do not retire, since they show how good volunteers are, nor do items before their first answer.
    The fit to all responses uses the same updates, so that a rule that retires nothing changes nothing.

    Parameters
    ----------
    graph
        The graph; it is not changed.
    without
        The volunteers who would not have answered.
    retirement
        The rule, such as one from `calibrated_retirement`. Either this or `without`.
    model
        The model.
    updates
        How often items may retire; the guarantee of a calibrated rule holds with as many updates as it was calibrated
        with.
    hide_gold
        False: the model sees gold as usual. True: it sees none, items with gold are treated like all others, and the
        result says how many of them are right. The guarantee of a rule that was calibrated with gold may then not hold.
    seed
        The same seed gives the same result.
    progress
        Whether to show a progress bar.

    See Also
    --------
    crowdgraph.ModelFit.influence : what one volunteer, item or response changes in a fit.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=40, n_items=200, n_responses=3_000, seed=0).graph
    >>> result = counterfactual(graph, retirement=Retirement(threshold=0.9), hide_gold=True, seed=0)
    >>> 0 < result.n_left_out < 3_000
    True
    >>> bool((result.retired_at > 0).sum() == len(result.retired))
    True
    """
    _check(graph, without, retirement, model)
    check_bool("hide_gold", hide_gold)
    check_seed(seed)
    view = graph.replace(gold=Gold.unknown(graph.items.table, graph.classes)) if hide_gold else graph.replace()
    truth = graph.gold.codes if hide_gold else np.full(len(graph.items), -1)
    fit_seed = child_seed(np.random.default_rng(seed))
    if retirement is not None:
        ends = update_ends(graph, updates)
        return _with_retirement(view, retirement, model, ends, fit_seed, truth=truth, progress=progress)
    return _without_volunteers(view, without, model, fit_seed, truth=truth, progress=progress)  # type: ignore[arg-type]


def _check(graph: object, without: object, retirement: object, model: object) -> None:
    check_instance("graph", graph, CrowdGraph)
    if (without is None) == (retirement is None):
        raise ParameterError(
            "A counterfactual needs to know what would have been different.",
            hint="Give either without=[volunteers] or retirement=rule.",
        )
    if retirement is not None:
        check_instance("retirement", retirement, Retirement, expected="a rule, such as Retirement(threshold=0.99)")
    check_instance("model", model, Model, expected="a model, such as Calibrated()")


def _without_volunteers(
    graph: CrowdGraph, volunteers: Iterable[Hashable], model: Model, seed: int, *, truth: Array, progress: bool
) -> Counterfactual:
    """Compare the fit with the one to the responses of all other volunteers."""
    codes = np.unique(graph.volunteers.codes(volunteers))
    if not len(codes):
        raise ParameterError("without= names nobody.", hint="Name at least one volunteer.")
    left_out = np.isin(graph.responses.volunteer, codes)
    rest = drop_responses(graph, left_out)
    if not len(rest.answers):
        raise ParameterError(
            f"without= names {len(codes):,} volunteers, and nobody else answered, so nothing could be concluded.",
            hint="Name fewer of them.",
        )
    fit = model.fit(graph, seed=seed, progress=progress)
    return Counterfactual(
        reason=f"without {len(codes):,} volunteer{'s' if len(codes) > 1 else ''}",
        fit=fit,
        other=model._refit(rest, start=fit, seed=seed),
        n_responses=len(graph.responses),
        n_left_out=int(left_out.sum()),
        truth=truth,
        retired_at=np.zeros(len(graph.items), dtype=np.int64),
    )


def _with_retirement(
    graph: CrowdGraph, rule: Retirement, model: Model, ends: list[int], seed: int, *, truth: Array, progress: bool
) -> Counterfactual:
    """Compare the fit with the one to the responses that remain if a rule retires items."""
    with progress_bar("counterfactual", visible=progress, total=2 * len(ends), unit="fits") as bar:
        fit, _, _ = _replay(graph, None, model, ends, seed, bar.update)
        other, left_out, retired_at = _replay(graph, rule, model, ends, seed, bar.update)
    return Counterfactual(
        reason=f"with retirement at {rule.threshold:.8g}",
        fit=fit,
        other=other,
        n_responses=len(graph.responses),
        n_left_out=int(left_out.sum()),
        truth=truth,
        retired_at=retired_at,
    )


def _replay(
    graph: CrowdGraph, rule: Retirement | None, model: Model, ends: list[int], seed: int, tick: Callable[[], Any]
) -> tuple[ModelFit, Array, Array]:
    """Return the last fit, which responses were left out, and after which update each item retired.

    Retired items have the probabilities that they had when they retired.
    """
    left_out = np.zeros(len(graph.responses), dtype=bool)
    retired_at = np.zeros(len(graph.items), dtype=np.int64)
    retired_probs = np.zeros((len(graph.items), len(graph.classes)))
    fit: ModelFit | None = None
    for update, end in enumerate(ends, start=1):
        view = drop_responses(graph.first(end), left_out[:end])
        fit = model.fit(view, seed=seed, start=fit)
        if rule is not None:
            may_retire = (view.answers.n_by_item > 0) & ~graph.gold.known
            newly = rule.retired(fit.item_probs) & (retired_at == 0) & may_retire
            retired_at[newly], retired_probs[newly] = update, fit.item_probs[newly]
            left_out[end:] |= newly[graph.responses.item[end:]]
        tick()
    probs = np.where(retired_at[:, None] > 0, retired_probs, fit.item_probs)  # type: ignore[union-attr]
    # Without its source: a fit to the responses could not reproduce the probabilities of retired items.
    return replace(fit, item_probs=probs, source=None), left_out, retired_at  # type: ignore[type-var, return-value]
