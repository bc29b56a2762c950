"""Dynamic independent Bayesian classifier combination: confusion that changes with every response."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._parameters import boolean, check_number, choice, converted, integer, positive, precision, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.clock import UNITS
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.fit import FitState, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import (
    CrowdGraphWarning,
    ForgettingWarning,
    InputError,
    NoTimesWarning,
    ParameterError,
    TimeError,
    warn,
)
from crowdgraph.kernels.backend_names import BACKENDS, PRECISIONS, BackendName, Precision
from crowdgraph.messages import Hint, argument
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models._priors import (
    CROWD,
    ClassPrior,
    ConfusionPrior,
    check_single_precision,
    crowd_prior,
    normalise_class_prior,
    normalise_confusion_prior,
    volunteer_priors,
)
from crowdgraph.models.base import COMPARISON_TOL, Model
from crowdgraph.models.ibcc import IBCC, prior_of_newcomers
from crowdgraph.models.label_votes import Votes, check_mapping

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.kernels.backends import Backend
    from crowdgraph.kernels.dynibcc import DynamicVB
    from crowdgraph.kernels.fixed_point import Recorder
    from crowdgraph.models._tensors import StepTensors

__all__ = ["DynIBCC", "TimeUnit"]

TimeUnit = Literal["second", "minute", "hour", "day", "week"]
SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
# How often the noise scale and the class probabilities are updated in turn, at most.
MAX_NOISE_ROUNDS = 12
# The relative change of the noise scale at which it has converged.
NOISE_RTOL = 0.05
# While the noise scale is being chosen: the tolerance of class probabilities, and the passes between two choices.
ROUGH_TOL = 1e-3
PASSES_BETWEEN_CHOICES = 4
# An update chooses the noise scale again where there are more responses than this times those that it was chosen from.
MAX_NOISE_AGE = 1.25
# The tolerance of the static fit from which the passes start and the crowd's prior is learned, at most.
MAX_STATIC_TOL = 1e-5
# After this many passes, a pass also anticipates further ones of single items: one, then twice as many each time, up to
# a limit. Sooner the other items are not where they will be, and an item could be led to another class.
AHEAD_AFTER, MAX_AHEAD = 3, 32
# After this many passes, passes are damped: answers that influence each other may oscillate.
DAMP_AFTER, DAMPING = 100, 0.5
# Log odds that gain this much variance are forgotten at once; more would only overflow.
MAX_VARIANCE = 1e6
# With less state noise the printed bound loses all its digits.
MIN_NOISE_FLOOR = 1e-9


def _check_variance(name: str, value: object) -> None:
    check_number(
        name,
        value,
        valid=lambda number: 0 <= number <= MAX_VARIANCE,
        expected=f"be a number from 0 to {MAX_VARIANCE:g}",
    )


def _check_noise_scale(name: str, value: object) -> None:
    if isinstance(value, str):
        if value != "auto":
            raise ParameterError(argument(name, value) + " is not a choice; the only word it can be is 'auto'.")
    else:
        _check_variance(name, value)


def _check_noise_floor(name: str, value: object) -> None:
    check_number(
        name,
        value,
        valid=lambda number: MIN_NOISE_FLOOR <= number <= MAX_VARIANCE,
        expected=f"be the least state noise, a number from {MIN_NOISE_FLOOR:g} to {MAX_VARIANCE:g} such as 0.001",
    )


@dataclass(frozen=True, kw_only=True)
class DynIBCC(Model):
    r"""Independent Bayesian classifier combination with volunteers who change.

    As `IBCC`, but the log odds :math:`w_{jl}` with which a volunteer gives label `l` to items of class `j` follow a
    random walk from one of their responses to the next; a surprising answer lets them move further. The fit filters and
    smooths the responses of every volunteer, which gives one Dirichlet for each response, ``fit.confusion``; computes
    the class probabilities of the items from the confusion at each answer; and repeats both until nothing changes. It
    starts where `IBCC` ends.

    There is no bound: the paper prints one that is infinite at most steps (erratum 3 of :doc:`/errata`), and
    `published_bound` gives it with the noise kept from zero. ``fit.diagnostics`` has the scores of the fit and the
    noise scale.

    Parameters
    ----------
    confusion_prior, class_prior, votes
        As for `IBCC`. Every volunteer starts from the prior; with ``"crowd"``, from what the crowd is like on average.
    noise_scale
        The factor of the noise that an answer causes: 1 as published, 0 for volunteers who never change. Or
        ``"auto"``: the scale that predicts answers best, 0 where that gains nothing or where their order carries no
        information.
    drift_per_time
        The variance that log odds gain in one `time_unit` between responses, so that long breaks forget more. They gain
        it at the next response; until then the last state stands.
    time_unit
        The unit of `drift_per_time`: ``"second"``, ``"minute"``, ``"hour"``, ``"day"`` or ``"week"``. Leave it out
        where times are plain numbers: the unit is then one.
    inference
        ``"smoothed"``: the confusion at a response is estimated from all of the volunteer's responses; ``"filtered"``:
        from those until then.
    repeat_span
        After how many responses a volunteer has forgotten their answer to an item, roughly: a repeated answer `n`
        responses later counts :math:`1 - e^{-n / \text{span}}`. All answers count fully if left out.
    published
        Whether to follow the paper where this package does not by default: an answer about an item of uncertain class
        then counts once, for the mixture of the classes, and labels forget separately. See the documentation.
    published_bound
        The least state noise with which to compute the lower bound that the paper prints, such as 1e-3;
        ``fit.diagnostics`` then has it as ``"published_bound"``, with ``"published_bound_floor"``. It is not computed
        if left out. It is no bound: where the noise is zero, which is at most steps, the printed prior of a step is
        infinitely sharp, so the number falls without limit as the floor does. Compare it only at the same floor.
    update_classes
        Whether to infer the classes of items along with the volunteers. False keeps the class probabilities of the fit
        that ``start=`` gives (or of a static fit) and follows the volunteers only, which is many times faster:
        ``DynIBCC(noise_scale="auto", update_classes=False).fit(graph, start=cg.IBCC().fit(graph).calibrated())``.
    max_iter, tol
        When to stop: after so many passes over the responses, or when no class probability changes by more. Choosing
        the noise scale takes further passes.
    backend, device, dtype
        What computes, where and in which precision. The backend ``"auto"`` is compiled code on CPUs and PyTorch tensors
        elsewhere; ``"torch"`` runs tensors on the CPU as well. In ``"float32"`` class probabilities are within 1e-3 of
        those in double precision, and a `tol` below 5e-6 is raised to that. ``fit.diagnostics`` says what ran.
    accelerate
        Whether to extrapolate between passes (SQUAREM) where the next change does not grow by that.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(n_volunteers=30, n_items=300, n_responses=[200] * 30, drift="step", seed=0)
    >>> fit = cg.DynIBCC(noise_scale="auto").fit(crowd.graph)
    >>> history = fit.confusion.of("volunteer-00")
    >>> history.mean.shape
    (200, 2, 2)
    >>> bool(history.accuracy()[0] > history.accuracy()[-1] + 0.1)
    True
    """

    name: ClassVar[str] = "dynibcc"
    sequential: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    soft_answers: ClassVar[bool] = True

    confusion_prior: ConfusionPrior = converted(CROWD, normalise_confusion_prior)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    votes: Votes | None = setting(None, check_mapping)
    noise_scale: float | Literal["auto"] = setting(1.0, _check_noise_scale)
    drift_per_time: float = setting(0.0, _check_variance)
    time_unit: TimeUnit | None = choice(None, tuple(SECONDS))
    inference: Literal["smoothed", "filtered"] = choice("smoothed", ("smoothed", "filtered"))
    repeat_span: float | None = positive(None)
    published: bool = boolean(False)
    published_bound: float | None = setting(None, _check_noise_floor)
    update_classes: bool = boolean(True)
    max_iter: int = integer(500)
    tol: float = positive(1e-5)
    backend: BackendName = choice("auto", BACKENDS)
    device: str = converted("cpu", str)
    dtype: Precision = precision("float64", PRECISIONS)
    accelerate: bool = boolean(True)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, the sweep of the static start and the scan over the steps."""
        from crowdgraph.models._tensors import compile_scan_for, compile_sweep_for

        backend = self._backend()
        compile_sweep_for(graph, backend)
        compile_scan_for(graph, backend, published=self.published)

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        if self.update_classes:
            return super()._refit(graph, start=start, seed=seed)
        # The classes of the start are those of other responses, or of gold that is no longer there.
        from crowdgraph.models.calibrated import calibrated

        static = self._static_model(self.confusion_prior)._refit(graph, start=start, seed=seed)
        if start.dependence is not None:
            rho = start.dependence.rho if start.dependence.source == "given" else None
            static = calibrated(static, graph, rho=rho)
        return self.fit(graph, seed=seed, start=static)

    def _fit_better(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> tuple[ModelFit, int]:
        if not self.update_classes:
            return super()._fit_better(graph, start=start, seed=seed)
        roughly = replace(self, tol=max(self.tol, COMPARISON_TOL))
        better, n_passes = super(DynIBCC, roughly)._fit_better(graph, start=start, seed=seed)
        # It is followed to the end with the prior and the noise with which it is the better one.
        scale = float(better.diagnostics["noise_scale"])
        followed = replace(self, confusion_prior=better.prior, noise_scale=scale)
        prior = followed._prior_before_learning(graph)
        fit = followed._fit_from(graph, prior, better, n_visited=0, n_passed=better.n_iter, seed=seed, progress=False)
        followed._warn_about(fit, graph)
        source = None if fit.source is None else fit.source._replace(model=self)
        fit = replace(fit, params=self.settings(), source=source)
        return fit, n_passes + fit.n_iter - better.n_iter

    def _static_model(self, confusion_prior: ConfusionPrior) -> IBCC:
        """Return the model of the same classes for volunteers who never change."""
        return IBCC(
            confusion_prior=confusion_prior,
            class_prior=self.class_prior,
            votes=self.votes,
            tol=min(self.tol, MAX_STATIC_TOL),
            backend=self.backend,
            device=self.device,
            dtype=self.dtype,
        )

    def _backend(self) -> Backend:
        from crowdgraph.kernels.backends import choose_backend

        return choose_backend(self.backend, device=self.device, dtype=self.dtype)

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.models._tensors import answer_sums

        self._check_labels_and_times(graph)
        prior = self._prior_before_learning(graph)
        n_visited, state = 0, None
        if start is None:
            # Start from the class probabilities for volunteers who never change.
            static = self._static_model(CROWD if self.confusion_prior == CROWD else prior)
            start = static._fit(graph, seed=seed, start=None, progress=progress)
            n_visited = _visited_by(start, graph)
            state = start.state if self.confusion_prior == CROWD and self.update_classes else None
        if self.confusion_prior == CROWD:
            # Everybody starts from what the crowd is like; a matrix of their own would hide how they began.
            sums = answer_sums(graph, self._backend())
            prior = prior_of_newcomers(graph, prior, start, votes=self.votes, sums=sums)
        return self._fit_from(graph, prior, start, n_visited=n_visited, state=state, seed=seed, progress=progress)

    def _update(self, fit: ModelFit, graph: CrowdGraph, *, progress: bool) -> ModelFit:
        """Fit a graph with more responses than an earlier fit saw, in its mode; arguments have been checked.

        New responses are filtered from where the earlier ones of the same volunteer ended, and update their items; then
        come full passes, as in `_fit`. The noise scale is chosen again only if the graph has
        grown by a quarter since.
        """
        seed = None if fit.source is None else fit.source.seed
        start = _extended(fit, graph)
        if not self.update_classes or fit.forward is None or fit.confusion is None:
            return self._refit(graph, start=start, seed=seed)
        self._check_labels_and_times(graph)
        prior, n_visited, state = self._prior_before_learning(graph), 0, None
        if self.confusion_prior == CROWD:
            # The fit has the state of its static start.
            static = self._static_model(CROWD)._update(fit, graph, progress=progress)
            prior = prior_of_newcomers(graph, prior, static, votes=self.votes)
            n_visited, state = _visited_by(static, graph), static.state
        return self._fit_from(
            graph, prior, start, n_visited=n_visited, earlier=fit, state=state, seed=seed, progress=progress
        )

    def _prior_before_learning(self, graph: CrowdGraph) -> CrowdPrior:
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        if self.published:
            check_single_precision(prior, self.dtype, because="published=True")
        return prior

    def _fit_from(
        self,
        graph: CrowdGraph,
        prior: CrowdPrior,
        start: ModelFit,
        *,
        n_visited: int,
        n_passed: int = 0,
        seed: int | None,
        progress: bool,
        earlier: ModelFit | None = None,
        state: FitState | None = None,
    ) -> ModelFit:
        """Fit a graph from a prior and from the class probabilities of a start, after so many responses were visited.

        `n_passed` passes led to the start, which count as the first ones of this fit. `earlier` is a fit of some of
        the responses, with these class probabilities; `state`, that of the static fit from which the prior was learned,
        which the result keeps for updates.
        """
        from crowdgraph.kernels.fixed_point import reachable_tolerance
        from crowdgraph.models._crowd_prior import widen_steps
        from crowdgraph.models._step_blocks import step_tensors
        from crowdgraph.models._tensors import answer_sums

        backend = self._backend()
        drift = self._drift_per_tick(graph)
        tensors = step_tensors(
            graph,
            backend,
            drift=drift,
            repeat_span=self.repeat_span,
            forward=prior.forward,
            accelerate=self.accelerate or not self.update_classes,
        )
        if tensors.median_drift > 1:
            warn(
                f"With drift_per_time={self.drift_per_time!r} the log odds gain a variance of "
                f"{tensors.median_drift:,.3g} from one response to the next, so nearly everything is forgotten each "
                "time and items seem more certain than they are.",
                ForgettingWarning,
                hint="Is the unit right? A variance of 0.01 a day is a lot.",
            )
        vb = tensors.variational_bayes(prior, start.item_probs, stage=self.inference, published=self.published)
        with progress_bar("DynIBCC", visible=progress, unit="passes") as bar, backend.threads():
            noise_scale, chosen_from = self._known_noise(graph, earlier)
            if earlier is not None and earlier.forward is not None and earlier.confusion is not None:
                tensors.reach_new_steps(
                    vb,
                    prior,
                    earlier.forward,
                    earlier=earlier.confusion,
                    noise_scale=float(earlier.diagnostics["noise_scale"]),
                    published=self.published,
                )
            noise_scale, n_iter, change = self._iterate(vb, tensors, prior, noise_scale, bar, n_passed=n_passed)
            confusion, last = vb.confusion_and_last_states(noise_scale)
            concentration, forward = tensors.step_rows(confusion), tensors.forward_state(last)
            log_predictive, score = vb.scores(noise_scale, confusion)
            n_visited += vb.n_visited
            printed = self._printed_bound(vb, noise_scale)
        if not self.update_classes and start.dependence is not None:
            sums = answer_sums(graph, backend)
            widen_steps(graph, concentration, tensors.starts, start, prior, sums=sums)
        classes = vb.classes.cpu().double().numpy()
        dependence = {} if self.update_classes or start.dependence is None else start.dependence.to_facts()
        return self._result(
            graph,
            seed=seed,
            item_probs=tensors.item_probs(vb.probs),
            class_probs=classes / classes.sum(),
            class_concentration=classes,
            confusion=ConfusionTrack(
                ids=graph.volunteers.ids,
                starts=tensors.starts,
                times=tensors.times,
                concentration=lock(concentration),
                initial=volunteer_priors(prior, graph) if len(prior.ids) else prior.shared,
                classes=graph.classes,
                labels=graph.labels,
                clock=graph.responses.clock,
                inference=self.inference,
            ),
            prior=prior,
            forward=forward,
            state=state,
            converged=change <= reachable_tolerance(self.tol, backend.dtype),
            n_iter=n_iter,
            diagnostics={
                **backend.facts(),
                "noise_scale": noise_scale,
                "log_predictive": log_predictive,
                "score": score,
                "change": change,
                "visited": n_visited,
                **({"noise_chosen_from": chosen_from} if self.noise_scale == "auto" else {}),
                **printed,
                **({"dependence": dependence} if dependence else {}),
            },
        )

    def _known_noise(self, graph: CrowdGraph, earlier: ModelFit | None) -> tuple[float | Literal["auto"], int]:
        """Return the noise scale, or "auto" if it has to be chosen, and the number of responses that it comes from."""
        n_responses = len(graph.responses)
        if self.noise_scale == "auto" and earlier is not None:
            chosen_from = int(earlier.diagnostics.get("noise_chosen_from", 0))
            if n_responses <= MAX_NOISE_AGE * chosen_from:
                return float(earlier.diagnostics["noise_scale"]), chosen_from
        return self.noise_scale, n_responses

    def _iterate(
        self,
        vb: DynamicVB,
        tensors: StepTensors,
        prior: CrowdPrior,
        noise_scale: float | Literal["auto"],
        bar: Any,
        *,
        n_passed: int,
    ) -> tuple[float, int, float]:
        """Choose the noise scale and infer the classes, as far as asked for; return scale, passes and last change."""
        from crowdgraph.kernels.fixed_point import reachable_tolerance

        n_iter = n_passed
        if noise_scale == "auto":
            typical = tensors.typical_prior(prior, vb.probs)
            if self.update_classes:
                noise_scale, n_iter = _tune_noise(
                    vb, prior=typical, max_iter=self.max_iter, bar=bar, **self._acceleration()
                )
            else:
                noise_scale = vb.confirm_noise(vb.choose_noise(1.0, prior=typical).scale, prior=typical)
        noise_scale = float(noise_scale)
        if not self.update_classes:
            return noise_scale, 1, 0.0
        tol = reachable_tolerance(self.tol, vb.probs.dtype)
        n_iter, change = _fit_until(
            vb,
            noise_scale,
            tol=tol,
            n_iter=n_iter,
            max_iter=self.max_iter,
            bar=bar,
            recorder=tensors.recorder(),
            **self._acceleration(),
        )
        return noise_scale, n_iter, change

    def _acceleration(self) -> dict[str, bool]:
        """Return whether passes extrapolate, and whether they look ahead: as published an answer counts otherwise."""
        return {"accelerate": self.accelerate, "look_ahead": self.accelerate and not self.published}

    def _printed_bound(self, vb: DynamicVB, noise_scale: float) -> dict[str, float]:
        """Return the bound as it is printed, and the floor of the noise, if asked for."""
        if self.published_bound is None:
            return {}
        floor = float(self.published_bound)
        return {"published_bound": vb.published_bound(noise_scale, floor=floor), "published_bound_floor": floor}

    def _check_labels_and_times(self, graph: CrowdGraph) -> None:
        if len(graph.labels) < 2:
            raise InputError(
                f"The graph has the single label {graph.labels[0]!r}, so nobody can change what they say.",
                hint="Name all labels that may be given with labels=[...] when building the graph.",
            )
        if graph.responses.clock.kind == "order":
            warn(
                "The graph was built without times, so each volunteer's responses are taken in the order of the rows.",
                NoTimesWarning,
                hint=Hint(
                    "Give a time column if they were given in another order.",
                    cli="Name a column with --time if they were given in another order.",
                ),
            )

    def _drift_per_tick(self, graph: CrowdGraph) -> float:
        """Return the variance that log odds gain in one tick of the graph's times."""
        clock, times = graph.responses.clock, graph.responses.time
        if self.drift_per_time == 0:
            return 0.0
        if clock.kind == "order":
            raise TimeError(
                f"drift_per_time={self.drift_per_time!r} needs times, and the graph was built without.",
                hint="Name its time column, or leave drift_per_time out.",
            )
        if clock.kind == "number":
            if self.time_unit is not None:
                raise ParameterError(
                    f"time_unit={self.time_unit!r} is for datetimes, but the graph's times are plain numbers.",
                    hint="Leave it out: the unit of drift_per_time is then one.",
                )
            return float(self.drift_per_time)
        if self.time_unit is None:
            raise ParameterError(
                f"drift_per_time={self.drift_per_time!r} has no unit.",
                hint=f"Say which one with time_unit={', '.join(map(repr, SECONDS))}.",
            )
        return float(self.drift_per_time) / (SECONDS[self.time_unit] * UNITS[np.datetime_data(times.dtype)[0]])


def _extended(fit: ModelFit, graph: CrowdGraph) -> ModelFit:
    """Return the class probabilities of an earlier fit for all items of a graph; those of new items are the average."""
    n_new = len(graph.items) - len(fit.items)
    return ModelFit(
        model=fit.model,
        items=graph.items.ids,
        classes=fit.classes,
        item_probs=np.concatenate([fit.item_probs, np.repeat(fit.class_probs[None], n_new, axis=0)]),
        class_probs=fit.class_probs,
        diagnostics={} if fit.dependence is None else {"dependence": fit.dependence.to_facts()},
    )


def _visited_by(static: ModelFit, graph: CrowdGraph) -> int:
    """Return how many responses a static fit visited."""
    return int(static.diagnostics.get("visited", static.n_iter * len(graph.answers)))


def _fit_until(
    vb: DynamicVB,
    noise_scale: float,
    *,
    tol: float,
    n_iter: int,
    max_iter: int,
    accelerate: bool,
    look_ahead: bool,
    bar: Any,
    recorder: Recorder | None = None,
) -> tuple[int, float]:
    """Pass until no class probability changes by more than `tol`; return the passes so far and the last change."""
    from crowdgraph.kernels.fixed_point import squarem_by_change

    first = n_iter
    resumed = None if recorder is None else recorder.last()
    if resumed is not None:
        n_iter += resumed.n_steps

    def step() -> float:
        nonlocal n_iter
        damping = 0.0 if n_iter < DAMP_AFTER else DAMPING
        n_ahead = _n_ahead(n_iter) if look_ahead and not damping else 0
        change = vb(noise_scale, damping=damping, n_ahead=n_ahead)
        n_iter += 1
        bar.set_postfix(change=f"{change:.1e}", noise_scale=f"{noise_scale:.2f}", refresh=False)
        bar.update()
        return change

    passes = squarem_by_change(
        step,
        vb.own_probs,
        max_iter=max_iter - first,
        tol=tol,
        accelerate=accelerate,
        all_reduce=vb.all_reduce,
        give_up=is_interrupted,
        recorder=recorder,
    )
    vb.exchange()
    return n_iter, passes.change


def _n_ahead(n_iter: int) -> int:
    """Return how many passes of single items the next pass anticipates, after so many passes."""
    return 0 if n_iter < AHEAD_AFTER else min(2 ** min(n_iter - AHEAD_AFTER, 30), MAX_AHEAD)


def _tune_noise(
    vb: DynamicVB, *, prior: Tensor, max_iter: int, accelerate: bool, look_ahead: bool, bar: Any
) -> tuple[float, int]:
    """Choose the noise scale that predicts the answers best, in turn with the class probabilities.

    Return it with the passes that were needed. A few passes are enough between two choices: what the scale depends on
    are the many items that settle at once, not the few that settle last.
    """
    noise_scale, near, n_iter = 1.0, None, 0
    for _ in range(MAX_NOISE_ROUNDS):
        last_pass = min(n_iter + PASSES_BETWEEN_CHOICES, max_iter - 1)
        n_iter, _ = _fit_until(
            vb,
            noise_scale,
            tol=ROUGH_TOL,
            n_iter=n_iter,
            max_iter=last_pass,
            accelerate=accelerate,
            look_ahead=look_ahead,
            bar=bar,
        )
        if is_interrupted():
            return noise_scale, n_iter
        bar.set_postfix(choosing="noise_scale")
        choice = vb.choose_noise(noise_scale, prior=prior, near=near)
        settled = abs(choice.scale - noise_scale) <= NOISE_RTOL * noise_scale
        noise_scale, near = choice
        if settled or n_iter == max_iter - 1:
            break
    return vb.confirm_noise(noise_scale, prior=prior), n_iter


def follow_classes(
    fit: ModelFit, track: ConfusionTrack, graph: CrowdGraph, probs: Array, dependence: Dependence
) -> ConfusionTrack:
    """Return the confusion over time of a fit's volunteers, given other class probabilities of the items, (N, J).

    It is the fit's own where the settings with which it was made are not known.
    """
    source = None if fit.source is None else fit.source.model
    model = getattr(source, "model", source)
    noise_scale = fit.diagnostics.get("noise_scale", dict(fit.diagnostics.get("model", {})).get("noise_scale"))
    if not isinstance(model, DynIBCC) or noise_scale is None or fit.prior is None:
        return track
    follow = replace(
        model, update_classes=False, noise_scale=float(noise_scale), confusion_prior=fit.prior, published_bound=None
    )
    start = replace(fit, item_probs=probs, diagnostics={**fit.diagnostics, "dependence": dependence.to_facts()})
    with warnings.catch_warnings():
        # The fit itself has warned already.
        warnings.simplefilter("ignore", CrowdGraphWarning)
        follower = follow._fit(graph, seed=None, start=start, progress=False)
    return follower.confusion or track
