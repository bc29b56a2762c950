"""The network of volunteers who behave alike: linked by the similarity of their confusion matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.clock import Moment
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork
from crowdgraph.core.result import finite_array
from crowdgraph.errors import NotAnnotatedError, ParameterError, check_choice
from crowdgraph.messages import Hint, with_article
from crowdgraph.networks._one_kind import OneKind, fit_one_kind, sample_answers
from crowdgraph.networks._volunteers import Window, experienced_volunteers, select_period

__all__ = ["pi_similarity"]

Distance = Literal["bhattacharyya", "hellinger"]

# The dense matrix of more volunteers than this exceeds the memory of most machines.
MAX_DENSE_VOLUNTEERS = 20_000
# The number of kinds of volunteers in crowds that are drawn to see whether kinds would be recognised.
N_KINDS = 4


def pi_similarity(
    graph: CrowdGraph,
    *,
    fit: ModelFit | ConfusionTrack | str | None = None,
    at: Moment | None = None,
    window: Window | None = None,
    min_responses: int = 1,
    neighbours: int | None = None,
    distance: Distance = "bhattacharyya",
) -> VolunteerNetwork:
    r"""Link volunteers by how similar their confusion matrices are.

    .. math:: V_{mn} = \exp\Big(-\sum_j d_j(m, n)\Big), \qquad
              d_j = 1 - \sum_l \sqrt{E[\pi^{(m)}_{jl}] \, E[\pi^{(n)}_{jl}]},

    which is 1 for volunteers who behave the same and :math:`e^{-J}` for those who never give the same label.

    The null model of the network (`VolunteerNetwork.null`) is a crowd without communities: volunteers of one kind, who
    differ by degrees. Their confusion matrices have a logistic-normal distribution with the mean and the covariance of
    this crowd, between labels and between classes, since who is good at one class is often good at another. From each
    matrix as many answers are drawn as the volunteer gave, the model's prior is added, and volunteers are compared as
    above. Shuffled weights would not do, nor would independent rows: they make degrees of skill look like communities.
    `VolunteerNetwork.resampled` draws everybody's confusion from its posterior.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    fit
        The fit, its confusion, or the name of an annotation; the latest that has confusion matrices if left out.
    at
        The moment at which confusion is read and up to which responses are counted, itself included; after the last
        response if left out. The confusion is what we now believe about then: the fit saw all responses, also later
        ones, and that of a model without change is the same at all times. For what could be known then, fit a model to
        ``graph.before(moment)``, annotate that graph and leave `at` out.
    window
        Count the responses of a period: a pair (start, stop), from `start` up to, but not including, `stop`. None
        leaves an end open. Confusion is read just before `stop`. Give `at` or `window`, not both.
    min_responses
        Volunteers with fewer answers are left out.
    neighbours
        Link everybody to this many most similar others; to all of them if left out. A link is kept if it is among the
        most similar ones of either volunteer.
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
    return similarity_network(
        graph,
        fit=fit,
        at=at,
        window=window,
        min_responses=min_responses,
        neighbours=neighbours,
        distance=distance,
        weights_of=lambda model: model.weights(),
    )


def similarity_network(
    graph: CrowdGraph,
    *,
    fit: ModelFit | ConfusionTrack | str | None,
    at: Moment | None,
    window: Window | None,
    min_responses: int,
    neighbours: int | None,
    distance: Distance,
    weights_of: Callable[[ConfusionModel], Any],
) -> VolunteerNetwork:
    """Return the network of `pi_similarity`, with weights that a function computes from its model."""
    check_choice("distance", distance, get_args(Distance))
    volunteers, n_answers = experienced_volunteers(select_period(graph, at, window).view, min_responses)
    if neighbours is not None:
        check_integer("neighbours", neighbours)
    track, owner = _confusion_and_fit(graph, fit)
    prior = None if owner is None else owner.prior
    ids = graph.volunteers.ids[volunteers]
    concentration = _comparable_concentration(graph, track, owner, at, window)[volunteers]
    model = ConfusionModel(
        confusion=ConfusionSnapshot(ids=ids, concentration=concentration, classes=track.classes, labels=track.labels),
        prior=lock(np.zeros_like(concentration) if prior is None else prior.of_all(ids.tolist())),
        distance=distance,
        neighbours=None if neighbours is None else int(neighbours),
    )
    return VolunteerNetwork(
        ids=ids,
        weights=weights_of(model),
        method="pi_similarity",
        params={
            "at": at,
            "window": window,
            "min_responses": min_responses,
            "neighbours": neighbours,
            "distance": distance,
        },
        support=n_answers,
        model=model,
    )


