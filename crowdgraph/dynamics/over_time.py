"""Communities over time: detected at several snapshots and tracked from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import as_list, check_bool, check_integer, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core.clock import Length, Moment, length_in_ticks, ticks
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_events import find_events
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.dynamics._separation import Separation
from crowdgraph.dynamics.matching import CommunityProfile, community_profiles, match
from crowdgraph.errors import ParameterError, TooFewError
from crowdgraph.messages import with_article
from crowdgraph.models.base import Model
from crowdgraph.models.dynibcc import DynIBCC
from crowdgraph.networks.pi_similarity import pi_similarity

__all__ = ["MakeNetwork", "over_time"]

MakeNetwork = Callable[[CrowdGraph], VolunteerNetwork]

# How well communities must agree with those of the snapshot before (adjusted Rand index) to be the same.
MIN_CONTINUITY = 0.5


def over_time(
    graph: CrowdGraph,
    *,
    counts: Iterable[int] | None = None,
    times: Iterable[Moment] | None = None,
    every: Length | None = None,
    network: MakeNetwork = pi_similarity,
    model: Model | None = DynIBCC(),  # noqa: B008 - models cannot be changed
    detector: Detector = BayesianNMF(),  # noqa: B008 - nor can detectors
    hindsight: bool = False,
    compare_starts: bool = True,
    restarts: int = 3,
    seed: int | None = None,
    progress: bool = False,
) -> CommunityTrack:
    """Detect communities at several times, and track each from one to the next.

    At each snapshot the model is fitted to the responses until then, a network of volunteers is built and communities
    are detected in it. Each community is matched with one seen before (see `crowdgraph.dynamics.match`) and keeps its
    number, or gets a new number; a community that disappeared and comes back gets its own number back.

    Near the limit of what can be seen, evidence may fail at a single snapshot. Communities that are still those of the
    snapshot before are then kept, and their `Evidence.persists` says so. A split or a merger is an event only if its
    volunteers were not apart before it, or are not after it; otherwise the detector merely sees more, or less.

    Parameters
    ----------
    graph
        The graph.
    counts, times, every
        When to take snapshots: after these numbers of responses, before these moments, in rising order, or after each
        such length of time, such as ``"30D"`` (see `CrowdGraph.snapshots`). ``track.times`` are the times of the last
        response of each snapshot.
    network
        Builds the network from a graph that carries the fit: `pi_similarity`, `task_cooccurrence`, or either with other
        settings, such as ``functools.partial(pi_similarity, min_responses=10)``.
    model
        The model of the volunteers' confusion, which starts from the snapshot before. None for networks that need no
        model; communities then have no mean confusion.
    detector
        The detector of communities.
    hindsight
        False: each snapshot is what could be known then, from the responses until then. True: the model is fitted once,
        to all responses, and confusion is read at those times: what we now believe about then.
    compare_starts
        Whether to fit each snapshot from the model's own start as well, and keep the better fit: both are followed
        until it is clear which one that is, and that one to the end. False is faster, but a poor mode suggested by few
        responses may then be passed on from snapshot to snapshot.
    restarts
        How many detections of the communities of a snapshot from other starts measure the confidence in their identity.
        Those that the detector made anyway are used first.
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
    check_bool("hindsight", hindsight)
    check_bool("compare_starts", compare_starts)
    check_integer("restarts", restarts, minimum=0)
    check_seed(seed)
    check_pipeline(network, model, detector)
    moments = None if times is None else as_list(times, "times")
    views = snapshot_views(graph, counts=counts, times=moments, every=every)
    tracker = CommunityTracker(graph, network, detector, restarts)
    fits = SnapshotFits(graph, model, hindsight=hindsight, compare_starts=compare_starts)
    seeds = np.random.SeedSequence(seed).spawn(len(views))
    with progress_bar("Communities over time", visible=progress, total=len(views), unit="snapshots") as bar:
        for view, view_seed in zip(views, seeds, strict=True):
            rng = np.random.default_rng(view_seed)
            if tracker.has_new_responses(view):
                tracker.add(view, fits.fit(view, rng), rng)
            else:
                tracker.repeat()
                fits.n_sweeps.append(0)
            bar.update()
    # A snapshot without responses gets the time of the first response.
    last_response = [max(len(view.responses) - 1, 0) for view in views]
    return tracker.track(
        times=np.asarray(graph.responses.time[last_response]),
        hindsight=hindsight,
        model=None if model is None else model.name,
        sweeps=tuple(fits.n_sweeps),
        **({} if counts is not None else {"moments": _moments(graph, snapshot_ends(graph, views, moments, every))}),
    )


