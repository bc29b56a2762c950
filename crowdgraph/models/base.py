"""The base class of all models: settings are fields, and the one verb is `fit`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array, row_blocks, same_values
from crowdgraph.core._memory import memory_in_bytes
from crowdgraph.core._other_names import AdvisesOnNames
from crowdgraph.core._parameters import Configured, check_seed
from crowdgraph.core.fit import FitSource, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.soft_answers import refuse_soft_answers, refuse_streamed_soft_answers
from crowdgraph.errors import (
    AlignmentError,
    CollapsedFitWarning,
    ConvergenceWarning,
    FitInterrupted,
    InputError,
    ParameterError,
    RepeatedAnswersWarning,
    warn,
)
from crowdgraph.messages import Hint, Message, quote, with_article
from crowdgraph.models._interruption import is_interrupted, listening
from crowdgraph.models._resources import current_resources, require_stored, using

__all__ = ["Model", "seed_of"]

# The change of class probabilities at which two fits of one graph can be compared: what is left changes the bound by
# less than modes differ.
COMPARISON_TOL = 0.1


@dataclass(frozen=True, kw_only=True)
class Model(AdvisesOnNames, Configured, ABC):
    """A model of how a crowd labels items.

    A model is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a `name`,
    declare the settings with their checks and implement `_fit`; `crowdgraph.testing.check_model` checks the rest.
    """

    name: ClassVar[str]
    # Whether the model treats repeated answers of a volunteer to an item as separate steps in time.
    sequential: ClassVar[bool] = False

    # Whether the model can be fitted to a crowd on disk within a limit of memory.
    streams: ClassVar[bool] = False
    # Whether the model takes answers that are distributions over the labels; others refuse them.
    soft_answers: ClassVar[bool] = False

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
            The responses then pass through memory block by block, and class probabilities and confusion over time lie
            in temporary files. `IBCC`, `DynIBCC`, `DawidSkene` and `MajorityVote` take it.

        Raises
        ------
        FitInterrupted
            After Ctrl-C: its attribute `fit` has what was reached. A second Ctrl-C stops at once, without it.
        """
        limit = None if memory is None else memory_in_bytes(memory)
        with using(memory=limit) if limit is not None else nullcontext():
            self._check_arguments(graph, seed, start)
            if limit is not None:
                self._check_streams(graph)
            fit = self._complete(graph, partial(self._fit, graph, seed=seed, start=start, progress=progress))
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
        refuse_streamed_soft_answers(graph.responses.table.attributes)

    def update(self, fit: ModelFit, graph: CrowdGraph, *, progress: bool = False) -> ModelFit:
        """Fit a graph to which responses were added since an earlier fit, starting from where that fit ended.

        The result is that of `fit` in the same mode, up to the tolerance, for a fraction of the work: `IBCC` and
        `DawidSkene` first visit what the new responses reach, then everything until nothing changes any more. The
        bound is never lower than that of the earlier fit's estimates on the new graph. Other models that iterate start
        from the earlier class probabilities, and models that only count do so again.

        A mode cannot be left: after many updates, or if most responses are new, `fit` may end in a better one.
        ``diagnostics["visited"]`` of both says how many responses were visited.

        Parameters
        ----------
        fit
            An earlier fit of this kind of model.
        graph
            The graph of the earlier fit with more responses, as `CrowdGraph.extend` returns it.
        progress
            Whether to show a progress bar.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> crowd = cg.simulate.crowd(seed=0).graph
        >>> graph = crowd.first(4_900)
        >>> model = cg.IBCC()
        >>> fit = model.fit(graph)
        >>> updated = model.update(fit, crowd)
        >>> updated.diagnostics["visited"] < model.fit(crowd).diagnostics["visited"]
        True
        """
        self._check_update(fit, graph)
        self._check_arguments(graph, seed_of(fit), None)
        return self._complete(graph, partial(self._update, fit, graph, progress=progress))

    def _complete(self, graph: CrowdGraph, compute: Callable[[], ModelFit]) -> ModelFit:
        """Return a fit, with warnings where it fell short; if Ctrl-C ended it early, raise what holds it."""
        with listening() as interruption:
            fit = compute()
        if interruption.is_requested:
            raise FitInterrupted(
                f"{type(self).__name__} was interrupted after {fit.n_iter:,} iterations"
                + ("." if fit.converged else ", before it converged.")
                + " The error's attribute `fit` has what was reached; go on from there with "
                "model.fit(graph, start=error.fit).",
                fit=fit,
            )
        if not is_interrupted():
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

    def _update(self, fit: ModelFit, graph: CrowdGraph, *, progress: bool) -> ModelFit:  # noqa: ARG002 - a refit shows none
        """Fit a graph with more responses than an earlier fit saw, in its mode; arguments have been checked."""
        n_new = len(graph.items) - len(fit.items)
        start = ModelFit(
            model=fit.model,
            items=graph.items.ids,
            classes=fit.classes,
            item_probs=np.concatenate([fit.item_probs, np.repeat(fit.class_probs[None], n_new, axis=0)]),
            class_probs=fit.class_probs,
        )
        return self._refit(graph, start=start, seed=seed_of(fit))

    def _makes(self, fit: ModelFit) -> bool:
        """Return whether a fit is of this kind of model."""
        return fit.model == self.name

    def _check_update(self, fit: object, graph: object) -> None:
        """Raise unless a fit is of this kind of model and of an earlier state of a graph."""
        if not isinstance(fit, ModelFit):
            raise ParameterError(
                f"update() takes an earlier fit (a ModelFit) and a graph; got {with_article(type(fit))} first.",
                hint="Write model.update(fit, graph).",
            )
        if not isinstance(graph, CrowdGraph):
            raise ParameterError(
                f"update() takes an earlier fit and a CrowdGraph; got {with_article(type(graph))}.",
                hint="Add new responses to the graph that was fitted with graph.extend(table).",
            )
        if not self._makes(fit):
            raise ParameterError(
                f"{type(self).__name__} cannot update a fit of the model {fit.model!r}.",
                hint="Update it with the model that made it, or fit this one with model.fit(graph).",
            )
        n_items, track = len(fit.items), fit.confusion
        differences = [
            f"its first {n_items:,} items are not those of the fit"
            if not same_values(graph.items.ids[:n_items], fit.items)
            else "",
            f"its classes are {quote(graph.classes)}, those of the fit {quote(fit.classes)}"
            if not same_values(graph.classes, fit.classes)
            else "",
        ]
        if track is not None:
            differences += [
                f"its first {len(track.ids):,} volunteers are not those of the fit"
                if not same_values(graph.volunteers.ids[: len(track.ids)], track.ids)
                else "",
                f"its labels are {quote(graph.labels)}, those of the fit {quote(track.labels)}"
                if not same_values(graph.labels, track.labels)
                else "",
            ]
        if not any(differences) and fit.state is not None:
            n_fewer = int(np.count_nonzero(graph.answers.n_by_item[:n_items] < fit.state.n_answers))
            differences.append(f"it has fewer answers than the fit saw about {n_fewer:,} items" if n_fewer else "")
        reason = next((text for text in differences if text), None)
        if reason is not None:
            raise AlignmentError(
                f"The fit is not of an earlier state of this graph: {reason}.",
                hint="Add responses to the graph that was fitted with graph.extend(table), or fit the model anew with "
                "model.fit(graph).",
            )

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
        check_seed(seed)
        check_crowd(graph.classes, len(graph.answers))
        if not self._soft_answers:
            refuse_soft_answers(graph, type(self).__name__)
        if start is not None:
            if not isinstance(start, ModelFit):
                raise ParameterError(f"start= takes an earlier fit (a ModelFit); got {with_article(type(start))}.")
            start.check_nodes(graph)
        if not self._sequential:
            self._warn_about_repeats(graph.answers.n_repeats, len(graph.responses))

    def _warn_about_repeats(self, n_repeats: int, n_responses: int) -> None:
        if n_repeats:
            warn(
                f"{n_repeats:,} of {n_responses:,} responses repeat a volunteer and item, and this model treats them "
                "as independent answers.",
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

    @property
    def _soft_answers(self) -> bool:
        """Whether the model takes soft answers; for models around another model, whether that takes them."""
        return self.soft_answers

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


def seed_of(fit: ModelFit) -> int | None:
    """Return the seed with which a fit was made, if that is known."""
    return None if fit.source is None else fit.source.seed


def check_crowd(classes: tuple[Hashable, ...], n_answers: int) -> None:
    """Raise unless a crowd has classes to tell apart and answers to do so."""
    if len(classes) < 2:
        raise InputError(
            f"The graph has the single class {classes[0]!r}, so there is nothing to tell apart.",
            hint=Hint(
                "Name all classes that may be true with classes=[...] when building the graph.",
                cli="Name all classes that may be true with --class NAME.",
            ),
        )
    if not n_answers:
        raise InputError(
            "The graph has no answers, so there is nothing to combine.",
            hint="Is it a view of a time before the first one?",
        )


def _has_collapsed(item_probs: Array, graph: CrowdGraph) -> bool:
    """Return whether all items without gold have the same probabilities though their most frequent answers differ.

    Where several processes share the items, all of them return the same.
    """
    resources = current_resources()
    free = (graph.items.n_responses > 0) & ~graph.gold.known
    n_free = np.count_nonzero(free)
    if resources.total(np.array([n_free]))[0] < 2:
        return False
    # The mean of the processes' first items, which are all the same if the fit has collapsed.
    own = item_probs[free.argmax()] if n_free else np.zeros(len(graph.classes))
    first = resources.total(own) / resources.total(np.array([float(n_free > 0)]))
    blocks = row_blocks(len(free))
    spread = max(float(np.abs(item_probs[rows][free[rows]] - first).max(initial=0)) for rows in blocks)
    if resources.largest(spread) > 1e-6:
        return False
    answers, n_labels = graph.answers, len(graph.labels)
    cells = answers.item.astype(np.int64) * n_labels + answers.label
    tallies = np.bincount(cells, minlength=len(graph.items) * n_labels).reshape(-1, n_labels)[free]
    n_winning = resources.total(np.bincount(tallies.argmax(axis=1), minlength=n_labels))
    return bool(np.count_nonzero(n_winning) > 1)


def _score(fit: ModelFit) -> float:
    """Return the bound of a fit, or the score of models without one."""
    return float(fit.bound[-1]) if len(fit.bound) else float(fit.diagnostics.get("score", -np.inf))
