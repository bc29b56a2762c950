"""Leiden: hard communities of high modularity, by igraph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdgraph.communities.base import Detection, Detector
from crowdgraph.core._parameters import integer, positive
from crowdgraph.core._random import igraph_seed
from crowdgraph.core.network import VolunteerNetwork

__all__ = ["Leiden"]


@dataclass(frozen=True, kw_only=True)
class Leiden(Detector):
    """Hard communities of high modularity, by the algorithm of Traag, Waltman and van Eck (2019) in igraph.

    Every volunteer belongs to one community. Leiden is fast and finds hard partitions well. It cannot express that
    somebody belongs to two communities, and it finds communities in networks that have none.

    Parameters
    ----------
    resolution
        Larger values give more and smaller communities; 1 is modularity.
    restarts
        How many times to start; the partition with the highest modularity wins.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> cg.Leiden().detect(cg.networks.task_cooccurrence(graph), seed=0)
    Communities(leiden: 3 of sizes 20, 20, 20; modularity 0.612)
    """

    name: ClassVar[str] = "leiden"

    resolution: float = positive(1.0)
    restarts: int = integer(1)

    def _detect(self, network: VolunteerNetwork, *, seed: int | None, progress: bool) -> Detection:  # noqa: ARG002 - quick
        graph = network.to_igraph()
        with igraph_seed(seed):
            partitions = [
                graph.community_leiden(
                    objective_function="modularity", weights="weight", resolution=self.resolution, n_iterations=-1
                )
                for _ in range(self.restarts)
            ]
        best = max(partitions, key=lambda partition: partition.quality)
        return Detection(np.eye(len(best))[best.membership])
