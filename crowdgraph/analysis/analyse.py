"""A complete analysis: data doctor, model, networks, communities, communities over time, and checks of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from crowdgraph.allocation.next_steps import NextSteps, next_steps
from crowdgraph.analysis.defaults import MODELS, activity_threshold, named_model, votes_note
from crowdgraph.analysis.finished import adopt, model_around
from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, FrozenMapping, ReadOnlyArrays, object_array
from crowdgraph.core._backbone import check_level
from crowdgraph.core._parameters import check_bool, check_integer, check_seed
from crowdgraph.core._random import child_seed
from crowdgraph.core._text import quantity
from crowdgraph.core.changes import Changes
from crowdgraph.core.communities import MIN_CROWD, Communities, largest_first
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import Columns, Result, Tabular
from crowdgraph.diagnosis.findings import Findings
from crowdgraph.dynamics.over_time import MakeNetwork, over_time
from crowdgraph.errors import AlignmentError, CrowdGraphError, ParameterError, collect_warnings
from crowdgraph.evaluation.model_checks import Calibration, Unmeasured, calibration
from crowdgraph.evaluation.predictive import PredictiveChecks, predictive_checks
from crowdgraph.messages import Hint, with_article
from crowdgraph.models._priors import GOLD, ConfusionPrior, check_gold_for_prior
from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated, calibrated_if_possible
from crowdgraph.models.dynibcc import DynIBCC
from crowdgraph.models.label_votes import vote_codes
from crowdgraph.networks.error_correlation import error_correlation
from crowdgraph.networks.pi_similarity import pi_similarity
from crowdgraph.networks.task_cooccurrence import task_cooccurrence

__all__ = ["Analysis", "StepSkippedError", "analyse", "steps_by_reason"]

# One volunteer has nobody to be linked with.
MIN_VOLUNTEERS = 2
# From this many responses on, the fit of a snapshot starts only from that of the snapshot before, and the model is
# checked on about as many responses.
LARGE_GRAPH = 300_000
# What a fit is called whose volunteers were followed, given its classes.
OVER_TIME = " over time"

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Analysis(ReadOnlyArrays, Tabular):
    """The result of `analyse`; its table has one row for each step: how long it took, and why it was skipped.

    Attributes
    ----------
    graph
        The graph, annotated with the fit, networks, communities and communities over time, as far as they were made.
    findings
        The findings of the data doctor.
    calibration
        The calibration of the fit against gold, or the reason why it was not measured; None without a fit.
    predictive
        The predictive checks of the fit; None if they were not made.
    changes
        The volunteers who changed; None without a fit or without times.
    plan
        What to do next: questions, a forecast, retirement, training and thanks; None without a fit.
    calibrated_fit
        The fit with calibrated class probabilities, where those of the fit itself are not and can be.
    skipped
        The steps that could not be done, each with the reason.
    notes
        What was decided without being asked for, and what the steps warned of, in sentences.
    timings
        How many seconds each step took.
    parameters
        The settings with which the same graph gives the same analysis.
    """

    graph: CrowdGraph
    findings: Findings
    calibration: Calibration | Unmeasured | None = None
    changes: Changes | None = None
    predictive: PredictiveChecks | None = None
    plan: NextSteps | None = None
    calibrated_fit: ModelFit | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("skipped", "timings", "parameters"):
            object.__setattr__(self, name, FrozenMapping(getattr(self, name)))
        object.__setattr__(self, "notes", tuple(self.notes))

    def _columns(self) -> Columns:
        return {
            "step": object_array(self.timings),
            "seconds": object_array(map(float, self.timings.values())),
            "skipped": object_array(str(self.skipped.get(step, "")) for step in self.timings),
        }

    def __repr__(self) -> str:
        done = [step for step in self.timings if step not in self.skipped]
        lines = [f"Analysis in {sum(self.timings.values()):.1f} s: {', '.join(done)}"]
        lines += [f"  skipped {steps}: {reason}" for reason, steps in steps_by_reason(self.skipped).items()]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def steps_by_reason(skipped: Mapping[str, str]) -> dict[str, str]:
    """Return the steps that were skipped for each reason.

    Examples
    --------
    >>> steps_by_reason({"pi_similarity": "Too few.", "communities": "Too few."})
    {'Too few.': 'pi_similarity, communities'}
    """
    steps: dict[str, str] = {}
    for step, reason in skipped.items():
        steps[reason] = f"{steps[reason]}, {step}" if reason in steps else step
    return steps


def analyse(
    graph: CrowdGraph,
    *,
    model: Model | str = Calibrated.name,
    votes: Mapping[Hashable, Hashable | None] | None = None,
    confusion_prior: ConfusionPrior = None,
    detector: Detector = BayesianNMF(),  # noqa: B008 - detectors are immutable
    snapshots: int | Sequence[int] = 4,
    min_responses: int = 10,
    max_volunteers: int = 2_000,
    validate: float | None = None,
    fit: ModelFit | None = None,
    earlier: ModelFit | None = None,
    seed: int | None = 0,
    progress: bool = False,
) -> Analysis:
    """Analyse a crowd: data doctor, model, networks, communities, over time, checks, who changed, what next.

    A step that cannot be done (no times, ...) is skipped, and the result says why. Fewer than 30 volunteers with enough
    answers are too few for communities: of them it is examined instead who errs together.

    Parameters
    ----------
    graph
        The graph, which stays as it is.
    model
        A model, or the name of one of `MODELS`. By default classes come from IBCC with calibrated probabilities; where
        there are times and the order of answers shows that volunteers change, DynIBCC follows them over time, given
        these classes. Without times ``"dynibcc"`` becomes the default.
    votes
        The class that each label votes for, for models given by name; guessed from gold if left out and needed.
    confusion_prior
        The prior of confusion, for models given by name; learned from the crowd if left out. See `crowdgraph.IBCC`.
    detector
        The detector of communities.
    snapshots
        At how many times to detect communities, evenly spread over the responses; 0 detects them only at the end. A
        list such as ``[3000, 12000]`` names the numbers of responses themselves; the end is added to it.
    min_responses
        Volunteers with fewer answers take no part in networks and communities.
    max_volunteers
        How many volunteers, the most active ones, networks and communities may have.
    validate
        Keep only those links between volunteers who share items that are more than chance explains, at this
        false-discovery rate, such as 0.01; all links if left out. See `crowdgraph.networks.task_cooccurrence`.
    fit
        A finished fit of the graph, of `IBCC`, `DynIBCC` or `DawidSkene`, which is analysed instead of fitting a model:
        such as several processes made of a large crowd. By default that of IBCC is calibrated, and its volunteers are
        followed over time. The settings are those of the fit.
    earlier
        A fit of the same model to fewer responses, to be updated instead of fitting anew; see `Model.update`.
    seed
        The same seed gives the same analysis; None draws one, which is among the parameters of the result.
    progress
        Whether to show progress bars.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.analysis import analyse
    >>> analysis = analyse(cg.simulate.crowd(n_volunteers=40, n_responses=1_200, seed=0).graph, snapshots=0)
    >>> analysis.skipped
    {}
    >>> list(analysis.graph.annotations)
    ['calibrated ibcc', 'pi_similarity', 'task_cooccurrence', 'task communities', 'communities']
    """
    _check(graph, model, detector, snapshots, min_responses, max_volunteers, validate, seed, progress)
    seed = child_seed(np.random.default_rng()) if seed is None else int(seed)
    seeds = [child_seed(np.random.default_rng(source)) for source in np.random.SeedSequence(seed).spawn(3)]
    steps = StepRunner(graph.replace())
    findings = steps.run("diagnosis", lambda: graph.diagnose(progress=progress))
    is_default = model == Calibrated.name
    if fit is not None:
        _check_named_only(model, votes, confusion_prior, earlier)
        model = model_around(fit, str(model))
        fit = steps.run("model", partial(adopt, fit, model, steps.graph))
    else:
        model = _choose_model(steps, model, votes, confusion_prior)
        fit = steps.run("model", lambda: _fit(steps, model, graph, earlier, seed=seeds[0], progress=progress))
    if is_default and isinstance(model, Calibrated) and fit is not None:
        fit = steps.run("skill over time", partial(_follow, steps, model, fit, progress=progress)) or fit
    steps.annotate(fit)
    threshold = activity_threshold(graph, min_responses=min_responses, max_volunteers=max_volunteers)
    if threshold > min_responses:
        steps.note(
            f"Networks and communities are of the most active volunteers, those with {threshold:,} answers or more, "
            f"since more than {max_volunteers:,} have {min_responses:,}."
        )
    makers: dict[str, MakeNetwork] = {
        "pi_similarity": partial(pi_similarity, min_responses=threshold),
        "task_cooccurrence": partial(task_cooccurrence, min_responses=threshold, validate=validate),
    }
    networks = {name: steps.run(name, partial(_network, steps.graph, make, name, fit)) for name, make in makers.items()}
    for network in networks.values():
        steps.annotate(network)
    alike, together = networks.values()
    small = _too_few(graph, networks.values(), threshold)
    if small is not None and alike is not None:
        erring = partial(_network, steps.graph, partial(error_correlation, min_responses=threshold))
        steps.annotate(steps.run("error_correlation", partial(erring, error_correlation.__name__, fit)))
    if together is not None and small is None:
        detect = partial(detector.detect, together, seed=seeds[1], progress=progress)
        steps.annotate(steps.run("task communities", detect), name="task communities")
    if alike is None or small is not None:
        steps.skipped["communities"] = steps.skipped.get(pi_similarity.__name__, small or "")
    else:
        _detect_communities(
            steps,
            makers["pi_similarity"],
            alike,
            model,
            fit,
            detector,
            snapshots=snapshots,
            seed=seeds[2],
            progress=progress,
        )
    measured = None if fit is None else steps.run("calibration", lambda: calibration(graph, fit, model=model))
    changes = None if fit is None else steps.run("changes", lambda: _changes(graph, fit))
    predictive = None
    if fit is not None:
        predictive = steps.run(
            "predictive checks", partial(_check_fit, steps, graph, fit, seed=seed, progress=progress)
        )
    plan = calibrated_fit = None
    if fit is not None:
        again = model if isinstance(model, Calibrated) else None
        plan = steps.run("what next", partial(next_steps, steps.graph, fit=fit, model=again, seed=seed))
        better = calibrated_if_possible(fit, graph)
        calibrated_fit = None if better is fit else better
    return Analysis(
        graph=steps.graph,
        findings=Findings(()) if findings is None else findings,
        calibration=measured,
        changes=changes,
        predictive=predictive,
        plan=plan,
        calibrated_fit=calibrated_fit,
        skipped=steps.skipped,
        notes=tuple(steps.notes),
        timings=steps.timings,
        parameters={
            "model": repr(model),
            "detector": repr(detector),
            "snapshots": list(snapshots) if isinstance(snapshots, Sequence) else snapshots,
            "min_responses": min_responses,
            "max_volunteers": max_volunteers,
            "validate": validate,
            "seed": seed,
        },
    )


class StepSkippedError(CrowdGraphError):
    """The reason why a step of an analysis cannot be done."""


@dataclass
class StepRunner:
    """Runs the steps of an analysis: times them, collects their warnings, and skips those that raise our errors."""

    graph: CrowdGraph
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    def run(self, name: str, step: Callable[[], Value]) -> Value | None:
        """Return what a step returns; None, and the reason in `skipped`, if it cannot be done."""
        start = time.perf_counter()
        try:
            with collect_warnings(self.notes):
                return step()
        except CrowdGraphError as error:
            self.skipped[name] = error.message
            return None
        finally:
            self.timings[name] = round(time.perf_counter() - start, 3)

    def annotate(self, result: Result | None, *, name: str | None = None) -> None:
        """Annotate the graph with a result, if there is one."""
        if result is not None:
            self.graph = self.graph.annotate(result, name=name)

    def note(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


def _check(
    graph: object,
    model: object,
    detector: object,
    snapshots: object,
    min_responses: object,
    max_volunteers: object,
    validate: object,
    seed: object,
    progress: object,
) -> None:
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"An analysis is of a CrowdGraph; got {with_article(type(graph))}.")
    if not isinstance(model, Model | str):
        raise ParameterError(f"model= takes a model, or the name of one, such as 'ibcc'; got {model!r}.")
    if not isinstance(detector, Detector):
        raise ParameterError(f"detector= takes a detector, such as BayesianNMF(); got {detector!r}.")
    _check_snapshots(graph, snapshots)
    check_integer("min_responses", min_responses)
    check_integer("max_volunteers", max_volunteers, minimum=MIN_VOLUNTEERS)
    if validate is not None:
        check_level("validate", validate)
    check_seed(seed)
    check_bool("progress", progress)


def _check_named_only(model: object, votes: object, confusion_prior: object, earlier: object) -> None:
    """Raise if more is said about a model than the name of a finished fit's."""
    others = {"votes": votes, "confusion_prior": confusion_prior, "earlier": earlier}
    if not isinstance(model, str):
        others["model"] = model
    more = [name for name, value in others.items() if value is not None]
    if more:
        raise ParameterError(
            f"fit= is a finished fit, to whose settings {more[0]}= adds nothing; leave one of both out."
        )


