"""Bayesian NMF finds planted groups in both kinds of network, and says so when there are none."""

import warnings

import numpy as np
import pytest
from builders import FIVE, ONE, behaving
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg
from crowdgraph.errors import ConvergenceWarning, CrowdGraphWarning, ParameterError
from crowdgraph.testing import _planted_network


@pytest.fixture(scope="module")
def alike():
    return behaving(FIVE, n=300, concentration=20, seed=0)


@pytest.fixture(scope="module")
def together():
    crowd = cg.simulate.crowd(n_volunteers=120, n_items=1_000, n_responses=9_000, n_communities=4, mixing=0.2, seed=0)
    network = cg.networks.task_cooccurrence(crowd.graph)
    return network, crowd.truth.community[crowd.graph.volunteers.table.codes(network.ids)]


def test_groups_of_behaviour(alike):
    network, group = alike
    groups = cg.BayesianNMF().detect(network, seed=0)
    assert len(groups) == 5
    assert adjusted_rand_score(group, groups.assignment) > 0.95
    assert groups.evidence.structured
    assert groups.evidence.p_value < 0.01
    assert groups.evidence.agreement > 0.9
    assert groups.params["sharpness"] in (8, 12, 18, 27)
    words = groups.describe(kind="arrow").to_pydict()["behaviour"]
    assert {"says -1 to nearly everything", "says 1 or 3 to nearly everything", "says 1 to most things"} < set(words)
    assert len(set(words)) == 5


def test_one_group_of_behaviour():
    network, _ = behaving(ONE, n=150, concentration=5, seed=1)
    groups = cg.BayesianNMF().detect(network, seed=0)
    assert groups.sizes.tolist() == [150]
    assert not groups.evidence.structured
    assert "evidence against communities" in repr(groups)
    unexamined = cg.BayesianNMF(nulls=0).detect(network, seed=0)
    assert len(unexamined) > 1
    assert unexamined.evidence.null_modularity.size == 0


def test_communities_of_tasks(together):
    network, community = together
    groups = cg.BayesianNMF().detect(network, seed=0)
    assert adjusted_rand_score(community, groups.assignment) == 1
    assert_allclose(groups.modularity, cg.Leiden().detect(network, seed=0).modularity, atol=1e-9)
    assert groups.evidence.structured
    assert groups.soft_modularity <= groups.modularity


def test_no_communities_of_tasks():
    graph = cg.simulate.crowd(n_volunteers=150, n_items=1_500, n_responses=9_000, seed=0).graph
    groups = cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph), seed=0)
    assert len(groups) == 1
    assert not groups.evidence.structured
    assert len(groups.evidence.null_modularity) == 9


def test_members_of_two_communities():
    """Two cliques share three volunteers, who belong to both by half."""
    n, weights = 23, np.zeros((23, 23))
    for clique in (range(13), range(10, 23)):
        weights[np.ix_(clique, clique)] = 1
    np.fill_diagonal(weights, 0)
    network = cg.VolunteerNetwork(ids=range(n), weights=csr_array(weights), method="cliques")
    groups = cg.BayesianNMF().detect(network, seed=0)
    assert len(groups) == 2
    assert_allclose(groups.participation[10:13], 0.5, atol=0.02)
    assert groups.participation[:10].max(axis=1).min() > 0.95
    assert sorted(map(len, groups.cover())) == [13, 13]


def test_relevance_tells_which_communities_survived(together):
    network, _ = together
    groups = cg.BayesianNMF(max_communities=30).detect(network, seed=0)
    assert groups.relevance.shape == (30,)
    assert groups.relevance[: len(groups)].min() > 5 * groups.relevance[len(groups) :].max()
    floor = 2 / (len(network) / 2 + 4)
    assert_allclose(groups.relevance[len(groups) :], floor)


def test_storage_and_unit_do_not_matter(together):
    network, _ = together
    detector = cg.BayesianNMF(nulls=0)
    groups = detector.detect(network, seed=3)
    for weights in (network.weights.toarray(), 4096 * network.weights):
        other = cg.VolunteerNetwork(ids=network.ids, weights=weights, method="other")
        assert_allclose(detector.detect(other, seed=3).participation, groups.participation, atol=1e-9)


