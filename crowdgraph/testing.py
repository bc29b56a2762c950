"""Checks for models and detectors, shipped so that those who write their own can use them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import ArrayLike

from crowdgraph.communities.base import Detector
from crowdgraph.core._arrays import Array, object_array
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError
from crowdgraph.models.base import Model
from crowdgraph.models.voting import MajorityVote
from crowdgraph.simulate.crowd import Group, SimulatedCrowd, crowd

__all__ = ["ExactPosterior", "check_detector", "check_model", "exact_posterior"]


class ExactPosterior(NamedTuple):
    """The exact answer of the model of `crowdgraph.IBCC` on a tiny graph: log evidence and class probabilities."""

    log_evidence: float
    item_probs: Array


def exact_posterior(graph: CrowdGraph, *, confusion_prior: ArrayLike, class_prior: ArrayLike) -> ExactPosterior:
    """Sum over all labellings of a tiny graph, of which there are J to the power N.

    Parameters
    ----------
    graph
        A graph with few items; gold must be certain.
    confusion_prior
        Pseudo-counts of shape (J, L), or (K, J, L) for each volunteer's own.
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
        raise ParameterError("Gold must be certain: a probability is no evidence that could be summed over.")
    if n_classes**n_items > 10**6:
        raise ParameterError(f"{n_classes} classes and {n_items} items make too many labellings to sum over.")
    prior = np.broadcast_to(np.asarray(confusion_prior, float), (len(graph.volunteers), n_classes, n_labels))
    class_counts = np.asarray(class_prior, float)
    answered = graph.responses.label >= 0
    volunteer, item = graph.responses.volunteer[answered], graph.responses.item[answered]
    label, gold = graph.responses.label[answered], graph.gold.codes
    labellings, logs = [], []
    for labelling in product(range(n_classes), repeat=n_items):
        truth = np.array(labelling)
        if ((gold >= 0) & (gold != truth)).any():
            continue
        counts = np.zeros(prior.shape)
        np.add.at(counts, (volunteer, truth[item], label), 1)
        drawn = np.bincount(truth, minlength=n_classes)
        logs.append(
            _dirichlet_multinomial(prior, counts, gammaln) + _dirichlet_multinomial(class_counts, drawn, gammaln)
        )
        labellings.append(truth)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    chosen = np.array(labellings)
    probs = np.stack([weights @ (chosen == j) for j in range(n_classes)], axis=1)
    return ExactPosterior(float(logsumexp(logs)), probs.clip(0, 1))


def _dirichlet_multinomial(prior: Array, counts: Array, log_gamma: Callable[[Any], Any]) -> float:
    """The log probability of a sequence of draws with these counts, rows along the last axis."""
    rows = log_gamma(prior.sum(-1)) - log_gamma((prior + counts).sum(-1))
    return float(rows.sum() + (log_gamma(prior + counts) - log_gamma(prior)).sum())


def check_model(model: Model, *, atol: float = 1e-6, seed: int | None = 0) -> None:
    """Raise `AssertionError` unless a model keeps the promises that all models make.

    Probabilities are finite and sum to one; the bound, if there is one, never falls; the same seed gives the same bits;
    the order of simultaneous responses (to models of sequences: of different volunteers) and the names of volunteers do
    not matter, and swapped classes swap the answer;
    the graph stays as it is; a volunteer without responses stays at the prior; and on a simulated crowd the model is no
    worse than the majority.

    Parameters
    ----------
    model
        A model that can be fitted to a graph of the two classes 0 and 1, with the labels 0 and 1.
    atol
        How far the answers of graphs that mean the same may differ: more than rounding only for models that draw.
    seed
        The seed of the simulated crowd and of the fits; drawn if None.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> check_model(cg.MajorityVote())
    """
    seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
    simulated = _crowd(seed)
    graph = simulated.graph
    before = graph.to_arrow()
    fit = model.fit(graph, seed=seed)
    assert graph.to_arrow().equals(before), "the graph was changed"
    _check_probabilities(fit, graph)
    _check_bound(fit)
    again = model.fit(graph, seed=seed)
    assert_array_equal(fit.item_probs, again.item_probs, "the same seed gave another answer")
    _check_invariance(model, graph, fit, atol=atol, seed=seed)
    _check_silent_volunteer(fit)
    hidden = ~graph.gold.known
    truth = simulated.truth.classes[hidden]
    right = [(found.item_probs.argmax(axis=1)[hidden] == truth).mean() for found in (fit, MajorityVote().fit(graph))]
    assert right[0] >= right[1], f"it is right for {right[0]:.3f} of the items, the majority for {right[1]:.3f}"


