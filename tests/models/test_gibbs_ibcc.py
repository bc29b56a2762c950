"""Gibbs-IBCC: its means are the exact posterior's, within what sampling allows."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from builders import crowd

import crowdgraph as cg
from crowdgraph.kernels.gibbs import Draws
from crowdgraph.models.gibbs_ibcc import match_moments, worst_diagnostics
from crowdgraph.testing import exact_posterior


def tiny(seed, *, classes=("a", "b"), n_items=6, answered=0.8, gold=None):
    """Three labels, three volunteers, nobody twice."""
    rng = np.random.default_rng(seed)
    pairs = [(k, i) for k in range(3) for i in range(n_items) if answered == 1 or rng.random() < answered]
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": [k for k, _ in pairs],
            "item": [i for _, i in pairs],
            "label": rng.integers(0, 3, len(pairs)).tolist(),
        },
        labels=[0, 1, 2],
        classes=classes,
        gold=gold,
        items={"item": list(range(n_items))},
    )


def assert_means_are_exact(fit, exact):
    """Means of conditional probabilities vary less than means of draws, whose error this is."""
    error = np.sqrt(exact.item_probs * (1 - exact.item_probs) / fit.diagnostics["ess"]["item_classes"])
    assert (np.abs(fit.item_probs - exact.item_probs) <= 5 * error + 1e-12).all()


@pytest.fixture(scope="module")
def graph():
    return crowd(n_volunteers=20, n_items=60, n_responses=600, gold=0.2).graph


PRIOR = np.array([[2.0, 1.0, 0.5], [0.3, 1.0, 2.0]])


@pytest.mark.parametrize("seed", range(3))
def test_means_are_the_exact_posterior(seed):
    graph = tiny(seed, gold={0: "a"})
    exact = exact_posterior(graph, confusion_prior=PRIOR, class_prior=[2, 1])
    model = cg.GibbsIBCC(confusion_prior=PRIOR, class_prior=[2, 1], max_draws=4_000, stop_change=1e-9)
    with pytest.warns(cg.errors.ConvergenceWarning):
        fit = model.fit(graph, seed=seed)
    assert_means_are_exact(fit, exact)


def test_confusion_is_the_exact_posterior_when_all_is_known():
    """With gold for everything the Dirichlets are known exactly, and so are their means and spreads."""
    graph = tiny(0, gold=dict(zip(range(6), "aababb", strict=True)))
    fit = cg.GibbsIBCC(confusion_prior=PRIOR).fit(graph, seed=0)
    exact = cg.IBCC(confusion_prior=PRIOR).fit(graph)
    assert np.allclose(fit.confusion.latest().concentration, exact.confusion.latest().concentration, rtol=1e-9)
    error = 5 * np.sqrt(0.25 / fit.diagnostics["ess"]["class_probs"])
    assert np.abs(fit.class_probs - exact.class_probs).max() < error


def test_soft_gold_is_drawn_from():
    graph = tiny(1, gold={0: {"a": 0.3, "b": 0.7}})
    fit = cg.GibbsIBCC(confusion_prior=PRIOR, stop_change=0.1).fit(graph, seed=0)
    assert np.allclose(fit.item_probs[0], [0.3, 0.7])


def test_it_settles_and_says_how_sure_it_is(graph):
    fit = cg.GibbsIBCC(stop_change=0.05).fit(graph, seed=0)
    assert fit.converged
    assert max(fit.diagnostics["r_hat"].values()) < 1.01
    assert fit.diagnostics["change"] <= 0.05
    draws = fit.diagnostics["draws"]
    assert draws["class_probs"].shape == (4, fit.n_iter, 2)
    assert draws["log_joint"].shape == (4, fit.n_iter)
    assert np.allclose(draws["class_probs"].sum(axis=2), 1)
    assert np.allclose(draws["class_probs"].mean(axis=(0, 1)), fit.class_probs)


def test_one_chain_can_start_from_another_fit(graph):
    start = cg.IBCC().fit(graph)
    fit = cg.GibbsIBCC(chains=1, burn_in=1, stop_change=0.1).fit(graph, seed=0, start=start)
    assert (fit.item_probs.argmax(axis=1) == start.item_probs.argmax(axis=1)).mean() > 0.9


def test_stuck_chains_are_not_called_settled():
    """Chains that sit in different places have no spread within, and an infinite R-hat."""

    def block(value):
        return Draws(
            class_probs=np.full((50, 2), value), log_joint=np.zeros(50), change=np.zeros(50), watched=np.zeros((50, 1))
        )

    assert worst_diagnostics([[block(0.2), block(0.2)]], "rhat", 2)["class_probs"] == 1.0
    assert worst_diagnostics([[block(0.2), block(0.8)]], "rhat", 2)["class_probs"] == np.inf
    assert worst_diagnostics([[block(0.2), block(0.8)]], "ess", 2)["class_probs"] == 0.0


def test_influence_is_the_same_each_time():
    fit = cg.GibbsIBCC(confusion_prior=PRIOR, stop_change=0.2).fit(tiny(0, gold={0: "a"}), seed=3)
    first, second = (fit.influence(volunteer=1).item_change for _ in range(2))
    assert np.array_equal(first, second)


def test_a_single_label_says_nothing():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["seen", "seen"]}, classes=["a", "b"]
    )
    fit = cg.GibbsIBCC(confusion_prior=[[5], [5]], stop_change=0.2).fit(graph, seed=0)
    assert np.allclose(fit.confusion.latest().mean, 1)


def test_matched_dirichlets_have_the_moments():
    alpha = np.array([[2.0, 3.0], [1.0, 0.5], [4.0, 7.0]])
    total = alpha.sum(axis=0)
    mean = alpha / total
    square = alpha * (alpha + 1) / (total * (total + 1))
    assert np.allclose(match_moments(mean, square, axis=0), alpha)


def test_means_of_three_classes_are_the_exact_posterior():
    """Classes are compared one by one: 0 and 2 are not twice as far apart as 0 and 1."""
    graph = tiny(4, classes=[0, 1, 2], n_items=5, answered=1)
    exact = exact_posterior(graph, confusion_prior=np.eye(3) * 2 + 1, class_prior=[1, 1, 1])
    fit = cg.GibbsIBCC(confusion_prior=(3, 1), stop_change=0.002).fit(graph, seed=1)
    assert fit.diagnostics["draws"]["item_classes"].shape == (4, fit.n_iter, 5)
    assert fit.diagnostics["watched_items"].tolist() == [0, 1, 2, 3, 4]
    assert_means_are_exact(fit, exact)


def test_arviz_computes_the_same_r_hat_from_the_draws():
    graph = tiny(2, gold={0: "a"})
    fit = cg.GibbsIBCC(confusion_prior=PRIOR, stop_change=0.1).fit(graph, seed=0)
    draws = fit.diagnostics["draws"]["class_probs"]
    r_hat = max(array_stats.rhat(draws[:, :, j], chain_axis=0, draw_axis=1) for j in range(2))
    assert np.isclose(r_hat, fit.diagnostics["r_hat"]["class_probs"])
