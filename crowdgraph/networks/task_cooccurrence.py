"""Who works on the same things: volunteers linked by the items they have in common."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.clock import length_in_ticks, ticks
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork, rewire_bipartite
from crowdgraph.core.result import VolunteerIndexed
from crowdgraph.errors import ParameterError
from crowdgraph.networks._volunteers import experienced, last_answers

__all__ = ["CooccurrenceModel", "bootstrap_counts", "task_cooccurrence"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CooccurrenceModel(VolunteerIndexed, NetworkModel):
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

    def null(self, volunteers: Array, rng: np.random.Generator) -> CooccurrenceModel:
        """The same numbers of items for everybody and of volunteers for every item, but who meets what is chance.

        What a meeting counts stays with the volunteer, so that everybody's items count as much together as before.
        """
        from scipy.sparse import coo_array, csr_array

        met = coo_array(self._of(volunteers))
        items = rewire_bipartite(met.coords[0], met.coords[1], met.shape[1], rng)
        return replace(self, ids=volunteers, met=csr_array((met.data, (met.coords[0], items)), shape=met.shape))

    def resampled(self, volunteers: Array, rng: np.random.Generator) -> CooccurrenceModel:
        """The items drawn anew with replacement: one that is drawn twice counts twice, one that is not, nothing."""
        from scipy.sparse import csr_array

        met = self._of(volunteers)
        times = bootstrap_counts(met.indices, met.shape[1], rng)
        drawn = csr_array((met.data * np.sqrt(times[met.indices]), met.indices, met.indptr), shape=met.shape)
        drawn.eliminate_zeros()
        return replace(self, ids=volunteers, met=drawn)

    def _of(self, volunteers: Array) -> Any:
        return self.met[self.table.codes(volunteers)]


def bootstrap_counts(items: Array, n_items: int, rng: np.random.Generator) -> Array:
    """How often each of all items, of shape (N,), is drawn if as many of those that were met are, with replacement."""
    known = np.unique(items)
    times = np.zeros(n_items)
    times[known] = rng.multinomial(len(known), np.full(len(known), 1 / max(len(known), 1)))
    return times


def task_cooccurrence(
    graph: CrowdGraph,
    *,
    min_responses: int = 10,
    half_life: float | dt.timedelta | np.timedelta64 | None = None,
    prior: tuple[float, float] | None = None,
) -> VolunteerNetwork:
    r"""Link volunteers by the share of their items that they have in common.

    .. math:: w_{mn} = \frac{\text{items that both answered}}{\tfrac{1}{2} (N_m + N_n)},

    where :math:`N_m` is how many items volunteer `m` answered. It is 1 for volunteers with the same items. For what
    could be known at a moment, make it from ``graph.before(moment)``.

    The network knows what a crowd without communities would look like (`VolunteerNetwork.null`): volunteers and items
    are rewired, so that everybody answers as many items as before and every item is answered by as many, but who meets
    whom is chance. Rewiring the links between volunteers would not do: every item links all who answered it with
    each other, in any crowd, and without these cliques a network looks less clustered than chance makes it.
    `VolunteerNetwork.resampled` draws the items anew with replacement.

    Parameters
    ----------
    graph
        The graph.
    min_responses
        Volunteers with fewer answers are left out; their shares would be chance.
    half_life
        The age at which an item counts half, from the last response of the graph back: a timedelta for datetimes, a
        number for other times. All count the same if left out.
    prior
        A Beta prior (a, b) on the probability to share an item: the weight becomes :math:`(c + a) / (n + a + b)`, with
        `c` and `n` above and below the line. It makes links between volunteers with few items less sure. Pairs
        without a common item stay unlinked.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, n_responses=2000, n_communities=2, mixing=0, seed=0).graph
    >>> cg.networks.task_cooccurrence(graph)
    VolunteerNetwork(task_cooccurrence: 20 volunteers, 90 edges, density 0.474, 0 isolated)
    """
    chosen = experienced(graph, min_responses)
    model = CooccurrenceModel(
        ids=graph.volunteers.ids[chosen.codes],
        met=_meetings(graph, chosen.codes, half_life),
        prior=_checked_prior(prior),
    )
    return VolunteerNetwork(
        ids=model.ids,
        weights=model.weights(),
        method="task_cooccurrence",
        params={"min_responses": min_responses, "half_life": half_life, "prior": prior},
        support=chosen.n_answers,
        model=model,
    )


def _meetings(graph: CrowdGraph, chosen: Array, half_life: Any) -> Any:
    """Volunteers by items, (V, N): one where a volunteer answered an item, less where that was long ago.

    The square of an entry is what the item counts, so that two volunteers who met it at the same time share as much.
    """
    from scipy.sparse import csr_array

    last = last_answers(graph, chosen)
    values = _kept(graph, last.response, half_life)
    return csr_array((values, (last.place, last.item)), shape=(len(chosen), len(graph.items)))


def _kept(graph: CrowdGraph, answers: Array, half_life: Any) -> Array:
    """The square root of what each answer counts."""
    if half_life is None:
        return np.ones(len(answers))
    counted = ticks(graph.responses.time).astype(np.float64)
    life = length_in_ticks("half_life", half_life, graph.responses.clock, graph.responses.time)
    return np.asarray(0.5 ** ((counted[-1] - counted[answers]) / (2 * life)))


def _checked_prior(prior: Any) -> tuple[float, float]:
    if prior is None:
        return 0.0, 0.0
    try:
        above, below = (float(value) for value in prior)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"prior={prior!r} must be a pair (a, b) of numbers, such as (1, 9).") from error
    if not (0 < above < np.inf and 0 < below < np.inf):
        raise ParameterError(f"prior={prior!r} must be a pair of numbers above zero.")
    return above, below