def _comparable_concentration(
    graph: CrowdGraph, track: ConfusionTrack, fit: ModelFit | None, at: Moment | None, window: Window | None
) -> Array:
    """Return the concentrations to compare, of shape (K, J, L).

    Those of a fit with the crowd's prior lie around each volunteer's own one-coin matrix, which is a likeness that the
    prior makes; here everybody's answers are added to the prior of newcomers instead.
    """
    if track.inference == "static" and fit is not None and fit.prior is not None and "crowd_prior" in fit.diagnostics:
        # All answers count, also where the graph is a view of an earlier time: the fit knows of no change.
        fitted = graph if fit.source is None else fit.source.graph
        return np.asarray(fit.prior.shared + expected_counts(fitted, fit.item_probs))
    stop = None if window is None else window[1]
    if stop is not None:
        return np.asarray(track.before(stop).concentration)
    return np.asarray((track.latest() if at is None else track.at(at)).concentration)


def _confusion_and_fit(
    graph: CrowdGraph, fit: ModelFit | ConfusionTrack | str | None
) -> tuple[ConfusionTrack, ModelFit | None]:
    """Return the confusion of a fit or annotation, and the fit that it belongs to, if there is one."""
    track = graph.confusion(fit) if fit is None or isinstance(fit, str) else fit
    fits = [fit, *graph.annotations.values()]
    if isinstance(track, ModelFit):
        if track.confusion is None:
            raise NotAnnotatedError(f"The model {track.model!r} has no confusion matrices to compare; use IBCC.")
        track = track.confusion
    if not isinstance(track, ConfusionTrack):
        raise ParameterError(
            f"fit= takes a fit, its confusion, or the name of an annotation; got {with_article(type(track))}."
        )
    track.check_nodes(graph)
    owners = (one for one in fits if isinstance(one, ModelFit) and one.confusion is track)
    return track, next(owners, None)


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionModel(ReadOnlyArrays, NetworkModel):
    """Confusion matrices, which link the volunteers whose matrices are similar.

    Attributes
    ----------
    confusion
        The confusion matrices.
    prior
        The part of their concentrations that is the prior, of shape (V, J, L); the rest is evidence.
    distance, neighbours
        The distance of two matrices, and to how many others each volunteer is linked; None for all.
    """

    confusion: ConfusionSnapshot
    prior: Array
    distance: Distance
    neighbours: int | None

    def __post_init__(self) -> None:
        check_choice("distance", self.distance, get_args(Distance))
        if self.neighbours is not None:
            check_integer("neighbours", self.neighbours)
        finite_array("prior", self.prior, shape=self.confusion.concentration.shape)

    @cached_property
    def _one_kinds(self) -> dict[bytes, OneKind]:
        """The distributions fitted so far, by the codes of their volunteers: many null crowds are drawn from each."""
        return {}

    def weights(self) -> Any:
        """Return the similarities of all pairs, or of each volunteer with the nearest."""
        if self.neighbours is None:
            return _all_similarities(self.confusion.mean, self.distance)
        n_neighbours = min(self.neighbours, len(self.confusion) - 1)
        return _nearest_similarities(self.confusion.mean, n_neighbours, self.distance)

    def null(self, volunteers: Array, rng: np.random.Generator) -> ConfusionModel:
        """Draw everybody's confusion from one distribution, fitted to these volunteers, and their answers anew.

        Everybody has as many answers for each class as before, and the same prior.
        """
        return self._answered_anew(volunteers, np.arange(len(volunteers)), rng)

    def of_kinds(self, volunteers: Array, rng: np.random.Generator) -> ConfusionModel:
        """Draw the rows of a few kinds as `null` draws everybody's; each volunteer is of one of the kinds."""
        return self._answered_anew(volunteers, rng.permutation(np.arange(len(volunteers)) % N_KINDS), rng)

    def _answered_anew(self, volunteers: Array, kind: Array, rng: np.random.Generator) -> ConfusionModel:
        """Draw rows for each kind of volunteers, (V,), and their answers from these."""
        codes = self.confusion.table.codes(volunteers)
        before, prior = self.confusion.concentration[codes], self.prior[codes]
        evidence = np.maximum(before - prior, 0.0)
        totals = evidence.sum(axis=2)
        # What is not evidence is prior, less of it where a model forgets.
        rest = before.sum(axis=2, keepdims=True) - totals[..., None]
        prior_mean = prior / np.maximum(prior.sum(axis=2, keepdims=True), np.finfo(float).tiny)
        others = prior_mean * np.maximum(rest, 0.0)
        key = codes.tobytes()
        if key not in self._one_kinds:
            self._one_kinds[key] = fit_one_kind(evidence, np.maximum(others, np.finfo(float).tiny))
        one_kind = self._one_kinds[key]
        rows = one_kind.rows(rng.standard_normal((int(kind.max()) + 1, one_kind.mean.size)))
        return self._with(codes, sample_answers(totals, rows[kind], rng) + others)

    def resampled(self, volunteers: Array, rng: np.random.Generator) -> ConfusionModel:
        """Draw the confusion matrices from their posterior and keep their total concentrations."""
        codes = self.confusion.table.codes(volunteers)
        before = self.confusion.concentration[codes]
        return self._with(codes, _sample_rows(before, rng) * before.sum(axis=2, keepdims=True))

    def _with(self, codes: Array, concentration: Array) -> ConfusionModel:
        """Return the model of some volunteers with other concentrations."""
        confusion = ConfusionSnapshot(
            ids=self.confusion.ids[codes],
            # Concentrations must be positive.
            concentration=lock(np.maximum(concentration, np.finfo(float).tiny)),
            classes=self.confusion.classes,
            labels=self.confusion.labels,
        )
        return replace(self, confusion=confusion, prior=lock(self.prior[codes]))


