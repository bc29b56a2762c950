"""What a batch of tasks did to the communities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer, check_seed, child_seed, progress_bar
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.fit import drop_responses
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.dynamics.over_time import CommunityTracker, MakeNetwork, SnapshotFits, check_pipeline
from crowdgraph.errors import ParameterError
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
        How many there are.
    change
        The share of everybody's participation that they moved, from 0 to 1; all of it for those who have communities
        with these responses only, or without them only.
    controls
        The same for other items, as many, drawn at random, of shape (B,): what any such batch does.
    """

    track: CommunityTrack
    n_responses: int
    change: float
    controls: Array

    @property
    def p_value(self) -> float:
        """How often other items move as much; NaN without controls."""
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
    """Tell what the responses to some items did to the communities: find them without these responses, and with them.

    Parameters
    ----------
    graph
        The graph.
    items
        The items.
    network, model, detector
        As for `over_time`.
    controls
        How many other batches of as many items, drawn at random, to compare with; each takes two detections.
    seed
        The same seed gives the same answer.
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
        raise ParameterError(f"Influence is that of items in a CrowdGraph; got a {type(graph).__name__}.")
    check_integer("controls", controls, minimum=0)
    check_seed(seed)
    check_pipeline(network, model, detector)
    chosen = np.unique(graph.items.codes(list(items)))
    if not len(chosen):
        raise ParameterError("items= names no item; expected at least one.")
    rng = np.random.default_rng(seed)
    others = np.setdiff1d(graph.responses.item, chosen)
    if controls and len(others) < len(chosen):
        raise ParameterError(
            f"items= names {len(chosen):,} items, and {len(others):,} others were answered; with controls= there must "
            "be as many others to compare with."
        )
    batches = [chosen, *(rng.choice(others, len(chosen), replace=False) for _ in range(controls))]
    drawn = child_seed(rng)
    tracks = []
    with progress_bar("Influence", visible=progress, total=len(batches), unit="batches") as bar:
        for batch in batches:
            tracks.append(_compared(graph, batch, network, model, detector, drawn))
            bar.update()
    changes = [_moved(track) for track in tracks]
    return StructureInfluence(
        track=tracks[0],
        n_responses=int(np.diff(tracks[0].counts)[0]),
        change=changes[0],
        controls=lock(np.array(changes[1:], dtype=np.float64)),
    )


def _moved(track: CommunityTrack) -> float:
    """The share of participation that is elsewhere in the second snapshot, of those who have communities in either."""
    before, after = track.participations
    either = (track.assignment >= 0).any(axis=0)
    return float(1 - np.minimum(before, after).sum(axis=1)[either].mean())


def _compared(
    graph: CrowdGraph, items: Array, network: MakeNetwork, model: Model | None, detector: Detector, seed: int
) -> CommunityTrack:
    """The communities without the responses to some items and with them, both from the same random numbers."""
    gone = np.isin(graph.responses.item, items)
    if not gone.any():
        raise ParameterError("Nobody answered these items, so there is nothing that they could have done.")
    following = CommunityTracker(graph, network, detector, restarts=0)
    fits = SnapshotFits(graph, model, hindsight=False, compare_starts=True)
    for view in (drop_responses(graph, gone, drop_gold=items), graph.replace()):
        rng = np.random.default_rng(seed)
        following.add(view, fits.of(view, rng), rng)
    if reasons := [reason for reason in (step.reason for step in following.steps) if reason]:
        raise ParameterError(f"There are no communities to compare: {reasons[0]}")
    last = graph.responses.time[-1:]
    return following.track(times=np.concatenate([last, last]), model=None if model is None else model.name)
