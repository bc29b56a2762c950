"""What a network of volunteers who err together is made from: how far their answers were from what was expected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.network import Origin
from crowdgraph.core.result import ByVolunteer
from crowdgraph.networks.meetings import times_drawn

__all__ = ["Surprises"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Surprises(ByVolunteer, Origin):
    """Answers less what was expected of them; those who surprise alike about the same items are linked.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,).
    place, item
        The volunteer and the item of each answer, of shape (A,).
    kind
        The most probable class of the item, of shape (A,).
    surprise
        For each answer, class and label what was said less what was expected, by the root of the class's probability,
        flattened to shape (A, J * L).
    n_items
        How many items there are.
    min_common
        Pairs with fewer items in common are not linked.
    """

    ids: Array
    place: Array
    item: Array
    kind: Array
    surprise: Array
    n_items: int
    min_common: int

    def weights(self) -> Any:
        """The correlation of the surprises of two volunteers over the items that both answered; zero if negative."""
        from scipy.sparse import csr_array

        n_volunteers, size = len(self.ids), self.surprise.shape[1]
        columns = self.item[:, None].astype(np.int64) * size + np.arange(size)
        rows = np.repeat(self.place, size)
        shape = (n_volunteers, self.n_items)
        told = csr_array((self.surprise.ravel(), (rows, columns.ravel())), shape=(n_volunteers, self.n_items * size))
        squares = csr_array(((self.surprise**2).sum(axis=1), (self.place, self.item)), shape=shape)
        met = csr_array((np.ones(len(self.place)), (self.place, self.item)), shape=shape)
        common = csr_array(met @ met.T)
        common.setdiag(0)
        common.data[common.data < self.min_common] = 0
        common.eliminate_zeros()
        linked = common.astype(bool)
        both = csr_array(linked * (told @ told.T)).tocoo()
        first = csr_array(squares @ met.T)
        one, other = both.coords
        power = np.asarray(first[one, other] * first[other, one]).ravel()
        values = np.where(power > 0, both.data / np.sqrt(np.where(power > 0, power, 1.0)), 0.0)
        found = csr_array((np.clip(values, 0.0, 1.0), (one, other)), shape=common.shape)
        found.eliminate_zeros()
        # Products of the same numbers in another order may differ by rounding.
        return found.maximum(found.T)

    def null(self, volunteers: Array, rng: np.random.Generator) -> Surprises:
        """Everybody met the same items and erred as much, but about which items of a class is chance."""
        some = self._of(volunteers)
        among = some.place.astype(np.int64) * (some.kind.max(initial=0) + 1) + some.kind
        order, drawn = np.argsort(among, kind="stable"), np.lexsort((rng.random(len(among)), among))
        surprise = np.empty_like(some.surprise)
        surprise[order] = some.surprise[drawn]
        return replace(some, surprise=surprise)

    def redrawn(self, volunteers: Array, rng: np.random.Generator) -> Surprises:
        """The items drawn anew with replacement: one that is drawn twice counts twice, one that is not, nothing."""
        some = self._of(volunteers)
        times = times_drawn(some.item, self.n_items, rng)
        return replace(some, surprise=some.surprise * np.sqrt(times[some.item])[:, None])

    def _of(self, volunteers: Array) -> Surprises:
        places = np.full(len(self.ids), -1)
        places[self.table.codes(volunteers)] = np.arange(len(volunteers))
        kept = places[self.place] >= 0
        return replace(
            self,
            ids=volunteers,
            place=places[self.place[kept]],
            item=self.item[kept],
            kind=self.kind[kept],
            surprise=self.surprise[kept],
        )
