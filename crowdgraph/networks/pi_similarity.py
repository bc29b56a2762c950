"""Who behaves alike: volunteers linked by how similar their confusion matrices are."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from crowdgraph.core.clock import Moment
from crowdgraph.core.columns import Array, sealed
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.settings import check_whole
from crowdgraph.errors import NotAnnotatedError, ParameterError, one_of
from crowdgraph.networks.volunteers import experienced

__all__ = ["pi_similarity"]

# More volunteers than these make a matrix that few machines hold.
MOST_DENSE = 20_000


def pi_similarity(
    graph: CrowdGraph,
    *,
    fit: ModelFit | ConfusionTrack | str | None = None,
    at: Moment | None = None,
    min_responses: int = 1,
    neighbours: int | None = None,
    distance: Literal["bhattacharyya", "hellinger"] = "bhattacharyya",
) -> VolunteerNetwork:
    r"""Link volunteers by how similar their confusion matrices are.

    .. math:: V_{mn} = \exp\Big(-\sum_j d_j(m, n)\Big), \qquad
              d_j = 1 - \sum_l \sqrt{E[\pi^{(m)}_{jl}] \, E[\pi^{(n)}_{jl}]},

    which is 1 for volunteers who behave the same and :math:`e^{-J}` for those who never say the same.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    fit
        The fit, its confusion, or the name under which the graph carries it; the latest that has one if left out.
    at
        The moment at which confusion is read and responses are counted; after the last response if left out.
    min_responses
        Volunteers with fewer answers are left out.
    neighbours
        How many of the most similar others everybody is linked to; with all of them if left out. A link that one of
        two volunteers wants is made.
    distance
        ``"bhattacharyya"``, as above and in the paper (which calls it Hellinger's), or ``"hellinger"``, whose
        :math:`d_j` is the square root of that.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> cg.networks.pi_similarity(graph)
    VolunteerNetwork(pi_similarity: 20 volunteers, 190 edges, density 1, 0 isolated)
    """
    one_of("distance", distance, ("bhattacharyya", "hellinger"))
    chosen = experienced(graph, min_responses, at)
    snapshot = _snapshot(graph, fit, at)
    weights: Any
    if neighbours is None:
        weights = _dense(snapshot.mean[chosen], distance)
    else:
        check_whole("neighbours", neighbours)
        weights = _nearest(snapshot.mean[chosen], min(int(neighbours), len(chosen) - 1), distance)
    return VolunteerNetwork(
        ids=graph.volunteers.ids[chosen],
        weights=weights,
        method="pi_similarity",
        params={
            "at": at,
            "min_responses": min_responses,
            "neighbours": neighbours,
            "distance": distance,
        },
    )


def _snapshot(graph: CrowdGraph, fit: ModelFit | ConfusionTrack | str | None, at: Moment | None) -> ConfusionSnapshot:
    track = graph.confusion(fit) if fit is None or isinstance(fit, str) else fit
    if isinstance(track, ModelFit):
        if track.confusion is None:
            raise NotAnnotatedError(f"The model {track.model!r} has no confusion matrices to compare; use IBCC.")
        track = track.confusion
    if not isinstance(track, ConfusionTrack):
        raise ParameterError(
            f"fit= takes a fit, its confusion, or the name of an annotation; got a {type(track).__name__}."
        )
    track.check_nodes(graph)
    return track.latest() if at is None else track.at(at)


def _dense(confusion: Array, distance: Literal["bhattacharyya", "hellinger"]) -> Array:
    import torch

    from crowdgraph.kernels.similarity import similarities

    if len(confusion) > MOST_DENSE:
        raise ParameterError(
            f"All pairs of {len(confusion):,} volunteers are too many (they may be {MOST_DENSE:,}). Link each to the "
            "most similar ones with neighbours=50, or leave out newcomers with min_responses=10."
        )
    return sealed(similarities(torch.tensor(confusion), distance=distance).numpy())


def _nearest(confusion: Array, n_neighbours: int, distance: Literal["bhattacharyya", "hellinger"]) -> Any:
    import torch
    from scipy.sparse import csr_array

    from crowdgraph.kernels.similarity import nearest

    shape = (len(confusion), len(confusion))
    if n_neighbours < 1:
        return csr_array(shape)
    places, values = nearest(torch.tensor(confusion), n_neighbours=n_neighbours, distance=distance)
    starts = np.arange(len(confusion) + 1) * n_neighbours
    links = csr_array((values.numpy().ravel(), places.numpy().ravel(), starts), shape=shape)
    return links.maximum(links.T)
