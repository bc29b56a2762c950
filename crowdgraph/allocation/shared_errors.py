"""Shared errors: how often members of a community err together, estimated from how often they agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.allocation._beliefs import current_beliefs
from crowdgraph.allocation._information_gain import Sharing
from crowdgraph.core._arrays import Array, ReadOnlyArrays, read_only
from crowdgraph.core.communities import Communities
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ResultError

__all__ = ["SharedErrors", "shared_errors"]

# Each answer is compared with this many that follow it, by the same community about the same item.
MAX_LAG = 5
# With this many pairs of answers about items with gold, a community is judged by those pairs alone.
ENOUGH_GOLD_PAIRS = 200
# The prior: this many pairs are taken to have been decided alone.
N_PRIOR_PAIRS = 10
# Below this sum, deciding alone and by one draw cannot be told apart.
MIN_DIFFERENCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedErrors(ReadOnlyArrays):
    r"""How often the members of a community decide alike, so that together their labels most often reveal less.

    About each item a community decides by one draw with its `chance`; otherwise everybody decides alone:

    .. math:: p(c_1, \dots, c_m \mid j) = \rho\, \Big| \bigcap_k \big[F_{kj}(c_k - 1), F_{kj}(c_k)\big) \Big|
              + (1 - \rho) \prod_k \pi^{(k)}_{j c_k},

    with :math:`F_{kj}` the cumulative sums of :math:`\pi^{(k)}_j` over the labels in their order: the copula between
    the upper bound of Fréchet and independence. How often each of them gives each label does not change.

    Attributes
    ----------
    communities
        The communities.
    chance
        The chance of each to decide by one draw, of shape (K,).
    n_pairs
        The number of pairs of answers it was estimated from, of shape (K,).
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
        """Return who shares errors with whom among the volunteers of a graph."""
        return Sharing(self.communities.on(graph).assignment, self.chance)

    def __repr__(self) -> str:
        chances = ", ".join(f"{chance:.2f}" for chance in self.chance)
        return f"SharedErrors(chance to decide alike: {chances}; from {self.n_pairs.sum():,} pairs of answers)"


def shared_errors(
    graph: CrowdGraph, communities: Communities | str | None = None, *, fit: ModelFit | str | None = None
) -> SharedErrors:
    """Estimate how often communities decide alike, from how much more their members agree than if they decided alone.

    Answers of a community about an item are compared in pairs. If everybody decided alone, they would agree as often as
    their confusion says, given the class; if one draw decided, as often as their draws overlap. The chance is where the
    observed agreement lies between the two, by least squares over the pairs, with a prior of ten pairs decided alone.
    Where there are 200 pairs about items with gold, only those count: elsewhere the class was inferred from the same
    labels as if they were independent, which hides some of what is shared.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    communities
        The communities, such as those of `networks.error_correlation`, or the name under which the graph carries them;
        the latest if left out.
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
    beliefs = current_beliefs(graph, fit)
    groups = graph.resolve_communities(communities, network="error_correlation")
    community = groups.on(graph).assignment
    first, second = _answer_pairs(graph, community)
    responses, gold = graph.responses, graph.gold.codes
    volunteer, item = responses.volunteer, responses.item[first]
    confusion = beliefs.confusion
    if_alone, if_drawn = _agreement(confusion[volunteer[first]], confusion[volunteer[second]])
    classes = np.where(gold[:, None] >= 0, np.eye(len(graph.classes))[gold], beliefs.item_probs)[item]
    if_alone, if_drawn = ((classes * rates).sum(axis=1) for rates in (if_alone, if_drawn))
    label_probs = graph.label_probs
    if label_probs is None:
        agree = responses.label[first] == responses.label[second]
    else:
        agree = (label_probs[first] * label_probs[second]).sum(axis=1)
    pair_community, n_communities = community[volunteer[first]], len(groups)
    # Least squares of the observed agreement on the line from "alone" to "one draw", through the origin.
    difference = if_drawn - if_alone
    products, squares = (
        np.bincount(pair_community, weights=values * difference, minlength=n_communities)
        for values in (agree - if_alone, difference)
    )
    n_pairs = np.bincount(pair_community, minlength=n_communities)
    slope = products / np.where(squares > MIN_DIFFERENCE, squares, 1.0) * (squares > MIN_DIFFERENCE)
    chance = np.clip(slope * n_pairs / (n_pairs + N_PRIOR_PAIRS), 0.0, 1.0)
    return SharedErrors(communities=groups, chance=chance, n_pairs=n_pairs)


def _answer_pairs(graph: CrowdGraph, community: Array) -> tuple[Array, Array]:
    """Return rows of pairs of answers by two members of a community about one item; only with gold, if enough have."""
    answers = graph.answers.where(community[graph.answers.volunteer] >= 0)
    order = np.lexsort((community[answers.volunteer], answers.item))
    rows, item, volunteer = answers.rows[order], answers.item[order], answers.volunteer[order]
    group = community[volunteer]
    first, second = [], []
    for lag in range(1, MAX_LAG + 1):
        same = (item[lag:] == item[:-lag]) & (group[lag:] == group[:-lag]) & (volunteer[lag:] != volunteer[:-lag])
        first.append(rows[:-lag][same])
        second.append(rows[lag:][same])
    one, other = np.concatenate(first), np.concatenate(second)
    has_gold = graph.gold.codes[graph.responses.item[one]] >= 0
    group = community[graph.responses.volunteer[one]]
    n_gold_pairs = np.bincount(group[has_gold], minlength=community.max(initial=0) + 1)
    counts = has_gold | ~(n_gold_pairs >= ENOUGH_GOLD_PAIRS)[group]
    return one[counts], other[counts]


def _agreement(first: Array, second: Array) -> tuple[Array, Array]:
    """Return how often two of confusion (P, J, L) agree given the class, (P, J): if alone, and by one draw."""
    (low, high), (low_second, high_second) = (
        (rows.cumsum(axis=2) - rows, rows.cumsum(axis=2)) for rows in (first, second)
    )
    overlap = np.maximum(np.minimum(high, high_second) - np.maximum(low, low_second), 0.0)
    return (first * second).sum(axis=2), overlap.sum(axis=2)
