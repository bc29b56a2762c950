"""The network of volunteers who behave alike, by several processes: each finds the neighbours of its own volunteers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from crowdgraph.core.clock import Moment
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.distributed._ranks import TIMEOUT, TorchRanks, joined
from crowdgraph.kernels.similarity import nearest_neighbours
from crowdgraph.networks._volunteers import Window
from crowdgraph.networks.pi_similarity import ConfusionModel, Distance, links_between, similarity_network

__all__ = ["pi_similarity"]


def pi_similarity(
    graph: CrowdGraph,
    *,
    neighbours: int,
    fit: ModelFit | ConfusionTrack | str | None = None,
    at: Moment | None = None,
    window: Window | None = None,
    min_responses: int = 1,
    distance: Distance = "bhattacharyya",
    timeout: float = TIMEOUT,
) -> VolunteerNetwork:
    """Link volunteers to those whose confusion is most similar, together with the processes that ``torchrun`` started.

    Every rank calls this function with the same graph, such as `crowdgraph.load` opens from the results of `fit`. Each
    compares its own share of the volunteers with all others, and all ranks return the same network, which is that of
    `crowdgraph.networks.pi_similarity`.

    Parameters
    ----------
    graph, neighbours, fit, at, window, min_responses, distance
        As for `crowdgraph.networks.pi_similarity`.
    timeout
        After how many seconds without a word from a rank the others give up.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> network, expected = (by.pi_similarity(graph, neighbours=3) for by in (cg.distributed, cg.networks))
    >>> bool(abs(network.weights - expected.weights).max() < 1e-12)
    True
    """
    with joined(timeout=timeout) as ranks:
        return similarity_network(
            graph,
            fit=fit,
            at=at,
            window=window,
            min_responses=min_responses,
            neighbours=neighbours,
            distance=distance,
            weights_of=lambda model: shared_weights(model, ranks),
        )


def shared_weights(model: ConfusionModel, ranks: TorchRanks) -> Any:
    """Return the similarities of each volunteer with the nearest, to which every rank adds those of its volunteers."""
    n_volunteers = len(model.confusion)
    n_neighbours = min(model.neighbours or n_volunteers, n_volunteers - 1)
    if n_neighbours < 1:
        return model.weights()
    bounds = [n_volunteers * number // ranks.size for number in range(ranks.size + 1)]
    own = range(bounds[ranks.rank], bounds[ranks.rank + 1])
    nearest = nearest_neighbours(
        torch.tensor(model.confusion.mean), n_neighbours=n_neighbours, distance=model.distance, of=own
    )
    parts = ranks.gather(tuple(part.numpy() for part in nearest))
    return links_between(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
