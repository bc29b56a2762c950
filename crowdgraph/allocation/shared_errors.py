"""Communities whose members err together, estimated from how often they agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.allocation._beliefs import believed, found_communities
from crowdgraph.allocation._information_gain import Sharing
from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core.communities import Communities
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ResultError

__all__ = ["SharedErrors", "shared_errors"]

# Each answer is compared with so many that follow it, of the same community about the same item.
LAGS = 5
# From so many pairs of answers about items with gold on, a community is judged by those alone.
ENOUGH_PAIRS = 200
# As many pairs are taken to have been decided alone beforehand.
PAIRS_BEFOREHAND = 10
# Below this, deciding alone and by one draw look the same.
LEAST = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedErrors(ReadOnlyArrays):
    r"""How often members of a community see an item alike, so that their labels most often tell less together.

    About each item a community decides by one draw with its `chance`, else everybody decides alone:

    .. math:: p(c_1, \dots, c_m \mid j) = \rho\, \Big| \bigcap_k \big[F_{kj}(c_k - 1), F_{kj}(c_k)\big) \Big|
              + (1 - \rho) \prod_k \pi^{(k)}_{j c_k},

    with :math:`F_{kj}` the sums of :math:`\pi^{(k)}_j` over labels in their order: the copula between the upper bound
    of Fréchet and independence. How often each of them gives each label stays what it is.

    Attributes
    ----------
    communities
        The communities.
    chance
        The chance of each to decide by one draw, of shape (K,).
    n_pairs
        From how many pairs of answers it was estimated, of shape (K,).
    """

    communities: Communities
    chance: Array
    n_pairs: Array

    def __post_init__(self) -> None:
        chance = read_only(np.asarray(self.chance, dtype=np.float64))
        if chance.shape != (len(self.communities),) or not ((chance >= 0) & (chance <= 1)).all():
            raise ResultError(f"{len(self.communities)} communities need as many chances from 0 to 1; got {chance}.")
        object.__setattr__(self, "chance", chance)
        object.__setattr__(self, "n_pairs", read_only(self.n_pairs))

    def sharing(self, graph: CrowdGraph) -> Sharing:
        """Who shares with whom, for the volunteers of a graph."""
        return Sharing(self.communities.assigned(graph), self.chance)

    def __repr__(self) -> str:
        shares = ", ".join(f"{share:.2f}" for share in self.chance)
        return f"SharedErrors(chance to decide alike: {shares}; from {self.n_pairs.sum():,} pairs of answers)"


def shared_errors(
    graph: CrowdGraph, communities: Communities | str | None = None, *, fit: ModelFit | str | None = None
) -> SharedErrors:
    """Estimate how often communities decide alike, from how much more their members agree than if alone.

    Answers of a community about an item are compared in pairs. If everybody decided alone they would agree as often as
    their confusion says, given the class; if by one draw, as often as their draws overlap. The chance is where what was
    seen lies between the two, by least squares over the pairs and as if ten more pairs had been decided alone. Where
    there are 200 pairs about items with gold, only those count: elsewhere the class was inferred from the same labels
    as if they were independent, which hides some of what is shared.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    communities
        The communities, such as are found in `networks.error_correlation`, or the name under which the graph carries
        them; the latest if left out.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, shared_errors=0.5, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> everyone = cg.Communities(ids=graph.volunteers.ids, participation=[[1.0]] * 20, modularity=0.0, method="all")
    >>> 0.4 < cg.allocation.shared_errors(graph, everyone).chance[0] < 0.6
    np.True_
    """
    beliefs = believed(graph, fit)
    groups = found_communities(graph, communities, network="error_correlation")
    community = groups.assigned(graph)
    one, other = _pairs(graph, community)
    responses, gold = graph.responses, graph.gold.codes
    people, items = responses.volunteer, responses.item[one]
    confusion = beliefs.confusion
    alone, drawn = _agreement(confusion[people[one]], confusion[people[other]])
    classes = np.where(gold[:, None] >= 0, np.eye(len(graph.classes))[gold], beliefs.item_probs)[items]
    alone, drawn = ((classes * share).sum(axis=1) for share in (alone, drawn))
    agree = responses.label[one] == responses.label[other]
    whose, size = community[people[one]], len(groups)
    more = drawn - alone
    seen, most = (np.bincount(whose, weights=what * more, minlength=size) for what in (agree - alone, more))
    n_pairs = np.bincount(whose, minlength=size)
    least_squares = seen / np.where(most > LEAST, most, 1.0) * (most > LEAST)
    chance = np.clip(least_squares * n_pairs / (n_pairs + PAIRS_BEFOREHAND), 0.0, 1.0)
    return SharedErrors(communities=groups, chance=chance, n_pairs=n_pairs)


def _pairs(graph: CrowdGraph, community: Array) -> tuple[Array, Array]:
    """Rows of two answers each, of two volunteers of one community about one item, with gold where that is enough."""
    responses = graph.responses
    rows = np.flatnonzero((responses.label >= 0) & (community[responses.volunteer] >= 0))
    item, whose = responses.item[rows], community[responses.volunteer[rows]]
    rows = rows[np.lexsort((whose, item))]
    item, people = responses.item[rows], responses.volunteer[rows]
    whose = community[people]
    first, second = [], []
    for lag in range(1, LAGS + 1):
        same = (item[lag:] == item[:-lag]) & (whose[lag:] == whose[:-lag]) & (people[lag:] != people[:-lag])
        first.append(rows[:-lag][same])
        second.append(rows[lag:][same])
    one, other = np.concatenate(first), np.concatenate(second)
    known = graph.gold.codes[responses.item[one]] >= 0
    whose = community[responses.volunteer[one]]
    enough = np.bincount(whose[known], minlength=community.max(initial=0) + 1) >= ENOUGH_PAIRS
    kept = known | ~enough[whose]
    return one[kept], other[kept]


def _agreement(one: Array, other: Array) -> tuple[Array, Array]:
    """How often two of confusion (P, J, L) agree given the class: if each is alone, and by one draw; both (P, J)."""
    (low, high), (low_other, high_other) = ((rows.cumsum(axis=2) - rows, rows.cumsum(axis=2)) for rows in (one, other))
    overlap = np.maximum(np.minimum(high, high_other) - np.maximum(low, low_other), 0.0)
    return (one * other).sum(axis=2), overlap.sum(axis=2)
