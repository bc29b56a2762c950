"""The prepared weights, by loops; and what Bayesian NMF finds however a network is held, named, scaled or shaped."""

import math

import numpy as np
import pytest
import torch
from builders import crowd, mirrored, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg
from crowdgraph.communities._factoriser import Factoriser
from crowdgraph.communities._nmf_weights import is_similarity, prepare_weights
from crowdgraph.errors import CrowdGraphWarning
from crowdgraph.kernels.nmf import Prior

PRIOR = Prior(5.0, 2.0)


def cliques(*sizes):
    group = np.repeat(np.arange(len(sizes)), sizes)
    return (group[:, None] == group) * (1.0 - np.eye(len(group)))


def star(n):
    weights = np.zeros((n, n))
    weights[0, 1:] = weights[1:, 0] = 1.0
    return weights


GROUPS = np.repeat(np.arange(3), [14, 9, 7])


def planted(seed):
    """A sparse network of three groups, with weights of quarters, so that scaling by a thousand is exact."""
    rng = np.random.default_rng(seed)
    linked = rng.random((30, 30)) < np.where(GROUPS[:, None] == GROUPS, 0.9, 0.05)
    return mirrored(linked * rng.integers(4, 9, linked.shape) / 4)


def similar(seed):
    """A network of similarities of three groups: everybody is linked with everybody."""
    rng = np.random.default_rng(seed)
    return mirrored(np.where(GROUPS[:, None] == GROUPS, 0.95, 0.6) + 0.05 * rng.random((30, 30)))


seeds = st.integers(0, 10**6)


@given(seeds, st.integers(2, 8), st.floats(0.5, 20), st.floats(1, 500), st.floats(-100, 100), st.booleans())
@settings(max_examples=30)
def test_similarities_are_sharpened_and_normalised(seed, n, sharpness, strength, exponent, sparse):
    similarities = mirrored(0.2 + np.random.default_rng(seed).random((n, n)))
    result = prepare_weights(
        network_of(similarities * 10**exponent, sparse=sparse), sharpness=sharpness, strength=strength
    )
    assert result.search is result.score
    assert isinstance(result.search, np.ndarray)
    powers = [[similarities[i, j] ** sharpness if i != j else 0.0 for j in range(n)] for i in range(n)]
    sums = [sum(row) for row in powers]
    expected = np.array([[powers[i][j] / math.sqrt(sums[i] * sums[j]) for j in range(n)] for i in range(n)])
    expected *= n * strength / expected.sum()
    assert_allclose(result.search, expected, rtol=1e-9)
    assert_allclose(result.search.sum(axis=1).mean(), strength)


@given(seeds, st.integers(3, 10), st.sampled_from([1.0, 0.5, 3.0]), st.floats(1, 500), st.floats(-100, 100))
@settings(max_examples=30)
def test_what_chance_gives_is_subtracted_where_there_are_links(seed, n, sharpness, strength, exponent):
    rng = np.random.default_rng(seed)
    weights = mirrored(rng.random((n, n)) * (rng.random((n, n)) < 0.6))
    weights[0, 1] = weights[1, 0] = 1.0
    weights[0, 2] = weights[2, 0] = 0.0
    forms = [network_of(weights * 10**exponent, sparse=sparse) for sparse in (False, True)]
    result = [prepare_weights(form, sharpness=sharpness, strength=strength) for form in forms]
    assert not is_similarity(forms[0])
    for part, form in zip(result, forms, strict=True):
        assert issparse(part.search)
        assert (part.search.data > 0).all()
        assert part.score is form.weights
    assert_array_equal(result[0].search.toarray(), result[1].search.toarray())
    powers = [[weights[i, j] ** sharpness if weights[i, j] else 0.0 for j in range(n)] for i in range(n)]
    sums = [sum(row) for row in powers]
    expected = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if powers[i][j] > 0:
                expected[i, j] = max(0.0, powers[i][j] - sums[i] * sums[j] / sum(sums))
    expected *= n * strength / expected.sum()
    assert_allclose(result[0].search.toarray(), expected, rtol=1e-8, atol=1e-10 * strength)
    assert_allclose(result[0].search.sum(), n * strength)


@given(seeds, st.integers(2, 12))
@settings(max_examples=30)
def test_every_volunteer_has_a_link_that_chance_does_not_explain(seed, n):
    """Weights beyond chance sum to more than nothing for everybody, since nobody is linked with themselves."""
    rng = np.random.default_rng(seed)
    weights = mirrored(rng.lognormal(0, 2, (n, n)) * (rng.random((n, n)) < rng.random())) + 0.1 * star(n)
    complete = network_of(weights, model=SharedItems())
    assert not is_similarity(complete)
    assert (prepare_weights(complete, sharpness=1.0, strength=1.0).search.sum(axis=1) > 0).all()


class SharedItems:
    """A model without confusion matrices: its network is not one of similarities, however dense."""

    confusion = None


def test_networks_of_shared_items_are_no_similarities_though_they_link_everybody():
    weights = similar(0)
    assert is_similarity(network_of(weights))
    assert is_similarity(network_of(weights, sparse=True))
    assert not is_similarity(network_of(weights, model=SharedItems()))
    weights[0, 1] = weights[1, 0] = 0
    assert not is_similarity(network_of(weights))


