"""Who behaves alike: volunteers linked by how similar their confusion matrices are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.clock import Moment
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import NotAnnotatedError, ParameterError, check_choice
from crowdgraph.networks._volunteers import experienced

__all__ = ["ConfusionModel", "pi_similarity"]

# More volunteers than these make a matrix that few machines hold.
MOST_DENSE = 20_000
# More answers than these tell a row of confusion exactly.
MANY = 1e9


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionModel(ReadOnlyArrays, NetworkModel):
    """Confusion matrices, of which those that are alike are linked.

    Attributes
    ----------
    confusion
        The confusion matrices.
    prior
        What part of their concentrations was there before any answer, of shape (V, J, L); the rest is evidence.
    distance, neighbours
        How they are compared, and with how many others each is linked; None is all.
    """

    confusion: ConfusionSnapshot
    prior: Array
    distance: Literal["bhattacharyya", "hellinger"]
    neighbours: int | None

    def weights(self) -> Any:
        """The similarity of all pairs, or of each with the nearest."""
        if self.neighbours is None:
            return _dense(self.confusion.mean, self.distance)
        return _nearest(self.confusion.mean, min(self.neighbours, len(self.confusion) - 1), self.distance)

    def null(self, volunteers: Array, rng: np.random.Generator) -> ConfusionModel:
        """A crowd of one kind: each row of confusion comes from the one Dirichlet that fits these volunteers best.

        Everybody has as many answers for each class as before, drawn from their row, and the prior beside them.
        """
        import torch

        from crowdgraph.kernels.dirichlet import max_likelihood_concentration

        codes = self.confusion.table.codes(volunteers)
        before, prior = self.confusion.concentration[codes], self.prior[codes]
        evidence = np.maximum(before - prior, 0.0)
        # Items whose class is not sure make parts of answers; a part counts as a whole one as often as it is large.
        whole = np.floor(evidence + rng.random(evidence.shape))
        shared = max_likelihood_concentration(torch.from_numpy(whole)).numpy()
        rows = _drawn_rows(np.broadcast_to(shared, evidence.shape), rng)
        answers = _drawn_answers(evidence.sum(axis=2), rows, rng)
        # What is no evidence is the prior, less of it where a model forgets.
        rest = before.sum(axis=2, keepdims=True) - evidence.sum(axis=2, keepdims=True)
        believed = prior / np.maximum(prior.sum(axis=2, keepdims=True), np.finfo(float).tiny)
        return self._with(codes, answers + believed * np.maximum(rest, 0.0))

    def resampled(self, volunteers: Array, rng: np.random.Generator) -> ConfusionModel:
        """Confusion matrices drawn from their posterior, as sure as before."""
        codes = self.confusion.table.codes(volunteers)
        before = self.confusion.concentration[codes]
        return self._with(codes, _drawn_rows(before, rng) * before.sum(axis=2, keepdims=True))

    def _with(self, codes: Array, concentration: Array) -> ConfusionModel:
        confusion = ConfusionSnapshot(
            ids=self.confusion.ids[codes],
            # Concentrations are above zero, if not by much.
            concentration=lock(np.maximum(concentration, np.finfo(float).tiny)),
            classes=self.confusion.classes,
            labels=self.confusion.labels,
        )
        return replace(self, confusion=confusion, prior=lock(self.prior[codes]))


def _drawn_rows(concentration: Array, rng: np.random.Generator) -> Array:
    """Rows drawn from Dirichlets along the last axis.

    As logarithms of gamma variables: where concentrations are small, the variables themselves would all be zero.
    """
    with np.errstate(divide="ignore"):
        late = -rng.standard_exponential(concentration.shape) / concentration
    logs = np.log(rng.standard_gamma(concentration + 1)) + late
    rows = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _drawn_answers(totals: Array, rows: Array, rng: np.random.Generator) -> Array:
    """As many answers as `totals` says, (V, J), drawn from rows, (V, J, L): whole ones and one that counts the rest."""
    whole = np.floor(totals)
    drawn = rng.multinomial(np.minimum(whole, MANY).astype(np.int64), rows)
    last = rng.multinomial(1, rows) * (totals - whole)[..., None]
    return np.where(whole[..., None] > MANY, totals[..., None] * rows, drawn + last)


def _dense(confusion: Array, distance: Literal["bhattacharyya", "hellinger"]) -> Array:
    import torch

    from crowdgraph.kernels.similarity import similarities

    if len(confusion) > MOST_DENSE:
        raise ParameterError(
            f"All pairs of {len(confusion):,} volunteers are too many (they may be {MOST_DENSE:,}). Link each to the "
            "most similar ones with neighbours=50, or leave out newcomers with min_responses=10."
        )
    return lock(similarities(torch.tensor(confusion), distance=distance).numpy())


def _nearest(confusion: Array, n_neighbours: int, distance: Literal["bhattacharyya", "hellinger"]) -> Any:
    import torch
    from scipy.sparse import csr_array

    from crowdgraph.kernels.similarity import nearest_neighbours

    shape = (len(confusion), len(confusion))
    if n_neighbours < 1:
        return csr_array(shape)
    places, values = nearest_neighbours(torch.tensor(confusion), n_neighbours=n_neighbours, distance=distance)
    starts = np.arange(len(confusion) + 1) * n_neighbours
    links = csr_array((values.numpy().ravel(), places.numpy().ravel(), starts), shape=shape)
    return links.maximum(links.T)


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
    kind of volunteers, who differ by degrees, a crowd of communities. `VolunteerNetwork.resampled` draws everybody's
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
    model = ConfusionModel(
        confusion=ConfusionSnapshot(ids=ids, concentration=concentration, classes=track.classes, labels=track.labels),
        prior=lock(np.zeros_like(concentration) if prior is None else prior.of_all(ids.tolist())),
        distance=distance,
        neighbours=None if neighbours is None else int(neighbours),
    )
    return VolunteerNetwork(
        ids=ids,
        weights=model.weights(),
        method="pi_similarity",
        params={
            "at": at,
            "min_responses": min_responses,
            "neighbours": neighbours,
            "distance": distance,
        },
        support=chosen.n_answers,
        model=model,
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
