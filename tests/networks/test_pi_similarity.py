"""The pi-similarity network against its definition, written out pair by pair."""

from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import issparse

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError
from crowdgraph.kernels import similarity

DISTANCES = ["bhattacharyya", "hellinger"]


def written_out(confusion, distance):
    """One pair and one class after another."""
    weights = np.zeros((len(confusion), len(confusion)))
    for m, first in enumerate(confusion):
        for n, second in enumerate(confusion):
            overlap = [np.sqrt(row * other).sum() for row, other in zip(first, second, strict=True)]
            apart = [max(1 - value, 0) ** (0.5 if distance == "hellinger" else 1) for value in overlap]
            weights[m, n] = 0 if m == n else np.exp(-sum(apart))
    return weights


@pytest.fixture(scope="module")
def graph():
    graph = cg.simulate.crowd(n_volunteers=25, n_items=120, n_responses=800, drift="ramp", gold=0.5, seed=0).graph
    return graph.annotate(cg.IBCC().fit(graph)).annotate(cg.DynIBCC().fit(graph))


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4), st.integers(1, 5), st.sampled_from(DISTANCES))
@settings(max_examples=40, deadline=None)
def test_similarities_are_as_defined(seed, n_volunteers, n_classes, n_labels, distance):
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.full(n_labels, 0.3), (n_volunteers, n_classes))
    expected = written_out(confusion, distance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "BLOCK", int(rng.integers(1, 60)))
        patch.setattr(similarity, "FEW", int(rng.choice([0, 100])))
        found = similarity.similarities(torch.tensor(confusion), distance=distance).numpy()
        # The square root makes 1e-8 of the rounding of two rows that are the same.
        assert_allclose(found, expected, rtol=0, atol=1e-12 if distance == "bhattacharyya" else 1e-7)
        assert_array_equal(found, found.T)
        k = int(rng.integers(1, max(n_volunteers, 2)))
        if n_volunteers > 1:
            places, values = similarity.nearest(torch.tensor(confusion), n_neighbours=k, distance=distance)
            assert (places != torch.arange(n_volunteers)[:, None]).all()
            others = -np.sort(-(expected + np.where(np.eye(n_volunteers), -1, 0)), axis=1)[:, :k]
            assert_allclose(values.numpy(), others, rtol=0, atol=1e-12 if distance == "bhattacharyya" else 1e-7)


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_network_is_that_of_the_latest_fit(graph, distance):
    network = cg.networks.pi_similarity(graph, distance=distance)
    assert_allclose(network.weights, written_out(graph.confusion().latest().mean, distance), atol=1e-12)
    assert_array_equal(network.ids, graph.volunteers.ids)
    assert network.params["distance"] == distance
    graph.annotate(network)


def test_fits_by_name_by_themselves_and_by_their_confusion(graph):
    by_name = cg.networks.pi_similarity(graph, fit="ibcc").weights
    fit = graph.fit("ibcc")
    for given_as in (fit, fit.confusion):
        assert_array_equal(cg.networks.pi_similarity(graph, fit=given_as).weights, by_name)
    assert not np.allclose(by_name, cg.networks.pi_similarity(graph, fit="dynibcc").weights)


def test_at_a_moment_confusion_and_counts_are_those_of_then(graph):
    moment = graph.responses.time[300]
    network = cg.networks.pi_similarity(graph, at=moment, min_responses=5)
    until = graph.responses.time <= moment
    counts = np.bincount(graph.responses.volunteer[until], minlength=25)
    chosen = np.flatnonzero(counts >= 5)
    assert_array_equal(network.ids, graph.volunteers.ids[chosen])
    assert_allclose(
        network.weights, written_out(graph.confusion().at(moment).mean[chosen], "bhattacharyya"), atol=1e-12
    )


@pytest.mark.parametrize("neighbours", [1, 4, 24, 100])
def test_nearest_neighbours_are_the_heaviest_links(graph, neighbours):
    whole = cg.networks.pi_similarity(graph).weights
    network = cg.networks.pi_similarity(graph, neighbours=neighbours)
    assert issparse(network.weights)
    k = min(neighbours, 24)
    wanted = whole >= -np.sort(-whole, axis=1)[:, k - 1 : k]
    expected = np.where(wanted | wanted.T, whole, 0)
    assert_allclose(network.weights.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("few", [0, 100])
def test_many_who_are_the_same_are_not_their_own_neighbours(monkeypatch, few):
    monkeypatch.setattr(similarity, "FEW", few)
    confusion = torch.tensor([[[0.8, 0.2]]] * 7 + [[[0.1, 0.9]]], dtype=torch.float64)
    places, values = similarity.nearest(confusion, n_neighbours=3, distance="bhattacharyya")
    assert (places != torch.arange(8)[:, None]).all()
    assert all(len(set(row)) == 3 for row in places.tolist())
    assert_allclose(values[:7], 1, atol=1e-12)


def test_alike_and_never_alike():
    track = cg.ConfusionTrack.static(
        ids=["a", "b", "c"],
        concentration=np.array([[[1e9, 1], [1, 1e9]], [[1e9, 1], [1, 1e9]], [[1, 1e9], [1e9, 1]]]),
        classes=(0, 1),
        labels=(0, 1),
    )
    table = {"volunteer": ["a", "b", "c"], "item": ["x"] * 3, "label": [0, 0, 1], "time": [0, 1, 2]}
    graph = cg.CrowdGraph.from_responses(table, classes=(0, 1), labels=(0, 1)).annotate(track)
    weights = cg.networks.pi_similarity(graph).weights
    assert_allclose([weights[0, 1], weights[0, 2]], [1, np.exp(-2)], atol=1e-3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"distance": "euclid"}, ParameterError, "distance='euclid' is not a choice; use one of 'bhattacharyya'"),
        ({"neighbours": 0}, ParameterError, "neighbours=0 must be a whole number from 1 up"),
        ({"neighbours": 2.5}, ParameterError, "neighbours=2.5 must be a whole number"),
        ({"min_responses": -1}, ParameterError, "min_responses=-1 must be a whole number from 0"),
        ({"min_responses": 10**6}, ParameterError, "nobody to link; lower min_responses"),
        ({"fit": "gibbs"}, NotAnnotatedError, "gibbs"),
        ({"fit": 3}, ParameterError, "fit= takes a fit, its confusion, or the name of an annotation; got a int"),
    ],
)
def test_bad_input(graph, options, error, message):
    with pytest.raises(error, match=message):
        cg.networks.pi_similarity(graph, **options)


def test_fits_of_other_graphs_and_without_confusion(graph):
    other = cg.simulate.crowd(n_volunteers=20, seed=0).graph
    with pytest.raises(AlignmentError, match="made for another graph"):
        cg.networks.pi_similarity(graph, fit=cg.IBCC().fit(other))
    with pytest.raises(NotAnnotatedError, match="'majority_vote' has no confusion matrices to compare"):
        cg.networks.pi_similarity(graph, fit=cg.MajorityVote().fit(graph))
    with pytest.raises(ParameterError, match="made from a CrowdGraph; got a ModelFit"):
        cg.networks.pi_similarity(graph.fit("ibcc"))


def test_too_many_for_all_pairs(graph, monkeypatch):
    monkeypatch.setattr(import_module("crowdgraph.networks.pi_similarity"), "MOST_DENSE", 20)
    with pytest.raises(ParameterError, match=r"All pairs of 25 volunteers are too many .*neighbours=50"):
        cg.networks.pi_similarity(graph)
    assert len(cg.networks.pi_similarity(graph, neighbours=3)) == 25
