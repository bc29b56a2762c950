"""Consensus: participations with their uncertainty, less of it where more is known."""

import numpy as np
import pytest
from builders import CLASSES, FIVE, LABELS
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.errors import ParameterError
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
    n_answers = np.repeat([4, 16, 64], 60)
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


def test_networks_by_hand_and_hard_communities():
    blocks = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    network = cg.VolunteerNetwork(ids=range(8), weights=blocks, method="by hand")
    result = cg.communities.consensus(network, detector=cg.Leiden(), draws=3, seed=0)
    assert_array_equal(result.communities.assignment, np.repeat([0, 1], 4))
    assert_array_equal(result.stability, np.ones(8))


def test_more_communities_count_for_those_with_which_they_share_most():
    class Halving(cg.Leiden):
        """Finds both blocks, and when it looks again, the first of them in two halves."""

        def _with_settings_of(self, communities):
            return Thirds()

    class Thirds(cg.Leiden):
        def _detect(self, network, *, seed, progress):
            return cg.communities.base.Detection(np.eye(3)[[0, 0, 1, 1, 2, 2, 2, 2]])

    blocks = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    network = cg.VolunteerNetwork(ids=range(8), weights=blocks, method="by hand")
    result = cg.communities.consensus(network, detector=Halving(), draws=2, seed=0)
    assert_array_equal(result.communities.participation, np.eye(2)[np.repeat([0, 1], 4)])


def test_the_same_seed_gives_the_same_and_loners_stay_alone():
    graph = cg.simulate.crowd(n_volunteers=40, n_responses=2_000, n_communities=2, mixing=0.05, seed=0).graph
    network = cg.networks.task_cooccurrence(graph)
    first, second = (cg.communities.consensus(network, draws=3, seed=5) for _ in range(2))
    assert_array_equal(first.draws, second.draws)
    alone = cg.VolunteerNetwork(ids="ab", weights=np.zeros((2, 2)), method="by hand")
    nobody = cg.communities.consensus(alone, draws=2, seed=0)
    assert nobody.communities.participation.shape == (2, 0)


def test_bad_input():
    network = cg.VolunteerNetwork(ids="ab", weights=[[0, 1], [1, 0]], method="by hand")
    with pytest.raises(ParameterError, match="draws=0 must be a whole number from 1 up"):
        cg.communities.consensus(network, draws=0)
    with pytest.raises(ParameterError, match="detected in a VolunteerNetwork; got a list"):
        cg.communities.consensus([])
    result = cg.communities.consensus(network, draws=1, seed=0)
    with pytest.raises(ParameterError, match=r"level=1\.5 must lie between 0 and 1"):
        result.interval(1.5)
