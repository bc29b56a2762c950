"""Influence of a batch of items on the communities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.fit import drop_responses
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.dynamics.over_time import CommunityTracker, MakeNetwork, SnapshotFits, check_pipeline
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article
from crowdgraph.models.base import Model
from crowdgraph.models.dynibcc import DynIBCC
from crowdgraph.networks.pi_similarity import pi_similarity

__all__ = ["StructureInfluence", "influence"]


@dataclass(frozen=True, eq=False, kw_only=True)
class StructureInfluence(ReadOnlyArrays):
    """The difference that the responses to some items make to the communities.

    Attributes
    ----------
    track
        The communities without these responses, and with them: two snapshots.
    n_responses
        The number of these responses.
    change
        The share of participation that they moved, from 0 to 1, on average over volunteers; all of it for volunteers
        who have communities only with these responses, or only without them.
    controls
        The same for random batches of as many other items, of shape (B,): what any such batch does.
    """

    track: CommunityTrack
    n_responses: int
    change: float
    controls: Array

    @property
    def p_value(self) -> float:
        """The share of batches, counting this one, that move as much; NaN without controls."""
        if not len(self.controls):
            return float("nan")
        return float((1 + np.count_nonzero(self.controls >= self.change)) / (1 + len(self.controls)))

    def __repr__(self) -> str:
        before, after = self.track.n_communities
        others = f" (p = {self.p_value:.2g} among other items)" if len(self.controls) else ""
        return (
            f"StructureInfluence of {self.n_responses:,} responses: {before} communities without them, {after} with "
            f"them; {self.change:.1%} of participation moved{others}"
        )


def influence(
    graph: CrowdGraph,
    items: Iterable[Hashable],
    *,
    network: MakeNetwork = pi_similarity,
    model: Model | None = DynIBCC(),  # noqa: B008 - models cannot be changed
    detector: Detector = BayesianNMF(),  # noqa: B008 - nor can detectors
    controls: int = 0,
    seed: int | None = None,
    progress: bool = False,
) -> StructureInfluence:
    """Measure what the responses to some items did to the communities.

    It detects the communities without these responses, and with them.

    Parameters
    ----------
    graph
        The graph.
    items
        The items.
    network, model, detector
        As for `over_time`.
    controls
        How many random batches of as many other items to compare with; each takes two detections.
    seed
        The same seed gives the same result.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> cg.dynamics.influence(
    ...     graph, graph.items.ids[:100], network=cg.networks.task_cooccurrence, model=None, seed=0
    ... )
    StructureInfluence of 832 responses: 3 communities without them, 3 with them; 0.0% of participation moved
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Influence is measured in a CrowdGraph; got {with_article(type(graph))}.")
    check_integer("controls", controls, minimum=0)
    check_seed(seed)
    check_pipeline(network, model, detector)
    batch = np.unique(graph.items.codes(list(items)))
    if not len(batch):
        raise ParameterError("items= names no item; expected at least one.")
    rng = np.random.default_rng(seed)
    others = np.setdiff1d(graph.responses.item, batch)
    if controls and len(others) < len(batch):
        raise ParameterError(
            f"items= names {len(batch):,} items, and only {len(others):,} others were answered; controls= needs as "
            "many others to compare with. Name fewer items, or leave out controls."
        )
    batches = [batch, *(rng.choice(others, len(batch), replace=False) for _ in range(controls))]
    common_seed = child_seed(rng)
    tracks = []
    with progress_bar("Influence", visible=progress, total=len(batches), unit="batches") as bar:
        for codes in batches:
            tracks.append(_track_without_and_with(graph, codes, network, model, detector, common_seed))
            bar.update()
    changes = [_moved_share(track) for track in tracks]
    return StructureInfluence(
        track=tracks[0],
        n_responses=int(np.diff(tracks[0].counts)[0]),
        change=changes[0],
        controls=lock(np.array(changes[1:], dtype=np.float64)),
    )


def _moved_share(track: CommunityTrack) -> float:
    """Return the share of participation that moved, of volunteers who have communities in either snapshot."""
    before, after = track.participation
    either = (track.assignment >= 0).any(axis=0)
    return float(1 - np.minimum(before, after).sum(axis=1)[either].mean())


def _track_without_and_with(
    graph: CrowdGraph, items: Array, network: MakeNetwork, model: Model | None, detector: Detector, seed: int
) -> CommunityTrack:
    """Track the communities without the responses to some items (codes) and with them, from the same random numbers."""
    dropped = np.isin(graph.responses.item, items)
    if not dropped.any():
        raise ParameterError("Nobody answered these items, so they cannot have changed anything.")
    tracker = CommunityTracker(graph, network, detector, restarts=0)
    fits = SnapshotFits(graph, model, hindsight=False, compare_starts=True)
    for view in (drop_responses(graph, dropped, drop_gold=items), graph.replace()):
        rng = np.random.default_rng(seed)
        tracker.add(view, fits.fit(view, rng), rng)
    if reasons := [snapshot.reason for snapshot in tracker.snapshots if snapshot.reason]:
        raise ParameterError(f"There are no communities to compare: {reasons[0]}")
    last = graph.responses.time[-1:]
    return tracker.track(times=np.concatenate([last, last]), model=None if model is None else model.name)
