"""The whole analysis: data doctor, model, networks, communities, communities over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from crowdgraph.analysis.defaults import MODELS, activity_threshold, named_model, votes_note
from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import FrozenMapping, ReadOnlyArrays, object_array
from crowdgraph.core._parameters import check_bool, check_integer, check_seed, child_seed
from crowdgraph.core.communities import Communities, largest_first
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import Result
from crowdgraph.diagnosis.findings import Findings
from crowdgraph.dynamics.over_time import MakeNetwork, over_time
from crowdgraph.errors import CrowdGraphError, ParameterError, collect_warnings
from crowdgraph.models.base import Model
from crowdgraph.models.dynibcc import DynIBCC
from crowdgraph.models.voting import vote_codes
from crowdgraph.networks.pi_similarity import pi_similarity
from crowdgraph.networks.task_cooccurrence import task_cooccurrence

__all__ = ["Analysis", "Run", "StepSkippedError", "analyse", "by_reason"]

Made = TypeVar("Made")


class StepSkippedError(CrowdGraphError):
    """Why a step cannot be done."""


@dataclass
class Run:
    """The graph as far as it is annotated, and how the steps went."""

    graph: CrowdGraph
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    def step(self, name: str, make: Callable[[], Made]) -> Made | None:
        """What a step makes; None, and a reason, where it cannot be made."""
        start = time.perf_counter()
        try:
            with collect_warnings(self.notes):
                return make()
        except CrowdGraphError as error:
            self.skipped[name] = error.message
            return None
        finally:
            self.timings[name] = round(time.perf_counter() - start, 3)

    def annotate(self, result: Result | None, *, name: str | None = None) -> None:
        """Let the graph carry a result, if there is one."""
        if result is not None:
            self.graph = self.graph.annotate(result, name=name)

    def note(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Analysis(ReadOnlyArrays):
    """What `analyse` found.

    Attributes
    ----------
    graph
        The graph, annotated with the fit, networks, communities and communities over time, as far as they were made.
    findings
        What the data doctor says of the data.
    skipped
        The steps that could not be done, each with the reason.
    notes
        What was decided without being asked, and what the steps warned of, in sentences.
    timings
        How many seconds each step took.
    parameters
        The settings with which the same graph gives the same analysis.
    """

    graph: CrowdGraph
    findings: Findings
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("skipped", "timings", "parameters"):
            object.__setattr__(self, name, FrozenMapping(getattr(self, name)))
        object.__setattr__(self, "notes", tuple(self.notes))

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each step: how long it took, and why it was skipped; `kind` is pandas, polars or arrow."""
        from crowdgraph.io._columns import native_frame

        columns = {
            "step": object_array(self.timings),
            "seconds": object_array(map(float, self.timings.values())),
            "skipped": object_array(self.skipped.get(step, "") for step in self.timings),
        }
        return native_frame(columns, kind=kind)

    def __repr__(self) -> str:
        done = [step for step in self.timings if step not in self.skipped]
        lines = [f"Analysis in {sum(self.timings.values()):.1f} s: {', '.join(done)}"]
        lines += [f"  skipped {steps}: {reason}" for reason, steps in by_reason(self.skipped).items()]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def by_reason(skipped: Mapping[str, str]) -> dict[str, str]:
    """The steps that were skipped for each reason.

    Examples
    --------
    >>> by_reason({"pi_similarity": "Too few.", "communities": "Too few."})
    {'Too few.': 'pi_similarity, communities'}
    """
    steps: dict[str, str] = {}
    for step, reason in skipped.items():
        steps[reason] = f"{steps[reason]}, {step}" if reason in steps else step
    return steps


# Communities of fewer volunteers mean nothing.
FEWEST_VOLUNTEERS = 3
# From so many responses on, the fits of snapshots start only from the snapshot before.
LARGE = 300_000


