"""What annotations say about single responses: the confusion under which each was given, and how surprising it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.soft_answers import chances_by_share
from crowdgraph.errors import NotAnnotatedError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["fit_with_confusion", "response_confusion", "response_surprise"]


def fit_with_confusion(graph: CrowdGraph) -> ModelFit | None:
    """Return the fit that ``graph.confusion()`` belongs to, or None if it belongs to none.

    Confusion and surprise of a response are then of the same fit. Confusion that was annotated alone, later than any
    fit that has some, belongs to none: there are no class probabilities that go with it.
    """
    for result in reversed(list(graph.annotations.values())):
        if isinstance(result, ConfusionTrack):
            return None
        if isinstance(result, ModelFit) and result.confusion is not None:
            return result
    return None


def response_confusion(graph: CrowdGraph, track: ConfusionTrack) -> Array:
    """Return the expected confusion of the volunteer at the moment of each response, of shape (R, J, L).

    It is what the track believes about that moment: for a dynamic model the state after the response, as in
    ``track.of(volunteer).at(time)``, for a static model the same matrix for all of a volunteer's responses. The
    response itself, and with a smoothed or static track later responses, are part of what the track knows.

    Parameters
    ----------
    graph
        The graph whose responses are meant.
    track
        A confusion track of this graph.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> response_confusion(graph, cg.IBCC().fit(graph).confusion).shape
    (5000, 2, 2)
    """
    track.check_matches(graph)
    if track.inference == "static":
        initial = track.initial / track.initial.sum(axis=-1, keepdims=True)
        return lock(initial[graph.responses.volunteer])
    confusion = np.empty(track.concentration.shape)
    confusion[graph.responses.by_volunteer.order] = track.mean
    return lock(confusion)


def response_surprise(graph: CrowdGraph, fit: ModelFit) -> Array:
    r"""Return how surprising each response was in nats, of shape (R,); NaN for responses without a label.

    It is :math:`-\log \sum_j p(t_i = j) E[\pi_{j, label}]`, of a soft answer with :math:`\prod_l E[\pi_{jl}]^{q_l}` in
    place of :math:`E[\pi_{j, label}]`, with the fit's class probabilities of the item and the
    confusion of `response_confusion`. The fit uses everything that it knows, the response itself and what came later
    included. So this says how well a response agrees with the fit; it is not a prediction from the past alone, and its
    mean is too small to serve as a score of the model.

    Parameters
    ----------
    graph
        The graph whose responses are meant.
    fit
        A fit of this graph with confusion matrices.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> surprise = response_surprise(graph, cg.IBCC().fit(graph))
    >>> surprise.shape, bool((surprise > 0).all())
    ((5000,), True)
    """
    fit.check_matches(graph)
    if fit.confusion is None:
        raise NotAnnotatedError(
            f"The model {fit.model!r} has no confusion matrices, so it cannot say how surprising a response was.",
            hint="Use a model that has some, such as cg.IBCC() or cg.DynIBCC().",
        )
    responses = graph.responses
    confusion = response_confusion(graph, fit.confusion)

    def chance_of(label: Array) -> Array:
        return np.take_along_axis(confusion, label[:, None, None].astype(np.intp), axis=2)[:, :, 0]

    chances = chances_by_share(chance_of, responses.label, graph.label_probs)
    chance = np.einsum("rj,rj->r", fit.item_probs[responses.item], chances)
    # Rounding can lift the sum a little above one.
    surprise = np.abs(np.log(np.minimum(chance, 1.0)))
    return lock(np.where(responses.label < 0, np.nan, surprise))
