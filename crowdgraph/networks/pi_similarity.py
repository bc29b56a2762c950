"""Who behaves alike: volunteers linked by how similar their confusion matrices are."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdgraph.core.clock import Moment
from crowdgraph.core.columns import sealed
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.settings import check_integer
from crowdgraph.errors import NotAnnotatedError, ParameterError, check_choice
from crowdgraph.networks.behaviour import Behaviour
from crowdgraph.networks.volunteers import experienced

__all__ = ["pi_similarity"]


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

    The network knows what a crowd without communities would look like (`VolunteerNetwork.null`): one Dirichlet for each
    true class, the one that makes the answers of all volunteers most probable, from which everybody's row of
    confusion is drawn; then as many answers as the volunteer gave for that class are drawn from the row, the model's
    prior is added, and volunteers are compared as above. Shuffled weights would not do: they call a single
    kind of volunteers, who differ by degrees, a crowd of communities. `VolunteerNetwork.redrawn` draws everybody's
    confusion from its posterior.

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
    check_choice("distance", distance, ("bhattacharyya", "hellinger"))
    chosen = experienced(graph, min_responses, at)
    if neighbours is not None:
        check_integer("neighbours", neighbours)
    track, prior = _believed(graph, fit)
    latest = track.latest() if at is None else track.at(at)
    ids = graph.volunteers.ids[chosen.codes]
    concentration = latest.concentration[chosen.codes]
    origin = Behaviour(
        confusion=ConfusionSnapshot(ids=ids, concentration=concentration, classes=track.classes, labels=track.labels),
        prior=sealed(np.zeros_like(concentration) if prior is None else prior.of_all(ids.tolist())),
        distance=distance,
        neighbours=None if neighbours is None else int(neighbours),
    )
    return VolunteerNetwork(
        ids=ids,
        weights=origin.weights(),
        method="pi_similarity",
        params={
            "at": at,
            "min_responses": min_responses,
            "neighbours": neighbours,
            "distance": distance,
        },
        support=chosen.n_answers,
        origin=origin,
    )


def _believed(
    graph: CrowdGraph, fit: ModelFit | ConfusionTrack | str | None
) -> tuple[ConfusionTrack, CrowdPrior | None]:
    """The confusion of a fit or annotation, and what was believed before it, where that is known."""
    track = graph.confusion(fit) if fit is None or isinstance(fit, str) else fit
    fits = [fit, *graph.annotations.values()]
    if isinstance(track, ModelFit):
        if track.confusion is None:
            raise NotAnnotatedError(f"The model {track.model!r} has no confusion matrices to compare; use IBCC.")
        track = track.confusion
    if not isinstance(track, ConfusionTrack):
        raise ParameterError(
            f"fit= takes a fit, its confusion, or the name of an annotation; got a {type(track).__name__}."
        )
    track.check_nodes(graph)
    made = (one for one in fits if isinstance(one, ModelFit) and one.confusion is track)
    return track, next((one.prior for one in made), None)
