"""Communities by several ranks, here threads or one process alone."""

import numpy as np
import pytest
from builders import fitted
from ranks.thread_ranks import run_together

import crowdgraph as cg
from crowdgraph.communities import bayesian_nmf
from crowdgraph.distributed.detection import _follow, _lead
from crowdgraph.errors import ParameterError
from crowdgraph.kernels.nmf import CompiledWeights


def cooccurrence(n_communities, *, n_volunteers=30, n_responses=1_000, seed=0):
    crowd = cg.simulate.crowd(
        n_volunteers=n_volunteers, n_responses=n_responses, n_communities=n_communities, mixing=0.05, seed=seed
    )
    return cg.networks.task_cooccurrence(crowd.graph)


def with_isolated(network):
    """The network without the links of the first volunteer."""
    weights = network.weights.tolil()
    weights[0] = weights[:, 0] = 0
    return cg.VolunteerNetwork(ids=network.ids, weights=weights.tocsr(), method="by hand")


def detect_together(detector, network, n_ranks, *, seed=0):
    """The communities that each of several threads returns."""

    def detect(ranks):
        return _follow(ranks) if ranks.rank else _lead(ranks, lambda: detector.detect(network, seed=seed))

    return run_together(detect, n_ranks)


def assert_same(ours, expected):
    """Not only to 1e-9: rows do not depend on who computes them."""
    assert np.array_equal(ours.participation, expected.participation)
    assert np.array_equal(ours.relevance, expected.relevance)
    assert dict(ours.params) == dict(expected.params)
    assert ours.evidence.structured == expected.evidence.structured
    assert np.array_equal(ours.evidence.null_modularity, expected.evidence.null_modularity)
    assert np.array_equal(ours.evidence.null_mean_weight, expected.evidence.null_mean_weight)


@pytest.mark.parametrize(
    ("network", "detector"),
    [
        (cooccurrence(3), cg.BayesianNMF(restarts=2)),
        (cooccurrence(1), cg.BayesianNMF(strength=30)),
        (with_isolated(cooccurrence(2)), cg.BayesianNMF(strength=100, dtype="float64")),
        (cooccurrence(2), cg.BayesianNMF(strength=100, symmetric=False, restarts=1, max_communities=4)),
        (cg.networks.pi_similarity(fitted(*[0.9, 0.6, 0.3] * 5)), cg.BayesianNMF(restarts=1, sharpness=12)),
    ],
    ids=["communities", "none", "isolated", "two factors", "dense"],
)
def test_ranks_find_the_communities_that_one_process_finds(network, detector):
    expected = detector.detect(network, seed=1)
    for n_ranks in (2, 3):
        for communities in detect_together(detector, network, n_ranks, seed=1):
            assert_same(communities, expected)


def test_ranks_share_nulls_of_the_whole_network(monkeypatch):
    # Every verdict of samples is in doubt, so that the network itself is compared.
    monkeypatch.setattr(bayesian_nmf, "SAMPLE_SIZE", 20)
    monkeypatch.setattr(bayesian_nmf.Evidence, "is_overwhelming", False)
    network, detector = cooccurrence(2), cg.BayesianNMF(restarts=2, strength=100)
    for communities in detect_together(detector, network, 3):
        assert_same(communities, detector.detect(network, seed=0))


def test_more_ranks_than_volunteers():
    ring = np.roll(np.eye(5), 1, axis=0)
    network = cg.VolunteerNetwork(ids=range(5), weights=ring + ring.T, method="ring")
    detector = cg.BayesianNMF(strength=30)
    for communities in detect_together(detector, network, 7):
        assert_same(communities, detector.detect(network, seed=0))


def test_every_rank_has_only_its_rows(monkeypatch):
    network, n_own = cooccurrence(3), []
    row_step = CompiledWeights.row_step

    def counted(weights, *args):
        n_own.append((weights.rows, len(weights._values)))
        return row_step(weights, *args)

    monkeypatch.setattr(CompiledWeights, "row_step", counted)
    detect_together(cg.BayesianNMF(restarts=1, nulls=0, strength=100), network, 3)
    sizes = dict(n_own)
    assert sorted(volunteer for rows in sizes for volunteer in rows) == list(range(30))
    assert max(sizes.values()) < 1.2 * sum(sizes.values()) / 3


def test_errors_reach_all_ranks():
    errors = []
    network = cooccurrence(2)

    def detect(ranks):
        with pytest.raises(ParameterError) as raised:
            _follow(ranks) if ranks.rank else _lead(ranks, lambda: cg.BayesianNMF().detect(network, seed="x"))
        errors.append(str(raised.value))

    run_together(detect, 3)
    assert len(set(errors)) == 1


def test_a_null_network_that_fails_is_noticed_by_all(monkeypatch):
    network = cooccurrence(2)
    null = cg.VolunteerNetwork.null

    def failing(self, *, seed):
        if seed == seeds[1]:
            raise ParameterError("no such network")
        return null(self, seed=seed)

    seeds = []
    monkeypatch.setattr(cg.VolunteerNetwork, "null", lambda self, *, seed: seeds.append(seed) or null(self, seed=seed))
    cg.BayesianNMF(restarts=1).detect(network, seed=0)
    monkeypatch.setattr(cg.VolunteerNetwork, "null", failing)

    def detect(ranks):
        with pytest.raises(ParameterError, match="no such network"):
            _follow(ranks) if ranks.rank else _lead(ranks, lambda: cg.BayesianNMF(restarts=1).detect(network, seed=0))

    run_together(detect, 2)


def test_alone_they_are_the_communities_of_one_process():
    network, detector = cooccurrence(2), cg.BayesianNMF(restarts=2)
    assert_same(cg.distributed.detect(detector, network, seed=3), detector.detect(network, seed=3))


def test_what_ranks_cannot_detect():
    with pytest.raises(ParameterError, match="together with a BayesianNMF; got a Leiden"):
        cg.distributed.detect(cg.Leiden(), cooccurrence(2))
    with pytest.raises(ParameterError, match="rank 0 needs one"):
        cg.distributed.detect(cg.BayesianNMF(), None)
