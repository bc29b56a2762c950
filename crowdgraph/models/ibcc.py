"""Independent Bayesian classifier combination by variational Bayes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import boolean, choice, converted, integer, positive, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError
from crowdgraph.models._priors import (
    ClassPrior,
    ConfusionPrior,
    crowd_prior,
    normalise_class_prior,
    normalise_confusion_prior,
    volunteer_priors,
)
from crowdgraph.models.base import Model
from crowdgraph.models.label_votes import Votes, check_mapping, gold_counts

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.kernels.fixed_point import Trace
    from crowdgraph.kernels.ibcc import VariationalBayes
    from crowdgraph.models._tensors import AnswerTensors

__all__ = ["IBCC"]


@dataclass(frozen=True, kw_only=True)
class IBCC(Model):
    r"""Independent Bayesian classifier combination, by variational Bayes.

    Every volunteer `k` has a confusion matrix :math:`\pi^{(k)}`, whose row `j` says how often they give each label to
    an item of class `j`. Rows have Dirichlet priors, and so have the class proportions :math:`\kappa`. The fit computes

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
        For each label the class it votes for, or None, from which a pair of numbers makes a prior. Not needed where
        labels are classes or where the prior is a matrix.
    learn_prior
        Whether to learn the shared confusion prior from the crowd itself (empirical Bayes): it becomes the Dirichlet
        that maximises the probability of the volunteers and of one pseudo-volunteer distributed according to the given
        prior. New volunteers then share it. The bound is then that of the fit with the learned prior, less the
        divergence of the given prior from it (the pseudo-volunteer's).
    restarts
        How many random starts to try beside the usual one; the fit with the highest bound is returned.
    compare_starts
        With ``start=``, whether to fit from the prior as well and return the higher bound. Variational Bayes has modes,
        and a warm start may stay in a lower one; False is faster and leaves it there.
    max_iter, tol
        When to stop: after so many sweeps over the responses, or when no class probability changes by more.
    device, dtype
        Where to compute: ``"cpu"`` runs compiled code in double precision; others, such as ``"cuda"``, run tensors of
        type `dtype`.
    accelerate
        Whether to extrapolate between sweeps (SQUAREM) where that does not lower the bound.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(seed=0)
    >>> fit = cg.IBCC().fit(crowd.graph)
    >>> bool((fit.item_probs.argmax(axis=1) == crowd.truth.classes).mean() > 0.9)
    True
    """

    name: ClassVar[str] = "ibcc"

    confusion_prior: ConfusionPrior = converted(None, normalise_confusion_prior)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    votes: Votes | None = setting(None, check_mapping)
    learn_prior: bool = boolean(False)
    restarts: int = integer(0, minimum=0)
    compare_starts: bool = boolean(True)
    max_iter: int = integer(1_000, minimum=2)
    tol: float = positive(1e-5)
    device: str = converted("cpu", str)
    dtype: Literal["float64", "float32"] = choice("float64", ("float64", "float32"))
    accelerate: bool = boolean(True)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, the sweep over the responses."""
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph)

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        return replace(self, compare_starts=False, restarts=0).fit(graph, seed=seed, start=start)

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.models._tensors import AnswerTensors

        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        if self.learn_prior and len(prior.ids):
            raise ParameterError(
                "learn_prior=True learns the prior that all volunteers share, but confusion_prior= gives some of them "
                "their own; leave one of the two out."
            )
        tensors = AnswerTensors(graph, device=self.device, dtype=self.dtype)
        vb = self._variational_bayes(tensors, prior, graph)
        runs = [
            (name, self._iterate(vb, state, name, progress=progress), vb.probs.cpu().double().numpy().copy())
            for name, state in self._starts(vb, tensors, graph, seed=seed, start=start)
        ]
        start_name, trace, item_probs = _highest_bound(runs)
        posterior = vb.posterior(trace.state)
        if self.learn_prior:
            prior = replace(prior, shared=posterior.prior[0].T.cpu().double().numpy())
        classes = posterior.classes.cpu().double().numpy()
        return self._result(
            graph,
            seed=seed,
            item_probs=item_probs,
            class_probs=classes / classes.sum(),
            class_concentration=classes,
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=tensors.confusion(posterior.confusion, others=volunteer_priors(prior, graph)),
                classes=graph.classes,
                labels=graph.labels,
            ),
            prior=prior,
            bound=np.array(trace.objectives),
            converged=trace.converged,
            n_iter=trace.n_steps,
            diagnostics={
                "start": start_name,
                "bounds": {name: run.objectives[-1] for name, run, _ in runs},
                "change": trace.change,
            },
        )

    def _variational_bayes(self, tensors: AnswerTensors, prior: CrowdPrior, graph: CrowdGraph) -> VariationalBayes:
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

    def _starts(
        self,
        vb: VariationalBayes,
        tensors: AnswerTensors,
        graph: CrowdGraph,
        *,
        seed: int | None,
        start: ModelFit | None,
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and the states of the starts: "warm", "prior", "random 0" and so on."""
        if start is not None:
            yield "warm", _warm_state(vb, tensors, start)
        if start is None or self.compare_starts:
            counts, class_counts = gold_counts(graph)
            yield "prior", vb.from_counts(tensors.table(counts), tensors.tensor(class_counts))
        rng = np.random.default_rng(seed)
        n_items, n_classes = vb.probs.shape
        for number in range(self.restarts):
            yield f"random {number}", vb.from_probs(tensors.tensor(rng.dirichlet(np.ones(n_classes), n_items)))

    def _iterate(self, vb: VariationalBayes, state: Tensor, name: str, *, progress: bool) -> Trace:
        from crowdgraph.kernels._runtime import single_threaded_torch
        from crowdgraph.kernels.fixed_point import squarem

        with progress_bar(f"IBCC from {name}", visible=progress) as bar, single_threaded_torch():
            return squarem(
                vb,
                state,
                max_iter=self.max_iter,
                tol=self.tol,
                accelerate=self.accelerate,
                on_step=lambda step: (bar.set_postfix(bound=f"{step.objective:,.1f}", refresh=False), bar.update()),
            )


def _highest_bound(runs: list[tuple[str, Trace, Array]]) -> tuple[str, Trace, Array]:
    """Return the run with the highest bound; of those that differ by rounding alone, as in one mode, the first."""
    best = runs[0]
    for run in runs[1:]:
        bound, best_bound = run[1].objectives[-1], best[1].objectives[-1]
        if bound > best_bound + 1e-9 * abs(best_bound):
            best = run
    return best


def _warm_state(vb: VariationalBayes, tensors: AnswerTensors, start: ModelFit) -> Tensor:
    """Return the state in which an earlier fit ended; of a fit without confusion only the class probabilities count."""
    from crowdgraph.kernels.ibcc import Posterior

    if start.confusion is None or start.prior is None or start.class_concentration is None:
        return vb.from_probs(tensors.tensor(start.item_probs))
    return vb.state(
        Posterior(
            tensors.table(start.confusion.latest().concentration),
            tensors.tensor(start.class_concentration),
            tensors.table(start.prior.shared[None]),
        )
    )
