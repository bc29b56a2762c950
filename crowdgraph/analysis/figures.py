"""The pictures of an analysis: those that what was found allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from crowdgraph.analysis.tables import latest
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork

__all__ = ["draw"]

# With more communities the panels are too small to read.
MOST_PANELS = 8


def draw(graph: CrowdGraph, folder: Path) -> None:
    """Draw every picture that the graph's annotations allow, as SVG and PNG."""
    import matplotlib as mpl

    folder.mkdir()
    # Without these two the same picture would be another file each time.
    with mpl.rc_context({"svg.hashsalt": "crowdgraph"}):
        for name, picture in _pictures(graph):
            figure = picture().figure
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"{name}.png", dpi=150)


def _pictures(graph: CrowdGraph) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of pictures, and what draws each."""
    from crowdgraph.plot import activity, flow, prototypes, responses_over_time, skill_over_time

    if len(graph.responses):
        yield "activity", lambda: activity(graph)
    if graph.responses.clock.kind != "order" and len(graph.responses):
        yield "responses_over_time", lambda: responses_over_time(graph)
    yield from _of_networks(graph)
    groups, track, fit = (latest(graph, kind) for kind in (Communities, CommunityTrack, ModelFit))
    behaving = graph.annotations.get("communities")
    if isinstance(behaving, Communities) and behaving.confusion is not None and len(groups) <= MOST_PANELS:
        yield "communities", lambda: prototypes(behaving, mean=True)[0]
    if track is not None:
        yield "communities_over_time", lambda: flow(track)
    if fit is not None and fit.confusion is not None and fit.confusion.inference != "static":
        right = _right(fit)
        if right is not None or set(fit.classes) <= set(fit.confusion.labels):
            shares = fit.class_probs
            yield "skill_over_time", lambda: skill_over_time(fit.confusion, class_probs=shares, correct=right)


def _of_networks(graph: CrowdGraph) -> Iterator[tuple[str, Callable[[], Any]]]:
    from crowdgraph.plot import network as drawn

    for name, groups in (("pi_similarity", "communities"), ("task_cooccurrence", "task communities")):
        network, found = graph.annotations.get(name), graph.annotations.get(groups)
        if isinstance(network, VolunteerNetwork):
            coloured = found if isinstance(found, Communities) else None
            yield f"network_{name}", partial(drawn, network, coloured)


def _right(fit: ModelFit) -> dict[Any, list[Any]] | None:
    """For each class the labels that vote for it, where the model was told."""
    votes = fit.params.get("votes")
    if not votes:
        return None
    return {name: [label for label, target in votes.items() if target == name] for name in fit.classes}
