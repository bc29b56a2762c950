"""The pi-similarity network against its definition, written out pair by pair."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import fitted
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import issparse

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.kernels import similarity
from crowdgraph.networks._one_kind import OneKind, fit_one_kind, sample_answers

module = importlib.import_module("crowdgraph.networks.pi_similarity")

DISTANCES = ["bhattacharyya", "hellinger"]


def written_out(confusion, distance):
    """One pair and one class after another."""
    weights = np.zeros((len(confusion), len(confusion)))
    for m, first in enumerate(confusion):
        for n, second in enumerate(confusion):
            overlap = [np.sqrt(row * other).sum() for row, other in zip(first, second, strict=True)]
            apart = [max(1 - value, 0) ** (0.5 if distance == "hellinger" else 1) for value in overlap]
            weights[m, n] = 0 if m == n else np.exp(-sum(apart))
    return weights


@pytest.fixture(scope="module")
def graph():
    graph = fitted(n_items=120, drift="ramp", gold=0.5)
    return graph.annotate(cg.DynIBCC().fit(graph))


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4), st.integers(1, 5), st.sampled_from(DISTANCES))
def test_similarities_are_as_defined(seed, n_volunteers, n_classes, n_labels, distance):
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.full(n_labels, 0.3), (n_volunteers, n_classes))
    expected = written_out(confusion, distance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "MAX_BLOCK_ENTRIES", int(rng.integers(1, 60)))
        patch.setattr(similarity, "MAX_TREE_DIMENSIONS", int(rng.choice([0, 100])))
        result = similarity.similarities(torch.tensor(confusion), distance=distance).numpy()
        # The square root makes 1e-8 of the rounding of two rows that are the same.
        assert_allclose(result, expected, rtol=0, atol=1e-12 if distance == "bhattacharyya" else 1e-7)
        assert_array_equal(result, result.T)
        k = int(rng.integers(1, max(n_volunteers, 2)))
        if n_volunteers > 1:
            columns, values = similarity.nearest_neighbours(torch.tensor(confusion), n_neighbours=k, distance=distance)
            assert (columns != torch.arange(n_volunteers)[:, None]).all()
            others = -np.sort(-(expected + np.where(np.eye(n_volunteers), -1, 0)), axis=1)[:, :k]
            assert_allclose(values.numpy(), others, rtol=0, atol=1e-12 if distance == "bhattacharyya" else 1e-7)


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_network_is_that_of_the_latest_fit(graph, distance):
    network = cg.networks.pi_similarity(graph, distance=distance)
    assert_allclose(network.weights, written_out(graph.confusion().latest().mean, distance), atol=1e-12)
    assert_array_equal(network.ids, graph.volunteers.ids)
    assert network.params["distance"] == distance
    graph.annotate(network)


def test_fits_by_name_by_themselves_and_by_their_confusion(graph):
    by_name = cg.networks.pi_similarity(graph, fit="ibcc").weights
    fit = graph.fit("ibcc")
    for source in (fit, fit.confusion):
        assert_array_equal(cg.networks.pi_similarity(graph, fit=source).weights, by_name)
    assert not np.allclose(by_name, cg.networks.pi_similarity(graph, fit="dynibcc").weights)


def test_at_a_moment_confusion_and_counts_are_those_of_then(graph):
    moment = graph.responses.time[300]
    network = cg.networks.pi_similarity(graph, at=moment, min_responses=5)
    until = graph.responses.time <= moment
    counts = np.bincount(graph.responses.volunteer[until], minlength=25)
    experienced = np.flatnonzero(counts >= 5)
    assert_array_equal(network.ids, graph.volunteers.ids[experienced])
    assert_allclose(
        network.weights, written_out(graph.confusion().at(moment).mean[experienced], "bhattacharyya"), atol=1e-12
    )


@pytest.mark.parametrize("neighbours", [1, 4, 24, 100])
def test_nearest_neighbours_are_the_heaviest_links(graph, neighbours):
    dense = cg.networks.pi_similarity(graph).weights
    network = cg.networks.pi_similarity(graph, neighbours=neighbours)
    assert issparse(network.weights)
    k = min(neighbours, 24)
    wanted = dense >= -np.sort(-dense, axis=1)[:, k - 1 : k]
    expected = np.where(wanted | wanted.T, dense, 0)
    assert_allclose(network.weights.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("few", [0, 100])
def test_many_who_are_the_same_are_not_their_own_neighbours(monkeypatch, few):
    monkeypatch.setattr(similarity, "MAX_TREE_DIMENSIONS", few)
    confusion = torch.tensor([[[0.8, 0.2]]] * 7 + [[[0.1, 0.9]]], dtype=torch.float64)
    columns, values = similarity.nearest_neighbours(confusion, n_neighbours=3, distance="bhattacharyya")
    assert (columns != torch.arange(8)[:, None]).all()
    assert all(len(set(row)) == 3 for row in columns.tolist())
    assert_allclose(values[:7], 1, atol=1e-12)


def test_weights_run_from_never_alike_to_alike():
    track = cg.ConfusionTrack.static(
        ids=["a", "b", "c"],
        concentration=np.array([[[1e9, 1], [1, 1e9]], [[1e9, 1], [1, 1e9]], [[1, 1e9], [1e9, 1]]]),
        classes=(0, 1),
        labels=(0, 1),
    )
    table = {"volunteer": ["a", "b", "c"], "item": ["x"] * 3, "label": [0, 0, 1], "time": [0, 1, 2]}
    graph = cg.CrowdGraph.from_responses(table, classes=(0, 1), labels=(0, 1)).annotate(track)
    weights = cg.networks.pi_similarity(graph).weights
    assert_allclose([weights[0, 1], weights[0, 2]], [1, np.exp(-2)], atol=1e-3)


def test_many_volunteers_need_neighbours(graph, monkeypatch):
    monkeypatch.setattr(module, "MAX_DENSE_VOLUNTEERS", 20)
    with pytest.raises(ParameterError, match=r"All pairs of 25 volunteers are too many .*neighbours=50"):
        cg.networks.pi_similarity(graph)
    assert len(cg.networks.pi_similarity(graph, neighbours=3)) == 25


MEANS = np.array([[0.7, 0.2, 0.1], [0.15, 0.35, 0.5]])


def judged(rows, n_answers, rng, *, prior=None, **options):
    """The network of volunteers of whom as many answers to items of each class are known, drawn from their rows."""
    answers = rng.multinomial(np.full(rows.shape[:2], n_answers), rows)
    prior = np.zeros(rows.shape) if prior is None else np.broadcast_to(prior, rows.shape)
    confusion = cg.ConfusionSnapshot(
        ids=range(len(rows)),
        concentration=np.maximum(answers + prior, 1e-9),
        classes=(0, 1),
        labels=range(rows.shape[2]),
    )
    model = module.ConfusionModel(
        confusion=confusion, prior=prior, **{"distance": "bhattacharyya", "neighbours": None, **options}
    )
    return cg.VolunteerNetwork(ids=range(len(rows)), weights=model.weights(), method="pi_similarity", model=model)


def one_kind(rng, n, spread=20.0):
    return np.stack([rng.dirichlet(row * spread, n) for row in MEANS], axis=1)


def off_diagonal(network):
    return network.weights[np.triu_indices(len(network), 1)]


def test_the_network_knows_its_confusion_its_prior_and_its_answers(graph):
    fit = graph.fit("ibcc")
    for source in ("ibcc", fit, fit.confusion):
        network = cg.networks.pi_similarity(graph, fit=source, min_responses=20)
        model = network.model
        codes = graph.volunteers.codes(network.ids)
        assert_array_equal(model.confusion.ids, network.ids)
        assert_array_equal(model.prior, fit.prior.of_all(network.ids.tolist()))
        # Without the prior, every answer is there once, shared out over the classes.
        evidence = (model.confusion.concentration - model.prior).sum(axis=(1, 2))
        assert_allclose(evidence, network.support)
        assert_array_equal(network.support, graph.volunteers.n_responses[codes])
    moment = graph.responses.time[300]
    then = cg.networks.pi_similarity(graph, at=moment)
    assert then.support.sum() == np.count_nonzero(graph.responses.time <= moment)
    bare = graph.annotate(
        cg.ConfusionTrack.static(
            ids=graph.volunteers.ids,
            concentration=fit.confusion.latest().concentration,
            classes=graph.classes,
            labels=graph.labels,
        )
    )
    assert_array_equal(cg.networks.pi_similarity(bare).model.prior, 0)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("neighbours", [None, 7])
def test_networks_drawn_are_made_the_same_way(graph, distance, neighbours):
    network = cg.networks.pi_similarity(graph, distance=distance, neighbours=neighbours)
    for sample in (network.null(seed=1), network.resampled(seed=1)):
        means = sample.model.confusion.mean
        dense = written_out(means, distance)
        if neighbours is not None:
            wanted = dense >= -np.sort(-dense, axis=1)[:, 6:7] - 1e-9
            assert issparse(sample.weights)
            assert_allclose(sample.weights.toarray(), np.where(wanted | wanted.T, dense, 0), atol=1e-7)
        else:
            assert_allclose(sample.weights, dense, atol=1e-7)
        assert abs(sample.weights - network.weights).max() > 1e-3
        assert_array_equal(sample.ids, network.ids)
        assert_array_equal(sample.support, network.support)
    assert network.null(seed=1).method == "pi_similarity without communities"
    assert network.resampled(seed=1).method == "pi_similarity"
    assert abs(network.null(seed=1).weights - network.null(seed=1).weights).max() == 0
    assert abs(network.null(seed=1).weights - network.null(seed=2).weights).max() > 0


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_everybody_keeps_the_number_of_answers(seed, n_volunteers, n_labels, forgetful):
    rng = np.random.default_rng(seed)
    shape = (n_volunteers, 2, n_labels)
    prior = np.broadcast_to(rng.uniform(0.1, 3, shape[1:]), shape)
    evidence = rng.choice([0, 1e-4, 0.3, 2, 17.5, 4e5, 3e12], shape) * rng.random(shape)
    concentration = prior * (0.5 if forgetful else 1) + evidence
    confusion = cg.ConfusionSnapshot(
        ids=range(n_volunteers), concentration=concentration, classes=(0, 1), labels=range(n_labels)
    )
    model = module.ConfusionModel(confusion=confusion, prior=prior, distance="bhattacharyya", neighbours=None)
    null = model.null(confusion.ids, rng).confusion.concentration
    assert np.isfinite(null).all()
    assert_allclose(null.sum(axis=2), concentration.sum(axis=2), rtol=1e-12)
    if not forgetful:
        assert (null >= prior * (1 - 1e-3)).all()
    resampled = model.resampled(confusion.ids, rng).confusion.concentration
    assert_allclose(resampled.sum(axis=2), concentration.sum(axis=2), rtol=1e-12)


def test_answers_drawn_are_whole_but_for_one():
    rng = np.random.default_rng(0)
    rows = np.broadcast_to(rng.dirichlet([2, 2, 2]), (20_000, 1, 3))
    sample = sample_answers(np.full((20_000, 1), 4.25), rows, rng)
    assert_allclose(sample.sum(axis=2), 4.25)
    assert set(np.unique(sample % 1)) == {0.0, 0.25}
    error = np.sqrt((4 + 0.25**2) * rows[0, 0] * (1 - rows[0, 0]) / 20_000)
    assert (np.abs(sample.mean(axis=0)[0] - 4.25 * rows[0, 0]) < 5 * error).all()
    many = sample_answers(np.full((20_000, 1), 1e12), rows, rng)
    assert_allclose(many, 1e12 * rows)


def test_rows_drawn_are_dirichlet():
    rng = np.random.default_rng(0)
    alpha = np.array([0.5, 2.0, 4.0])
    sample = module._sample_rows(np.broadcast_to(alpha, (40_000, 3)), rng)
    mean = alpha / alpha.sum()
    variance = mean * (1 - mean) / (alpha.sum() + 1)
    assert (np.abs(sample.mean(axis=0) - mean) < 5 * np.sqrt(variance / 40_000)).all()
    assert_allclose(sample.var(axis=0), variance, rtol=0.05)
    # Where a row is all but certain of one label, or a label impossible, there is still a row.
    sure = module._sample_rows(np.broadcast_to([1e-9, 2e-9, 0.0], (3_000, 3)), rng)
    assert_allclose(sure.sum(axis=1), 1)
    assert_allclose(sure.mean(axis=0), [1 / 3, 2 / 3, 0], atol=0.05)


def by_degrees(rng, n, spread):
    """Rows whose logarithms are normally distributed."""
    rows = np.exp(np.log(MEANS) + rng.normal(0, spread, (n, 2, 3)))
    return rows / rows.sum(axis=2, keepdims=True)


@pytest.mark.parametrize(
    ("draw", "n_answers", "spread"),
    [(one_kind, 30, 20.0), (one_kind, 30, 200.0), (by_degrees, 30, 0.5), (by_degrees, 10**6, 1.0)],
)
def test_without_communities_the_null_is_like_the_network(draw, n_answers, spread):
    rng = np.random.default_rng(2)
    network = judged(draw(rng, 400, spread), n_answers, rng, prior=np.array([[0.5, 0.3, 0.05], [0.2, 0.4, 0.4]]))
    # The mean weight of one null network varies by 0.005, that of twenty by 0.001.
    own, null = off_diagonal(network), np.concatenate([off_diagonal(network.null(seed=seed)) for seed in range(20)])
    assert_allclose(null.mean(), own.mean(), atol=0.005)
    for share in (0.05, 0.25, 0.5, 0.75):
        assert_allclose(np.quantile(null, share), np.quantile(own, share), atol=0.015)


def right_shares(network):
    """The shares of right answers about both classes, of shape (V, 2)."""
    return np.diagonal(network.model.confusion.mean, axis1=1, axis2=2)


# At -0.6 the smaller of both variances is a quarter of the larger; below a fifth it counts as noise.
@pytest.mark.parametrize("correlation", [1.0, 0.5, 0.0, -0.6])
def test_skill_at_one_class_goes_with_skill_at_another_as_in_the_crowd(correlation):
    rng = np.random.default_rng(3)
    normal = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 300)
    right = 1 / (1 + np.exp(-1 - normal))
    rows = np.stack([np.stack([right[:, 0], 1 - right[:, 0]], 1), np.stack([1 - right[:, 1], right[:, 1]], 1)], 1)
    network = judged(rows, 30, rng)
    nulls = [network.null(seed=seed) for seed in range(20)]
    own, chance = (np.corrcoef(right_shares(one).T)[0, 1] for one in (network, nulls[0]))
    # Of 300 volunteers a correlation of 0 varies by 0.06, and that of twenty crowds by 0.013.
    assert_allclose(chance, own, atol=0.25)
    assert_allclose(np.mean([np.corrcoef(right_shares(one).T)[0, 1] for one in nulls]), own, atol=0.05)
    # Only who has which row changes: the shares of each class are spread as before.
    spread = np.mean([right_shares(one).std(axis=0) for one in nulls], axis=0)
    assert_allclose(spread, right_shares(network).std(axis=0), rtol=0.06)


@pytest.mark.parametrize("n_answers", [10, 40])
def test_one_kind_has_the_covariance_of_the_crowd(n_answers):
    """Rows are drawn from a known logistic-normal distribution, and seen through some answers each."""
    rng = np.random.default_rng(5)
    direction = np.array([[1.0, -0.5, -0.5], [-0.8, 0.0, 0.8]])
    truth = OneKind(np.log(MEANS), 0.5 * np.outer(direction, direction)[None])
    rows = truth.rows(rng.standard_normal((2_000, 6)))
    answers = rng.multinomial(np.full((2_000, 2), n_answers), rows)
    kind = fit_one_kind(answers, np.full(answers.shape, 0.5))
    again = kind.rows(rng.standard_normal((2_000, 6)))
    assert_allclose(again.mean(axis=0), rows.mean(axis=0), atol=0.02)
    assert_allclose(again.std(axis=0), rows.std(axis=0), atol=0.025)
    correlations = [np.corrcoef(part[:, 0, 0], part[:, 1, 2])[0, 1] for part in (rows, again)]
    assert correlations[0] > 0.9
    assert_allclose(*correlations, atol=0.12)


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 1, 2), (7, 3, 1), (40, 8, 8), (30, 15, 16)])
def test_one_kind_of_any_shape_has_rows(shape):
    rng = np.random.default_rng(0)
    evidence = rng.integers(0, 5, shape) * rng.integers(0, 2, (shape[0], 1, 1))
    kind = fit_one_kind(evidence, np.full(shape, 0.5))
    rows = kind.rows(rng.standard_normal((5, kind.mean.size)))
    assert rows.shape == (5, *shape[1:])
    assert_allclose(rows.sum(axis=2), 1)


def test_with_communities_the_null_is_not_like_the_network():
    rng = np.random.default_rng(2)
    rows = np.concatenate([one_kind(rng, 120), one_kind(rng, 120)[:, ::-1]])
    network = judged(rows, 30, rng)
    own, null = off_diagonal(network), off_diagonal(network.null(seed=0))
    # As different, but without the gap between the groups.
    assert_allclose(null.mean(), own.mean(), atol=0.02)
    halves = np.arange(240) // 120
    assert cg.communities.quality.modularity(network, halves) > 0.05
    chance = [cg.Leiden().detect(network.null(seed=seed), seed=0).modularity for seed in range(3)]
    # The null crowd differs along the same direction, by degrees, which is nearly as modular before sharpening.
    assert max(chance) < cg.Leiden().detect(network, seed=0).modularity - 0.01
    assert cg.BayesianNMF(restarts=1, sharpness=12.0).detect(network, seed=0).evidence.structured
    # Of one of the groups alone, the null is like that group.
    part = network.subnetwork(range(120))
    own, null = off_diagonal(part), off_diagonal(part.null(seed=0))
    assert part.null(seed=0).model.confusion.ids.tolist() == list(range(120))
    assert_allclose(np.quantile(null, [0.1, 0.5, 0.9]), np.quantile(own, [0.1, 0.5, 0.9]), atol=0.015)


def test_resampled_confusion_is_that_of_the_posterior():
    rng = np.random.default_rng(3)
    network = judged(one_kind(rng, 5), 12, rng, prior=np.full((2, 3), 0.5))
    known = network.model.confusion
    # Eight hundred volunteers like each of the five are resampled at once.
    many = replace(known, ids=range(4_000), concentration=np.repeat(known.concentration, 800, axis=0))
    model = replace(network.model, confusion=many, prior=np.full((4_000, 2, 3), 0.5))
    sample = model.resampled(many.ids, rng).confusion.mean.reshape(5, 800, 2, 3)
    totals = known.concentration.sum(axis=2, keepdims=True)
    variance = known.mean * (1 - known.mean) / (totals + 1)
    assert (np.abs(sample.mean(axis=1) - known.mean) < 5 * np.sqrt(variance / 800)).all()
    assert_allclose(sample.var(axis=1), variance, rtol=0.35)
    part = network.subnetwork([3, 1]).resampled(seed=0)
    assert part.model.confusion.ids.tolist() == [3, 1]
    assert part.weights.shape == (2, 2)


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_volunteers_are_resampled_too(n):
    rng = np.random.default_rng(0)
    network = judged(one_kind(rng, n), 5, rng)
    for sample in (network.null(seed=0), network.resampled(seed=0)):
        assert sample.weights.shape == (n, n)
