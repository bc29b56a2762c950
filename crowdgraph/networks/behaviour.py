"""What a network of volunteers who behave alike is made from: their confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdgraph.core.columns import Array, Sealed, sealed
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.network import Origin
from crowdgraph.errors import ParameterError

__all__ = ["Behaviour"]

# More volunteers than these make a matrix that few machines hold.
MOST_DENSE = 20_000
# More answers than these tell a row of confusion exactly.
MANY = 1e9


@dataclass(frozen=True, eq=False, kw_only=True)
class Behaviour(Sealed, Origin):
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

    def null(self, volunteers: Array, rng: np.random.Generator) -> Behaviour:
        """A crowd of one kind: each row of confusion comes from the one Dirichlet that fits these volunteers best.

        Everybody has as many answers for each class as before, drawn from their row, and the prior beside them.
        """
        import torch

        from crowdgraph.kernels.dirichlet import likeliest_concentration

        codes = self.confusion.table.codes(volunteers)
        before, prior = self.confusion.concentration[codes], self.prior[codes]
        evidence = np.maximum(before - prior, 0.0)
        # Items whose class is not sure make parts of answers; a part counts as a whole one as often as it is large.
        whole = np.floor(evidence + rng.random(evidence.shape))
        shared = likeliest_concentration(torch.from_numpy(whole)).numpy()
        rows = _drawn_rows(np.broadcast_to(shared, evidence.shape), rng)
        answers = _drawn_answers(evidence.sum(axis=2), rows, rng)
        # What is no evidence is the prior, less of it where a model forgets.
        rest = before.sum(axis=2, keepdims=True) - evidence.sum(axis=2, keepdims=True)
        believed = prior / np.maximum(prior.sum(axis=2, keepdims=True), np.finfo(float).tiny)
        return self._with(codes, answers + believed * np.maximum(rest, 0.0))

    def redrawn(self, volunteers: Array, rng: np.random.Generator) -> Behaviour:
        """Confusion matrices drawn from their posterior, as sure as before."""
        codes = self.confusion.table.codes(volunteers)
        before = self.confusion.concentration[codes]
        return self._with(codes, _drawn_rows(before, rng) * before.sum(axis=2, keepdims=True))

    def _with(self, codes: Array, concentration: Array) -> Behaviour:
        confusion = ConfusionSnapshot(
            ids=self.confusion.ids[codes],
            # Concentrations are above zero, if not by much.
            concentration=sealed(np.maximum(concentration, np.finfo(float).tiny)),
            classes=self.confusion.classes,
            labels=self.confusion.labels,
        )
        return replace(self, confusion=confusion, prior=sealed(self.prior[codes]))


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
