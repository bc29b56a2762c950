"""Dynamic independent Bayesian classifier combination: confusion that changes with every response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._parameters import check_bool, check_integer, check_positive, is_number, progress_bar
from crowdgraph.core.clock import UNITS
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import (
    ForgettingWarning,
    InputError,
    NoTimesWarning,
    ParameterError,
    TimeError,
    check_choice,
    warn,
)
from crowdgraph.models._priors import (
    ClassPrior,
    ConfusionPrior,
    checked_class_prior,
    checked_confusion_prior,
    crowd_prior,
    volunteer_priors,
)
from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.ibcc import IBCC
from crowdgraph.models.voting import Votes, check_mapping

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.kernels.dynibcc import DynamicVB

__all__ = ["DynIBCC", "TimeUnit"]

TimeUnit = Literal["second", "minute", "hour", "day", "week"]
SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
# How often noise and class probabilities are found in turn, at most, and how near is near enough.
ROUNDS, NEAR = 12, 0.05
# Early rounds need not be exact.
ROUGHLY = 1e-3
# After so many passes they become half steps.
CALM = 100
# Log odds that gain so much are forgotten at once; more would only overflow.
MOST_NOISE = 1e6


@dataclass(frozen=True, kw_only=True)
class DynIBCC(Model):
    r"""Independent Bayesian classifier combination with volunteers who change.

    As `IBCC`, but the log odds :math:`w_{jl}` with which a volunteer gives label `l` to items of class `j` walk at
    random from one of their responses to the next. An answer that surprises lets them walk further. The fit goes
    forward and backward through the responses of every volunteer, which gives one Dirichlet for each response,
    ``fit.confusion``; it works out the class probabilities of the items from the confusion that each answer was given
    with; and so on in turn until nothing changes. It starts where `IBCC` ends.

    There is no bound. ``fit.diagnostics`` has the scores of the fit and the noise scale.

    Parameters
    ----------
    confusion_prior, class_prior, votes
        As for `IBCC`. The prior is where every volunteer starts from.
    noise_scale
        What multiplies the noise that an answer causes: 1 as published, 0 for volunteers who never change. Or
        ``"auto"``: the scale with which answers are foretold best, 0 where that gains nothing or where their order does
        not matter.
    drift_per_time
        The variance that log odds gain in one `time_unit` between responses, so that long breaks forget more. They gain
        it when the next response comes; until then the last state stands.
    time_unit
        What `drift_per_time` counts in: ``"second"``, ``"minute"``, ``"hour"``, ``"day"`` or ``"week"``. To be left out
        where times are plain numbers: it is then for one of them.
    inference
        ``"smoothed"``: the confusion at a response is worked out from all of the volunteer's responses;
        ``"filtered"``: from those until then.
    repeat_span
        After how many own responses a volunteer who meets an item again has forgotten their answer, about: one who
        answered it `n` responses ago then counts :math:`1 - e^{-n / \text{span}}`. All count fully if left out.
    published
        Whether to follow the paper where we do not: an answer about an item of uncertain class then counts once, for
        the mixture of the classes, and labels forget separately. See the documentation.
    max_iter, tol
        When to stop: after so many passes over the responses, or when no class probability changes by more. Looking
        for the noise comes on top.
    device, dtype
        Where to compute: ``"cpu"`` runs compiled code in double precision; others, such as ``"cuda"``, run tensors of
        type `dtype`.

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

    confusion_prior: ConfusionPrior = None
    class_prior: ClassPrior = None
    votes: Votes | None = None
    noise_scale: float | Literal["auto"] = 1.0
    drift_per_time: float = 0.0
    time_unit: TimeUnit | None = None
    inference: Literal["smoothed", "filtered"] = "smoothed"
    repeat_span: float | None = None
    published: bool = False
    max_iter: int = 500
    tol: float = 1e-5
    device: str = "cpu"
    dtype: Literal["float64", "float32"] = "float64"

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion_prior", checked_confusion_prior(self.confusion_prior))
        object.__setattr__(self, "class_prior", checked_class_prior(self.class_prior))
        object.__setattr__(self, "device", str(self.device))
        check_mapping("votes", self.votes)
        if isinstance(self.noise_scale, str):
            if self.noise_scale != "auto":
                raise ParameterError(
                    f"noise_scale={self.noise_scale!r} is not a choice; as a word it can only be 'auto'."
                )
        else:
            _check_variance("noise_scale", self.noise_scale)
        _check_variance("drift_per_time", self.drift_per_time)
        if self.time_unit is not None:
            check_choice("time_unit", self.time_unit, tuple(SECONDS))
        check_choice("inference", self.inference, ("smoothed", "filtered"))
        if self.repeat_span is not None:
            check_positive("repeat_span", self.repeat_span)
        check_bool("published", self.published)
        check_integer("max_iter", self.max_iter, minimum=1)
        check_positive("tol", self.tol)
        check_choice("dtype", self.dtype, ("float64", "float32"))

    def warm_up(self, graph: CrowdGraph) -> None:
        """Load, or compile, the sweep of the first guess and the scan over the steps."""
        from crowdgraph.models._tensors import compile_scan_for, compile_sweep_for

        compile_sweep_for(graph)
        compile_scan_for(graph, published=self.published)

    def _fit(self, job: Job) -> Outcome:
        from crowdgraph.kernels._runtime import single_threaded_torch
        from crowdgraph.models._tensors import StepTensors

        graph = job.answers.graph
        if len(graph.labels) < 2:
            raise InputError(
                f"The graph has the single label {graph.labels[0]!r}, so nobody can change what they say. Name all "
                "labels that may be given with labels=[...] when building the graph."
            )
        if graph.responses.clock.kind == "order":
            warn(
                "The graph was built without times, so each volunteer's responses are taken in the order of the rows. "
                "Give a time column if they were given in another order.",
                NoTimesWarning,
            )
        drift = self._drift(graph)
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        guess = job.start.item_probs if job.start is not None else self._static_guess(prior, job)
        tensors = StepTensors(graph, drift=drift, repeat_span=self.repeat_span, device=self.device, dtype=self.dtype)
        if tensors.typical_drift > 1:
            warn(
                f"With drift_per_time={self.drift_per_time!r} the log odds gain a variance of "
                f"{tensors.typical_drift:,.3g} from one response to the next, so nearly all is forgotten each time and "
                "items seem surer than they are. Is the unit right? A variance of 0.01 a day is a lot.",
                ForgettingWarning,
            )
        passes = tensors.passes(prior, guess, stage=self.inference, published=self.published)
        with progress_bar("DynIBCC", visible=job.progress, unit="passes") as bar, single_threaded_torch():
            settling = Settling(passes, max_iter=self.max_iter, bar=bar)
            if self.noise_scale == "auto":
                noise_scale = settling.with_noise(prior=tensors.typical(prior, passes.probs))
            else:
                noise_scale = float(self.noise_scale)
            settling(noise_scale, tol=self.tol)
            left_out, score = passes.scores(noise_scale)
            concentration = np.array(passes.confusion(noise_scale).cpu().double().numpy())
        classes = passes.classes.cpu().double().numpy()
        return Outcome(
            item_probs=passes.probs.cpu().double().numpy(),
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
            converged=settling.change <= self.tol,
            n_iter=settling.n_iter,
            diagnostics={
                "noise_scale": noise_scale,
                "log_predictive": left_out,
                "score": score,
                "change": settling.change,
            },
        )

    def _static_guess(self, prior: CrowdPrior, job: Job) -> Array:
        """The class probabilities of volunteers who never change."""
        static = IBCC(confusion_prior=prior, device=self.device, dtype=self.dtype)
        return static._fit(job).item_probs

    def _drift(self, graph: CrowdGraph) -> float:
        """The variance that log odds gain in one tick of the graph's times."""
        clock, times = graph.responses.clock, graph.responses.time
        if self.drift_per_time == 0:
            return 0.0
        if clock.kind == "order":
            raise TimeError(
                f"drift_per_time={self.drift_per_time!r} needs times, and the graph was built without; name its time "
                "column, or leave drift_per_time out."
            )
        if clock.kind == "number":
            if self.time_unit is not None:
                raise ParameterError(
                    f"time_unit={self.time_unit!r} is for datetimes, but the graph's times are plain numbers. Leave it "
                    "out: drift_per_time is then for one of them."
                )
            return float(self.drift_per_time)
        if self.time_unit is None:
            raise ParameterError(
                f"drift_per_time={self.drift_per_time!r} has no unit; say for how long it is with time_unit="
                f"{', '.join(map(repr, SECONDS))}."
            )
        return float(self.drift_per_time) / (SECONDS[self.time_unit] * UNITS[np.datetime_data(times.dtype)[0]])


