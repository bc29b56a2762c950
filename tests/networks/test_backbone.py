"""Validated links: against tests written out pair by pair, on crowds without structure and with planted communities."""

from itertools import combinations

import igraph
import networkx as nx
import numpy as np
import pytest
from builders import crowd, mirrored, network_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import false_discovery_control, hypergeom

import crowdgraph as cg
from crowdgraph.core._rewiring import rewire_bipartite
from crowdgraph.errors import ParameterError, ResultError
from crowdgraph.kernels.link_tests import common_items_p_values, configuration_model
from crowdgraph.networks import task_cooccurrence

seeds = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def planted():
    return cg.simulate.crowd(n_volunteers=80, n_items=600, n_responses=5_000, n_communities=4, seed=0)


@pytest.fixture(scope="module")
def validated(planted):
    return task_cooccurrence(planted.graph, validate=0.01)


def dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def adjusted(p_values):
    """The symmetric matrix of p-values, adjusted for all pairs of volunteers by SciPy."""
    upper = np.triu_indices(len(p_values), 1)
    result = np.zeros_like(p_values)
    result[upper] = false_discovery_control(p_values[upper])
    return result + result.T


def exact_p_values(answered, method):
    """P(as many common items or more) of all pairs; the configuration model's by multiplying out all items."""
    met, n_items = answered[:, answered.any(axis=0)], answered.sum(axis=1)
    model = configuration_model(n_items, met.sum(axis=0))
    probs = np.repeat(model.probs, model.items_per_class, axis=1)[model.volunteer_class]
    p_values = np.ones((len(met), len(met)))
    for one, other in combinations(range(len(met)), 2):
        common = np.count_nonzero(met[one] & met[other])
        if method == "hypergeometric":
            p_values[one, other] = hypergeom.sf(common - 1, met.shape[1], n_items[one], n_items[other])
        elif common:
            mass = np.ones(1)
            for chance in probs[one] * probs[other]:
                mass = np.convolve(mass, [1 - chance, chance])
            p_values[one, other] = min(mass[common:].sum(), 1)
    return p_values


@given(seeds, st.sampled_from(["configuration", "hypergeometric"]), st.sampled_from([0.01, 0.3, 0.9]))
def test_links_are_those_that_all_pairs_tested_one_by_one_leave(seed, method, level):
    sizes = {"n_volunteers": 12, "n_items": 60, "n_responses": 120}
    graph = crowd(n_communities=3, seed=seed, **sizes).graph
    network = task_cooccurrence(graph, min_responses=seed % 4)
    backbone = network.backbone(level=level, method=method)
    expected = adjusted(exact_p_values(network.model.incidence.toarray() > 0, method))
    # A link whose p-value is at the level may fall on either side of it.
    clear = np.abs(expected - level) > 1e-6 * level
    stays = (expected <= level) & (dense(network.weights) > 0)
    assert_array_equal((dense(backbone.weights) > 0)[clear], stays[clear])
    assert_allclose(dense(backbone.weights)[stays & clear], dense(network.weights)[stays & clear])
    assert_allclose(dense(backbone.p_values)[stays & clear], expected[stays & clear], rtol=1e-6)
    assert backbone.params["backbone"] == {"level": level, "method": method}


@given(seeds, st.sampled_from([0.05, 0.5]), st.booleans())
def test_disparity_keeps_links_that_one_end_finds_heavy(seed, level, sparse):
    rng = np.random.default_rng(seed)
    weights = mirrored(rng.pareto(0.7, (15, 15)) * (rng.random((15, 15)) < 0.7))
    network = network_of(weights, sparse=sparse)
    left, right = np.nonzero(np.triu(weights))
    shares = weights[left, right] / weights.sum(axis=1)[np.stack([left, right])]
    degrees = np.count_nonzero(weights, axis=1)[np.stack([left, right])]
    p_values = np.minimum(2 * ((1 - shares) ** (degrees - 1)).min(axis=0), 1)
    expected = false_discovery_control(p_values)
    backbone = network.backbone(level=level, method="disparity")
    stays = expected <= level
    assert list(zip(*backbone.pairs()[:2], strict=True)) == list(zip(left[stays], right[stays], strict=True))
    assert_allclose(backbone.pairs()[2], weights[left, right][stays])
    assert_allclose(backbone.to_frame()["p_value"], expected[stays])
    assert backbone.model is None


