"""The network as network analysts know it, against networkx on `to_networkx()` for random networks."""

import copy
import math

import networkx as nx
import numpy as np
import pytest
from builders import communities_of, mirrored, network_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, CrowdGraphError, ParameterError, UnknownIdError

FEW = settings(max_examples=40, deadline=None)


@st.composite
def networks(draw, *, min_volunteers=1):
    """Networks whose weights have inverses that add up exactly, so that ties of paths are ties for everybody."""
    n = draw(st.integers(min_volunteers, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = 2.0 ** rng.integers(-2, 3, (n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.15, 0.4, 0.9])))
    return network_of(mirrored(weights), sparse=draw(st.booleans()), support=rng.integers(1, 9, n))


def with_distances(network):
    theirs = network.to_networkx()
    for _, _, data in theirs.edges(data=True):
        data["distance"] = 1 / data["weight"]
    return theirs


@FEW
@given(networks())
def test_nodes_neighbours_and_edges_are_those_of_networkx(network):
    theirs = network.to_networkx()
    assert list(network) == list(network.nodes) == list(network.nodes()) == list(theirs)
    assert len(network.nodes) == len(theirs)
    assert {frozenset(edge) for edge in network.edges} == {frozenset(edge) for edge in theirs.edges}
    assert len(network.edges) == len(list(network.edges())) == theirs.number_of_edges()
    assert all(theirs[a][b] == data for a, b, data in network.edges(data=True))
    assert all(theirs[a][b]["weight"] == weight for a, b, weight in network.edges(data="weight"))
    assert network.edges.to_frame().equals(network.to_frame())
    for name, data in network.nodes(data=True):
        assert data["degree"] == theirs.degree[name]
        assert data["strength"] == pytest.approx(theirs.degree(weight="weight")[name])
    for volunteer in network:
        assert network[volunteer] == {other: data["weight"] for other, data in theirs[volunteer].items()}
        weights = list(network[volunteer].values())
        assert weights == sorted(weights, reverse=True)
        assert network.neighbors(volunteer) == list(network[volunteer])
        for other in network:
            assert network.has_edge(volunteer, other) == ((volunteer, other) in network.edges)
            assert network.has_edge(volunteer, other) == theirs.has_edge(volunteer, other)
            assert (
                network.weight(volunteer, other) == (theirs.get_edge_data(volunteer, other) or {"weight": 0})["weight"]
            )


@FEW
@given(networks(min_volunteers=3), st.booleans())
def test_centralities_are_those_of_networkx(network, weighted):
    theirs = with_distances(network)
    weight, distance = ("weight", "distance") if weighted else (None, None)
    expected = {
        "degree": nx.degree_centrality(theirs),
        "betweenness": nx.betweenness_centrality(theirs, weight=distance),
        "closeness": nx.closeness_centrality(theirs, distance=distance),
        "pagerank": nx.pagerank(theirs, weight=weight, tol=1e-14, max_iter=10_000),
    }
    for kind, values in expected.items():
        ours = network.centrality(kind, weighted=weighted)
        assert list(ours) == list(values)
        np.testing.assert_allclose(ours.array, list(values.values()), rtol=0, atol=1e-9, err_msg=kind)
    np.testing.assert_allclose(
        network.centrality("strength").array, [theirs.degree(weight="weight")[name] for name in theirs]
    )


@FEW
@given(networks(min_volunteers=3), st.booleans())
def test_eigenvector_centrality_is_that_of_networkx(network, weighted):
    largest = network.largest_component()
    assume(len(largest) > 2)
    expected = nx.eigenvector_centrality_numpy(largest.to_networkx(), weight="weight" if weighted else None)
    ours = largest.centrality("eigenvector", weighted=weighted)
    np.testing.assert_allclose(ours.array, list(expected.values()), rtol=0, atol=1e-9)
    if len(largest) < len(network):
        with pytest.raises(ParameterError, match=r"ambiguous in a network of \d components.*largest_component"):
            network.centrality("eigenvector")


def test_centralities_of_weights_without_ties():
    rng = np.random.default_rng(0)
    network = network_of(mirrored(rng.random((40, 40)) * (rng.random((40, 40)) < 0.3)))
    theirs = with_distances(network)
    for kind, expected in {
        "betweenness": nx.betweenness_centrality(theirs, weight="distance"),
        "closeness": nx.closeness_centrality(theirs, distance="distance"),
        "pagerank": nx.pagerank(theirs, tol=1e-14, max_iter=10_000),
        "eigenvector": nx.eigenvector_centrality_numpy(theirs, weight="weight"),
    }.items():
        ours = network.centrality(kind).array
        np.testing.assert_allclose(ours, list(expected.values()), rtol=0, atol=1e-9, err_msg=kind)


