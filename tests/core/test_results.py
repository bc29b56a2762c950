"""Fits, networks and communities: checked on construction, readable afterwards."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.errors import IdError, ParameterError, ResultError, UnknownIdError

FIT = {
    "model": "m",
    "items": ["x", "y"],
    "classes": ("a", "b"),
    "item_probs": [[0.4, 0.6], [1, 0]],
    "class_probs": [0.5, 0.5],
}
NETWORK = {"ids": ["a", "b", "c"], "weights": [[0, 2.0, 0], [2.0, 0, 0], [0, 0, 0]], "method": "m"}
GROUPS = {
    "ids": ["a", "b", "c"],
    "participation": [[1, 0], [0.3, 0.7], [0, 0]],
    "modularity": 0.2,
    "method": "m",
}


def test_a_fit_predicts():
    fit = cg.ModelFit(**FIT, bound=[-3.0, -2.5], n_iter=2, converged=False)
    assert fit.predict() == {"x": "b", "y": "a"}
    assert repr(fit) == "ModelFit(m: 2 items, not converged after 2 iterations, bound -2.5000)"
    frame = fit.to_frame()
    assert frame["class"].tolist() == ["b", "a"]
    assert frame["p(b)"].tolist() == [0.6, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_probs": [[0.4, 0.6]]}, r"item_probs has shape \(1, 2\); expected \(2, 2\)"),
        ({"item_probs": [[0.4, 0.7], [1, 0]]}, "one sum is 1.1"),
        ({"item_probs": [[-0.4, 1.4], [1, 0]]}, "must not be negative"),
        ({"item_probs": [[np.nan, 1.4], [1, 0]]}, "not finite"),
        ({"class_probs": [1.0]}, "class_probs has shape"),
        ({"items": ["x", "x"]}, "repeat"),
        ({"bound": [np.inf]}, "not finite"),
        ({"n_iter": -1}, "n_iter"),
        ({"classes": ("a", "a")}, "repeat"),
    ],
)
def test_fits_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(cg.errors.CrowdGraphError, match=message):
        cg.ModelFit(**{**FIT, **changes})


def test_a_fit_and_its_confusion_agree_on_classes():
    track = cg.ConfusionTrack.static(ids=["v"], concentration=np.ones((1, 2, 2)), classes=("a", "c"), labels=("a", "c"))
    with pytest.raises(ResultError, match="classes"):
        cg.ModelFit(**FIT, confusion=track)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_network_against_networkx(sparse):
    rng = np.random.default_rng(0)
    weights = np.triu(rng.random((9, 9)) * (rng.random((9, 9)) < 0.3), 1)
    weights += weights.T
    network = cg.VolunteerNetwork(ids=range(9), weights=csr_array(weights) if sparse else weights, method="m")
    reference = nx.from_numpy_array(weights)
    assert network.n_edges == reference.number_of_edges()
    assert network.density == pytest.approx(nx.density(reference))
    assert network.isolated.tolist() == list(nx.isolates(reference))
    np.testing.assert_allclose(network.strength, [s for _, s in reference.degree(weight="weight")])
    assert network.degree.tolist() == [d for _, d in reference.degree()]
    assert nx.utils.graphs_equal(network.to_networkx(), reference) or set(network.to_networkx().edges) == set(
        reference.edges
    )
    graph = network.to_igraph()
    assert graph.vs["id"] == list(range(9))
    assert sorted(graph.es["weight"]) == sorted(w for *_, w in reference.edges(data="weight"))
    frame = network.to_frame()
    assert len(frame) == network.n_edges
    assert f"{network.n_edges} edges" in repr(network)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((2, 2)), "shape"),
        ([[0, 1, 0], [2, 0, 0], [0, 0, 0]], "symmetric"),
        ([[0, -1, 0], [-1, 0, 0], [0, 0, 0]], "negative"),
        ([[1, 1, 0], [1, 0, 0], [0, 0, 0]], "self-loops"),
        ([[0, np.nan, 0], [np.nan, 0, 0], [0, 0, 0]], "not finite"),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_networks_that_are_none_are_refused(weights, message, sparse):
    given = csr_array(np.array(weights, dtype=float)) if sparse else weights
    with pytest.raises(ResultError, match=message):
        cg.VolunteerNetwork(**{**NETWORK, "weights": given})


def test_a_network_of_nobody_is_possible():
    network = cg.VolunteerNetwork(ids=[], weights=np.zeros((0, 0)), method="m")
    assert (len(network), network.density, network.n_edges) == (0, 0.0, 0)


def test_communities():
    groups = cg.Communities(**GROUPS)
    assert len(groups) == 2
    assert groups.assignment.tolist() == [0, 1, -1]
    assert groups.sizes.tolist() == [1, 1]
    assert groups.centroids == ["a", "b"]
    assert list(groups) == [["a"], ["b"]]
    assert groups.members(0, threshold=0.25) == ["a", "b"]
    assert groups.of("b").tolist() == [0.3, 0.7]
    assert groups.to_frame().to_dict("list")["community"] == [0, 1, -1]
    assert repr(groups) == "Communities(m: 2 of sizes 1, 1; 1 unassigned; modularity 0.200)"
    with pytest.raises(ParameterError, match="numbered 0 to 1"):
        groups.members(2)


def test_the_mean_confusion_is_weighted_by_participation():
    means = np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.1, 0.9]]])
    snapshot = cg.ConfusionSnapshot(ids=["c", "b", "a"], concentration=10 * means, classes=("k",), labels=("k", "l"))
    got = cg.Communities(**GROUPS).mean_confusion(snapshot)
    np.testing.assert_allclose(got[0], (1.0 * means[2] + 0.3 * means[1]) / 1.3)
    np.testing.assert_allclose(got[1], means[1])
    empty = cg.Communities(**{**GROUPS, "participation": [[1, 0], [1, 0], [0, 0]]})
    assert np.isnan(empty.mean_confusion(snapshot)[1]).all()
    assert not np.isnan(empty.mean_confusion(snapshot)[0]).any()
    assert empty.centroids == ["a", None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"participation": [[1, 0], [0.3, 0.7]]}, "shape"),
        ({"participation": [[1, 0], [0.3, 0.3], [0, 0]]}, "one sum is 0.6"),
        ({"participation": [[2, -1], [0.3, 0.7], [0, 0]]}, "negative"),
        ({"modularity": 1.5}, "modularity"),
    ],
)
def test_communities_that_are_none_are_refused(changes, message):
    with pytest.raises(ResultError, match=message):
        cg.Communities(**{**GROUPS, **changes})


def test_a_community_track():
    early = cg.Communities(**{**GROUPS, "ids": ["a", "b"], "participation": [[1, 0], [1, 0]]})
    options = {"ids": ["a", "b", "c"], "clock": cg.Clock("number"), "method": "m"}
    track = cg.CommunityTrack(times=[1, 2], counts=[10, 20], snapshots=(early, cg.Communities(**GROUPS)), **options)
    assert track.n_communities.tolist() == [1, 2]
    assert track.modularity.tolist() == [0.2, 0.2]
    assert track.of("b").tolist() == [[1, 0], [0.3, 0.7]]
    assert track.of("c").tolist() == [[0, 0], [0, 0]]
    assert track[0] is early
    assert len(track) == 2
    with pytest.raises(UnknownIdError, match="'z'"):
        track.of("z")
    for changes, message in (
        ({"counts": [10]}, "as many times and counts"),
        ({"counts": [20, 10]}, "fall"),
        ({"times": [2, 1]}, "sorted"),
        ({"ids": ["a", "b"]}, r"1 volunteers who are not in the track \('c'\)"),
        ({"snapshots": (early, cg.Communities(**{**GROUPS, "participation": [[1], [1], [0]]}))}, "columns"),
    ):
        given = {
            "times": [1, 2],
            "counts": [10, 20],
            "snapshots": (early, cg.Communities(**GROUPS)),
            **options,
            **changes,
        }
        with pytest.raises(cg.errors.CrowdGraphError, match=message):
            cg.CommunityTrack(**given)
    with pytest.raises(IdError):
        cg.CommunityTrack(times=[], counts=[], snapshots=(), **{**options, "ids": ["a", "a"]})
