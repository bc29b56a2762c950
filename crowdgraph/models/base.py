"""What every model has in common: settings as fields, and one verb, `fit`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, grouped
from crowdgraph.core._parameters import check_seed
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import FitSource, ModelFit, PosteriorDraws
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import (
    CollapsedFitWarning,
    ConvergenceWarning,
    InputError,
    ParameterError,
    RepeatedAnswersWarning,
    warn,
)

__all__ = ["Answers", "Job", "Model", "Outcome"]


class Answers:
    """The responses of a graph that are answers, as codes; items that were only shown are left out."""

    def __init__(self, graph: CrowdGraph) -> None:
        self.graph = graph
        responses = graph.responses
        self._answered = None if (responses.label >= 0).all() else np.flatnonzero(responses.label >= 0)

    @property
    def rows(self) -> Array | slice:
        """Where the answers stand among the graph's responses."""
        return slice(None) if self._answered is None else self._answered

    @cached_property
    def volunteer(self) -> Array:
        """Codes of the volunteers, of shape (R,)."""
        return self._column(self.graph.responses.volunteer)

    @cached_property
    def item(self) -> Array:
        """Codes of the items, of shape (R,)."""
        return self._column(self.graph.responses.item)

    @cached_property
    def label(self) -> Array:
        """Codes of the labels, of shape (R,)."""
        return self._column(self.graph.responses.label)

    def by_item(self) -> tuple[Array, Array]:
        """The order that gathers the answers by item, and where each item's begin, (N + 1,)."""
        gathered = self.graph.responses.by_item if self._answered is None else grouped(self.item, len(self.graph.items))
        return gathered.order, gathered.starts

    def __len__(self) -> int:
        return len(self.graph.responses) if self._answered is None else len(self._answered)

    def _column(self, column: Array) -> Array:
        return column if self._answered is None else column[self._answered]


class Job(NamedTuple):
    """What a model is asked to do: combine these answers, with this seed, from this start, showing progress or not."""

    answers: Answers
    seed: int | None = None
    start: ModelFit | None = None
    progress: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a model's `_fit` returns; the fields are those of `ModelFit`."""

    item_probs: Array
    class_probs: Array
    confusion: ConfusionTrack | None = None
    bound: Array = field(default_factory=lambda: np.zeros(0))
    converged: bool = True
    n_iter: int = 0
    class_concentration: Array | None = None
    prior: CrowdPrior | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    draws: PosteriorDraws | None = None


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """A model of how a crowd labels items.

    A model is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a `name`,
    check the settings in ``__post_init__`` and implement `_fit`; `crowdgraph.testing.check_model` checks the rest.
    """

    name: ClassVar[str]
    # Whether repeated answers of a volunteer to an item are steps of their own, and no news is lost by repeating.
    sequential: ClassVar[bool] = False

    def fit(
        self, graph: CrowdGraph, *, seed: int | None = None, start: ModelFit | None = None, progress: bool = False
    ) -> ModelFit:
        """Fit the model to a graph.

        Parameters
        ----------
        graph
            The graph; it stays as it is.
        seed
            For models that draw random numbers: the same seed gives the same fit.
        start
            An earlier fit to start from, for models that iterate.
        progress
            Whether to show a progress bar.
        """
        self._check(graph, seed, start)
        fit = self._as_fit(graph, self._fit(Job(Answers(graph), seed, start, progress)), seed)
        self._tell(fit, graph)
        return fit

    def warm_up(self, graph: CrowdGraph) -> None:  # noqa: B027 - most models have nothing to prepare
        """Load, or compile, what the first fit of such a graph would wait for; for those who measure time."""

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        """The fit of a graph in the mode in which `start` lies, for models that iterate; a new fit for others."""
        return self.fit(graph, seed=seed, start=start)

    @abstractmethod
    def _fit(self, job: Job) -> Outcome:
        """Work out what the model says of the answers."""

    def settings(self) -> dict[str, Any]:
        """The model's settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}

    def _as_fit(self, graph: CrowdGraph, found: Outcome, seed: int | None) -> ModelFit:
        return ModelFit(
            model=self.name,
            items=graph.items.ids,
            classes=graph.classes,
            params=self.settings(),
            # Without annotations: a graph that carries this fit would otherwise hold all the graphs before it.
            source=FitSource(self, graph.replace(), seed),
            **{part.name: getattr(found, part.name) for part in fields(found)},
        )

    def _check(self, graph: CrowdGraph, seed: int | None, start: ModelFit | None) -> None:
        if not isinstance(graph, CrowdGraph):
            raise ParameterError(
                f"A model is fitted to a CrowdGraph; got a {type(graph).__name__}. Make one with "
                "CrowdGraph.from_responses(table)."
            )
        if len(graph.classes) < 2:
            raise InputError(
                f"The graph has the single class {graph.classes[0]!r}, so there is nothing to tell apart. Name all "
                "classes that may be true with classes=[...] when building the graph."
            )
        check_seed(seed)
        if not (graph.responses.label >= 0).any():
            raise InputError(
                "The graph has no answers, so there is nothing to combine. Is it a view of a time before the first one?"
            )
        if start is not None:
            if not isinstance(start, ModelFit):
                raise ParameterError(f"start= takes an earlier fit (a ModelFit); got a {type(start).__name__}.")
            start.check_nodes(graph)
        n_repeats = 0 if self.sequential else graph.responses.table.n_repeats
        if n_repeats:
            warn(
                f"{n_repeats:,} of {len(graph.responses):,} responses repeat a volunteer and item, and this model "
                "takes them for independent answers. Keep one of each with duplicates='first' or 'last' when building "
                "the graph, or use DynIBCC, to which they are steps of their own.",
                RepeatedAnswersWarning,
            )

    def _tell(self, fit: ModelFit, graph: CrowdGraph) -> None:
        """Warn of a fit that did not settle or that no longer tells items apart."""
        if not fit.converged:
            warn(self._convergence_message(fit), ConvergenceWarning)
        if _has_collapsed(fit.item_probs, graph):
            warn(
                "Every item without gold has the same class probabilities, whatever was said about it: the fit has "
                "collapsed. The prior may be too strong or without a preference for any class; give one that says "
                "which labels go with which class.",
                CollapsedFitWarning,
            )

    def _convergence_message(self, fit: ModelFit) -> str:
        return (
            f"{type(self).__name__} did not settle in {fit.n_iter:,} iterations: class probabilities still changed by "
            f"{fit.diagnostics.get('change', float('nan')):.1e}. Raise max_iter, or tol if that is exact enough."
        )


def _has_collapsed(item_probs: Array, graph: CrowdGraph) -> bool:
    """Whether all items without gold are given the same probabilities though most answers differ between them."""
    free = (graph.items.n_responses > 0) & ~graph.gold.known
    if np.count_nonzero(free) < 2 or np.ptp(item_probs[free], axis=0).max() > 1e-6:
        return False
    answered, n_labels = graph.responses.label >= 0, len(graph.labels)
    cells = graph.responses.item[answered].astype(np.int64) * n_labels + graph.responses.label[answered]
    tallies = np.bincount(cells, minlength=len(graph.items) * n_labels).reshape(-1, n_labels)[free]
    return len(np.unique(tallies.argmax(axis=1))) > 1