def _crowd(seed: int) -> SimulatedCrowd:
    """Good volunteers and guessers, with gold for a third of the items, and one volunteer without responses."""
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
    return SimulatedCrowd(_built(table, gold, classes=(0, 1), **nodes), simulated.truth)


def _built(table: dict[str, Any], gold: dict[Hashable, Any], **options: Any) -> CrowdGraph:
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
    shuffled = _shuffled(table, seed=seed, sequential=model.sequential)
    mixed = {name: [column[row] for row in shuffled] for name, column in table.items()}
    renamed = {**table, "volunteer": [f"renamed {name}" for name in table["volunteer"]]}
    same = {
        "another order of simultaneous responses": _built(mixed, gold, classes=(0, 1), **nodes),
        "other names of volunteers": _built(renamed, gold, classes=(0, 1), items=nodes["items"]),
    }
    for what, other in same.items():
        found = model.fit(other, seed=seed)
        assert_allclose(found.item_probs, fit.item_probs, atol=atol, err_msg=f"{what} changed the answer")
    swapped = model.fit(_built(table, gold, classes=(1, 0), **nodes), seed=seed)
    assert_allclose(swapped.item_probs[:, ::-1], fit.item_probs, atol=atol, err_msg="swapping the classes did more")


def _shuffled(table: dict[str, Any], *, seed: int, sequential: bool) -> Array:
    """Another order of the rows: simultaneous ones trade places, in sequences only those of different volunteers."""
    codes = np.unique(table["volunteer"], return_inverse=True)[1] if sequential else np.arange(len(table["time"]))
    return np.lexsort((np.random.default_rng(seed).permutation(len(codes))[codes], table["time"]))


def _check_silent_volunteer(fit: ModelFit) -> None:
    if fit.confusion is None or fit.prior is None:
        return
    silent = fit.confusion.of("nobody").latest().concentration
    assert_allclose(silent, fit.prior.of("nobody"), err_msg="a volunteer without responses left the prior")


def check_detector(detector: Detector, *, seed: int | None = 0) -> None:
    """Raise `AssertionError` unless a detector keeps the promises that all detectors make.

    Participations are not negative and sum to one, to zero for those without neighbours; communities are ordered by
    size; the same seed gives the same bits; names of volunteers and the unit of the weights do not matter; the network
    stays as it is; and planted communities that hardly anything links are found.

    Parameters
    ----------
    detector
        The detector.
    seed
        The seed of the planted network and of the detector.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> check_detector(cg.Leiden())
    """
    network, planted = _planted_network(seed)
    before = network.weights.copy()
    found = detector.detect(network, seed=seed)
    assert (network.weights != before).nnz == 0, "the network was changed"
    assert (found.participation >= 0).all()
    assert_allclose(found.participation.sum(axis=1), planted >= 0, atol=1e-9)
    assert_array_equal(found.assignment < 0, planted < 0, "only volunteers without neighbours belong to none")
    assert (np.diff(found.sizes) <= 0).all(), "communities are not ordered by size"
    again = detector.detect(network, seed=seed)
    assert_array_equal(again.participation, found.participation, "the same seed gave other communities")
    names = object_array(f"renamed {volunteer}" for volunteer in network.ids)
    same = {
        "other names of volunteers": VolunteerNetwork(ids=names, weights=network.weights, method=network.method),
        "another unit of the weights": VolunteerNetwork(
            ids=network.ids, weights=1024 * network.weights, method=network.method
        ),
    }
    for what, other in same.items():
        groups = detector.detect(other, seed=seed)
        assert_array_equal(groups.assignment, found.assignment, f"{what} changed the communities")
    pairs = {*zip(planted.tolist(), found.assignment.tolist(), strict=True)}
    assert len(pairs) == len(set(planted.tolist())) == len(found) + 1, "planted communities were not found"


def _planted_network(seed: int) -> tuple[VolunteerNetwork, Array]:
    """Communities of 40, 30 and 20 volunteers, half of whose pairs are linked, few between them; and two loners."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    planted = rng.permutation(np.repeat([0, 1, 2, -1], [40, 30, 20, 2]))
    together = (planted[:, None] == planted) & (planted >= 0)
    apart = (planted[:, None] >= 0) & (planted >= 0)
    linked = np.triu(rng.random(together.shape) < np.where(together, 0.5, 0.01 * apart), 1)
    upper = linked * rng.uniform(0.5, 1, linked.shape)
    ids = object_array(f"volunteer {code}" for code in range(len(planted)))
    return VolunteerNetwork(ids=ids, weights=csr_array(upper + upper.T), method="planted"), planted
