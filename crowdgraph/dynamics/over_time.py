"""The same communities followed through time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool, check_integer, check_seed, child_seed, progress_bar
from crowdgraph.core.clock import Moment
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.dynamics.matching import CommunityProfile, community_profiles, match
from crowdgraph.errors import ParameterError, TooFewError
from crowdgraph.models.base import Model
from crowdgraph.models.dynibcc import DynIBCC
from crowdgraph.networks.pi_similarity import pi_similarity

__all__ = ["MakeNetwork", "over_time"]

MakeNetwork = Callable[[CrowdGraph], VolunteerNetwork]


def over_time(
    graph: CrowdGraph,
    *,
    counts: Iterable[int] | None = None,
    times: Iterable[Moment] | None = None,
    network: MakeNetwork = pi_similarity,
    model: Model | None = DynIBCC(),  # noqa: B008 - models cannot be changed
    detector: Detector = BayesianNMF(),  # noqa: B008 - nor can detectors
    hindsight: bool = False,
    compare_starts: bool = True,
    restarts: int = 3,
    seed: int | None = None,
    progress: bool = False,
) -> CommunityTrack:
    """Find communities at several times, and follow each from one to the next.

    At each snapshot the model is fitted to the responses until then, a network of volunteers is made and communities
    are found in it. Each is matched with one of those seen before (see `crowdgraph.dynamics.match`), whose number it
    keeps, or gets a new number; one that was lost and is found again gets its own number back.

    Parameters
    ----------
    graph
        The graph.
    counts, times
        When: after so many responses, or before these moments. They must rise. ``track.times`` are those of the last
        response of each snapshot.
    network
        Makes the network from a graph that carries the fit: `pi_similarity`, `task_cooccurrence`, or either with other
        settings, such as ``functools.partial(pi_similarity, min_responses=10)``.
    model
        What tells the confusion of volunteers, and starts from the snapshot before. None for networks that need none;
        communities then have no mean confusion.
    detector
        What finds communities.
    hindsight
        False: each snapshot is what could be known then, from responses until then. True: the model is fitted once, to
        all responses, and confusion is read at those times: what we now believe about then.
    compare_starts
        Whether to fit each snapshot from the model's own start as well, and keep the better fit. False is faster, but
        a poor mode that few responses suggested may then be handed on from snapshot to snapshot.
    restarts
        How often to find the communities of a snapshot again, from other starts, to tell how sure their identity is.
    seed
        The same seed gives the same track.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> track = cg.dynamics.over_time(
    ...     graph, counts=[2_000, 4_000], network=cg.networks.task_cooccurrence, model=cg.IBCC(), seed=0
    ... )
    >>> track
    CommunityTrack(task_cooccurrence: 2 snapshots with 3, 3 communities)
    >>> track.sizes
    array([[12, 11, 11],
           [20, 20, 20]])
    """
    for name, value in (("hindsight", hindsight), ("compare_starts", compare_starts)):
        check_bool(name, value)
    check_integer("restarts", restarts, minimum=0)
    check_seed(seed)
    check_pipeline(network, model, detector)
    views = _views(graph, counts, times)
    following = CommunityTracker(graph, network, detector, restarts)
    fits = SnapshotFits(graph, model, hindsight=hindsight, compare_starts=compare_starts)
    seeds = np.random.SeedSequence(seed).spawn(len(views))
    with progress_bar("Communities over time", visible=progress, total=len(views), unit="snapshots") as bar:
        for view, source in zip(views, seeds, strict=True):
            rng = np.random.default_rng(source)
            if following.is_news(view):
                following.add(view, fits.of(view, rng), rng)
            else:
                following.repeat()
                fits.sweeps.append(0)
            bar.update()
    return following.track(
        times=_moments(graph, views),
        hindsight=hindsight,
        model=None if model is None else model.name,
        sweeps=tuple(fits.sweeps),
    )


class SnapshotFits:
    """The fits of views that grow, each started from the one before; or one fit, read at their ends."""

    def __init__(self, graph: CrowdGraph, model: Model | None, *, hindsight: bool, compare_starts: bool) -> None:
        self.sweeps: list[int] = []
        self._graph, self._model = graph, model
        self._hindsight, self._compare_starts = hindsight, compare_starts
        self._latest: ModelFit | None = None

    def of(self, view: CrowdGraph, rng: np.random.Generator) -> ModelFit | None:
        """The fit of a view; None without a model or without answers."""
        if self._model is None or not (view.responses.label >= 0).any():
            self.sweeps.append(0)
            return None
        if self._hindsight:
            return self._read(view, rng)
        # Drawn in any case, so that the numbers that follow are the same.
        seed = child_seed(rng)
        if self._latest is None:
            self._latest = self._counted(self._model.fit(view, seed=seed))
            return self._latest
        warm = self._counted(self._model._refit(view, start=self._latest, seed=seed))
        self._latest = warm
        if self._compare_starts:
            cold = self._model.fit(view, seed=seed)
            self.sweeps[-1] += cold.n_iter
            self._latest = cold if _worth(cold) > _worth(warm) else warm
        return self._latest

    def _counted(self, fit: ModelFit) -> ModelFit:
        self.sweeps.append(fit.n_iter)
        return fit

    def _read(self, view: CrowdGraph, rng: np.random.Generator) -> ModelFit:
        """The one fit of all responses, with the confusion that volunteers had when the view ends."""
        if self._latest is None:
            self._latest = self._counted(self._model.fit(self._graph, seed=child_seed(rng)))  # type: ignore[union-attr]
        else:
            self.sweeps.append(0)
        track = self._latest.confusion
        if track is None or track.inference == "static":
            return self._latest
        then = track._snapshot(view.volunteers.n_responses)
        known = ConfusionTrack.static(
            ids=then.ids, concentration=then.concentration, classes=then.classes, labels=then.labels
        )
        return replace(self._latest, confusion=known)


class Step(NamedTuple):
    """What was found at a snapshot: communities, the numbers of their columns, and how sure these are."""

    communities: Communities
    numbers: Array
    confidence: Array
    n_responses: int
    reason: str = ""


@dataclass
class CommunityTracker:
    """Communities that are followed from view to view, each with a number by which it was seen last."""

    graph: CrowdGraph
    network: MakeNetwork
    detector: Detector
    restarts: int
    method: str = ""
    steps: list[Step] = field(default_factory=list)
    seen: list[CommunityProfile] = field(default_factory=list)

    def add(self, view: CrowdGraph, fit: ModelFit | None, rng: np.random.Generator) -> None:
        """Find the communities of a view and tell which they are."""
        count = len(view.responses)
        made, reason = self._made(view, fit)
        if made is None:
            nobody = Communities(
                ids=np.zeros(0, object), participation=np.zeros((0, 0)), modularity=0.0, method=self.detector.name
            )
            self.steps.append(Step(nobody, np.zeros(0, np.int64), np.zeros(0), count, reason))
            return
        self.method = self.method or made.method
        found = self.detector.detect(made, seed=child_seed(rng))
        quick = self.detector.again(found)
        # One group for everybody is what the evidence says, not what starts find.
        n_restarts = self.restarts if len(found) > 1 else 0
        others = [quick.detect(made, seed=child_seed(rng)) for _ in range(n_restarts)]
        confusion = None if fit is None or fit.confusion is None else fit.confusion.latest()
        found, *others = (
            one if one.confusion is not None else replace(one, confusion=confusion) for one in (found, *others)
        )
        volunteers = self.graph.volunteers.table
        after = community_profiles(found, volunteers)
        matching = match(self.seen, after, restarts=[community_profiles(other, volunteers) for other in others])
        numbers = np.array(matching.number)
        born = numbers < 0
        numbers[born] = len(self.seen) + np.arange(np.count_nonzero(born))
        self.seen += [after[place] for place in np.flatnonzero(born)]
        for number, sighting in zip(numbers, after, strict=True):
            self.seen[number] = sighting
        self.steps.append(Step(found, numbers, matching.confidence, count))

    def is_news(self, view: CrowdGraph) -> bool:
        """Whether there are responses that the last snapshot did not have."""
        return not self.steps or self.steps[-1].n_responses != len(view.responses)

    def repeat(self) -> None:
        """Nothing happened since the last snapshot, so nothing changed."""
        self.steps.append(self.steps[-1])

    def track(self, *, times: Array, **params: Any) -> CommunityTrack:
        """All snapshots, with a column for every community there ever was."""
        confidence = np.full((len(self.steps), len(self.seen)), np.nan)
        for place, step in enumerate(self.steps):
            confidence[place, step.numbers] = step.confidence
        return CommunityTrack(
            ids=self.graph.volunteers.ids,
            times=times,
            counts=np.array([step.n_responses for step in self.steps], dtype=np.int64),
            snapshots=tuple(_widened(step, len(self.seen)) for step in self.steps),
            clock=self.graph.responses.clock,
            method=self.method or "communities",
            params={**params, "detector": self.detector.name},
            confidence=confidence,
            reasons=tuple(step.reason for step in self.steps),
        )

    def _made(self, view: CrowdGraph, fit: ModelFit | None) -> tuple[VolunteerNetwork | None, str]:
        """The network of a view, or why there is none."""
        if not (view.responses.label >= 0).any():
            return None, "there are no answers yet"
        try:
            made = self.network(view if fit is None else view.annotate(fit))
        except TooFewError as error:
            return None, str(error)
        if not isinstance(made, VolunteerNetwork):
            raise ParameterError(
                f"network= makes a VolunteerNetwork from a graph, as networks.pi_similarity does; got a "
                f"{type(made).__name__} from it."
            )
        if not made.n_edges:
            return None, f"no two of {len(made):,} volunteers are linked"
        return made, ""


def check_pipeline(network: object, model: object, detector: object) -> None:
    """Raise unless a network can be made, a model fitted and communities detected with these."""
    if not callable(network):
        raise ParameterError(
            "network= takes a function that makes a network from a graph, such as networks.pi_similarity; got "
            f"{network!r}."
        )
    for name, part, kind, example in (
        ("model", model, Model, "IBCC()"),
        ("detector", detector, Detector, "BayesianNMF()"),
    ):
        if not isinstance(part, kind) and not (name == "model" and part is None):
            raise ParameterError(f"{name}= takes a {kind.__name__.lower()}, such as {example}; got {part!r}.")


def _views(graph: CrowdGraph, counts: Iterable[int] | None, times: Iterable[Moment] | None) -> list[CrowdGraph]:
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Communities are followed in a CrowdGraph; got a {type(graph).__name__}.")
    if not len(graph.responses):
        raise ParameterError("The graph has no responses, so there are no communities to follow.")
    views = list(graph.snapshots(counts=counts, times=times))
    if not views:
        raise ParameterError("There is no snapshot to take; name at least one of counts=[...] or times=[...].")
    stops = [len(view.responses) for view in views]
    if counts is not None and len(set(stops)) < len(stops):
        raise ParameterError("counts= names the same number of responses twice; each snapshot must have more.")
    return views


def _moments(graph: CrowdGraph, views: list[CrowdGraph]) -> Array:
    """When snapshots were taken: the time of the last response of each, or of the first one where there is none yet."""
    column = graph.responses.time
    return np.asarray(column[[max(len(view.responses) - 1, 0) for view in views]])


def _widened(step: Step, width: int) -> Communities:
    """The communities of a snapshot, each in the column of its number."""
    shares = np.zeros((len(step.communities.ids), width))
    shares[:, step.numbers] = step.communities.participation
    return replace(step.communities, participation=shares, relevance=None)


def _worth(fit: ModelFit) -> float:
    """How good a fit is: its bound, or the score of those without one."""
    return float(fit.bound[-1]) if len(fit.bound) else float(fit.diagnostics.get("score", -np.inf))
