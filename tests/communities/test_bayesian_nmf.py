"""Bayesian NMF finds planted groups in both kinds of network, and says so when there are none."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from builders import FIVE, ONE, behaving, crowd, mirrored, network_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg
from crowdgraph.errors import ConvergenceWarning, CrowdGraphWarning


def test_groups_of_behaviour_are_found_and_described(behaviour_network):
    network, group = behaviour_network
    groups = cg.BayesianNMF().detect(network, seed=0)
    assert len(groups) == 5
    assert adjusted_rand_score(group, groups.assignment) > 0.95
    assert groups.evidence.structured
    assert groups.evidence.p_value < 0.01
    assert groups.evidence.agreement > 0.9
    assert groups.params["sharpness"] in (8, 12, 18, 27)
    words = groups.describe(kind="arrow").to_pydict()["behaviour"]
    assert {"says -1 to most things", "says 1 or 3 to most things", "says 1 to most things"} < set(words)
    assert len(set(words)) == 5


@pytest.mark.slow
def test_one_group_of_behaviour_is_no_communities():
    network, _ = behaving(ONE, n=80, concentration=5, seed=1)
    groups = cg.BayesianNMF().detect(network, seed=0)
    assert groups.sizes.tolist() == [80]
    assert not groups.evidence.structured
    assert groups.evidence.p_value > 0.1
    assert 0 <= groups.evidence.power <= 1
    assert repr(groups).endswith(f"; {groups.evidence.verdict})")
    unexamined = cg.BayesianNMF(nulls=0).detect(network, seed=0)
    assert len(unexamined) > 1
    assert unexamined.evidence.null_modularity.size == 0


def test_communities_of_tasks_are_found(task_network, task_communities):
    network, community = task_network
    groups = task_communities
    assert adjusted_rand_score(community, groups.assignment) == 1
    assert_allclose(groups.modularity, cg.Leiden().detect(network, seed=0).modularity, atol=1e-9)
    assert groups.evidence.structured
    assert groups.soft_modularity <= groups.modularity


def test_crowds_without_communities_of_tasks_have_none():
    graph = crowd(n_volunteers=80, n_items=800, n_responses=3_200).graph
    groups = cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph), seed=0)
    assert len(groups) == 1
    assert not groups.evidence.structured
    assert len(groups.evidence.null_modularity) == 9


def cliques_that_share_three(*, rounding=0.0):
    """Two cliques of ten volunteers each and three who are in both; weights are off by this share of themselves."""
    weights = np.zeros((23, 23))
    for clique in (range(13), range(10, 23)):
        weights[np.ix_(clique, clique)] = 1
    np.fill_diagonal(weights, 0)
    signs = np.triu(np.random.default_rng(0).choice([-1.0, 1.0], weights.shape), 1)
    return network_of(weights * (1 + rounding * (signs + signs.T)), sparse=True)


def test_members_of_two_communities_belong_to_both_by_half():
    groups = cg.BayesianNMF().detect(cliques_that_share_three(), seed=0)
    assert len(groups) == 2
    assert_allclose(groups.participation[10:13], 0.5, atol=0.02)
    assert groups.participation[:10].max(axis=1).min() > 0.95
    assert sorted(map(len, groups.cover())) == [13, 13]


@pytest.mark.parametrize("rounding", [1e-15, 1e-7])
def test_cliques_that_share_volunteers_are_two_with_any_seed_and_rounding(rounding):
    network = cliques_that_share_three(rounding=rounding)
    assert [len(cg.BayesianNMF().detect(network, seed=seed)) for seed in range(5)] == [2] * 5


def test_relevance_tells_which_communities_survived(task_network):
    network, _ = task_network
    groups = cg.BayesianNMF(max_communities=30).detect(network, seed=0)
    assert groups.relevance.shape == (30,)
    assert groups.relevance[: len(groups)].min() > 5 * groups.relevance[len(groups) :].max()
    floor = 2 / (len(network) / 2 + 4)
    assert_allclose(groups.relevance[len(groups) :], floor)


def test_storage_and_unit_do_not_matter(task_network):
    network, _ = task_network
    detector = cg.BayesianNMF(nulls=0)
    groups = detector.detect(network, seed=3)
    for weights in (network.weights.toarray(), 4096 * network.weights):
        other = network_of(weights, ids=network.ids)
        assert_allclose(detector.detect(other, seed=3).participation, groups.participation, atol=1e-9)


def test_tensors_find_what_compiled_code_finds(task_network):
    network, _ = task_network
    detector = cg.BayesianNMF(nulls=0, restarts=1, strength=75.0)
    groups = detector.detect(network, seed=0)
    tensors = replace(detector, backend="torch").detect(network, seed=0)
    assert_allclose(tensors.participation, groups.participation, atol=1e-6)


def test_two_factors_find_the_same_groups(task_network):
    network, community = task_network
    groups = cg.BayesianNMF(symmetric=False, nulls=0).detect(network, seed=0)
    assert adjusted_rand_score(community, groups.assignment) > 0.95


def test_the_published_algorithm_takes_both_kinds_of_network(behaviour_network, task_network):
    detector = cg.BayesianNMF.as_published(max_communities=20)
    assert (detector.published, detector.symmetric, detector.restarts, detector.nulls) == (True, False, 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for network, _ in (behaviour_network, task_network):
            groups = replace(detector, max_iter=100).detect(network.subnetwork(network.ids[:40]), seed=0)
            assert 1 <= len(groups) <= 20
            assert_allclose(groups.participation.sum(axis=1), 1)


def test_networks_by_hand_are_examined_as_far_as_possible(behaviour_network):
    dense, group = behaviour_network
    groups = cg.BayesianNMF().detect(network_of(dense.weights), seed=0)
    assert groups.params["sharpness"] == 12
    assert adjusted_rand_score(group, groups.assignment) > 0.95
    assert groups.evidence.null_modularity.size == 0
    assert np.isnan(groups.evidence.p_value)
    linked = np.random.default_rng(0).random((40, 40)) < np.kron(np.eye(2) * 0.5 + 0.05, np.ones((20, 20)))
    sparse = network_of(mirrored(linked), sparse=True)
    assert len(cg.BayesianNMF(restarts=1, strength=75).detect(sparse, seed=0).evidence.null_modularity) == 9


def test_settings_that_were_chosen_give_the_same_again(task_network, task_communities):
    network, groups = task_network[0], task_communities
    quick = cg.BayesianNMF()._with_settings_of(groups)
    assert (quick.sharpness, quick.strength) == (groups.params["sharpness"], groups.params["strength"])
    assert (quick.restarts, quick.nulls) == (1, 0)
    assert_array_equal(quick.detect(network, seed=1).assignment, groups.assignment)


def test_more_communities_than_volunteers_are_a_note():
    network = network_of(1 - np.eye(3))
    with pytest.warns(CrowdGraphWarning, match="max_communities=9 exceeds the number of linked volunteers, 3"):
        groups = cg.BayesianNMF(max_communities=9).detect(network, seed=0)
    assert groups.params["max_communities"] == 3
    assert groups.relevance.shape == (3,)


def test_starts_that_do_not_converge_warn(task_network):
    with pytest.warns(ConvergenceWarning, match=r"A start had not converged after .* Raise max_iter \(now 3\)"):
        cg.BayesianNMF(max_iter=3, restarts=1, nulls=0, strength=75).detect(task_network[0], seed=0)


def test_progress_is_shown_on_request(task_network, capsys, every_line):
    cg.BayesianNMF(restarts=1, nulls=0, strength=75).detect(task_network[0], seed=0, progress=True)
    assert "Bayesian NMF" in capsys.readouterr().err


def test_few_null_networks_are_warned_of():
    network, _ = behaving(ONE, n=20, concentration=5, seed=1)
    with pytest.warns(CrowdGraphWarning, match="nulls=3 null networks give a verdict that depends on luck"):
        cg.BayesianNMF(nulls=3, restarts=1, sharpness=12.0).detect(network, seed=0)


@pytest.mark.slow
def test_null_networks_are_added_until_the_verdict_is_certain():
    numbers = set()
    for seed in range(6):
        network, _ = behaving(ONE, n=40, concentration=5, seed=seed)
        evidence = cg.BayesianNMF(sharpness=12.0, restarts=1).detect(network, seed=0).evidence
        numbers.add(len(evidence.null_modularity))
        assert evidence.certainty >= 0.99 or len(evidence.null_modularity) == 45
        assert evidence.null_mean_weight.shape == evidence.null_modularity.shape
    assert 9 in numbers
    assert numbers <= {9, 18, 27, 36, 45}


def test_a_crowd_of_kinds_differs_no_more_than_the_crowd():
    network, _ = behaving(FIVE, n=60, concentration=20, seed=0)
    kinds = [network.of_kinds(seed=seed) for seed in range(12)]
    assert all(one.ids is network.ids or (one.ids == network.ids).all() for one in kinds)
    # One pair in four is of one kind and all but the same; the others differ as the volunteers do.
    expected = (1 + 3 * network.mean_weight) / 4
    assert_allclose(np.mean([one.mean_weight for one in kinds]), expected, atol=0.06)
    sharpened = replace(kinds[0], weights=kinds[0].weights ** 50)
    # Two kinds may happen to be alike.
    sizes = cg.Leiden().detect(sharpened, seed=0).sizes
    assert len(sizes) > 1
    assert not (sizes % 15).any()
    by_hand = cg.VolunteerNetwork(ids=network.ids, weights=network.weights, method="by hand")
    assert by_hand.of_kinds(seed=0) is None


def test_as_few_communities_as_allowed_are_unions_of_cliques_of_equal_sizes():
    """Six cliques that nothing links, in two communities: three in each have the highest posterior."""
    clique = np.arange(36) // 6
    network = network_of((clique[:, None] == clique) - np.eye(36), sparse=True)
    groups = cg.BayesianNMF(max_communities=2).detect(network, seed=0)
    assert groups.sizes.tolist() == [18, 18]
    assert groups.evidence.structured
    assert all(len(set(groups.assignment[clique == one])) == 1 for one in range(6))
