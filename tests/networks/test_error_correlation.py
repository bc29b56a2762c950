"""Who errs together: the weights against plain loops, the null, and planted groups."""

import numpy as np
import pytest
from builders import crowd, fitted, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg


def three_groups(**options):
    """A crowd of three groups that behave the same, and its graph with a fit."""
    sizes = {"n_volunteers": 45, "n_items": 400, "n_responses": 9_000}
    simulated = crowd(0.8, 0.8, 0.8, seed=1, **sizes, **options)
    return simulated, simulated.graph.annotate(cg.IBCC().fit(simulated.graph))


@pytest.fixture(scope="module")
def erring_together():
    """Three groups that share their errors."""
    return three_groups(shared_errors=0.4)


def looped(graph, min_common):
    """The weights, pair by pair and item by item."""
    fit = graph.fit()
    mean, probs = fit.confusion.latest().mean, fit.item_probs
    said = {}
    for volunteer, item, label in zip(
        *(getattr(graph.responses, n) for n in ("volunteer", "item", "label")), strict=True
    ):
        said[volunteer, item] = np.eye(len(graph.labels))[label] - mean[volunteer]
    n = len(graph.volunteers)
    weights = np.zeros((n, n))
    for one, other in np.ndindex(n, n):
        common = [i for i in range(len(graph.items)) if (one, i) in said and (other, i) in said]
        if one == other or len(common) < min_common:
            continue
        dot, left, right = (
            sum((probs[i][:, None] * said[a, i] * said[b, i]).sum() for i in common)
            for a, b in ((one, other), (one, one), (other, other))
        )
        weights[one, other] = max(0.0, dot / np.sqrt(left * right))
    return weights


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.RepeatedAnswersWarning")
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1_000), st.integers(1, 6))
def test_weights_are_those_of_plain_loops(seed, min_common):
    graph = fitted(seed=seed, n_volunteers=8, n_items=20, n_responses=70, duplicates=0.1)
    network = cg.networks.error_correlation(graph, min_responses=0, min_common=min_common)
    assert_allclose(network.weights.toarray(), looped(graph, min_common), atol=1e-12)


def test_those_who_err_together_are_found_where_behaviour_is_the_same(erring_together):
    simulated, graph = erring_together
    network = cg.networks.error_correlation(graph)
    result = cg.Leiden().detect(network, seed=0)
    assert len(result) == 3
    for group in range(3):
        assert len(np.unique(result.assignment[simulated.truth.group == group])) == 1


def test_bayesian_nmf_tells_whether_there_are_any(erring_together):
    for (_, graph), n_communities in ((three_groups(), 1), (erring_together, 3)):
        assert len(cg.BayesianNMF().detect(cg.networks.error_correlation(graph), seed=0)) == n_communities


def test_null_and_resampled_networks_keep_who_met_what(erring_together):
    _, graph = erring_together
    network = cg.networks.error_correlation(graph)
    null, again = network.null(seed=0), network.resampled(seed=0)
    assert null.strength.sum() < 0.6 * network.strength.sum()
    assert_allclose(again.strength.sum(), network.strength.sum(), rtol=0.2)
    sample = network.model.null(network.ids, np.random.default_rng(0))
    assert_array_equal(sample.volunteer, network.model.volunteer)
    assert_array_equal(sample.item, network.model.item)
    for volunteer in range(3):
        own = network.model.volunteer == volunteer
        assert_allclose(np.sort(sample.residual[own], axis=0), np.sort(network.model.residual[own], axis=0))
    some = network.ids[5:20]
    assert network.model.resampled(some, np.random.default_rng(0)).weights().shape == (15, 15)


def test_confusion_that_changes_counts_as_it_was_then():
    graph = crowd(n_volunteers=12, n_responses=600, drift="step").graph
    static, changing = (graph.annotate(model.fit(graph)) for model in (cg.IBCC(), cg.DynIBCC(noise_scale=2.0)))
    one, other = (cg.networks.error_correlation(annotated).weights.toarray() for annotated in (static, changing))
    assert np.abs(one - other).max() > 1e-3


def test_those_who_share_no_items_are_not_linked():
    columns = {"volunteer": ["a", "a", "b", "b"], "item": list("wxyz"), "label": ["yes", "no"] * 2}
    graph = cg.CrowdGraph.from_responses(columns)
    network = cg.networks.error_correlation(graph.annotate(cg.IBCC().fit(graph)), min_responses=1)
    assert (len(network), network.n_edges) == (2, 0)


@pytest.mark.parametrize("volunteers", [["a"] * 20, ["a", "b"] * 10])
def test_volunteers_without_enough_common_items_are_not_linked(volunteers):
    graph = graph_of(volunteers, range(20), [0, 1, 1, 0] * 5)
    network = cg.networks.error_correlation(graph.annotate(cg.IBCC().fit(graph)))
    assert network.n_edges == 0
    assert network.null(seed=0).n_edges == network.resampled(seed=0).n_edges == 0