def _sample_rows(concentration: Array, rng: np.random.Generator) -> Array:
    """Draw rows from Dirichlets along the last axis.

    It works with logarithms of gamma variables: where concentrations are small, the variables themselves underflow.
    """
    with np.errstate(divide="ignore"):
        boost = -rng.standard_exponential(concentration.shape) / concentration
    logs = np.log(rng.standard_gamma(concentration + 1)) + boost
    rows = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _all_similarities(confusion: Array, distance: Distance) -> Array:
    import torch

    from crowdgraph.kernels.similarity import similarities

    if len(confusion) > MAX_DENSE_VOLUNTEERS:
        raise ParameterError(
            f"All pairs of {len(confusion):,} volunteers are too many (they may be {MAX_DENSE_VOLUNTEERS:,}).",
            hint=Hint(
                "Link each to the most similar ones with neighbours=50, or leave out newcomers with min_responses=10.",
                cli="Leave out newcomers with --min-responses 10.",
            ),
        )
    return lock(similarities(torch.tensor(confusion), distance=distance).numpy())


def _nearest_similarities(confusion: Array, n_neighbours: int, distance: Distance) -> Any:
    import torch
    from scipy.sparse import csr_array

    from crowdgraph.kernels.similarity import nearest_neighbours

    shape = (len(confusion), len(confusion))
    if n_neighbours < 1:
        return csr_array(shape)
    columns, values = nearest_neighbours(torch.tensor(confusion), n_neighbours=n_neighbours, distance=distance)
    return links_between(columns.numpy(), values.numpy())


def links_between(neighbours: Array, similarities: Array) -> Any:
    """Return symmetric links from everybody's nearest neighbours and their similarities, both of shape (V, K)."""
    from scipy.sparse import csr_array

    n_volunteers, n_neighbours = neighbours.shape
    starts = np.arange(n_volunteers + 1) * n_neighbours
    shape = (n_volunteers, n_volunteers)
    links = csr_array((similarities.ravel(), neighbours.ravel(), starts), shape=shape)
    return links.maximum(links.T)
