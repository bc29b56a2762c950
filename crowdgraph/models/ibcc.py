"""Independent Bayesian classifier combination by variational Bayes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._parameters import boolean, choice, converted, integer, positive, precision, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import FitStage, FitState, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError
from crowdgraph.kernels.backend_names import BACKENDS, PRECISIONS, BackendName, Precision
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models._priors import (
    CROWD,
    DEFAULT_PSEUDO_COUNTS,
    ClassPrior,
    ConfusionPrior,
    check_single_precision,
    crowd_prior,
    normalise_class_prior,
    normalise_confusion_prior,
    volunteer_priors,
)
from crowdgraph.models._resources import current_resources
from crowdgraph.models.base import COMPARISON_TOL, Model, seed_of
from crowdgraph.models.label_votes import Votes, check_mapping, gold_counts

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.kernels.crowd_prior import CrowdWeights
    from crowdgraph.kernels.fixed_point import Step, Trace
    from crowdgraph.kernels.ibcc import VariationalBayes
    from crowdgraph.kernels.local_sweeps import CountedSweep
    from crowdgraph.kernels.sweep import Expectations
    from crowdgraph.models._crowd_prior import Sums
    from crowdgraph.models._tensors import AnswerTensors

__all__ = ["IBCC"]

# The least number of sweeps in which a fit can end.
MIN_ITER = 2


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

    The model takes answers for independent once the class is known. Answers about one item seldom are, so its class
    probabilities are too sure on real crowds; `ModelFit.calibrated` allows for that.

    Parameters
    ----------
    confusion_prior
        ``"crowd"``, the default: learned from the crowd. Every volunteer's rows scatter around the one-coin matrix of
        their own accuracy, and accuracies around that of the crowd; how much they scatter is learned from a first fit
        (with the pair (4, 1), or with gold's rows for classes with five gold items), and no prior weighs more than a
        few answers. The intervals of ``fit.confusion`` then allow for what is uncertain about the classes and about
        the prior's centres.
        Or pseudo-counts of labels given classes, for every volunteer alike: a pair (right, wrong), or
        a matrix of shape (J, L). For single volunteers: a mapping from their ids to matrices (and from None to that of
        everybody else), an earlier fit, or ``fit.as_prior(strength)``. Or ``"gold"``: learned from the answers to
        gold items.
    class_prior
        Pseudo-counts of the classes: a number, one for each class, or a mapping. One each if left out.
    votes
        For each label the class it votes for, or None, from which a pair of numbers makes a prior. Not needed where
        labels are classes or where the prior is a matrix.
    learn_prior
        Whether to learn rows that all volunteers share, while fitting (empirical Bayes): the prior becomes the
        Dirichlet that maximises the probability of the volunteers and of one pseudo-volunteer distributed according to
        the given prior, or to the pair (4, 1). The bound is then that of the fit with the learned prior, less the
        divergence of the given prior from it (the pseudo-volunteer's).
    restarts
        How many random starts to try beside the usual one; the fit with the highest bound is returned.
    compare_starts
        With ``start=``, whether to fit from the prior as well and return the higher bound. Variational Bayes has modes,
        and a warm start may stay in a lower one; False is faster and leaves it there.
    max_iter, tol
        When to stop: after so many sweeps over the responses, or when no class probability changes by more.
    backend, device, dtype
        What computes, where and in which precision. The backend ``"auto"`` is compiled code on CPUs and PyTorch tensors
        elsewhere; ``"torch"`` runs tensors on the CPU as well. In ``"float32"`` class probabilities are within 1e-3 of
        those in double precision, and a `tol` below 5e-6 is raised to that. ``fit.diagnostics`` says what ran.
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
    streams: ClassVar[bool] = True
    soft_answers: ClassVar[bool] = True

    confusion_prior: ConfusionPrior = converted(CROWD, normalise_confusion_prior)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    votes: Votes | None = setting(None, check_mapping)
    learn_prior: bool = boolean(False)
    restarts: int = integer(0, minimum=0)
    compare_starts: bool = boolean(True)
    max_iter: int = integer(1_000, minimum=MIN_ITER)
    tol: float = positive(1e-5)
    backend: BackendName = choice("auto", BACKENDS)
    device: str = converted("cpu", str)
    dtype: Precision = precision("float64", PRECISIONS)
    accelerate: bool = boolean(True)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, the sweep over the responses, and import what learns the crowd's prior."""
        import crowdgraph.models._crowd_prior  # noqa: F401
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph, choose_backend(self.backend, device=self.device, dtype=self.dtype))

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        return replace(self, compare_starts=False, restarts=0).fit(graph, seed=seed, start=start)

    def _fit_better(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> tuple[ModelFit, int]:
        self._check_arguments(graph, seed, start)
        both = replace(self, compare_starts=True)
        # Random starts may leave the neighbourhood of a saddle point slowly, so these are followed to the end.
        tol = self.tol if self.restarts else max(self.tol, COMPARISON_TOL)
        fit = both._fit_starts(graph, seed=seed, start=start, comparison_tol=tol, progress=False)
        self._warn_about(fit, graph)
        source = None if fit.source is None else fit.source._replace(model=self)
        return replace(fit, params=self.settings(), source=source), sum(fit.diagnostics["sweeps"].values())

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        return self._fit_starts(graph, seed=seed, start=start, comparison_tol=self.tol, progress=progress)

    def _fit_starts(
        self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, comparison_tol: float, progress: bool
    ) -> ModelFit:
        """Follow all starts until class probabilities change by at most `comparison_tol`, and the best to the end."""
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.models._tensors import AnswerTensors

        backend = choose_backend(self.backend, device=self.device, dtype=self.dtype)
        learns_from_crowd = self.confusion_prior == CROWD and not self.learn_prior
        start_prior = (
            DEFAULT_PSEUDO_COUNTS if self.learn_prior and self.confusion_prior == CROWD else self.confusion_prior
        )
        prior = crowd_prior(graph, start_prior, self.class_prior, self.votes)
        if self.learn_prior and len(prior.ids):
            raise ParameterError(
                "learn_prior=True learns the prior that all volunteers share, but confusion_prior= gives some of them "
                "their own; leave one of the two out."
            )
        if self.learn_prior:
            check_single_precision(prior, self.dtype, because="learn_prior=True")
        tensors = AnswerTensors(graph, backend)
        kernels = _counted_kernels(tensors)
        vb = self._variational_bayes(tensors, kernels, tensors.items(), volunteer_priors(prior, graph), prior)
        run = partial(self._run, vb, tensors, kernels, progress=progress)
        runs = []
        for name, state in self._starts(vb, tensors, graph, seed=seed, start=start):
            one = run(name, state, tol=comparison_tol)
            if self.restarts or (start is not None and self.compare_starts):
                # The next start overwrites the class probabilities.
                one = one._replace(item_probs=tensors.copied(one.item_probs))
            runs.append(one)
        best = _highest_bound(runs)
        n_sweeps = {one.start: one.trace.n_steps for one in runs}
        bounds = {one.start: one.trace.objectives[-1] for one in runs}
        if comparison_tol > self.tol:
            best = run(best.start, best.trace.state, tol=self.tol, before=best.trace)
            n_sweeps[best.start], bounds[best.start] = best.trace.n_steps, best.trace.objectives[-1]
        best = best._replace(n_visited=kernels.sweeper.n_visited)
        facts = {**backend.facts(), "bounds": bounds, "sweeps": n_sweeps}
        if learns_from_crowd:

            def continue_from(vb: VariationalBayes, max_iter: int) -> _Run:
                state = vb.from_probs(tensors.shared(best.item_probs))
                trace = self._iterate(
                    vb, tensors, state, "the crowd's prior", tol=self.tol, max_iter=max_iter, progress=progress
                )
                return _Run(best.start, trace, tensors.item_probs(vb.probs), kernels.sweeper.n_visited)

            return self._fit_with_crowd_prior(graph, tensors, kernels, vb, prior, best, continue_from, facts, seed=seed)
        return self._fit_with_own_prior(graph, tensors, vb, prior, best, facts, seed=seed)

    def _update(self, fit: ModelFit, graph: CrowdGraph, *, progress: bool) -> ModelFit:
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.kernels.sweep import LocalExpectations
        from crowdgraph.models._crowd_prior import weights_of
        from crowdgraph.models._tensors import AnswerTensors
        from crowdgraph.models._updates import StageUpdater, runs_locally

        seed = seed_of(fit)
        backend = choose_backend(self.backend, device=self.device, dtype=self.dtype)
        state, learns_from_crowd = fit.state, self.confusion_prior == CROWD
        if state is None or self.learn_prior or not runs_locally(graph, backend, state, n_stages=1 + learns_from_crowd):
            return super()._update(fit, graph, progress=progress)
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        tensors = AnswerTensors(graph, backend)
        kernels = _counted_kernels(tensors)._replace(expectations=LocalExpectations())
        updater = StageUpdater(graph, state, tensors, kernels.sweeper, tol=self.tol, accelerate=self.accelerate)

        def update_stage(vb: VariationalBayes, stage: FitStage, *, max_iter: int) -> _Run:
            is_last = stage is state.stages[-1]
            with self._bar("an earlier fit", visible=progress) as on_step, backend.threads():
                trace = updater.update(vb, stage, max_iter=max_iter, on_step=on_step, is_last=is_last)
            return _Run("update", trace, tensors.item_probs(vb.probs), updater.n_visited)

        vb = self._variational_bayes(tensors, kernels, tensors.items(), volunteer_priors(prior, graph), prior)
        first = update_stage(vb, state.stages[0], max_iter=self.max_iter)
        facts = {
            **backend.facts(),
            "bounds": {first.start: first.trace.objectives[-1]},
            "sweeps": {first.start: first.trace.n_steps},
        }
        if learns_from_crowd:

            def continue_from(vb: VariationalBayes, max_iter: int) -> _Run:
                return update_stage(vb, state.stages[1], max_iter=max_iter)

            return self._fit_with_crowd_prior(
                graph, tensors, kernels, vb, prior, first, continue_from, facts, seed=seed, earlier=weights_of(fit)
            )
        return self._fit_with_own_prior(graph, tensors, vb, prior, first, facts, seed=seed)

    def _fit_with_own_prior(
        self,
        graph: CrowdGraph,
        tensors: AnswerTensors,
        vb: VariationalBayes,
        prior: CrowdPrior,
        run: _Run,
        facts: dict[str, Any],
        *,
        seed: int | None,
    ) -> ModelFit:
        """Return the fit in which a run with the prior of the settings ended."""
        posterior = vb.posterior(run.trace.state)
        stages = _stages(tensors, (run, _counts(tensors, vb, run)))
        if self.learn_prior:
            prior = replace(prior, shared=posterior.prior[0].T.cpu().double().numpy())
        concentration = tensors.confusion(posterior.confusion, others=volunteer_priors(prior, graph))
        return self._summarise(graph, run, posterior.classes, concentration, prior, facts, stages, seed=seed)

    def _fit_with_crowd_prior(
        self,
        graph: CrowdGraph,
        tensors: AnswerTensors,
        kernels: _Kernels,
        first_vb: VariationalBayes,
        prior: CrowdPrior,
        first: _Run,
        continue_from: Callable[[VariationalBayes, int], _Run],
        facts: dict[str, Any],
        *,
        seed: int | None,
        earlier: CrowdWeights | None = None,
    ) -> ModelFit:
        """Learn the prior from a first run, and continue with it for at most so many sweeps.

        `earlier` is what a fit of fewer answers has learned.
        """
        from crowdgraph.models._crowd_prior import honest_concentration, learn_prior, weights_to_facts
        from crowdgraph.models._tensors import AnswerSums
        from crowdgraph.models.label_votes import vote_mask

        first_counts = _counts(tensors, first_vb, first)
        learned = learn_prior(
            graph,
            first.item_probs,
            votes=self.votes,
            class_concentration=prior.class_concentration,
            counts=first_counts,
            sums=AnswerSums(tensors, first_vb.sweeper),
            earlier=earlier,
        )
        if tensors.in_memory:
            # The second run overwrites the class probabilities of the first, which an update starts from.
            first = first._replace(item_probs=tensors.copied(first.item_probs))
        vb = self._variational_bayes(tensors, kernels, (first_vb.probs, first_vb.fixed), learned.own, prior)
        run = continue_from(vb, max(self.max_iter - first.trace.n_steps, MIN_ITER))
        counts = _counts(tensors, vb, run)
        stages = _stages(tensors, (first, first_counts), (run, counts))
        trace = run.trace._replace(
            n_steps=first.trace.n_steps + run.trace.n_steps, converged=first.trace.converged and run.trace.converged
        )
        n_swept = kernels.sweeper.n_visited
        posterior = vb.posterior(trace.state)
        classes = posterior.classes.cpu().double().numpy()
        concentration = honest_concentration(
            graph,
            learned.own,
            run.item_probs,
            is_correct=vote_mask(graph, self.votes),
            class_probs=classes / classes.sum(),
            learned=learned,
            counts=counts,
            sums=AnswerSums(tensors, vb.sweeper),
        )
        run = run._replace(trace=trace, n_visited=run.n_visited + kernels.sweeper.n_visited - n_swept)
        n_sweeps = {**facts["sweeps"], first.start: trace.n_steps}
        facts = {**facts, "sweeps": n_sweeps, "crowd_prior": weights_to_facts(learned.weights)}
        newcomers = learned.newcomers
        return self._summarise(graph, run, posterior.classes, concentration, newcomers, facts, stages, seed=seed)

    def _summarise(
        self,
        graph: CrowdGraph,
        run: _Run,
        class_concentration: Tensor,
        confusion: Array,
        prior: CrowdPrior,
        facts: dict[str, Any],
        stages: tuple[FitStage, ...],
        *,
        seed: int | None,
    ) -> ModelFit:
        """Return the fit in which a run ended."""
        classes = class_concentration.cpu().double().numpy()
        return self._result(
            graph,
            seed=seed,
            item_probs=lock(run.item_probs),
            class_probs=classes / classes.sum(),
            class_concentration=classes,
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids, concentration=confusion, classes=graph.classes, labels=graph.labels
            ),
            prior=prior,
            bound=np.array(run.trace.objectives),
            converged=run.trace.converged,
            n_iter=run.trace.n_steps,
            diagnostics={"start": run.start, **facts, "change": run.trace.change, "visited": run.n_visited},
            state=FitState(n_answers=graph.answers.n_by_item, stages=stages) if stages else None,
        )

    def _variational_bayes(
        self,
        tensors: AnswerTensors,
        kernels: _Kernels,
        items: tuple[Tensor, Tensor],
        confusion: Array,
        prior: CrowdPrior,
    ) -> VariationalBayes:
        """Return variational Bayes with a prior of confusion, (1 or K, J, L), and of the classes.

        It overwrites the class probabilities among `items`, which are as `AnswerTensors.items` returns them.
        """
        from crowdgraph.kernels.ibcc import VariationalBayes

        probs, fixed = items
        return VariationalBayes(
            *kernels,
            prior=tensors.table(confusion),
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

    def _run(
        self,
        vb: VariationalBayes,
        tensors: AnswerTensors,
        kernels: _Kernels,
        name: str,
        state: Tensor,
        *,
        tol: float,
        before: Trace | None = None,
        progress: bool,
    ) -> _Run:
        """Run from a state, which is the one in which the trace before, if there is one, ended."""
        n_before = 0 if before is None else before.n_steps
        max_iter = max(self.max_iter - n_before, MIN_ITER)
        trace = self._iterate(vb, tensors, state, name, tol=tol, max_iter=max_iter, progress=progress)
        if before is not None:
            objectives = [*before.objectives, *trace.objectives]
            trace = trace._replace(objectives=objectives, n_steps=n_before + trace.n_steps)
        return _Run(name, trace, tensors.item_probs(vb.probs), kernels.sweeper.n_visited)

    def _iterate(
        self,
        vb: VariationalBayes,
        tensors: AnswerTensors,
        state: Tensor,
        name: str,
        *,
        tol: float,
        max_iter: int,
        progress: bool,
    ) -> Trace:
        from crowdgraph.kernels.fixed_point import reachable_tolerance, squarem

        with self._bar(name, visible=progress) as on_step, tensors.backend.threads():
            return squarem(
                vb,
                state,
                max_iter=max_iter,
                tol=reachable_tolerance(tol, state.dtype),
                accelerate=self.accelerate,
                on_step=on_step,
                give_up=is_interrupted,
                recorder=current_resources().recorder(f"IBCC from {name}"),
            )

    @contextmanager
    def _bar(self, name: str, *, visible: bool) -> Iterator[Callable[[Step], object]]:
        """Yield what shows a step in a progress bar."""
        with progress_bar(f"IBCC from {name}", visible=visible) as bar:
            yield lambda step: (
                bar.set_postfix(bound=f"{float(step.objective):,.1f}", refresh=False),
                bar.update(),
            )


def prior_of_newcomers(
    graph: CrowdGraph, prior: CrowdPrior, fit: ModelFit, *, votes: Votes | None, sums: Sums | None = None
) -> CrowdPrior:
    """Learn from a fit what the crowd is like: the prior of somebody about whom nothing is known."""
    from crowdgraph.models._crowd_prior import learn_prior

    learned = learn_prior(graph, fit.item_probs, votes=votes, class_concentration=prior.class_concentration, sums=sums)
    return learned.newcomers


class _Kernels(NamedTuple):
    """The sweep over all answers, which counts them, and the expectations that go with it."""

    sweeper: CountedSweep
    expectations: Expectations


def _counted_kernels(tensors: AnswerTensors) -> _Kernels:
    from crowdgraph.kernels.local_sweeps import CountedSweep

    sweeper, expectations = tensors.kernels()
    return _Kernels(CountedSweep(sweeper, len(tensors.responses.codes)), expectations)


class _Run(NamedTuple):
    """A run of variational Bayes: its start's name, its trace, the class probabilities at its end, and its visits."""

    start: str
    trace: Trace
    item_probs: Array
    n_visited: int


def _counts(tensors: AnswerTensors, vb: VariationalBayes, run: _Run) -> Array:
    """Return the expected counts with which a run ended, of shape (K, J, L)."""
    posterior = vb.posterior(run.trace.state)
    nothing = np.zeros((1, posterior.confusion.shape[2], posterior.confusion.shape[1]))
    return np.maximum(tensors.confusion(posterior.confusion - posterior.prior, others=nothing), 0.0)


def _stages(tensors: AnswerTensors, *ends: tuple[_Run, Array]) -> tuple[FitStage, ...]:
    """Return where runs ended, to go on from there when more answers have come; nothing where that is too large."""
    if not tensors.in_memory:
        return ()
    return tuple(FitStage(item_probs=run.item_probs, counts=counts) for run, counts in ends)


def _highest_bound(runs: list[_Run]) -> _Run:
    """Return the run with the highest bound; of those that differ by rounding alone, as in one mode, the first."""
    best = runs[0]
    for run in runs[1:]:
        bound, best_bound = run.trace.objectives[-1], best.trace.objectives[-1]
        if bound > best_bound + 1e-9 * abs(best_bound):
            best = run
    return best


def _warm_state(vb: VariationalBayes, tensors: AnswerTensors, start: ModelFit) -> Tensor:
    """Return the state in which an earlier fit ended; of a fit without confusion only the class probabilities count."""
    from crowdgraph.kernels.ibcc import Posterior

    if (
        start.confusion is None
        or start.prior is None
        or start.class_concentration is None
        # These have confusion that is wider than the state in which variational Bayes ended.
        or "crowd_prior" in start.diagnostics
        or start.dependence is not None
    ):
        return vb.from_probs(tensors.tensor(start.item_probs))
    return vb.state(
        Posterior(
            tensors.table(start.confusion.latest().concentration),
            tensors.tensor(start.class_concentration),
            tensors.table(start.prior.shared[None]),
        )
    )
