"""The base class of all models: settings are fields, and the one verb is `fit`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array, row_blocks
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
from crowdgraph.models._resources import memory_in_bytes, require_stored, using

__all__ = ["Model"]


@dataclass(frozen=True, kw_only=True)
class Model(Configured, ABC):
    """A model of how a crowd labels items.

    A model is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a `name`,
    declare the settings with their checks and implement `_fit`; `crowdgraph.testing.check_model` checks the rest.
    """

    name: ClassVar[str]
    # Whether the model treats repeated answers of a volunteer to an item as separate steps in time.
    sequential: ClassVar[bool] = False

    # Whether the model can be fitted to a crowd on disk within a limit of memory.
    streams: ClassVar[bool] = False

    def fit(
        self,
        graph: CrowdGraph,
        *,
        seed: int | None = None,
        start: ModelFit | None = None,
        progress: bool = False,
        memory: str | int | None = None,
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
        memory
            For a crowd on disk (see `crowdgraph.open_store`): the memory that the process may take, such as ``"4GB"``.
            The responses then pass through memory block by block, and class probabilities lie in temporary files.
        """
        limit = None if memory is None else memory_in_bytes(memory)
        with using(memory=limit) if limit is not None else nullcontext():
            self._check_arguments(graph, seed, start)
            if limit is not None:
                self._check_streams(graph)
            fit = self._fit(graph, seed=seed, start=start, progress=progress)
            self._warn_about(fit, graph)
        stored = graph.responses.table.stored
        if stored is not None:
            stored.store.check_unchanged()
        return fit

    def _check_streams(self, graph: CrowdGraph) -> None:
        if not self.streams:
            raise ParameterError(
                f"{type(self).__name__} needs all responses in memory, so it takes no limit of memory.",
                hint="Leave memory= out, or fit IBCC, DynIBCC, DawidSkene or MajorityVote.",
            )
        require_stored(graph)

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
    if np.count_nonzero(free) < 2:
        return False
    first = item_probs[free.argmax()]
    if any(np.abs(item_probs[rows][free[rows]] - first).max(initial=0) > 1e-6 for rows in row_blocks(len(free))):
        return False
    answers, n_labels = graph.answers, len(graph.labels)
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    tallies = np.bincount(cells, minlength=len(graph.items) * n_labels).reshape(-1, n_labels)[free]
    return len(np.unique(tallies.argmax(axis=1))) > 1
