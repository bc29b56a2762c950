"""Cautious: class probabilities against sums over difficulties and draws, and that it helps."""

import numpy as np
import pytest
from builders import communities_of, crowd, planted
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.models.cautious import DIFFICULTIES


def tiny(seed, *, n_volunteers=5, n_items=6, n_classes=2, n_labels=3):
    """Most volunteers answer most items; a third has gold, one of it uncertain, and the last item has no answer."""
    rng = np.random.default_rng(seed)
    pairs = [(v, i) for v in range(n_volunteers) for i in range(n_items - 1) if rng.random() < 0.8]
    rows = {
        "volunteer": [v for v, _ in pairs],
        "item": [i for _, i in pairs],
        "label": rng.integers(n_labels, size=len(pairs)).tolist(),
    }
    gold = {0: 0, 1: dict(enumerate(rng.dirichlet(np.ones(n_classes)).tolist()))}
    return cg.CrowdGraph.from_responses(
        rows,
        gold=gold,
        classes=range(n_classes),
        labels=range(n_labels),
        volunteers={"volunteer": range(n_volunteers)},
        items={"item": range(n_items)},
    )


def same_draw(rows, labels):
    """The length of the stretch of draws for which everybody, of these rows, says these labels."""
    edges = np.unique(np.concatenate([[0.0, 1.0], *(row.cumsum()[:-1] for row in rows)]))
    middle = (edges[1:] + edges[:-1]) / 2
    says = [np.searchsorted(row.cumsum()[:-1], middle) for row in rows]
    return np.diff(edges)[np.all([said == label for said, label in zip(says, labels, strict=True)], axis=0)].sum()


def probabilities_by_sums(graph, fit, groups, shares, chances):
    """The class probabilities, by sums over difficulties and draws, answer by answer."""
    probs = np.array(graph.gold.probs)
    mean, classes = fit.confusion.latest().mean, fit.class_probs
    said = list(zip(graph.responses.volunteer, graph.responses.item, graph.responses.label, strict=True))
    for item in np.flatnonzero(~graph.gold.known):
        scores = np.zeros(len(classes))
        for j, difficulty in np.ndindex(len(classes), len(shares)):
            hard = DIFFICULTIES[difficulty]
            rows = {v: (1 - hard) * mean[v, j] + hard * (classes @ mean[v]) for v in range(len(mean))}
            likelihood = 1.0
            for group in {*groups}:
                answers = [(v, label) for v, i, label in said if i == item and groups[v] == group]
                alone = np.prod([rows[v][label] for v, label in answers])
                if group >= 0 and answers:
                    shared = same_draw([rows[v] for v, _ in answers], [label for _, label in answers])
                    alone = (1 - chances[group]) * alone + chances[group] * shared
                likelihood *= alone
            scores[j] += classes[j] * shares[difficulty] * likelihood
        probs[item] = scores / scores.sum()
    return probs


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 3), st.integers(2, 4))
@example(seed=3306, n_classes=2, n_labels=2)
def test_class_probabilities_are_sums_over_difficulties_and_draws(seed, n_classes, n_labels):
    graph = tiny(seed, n_classes=n_classes, n_labels=n_labels)
    groups = np.random.default_rng(seed).integers(-1, 2, 5)
    prior = np.random.default_rng(seed).uniform(0.5, 5, (n_classes, n_labels))
    communities = communities_of(groups, ids=graph.volunteers.ids)
    # So small a tolerance may take thousands of steps.
    model = cg.Cautious(model=cg.IBCC(confusion_prior=prior), communities=communities, tol=1e-9, max_iter=20_000)
    fit = model.fit(graph)
    shares, chances = list(fit.diagnostics["difficulties"].values()), fit.diagnostics["chances"]
    # The class probabilities are those of the step before the last, which tol keeps near.
    assert_allclose(fit.item_probs, probabilities_by_sums(graph, fit, groups, shares, chances), atol=1e-6)