def analyse(
    graph: CrowdGraph,
    *,
    model: Model | str = "dynibcc",
    votes: Mapping[Hashable, Hashable | None] | None = None,
    detector: Detector = BayesianNMF(),  # noqa: B008 - detectors cannot be changed
    snapshots: int = 4,
    min_responses: int = 10,
    max_volunteers: int = 2_000,
    seed: int | None = 0,
    progress: bool = False,
) -> Analysis:
    """Analyse a crowd: the data doctor, a model, networks of volunteers, communities, and communities over time.

    A step that cannot be done (too few volunteers, no times, ...) is skipped, and the result tells why.

    Parameters
    ----------
    graph
        The graph; it stays as it is.
    model
        A model, or the name of one of `MODELS`. Without times ``"dynibcc"`` becomes IBCC.
    votes
        Which class each label speaks for, for models given by name; guessed from gold if left out and needed.
    detector
        What finds communities.
    snapshots
        At how many times to look for communities, evenly spread over the responses; 0 looks only at the end.
    min_responses
        Volunteers with fewer answers take no part in networks and communities.
    most_volunteers
        How many volunteers networks and communities may be of: the most active ones.
    seed
        The same seed gives the same analysis; None draws one, which the parameters of the result tell.
    progress
        Whether to show progress bars.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.analysis import analyse
    >>> found = analyse(cg.simulate.crowd(n_volunteers=20, n_responses=800, seed=0).graph, snapshots=0)
    >>> found.skipped
    {}
    >>> list(found.graph.annotations)
    ['dynibcc', 'pi_similarity', 'task_cooccurrence', 'task communities', 'communities']
    """
    _check(graph, model, detector, snapshots, min_responses, max_volunteers, seed, progress)
    seed = child_seed(np.random.default_rng()) if seed is None else int(seed)
    seeds = [child_seed(np.random.default_rng(source)) for source in np.random.SeedSequence(seed).spawn(3)]
    run = Run(graph.replace())
    findings = run.step("diagnosis", lambda: graph.diagnose(progress=progress))
    chosen = _chosen(run, model, votes)
    fit = run.step("model", lambda: chosen.fit(graph, seed=seeds[0], progress=progress))
    run.annotate(fit)
    least = activity_threshold(graph, least=min_responses, max_volunteers=max_volunteers)
    if least > min_responses:
        run.note(
            f"Networks and communities are of the most active volunteers, those with {least:,} answers or more, since "
            f"more than {max_volunteers:,} have {min_responses:,}."
        )
    makers = {maker.__name__: partial(maker, min_responses=least) for maker in (pi_similarity, task_cooccurrence)}
    made = {name: run.step(name, partial(_network, run, maker, name, fit)) for name, maker in makers.items()}
    for network in made.values():
        run.annotate(network)
    alike, together = made.values()
    if together is not None:
        detect = partial(detector.detect, together, seed=seeds[1], progress=progress)
        run.annotate(run.step("task communities", detect), name="task communities")
    _communities(run, makers, alike, chosen, fit, detector, snapshots=snapshots, seed=seeds[2], progress=progress)
    return Analysis(
        graph=run.graph,
        findings=Findings(()) if findings is None else findings,
        skipped=run.skipped,
        notes=tuple(run.notes),
        timings=run.timings,
        parameters={
            "model": repr(chosen),
            "detector": repr(detector),
            "snapshots": snapshots,
            "min_responses": min_responses,
            "most_volunteers": max_volunteers,
            "seed": seed,
        },
    )


def _check(
    graph: object,
    model: object,
    detector: object,
    snapshots: object,
    min_responses: object,
    max_volunteers: object,
    seed: object,
    progress: object,
) -> None:
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"An analysis is of a CrowdGraph; got a {type(graph).__name__}.")
    if not isinstance(model, Model | str):
        raise ParameterError(f"model= takes a model, or the name of one, such as 'ibcc'; got {model!r}.")
    if not isinstance(detector, Detector):
        raise ParameterError(f"detector= takes a detector, such as BayesianNMF(); got {detector!r}.")
    check_integer("snapshots", snapshots, minimum=0)
    check_integer("min_responses", min_responses)
    check_integer("most_volunteers", max_volunteers, minimum=FEWEST_VOLUNTEERS)
    check_seed(seed)
    check_bool("progress", progress)


def _chosen(run: Run, model: Model | str, votes: Mapping[Hashable, Hashable | None] | None) -> Model:
    """The model, if need be another than the one that was named, with a note."""
    if isinstance(model, Model):
        return model
    graph = run.graph
    if model == DynIBCC.name and graph.responses.clock.kind == "order":
        run.note("There are no times, so nobody's change can be followed: IBCC is used instead of DynIBCC.")
        model = "ibcc"
    if votes is not None:
        vote_codes(graph, votes)
    chosen = named_model(model, graph=graph, votes=votes)
    spoken = chosen.settings().get("votes")
    if votes is None and spoken is not None:
        run.note(votes_note(graph, spoken))
    return chosen


