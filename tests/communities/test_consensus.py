"""Consensus: participations with their uncertainty, less of it where more is known."""

import numpy as np
from builders import CLASSES, FIVE, LABELS, communities_of, network_of
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.networks.pi_similarity import ConfusionModel


def known_by(n_answers, *, seed=0):
    """Volunteers of three groups whose confusion is known by so many answers for each class."""
    rng = np.random.default_rng(seed)
    means = np.array(FIVE)[[1, 2, 3]][np.arange(len(n_answers)) % 3]
    counts = np.stack([rng.multinomial(n, rows) for n, rows in zip(n_answers, means, strict=True)])
    confusion = cg.ConfusionSnapshot(
        ids=np.arange(len(counts)), concentration=counts + 0.3, classes=CLASSES, labels=LABELS
    )
    model = ConfusionModel(
        confusion=confusion, prior=np.full(counts.shape, 0.3), distance="bhattacharyya", neighbours=None
    )
    return cg.VolunteerNetwork(ids=confusion.ids, weights=model.weights(), method="pi_similarity", model=model)


def test_intervals_narrow_as_volunteers_answer_more():
    n_answers = np.repeat([4, 16, 64], 30)
    result = cg.communities.consensus(
        known_by(n_answers), detector=cg.BayesianNMF(sharpness=12.0, restarts=1, nulls=0), draws=12, seed=0
    )
    low, high = result.interval(0.8)
    assert (low <= high).all()
    widths = [(high - low)[n_answers == n].mean() for n in (4, 16, 64)]
    assert widths[0] > 1.5 * widths[1] > 2.25 * widths[2]
    steady = [result.stability[n_answers == n].mean() for n in (4, 16, 64)]
    assert steady[0] < steady[1] < steady[2]
    assert steady[2] > 0.98
    assert_allclose(result.communities.participation.sum(axis=1), 1)
    assert_allclose(result.draws.mean(axis=0), result.communities.participation)
    assert repr(result).startswith("Consensus(12 draws of Communities(bayesian_nmf: 3 of sizes")


def test_networks_by_hand_have_a_consensus_of_hard_communities():
    blocks = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    result = cg.communities.consensus(network_of(blocks), detector=cg.Leiden(), draws=3, seed=0)
    assert_array_equal(result.communities.assignment, np.repeat([0, 1], 4))
    assert_array_equal(result.stability, np.ones(8))


def test_communities_of_a_draw_count_for_those_with_which_they_share_most():
    class Halving(cg.Leiden):
        """Finds both blocks, and when it looks again, the first of them in two halves."""

        def _with_settings_of(self, communities):
            return Thirds()

    class Thirds(cg.Leiden):
        def _detect(self, network, *, seed, progress):
            thirds = dict(zip((f"v{code}" for code in range(8)), [0, 0, 1, 1, 2, 2, 2, 2], strict=True))
            return cg.communities.base.Detection(np.eye(3)[[thirds[name] for name in network.ids]])

    blocks = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    result = cg.communities.consensus(network_of(blocks), detector=Halving(), draws=2, seed=0)
    assert_array_equal(result.communities.participation, np.eye(2)[np.repeat([0, 1], 4)])


def test_the_same_seed_gives_the_same(task_network):
    detector = cg.BayesianNMF(strength=75.0, restarts=1, nulls=0)
    first, second = (cg.communities.consensus(task_network[0], detector=detector, draws=3, seed=5) for _ in range(2))
    assert_array_equal(first.draws, second.draws)


def test_loners_stay_alone():
    nobody = cg.communities.consensus(network_of(np.zeros((2, 2))), draws=2, seed=0)
    assert nobody.communities.participation.shape == (2, 0)


def test_who_is_never_in_a_community_is_steadily_in_none():
    draws = np.zeros((5, 3, 0))
    result = cg.communities.Consensus(communities=communities_of(np.zeros((3, 0))), draws=draws)
    assert result.stability.tolist() == [1, 1, 1]
    assert result.interval(0.9)[0].shape == (3, 0)
