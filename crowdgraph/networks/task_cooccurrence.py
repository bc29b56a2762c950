"""The network of volunteers who work on the same items."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._backbone import check_level, significant_links
from crowdgraph.core._rewiring import rewire_bipartite
from crowdgraph.core._sparse import check_indices
from crowdgraph.core.clock import Moment, length_in_ticks, ticks
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import NetworkModel, VolunteerNetwork
from crowdgraph.core.result import VolunteerIndexed, finite_array
from crowdgraph.errors import ParameterError, ResultError, check_choice
from crowdgraph.kernels.link_tests import common_items_p_values, configuration_model, hypergeometric_p_values
from crowdgraph.networks._volunteers import (
    Window,
    bootstrap_counts,
    experienced_volunteers,
    last_answers,
    select_period,
)

__all__ = ["task_cooccurrence"]


def task_cooccurrence(
    graph: CrowdGraph,
    *,
    at: Moment | None = None,
    window: Window | None = None,
    min_responses: int = 10,
    half_life: float | dt.timedelta | np.timedelta64 | str | None = None,
    prior: tuple[float, float] | None = None,
    validate: float | None = None,
) -> VolunteerNetwork:
    r"""Link volunteers by the share of their items that they have in common.

    .. math:: w_{mn} = \frac{\text{items that both answered}}{\tfrac{1}{2} (N_m + N_n)},

    where :math:`N_m` is the number of items that volunteer `m` answered. The weight is 1 for volunteers with the same
    items.

    The null model of the network (`VolunteerNetwork.null`) rewires volunteers and items: everybody answers as many
    items and every item has as many answers as before, but who shares items with whom is chance. Rewiring the links
    between volunteers would not do: every item links all who answered it with each other, in any crowd, and without
    these cliques a network looks less clustered than chance makes it. `VolunteerNetwork.resampled` draws the items with
    replacement.

    Parameters
    ----------
    graph
        The graph.
    at
        Count the responses up to and including this moment; all if left out.
    window
        Count the responses of a period: a pair (start, stop), from `start` up to, but not including, `stop`. None
        leaves an end open. Give `at` or `window`, not both.
    min_responses
        Volunteers with fewer answers are left out, because their shares would be chance.
    half_life
        The age at which an item counts half, measured back from the last response that counts: a timedelta, or
        text such as ``"30D"``, for datetimes, a number for other times. All items count the same if left out.
    prior
        A Beta prior (a, b) on the probability to share an item: the weight becomes :math:`(c + a) / (n + a + b)`, where
        `c` and `n` are the numerator and the denominator above. It weakens links between volunteers with few items.
        Pairs without a common item stay unlinked.
    validate
        Keep only links between volunteers who have more items in common than chance explains, given how many items
        everybody answered and how many answers every item has, at this false-discovery rate over all pairs, such as
        0.01; see `VolunteerNetwork.backbone`. All links stay if left out. For the test, an item counts once however old
        it is. Null networks are rewired, and resampled ones are validated in the same way; in these an item that is
        drawn twice counts once for the test.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, n_responses=2000, n_communities=2, mixing=0, seed=0).graph
    >>> cg.networks.task_cooccurrence(graph)
    VolunteerNetwork(task_cooccurrence: 20 volunteers, 90 edges, density 0.474, 0 isolated)
    """
    if validate is not None:
        check_level("validate", validate)
    params = {
        "at": at,
        "window": window,
        "min_responses": min_responses,
        "half_life": half_life,
        "prior": prior,
        "validate": validate,
    }
    graph = select_period(graph, at, window).view
    volunteers, n_answers = experienced_volunteers(graph, min_responses)
    model = CooccurrenceModel(
        ids=graph.volunteers.ids[volunteers],
        incidence=_incidence(graph, volunteers, half_life),
        prior=_beta_prior(prior),
        level=validate,
    )
    return VolunteerNetwork(
        ids=model.ids,
        weights=model.weights(),
        method="task_cooccurrence",
        params=params,
        support=n_answers,
        p_values=model.p_values(),
        model=model,
    )


def _incidence(graph: CrowdGraph, volunteers: Array, half_life: Any) -> Any:
    """Return a sparse (V, N) array: one where a volunteer answered an item, less where that was long ago.

    The square of an entry is what the item counts, so two volunteers who answered it at the same time share as much.
    """
    from scipy.sparse import csr_array

    answers = last_answers(graph, volunteers)
    if half_life is None:
        values = np.ones(len(answers.row))
    else:
        time = ticks(graph.responses.time).astype(np.float64)
        life = length_in_ticks("half_life", half_life, graph.responses.clock, graph.responses.time)
        values = np.asarray(0.5 ** ((time[-1] - time[answers.row]) / (2 * life)))
    return csr_array((values, (answers.volunteer, answers.item)), shape=(len(volunteers), len(graph.items)))


def _beta_prior(prior: Any) -> tuple[float, float]:
    """Return the parameters of the Beta prior, zeros for none."""
    if prior is None:
        return 0.0, 0.0
    try:
        a, b = (float(value) for value in prior)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"prior={prior!r} must be a pair (a, b) of numbers, such as (1, 9).") from error
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise ParameterError(f"prior={prior!r} must be a pair of numbers above zero.")
    return a, b


@dataclass(frozen=True, eq=False, kw_only=True)
class CooccurrenceModel(VolunteerIndexed, NetworkModel):
    """Who answered which item, which links the volunteers who answered the same ones.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,).
    incidence
        Volunteers by items, a sparse array of shape (V, N). The square of an entry is what the item counts for the
        volunteer.
    prior
        A Beta prior on the weights; zeros for none.
    level
        The false-discovery rate at which links are validated; None if all are links.
    link_test
        How they are validated, one of `link_tests`.
    """

    ids: Array
    incidence: Any
    prior: tuple[float, float]
    level: float | None = None
    link_test: str = "configuration"
    link_tests = ("configuration", "hypergeometric")

    def __post_init__(self) -> None:
        from scipy.sparse import issparse

        if not issparse(self.incidence) or self.incidence.format != "csr" or self.incidence.shape[0] != len(self.ids):
            raise ResultError(f"incidence must be a CSR array with {len(self.ids):,} rows, one for each volunteer.")
        check_indices("incidence", self.incidence)
        finite_array("incidence", self.incidence.data, shape=(None,))
        check_choice("link_test", self.link_test, self.link_tests)
        if self.level is not None:
            check_level("level", self.level)
        if self.prior != (0.0, 0.0):
            _beta_prior(self.prior)

    def weights(self) -> Any:
        """Return what two volunteers have in common as a share of what they have on average."""
        from scipy.sparse import csr_array

        weights, p_values = self._all_weights(), self.p_values()
        return weights if p_values is None else csr_array(p_values.astype(bool).multiply(weights))

    def p_values(self) -> Any:
        """Return the adjusted p-values of validated links; None if links are not validated."""
        return self._p_values

    def validated(self, volunteers: Array, *, level: float, method: str) -> CooccurrenceModel:
        """Return a model of these volunteers that has only validated links, as have the models drawn from it."""
        incidence = self._incidence_of(volunteers)
        return replace(self, ids=volunteers, incidence=incidence, level=level, link_test=method)

    @cached_property
    def _p_values(self) -> Any:
        if self.level is None:
            return None
        left, right, common = self._common_items()
        n_items, n_answers = np.diff(self.incidence.indptr), np.bincount(self.incidence.indices)
        if self.link_test == "configuration":
            p_values = common_items_p_values(configuration_model(n_items, n_answers), left, right, common)
        else:
            p_values = hypergeometric_p_values(n_items, left, right, common, int(np.count_nonzero(n_answers)))
        n_volunteers = len(self.ids)
        # Pairs without a common item were tested too: their p-value is 1.
        n_pairs = n_volunteers * (n_volunteers - 1) // 2
        return significant_links(left, right, p_values, n_volunteers, level=self.level, n_tests=n_pairs)

    def _common_items(self) -> tuple[Array, Array, Array]:
        """Return the pairs of volunteers with common items, and how many these are, each item counting once."""
        from scipy.sparse import coo_array, csr_array, triu

        answered = csr_array(
            (np.ones(self.incidence.nnz, dtype=np.int64), self.incidence.indices, self.incidence.indptr),
            shape=self.incidence.shape,
        )
        common = coo_array(triu(answered @ answered.T, k=1))
        return common.coords[0], common.coords[1], common.data

    def _all_weights(self) -> Any:
        """Return the weights of all pairs with a common item."""
        from scipy.sparse import csr_array

        a, b = self.prior
        common = csr_array(self.incidence @ self.incidence.T)
        n_items = common.diagonal()
        common.setdiag(0)
        common.eliminate_zeros()
        rows = np.repeat(np.arange(len(self.ids)), np.diff(common.indptr))
        mean_items = (n_items[rows] + n_items[common.indices]) / 2
        values = (common.data + a) / (mean_items + a + b)
        return csr_array((values, common.indices, common.indptr), common.shape)

    def null(self, volunteers: Array, rng: np.random.Generator) -> CooccurrenceModel:
        """Rewire volunteers and items: everybody keeps the number of items, every item the number of volunteers.

        What an answer counts stays with the volunteer, so that everybody's items count as much together as before.
        """
        from scipy.sparse import coo_array, csr_array

        incidence = coo_array(self._incidence_of(volunteers))
        rows, columns = incidence.coords
        items = rewire_bipartite(rows, columns, incidence.shape[1], rng)
        rewired = csr_array((incidence.data, (rows, items)), shape=incidence.shape)
        return replace(self, ids=volunteers, incidence=rewired)

    def resampled(self, volunteers: Array, rng: np.random.Generator) -> CooccurrenceModel:
        """Draw the items with replacement: an item drawn twice counts twice, one that is not drawn does not count."""
        from scipy.sparse import csr_array

        incidence = self._incidence_of(volunteers)
        counts = bootstrap_counts(incidence.indices, incidence.shape[1], rng)
        values = incidence.data * np.sqrt(counts[incidence.indices])
        sample = csr_array((values, incidence.indices, incidence.indptr), shape=incidence.shape)
        sample.eliminate_zeros()
        return replace(self, ids=volunteers, incidence=sample)

    def _incidence_of(self, volunteers: Array) -> Any:
        return self.incidence[self.table.codes(volunteers)]