def _network(run: Run, maker: MakeNetwork, name: str, fit: ModelFit | None) -> VolunteerNetwork:
    """A network of volunteers that are enough, and linked."""
    if name == pi_similarity.__name__ and (fit is None or fit.confusion is None):
        raise StepSkippedError(
            "Without a fit there are no confusion matrices to compare."
            if fit is None
            else f"The model {fit.model!r} has no confusion matrices to compare; use one of "
            f"{', '.join(name for name in MODELS if 'confusion_prior' in MODELS[name].settings())}."
        )
    crowd = len(run.graph.volunteers)
    if crowd < FEWEST_VOLUNTEERS:
        raise StepSkippedError(
            f"Communities need {FEWEST_VOLUNTEERS} volunteers or more; the whole crowd is {crowd:,}."
        )
    network = maker(run.graph)
    if len(network) < FEWEST_VOLUNTEERS:
        raise StepSkippedError(
            f"Only {len(network):,} of {crowd:,} volunteers have {network.params['min_responses']:,} answers or more, "
            f"and fewer than {FEWEST_VOLUNTEERS} have no communities; lower min_responses."
        )
    if not network.n_edges:
        raise StepSkippedError(f"No two of {len(network):,} volunteers are linked.")
    return network


def _communities(
    run: Run,
    makers: Mapping[str, MakeNetwork],
    alike: VolunteerNetwork | None,
    model: Model,
    fit: ModelFit | None,
    detector: Detector,
    *,
    snapshots: int,
    seed: int,
    progress: bool,
) -> None:
    """Annotate with communities of volunteers who behave alike, over time if there are times."""
    if alike is None:
        run.skipped["communities"] = run.skipped[pi_similarity.__name__]
        return
    track = None
    if snapshots:
        settings: dict[str, Any] = {"snapshots": snapshots, "detector": detector, "seed": seed, "progress": progress}
        track = run.step(
            "communities over time", lambda: _track(run, makers[pi_similarity.__name__], model, fit, **settings)
        )
        run.annotate(track)
    if track is not None and not (track.reasons or ("",))[-1]:
        found: Communities | None = _last(track)
    else:
        found = run.step("communities", lambda: detector.detect(alike, seed=seed, progress=progress))
    run.annotate(found, name="communities")


def _track(
    run: Run,
    maker: MakeNetwork,
    model: Model,
    fit: ModelFit | None,
    *,
    snapshots: int,
    detector: Detector,
    seed: int,
    progress: bool,
) -> CommunityTrack:
    """Communities at times evenly spread over the responses."""
    responses = run.graph.responses
    if responses.clock.kind == "order":
        raise StepSkippedError("There are no times; name the column that has them.")
    counts = sorted({max(len(responses) * place // snapshots, 1) for place in range(1, snapshots + 1)})
    if isinstance(model, DynIBCC) and model.noise_scale == "auto" and fit is not None:
        # Looked for once; every snapshot would take as long again.
        model = replace(model, noise_scale=float(fit.diagnostics["noise_scale"]))
    large = len(responses) >= LARGE
    if large:
        run.note(
            f"There are {LARGE:,} responses or more, so each snapshot is fitted from the one before only, and how sure "
            "the identity of communities is was not examined."
        )
    settings: dict[str, Any] = {"compare_starts": False, "restarts": 0} if large else {}
    track = over_time(
        run.graph.replace(),
        counts=counts,
        network=maker,
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
    """The track with communities numbered by their size at the end; those that ended come last."""
    order = largest_first(track.snapshots[-1].participation)
    return replace(
        track,
        snapshots=tuple(replace(one, participation=one.participation[:, order]) for one in track.snapshots),
        confidence=None if track.confidence is None else track.confidence[:, order],
    )


def _last(track: CommunityTrack) -> Communities:
    """The communities at the end, without those that ended before."""
    last = track.snapshots[-1]
    lives = np.flatnonzero(last.participation.any(axis=0))
    return replace(last, participation=last.participation[:, lives])
