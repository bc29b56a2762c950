"""Quality of communities against networkx, igraph and sums written out."""

import networkx as nx
import numpy as np
from builders import communities_of, mirrored, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import crowdgraph as cg

quality = cg.communities.quality


@st.composite
def cases(draw):
    """A random weighted network, dense or sparse, and an assignment of all volunteers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 14))
    linked = rng.random((n, n)) < draw(st.sampled_from([0.15, 0.5, 1]))
    weights = mirrored(rng.uniform(0.1, 3, (n, n)) * linked)
    network = network_of(weights, ids=range(n), sparse=draw(st.booleans()))
    return network, rng.integers(0, draw(st.integers(1, 4)), n), rng


@given(cases())
def test_modularity_and_coverage_are_those_of_networkx_and_igraph(case):
    network, assignment, _ = case
    graph, groups = network.to_networkx(), [set(np.flatnonzero(assignment == k)) for k in np.unique(assignment)]
    result = quality.modularity(network, assignment)
    if network.n_edges:
        assert abs(result - nx.community.modularity(graph, groups)) < 1e-12
        assert abs(result - network.to_igraph().modularity(assignment.tolist(), weights="weight")) < 1e-12
        inside = sum(graph.subgraph(group).size(weight="weight") for group in groups)
        assert_allclose(quality.coverage(network, assignment), inside / graph.size(weight="weight"))
    else:
        assert result == 0
        assert quality.coverage(network, assignment) == 1


@given(cases())
def test_conductance_is_networkxs(case):
    network, assignment, _ = case
    graph, result = network.to_networkx(), quality.conductance(network, assignment)
    for k in range(len(result)):
        group = set(np.flatnonzero(assignment == k))
        strength = [sum(network.strength[list(part)]) for part in (group, set(graph) - group)]
        if min(strength) > 0:
            assert_allclose(result[k], nx.conductance(graph, group, weight="weight"))
        else:
            assert np.isnan(result[k])


@given(cases())
def test_soft_modularity_is_the_mean_over_drawn_memberships_of_pairs(case):
    """Two ends that draw their communities by participation are in the same one with probability u'u."""
    network, _, rng = case
    shares = rng.dirichlet(np.ones(3), len(network))
    weights = network.weights.toarray() if not isinstance(network.weights, np.ndarray) else network.weights
    total = weights.sum()
    expected = 0.0
    if total:
        null = np.outer(network.strength, network.strength) / total
        expected = ((weights - null) * (shares @ shares.T)).sum() / total
    assert abs(quality.soft_modularity(network, shares) - expected) < 1e-12


@given(cases())
@settings(max_examples=30, deadline=None)
def test_those_of_no_community_are_communities_of_one(case):
    network, assignment, rng = case
    nobody = rng.random(len(assignment)) < 0.4
    alone = np.where(nobody, assignment.max() + 1 + np.arange(len(assignment)), assignment)
    result = quality.modularity(network, np.where(nobody, -1, assignment))
    assert abs(result - quality.modularity(network, alone)) < 1e-12


def test_communities_of_a_larger_network_are_judged_on_this_one():
    network = network_of([[0, 1], [1, 0]], ids="ab")
    assert quality.modularity(network, communities_of([0, 1, 1], ids="cba")) == 0
