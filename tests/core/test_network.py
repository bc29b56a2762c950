"""Parts of networks: connected ones, and those of some volunteers; rewired networks, and what cannot be drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx import connected_components
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.core._rewiring import rewire_bipartite, rewire_pairs
from crowdgraph.errors import IdError, ParameterError, ResultError, UnknownIdError


@given(st.integers(0, 2**32), st.integers(1, 15), st.booleans())
def test_components_are_networkxs(seed, n, sparse):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.12), 1)
    weights = upper + upper.T
    network = cg.VolunteerNetwork(ids=range(n), weights=csr_array(weights) if sparse else weights, method="drawn")
    result = [set(np.flatnonzero(network.components == part)) for part in range(network.components.max() + 1)]
    assert sorted(map(sorted, result)) == sorted(map(sorted, connected_components(network.to_networkx())))
    assert [len(part) for part in result] == sorted(map(len, result), reverse=True)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_subnetworks_keep_the_weights_between_their_volunteers(kind):
    weights = kind(np.array([[0, 1.0, 2], [1, 0, 3], [2, 3, 0]]))
    network = cg.VolunteerNetwork(ids=["a", "b", "c"], weights=weights, method="by hand", params={"k": 1})
    part = network.subnetwork(["c", "a"])
    assert part.ids.tolist() == ["c", "a"]
    assert_array_equal(part.to_igraph().es["weight"], [2])
    assert (part.method, dict(part.params)) == ("by hand", {"k": 1})
    with pytest.raises(UnknownIdError, match="nobody"):
        network.subnetwork(["nobody"])
    with pytest.raises(IdError, match="Expected several volunteer ids"):
        network.subnetwork("a")


def drawn(rng, n, share):
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return upper + upper.T


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
    counts = {}
    for _ in range(300):
        pair = tuple(sorted(rewire_bipartite(np.array([0, 0, 1, 1]), np.arange(4), 4, rng)[:2].tolist()))
        counts[pair] = counts.get(pair, 0) + 1
    assert len(counts) == 6
    assert max(abs(count - 50) for count in counts.values()) < 5 * np.sqrt(50)
    rings = {}
    for _ in range(600):
        left, right = rewire_pairs(np.arange(5), np.array([1, 2, 3, 4, 0]), 5, rng)
        ring = frozenset(map(frozenset, zip(left.tolist(), right.tolist(), strict=True)))
        rings[ring] = rings.get(ring, 0) + 1
    assert len(rings) == 12
    assert max(abs(count - 50) for count in rings.values()) < 5 * np.sqrt(50)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_a_network_made_by_hand_is_rewired(kind):
    weights = drawn(np.random.default_rng(0), 60, 0.1)
    network = cg.VolunteerNetwork(
        ids=range(60), weights=kind(weights), method="by hand", support=np.arange(60), params={"k": 1}
    )
    null = network.null(seed=3)
    assert_array_equal(null.degree, network.degree)
    shared = (null.weights > 0).multiply(network.weights > 0) if kind is csr_array else null.weights * weights
    assert np.count_nonzero(shared.data if kind is csr_array else shared) < 0.5 * 2 * network.n_edges
    assert type(null.weights) is type(network.weights)
    assert (null.method, null.ids is network.ids, dict(null.params)) == ("by hand without communities", True, {"k": 1})
    assert_array_equal(null.support, network.support)
    assert null.model is None
    again, other = network.null(seed=3), network.null(seed=4)
    assert abs(null.weights - again.weights).max() == 0
    assert abs(null.weights - other.weights).max() > 0
    assert null.null(seed=0).method == "by hand without communities"


def test_rewiring_keeps_who_has_heavy_links():
    rng = np.random.default_rng(1)
    linked = np.triu(rng.random((80, 80)) < 0.2, 1)
    activity = rng.pareto(1.5, 80) + 0.3
    weights = linked * np.outer(activity, activity) * rng.uniform(0.5, 1.5, (80, 80))
    network = cg.VolunteerNetwork(ids=range(80), weights=weights + weights.T, method="by hand")
    null = network.null(seed=0)
    assert np.corrcoef(np.log(null.strength), np.log(network.strength))[0, 1] > 0.9
    assert_allclose(null.strength.sum(), network.strength.sum())
    equal = cg.VolunteerNetwork(ids=range(80), weights=3.0 * (linked + linked.T), method="by hand")
    assert_allclose(equal.null(seed=0).edges()[2], 3.0)


def test_what_cannot_be_drawn():
    network = cg.VolunteerNetwork(ids=range(4), weights=1 - np.eye(4), method="by hand")
    with pytest.raises(
        ParameterError, match=r"'by hand' links 100% of all pairs.*Build it with networks.pi_similarity"
    ):
        network.null(seed=0)
    with pytest.raises(ParameterError, match="'by hand' has no model of how it was built"):
        network.resampled(seed=0)
    for draw in (network.null, network.resampled):
        with pytest.raises(ParameterError, match=r"seed=0\.5 must be a whole number"):
            draw(seed=0.5)
    empty = cg.VolunteerNetwork(ids=range(4), weights=csr_array((4, 4)), method="by hand")
    assert empty.null(seed=0).n_edges == 0


def test_support_is_one_number_for_each():
    with pytest.raises(ResultError, match=r"support has shape \(3,\); expected \(2,\)"):
        cg.VolunteerNetwork(ids="ab", weights=np.zeros((2, 2)), method="by hand", support=[1, 2, 3])
    network = cg.VolunteerNetwork(ids="ab", weights=np.zeros((2, 2)), method="by hand", support=[1, 2])
    assert network.subnetwork(["b"]).support.tolist() == [2]