def _check_snapshots(graph: CrowdGraph, snapshots: object) -> None:
    if not isinstance(snapshots, Sequence) or isinstance(snapshots, str):
        check_integer("snapshots", snapshots, minimum=0)
        return
    for count in snapshots:
        check_integer("snapshots", count)
        if count > len(graph.responses):
            raise ParameterError(
                f"snapshots names {count:,} responses, but the graph has {len(graph.responses):,}; leave it out."
            )


def _choose_model(
    steps: StepRunner,
    model: Model | str,
    votes: Mapping[Hashable, Hashable | None] | None,
    confusion_prior: ConfusionPrior,
) -> Model:
    """Return the model: as given, by its name, or another with a note where the named one does not suit the graph."""
    if isinstance(model, Model):
        return model
    graph = steps.graph
    if model == DynIBCC.name and graph.responses.clock.kind == "order":
        steps.note("There are no times, so nobody's change can be followed: IBCC is used instead of DynIBCC.")
        model = Calibrated.name
    if votes is not None:
        vote_codes(graph, votes)
    if isinstance(confusion_prior, str) and confusion_prior == GOLD:
        check_gold_for_prior(graph)
    named = named_model(model, graph=graph, votes=votes, confusion_prior=confusion_prior)
    guessed = named.settings().get("votes")
    if votes is None and guessed is not None:
        steps.note(votes_note(graph, guessed))
    return named