def test_validate_is_the_backbone_by_the_configuration_model(planted, validated):
    backbone = task_cooccurrence(planted.graph).backbone(level=0.01)
    assert abs(validated.weights - backbone.weights).max() == 0
    assert abs(validated.p_values - backbone.p_values).max() == 0
    assert validated.params["validate"] == 0.01
    assert 0 < validated.n_edges < task_cooccurrence(planted.graph).n_edges
    assert validated.backbone(level=0.001).n_edges == np.count_nonzero(validated.to_frame()["p_value"] <= 0.001)
    everything = task_cooccurrence(planted.graph)
    assert everything.p_values is None
    assert "p_value" not in everything.to_frame()


def test_links_that_were_left_out_before_stay_out(planted):
    network = task_cooccurrence(planted.graph)
    heavy = network.weights.multiply(network.weights > 0.2)
    stronger = cg.VolunteerNetwork(ids=network.ids, weights=heavy, method="heavy", model=network.model)
    backbone, validated = stronger.backbone(level=0.05), network.backbone(level=0.05)
    assert 0 < backbone.n_edges < validated.n_edges
    assert abs(backbone.weights - validated.weights.multiply(validated.weights > 0.2)).max() == 0


def test_a_part_is_tested_among_its_own_volunteers(planted):
    network = task_cooccurrence(planted.graph)
    some = network.ids[::2][::-1]
    backbone = network.subnetwork(some).backbone(level=0.05)
    codes = planted.graph.volunteers.codes(some)
    rows = np.isin(planted.graph.responses.volunteer, codes)
    responses = planted.graph.responses
    columns = {"volunteer": planted.graph.volunteers.ids[responses.volunteer[rows]]}
    columns |= {"item": planted.graph.items.ids[responses.item[rows]], "label": np.zeros(rows.sum(), int)}
    alone = task_cooccurrence(cg.CrowdGraph.from_responses(columns, labels=[0, 1]), validate=0.05)
    assert abs(alone.subnetwork(some).p_values - backbone.p_values).max() < 1e-12
    assert_array_equal(backbone.model.ids, some)


def test_resampled_networks_are_validated_in_the_same_way(validated):
    for sample in (validated.resampled(seed=0), validated.subnetwork(validated.ids[:40]).resampled(seed=0)):
        assert (sample.model.level, sample.model.link_test) == (0.01, "configuration")
        again = task_weights(sample.model.incidence).backbone(level=0.01)
        assert_array_equal(dense(sample.p_values), dense(again.p_values))
        assert_array_equal(dense(sample.weights) > 0, dense(sample.p_values) > 0)


def test_null_networks_of_validated_links_are_rewired(validated):
    null = validated.null(seed=0)
    assert_array_equal(null.degree, validated.degree)
    assert null.p_values is None
    assert null.model is None
    # A crowd without task structure would have hardly any link to compare with.
    assert validated.model.null(validated.ids, np.random.default_rng(0)).weights().nnz < 0.02 * validated.n_edges


def test_a_few_validated_pairs_are_no_communities():
    graph = crowd(
        n_volunteers=90, n_items=600, n_responses=[100] * 90, n_communities=3, mixing=0.1, stays="long", seed=0
    ).graph
    network = task_cooccurrence(graph.first(3_731), validate=0.01)
    assert 0 < network.n_edges < 45
    groups = cg.BayesianNMF(restarts=1).detect(network, seed=0)
    assert not groups.evidence.structured


def task_weights(incidence):
    """The co-occurrence network of an incidence matrix, each item counting once."""
    volunteer, item = incidence.nonzero()
    answers = {"volunteer": volunteer, "item": item, "label": np.zeros(len(item), int)}
    graph = cg.CrowdGraph.from_responses(answers, labels=[0, 1])
    return task_cooccurrence(graph, min_responses=0).subnetwork(range(incidence.shape[0]))


def test_old_items_count_as_one_in_the_test(planted):
    plain = task_cooccurrence(planted.graph, validate=0.01)
    aged = task_cooccurrence(planted.graph, validate=0.01, half_life=np.timedelta64(20, "D"), prior=(1, 9))
    assert abs(plain.p_values - aged.p_values).max() == 0
    assert abs(plain.weights - aged.weights).max() > 0.01