def test_tensors_find_what_compiled_code_finds(together, monkeypatch):
    from crowdgraph.communities import _factoriser as factors

    network, _ = together
    detector = cg.BayesianNMF(nulls=0, restarts=1, strength=75.0)
    groups = detector.detect(network, seed=0)
    original_init = factors.Factoriser.__init__

    def without(self, *args, **options):
        original_init(self, *args, **options)
        self._compiled = False

    monkeypatch.setattr(factors.Factoriser, "__init__", without)
    assert_allclose(detector.detect(network, seed=0).participation, groups.participation, atol=1e-6)


def test_two_factors_find_the_same_groups(together):
    network, community = together
    groups = cg.BayesianNMF(symmetric=False, nulls=0).detect(network, seed=0)
    assert adjusted_rand_score(community, groups.assignment) > 0.95


def test_as_published(alike, together):
    detector = cg.BayesianNMF.as_published(max_communities=20)
    assert (detector.published, detector.symmetric, detector.restarts, detector.nulls) == (True, False, 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for network, _ in (alike, together):
            groups = detector.detect(network.subnetwork(network.ids[:60]), seed=0)
            assert 1 <= len(groups) <= 20
            assert_allclose(groups.participation.sum(axis=1), 1)


def test_networks_by_hand_are_examined_as_far_as_possible(alike):
    dense, group = alike
    by_hand = cg.VolunteerNetwork(ids=dense.ids, weights=dense.weights, method="by hand")
    groups = cg.BayesianNMF().detect(by_hand, seed=0)
    assert groups.params["sharpness"] == 12
    assert adjusted_rand_score(group, groups.assignment) > 0.95
    assert groups.evidence.null_modularity.size == 0
    assert np.isnan(groups.evidence.p_value)
    linked, _ = _planted_network(0)
    assert len(cg.BayesianNMF().detect(linked, seed=0).evidence.null_modularity) == 9


def test_settings_that_were_chosen_give_the_same_again(together):
    network, _ = together
    detector = cg.BayesianNMF()
    groups = detector.detect(network, seed=0)
    quick = detector._with_settings_of(groups)
    assert (quick.sharpness, quick.strength) == (groups.params["sharpness"], groups.params["strength"])
    assert (quick.restarts, quick.nulls) == (1, 0)
    assert_array_equal(quick.detect(network, seed=1).assignment, groups.assignment)


def test_more_communities_than_volunteers_are_a_note():
    network = cg.VolunteerNetwork(ids="abc", weights=[[0, 1, 1], [1, 0, 1], [1, 1, 0]], method="by hand")
    with pytest.warns(CrowdGraphWarning, match="max_communities=9 exceeds the number of linked volunteers, 3"):
        groups = cg.BayesianNMF(max_communities=9).detect(network, seed=0)
    assert groups.params["max_communities"] == 3
    assert groups.relevance.shape == (3,)


def test_too_few_steps_warn(together):
    with pytest.warns(ConvergenceWarning, match=r"A start had not converged after .* Raise max_iter \(now 3\)"):
        cg.BayesianNMF(max_iter=3, restarts=1, nulls=0, strength=75).detect(together[0], seed=0)


def test_progress_is_shown_on_request(together, capsys):
    cg.BayesianNMF(restarts=1, nulls=0, strength=75).detect(together[0], seed=0, progress=True)
    assert "Bayesian NMF" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_communities": 0}, "max_communities=0 must be a whole number from 1 up"),
        ({"max_communities": 2.5}, "max_communities=2.5 must be a whole number"),
        ({"shape": 0.5}, "shape=0.5 must be at least 1"),
        ({"rate": -1}, "rate=-1 must be a number above zero"),
        ({"sharpness": "high"}, "sharpness='high' must be a number above zero, or 'auto'"),
        ({"strength": 0}, "strength=0 must be a number above zero, or 'auto'"),
        ({"restarts": 0}, "restarts=0 must be a whole number from 1 up"),
        ({"nulls": 2}, "nulls=2 are too few to compare with; give 3 or more, or 0"),
        ({"nulls": -1}, "nulls=-1 must be a whole number from 0 up"),
        ({"symmetric": 1}, "symmetric=1 must be True or False"),
        ({"published": True}, "published=True has two factors; give symmetric=False"),
        ({"tol": 0}, "tol=0 must be a number above zero"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number"),
    ],
)
def test_bad_settings(setting, message):
    with pytest.raises(ParameterError, match=message):
        cg.BayesianNMF(**setting)


def test_a_device_that_is_not_there(together):
    with pytest.raises(ParameterError, match="device='cuda:9' is not available here"):
        cg.BayesianNMF(device="cuda:9").detect(together[0], seed=0)