def test_paths_that_differ_by_rounding_are_equally_short():
    weights = np.zeros((4, 4))
    for left, right, length in ((0, 1, 0.1), (1, 3, 0.2), (0, 2, 0.15), (2, 3, 0.15)):
        weights[left, right] = 1 / length
    network = network_of(mirrored(weights))
    # Half of the paths from 0 to 3 pass 1, half 2; those from 1 to 2 pass 0.
    assert 0.1 + 0.2 != 0.15 + 0.15
    np.testing.assert_allclose(network.centrality("betweenness").array, [1 / 3, 1 / 6, 1 / 6, 0], atol=1e-12)
    theirs = nx.betweenness_centrality(with_distances(network), weight="distance")
    assert sorted([theirs["v1"], theirs["v2"]]) == pytest.approx([0, 1 / 3])


def test_centralities_of_the_smallest_networks():
    kinds = ("degree", "strength", "betweenness", "closeness", "eigenvector", "pagerank")
    one = {kind: network_of([[0]]).centrality(kind).array.tolist() for kind in kinds}
    assert one == dict(zip(kinds, [[1], [0], [0], [0], [1], [1]], strict=True))
    assert nx.degree_centrality(nx.empty_graph(1)) == {0: 1}
    two = network_of([[0, 4], [4, 0]])
    assert two.centrality("eigenvector").array.tolist() == pytest.approx([0.5**0.5] * 2)
    assert two.centrality("closeness").array.tolist() == [4, 4]
    for kind in kinds:
        assert len(network_of(np.zeros((0, 0))).centrality(kind)) == 0


@FEW
@given(networks(), st.data())
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_assortativity_is_that_of_networkx(network, data):
    theirs = network.to_networkx()
    assume(theirs.number_of_edges())
    n = len(network)
    categories = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    numbers = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    nx.set_node_attributes(theirs, dict(zip(network, categories, strict=True)), "category")
    nx.set_node_attributes(theirs, dict(zip(network, numbers, strict=True)), "number")
    pairs = [
        (network.assortativity(categories), nx.attribute_assortativity_coefficient(theirs, "category")),
        (network.assortativity(numbers), nx.numeric_assortativity_coefficient(theirs, "number")),
        (network.assortativity(numbers, nominal=True), nx.attribute_assortativity_coefficient(theirs, "number")),
        (network.assortativity("degree"), nx.degree_assortativity_coefficient(theirs)),
        (network.assortativity(communities_of(np.array(numbers))), network.assortativity(numbers, nominal=True)),
    ]
    for ours, expected in pairs:
        assert ours == pytest.approx(expected, abs=1e-9, nan_ok=True)


@FEW
@given(networks(min_volunteers=2), st.data())
def test_weighted_assortativity_counts_a_link_as_often_as_its_weight(network, data):
    n = len(network)
    values = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    left, right, weights = network.pairs()
    # Weights are multiples of a quarter.
    times = np.round(4 * weights).astype(int)
    ends = [(values[a], values[b]) for a, b, count in zip(left, right, times, strict=True) for _ in range(count)]
    ends += [(b, a) for a, b in ends]
    distinct = {value for pair in ends for value in pair}
    if len(distinct) < 2:
        assert math.isnan(network.assortativity(values, weighted=True))
        assert math.isnan(network.assortativity(values, weighted=True, nominal=True))
        return
    pearson = np.corrcoef(np.array(ends).T)[0, 1]
    assert network.assortativity(values, weighted=True) == pytest.approx(pearson, abs=1e-9)
    shares = {value: sum(pair[0] == value for pair in ends) / len(ends) for value in distinct}
    alike, chance = sum(a == b for a, b in ends) / len(ends), sum(share**2 for share in shares.values())
    expected = (alike - chance) / (1 - chance)
    assert network.assortativity(values, weighted=True, nominal=True) == pytest.approx(expected, abs=1e-9)