def test_p_values_of_chance_are_not_too_small():
    """Crowds drawn from the model itself, and rewired ones, which keep the number of answers of everybody exactly.

    Rewired crowds vary less than the model, in which these numbers hold on average, so their p-values are larger.
    """
    rng = np.random.default_rng(0)
    activity, popularity = rng.pareto(1.5, 60) + 0.2, rng.pareto(1.2, 1_000) + 0.2
    answered = rng.random((60, 1_000)) < np.minimum(np.outer(activity, popularity) / 20, 0.9)
    volunteer, item = np.nonzero(answered)
    model = configuration_model(answered.sum(axis=1), answered.sum(axis=0))
    probs = np.repeat(model.probs, model.items_per_class, axis=1)[model.volunteer_class]
    left, right = np.triu_indices(60, 1)
    drawn, rewired = [], []
    for _ in range(30):
        swapped = np.zeros(answered.shape, dtype=np.int64)
        swapped[volunteer, rewire_bipartite(volunteer, item, 1_000, rng)] = 1
        for sample, p_values in ((rng.random(probs.shape) < probs, drawn), (swapped, rewired)):
            answers = sample.astype(np.int64)
            common = (answers @ answers.T)[left, right]
            met = common > 0
            p_values.append(np.ones(len(common)))
            p_values[-1][met] = common_items_p_values(model, left[met], right[met], common[met])
    for level in (0.001, 0.01, 0.05):
        assert level / 2 < np.mean(np.array(drawn) <= level) < 1.15 * level
        assert np.mean(np.array(rewired) <= level) < level


def zipf_crowd(seed, n_volunteers=150, n_items=800):
    """Volunteers draw items at random, popular ones more often; no two of them seek each other."""
    rng = np.random.default_rng(seed)
    popularity = (1 + rng.permutation(n_items)) ** -0.8
    counts = np.minimum(10 + 20 * rng.pareto(1.2, n_volunteers), n_items / 2).astype(int)
    draws = [rng.choice(n_items, count, replace=False, p=popularity / popularity.sum()) for count in counts]
    volunteer, item = np.repeat(np.arange(n_volunteers), counts), np.concatenate(draws)
    answers = {"volunteer": volunteer, "item": item, "label": np.zeros(len(item), int)}
    return cg.CrowdGraph.from_responses(answers, labels=[0, 1])


def test_chance_is_not_validated_and_popular_items_mislead_the_hypergeometric():
    networks = [task_cooccurrence(zipf_crowd(seed)) for seed in range(4)]
    for network in networks:
        assert network.backbone(level=0.01).n_edges <= 0.01 * network.n_edges
        assert network.backbone(level=0.05).n_edges <= 0.05 * network.n_edges
        assert network.backbone(level=0.01, method="hypergeometric").n_edges > 0.1 * network.n_edges


def test_validated_links_lie_inside_planted_communities(planted, validated):
    community = planted.truth.community[planted.graph.volunteers.codes(validated.ids)]
    left, right, _ = validated.pairs()
    assert np.mean(community[left] == community[right]) >= 0.95
    assert (validated.degree > 0).mean() > 0.9


def test_communities_of_validated_links_have_evidence_and_chance_has_none(planted, validated):
    groups = cg.BayesianNMF(nulls=9).detect(validated, seed=0)
    assert len(groups) == 4
    assert groups.evidence.structured
    nothing = task_cooccurrence(crowd(n_volunteers=60, n_items=400, n_responses=3_000).graph, validate=0.01)
    assert nothing.n_edges == 0
    assert len(cg.BayesianNMF(nulls=9).detect(nothing, seed=0)) == 0
    stable = cg.communities.consensus(nothing, draws=2, seed=0)
    assert_array_equal(stable.stability, np.ones(60))