def test_one_difficulty_and_no_communities_is_a_product():
    graph = tiny(3)
    fit = cg.Cautious(model=cg.IBCC(confusion_prior=[[3, 1, 1], [1, 2, 3]]), difficulty=False).fit(graph)
    mean, responses = fit.confusion.latest().mean, graph.responses
    scores = np.tile(np.log(fit.class_probs), (len(graph.items), 1))
    np.add.at(scores, responses.item, np.log(mean[responses.volunteer, :, responses.label]))
    product = np.exp(scores - scores.max(axis=1, keepdims=True))
    product /= product.sum(axis=1, keepdims=True)
    free = ~graph.gold.known
    assert_allclose(fit.item_probs[free], product[free], atol=1e-12)
    assert_array_equal(fit.item_probs[~free], graph.gold.probs[~free])
    assert_allclose(fit.item_probs[-1], fit.class_probs, atol=1e-12)


def three_skills(seed=0, **options):
    """A crowd of three groups, of which each is more often right than the next."""
    sizes = {"n_volunteers": 60, "n_items": 800, "n_responses": 16_000, "gold": 0.2}
    return crowd(0.9, 0.75, 0.6, seed=seed, **{**sizes, **options})


def log_loss(simulated, fit):
    hidden = ~simulated.graph.gold.known
    right = fit.item_probs[hidden, simulated.truth.classes[hidden]]
    return -np.log(right.clip(1e-12)).mean()


@pytest.mark.parametrize(("knob", "share", "at_most"), [("difficulty", 0.3, 0.95), ("shared_errors", 0.4, 0.8)])
def test_it_is_less_surely_wrong_where_others_are(knob, share, at_most):
    simulated = three_skills(**{knob: share})
    graph = simulated.graph
    fit, plain = cg.Cautious(communities=planted(simulated)).fit(graph), cg.IBCC().fit(graph)
    assert log_loss(simulated, fit) < at_most * log_loss(simulated, plain)
    assert_allclose(fit.diagnostics["chances"], share if knob == "shared_errors" else 0.0, atol=0.1)


def test_neither_difficulty_nor_shared_errors_are_seen_where_there_are_none():
    simulated = three_skills(1)
    graph = simulated.graph
    fit = cg.Cautious(communities=planted(simulated)).fit(graph)
    assert (fit.diagnostics["chances"] < 0.05).all()
    assert fit.diagnostics["difficulties"][0.0] > 0.95
    assert log_loss(simulated, fit) < log_loss(simulated, cg.IBCC().fit(graph)) + 0.005


def test_confusion_that_changes_counts_as_it_was_then():
    graph = three_skills(2, n_responses=3_000, drift="step").graph
    changing = cg.DynIBCC(noise_scale=1.0)
    base, fit = changing.fit(graph), cg.Cautious(model=changing, difficulty=False).fit(graph)
    rows = np.empty((len(graph.responses), 2))
    for volunteer in graph.volunteers.ids:
        own = np.flatnonzero(graph.responses.volunteer == graph.volunteers.table.code(volunteer))
        mean = base.confusion.of(volunteer).mean
        rows[own] = mean[np.arange(len(own)), :, graph.responses.label[own]]
    scores = np.tile(np.log(base.class_probs), (len(graph.items), 1))
    np.add.at(scores, graph.responses.item, np.log(rows))
    first = 1 / (1 + np.exp(scores[:, 1] - scores[:, 0]))
    free = ~graph.gold.known
    assert_allclose(fit.item_probs[free, 0], first[free], atol=1e-9)


def test_it_can_be_saved_and_started_from(tmp_path):
    graph = three_skills(n_responses=2_000).graph
    model = cg.Cautious(communities=communities_of(np.arange(60) % 3, ids=graph.volunteers.ids))
    fit = model.fit(graph)
    graph.annotate(fit).save(tmp_path / "graph.crowd")
    assert_allclose(cg.load(tmp_path / "graph.crowd").fit().item_probs, fit.item_probs)
    again = model.fit(graph, start=fit)
    assert_allclose(again.item_probs, fit.item_probs, atol=1e-3)
