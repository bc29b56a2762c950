"""Every detector keeps the promises that all detectors make."""

import dataclasses

import numpy as np
import pytest
from builders import network_of
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_detectors_keep_the_contract(kind):
    check_detector(kind())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("detector", [cg.Leiden(), cg.BayesianNMF(nulls=0)], ids=lambda one: one.name)
def test_detectors_keep_the_contract_on_other_networks(detector, seed):
    check_detector(detector, seed=seed)


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_detectors_are_frozen_and_take_their_settings_by_name(kind):
    assert getattr(cg, kind.__name__) is kind
    with pytest.raises(TypeError):
        kind(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind().name = "another"
    assert kind() == kind()
    assert list(kind().settings()) == [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_volunteers_without_links_belong_to_none(kind):
    for n in (1, 4):
        groups = kind().detect(network_of(np.zeros((n, n))), seed=0)
        assert len(groups) == 0
        assert_array_equal(groups.assignment, np.full(n, -1))
        assert groups.modularity == 0


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("network", "options", "words"),
    [
        (np.zeros((2, 2)), {}, r"detected in a VolunteerNetwork; got an ndarray\. Make one with"),
        (network_of([[0, 1], [1, 0]]), {"seed": -1}, "seed=-1 must be a whole number"),
    ],
)
def test_what_detectors_cannot_take_is_refused(kind, network, options, words):
    with pytest.raises(ParameterError, match=words):
        kind().detect(network, **options)


@pytest.mark.parametrize(
    "detector", [cg.Leiden(), cg.BayesianNMF(restarts=2), cg.BayesianNMF.as_published()], ids=["hard", "soft", "print"]
)
@pytest.mark.parametrize("network", ["behaviour_network", "task_network"])
def test_the_order_of_volunteers_does_not_matter(request, network, detector):
    """Null networks are the same, too: there is no crowd here whose volunteers could change places."""
    network, _ = request.getfixturevalue(network)
    network = network.subnetwork(network.ids[:60])
    expected = detector.detect(network, seed=0)
    other = network.subnetwork(np.random.default_rng(0).permutation(network.ids).tolist())
    actual = detector.detect(other, seed=0)
    codes = actual.table.codes(expected.ids)
    assert set(map(tuple, actual.participation[codes].T)) == set(map(tuple, expected.participation.T))
    if expected.evidence is not None:
        assert_array_equal(actual.evidence.null_modularity, expected.evidence.null_modularity)
        assert actual.evidence.p_value == expected.evidence.p_value or np.isnan(expected.evidence.p_value)


def test_a_division_of_volunteers_who_could_change_places_is_as_good_in_another_order():
    """Nothing tells the members of a ring apart, so that who is together with whom may differ."""
    ring = np.roll(np.eye(12), 1, axis=0)
    network = network_of(ring + ring.T)
    found = [
        cg.Leiden().detect(network.subnetwork(np.random.default_rng(seed).permutation(network.ids).tolist()), seed=0)
        for seed in range(5)
    ]
    assert {one.modularity for one in found} == {found[0].modularity}


class Lazy(cg.Leiden):
    """A detector that puts everybody into one community."""

    def _detect(self, network, *, seed, progress):
        return Detection(np.ones((len(network), 1)))


def test_the_check_fails_for_a_detector_that_finds_nothing():
    with pytest.raises(AssertionError, match="planted communities were not detected"):
        check_detector(Lazy())


@pytest.mark.parametrize("detector", [cg.BayesianNMF(), cg.Leiden()])
@pytest.mark.parametrize("exponent", [-700, 700])
def test_the_unit_of_weights_does_not_matter(detector, exponent):
    """Powers of two, about 1e-211 and 1e211: squares of such weights are beyond the numbers."""
    clique = np.arange(24) // 6
    weights = (clique[:, None] == clique) - np.eye(24)
    expected = detector.detect(network_of(weights, sparse=True), seed=0)
    actual = detector.detect(network_of(np.ldexp(weights, exponent), sparse=True), seed=0)
    assert len(expected) == 4
    assert_array_equal(actual.participation, expected.participation)
    assert actual.modularity == expected.modularity
    assert (actual.evidence is None) == (expected.evidence is None)
    assert actual.evidence is None or actual.evidence.p_value == expected.evidence.p_value
