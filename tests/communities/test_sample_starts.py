"""Starts of large networks of similarities that begin with some of the volunteers."""

import numpy as np
from builders import network_of
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg
from crowdgraph.communities._nmf_weights import PreparedWeights
from crowdgraph.communities._sample_starts import WarmFactoriser, extend
from crowdgraph.communities.quality import modularity
from crowdgraph.kernels.nmf import Prior
from crowdgraph.kernels.nmf_search import BACKGROUND_SHARE

GROUP = np.repeat(np.arange(3), [10, 8, 6])


def blocks(seed=0):
    """Similarities of volunteers of three groups."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0, 0.1, (len(GROUP), len(GROUP)))
    weights = np.where(GROUP[:, None] == GROUP, 0.9, 0.1) + (noise + noise.T) / 2
    np.fill_diagonal(weights, 0)
    return weights


def test_everybody_is_where_the_links_lead():
    links, participation = np.array([[2.0, 0.0], [1.0, 3.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    expected = [[1.0, 0.0], [2.5 / 4, 1.5 / 4], [0.0, 0.0]]
    assert_allclose(extend(links, participation), np.array(expected) + BACKGROUND_SHARE / 2)


def test_a_warm_search_ends_in_the_communities_it_began_with():
    for symmetric in (True, False):
        factoriser = WarmFactoriser(10 * blocks(), Prior(5.0, 2.0), symmetric=symmetric)
        result = factoriser.search_from(np.eye(3)[GROUP] + 0.05, tol=1e-3, max_iter=200)
        assert result.converged
        assert adjusted_rand_score(factoriser.participation(result.factors).argmax(axis=1), GROUP) == 1


def test_starts_in_samples_find_the_communities_of_all(monkeypatch):
    """With a sample of 18 of the 24 volunteers, further starts agree with the first, which is of everybody."""
    monkeypatch.setattr("crowdgraph.communities.bayesian_nmf.SAMPLE_SIZE", 18)
    groups = cg.BayesianNMF(nulls=0, sharpness=4.0).detect(network_of(blocks()), seed=0)
    assert adjusted_rand_score(groups.assignment, GROUP) == 1
    assert groups.evidence.agreement == 1


def test_modularity_does_not_depend_on_how_weights_are_held():
    weights = blocks()
    weights[weights < 0.15] = 0
    dense, sparse = (PreparedWeights(one, one).highest_modularity(0) for one in (weights, csr_array(weights)))
    assert dense == sparse
    assert_allclose(dense, modularity(network_of(weights), GROUP))
    assert PreparedWeights(None, np.zeros((3, 3))).highest_modularity(0) == 0
