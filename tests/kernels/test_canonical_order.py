"""The order of volunteers that depends neither on the order given nor on rounding."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from crowdgraph.kernels import canonical_order as module
from crowdgraph.kernels.canonical_order import canonical_order


def canonical(weights, marks=None):
    """Weights, and marks, in canonical order."""
    order = canonical_order(weights, marks)
    dense = weights if isinstance(weights, np.ndarray) else weights.toarray()
    return dense[np.ix_(order, order)], None if marks is None else marks[order]


def random_weights(rng, n, values):
    weights = np.triu(rng.choice(values, (n, n)), 1)
    return weights + weights.T


# Among seven volunteers there may be a triangle beside a ring of four, which nothing that is looked at tells apart.
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([(0, 1), (0, 0, 0, 1), (0, 1, 2), (0.1, 0.3, 0.7)]))
def test_the_order_given_does_not_matter(seed, n, values):
    rng = np.random.default_rng(seed)
    weights, marks, order = random_weights(rng, n, values), rng.integers(0, 2, n), rng.permutation(n)
    permuted = weights[np.ix_(order, order)]
    expected, expected_marks = canonical(weights, marks)
    for other in (permuted, csr_array(permuted)):
        found, found_marks = canonical(other, marks[order])
        np.testing.assert_array_equal(found_marks, expected_marks)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "graph",
    [
        nx.cycle_graph(9),
        nx.petersen_graph(),
        nx.balanced_tree(2, 4),
        nx.disjoint_union_all([nx.path_graph(3)] * 4),
        nx.disjoint_union_all([nx.cycle_graph(5)] * 3),
        nx.hypercube_graph(3),
        nx.complete_bipartite_graph(3, 5),
        nx.star_graph(6),
        nx.gnm_random_graph(60, 70, seed=0),
    ],
)
def test_volunteers_who_could_change_places_are_told_apart_alike(graph):
    weights, rng = nx.to_numpy_array(graph), np.random.default_rng(0)
    expected, _ = canonical(weights)
    for _ in range(10):
        order = rng.permutation(len(weights))
        found, _ = canonical(csr_array(weights[np.ix_(order, order)]))
        np.testing.assert_array_equal(found, expected)


def test_rounding_does_not_matter():
    rng = np.random.default_rng(0)
    weights, order = random_weights(rng, 300, rng.random(40)), rng.permutation(300)
    noise = random_weights(rng, 300, [-1e-14, 0, 1e-14])
    expected, found = (canonical_order(one) for one in (weights, (weights * (1 + noise))[np.ix_(order, order)]))
    np.testing.assert_array_equal(order[found], expected)


def test_the_unit_does_not_matter():
    weights = random_weights(np.random.default_rng(0), 50, [0, 0, 1, 2, 3.5])
    for unit in (1e-300, 1e-3, 1e300):
        np.testing.assert_array_equal(canonical_order(unit * weights), canonical_order(weights))


def test_those_without_links_are_left_out():
    weights = np.zeros((6, 6))
    weights[1, 4] = weights[4, 1] = 2.0
    assert sorted(canonical_order(weights).tolist()) == [1, 4]
    assert not len(canonical_order(np.zeros((3, 3))))


def test_there_is_an_end(monkeypatch):
    monkeypatch.setattr(module, "MIN_LOOKS", 0)
    order = canonical_order(1 - np.eye(40))
    np.testing.assert_array_equal(np.sort(order), np.arange(40))


def test_blocks_do_not_matter(monkeypatch):
    weights = random_weights(np.random.default_rng(0), 60, [0, 0, 0, 1, 2])
    expected = [canonical_order(weights), canonical_order(csr_array(weights))]
    monkeypatch.setattr(module, "WEIGHTS_PER_BLOCK", 100)
    for one, other in zip(expected, [canonical_order(weights), canonical_order(csr_array(weights))], strict=True):
        np.testing.assert_array_equal(one, other)
