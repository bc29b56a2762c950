"""Who errs together: the weights against plain loops, the null, and planted groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.errors import NotAnnotatedError, ParameterError, TooFewError


def planted(seed, **options):
    groups = [cg.simulate.Group(name=f"group {number}", confusion=[[0.8, 0.2], [0.2, 0.8]]) for number in range(3)]
    sizes = {"n_volunteers": 45, "n_items": 400, "n_responses": 9_000}
    crowd = cg.simulate.crowd(groups=groups, seed=seed, **{**sizes, **options})
    return crowd, crowd.graph.annotate(cg.IBCC().fit(crowd.graph))


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
    sizes = {"n_volunteers": 8, "n_items": 20, "n_responses": 70, "duplicates": 0.1}
    graph = cg.simulate.crowd(seed=seed, **sizes).graph
    graph = graph.annotate(cg.IBCC().fit(graph))
    network = cg.networks.error_correlation(graph, min_responses=0, min_common=min_common)
    assert_allclose(network.weights.toarray(), looped(graph, min_common), atol=1e-12)


def test_those_who_err_together_are_found_where_behaviour_is_the_same():
    crowd, graph = planted(0, shared_errors=0.4)
    network = cg.networks.error_correlation(graph)
    result = cg.Leiden().detect(network, seed=0)
    assert len(result) == 3
    for group in range(3):
        assert len(np.unique(result.assignment[crowd.truth.group == group])) == 1


def test_bayesian_nmf_tells_whether_there_are_any():
    _, apart = planted(1)
    _, together = planted(1, shared_errors=0.4)
    assert len(cg.BayesianNMF().detect(cg.networks.error_correlation(apart), seed=0)) == 1
    assert len(cg.BayesianNMF().detect(cg.networks.error_correlation(together), seed=0)) == 3


def test_null_and_redrawn_keep_who_met_what():
    _, graph = planted(2, shared_errors=0.4)
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
    graph = cg.simulate.crowd(n_volunteers=12, n_responses=1_500, drift="step", seed=0).graph
    static, changing = (graph.annotate(model.fit(graph)) for model in (cg.IBCC(), cg.DynIBCC(noise_scale=2.0)))
    one, other = (cg.networks.error_correlation(annotated).weights.toarray() for annotated in (static, changing))
    assert np.abs(one - other).max() > 1e-3


def test_bad_input():
    crowd, graph = planted(0, n_responses=500)
    with pytest.raises(NotAnnotatedError, match="IBCC"):
        cg.networks.error_correlation(crowd.graph)
    with pytest.raises(NotAnnotatedError, match="has no confusion matrices"):
        cg.networks.error_correlation(graph, fit=cg.MajorityVote().fit(graph))
    with pytest.raises(ParameterError, match="fit= takes a fit"):
        cg.networks.error_correlation(graph, fit=3)
    with pytest.raises(ParameterError, match="min_common"):
        cg.networks.error_correlation(graph, min_common=0)
    with pytest.raises(TooFewError, match="Lower min_responses"):
        cg.networks.error_correlation(graph, min_responses=1_000)