# Two pairs, and a fifth volunteer linked with all of them, so weakly that chance explains it to the last digit.
PAIRS_AND_ONE = np.array(
    [
        [0, 1, 0, 0, 1e-20],
        [1, 0, 0, 0, 1e-20],
        [0, 0, 0, 1, 1e-20],
        [0, 0, 1, 0, 1e-20],
        [1e-20, 1e-20, 1e-20, 1e-20, 0],
    ]
)


@pytest.mark.parametrize("symmetric", [True, False])
def test_who_has_links_by_chance_alone_belongs_where_most_do(symmetric):
    weights = prepare_weights(network_of(PAIRS_AND_ONE), sharpness=1.0, strength=30.0).search
    assert weights.sum(axis=1)[4] == 0
    factoriser = Factoriser(weights, PRIOR, device="cpu", symmetric=symmetric)
    for seed in range(5):
        result = factoriser.search(5, torch.Generator().manual_seed(seed), tol=1e-3, max_iter=500)
        assert result.converged
        before, relevance = result.factors.clone(), factoriser.relevance(result.factors)
        shares = factoriser.participation(result.factors)
        assert_allclose(shares.sum(axis=1), 1)
        assert_allclose(shares[0], shares[1], atol=1e-3)
        assert_allclose(shares[4], shares[:4].mean(axis=0), atol=0.02)
        assert_array_equal(result.factors, before)
        assert_array_equal(factoriser.relevance(result.factors), relevance)
    detector = cg.BayesianNMF(nulls=0, symmetric=symmetric)
    assert_allclose(detector.detect(network_of(PAIRS_AND_ONE), seed=0).participation.sum(axis=1), 1)


@pytest.mark.parametrize("symmetric", [True, False])
def test_somebody_like_nobody_else_has_no_weights_once_sharpened(symmetric):
    similarities = similar(0)
    similarities[5] *= 1e-200
    similarities[:, 5] = similarities[5]
    weights = prepare_weights(network_of(similarities), sharpness=12.0, strength=100.0).search
    assert (np.flatnonzero(weights.sum(axis=1) == 0) == [5]).all()
    result = cg.BayesianNMF(symmetric=symmetric, sharpness=12.0, nulls=0, restarts=1).detect(
        network_of(similarities), seed=0
    )
    others = np.arange(30) != 5
    assert adjusted_rand_score(result.assignment[others], GROUPS[others]) == 1
    assert result.assignment[5] == result.assignment[0]
    assert_allclose(result.participation.sum(axis=1), 1)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("complete", [True, False])
def test_tensors_and_compiled_code_dense_and_sparse_find_the_same(complete, symmetric):
    build = similar(1) if complete else planted(1)
    weights = prepare_weights(
        network_of(build), sharpness=12.0 if complete else 1.0, strength=100.0 if complete else 30.0
    ).search
    dense = weights if complete else weights.toarray()
    result = []
    for form in (dense, csr_array(dense)):
        # Dense weights and sparse ones have starts of their own; from each, all backends do the same.
        same_start = []
        for backend in ["torch", *(["compiled"] if symmetric else [])]:
            factoriser = Factoriser(form, PRIOR, symmetric=symmetric, backend=backend, dtype="float64")
            search_result = factoriser.search(6, torch.Generator().manual_seed(0), tol=1e-3, max_iter=500)
            assert search_result.converged
            same_start.append(factoriser.participation(search_result.factors))
        for other in same_start[1:]:
            assert_allclose(other, same_start[0], atol=1e-6)
        result.append(same_start[0])
    assert result[0].shape == result[1].shape == (30, 3)
    assert adjusted_rand_score(*(one.argmax(axis=1) for one in result)) == 1


def test_settings_of_the_prior_reach_the_factors():
    weights = prepare_weights(network_of(planted(0)), sharpness=1.0, strength=30.0).search
    factoriser = Factoriser(weights, Prior(3.0, 7.0), device="cpu", symmetric=True)
    factors = torch.rand(30, 2, dtype=torch.float64)
    below = (factors.numpy() ** 2).sum(axis=0) / 2 + 7
    assert_allclose(factoriser.relevance(factors), below / (30 / 2 + 3 - 1))
    both = Factoriser(weights, Prior(3.0, 7.0), device="cpu", symmetric=False)
    assert_allclose(both.relevance(factors), below / (30 + 3 - 1))
    twice = torch.cat([factors, 3 * factors])
    assert_allclose(both.participation(twice), factoriser.participation(factors))


QUICK = {"restarts": 2, "nulls": 0}


