"""Leiden: hard communities by igraph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.communities.base import Detection, Detector
from crowdgraph.core._parameters import check_integer, check_positive, igraph_seed
from crowdgraph.core.network import VolunteerNetwork

__all__ = ["Leiden"]


@dataclass(frozen=True, kw_only=True)
class Leiden(Detector):
    """Hard communities of high modularity, by the algorithm of Traag, Waltman and van Eck (2019) in igraph.

    Every volunteer belongs to one community. It is fast and finds hard partitions well; it cannot tell that somebody
    belongs to two, and it finds communities in networks without any.

    Parameters
    ----------
    resolution
        Larger values give more and smaller communities; 1 is modularity.
    restarts
        How many times to start; the highest modularity is kept.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> found = cg.Leiden().detect(cg.networks.task_cooccurrence(graph), seed=0)
    >>> found
    Communities(leiden: 3 of sizes 20, 20, 20; modularity 0.612)
    """

    name: ClassVar[str] = "leiden"

    resolution: float = 1.0
    restarts: int = 1

    def __post_init__(self) -> None:
        check_positive("resolution", self.resolution)
        check_integer("restarts", self.restarts)

    def _detect(self, network: VolunteerNetwork, *, seed: int | None, progress: bool) -> Detection:  # noqa: ARG002 - quick
        graph = network.to_igraph()
        with igraph_seed(seed):
            found = [
                graph.community_leiden(
                    objective_function="modularity", weights="weight", resolution=self.resolution, n_iterations=-1
                )
                for _ in range(self.restarts)
            ]
        best = max(found, key=lambda clustering: clustering.quality)
        return Detection(np.eye(len(best))[best.membership])
