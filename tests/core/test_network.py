"""Parts of networks: connected ones, and those of some volunteers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx import connected_components
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.errors import IdError, UnknownIdError


@given(st.integers(0, 2**32), st.integers(1, 15), st.booleans())
@settings(max_examples=40, deadline=None)
def test_components_are_networkxs(seed, n, sparse):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.12), 1)
    weights = upper + upper.T
    network = cg.VolunteerNetwork(ids=range(n), weights=csr_array(weights) if sparse else weights, method="drawn")
    found = [set(np.flatnonzero(network.components == part)) for part in range(network.components.max() + 1)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, connected_components(network.to_networkx())))
    assert [len(part) for part in found] == sorted(map(len, found), reverse=True)


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
