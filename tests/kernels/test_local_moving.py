"""Local moving: no single move is better, and starts of a search explain the links they begin with."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.weights import symmetric_weights
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from crowdgraph.kernels.local_moving import _joined, community_start, local_moving
from crowdgraph.kernels.nmf_search import BACKGROUND_SHARE


def moved(weights, *, resolution=1.0, seed=0):
    links = csr_array(weights)
    order = np.random.default_rng(seed).permutation(len(weights))
    return local_moving(
        links.indptr.astype(np.int64), links.indices.astype(np.int32), links.data, order, resolution=resolution
    )


def modularity(weights, label, resolution):
    """Newman's modularity with a resolution, in one line."""
    strength, same = weights.sum(1), label[:, None] == label
    return ((weights - resolution * np.outer(strength, strength) / weights.sum()) * same).sum() / weights.sum()


def started(weights, k, seed=0):
    return community_start(csr_array(weights), k, torch.Generator().manual_seed(seed)).numpy()


@given(st.integers(0, 10**6), st.integers(2, 25), st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=40)
def test_no_move_to_a_neighbour_raises_modularity(seed, n, resolution):
    weights = symmetric_weights(np.random.default_rng(seed), n, 0.3)
    label = moved(weights, resolution=resolution, seed=seed)
    assert_array_equal(np.unique(label), np.arange(label.max() + 1))
    reached = modularity(weights, label, resolution)
    assert reached >= modularity(weights, np.arange(n), resolution)
    for volunteer in range(n):
        for other in np.unique(label[weights[volunteer] > 0]):
            changed = label.copy()
            changed[volunteer] = other
            assert modularity(weights, changed, resolution) <= reached + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_planted_blocks_are_found(seed):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(4), [12, 20, 30, 38])
    linked = np.triu(rng.random((100, 100)) < np.where(group[:, None] == group, 0.7, 0.05), 1)
    assert adjusted_rand_score(moved(linked + linked.T.astype(float), seed=seed), group) == 1


def test_a_ring_of_cliques_shows_the_resolution():
    """Modularity merges neighbouring cliques where there are many; a higher resolution does not."""
    n_cliques, size = 30, 5
    clique = np.arange(n_cliques * size) // size
    weights = (clique[:, None] == clique).astype(float)
    np.fill_diagonal(weights, 0)
    for first in range(n_cliques):
        left, right = first * size, (first + 1) % n_cliques * size + 1
        weights[left, right] = weights[right, left] = 1
    assert moved(weights).max() + 1 < n_cliques
    assert_array_equal(moved(weights, resolution=4.0), clique)


def test_starts_explain_links_half_by_either_community():
    """Two triangles with one link between them: each end belongs to the other triangle by half a link."""
    weights = np.kron(np.eye(2), np.ones((3, 3))) - np.eye(6)
    weights[2, 3] = weights[3, 2] = 1
    counts = np.array([[2, 0], [2, 0], [2.5, 0.5], [0.5, 2.5], [0, 2], [0, 2]])
    expected = counts / np.sqrt(7)
    expected += BACKGROUND_SHARE * expected.sum(1).mean() / 2
    actual = started(weights, 5)
    assert_allclose(actual if actual[0, 0] > actual[0, 1] else actual[:, ::-1], expected)


def test_the_weakest_communities_join_others():
    """Cliques of six, five and four: the last joins that of five, and a volunteer without weights is near to both."""
    clique = np.repeat([0, 1, 2], [4, 6, 5])
    weights = (clique[:, None] == clique).astype(float)
    np.fill_diagonal(weights, 0)
    weights = np.pad(weights, (0, 1))
    start = started(weights, 2)
    assert_array_equal(start.argmax(1)[:15], clique[:15] != 1)
    assert_allclose(start[15], BACKGROUND_SHARE * (start - start[15]).sum(1).mean() / 2)
    assert start.min() > 0
    assert started(weights, 9).shape == (16, 3)


def joined(weights, label, k):
    links = csr_array(weights)
    return _joined(links.indptr.astype(np.int64), links.indices, links.data, weights.sum(1), label, k)


@given(st.integers(0, 10**6), st.integers(4, 25), st.integers(1, 4))
@settings(max_examples=30)
def test_the_next_to_join_are_those_where_modularity_is_highest(seed, n, k):
    rng = np.random.default_rng(seed)
    weights = symmetric_weights(rng, n, 0.1)
    label = np.unique(rng.integers(0, 8, n), return_inverse=True)[1]
    strength = weights.sum(1)
    sizes = np.bincount(label, weights=strength)
    order = [community for community in np.argsort(-sizes, kind="stable") if sizes[community] > 0]
    # Those that have not joined yet are communities of their own, with numbers from 100.
    expected = np.where(sizes[label] > 0, 100 + label, 0)
    for group, community in enumerate(order[:k]):
        expected[label == community] = group
    while waiting := [community for community in order if (expected == 100 + community).any()]:
        groups = [np.where(label == community, group, expected) for community in waiting for group in range(k)]
        linked = [one for one in groups if weights[one != expected][:, expected < 100].any()]
        if linked:
            expected = max(linked, key=lambda one: modularity(weights, one, 1.0))
        else:
            lightest = min(range(k), key=lambda group, now=expected: strength[now == group].sum())
            expected[label == waiting[0]] = lightest
    assert_array_equal(joined(weights, label, k), expected)


def test_two_communities_of_six_cliques_are_half_of_them_each():
    """Cliques in a ring join their neighbours; cliques that nothing links join the lightest."""
    clique = np.arange(36) // 6
    apart = (clique[:, None] == clique) - np.eye(36)
    ring = apart.copy()
    for first in range(6):
        left, right = first * 6, (first + 1) % 6 * 6 + 1
        ring[left, right] = ring[right, left] = 1
    for weights in (apart, ring):
        assert np.bincount(joined(weights, clique, 2)).tolist() == [18, 18]
    group = joined(ring, clique, 2)[::6]
    assert (group != np.roll(group, 1)).sum() == 2


def test_the_order_of_volunteers_comes_from_the_generator():
    weights = symmetric_weights(np.random.default_rng(0), 30, 0.2)
    assert_array_equal(started(weights, 6, seed=1), started(weights, 6, seed=1))
    assert any(
        started(weights, 30, seed=0).shape != started(weights, 30, seed=seed).shape
        or (started(weights, 30, seed=0) != started(weights, 30, seed=seed)).any()
        for seed in range(1, 6)
    )
