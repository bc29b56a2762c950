"""The network of volunteers who behave alike, by several ranks."""

import numpy as np
import pytest
from builders import fitted
from ranks.thread_ranks import run_together

import crowdgraph as cg
from crowdgraph.distributed.similarity import shared_weights
from crowdgraph.kernels import similarity


@pytest.mark.parametrize("n_ranks", [1, 2, 4])
@pytest.mark.parametrize(
    ("distance", "max_dimensions"), [("bhattacharyya", 12), ("bhattacharyya", 0), ("hellinger", 0)]
)
@pytest.mark.parametrize("neighbours", [3, 100])
def test_ranks_find_the_neighbours_that_one_process_finds(n_ranks, distance, max_dimensions, neighbours, monkeypatch):
    monkeypatch.setattr(similarity, "MAX_TREE_DIMENSIONS", max_dimensions)
    monkeypatch.setattr(similarity, "MAX_BLOCK_ENTRIES", 100)
    graph = fitted(0.9, 0.7, 0.4)
    expected = cg.networks.pi_similarity(graph, neighbours=neighbours, distance=distance)
    for weights in run_together(lambda ranks: shared_weights(expected.model, ranks), n_ranks):
        # Blocks of other heights are multiplied in another order.
        assert np.allclose(weights.toarray(), expected.weights.toarray(), rtol=0, atol=1e-12)
        assert weights.nnz == expected.weights.nnz


def test_alone_it_is_the_network_of_one_process():
    graph = fitted(0.9, 0.7, 0.4)
    network = cg.distributed.pi_similarity(graph, neighbours=3, min_responses=5)
    expected = cg.networks.pi_similarity(graph, neighbours=3, min_responses=5)
    assert network.ids.tolist() == expected.ids.tolist()
    assert dict(network.params) == dict(expected.params)
    assert np.array_equal(network.weights.toarray(), expected.weights.toarray())
