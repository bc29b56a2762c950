"""Every detector keeps the promises that all detectors make, and Leiden is igraph's."""

import dataclasses

import igraph
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import crowdgraph as cg
from crowdgraph.communities import Detector
from crowdgraph.communities.base import Detection
from crowdgraph.errors import ParameterError
from crowdgraph.testing import check_detector

DETECTORS = [
    getattr(cg.communities, name)
    for name in cg.communities.__all__
    if isinstance(kind := getattr(cg.communities, name), type) and issubclass(kind, Detector) and kind is not Detector
]


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_contract(kind, seed):
    check_detector(kind(), seed=seed)


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_shape_of_detectors(kind):
    assert getattr(cg, kind.__name__) is kind
    with pytest.raises(TypeError):
        kind(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind().name = "another"
    assert kind() == kind()
    assert list(kind().settings()) == [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_nobody_linked_and_one_volunteer(kind):
    for n in (1, 4):
        network = cg.VolunteerNetwork(ids=range(n), weights=np.zeros((n, n)), method="by hand")
        groups = kind().detect(network, seed=0)
        assert len(groups) == 0
        assert_array_equal(groups.assignment, np.full(n, -1))
        assert groups.modularity == 0


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_bad_input(kind):
    with pytest.raises(ParameterError, match=r"detected in a VolunteerNetwork; got a ndarray\. Make one with"):
        kind().detect(np.zeros((2, 2)))
    network = cg.VolunteerNetwork(ids="ab", weights=[[0, 1], [1, 0]], method="by hand")
    with pytest.raises(ParameterError, match="seed=-1 must be a whole number"):
        kind().detect(network, seed=-1)


class Lazy(cg.Leiden):
    """A detector that puts everybody into one community."""

    def _detect(self, network, *, seed, progress):
        return Detection(np.ones((len(network), 1)))


def test_the_check_fails_for_a_detector_that_finds_nothing():
    with pytest.raises(AssertionError, match="planted communities were not detected"):
        check_detector(Lazy())


def test_dense_and_sparse_networks_are_the_same_to_leiden():
    graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0)
    sparse = cg.networks.task_cooccurrence(graph.graph)
    dense = cg.VolunteerNetwork(ids=sparse.ids, weights=sparse.weights.toarray(), method="dense")
    groups = [cg.Leiden().detect(network, seed=3) for network in (sparse, dense)]
    assert_array_equal(groups[0].assignment, groups[1].assignment)
    planted = graph.truth.community[[int(name.split("-")[1]) for name in sparse.ids]]
    assert len({*zip(planted.tolist(), groups[0].assignment.tolist(), strict=True)}) == 3
    graph.graph.annotate(groups[0])


def test_modularity_is_igraphs_and_more_starts_are_no_worse():
    graph = cg.simulate.crowd(n_volunteers=80, n_responses=4_000, n_communities=4, mixing=0.6, seed=1).graph
    network = cg.networks.task_cooccurrence(graph)
    groups = cg.Leiden().detect(network, seed=0)
    peer = network.to_igraph()
    assert abs(groups.modularity - peer.modularity(groups.assignment.tolist(), weights="weight")) < 1e-12
    assert cg.Leiden(restarts=10).detect(network, seed=0).modularity >= groups.modularity - 1e-12
    assert len(cg.Leiden(resolution=3).detect(network, seed=0)) > len(groups)


def test_drawing_leaves_igraphs_random_numbers_alone():
    import random

    network = cg.VolunteerNetwork(ids="ab", weights=[[0, 1], [1, 0]], method="by hand")
    random.seed(0)
    expected = igraph.Graph.Erdos_Renyi(20, 0.3).get_edgelist()
    random.seed(0)
    cg.Leiden().detect(network, seed=5)
    assert igraph.Graph.Erdos_Renyi(20, 0.3).get_edgelist() == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"resolution": 0}, "resolution=0 must be a number above zero"),
        ({"resolution": "high"}, "resolution='high' must be a number"),
        ({"resolution": float("nan")}, "must be a number above zero"),
        ({"restarts": 0}, "restarts=0 must be a whole number from 1 up"),
        ({"restarts": True}, "restarts=True must be a whole number"),
    ],
)
def test_bad_settings_of_leiden(setting, message):
    with pytest.raises(ParameterError, match=message):
        cg.Leiden(**setting)
