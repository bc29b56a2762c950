"""Comparing networks: scikit-learn, SciPy and the distribution of p values as oracles."""

import numpy as np
import pytest
from builders import communities_of, crowd, mirrored, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, pearsonr
from sklearn.metrics import adjusted_rand_score, homogeneity_score, normalized_mutual_info_score

import crowdgraph as cg
from crowdgraph.communities import network_comparison
from crowdgraph.communities.base import Detection
from crowdgraph.communities.network_comparison import compare_networks

THREE = communities_of([0, 1, 1])


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(2, 60), st.integers(1, 6), st.integers(1, 6))
def test_measures_are_scikit_learns(seed, n, n_left, n_right):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(n_left, size=n), rng.integers(n_right, size=n)
    comparison = compare_networks(communities_of(left), communities_of(right), n_permutations=5, seed=0)
    assert_allclose(comparison.ari, adjusted_rand_score(left, right), atol=1e-10)
    assert_allclose(comparison.nmi, normalized_mutual_info_score(left, right), atol=1e-10)
    if len(set(left)) > 1:
        assert_allclose(comparison.explained, homogeneity_score(left, right), atol=1e-10)
    else:
        assert np.isnan(comparison.explained)
    # The null is that of the same measure, of the volunteers in the orders that the seed gives.
    orders = np.random.default_rng(0)
    orders.integers(2**31)
    orders.integers(2**31)
    expected = [normalized_mutual_info_score(left[orders.permutation(n)], right) for _ in range(5)]
    assert_allclose(comparison.null, expected, atol=1e-10)
    assert comparison.p_value == (1 + np.count_nonzero(comparison.null >= comparison.nmi - 1e-10)) / 6


def test_independent_divisions_have_any_p_value():
    rng = np.random.default_rng(1)
    p_values = []
    for seed in range(200):
        behaviour, exposure = (communities_of(rng.integers(3, size=30)) for _ in range(2))
        p_values.append(compare_networks(behaviour, exposure, n_permutations=39, seed=seed).p_value)
    for level in (0.05, 0.2, 0.5):
        low, high = binom.interval(0.999, 200, level)
        assert low <= np.count_nonzero(np.array(p_values) <= level) <= high


def test_equal_divisions_have_the_smallest_p_value():
    assignment = np.arange(40) % 4
    comparison = compare_networks(
        communities_of(assignment), communities_of((assignment + 1) % 4), n_permutations=199, seed=0
    )
    assert (comparison.ari, comparison.n_volunteers) == (1.0, 40)
    assert_allclose([comparison.nmi, comparison.explained], 1)
    assert comparison.p_value == 1 / 200
    assert comparison.null.max() < 0.6
    assert comparison.verdict.startswith("shared items explain 100% of behaviour, 1")
    assert repr(comparison) == f"NetworkComparison(40 volunteers: {comparison.verdict})"


def test_only_volunteers_with_both_communities_count():
    left = communities_of([0, 0, 1, 1, -1, 0], ids="abcdeg")
    right = communities_of([1, 0, 0, 1, -1, 0], ids="fdcbae")
    comparison = compare_networks(left, right, n_permutations=3, seed=0)
    assert comparison.n_volunteers == 3
    # b, c and d: behaviour 0, 1, 1 and exposure 1, 0, 0; a and e lack a community, f and g are known to one.
    assert_allclose(comparison.nmi, 1)


def test_one_community_explains_nothing():
    some, all_one = communities_of([0, 1, 0, 1, 1]), communities_of([0, 0, 0, 0, 0])
    alike = compare_networks(all_one, some, n_permutations=9, seed=0)
    assert (alike.p_value, alike.nmi) == (1.0, 0.0)
    assert alike.verdict == "all volunteers behave alike, so there is nothing to explain"
    together = compare_networks(some, all_one, n_permutations=9, seed=0)
    assert (together.p_value, together.explained) == (1.0, 0.0)
    assert together.verdict == "all volunteers share items, so items cannot explain how volunteers differ"
    both = compare_networks(all_one, all_one, n_permutations=9, seed=0)
    assert (both.p_value, both.ari, both.nmi) == (1.0, 1.0, 1.0)
    assert_array_equal(both.null, np.ones(9))


@given(st.integers(0, 2**32), st.integers(4, 14))
@settings(max_examples=20, deadline=None)
def test_the_correlation_of_weights_is_pearsons(seed, n):
    rng = np.random.default_rng(seed)
    dense = network_of(mirrored(0.1 + rng.random((n, n))), ids=rng.permutation(n))
    linked = rng.random((n, n)) < 0.5
    thin = network_of(mirrored(rng.random((n, n)) * linked), ids=rng.permutation(n + 2)[:n], sparse=True)
    common = sorted(set(dense.ids.tolist()) & set(thin.ids.tolist()))
    pairs = np.triu_indices(len(common), 1)
    weights = [
        dense.subnetwork(common).weights[pairs],
        thin.subnetwork(common).weights.toarray()[pairs],
    ]
    comparison = network_comparison._weight_correlation(dense, thin, 19, np.random.default_rng(0), progress=False)
    swapped = network_comparison._weight_correlation(thin, dense, 19, np.random.default_rng(0), progress=False)
    if len(common) < 3 or any(np.ptp(values) == 0 for values in weights):
        assert np.isnan(comparison).all()
    else:
        assert_allclose([comparison[0], swapped[0]], pearsonr(*weights).statistic, atol=1e-9)
        assert comparison[1] in np.arange(1, 21) / 20