def test_p_values_go_with_parts_files_and_other_libraries(planted, validated, tmp_path):
    value = {
        frozenset(row[:2]): row[2] for row in validated.to_frame()[["volunteer", "neighbour", "p_value"]].to_numpy()
    }
    part = validated.subnetwork(validated.ids[::-3])
    assert {frozenset(row[:2]): row[3] for row in part.to_frame().to_numpy()}.items() <= value.items()
    assert {frozenset(ends[:2]): ends[2] for ends in validated.to_networkx().edges(data="p_value")} == value
    vertices = validated.to_igraph()
    assert {frozenset(vertices.vs[e.tuple]["id"]): e["p_value"] for e in vertices.es} == value
    for name, read in (("n.graphml", nx.read_graphml), ("n.gexf", nx.read_gexf)):
        validated.save(tmp_path / name)
        assert {frozenset(ends[:2]): ends[2] for ends in read(tmp_path / name).edges(data="p_value")} == value
    assert igraph.Graph.Read_GraphML(str(tmp_path / "n.graphml")).es["p_value"] == vertices.es["p_value"]
    planted.graph.annotate(validated).save(tmp_path / "crowd")
    loaded = cg.load(tmp_path / "crowd").annotations["task_cooccurrence"]
    assert abs(loaded.p_values - validated.p_values).max() == 0
    assert not loaded.p_values.data.flags.writeable
    assert loaded.null(seed=0).p_values is None


def test_what_is_said_of_pairs_without_a_link_is_left_out():
    weights, p_values = mirrored([[0, 2, 0], [0, 0, 1], [0, 0, 0]]), mirrored([[0, 0.1, 0.2], [0, 0, 0.3], [0, 0, 0]])
    network = network_of(weights, p_values=p_values)
    assert network.to_frame()["p_value"].tolist() == [0.1, 0.3]


@pytest.mark.parametrize(
    ("p_values", "words"),
    [
        ([[0, 0.1]], r"p_values have shape \(1, 2\); expected that of the weights, \(2, 2\)"),
        ([[0, 2], [2, 0]], "above 0 and at most 1"),
        ([[0, -1], [-1, 0]], "above 0 and at most 1"),
        ([[0, np.nan], [np.nan, 0]], "above 0 and at most 1"),
        ([[0, 0.1], [0.2, 0]], "symmetric"),
        ([[0, 0], [0, 0]], "p_values lack 2 of 2 links"),
    ],
)
def test_p_values_that_do_not_fit_are_refused(p_values, words):
    with pytest.raises(ResultError, match=words):
        network_of([[0, 1], [1, 0]], p_values=np.array(p_values))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 0}, "level=0 must be a number above 0 and below 1, such as 0.01"),
        ({"level": 1.0}, "level=1.0 must be a number above 0 and below 1"),
        ({"level": float("nan")}, "level=nan must be a number"),
        ({"level": "1%"}, "level='1%' must be a number"),
        ({"method": "disparty"}, r"method='disparty' is not a choice; .*Did you mean 'disparity'"),
        ({}, "method='configuration' counts the items .* 'by hand' does not know; possible here: 'disparity'"),
        ({"method": "hypergeometric"}, "networks.task_cooccurrence builds know them; files do not keep that"),
    ],
)
def test_bad_input_of_backbone(options, words):
    with pytest.raises(ParameterError, match=words):
        network_of([[0, 1], [1, 0]]).backbone(**options)


def test_similarities_do_not_know_items():
    graph = crowd().graph
    network = cg.networks.pi_similarity(graph.annotate(cg.IBCC().fit(graph)))
    with pytest.raises(ParameterError, match="'pi_similarity' does not know; possible here: 'disparity'"):
        network.backbone()


@pytest.mark.parametrize("n_volunteers", [0, 1, 5])
def test_a_network_without_links_stays_one(n_volunteers):
    backbone = network_of(np.zeros((n_volunteers, n_volunteers))).backbone(method="disparity")
    assert (len(backbone), backbone.n_edges) == (n_volunteers, 0)
    assert len(backbone.to_frame()) == 0
    if n_volunteers:
        apart = {"volunteer": range(n_volunteers), "item": range(n_volunteers), "label": [0] * n_volunteers}
        graph = cg.CrowdGraph.from_responses(apart, labels=[0, 1])
        assert task_cooccurrence(graph, min_responses=1, validate=0.5).n_edges == 0


def test_edges_have_the_p_values_of_networkx(planted):
    network = task_cooccurrence(planted.graph, validate=0.01)
    theirs = network.to_networkx()
    edges = list(network.edges(data=True))
    assert len(edges) == theirs.number_of_edges() > 0
    assert all(data == theirs.edges[left, right] and "p_value" in data for left, right, data in edges)