def snapshot_ends(
    graph: CrowdGraph, views: list[CrowdGraph], moments: list[Moment] | None, every: Length | None
) -> Array:
    """Return when snapshots were taken, in ticks: at these moments, at regular times, or at their last responses."""
    clock, times = graph.responses.clock, graph.responses.time
    if moments is not None:
        return np.array([clock.tick(moment, times) for moment in moments])
    if every is not None:
        length = length_in_ticks("every", every, clock, times)
        return np.asarray(ticks(times)[0] + length * np.arange(1, len(views) + 1))
    return np.asarray(ticks(times)[[max(len(view.responses) - 1, 0) for view in views]])


def _moments(graph: CrowdGraph, ends: Array) -> tuple[Any, ...]:
    """Return ticks as times of the graph; those between two of its ticks as the earlier one."""
    clock, times = graph.responses.clock, graph.responses.time
    if times.dtype.kind != "M":
        return tuple(ends.tolist())
    return tuple(clock.to_python(ends.astype(np.int64).view(times.dtype)))


def check_pipeline(network: object, model: object, detector: object) -> None:
    """Raise unless these can build a network, fit a model and detect communities."""
    check_network_and_model(network, model)
    if not isinstance(detector, Detector):
        raise ParameterError(f"detector= takes a detector, such as BayesianNMF(); got {detector!r}.")


def check_network_and_model(network: object, model: object) -> None:
    """Raise unless these can build a network and fit a model."""
    if not callable(network):
        raise ParameterError(
            "network= takes a function that builds a network from a graph, such as networks.pi_similarity; got "
            f"{network!r}."
        )
    if model is not None and not isinstance(model, Model):
        raise ParameterError(f"model= takes a model, such as IBCC(); got {model!r}.")


def snapshot_views(
    graph: CrowdGraph,
    *,
    counts: Iterable[int] | None = None,
    times: Iterable[Moment] | None = None,
    every: Length | None = None,
) -> list[CrowdGraph]:
    """Return the views of the past that snapshots are taken of."""
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Snapshots are taken of a CrowdGraph; got {with_article(type(graph))}.")
    if not len(graph.responses):
        raise ParameterError("The graph has no responses, so there are no snapshots to take.")
    if sum(choice is not None for choice in (counts, times, every)) != 1:
        raise ParameterError("Say when to take snapshots by one of counts=[...], times=[...] and every=....")
    views = list(graph.snapshots(counts=counts, times=times, every=every))
    if not views:
        raise ParameterError("There is no snapshot to take; name at least one of counts=[...] or times=[...].")
    n_responses = [len(view.responses) for view in views]
    if counts is not None and len(set(n_responses)) < len(n_responses):
        raise ParameterError("counts= names the same number of responses twice; each snapshot must have more.")
    return views


class SnapshotFits:
    """Fits of growing snapshots, each started from the one before; or one fit, read at their ends."""

    def __init__(self, graph: CrowdGraph, model: Model | None, *, hindsight: bool, compare_starts: bool) -> None:
        self.n_sweeps: list[int] = []
        self._graph, self._model = graph, model
        self._hindsight, self._compare_starts = hindsight, compare_starts
        self._latest: ModelFit | None = None

    def fit(self, view: CrowdGraph, rng: np.random.Generator) -> ModelFit | None:
        """Fit a snapshot; None without a model or without answers."""
        if self._model is None or not len(view.answers):
            self.n_sweeps.append(0)
            return None
        if self._hindsight:
            return self._read(view, rng)
        # Drawn in any case, so that the random numbers that follow are the same.
        seed = child_seed(rng)
        if self._latest is None:
            self._latest = self._model.fit(view, seed=seed)
            self.n_sweeps.append(self._latest.n_iter)
            return self._latest
        if self._compare_starts:
            self._latest, n_sweeps = self._model._fit_better(view, start=self._latest, seed=seed)
        else:
            self._latest = self._model._refit(view, start=self._latest, seed=seed)
            n_sweeps = self._latest.n_iter
        self.n_sweeps.append(n_sweeps)
        return self._latest

    def _read(self, view: CrowdGraph, rng: np.random.Generator) -> ModelFit:
        """Return the one fit of all responses, with the confusion that volunteers had at the end of the snapshot."""
        n_sweeps = 0
        if self._latest is None:
            self._latest = self._model.fit(self._graph, seed=child_seed(rng))  # type: ignore[union-attr]
            n_sweeps = self._latest.n_iter
        self.n_sweeps.append(n_sweeps)
        track = self._latest.confusion
        if track is None or track.inference == "static":
            return self._latest
        then = track._snapshot(view.volunteers.n_responses)
        static = ConfusionTrack.static(
            ids=then.ids, concentration=then.concentration, classes=then.classes, labels=then.labels
        )
        return replace(self._latest, confusion=static)