def _fit(
    steps: StepRunner, model: Model, graph: CrowdGraph, earlier: ModelFit | None, *, seed: int, progress: bool
) -> ModelFit:
    """Fit the model, from where an earlier fit ended if that is possible; a note says why it is not."""
    if earlier is not None:
        try:
            return model.update(earlier, graph, progress=progress)
        except (AlignmentError, ParameterError) as error:
            steps.note(f"The model was fitted from scratch. {error.args[0]}")
    return model.fit(graph, seed=seed, progress=progress)


def _follow(steps: StepRunner, model: Calibrated, fit: ModelFit, *, progress: bool) -> ModelFit | None:
    """Follow volunteers over time, given the classes of a fit; None, and a note, where they do not seem to change."""
    graph = steps.graph
    if graph.responses.clock.kind == "order":
        raise StepSkippedError("There are no times, so nobody's change can be followed.")
    inner = model.model
    settings = {name: inner.settings()[name] for name in ("confusion_prior", "class_prior", "votes")}
    follower = DynIBCC(noise_scale="auto", update_classes=False, **settings).fit(graph, start=fit, progress=progress)
    scale = float(follower.diagnostics["noise_scale"])
    if not scale:
        steps.note(
            "The order of answers says nothing about the volunteers as a crowd, so everybody has one confusion matrix "
            "for all times (IBCC); single volunteers may still change."
        )
        return None
    steps.note(
        f"The order of answers shows that volunteers change, so DynIBCC follows them (noise scale {scale:.2g}); the "
        "classes are those of IBCC, calibrated, which are as good and far quicker."
    )
    # The classes are still those of the fit, which an update goes on from.
    return replace(follower, model=f"{fit.model}{OVER_TIME}", state=fit.state)


