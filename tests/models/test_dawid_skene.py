"""Dawid-Skene: an independent EM as oracle, and a likelihood that never falls."""

import warnings

import numpy as np
import pytest
from builders import crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import answered_graphs

import crowdgraph as cg


def plain_em(graph, n_steps):
    """Dawid and Skene's EM with dense arrays, from shares of votes; returns probabilities and log likelihoods."""
    n_items, n_labels = len(graph.items), len(graph.labels)
    assert len(graph.classes) == n_labels
    said = np.zeros((n_items, len(graph.volunteers), n_labels))
    np.add.at(said, (graph.responses.item, graph.responses.volunteer, graph.responses.label), 1)
    votes = said.sum(axis=1)
    probs = votes / votes.sum(axis=1, keepdims=True)
    likelihoods = []
    for _ in range(n_steps):
        counts = np.einsum("ikl,ij->kjl", said, probs)
        totals = counts.sum(axis=2, keepdims=True)
        confusion = np.where(totals > 0, counts / np.where(totals > 0, totals, 1), 1 / n_labels)
        shares = probs.mean(axis=0)
        with np.errstate(divide="ignore"):
            logs, class_logs = np.log(confusion), np.log(shares)
        joint = np.exp(class_logs + np.einsum("ikl,kjl->ij", said, np.maximum(logs, -1e4)))
        likelihoods.append(np.log(joint.sum(axis=1)).sum())
        probs = joint / joint.sum(axis=1, keepdims=True)
    return probs, np.array(likelihoods)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_and_likelihoods_are_those_of_plain_em(seed):
    graph = crowd(n_volunteers=12, n_items=60, n_responses=400, gold=0, seed=seed).graph
    graph = graph.subgraph(items=graph.items.ids[graph.items.n_responses > 0])
    fit = cg.DawidSkene(smoothing=0, accelerate=False, tol=1e-10).fit(graph)
    probs, likelihoods = plain_em(graph, fit.n_iter)
    assert np.allclose(fit.item_probs, probs, atol=1e-8)
    assert np.allclose(fit.bound, likelihoods, rtol=1e-10)


@settings(max_examples=25)
@given(answered_graphs(), st.sampled_from([0, 0.01, 1.0]), st.booleans())
def test_likelihood_never_falls(graph, smoothing, accelerate):
    votes = {label: graph.classes[label % len(graph.classes)] for label in graph.labels}
    model = cg.DawidSkene(smoothing=smoothing, accelerate=accelerate, votes=votes, max_iter=300, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.errors.CrowdGraphWarning)
        fit = model.fit(graph)
    assert (np.diff(fit.bound) >= -1e-9 * (1 + np.abs(fit.bound[1:]))).all()
    assert np.isfinite(fit.item_probs).all()


def test_estimates_are_shares_of_expected_counts():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"] * 4, "item": [*"wxyz"], "label": ["yes", "yes", "no", "no"]},
        gold={"w": "yes", "x": "yes", "y": "yes", "z": "no"},
    )
    mean = cg.DawidSkene(smoothing=0).fit(graph).confusion.of("anna").latest().mean
    assert np.allclose(mean, [[1, 0], [1 / 3, 2 / 3]])


def test_what_was_never_seen_has_an_interval_all_the_same():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"], "item": ["x"], "label": ["yes"]},
        labels=["no", "yes"],
        volunteers={"volunteer": ["anna", "nobody"]},
    )
    low, high = cg.DawidSkene(smoothing=0).fit(graph).confusion.latest().interval()
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()


def test_a_start_from_another_fit_is_quick_and_ends_in_the_same_place():
    graph = crowd(gold=0.2, seed=1).graph
    fit = cg.DawidSkene().fit(graph)
    again = cg.DawidSkene().fit(graph, start=fit)
    assert again.n_iter <= fit.n_iter
    assert np.allclose(again.item_probs, fit.item_probs, atol=1e-4)