@pytest.mark.parametrize("build", [planted, similar])
@pytest.mark.parametrize("seed", range(2))
def test_holding_naming_and_scaling_make_no_difference(build, seed):
    weights, detector = build(seed), cg.BayesianNMF(**QUICK)
    result = detector.detect(network_of(weights), seed=seed)
    assert adjusted_rand_score(result.assignment, GROUPS) == 1
    others = {
        "sparse": network_of(weights, sparse=True),
        "named": network_of(weights, ids=[f"name {k}" for k in range(30)]),
        "larger": network_of(weights * 1000),
        "much smaller": network_of(weights * 2.0**-400, sparse=True),
    }
    for what, other in others.items():
        again = detector.detect(other, seed=seed)
        assert_allclose(again.participation, result.participation, atol=1e-6, err_msg=what)
        assert again.evidence.modularity == pytest.approx(result.evidence.modularity, abs=1e-9)
        assert again.params["strength"] == result.params["strength"]


def test_strengths_that_are_equally_good_are_not_chosen_by_rounding():
    """Several strengths find the same groups here; summed in another unit, modularity differs in the last digit."""
    rng = np.random.default_rng(11)
    group = np.arange(40) % 4
    linked = rng.random((40, 40)) < np.where(group[:, None] == group, 0.9, 0.03)
    weights = mirrored(linked * rng.uniform(0.5, 1, (40, 40)))
    detector = cg.BayesianNMF(restarts=1, nulls=0)
    result = [detector.detect(network_of(weights * unit), seed=11) for unit in (1, 3, 1000)]
    assert [other.params["strength"] for other in result] == [result[0].params["strength"]] * 3
    for other in result[1:]:
        assert_allclose(other.participation, result[0].participation, atol=1e-6)


@pytest.mark.parametrize("build", [planted, similar])
def test_two_factors_find_planted_groups_too(build):
    result = cg.BayesianNMF(symmetric=False, strength=50.0, **QUICK).detect(network_of(build(0)), seed=0)
    assert adjusted_rand_score(result.assignment, GROUPS) == 1


@pytest.mark.parametrize("sparse", [True, False])
def test_the_published_algorithm_runs(sparse):
    weights = 20 * cliques(8, 8)
    result = cg.BayesianNMF.as_published(max_communities=2).detect(network_of(weights, sparse=sparse), seed=0)
    assert adjusted_rand_score(result.assignment, np.repeat([0, 1], 8)) == 1


def extreme(density):
    rng = np.random.default_rng(4)
    weights = 10 ** rng.uniform(-200, 200, (20, 20)) * (rng.random((20, 20)) < density)
    weights[0, 1:] += 1e-150
    return mirrored(weights)


def one_strong():
    weights = cliques(6, 6, 6)
    weights[0, 1] = weights[1, 0] = 1e12
    return weights


ODD = {
    "two": cliques(2),
    "star of three": star(3),
    "star": star(40),
    "equal": cliques(12),
    "cliques": cliques(5, 4, 3),
    "pairs": cliques(2, 2, 2),
    "one strong link": one_strong(),
    "one strong link among all": one_strong() + cliques(18),
    "extreme": extreme(0.2),
    "extreme and dense": extreme(1.0),
}


@pytest.mark.parametrize("shape", ODD)
@pytest.mark.parametrize("detector", [{}, {"symmetric": False}, {"published": True, "symmetric": False}], ids=str)
def test_odd_networks(shape, detector):
    """No warnings, which are errors here, and finite shares of everybody, the same however the network is held."""
    quick = {"restarts": 1, "nulls": 0, "strength": 50.0, "max_communities": min(4, len(ODD[shape]))}
    result = [
        cg.BayesianNMF(**quick, **detector).detect(network_of(ODD[shape], sparse=sparse), seed=0)
        for sparse in (False, True)
    ]
    assert_allclose(result[0].participation.sum(axis=1), 1)
    assert (result[0].participation >= 0).all()
    assert np.isfinite(result[0].relevance).all()
    assert_allclose(result[1].participation, result[0].participation, atol=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_cliques_that_nothing_links_and_crowds_that_everything_does(symmetric):
    detector = cg.BayesianNMF(symmetric=symmetric, strength=50.0, **QUICK)
    assert_array_equal(
        detector.detect(network_of(cliques(8, 7, 6, 5)), seed=0).assignment, np.repeat([0, 1, 2, 3], [8, 7, 6, 5])
    )
    # Two factors may tell the middle of a star from its points.
    for weights in (cliques(2), cliques(12), *([star(40)] if symmetric else [])):
        assert len(detector.detect(network_of(weights), seed=0)) == 1


def test_counts_are_no_similarities_though_a_file_of_the_network_lost_the_model(tmp_path):
    """Where all volunteers have items in common, only the method says that the weights count them."""
    graph = crowd(n_volunteers=8, n_items=40, n_responses=200).graph
    network = cg.networks.task_cooccurrence(graph)
    network.save(tmp_path / "network.graphml")
    loaded = cg.VolunteerNetwork.load(tmp_path / "network.graphml")
    assert loaded.density == 1
    assert not is_similarity(network)
    assert not is_similarity(loaded)
    with pytest.warns(CrowdGraphWarning, match="are not compared with chance.* or pass nulls=0"):
        communities = cg.BayesianNMF(restarts=1).detect(loaded, seed=0)
    assert communities.evidence.verdict == "no comparison with chance"
    cg.BayesianNMF(restarts=1, nulls=0).detect(loaded, seed=0)
