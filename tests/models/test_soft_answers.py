"""Soft answers count by their shares: oracles in plain NumPy, the limits, and what refuses them."""

import warnings

import numpy as np
import pytest
import torch
from builders import crowd
from kernels.random_steps import random_crowd
from numpy.testing import assert_allclose
from scipy.special import digamma, gammaln, logsumexp

import crowdgraph as cg
from crowdgraph.core.soft_answers import label_column
from crowdgraph.errors import CrowdGraphWarning, InputError, ParameterError
from crowdgraph.kernels.crowd_prior import class_variance
from crowdgraph.kernels.dglm import TensorScan
from crowdgraph.kernels.dglm_compiled import CompiledScan
from crowdgraph.kernels.dynibcc import CompiledLikelihood, TensorLikelihood
from crowdgraph.kernels.sweep import CompiledSweep, ItemResponses, TensorSweep
from crowdgraph.tensors.dynibcc import Steps, expected_score, predictive_score, step_feedback, step_logs

PRIOR = np.array([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]])


def soft_graph(seed=0, *, n_volunteers=8, n_items=30, n_responses=160, certain=0.3, gold=4):
    """A crowd of three labels in which most answers are soft, as a graph."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    volunteer, item = np.divmod(rng.choice(n_volunteers * n_items, n_responses, replace=False), n_items)
    lean = 0.3 + 4 * (np.arange(3) == truth[item, None])
    probs = np.array([rng.dirichlet(row) for row in lean])
    probs[rng.random(n_responses) < certain] = np.nan
    label = np.where(np.isnan(probs[:, 0]), truth[item], np.nan_to_num(probs).argmax(axis=1))
    table = {
        "volunteer": volunteer,
        "item": item,
        "label": label,
        "p0": probs[:, 0],
        "p1": probs[:, 1],
        "p2": probs[:, 2],
    }
    gold_items = {int(code): int(truth[code]) for code in np.unique(item)[:gold]}
    return cg.CrowdGraph.from_responses(
        table, probability={code: f"p{code}" for code in range(3)}, labels=[0, 1, 2], gold=gold_items
    )


def certain_graphs(seed=0):
    """A crowd without soft answers, and the same in which each answer says its label with probability one."""
    plain = crowd(seed=seed, n_volunteers=12, n_items=30, n_responses=200, gold=0.2).graph
    one_hot = np.asarray(plain.responses.label)[:, None] == np.arange(len(plain.labels))
    table = plain.to_arrow()
    for code, label in enumerate(plain.labels):
        table = table.append_column(label_column(label), [one_hot[:, code].astype(float)])
    options = {"gold": plain.to_arrow(table="gold"), "items": {"item": list(plain.items)}}
    options["volunteers"] = {"volunteer": list(plain.volunteers)}
    certain = cg.CrowdGraph.from_responses(table, **options)
    assert certain.label_probs is not None
    return plain, certain


MODELS = [
    cg.IBCC(),
    cg.IBCC(confusion_prior=(4, 1), learn_prior=True),
    cg.DawidSkene(),
    cg.DawidSkene(smoothing=0),
    cg.DynIBCC(),
    cg.DynIBCC(published=True, confusion_prior=(4, 1)),
    cg.MajorityVote(),
    cg.WeightedMajority(),
    cg.MeanScore(scores={"no": 0, "yes": 1}),
    cg.WeightedSum(scores={"no": 0, "yes": 1}),
    cg.Calibrated(),
    cg.Calibrated(model=cg.DynIBCC()),
]


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_certain_soft_answers_give_the_same_bits_as_answers(model):
    plain, certain = certain_graphs()
    expected, actual = model.fit(plain), model.fit(certain)
    assert (actual.item_probs == expected.item_probs).all()
    assert (actual.bound == expected.bound).all()
    if expected.confusion is not None:
        assert (actual.confusion.concentration == expected.confusion.concentration).all()


def vb_oracle(graph, prior, *, n_sweeps=2_000):
    """Variational Bayes by definition: q_l ln pi_jl in the E-step, pseudo-counts q_l in the M-step; and the bound."""
    answers, probs = graph.answers, graph.label_probs
    n_volunteers, n_items = len(graph.volunteers), len(graph.items)
    known = graph.gold.known
    alpha, nu = np.array(np.broadcast_to(prior, (n_volunteers, 3, 3))), np.ones(3)
    q, previous = np.full((n_items, 3), 1 / 3), np.inf
    for sweep in range(n_sweeps):
        logs = digamma(alpha) - digamma(alpha.sum(2, keepdims=True))
        class_logs = digamma(nu) - digamma(nu.sum())
        if not sweep:
            logs, class_logs = np.log(alpha / alpha.sum(2, keepdims=True)), np.log(nu / nu.sum())
        weights = np.tile(class_logs, (n_items, 1))
        for row in range(len(answers)):
            weights[answers.item[row]] += logs[answers.volunteer[row]] @ probs[row]
        norm = logsumexp(weights, axis=1)
        q = np.where(known[:, None], np.nan_to_num(graph.gold.probs), np.exp(weights - norm[:, None]))
        evidence = np.where(known, (q * weights).sum(1), norm).sum()
        bound = evidence - divergence(alpha, prior) - divergence(nu, np.ones(3))
        alpha, nu = np.array(np.broadcast_to(prior, alpha.shape)), 1 + q.sum(0)
        for row in range(len(answers)):
            alpha[answers.volunteer[row]] += q[answers.item[row]][:, None] * probs[row]
        if abs(bound - previous) < 1e-13 * abs(bound):
            break
        previous = bound
    return q, alpha, bound


def divergence(alpha, prior):
    prior = np.broadcast_to(prior, alpha.shape)
    logs = digamma(alpha) - digamma(alpha.sum(-1, keepdims=True))
    norms = [gammaln(part.sum(-1)) - gammaln(part).sum(-1) for part in (alpha, prior)]
    return (norms[0] - norms[1] + ((alpha - prior) * logs).sum(-1)).sum()


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_ibcc_is_variational_bayes_with_shares(backend):
    graph = soft_graph()
    q, alpha, bound = vb_oracle(graph, PRIOR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        fit = cg.IBCC(confusion_prior=PRIOR, tol=1e-12, backend=backend).fit(graph)
    assert_allclose(fit.item_probs, q, atol=1e-7)
    assert_allclose(fit.confusion.latest().concentration, alpha, atol=1e-5)
    assert fit.bound[-1] == pytest.approx(bound, abs=1e-8)
    assert (np.diff(fit.bound) >= -1e-9 * np.abs(fit.bound[1:])).all()


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_dawid_skene_is_a_fixed_point_of_em_with_shares(backend):
    graph, smoothing = soft_graph(1), 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        fit = cg.DawidSkene(smoothing=smoothing, tol=1e-11, max_iter=10_000, backend=backend).fit(graph)
    answers, probs, q = graph.answers, graph.label_probs, fit.item_probs
    counts = np.full((len(graph.volunteers), 3, 3), smoothing)
    for row in range(len(answers)):
        counts[answers.volunteer[row]] += q[answers.item[row]][:, None] * probs[row]
    rows, classes = counts / counts.sum(2, keepdims=True), (q.sum(0) + smoothing) / (q.sum(0) + smoothing).sum()
    weights = np.tile(np.log(classes), (len(q), 1))
    for row in range(len(answers)):
        weights[answers.item[row]] += np.log(rows[answers.volunteer[row]]) @ probs[row]
    again = np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
    assert_allclose(np.where(graph.gold.known[:, None], q, again), q, atol=1e-8)


def test_votes_and_scores_count_by_shares():
    table = {
        "volunteer": ["net", "anna", "bert"],
        "item": ["x"] * 3,
        "label": ["1", "0", "1"],
        "sure": [0.7, None, 0.9],
    }
    graph = cg.CrowdGraph.from_responses(table, probability="sure")
    assert_allclose(cg.MajorityVote().fit(graph).item_probs, [[1.4 / 3, 1.6 / 3]])
    assert_allclose(cg.MeanScore().fit(graph).item_probs, [[1.4 / 3, 1.6 / 3]])


@pytest.mark.parametrize("n", [2, 5])
def test_shares_in_nths_are_n_answers_that_count_an_nth_each(n):
    rng = np.random.default_rng(n)
    n_items, n_responses = 12, 50
    item = np.sort(rng.integers(0, n_items, n_responses))
    volunteer, tally = rng.integers(0, 4, n_responses), rng.multinomial(n, np.ones(3) / 3, n_responses)
    logs, class_logs = torch.from_numpy(rng.normal(size=(4, 3, 3))), torch.zeros(3, dtype=torch.float64)
    fixed, results = torch.zeros(n_items, dtype=torch.bool), []
    shared = [
        (i, k, label, times / n)
        for i, k, row in zip(item, volunteer, tally, strict=True)
        for label, times in enumerate(row)
        if times
    ]
    repeated = [(i, k, label, 1 / n) for i, k, label, share in shared for _ in range(round(share * n))]
    for parts in (shared, repeated):
        items, volunteers, labels, shares = map(np.array, zip(*parts, strict=True))
        responses = ItemResponses(
            torch.from_numpy(np.searchsorted(items, np.arange(n_items + 1))),
            torch.from_numpy((volunteers * 3 + labels).astype(np.int32)),
            4,
            3,
            shares=torch.from_numpy(shares),
        )
        for sweeper in (CompiledSweep(responses, n_classes=3), TensorSweep(responses, device=torch.device("cpu"))):
            probs = torch.full((n_items, 3), 1 / 3, dtype=torch.float64)
            swept = sweeper(logs, class_logs, probs, fixed)
            effect = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 3, 3)))
            variance = sweeper.class_variance(probs, effect)
            by_hand = class_variance(
                volunteers, items, labels, probs.numpy(), effect.numpy().swapaxes(1, 2), n_volunteers=4, share=shares
            )
            assert_allclose(variance, by_hand, rtol=1e-10)
            results.append((probs.numpy(), swept.counts.numpy(), float(swept.evidence), variance.numpy()))
    for other in results[1:]:
        for one, expected in zip(other, results[0], strict=True):
            assert_allclose(one, expected, rtol=1e-11, atol=1e-12)


# Steps over time


@pytest.mark.parametrize("published", [False, True])
def test_both_backends_filter_smooth_and_score_soft_answers_alike(published):
    rng = np.random.default_rng(4)
    steps, prior, probs = random_crowd(rng, [9, 14, 1], 3, 4, soft_answers=True)
    scans = [kind(steps, prior, published=published) for kind in (CompiledScan, TensorScan)]
    for stage in ("predicted", "filtered", "smoothed"):
        rows = [scan(probs, noise_scale=0.7, stage=stage).clone() for scan in scans]
        assert_allclose(rows[0], rows[1], rtol=1e-9)
    position = torch.arange(len(probs), dtype=torch.int32)
    fixed = torch.zeros(len(probs), dtype=torch.bool)
    results = []
    for likelihood in (CompiledLikelihood(steps, None, n_classes=3), TensorLikelihood(steps)):
        logs, effects = likelihood.logs(rows[1]), torch.zeros_like(probs)
        likelihood.add_feedback(rows[1], position, effects)
        results.append((logs.clone(), effects, torch.tensor(likelihood.predictive(rows[1], logs, probs, fixed))))
    for one, other in zip(*results, strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-12)


def test_steps_count_labels_by_shares():
    """The logarithms, their derivative and the scores, written out label by label."""
    rng = np.random.default_rng(5)
    steps, _, probs = random_crowd(rng, [6], 2, 3, soft_answers=True, unanswered=0)
    rows = torch.from_numpy(rng.gamma(2, 2, (6, 2, 3)))
    alpha, shares, weight, q = (
        rows.numpy(),
        steps.shares.numpy(),
        steps.weight.numpy(),
        probs.numpy()[steps.item.numpy()],
    )
    logs = np.einsum("sl,sjl->sj", shares, digamma(alpha) - digamma(alpha.sum(2, keepdims=True))) * weight[:, None]
    assert_allclose(step_logs(steps, rows), logs)
    nudge = 1e-6
    raised = alpha + nudge * (weight[:, None] * shares)[:, None, :]
    slope = (step_logs(steps, torch.from_numpy(raised)).numpy() - logs) / nudge
    assert_allclose(step_feedback(steps, rows), slope, rtol=1e-4)
    mean_logs = np.einsum("sl,sjl->sj", shares, np.log(alpha / alpha.sum(2, keepdims=True)))
    assert float(expected_score(steps, rows, probs=probs)) == pytest.approx((weight[:, None] * q * mean_logs).sum())
    others = q * np.exp(-logs)
    others /= others.sum(axis=1, keepdims=True)
    expected = (weight * np.log((others * np.exp(mean_logs)).sum(axis=1))).sum()
    assert float(predictive_score(steps, rows, logs=torch.from_numpy(logs), probs=probs)) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [CompiledScan, TensorScan])
def test_without_noise_a_soft_step_is_its_labels_one_after_another(kind):
    """Shares in fifths are five steps with a weight of a fifth each."""
    tally, item = np.array([[3, 1, 1], [0, 5, 0], [2, 2, 1]]), np.array([0, 1, 0])
    soft = Steps(
        torch.tensor([0, 3]),
        torch.from_numpy(item.astype(np.int32)),
        torch.from_numpy(tally.argmax(axis=1).astype(np.int16)),
        torch.ones(3, dtype=torch.float64),
        torch.zeros(3, dtype=torch.float64),
        torch.from_numpy(tally / 5),
    )
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in tally])
    repeated = Steps(
        torch.tensor([0, 15]),
        torch.from_numpy(np.repeat(item, 5).astype(np.int32)),
        torch.from_numpy(labels.astype(np.int16)),
        torch.full((15,), 0.2, dtype=torch.float64),
        torch.zeros(15, dtype=torch.float64),
    )
    prior, probs = torch.from_numpy(PRIOR[None, :2]), torch.tensor([[0.8, 0.2], [0.3, 0.7]], dtype=torch.float64)
    one = kind(soft, prior)(probs, noise_scale=0.0, stage="filtered")
    many = kind(repeated, prior)(probs, noise_scale=0.0, stage="filtered")
    assert_allclose(one, many[4::5], rtol=1e-12)


def test_an_answer_that_prefers_no_label_says_nothing_about_classes_and_levels_rows():
    """It counts 1 / L of each label: rows move towards equal shares, and classes stay where rows are alike."""
    table = {"volunteer": ["net"] * 6, "item": list("uvwxyz"), "no": [0.5] * 6, "yes": [0.5] * 6}
    graph = cg.CrowdGraph.from_responses(table, probability=["no", "yes"])
    for model in (cg.IBCC(confusion_prior=(4, 1)), cg.DynIBCC(confusion_prior=(4, 1), noise_scale=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdGraphWarning)
            fit = model.fit(graph)
        assert_allclose(fit.item_probs, 0.5, atol=1e-12)
        mean = fit.confusion.latest().concentration[0]
        # Three items of each class are expected, with half an answer of each label: (4, 1) and 3 / 2 of each.
        assert_allclose(mean / mean.sum(axis=1, keepdims=True), np.array([[5.5, 2.5], [2.5, 5.5]]) / 8, atol=1e-9)


# Fits of graphs


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
@pytest.mark.parametrize("kind", ["ibcc", "dynibcc", "dawid_skene"])
def test_backends_agree_and_an_update_is_the_fit(kind):
    model = {"ibcc": cg.IBCC, "dynibcc": cg.DynIBCC, "dawid_skene": cg.DawidSkene}[kind]
    graph = soft_graph(2, n_items=40, n_responses=300)
    fit = model(tol=1e-9, max_iter=3_000).fit(graph)
    assert_allclose(model(tol=1e-9, max_iter=3_000, backend="torch").fit(graph).item_probs, fit.item_probs, atol=1e-6)
    start = graph.first(280)
    updated = model(tol=1e-9, max_iter=3_000).update(model(tol=1e-9, max_iter=3_000).fit(start), graph)
    assert_allclose(updated.item_probs, fit.item_probs, atol=1e-3)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_networks_allocation_and_surprise_see_the_shares():
    graph = soft_graph(3, n_items=60, n_responses=400)
    hard = graph.certain()
    fit = cg.Calibrated().fit(graph)
    annotated = graph.annotate(fit)
    network = cg.networks.pi_similarity(annotated)
    assert np.isfinite(network.weights).all()
    correlation = cg.networks.error_correlation(annotated, min_responses=5, min_common=2)
    other = cg.networks.error_correlation(hard.annotate(fit), min_responses=5, min_common=2)
    assert abs(correlation.weights - other.weights).max() > 1e-3
    surprise, confusion = cg.core.response_annotations.response_surprise(graph, fit), fit.confusion.latest().mean
    rows = confusion[graph.responses.volunteer]
    chance = np.exp(np.einsum("rl,rjl->rj", graph.label_probs, np.log(rows)))
    assert_allclose(surprise, -np.log((fit.item_probs[graph.responses.item] * chance).sum(axis=1)), rtol=1e-9)
    assert len(cg.allocation.GreedyValue().assign(annotated, budget=3)) > 0


@pytest.mark.parametrize("model", [cg.GibbsIBCC(), cg.Cautious(), cg.Calibrated(model=cg.GibbsIBCC())], ids=repr)
def test_other_models_refuse_soft_answers(model):
    with pytest.raises(ParameterError, match=r"takes no soft answers, and \d+ of 160 answers are soft"):
        model.fit(soft_graph())


def test_streams_and_limits_of_memory_refuse_soft_answers(tmp_path):
    graph = soft_graph()
    with pytest.raises(ParameterError, match="A stream takes no soft answers"):
        cg.StreamingIBCC(classes=(0, 1, 2), labels=(0, 1, 2)).update(graph)
    graph.save(tmp_path / "store", format="columns")
    stored = cg.open_store(tmp_path / "store").graph()
    assert_allclose(cg.MajorityVote().fit(stored).item_probs, cg.MajorityVote().fit(graph).item_probs)
    with pytest.raises(ParameterError, match="have soft answers"):
        cg.MajorityVote().fit(stored, memory="4GB")


def test_what_reads_the_most_probable_label_says_so():
    graph = soft_graph(n_items=40, n_responses=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        annotated = graph.annotate(cg.IBCC().fit(graph))
    with pytest.warns(CrowdGraphWarning, match="takes the most probable label of each"):
        annotated.fit().changes(min_answers=5, seed=0)


def test_wrong_probabilities_in_finished_tables_are_found():
    graph = soft_graph()
    table = graph.responses.table
    attributes = {name: np.array(column) for name, column in table.attributes.items()}
    attributes[label_column(0)][~np.isnan(attributes[label_column(0)])] = 0.9
    responses = cg.core.tables.ResponseTable(
        table.volunteer, table.item, table.label, table.time, table.clock, attributes
    )
    wrong = cg.CrowdGraph(graph.volunteers.table, graph.items.table, responses, classes=[0, 1, 2], labels=[0, 1, 2])
    with pytest.raises(InputError, match="must sum to one"):
        cg.IBCC().fit(wrong)
