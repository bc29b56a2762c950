"""Dawid and Skene's model by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.core._parameters import check_bool, check_integer, check_positive, is_number, progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.voting import Votes, check_mapping, vote_codes, vote_outcome

__all__ = ["DawidSkene"]

# A Dirichlet has no concentration of zero; this one changes no estimate that anybody would notice.
LEAST_COUNT = 1e-9


@dataclass(frozen=True, kw_only=True)
class DawidSkene(Model):
    """Confusion matrices and class proportions of greatest likelihood, by expectation maximisation.

    After Dawid and Skene, *Maximum likelihood estimation of observer error-rates using the EM algorithm* (1979). It is
    IBCC with points where IBCC has distributions: quick to state, but sure of volunteers who gave three answers.

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
    accelerate
        Whether to leap ahead between sweeps (SQUAREM) where that does not lower the likelihood.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> fit = cg.DawidSkene().fit(cg.simulate.crowd(seed=0).graph)
    >>> fit.converged
    True
    """

    name: ClassVar[str] = "dawid_skene"

    votes: Votes | None = None
    smoothing: float = 0.01
    max_iter: int = 1_000
    tol: float = 1e-5
    accelerate: bool = True

    def __post_init__(self) -> None:
        check_mapping("votes", self.votes)
        check_integer("max_iter", self.max_iter, minimum=2)
        check_positive("tol", self.tol)
        check_bool("accelerate", self.accelerate)
        if not is_number(self.smoothing) or not 0 <= self.smoothing <= 1e8:
            raise ParameterError(f"smoothing={self.smoothing!r} must be a number from 0 to 1e8.")

    def warm_up(self, graph: CrowdGraph) -> None:
        """Load, or compile, the sweep over the responses."""
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph)

    def _fit(self, job: Job) -> Outcome:
        from crowdgraph.kernels._runtime import single_threaded_torch
        from crowdgraph.kernels.fixed_point import squarem
        from crowdgraph.kernels.ibcc import DawidSkeneEM
        from crowdgraph.models._tensors import AnswerTensors

        answers, graph = job.answers, job.answers.graph
        if job.start is None:
            votes = vote_codes(graph, self.votes)
            guess = vote_outcome(answers, votes, log_weights=None, output="shares").item_probs
        else:
            guess = job.start.item_probs
        tensors = AnswerTensors(answers)
        probs, fixed = tensors.items()
        step = DawidSkeneEM(
            tensors.kernels()[0], shape=tensors.shape, probs=probs, fixed=fixed, smoothing=float(self.smoothing)
        )
        with progress_bar("Dawid-Skene", visible=job.progress) as bar, single_threaded_torch():
            trace = squarem(
                step,
                step.from_probs(tensors.tensor(guess)),
                max_iter=self.max_iter,
                tol=self.tol,
                accelerate=self.accelerate,
                on_step=lambda _: bar.update(),
            )
        counts, class_counts = step.counts(trace.state)
        nothing = np.full((1, len(graph.classes), len(graph.labels)), max(self.smoothing, LEAST_COUNT))
        return Outcome(
            item_probs=step.probs.numpy(),
            class_probs=(class_counts / class_counts.sum()).numpy(),
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=np.maximum(tensors.confusion(counts, others=nothing), LEAST_COUNT),
                classes=graph.classes,
                labels=graph.labels,
            ),
            bound=np.array(trace.objectives),
            converged=trace.converged,
            n_iter=trace.n_steps,
            diagnostics={"change": trace.change},
        )
