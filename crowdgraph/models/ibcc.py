"""Independent Bayesian classifier combination by variational Bayes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool, check_integer, check_positive, progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.models._priors import (
    ClassPrior,
    ConfusionPrior,
    checked_class_prior,
    checked_confusion_prior,
    crowd_prior,
    gold_counts,
    volunteer_priors,
)
from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.voting import Votes, check_mapping

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.kernels.fixed_point import Trace
    from crowdgraph.kernels.ibcc import VariationalBayes
    from crowdgraph.models._tensors import AnswerTensors

__all__ = ["IBCC"]


class End(NamedTuple):
    """Where the climb from one start ended."""

    start: str
    trace: Trace
    item_probs: Array


@dataclass(frozen=True, kw_only=True)
class IBCC(Model):
    r"""Independent Bayesian classifier combination, by variational Bayes.

    Every volunteer `k` has a confusion matrix :math:`\pi^{(k)}`, whose row `j` says how often they give each label to
    an item of class `j`. Rows have Dirichlet priors, and so have the class proportions :math:`\kappa`. The fit finds

    .. math::
        \ln \rho_{ij} = E[\ln \kappa_j] + \sum_{\text{responses to } i} E[\ln \pi^{(k)}_{j, \text{label}}], \qquad
        q(t_i = j) = \rho_{ij} / \sum_m \rho_{im},

    and the Dirichlets that follow from these class probabilities, in turn, until nothing changes. The lower bound on
    the evidence never falls on the way and is in ``fit.bound``. The first class probabilities are those that the prior
    and gold alone would give.

    Parameters
    ----------
    confusion_prior
        Pseudo-counts of labels given classes, for every volunteer alike: a pair (right, wrong), (4, 1) if left out, or
        a matrix of shape (J, L). For single volunteers: a mapping from their ids to matrices (and from None to that of
        everybody else), an earlier fit, or ``fit.as_prior(strength)``. Or ``"gold"``: learned from the answers to
        gold items.
    class_prior
        Pseudo-counts of the classes: a number, one for each class, or a mapping. One each if left out.
    votes
        For each label the class it speaks for, or None, from which a pair of numbers makes a prior. Not needed where
        labels are classes or where the prior is a matrix.
    learn_prior
        Whether to learn the shared confusion prior from the crowd itself (empirical Bayes): it becomes the Dirichlet
        under which the volunteers, and one imagined volunteer as the given prior says, are most probable. New
        volunteers then share it. The bound is then that of the fit with the learned prior, less the divergence of the
        given prior from it (the imagined volunteer's).
    restarts
        How many random starts to try beside the usual one; the highest bound is kept.
    compare_starts
        With ``start=``, whether to fit from the prior as well and keep the higher bound. Variational Bayes has modes,
        and a warm start may stay in a lower one; False is faster and leaves it there.
    max_iter, tol
        When to stop: after so many sweeps over the responses, or when no class probability changes by more.
    device, dtype
        Where to compute: ``"cpu"`` runs compiled code in double precision; others, such as ``"cuda"``, run tensors of
        type `dtype`.
    accelerate
        Whether to leap ahead between sweeps (SQUAREM) where that does not lower the bound.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(seed=0)
    >>> fit = cg.IBCC().fit(crowd.graph)
    >>> bool((fit.item_probs.argmax(axis=1) == crowd.truth.classes).mean() > 0.9)
    True
    """

    name: ClassVar[str] = "ibcc"

    confusion_prior: ConfusionPrior = None
    class_prior: ClassPrior = None
    votes: Votes | None = None
    learn_prior: bool = False
    restarts: int = 0
    compare_starts: bool = True
    max_iter: int = 1_000
    tol: float = 1e-5
    device: str = "cpu"
    dtype: Literal["float64", "float32"] = "float64"
    accelerate: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion_prior", checked_confusion_prior(self.confusion_prior))
        object.__setattr__(self, "class_prior", checked_class_prior(self.class_prior))
        object.__setattr__(self, "device", str(self.device))
        check_mapping("votes", self.votes)
        for name in ("learn_prior", "compare_starts", "accelerate"):
            check_bool(name, getattr(self, name))
        check_integer("restarts", self.restarts, minimum=0)
        check_integer("max_iter", self.max_iter, minimum=2)
        check_positive("tol", self.tol)
        check_choice("dtype", self.dtype, ("float64", "float32"))

    def warm_up(self, graph: CrowdGraph) -> None:
        """Load, or compile, the sweep over the responses."""
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph)

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        """The fit of a graph in the mode in which `start` lies."""
        return replace(self, compare_starts=False, restarts=0).fit(graph, seed=seed, start=start)

    def _fit(self, job: Job) -> Outcome:
        from crowdgraph.models._tensors import AnswerTensors

        graph = job.answers.graph
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        if self.learn_prior and len(prior.ids):
            raise ParameterError(
                "learn_prior=True learns the prior that all volunteers share, but confusion_prior= gives some of them "
                "their own; leave one of the two out."
            )
        tensors = AnswerTensors(job.answers, device=self.device, dtype=self.dtype)
        step = self._step(tensors, prior, graph)
        ends = [
            End(name, self._climb(step, state, name, progress=job.progress), step.probs.cpu().double().numpy().copy())
            for name, state in self._starts(step, tensors, job)
        ]
        best = highest(ends)
        posterior = step.posterior(best.trace.state)
        if self.learn_prior:
            prior = replace(prior, shared=posterior.prior[0].T.cpu().double().numpy())
        classes = posterior.classes.cpu().double().numpy()
        return Outcome(
            item_probs=best.item_probs,
            class_probs=classes / classes.sum(),
            class_concentration=classes,
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=tensors.confusion(posterior.confusion, others=volunteer_priors(prior, graph)),
                classes=graph.classes,
                labels=graph.labels,
            ),
            prior=prior,
            bound=np.array(best.trace.objectives),
            converged=best.trace.converged,
            n_iter=best.trace.n_steps,
            diagnostics={
                "start": best.start,
                "bounds": {end.start: end.trace.objectives[-1] for end in ends},
                "change": best.trace.change,
            },
        )

    def _step(self, tensors: AnswerTensors, prior: CrowdPrior, graph: CrowdGraph) -> VariationalBayes:
        """The map to climb by."""
        from crowdgraph.kernels.ibcc import VariationalBayes

        sweeper, expectations = tensors.kernels()
        probs, fixed = tensors.items()
        return VariationalBayes(
            sweeper,
            expectations,
            prior=tensors.table(volunteer_priors(prior, graph)),
            class_prior=tensors.tensor(prior.class_concentration),
            probs=probs,
            fixed=fixed,
            n_volunteers=tensors.shape[0],
            learn_prior=self.learn_prior,
        )

    def _starts(self, step: VariationalBayes, tensors: AnswerTensors, job: Job) -> Iterator[tuple[str, Tensor]]:
        """States to climb from, by name."""
        if job.start is not None:
            yield "warm", warm_state(step, tensors, job.start)
        if job.start is None or self.compare_starts:
            counts, class_counts = gold_counts(job.answers)
            yield "prior", step.from_counts(tensors.table(counts), tensors.tensor(class_counts))
        rng = np.random.default_rng(job.seed)
        n_items, n_classes = step.probs.shape
        for number in range(self.restarts):
            yield f"random {number}", step.from_probs(tensors.tensor(rng.dirichlet(np.ones(n_classes), n_items)))

    def _climb(self, step: VariationalBayes, state: Tensor, name: str, *, progress: bool) -> Trace:
        from crowdgraph.kernels._runtime import single_threaded_torch
        from crowdgraph.kernels.fixed_point import squarem

        with progress_bar(f"IBCC from {name}", visible=progress) as bar, single_threaded_torch():
            return squarem(
                step,
                state,
                max_iter=self.max_iter,
                tol=self.tol,
                accelerate=self.accelerate,
                on_step=lambda taken: (bar.set_postfix(bound=f"{taken.objective:,.1f}", refresh=False), bar.update()),
            )


def highest(ends: list[End]) -> End:
    """The end with the highest bound; of those that differ by rounding alone, as ends in one mode do, the first."""
    best = ends[0]
    for end in ends[1:]:
        if end.trace.objectives[-1] > best.trace.objectives[-1] + 1e-9 * abs(best.trace.objectives[-1]):
            best = end
    return best


def warm_state(step: VariationalBayes, tensors: AnswerTensors, start: ModelFit) -> Tensor:
    """The state in which an earlier fit ended; of a fit without confusion only the class probabilities count."""
    from crowdgraph.kernels.ibcc import Posterior

    if start.confusion is None or start.prior is None or start.class_concentration is None:
        return step.from_probs(tensors.tensor(start.item_probs))
    return step.state(
        Posterior(
            tensors.table(start.confusion.latest().concentration),
            tensors.tensor(start.class_concentration),
            tensors.table(start.prior.shared[None]),
        )
    )
