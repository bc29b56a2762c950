"""Comparing networks: scikit-learn, SciPy and the distribution of p values as oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import binom, pearsonr
from sklearn.metrics import adjusted_rand_score, homogeneity_score, normalized_mutual_info_score

import crowdgraph as cg
from crowdgraph.communities import network_comparison
from crowdgraph.communities.base import Detection
from crowdgraph.communities.network_comparison import compare_networks
from crowdgraph.errors import AlignmentError, ParameterError


def divided(assignment, ids=None):
    """Communities of an assignment."""
    assignment = np.asarray(assignment)
    shares = np.zeros((len(assignment), max(assignment.max(initial=-1) + 1, 1)))
    member = np.flatnonzero(assignment >= 0)
    shares[member, assignment[member]] = 1
    ids = range(len(assignment)) if ids is None else ids
    return cg.Communities(ids=ids, participation=shares, modularity=0.0, method="by hand")


def network(weights, ids=None):
    weights = np.triu(weights, 1)
    ids = range(len(weights)) if ids is None else ids
    return cg.VolunteerNetwork(ids=ids, weights=weights + weights.T, method="by hand")


@given(st.integers(0, 2**32), st.integers(2, 60), st.integers(1, 6), st.integers(1, 6))
def test_measures_are_scikit_learns(seed, n, n_left, n_right):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(n_left, size=n), rng.integers(n_right, size=n)
    comparison = compare_networks(divided(left), divided(right), n_permutations=5, seed=0)
    assert_allclose(comparison.ari, adjusted_rand_score(left, right), atol=1e-10)
    assert_allclose(comparison.nmi, normalized_mutual_info_score(left, right), atol=1e-10)
    if len(set(left)) > 1:
        assert_allclose(comparison.explained, homogeneity_score(left, right), atol=1e-10)
    else:
        assert np.isnan(comparison.explained)
    # The null is that of the same measure, of the volunteers in the orders that the seed gives.
    orders = np.random.default_rng(0)
    orders.integers(2**31)
    orders.integers(2**31)
    expected = [normalized_mutual_info_score(left[orders.permutation(n)], right) for _ in range(5)]
    assert_allclose(comparison.null, expected, atol=1e-10)
    assert comparison.p_value == (1 + np.count_nonzero(comparison.null >= comparison.nmi - 1e-10)) / 6


def test_independent_divisions_have_any_p_value():
    rng = np.random.default_rng(1)
    p_values = np.array(
        [
            compare_networks(
                divided(rng.integers(3, size=30)), divided(rng.integers(3, size=30)), n_permutations=99, seed=seed
            ).p_value
            for seed in range(200)
        ]
    )
    for level in (0.05, 0.2, 0.5):
        low, high = binom.interval(0.999, 200, level)
        assert low <= np.count_nonzero(p_values <= level) <= high


def test_equal_divisions_have_the_smallest_p_value():
    assignment = np.arange(40) % 4
    comparison = compare_networks(divided(assignment), divided((assignment + 1) % 4), n_permutations=199, seed=0)
    assert (comparison.ari, comparison.n_volunteers) == (1.0, 40)
    assert_allclose([comparison.nmi, comparison.explained], 1)
    assert comparison.p_value == 1 / 200
    assert comparison.null.max() < 0.6
    assert comparison.verdict.startswith("shared items explain 100% of behaviour, 1")
    assert repr(comparison) == f"NetworkComparison(40 volunteers: {comparison.verdict})"


def test_only_volunteers_with_both_communities_count():
    left = divided([0, 0, 1, 1, -1, 0], ids="abcdeg")
    right = divided([1, 0, 0, 1, -1, 0], ids="fdcbae")
    comparison = compare_networks(left, right, n_permutations=3, seed=0)
    assert comparison.n_volunteers == 3
    # b, c and d: behaviour 0, 1, 1 and exposure 1, 0, 0; a and e lack a community, f and g are known to one.
    assert_allclose(comparison.nmi, 1)


def test_one_community_explains_nothing():
    some, all_one = divided([0, 1, 0, 1, 1]), divided([0, 0, 0, 0, 0])
    alike = compare_networks(all_one, some, n_permutations=9, seed=0)
    assert (alike.p_value, alike.nmi) == (1.0, 0.0)
    assert alike.verdict == "all volunteers behave alike, so there is nothing to explain"
    together = compare_networks(some, all_one, n_permutations=9, seed=0)
    assert (together.p_value, together.explained) == (1.0, 0.0)
    assert together.verdict == "all volunteers share items, so items cannot explain how volunteers differ"
    both = compare_networks(all_one, all_one, n_permutations=9, seed=0)
    assert (both.p_value, both.ari, both.nmi) == (1.0, 1.0, 1.0)
    assert_array_equal(both.null, np.ones(9))


@given(st.integers(0, 2**32), st.integers(4, 14))
@settings(max_examples=20, deadline=None)
def test_the_correlation_of_weights_is_pearsons(seed, n):
    rng = np.random.default_rng(seed)
    dense = network(0.1 + rng.random((n, n)), ids=rng.permutation(n))
    thin = network(rng.random((n, n)) * (rng.random((n, n)) < 0.5), ids=rng.permutation(n + 2)[:n])
    thin = cg.VolunteerNetwork(ids=thin.ids, weights=csr_array(thin.weights), method="by hand")
    common = sorted(set(dense.ids.tolist()) & set(thin.ids.tolist()))
    pairs = np.triu_indices(len(common), 1)
    weights = [
        dense.subnetwork(common).weights[pairs],
        thin.subnetwork(common).weights.toarray()[pairs],
    ]
    comparison = network_comparison._weight_correlation(dense, thin, 19, np.random.default_rng(0), progress=False)
    swapped = network_comparison._weight_correlation(thin, dense, 19, np.random.default_rng(0), progress=False)
    if len(common) < 3 or any(np.ptp(values) == 0 for values in weights):
        assert np.isnan(comparison).all()
    else:
        assert_allclose([comparison[0], swapped[0]], pearsonr(*weights).statistic, atol=1e-9)
        assert comparison[1] in np.arange(1, 21) / 20


def test_weights_that_go_together_and_weights_that_do_not(monkeypatch):
    rng = np.random.default_rng(0)
    weights = rng.random((30, 30))
    one, noisy = network(weights), network(weights + 0.5 * rng.random((30, 30)))
    comparison = compare_networks(one, noisy, n_permutations=99, seed=0)
    assert comparison.weight_correlation > 0.8
    assert comparison.weight_p_value == 0.01
    p_values = [
        network_comparison._weight_correlation(one, network(rng.random((30, 30))), 19, rng, progress=False)[1]
        for _ in range(100)
    ]
    assert binom.interval(0.999, 100, 0.2)[0] <= np.count_nonzero(np.array(p_values) <= 0.2)
    assert np.count_nonzero(np.array(p_values) <= 0.2) <= binom.interval(0.999, 100, 0.2)[1]
    monkeypatch.setattr(network_comparison, "MAX_PAIRED_VOLUNTEERS", 29)
    assert np.isnan(compare_networks(one, noisy, n_permutations=9, seed=0).weight_correlation)
    assert np.isnan(compare_networks(divided([0, 1, 1]), divided([0, 1, 1]), n_permutations=9).weight_p_value)


GROUPS = [
    cg.simulate.Group(name="able", confusion=[[0.95, 0.05], [0.05, 0.95]]),
    cg.simulate.Group(name="timid", confusion=[[0.95, 0.05], [0.85, 0.15]]),
]


def crowd(same):
    """Two crowds of one behaviour each with items of their own, or both behaviours in both."""
    columns = {"volunteer": [], "item": [], "label": []}
    rng = np.random.default_rng(5)
    for part in range(2):
        groups = GROUPS[part : part + 1] if same else GROUPS
        sizes = {"n_volunteers": 40, "n_items": 150, "n_responses": 2_000}
        table = cg.simulate.crowd(**sizes, groups=groups, gold=1.0, seed=part).graph
        for column, codes in (("volunteer", table.responses.volunteer), ("item", table.responses.item)):
            columns[column] += [f"{part}-{code}" for code in codes]
        columns["label"] += table.responses.label.tolist()
        columns.setdefault("gold", {}).update(
            {f"{part}-{code}": table.gold[name] for code, name in enumerate(table.items)}
        )
    order = rng.permutation(len(columns["label"]))
    gold = {item: ("no", "yes").index(value) for item, value in columns.pop("gold").items()}
    table = {name: [values[row] for row in order] for name, values in columns.items()}
    graph = cg.CrowdGraph.from_responses(table, gold=gold, labels=(0, 1))
    return graph.annotate(cg.IBCC().fit(graph))


@pytest.mark.parametrize("same", [True, False])
def test_behaviour_and_tasks_of_simulated_crowds(same):
    graph = crowd(same)
    alike, together = cg.networks.pi_similarity(graph), cg.networks.task_cooccurrence(graph)
    comparison = compare_networks(alike, together, n_permutations=199, seed=0)
    assert len(comparison.exposure) == 2
    if same:
        assert comparison.p_value == comparison.weight_p_value == 1 / 200
        assert comparison.explained > 0.8
        assert ": more than chance (p = 0.005)" in comparison.verdict
    else:
        assert min(comparison.p_value, comparison.weight_p_value) > 0.05
        assert ": no more than chance" in comparison.verdict
    again = compare_networks(alike, together, n_permutations=199, seed=0)
    assert_array_equal(comparison.null, again.null)


class Halves(cg.Leiden):
    """Finds the first half and the second half of the volunteers."""

    def _detect(self, network, *, seed, progress):
        return Detection(np.eye(2)[np.arange(len(network)) * 2 // len(network)])


def test_the_detector_finds_the_communities():
    rng = np.random.default_rng(0)
    one = network(0.1 + rng.random((8, 8)))
    comparison = compare_networks(one, divided(np.arange(8) // 4), detector=Halves(), n_permutations=9, seed=0)
    assert comparison.ari == 1.0
    assert_array_equal(comparison.behaviour.assignment, np.arange(8) // 4)


def test_progress_is_shown_on_request(capsys):
    compare_networks(divided([0, 1, 1]), divided([0, 1, 1]), n_permutations=9, seed=0, progress=True)
    assert "shuffling" in capsys.readouterr().err
    compare_networks(divided([0, 1, 1]), divided([0, 1, 1]), n_permutations=9, seed=0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((divided([0, 1]), [0, 1]), {}, ParameterError, "exposure must be a VolunteerNetwork or Communities; got a li"),
        ((3, divided([0, 1])), {}, ParameterError, "behaviour must be a VolunteerNetwork or Communities; got a int"),
        ((divided([0, 1]), divided([0, 1])), {"detector": "leiden"}, ParameterError, "takes a detector such as Leiden"),
        ((divided([0, 1]), divided([0, 1])), {"n_permutations": 0}, ParameterError, "n_permutations=0 must be a whole"),
        ((divided([0, 1]), divided([0, 1])), {"seed": -1}, ParameterError, "seed=-1 must be a whole number"),
        ((divided([0, 1]), divided([0, 1], ids="ab")), {}, AlignmentError, "0 volunteers have both a community of beh"),
        ((divided([0, -1]), divided([0, 1])), {}, AlignmentError, "1 volunteers have both .* from the same graph"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        compare_networks(*arguments, **options)
