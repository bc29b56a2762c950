"""Checks for models and detectors, for those who write their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import ArrayLike

from crowdgraph.communities.base import Detector
from crowdgraph.core._arrays import Array, object_array
from crowdgraph.core._random import child_seed
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError
from crowdgraph.models.base import Model
from crowdgraph.models.voting import MajorityVote
from crowdgraph.simulate.crowd import Group, SimulatedCrowd, crowd

__all__ = ["ExactPosterior", "check_detector", "check_model", "exact_posterior"]


def __dir__() -> list[str]:
    return __all__


# The largest number of assignments of classes to items over which a posterior is summed.
MAX_ASSIGNMENTS = 10**6


class ExactPosterior(NamedTuple):
    """The log evidence and the class probabilities of the model of `crowdgraph.IBCC`, exact for a tiny graph."""

    log_evidence: float
    item_probs: Array


def exact_posterior(graph: CrowdGraph, *, confusion_prior: ArrayLike, class_prior: ArrayLike) -> ExactPosterior:
    """Return the exact posterior of a tiny graph by a sum over all J to the power N assignments of classes to items.

    Parameters
    ----------
    graph
        A graph with few items, whose gold is certain.
    confusion_prior
        Pseudo-counts of shape (J, L), or (V, J, L) with different ones for each volunteer.
    class_prior
        Pseudo-counts of shape (J,).

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna"], "item": ["x"], "label": [1]}, labels=[0, 1])
    >>> exact_posterior(graph, confusion_prior=[[3, 1], [1, 3]], class_prior=[1, 1]).item_probs
    array([[0.25, 0.75]])
    """
    from scipy.special import gammaln, logsumexp

    n_items, n_classes, n_labels = len(graph.items), len(graph.classes), len(graph.labels)
    if graph.gold.is_soft.any():
        raise ParameterError("Gold must be certain: it cannot be a probability in a sum over true classes.")
    if n_classes**n_items > MAX_ASSIGNMENTS:
        raise ParameterError(f"{n_classes} classes and {n_items} items have too many assignments to sum over.")
    prior = np.broadcast_to(np.asarray(confusion_prior, float), (len(graph.volunteers), n_classes, n_labels))
    class_counts = np.asarray(class_prior, float)
    answers, gold = graph.answers, graph.gold.codes
    assignments, logs = [], []
    for assignment in product(range(n_classes), repeat=n_items):
        truth = np.array(assignment)
        if ((gold >= 0) & (gold != truth)).any():
            continue
        counts = np.zeros(prior.shape)
        np.add.at(counts, (answers.volunteer, truth[answers.item], answers.label), 1)
        n_items_of = np.bincount(truth, minlength=n_classes)
        logs.append(
            _dirichlet_multinomial(prior, counts, gammaln) + _dirichlet_multinomial(class_counts, n_items_of, gammaln)
        )
        assignments.append(truth)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    truths = np.array(assignments)
    probs = np.stack([weights @ (truths == j) for j in range(n_classes)], axis=1)
    return ExactPosterior(float(logsumexp(logs)), probs.clip(0, 1))


def _dirichlet_multinomial(prior: Array, counts: Array, log_gamma: Callable[[Any], Any]) -> float:
    """Return the log probability of a sequence of draws with these counts, rows along the last axis."""
    rows = log_gamma(prior.sum(-1)) - log_gamma((prior + counts).sum(-1))
    return float(rows.sum() + (log_gamma(prior + counts) - log_gamma(prior)).sum())


def check_model(model: Model, *, atol: float = 1e-6, seed: int | None = 0) -> None:
    """Raise `AssertionError` unless a model has the properties that all models have.

    Probabilities are finite and sum to one. The bound, if there is one, never falls. The same seed gives the same bits.
    The order of simultaneous responses (for models of sequences, of those by different volunteers) and the names of
    volunteers do not matter, and swapping the classes swaps the probabilities. The graph does not change. A volunteer
    without responses stays at the prior. On a simulated crowd, the model is no worse than the majority vote.

    Parameters
    ----------
    model
        A model that can be fitted to a graph of the two classes 0 and 1, with the labels 0 and 1.
    atol
        How far the probabilities for equivalent graphs may differ: more than rounding only for models that sample.
    seed
        The seed of the simulated crowd and of the fits; random if None.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> check_model(cg.MajorityVote())
    """
    seed = child_seed(np.random.default_rng()) if seed is None else seed
    simulated = _crowd(seed)
    graph = simulated.graph
    before = graph.to_arrow()
    fit = model.fit(graph, seed=seed)
    assert graph.to_arrow().equals(before), "the graph was changed"
    _check_probabilities(fit, graph)
    _check_bound(fit)
    again = model.fit(graph, seed=seed)
    assert_array_equal(fit.item_probs, again.item_probs, "the same seed gave other probabilities")
    _check_invariance(model, graph, fit, atol=atol, seed=seed)
    _check_silent_volunteer(fit)
    hidden = ~graph.gold.known
    truth = simulated.truth.classes[hidden]
    own, majority = (
        (one.item_probs.argmax(axis=1)[hidden] == truth).mean() for one in (fit, MajorityVote().fit(graph))
    )
    assert own >= majority, f"it is right for {own:.3f} of the items, the majority for {majority:.3f}"


def _crowd(seed: int) -> SimulatedCrowd:
    """Simulate good volunteers and guessers, gold for a third of the items, and a volunteer without responses."""
    groups = [
        Group(name="good", confusion=[[0.85, 0.15], [0.2, 0.8]], share=2),
        Group(name="guessing", confusion=[[0.5, 0.5], [0.5, 0.5]], share=3),
    ]
    simulated = crowd(n_volunteers=30, n_items=200, n_responses=[60] * 30, classes=(0, 1), groups=groups, seed=seed)
    graph = simulated.graph
    table = graph.to_arrow().to_pydict()
    table["time"] = [moment // 50 for moment in range(len(table["label"]))]
    gold = {item: graph.gold[item] for item in graph.items.ids[::3].tolist()}
    nodes = {"volunteers": {"volunteer": [*graph.volunteers.ids, "nobody"]}, "items": {"item": graph.items.ids}}
    return SimulatedCrowd(_build(table, gold, classes=(0, 1), **nodes), simulated.truth)


def _build(table: dict[str, Any], gold: dict[Hashable, Any], **options: Any) -> CrowdGraph:
    return CrowdGraph.from_responses(table, gold=gold, labels=(0, 1), **options)


def _check_probabilities(fit: ModelFit, graph: CrowdGraph) -> None:
    assert fit.item_probs.shape == (len(graph.items), len(graph.classes))
    assert np.isfinite(fit.item_probs).all()
    assert (fit.item_probs >= 0).all()
    assert_allclose(fit.item_probs.sum(axis=1), 1, atol=1e-12)
    assert_allclose(fit.class_probs.sum(), 1, atol=1e-12)
    fit.check_matches(graph)


def _check_bound(fit: ModelFit) -> None:
    falls = -np.diff(fit.bound)
    assert (falls <= 1e-9 * (1 + np.abs(fit.bound[1:]))).all(), f"the bound fell by {falls.max(initial=0):g}"


def _check_invariance(model: Model, graph: CrowdGraph, fit: ModelFit, *, atol: float, seed: int) -> None:
    table = graph.to_arrow().to_pydict()
    gold = {item: graph.gold[item] for item in graph.gold}
    nodes = {"volunteers": {"volunteer": graph.volunteers.ids}, "items": {"item": graph.items.ids}}
    order = _shuffle(table, seed=seed, sequential=model.sequential)
    shuffled = {name: [column[row] for row in order] for name, column in table.items()}
    renamed = {**table, "volunteer": [f"renamed {name}" for name in table["volunteer"]]}
    equivalent = {
        "another order of simultaneous responses": _build(shuffled, gold, classes=(0, 1), **nodes),
        "other names of volunteers": _build(renamed, gold, classes=(0, 1), items=nodes["items"]),
    }
    for change, other in equivalent.items():
        probs = model.fit(other, seed=seed).item_probs
        assert_allclose(probs, fit.item_probs, atol=atol, err_msg=f"{change} changed the probabilities")
    swapped = model.fit(_build(table, gold, classes=(1, 0), **nodes), seed=seed)
    assert_allclose(swapped.item_probs[:, ::-1], fit.item_probs, atol=atol, err_msg="swapping the classes did more")


def _shuffle(table: dict[str, Any], *, seed: int, sequential: bool) -> Array:
    """Return another order of the rows, with simultaneous ones shuffled, in sequences only among volunteers."""
    codes = np.unique(table["volunteer"], return_inverse=True)[1] if sequential else np.arange(len(table["time"]))
    return np.lexsort((np.random.default_rng(seed).permutation(len(codes))[codes], table["time"]))


def _check_silent_volunteer(fit: ModelFit) -> None:
    if fit.confusion is None or fit.prior is None:
        return
    silent = fit.confusion.of("nobody").latest().concentration
    assert_allclose(silent, fit.prior.of("nobody"), err_msg="a volunteer without responses left the prior")


def check_detector(detector: Detector, *, seed: int | None = 0) -> None:
    """Raise `AssertionError` unless a detector has the properties that all detectors have.

    Participations are not negative and sum to one, or to zero for volunteers without neighbours. Communities are
    ordered by size. The same seed gives the same bits. The names and the order of volunteers and the unit of weights
    do not matter. The network does not change. Planted communities with few links between them are detected.

    Parameters
    ----------
    detector
        The detector.
    seed
        The seed of the planted network and of the detector; random if None.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> check_detector(cg.Leiden())
    """
    seed = child_seed(np.random.default_rng()) if seed is None else seed
    network, planted = _planted_network(seed)
    before = network.weights.copy()
    communities = detector.detect(network, seed=seed)
    assert (network.weights != before).nnz == 0, "the network was changed"
    assert (communities.participation >= 0).all()
    assert_allclose(communities.participation.sum(axis=1), planted >= 0, atol=1e-9)
    assert_array_equal(communities.assignment < 0, planted < 0, "only volunteers without neighbours belong to none")
    assert (np.diff(communities.sizes) <= 0).all(), "communities are not ordered by size"
    again = detector.detect(network, seed=seed)
    assert_array_equal(again.participation, communities.participation, "the same seed gave other communities")
    names = object_array(f"renamed {volunteer}" for volunteer in network.ids)
    equivalent = {
        "other names of volunteers": VolunteerNetwork(ids=names, weights=network.weights, method=network.method),
        "another unit of the weights": VolunteerNetwork(
            ids=network.ids, weights=1024 * network.weights, method=network.method
        ),
    }
    for change, other in equivalent.items():
        assignment = detector.detect(other, seed=seed).assignment
        assert_array_equal(assignment, communities.assignment, f"{change} changed the communities")
    reversed_network = network.subnetwork(network.ids[::-1])
    participation = detector.detect(reversed_network, seed=seed).participation[::-1]
    assert_array_equal(
        _in_order_of_members(participation),
        _in_order_of_members(communities.participation),
        "another order of volunteers changed the communities",
    )
    pairs = {*zip(planted.tolist(), communities.assignment.tolist(), strict=True)}
    detected = len(pairs) == len(set(planted.tolist())) == len(communities) + 1
    assert detected, "the planted communities were not detected"


def _in_order_of_members(participation: Array) -> Array:
    """Return participations in communities sorted by what volunteers, one after another, have in them."""
    return participation[:, np.lexsort(participation[::-1])]


def _planted_network(seed: int) -> tuple[VolunteerNetwork, Array]:
    """Plant communities of 40, 30 and 20 volunteers with half of all pairs linked, few between them, and two loners."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    planted = rng.permutation(np.repeat([0, 1, 2, -1], [40, 30, 20, 2]))
    together = (planted[:, None] == planted) & (planted >= 0)
    apart = (planted[:, None] >= 0) & (planted >= 0)
    linked = np.triu(rng.random(together.shape) < np.where(together, 0.5, 0.01 * apart), 1)
    upper = linked * rng.uniform(0.5, 1, linked.shape)
    ids = object_array(f"volunteer {code}" for code in range(len(planted)))
    return VolunteerNetwork(ids=ids, weights=csr_array(upper + upper.T), method="planted"), planted
