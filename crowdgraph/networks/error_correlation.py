"""Who errs together: volunteers linked by how often both say the same unexpected thing of an item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork
from crowdgraph.core.result import VolunteerIndexed
from crowdgraph.errors import NotAnnotatedError, ParameterError
from crowdgraph.networks._volunteers import experienced, last_answers
from crowdgraph.networks.task_cooccurrence import bootstrap_counts

__all__ = ["ResidualModel", "error_correlation"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualModel(VolunteerIndexed, NetworkModel):
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

    def null(self, volunteers: Array, rng: np.random.Generator) -> ResidualModel:
        """Everybody met the same items and erred as much, but about which items of a class is chance."""
        some = self._of(volunteers)
        among = some.place.astype(np.int64) * (some.kind.max(initial=0) + 1) + some.kind
        order, drawn = np.argsort(among, kind="stable"), np.lexsort((rng.random(len(among)), among))
        surprise = np.empty_like(some.surprise)
        surprise[order] = some.surprise[drawn]
        return replace(some, surprise=surprise)

    def resampled(self, volunteers: Array, rng: np.random.Generator) -> ResidualModel:
        """The items drawn anew with replacement: one that is drawn twice counts twice, one that is not, nothing."""
        some = self._of(volunteers)
        times = bootstrap_counts(some.item, self.n_items, rng)
        return replace(some, surprise=some.surprise * np.sqrt(times[some.item])[:, None])

    def _of(self, volunteers: Array) -> ResidualModel:
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


def error_correlation(
    graph: CrowdGraph, *, fit: ModelFit | str | None = None, min_responses: int = 10, min_common: int = 5
) -> VolunteerNetwork:
    r"""Link volunteers by how much their errors about the same items have in common.

    What a volunteer said of an item of class `j`, less what was expected, is
    :math:`e^{(m)}_{ijl} = [c^{(m)}_i = l] - E[\pi^{(m)}_{jl}]`. Two volunteers are linked by the correlation of these
    over the items :math:`I_{mn}` that both answered,

    .. math:: w_{mn} = \max\left(0, \frac{\sum_{i \in I_{mn}} \sum_j q_{ij} \sum_l e^{(m)}_{ijl} e^{(n)}_{ijl}}
              {\sqrt{\sum_{i \in I_{mn}} \sum_j q_{ij} |e^{(m)}_{ij}|^2 \; \sum_{i \in I_{mn}} \sum_j q_{ij}
              |e^{(n)}_{ij}|^2}}\right).

    It is about zero for volunteers who are equally good but err about different items, which `pi_similarity` cannot
    tell from those who err together: friends who confer, people who were shown the same misleading guide, copies of one
    program. Models that take answers for independent count such answers too often; `Cautious` and
    ``allocation.shared_errors`` count them right.

    The network knows what a crowd without such groups would look like (`VolunteerNetwork.null`): everybody's answers
    about the items of a class are shuffled among these items. `VolunteerNetwork.resampled` draws the items anew with
    replacement.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.
    min_responses
        Volunteers with fewer answers are left out.
    min_common
        Pairs with fewer items in common are not linked; their correlation would be chance.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> kinds = [cg.simulate.Group(name=name, confusion=[[0.8, 0.2], [0.2, 0.8]]) for name in ("here", "there")]
    >>> crowd = cg.simulate.crowd(n_volunteers=40, n_responses=8_000, groups=kinds, shared_errors=0.4, seed=0)
    >>> graph = crowd.graph.annotate(cg.IBCC().fit(crowd.graph))
    >>> cg.Leiden().detect(cg.networks.error_correlation(graph), seed=0)
    Communities(leiden: 2 of sizes 20, 20; modularity 0.357)
    """
    chosen = experienced(graph, min_responses)
    check_integer("min_common", min_common)
    model = _surprises(graph, *_believed(graph, fit), chosen.codes, min_common=int(min_common))
    return VolunteerNetwork(
        ids=model.ids,
        weights=model.weights(),
        method="error_correlation",
        params={"min_responses": min_responses, "min_common": min_common},
        support=chosen.n_answers,
        model=model,
    )


def _believed(graph: CrowdGraph, fit: ModelFit | str | None) -> tuple[Array, ConfusionTrack]:
    """The class probabilities of the items, and what volunteers say of them."""
    try:
        found = graph.fit(fit) if fit is None or isinstance(fit, str) else fit
    except NotAnnotatedError as error:
        raise NotAnnotatedError(
            f"{error} A model that knows confusion is needed, such as IBCC().fit(graph)."
        ) from error
    if not isinstance(found, ModelFit):
        raise ParameterError(f"fit= takes a fit or the name of one; got a {type(found).__name__}.")
    if found.confusion is None:
        raise NotAnnotatedError(
            f"The model {found.model!r} has no confusion matrices, so nobody knows what to expect; use IBCC."
        )
    found.check_matches(graph)
    return found.item_probs, found.confusion


def _surprises(
    graph: CrowdGraph, item_probs: Array, track: ConfusionTrack, volunteers: Array, *, min_common: int
) -> ResidualModel:
    """What volunteers, given as codes, said beyond what was expected."""
    last = last_answers(graph, volunteers)
    confusion = track.at_responses(graph)[last.response]
    probs = item_probs[last.item]
    said = np.arange(len(graph.labels)) == graph.responses.label[last.response, None]
    errors = said[:, None, :] - confusion / confusion.sum(axis=2, keepdims=True)
    return ResidualModel(
        ids=graph.volunteers.ids[volunteers],
        place=last.place,
        item=last.item,
        kind=probs.argmax(axis=1),
        surprise=(np.sqrt(probs)[:, :, None] * errors).reshape(len(probs), -1),
        n_items=len(graph.items),
        min_common=min_common,
    )
