"""Leiden is igraph's, whatever holds the network."""

import random

import igraph
from builders import crowd, network_of
from numpy.testing import assert_array_equal

import crowdgraph as cg


def test_dense_and_sparse_networks_are_the_same_to_leiden(task_network):
    sparse, community = task_network
    dense = network_of(sparse.weights.toarray(), ids=sparse.ids)
    groups = [cg.Leiden().detect(network, seed=3) for network in (sparse, dense)]
    assert_array_equal(groups[0].assignment, groups[1].assignment)
    assert len({*zip(community.tolist(), groups[0].assignment.tolist(), strict=True)}) == 4


def test_modularity_is_igraphs_and_more_starts_are_no_worse():
    graph = crowd(n_volunteers=80, n_items=300, n_responses=2_000, n_communities=4, mixing=0.6, seed=1).graph
    network = cg.networks.task_cooccurrence(graph)
    groups = cg.Leiden().detect(network, seed=0)
    peer = network.to_igraph()
    assert abs(groups.modularity - peer.modularity(groups.assignment.tolist(), weights="weight")) < 1e-12
    assert cg.Leiden(restarts=10).detect(network, seed=0).modularity >= groups.modularity - 1e-12
    assert len(cg.Leiden(resolution=3).detect(network, seed=0)) > len(groups)


def test_detection_leaves_igraphs_random_numbers_alone():
    random.seed(0)
    expected = igraph.Graph.Erdos_Renyi(20, 0.3).get_edgelist()
    random.seed(0)
    cg.Leiden().detect(network_of([[0, 1], [1, 0]]), seed=5)
    assert igraph.Graph.Erdos_Renyi(20, 0.3).get_edgelist() == expected