class Settling:
    """Passes over the responses until the class probabilities change no more, `n_iter` of them so far."""

    def __init__(self, passes: DynamicVB, *, max_iter: int, bar: Any) -> None:
        self.n_iter, self.change = 0, float("inf")
        self._passes, self._max_iter, self._bar = passes, max_iter, bar

    def __call__(self, noise_scale: float, *, tol: float) -> None:
        """Pass until no class probability changes by more than `tol`, with a certain noise."""
        while self.n_iter < self._max_iter:
            # Answers that unsettle each other may swing to and fro; half steps calm them.
            self.change = self._passes(noise_scale, damping=0.0 if self.n_iter < CALM else 0.5)
            self.n_iter += 1
            self._bar.set_postfix(change=f"{self.change:.1e}", noise_scale=f"{noise_scale:.2f}", refresh=False)
            self._bar.update()
            if self.change <= tol:
                return

    def with_noise(self, *, prior: Tensor) -> float:
        """The noise scale that foretells the answers best, found in turn with the class probabilities."""
        noise_scale = 1.0
        for _ in range(ROUNDS):
            self(noise_scale, tol=ROUGHLY)
            if self.n_iter == self._max_iter:
                break
            self._bar.set_postfix(looking_for="noise_scale")
            before, noise_scale = noise_scale, self._passes.choose_noise(noise_scale, prior=prior)
            if abs(noise_scale - before) <= NEAR * before:
                break
        return noise_scale if noise_scale > 0 and self._passes.order_is_informative(noise_scale, prior=prior) else 0.0


def _check_variance(name: str, value: object) -> None:
    if not is_number(value) or not 0 <= value <= MOST_NOISE:  # type: ignore[operator]
        raise ParameterError(f"{name}={value!r} must be a number from 0 to {MOST_NOISE:g}.")
