"""Dawid and Skene's model, fitted by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdgraph.core._arrays import lock
from crowdgraph.core._parameters import boolean, choice, converted, integer, number, positive, precision, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import FitStage, FitState, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.kernels.backend_names import BACKENDS, PRECISIONS, BackendName, Precision
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models._resources import current_resources
from crowdgraph.models.base import Model, seed_of
from crowdgraph.models.label_votes import Votes, check_mapping, vote_codes
from crowdgraph.models.voting import vote_shares

if TYPE_CHECKING:
    from crowdgraph.kernels.fixed_point import Trace
    from crowdgraph.kernels.ibcc import DawidSkeneEM
    from crowdgraph.kernels.local_sweeps import CountedSweep
    from crowdgraph.models._tensors import AnswerTensors

__all__ = ["DawidSkene"]

# A Dirichlet has no concentration of zero; this one does not noticeably change any estimate.
MIN_CONCENTRATION = 1e-9
# With less smoothing, counts that are almost zero decide where the iteration ends, and must be exact.
MIN_SMOOTHING = 1e-6


@dataclass(frozen=True, kw_only=True)
class DawidSkene(Model):
    """Confusion matrices and class proportions of maximum likelihood, by expectation maximisation.

    After Dawid and Skene, *Maximum likelihood estimation of observer error-rates using the EM algorithm* (1979). It is
    IBCC with point estimates instead of distributions: simple, but overconfident about volunteers with three answers.

    The likelihood, in ``fit.bound``, never falls. The confusion's concentrations are the expected counts, so that its
    mean is the estimate.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None: the fit starts from the shares of votes. Not needed where labels
        are classes, or with ``start=``.
    smoothing
        Added to every count, so that no probability is zero; the objective is then the likelihood times the density of
        Dirichlets with concentration 1 + smoothing. Zero is plain maximum likelihood.
    max_iter, tol
        When to stop: after so many sweeps over the responses, or when no class probability changes by more.
    backend, device, dtype
        What computes, where and in which precision. The backend ``"auto"`` is compiled code on CPUs and PyTorch tensors
        elsewhere; ``"torch"`` runs tensors on the CPU as well. In ``"float32"`` class probabilities are within 1e-3 of
        those in double precision, a `tol` below 5e-6 is raised to that, and `smoothing` must be 1e-6 or more, since
        probabilities near zero do not fit into it. ``fit.diagnostics`` says what ran.
    accelerate
        Whether to extrapolate between sweeps (SQUAREM) where that does not lower the likelihood.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> fit = cg.DawidSkene().fit(cg.simulate.crowd(seed=0).graph)
    >>> fit.converged
    True
    """

    name: ClassVar[str] = "dawid_skene"
    streams: ClassVar[bool] = True
    soft_answers: ClassVar[bool] = True

    votes: Votes | None = setting(None, check_mapping)
    smoothing: float = number(0.01, valid=lambda value: 0 <= value <= 1e8, expected="be a number from 0 to 1e8")
    max_iter: int = integer(1_000)
    tol: float = positive(1e-5)
    backend: BackendName = choice("auto", BACKENDS)
    device: str = converted("cpu", str)
    dtype: Precision = precision("float64", PRECISIONS)
    accelerate: bool = boolean(True)

    def _check_settings(self) -> None:
        if self.dtype == "float32" and self.smoothing < MIN_SMOOTHING:
            raise ParameterError(
                f"dtype='float32' with smoothing={self.smoothing!r}: single precision does not hold the probabilities "
                "near zero in which maximum likelihood ends.",
                hint=f"Give a smoothing of {MIN_SMOOTHING:g} or more, or dtype='float64'.",
            )

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, the sweep over the responses."""
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph, choose_backend(self.backend, device=self.device, dtype=self.dtype))

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.kernels.fixed_point import reachable_tolerance, squarem
        from crowdgraph.models._tensors import AnswerTensors

        backend = choose_backend(self.backend, device=self.device, dtype=self.dtype)
        if start is None:
            initial = vote_shares(graph, vote_codes(graph, self.votes), log_weights=None, output="shares")
        else:
            initial = start.item_probs
        tensors = AnswerTensors(graph, backend)
        em, sweeper = self._map(tensors)
        with progress_bar("Dawid-Skene", visible=progress) as bar, backend.threads():
            trace = squarem(
                em,
                em.from_probs(tensors.shared(initial)),
                max_iter=self.max_iter,
                tol=reachable_tolerance(self.tol, backend.dtype),
                accelerate=self.accelerate,
                on_step=lambda _: bar.update(),
                give_up=is_interrupted,
                recorder=current_resources().recorder("Dawid-Skene"),
            )
        return self._summarise(graph, tensors, em, trace, n_visited=sweeper.n_visited, seed=seed)

    def _update(self, fit: ModelFit, graph: CrowdGraph, *, progress: bool) -> ModelFit:
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.models._tensors import AnswerTensors
        from crowdgraph.models._updates import StageUpdater, runs_locally

        seed = seed_of(fit)
        backend = choose_backend(self.backend, device=self.device, dtype=self.dtype)
        if (
            fit.state is None
            or self.smoothing < MIN_SMOOTHING
            or not runs_locally(graph, backend, fit.state, n_stages=1)
        ):
            return super()._update(fit, graph, progress=progress)
        tensors = AnswerTensors(graph, backend)
        em, sweeper = self._map(tensors)
        updater = StageUpdater(graph, fit.state, tensors, sweeper, tol=self.tol, accelerate=self.accelerate)
        with progress_bar("Dawid-Skene", visible=progress) as bar, backend.threads():
            trace = updater.update(em, fit.state.stages[0], max_iter=self.max_iter, on_step=lambda _: bar.update())
        return self._summarise(graph, tensors, em, trace, n_visited=updater.n_visited, seed=seed)

    def _map(self, tensors: AnswerTensors) -> tuple[DawidSkeneEM, CountedSweep]:
        """Return expectation maximisation, and its sweep over all answers."""
        from crowdgraph.kernels.ibcc import DawidSkeneEM
        from crowdgraph.kernels.local_sweeps import CountedSweep

        sweeper, _ = tensors.kernels(tiny_counts=self.smoothing < MIN_SMOOTHING)
        counted = CountedSweep(sweeper, len(tensors.responses.codes))
        probs, fixed = tensors.items()
        em = DawidSkeneEM(counted, shape=tensors.shape, probs=probs, fixed=fixed, smoothing=float(self.smoothing))
        return em, counted

    def _summarise(
        self,
        graph: CrowdGraph,
        tensors: AnswerTensors,
        em: DawidSkeneEM,
        trace: Trace,
        *,
        n_visited: int,
        seed: int | None,
    ) -> ModelFit:
        """Return the fit in which an iteration ended."""
        counts, class_counts = em.counts(trace.state)
        class_counts = class_counts.cpu().double()
        unseen = np.full((1, len(graph.classes), len(graph.labels)), max(self.smoothing, MIN_CONCENTRATION))
        concentration = tensors.confusion(counts, others=unseen)
        item_probs = lock(tensors.item_probs(em.probs))
        state = None
        if tensors.in_memory:
            stage = FitStage(item_probs=item_probs, counts=np.maximum(concentration - self.smoothing, 0.0))
            state = FitState(n_answers=graph.answers.n_by_item, stages=(stage,))
        return self._result(
            graph,
            seed=seed,
            item_probs=item_probs,
            class_probs=(class_counts / class_counts.sum()).numpy(),
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=np.maximum(concentration, MIN_CONCENTRATION),
                classes=graph.classes,
                labels=graph.labels,
            ),
            bound=np.array(trace.objectives),
            converged=trace.converged,
            n_iter=trace.n_steps,
            diagnostics={**tensors.backend.facts(), "change": trace.change, "visited": n_visited},
            state=state,
        )