def _check_fit(steps: StepRunner, graph: CrowdGraph, fit: ModelFit, *, seed: int, progress: bool) -> PredictiveChecks:
    """Check a fit; of a large graph on some of the items, unless the fit knows the order of all responses."""
    is_static = fit.confusion is not None and fit.confusion.inference == "static"
    if is_static and len(graph.responses) > LARGE_GRAPH:
        n_all, n_checked = len(graph.items), len(graph.items) * LARGE_GRAPH // len(graph.responses)
        chosen = np.sort(np.random.default_rng(seed).choice(n_all, max(n_checked, 1), replace=False))
        graph, fit = _of_items(graph, fit, chosen)
        steps.note(
            f"There are more than {LARGE_GRAPH:,} responses, so the model was checked on those about "
            f"{quantity(len(graph.items), 'item')} of {n_all:,}, drawn at random."
        )
    return predictive_checks(graph, fit, seed=seed, progress=progress)


def _of_items(graph: CrowdGraph, fit: ModelFit, items: Array) -> tuple[CrowdGraph, ModelFit]:
    """Return the graph of some items, given by their codes, and what a fit without change says about it."""
    part = graph.subgraph(items=graph.items.ids[items])
    confusion = fit.confusion.latest()  # type: ignore[union-attr]
    track = ConfusionTrack.static(
        ids=part.volunteers.ids,
        concentration=confusion.concentration[confusion.table.codes(part.volunteers.ids)],
        classes=confusion.classes,
        labels=confusion.labels,
    )
    # What the fit was made of, and where it ended, are about all items.
    fit = replace(fit, source=None, state=None, items=part.items.ids, item_probs=fit.item_probs[items], confusion=track)
    return part, fit


