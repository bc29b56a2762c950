"""The value of asking volunteers about items: what their labels would tell about the items, and about themselves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from crowdgraph.allocation.beliefs import believed
from crowdgraph.allocation.gain import MOST_STATES, Gain, coalition_gain, entropy
from crowdgraph.core.columns import Array
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.settings import check_whole
from crowdgraph.errors import ParameterError

__all__ = ["information_gain", "information_gain_bounds", "learning_gain"]


def information_gain(
    graph: CrowdGraph, item: Hashable, coalition: Iterable[Hashable], *, fit: ModelFit | str | None = None
) -> float:
    r"""How much the labels of some volunteers are expected to tell about an item's class, in nats.

    .. math:: H(t_i) - E_{c}\, H(t_i \mid c), \qquad c_k \mid t_i = j \sim E[\pi^{(k)}_j],

    with everybody's confusion as it is now. It is exact as long as their labels can make at most 4,096 different
    posteriors; beyond that it is at most a little too small, see `information_gain_bounds`.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    item
        The item.
    coalition
        The volunteers who would be asked, each once.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, gold=0.0, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> one, two = (cg.allocation.value.information_gain(graph, "item-000", graph.volunteers.ids[:n]) for n in (1, 2))
    >>> bool(0 < one < two < 2 * one)
    True
    """
    return information_gain_bounds(graph, item, coalition, fit=fit).nats


def information_gain_bounds(
    graph: CrowdGraph,
    item: Hashable,
    coalition: Iterable[Hashable],
    *,
    fit: ModelFit | str | None = None,
    most_states: int = MOST_STATES,
) -> Gain:
    """As `information_gain`, with the most by which it is too small.

    Parameters
    ----------
    graph, item, coalition, fit
        As for `information_gain`.
    most_states
        How many posteriors are kept apart; more are slower and nearer.
    """
    check_whole("most_states", most_states, least=2)
    beliefs = believed(graph, fit)
    members = _members(graph, coalition)
    place = graph.items.table.code(item)
    return coalition_gain(beliefs.item_probs[place], beliefs.confusion[members], most_states=most_states)


def learning_gain(
    graph: CrowdGraph, volunteer: Hashable, item: Hashable, *, fit: ModelFit | str | None = None
) -> float:
    r"""How much a label would tell about the volunteer's own confusion, in nats, once the item's class is known.

    .. math:: \sum_j q(t_i = j) \Big( H\big(E[\pi_j]\big) - E\big[H(\pi_j)\big] \Big),

    the information between the label and the row of the confusion matrix. It falls as the volunteer answers more. Where
    the class is never known, less is learned.

    Parameters
    ----------
    graph, item, fit
        As for `information_gain`.
    volunteer
        The volunteer who would be asked.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> order = graph.volunteers.n_responses.argsort()
    >>> shy, busy = (graph.volunteers.ids[order[place]] for place in (0, -1))
    >>> gains = [cg.allocation.value.learning_gain(graph, who, "item-000") for who in (shy, busy)]
    >>> bool(gains[0] > gains[1] > 0)
    True
    """
    beliefs = believed(graph, fit)
    rows = beliefs.concentration[graph.volunteers.table.code(volunteer)]
    return float(beliefs.item_probs[graph.items.table.code(item)] @ row_information(rows))


def row_information(concentration: Array) -> Array:
    """The information between a label and the Dirichlet row that it is drawn from, for rows on the last axis."""
    from scipy.special import digamma

    total = concentration.sum(axis=-1, keepdims=True)
    mean = concentration / total
    expected = (mean * (digamma(total + 1) - digamma(concentration + 1))).sum(axis=-1)
    return np.asarray(np.maximum(entropy(mean) - expected, 0.0))


def _members(graph: CrowdGraph, coalition: Iterable[Hashable]) -> Array:
    """The codes of the members of a coalition."""
    if isinstance(coalition, str | bytes) or not isinstance(coalition, Iterable):
        raise ParameterError(f"coalition={coalition!r} must be several volunteers, such as ['anna', 'bert'].")
    members = graph.volunteers.table.codes(list(coalition))
    if len(np.unique(members)) < len(members):
        raise ParameterError("The coalition names somebody twice; everybody is asked once.")
    return members
