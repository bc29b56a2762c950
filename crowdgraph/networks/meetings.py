"""What a network of volunteers who work on the same things is made from: who met which item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.network import Origin
from crowdgraph.core.result import ByVolunteer
from crowdgraph.core.rewiring import rewired

__all__ = ["Meetings", "times_drawn"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Meetings(ByVolunteer, Origin):
    """Who met which item; those who met the same are linked.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,).
    met
        Volunteers by items, a sparse array of shape (V, N). The square of an entry is what the item counts for the
        volunteer.
    prior
        A Beta prior on the weights; zeros for none.
    """

    ids: Array
    met: Any
    prior: tuple[float, float]

    def weights(self) -> Any:
        """What two volunteers have in common as a share of what they have on average."""
        from scipy.sparse import csr_array

        above, below = self.prior
        common = csr_array(self.met @ self.met.T)
        n_items = common.diagonal()
        common.setdiag(0)
        common.eliminate_zeros()
        rows = np.repeat(np.arange(len(self.ids)), np.diff(common.indptr))
        shared = (n_items[rows] + n_items[common.indices]) / 2
        values = (common.data + above) / (shared + above + below)
        return csr_array((values, common.indices, common.indptr), common.shape)

    def null(self, volunteers: Array, rng: np.random.Generator) -> Meetings:
        """The same numbers of items for everybody and of volunteers for every item, but who meets what is chance.

        What a meeting counts stays with the volunteer, so that everybody's items count as much together as before.
        """
        from scipy.sparse import coo_array, csr_array

        met = coo_array(self._of(volunteers))
        items = rewired(met.coords[0], met.coords[1], met.shape[1], rng)
        return replace(self, ids=volunteers, met=csr_array((met.data, (met.coords[0], items)), shape=met.shape))

    def redrawn(self, volunteers: Array, rng: np.random.Generator) -> Meetings:
        """The items drawn anew with replacement: one that is drawn twice counts twice, one that is not, nothing."""
        from scipy.sparse import csr_array

        met = self._of(volunteers)
        times = times_drawn(met.indices, met.shape[1], rng)
        drawn = csr_array((met.data * np.sqrt(times[met.indices]), met.indices, met.indptr), shape=met.shape)
        drawn.eliminate_zeros()
        return replace(self, ids=volunteers, met=drawn)

    def _of(self, volunteers: Array) -> Any:
        return self.met[self.table.codes(volunteers)]


def times_drawn(items: Array, n_items: int, rng: np.random.Generator) -> Array:
    """How often each of all items, of shape (N,), is drawn if as many of those that were met are, with replacement."""
    known = np.unique(items)
    times = np.zeros(n_items)
    times[known] = rng.multinomial(len(known), np.full(len(known), 1 / max(len(known), 1)))
    return times