def _changes(graph: CrowdGraph, fit: ModelFit) -> Changes:
    """Return the volunteers who changed, if there are times."""
    if graph.responses.clock.kind == "order":
        raise StepSkippedError("There are no times; name the column that has them.")
    return fit.changes(graph)


def _network(graph: CrowdGraph, make: MakeNetwork, name: str, fit: ModelFit | None) -> VolunteerNetwork:
    """Return a network with at least one link."""
    if name != task_cooccurrence.__name__ and (fit is None or fit.confusion is None):
        raise StepSkippedError(
            "Without a fit there are no confusion matrices to compare."
            if fit is None
            else f"The model {fit.model!r} has no confusion matrices to compare; use one of "
            f"{', '.join(name for name in MODELS if 'confusion_prior' in MODELS[name].settings())}."
        )
    n_volunteers = len(graph.volunteers)
    if n_volunteers < MIN_VOLUNTEERS:
        raise StepSkippedError(
            f"Networks need {MIN_VOLUNTEERS} volunteers or more; the whole crowd is {n_volunteers:,}."
        )
    network = make(graph)
    if len(network) < MIN_VOLUNTEERS:
        raise StepSkippedError(
            f"Only {len(network):,} of {n_volunteers:,} volunteers have {network.params['min_responses']:,} answers or "
            f"more, and fewer than {MIN_VOLUNTEERS} have no network;",
            hint=Hint("lower min_responses.", cli="lower --min-responses."),
        )
    if not network.n_edges:
        validated = network.params.get("validate") is not None
        beyond = " by more items than chance explains" if validated else ""
        if name == error_correlation.__name__:
            beyond = " by errors in common"
        raise StepSkippedError(f"No two of {len(network):,} volunteers are linked{beyond}.")
    return network


