"""The network of volunteers who err together: linked by how often they give the same unexpected answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.clock import Moment
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork
from crowdgraph.core.result import VolunteerIndexed, finite_array, real_array
from crowdgraph.networks._volunteers import (
    Period,
    Window,
    bootstrap_counts,
    experienced_volunteers,
    last_answers,
    select_period,
)

__all__ = ["error_correlation"]


def error_correlation(
    graph: CrowdGraph,
    *,
    fit: ModelFit | str | None = None,
    at: Moment | None = None,
    window: Window | None = None,
    min_responses: int = 10,
    min_common: int = 5,
) -> VolunteerNetwork:
    r"""Link volunteers by the correlation of their errors about the same items.

    The residual of a volunteer's answer about an item of class `j` is
    :math:`e^{(m)}_{ijl} = [c^{(m)}_i = l] - E[\pi^{(m)}_{jl}]`: the answer minus what was expected. Two volunteers are
    linked by the correlation of their residuals over the items :math:`I_{mn}` that both answered,

    .. math:: w_{mn} = \max\left(0, \frac{\sum_{i \in I_{mn}} \sum_j q_{ij} \sum_l e^{(m)}_{ijl} e^{(n)}_{ijl}}
              {\sqrt{\sum_{i \in I_{mn}} \sum_j q_{ij} |e^{(m)}_{ij}|^2 \; \sum_{i \in I_{mn}} \sum_j q_{ij}
              |e^{(n)}_{ij}|^2}}\right).

    It is about zero for volunteers who are equally good but err about different items, which `pi_similarity` cannot
    distinguish from those who err together: friends who confer, people who were shown the same misleading guide, copies
    of one program. Models that assume independent answers count such answers too often; `Cautious` and
    ``allocation.shared_errors`` count them right.

    The null model of the network (`VolunteerNetwork.null`) shuffles each volunteer's answers among the items of a
    class. `VolunteerNetwork.resampled` draws the items with replacement.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    fit
        The fit, or the name of its annotation; the latest if left out.
    at
        Count the responses up to and including this moment; all if left out. The fit does not change: its
        class probabilities and confusion matrices are what we now believe about then, also from later answers. For what
        could be known then, fit a model to ``graph.before(moment)``, annotate that graph and leave `at` out.
    window
        Count the responses of a period: a pair (start, stop), from `start` up to, but not including, `stop`. None
        leaves an end open. Give `at` or `window`, not both.
    min_responses
        Volunteers with fewer answers are left out.
    min_common
        Pairs with fewer items in common are not linked, because their correlation would be chance.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> kinds = [cg.simulate.Group(name=name, confusion=[[0.8, 0.2], [0.2, 0.8]]) for name in ("here", "there")]
    >>> crowd = cg.simulate.crowd(n_volunteers=40, n_responses=8_000, groups=kinds, shared_errors=0.4, seed=0)
    >>> graph = crowd.graph.annotate(cg.IBCC().fit(crowd.graph))
    >>> cg.Leiden().detect(cg.networks.error_correlation(graph), seed=0)
    Communities(leiden: 2 of sizes 20, 20; modularity 0.356)
    """
    period = select_period(graph, at, window)
    volunteers, n_answers = experienced_volunteers(period.view, min_responses)
    check_integer("min_common", min_common)
    fit = graph.resolve_fit(fit, needs="confusion")
    fit.check_matches(graph)
    model = _residual_model(graph, period, fit, volunteers, min_common=int(min_common))
    return VolunteerNetwork(
        ids=model.ids,
        weights=model.weights(),
        method="error_correlation",
        params={"at": at, "window": window, "min_responses": min_responses, "min_common": min_common},
        support=n_answers,
        model=model,
    )


def _residual_model(
    graph: CrowdGraph, period: Period, fit: ModelFit, volunteers: Array, *, min_common: int
) -> ResidualModel:
    """Return the residuals of the last answers of some volunteers (codes) to each item in a period."""
    answers = last_answers(period.view, volunteers)
    rows = answers.row + period.first_row
    concentration = fit.confusion.at_responses(graph)[rows]  # type: ignore[union-attr]
    probs = fit.item_probs[answers.item]
    label_probs = graph.label_probs
    if label_probs is None:
        answer = np.arange(len(graph.labels)) == graph.responses.label[rows, None]
    else:
        answer = label_probs[rows]
    residual = answer[:, None, :] - concentration / concentration.sum(axis=2, keepdims=True)
    return ResidualModel(
        ids=graph.volunteers.ids[volunteers],
        volunteer=answers.volunteer,
        item=answers.item,
        item_class=probs.argmax(axis=1),
        residual=(np.sqrt(probs)[:, :, None] * residual).reshape(len(probs), -1),
        n_items=len(graph.items),
        min_common=min_common,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualModel(VolunteerIndexed, NetworkModel):
    """Residuals of answers, which link the volunteers whose residuals correlate over common items.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,).
    volunteer, item
        The position in `ids` of the volunteer who gave each answer and the code of its item, both of shape (A,).
    item_class
        The most probable class of the item, of shape (A,).
    residual
        For each answer, class and label the answer minus its expectation, times the root of the class's probability;
        flattened to shape (A, J * L).
    n_items
        How many items there are.
    min_common
        Pairs with fewer items in common are not linked.
    """

    ids: Array
    volunteer: Array
    item: Array
    item_class: Array
    residual: Array
    n_items: int
    min_common: int

    def __post_init__(self) -> None:
        n_answers = len(self.volunteer)
        codes = {"volunteer": len(self.ids), "item": self.n_items, "item_class": None}
        for name, size in codes.items():
            finite_array(name, getattr(self, name), shape=(n_answers,), below=size, kinds="iu")
        real_array("residual", self.residual, shape=(n_answers, None))
        check_integer("min_common", self.min_common)

    def weights(self) -> Any:
        """Return the correlations of residuals over the items that two volunteers answered; zero where negative."""
        from scipy.sparse import csr_array

        n_volunteers, size = len(self.ids), self.residual.shape[1]
        columns = self.item[:, None].astype(np.int64) * size + np.arange(size)
        rows = np.repeat(self.volunteer, size)
        shape = (n_volunteers, self.n_items)
        residuals = csr_array(
            (self.residual.ravel(), (rows, columns.ravel())), shape=(n_volunteers, self.n_items * size)
        )
        squares = csr_array(((self.residual**2).sum(axis=1), (self.volunteer, self.item)), shape=shape)
        answered = csr_array((np.ones(len(self.volunteer)), (self.volunteer, self.item)), shape=shape)
        n_common = csr_array(answered @ answered.T)
        n_common.setdiag(0)
        n_common.data[n_common.data < self.min_common] = 0
        n_common.eliminate_zeros()
        linked = n_common.astype(bool)
        products = csr_array(linked * (residuals @ residuals.T)).tocoo()
        # The squares of the row's volunteer, summed over the items that both answered.
        power = csr_array(squares @ answered.T)
        one, other = products.coords
        if not len(one):
            return csr_array(n_common.shape)
        scale = np.asarray(power[one, other] * power[other, one]).ravel()
        values = np.where(scale > 0, products.data / np.sqrt(np.where(scale > 0, scale, 1.0)), 0.0)
        correlations = csr_array((np.clip(values, 0.0, 1.0), (one, other)), shape=n_common.shape)
        correlations.eliminate_zeros()
        # Products of the same numbers in another order may differ by rounding.
        return correlations.maximum(correlations.T)

    def null(self, volunteers: Array, rng: np.random.Generator) -> ResidualModel:
        """Shuffle each volunteer's residuals among the items of a class, so that common errors are chance."""
        part = self._of(volunteers)
        group = part.volunteer.astype(np.int64) * (part.item_class.max(initial=0) + 1) + part.item_class
        order, shuffled = np.argsort(group, kind="stable"), np.lexsort((rng.random(len(group)), group))
        residual = np.empty_like(part.residual)
        residual[order] = part.residual[shuffled]
        return replace(part, residual=residual)

    def resampled(self, volunteers: Array, rng: np.random.Generator) -> ResidualModel:
        """Draw the items with replacement: an item drawn twice counts twice, one that is not drawn does not count."""
        part = self._of(volunteers)
        counts = bootstrap_counts(part.item, self.n_items, rng)
        return replace(part, residual=part.residual * np.sqrt(counts[part.item])[:, None])

    def _of(self, volunteers: Array) -> ResidualModel:
        """Return the model of some of the volunteers."""
        positions = np.full(len(self.ids), -1)
        positions[self.table.codes(volunteers)] = np.arange(len(volunteers))
        selected = positions[self.volunteer] >= 0
        return replace(
            self,
            ids=volunteers,
            volunteer=positions[self.volunteer[selected]],
            item=self.item[selected],
            item_class=self.item_class[selected],
            residual=self.residual[selected],
        )
