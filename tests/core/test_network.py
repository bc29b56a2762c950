"""Networks: read-outs against networkx, parts, rewired networks, and what is refused."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from builders import network_of
from hypothesis import given
from hypothesis import strategies as st
from networkx import connected_components
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import chisquare

import crowdgraph as cg
from crowdgraph.communities.quality import modularity
from crowdgraph.core._rewiring import rewire_bipartite, rewire_pairs
from crowdgraph.errors import ResultError


def random_weights(rng, n, share):
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return upper + upper.T


@pytest.mark.parametrize("sparse", [False, True])
def test_read_outs_are_those_of_networkx(sparse):
    rng = np.random.default_rng(0)
    weights = random_weights(rng, 9, 0.3)
    network = network_of(weights, ids=range(9), sparse=sparse)
    reference = nx.from_numpy_array(weights)
    assert network.n_edges == reference.number_of_edges()
    assert network.density == pytest.approx(nx.density(reference))
    assert network.isolated.tolist() == list(nx.isolates(reference))
    np.testing.assert_allclose(network.strength, [s for _, s in reference.degree(weight="weight")])
    assert network.degree.tolist() == [d for _, d in reference.degree()]
    assert nx.utils.graphs_equal(network.to_networkx(), reference) or set(network.to_networkx().edges) == set(
        reference.edges
    )
    graph = network.to_igraph()
    assert graph.vs["id"] == list(range(9))
    assert sorted(graph.es["weight"]) == sorted(w for *_, w in reference.edges(data="weight"))
    frame = network.to_frame()
    assert len(frame) == network.n_edges
    assert f"{network.n_edges} edges" in repr(network)


def test_a_network_of_nobody_is_possible():
    network = network_of(np.zeros((0, 0)))
    assert (len(network), network.density, network.n_edges) == (0, 0.0, 0)


@given(st.integers(0, 2**32), st.integers(1, 15), st.booleans())
def test_components_are_networkxs(seed, n, sparse):
    rng = np.random.default_rng(seed)
    network = network_of(random_weights(rng, n, 0.12), ids=range(n), sparse=sparse)
    result = [set(np.flatnonzero(network.components == part)) for part in range(network.components.max() + 1)]
    assert sorted(map(sorted, result)) == sorted(map(sorted, connected_components(network.to_networkx())))
    assert [len(part) for part in result] == sorted(map(len, result), reverse=True)


@pytest.mark.parametrize("sparse", [False, True])
def test_subnetworks_keep_the_weights_between_their_volunteers(sparse):
    weights = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    network = network_of(weights, ids=["a", "b", "c"], sparse=sparse, params={"k": 1}, support=[1, 2, 3])
    part = network.subnetwork(["c", "a"])
    assert part.ids.tolist() == ["c", "a"]
    assert_array_equal(part.to_igraph().es["weight"], [2])
    assert (part.method, dict(part.params)) == ("by hand", {"k": 1})
    assert part.support.tolist() == [3, 1]


@given(st.integers(0, 2**32), st.integers(1, 14), st.integers(1, 9), st.floats(0, 1))
def test_rewired_links_keep_both_numbers_and_stay_apart(seed, n_left, n_right, share):
    rng = np.random.default_rng(seed)
    left, right = np.nonzero(rng.random((n_left, n_right)) < share)
    result = rewire_bipartite(left, right, n_right, rng)
    assert_array_equal(np.bincount(result, minlength=n_right), np.bincount(right, minlength=n_right))
    assert len(set(zip(left.tolist(), result.tolist(), strict=True))) == len(left)


@given(st.integers(0, 2**32), st.integers(2, 14), st.floats(0, 1))
def test_rewired_pairs_keep_everybodys_number(seed, n, share):
    rng = np.random.default_rng(seed)
    left, right = np.nonzero(np.triu(rng.random((n, n)) < share, 1))
    result = rewire_pairs(left, right, n, rng)
    assert_array_equal(np.bincount(np.concatenate(result), minlength=n), np.bincount([*left, *right], minlength=n))
    assert len({frozenset(pair) for pair in zip(*map(np.ndarray.tolist, result), strict=True)} - {()}) == len(left)
    assert (result[0] != result[1]).all()


def test_all_rewirings_are_drawn_alike():
    """Of two volunteers with two of four items each there are six, and of a ring of five, twelve."""
    rng = np.random.default_rng(0)
    pairs, rings = Counter(), Counter()
    for _ in range(120):
        right = rewire_bipartite(np.array([0, 0, 1, 1]), np.arange(4), 4, rng)
        pairs[frozenset(right[:2].tolist())] += 1
    for _ in range(240):
        ends = rewire_pairs(np.arange(5), np.array([1, 2, 3, 4, 0]), 5, rng)
        rings[frozenset(map(frozenset, zip(*map(np.ndarray.tolist, ends), strict=True)))] += 1
    for counts, n in ((pairs, 6), (rings, 12)):
        assert len(counts) == n
        assert chisquare(list(counts.values())).pvalue > 0.001


class CountedRounds(np.random.Generator):
    """A generator that counts the orders drawn from it: one for each round of swaps."""

    n = 0

    def permutation(self, x, axis=0):
        self.n += 1
        return super().permutation(x, axis)


def test_links_are_swapped_some_times_each_and_no_more_often():
    links = np.random.default_rng(0).permutation(200 * 300)[:2_000]
    rng = CountedRounds(np.random.PCG64(0))
    rewire_bipartite(links // 300, links % 300, 300, rng)
    # A round swaps somewhat less than 80 % of the links, and each is to be swapped three times.
    assert 4 <= rng.n <= 5
    # Where everything is linked, swaps are tried and none is possible.
    rng = CountedRounds(np.random.PCG64(0))
    everything = np.arange(64)
    assert (rewire_bipartite(everything // 8, everything % 8, 8, rng) == everything % 8).all()
    assert rng.n == 100


@pytest.mark.parametrize("sparse", [False, True])
def test_a_network_made_by_hand_is_rewired(sparse):
    weights = random_weights(np.random.default_rng(0), 60, 0.1)
    network = network_of(weights, sparse=sparse, support=np.arange(60), params={"k": 1})
    null = network.null(seed=3)
    assert_array_equal(null.degree, network.degree)
    shared = (null.weights > 0).multiply(network.weights > 0) if sparse else null.weights * weights
    assert np.count_nonzero(shared.data if sparse else shared) < 0.5 * 2 * network.n_edges
    assert type(null.weights) is type(network.weights)
    assert (null.method, null.ids is network.ids, dict(null.params)) == ("by hand without communities", True, {"k": 1})
    assert_array_equal(null.support, network.support)
    assert null.model is None
    again, other = network.null(seed=3), network.null(seed=4)
    assert abs(null.weights - again.weights).max() == 0
    assert abs(null.weights - other.weights).max() > 0
    assert null.null(seed=0).method == "by hand without communities"


@pytest.mark.parametrize("exponent", [-700, 700])
def test_rewiring_does_not_depend_on_the_unit(exponent):
    """Powers of two so far out that a product of two weights is beyond the numbers; about 1e-211 and 1e211."""
    weights = random_weights(np.random.default_rng(0), 60, 0.1)
    expected = network_of(weights).null(seed=3).weights
    actual = network_of(np.ldexp(weights, exponent)).null(seed=3).weights
    assert_array_equal(np.ldexp(actual, -exponent), expected)


def test_rewiring_keeps_who_has_heavy_links():
    rng = np.random.default_rng(1)
    linked = np.triu(rng.random((80, 80)) < 0.2, 1)
    activity = rng.pareto(1.5, 80) + 0.3
    weights = linked * np.outer(activity, activity) * rng.uniform(0.5, 1.5, (80, 80))
    network = network_of(weights + weights.T)
    null = network.null(seed=0)
    assert np.corrcoef(np.log(null.strength), np.log(network.strength))[0, 1] > 0.9
    assert_allclose(null.strength.sum(), network.strength.sum())
    equal = network_of(3.0 * (linked + linked.T))
    assert_allclose(equal.null(seed=0).pairs()[2], 3.0)


def test_a_network_without_links_is_its_own_null():
    assert network_of(csr_array((4, 4))).null(seed=0).n_edges == 0


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_indices_beyond_the_shape_are_refused(kind):
    """SciPy's compiled code would read and write there."""
    weights = csr_array(np.ones((3, 3)) - np.eye(3)).asformat(kind)
    for value in (500_000_000, -1):
        codes = weights.row if kind == "coo" else weights.indices
        before, codes[0] = codes[0], value
        with pytest.raises(ResultError, match="indices"):
            cg.VolunteerNetwork(ids="abc", weights=weights, method="by hand")
        codes[0] = before
    assert cg.VolunteerNetwork(ids="abc", weights=weights, method="by hand").n_edges == 3


def test_beginnings_of_rows_that_do_not_rise_are_refused():
    weights = csr_array(np.ones((3, 3)) - np.eye(3))
    for wrong in ([0, 5, 2, 6], [0, 2, 4, 7], [1, 2, 4, 6], [0, 2, 4, -1]):
        weights.indptr[:] = wrong
        with pytest.raises(ResultError, match="indptr must rise from 0"):
            cg.VolunteerNetwork(ids="abc", weights=weights, method="by hand")


@pytest.mark.parametrize("sparse", [False, True])
def test_nobody_is_a_network_and_no_links_have_no_modularity(sparse):
    nobody = network_of(np.zeros((0, 0)), ids=[], sparse=sparse)
    assert (len(nobody), nobody.n_edges) == (0, 0)
    strangers = network_of(np.zeros((3, 3)), sparse=sparse)
    assert modularity(strangers, [0, 0, 1]) == 0