def test_weights_that_go_together_and_weights_that_do_not(monkeypatch):
    rng = np.random.default_rng(0)
    weights = rng.random((30, 30))
    one, noisy = network_of(mirrored(weights)), network_of(mirrored(weights + 0.5 * rng.random((30, 30))))
    comparison = compare_networks(one, noisy, n_permutations=99, seed=0)
    assert comparison.weight_correlation > 0.8
    assert comparison.weight_p_value == 0.01
    p_values = [
        network_comparison._weight_correlation(
            one, network_of(mirrored(rng.random((30, 30)))), 19, rng, progress=False
        )[1]
        for _ in range(100)
    ]
    assert binom.interval(0.999, 100, 0.2)[0] <= np.count_nonzero(np.array(p_values) <= 0.2)
    assert np.count_nonzero(np.array(p_values) <= 0.2) <= binom.interval(0.999, 100, 0.2)[1]
    monkeypatch.setattr(network_comparison, "MAX_PAIRED_VOLUNTEERS", 29)
    assert np.isnan(compare_networks(one, noisy, n_permutations=9, seed=0).weight_correlation)
    assert np.isnan(compare_networks(THREE, THREE, n_permutations=9).weight_p_value)


GROUPS = [
    cg.simulate.Group(name="able", confusion=[[0.95, 0.05], [0.05, 0.95]]),
    cg.simulate.Group(name="timid", confusion=[[0.95, 0.05], [0.85, 0.15]]),
]


def two_crowds(same):
    """Two crowds of one behaviour each with items of their own, or both behaviours in both."""
    columns, gold = {"volunteer": [], "item": [], "label": []}, {}
    for part in range(2):
        groups = GROUPS[part : part + 1] if same else GROUPS
        graph = crowd(n_items=100, n_responses=1_500, groups=groups, gold=1.0, seed=part).graph
        columns["volunteer"] += [f"{part}-{code}" for code in graph.responses.volunteer]
        columns["item"] += [f"{part}-{code}" for code in graph.responses.item]
        columns["label"] += graph.responses.label.tolist()
        gold.update({f"{part}-{code}": graph.classes.index(graph.gold[item]) for code, item in enumerate(graph.items)})
    graph = cg.CrowdGraph.from_responses(columns, gold=gold, labels=(0, 1))
    return graph.annotate(cg.IBCC().fit(graph))


@pytest.mark.parametrize("same", [True, False])
def test_behaviour_and_tasks_of_simulated_crowds(same):
    graph = two_crowds(same)
    behaviour, exposure = cg.networks.pi_similarity(graph), cg.networks.task_cooccurrence(graph)
    comparison = compare_networks(behaviour, exposure, n_permutations=199, seed=0)
    assert len(comparison.exposure) == 2
    if same:
        assert comparison.p_value == comparison.weight_p_value == 1 / 200
        assert comparison.explained > 0.8
        assert ": more than chance (p = 0.005)" in comparison.verdict
    else:
        assert min(comparison.p_value, comparison.weight_p_value) > 0.05
        assert ": no more than chance" in comparison.verdict


def test_the_same_seed_gives_the_same_comparison(task_network, behaviour_network):
    networks = [
        network_of(network.subnetwork(network.ids[:40]).weights) for network, _ in (behaviour_network, task_network)
    ]
    first, again = (compare_networks(*networks, detector=cg.Leiden(), n_permutations=19, seed=3) for _ in range(2))
    assert_array_equal(first.null, again.null)
    assert (first.nmi, first.weight_p_value) == (again.nmi, again.weight_p_value)


class HalvesDetector(cg.Leiden):
    """Finds the first half and the second half of the volunteers, in order of their names."""

    def _detect(self, network, *, seed, progress):
        rank = np.argsort(np.argsort(network.ids.astype(str)))
        return Detection(np.eye(2)[rank * 2 // len(network)])


def test_the_detector_finds_the_communities():
    rng = np.random.default_rng(0)
    one = network_of(mirrored(0.1 + rng.random((8, 8))))
    comparison = compare_networks(
        one, communities_of(np.arange(8) // 4), detector=HalvesDetector(), n_permutations=9, seed=0
    )
    assert comparison.ari == 1.0
    assert_array_equal(comparison.behaviour.assignment, np.arange(8) // 4)


def test_progress_is_shown_on_request(capsys, every_line):
    compare_networks(THREE, THREE, n_permutations=9, seed=0, progress=True)
    assert "Permutations" in capsys.readouterr().err
    compare_networks(THREE, THREE, n_permutations=9, seed=0)
    assert capsys.readouterr().err == ""