def _too_few(graph: CrowdGraph, networks: Iterable[VolunteerNetwork | None], threshold: int) -> str | None:
    """Return why the volunteers of the networks are too few for communities; None if they are enough."""
    n_volunteers = max((len(network) for network in networks if network is not None), default=0)
    if n_volunteers >= MIN_CROWD:
        return None
    n_all = len(graph.volunteers)
    who = f"{quantity(n_volunteers, 'volunteer')} {'is' if n_volunteers == 1 else 'are'}"
    if n_volunteers < n_all:
        who = f"Only {n_volunteers:,} of {quantity(n_all, 'volunteer')} have {threshold:,} answers or more, which is"
    return f"{who} too few for communities: they need {MIN_CROWD}. Pairs of volunteers are compared instead."


def _detect_communities(
    steps: StepRunner,
    make: MakeNetwork,
    alike: VolunteerNetwork,
    model: Model,
    fit: ModelFit | None,
    detector: Detector,
    *,
    snapshots: int | Sequence[int],
    seed: int,
    progress: bool,
) -> None:
    """Annotate with communities of volunteers who behave alike, over time if there are times."""
    track = None
    if snapshots:
        track = steps.run(
            "communities over time",
            lambda: _track(
                steps, make, model, fit, snapshots=snapshots, detector=detector, seed=seed, progress=progress
            ),
        )
        steps.annotate(track)
    if track is not None and not (track.reasons or ("",))[-1]:
        communities: Communities | None = _last(track)
    else:
        communities = steps.run("communities", lambda: detector.detect(alike, seed=seed, progress=progress))
    steps.annotate(communities, name="communities")


def _track(
    steps: StepRunner,
    make: MakeNetwork,
    model: Model,
    fit: ModelFit | None,
    *,
    snapshots: int | Sequence[int],
    detector: Detector,
    seed: int,
    progress: bool,
) -> CommunityTrack:
    """Return communities after numbers of responses, as given or evenly spread."""
    responses = steps.graph.responses
    if responses.clock.kind == "order":
        raise StepSkippedError("There are no times; name the column that has them.")
    if isinstance(snapshots, Sequence):
        counts = sorted({*map(int, snapshots), len(responses)})
    else:
        counts = sorted({max(len(responses) * number // snapshots, 1) for number in range(1, snapshots + 1)})
    if fit is not None and "noise_scale" in fit.diagnostics:
        # Chosen once, with all responses; every snapshot would take as long again.
        scale = float(fit.diagnostics["noise_scale"])
        source = model if fit.source is None else fit.source.model
        if isinstance(source, DynIBCC):
            model = replace(source, noise_scale=scale, update_classes=True)
    is_large = len(responses) >= LARGE_GRAPH
    if is_large:
        steps.note(
            f"There are {LARGE_GRAPH:,} responses or more, so each snapshot is fitted from the one before only, and "
            "how sure the identity of communities is was not examined."
        )
    settings: dict[str, Any] = {"compare_starts": False, "restarts": 0} if is_large else {}
    track = over_time(
        steps.graph.replace(),
        counts=counts,
        network=make,
        model=model,
        detector=detector,
        seed=seed,
        progress=progress,
        **settings,
    )
    if all(track.reasons or ()):
        raise StepSkippedError(f"No snapshot has communities: {(track.reasons or ('',))[-1]}.")
    return _renumbered(track)


def _renumbered(track: CommunityTrack) -> CommunityTrack:
    """Return the track with communities numbered by their size at the end; those that ended come last."""
    order = largest_first(track.snapshots[-1].participation)
    return replace(
        track,
        snapshots=tuple(replace(one, participation=one.participation[:, order]) for one in track.snapshots),
        confidence=None if track.confidence is None else track.confidence[:, order],
    )


def _last(track: CommunityTrack) -> Communities:
    """Return the communities at the end, without those that ended before."""
    last = track.snapshots[-1]
    alive = np.flatnonzero(last.participation.any(axis=0))
    return replace(last, participation=last.participation[:, alive])
