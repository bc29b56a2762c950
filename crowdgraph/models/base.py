"""The base class of all models: settings are fields, and the one verb is `fit`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import Configured, check_seed
from crowdgraph.core.fit import FitSource, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import (
    CollapsedFitWarning,
    ConvergenceWarning,
    InputError,
    ParameterError,
    RepeatedAnswersWarning,
    warn,
)
from crowdgraph.messages import Hint, Message, with_article

__all__ = ["Model"]

# The change of class probabilities at which two fits of one graph can be compared: what is left changes the bound by
# less than modes differ.
COMPARISON_TOL = 0.1


@dataclass(frozen=True, kw_only=True)
class Model(Configured, ABC):
    """A model of how a crowd labels items.

    A model is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a `name`,
    declare the settings with their checks and implement `_fit`; `crowdgraph.testing.check_model` checks the rest.
    """

    name: ClassVar[str]
    # Whether the model treats repeated answers of a volunteer to an item as separate steps in time.
    sequential: ClassVar[bool] = False

    def fit(
        self, graph: CrowdGraph, *, seed: int | None = None, start: ModelFit | None = None, progress: bool = False
    ) -> ModelFit:
        """Fit the model to a graph.

        Parameters
        ----------
        graph
            The graph; it is not changed.
        seed
            For models that draw random numbers: the same seed gives the same fit.
        start
            An earlier fit to start from, for models that iterate.
        progress
            Whether to show a progress bar.
        """
        self._check_arguments(graph, seed, start)
        fit = self._fit(graph, seed=seed, start=start, progress=progress)
        self._warn_about(fit, graph)
        return fit

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, what the first fit of such a graph would wait for.

        Call it before you measure how long a fit takes.
        """

    def settings(self) -> dict[str, Any]:
        """Return the model's settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}

    @abstractmethod
    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        """Fit the model to a graph whose answers have been checked; end with ``return self._result(graph, ...)``."""

    def _result(self, graph: CrowdGraph, *, seed: int | None, **fields_of_fit: Any) -> ModelFit:
        """Return a `ModelFit` of this model and graph, with further fields such as ``item_probs=`` as given."""
        return ModelFit(
            model=self.name,
            items=graph.items.ids,
            classes=graph.classes,
            params=self.settings(),
            # Without annotations: a graph that carries this fit would otherwise hold all the graphs before it.
            source=FitSource(self, graph.replace(), seed),
            **fields_of_fit,
        )

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        """Fit a graph in the mode in which `start` lies, for models that iterate; other models fit anew."""
        return self.fit(graph, seed=seed, start=start)

    def _fit_better(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> tuple[ModelFit, int]:
        """Fit a graph from `start` and from the model's own start; return the better fit and the sweeps of both.

        Models that iterate may follow both only as far as it takes to see which one is better, and that one to the end.
        """
        warm = self._refit(graph, start=start, seed=seed)
        cold = self.fit(graph, seed=seed)
        return (cold if _score(cold) > _score(warm) else warm), warm.n_iter + cold.n_iter

    def _check_arguments(self, graph: CrowdGraph, seed: int | None, start: ModelFit | None) -> None:
        if not isinstance(graph, CrowdGraph):
            raise ParameterError(
                f"A model is fitted to a CrowdGraph; got {with_article(type(graph))}.",
                hint="Make one with cg.read_csv(path) or cg.CrowdGraph.from_responses(table).",
            )
        if len(graph.classes) < 2:
            raise InputError(
                f"The graph has the single class {graph.classes[0]!r}, so there is nothing to tell apart.",
                hint=Hint(
                    "Name all classes that may be true with classes=[...] when building the graph.",
                    cli="Name all classes that may be true with --class NAME.",
                ),
            )
        check_seed(seed)
        if not len(graph.answers):
            raise InputError(
                "The graph has no answers, so there is nothing to combine.",
                hint="Is it a view of a time before the first one?",
            )
        if start is not None:
            if not isinstance(start, ModelFit):
                raise ParameterError(f"start= takes an earlier fit (a ModelFit); got {with_article(type(start))}.")
            start.check_nodes(graph)
        n_repeats = 0 if self._sequential else graph.answers.n_repeats
        if n_repeats:
            warn(
                f"{n_repeats:,} of {len(graph.responses):,} responses repeat a volunteer and item, and this model "
                "treats them as independent answers.",
                RepeatedAnswersWarning,
                hint=Hint(
                    "Keep one of each with duplicates='first' or 'last' when building the graph, or use DynIBCC, "
                    "which treats them as separate steps.",
                    cli="Keep one of each with --duplicates first or --duplicates last, or use --model dynibcc, "
                    "which treats them as separate steps.",
                ),
            )

    @property
    def _sequential(self) -> bool:
        """Whether repeated answers are separate steps; for models around another model, whether they are for that."""
        return self.sequential

    def _warn_about(self, fit: ModelFit, graph: CrowdGraph) -> None:
        """Warn if a fit did not converge or no longer tells items apart."""
        if not fit.converged:
            warn(self._convergence_message(fit), ConvergenceWarning)
        if _has_collapsed(fit.item_probs, graph):
            warn(
                "Every item without gold has the same class probabilities, whatever was said about it: the fit has "
                "collapsed.",
                CollapsedFitWarning,
                hint="The prior may be too strong, or it may not say which class is which; give one that says which "
                "labels go with which class.",
            )

    def _convergence_message(self, fit: ModelFit) -> Message:
        return Message(
            f"{type(self).__name__} did not converge in {fit.n_iter:,} iterations: class probabilities still changed "
            f"by {fit.diagnostics.get('change', float('nan')):.1e}. "
        ) + Hint(
            "Raise max_iter, or tol if that is accurate enough.",
            cli="In Python, raise max_iter, or tol if that is accurate enough.",
        )


def _has_collapsed(item_probs: Array, graph: CrowdGraph) -> bool:
    """Return whether all items without gold have the same probabilities though their most frequent answers differ."""
    free = (graph.items.n_responses > 0) & ~graph.gold.known
    if np.count_nonzero(free) < 2 or np.ptp(item_probs[free], axis=0).max() > 1e-6:
        return False
    answers, n_labels = graph.answers, len(graph.labels)
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    tallies = np.bincount(cells, minlength=len(graph.items) * n_labels).reshape(-1, n_labels)[free]
    return len(np.unique(tallies.argmax(axis=1))) > 1


def _score(fit: ModelFit) -> float:
    """Return the bound of a fit, or the score of models without one."""
    return float(fit.bound[-1]) if len(fit.bound) else float(fit.diagnostics.get("score", -np.inf))
