"""Bad input of everything in communities: what is called, and the error and words that answer it."""

import numpy as np
import pytest
from builders import communities_of, network_of

import crowdgraph as cg
from crowdgraph.communities import quality
from crowdgraph.communities.agreement import agreement
from crowdgraph.communities.network_comparison import compare_networks
from crowdgraph.errors import AlignmentError, ParameterError

PAIR = network_of([[0, 1], [1, 0]])
TWO = communities_of([0, 1])
NAN = float("nan")


@pytest.mark.parametrize(
    ("detector", "settings", "words"),
    [
        (cg.BayesianNMF, {"max_communities": 0}, "max_communities=0 must be a whole number from 1 up"),
        (cg.BayesianNMF, {"max_communities": 2.5}, "max_communities=2.5 must be a whole number"),
        (cg.BayesianNMF, {"shape": 0.5}, "shape=0.5 must be at least 1"),
        (cg.BayesianNMF, {"rate": -1}, "rate=-1 must be a number above zero"),
        (cg.BayesianNMF, {"sharpness": "high"}, "sharpness='high' must be a number above zero, or 'auto'"),
        (cg.BayesianNMF, {"strength": 0}, "strength=0 must be a number above zero, or 'auto'"),
        (cg.BayesianNMF, {"restarts": 0}, "restarts=0 must be a whole number from 1 up"),
        (cg.BayesianNMF, {"nulls": 2}, "nulls=2 are too few to compare with; give 3 or more, or 0"),
        (cg.BayesianNMF, {"nulls": -1}, "nulls=-1 must be a whole number from 0 up"),
        (cg.BayesianNMF, {"symmetric": 1}, "symmetric=1 must be True or False"),
        (cg.BayesianNMF, {"published": True}, "published=True has two factors; give symmetric=False"),
        (cg.BayesianNMF, {"tol": 0}, "tol=0 must be a number above zero"),
        (cg.BayesianNMF, {"max_iter": 0}, "max_iter=0 must be a whole number"),
        (cg.Leiden, {"resolution": 0}, "resolution=0 must be a number above zero"),
        (cg.Leiden, {"resolution": "high"}, "resolution='high' must be a number"),
        (cg.Leiden, {"resolution": NAN}, "must be a number above zero"),
        (cg.Leiden, {"restarts": 0}, "restarts=0 must be a whole number from 1 up"),
        (cg.Leiden, {"restarts": True}, "restarts=True must be a whole number"),
    ],
)
def test_bad_settings_are_refused(detector, settings, words):
    with pytest.raises(ParameterError, match=words):
        detector(**settings)


@pytest.mark.parametrize(
    "division",
    [
        [0.5, 1.0, 0.0],
        [0, -2, 1],
        ["a", "b", "c"],
        [[0.5, 0.4], [0.0, 1.0], [1.0, 0.0]],
        [[1.5, -0.5], [0.0, 1.0], [1.0, 0.0]],
        [[np.nan, 1.0], [0.0, 1.0], [1.0, 0.0]],
        [[1, 1], [0, 1], [1, 0]],
        np.zeros((3, 2, 2)),
        3,
        None,
        [[0], [1, 2], [3]],
    ],
)
def test_what_is_no_division_is_refused_on_both_sides(division):
    for pair in ((division, [0, 1, 1]), ([0, 1, 1], division)):
        with pytest.raises(ParameterError, match="A division must be Communities"):
            agreement(*pair)


NO_ASSIGNMENT = "An assignment of 2 volunteers must be as many whole numbers"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: cg.BayesianNMF(device="cuda:9").detect(PAIR, seed=0),
            ParameterError,
            "device='cuda:9' is not available here",
        ),
        (lambda: cg.BayesianNMF(device="meta").detect(PAIR, seed=0), ParameterError, "device='meta' is not available"),
        (
            lambda: cg.BayesianNMF(backend="compiled", device="cuda").detect(PAIR, seed=0),
            ParameterError,
            "backend='compiled' runs on CPUs only; got device='cuda'",
        ),
        (
            lambda: cg.BayesianNMF(backend="compiled", symmetric=False).detect(PAIR, seed=0),
            ParameterError,
            "backend='compiled' factorises into one factor, and symmetric=False has two.*'torch' or 'auto'",
        ),
        (
            lambda: cg.BayesianNMF(dtype="float32", strength=1e14).detect(PAIR, seed=0),
            ParameterError,
            r"dtype='float32' holds factors of weights whose largest is between 1e-10 and 1e\+10; here it is 1e\+14",
        ),
        (lambda: cg.BayesianNMF(backend="numba"), ParameterError, "backend='numba' is not a choice; use one of 'auto'"),
        (lambda: cg.BayesianNMF(dtype="float16"), ParameterError, "dtype='float16' is not a choice; use one of 'auto'"),
        # Agreement
        (
            lambda: agreement([0, 1], [0, 1, 1]),
            AlignmentError,
            "One division has 2 volunteers, the other 3; give both for the same",
        ),
        (lambda: agreement([0], [0]), AlignmentError, "Only 1 volunteers"),
        (
            lambda: agreement(communities_of([0, 1], ids="ab"), communities_of([0, 1], ids="ay")),
            AlignmentError,
            "Only 1 volunteers are in both divisions; agreement needs two",
        ),
        (
            lambda: agreement(np.eye(2), [0, 1], threshold=0),
            ParameterError,
            "threshold=0 must be a participation",
        ),
        # Quality
        (
            lambda: quality.modularity(PAIR, communities_of([0], ids=["v0"])),
            AlignmentError,
            r"lack 1 of the network's volunteers \('v1'\)",
        ),
        *(
            (lambda assignment=assignment: quality.modularity(PAIR, assignment), ParameterError, NO_ASSIGNMENT)
            for assignment in ([0], [0, 1, 1], [0.5, 1], [0, -2], "ab")
        ),
        (lambda: quality.soft_modularity(PAIR, np.ones((3, 2))), ParameterError, "Participations of 2 volunteers"),
        # Consensus
        (
            lambda: cg.communities.consensus(PAIR, draws=0),
            ParameterError,
            "draws=0 must be a whole number from 1 up",
        ),
        (lambda: cg.communities.consensus([]), ParameterError, "detected in a VolunteerNetwork; got a list"),
        (
            lambda: cg.communities.consensus(PAIR, draws=1, seed=0).interval(1.5),
            ParameterError,
            r"level=1\.5 must lie between 0 and 1",
        ),
        # Comparison of networks
        (
            lambda: compare_networks(TWO, [0, 1]),
            ParameterError,
            "exposure must be a VolunteerNetwork or Communities; got a list",
        ),
        (
            lambda: compare_networks(3, TWO),
            ParameterError,
            "behaviour must be a VolunteerNetwork or Communities; got an int",
        ),
        (lambda: compare_networks(TWO, TWO, detector="leiden"), ParameterError, "takes a detector such as Leiden"),
        (lambda: compare_networks(TWO, TWO, n_permutations=0), ParameterError, "n_permutations=0 must be a whole"),
        (lambda: compare_networks(TWO, TWO, seed=-1), ParameterError, "seed=-1 must be a whole number"),
        (
            lambda: compare_networks(TWO, communities_of([0, 1], ids="ab")),
            AlignmentError,
            "0 volunteers have both a community of beh",
        ),
        (
            lambda: compare_networks(communities_of([0, -1]), TWO),
            AlignmentError,
            "1 volunteers have both .* from the same graph",
        ),
    ],
)
def test_impossible_arguments_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