class TrackedSnapshot(NamedTuple):
    """The communities of a snapshot, the numbers of their columns, and the confidence in these numbers."""

    communities: Communities
    numbers: Array
    confidence: Array
    n_responses: int
    reason: str = ""


@dataclass
class CommunityTracker:
    """Detects the communities of one snapshot after another and numbers them.

    `profiles` holds the profile of every community there ever was, as it was seen last, in the order of their numbers;
    `last` the last network, with the number of its snapshot.
    """

    graph: CrowdGraph
    network: MakeNetwork
    detector: Detector
    restarts: int
    method: str = ""
    snapshots: list[TrackedSnapshot] = field(default_factory=list)
    profiles: list[CommunityProfile] = field(default_factory=list)
    apparent: list[tuple[int, int, int]] = field(default_factory=list)
    last: tuple[VolunteerNetwork, int] | None = None

    def add(self, view: CrowdGraph, fit: ModelFit | None, rng: np.random.Generator) -> None:
        """Detect the communities of a snapshot and match them with those seen before."""
        n_responses = len(view.responses)
        network, reason = self._build_network(view, fit)
        if network is None:
            nobody = Communities(
                ids=np.zeros(0, object), participation=np.zeros((0, 0)), modularity=0.0, method=self.detector.name
            )
            self.snapshots.append(TrackedSnapshot(nobody, np.zeros(0, np.int64), np.zeros(0), n_responses, reason))
            return
        self.method = self.method or network.method
        communities, others = self._detect(network, rng)
        quick = self.detector._with_settings_of(communities)
        # That everybody is in one community is the verdict of the evidence, which restarts do not repeat.
        n_restarts = self.restarts if len(communities) > 1 else 0
        restarts = list(others[:n_restarts])
        restarts += [quick.detect(network, seed=child_seed(rng)) for _ in range(n_restarts - len(restarts))]
        confusion = None if fit is None or fit.confusion is None else fit.confusion.latest()
        communities, *restarts = (
            one if one.confusion is not None else replace(one, confusion=confusion) for one in (communities, *restarts)
        )
        volunteers = self.graph.volunteers.table
        profiles = community_profiles(communities, volunteers)
        matching = match(
            self.profiles, profiles, restarts=[community_profiles(other, volunteers) for other in restarts]
        )
        numbers = np.array(matching.previous)
        is_new = numbers < 0
        numbers[is_new] = len(self.profiles) + np.arange(np.count_nonzero(is_new))
        self.profiles += [profiles[k] for k in np.flatnonzero(is_new)]
        for number, profile in zip(numbers, profiles, strict=True):
            self.profiles[number] = profile
        self.snapshots.append(TrackedSnapshot(communities, numbers, matching.confidence, n_responses))
        self._find_apparent(network, rng)

    def _detect(
        self, network: VolunteerNetwork, rng: np.random.Generator
    ) -> tuple[Communities, tuple[Communities, ...]]:
        """Detect communities, also from other starts.

        Communities of the snapshot before are kept though evidence fails at this one.
        """
        last = self._last_snapshot()
        previous = None if last is None else last.communities
        communities, candidate, others = self.detector._detect_snapshot(network, previous, seed=child_seed(rng))
        evidence = candidate.evidence
        if candidate is communities or evidence is None or not self._is_continued_by(candidate):
            return communities, others
        return replace(candidate, evidence=replace(evidence, structured=True, persists=True)), others

    def _is_continued_by(self, candidate: Communities) -> bool:
        """Return whether communities are those of the last snapshot, which had evidence for them."""
        from sklearn.metrics import adjusted_rand_score

        last = self._last_snapshot()
        if last is None or (last.communities.evidence is not None and not last.communities.evidence.structured):
            return False
        before, after = (self._assignment(one, np.arange(len(one))) for one in (last.communities, candidate))
        both = (before >= 0) & (after >= 0)
        return bool(both.any()) and adjusted_rand_score(before[both], after[both]) >= MIN_CONTINUITY

    def _find_apparent(self, network: VolunteerNetwork, rng: np.random.Generator) -> None:
        """Note which splits and mergers since the last snapshot are only apparent."""
        before, self.last = self.last, (network, len(self.snapshots) - 1)
        if before is None:
            return
        earlier, index = before
        rows = np.stack(
            [self._assignment(self.snapshots[one].communities, self.snapshots[one].numbers) for one in (index, -1)]
        )
        for event in find_events(rows, len(self.profiles)):
            if event.event == "split":
                came = rows[0] == event.other
                parts = came & (rows[1] == event.community), came & (rows[1] != event.community)
            elif event.event == "merged":
                stayed = rows[1] == event.other
                parts = stayed & (rows[0] == event.community), stayed & (rows[0] == event.other)
            else:
                continue
            groups = self.graph.volunteers.ids[parts[0]], self.graph.volunteers.ids[parts[1]]
            apart, together = (earlier, network) if event.event == "merged" else (network, earlier)
            if not Separation.of(apart, groups, rng).is_gone_in(Separation.of(together, groups, rng)):
                self.apparent.append((len(self.snapshots) - 1, event.community, event.other))

    def _last_snapshot(self) -> TrackedSnapshot | None:
        """Return the last snapshot at which somebody has a community."""
        return None if self.last is None else self.snapshots[self.last[1]]

    def _assignment(self, communities: Communities, numbers: Array) -> Array:
        """Return the number of each volunteer's community, of shape (V,); -1 for none."""
        assignment = np.full(len(self.graph.volunteers), -1)
        assigned = communities.assignment >= 0
        codes = self.graph.volunteers.codes(communities.ids[assigned])
        assignment[codes] = numbers[communities.assignment[assigned]]
        return assignment

    def has_new_responses(self, view: CrowdGraph) -> bool:
        """Whether there are responses that the last snapshot did not have."""
        return not self.snapshots or self.snapshots[-1].n_responses != len(view.responses)

    def repeat(self) -> None:
        """Repeat the last snapshot, because nothing has changed."""
        self.snapshots.append(self.snapshots[-1])

    def track(self, *, times: Array, **params: Any) -> CommunityTrack:
        """Return all snapshots, with a column for every community there ever was."""
        n_communities = len(self.profiles)
        confidence = np.full((len(self.snapshots), n_communities), np.nan)
        for index, snapshot in enumerate(self.snapshots):
            confidence[index, snapshot.numbers] = snapshot.confidence
        return CommunityTrack(
            ids=self.graph.volunteers.ids,
            times=times,
            counts=np.array([snapshot.n_responses for snapshot in self.snapshots], dtype=np.int64),
            snapshots=tuple(_renumbered(snapshot, n_communities) for snapshot in self.snapshots),
            clock=self.graph.responses.clock,
            method=self.method or "communities",
            params={**params, "detector": self.detector.name},
            confidence=confidence,
            reasons=tuple(snapshot.reason for snapshot in self.snapshots),
            apparent=tuple(self.apparent),
        )

    def _build_network(self, view: CrowdGraph, fit: ModelFit | None) -> tuple[VolunteerNetwork | None, str]:
        """Return the network of a snapshot, or the reason why there is none."""
        if not len(view.answers):
            return None, "there are no answers yet"
        try:
            network = self.network(view if fit is None else view.annotate(fit))
        except TooFewError as error:
            return None, str(error)
        if not isinstance(network, VolunteerNetwork):
            raise ParameterError(
                f"network= must build a VolunteerNetwork from a graph, as networks.pi_similarity does; got a "
                f"{type(network).__name__} from it."
            )
        if not network.n_edges:
            return None, f"no two of {len(network):,} volunteers are linked"
        return network, ""


def _renumbered(snapshot: TrackedSnapshot, n_communities: int) -> Communities:
    """Return the communities of a snapshot, each in the column of its number."""
    participation = np.zeros((len(snapshot.communities.ids), n_communities))
    participation[:, snapshot.numbers] = snapshot.communities.participation
    return replace(snapshot.communities, participation=participation, relevance=None)