def test_attributes_in_every_form():
    network = network_of(mirrored([[0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]), ids=["a", "b", "c", "d"])
    ages = {"d": 40, "c": 31, "b": 32, "a": 30}
    pd = pytest.importorskip("pandas")
    expected = network.assortativity(ages)
    assert network.assortativity([30, 32, 31, 40]) == expected
    assert network.assortativity(np.array([30, 32, 31, 40.0])) == expected
    assert network.assortativity(pd.Series(ages)) == expected
    assert network.assortativity("strength") == network.assortativity(network.centrality("strength"))
    # Who belongs to no community is left out, as in the network without them.
    groups = communities_of([0, 1, 0, -1], ids=["a", "b", "c", "d"])
    without = network.subnetwork(["a", "b", "c"])
    assert network.assortativity(groups) == without.assortativity(["p", "q", "p"])
    assert math.isnan(network_of(np.zeros((2, 2))).assortativity(["p", "q"]))


@FEW
@given(networks(), st.sampled_from([0, 0.25, 0.3, 1, 5]), st.sampled_from([0.01, 0.3, 0.5, 1]))
def test_thresholds(network, least, share):
    heavy = network.threshold(least)
    expected = {(a, b): weight for a, b, weight in network.edges(data="weight") if weight >= least}
    assert {(a, b): weight for a, b, weight in heavy.edges(data="weight")} == expected
    assert heavy.ids.tolist() == network.ids.tolist()
    assert heavy.params["min_weight"] == least
    strongest = network.threshold(strongest=share)
    ranked = sorted((weight for _, _, weight in network.edges(data="weight")), reverse=True)
    count = math.ceil(share * len(ranked))
    assert sorted((w for _, _, w in strongest.edges(data="weight")), reverse=True) == [
        weight for weight in ranked if weight >= ranked[count - 1]
    ]
    assert strongest.threshold(0).params == strongest.params


def test_a_thresholded_network_has_no_model():
    crowd = cg.simulate.crowd(n_volunteers=10, n_items=50, n_responses=300, seed=0).graph
    network = cg.networks.task_cooccurrence(crowd)
    before = copy.deepcopy(network.weights)
    assert network.model is not None
    assert network.threshold(strongest=0.2).model is None
    assert network.threshold(strongest=0.2).support.tolist() == network.support.tolist()
    assert abs(network.weights - before).sum() == 0
    assert network.largest_component().model is network.model


def test_largest_component():
    weights = mirrored([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    assert network_of(weights).largest_component().ids.tolist() == ["v2", "v3", "v4"]
    assert len(network_of(np.zeros((0, 0))).largest_component()) == 0


SMALL = network_of(mirrored([[0, 1, 2], [0, 0, 0], [0, 0, 0]]), ids=["anna", "bert", "cleo"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: SMALL["ana"], UnknownIdError, "Did you mean 'anna'"),
        (lambda: SMALL.neighbors(["anna"]), UnknownIdError, "no volunteer"),
        (lambda: SMALL.weight("anna", "zoe"), UnknownIdError, "no volunteer 'zoe'"),
        (lambda: SMALL.edges(data="wieght"), ParameterError, "have a 'weight'"),
        (lambda: SMALL.centrality("betweeness"), ParameterError, "Did you mean 'betweenness'"),
        (lambda: SMALL.centrality("strength", weighted=False), ParameterError, "use kind='degree'"),
        (lambda: SMALL.centrality("degree", weighted="yes"), ParameterError, "weighted"),
        (SMALL.threshold, ParameterError, "needs either"),
        (lambda: SMALL.threshold(1, strongest=0.5), ParameterError, "needs either"),
        (lambda: SMALL.threshold(-1), ParameterError, "min_weight=-1"),
        (lambda: SMALL.threshold("heavy"), ParameterError, "min_weight='heavy'"),
        (lambda: SMALL.threshold(strongest=0), ParameterError, "strongest=0 must be a share of links above 0"),
        (lambda: SMALL.assortativity("age"), ParameterError, "'degree', 'strength'"),
        (lambda: SMALL.assortativity(5), ParameterError, "must be values by id"),
        (lambda: SMALL.assortativity([1, 2]), ParameterError, "2 values; expected one for each of 3"),
        (lambda: SMALL.assortativity([1, 2, None]), ParameterError, r"1 volunteers have no value \('cleo'\)"),
        (lambda: SMALL.assortativity([1, 2, [3]]), ParameterError, "numbers, text or other plain"),
        (
            lambda: SMALL.assortativity({"anna": 1, "bert": 2, "zoe": 3}),
            AlignmentError,
            r"\('cleo'\), and .*'zoe'",
        ),
        (lambda: SMALL.assortativity(["a", "b", "c"], nominal=False), ParameterError, "needs a number for everybody"),
        (lambda: SMALL.assortativity(communities_of([0], ids=["anna"])), CrowdGraphError, "lack 2 of the network's"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_views_describe_themselves_and_change_nothing():
    assert "zoe" not in SMALL
    assert "anna" in SMALL
    assert "anna" in SMALL.nodes
    assert "zoe" not in SMALL.nodes
    assert not SMALL.has_edge("anna", "zoe")
    assert [repr(SMALL.nodes), repr(SMALL.edges)] == ["Nodes: 3 volunteers", "Edges: 2 linked pairs"]
    assert SMALL.nodes.to_frame().values.tolist() == [["anna", 2, 3.0], ["bert", 1, 1.0], ["cleo", 1, 2.0]]
    assert repr(SMALL["anna"]) == "weight of 2 volunteers: 'cleo' 2, 'bert' 1"
    assert SMALL["anna"].get("zoe", 0) == 0
    assert list(SMALL["anna"].to_frame()) == ["volunteer", "weight"]
    with pytest.raises(ValueError, match="read-only"):
        SMALL.centrality("degree").array[0] = 3
    assert "the strongest first" in SMALL._repr_html_()
    public = {name for name in dir(SMALL) if not name.startswith("_")}
    assert {"nodes", "edges", "neighbors", "weight", "centrality", "assortativity", "threshold"} <= public
