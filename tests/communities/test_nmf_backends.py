"""What factorises: compiled code and tensors find the same communities, in double and in single precision."""

from dataclasses import replace

import numpy as np
import pytest
from builders import mirrored, network_of
from numpy.testing import assert_array_equal
from scipy.optimize import linear_sum_assignment

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.tensors import devices

WITHOUT_SPARSE_OR_DOUBLE = devices.DeviceLimits(float64=False, sparse=False)


def random_network(rng):
    """A small network of some groups: similarities or links, held as an array or sparse."""
    n = int(rng.integers(6, 16))
    group = rng.integers(rng.integers(1, 4), size=n)
    same = group[:, None] == group
    if rng.random() < 0.4:
        return network_of(mirrored(np.where(same, 0.9, 0.6) + 0.08 * rng.random((n, n))))
    links = mirrored((rng.random((n, n)) < np.where(same, 0.8, 0.15)) * rng.uniform(0.5, 4, (n, n)))
    links[0, 1] = links[1, 0] = 1.0
    links[0, 2] = links[2, 0] = 0.0
    return network_of(links, sparse=bool(rng.random() < 0.7))


def random_detector(rng, **settings):
    return cg.BayesianNMF(
        nulls=0,
        restarts=1,
        strength=float(rng.choice([30.0, 75.0, 150.0])),
        max_communities=int(rng.integers(2, 6)),
        shape=float(rng.uniform(1.5, 8)),
        rate=float(rng.uniform(0.5, 4)),
        **settings,
    )


def difference(actual, expected):
    """The largest difference of participations, whichever of two communities of one size is the first."""
    cost = np.abs(actual[:, :, None] - expected[:, None, :]).sum(axis=0)
    rows, columns = linear_sum_assignment(cost)
    return np.abs(actual[:, rows] - expected[:, columns]).max()


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.science) for first in (50, 100, 150))])
def test_compiled_code_and_tensors_agree(first):
    """In random networks, with random settings."""
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        network, detector = random_network(rng), random_detector(rng, dtype="float64")
        compiled, tensors = (
            replace(detector, backend=backend).detect(network, seed=seed) for backend in ("compiled", "torch")
        )
        assert compiled.participation.shape == tensors.participation.shape
        assert difference(compiled.participation, tensors.participation) < 1e-8


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings", [{}, {"symmetric": False}, {"symmetric": False, "published": True, "max_iter": 60}]
)
def test_single_precision_finds_the_same(settings):
    """A search stops at a change of 0.001, perhaps a step sooner or later: nearly all participations are as near."""
    differences = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        network, detector = random_network(rng), random_detector(rng, backend="torch", **settings)
        single, double = (replace(detector, dtype=dtype).detect(network, seed=seed) for dtype in ("float32", "float64"))
        assert_array_equal(single.assignment, double.assignment)
        differences.append(difference(single.participation, double.participation))
    assert np.mean(np.array(differences) < 1e-3) >= 0.9
    assert max(differences) < 0.02
    assert max(differences) > 0


@pytest.mark.parametrize(
    ("settings", "ran"),
    [
        ({}, ("compiled", "cpu", "float32")),
        ({"dtype": "float64"}, ("compiled", "cpu", "float64")),
        ({"backend": "torch"}, ("torch", "cpu", "float64")),
        ({"backend": "torch", "dtype": "float32"}, ("torch", "cpu", "float32")),
        ({"symmetric": False}, ("torch", "cpu", "float64")),
        ({"strength": 1e14}, ("compiled", "cpu", "float64")),
    ],
)
def test_params_say_what_ran(settings, ran):
    network = network_of(np.ones((6, 6)) - np.eye(6))
    groups = cg.BayesianNMF(**{"nulls": 0, "restarts": 1, **settings}).detect(network, seed=0)
    assert tuple(groups.params[name] for name in ("backend", "device", "dtype")) == ran


def test_weights_beyond_single_precision_are_refused_as_they_are():
    network = network_of((np.ones((4, 4)) - np.eye(4)) * 1e12, sparse=True)
    with pytest.raises(ParameterError, match=r"largest is between .* here it is 1e\+12"):
        replace(cg.BayesianNMF.as_published(), dtype="float32").detect(network, seed=0)
